package loci

import (
	"errors"
	"testing"
)

// FuzzSearch asks a small store anything at all, with vectors or without: an
// answer, or a refusal that says why, and the same answer when asked again.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{"harbour", "重跑gen-itgc后50条", "C++ AND (x OR \"y\") -z", "茶", "\xff\x00", "getUserName max_tokens v1.2.3", "😀 ﷺ", "the of and"} {
		f.Add(q, uint8(3))
		f.Add(q, uint8(128))
	}
	db := newHybrid(f, EncodingSQ8, nil)
	for _, j := range []string{"the harbour master wrote getUserName in C++", "红茶馆新开张, 重跑 gen-itgc 后 50 条", "max_tokens is 4096 in v1.2.3"} {
		in := MemoryInput{Judgment: j}
		in.Tags, in.Thread, in.Position = []string{"harbour"}, new("log"), new(int64(len(j)))
		if _, err := db.Memories().Upsert(f.Context(), in); err != nil {
			f.Fatal(err)
		}
	}
	db.sync()
	f.Fuzz(func(t *testing.T, query string, options uint8) {
		vectors := options&128 != 0
		req := SearchRequest{Query: query, NoVector: !vectors, Explain: options&1 != 0, WithTotal: options&2 != 0, GraphWeight: float64(options >> 2 & 1),
			NeighbourWeight: float64(options >> 3 & 1), ThreadWeight: float64(options >> 4 & 1),
			MatchField: []MatchField{MatchAll, MatchText, MatchName, MatchPath}[options>>5&3]}
		first, err := db.Search(t.Context(), req)
		if err != nil {
			if !errors.Is(err, ErrValidation) {
				t.Fatal(err)
			}
			return
		}
		again, err := db.Search(t.Context(), req)
		if err != nil || len(again.Hits) != len(first.Hits) {
			t.Fatalf("%d hits, then %v, %v", len(first.Hits), again, err)
		}
		for i, h := range first.Hits {
			if again.Hits[i].Key != h.Key || again.Hits[i].Score != h.Score || h.Score < 0 || h.Score == 0 && !vectors {
				t.Fatalf("hit %d: %v, then %v", i, h, again.Hits[i])
			}
		}
		if first.Total != nil && *first.Total < int64(len(first.Hits)) && req.NeighbourWeight == 0 && !vectors {
			t.Fatalf("%d hits of %d that match", len(first.Hits), *first.Total)
		}
	})
}
