package store

import (
	"slices"
	"testing"
)

// conformPredicates is about settings: each change moves the revision, nothing
// else does, and a failed operation leaves none.
func conformPredicates(t *testing.T, s *Store, _ *hookLog) {
	write := func(fn func(*WriteTx) error) int64 {
		t.Helper()
		revision, err := s.Write(t.Context(), fn)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	read := func(fn func(*ReadTx, int64) error) {
		t.Helper()
		err := s.Read(t.Context(), func(tx *ReadTx) error {
			id, _, err := tx.StringID("n")
			if err != nil {
				return err
			}
			return fn(tx, id)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	general, own := PredicateRule{Predicate: "p", Inverse: "q"}, PredicateRule{Namespace: "n", Predicate: "p", Symmetric: true}
	for i, r := range []PredicateRule{{Predicate: "p", Symmetric: true}, general, own, {Namespace: "m", Predicate: "x"}} {
		if revision := write(func(tx *WriteTx) error { return tx.SetPredicateRule(r) }); revision != int64(i+1) {
			t.Errorf("revision %d after rule %d", revision, i)
		}
	}
	read(func(tx *ReadTx, id int64) error {
		got, err := tx.PredicateRules(id)
		if !slices.Equal(got, []PredicateRule{general, own}) {
			t.Errorf("%+v", got)
		}
		none, err2 := tx.PredicateRules(0)
		if !slices.Equal(none, []PredicateRule{general}) || err2 != nil {
			t.Errorf("%+v, %v", none, err2)
		}
		return err
	})
	for _, want := range []bool{true, false} {
		write(func(tx *WriteTx) error {
			id, _, err := tx.StringID("n")
			if err != nil {
				return err
			}
			got, err := tx.DeletePredicateRule(id, "p")
			if got != want {
				t.Errorf("deleted: %v", got)
			}
			return err
		})
	}
	if n := s.Counters().Revision; n != 5 {
		t.Errorf("revision %d", n)
	}

	write(func(tx *WriteTx) error { return tx.SetEquivalents("n", [][]string{{"b", "a"}, {"c"}}) })
	write(func(tx *WriteTx) error { return tx.SetEquivalents("n", [][]string{{"a", "d"}}) })
	want := []Equivalent{{"a", 3, true}, {"b", 1, true}, {"c", 2, true}, {"d", 3, false}}
	read(func(tx *ReadTx, id int64) error {
		got, err := tx.Equivalents(id)
		if !slices.Equal(got, want) {
			t.Errorf("%+v", got)
		}
		return err
	})
	deleted := func(words []string) (n int) {
		write(func(tx *WriteTx) error {
			id, _, err := tx.StringID("n")
			if err != nil {
				return err
			}
			n, err = tx.DeleteEquivalents(id, words)
			return err
		})
		return n
	}
	before := s.Counters().Revision
	if n := deleted([]string{"x"}); n != 0 || s.Counters().Revision != before {
		t.Errorf("%d deleted at revision %d", n, s.Counters().Revision)
	}
	if n := deleted([]string{"a", "x", "a"}); n != 1 {
		t.Errorf("%d deleted", n)
	}
	if n := deleted(nil); n != 3 {
		t.Errorf("%d deleted", n)
	}
}

// conformAdjacency is about what the graph index reads.
func conformAdjacency(t *testing.T, s *Store, _ *hookLog) {
	entity := func(namespace string) *Entity {
		return &Entity{Record: Record{Namespace: namespace, Scope: "s"}, Type: "t", Name: "e", NameKey: "e", Attributes: []byte("{}")}
	}
	a, b, other := entity("n"), entity("n"), entity("m")
	r := &Relation{Record: Record{Namespace: "n", Scope: "u", Created: 7, Tags: []string{"x", "y"}}, Predicate: "P", PredicateKey: "p"}
	_, err := s.Write(t.Context(), func(tx *WriteTx) error {
		for _, e := range []*Entity{a, b, other} {
			if err := tx.AddEntity(e); err != nil {
				return err
			}
		}
		r.Subject, r.Object = a.ID, b.ID
		return tx.AddRelation(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Read(t.Context(), func(tx *ReadTx) error {
		var nodes []Node
		var edges []Edge
		if err := tx.Nodes(a.NamespaceID, func(n Node) bool { nodes = append(nodes, n); return true }); err != nil {
			return err
		}
		if err := tx.Edges(a.NamespaceID, func(e Edge) bool {
			e.Tags = slices.Clone(e.Tags)
			edges = append(edges, e)
			return true
		}); err != nil {
			return err
		}
		if !slices.Equal(nodes, []Node{{a.ID, a.ScopeID}, {b.ID, a.ScopeID}}) {
			t.Errorf("%+v", nodes)
		}
		if len(edges) != 1 {
			t.Fatalf("%+v", edges)
		}
		e, found, err := tx.Edge(a.NamespaceID, r.ID)
		if err != nil {
			return err
		}
		for _, e := range []Edge{edges[0], e} {
			if e.ID != r.ID || e.Scope != r.ScopeID || e.Created != 7 || e.Subject != a.ID || e.Object != b.ID || e.Predicate != r.PredicateKeyID || !slices.Equal(e.Tags, r.TagIDs) {
				t.Errorf("%+v of %+v", e, r)
			}
		}
		n, some, err := tx.Node(a.NamespaceID, b.ID)
		if !found || !some || n.ID != b.ID {
			t.Errorf("%v, %v, %+v", found, some, n)
		}
		// Neither another namespace's nor another kind.
		for _, id := range []int64{other.ID, r.ID, 99} {
			if _, some, err := tx.Node(a.NamespaceID, id); some || err != nil {
				t.Errorf("node %d: %v, %v", id, some, err)
			}
		}
		if _, some, err := tx.Edge(other.NamespaceID, r.ID); some || err != nil {
			t.Errorf("edge: %v, %v", some, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
