package loci

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// recorder is a sink that keeps what it gets.
type recorder struct {
	mu     sync.Mutex
	events []LogEvent
}

func (r *recorder) sink(ev LogEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, ev)
}

// settled gives the events after the sink was removed and its queue delivered.
func (r *recorder) settled(t *testing.T, db *DB) []LogEvent {
	t.Helper()
	feed := db.eng.sinks.cur.Load()
	if !db.UnregisterEventSink() {
		t.Error("no sink was registered")
	}
	<-feed.done
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

func listen(t *testing.T, db *DB, sink EventSink) {
	t.Helper()
	if err := db.RegisterEventSink(sink); err != nil {
		t.Fatal(err)
	}
}

func TestEvents(t *testing.T) {
	open := func(t *testing.T) *DB {
		db := openReal(t, t.TempDir())
		remember(t, db, "潮水 secretive", "潮水 hushed", "潮水", "other")
		return db
	}
	t.Run("L1", func(t *testing.T) {
		db, r := open(t), &recorder{}
		if db.EventSinkRegistered() {
			t.Error("a sink from the start")
		}
		listen(t, db, r.sink)
		if !db.EventSinkRegistered() {
			t.Error("not registered")
		}
		search(t, db, SearchRequest{Query: "潮水"})
		events := r.settled(t, db)
		if len(events) != 1 {
			t.Fatalf("%d events", len(events))
		}
		ev := events[0]
		if ev.Kind != "search" || ev.Candidates != 3 || ev.Folded != 3 || ev.RerankDocs != 0 || ev.RerankTokens != 0 || ev.Hits != 3 || len(ev.Degraded) != 0 {
			t.Errorf("%+v", ev)
		}
		if got := slices.Sorted(maps.Keys(ev.Stages)); !slices.Equal(got, []string{"fold", "fuse", "load", "prepare", "text"}) {
			t.Errorf("stages %v", got)
		}
		for stage, ms := range ev.Stages {
			if ms < 0 || ev.MS < ms {
				t.Errorf("%s took %v ms of %v", stage, ms, ev.MS)
			}
		}
		if want := newTestClock().Now().UTC().Format("2006-01-02T15:04:05.000Z"); ev.TS != want {
			t.Errorf("ts %q, want %q", ev.TS, want)
		}
		if _, err := time.Parse(time.RFC3339, ev.TS); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(ev)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"潮水", "secretive", "hushed", "other"} {
			if strings.Contains(string(text), word) {
				t.Errorf("the event holds text: %s", text)
			}
		}
		var fields map[string]any
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		want := []string{"candidates", "folded", "hits", "kind", "ms", "rerank_docs", "rerank_tokens", "stages", "ts"}
		if got := slices.Sorted(maps.Keys(fields)); !slices.Equal(got, want) {
			t.Errorf("fields %v", got)
		}
	})
	t.Run("limit and total", func(t *testing.T) {
		db, r := open(t), &recorder{}
		listen(t, db, r.sink)
		search(t, db, SearchRequest{Query: "潮水", Limit: new(1), CandidateLimit: new(2), WithTotal: true})
		search(t, db, SearchRequest{Query: "missing"})
		events := r.settled(t, db)
		if len(events) != 2 || events[0].Candidates != 2 || events[0].Folded != 2 || events[0].Hits != 1 || events[1].Hits != 0 {
			t.Fatalf("%+v", events)
		}
		if _, ok := events[0].Stages["count"]; !ok {
			t.Errorf("%v", events[0].Stages)
		}
	})
	t.Run("L3", func(t *testing.T) {
		db, r := open(t), &recorder{}
		req := SearchRequest{Query: "潮水"}
		quiet := answerOf(t, db, req)
		var calls atomic.Int64
		listen(t, db, func(LogEvent) { calls.Add(1); panic("the sink's own fault") })
		for range 3 {
			if got := answerOf(t, db, req); !got.equal(quiet) {
				t.Errorf("%+v, want %+v", got, quiet)
			}
		}
		feed := db.eng.sinks.cur.Load()
		listen(t, db, r.sink)
		<-feed.done
		if calls.Load() != 3 {
			t.Errorf("the first sink got %d events", calls.Load())
		}
		answerOf(t, db, req)
		if events := r.settled(t, db); len(events) != 1 || calls.Load() != 3 {
			t.Errorf("%d and %d events", len(events), calls.Load())
		}
		if db.UnregisterEventSink() || db.EventSinkRegistered() {
			t.Error("a sink is still there")
		}
		answerOf(t, db, req)
		if n := len(r.events); n != 1 {
			t.Errorf("%d events after the sink was removed", n)
		}
	})
	t.Run("L4", func(t *testing.T) {
		db, r := open(t), &recorder{}
		listen(t, db, r.sink)
		for _, req := range []SearchRequest{{}, {Query: "潮水", Limit: new(0)}, {Query: "潮水", Filter: ReadFilter{Scopes: []string{}}}} {
			if _, err := db.Search(t.Context(), req); !errors.Is(err, ErrValidation) {
				t.Error(err)
			}
		}
		if events := r.settled(t, db); len(events) != 0 {
			t.Errorf("%+v", events)
		}
		if err := db.RegisterEventSink(nil); !errors.Is(err, ErrValidation) {
			t.Error(err)
		}
	})
	t.Run("rebuild", func(t *testing.T) {
		db, r := open(t), &recorder{}
		listen(t, db, r.sink)
		rebuild(t, db)
		events := r.settled(t, db)
		if len(events) != 1 || events[0].Kind != "rebuild" || events[0].Candidates != 4 || len(events[0].Degraded) != 0 || events[0].Stages == nil {
			t.Errorf("%+v", events)
		}
	})
	t.Run("dropped", func(t *testing.T) {
		db := open(t)
		began, release := make(chan struct{}), make(chan struct{})
		var got atomic.Int64
		listen(t, db, func(LogEvent) {
			if got.Add(1) == 1 {
				close(began)
				<-release
			}
		})
		search(t, db, SearchRequest{Query: "潮水"})
		<-began // one event is with the sink, the queue is empty
		for range sinkQueue + 5 {
			search(t, db, SearchRequest{Query: "潮水"})
		}
		if h := must[*HealthReport](t)(db.Health(t.Context())); h.DroppedEvents != 5 {
			t.Errorf("%d dropped", h.DroppedEvents)
		}
		feed := db.eng.sinks.cur.Load()
		db.UnregisterEventSink()
		close(release)
		<-feed.done
		if n := got.Load(); n != sinkQueue+1 {
			t.Errorf("%d delivered", n)
		}
	})
	t.Run("many searches", func(t *testing.T) {
		db := open(t)
		var inside, got atomic.Int64
		listen(t, db, func(LogEvent) {
			if inside.Add(1) != 1 {
				t.Error("two events at a time")
			}
			got.Add(1)
			inside.Add(-1)
		})
		feed := db.eng.sinks.cur.Load()
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				for range 50 {
					if _, err := db.Search(t.Context(), SearchRequest{Query: "潮水"}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		group.Wait()
		db.UnregisterEventSink()
		<-feed.done
		h := must[*HealthReport](t)(db.Health(t.Context()))
		if got.Load()+h.DroppedEvents != 400 {
			t.Errorf("%d delivered and %d dropped of 400", got.Load(), h.DroppedEvents)
		}
	})
}

// TestEventsEndWithTheStore checks that Close delivers what waits, leaves no
// goroutine, and does not hang with a sink that does.
func TestEventsEndWithTheStore(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	r := &recorder{}
	db := openReal(t, t.TempDir())
	remember(t, db, "潮水")
	listen(t, db, func(LogEvent) { panic("never mind") })
	listen(t, db, r.sink)
	for range 20 {
		search(t, db, SearchRequest{Query: "潮水"})
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if len(r.events) != 20 {
		t.Errorf("%d events", len(r.events))
	}
	if err := db.RegisterEventSink(r.sink); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
	if db.EventSinkRegistered() || db.UnregisterEventSink() {
		t.Error("a closed store has a sink")
	}

	db = openReal(t, t.TempDir())
	release := make(chan struct{})
	listen(t, db, func(LogEvent) { <-release })
	feed := db.eng.sinks.cur.Load()
	search(t, db, SearchRequest{Query: "潮水"})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	close(release)
	<-feed.done
}
