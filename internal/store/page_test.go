package store

import (
	"fmt"
	"slices"
	"testing"
)

// testPage is an archived page of a scope with everything set.
func testPage(c *ContextScope, id string, links ...int64) *Page {
	return &Page{
		Record: Record{Namespace: c.Namespace, Scope: c.Scope, Created: 5, Updated: 5, Metadata: []byte(`{"k":1}`)},
		Context: c.ID, PageID: id, PinReason: "why", Hits: 3, Touched: 4, TouchedAt: 6, EvictedTurn: -1, ProtectedTo: 2, Faults: 1,
		PageRevision: PageRevision{
			Version: 1, At: 5, Operation: "write", Title: "title of " + id, Summary: "sum\nmary", Content: "正文 " + id + "\x00",
			Tags: []string{"a", "b<"}, Importance: 0.25, Source: "src", Links: links,
		},
	}
}

func addScope(t testing.TB, s *Store, namespace string) *ContextScope {
	t.Helper()
	c := &ContextScope{Namespace: namespace, Scope: fmt.Sprintf("[%q]", namespace), Version: 1, State: []byte(`{"tick":1}`)}
	writes(t, s, func(tx *WriteTx) error { return tx.AddContext(c) })
	return c
}

func addPages(t testing.TB, s *Store, pages ...*Page) {
	t.Helper()
	writes(t, s, func(tx *WriteTx) error {
		for _, p := range pages {
			if err := tx.AddPage(p); err != nil {
				return err
			}
			tx.Stage(&p.Record, p)
		}
		return nil
	})
}

func conformPages(t *testing.T, s *Store, log *hookLog) {
	c := addScope(t, s, "n")
	a := testPage(c, "a")
	addPages(t, s, a)
	b := testPage(c, "b\"é", a.ID)
	b.Tier, b.Outline, b.Seq, b.RowVersion = TierCore, true, 7, 1
	w := testPage(c, "w", b.ID, a.ID)
	w.Tier, w.Admission, w.PageRevision.Tags, w.Thread, w.Position = TierWorking, 9, nil, "ingest-1", new(int64(0))
	w2 := testPage(c, "w2")
	w2.Tier, w2.Admission = TierWorking, 8
	addPages(t, s, b, w, w2)
	if len(log.changes) != 3 || log.changes[0].Kind != KindPage || log.changes[0].Outside || a.Revision != 2 || b.Revision != 3 {
		t.Errorf("%+v", log.changes)
	}
	read(t, s, func(tx *ReadTx) error {
		for _, want := range []*Page{a, b, w, w2} {
			got, err := tx.Page(want.ID)
			sameNotes(t, want, got)
			if err != nil {
				return err
			}
			got, err = tx.PageByID(c.ID, want.PageID)
			sameNotes(t, want, got)
			if err != nil {
				return err
			}
			r, err := tx.RecordOf(KindPage, want.ID)
			sameNotes(t, want, r)
			if err != nil {
				return err
			}
			v, err := tx.PageVersion(want.ID, 1)
			sameNotes(t, &want.PageRevision, v)
			if err != nil {
				return err
			}
			if revision, ok, err := tx.RecordRevision(want.ID); revision != want.Revision || !ok || err != nil {
				t.Error(revision, ok, err)
			}
		}
		resident, err := tx.ResidentPages(c.ID)
		sameNotes(t, []*Page{b, w2, w}, resident)
		if err != nil {
			return err
		}
		linking, err := tx.PagesLinking(a.ID)
		if err != nil || !slices.Equal(linking, []int64{b.ID, w.ID}) {
			t.Error(linking, err)
		}
		return nil
	})
}
