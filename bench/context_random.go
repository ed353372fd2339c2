package bench

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/pager"
)

// RandomReport is what random operations did to a window over many pages.
type RandomReport struct {
	Pages      int            `json:"pages"`
	Operations int            `json:"operations"`
	Failed     int            `json:"failed"` // as they may, with one of the codes of Codes
	Codes      map[string]int `json:"codes"`
	Done       map[string]int `json:"done"` // by operation
	// Overruns counts renders whose text was longer than the budget, Breaks those
	// that changed the prefix, and Unexplained those of them with no operation
	// behind it that may change one.
	Overruns    int     `json:"overruns"`
	Renders     int     `json:"renders"`
	Breaks      int     `json:"breaks"`
	Unexplained int     `json:"unexplained"`
	HeapBefore  float64 `json:"heap_before_mb"` // live, after a collection
	HeapAfter   float64 `json:"heap_after_mb"`
	WallSeconds float64 `json:"wall_s"`
	CPUSeconds  float64 `json:"cpu_s"`
}

// randomBudget is the window's budget under random operations, in bytes.
const randomBudget = 16 << 10

// randomBench runs random operations.
type randomBench struct {
	*contextRun
	cs     *pager.Store
	random *random
	out    *RandomReport
	ids    []string
	text   string // as it was published last
	stable int
	points []loci.ID // checkpoints
	// mayBreak says whether the operation under way may change the prefix.
	mayBreak bool
}

func (r *contextRun) random() error {
	return r.withStore(nil, func(db *loci.DB) error {
		cs, err := pager.Open(r.ctx, db, pager.Config{Scope: pager.Scope{"bench", "random"}, Budget: new(randomBudget)})
		if err != nil {
			return err
		}
		b := &randomBench{contextRun: r, cs: cs, random: newRandom(r.Seed, 1<<49), out: &RandomReport{Codes: map[string]int{}, Done: map[string]int{}}}
		if err := b.load(); err != nil {
			return err
		}
		r.report.Random = b.out
		return b.run()
	})
}

// load ingests the pages.
func (b *randomBench) load() error {
	b.say("ingesting %d pages for random operations", b.pages)
	const size = 1024
	for len(b.ids) < b.pages {
		out, err := b.cs.Ingest(b.ctx, pager.IngestRequest{Content: b.pageText(b.random, min(1<<20, (b.pages-len(b.ids))*size)), PageBytes: new(size)})
		if err != nil {
			return err
		}
		for _, p := range out.Pages {
			b.ids = append(b.ids, p.PageID)
		}
	}
	b.out.Pages = len(b.ids)
	return nil
}

func (b *randomBench) run() error {
	b.say("running %d random operations", b.operations)
	if err := b.check(); err != nil {
		return err
	}
	b.out.HeapBefore = liveHeap()
	weights := map[string]int{
		"write": 20, "create": 12, "page_in": 15, "pin": 4, "page_out": 8, "unpin": 3, "recall": 15, "search": 5, "read": 5,
		"outline": 6, "fold": 2, "compact": 3, "organize": 1, "checkpoint": 1, "restore": 1, "policy_tick": 3, "record_usage": 2, "forget": 1,
	}
	var bag []string
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		bag = append(bag, slices.Repeat([]string{name}, weights[name])...)
	}
	var m meter
	begin := time.Now()
	err := m.measure(func() error {
		for range b.operations {
			name := bag[b.random.below(len(bag))]
			b.mayBreak = false
			b.out.Operations++
			b.out.Done[name]++
			if err := b.do(name); err != nil {
				e, ok := errors.AsType[*pager.Error](err)
				if !ok || e.Code == pager.ErrInternal || e.Code == pager.ErrBusy {
					return fmt.Errorf("%s: %w", name, err)
				}
				b.out.Failed++
				b.out.Codes[string(e.Code)]++
				b.mayBreak = false // it changed nothing
			}
			if err := b.check(); err != nil {
				return err
			}
		}
		return nil
	})
	b.out.WallSeconds, b.out.CPUSeconds = time.Since(begin).Seconds(), m.cpu.Seconds()
	if err != nil {
		return err
	}
	b.out.HeapAfter = liveHeap()
	return nil
}

// liveHeap is what of the heap is in use after a collection, in MB.
func liveHeap() float64 {
	runtime.GC()
	runtime.GC() // for what the first one left to finalizers
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return float64(s.HeapAlloc) / 1e6
}

// check publishes the window and looks at its budget and its prefix.
func (b *randomBench) check() error {
	p, err := b.cs.Prefix(b.ctx, pager.PrefixRequest{})
	if err != nil {
		return err
	}
	text := p.Prefix + p.Tail
	b.out.Renders++
	if len(text) > randomBudget {
		b.out.Overruns++
	}
	if b.text != "" && !strings.HasPrefix(text, b.text[:b.stable]) {
		b.out.Breaks++
		if !b.mayBreak {
			b.out.Unexplained++
		}
	}
	b.text, b.stable = text, len(p.Prefix)
	return nil
}

// inCore says whether a page stands in the prefix that was published last.
func (b *randomBench) inCore(id string) bool {
	return slices.Contains(residentIDs(b.text[:b.stable]), id)
}

// page draws a page: half of the time one that is in the window.
func (b *randomBench) page() string {
	if in := residentIDs(b.text); len(in) > 0 && b.random.below(2) == 0 {
		return in[b.random.below(len(in))]
	}
	return b.ids[b.random.below(len(b.ids))]
}

// do runs one operation.
func (b *randomBench) do(name string) error {
	ctx, cs := b.ctx, b.cs
	content := func() string { return b.pageText(b.random, b.random.between(100, 2000)) }
	tiers := []pager.Tier{pager.Archive, pager.Working, pager.Core}
	var err error
	switch name {
	case "create":
		var out *pager.WriteResult
		out, err = cs.Write(ctx, pager.WriteRequest{Content: content(), Tier: tiers[b.random.below(3)], Title: "made", Importance: new(b.random.float())})
		if err == nil {
			b.ids = append(b.ids, out.Page.PageID)
		}
	case "outline":
		b.mayBreak = false // it appends
		var out *pager.WriteResult
		out, err = cs.Write(ctx, pager.WriteRequest{Content: content(), Title: "row", Summary: b.pageText(b.random, 80), Outline: new(true)})
		if err == nil {
			b.ids = append(b.ids, out.Page.PageID)
		}
	case "write":
		id := b.page()
		var now *pager.ReadResult
		if now, err = cs.Read(ctx, pager.ReadRequest{PageID: id}); err != nil {
			return err
		}
		b.mayBreak = b.inCore(id)
		req := pager.WriteRequest{PageID: id, ExpectedVersion: &now.CurrentVersion, Content: content(), Title: now.Page.Title, Summary: now.Page.Summary}
		if now.Page.Mode == "index" {
			req.Outline = new(b.random.below(4) > 0)
		}
		_, err = cs.Write(ctx, req)
	case "page_in":
		_, err = cs.PageIn(ctx, pager.PageInRequest{PageID: b.page()})
	case "pin":
		_, err = cs.PageIn(ctx, pager.PageInRequest{PageID: b.page(), Tier: pager.Core})
	case "page_out":
		_, err = cs.PageOut(ctx, pager.PageOutRequest{PageID: b.page()})
	case "unpin":
		id := b.page()
		b.mayBreak = b.inCore(id)
		_, err = cs.Unpin(ctx, pager.UnpinRequest{PageID: id})
	case "recall":
		_, err = cs.Recall(ctx, pager.RecallRequest{SearchRequest: pager.SearchRequest{Query: b.pageText(b.random, 60)}})
	case "search":
		_, err = cs.Search(ctx, pager.SearchRequest{Query: b.pageText(b.random, 60), Limit: new(20)})
	case "read":
		_, err = cs.Read(ctx, pager.ReadRequest{PageID: b.page()})
	default:
		return b.doSeldom(name)
	}
	return err
}

// doSeldom runs one of the operations that agents run seldom.
func (b *randomBench) doSeldom(name string) error {
	ctx, cs := b.ctx, b.cs
	var err error
	switch name {
	case "fold":
		b.mayBreak = true
		_, err = cs.Fold(ctx, pager.FoldRequest{Keep: new(b.random.between(1, 12)), Force: true})
	case "compact":
		id := b.page()
		var now *pager.ReadResult
		if now, err = cs.Read(ctx, pager.ReadRequest{PageID: id}); err != nil {
			return err
		}
		b.mayBreak = b.inCore(id)
		_, err = cs.Compact(ctx, pager.CompactRequest{PageID: id, ExpectedVersion: &now.CurrentVersion, Summary: b.pageText(b.random, 120)})
	case "organize":
		id := b.page()
		b.mayBreak = b.inCore(id) // a new version, though not of others in core
		_, err = cs.Organize(ctx, pager.OrganizeRequest{PageID: id, Threshold: new(0.1)})
	case "checkpoint":
		var out *pager.CheckpointResult
		if out, err = cs.Checkpoint(ctx, pager.CheckpointRequest{}); err == nil {
			b.points = append(b.points, out.Checkpoint.CheckpointID)
		}
	case "restore":
		if len(b.points) > 0 {
			b.mayBreak = true
			_, err = cs.Restore(ctx, pager.RestoreRequest{CheckpointID: b.points[b.random.below(len(b.points))]})
		}
	case "policy_tick":
		_, err = cs.PolicyTick(ctx, pager.PolicyTickRequest{Force: b.random.below(2) == 0})
	case "record_usage":
		_, err = cs.RecordUsage(ctx, pager.RecordUsageRequest{InputTokens: 100, CacheReadTokens: 900})
	case "forget":
		i := b.random.below(len(b.ids))
		id := b.ids[i]
		b.mayBreak = b.inCore(id)
		if _, err = cs.Forget(ctx, pager.ForgetRequest{PageID: id}); err == nil {
			b.ids = slices.Delete(b.ids, i, i+1)
		}
	default:
		return fmt.Errorf("no operation %q", name)
	}
	return err
}
