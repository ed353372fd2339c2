package loci

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/testkit/crash"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
	"go.uber.org/goleak"
)

// hooked is a model that does something before it answers.
type hooked struct {
	*fakeembed.Embedder
	before func(texts []string)
}

func (h *hooked) Embed(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if h.before != nil && p == embed.Passage {
		h.before(texts)
	}
	return h.Embedder.Embed(ctx, texts, p)
}

func bindHooked(t testing.TB, db *DB, space string, opts *EmbedderOptions) *hooked {
	t.Helper()
	h := &hooked{Embedder: fakeembed.New(8)}
	registerSpace(t, db, space, 8)
	if err := db.Embeddings().RegisterEmbedder(t.Context(), space, h, opts); err != nil {
		t.Fatal(err)
	}
	h.Forget()
	return h
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !so(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// TestBadModels has every fault in the midst of a sync: nothing wrong is written,
// what came before stays, and the next sync goes on.
func TestBadModels(t *testing.T) {
	for _, fault := range []fakeembed.Fault{
		fakeembed.Fails, fakeembed.NaN, fakeembed.Zeros, fakeembed.TooFew, fakeembed.TooMany, fakeembed.WrongDimension, fakeembed.Panics,
	} {
		db := quietDB(t)
		h := bindHooked(t, db, "v", &EmbedderOptions{MaxBatch: new(2)})
		addMemories(t, db, 5)
		calls := 0
		h.before = func([]string) {
			if calls++; calls == 2 {
				h.FailTimes(fault, 1)
			}
		}
		got := syncSpace(t, db, "v", 32)
		if got.Embedded != 2 || got.Interrupted == "" || got.Ready || strings.Contains(got.Interrupted, "memory number") {
			t.Errorf("fault %d: %+v", fault, got)
		}
		if got := vectorsIn(t, db, "v"); len(got) != 2 {
			t.Errorf("fault %d: %v", fault, got)
		}
		if got := syncSpace(t, db, "v", 32); got.Embedded != 3 || !got.Ready {
			t.Errorf("fault %d: %+v", fault, got)
		}
		if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" {
			t.Errorf("fault %d: %+v", fault, h)
		}
	}
}

// tattler is a model whose errors hold what it was given.
type tattler struct{ *fakeembed.Embedder }

func (m tattler) Embed(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if strings.Contains(texts[0], "secret") {
		return nil, fmt.Errorf("cannot embed %q\n%s", texts, strings.Repeat("x", 10000))
	}
	return m.Embedder.Embed(ctx, texts, p)
}

func TestInterruptedHoldsNoText(t *testing.T) {
	db := quietDB(t)
	registerSpace(t, db, "v", 8)
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", tattler{fakeembed.New(8)}, nil); err != nil {
		t.Fatal(err)
	}
	addMemory(t, db, MemoryInput{Judgment: "a secret of mine"})
	got := syncSpace(t, db, "v", 32)
	if got.Interrupted == "" || strings.Contains(got.Interrupted, "secret") || len(got.Interrupted) > 600 {
		t.Errorf("%+v", got)
	}
}

// TestHangingModels has a model hang, one that honours its context and one that
// does not: neither keeps the caller, the searches or Close.
func TestHangingModels(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	for _, fault := range []fakeembed.Fault{fakeembed.Hangs, fakeembed.HangsForGood} {
		db := openQuiet(t, t.TempDir())
		m := fakeembed.New(8)
		bind(t, db, "v", m, nil)
		addMemories(t, db, 2)
		m.Fail(fault)
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := db.Embeddings().Sync(ctx, "v", EmbeddingSyncOptions{})
		wantCode(t, err, ErrCanceled)
		b := db.eng.embedderOf("v")
		if _, err := b.embed(ctx, []string{"x"}, embed.Query); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
		// A sync that waits for its model when the store closes.
		done := make(chan error, 1)
		go func() {
			_, err := db.Embeddings().Sync(context.Background(), "v", EmbeddingSyncOptions{})
			done <- err
		}()
		m.Forget()
		eventually(t, "the model is called", func() bool { return len(m.Calls()) > 0 })
		if err := db.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		m.Release()
		eventually(t, "the calls end", func() bool { return b.hanging.Load() == 0 })
	}
}

// TestManyHangingCalls makes no more calls of a model that does not come back.
func TestManyHangingCalls(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	m.Fail(fakeembed.HangsForGood)
	defer m.Release()
	b := db.eng.embedderOf("v")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var group sync.WaitGroup
	for range maxHanging {
		group.Go(func() { _, _ = b.call(ctx, []string{"x"}, embed.Query) })
	}
	group.Wait()
	m.Forget()
	if _, err := b.call(t.Context(), []string{"x"}, embed.Query); err == nil || len(m.Calls()) != 0 {
		t.Errorf("%v, %d calls", err, len(m.Calls()))
	}
	m.Fail(fakeembed.None)
	m.Release()
	eventually(t, "the calls end", func() bool { return b.hanging.Load() == 0 })
	if _, err := b.call(t.Context(), []string{"x"}, embed.Query); err != nil {
		t.Error(err)
	}
}

// TestRefusedForEver has one text that the model never takes: it holds nothing
// up, and is tried again when it changes.
func TestRefusedForEver(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	m.Fail(fakeembed.Refuses)
	addMemories(t, db, 5)
	bad := addMemory(t, db, MemoryInput{Judgment: "this is " + fakeembed.RefusedWord})
	addMemories(t, db, 5)
	got := syncSpace(t, db, "v", 32)
	if want := (EmbeddingReport{Embedded: 10, Failed: 1, Ready: true}); got != want {
		t.Errorf("%+v", got)
	}
	if !ready(t, db, "v", TierMemory) {
		t.Error("not ready")
	}
	m.Forget()
	got = syncSpace(t, db, "v", 32)
	if want := (EmbeddingReport{Failed: 1, Ready: true}); got != want || len(m.Calls()) != 0 {
		t.Errorf("%+v, %v", got, m.Calls())
	}
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: bad.ID}, Judgment: "this is fine"})
	got = syncSpace(t, db, "v", 32)
	if want := (EmbeddingReport{Embedded: 1, Ready: true}); got != want {
		t.Errorf("%+v", got)
	}
}

// TestOneTextTooLarge finds the one text that is too large for any call, and goes
// on with whole batches.
func TestOneTextTooLarge(t *testing.T) {
	db := quietDB(t)
	registerSpace(t, db, "v", 8)
	m := &tooLong{Embedder: fakeembed.New(8)}
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", m, &EmbedderOptions{MaxBatch: new(8)}); err != nil {
		t.Fatal(err)
	}
	addMemories(t, db, 8)
	addMemory(t, db, MemoryInput{Judgment: strings.Repeat("long ", 300)})
	addMemories(t, db, 16)
	m.Forget()
	got := syncSpace(t, db, "v", 64)
	if got.Embedded != 24 || got.Failed != 1 || got.Interrupted != "" {
		t.Errorf("%+v", got)
	}
	if sizes := callSizes(m.Embedder); sizes[len(sizes)-1] != 8 {
		t.Error(sizes)
	}
}

type tooLong struct{ *fakeembed.Embedder }

func (m *tooLong) Embed(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if slices.ContainsFunc(texts, func(s string) bool { return len(s) > 1000 }) {
		return nil, fmt.Errorf("413: %w", embed.ErrTooLarge)
	}
	return m.Embedder.Embed(ctx, texts, p)
}

// TestNothingToEmbed has a chunk without words: it counts as done.
func TestNothingToEmbed(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	setTier(t, db, TierNotes, true)
	putNote(t, db, "a.md", "Words first.\n\n---\n\n***\n")
	got := syncSpace(t, db, "v", 32)
	if got.Failed != 0 || !got.Ready {
		t.Errorf("%+v", got)
	}
	for _, c := range m.Calls() {
		if slices.Contains(c.Texts, "") {
			t.Errorf("%q", c.Texts)
		}
	}
	m.Forget()
	if got := syncSpace(t, db, "v", 32); got.Embedded != 0 || !got.Ready || len(m.Calls()) != 0 {
		t.Errorf("%+v, %v", got, m.Calls())
	}
}

// limited reads eight bytes of a text.
type limited struct{ *fakeembed.Embedder }

func (limited) Limit(text string, _ embed.Purpose) (string, bool) {
	return text[:min(8, len(text))], len(text) > 8
}

// dishonest says that it reads what is no part of the text.
type dishonest struct{ *fakeembed.Embedder }

func (dishonest) Limit(text string, _ embed.Purpose) (string, bool) {
	if strings.Contains(text, "panic") {
		panic("at " + text)
	}
	return "something else", true
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		name  string
		model func(*fakeembed.Embedder) Embedder
		opts  EmbedderOptions
		texts []string
		want  []string
		cut   int64
	}{
		{"by the model", func(m *fakeembed.Embedder) Embedder { return limited{m} }, EmbedderOptions{}, []string{"short", "long enough"}, []string{"long eno", "short"}, 1},
		{"by the option", func(m *fakeembed.Embedder) Embedder { return m }, EmbedderOptions{MaxTokensPerText: new(2)}, []string{"12345678", "123456789"}, []string{"12345678", "12345678"}, 1},
		{"by neither", func(m *fakeembed.Embedder) Embedder { return m }, EmbedderOptions{}, []string{strings.Repeat("x", 5000)}, []string{strings.Repeat("x", 5000)}, 0},
		{"dishonestly", func(m *fakeembed.Embedder) Embedder { return dishonest{m} }, EmbedderOptions{}, []string{"whole", "panic"}, []string{"panic", "whole"}, 1},
	} {
		db := quietDB(t)
		m := fakeembed.New(4)
		registerSpace(t, db, "v", 4)
		if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", c.model(m), &c.opts); err != nil {
			t.Fatal(err)
		}
		m.Forget()
		for _, text := range c.texts {
			addMemory(t, db, MemoryInput{Judgment: text})
		}
		got := syncSpace(t, db, "v", 32)
		if got.Cut != c.cut || got.Embedded != int64(len(c.texts)) || !slices.Equal(m.Calls()[0].Texts, c.want) {
			t.Errorf("%s: %+v, %q", c.name, got, m.Calls()[0].Texts)
		}
	}
}

// TestModelChanged has another model answer under the same name, in the same
// process and after another open.
func TestModelChanged(t *testing.T) {
	dir := t.TempDir()
	db := openQuiet(t, dir)
	bind(t, db, "v", fakeembed.New(8), nil)
	addMemories(t, db, 2)
	syncSpace(t, db, "v", 32)
	other := fakeembed.New(8)
	other.Drift = 99
	wantCode(t, db.Embeddings().RegisterEmbedder(t.Context(), "v", other, nil), ErrConflict)
	if db.eng.embedderOf("v") == nil {
		t.Error("the earlier embedder is gone")
	}
	db.Close()
	db = openQuiet(t, dir)
	defer db.Close()
	wantCode(t, db.Embeddings().RegisterEmbedder(t.Context(), "v", other, nil), ErrConflict)
	bind(t, db, "v", fakeembed.New(8), nil)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 0 || !got.Ready {
		t.Errorf("%+v", got)
	}
	// Another model has another space; the old one serves until it is complete.
	bind(t, db, "w", other, nil)
	if got := syncSpace(t, db, "w", 32); got.Embedded != 2 {
		t.Errorf("%+v", got)
	}
}

// TestWritesDuringSync changes and deletes records while the model works.
func TestWritesDuringSync(t *testing.T) {
	db := quietDB(t)
	h := bindHooked(t, db, "v", nil)
	ids := addMemories(t, db, 4)
	once := sync.OnceFunc(func() {
		addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: ids[0]}, Judgment: "changed meanwhile"})
		addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: ids[1], Tags: []string{"tagged"}}, Judgment: "memory number1 of many"})
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[2], ReadFilter{}))
		addMemory(t, db, MemoryInput{Judgment: "new meanwhile"})
	})
	h.before = func([]string) { once() }
	got := syncSpace(t, db, "v", 32)
	if got.Embedded != 2 || got.Skipped != 2 || got.Ready || got.Interrupted != "" {
		t.Errorf("%+v", got)
	}
	if got := vectorsIn(t, db, "v"); !slices.Equal(got, []int64{int64(ids[1]), int64(ids[3])}) {
		t.Error(got)
	}
	if ready(t, db, "v", TierMemory) {
		t.Error("ready")
	}
	if got := syncSpace(t, db, "v", 32); got.Embedded != 2 || !got.Ready {
		t.Errorf("%+v", got)
	}
}

// TestSpaceGoneDuringSync deletes the space, or unbinds or replaces its embedder,
// while the model works.
func TestSpaceGoneDuringSync(t *testing.T) {
	for name, act := range map[string]func(s *EmbeddingStore) error{
		"deleted": func(s *EmbeddingStore) error { _, err := s.DeleteSpace(context.Background(), "v"); return err },
		"unbound": func(s *EmbeddingStore) error { s.UnregisterEmbedder("v"); return nil },
		"replaced": func(s *EmbeddingStore) error {
			return s.RegisterEmbedder(context.Background(), "v", fakeembed.New(8), nil)
		},
		"new space": func(s *EmbeddingStore) error {
			if _, err := s.DeleteSpace(context.Background(), "v"); err != nil {
				return err
			}
			_, err := s.RegisterSpace(context.Background(), EmbeddingSpace{ID: "v", Model: "other", Dimension: 8})
			return err
		},
	} {
		db := quietDB(t)
		h := bindHooked(t, db, "v", &EmbedderOptions{MaxBatch: new(2)})
		addMemories(t, db, 6)
		once := sync.OnceValue(func() error { return act(db.Embeddings()) })
		h.before = func([]string) {
			if err := once(); err != nil {
				t.Error(name, err)
			}
		}
		got := syncSpace(t, db, "v", 2)
		if got.Interrupted == "" || got.Ready || got.Embedded > 2 {
			t.Errorf("%s: %+v", name, got)
		}
		vectorsIn(t, db, "v")
		if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" || strings.HasPrefix(name, "deleted") && h.Vectors != 0 {
			t.Errorf("%s: %+v", name, h)
		}
	}
}

// TestTwoSyncs run one after the other, and do the work once.
func TestTwoSyncs(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, &EmbedderOptions{MaxBatch: new(3)})
	addMemories(t, db, 20)
	reports := make([]EmbeddingReport, 4)
	var group sync.WaitGroup
	for i := range reports {
		group.Go(func() {
			if r, err := db.Embeddings().Sync(context.Background(), "v", EmbeddingSyncOptions{}); err != nil {
				t.Error(err)
			} else {
				reports[i] = r.Value
			}
		})
	}
	group.Wait()
	var embedded int64
	for _, r := range reports {
		embedded += r.Embedded
		if !r.Ready || r.Skipped+r.Failed != 0 {
			t.Errorf("%+v", r)
		}
	}
	texts := 0
	for _, n := range callSizes(m) {
		texts += n
	}
	if embedded != 20 || texts != 20 {
		t.Errorf("%d vectors of %d texts", embedded, texts)
	}
}

// TestSyncWithoutIndex says that the index has to be there.
func TestSyncWithoutIndex(t *testing.T) {
	db := quietDB(t)
	bind(t, db, "v", fakeembed.New(8), nil)
	addMemories(t, db, 2)
	taken := db.eng.setIndex(nil)
	_, err := db.Embeddings().Sync(t.Context(), "v", EmbeddingSyncOptions{})
	wantCode(t, err, ErrIndex)
	_, err = db.Embeddings().Status(t.Context(), DefaultNamespace, "v")
	wantCode(t, err, ErrIndex)
	db.eng.setIndex(taken)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 2 {
		t.Errorf("%+v", got)
	}
}

// TestSyncOneNamespace leaves the others alone.
func TestSyncOneNamespace(t *testing.T) {
	db := quietDB(t)
	bind(t, db, "v", fakeembed.New(8), nil)
	addMemories(t, db, 2)
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: new("other")}, Judgment: "elsewhere"})
	for _, c := range []struct {
		namespace string
		embedded  int64
	}{{"nobody", 0}, {"other", 1}, {DefaultNamespace, 2}} {
		got := must[*Receipt[EmbeddingReport]](t)(db.Embeddings().Sync(t.Context(), "v", EmbeddingSyncOptions{Namespace: &c.namespace})).Value
		if got.Embedded != c.embedded || !got.Ready {
			t.Errorf("%s: %+v", c.namespace, got)
		}
	}
}

// TestBackground embeds by itself: what is there, what is written, what a switch
// lets in, and after another open.
func TestBackground(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	dir := t.TempDir()
	db := must[*DB](t)(Open(t.Context(), dir, &Options{WaitForIndex: true}))
	m := fakeembed.New(8)
	ids := addMemories(t, db, 3)
	bind(t, db, "v", m, nil)
	isReady := func() bool { return ready(t, db, "v", TierMemory) }
	eventually(t, "what was there is embedded", isReady)
	addMemory(t, db, MemoryInput{Judgment: "one more"})
	eventually(t, "what was written is embedded", func() bool { return isReady() && len(vectorsIn(t, db, "v")) == 4 })
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: ids[0]}, Judgment: "changed"})
	eventually(t, "what was changed is embedded", func() bool { return isReady() && len(vectorsIn(t, db, "v")) == 4 })
	putNote(t, db, "a.md", "Some text.\n")
	setTier(t, db, TierNotes, true)
	eventually(t, "the notes are embedded", func() bool { return ready(t, db, "v", TierNotes) })
	// When all is done it is quiet: no revisions, no calls.
	m.Forget()
	before := stateOf(t, db)
	must[*HealthReport](t)(db.RebuildIndexes(t.Context()))
	if after := stateOf(t, db); after != before || len(m.Calls()) != 0 {
		t.Errorf("%+v, was %+v, %v", after, before, m.Calls())
	}
	db.Embeddings().UnregisterEmbedder("v")
	addMemories(t, db, 2)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = must[*DB](t)(Open(t.Context(), dir, &Options{WaitForIndex: true}))
	defer db.Close()
	bind(t, db, "v", m, nil)
	eventually(t, "what was pending is embedded", func() bool { return isReady() && len(vectorsIn(t, db, "v")) == 7 })
}

// TestBackgroundRetries goes on by itself after failures.
func TestBackgroundRetries(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), &Options{WaitForIndex: true}))
	defer db.Close()
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	m.FailTimes(fakeembed.Fails, 1)
	addMemories(t, db, 1)
	eventually(t, "the failure", func() bool { return len(m.Calls()) > 0 })
	eventually(t, "another attempt", func() bool { return ready(t, db, "v", TierMemory) })
}

// TestBackgroundWithoutIndex waits for an index that is built, and embeds then.
func TestBackgroundWithoutIndex(t *testing.T) {
	dir := t.TempDir()
	db := must[*DB](t)(Open(t.Context(), dir, &Options{WaitForIndex: true}))
	addMemories(t, db, 20)
	db.Close()
	if err := os.RemoveAll(dir + "/" + indexFolder); err != nil {
		t.Fatal(err)
	}
	db = must[*DB](t)(Open(t.Context(), dir, nil))
	defer db.Close()
	bind(t, db, "v", fakeembed.New(8), nil)
	eventually(t, "all is embedded", func() bool { return ready(t, db, "v", TierMemory) })
	if got := vectorsIn(t, db, "v"); len(got) != 20 {
		t.Error(got)
	}
}

// childEmbed syncs, saying each text once its vector may be on disk, until it is
// killed.
func childEmbed(t *testing.T, dir, most string) {
	limit, err := strconv.Atoi(most)
	if err != nil {
		t.Fatal(err)
	}
	db := openQuiet(t, dir)
	h := &hooked{Embedder: fakeembed.New(8)}
	if err := db.Embeddings().RegisterEmbedder(context.Background(), "v", h, &EmbedderOptions{MaxBatch: new(3)}); err != nil {
		t.Fatal(err)
	}
	calls := 0
	h.before = func([]string) {
		if calls++; calls > limit {
			crash.Say("%d", 3*(calls-1))
			crash.Suicide()
		}
	}
	if _, err := db.Embeddings().Sync(context.Background(), "v", EmbeddingSyncOptions{Batch: new(7)}); err != nil {
		t.Fatal(err)
	}
}

// TestKillDuringEmbedding kills a process in the midst of a sync: what it wrote is
// there and is not computed again.
func TestKillDuringEmbedding(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	dir := t.TempDir()
	db := openQuiet(t, dir)
	registerSpace(t, db, "v", 8)
	addMemories(t, db, 30)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	written := 0
	for _, calls := range []int{0, 1, 2} {
		child, err := crash.Start("TestCrashChild", "embed", dir, fmt.Sprint(calls))
		if err != nil {
			t.Fatal(err)
		}
		said, _, output := child.Wait()
		if len(said) != 1 {
			t.Fatalf("the child said %q, printed %s", said, output)
		}
		db := openQuiet(t, dir)
		got := vectorsIn(t, db, "v")
		// Batches of seven are embedded in calls of three, three and one.
		more := []int{0, 3, 6}[calls]
		if written += more; len(got) != written {
			t.Errorf("%d calls: %d vectors, want %d", calls, len(got), written)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
	db = openQuiet(t, dir)
	defer db.Close()
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	if got := syncSpace(t, db, "v", 32); got.Embedded != int64(30-written) || !got.Ready {
		t.Errorf("%+v", got)
	}
	texts := 0
	for _, n := range callSizes(m) {
		texts += n
	}
	if texts != 30-written || len(vectorsIn(t, db, "v")) != 30 {
		t.Errorf("%d texts were embedded again", texts-(30-written))
	}
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" {
		t.Errorf("%+v", h)
	}
}

// TestSyncWriteFails has the writer refuse a batch: the sync says so.
func TestSyncWriteFails(t *testing.T) {
	db := quietDB(t)
	bind(t, db, "v", fakeembed.New(8), nil)
	addMemories(t, db, 1)
	b := db.eng.embedderOf("v")
	b.space.Dimension = 9 // no longer what the embedder gives
	got := syncSpace(t, db, "v", 32)
	if got.Interrupted == "" || got.Embedded != 0 {
		t.Errorf("%+v", got)
	}
}

// TestEverythingAtOnce writes, deletes, searches, switches, rebuilds, deletes
// another space and binds embedders anew while the background embeds: in the end
// every record has its vector, in the truth and in the index.
func TestEverythingAtOnce(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), &Options{WaitForIndex: true}))
	defer db.Close()
	ctx := t.Context()
	s := db.Embeddings()
	bind(t, db, "v", fakeembed.New(8), &EmbedderOptions{MaxBatch: new(3)})
	seeds := addMemories(t, db, 30)
	const rounds = 25
	var group sync.WaitGroup
	run := func(rounds int, step func(i int) error) {
		group.Go(func() {
			for i := range rounds {
				if err := step(i); err != nil && CodeOf(err) != ErrNotFound && CodeOf(err) != ErrIndex && CodeOf(err) != ErrValidation {
					t.Error(err)
				}
			}
		})
	}
	for w := range 2 {
		run(rounds, func(i int) error {
			return second(db.Memories().Upsert(ctx, MemoryInput{Judgment: fmt.Sprintf("writer%d wrote%d", w, i)}))
		})
	}
	run(rounds, func(i int) error {
		return second(db.Memories().Upsert(ctx, MemoryInput{RecordInput: RecordInput{ID: seeds[i%10]}, Judgment: fmt.Sprint("changed ", i%4)}))
	})
	run(10, func(i int) error { return second(db.Memories().Delete(ctx, seeds[10+i], ReadFilter{})) })
	run(rounds, func(int) error { return second(db.Search(ctx, SearchRequest{Query: "memory changed"})) })
	run(6, func(i int) error { return second(s.SetVectorization(ctx, DefaultNamespace, TierMemory, i%2 == 1)) })
	run(2, func(int) error { return second(db.RebuildIndexes(ctx)) })
	run(4, func(int) error { return s.RegisterEmbedder(ctx, "v", fakeembed.New(8), nil) })
	run(4, func(int) error {
		if err := second(s.RegisterSpace(ctx, EmbeddingSpace{ID: "w", Model: "fake", Dimension: 4})); err != nil {
			return err
		}
		if err := s.RegisterEmbedder(ctx, "w", fakeembed.New(4), nil); err != nil {
			return err
		}
		if err := second(s.Sync(ctx, "w", EmbeddingSyncOptions{})); err != nil && CodeOf(err) != ErrIndex && CodeOf(err) != ErrValidation {
			return err
		}
		return second(s.DeleteSpace(ctx, "w"))
	})
	group.Wait()
	if err := second(db.UpdateIndex(ctx)); err != nil {
		t.Fatal(err)
	}
	eventually(t, "all is embedded", func() bool { return ready(t, db, "v", TierMemory) })
	h := must[*HealthReport](t)(db.DeepHealth(ctx))
	if got := vectorsIn(t, db, "v"); int64(len(got)) != h.RecordCount || h.Integrity != "ok" || h.Vectors != h.RecordCount {
		t.Errorf("%d vectors, %+v", len(got), h)
	}
}
