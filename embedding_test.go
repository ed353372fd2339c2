package loci

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

func TestCaseV1Spaces(t *testing.T) {
	db := quietDB(t)
	s := db.Embeddings()
	in := EmbeddingSpace{ID: "v", Model: "m", Dimension: 4}
	got := must[*Receipt[EmbeddingSpace]](t)(s.RegisterSpace(t.Context(), in))
	want := EmbeddingSpace{ID: "v", Model: "m", Dimension: 4, TextVersion: 1, Encoding: EncodingSQ8}
	if got.Value != want {
		t.Errorf("%+v", got.Value)
	}
	again := must[*Receipt[EmbeddingSpace]](t)(s.RegisterSpace(t.Context(), want))
	if again.Revision != got.Revision || again.Value != want {
		t.Errorf("%+v after %+v", again, got)
	}
	for _, other := range []EmbeddingSpace{
		{ID: "v", Model: "n", Dimension: 4}, {ID: "v", Model: "m", Dimension: 5}, {ID: "v", Model: "m", Dimension: 4, Encoding: EncodingF32},
	} {
		_, err := s.RegisterSpace(t.Context(), other)
		wantCode(t, err, ErrConflict)
	}
	registerSpace(t, db, "a", 3)
	spaces := must[[]EmbeddingSpace](t)(s.Spaces(t.Context()))
	if len(spaces) != 2 || spaces[0].ID != "a" || spaces[1] != want {
		t.Errorf("%+v", spaces)
	}
}

func TestCaseV2EmbeddingValidation(t *testing.T) {
	db := quietDB(t)
	s := db.Embeddings()
	registerSpace(t, db, "v", 4)
	before := stateOf(t, db)
	for name, sp := range map[string]EmbeddingSpace{
		"dimension 0":     {ID: "x", Model: "m"},
		"dimension 65537": {ID: "x", Model: "m", Dimension: 65537},
		"text version":    {ID: "x", Model: "m", Dimension: 4, TextVersion: 2},
		"encoding":        {ID: "x", Model: "m", Dimension: 4, Encoding: "q4"},
		"no id":           {Model: "m", Dimension: 4},
		"blank before id": {ID: " x", Model: "m", Dimension: 4},
		"control in id":   {ID: "x\ty", Model: "m", Dimension: 4},
		"long id":         {ID: strings.Repeat("x", 513), Model: "m", Dimension: 4},
		"no model":        {ID: "x", Dimension: 4},
		"blank model":     {ID: "x", Model: " ", Dimension: 4},
	} {
		if _, err := s.RegisterSpace(t.Context(), sp); !errors.Is(err, ErrValidation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, o := range map[string]EmbedderOptions{
		"batch 0": {MaxBatch: new(0)}, "batch 10001": {MaxBatch: new(10001)}, "tokens 0": {MaxTokensPerText: new(0)},
		"weight 0": {VectorWeight: new(0.0)}, "weight NaN": {VectorWeight: new(math.NaN())}, "weight inf": {VectorWeight: new(math.Inf(1))},
		"fusion": {Fusion: "sum"},
	} {
		if err := s.RegisterEmbedder(t.Context(), "v", fakeembed.New(4), &o); !errors.Is(err, ErrValidation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	wantCode(t, s.RegisterEmbedder(t.Context(), "v", nil, nil), ErrValidation)
	for _, tier := range []Tier{"Memory", "knowledge", ""} {
		_, err := s.SetVectorization(t.Context(), DefaultNamespace, tier, true)
		wantCode(t, err, ErrValidation)
		_, err = s.Vectorization(t.Context(), DefaultNamespace, tier)
		wantCode(t, err, ErrValidation)
		_, err = s.VectorReady(t.Context(), DefaultNamespace, "v", tier)
		wantCode(t, err, ErrValidation)
	}
	_, err := s.SetNamespaceVectorization(t.Context(), " x", false)
	wantCode(t, err, ErrValidation)
	_, err = s.SetDefaultSpace(t.Context(), DefaultNamespace, "unknown")
	wantCode(t, err, ErrNotFound)
	_, err = s.Status(t.Context(), DefaultNamespace, "unknown")
	wantCode(t, err, ErrNotFound)
	if after := stateOf(t, db); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
}

func TestCaseV3RegisterEmbedder(t *testing.T) {
	db := quietDB(t)
	s := db.Embeddings()
	wantCode(t, s.RegisterEmbedder(t.Context(), "v", fakeembed.New(4), nil), ErrNotFound)
	registerSpace(t, db, "v", 4)
	for _, c := range []struct {
		fault fakeembed.Fault
		code  Code
	}{
		{fakeembed.TooFew, ErrInvalidVector}, {fakeembed.TooMany, ErrInvalidVector}, {fakeembed.NaN, ErrInvalidVector},
		{fakeembed.Zeros, ErrInvalidVector}, {fakeembed.WrongDimension, ErrInvalidVector}, {fakeembed.Fails, ErrValidation},
		{fakeembed.Panics, ErrValidation}, {fakeembed.Refuses, ""}, {fakeembed.TooLarge, ErrValidation}, {fakeembed.RateLimited, ErrValidation},
	} {
		m := fakeembed.New(4)
		m.Fail(c.fault)
		err := s.RegisterEmbedder(t.Context(), "v", m, nil)
		if CodeOf(err) != c.code {
			t.Errorf("fault %d: %v", c.fault, err)
		}
		if bound := s.UnregisterEmbedder("v"); bound != (c.code == "") {
			t.Errorf("fault %d: bound %v", c.fault, bound)
		}
	}
	err := s.RegisterEmbedder(t.Context(), "v", fakeembed.New(5), nil)
	if e := wantCode(t, err, ErrInvalidVector); !strings.Contains(e.Error(), "5") || !strings.Contains(e.Error(), "4") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	hangs := fakeembed.New(4)
	hangs.Fail(fakeembed.Hangs)
	time.AfterFunc(20*time.Millisecond, cancel)
	wantCode(t, s.RegisterEmbedder(ctx, "v", hangs, nil), ErrCanceled)
	first, second := fakeembed.New(4), fakeembed.New(4)
	bind(t, db, "v", first, nil)
	bind(t, db, "v", second, nil)
	addMemories(t, db, 1)
	syncSpace(t, db, "v", 32)
	if len(first.Calls()) != 0 || len(second.Calls()) != 1 {
		t.Errorf("%v, %v", first.Calls(), second.Calls())
	}
}

func TestCaseV4EmbedderSpace(t *testing.T) {
	db := quietDB(t)
	s := db.Embeddings()
	registerSpace(t, db, "b", 4)
	if got := must[*EmbeddingSpace](t)(s.EmbedderSpace(t.Context(), "b")); got == nil || got.Dimension != 4 {
		t.Errorf("%+v", got)
	}
	if got := must[*EmbeddingSpace](t)(s.EmbedderSpace(t.Context(), "unknown")); got != nil {
		t.Errorf("%+v", got)
	}
	bind(t, db, "b", fakeembed.New(4), nil)
	bind(t, db, "a", fakeembed.New(4), nil)
	if got := must[*HealthReport](t)(db.Health(t.Context())).EmbedderSpaces; !slices.Equal(got, []string{"a", "b"}) {
		t.Error(got)
	}
	if !s.UnregisterEmbedder("b") || s.UnregisterEmbedder("b") {
		t.Error("an embedder is unbound once")
	}
	if got := must[*HealthReport](t)(db.Health(t.Context())).EmbedderSpaces; !slices.Equal(got, []string{"a"}) {
		t.Error(got)
	}
}

func TestCaseV5WritesCallNoModel(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	addMemories(t, db, 3)
	must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{Entities: []EntityInput{{Name: "Ada"}}}))
	putNote(t, db, "a.md", "# Title\n\nSome text.\n")
	if calls := m.Calls(); len(calls) != 0 {
		t.Errorf("%v", calls)
	}
}

// putNote writes a note of the default namespace.
func putNote(t testing.TB, db *DB, path, content string) Note {
	t.Helper()
	b := &noteBox{t, db, t.TempDir()}
	must[*Receipt[string]](t)(db.Notes().SetRoot(t.Context(), DefaultNamespace, b.dir))
	return b.put(path, content)
}

func TestCaseV6Sync(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, &EmbedderOptions{MaxBatch: new(4)})
	ids := addMemories(t, db, 5)
	var progress [][2]int64
	got := must[*Receipt[EmbeddingReport]](t)(db.Embeddings().Sync(t.Context(), "v", EmbeddingSyncOptions{
		Batch: new(32), Progress: func(done, total int64) { progress = append(progress, [2]int64{done, total}) }})).Value
	if want := (EmbeddingReport{Embedded: 5, Ready: true}); got != want {
		t.Errorf("%+v", got)
	}
	if sizes := callSizes(m); !slices.Equal(sizes, []int{4, 1}) {
		t.Error(sizes)
	}
	if !cmp.Equal(progress, [][2]int64{{5, 5}}) {
		t.Error(progress)
	}
	if got := vectorsIn(t, db, "v"); len(got) != len(ids) {
		t.Error(got)
	}
	before := stateOf(t, db)
	m.Forget()
	if got := syncSpace(t, db, "v", 32); got != (EmbeddingReport{Ready: true}) {
		t.Errorf("%+v", got)
	}
	if len(m.Calls()) != 0 || stateOf(t, db) != before {
		t.Errorf("%v, %+v after %+v", m.Calls(), stateOf(t, db), before)
	}
	if n := must[*HealthReport](t)(db.Health(t.Context())).Vectors; n != 5 {
		t.Error(n)
	}
}

func TestCaseV7SyncValidation(t *testing.T) {
	db := quietDB(t)
	registerSpace(t, db, "v", 4)
	for _, space := range []string{"v", "unknown"} {
		_, err := db.Embeddings().Sync(t.Context(), space, EmbeddingSyncOptions{})
		wantCode(t, err, ErrValidation)
	}
	bind(t, db, "v", fakeembed.New(4), nil)
	for _, batch := range []int{0, 10001} {
		_, err := db.Embeddings().Sync(t.Context(), "v", EmbeddingSyncOptions{Batch: &batch})
		wantCode(t, err, ErrValidation)
	}
	for _, batch := range []int{1, 10000} {
		syncSpace(t, db, "v", batch)
	}
}

// failsAt fails on the nth text that it is given.
type failsAt struct {
	*fakeembed.Embedder
	n, given int
}

func (f *failsAt) Embed(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if f.given += len(texts); f.given >= f.n {
		return nil, errors.New("no more")
	}
	return f.Embedder.Embed(ctx, texts, p)
}

func TestCaseV8Interrupted(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	registerSpace(t, db, "v", 8)
	f := &failsAt{m, 100, 0}
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", f, &EmbedderOptions{MaxBatch: new(2)}); err != nil {
		t.Fatal(err)
	}
	addMemories(t, db, 3)
	f.n, f.given = 3, 0
	got := syncSpace(t, db, "v", 32)
	if got.Embedded != 2 || got.Interrupted == "" || got.Ready || got.Failed != 0 {
		t.Errorf("%+v", got)
	}
	if ready(t, db, "v", TierMemory) {
		t.Error("ready")
	}
	if got := must[*HealthReport](t)(db.Health(t.Context())).LastDegraded; !slices.Equal(got, []Degrade{DegradeEmbedFailed}) {
		t.Error(got)
	}
	kept := vectorsIn(t, db, "v")
	m.Forget()
	f.n = 1000
	if got := syncSpace(t, db, "v", 32); got.Embedded != 1 || !got.Ready {
		t.Errorf("%+v", got)
	}
	if sizes := callSizes(m); !slices.Equal(sizes, []int{1}) || len(kept) != 2 {
		t.Error(sizes, kept)
	}
}

func TestCaseV9TooLargeAndRateLimited(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	m.Most = 4
	bind(t, db, "v", m, &EmbedderOptions{MaxBatch: new(8)})
	m.Fail(fakeembed.TooLarge)
	addMemories(t, db, 8)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 8 {
		t.Errorf("%+v", got)
	}
	addMemories(t, db, 8)
	syncSpace(t, db, "v", 32)
	if sizes := callSizes(m); !slices.Equal(sizes, []int{8, 4, 4, 4, 4}) {
		t.Error(sizes)
	}
	addMemories(t, db, 2)
	m.Most = 0
	got := syncSpace(t, db, "v", 32)
	if got.Embedded != 0 || got.Failed != 2 || got.Interrupted != "" || !got.Ready {
		t.Errorf("%+v", got)
	}
	m.Fail(fakeembed.None)
	m.FailTimes(fakeembed.RateLimited, 2)
	addMemories(t, db, 1)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 1 {
		t.Errorf("%+v", got)
	}
	m.Fail(fakeembed.RateLimited)
	addMemories(t, db, 1)
	m.Forget()
	got = syncSpace(t, db, "v", 32)
	if got.Embedded != 0 || got.Interrupted == "" || len(m.Calls()) != limitedTries {
		t.Errorf("%+v, %d calls", got, len(m.Calls()))
	}
}

func TestCaseV10Switches(t *testing.T) {
	dir := t.TempDir()
	db := openQuiet(t, dir)
	s := db.Embeddings()
	reads := func() (out []bool) {
		for _, tier := range tiers {
			out = append(out, must[bool](t)(s.Vectorization(t.Context(), "work", tier)))
		}
		return append(out, must[bool](t)(s.NamespaceVectorization(t.Context(), "work")))
	}
	if got := reads(); !slices.Equal(got, []bool{true, true, false, true, true, true}) {
		t.Error(got)
	}
	must[*Receipt[bool]](t)(s.SetVectorization(t.Context(), "work", TierMemory, false))
	must[*Receipt[bool]](t)(s.SetVectorization(t.Context(), "work", TierNotes, true))
	must[*Receipt[bool]](t)(s.SetNamespaceVectorization(t.Context(), "work", false))
	want := []bool{false, true, true, true, true, false}
	if got := reads(); !slices.Equal(got, want) {
		t.Error(got)
	}
	db.Close()
	db = openQuiet(t, dir)
	defer db.Close()
	s = db.Embeddings()
	if got := reads(); !slices.Equal(got, want) {
		t.Error(got)
	}
	if !must[bool](t)(s.NamespaceVectorization(t.Context(), "other")) {
		t.Error("another namespace is off")
	}
}

func TestCaseV11TierOff(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	setTier(t, db, TierMemory, false)
	memory := int64(addMemories(t, db, 1)[0])
	made := must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{Entities: []EntityInput{{Name: "Ada"}}}))
	entity := int64(made.Value.Entities[0].ID)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 1 || !got.Ready {
		t.Errorf("%+v", got)
	}
	if got := vectorsIn(t, db, "v"); !slices.Equal(got, []int64{entity}) {
		t.Error(got)
	}
	setTier(t, db, TierMemory, true)
	syncSpace(t, db, "v", 32)
	if got := vectorsIn(t, db, "v"); !slices.Equal(got, []int64{memory, entity}) {
		t.Error(got)
	}
}

func TestCaseV12NotesOffKeepsVectors(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(16)
	bind(t, db, "v", m, nil)
	setTier(t, db, TierNotes, true)
	putNote(t, db, "tide.md", "The tide table is updated weekly.\n")
	if got := syncSpace(t, db, "v", 32); got.Embedded != 1 {
		t.Errorf("%+v", got)
	}
	text := m.Calls()[0].Texts[0]
	setTier(t, db, TierNotes, false)
	m.Forget()
	if got := syncSpace(t, db, "v", 32); got.Embedded != 0 {
		t.Errorf("%+v", got)
	}
	if got := vectorsIn(t, db, "v"); len(got) != 1 {
		t.Error(got)
	}
	setTier(t, db, TierNotes, true)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 0 || len(m.Calls()) != 0 || !got.Ready {
		t.Errorf("%+v, %v", got, m.Calls())
	}
	if hits := nearest(t, db, "v", text, KindChunk); len(hits) != 1 || hits[0].Score < 0.99 {
		t.Errorf("%+v", hits)
	}
}

func TestCaseV13MasterSwitch(t *testing.T) {
	db := quietDB(t)
	s := db.Embeddings()
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	must[*Receipt[bool]](t)(s.SetNamespaceVectorization(t.Context(), DefaultNamespace, false))
	addMemories(t, db, 2)
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: new("other")}, Judgment: "elsewhere"})
	for _, tier := range []Tier{TierMemory, TierGraph, TierNotes} {
		setTier(t, db, tier, true)
		if !must[bool](t)(s.Vectorization(t.Context(), DefaultNamespace, tier)) {
			t.Error(tier, "reads as off")
		}
	}
	if got := syncSpace(t, db, "v", 32); got.Embedded != 1 {
		t.Errorf("%+v", got)
	}
	if got := vectorsIn(t, db, "v"); len(got) != 0 {
		t.Error(got)
	}
	if ready(t, db, "v", TierMemory) {
		t.Error("a namespace that is off is ready")
	}
	if !must[bool](t)(s.VectorReady(t.Context(), "other", "v", TierMemory)) {
		t.Error("the other namespace is not ready")
	}
}

func TestCaseV14Ready(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	ids := addMemories(t, db, 2)
	must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{Entities: []EntityInput{{Name: "Ada"}}}))
	state := func() [3]bool {
		return [3]bool{ready(t, db, "v", TierMemory), ready(t, db, "v", TierGraph), ready(t, db, "v", TierNotes)}
	}
	expect := func(what string, want [3]bool) {
		t.Helper()
		if got := state(); got != want {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	expect("before any sync", [3]bool{})
	if ready(t, db, "unknown", TierMemory) {
		t.Error("an unknown space is ready")
	}
	syncSpace(t, db, "v", 32)
	both := [3]bool{true, true, false}
	expect("after a sync", both)
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: ids[0]}, Judgment: "changed"})
	expect("after a write", [3]bool{false, true, false})
	syncSpace(t, db, "v", 32)
	must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[0], ReadFilter{}))
	expect("after a delete", [3]bool{false, true, false})
	syncSpace(t, db, "v", 32)
	expect("after a sync", both)
	setTier(t, db, TierPages, false)
	expect("after a switch", [3]bool{})
	syncSpace(t, db, "v", 32)
	expect("after a sync", both)
	setTier(t, db, TierMemory, false)
	syncSpace(t, db, "v", 32)
	expect("off", [3]bool{false, true, false})
}

func TestCaseV15TwoSpaces(t *testing.T) {
	db := quietDB(t)
	bind(t, db, "old", fakeembed.New(4), nil)
	ids := addMemories(t, db, 5)
	syncSpace(t, db, "old", 32)
	bind(t, db, "new", fakeembed.New(8), nil)
	if got := vectorsIn(t, db, "old"); len(got) != 5 {
		t.Error(got)
	}
	syncSpace(t, db, "new", 32)
	for _, space := range []string{"old", "new"} {
		if hits := nearest(t, db, space, "memory number3 of many", KindMemory); len(hits) != 5 || hits[0].ID != int64(ids[3]) {
			t.Errorf("%s: %+v", space, hits)
		}
	}
}

func TestCaseV16DeleteSpace(t *testing.T) {
	dir := t.TempDir()
	db := openQuiet(t, dir)
	s := db.Embeddings()
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	bind(t, db, "w", fakeembed.New(4), nil)
	addMemories(t, db, 3)
	syncSpace(t, db, "v", 32)
	syncSpace(t, db, "w", 32)
	must[*Receipt[string]](t)(s.SetDefaultSpace(t.Context(), DefaultNamespace, "v"))
	if !must[*Receipt[bool]](t)(s.DeleteSpace(t.Context(), "v")).Value || must[*Receipt[bool]](t)(s.DeleteSpace(t.Context(), "v")).Value {
		t.Error("a space is deleted once")
	}
	if got := must[string](t)(s.DefaultSpace(t.Context(), DefaultNamespace)); got != "" {
		t.Error(got)
	}
	if got := must[*HealthReport](t)(db.Health(t.Context())); got.Vectors != 3 || !slices.Equal(got.EmbedderSpaces, []string{"w"}) {
		t.Errorf("%+v", got)
	}
	err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		_, err := db.eng.searchSpace(tx, DefaultNamespace, "v")
		return err
	})
	if !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
	bind(t, db, "v", m, nil)
	if ready(t, db, "v", TierMemory) {
		t.Error("ready at once")
	}
	if got := vectorsIn(t, db, "v"); len(got) != 0 {
		t.Error(got)
	}
	if got := syncSpace(t, db, "v", 32); got.Embedded != 3 || !ready(t, db, "v", TierMemory) {
		t.Errorf("%+v", got)
	}
	db.Close()
	db = openQuiet(t, dir)
	defer db.Close()
	if got := len(vectorsIn(t, db, "v")) + len(vectorsIn(t, db, "w")); got != 6 {
		t.Error(got)
	}
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" || h.Vectors != 6 {
		t.Errorf("%+v", h)
	}
}

func TestCaseV18StaleVectors(t *testing.T) {
	for _, on := range []bool{true, false} {
		db := quietDB(t)
		bind(t, db, "v", fakeembed.New(16), nil)
		ids := addMemories(t, db, 3)
		syncSpace(t, db, "v", 32)
		setTier(t, db, TierMemory, on)
		addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: ids[0]}, Judgment: "something else"})
		addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: ids[1], Tags: []string{"new"}}, Judgment: "memory number1 of many"})
		must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[2], ReadFilter{}))
		if got := vectorsIn(t, db, "v"); !slices.Equal(got, []int64{int64(ids[1])}) {
			t.Error(on, got)
		}
		if hits := nearest(t, db, "v", "memory number0 of many", KindMemory); len(hits) != 1 || hits[0].ID != int64(ids[1]) {
			t.Errorf("%v: %+v", on, hits)
		}
	}
}

func TestEmbeddingStatus(t *testing.T) {
	db := quietDB(t)
	bind(t, db, "v", fakeembed.New(8), nil)
	addMemories(t, db, 2)
	putNote(t, db, "a.md", "Some text.\n")
	want := []TierStatus{
		{Tier: TierMemory, Enabled: true, Records: 2}, {Tier: TierGraph, Enabled: true}, {Tier: TierNotes, Records: 1},
		{Tier: TierPages, Enabled: true}, {Tier: TierAgent, Enabled: true},
	}
	got := must[[]TierStatus](t)(db.Embeddings().Status(t.Context(), DefaultNamespace, "v"))
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	syncSpace(t, db, "v", 32)
	for _, i := range []int{0, 1, 3, 4} {
		want[i].Ready, want[i].Vectors = true, want[i].Records
	}
	got = must[[]TierStatus](t)(db.Embeddings().Status(t.Context(), DefaultNamespace, "v"))
	if !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
}

func TestEmbeddedText(t *testing.T) {
	for _, c := range []struct {
		name, text []string
		want       string
	}{
		{nil, []string{"a", ""}, "a"},
		{[]string{"Ada"}, []string{"lady", " ", "wrote "}, "Ada\nlady\nwrote"},
		{[]string{"Ada"}, []string{"x", "Ada"}, "x\nAda"},
		{[]string{" "}, []string{"", "\t"}, ""},
	} {
		if got := embeddedText(&index.Document{Name: c.name, Text: c.text}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
