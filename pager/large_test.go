package pager

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

// library is a text of n pages of some two hundred bytes.
func library(random *rand.Rand, n int) string {
	words := strings.Fields("harbor tide lamp keeper storm rope signal ledger crew anchor chart cargo 灯塔 茶馆 港口 船员")
	var text strings.Builder
	for range n {
		for range 10 + random.IntN(10) {
			text.WriteString(words[random.IntN(len(words))])
			text.WriteByte(' ')
		}
		text.WriteString("end.\n\n")
	}
	return text.String()
}

// TestManyPages runs a thousand random operations over ten thousand pages: the
// budget holds after each, nothing but what changes core breaks the prefix, what
// broke it is named by the next publication, and memory stays as it was.
func TestManyPages(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	random := rand.New(rand.NewPCG(5, 10_000))
	cs := openScope(t, Config{Budget: new(16 << 10)})
	var ids []string
	for len(ids) < 10_000 {
		res := must[*IngestResult](t)(cs.Ingest(t.Context(), IngestRequest{Content: library(random, 2000), PageBytes: new(192)}))
		for _, p := range res.Pages {
			ids = append(ids, p.PageID)
		}
	}
	r := &roamer{t: t, cs: cs, random: random, ids: ids}
	r.run(100) // so that what is loaded once does not count
	before := heap()
	r.run(1000)
	after := heap()
	t.Logf("%d pages; %d publications, %d of which broke the prefix; heap %d KiB before, %d KiB after", len(ids), r.publications, r.breaks, before>>10, after>>10)
	if r.breaks == 0 || r.publications < 100 {
		t.Error("too little happened to show anything")
	}
	if after > before+before/2+(8<<20) {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	if h := must[*loci.HealthReport](t)(cs.reg.db.DeepHealth(t.Context())); h.Integrity != "ok" || h.IndexedDocuments != h.RecordCount {
		t.Errorf("%+v", h)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // what the first one gave to finalizers
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// roamer works at random on a scope with many pages.
type roamer struct {
	t            *testing.T
	cs           *Store
	random       *rand.Rand
	ids          []string
	prefix       string
	breakers     []string // operations that changed bytes of the prefix, since the last publication
	publications int
	breaks       int
}

// quiet are the operations that may not change a byte of the prefix.
var quiet = []string{"page_in working", "page_out", "search", "recall", "read", "policy_tick", "checkpoint", "write working", "write archive", "snapshot"}

func (r *roamer) id() string { return r.ids[r.random.IntN(len(r.ids))] }

// resident gives the id of a page in a tier, if there is any.
func (r *roamer) resident(core bool) (id string) {
	if err := r.cs.with(r.t.Context(), "test", func(s *scope) error {
		list := s.window.working
		if core {
			list = s.window.core
		}
		if len(list) > 0 {
			id = list[r.random.IntN(len(list))].PageID
		}
		return nil
	}); err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *roamer) run(n int) {
	ctx, t := r.t.Context(), r.t
	for i := range n {
		var op string
		var err error
		switch k := r.random.IntN(100); {
		case k < 25:
			op = "page_in working"
			_, err = r.cs.PageIn(ctx, PageInRequest{PageID: r.id()})
		case k < 45:
			op = "recall"
			_, err = r.cs.Recall(ctx, RecallRequest{SearchRequest: SearchRequest{Query: []string{"harbor storm", "茶馆", "ledger crew", "灯塔 船员"}[r.random.IntN(4)]},
				Publish: new(r.random.IntN(2) == 0)})
		case k < 55:
			op = "read"
			_, err = r.cs.Read(ctx, ReadRequest{PageID: r.id()})
		case k < 60:
			op = "search"
			_, err = r.cs.Search(ctx, SearchRequest{Query: "anchor chart", Limit: new(20)})
		case k < 65:
			if id := r.resident(false); id != "" {
				op = "page_out"
				_, err = r.cs.PageOut(ctx, PageOutRequest{PageID: id})
			}
		case k < 73:
			op = "write working"
			_, err = r.cs.Write(ctx, WriteRequest{Content: library(r.random, 3), Tier: Working})
		case k < 76:
			op = "page_in core"
			_, err = r.cs.PageIn(ctx, PageInRequest{PageID: r.id(), Tier: Core})
		case k < 80:
			if id := r.resident(true); id != "" {
				op = "unpin"
				_, err = r.cs.Unpin(ctx, UnpinRequest{PageID: id})
			}
		case k < 84:
			op = "write outline"
			_, err = r.cs.Write(ctx, WriteRequest{Content: library(r.random, 2), Title: fmt.Sprint("step ", i), Summary: "what was done", Outline: new(true)})
		case k < 88:
			op = "policy_tick"
			_, err = r.cs.PolicyTick(ctx, PolicyTickRequest{Force: r.random.IntN(4) == 0})
		case k < 90:
			op = "fold"
			_, err = r.cs.Fold(ctx, FoldRequest{Keep: new(6)})
		case k < 91:
			op = "forget"
			i := r.random.IntN(len(r.ids))
			_, err = r.cs.Forget(ctx, ForgetRequest{PageID: r.ids[i]})
			r.ids = slices.Delete(r.ids, i, i+1)
		default:
			op = "snapshot"
			r.publish()
		}
		if code := codeOf(err); err != nil && code != ErrOutlineFull && code != ErrPinned && code != ErrCoreOverBudget {
			t.Fatalf("%s: %v", op, err)
		}
		r.look(op)
	}
}

// look checks the window after an operation.
func (r *roamer) look(op string) {
	r.t.Helper()
	parts := must[*PrefixResult](r.t)(r.cs.Prefix(r.t.Context(), PrefixRequest{Publish: new(false)}))
	if p := parts.Pressure; p.Cost > p.Budget || p.Cost != len(parts.Prefix)+len(parts.Tail) {
		r.t.Fatalf("after %s the window of %d bytes costs %d of %d", op, len(parts.Prefix)+len(parts.Tail), p.Cost, p.Budget)
	}
	if !strings.HasPrefix(parts.Prefix, r.prefix) {
		if slices.Contains(quiet, op) {
			r.t.Fatalf("%s changed the prefix", op)
		}
		r.breakers = append(r.breakers, strings.Fields(op)[0])
	}
	r.prefix = parts.Prefix
	if parts.Last != nil && parts.Last.Generation > int64(r.publications) {
		r.published(parts.Last)
	}
}

func (r *roamer) publish() {
	s := snapshot(r.t, r.cs)
	again := must[*Snapshot](r.t)(r.cs.Snapshot(r.t.Context(), SnapshotRequest{Since: &s.Generation}))
	if again.Changed || again.SHA != s.SHA {
		r.t.Fatalf("unchanged, the snapshot says %+v", again)
	}
}

// published checks a new event.
func (r *roamer) published(e *RenderEvent) {
	r.t.Helper()
	r.publications++
	if e.Generation != int64(r.publications) {
		r.t.Fatalf("generation %d follows %d", e.Generation, r.publications-1)
	}
	if !e.PrefixIntact {
		r.breaks++
		named := func(op string) bool {
			return slices.ContainsFunc(e.Operations, func(o Operation) bool { return o.Name == op })
		}
		if !slices.ContainsFunc(r.breakers, named) {
			r.t.Fatalf("the prefix broke, %v did it, and %v are named", r.breakers, e.Operations)
		}
	}
	r.breakers = nil
}
