package loci

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// awake opens a store whose background embeds.
func awake(t testing.TB) *DB {
	t.Helper()
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), &Options{WaitForIndex: true}))
	t.Cleanup(func() { db.Close() })
	return db
}

// due says what the background has to look at in a space.
func due(db *DB, space string) (each bool, namespaces []int64) {
	b := db.eng.embedderOf(space)
	each, namespaces = b.takeDue()
	b.makeDue(each, namespaces)
	return each, namespaces
}

// TestBackgroundLooksWhereWritten has a commit make its own namespaces due and no
// others, however many there are.
func TestBackgroundLooksWhereWritten(t *testing.T) {
	db := quietDB(t)
	bind(t, db, "v", fakeembed.New(8), nil)
	if each, _ := due(db, "v"); !each {
		t.Error("a new embedder does not look everywhere")
	}
	number := func(name string) (id int64) {
		err := db.eng.read(t.Context(), func(tx *store.ReadTx) (err error) {
			id, _, err = tx.StringID(name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	put := func(namespace, text string) Memory {
		return addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: &namespace}, Judgment: text})
	}
	want := func(what string, namespaces ...string) {
		t.Helper()
		var numbers []int64
		for _, n := range namespaces {
			numbers = append(numbers, number(n))
		}
		slices.Sort(numbers)
		each, got := db.eng.embedderOf("v").takeDue()
		if each || !slices.Equal(got, numbers) {
			t.Errorf("%s: %v, %v; want %v", what, each, got, numbers)
		}
	}
	for i := range 5 {
		put(fmt.Sprint("n", i), "text")
	}
	db.eng.embedderOf("v").takeDue()
	m := put("n3", "another")
	want("a new record", "n3")
	syncSpace(t, db, "v", 32)
	want("vectors")
	must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), m.ID, ReadFilter{Namespace: new("n3")}))
	put("n1", "one more")
	want("a deleted and a new one", "n1", "n3")
	setTier(t, db, TierNotes, true)
	if each, _ := due(db, "v"); !each {
		t.Error("a switch does not make the background look everywhere")
	}
}

// TestCommitDuringRegistration binds an embedder between the two halves of a
// commit: the record is not forgotten.
func TestCommitDuringRegistration(t *testing.T) {
	db := quietDB(t)
	h := indexHooks{e: &engine{}}
	h.e.embedders.worker.wake = make(chan struct{}, 1)
	h.Stage(1, []store.Change{{ID: 7, Namespace: 3, Kind: store.KindMemory}})
	bind(t, db, "v", fakeembed.New(8), nil)
	b := db.eng.embedderOf("v")
	b.takeDue()
	h.e.embedders.set("v", b)
	h.Publish()
	if _, namespaces := b.takeDue(); !slices.Equal(namespaces, []int64{3}) || len(h.e.embedders.worker.wake) != 1 {
		t.Errorf("%v is due", namespaces)
	}
}

// TestBackgroundGivesWay has a caller sync one namespace while the background is
// at a long work in another: the caller does not wait for the end of that, which
// goes on afterwards.
func TestBackgroundGivesWay(t *testing.T) {
	db := awake(t)
	addMemories(t, db, 60)
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: new("other")}, Judgment: "elsewhere"})
	registerSpace(t, db, "v", 8)
	h := &hooked{Embedder: fakeembed.New(8)}
	begun, goOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	h.before = func(texts []string) {
		if slices.Contains(probes[:], texts[0]) {
			return
		}
		if calls.Add(1) == 1 {
			close(begun)
			<-goOn
		}
	}
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", h, &EmbedderOptions{MaxBatch: new(1)}); err != nil {
		t.Fatal(err)
	}
	<-begun
	var after int64
	done := make(chan error, 1)
	go func() {
		_, err := db.Embeddings().Sync(context.Background(), "v", EmbeddingSyncOptions{Namespace: new("other")})
		after = calls.Load()
		done <- err
	}()
	turn := db.eng.embedders.turn(db.eng.embedderOf("v").space.ID)
	eventually(t, "the caller waits", func() bool { return turn.wanted.Load() == 1 })
	close(goOn)
	if err := <-done; err != nil || after > 5 {
		t.Errorf("%v, after %d calls", err, after)
	}
	eventually(t, "the background goes on", func() bool { return len(vectorsIn(t, db, "v")) == 60 && ready(t, db, "v", TierMemory) })
}

// TestCallerLeavesTheTurn has a caller give up waiting for its turn: the
// background goes on.
func TestCallerLeavesTheTurn(t *testing.T) {
	db := awake(t)
	addMemories(t, db, 3)
	bind(t, db, "v", fakeembed.New(8), nil)
	eventually(t, "all is embedded", func() bool { return ready(t, db, "v", TierMemory) })
	turn := db.eng.embedders.turn(db.eng.embedderOf("v").space.ID)
	turn.taken <- struct{}{}
	addMemories(t, db, 4)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := db.Embeddings().Sync(ctx, "v", EmbeddingSyncOptions{})
	wantCode(t, err, ErrCanceled)
	<-turn.taken
	db.eng.wakeEmbedding() // as the one whose turn it was does
	eventually(t, "the background goes on", func() bool { return len(vectorsIn(t, db, "v")) == 7 && turn.wanted.Load() == 0 })
}

// TestBackgroundIsQuiet wakes the background again and again where nothing is left
// but a text that the model refuses and one without words: it calls no model and
// writes nothing.
func TestBackgroundIsQuiet(t *testing.T) {
	db := awake(t)
	m := fakeembed.New(8)
	m.Fail(fakeembed.Refuses)
	addMemories(t, db, 2)
	addMemory(t, db, MemoryInput{Judgment: fakeembed.RefusedWord})
	setTier(t, db, TierNotes, true)
	putNote(t, db, "a.md", "Words.\n\n---\n")
	bind(t, db, "v", m, nil)
	eventually(t, "all is done", func() bool { return ready(t, db, "v", TierMemory) && ready(t, db, "v", TierNotes) })
	turn := db.eng.embedders.turn(db.eng.embedderOf("v").space.ID)
	idle := func() bool {
		each, namespaces := due(db, "v")
		return !each && len(namespaces) == 0 && len(turn.taken) == 0 && len(db.eng.embedders.worker.wake) == 0
	}
	eventually(t, "the background rests", idle)
	before := stateOf(t, db)
	m.Forget()
	for range 3 {
		db.eng.lookEverywhere()
		eventually(t, "the background has looked", idle)
	}
	if after := stateOf(t, db); after != before || len(m.Calls()) != 0 {
		t.Errorf("%+v, was %+v; %d calls", after, before, len(m.Calls()))
	}
	// The refused text is tried again when it changes.
	addMemory(t, db, MemoryInput{Judgment: fakeembed.RefusedWord + " no more", RecordInput: RecordInput{ID: 3}})
	eventually(t, "it is tried", func() bool { return len(m.Calls()) > 0 })
}

// TestBackgroundMarksAtLast has somebody commit all the time, without a record:
// all tiers are marked when that has ended, at the latest.
func TestBackgroundMarksAtLast(t *testing.T) {
	db := awake(t)
	bind(t, db, "v", fakeembed.New(8), nil)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ctx.Err() == nil; i++ {
			if _, err := db.Embeddings().SetDefaultSpace(ctx, "busy", []string{"v", ""}[i%2]); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	}()
	addMemories(t, db, 20)
	eventually(t, "all is embedded", func() bool { return len(vectorsIn(t, db, "v")) == 20 })
	cancel()
	<-ended
	eventually(t, "all is marked", func() bool { return ready(t, db, "v", TierMemory) })
}

// TestBackgroundLeavesAlone has a model ask to be left alone for longer than a
// sync waits: the background does as it says.
func TestBackgroundLeavesAlone(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	m.RetryAfter = 20 * time.Minute
	addMemories(t, db, 1)
	bind(t, db, "v", m, nil)
	m.Fail(fakeembed.RateLimited)
	b := db.eng.embedderOf("v")
	db.eng.embedMissing(b)
	if wait := time.Until(b.retryAt); len(m.Calls()) != 1 || wait < 19*time.Minute || wait > 20*time.Minute {
		t.Errorf("%d calls, then a rest of %v", len(m.Calls()), wait)
	}
	if _, namespaces := due(db, "v"); b.failures != 1 || len(namespaces) != 0 {
		t.Errorf("%d failures, %v due besides all", b.failures, namespaces)
	}
}

// TestBackgroundTakesTurns has one namespace with much to embed by a slow model:
// what is written to another one meanwhile, and another space, do not wait for the
// end of it.
func TestBackgroundTakesTurns(t *testing.T) {
	db := awake(t)
	addMemories(t, db, 800) // sixteen seconds of work while the model is slow
	registerSpace(t, db, "v", 8)
	h := &hooked{Embedder: fakeembed.New(8)}
	var slow atomic.Bool
	var calls atomic.Int64
	slow.Store(true)
	h.before = func([]string) {
		if calls.Add(1); slow.Load() {
			time.Sleep(20 * time.Millisecond)
		}
	}
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", h, &EmbedderOptions{MaxBatch: new(1)}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it has begun", func() bool { return calls.Load() > 5 })
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: new("other")}, Judgment: "elsewhere"})
	bind(t, db, "w", fakeembed.New(4), nil)
	there := func(space, namespace string) bool {
		return must[bool](t)(db.Embeddings().VectorReady(t.Context(), namespace, space, TierMemory))
	}
	eventually(t, "the other space is done", func() bool { return there("w", DefaultNamespace) && there("w", "other") })
	if there("v", DefaultNamespace) {
		t.Error("the slow model was done first")
	}
	eventually(t, "the other namespace has its vector", func() bool {
		return must[[]TierStatus](t)(db.Embeddings().Status(t.Context(), "other", "v"))[0].Vectors == 1
	})
	if there("v", DefaultNamespace) {
		t.Error("the long work was done first")
	}
	slow.Store(false)
	eventually(t, "all is done", func() bool { return there("v", DefaultNamespace) && there("v", "other") })
}
