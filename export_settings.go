package loci

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/loci-memory/loci/internal/store"
)

// settings writes the settings of the store, or those of one namespace.
func (x *exporter) settings(tx *store.ReadTx, only string) error {
	rules, equivalents, roots, err := tx.SettledNamespaces()
	if err != nil {
		return err
	}
	switched, defaults, err := tx.VectorNamespaces()
	if err != nil {
		return err
	}
	policies, err := tx.PolicyNamespaces()
	if err != nil {
		return err
	}
	wholeStore := func(tx *store.ReadTx, _ string) ([]settingLine, error) { return spaceLines(tx) }
	if only == "" {
		rules = append([]string{""}, rules...)
	}
	for _, part := range []struct {
		namespaces []string
		lines      func(tx *store.ReadTx, namespace string) ([]settingLine, error)
	}{
		{rules, ruleLines}, {equivalents, equivalentLines}, {roots, rootLines}, {[]string{only}, wholeStore},
		{switched, switchLines}, {defaults, defaultSpaceLines}, {policies, policyLines},
	} {
		for _, namespace := range part.namespaces {
			if only != "" && namespace != only {
				continue
			}
			lines, err := part.lines(tx, namespace)
			if err != nil {
				return err
			}
			for _, line := range lines {
				x.report.Settings++
				if err := x.put(line); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// ruleLines are a namespace's own predicate rules, or those of the whole store.
func ruleLines(tx *store.ReadTx, namespace string) (lines []settingLine, err error) {
	var id int64
	if namespace != "" {
		if id, _, err = tx.StringID(namespace); err != nil {
			return nil, err
		}
	}
	rules, err := tx.PredicateRules(id)
	for _, r := range rules {
		if r.Namespace == namespace {
			lines = append(lines, settingLine{Setting: settingRule, Namespace: r.Namespace, Predicate: r.Predicate, Inverse: r.Inverse, Symmetric: r.Symmetric})
		}
	}
	return lines, err
}

// equivalentLines are a namespace's groups of words, a line each. A group whose
// canonical word has left it has its first one for that.
func equivalentLines(tx *store.ReadTx, namespace string) (lines []settingLine, err error) {
	id, _, err := tx.StringID(namespace)
	if err != nil {
		return nil, err
	}
	words, err := tx.Equivalents(id)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(words, func(a, b store.Equivalent) int {
		if a.Group == b.Group && a.Canonical != b.Canonical {
			if a.Canonical {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Group, b.Group)
	})
	for i, w := range words {
		if i == 0 || w.Group != words[i-1].Group {
			lines = append(lines, settingLine{Setting: settingEquivalents, Namespace: namespace})
		}
		last := &lines[len(lines)-1]
		last.Words = append(last.Words, w.Word)
	}
	return lines, nil
}

// rootLines is the folder of a namespace's notes.
func rootLines(tx *store.ReadTx, namespace string) ([]settingLine, error) {
	path, err := tx.NoteRoot(namespace)
	if err != nil || path == "" {
		return nil, err
	}
	return []settingLine{{Setting: settingRoot, Namespace: namespace, Path: path}}, nil
}

// importSetting sets what is not set yet; true when the store has another.
func (im *importer) importSetting(tx *store.WriteTx, s settingLine) (kept bool, err error) {
	var namespace int64
	if s.Namespace != "" {
		if namespace, _, err = tx.StringID(s.Namespace); err != nil {
			return false, err
		}
	}
	switch s.Setting {
	case settingRule:
		rule := store.PredicateRule{Namespace: s.Namespace, Predicate: s.Predicate, Inverse: s.Inverse, Symmetric: s.Symmetric}
		rules, err := tx.PredicateRules(namespace)
		if err != nil {
			return false, err
		}
		for _, r := range rules {
			if r.Namespace == rule.Namespace && r.Predicate == rule.Predicate {
				return r != rule, nil
			}
		}
		return false, tx.SetPredicateRule(rule)
	case settingEquivalents:
		known, err := tx.Equivalents(namespace)
		if err != nil {
			return false, err
		}
		for _, e := range known {
			if slices.Contains(s.Words, e.Word) {
				return true, nil
			}
		}
		return false, tx.SetEquivalents(s.Namespace, [][]string{s.Words})
	case settingSpace:
		return im.vectors.space(tx, s)
	case settingVectorization:
		return importSwitch(tx, namespace, s)
	case settingDefaultSpace:
		return im.vectors.importDefaultSpace(tx, s)
	case settingPolicy:
		there, err := tx.Policy(s.Namespace)
		if err != nil || there != nil {
			return there != nil && !bytes.Equal(there, s.Policy), err
		}
		return false, tx.SetPolicy(s.Namespace, s.Policy)
	default:
		root, err := tx.NoteRoot(s.Namespace)
		if err != nil || root != "" {
			return root != s.Path, err
		}
		_, err = tx.SetNoteRoot(s.Namespace, s.Path)
		return false, err
	}
}
