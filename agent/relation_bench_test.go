package agent

import (
	"fmt"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// BenchmarkRelations is about a fact with 100,000 relations in a memory of as many
// facts, each with a relation of a rare or a common type to the next one.
func BenchmarkRelations(b *testing.B) {
	m := openMemory(b, 4)
	const n = 100_000
	_, err := m.link.Write(b.Context(), func(tx *store.WriteTx) error {
		row, err := tx.AgentMemory(m.namespace, m.scope)
		if err != nil {
			return err
		}
		place := row.Place(store.KindFact)
		ids := make([]int64, n)
		for i := range ids {
			p := &store.Point{Record: store.Record{Kind: store.KindFact, Namespace: m.namespace, Scope: m.scope}, Key: uint64(i), Version: 1, Content: "text"}
			if err := tx.AddPoint(place, p); err != nil {
				return err
			}
			ids[i] = p.ID
		}
		for i, id := range ids {
			typ := "next"
			if i%10_000 == 9_999 {
				typ = "rare"
			}
			for _, e := range []*store.PointEdge{{Source: ids[0], Type: "knows", Target: id}, {Source: id, Type: typ, Target: ids[(i+1)%n]}} {
				e.Key = triple{store.KindFact, uint64(e.Source), e.Type, store.KindFact, uint64(e.Target)}.hash()
				if err := tx.AddPointEdge(place, e); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, at := range []int{0, n / 2, n - 100} {
		b.Run(fmt.Sprint("page of 50 behind ", at), func(b *testing.B) {
			for b.Loop() {
				page := must[*Edges](b)(m.facts.Relations(b.Context(), RelationsRequest{ID: 0, Cursor: fmt.Sprintf("fact/%d/knows", at)}))
				if len(page.Edges) != 50 {
					b.Fatal(len(page.Edges))
				}
			}
		})
	}
	b.Run("match of a rare type", func(b *testing.B) {
		for b.Loop() {
			if page := must[*Matches](b)(m.facts.Match(b.Context(), MatchRequest{Type: "rare"})); len(page.Matches) != 10 {
				b.Fatal(len(page.Matches))
			}
		}
	})
	b.Run("match that reads 100,000 points", func(b *testing.B) {
		for b.Loop() {
			must[*Matches](b)(m.facts.Match(b.Context(), MatchRequest{From: id(0), Type: "knows", Selection: Selection{Filter: loci.Metadata(`{"k":1}`)}}))
		}
	})
	b.Run("relate again", func(b *testing.B) {
		for b.Loop() {
			m.relate(0, "knows", n-1)
		}
	})
	b.Run("relate", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			m.relate(0, fmt.Sprint("type ", i/n), loci.PointID(i%n))
		}
	})
}
