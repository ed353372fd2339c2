package loci

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/index/embedded"
	"go.uber.org/goleak"
)

// failingIndex is the real index with steps that panic on request.
type failingIndex struct {
	*embedded.Index
	mu   sync.Mutex
	fail string
}

func (ix *failingIndex) step(name string) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.fail == name {
		panic("told to fail")
	}
}

func (ix *failingIndex) Prepare(d *index.Document) *index.Prepared {
	ix.step("prepare")
	return ix.Index.Prepare(d)
}

func (ix *failingIndex) Stage(revision int64, changes []index.Change) {
	ix.step("stage")
	ix.Index.Stage(revision, changes)
}

func (ix *failingIndex) Publish() {
	if ix.fail == "publish" {
		ix.Index.Discard() // a failure half-way still gives its lock back
	}
	ix.step("publish")
	ix.Index.Publish()
}

func (ix *failingIndex) View(revision int64) (index.View, bool) {
	v, ok := ix.Index.View(revision)
	return &failingView{v, ix}, ok
}

type failingView struct {
	index.View
	ix *failingIndex
}

func (v *failingView) Search(q index.Query, f index.Filter, o index.Options) (index.Result, error) {
	v.ix.mu.Lock()
	defer v.ix.mu.Unlock()
	if v.ix.fail == "search" && !o.Total || v.ix.fail == "count" && o.Total {
		return index.Result{}, errors.New("told to fail")
	}
	return v.View.Search(q, f, o)
}

// TestBrokenIndex lets the index fail at each of its steps: the write that met
// it succeeds, searches are degraded until the rebuild that follows has come to
// its end, and then find everything.
func TestBrokenIndex(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, step := range []string{"prepare", "stage", "publish", "search", "count"} {
		t.Run(step, func(t *testing.T) {
			b := &barrier{}
			var ix *failingIndex
			opts := &Options{Clock: newTestClock().Now, indexFS: hookIndexFS(b.before)}
			opts.openIndex = func(ctx context.Context, e *engine, opts *Options) error {
				if err := openIndex(ctx, e, opts); err != nil {
					return err
				}
				ix = &failingIndex{Index: e.index.Load().Index.(*embedded.Index)}
				e.setIndex(ix)
				return nil
			}
			db := openWith(t, t.TempDir(), opts)
			ids := remember(t, db, "潮水 one", "潮水 two")
			wantHits(t, db, SearchRequest{Query: "潮水"}, ids...)
			b.arm("mkdir")
			ix.mu.Lock()
			ix.fail = step
			ix.mu.Unlock()
			ids = append(ids, remember(t, db, "潮水 three")...)
			wantDegraded := func() {
				t.Helper()
				res := search(t, db, SearchRequest{Query: "潮水", WithTotal: true})
				if len(res.Hits) != 0 || *res.Total != 0 || res.Diagnostics.TextUsed || res.IndexedRevision != 0 ||
					!slices.Equal(res.Diagnostics.Degraded, []Degrade{DegradeTextIndexUnavailable}) {
					t.Errorf("%+v", res)
				}
			}
			wantDegraded()
			<-b.reached
			wantDegraded()
			ids = append(ids, remember(t, db, "潮水 four")...)
			must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[0], ReadFilter{}))
			if h := must[*HealthReport](t)(db.Health(t.Context())); h.IndexUsable || h.RecordCount != 3 {
				t.Errorf("%+v", h)
			}
			close(b.open)
			must[*HealthReport](t)(db.UpdateIndex(t.Context()))
			wantHits(t, db, SearchRequest{Query: "潮水"}, ids[1:]...)
			ids = append(ids, remember(t, db, "潮水 five")...)
			wantHits(t, db, SearchRequest{Query: "潮水"}, ids[1:]...)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			db = openReal(t, db.Directory())
			wantHits(t, db, SearchRequest{Query: "潮水"}, ids[1:]...)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestBrokenWhileRebuilt lets an index break after a rebuild has put it into use
// and before that rebuild has ended: another one must follow.
func TestBrokenWhileRebuilt(t *testing.T) {
	b := &barrier{}
	db := openWith(t, t.TempDir(), &Options{Clock: newTestClock().Now, indexFS: hookIndexFS(b.before)})
	library(t, db, 100)
	want := answersOf(t, db, libraryQueries())
	rebuilt := make(chan LogEvent, 10)
	listen(t, db, func(ev LogEvent) {
		if ev.Kind == "rebuild" {
			rebuilt <- ev
		}
	})
	b.arm("create")
	db.eng.startRebuild(nil)
	<-b.reached
	db.eng.indexBroke(db.eng.index.Load())
	close(b.open)
	for range 2 {
		if ev := <-rebuilt; len(ev.Degraded) != 0 {
			t.Errorf("%+v", ev)
		}
	}
	wantAnswers(t, db, libraryQueries(), want)
}
