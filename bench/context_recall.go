package bench

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/pager"
)

// RecallReport is what a recall costs over many pages.
type RecallReport struct {
	Pages     int     `json:"pages"`
	PageBytes float64 `json:"page_bytes"` // mean, of the content
	Budget    int     `json:"budget"`
	// Load is the ingest of the pages; nil when they were there already.
	Load    *Throughput   `json:"load,omitempty"`
	Queries []RecallQuery `json:"queries"`
	// Commit is a transaction of the store that writes next to nothing, made once
	// after every recall.
	Commit Latency `json:"commit"`
}

// RecallQuery is the cost of one kind of query.
type RecallQuery struct {
	Query    string  `json:"query"` // "five words", "question", "passage"
	Words    float64 `json:"words"` // mean
	Admits   bool    `json:"admits"`
	Admitted float64 `json:"admitted"` // mean
	Evicted  float64 `json:"evicted"`  // mean
	Latency  Latency `json:"latency"`  // its sync included when something is written
	CPU      float64 `json:"cpu_us"`   // mean, of the whole process
	Alloc    float64 `json:"alloc_bytes"`
	// Search is the search of the same query alone.
	Search Latency `json:"search"`
}

// ingestBytes is how much text one ingest of the load takes.
const ingestBytes = 4 << 20

func (r *contextRun) recall() (err error) {
	dir := r.Dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "loci-bench-context-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	return r.inStore(dir, nil, func(db *loci.DB) error {
		cs, err := pager.Open(r.ctx, db, pager.Config{Scope: pager.Scope{"bench", "recall"}})
		if err != nil {
			return err
		}
		out := &RecallReport{Budget: pager.DefaultBudget}
		r.report.Recall = out
		if err := r.load(cs, out); err != nil {
			return err
		}
		var commits []time.Duration
		for i, kind := range []string{"five words", "question", "passage"} {
			r.say("recalling: %s", kind)
			some, none, err := r.recallKind(db, cs, kind, r.recallTexts(kind, newRandom(r.Seed, 1<<46+uint64(i))), &commits)
			if err != nil {
				return err
			}
			out.Queries = append(out.Queries, *some, *none)
		}
		out.Commit = newLatency(commits)
		return nil
	})
}

// load ingests pages until there are enough.
func (r *contextRun) load(cs *pager.Store, out *RecallReport) error {
	status, err := cs.Status(r.ctx, pager.StatusRequest{Limit: new(1000)})
	if err != nil {
		return err
	}
	counts := status.Counts
	out.Pages = int(counts.Core.Pages + counts.Working.Pages + counts.Archive.Pages)
	if out.Pages >= r.Pages {
		r.say("the data directory holds %d pages already", out.Pages)
		out.PageBytes = ratio(float64(counts.Core.Bytes+counts.Working.Bytes+counts.Archive.Bytes), float64(out.Pages))
		return nil
	}
	if out.Pages > 0 {
		return fmt.Errorf("the data directory holds %d pages, not the %d asked for", out.Pages, r.Pages)
	}
	r.say("ingesting %d pages", r.Pages)
	var m meter
	bytes := 0
	random := newRandom(r.Seed, 1<<47)
	for out.Pages < r.Pages {
		// A page is cut at the last good place of the second half of its window, so
		// that this is rather too little at the end than too much.
		text := r.pageText(random, min(ingestBytes, (r.Pages-out.Pages)*pager.DefaultPageBytes))
		if err := m.measure(func() error {
			done, err := cs.Ingest(r.ctx, pager.IngestRequest{Content: text, Title: "notes", Tags: []string{"bench"}})
			if err == nil {
				out.Pages, bytes = out.Pages+len(done.Pages), bytes+done.Bytes
			}
			return err
		}); err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(min(out.Pages, r.Pages), r.Pages)
		}
	}
	out.PageBytes = ratio(float64(bytes), float64(out.Pages))
	out.Load = m.throughput(out.Pages)
	return nil
}

// recallTexts makes queries of one kind: five words of middling frequency and
// above, a question in words, or a passage as an agent has it that recalls by what it
// read last.
func (r *contextRun) recallTexts(kind string, random *random) []string {
	var out []string
	switch kind {
	case "five words":
		return r.corpus.Queries(r.queries)[FiveMixed]
	case "question":
		byClass := r.corpus.Queries((r.queries + 1) / 2)
		for i := range r.queries {
			out = append(out, byClass[[]Class{EnglishQuestion, ChineseQuestion}[i%2]][i/2])
		}
	default:
		for range r.queries {
			out = append(out, strings.ReplaceAll(r.pageText(random, 300), "\n", " "))
		}
	}
	return out
}

// recallKind asks each query twice in a row: the first recall admits what it
// finds, the second finds it in the window.
func (r *contextRun) recallKind(db *loci.DB, cs *pager.Store, kind string, queries []string, commits *[]time.Duration) (some, none *RecallQuery, err error) {
	some, none = &RecallQuery{Query: kind, Admits: true}, &RecallQuery{Query: kind}
	var took [2][]time.Duration
	var searches []time.Duration
	var meters [2]meter
	for round := range r.rounds + 1 {
		if round == 1 { // the first one warms the caches
			*some, *none = RecallQuery{Query: kind, Admits: true}, RecallQuery{Query: kind}
			took, searches, meters = [2][]time.Duration{}, nil, [2]meter{}
		}
		for _, query := range queries {
			for i, q := range []*RecallQuery{some, none} {
				var begin, end time.Time
				err := meters[i].measure(func() error {
					begin = time.Now()
					out, err := cs.Recall(r.ctx, pager.RecallRequest{SearchRequest: pager.SearchRequest{Query: query}})
					end = time.Now()
					if err == nil {
						q.Admitted += float64(len(out.Admitted))
						q.Evicted += float64(len(out.Evicted))
						q.Words += float64(len(strings.Fields(query)))
					}
					return err
				})
				if err != nil {
					return nil, nil, err
				}
				took[i] = append(took[i], end.Sub(begin))
			}
			begin := time.Now()
			if _, err := cs.Search(r.ctx, pager.SearchRequest{Query: query}); err != nil {
				return nil, nil, err
			}
			searches = append(searches, time.Since(begin))
			commit, err := bareCommit(r.ctx, db, 2)
			if err != nil {
				return nil, nil, err
			}
			*commits = append(*commits, commit)
		}
	}
	for i, q := range []*RecallQuery{some, none} {
		n := float64(len(took[i]))
		q.Admitted, q.Evicted, q.Words = ratio(q.Admitted, n), ratio(q.Evicted, n), ratio(q.Words, n)
		q.CPU, q.Alloc = ratio(microseconds(meters[i].cpu), n), ratio(float64(meters[i].allocated), n)
		q.Latency, q.Search = newLatency(took[i]), newLatency(searches)
	}
	return some, none, nil
}
