package loci

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

// LogEvent tells an event sink about one search or one rebuild. It never holds
// query text or record text.
type LogEvent struct {
	TS           string             `json:"ts"`   // RFC 3339 with milliseconds, UTC
	Kind         string             `json:"kind"` // "search" or "rebuild"
	MS           float64            `json:"ms"`
	Stages       map[string]float64 `json:"stages"` // stage to milliseconds: prepare, embed, text, vector, fuse, fold, rerank, count, load; those that ran
	Candidates   int                `json:"candidates"`
	Folded       int                `json:"folded"` // candidates left after folding
	RerankDocs   int                `json:"rerank_docs"`
	RerankTokens int                `json:"rerank_tokens"` // estimated, query included
	Hits         int                `json:"hits"`
	Degraded     []Degrade          `json:"degraded,omitempty"`
}

// EventSink receives log events, one at a time, on a goroutine of its own. A
// sink that panics loses that event only.
type EventSink func(LogEvent)

// sinkQueue is how many events may wait for a slow sink before they are dropped
// and counted.
const sinkQueue = 1024

// eventSinks holds the one registered sink and the goroutine that feeds it.
type eventSinks struct {
	mu      sync.Mutex
	cur     atomic.Pointer[sinkFeed]
	dropped atomic.Int64
	closed  bool
}

type sinkFeed struct {
	sink  EventSink
	queue chan LogEvent
	quit  chan struct{}
	done  chan struct{}
}

// RegisterEventSink sends one event for each search and rebuild to sink,
// replacing an earlier one. Nil is ErrValidation.
func (db *DB) RegisterEventSink(sink EventSink) error {
	const op = "register_event_sink"
	if err := db.eng.enter(op); err != nil {
		return err
	}
	defer db.eng.gate.leave()
	if sink == nil {
		return errs.WithOp(op, errs.Invalid("sink", "must not be nil; UnregisterEventSink removes one"))
	}
	db.eng.sinks.replace(&sinkFeed{sink: sink, queue: make(chan LogEvent, sinkQueue), quit: make(chan struct{}), done: make(chan struct{})})
	return nil
}

// UnregisterEventSink removes the sink and says whether there was one. Events
// that wait for it are still delivered.
func (db *DB) UnregisterEventSink() bool { return db.eng.sinks.replace(nil) }

// EventSinkRegistered says whether a sink is registered.
func (db *DB) EventSinkRegistered() bool { return db.eng.sinks.cur.Load() != nil }

func (s *eventSinks) replace(feed *sinkFeed) (had bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	old := s.cur.Swap(feed)
	if old != nil {
		close(old.quit)
	}
	if feed != nil {
		go feed.run()
	}
	return old != nil
}

// close delivers what is queued, so that a store's last searches are not lost,
// but does not wait for a sink that hangs.
func (s *eventSinks) close() {
	s.mu.Lock()
	s.closed = true
	old := s.cur.Swap(nil)
	s.mu.Unlock()
	if old == nil {
		return
	}
	close(old.quit)
	select {
	case <-old.done:
	case <-time.After(time.Second):
	}
}

// run delivers events until the feed ends, and then what is still queued.
func (f *sinkFeed) run() {
	defer close(f.done)
	for {
		select {
		case ev := <-f.queue:
			f.deliver(ev)
		case <-f.quit:
			for {
				select {
				case ev := <-f.queue:
					f.deliver(ev)
				default:
					return
				}
			}
		}
	}
}

func (f *sinkFeed) deliver(ev LogEvent) {
	defer func() { _ = recover() }() // the sink's panic costs this event only
	f.sink(ev)
}

// send queues an event; a full queue drops it.
func (s *eventSinks) send(f *sinkFeed, ev LogEvent) {
	select {
	case f.queue <- ev:
	default:
		s.dropped.Add(1)
	}
}

// degradations are the degrade codes seen since the store was opened, each
// once.
type degradations struct {
	mu   sync.Mutex
	seen []Degrade
}

func (d *degradations) note(codes []Degrade) {
	if len(codes) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range codes {
		if !slices.Contains(d.seen, c) {
			d.seen = append(d.seen, c)
		}
	}
}

func (d *degradations) list() []Degrade {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]Degrade{}, d.seen...)
}

// trace times the stages of one search. A nil trace, when nobody listens, does
// nothing.
type trace struct {
	feed   *sinkFeed
	began  time.Time
	last   time.Time
	stages map[string]float64
	// enclosing is one of several searches in a row that count as one: their
	// events are summed up instead of sent.
	enclosing                bool
	candidates, folded       int
	rerankDocs, rerankTokens int
}

func (s *eventSinks) trace() *trace {
	f := s.cur.Load()
	if f == nil {
		return nil
	}
	now := time.Now()
	return &trace{feed: f, began: now, last: now, stages: map[string]float64{}}
}

// stage ends a stage: what passed since the last one ended is its time.
func (t *trace) stage(name string) {
	if t == nil {
		return
	}
	now := time.Now()
	t.stages[name] += milliseconds(now.Sub(t.last))
	t.last = now
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func (e *engine) timestamp() string {
	return e.clock().UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

// reranked ends the stage rerank and counts what the reranker was sent.
func (t *trace) reranked(docs, tokens int) {
	t.stage("rerank")
	if t != nil {
		t.rerankDocs += docs
		t.rerankTokens += tokens
	}
}

// finish sends the event of a search.
func (t *trace) finish(e *engine, candidates, folded, hits int, degraded []Degrade) {
	if t == nil {
		return
	}
	if t.enclosing {
		t.candidates += candidates
		t.folded += folded
		return
	}
	e.sinks.send(t.feed, LogEvent{TS: e.timestamp(), Kind: "search", MS: milliseconds(time.Since(t.began)), Stages: t.stages,
		Candidates: candidates, Folded: folded, RerankDocs: t.rerankDocs, RerankTokens: t.rerankTokens, Hits: hits, Degraded: degraded})
}

// enclose makes the trace one of several searches that count as one.
func (t *trace) enclose() *trace {
	if t != nil {
		t.enclosing = true
	}
	return t
}

// finishEnclosing sends the one event of the searches so far.
func (t *trace) finishEnclosing(e *engine, hits int, degraded []Degrade) {
	if t == nil {
		return
	}
	t.enclosing = false
	t.finish(e, t.candidates, t.folded, hits, degraded)
}

func (e *engine) logRebuild(took time.Duration, run *rebuildRun) {
	f := e.sinks.cur.Load()
	if f == nil {
		return
	}
	ev := LogEvent{TS: e.timestamp(), Kind: "rebuild", MS: milliseconds(took), Stages: map[string]float64{}, Candidates: int(run.processed.Load())}
	if run.err != nil {
		ev.Degraded = []Degrade{DegradeTextIndexUnavailable}
	}
	e.sinks.send(f, ev)
}
