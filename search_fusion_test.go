package loci

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"pgregory.net/rapid"
)

// naiveFusion works out what a search should give from the paths one by one: the
// whole answer by text, and every cosine.
type naiveFusion struct {
	text    []ID // best first
	bm25    map[ID]float64
	cosines map[ID]float64
	held    map[ID]float64 // share of the query's words that a memory holds
}

func newNaiveFusion(t testing.TB, h *hybrid, query string, filter ReadFilter) *naiveFusion {
	t.Helper()
	n := &naiveFusion{bm25: map[ID]float64{}, cosines: map[ID]float64{}, held: map[ID]float64{}}
	asked := map[string]bool{}
	for _, w := range strings.Fields(query) {
		if w != "of" { // says nothing
			asked[w] = true
		}
	}
	for _, hit := range search(t, h.DB, SearchRequest{Query: query, Filter: filter, NoVector: true, Limit: new(1000)}).Hits {
		id := hit.Record.(*Memory).ID
		n.text = append(n.text, id)
		n.bm25[id] = *hit.TextScore
		for w := range asked {
			if slices.Contains(strings.Fields(hit.Record.(*Memory).Judgment), w) {
				n.held[id] += 1 / float64(len(asked))
			}
		}
	}
	for _, hit := range search(t, h.DB, SearchRequest{Query: query, Filter: filter, NoText: true, Limit: new(1000)}).Hits {
		m := hit.Record.(*Memory)
		n.cosines[m.ID] = hit.VectorScores[hybridSpace]
		if !near(n.cosines[m.ID], h.cosine(query, m.Judgment)) {
			t.Fatalf("cosine %v, want %v", n.cosines[m.ID], h.cosine(query, m.Judgment))
		}
	}
	return n
}

// byVector gives the best memories by vector.
func (n *naiveFusion) byVector(window int) []ID {
	ids := slices.Collect(maps.Keys(n.cosines))
	slices.SortFunc(ids, func(a, b ID) int {
		return cmp.Or(cmp.Compare(n.cosines[b], n.cosines[a]), cmp.Compare(a, b))
	})
	return ids[:min(len(ids), window)]
}

// fused gives the scores of a search by its fusion.
func (n *naiveFusion) fused(fusion Fusion, window int, textWeight, vectorWeight float64) map[ID]float64 {
	text, vector := n.text[:min(len(n.text), window)], n.byVector(window)
	out := map[ID]float64{}
	for _, id := range slices.Concat(text, vector) {
		out[id] = 0
	}
	if fusion == FusionRRF {
		for i, id := range text {
			out[id] += textWeight / float64(61+i)
		}
		for i, id := range vector {
			out[id] += vectorWeight / float64(61+i)
		}
		return out
	}
	coverage := 0.0
	for _, id := range text[:min(len(text), 3)] {
		coverage = max(coverage, n.held[id])
	}
	textWeight *= coverage
	words, cosines := map[ID]float64{}, map[ID]float64{}
	for i, id := range text {
		for _, below := range text[i:] {
			words[id] = max(words[id], n.bm25[below])
		}
	}
	worst := 0.0
	if len(text) > 0 {
		worst = words[text[len(text)-1]]
	}
	only := func(ids, others []ID) []ID {
		return slices.DeleteFunc(slices.Clone(ids), func(id ID) bool { return slices.Contains(others, id) })
	}
	for i, id := range only(vector, text) {
		words[id] = 0
		if i < fillBest && len(n.text) >= window {
			words[id] = min(n.bm25[id], worst)
		}
	}
	for i, id := range only(text, vector) {
		if i < fillBest {
			cosines[id] = n.cosines[id]
		}
	}
	for _, id := range vector {
		cosines[id] = n.cosines[id]
	}
	for path, weight := range map[*map[ID]float64]float64{&words: textWeight, &cosines: vectorWeight} {
		low, top := math.Inf(1), math.Inf(-1)
		if path == &words && len(text) == 0 {
			continue
		}
		for _, s := range *path {
			low, top = min(low, s), max(top, s)
		}
		for id, s := range *path {
			if top > low {
				out[id] += weight * (s - low) / (top - low)
			} else {
				out[id] += weight
			}
		}
	}
	return out
}

// TestFusionProperties compares searches with the naive fusion, for random
// queries, filters, windows and weights, and holds that the paths' own best are
// among the hits.
func TestFusionProperties(t *testing.T) {
	words := []string{"tide", "lamp", "harbor", "rope", "gull", "salt", "oar", "mist"}
	scopes := []string{"a", "b", "c", "d"}
	h := newHybrid(t, EncodingF32, nil)
	r := rand.New(rand.NewPCG(1, 2))
	ins := make([]MemoryInput, 80)
	for i := range ins {
		var text []string
		for range 1 + r.IntN(5) {
			text = append(text, words[r.IntN(len(words))])
		}
		ins[i] = in(scopes[r.IntN(len(scopes))], strings.Join(text, " "))
	}
	rememberAll(t, h.DB, ins...)
	h.sync()
	rapid.Check(t, func(rt *rapid.T) {
		query := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(words, "unheard", "of")), 1, 3).Draw(rt, "query"), " ")
		filter := scoped(rapid.SliceOfNDistinct(rapid.SampledFrom(scopes), 1, 4, rapid.ID[string]).Draw(rt, "scopes")...)
		n := newNaiveFusion(t, h, query, filter)
		limit := rapid.IntRange(1, 90).Draw(rt, "limit")
		window := rapid.IntRange(limit, 100).Draw(rt, "window")
		fusion := rapid.SampledFrom([]Fusion{FusionRRF, FusionScore}).Draw(rt, "fusion")
		tw, vw := rapid.Float64Range(0.1, 3).Draw(rt, "text weight"), rapid.Float64Range(0.1, 3).Draw(rt, "vector weight")
		res := search(t, h.DB, SearchRequest{Query: query, Filter: filter, Limit: &limit, CandidateLimit: &window, Fusion: fusion,
			TextWeight: &tw, VectorWeight: &vw, Explain: true})
		want := n.fused(fusion, window, tw, vw)
		if len(res.Hits) != min(limit, len(want)) {
			rt.Fatalf("%d hits of %d, limit %d", len(res.Hits), len(want), limit)
		}
		lowest := math.Inf(1)
		shown := map[ID]bool{}
		for i, hit := range res.Hits {
			id := hit.Record.(*Memory).ID
			x := hit.Explain
			if math.Abs(hit.Score-want[id]) > 1e-4 || math.Abs(x.TextPart+x.VectorPart-hit.Score) > 1e-12 {
				rt.Fatalf("%q, %s, hit %d, memory %d: %v, want %v; %+v", query, fusion, i, id, hit.Score, want[id], x)
			}
			if i > 0 && (hit.Score > res.Hits[i-1].Score || hit.Score == res.Hits[i-1].Score && id < res.Hits[i-1].Record.(*Memory).ID) {
				rt.Fatalf("hit %d is out of order", i)
			}
			lowest = min(lowest, hit.Score)
			shown[id] = true
		}
		for id, score := range want {
			if !shown[id] && score > lowest+1e-4 {
				rt.Fatalf("%q: memory %d has %v, above the last hit's %v", query, id, score, lowest)
			}
			if limit >= len(want) && !shown[id] {
				rt.Fatalf("%q: memory %d of a path's window is no hit", query, id)
			}
		}
	})
}

// TestFillText asks for the text score of what only the vector path found when
// the text window is full, and never lets it pass what the text path found.
func TestFillText(t *testing.T) {
	h := newHybrid(t, EncodingF32, nil)
	texts := make([]string, 20)
	for i := range texts {
		texts[i] = fmt.Sprintf("lighthouse lighthouse number%d", i)
	}
	// The last by its words, and the first by what it says.
	h.remember(append(texts, "lighthouse beacon beacon pharos pharos")...)
	res := search(t, h.DB, SearchRequest{Query: "lighthouse", Limit: new(4), CandidateLimit: new(4), Explain: true})
	filled := 0
	for _, hit := range res.Hits {
		if x := hit.Explain; x.TextRank == 0 && x.TextScore > 0 {
			filled++
			if hit.TextScore != nil || len(x.Terms) == 0 {
				t.Errorf("%+v", hit)
			}
		}
		if x := hit.Explain; x.VectorRank == 0 && (x.VectorScore == 0 || len(hit.VectorScores) != 0) {
			t.Errorf("no cosine for %+v", x)
		}
	}
	if filled == 0 {
		t.Errorf("nothing was filled: %+v", res.Hits)
	}
}

// TestGraphPathFromVectors walks the graph from what only vectors found.
func TestGraphPathFromVectors(t *testing.T) {
	h := newHybrid(t, EncodingSQ8, nil)
	ids := entities(t, h.DB, "Lothair", "Ermengarde")
	relate(t, h.DB, relates(ids[0], "mother", ids[1]))
	start := about(t, h.DB, PublicScope, "a beacon on the hill", "lothair")
	related := about(t, h.DB, PublicScope, "she died in the spring", "ermengarde")
	h.sync()
	for _, fusion := range []Fusion{"", FusionRRF, FusionScore} {
		req := SearchRequest{Query: "pharos", Kinds: []Kind{KindMemory}, Fusion: fusion, Explain: true, Limit: new(2), CandidateLimit: new(2), GraphWeight: 0.5}
		res := search(t, h.DB, req)
		if got := hitIDs(res); !slices.Equal(got, []ID{start, related}) || res.Hits[1].Explain.GraphAdd <= 0 {
			t.Errorf("%s: %v, %+v", fusion, got, res.Hits)
		}
	}
}

// TestSearchWhileSpacesComeAndGo searches while the space is deleted, registered
// and filled again. Every search answers by text, and no vector of another space
// is ever taken for one of its own.
func TestSearchWhileSpacesComeAndGo(t *testing.T) {
	h := newHybrid(t, EncodingSQ8, nil)
	remember(t, h.DB, "lighthouse", "a beacon", "the sea")
	var searchers sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		searchers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for _, req := range []SearchRequest{{Query: "lighthouse"}, {Query: "lighthouse", Prune: &GraphPrune{Root: 4, Depth: 1, Limit: 1}}} {
					res, err := h.Search(t.Context(), req)
					if err != nil && !errors.Is(err, ErrNotFound) {
						t.Error(err)
						return
					}
					if err == nil && (len(res.Hits) == 0 || res.Hits[0].Score <= 0 || !res.Diagnostics.TextUsed) {
						t.Errorf("%+v", res)
						return
					}
				}
			}
		})
	}
	for i := range 12 {
		if i == 5 {
			entities(t, h.DB, "Lighthouse")
		}
		h.sync()
		must[*Receipt[bool]](t)(h.Embeddings().DeleteSpace(t.Context(), hybridSpace))
		h.space(hybridSpace, []VectorEncoding{EncodingSQ8, EncodingF32}[i%2])
		h.bind(hybridSpace, nil)
	}
	close(stop)
	searchers.Wait()
}

// gaplessIndex fails at one question of a search.
type gaplessIndex struct {
	index.Index
	fail string
}

type gaplessView struct {
	index.View
	fail string
}

func (ix *gaplessIndex) View(revision int64) (index.View, bool) {
	v, ok := ix.Index.View(revision)
	return &gaplessView{v, ix.fail}, ok
}

func (v *gaplessView) Scores(q index.Query, f index.Filter, ids []int64, kinds []index.Kind) ([]float64, error) {
	if v.fail == "scores" {
		return nil, errors.New("told to fail")
	}
	return v.View.Scores(q, f, ids, kinds)
}

func (v *gaplessView) Nearest(q index.VectorQuery, f index.Filter) (index.VectorResult, error) {
	if v.fail == "nearest" && q.IDs != nil || v.fail == "path" && q.IDs == nil {
		return index.VectorResult{}, errors.New("told to fail")
	}
	return v.View.Nearest(q, f)
}

// TestFillFails lets the index fail while gaps are filled, or while the vectors are
// compared: gaps stay, the search answers, and the index is built anew.
func TestFillFails(t *testing.T) {
	for _, fail := range []string{"scores", "nearest", "path"} {
		h := newHybrid(t, EncodingSQ8, nil)
		texts := make([]string, 20)
		for i := range texts {
			texts[i] = fmt.Sprintf("lighthouse lighthouse number%d", i)
		}
		h.remember(append(texts, "lighthouse beacon beacon pharos pharos")...)
		req := SearchRequest{Query: "lighthouse unheard", Limit: new(8), CandidateLimit: new(8), Explain: true}
		gaps := func(res *SearchResult) (text, vector int) {
			if !res.Diagnostics.TextUsed || !res.Diagnostics.VectorUsed || len(res.Hits) != 8 {
				t.Fatalf("%s: %+v", fail, res)
			}
			for _, hit := range res.Hits {
				if x := hit.Explain; x.TextRank == 0 && x.TextScore == 0 {
					text++
				} else if x.VectorRank == 0 && x.VectorScore == 0 {
					vector++
				}
			}
			return text, vector
		}
		if text, vector := gaps(search(t, h.DB, req)); text+vector > 0 {
			t.Fatalf("%d and %d gaps", text, vector)
		}
		h.eng.setIndex(&gaplessIndex{h.eng.index.Load().Index, fail})
		if text, vector := gaps(search(t, h.DB, req)); text+vector == 0 {
			t.Errorf("%s: no gaps", fail)
		}
		if _, err := h.RebuildIndexes(t.Context()); err != nil {
			t.Fatal(err)
		}
		if text, vector := gaps(search(t, h.DB, req)); text+vector > 0 {
			t.Errorf("%s: %d and %d gaps after the rebuild", fail, text, vector)
		}
	}
}
