package pager

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// two are the executors of the specification's vectors.
func two() []Executor {
	return []Executor{{ID: "a", QueueMS: 100, ComputeMS: 10, BytesPerMS: 10}, {ID: "b", QueueMS: 0, ComputeMS: 10, BytesPerMS: 10}}
}

func TestSchedule(t *testing.T) {
	cs := openScope(t, Config{})
	pages := []SchedulePage{{"x@1", 400}, {"y@3", 800}}
	caching := func(keys ...string) []Executor {
		e := two()
		e[1].CachedPageIDs = keys
		return e
	}
	three := append(caching("x@1"), Executor{ID: "c", QueueMS: 20, ComputeMS: 40, BytesPerMS: 100})
	for name, c := range map[string]struct {
		req   ScheduleRequest
		best  string
		score map[string]float64
		miss  int64 // of b
	}{
		"900 bytes":             {ScheduleRequest{Executors: two(), PageBytes: new(int64(900))}, "b", map[string]float64{"a": 110, "b": 100}, 900},
		"1000 bytes, a tie":     {ScheduleRequest{Executors: two(), PageBytes: new(int64(1000))}, "a", map[string]float64{"a": 110, "b": 110}, 1000},
		"1100 bytes":            {ScheduleRequest{Executors: two(), PageBytes: new(int64(1100))}, "a", map[string]float64{"a": 110, "b": 120}, 1100},
		"congestion at 400":     {ScheduleRequest{Executors: two(), PageBytes: new(int64(400)), Congestion: new(1.0)}, "b", map[string]float64{"a": 120, "b": 100}, 400},
		"congestion at 500":     {ScheduleRequest{Executors: two(), PageBytes: new(int64(500)), Congestion: new(1.0)}, "a", map[string]float64{"a": 120, "b": 120}, 500},
		"congestion at 600":     {ScheduleRequest{Executors: two(), PageBytes: new(int64(600)), Congestion: new(1.0)}, "a", map[string]float64{"a": 120, "b": 140}, 600},
		"an old version cached": {ScheduleRequest{Executors: caching("x@1", "y@2"), Pages: pages}, "b", map[string]float64{"a": 110, "b": 90}, 800},
		"nothing cached":        {ScheduleRequest{Executors: two(), Pages: pages}, "a", map[string]float64{"a": 110, "b": 130}, 1200},
		"all cached":            {ScheduleRequest{Executors: caching("y@3", "x@1"), Pages: pages}, "b", map[string]float64{"a": 110, "b": 10}, 0},
		"pages go before bytes": {ScheduleRequest{Executors: two(), Pages: pages, PageBytes: new(int64(1))}, "a", map[string]float64{"a": 110, "b": 130}, 1200},
		"no pages are needed":   {ScheduleRequest{Executors: two(), Pages: []SchedulePage{}}, "b", map[string]float64{"a": 110, "b": 10}, 0},
		"dear and old cached":   {ScheduleRequest{Executors: caching("x@1", "y@2"), Pages: pages, Congestion: new(1.5)}, "a", map[string]float64{"a": 125, "b": 225}, 800},
		"dear and none cached":  {ScheduleRequest{Executors: two(), Pages: pages, Congestion: new(1.5)}, "a", map[string]float64{"a": 125, "b": 325}, 1200},
		"dear and all cached":   {ScheduleRequest{Executors: caching("x@1", "y@3"), Pages: pages, Congestion: new(1.5)}, "b", map[string]float64{"a": 125, "b": 25}, 0},
		"a third":               {ScheduleRequest{Executors: three, Pages: pages, Congestion: new(0.5)}, "c", map[string]float64{"a": 115, "b": 135, "c": 98}, 800},
	} {
		c.req.Holder = "a"
		got, err := cs.Schedule(t.Context(), c.req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		scores := map[string]float64{}
		for i, r := range got.Ranked {
			scores[r.ID] = r.Score
			if r.ID == "b" && r.MissingBytes != c.miss || r.Holder != (r.ID == "a") || r.Holder && (r.TransferMS != 0 || r.MissingBytes != 0) ||
				i > 0 && r.Score < got.Ranked[i-1].Score {
				t.Errorf("%s: %+v", name, got.Ranked)
			}
		}
		if d := cmp.Diff(c.score, scores, cmpopts.EquateApprox(0, 1e-9)); got.Best != c.best || got.Best != got.Ranked[0].ID || d != "" {
			t.Errorf("%s: %s is best:\n%s", name, got.Best, d)
		}
	}
}

// TestScheduleTies goes by the holder, the smaller transfer and the id.
func TestScheduleTies(t *testing.T) {
	cs := openScope(t, Config{})
	order := func(req ScheduleRequest) (out string) {
		t.Helper()
		for _, r := range must[*ScheduleResult](t)(cs.Schedule(t.Context(), req)).Ranked {
			out += r.ID
		}
		return out
	}
	e := []Executor{{ID: "d", ComputeMS: 20, BytesPerMS: 1}, {ID: "c", ComputeMS: 20, BytesPerMS: 1}, {ID: "b", ComputeMS: 10, BytesPerMS: 1, CachedPageIDs: nil}, {ID: "h", QueueMS: 20}}
	e[2].QueueMS, e[2].ComputeMS = 0, 10 // b: 10 + 10
	pages := []SchedulePage{{"p@1", 10}}
	e[0].CachedPageIDs, e[1].CachedPageIDs = []string{"p@1"}, []string{"p@1"}
	if got := order(ScheduleRequest{Holder: "h", Executors: e, Pages: pages}); got != "hcdb" {
		t.Errorf("of the same score: %s", got)
	}
	// The holder is none of the executors: all of them fetch.
	if got := order(ScheduleRequest{Holder: "elsewhere", Executors: two(), PageBytes: new(int64(2000))}); got != "ba" {
		t.Errorf("without the holder: %s", got)
	}
	all := make([]Executor, maxExecutors)
	for i := range all {
		all[i] = Executor{ID: fmt.Sprint(i), BytesPerMS: float64(i + 1)}
	}
	if got := must[*ScheduleResult](t)(cs.Schedule(t.Context(), ScheduleRequest{Holder: "x", Executors: all, PageBytes: new(int64(1) << 53)})); got.Best != "999" {
		t.Errorf("of a thousand, %s is best", got.Best)
	}
}

func TestScheduleRefused(t *testing.T) {
	cs := openScope(t, Config{})
	for name, c := range map[string]struct {
		change func(*ScheduleRequest)
		field  string
		// shared: prepare_task has the field too.
		shared bool
	}{
		"no holder":          {func(r *ScheduleRequest) { r.Holder = "" }, "holder", true},
		"no executors":       {func(r *ScheduleRequest) { r.Executors = nil }, "executors", true},
		"too many":           {func(r *ScheduleRequest) { r.Executors = make([]Executor, maxExecutors+1) }, "executors", true},
		"an id of nothing":   {func(r *ScheduleRequest) { r.Executors[1].ID = "" }, "executors[1].id", true},
		"an id twice":        {func(r *ScheduleRequest) { r.Executors[1].ID = "a" }, "executors[1].id", true},
		"negative queue":     {func(r *ScheduleRequest) { r.Executors[0].QueueMS = -1 }, "executors[0].queue_ms", true},
		"endless queue":      {func(r *ScheduleRequest) { r.Executors[0].QueueMS = math.Inf(1) }, "executors[0].queue_ms", true},
		"compute is nothing": {func(r *ScheduleRequest) { r.Executors[1].ComputeMS = math.NaN() }, "executors[1].compute_ms", true},
		"no bandwidth":       {func(r *ScheduleRequest) { r.Executors[1].BytesPerMS = 0 }, "executors[1].bytes_per_ms", true},
		"negative bandwidth": {func(r *ScheduleRequest) { r.Executors[0].BytesPerMS = -1 }, "executors[0].bytes_per_ms", true},
		"endless bandwidth":  {func(r *ScheduleRequest) { r.Executors[1].BytesPerMS = math.Inf(1) }, "executors[1].bytes_per_ms", true},
		"hardly a bandwidth": {func(r *ScheduleRequest) { r.Executors[1].BytesPerMS = 5e-324 }, "executors[1]", true},
		"figures too great": {func(r *ScheduleRequest) {
			r.Executors[0].QueueMS, r.Executors[0].ComputeMS = math.MaxFloat64, math.MaxFloat64
		}, "executors[0]", true},
		"negative congestion": {func(r *ScheduleRequest) { r.Congestion = new(-0.1) }, "congestion", true},
		"no congestion":       {func(r *ScheduleRequest) { r.Congestion = new(math.NaN()) }, "congestion", true},
		"too much cached":     {func(r *ScheduleRequest) { r.Executors[0].CachedPageIDs = make([]string, maxCachedPages+1) }, "executors[0].cached_page_ids", true},
		"no bytes":            {func(r *ScheduleRequest) { r.PageBytes = nil }, "page_bytes", false},
		"negative bytes":      {func(r *ScheduleRequest) { r.PageBytes = new(int64(-1)) }, "page_bytes", false},
		"too many bytes":      {func(r *ScheduleRequest) { r.PageBytes = new(int64(1<<53 + 1)) }, "page_bytes", false},
		"too many pages":      {func(r *ScheduleRequest) { r.Pages = make([]SchedulePage, maxSchedulePages+1) }, "pages", false},
		"a page of no id":     {func(r *ScheduleRequest) { r.Pages = []SchedulePage{{"", 1}} }, "pages[0].id", false},
		"a page twice":        {func(r *ScheduleRequest) { r.Pages = []SchedulePage{{"p", 1}, {"p", 1}} }, "pages[1].id", false},
		"negative page":       {func(r *ScheduleRequest) { r.Pages = []SchedulePage{{"p", -1}} }, "pages[0].bytes", false},
		"pages too great":     {func(r *ScheduleRequest) { r.Pages = []SchedulePage{{"p", 1 << 53}, {"q", 1}} }, "pages[1].bytes", false},
	} {
		req := ScheduleRequest{Holder: "a", Executors: two(), PageBytes: new(int64(10))}
		c.change(&req)
		_, err := cs.Schedule(t.Context(), req)
		if e := wantFail(t, err, ErrInvalidArgument, c.field); e.Op != "schedule" {
			t.Errorf("%s: operation %s", name, e.Op)
		}
		if !c.shared {
			continue
		}
		before := dumpOf(t, cs)
		_, err = cs.PrepareTask(t.Context(), PrepareTaskRequest{SearchRequest: SearchRequest{Query: "steps"}, Holder: req.Holder, Executors: req.Executors, Congestion: req.Congestion})
		if e := wantFail(t, err, ErrInvalidArgument, c.field); e.Op != "prepare_task" {
			t.Errorf("%s: operation %s", name, e.Op)
		}
		if d := cmp.Diff(before, dumpOf(t, cs)); d != "" {
			t.Fatalf("%s: recalled all the same:\n%s", name, d)
		}
	}
	if _, err := cs.Schedule(t.Context(), ScheduleRequest{Holder: "a", Executors: []Executor{{ID: "a"}}, PageBytes: new(int64(0))}); err != nil {
		t.Errorf("the holder needs no bandwidth: %v", err)
	}
}

// TestPrepareTask goes by keys of versions: an executor that has an old version
// has nothing.
func TestPrepareTask(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	recovery := "when the pump fails, close the valve " + strings.Repeat("and wait ", 100)
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "r", Title: "recovery steps", Content: recovery}))
	req := PrepareTaskRequest{
		SearchRequest: SearchRequest{Query: "pump recovery", Limit: new(3)}, Holder: "node-a",
		Executors: []Executor{{ID: "node-a", QueueMS: 100, ComputeMS: 10, BytesPerMS: 10}, {ID: "node-b", ComputeMS: 10, BytesPerMS: 10, CachedPageIDs: []string{"r@1"}}},
	}
	got := must[*PrepareTaskResult](t)(cs.PrepareTask(t.Context(), req))
	if d := cmp.Diff([]SchedulePage{{"r@1", int64(len(recovery))}}, got.Pages); d != "" {
		t.Errorf("the pages:\n%s", d)
	}
	if got.Schedule.Best != "node-b" || got.Schedule.Ranked[0].MissingBytes != 0 || len(got.Recall.Admitted) != 1 || got.Recall.Context.Text == nil {
		t.Errorf("with the page cached: %+v", got)
	}
	changed := strings.ToUpper(recovery)
	must[*WriteResult](t)(cs.Write(t.Context(), WriteRequest{PageID: "r", Title: "recovery steps", Content: changed + changed, ExpectedVersion: new(int64(1))}))
	got = must[*PrepareTaskResult](t)(cs.PrepareTask(t.Context(), req))
	if got.Schedule.Best != "node-a" || got.Pages[0].ID != "r@2" || got.Schedule.Ranked[1].MissingBytes != int64(2*len(changed)) {
		t.Errorf("with an old version cached: %+v", got)
	}
	req.Query, req.Publish = "nothing of the kind xyzzy", new(false)
	was := snapshot(t, cs).Generation
	got = must[*PrepareTaskResult](t)(cs.PrepareTask(t.Context(), req))
	if len(got.Pages) != 0 || got.Pages == nil || got.Schedule.Best != "node-b" || got.Recall.Context.Generation != was {
		t.Errorf("with nothing found: %+v", got)
	}
	req.Query = " "
	_, err := cs.PrepareTask(t.Context(), req)
	if e := wantFail(t, err, ErrInvalidArgument, "query"); e.Op != "prepare_task" {
		t.Errorf("operation %s", e.Op)
	}
}
