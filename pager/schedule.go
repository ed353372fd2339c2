package pager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// ScheduleRequest asks where to run a task, given where its pages are cached.
// All the figures are the caller's.
type ScheduleRequest struct {
	// Holder has all pages: it is assumed to be the executor that transfers
	// nothing. If it is none of the executors, all of them transfer.
	Holder    string     `json:"holder"`
	Executors []Executor `json:"executors"` // 1..1000
	// PageBytes is what an executor without the pages has to fetch. It may be left
	// out when Pages says so in detail.
	PageBytes *int64 `json:"page_bytes,omitempty"`
	// Congestion is the price of extra work, from 0: the higher, the less is given
	// to executors that would have to compute or fetch. Default 0. It is no
	// utilisation.
	Congestion *float64 `json:"congestion,omitempty"`
	// Pages are the pages that the task needs, at most 10,000. With them, an
	// executor has to fetch those that it has not cached.
	Pages []SchedulePage `json:"pages,omitempty"`
}

// Executor is a place where a task may run.
type Executor struct {
	ID         string  `json:"id"`
	QueueMS    float64 `json:"queue_ms"`               // until it begins
	ComputeMS  float64 `json:"compute_ms"`             // that it takes, reading the prompt included
	BytesPerMS float64 `json:"bytes_per_ms,omitempty"` // at which it fetches pages; above 0 unless it is the holder
	// CachedPageIDs are the keys of the pages that it has, "page_id@version": another
	// version is another page.
	CachedPageIDs []string `json:"cached_page_ids,omitempty"`
}

// SchedulePage is a page that a task needs.
type SchedulePage struct {
	ID    string `json:"id"` // a key, "page_id@version"; it is only compared
	Bytes int64  `json:"bytes"`
}

// ScheduleResult is advice on where to run a task.
type ScheduleResult struct {
	Best   string           `json:"best"`   // id of the first of Ranked
	Ranked []RankedExecutor `json:"ranked"` // by ascending score
}

// RankedExecutor is an executor with what running the task there would cost:
// score = queue_ms + (1 + congestion) * (compute_ms + transfer_ms).
type RankedExecutor struct {
	ID           string  `json:"id"`
	Holder       bool    `json:"holder,omitempty"`
	Score        float64 `json:"score"`
	QueueMS      float64 `json:"queue_ms"`
	ComputeMS    float64 `json:"compute_ms"`
	TransferMS   float64 `json:"transfer_ms"` // missing_bytes / bytes_per_ms, 0 for the holder
	MissingBytes int64   `json:"missing_bytes"`
}

const (
	maxExecutors     = 1000
	maxSchedulePages = 10_000
	maxCachedPages   = 100_000
	maxExactInt      = 1 << 53 // whole numbers up to here survive JSON in every language
)

// Schedule ranks executors by what it would cost to run a task there. Ties go to
// the holder, then to the smaller transfer, then to the lesser id. It is advice:
// nothing is measured, run or copied.
func (cs *Store) Schedule(ctx context.Context, req ScheduleRequest) (*ScheduleResult, error) {
	const op = "schedule"
	if err := ctx.Err(); err != nil {
		return nil, withOp(op, err)
	}
	if err := req.check(); err != nil {
		return nil, withOp(op, err)
	}
	out, err := req.rank()
	return out, withOp(op, err)
}

// check validates all but what the sums come to.
func (r *ScheduleRequest) check() error {
	if r.PageBytes == nil && r.Pages == nil {
		return invalid("page_bytes", "must be given, or the pages in detail")
	}
	if r.PageBytes != nil && (*r.PageBytes < 0 || *r.PageBytes > maxExactInt) {
		return invalid("page_bytes", "must be from 0 to %d", int64(maxExactInt))
	}
	if err := r.checkExecutors(); err != nil {
		return err
	}
	if len(r.Pages) > maxSchedulePages {
		return invalid("pages", "has %d entries, at most %d are allowed", len(r.Pages), maxSchedulePages)
	}
	seen, total := map[string]bool{}, int64(0)
	for i, p := range r.Pages {
		field := fmt.Sprintf("pages[%d]", i)
		switch {
		case p.ID == "":
			return invalid(field+".id", "must not be empty")
		case !utf8.ValidString(p.ID):
			return invalid(field+".id", "is not valid UTF-8")
		case seen[p.ID]:
			return invalid(field+".id", "is there twice")
		case p.Bytes < 0 || p.Bytes > maxExactInt || total > maxExactInt-p.Bytes:
			return invalid(field+".bytes", "must be from 0 to %d, with those of the other pages", int64(maxExactInt))
		}
		seen[p.ID] = true
		total += p.Bytes
	}
	return nil
}

// checkExecutors validates what prepare_task shares with schedule.
func (r *ScheduleRequest) checkExecutors() error {
	if r.Holder == "" {
		return invalid("holder", "must name who has all pages")
	}
	if !utf8.ValidString(r.Holder) {
		return invalid("holder", "is not valid UTF-8")
	}
	if n := len(r.Executors); n < 1 || n > maxExecutors {
		return invalid("executors", "must be 1 to %d, not %d", maxExecutors, n)
	}
	if r.Congestion != nil && !isAmount(*r.Congestion) {
		return invalid("congestion", "must be a number from 0")
	}
	seen := map[string]bool{}
	for i := range r.Executors {
		e := &r.Executors[i]
		field := fmt.Sprintf("executors[%d]", i)
		switch {
		case e.ID == "":
			return invalid(field+".id", "must not be empty")
		case !utf8.ValidString(e.ID):
			return invalid(field+".id", "is not valid UTF-8")
		case seen[e.ID]:
			return invalid(field+".id", "is there twice")
		case !isAmount(e.QueueMS):
			return invalid(field+".queue_ms", "must be a number from 0")
		case !isAmount(e.ComputeMS):
			return invalid(field+".compute_ms", "must be a number from 0")
		case !isAmount(e.BytesPerMS) || e.BytesPerMS == 0 && e.ID != r.Holder:
			return invalid(field+".bytes_per_ms", "must be a number above 0: only the holder fetches nothing")
		case len(e.CachedPageIDs) > maxCachedPages:
			return invalid(field+".cached_page_ids", "has %d entries, at most %d are allowed", len(e.CachedPageIDs), maxCachedPages)
		case slices.ContainsFunc(e.CachedPageIDs, func(id string) bool { return !utf8.ValidString(id) }):
			return invalid(field+".cached_page_ids", "holds what is not valid UTF-8")
		}
		seen[e.ID] = true
	}
	return nil
}

// isAmount says whether x is finite and at least 0.
func isAmount(x float64) bool { return x >= 0 && !math.IsInf(x, 1) }

// rank scores the executors of a request that was checked.
func (r *ScheduleRequest) rank() (*ScheduleResult, error) {
	price := 1.0
	if r.Congestion != nil {
		price += *r.Congestion
	}
	out := &ScheduleResult{Ranked: make([]RankedExecutor, 0, len(r.Executors))}
	for i := range r.Executors {
		e := &r.Executors[i]
		x := RankedExecutor{ID: e.ID, Holder: e.ID == r.Holder, QueueMS: e.QueueMS, ComputeMS: e.ComputeMS}
		if !x.Holder {
			x.MissingBytes = r.missing(e)
			x.TransferMS = float64(x.MissingBytes) / e.BytesPerMS
		}
		x.Score = x.QueueMS + price*(x.ComputeMS+x.TransferMS)
		if !isAmount(x.Score) || !isAmount(x.TransferMS) {
			return nil, invalid(fmt.Sprintf("executors[%d]", i), "cannot be scored: its figures come to more than a number holds")
		}
		out.Ranked = append(out.Ranked, x)
	}
	slices.SortFunc(out.Ranked, func(a, b RankedExecutor) int {
		if d := cmp.Compare(a.Score, b.Score); d != 0 {
			return d
		}
		if a.Holder != b.Holder {
			if a.Holder {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(a.TransferMS, b.TransferMS), cmp.Compare(a.ID, b.ID))
	})
	out.Best = out.Ranked[0].ID
	return out, nil
}

// missing is what an executor that is not the holder would have to fetch.
func (r *ScheduleRequest) missing(e *Executor) int64 {
	if r.Pages == nil {
		return *r.PageBytes
	}
	cached := make(map[string]bool, len(e.CachedPageIDs))
	for _, id := range e.CachedPageIDs {
		cached[id] = true
	}
	sum := int64(0)
	for _, p := range r.Pages {
		if !cached[p.ID] {
			sum += p.Bytes
		}
	}
	return sum
}

// PrepareTaskRequest asks to bring a task's pages in and where to run it. The
// figures are the caller's, as in ScheduleRequest.
type PrepareTaskRequest struct {
	SearchRequest
	// Holder has all pages: it is assumed to be the executor that transfers nothing.
	Holder    string     `json:"holder"`
	Executors []Executor `json:"executors"` // 1..1000
	// Congestion is the price of extra work, from 0. Default 0.
	Congestion *float64 `json:"congestion,omitempty"`
	// Publish, when false, leaves the generation as it is. Default true.
	Publish *bool `json:"publish,omitempty"`
}

// PrepareTaskResult says what was brought in and where to run the task.
type PrepareTaskResult struct {
	Recall   RecallResult   `json:"recall"`
	Pages    []SchedulePage `json:"pages"` // what was found, by the keys that cached_page_ids are compared with
	Schedule ScheduleResult `json:"schedule"`
}

// PrepareTask recalls the pages for a query and ranks the executors by which of
// these they have. It chooses pages by relevance first and a place afterwards;
// nothing is run or copied. Executors that cannot be ranked are refused before
// anything is recalled.
func (cs *Store) PrepareTask(ctx context.Context, req PrepareTaskRequest) (*PrepareTaskResult, error) {
	const op = "prepare_task"
	// The most that could be missing shows whether all figures hold.
	plan := ScheduleRequest{Holder: req.Holder, Executors: req.Executors, Congestion: req.Congestion, PageBytes: new(int64(maxExactInt))}
	if err := plan.check(); err != nil {
		return nil, withOp(op, err)
	}
	if _, err := plan.rank(); err != nil {
		return nil, withOp(op, err)
	}
	found, err := cs.Recall(ctx, RecallRequest{SearchRequest: req.SearchRequest, Publish: req.Publish})
	if err != nil {
		return nil, renamed(op, err)
	}
	out := &PrepareTaskResult{Recall: *found, Pages: make([]SchedulePage, 0, len(found.Ranked))}
	for i := range found.Ranked {
		f := &found.Ranked[i]
		out.Pages = append(out.Pages, SchedulePage{ID: fmt.Sprintf("%s@%d", f.PageID, f.Version), Bytes: int64(f.Bytes)})
	}
	plan.PageBytes, plan.Pages = nil, out.Pages
	advice, err := plan.rank()
	if err != nil {
		return nil, withOp(op, err)
	}
	out.Schedule = *advice
	return out, nil
}

// renamed gives the error of an operation that another one is made of the name
// of the latter.
func renamed(op string, err error) error {
	if e, ok := errors.AsType[*Error](err); ok {
		c := *e
		c.Op = op
		return &c
	}
	return withOp(op, err)
}
