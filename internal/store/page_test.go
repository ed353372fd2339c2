package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/internal/errs"
)

// testPage is an archived page of a scope with everything set.
func testPage(c *ContextScope, id string, links ...int64) *Page {
	return &Page{
		Record:  Record{Namespace: c.Namespace, Scope: c.Scope, Created: 5, Updated: 5, Metadata: []byte(`{"k":1}`)},
		Context: c.ID, PageID: id, PinReason: "why", Hits: 3, Touched: 4, TouchedAt: 6, EvictedTurn: -1, ProtectedTo: 2, Faults: 1,
		PageRevision: PageRevision{
			Version: 1, At: 5, Operation: "write", Title: "title of " + id, Summary: "sum\nmary", Content: "正文 " + id + "\x00",
			Tags: []string{"a", "b<"}, Importance: 0.25, Source: "src", Links: links,
		},
	}
}

// inWorking and inCore put a page where they say.
func inWorking(p *Page, admission int64) *Page {
	p.Tier, p.Admission = TierWorking, admission
	return p
}
func inCore(p *Page, seq int64) *Page { p.Tier, p.Seq = TierCore, seq; return p }

func addScope(t testing.TB, s *Store, namespace string, more ...string) *ContextScope {
	t.Helper()
	c := &ContextScope{Namespace: namespace, Scope: fmt.Sprintf("%q", append([]string{namespace}, more...)), Version: 1, State: []byte(`{"tick":1}`)}
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

func loadPage(t testing.TB, s *Store, id int64) (p *Page) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ReadTx) (err error) {
		p, err = tx.Page(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func loadScope(t testing.TB, s *Store, id int64) (c *ContextScope) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ReadTx) (err error) {
		c, err = tx.ContextByID(id)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func conformPages(t *testing.T, s *Store, log *hookLog) {
	c, other := addScope(t, s, "n"), addScope(t, s, "n", "two")
	a := testPage(c, "a")
	addPages(t, s, a)
	b := inCore(testPage(c, "b\"é", a.ID), 7)
	b.Outline, b.RowVersion = true, 1
	addPages(t, s, b)
	w := inWorking(testPage(c, "w", b.ID, a.ID), 9)
	w.PageRevision.Tags, w.Thread, w.Position = nil, "ingest-1", new(int64(0))
	w2 := inWorking(testPage(c, "w2"), 8)
	far := inCore(testPage(other, "a"), 1)
	addPages(t, s, w, w2, far)
	if len(log.changes) != 3 || log.changes[0].Kind != KindPage || log.changes[0].Outside || w.Revision != b.Revision+1 || s.Counters().Counts[KindPage] != 5 {
		t.Errorf("%+v", log.changes)
	}
	read(t, s, func(tx *ReadTx) error {
		for _, want := range []*Page{a, b, w, w2, far} {
			got, err := tx.Page(want.ID)
			sameNotes(t, want, got)
			if err != nil {
				return err
			}
			got, err = tx.PageByID(want.Context, want.PageID)
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
		pages, bytes, err := tx.CountPages(c.ID)
		want := [3]int64{int64(len(a.Content)), int64(len(w.Content) + len(w2.Content)), int64(len(b.Content))}
		if err != nil || pages != [3]int64{1, 2, 1} || bytes != want {
			t.Error(pages, bytes, err)
		}
		for limit, want := range [][]int64{{}, {w2.ID}, {w2.ID, w.ID}, {w2.ID, w.ID}} {
			if w2.Touched == w.Touched && w2.ID < w.ID || w2.Touched < w.Touched {
				t.Fatal("the pages are touched otherwise than this test takes them to be")
			}
			if got, err := tx.RecentPages(c.ID, TierWorking, limit); !slices.Equal(got, want) || err != nil {
				t.Error(limit, got, err)
			}
		}
		// Of what is not there, nothing.
		if p, err := tx.Page(a.ID + 1000); p != nil || err != nil {
			t.Error(p, err)
		}
		if p, err := tx.PageByID(other.ID, "w"); p != nil || err != nil {
			t.Error(p, err)
		}
		if v, err := tx.PageVersion(a.ID, 2); v != nil || err != nil {
			t.Error(v, err)
		}
		if _, ok, err := tx.RecordRevision(c.ID); ok || err != nil {
			t.Error("a scope has a record", err)
		}
		if pages, _, err := tx.CountPages(77); pages != [3]int64{} || err != nil {
			t.Error(pages, err)
		}
		return nil
	})
	twice := testPage(c, "w")
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.AddPage(twice) }); !errors.Is(err, errUnique) {
		t.Error("two pages of one id:", err)
	}
}

func conformPageRevisions(t *testing.T, s *Store, _ *hookLog) {
	c := addScope(t, s, "n")
	a, b := testPage(c, "a"), testPage(c, "b")
	addPages(t, s, a, b)
	first := a.PageRevision
	p := *a
	p.PageRevision = PageRevision{Version: 2, At: 8, Operation: "compact", Content: "short", Tags: []string{"b<", "z"}, Importance: 1, Links: []int64{b.ID}}
	p.Updated, p.Metadata = 8, nil
	inCore(&p, 3)
	writes(t, s, func(tx *WriteTx) error {
		old, err := tx.Page(a.ID)
		if err != nil {
			return err
		}
		return tx.AddPageRevision(old, &p)
	})
	sameNotes(t, &p, loadPage(t, s, a.ID))
	if !slices.Equal(p.Record.Tags, []string{"b<", "z"}) || p.Revision != a.Revision+1 {
		t.Error(p.Record.Tags, p.Revision)
	}
	state := &PageState{
		Tier: TierWorking, Admission: 4, PinReason: "", Hits: 9, Touched: 10, TouchedAt: 11, EvictedTurn: 12, ProtectedTo: 13, Faults: 14,
	}
	revision := writes(t, s, func(tx *WriteTx) error { return tx.SetPageState(a.ID, state) })
	got := loadPage(t, s, a.ID)
	if *got.state() != *state || got.Revision != p.Revision || revision != p.Revision+1 {
		t.Errorf("%+v, %d", got, revision)
	}
	sameNotes(t, p.PageRevision, got.PageRevision)
	// Uses add up, and time does not go back.
	writes(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.TouchPage(a.ID, 2, 8, 80), tx.TouchPage(a.ID, 1, 20, 15), tx.TouchPage(a.ID, 0, 19, 7), tx.TouchPage(999, 1, 1, 1))
	})
	state.Hits, state.Touched, state.TouchedAt = 12, 20, 80
	if got = loadPage(t, s, a.ID); *got.state() != *state {
		t.Errorf("%+v", got)
	}
	read(t, s, func(tx *ReadTx) error {
		v, err := tx.PageVersion(a.ID, 1)
		if err != nil {
			return err
		}
		sameNotes(t, &first, v)
		history, err := tx.PageHistory(a.ID)
		want := []PageVersionInfo{{1, 5, "write", int64(len(first.Content))}, {2, 8, "compact", 5}}
		if d := cmp.Diff(want, history); d != "" || err != nil {
			t.Error(d, err)
		}
		ids, err := tx.ids(sqlListTag, a.NamespaceID, a.TagIDs[0], 0, 10)
		if err != nil || !slices.Equal(ids, []int64{b.ID}) {
			t.Error("a tag that is gone finds the page:", ids, err)
		}
		return nil
	})
	// A version that does not ascend changes nothing.
	before := *s.Counters()
	for _, version := range []int64{2, 1, 0} {
		_, err := s.Write(t.Context(), func(tx *WriteTx) error {
			q := *got
			q.Version, q.Content = version, "other"
			return tx.AddPageRevision(got, &q)
		})
		if !errors.Is(err, errs.Storage) {
			t.Error(version, err)
		}
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.SetPageState(999, state) }); !errors.Is(err, errs.NotFound) {
		t.Error(err)
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.AddPageVersion(a.ID, &first) }); !errors.Is(err, errs.Conflict) {
		t.Error(err)
	}
	if *s.Counters() != before {
		t.Error("a write that failed moved the store")
	}
	sameNotes(t, got, loadPage(t, s, a.ID))
}

func conformPageHeads(t *testing.T, s *Store, _ *hookLog) {
	c, other := addScope(t, s, "n"), addScope(t, s, "m")
	var pages []*Page
	for i := range 9 {
		p := testPage(c, fmt.Sprint("p", 9-i))
		p.Content = strings.Repeat("字", i)
		switch i % 3 {
		case 1:
			inWorking(p, int64(100-i))
		case 2:
			inCore(p, int64(50-i))
			p.Outline, p.RowVersion = true, 1
		}
		pages = append(pages, p)
	}
	addPages(t, s, pages...)
	addPages(t, s, testPage(other, "p1"))
	heads := func(after int64, limit, stop int) (out []PageHead) {
		read(t, s, func(tx *ReadTx) error {
			return tx.PageHeads(c.ID, after, limit, func(h *PageHead) bool { out = append(out, *h); return len(out) != stop })
		})
		return out
	}
	var want []PageHead
	for i, p := range pages {
		want = append(want, PageHead{
			ID: p.ID, PageID: p.PageID, Version: 1, Tier: p.Tier, Outline: p.Outline, Seq: p.Seq, Admission: p.Admission,
			Bytes: int64(3 * i), Hits: 3, Touched: 4, TouchedAt: 6, EvictedTurn: -1, Title: p.Title, Importance: 0.25,
		})
	}
	for _, c := range []struct {
		after       int64
		limit, stop int
		want        []PageHead
	}{
		{0, 0, 0, want}, {0, 4, 0, want[:4]}, {pages[3].ID, 3, 0, want[4:7]}, {pages[8].ID, 0, 0, nil}, {0, 0, 2, want[:2]},
	} {
		if d := cmp.Diff(c.want, heads(c.after, c.limit, c.stop)); d != "" {
			t.Errorf("%+v: %s", c, d)
		}
	}
}

func conformContexts(t *testing.T, s *Store, _ *hookLog) {
	n, n2, m := addScope(t, s, "n"), addScope(t, s, "n", "x"), addScope(t, s, "m")
	if n.ID == 0 || n2.ID <= n.ID || n.NamespaceID != n2.NamespaceID || n.ScopeID == n2.ScopeID {
		t.Errorf("%+v %+v", n, n2)
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { c := *n; return tx.AddContext(&c) }); !errors.Is(err, errs.Conflict) {
		t.Error("a scope twice:", err)
	}
	revision := s.Counters().Revision
	n.Version, n.State = 9, []byte(`{"tick":"字"}`)
	writes(t, s, func(tx *WriteTx) error { return tx.UpdateContext(n) })
	if s.Counters().Revision != revision+1 {
		t.Error("no revision")
	}
	read(t, s, func(tx *ReadTx) error {
		got, err := tx.ContextOf("n", n.Scope)
		sameNotes(t, n, got)
		if err != nil {
			return err
		}
		for namespace, want := range map[string][]*ContextScope{"": {n, n2, m}, "n": {n, n2}, "m": {m}, "nobody": nil} {
			all, err := tx.Contexts(namespace)
			sameNotes(t, want, all)
			if err != nil {
				return err
			}
		}
		for _, place := range [][2]string{{"n", m.Scope}, {"nobody", n.Scope}, {"n", "nobody"}} {
			if got, err := tx.ContextOf(place[0], place[1]); got != nil || err != nil {
				t.Error(place, got, err)
			}
		}
		_, ok, err := tx.PublishedText(n.ID)
		if ok || err != nil {
			t.Error("published before anything was", err)
		}
		return nil
	})
	if loadScope(t, s, 999) != nil {
		t.Error("a scope that is not there")
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.UpdateContext(&ContextScope{ID: 999}) }); !errors.Is(err, errs.NotFound) {
		t.Error(err)
	}
	for _, text := range [][]byte{[]byte("first\x00\xff"), []byte("second"), nil} {
		writes(t, s, func(tx *WriteTx) error { return tx.PutPublished(n.ID, text) })
		read(t, s, func(tx *ReadTx) error {
			got, ok, err := tx.PublishedText(n.ID)
			if string(got) != string(text) || !ok {
				t.Errorf("%q, %v", got, ok)
			}
			return err
		})
	}
	for _, policy := range [][]byte{[]byte(`{"mode":"manual"}`), []byte(`{}`), nil} {
		writes(t, s, func(tx *WriteTx) error { return tx.SetPolicy("only policies", policy) })
		read(t, s, func(tx *ReadTx) error {
			got, err := tx.Policy("only policies")
			if string(got) != string(policy) || (got == nil) != (policy == nil) || err != nil {
				t.Errorf("%q %v", got, err)
			}
			if got, err = tx.Policy("n"); got != nil || err != nil {
				t.Errorf("%q %v", got, err)
			}
			return nil
		})
	}
	var taken int64
	writes(t, s, func(tx *WriteTx) error { taken = tx.NewID(); return nil })
	p := testPage(n, "p")
	addPages(t, s, p)
	if taken <= m.ID || p.ID != taken+1 {
		t.Error(m.ID, taken, p.ID)
	}
}

func conformContextLog(t *testing.T, s *Store, _ *hookLog) {
	c, other := addScope(t, s, "n"), addScope(t, s, "m")
	var want []LogEntry // newest first
	for i := range 5 {
		e := LogEntry{At: int64(i), Body: fmt.Appendf(nil, `{"i":%d}`, i)}
		if i%2 == 0 {
			e.Key = fmt.Sprint("k", i)
		}
		writes(t, s, func(tx *WriteTx) error { return tx.AppendLog(c.ID, LogUsage, &e) })
		want = slices.Insert(want, 0, e)
	}
	for _, elsewhere := range []struct {
		context int64
		typ     LogType
	}{{c.ID, LogRender}, {other.ID, LogUsage}} {
		e := LogEntry{Key: "k0", Body: []byte(`{}`)}
		writes(t, s, func(tx *WriteTx) error { return tx.AppendLog(elsewhere.context, elsewhere.typ, &e) })
		if e.Number != 1 {
			t.Error(e.Number)
		}
	}
	tail := func(limit int) (out []LogEntry) {
		read(t, s, func(tx *ReadTx) (err error) {
			out, err = tx.LogTail(c.ID, LogUsage, limit)
			return err
		})
		return out
	}
	for limit, n := range map[int]int{0: 0, -1: 0, 3: 3, 99: 5} {
		sameNotes(t, want[:n], tail(limit))
	}
	if want[0].Number != 5 || want[4].Number != 1 {
		t.Error(want)
	}
	// A key that is there is refused, and the operation may go on.
	writes(t, s, func(tx *WriteTx) error {
		if err := tx.AppendLog(c.ID, LogUsage, &LogEntry{Key: "k2", Body: []byte(`{}`)}); !errors.Is(err, errs.Conflict) {
			t.Error(err)
		}
		return nil
	})
	sameNotes(t, want, tail(99))
	read(t, s, func(tx *ReadTx) error {
		got, err := tx.LogByKey(c.ID, LogUsage, "k2")
		sameNotes(t, &want[2], got)
		if err != nil {
			return err
		}
		for _, key := range []string{"k1", ""} {
			if got, err = tx.LogByKey(c.ID, LogUsage, key); got != nil || err != nil {
				t.Error(key, got, err)
			}
		}
		return nil
	})
	trim := func(keep int64) error {
		_, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.TrimLog(c.ID, LogUsage, keep) })
		return err
	}
	if err := trim(0); !errors.Is(err, errs.Validation) {
		t.Error(err)
	}
	for _, keep := range []int64{9, 5, 2, 1} {
		if err := trim(keep); err != nil {
			t.Error(err)
		}
		sameNotes(t, want[:min(keep, 5)], tail(99))
	}
	revision := s.Counters().Revision
	if err := trim(1); err != nil || s.Counters().Revision != revision {
		t.Error("nothing was trimmed, and yet a revision made", err)
	}
	e := LogEntry{Key: "k0", Body: []byte(`{}`)} // free again
	writes(t, s, func(tx *WriteTx) error { return tx.AppendLog(c.ID, LogUsage, &e) })
	if e.Number != 6 {
		t.Error(e.Number)
	}
}

func conformCheckpoints(t *testing.T, s *Store, _ *hookLog) {
	c, other := addScope(t, s, "n"), addScope(t, s, "m")
	one := &Checkpoint{Context: c.ID, Label: "before\x00", At: 4, Pages: []CheckpointPage{
		{ID: 1, Version: 1}, {ID: 200, Version: math.MaxInt64, Tier: TierCore, Outline: true, Seq: 300, RowVersion: 2}, {ID: 201, Version: 0, Tier: TierWorking, Admission: math.MaxInt64},
		{ID: math.MaxInt64, Version: 7, Tier: TierArchived, Seq: 1, Admission: 1},
	}}
	none := &Checkpoint{Context: c.ID, At: 5}
	writes(t, s, func(tx *WriteTx) error { return errors.Join(tx.AddCheckpoint(one), tx.AddCheckpoint(none)) })
	if one.ID <= other.ID || none.ID != one.ID+1 {
		t.Error(one.ID, none.ID)
	}
	list := func() (out []Checkpoint) {
		read(t, s, func(tx *ReadTx) (err error) {
			out, err = tx.Checkpoints(c.ID)
			return err
		})
		return out
	}
	bare := *one
	bare.Pages = nil
	sameNotes(t, []Checkpoint{bare, *none}, list())
	read(t, s, func(tx *ReadTx) error {
		for _, want := range []*Checkpoint{one, none} {
			got, err := tx.Checkpoint(c.ID, want.ID)
			sameNotes(t, want, got)
			if err != nil {
				return err
			}
		}
		for _, place := range [][2]int64{{other.ID, one.ID}, {c.ID, none.ID + 1}} {
			if got, err := tx.Checkpoint(place[0], place[1]); got != nil || err != nil {
				t.Error(place, got, err)
			}
		}
		return nil
	})
	for _, pages := range [][]CheckpointPage{{{ID: 0}}, {{ID: 2}, {ID: 2}}, {{ID: 2}, {ID: 1}}, {{ID: 1, Seq: -1}}, {{ID: 1, Version: -1}}, {{ID: 1, RowVersion: -1}}, {{ID: 1, Tier: 3}}} {
		_, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.AddCheckpoint(&Checkpoint{Context: c.ID, Pages: pages}) })
		if !errors.Is(err, errs.Validation) {
			t.Errorf("%+v: %v", pages, err)
		}
	}
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.RemoveCheckpoint(other.ID, one.ID) }); !errors.Is(err, errs.NotFound) {
		t.Error(err)
	}
	writes(t, s, func(tx *WriteTx) error { return tx.RemoveCheckpoint(c.ID, one.ID) })
	sameNotes(t, []Checkpoint{*none}, list())
}

// BenchmarkPages measures what the context store does all the time: in a scope
// of 20,000 pages of 2 KiB, 100 of which are resident.
func BenchmarkPages(b *testing.B) {
	s := openTest(b, b.TempDir(), Options{})
	c := addScope(b, s, "n")
	var pages []*Page
	for i := range 20_000 {
		p := testPage(c, fmt.Sprint("p", i))
		p.Content = strings.Repeat("x", 2048)
		if i%200 == 0 {
			inWorking(p, int64(i+1))
		}
		pages = append(pages, p)
	}
	for part := range slices.Chunk(pages, 1000) {
		addPages(b, s, part...)
	}
	reading := func(name string, fn func(*ReadTx) error) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := s.Read(b.Context(), fn); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	reading("page", func(tx *ReadTx) error { _, err := tx.Page(pages[777].ID); return err })
	reading("resident", func(tx *ReadTx) error { _, err := tx.ResidentPages(c.ID); return err })
	reading("heads", func(tx *ReadTx) error { return tx.PageHeads(c.ID, 0, 0, func(*PageHead) bool { return true }) })
	reading("recent", func(tx *ReadTx) error { _, err := tx.RecentPages(c.ID, TierArchived, 5); return err })
	reading("count", func(tx *ReadTx) error { _, _, err := tx.CountPages(c.ID); return err })
	b.Run("touch", func(b *testing.B) {
		for b.Loop() {
			writes(b, s, func(tx *WriteTx) error { return tx.TouchPage(pages[777].ID, 1, 1, 1) })
		}
	})
}
