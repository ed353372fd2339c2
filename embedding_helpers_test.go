package loci

import (
	"fmt"
	"slices"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// openQuiet opens a store whose background embeds nothing.
func openQuiet(t testing.TB, dir string) *DB {
	t.Helper()
	return must[*DB](t)(Open(t.Context(), dir, &Options{NoBackgroundEmbedding: true, WaitForIndex: true}))
}

// quietDB is a new one that is closed by itself.
func quietDB(t testing.TB) *DB {
	t.Helper()
	db := openQuiet(t, t.TempDir())
	t.Cleanup(func() { db.Close() })
	return db
}

func registerSpace(t testing.TB, db *DB, id string, dimension int) {
	t.Helper()
	must[*Receipt[EmbeddingSpace]](t)(db.Embeddings().RegisterSpace(t.Context(), EmbeddingSpace{ID: id, Model: "fake", Dimension: dimension}))
}

// bind registers a space, if need be, and a model for it.
func bind(t testing.TB, db *DB, id string, m *fakeembed.Embedder, opts *EmbedderOptions) {
	t.Helper()
	registerSpace(t, db, id, len(m.Vector("x")))
	if err := db.Embeddings().RegisterEmbedder(t.Context(), id, m, opts); err != nil {
		t.Fatal(err)
	}
	m.Forget()
}

func syncSpace(t testing.TB, db *DB, space string, batch int) EmbeddingReport {
	t.Helper()
	return must[*Receipt[EmbeddingReport]](t)(db.Embeddings().Sync(t.Context(), space, EmbeddingSyncOptions{Batch: &batch})).Value
}

func addMemories(t testing.TB, db *DB, n int) (ids []ID) {
	t.Helper()
	for i := range n {
		ids = append(ids, addMemory(t, db, MemoryInput{Judgment: fmt.Sprintf("memory number%d of many", i)}).ID)
	}
	return ids
}

func ready(t testing.TB, db *DB, space string, tier Tier) bool {
	t.Helper()
	return must[bool](t)(db.Embeddings().VectorReady(t.Context(), DefaultNamespace, space, tier))
}

func setTier(t testing.TB, db *DB, tier Tier, on bool) {
	t.Helper()
	must[*Receipt[bool]](t)(db.Embeddings().SetVectorization(t.Context(), DefaultNamespace, tier, on))
}

// callSizes are the numbers of texts in a model's calls.
func callSizes(m *fakeembed.Embedder) (n []int) {
	for _, c := range m.Calls() {
		n = append(n, len(c.Texts))
	}
	return n
}

// vectorsIn gives the records of the default namespace that have a vector in the
// truth, ascending, and fails when the index knows others.
func vectorsIn(t testing.TB, db *DB, space string) (ids []int64) {
	t.Helper()
	err := db.eng.readPair(t.Context(), func(tx *store.ReadTx, view index.View) error {
		ids = nil
		sp, err := tx.Space(space)
		if err != nil || sp == nil {
			return err
		}
		var all []store.Stored
		for after := int64(0); ; {
			batch, next, err := tx.ScanRecords(after, 1000)
			if err != nil {
				return err
			}
			if next == after {
				break
			}
			all, after = append(all, batch...), next
		}
		namespace, _, err := tx.StringID(DefaultNamespace)
		if err != nil {
			return err
		}
		for kind := store.KindMemory; kind <= store.KindProcedure; kind++ {
			var want index.VectorCount
			var lacking []int64
			for _, r := range all {
				h := r.Head()
				if h.Kind != kind || h.NamespaceID != namespace || kind == store.KindNote {
					continue
				}
				want.Records++
				_, _, ok, err := tx.Vector(sp.ID, h.ID, nil)
				if err != nil {
					return err
				}
				if ok {
					want.Vectors++
					ids = append(ids, h.ID)
				} else {
					lacking = append(lacking, h.ID)
				}
			}
			if got := view.CountVectors(sp.ID, namespace, index.Kind(kind)); got != want {
				t.Errorf("kind %d: the index counts %+v, the truth has %+v", kind, got, want)
			}
			missing := view.Missing(sp.ID, namespace, index.Kind(kind), 1<<20, nil)
			slices.Sort(missing)
			if !slices.Equal(missing, lacking) {
				t.Errorf("kind %d: the index misses %v, the truth %v", kind, missing, lacking)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ids)
	return ids
}

// nearest gives what the index finds nearest to a text among kinds of the public
// scope.
func nearest(t testing.TB, db *DB, space, text string, kinds ...Kind) (hits []index.VectorHit) {
	t.Helper()
	b := db.eng.embedderOf(space)
	vectors, err := b.embed(t.Context(), []string{text}, embed.Query)
	if err != nil {
		t.Fatal(err)
	}
	err = db.eng.readPair(t.Context(), func(tx *store.ReadTx, view index.View) error {
		namespace, _, _ := tx.StringID(DefaultNamespace)
		scope, _, _ := tx.StringID(PublicScope)
		f := index.Filter{Namespace: namespace, Scopes: []int64{scope}}
		for _, k := range kinds {
			f.Kinds = append(f.Kinds, k.number())
		}
		res, err := view.Nearest(index.VectorQuery{Space: b.space.ID, Values: vectors[0], Limit: 10, Exact: true}, f)
		hits = res.Hits
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return hits
}
