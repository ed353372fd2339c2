package store

// Predicate rules and equivalents are settings and no records: they have no id,
// are in no index, and are replaced as a whole. Predicates and words come in
// their normal form.

// A PredicateRule says what a predicate implies the other way round.
type PredicateRule struct {
	Namespace string // "" for the whole store
	Predicate string
	Inverse   string // "" for none
	Symmetric bool
}

// An Equivalent is a word of a group of predicates that mean the same.
type Equivalent struct {
	Word      string
	Group     int64
	Canonical bool // the word that the group was registered under
}

// PredicateRules gives the rules of a namespace and those of the whole store,
// the latter first, each by predicate. Namespace 0 has none of its own.
func (s *session) PredicateRules(namespace int64) ([]PredicateRule, error) {
	st, err := s.stmt(sqlPredicateRules)
	if err != nil {
		return nil, err
	}
	var out []PredicateRule
	var namespaces []int64
	st.bindInt(1, namespace)
	for {
		found, err := st.step()
		if err != nil {
			st.reset()
			return nil, err
		}
		if !found {
			break
		}
		namespaces = append(namespaces, st.columnInt(0))
		out = append(out, PredicateRule{Predicate: st.columnText(1), Inverse: st.columnText(2), Symmetric: st.columnInt(3) != 0})
	}
	st.reset()
	for i := range out {
		if out[i].Namespace, err = s.String(namespaces[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// SetPredicateRule adds a rule or replaces the one of the same namespace and
// predicate.
func (tx *WriteTx) SetPredicateRule(r PredicateRule) error {
	namespace, err := tx.intern(r.Namespace)
	if err != nil {
		return err
	}
	st, err := tx.stmt(sqlSetPredicateRule)
	if err != nil {
		return err
	}
	tx.Change()
	st.bindInt(1, namespace)
	st.bindText(2, r.Predicate)
	st.bindText(3, r.Inverse)
	st.bindInt(4, boolInt(r.Symmetric))
	return st.run()
}

// DeletePredicateRule deletes a rule; false when there was none. Namespace 0
// is the whole store.
func (tx *WriteTx) DeletePredicateRule(namespace int64, predicate string) (bool, error) {
	rules, err := tx.PredicateRules(namespace)
	if err != nil {
		return false, err
	}
	found := false
	for _, r := range rules {
		found = found || r.Predicate == predicate && (r.Namespace == "") == (namespace == 0)
	}
	if !found {
		return false, nil
	}
	st, err := tx.stmt(sqlDeletePredicateRule)
	if err != nil {
		return false, err
	}
	tx.Change()
	st.bindInt(1, namespace)
	st.bindText(2, predicate)
	return true, st.run()
}

// Equivalents gives a namespace's words with their groups, by word.
func (s *session) Equivalents(namespace int64) ([]Equivalent, error) {
	st, err := s.stmt(sqlEquivalents)
	if err != nil {
		return nil, err
	}
	defer st.reset()
	var out []Equivalent
	st.bindInt(1, namespace)
	for {
		found, err := st.step()
		if err != nil {
			return nil, err
		}
		if !found {
			return out, nil
		}
		out = append(out, Equivalent{st.columnText(0), st.columnInt(1), st.columnInt(2) != 0})
	}
}

// SetEquivalents adds groups of words, each a new group under its first word. A
// word that another group has leaves it.
func (tx *WriteTx) SetEquivalents(namespace string, groups [][]string) error {
	id, err := tx.intern(namespace)
	if err != nil {
		return err
	}
	known, err := tx.Equivalents(id)
	if err != nil {
		return err
	}
	var last int64
	for _, e := range known {
		last = max(last, e.Group)
	}
	st, err := tx.stmt(sqlSetEquivalent)
	if err != nil {
		return err
	}
	tx.Change()
	for i, words := range groups {
		for j, word := range words {
			st.bindInt(1, id)
			st.bindText(2, word)
			st.bindInt(3, last+1+int64(i))
			st.bindInt(4, boolInt(j == 0))
			if err := st.run(); err != nil {
				return err
			}
		}
	}
	return nil
}

// DeleteEquivalents deletes words, or all of them when words is nil, and gives
// how many there were.
func (tx *WriteTx) DeleteEquivalents(namespace int64, words []string) (int, error) {
	known, err := tx.Equivalents(namespace)
	if err != nil || len(known) == 0 {
		return 0, err
	}
	if words == nil {
		st, err := tx.stmt(sqlDeleteEquivalents)
		if err != nil {
			return 0, err
		}
		tx.Change()
		st.bindInt(1, namespace)
		return len(known), st.run()
	}
	there := make(map[string]bool, len(known))
	for _, e := range known {
		there[e.Word] = true
	}
	st, err := tx.stmt(sqlDeleteEquivalent)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, word := range words {
		if !there[word] {
			continue
		}
		delete(there, word)
		n++
		tx.Change()
		st.bindInt(1, namespace)
		st.bindText(2, word)
		if err := st.run(); err != nil {
			return n, err
		}
	}
	return n, nil
}

func boolInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
