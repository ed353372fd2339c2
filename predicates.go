package loci

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// PredicateGroup is a group of predicates that mean the same.
type PredicateGroup struct {
	Canonical string   `json:"canonical"` // the word that the group was registered under
	Words     []string `json:"words"`     // all of them, Canonical included, sorted
}

// validPredicate checks a predicate or a word that stands for one and gives its
// normal form.
func validPredicate(field, s string) (string, error) {
	if err := valid.Label(field, s, MaxLabelBytes); err != nil {
		return "", err
	}
	n := normalize(s)
	if n == "" {
		return "", errs.Invalid(field, "must not be blank")
	}
	return n, nil
}

// SetPredicateRule sets what a predicate implies the other way round, in the
// place of an earlier rule. A rule with a namespace stands there before one for
// the whole store; one that is neither symmetric nor has an inverse adds
// nothing. Predicates are compared without regard to case and width.
//
// The rule of PredicateSameAs is built in and cannot be set.
func (s *GraphStore) SetPredicateRule(ctx context.Context, rule PredicateRule) (*Receipt[PredicateRule], error) {
	const op = "graph.set_predicate_rule"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	r, err := rule.check()
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := mayWriteRules(ctx, r.Namespace); err != nil {
		return nil, errs.WithOp(op, err)
	}
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error { return tx.SetPredicateRule(r) })
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[PredicateRule]{Value: PredicateRule(r), Revision: revision}, nil
}

func (r *PredicateRule) check() (out store.PredicateRule, err error) {
	out.Namespace, out.Symmetric = r.Namespace, r.Symmetric
	if r.Namespace != "" {
		if err := valid.Label("namespace", r.Namespace, MaxNamespaceBytes); err != nil {
			return out, err
		}
	}
	if out.Predicate, err = validPredicate("predicate", r.Predicate); err != nil {
		return out, err
	}
	if out.Predicate == PredicateSameAs {
		return out, errs.Invalid("predicate", "%s is built in, its rule cannot be set", PredicateSameAs)
	}
	if r.Inverse != "" {
		if r.Symmetric {
			return out, errs.Invalid("inverse", "excludes symmetric: give one of them")
		}
		if out.Inverse, err = validPredicate("inverse", r.Inverse); err != nil {
			return out, err
		}
		if out.Inverse == PredicateSameAs {
			return out, errs.Invalid("inverse", "must not be %s, which is no edge", PredicateSameAs)
		}
	}
	return out, nil
}

// DeletePredicateRule deletes the rule of a predicate in a namespace, or the one
// for the whole store when namespace is empty; false when there was none. What is
// built in, PredicateSameAs, is no rule that could be deleted.
func (s *GraphStore) DeletePredicateRule(ctx context.Context, namespace, predicate string) (*Receipt[bool], error) {
	const op = "graph.delete_predicate_rule"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	rule := PredicateRule{Namespace: namespace, Predicate: predicate}
	if namespace != "" {
		if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
			return nil, errs.WithOp(op, err)
		}
	}
	normal, err := validPredicate("predicate", rule.Predicate)
	if err == nil {
		err = mayWriteRules(ctx, namespace)
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	deleted := false
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		deleted = false
		id, ok, err := namespaceID(tx.StringID, namespace)
		if err != nil || !ok {
			return err
		}
		deleted, err = tx.DeletePredicateRule(id, normal)
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[bool]{Value: deleted, Revision: revision}, nil
}

// mayWriteRules refuses to change the rules of a namespace, or those for the whole
// store, which need admin.
func mayWriteRules(ctx context.Context, namespace string) error {
	if namespace == "" {
		return needAdmin(ctx, "namespace", "a rule without a namespace")
	}
	return mayWriteAll(ctx, namespace)
}

// namespaceID gives a namespace's dictionary id; "" is 0, and false says that
// nothing uses the namespace.
func namespaceID(lookup func(string) (int64, bool, error), namespace string) (int64, bool, error) {
	if namespace == "" {
		return 0, true, nil
	}
	return lookup(namespace)
}

// PredicateRules gives the rules for the whole store and then those of one
// namespace, each by predicate; with an empty namespace only the former.
func (s *GraphStore) PredicateRules(ctx context.Context, namespace string) ([]PredicateRule, error) {
	const op = "graph.predicate_rules"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if namespace != "" {
		if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
			return nil, errs.WithOp(op, err)
		}
	}
	// The rules for the whole store hold in every namespace, so whoever may read one
	// sees them with its own.
	err := needAdmin(ctx, "namespace", "asking without a namespace")
	if namespace != "" {
		err = mayReadAll(ctx, namespace)
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	rules := []PredicateRule{}
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		id, _, err := namespaceID(tx.StringID, namespace)
		if err != nil {
			return err
		}
		found, err := tx.PredicateRules(id)
		for _, r := range found {
			rules = append(rules, PredicateRule(r))
		}
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return rules, nil
}

// SetPredicateEquivalents registers groups of words that mean the same in a
// namespace, each under its first word, and gives the number of words. A word
// that is registered already leaves its former group, whose other words stay
// together. Words are kept in their normal form. Queries are expanded by them;
// records and graph edges stay as they are.
func (s *GraphStore) SetPredicateEquivalents(ctx context.Context, namespace string, groups [][]string) (*Receipt[int], error) {
	const op = "graph.set_predicate_equivalents"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	words, n, err := checkEquivalents(namespace, groups)
	if err == nil {
		err = mayWriteAll(ctx, namespace)
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		if n == 0 {
			return nil
		}
		if err := tx.SetEquivalents(namespace, words); err != nil {
			return err
		}
		s.eng.equivalents.changing(tx.Current())
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[int]{Value: n, Revision: revision}, nil
}

// checkEquivalents gives the groups in their normal form and the number of
// their words. Of a word in two groups the later one counts.
func checkEquivalents(namespace string, groups [][]string) ([][]string, int, error) {
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, 0, err
	}
	out := make([][]string, len(groups))
	groupOf := map[string]int{}
	for i, group := range groups {
		if len(group) == 0 {
			return nil, 0, errs.Invalid(fmt.Sprintf("groups[%d]", i), "must have at least one word")
		}
		for j, word := range group {
			word, err := validPredicate(fmt.Sprintf("groups[%d][%d]", i, j), word)
			if err != nil {
				return nil, 0, err
			}
			if g, ok := groupOf[word]; ok {
				if g == i {
					continue
				}
				out[g] = slices.DeleteFunc(out[g], func(w string) bool { return w == word })
			}
			groupOf[word] = i
			out[i] = append(out[i], word)
		}
		if len(groupOf) > MaxBatch {
			return nil, 0, errs.Invalid("groups", "have more than %d words: register them in parts", MaxBatch)
		}
	}
	return out, len(groupOf), nil
}

// PredicateEquivalents gives the groups of a namespace, sorted by their first
// words.
func (s *GraphStore) PredicateEquivalents(ctx context.Context, namespace string) ([]PredicateGroup, error) {
	const op = "graph.predicate_equivalents"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := mayReadAll(ctx, namespace); err != nil {
		return nil, errs.WithOp(op, err)
	}
	groups := []PredicateGroup{}
	err := s.eng.read(ctx, func(tx *store.ReadTx) error {
		x, err := s.eng.equivalentsOf(tx, namespace)
		for _, g := range x.groups {
			groups = append(groups, PredicateGroup{Canonical: g.canonical, Words: slices.Clone(g.words)})
		}
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return groups, nil
}

// DeletePredicateEquivalents deletes words of a namespace, all of them when
// words is nil, and gives how many there were.
func (s *GraphStore) DeletePredicateEquivalents(ctx context.Context, namespace string, words []string) (*Receipt[int], error) {
	const op = "graph.delete_predicate_equivalents"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := mayWriteAll(ctx, namespace); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if len(words) > MaxBatch {
		return nil, errs.WithOp(op, errs.Invalid("words", "has %d entries, at most %d are allowed", len(words), MaxBatch))
	}
	var normal []string
	if words != nil {
		normal = make([]string, len(words))
	}
	for i, word := range words {
		var err error
		if normal[i], err = validPredicate(fmt.Sprintf("words[%d]", i), word); err != nil {
			return nil, errs.WithOp(op, err)
		}
	}
	n := 0
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		n = 0
		id, ok, err := tx.StringID(namespace)
		if err != nil || !ok {
			return err
		}
		if n, err = tx.DeleteEquivalents(id, normal); n > 0 {
			s.eng.equivalents.changing(tx.Current())
		}
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[int]{Value: n, Revision: revision}, nil
}

// ExpandQuery gives the words of all groups of which a word occurs in a text,
// groups by their first occurrence, the words of a group sorted, at most
// ExpandQueryLimit of them. In scripts with blanks between words a word must
// stand as a whole: cat does not occur in category.
func (s *GraphStore) ExpandQuery(ctx context.Context, namespace, text string) ([]string, error) {
	const op = "graph.expand_query"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := mayReadAll(ctx, namespace); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if len(text) > MaxQueryBytes {
		return nil, errs.WithOp(op, errs.Invalid("text", "has %d bytes, at most %d are allowed", len(text), MaxQueryBytes))
	}
	if !utf8.ValidString(text) {
		return nil, errs.WithOp(op, errs.Invalid("text", "is not valid UTF-8"))
	}
	words := []string{}
	if strings.TrimSpace(text) == "" {
		return words, nil
	}
	err := s.eng.read(ctx, func(tx *store.ReadTx) error {
		x, err := s.eng.equivalentsOf(tx, namespace)
		for _, word := range x.expand(text) {
			words = append(words, word.text)
		}
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return words, nil
}
