package pager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

func ingest(t testing.TB, cs *Store, req IngestRequest) *IngestResult {
	t.Helper()
	return must[*IngestResult](t)(cs.Ingest(t.Context(), req))
}

// story is a text of paragraphs of Chinese and English.
func story(bytes int) string {
	var b strings.Builder
	for i := 0; b.Len() < bytes; i++ {
		fmt.Fprintf(&b, "The %dth runner passed the gate. 第%d位选手通过了终点，观众都站了起来！\n", i, i)
		if i%7 == 6 {
			b.WriteString("\n")
		}
	}
	return b.String()
}

func TestIngest(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "p2", Content: "in the way"})
	writeBase(t, cs)
	before := snapshot(t, cs)
	text := story(40 << 10)
	got := ingest(t, cs, IngestRequest{Content: text, Title: "race", Tags: []string{"Sport", "b", "sport"}, Source: "race.txt", PageBytes: new(1000)})
	if len(got.Pages) < 40 || got.Bytes != len(text) || got.IngestID != "p1" {
		t.Fatalf("%d pages, %d bytes, %q", len(got.Pages), got.Bytes, got.IngestID)
	}
	var whole strings.Builder
	for i, p := range got.Pages {
		r := read(t, cs, p.PageID)
		whole.WriteString(r.Content)
		ref := r.Page
		if p.Ordinal != int64(i) || p.Version != 1 || p.Bytes != len(r.Content) || p.Bytes > 1000 || p.PageID == "p2" ||
			ref.Version != 1 || ref.Tier != Archive || ref.Title != "race" || !slices.Equal(ref.Tags, []string{"b", "sport"}) ||
			ref.Source != "race.txt" || ref.IngestID != got.IngestID || ref.Ordinal == nil || *ref.Ordinal != int64(i) || ref.Importance != 0.5 {
			t.Fatalf("page %d: %+v %+v", i, p, ref)
		}
	}
	if whole.String() != text {
		t.Error("the pages are not the text")
	}
	if after := snapshot(t, cs); after.SHA != before.SHA || after.Epoch != before.Epoch {
		t.Error("the window changed")
	}
	moves := must[*MetricsResult](t)(cs.Metrics(t.Context(), MetricsRequest{}))
	if moves.Events[0].Generation != before.Generation {
		t.Errorf("an event: %+v", moves.Events[0])
	}
	for _, m := range dumpOf(t, cs).Moves {
		if m.Operation == "ingest" {
			t.Fatalf("the ledger has %+v", m)
		}
	}
	if found := must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "选手 5th"})).Results; len(found) == 0 || found[0].IngestID != got.IngestID {
		t.Errorf("not found: %+v", found)
	}
	again := ingest(t, cs, IngestRequest{Content: "short"})
	if len(again.Pages) != 1 || again.IngestID == got.IngestID || again.IngestID != again.Pages[0].PageID {
		t.Errorf("%+v", again)
	}
	// An id is never given again, even when its page is gone.
	must[*ForgetResult](t)(cs.Forget(t.Context(), ForgetRequest{PageID: again.IngestID}))
	put(t, cs, WriteRequest{PageID: again.IngestID, Content: "mine"})
	if third := ingest(t, cs, IngestRequest{Content: "short"}); third.IngestID == again.IngestID {
		t.Error("an ingest id was given twice")
	}
	checkDeep(t, cs)
}

func TestIngestRefuses(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "a", Content: "a", Tier: Working})
	before := dumpOf(t, cs)
	for _, c := range []struct {
		name  string
		req   IngestRequest
		code  Code
		field string
	}{
		{"nothing", IngestRequest{}, ErrInvalidArgument, "content"},
		{"no UTF-8", IngestRequest{Content: "a\xff"}, ErrInvalidArgument, "content"},
		{"too long", IngestRequest{Content: strings.Repeat("x", MaxIngestBytes+1)}, ErrTooLarge, "content"},
		{"small pages", IngestRequest{Content: "x", PageBytes: new(31)}, ErrInvalidArgument, "page_bytes"},
		{"large pages", IngestRequest{Content: "x", PageBytes: new(65537)}, ErrInvalidArgument, "page_bytes"},
		{"a bad title", IngestRequest{Content: "x", Title: "\xff"}, ErrInvalidArgument, "title"},
		{"a long title", IngestRequest{Content: "x", Title: strings.Repeat("x", MaxTitleBytes+1)}, ErrTooLarge, "title"},
		{"a long source", IngestRequest{Content: "x", Source: strings.Repeat("x", MaxSourceBytes+1)}, ErrTooLarge, "source"},
		{"many tags", IngestRequest{Content: "x", Tags: make([]string, MaxTags+1)}, ErrTooLarge, "tags"},
		{"a bad tag", IngestRequest{Content: "x", Tags: []string{"a\x00"}}, ErrInvalidArgument, "tags[0]"},
		{"many pages", IngestRequest{Content: strings.Repeat("x", 32*(MaxIngestPages+1)), PageBytes: new(32)}, ErrTooLarge, "page_bytes"},
		{"much with every page", IngestRequest{Content: strings.Repeat("x", 32*MaxIngestPages), PageBytes: new(32), Source: strings.Repeat("x", 1000)}, ErrTooLarge, "title"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := cs.Ingest(t.Context(), c.req)
			e := wantFail(t, err, c.code, c.field)
			if enough, ok := e.Details["page_bytes"].(int); ok {
				n := 0
				if cutPages(c.req.Content, enough, func(string) bool { n++; return true }); n > MaxIngestPages {
					t.Errorf("%d bytes a page are not enough", enough)
				}
			} else if c.name == "many pages" {
				t.Error("no page_bytes named")
			}
			sameDump(t, before, dumpOf(t, cs))
		})
	}
	if s := must[*StatusResult](t)(cs.Status(t.Context(), StatusRequest{})); s.Counts.Archive.Pages != 0 {
		t.Errorf("%+v", s.Counts)
	}
}

// TestIngestWhole fails in the middle of the transaction.
func TestIngestWhole(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "a", Content: "a", Tier: Working})
	before := dumpOf(t, cs)
	broken := errors.New("broken")
	err := cs.mutate(t.Context(), "ingest", func(c *change) error {
		ids, err := c.freshPageIDs(10)
		if err != nil {
			return err
		}
		var pages []*store.Page
		for _, id := range ids {
			p := &store.Page{PageID: id}
			p.Content = id
			pages = append(pages, p)
		}
		prepared := make([]*index.Prepared, len(pages))
		for i, p := range pages {
			prepared[i] = c.scope.reg.link.PreparePage(p)
		}
		c.archive(pages, prepared)
		c.then(func(*store.WriteTx) error { return broken })
		return nil
	}, nil)
	if !errors.Is(err, broken) {
		t.Fatal(err)
	}
	sameDump(t, before, dumpOf(t, cs))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := cs.Ingest(ctx, IngestRequest{Content: "x"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	sameDump(t, before, dumpOf(t, cs))
}

// TestIngestFirst ingests into a scope of which nothing is stored.
func TestIngestFirst(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n", "fresh"}})
	text := story(5000)
	got := ingest(t, cs, IngestRequest{Content: text})
	if len(got.Pages) != 3 || read(t, cs, got.Pages[0].PageID).Content == "" {
		t.Errorf("%+v", got)
	}
	other := scopeOf(t, db, Config{Scope: Scope{"n", "other"}})
	_, err := other.Read(t.Context(), ReadRequest{PageID: got.Pages[0].PageID})
	wantFail(t, err, ErrNotFound, "page_id")
}

// BenchmarkIngest ingests texts of 1 MiB.
func BenchmarkIngest(b *testing.B) {
	text := story(1 << 20)
	db := openDB(b, b.TempDir(), nil)
	b.SetBytes(int64(len(text)))
	for i := 0; b.Loop(); i++ {
		cs := scopeOf(b, db, Config{Scope: Scope{"n", fmt.Sprint(i)}})
		ingest(b, cs, IngestRequest{Content: text})
	}
	b.StopTimer()
	if h, err := db.DeepHealth(context.Background()); err != nil || h.Integrity != "ok" {
		b.Fatal(h, err)
	}
}
