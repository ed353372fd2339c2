package loci

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// benchGraph writes a graph of n entities and m relations straight into the
// truth, past the text index, and gives the entities' ids.
func benchGraph(b *testing.B, db *DB, n, m int) []int64 {
	b.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	ids := make([]int64, 0, n)
	const batch = 20000
	record := store.Record{Namespace: DefaultNamespace, Scope: PublicScope}
	for done := 0; done < n+m; done += batch {
		_, err := db.eng.write(b.Context(), func(tx *store.WriteTx) error {
			for i := done; i < min(done+batch, n+m); i++ {
				if i < n {
					e := &store.Entity{Record: record, Type: DefaultEntityType, Name: "e", NameKey: "e", Attributes: []byte("{}")}
					if err := tx.AddEntity(e); err != nil {
						return err
					}
					ids = append(ids, e.ID)
					continue
				}
				p := fmt.Sprint("p", i%20) + "-" + fmt.Sprint(i) // no two relations are the same
				r := &store.Relation{Record: record, Subject: ids[rng.IntN(n)], Object: ids[rng.IntN(n)], Predicate: p[:3], PredicateKey: p[:3], Confidence: 1}
				for {
					old, err := tx.RelationByTriple(r.Scope, r.Subject, r.PredicateKey, r.Object)
					if err != nil {
						return err
					}
					if old == nil {
						break
					}
					r.Object = ids[rng.IntN(n)]
				}
				if err := tx.AddRelation(r); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return ids
}

// BenchmarkGraph is about a namespace of 100,000 entities and 500,000 relations.
func BenchmarkGraph(b *testing.B) {
	db, err := Open(b.Context(), b.TempDir(), withFakeIndex(&Options{}, nil))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	ids := benchGraph(b, db, 100_000, 500_000)
	g := db.Graph()
	view := func(b *testing.B) *GraphView {
		v, err := g.BuildGraph(b.Context(), ReadFilter{}, GraphOptions{})
		if err != nil {
			b.Fatal(err)
		}
		return v
	}
	b.Run("first view", func(b *testing.B) {
		for b.Loop() {
			db.eng.graphs.drop()
			view(b)
		}
	})
	b.Run("view", func(b *testing.B) {
		for b.Loop() {
			view(b)
		}
	})
	b.Run("view after a write", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			_, err := g.ApplyBatch(b.Context(), GraphBatch{Relations: []RelationInput{{
				Subject: EntityRef{ID: ID(ids[i%1000])}, Predicate: fmt.Sprint("new", i), Object: EntityRef{ID: ID(ids[i%777])}}}})
			if err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			view(b)
		}
	})
	b.Run("view after 10,000 relations", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			b.StopTimer()
			batch := GraphBatch{Relations: make([]RelationInput, MaxBatch)}
			for j := range batch.Relations {
				batch.Relations[j] = RelationInput{Subject: EntityRef{ID: ID(ids[j*7])}, Predicate: fmt.Sprint("batch", i), Object: EntityRef{ID: ID(ids[j])}}
			}
			if _, err := g.ApplyBatch(b.Context(), batch); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			view(b)
		}
	})
	b.Run("ego, two steps", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := g.Ego(b.Context(), ID(ids[i%len(ids)]), ReadFilter{}, EgoOptions{Depth: new(2)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("path", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			if _, err := g.Path(b.Context(), ID(ids[i%len(ids)]), ID(ids[(i*7919)%len(ids)]), ReadFilter{}, GraphOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkExpandQuery is about a namespace of 10,000 words in 2,500 groups.
func BenchmarkExpandQuery(b *testing.B) {
	var words []store.Equivalent
	for i := range 10_000 {
		words = append(words, store.Equivalent{Word: fmt.Sprint("w", i), Group: int64(i / 4)})
	}
	for _, w := range []string{"配偶", "夫妻", "伴侣"} {
		words = append(words, store.Equivalent{Word: w, Group: 10_000})
	}
	x := newEquivalents(words)
	for name, query := range map[string]string{"nothing": "阿青的邻居在哪里修船", "a group": "阿青的伴侣在哪里修船", "English": "who repairs w77 of the old harbour"} {
		q := analyzeQuery(query, MatchAll)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x.expandQuery(q, query)
			}
		})
	}
}
