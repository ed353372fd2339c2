package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/render"
)

// published renders pages as a text of a scope and publishes that.
func published(t testing.TB, s *Store, c *ContextScope, pages ...*Page) []byte {
	t.Helper()
	var items [2][][]byte
	for _, p := range pages {
		at := 1
		if p.Tier == TierCore {
			at = 0
		}
		items[at] = append(items[at], render.AppendItem(nil, &render.Item{ID: p.PageID, Version: p.Version, Title: p.Title, Content: p.Content}))
	}
	text, _ := render.Append(nil, items[0], items[1])
	writes(t, s, func(tx *WriteTx) error { return tx.PutPublished(c.ID, text) })
	return text
}

func publishedText(t testing.TB, s *Store, c *ContextScope) (text []byte) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ReadTx) (err error) {
		text, _, err = tx.PublishedText(c.ID)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func links(t testing.TB, s *Store, page, version int64) (out []int64) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		r, err := tx.PageVersion(page, version)
		if err == nil {
			out = r.Links
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func conformRemovePage(t *testing.T, s *Store, log *hookLog) {
	c := addScope(t, s, "n")
	rules, gone, after := inCore(testPage(c, "rules"), 1), inCore(testPage(c, `gone "1"`), 2), inWorking(testPage(c, "after"), 3)
	addPages(t, s, rules, gone, after)
	// It links and is linked to, in an old revision as well as in the current one.
	writes(t, s, func(tx *WriteTx) error {
		for _, step := range []struct {
			p     *Page
			links []int64
		}{{gone, []int64{after.ID, rules.ID}}, {gone, []int64{rules.ID}}, {after, []int64{rules.ID, gone.ID}}, {after, []int64{gone.ID}}, {after, nil}} {
			old := *step.p
			step.p.Version++
			step.p.Links = step.links
			if err := tx.AddPageRevision(&old, step.p); err != nil {
				return err
			}
		}
		return nil
	})
	text := published(t, s, c, rules, gone, after)
	cut := render.Find(text, gone.PageID)
	if cut <= render.Find(text, rules.PageID) {
		t.Fatal(cut)
	}
	writes(t, s, func(tx *WriteTx) error {
		p, err := tx.Page(gone.ID)
		if err != nil {
			return err
		}
		return tx.RemovePage(p)
	})
	if len(log.changes) != 1 || log.changes[0] != (Change{ID: gone.ID, Namespace: gone.NamespaceID, Kind: KindPage}) {
		t.Errorf("%+v", log.changes)
	}
	if got := publishedText(t, s, c); string(got) != string(text[:cut]) {
		t.Errorf("%q", got)
	}
	if got := loadScope(t, s, c.ID); got.Version != c.Version+1 || string(got.State) != string(c.State) {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(links(t, s, after.ID, 2), []int64{rules.ID}) || links(t, s, after.ID, 3) != nil || loadPage(t, s, gone.ID) != nil {
		t.Error("something names it still")
	}
	read(t, s, func(tx *ReadTx) error {
		for _, which := range []statement{sqlPagesLinking, sqlPageHistory, sqlRecordRevision} {
			if rows, err := tx.ids(which, gone.ID); len(rows) > 0 || err != nil {
				t.Error(which, rows, err)
			}
		}
		linking, err := tx.PagesLinking(rules.ID)
		if err != nil || !slices.Equal(linking, []int64{after.ID}) {
			t.Error(linking, err)
		}
		return nil
	})
	// One that is not in the text leaves it alone; a delete of the record is the
	// same from outside.
	writes(t, s, func(tx *WriteTx) error { return tx.Delete(&after.Record) })
	if got := publishedText(t, s, c); string(got) != string(text[:cut]) || len(log.changes) != 1 || !log.changes[0].Outside {
		t.Errorf("%q %+v", got, log.changes)
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.RemovePage(after) }); !errors.Is(err, errs.NotFound) {
		t.Error(err)
	}
	if n := s.Counters().Counts[KindPage]; n != 1 {
		t.Error(n)
	}
}

// copyOf makes a page one of a record.
func copyOf(p *Page, r *Record) *Page {
	p.OriginKind, p.OriginID, p.Version = r.Kind, r.ID, r.Revision
	return p
}

func conformCopies(t *testing.T, s *Store, log *hookLog) {
	m, other := fullMemory(), fullMemory()
	other.Thread, other.Position = "", nil
	addBatch(t, s, []*Memory{m, other})
	c, d := addScope(t, s, "c"), addScope(t, s, "d")
	own := inWorking(testPage(c, "own"), 1)
	addPages(t, s, own)
	one := inWorking(copyOf(testPage(c, "memory:1", own.ID), &m.Record), 2)
	two := inCore(copyOf(testPage(d, "memory:1"), &m.Record), 1)
	third := copyOf(testPage(d, "memory:2"), &other.Record)
	addPages(t, s, one, two, third)
	sameNotes(t, one, loadPage(t, s, one.ID))
	copied := copyOf(testPage(d, "a copy of a copy"), &one.Record)
	addPages(t, s, copied)
	writes(t, s, func(tx *WriteTx) error { // taken again when the record has changed
		old := *third
		third.Version, third.Content = other.Revision+5, "new"
		return tx.AddPageRevision(&old, third)
	})
	text := published(t, s, c, own, one)
	published(t, s, d, two)
	read(t, s, func(tx *ReadTx) error {
		ids, err := tx.CopiesOf(m.ID)
		if err != nil || !slices.Equal(ids, []int64{one.ID, two.ID}) {
			t.Error(ids, err)
		}
		return nil
	})
	before := *s.Counters()
	writes(t, s, func(tx *WriteTx) error {
		got, err := tx.Memory(m.ID)
		if err != nil {
			return err
		}
		return tx.Delete(&got.Record)
	})
	now := *s.Counters()
	if now.Counts[KindPage] != before.Counts[KindPage]-3 || now.Counts[KindMemory] != 1 {
		t.Errorf("%+v, was %+v", now, before)
	}
	outside := map[int64]bool{}
	for _, change := range log.changes {
		outside[change.ID] = change.Outside
	}
	if len(outside) != 4 || !outside[one.ID] || !outside[two.ID] || !outside[copied.ID] || outside[m.ID] {
		t.Errorf("%+v", log.changes)
	}
	if got := publishedText(t, s, c); string(got) != string(text[:render.Find(text, one.PageID)]) {
		t.Errorf("%q", got)
	}
	if got := publishedText(t, s, d); string(got) != "{\"vc\":1,\"core\":[\n" {
		t.Errorf("%q", got)
	}
	if loadScope(t, s, c.ID).Version != c.Version+1 || loadScope(t, s, d.ID).Version != d.Version+2 {
		t.Error("a scope does not know")
	}
	for _, p := range []*Page{own, third} {
		sameNotes(t, p, loadPage(t, s, p.ID))
	}
	read(t, s, func(tx *ReadTx) error {
		if ids, err := tx.PagesLinking(own.ID); len(ids) > 0 || err != nil {
			t.Error(ids, err)
		}
		return nil
	})
}

func conformRemoveContext(t *testing.T, s *Store, log *hookLog) {
	c, d := addScope(t, s, "n"), addScope(t, s, "n", "x")
	a := inCore(testPage(c, "a"), 1)
	addPages(t, s, a)
	b := testPage(c, "b", a.ID)
	far := testPage(d, "far")
	addPages(t, s, b, far)
	inside, outside := copyOf(testPage(c, "copy"), &a.Record), copyOf(testPage(d, "copy"), &a.Record)
	addPages(t, s, inside, outside)
	published(t, s, c, a)
	kept := published(t, s, d, far)
	writes(t, s, func(tx *WriteTx) error {
		for _, context := range []int64{c.ID, d.ID} {
			e := errors.Join(
				tx.AppendLog(context, LogRender, &LogEntry{Key: "k", Body: []byte(`{}`)}),
				tx.AddCheckpoint(&Checkpoint{Context: context, Pages: []CheckpointPage{{ID: a.ID, Version: 1}}}),
			)
			if e != nil {
				return e
			}
		}
		return nil
	})
	writes(t, s, func(tx *WriteTx) error { return tx.RemoveContext(c.ID) })
	if len(log.changes) != 4 || s.Counters().Counts[KindPage] != 1 || loadScope(t, s, c.ID) != nil {
		t.Errorf("%+v", log.changes)
	}
	for _, change := range log.changes {
		if change.Doc != nil || change.Outside != (change.ID == inside.ID || change.ID == outside.ID) {
			t.Errorf("%+v", change)
		}
	}
	read(t, s, func(tx *ReadTx) error {
		if text, ok, err := tx.PublishedText(c.ID); ok || err != nil {
			t.Errorf("%q %v", text, err)
		}
		for context, n := range map[int64]int{c.ID: 0, d.ID: 1} {
			entries, err := tx.LogTail(context, LogRender, 9)
			if err != nil {
				return err
			}
			checkpoints, err := tx.Checkpoints(context)
			if err != nil || len(entries) != n || len(checkpoints) != n {
				t.Error(context, entries, checkpoints, err)
			}
		}
		return nil
	})
	if got := publishedText(t, s, d); string(got) != string(kept) || loadPage(t, s, far.ID) == nil {
		t.Errorf("%q", got)
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.RemoveContext(c.ID) }); !errors.Is(err, errs.NotFound) {
		t.Error(err)
	}
}

// conformAdoptPages brings in pages with the ids that they have elsewhere, older
// revisions after the current one.
func conformAdoptPages(t *testing.T, s *Store, _ *hookLog) {
	c := &ContextScope{ID: 40, Namespace: "n", Scope: `["n"]`, Version: 3, State: []byte(`{}`)}
	p := testPage(c, "p")
	p.ID, p.Revision, p.Version = 41, 7, 2
	first := p.PageRevision
	first.Version, first.Content = 1, "old"
	check := &Checkpoint{ID: 90, Context: 40, Pages: []CheckpointPage{{ID: 41, Version: 1}}}
	writes(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.Adopt(70), tx.AddContext(c), tx.Add(p), tx.AddPageVersion(41, &first), tx.AddCheckpoint(check))
	})
	sameNotes(t, p, loadPage(t, s, 41))
	if p.Revision != 7 || loadScope(t, s, 40) == nil || s.Counters().Revision != 70 {
		t.Error(p.Revision)
	}
	read(t, s, func(tx *ReadTx) error {
		got, err := tx.PageVersion(41, 1)
		sameNotes(t, &first, got)
		if err != nil {
			return err
		}
		if next, err := tx.NextID(); next != 91 || err != nil {
			t.Error(next, err)
		}
		counts, err := tx.CountRecords("n")
		if err != nil || counts[KindPage] != 1 {
			t.Error(counts, err)
		}
		records, _, err := tx.ScanNamespace(p.NamespaceID, 0, 10)
		sameNotes(t, []Stored{p}, records)
		return err
	})
}

// BenchmarkDelete deletes memories that have no copies: in a store without any
// page, and in one where another record has a copy.
func BenchmarkDelete(b *testing.B) {
	for _, copies := range []bool{false, true} {
		b.Run(fmt.Sprintf("copies=%v", copies), func(b *testing.B) {
			s := openTest(b, b.TempDir(), Options{})
			rng := rand.New(rand.NewPCG(1, 2))
			batch := make([]*Memory, b.N+1)
			for i := range batch {
				batch[i] = testMemory(rng, i)
			}
			for part := range slices.Chunk(batch, 1000) {
				addBatch(b, s, part)
			}
			if copies {
				addPages(b, s, copyOf(testPage(addScope(b, s, "n"), "p"), &batch[b.N].Record))
			}
			b.ResetTimer()
			cpu := cpuTime()
			for part := range slices.Chunk(batch[:b.N], 1000) {
				_, err := s.WriteMany(b.Context(), func(tx *WriteTx) error {
					for _, m := range part {
						if err := tx.Delete(&m.Record); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime()-cpu)/1e3/float64(b.N), "cpu-us/record")
		})
	}
}
