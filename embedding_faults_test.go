package loci

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/index/embedded"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
	"pgregory.net/rapid"
)

// scripted is a model that answers as it is told.
type scripted func(texts []string) ([][]float32, error)

func (m scripted) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	return m(texts)
}

// byLength gives each text a vector of its own slice.
func byLength(texts []string) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{1, float32(len(text))}
	}
	return out, nil
}

// TestTooLargeProperty has some texts too large for any call, and calls that are
// too large for the model: each other text is embedded once, and the size of the
// calls is what the model takes and not what single texts made of it.
func TestTooLargeProperty(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(rt, "texts")
		bad := map[int]bool{}
		for _, i := range rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID[int]).Draw(rt, "bad") {
			bad[i] = true
		}
		first := rapid.IntRange(1, 16).Draw(rt, "batch")
		most := rapid.IntRange(1, 20).Draw(rt, "most")
		texts := make([]string, n)
		for i := range texts {
			texts[i] = fmt.Sprint("good ", i)
			if bad[i] {
				texts[i] = fmt.Sprint("bad ", i)
			}
		}
		b, err := (&EmbedderOptions{MaxBatch: &first}).check()
		if err != nil {
			rt.Fatal(err)
		}
		b.space.Dimension = 2
		b.embedder = scripted(func(texts []string) ([][]float32, error) {
			if len(texts) > most || slices.ContainsFunc(texts, func(s string) bool { return strings.HasPrefix(s, "bad") }) {
				return nil, embed.ErrTooLarge
			}
			return byLength(texts)
		})
		seen, refused := map[int]int{}, map[int]bool{}
		err = b.embedEach(t.Context(), texts, embed.Passage, func(at int, vectors [][]float32) error {
			for i := range vectors {
				seen[at+i]++
			}
			return nil
		}, func(at int) error {
			refused[at] = true
			return nil
		})
		if err != nil || !maps.Equal(refused, bad) || len(seen) != n-len(bad) {
			rt.Fatalf("%v: refused %v, embedded %v", err, refused, seen)
		}
		for i, times := range seen {
			if times != 1 || bad[i] {
				rt.Fatalf("text %d was embedded %d times", i, times)
			}
		}
		got := int(b.batch.Load())
		if got < 1 || got > first || first <= most && got != first {
			rt.Fatalf("calls of %d texts became calls of %d", first, got)
		}
	})
}

// TestRefusesEverything has a model refuse whatever it is given, as one does whose
// key has gone: that is a failure, and no text is to blame.
func TestRefusesEverything(t *testing.T) {
	db := quietDB(t)
	registerSpace(t, db, "v", 2)
	var refuse atomic.Bool
	model := scripted(func(texts []string) ([][]float32, error) {
		if refuse.Load() {
			return nil, fmt.Errorf("400: %w", embed.ErrRefused)
		}
		return byLength(texts)
	})
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", model, nil); err != nil {
		t.Fatal(err)
	}
	addMemories(t, db, 5)
	refuse.Store(true)
	if got := syncSpace(t, db, "v", 32); got.Interrupted == "" || got.Failed != 0 || got.Ready || ready(t, db, "v", TierMemory) {
		t.Errorf("%+v", got)
	}
	refuse.Store(false)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 5 || !got.Ready {
		t.Errorf("%+v", got)
	}
}

// TestSharedSlices has a model give one slice for all texts, which is found out at
// once, and one that has a cache.
func TestSharedSlices(t *testing.T) {
	db := quietDB(t)
	registerSpace(t, db, "v", 2)
	one := []float32{1, 2}
	err := db.Embeddings().RegisterEmbedder(t.Context(), "v", scripted(func(texts []string) ([][]float32, error) {
		return slices.Repeat([][]float32{one}, len(texts)), nil
	}), nil)
	wantCode(t, err, ErrInvalidVector)
	kept := map[string][]float32{}
	err = db.Embeddings().RegisterEmbedder(t.Context(), "v", scripted(func(texts []string) (out [][]float32, err error) {
		for _, text := range texts {
			if kept[text] == nil {
				kept[text] = []float32{1, float32(len(text))}
			}
			out = append(out, kept[text])
		}
		return out, nil
	}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, scope := range []string{"a", "b", "c"} {
		addMemory(t, db, MemoryInput{RecordInput: RecordInput{Scope: &scope}, Judgment: "the same"})
	}
	if got := syncSpace(t, db, "v", 32); got.Embedded != 3 || !got.Ready {
		t.Errorf("%+v", got)
	}
}

// TestInterruptedHoldsNoPartOfAText has a model's error quote the beginning of a
// text.
func TestInterruptedHoldsNoPartOfAText(t *testing.T) {
	db := quietDB(t)
	registerSpace(t, db, "v", 2)
	model := scripted(func(texts []string) ([][]float32, error) {
		if strings.HasPrefix(texts[0], "her blood") {
			return nil, fmt.Errorf("bad input %.24q..., server 7", texts[0])
		}
		return byLength(texts)
	})
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", model, nil); err != nil {
		t.Fatal(err)
	}
	addMemory(t, db, MemoryInput{Judgment: "her blood pressure has been high since May"})
	got := syncSpace(t, db, "v", 32)
	if got.Interrupted != `bad input "[...]"..., server 7` {
		t.Errorf("%q", got.Interrupted)
	}
}

// TestSpaceGoneDuringRegistration has a space deleted, and another one made under
// its name, while its model is tried.
func TestSpaceGoneDuringRegistration(t *testing.T) {
	for _, again := range []bool{false, true} {
		db := quietDB(t)
		bind(t, db, "v", fakeembed.New(8), nil) // so that the space knows its probe
		h := &hooked{Embedder: fakeembed.New(8)}
		h.before = func([]string) {
			must[*Receipt[bool]](t)(db.Embeddings().DeleteSpace(t.Context(), "v"))
			if again {
				registerSpace(t, db, "v", 8)
			}
		}
		wantCode(t, db.Embeddings().RegisterEmbedder(t.Context(), "v", h, nil), ErrNotFound)
		if got := must[*HealthReport](t)(db.Health(t.Context())).EmbedderSpaces; len(got) != 0 {
			t.Error(got)
		}
	}
}

// TestFailedOfANamespace counts the refused texts of the namespace that was asked
// for, also when it holds nothing, and says of what stays without a vector that it
// does.
func TestFailedOfANamespace(t *testing.T) {
	db := quietDB(t)
	m := fakeembed.New(8)
	bind(t, db, "v", m, nil)
	m.Fail(fakeembed.Refuses)
	addMemories(t, db, 2)
	bad := addMemory(t, db, MemoryInput{Judgment: "so " + fakeembed.RefusedWord})
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: new("other")}, Judgment: "elsewhere"})
	if got := syncSpace(t, db, "v", 32); got.Failed != 1 || got.Embedded != 3 {
		t.Fatalf("%+v", got)
	}
	for namespace, failed := range map[string]int64{"nobody": 0, "other": 0, DefaultNamespace: 1} {
		got := must[*Receipt[EmbeddingReport]](t)(db.Embeddings().Sync(t.Context(), "v", EmbeddingSyncOptions{Namespace: &namespace})).Value
		if got.Failed != failed || !got.Ready {
			t.Errorf("%s: %+v", namespace, got)
		}
	}
	status := func(namespace string) TierStatus {
		return must[[]TierStatus](t)(db.Embeddings().Status(t.Context(), namespace, "v"))[0]
	}
	if got, want := status(DefaultNamespace), (TierStatus{Tier: TierMemory, Enabled: true, Ready: true, Records: 3, Vectors: 2, Left: 1}); got != want {
		t.Errorf("%+v", got)
	}
	if got := status("other"); got.Left != 0 {
		t.Errorf("%+v", got)
	}
	must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), bad.ID, ReadFilter{}))
	if got := status(DefaultNamespace); got.Left != 0 || got.Records != 2 {
		t.Errorf("%+v", got)
	}
}

// TestSwitchDuringSync turns a tier off in the midst of its sync, which leaves it
// alone from then on and goes on with the others.
func TestSwitchDuringSync(t *testing.T) {
	for _, master := range []bool{false, true} {
		db := quietDB(t)
		h := bindHooked(t, db, "v", nil)
		addMemories(t, db, 20)
		must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{Entities: []EntityInput{{Name: "Ada"}}}))
		h.before = func([]string) {
			h.before = nil
			if master {
				must[*Receipt[bool]](t)(db.Embeddings().SetNamespaceVectorization(t.Context(), DefaultNamespace, false))
			} else {
				setTier(t, db, TierMemory, false)
			}
		}
		want := int64(4 + 1) // what was on its way, and the entity
		if master {
			want = 4
		}
		if got := syncSpace(t, db, "v", 4); got.Embedded != want || got.Interrupted != "" {
			t.Errorf("master %v: %+v", master, got)
		}
	}
}

// TestLongTexts reads few long texts at a time, whatever the batch.
func TestLongTexts(t *testing.T) {
	db := quietDB(t)
	h := bindHooked(t, db, "v", nil)
	most := 0
	h.before = func(texts []string) { most = max(most, len(texts)) }
	for i := range 20 {
		addMemory(t, db, MemoryInput{Judgment: fmt.Sprint(i, strings.Repeat(" ", MaxTextBytes-100), "end")})
	}
	if got := syncSpace(t, db, "v", 1000); got.Embedded != 20 || !got.Ready || most > gatherBytes/MaxTextBytes+1 {
		t.Errorf("%+v, %d texts at once", got, most)
	}
}

// TestLargestVectors has vectors as long as they may be, in both encodings.
func TestLargestVectors(t *testing.T) {
	for _, encoding := range []VectorEncoding{EncodingF32, EncodingSQ8} {
		dir := t.TempDir()
		db := openQuiet(t, dir)
		model := func(db *DB) {
			t.Helper()
			must[*Receipt[EmbeddingSpace]](t)(db.Embeddings().RegisterSpace(t.Context(), EmbeddingSpace{ID: "v", Model: "m", Dimension: MaxDimension, Encoding: encoding}))
			if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", fakeembed.New(MaxDimension), nil); err != nil {
				t.Fatal(err)
			}
		}
		found := func(when string) {
			t.Helper()
			hits := search(t, db, SearchRequest{Query: "memory number2 of many", NoText: true}).Hits
			if len(hits) != 3 || hits[0].Key != "memory:3" || hits[0].VectorScores["v"] < 0.9999 || hits[0].VectorScores["v"] > 1 {
				t.Errorf("%s, %s: %+v", encoding, when, hits)
			}
		}
		model(db)
		addMemories(t, db, 3)
		syncSpace(t, db, "v", 32)
		found("at once")
		db.Close()
		db = openQuiet(t, dir)
		model(db)
		found("opened again")
		must[*HealthReport](t)(db.RebuildIndexes(t.Context()))
		found("rebuilt")
		db.Close()
	}
}

// TestSpaceHalfRemoved opens a store in which the vectors of a deleted space were
// being removed, and where another space has its name.
func TestSpaceHalfRemoved(t *testing.T) {
	dir := t.TempDir()
	db := openQuiet(t, dir)
	bind(t, db, "v", fakeembed.New(8), nil)
	addMemories(t, db, 5)
	syncSpace(t, db, "v", 32)
	_, err := db.eng.write(t.Context(), func(tx *store.WriteTx) error {
		sp, err := tx.Space("v")
		if err != nil {
			return err
		}
		if err := tx.DropSpace(sp.ID); err != nil {
			return err
		}
		_, err = tx.RemoveVectors(sp.ID, 2)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	db.eng.embedders.set("v", nil)
	m := fakeembed.New(8)
	m.Drift = 7 // another model, which the new space may have
	bind(t, db, "v", m, nil)
	if got := vectorsIn(t, db, "v"); len(got) != 0 {
		t.Errorf("the new space has %v of the old one", got)
	}
	db.Close()
	db = openQuiet(t, dir)
	defer db.Close()
	bind(t, db, "v", m, nil)
	if hits := nearest(t, db, "v", "memory number2 of many", KindMemory); len(hits) != 0 {
		t.Errorf("%+v", hits)
	}
	if got := syncSpace(t, db, "v", 32); got.Embedded != 5 || !got.Ready {
		t.Errorf("%+v", got)
	}
	eventually(t, "the old vectors have gone", func() bool { return kept(t, db) == 5 })
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" || h.Vectors != 5 {
		t.Errorf("%+v", h)
	}
}

// kept counts the vectors in the truth of the first records and spaces, whether
// the spaces are there or going.
func kept(t *testing.T, db *DB) (n int) {
	t.Helper()
	err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		n = 0
		for space := int64(1); space <= 3; space++ {
			for id := int64(1); id <= 5; id++ {
				_, _, ok, err := tx.Vector(space, id, nil)
				if err != nil {
					return err
				}
				if ok {
					n++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestBatchOf reads fewer records at a time where their vectors are long.
func TestBatchOf(t *testing.T) {
	db := quietDB(t)
	of := func(most int) (n int) {
		err := db.eng.read(t.Context(), func(tx *store.ReadTx) (err error) {
			n, err = batchOf(tx, most)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if got := of(1000); got != 1000 {
		t.Error(got)
	}
	registerSpace(t, db, "small", 384)
	if got := of(1000); got != 1000 {
		t.Error(got)
	}
	for i, want := range []int{127, 63, 42} {
		registerSpace(t, db, fmt.Sprint("large", i), MaxDimension)
		if got := of(1000); got != want {
			t.Errorf("%d large spaces: %d", i+1, got)
		}
	}
	if got := of(5); got != 5 {
		t.Error(got)
	}
}

// TestCheckpointOfVectorsOnly takes a copy of a store's folder, as a crash leaves
// it, after a checkpoint that holds vectors and no record, when the journal that
// named them is gone.
func TestCheckpointOfVectorsOnly(t *testing.T) {
	dir := t.TempDir()
	db := openQuiet(t, dir)
	defer db.Close()
	bind(t, db, "v", fakeembed.New(8), nil)
	flush := func() {
		t.Helper()
		if err := db.eng.usableIndex().(*embedded.Index).Flush(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the journal is pruned", func() bool {
			c := db.eng.store.Counters()
			return c.JournalFloor == c.Revision
		})
	}
	ids := addMemories(t, db, 4)
	flush()
	syncSpace(t, db, "v", 32)
	flush()
	check := func(when string, want ...int64) {
		t.Helper()
		image := copyOpenDir(t, dir)
		again := openQuiet(t, image)
		defer again.Close()
		if p := again.RebuildProgress(); p.Total != 0 {
			t.Errorf("%s: it was rebuilt", when)
		}
		if got := vectorsIn(t, again, "v"); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	check("vectors came", 1, 2, 3, 4)
	// What goes without a checkpoint comes from the journal.
	addMemory(t, db, MemoryInput{RecordInput: RecordInput{ID: ids[1]}, Judgment: "changed"})
	check("a text changed", 1, 3, 4)
	flush()
	check("with a checkpoint", 1, 3, 4)
	must[*Receipt[bool]](t)(db.Memories().Delete(t.Context(), ids[2], ReadFilter{}))
	syncSpace(t, db, "v", 32)
	check("one went, one came again", 1, 2, 4)
}
