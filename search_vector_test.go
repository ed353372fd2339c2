package loci

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// hybrid is a store with a space and a model that tests tell what to do. Nothing
// is embedded but by sync.
type hybrid struct {
	*DB
	t     testing.TB
	model *fakeembed.Embedder
}

const hybridSpace = "v"

// newHybrid opens a store with a space of some encoding and the model bound.
func newHybrid(t testing.TB, encoding VectorEncoding, o *EmbedderOptions) *hybrid {
	t.Helper()
	h := &hybrid{t: t, model: fakeembed.New(64).Alike("lighthouse", "beacon", "pharos"),
		DB: openWith(t, t.TempDir(), &Options{Clock: newTestClock().Now, WaitForIndex: true, NoBackgroundEmbedding: true})}
	h.space(hybridSpace, encoding)
	h.bind(hybridSpace, o)
	return h
}

func (h *hybrid) space(id string, encoding VectorEncoding) {
	h.t.Helper()
	must[*Receipt[EmbeddingSpace]](h.t)(h.Embeddings().RegisterSpace(h.t.Context(), EmbeddingSpace{ID: id, Model: "bag of words", Dimension: 64, Encoding: encoding}))
}

func (h *hybrid) bind(space string, o *EmbedderOptions) {
	h.t.Helper()
	if err := h.Embeddings().RegisterEmbedder(h.t.Context(), space, h.model, o); err != nil {
		h.t.Fatal(err)
	}
	h.model.Forget()
}

// sync gives vectors to everything.
func (h *hybrid) sync() {
	h.t.Helper()
	if r := must[*Receipt[EmbeddingReport]](h.t)(h.Embeddings().Sync(h.t.Context(), hybridSpace, EmbeddingSyncOptions{})); r.Value.Interrupted != "" {
		h.t.Fatal(r.Value.Interrupted)
	}
	h.model.Forget()
}

// remember writes memories and gives them vectors.
func (h *hybrid) remember(judgments ...string) []ID {
	h.t.Helper()
	ids := remember(h.t, h.DB, judgments...)
	h.sync()
	return ids
}

func (h *hybrid) switchTier(tier Tier, on bool) {
	h.t.Helper()
	must[*Receipt[bool]](h.t)(h.Embeddings().SetVectorization(h.t.Context(), DefaultNamespace, tier, on))
}

func (h *hybrid) switchAll(on bool) {
	h.t.Helper()
	must[*Receipt[bool]](h.t)(h.Embeddings().SetNamespaceVectorization(h.t.Context(), DefaultNamespace, on))
}

// cosine is what the vectors of two texts say.
func (h *hybrid) cosine(a, b string) float64 {
	x, y := h.model.Vector(a), h.model.Vector(b)
	var dot, nx, ny float64
	for i := range x {
		dot, nx, ny = dot+float64(x[i])*float64(y[i]), nx+float64(x[i])*float64(x[i]), ny+float64(y[i])*float64(y[i])
	}
	return dot / math.Sqrt(nx*ny)
}

// wantDegraded searches and compares what the search says of itself.
func (h *hybrid) wantDegraded(req SearchRequest, hits int, vectors bool, codes ...Degrade) *SearchResult {
	h.t.Helper()
	res := search(h.t, h.DB, req)
	if res.Hits == nil || res.Diagnostics.VectorMissing == nil || len(res.Hits) != hits || res.Diagnostics.VectorUsed != vectors ||
		!slices.Equal(res.Diagnostics.Degraded, append([]Degrade{}, codes...)) {
		h.t.Errorf("%+v: %d hits, %+v; want %d, %v, %v", req, len(res.Hits), res.Diagnostics, hits, vectors, codes)
	}
	return res
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-5 }

func TestHybridCases(t *testing.T) {
	only := SearchRequest{Query: "lighthouse", NoText: true}
	t.Run("Q1", func(t *testing.T) {
		db := openReal(t, t.TempDir())
		remember(t, db, "lighthouse")
		for field, req := range map[string]SearchRequest{
			"query":   {Query: "  "},
			"no_text": {Query: "x", NoText: true, NoVector: true},
		} {
			_, err := db.Search(t.Context(), req)
			if e := wantCode(t, err, ErrValidation); e.Field != field {
				t.Error(e)
			}
		}
		_, err := db.Search(t.Context(), only)
		if e := wantCode(t, err, ErrValidation); e.Field != "no_text" {
			t.Error(e)
		}
		res := wantHits(t, db, SearchRequest{Query: "lighthouse"}, 1)
		if d := res.Diagnostics; d.VectorUsed || d.Exact || d.Degraded == nil || len(d.Degraded) != 0 || d.VectorMissing == nil || res.Hits[0].VectorScores == nil {
			t.Errorf("%+v", d)
		}
		_, err = db.SearchPreset(t.Context(), PresetRequest{Query: "lighthouse", NoText: true}) // P2
		wantCode(t, err, ErrValidation)
		// A space that nothing can search in is worth a word.
		must[*Receipt[EmbeddingSpace]](t)(db.Embeddings().RegisterSpace(t.Context(), EmbeddingSpace{ID: "v", Model: "m", Dimension: 4}))
		if res = wantHits(t, db, SearchRequest{Query: "lighthouse"}, 1); !slices.Equal(res.Diagnostics.Degraded, []Degrade{DegradeNoSpace}) {
			t.Errorf("%+v", res.Diagnostics)
		}
		_, err = db.Search(t.Context(), only)
		wantCode(t, err, ErrValidation)
	})
	t.Run("Q2", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		ids := h.remember("lighthouse")
		for _, c := range []struct {
			req  SearchRequest
			want float64
		}{
			{SearchRequest{NoVector: true}, 1.0 / 61},
			{SearchRequest{NoVector: true, TextWeight: new(2.0)}, 2.0 / 61},
			{SearchRequest{NoText: true}, 1.0 / 61},
			{SearchRequest{NoText: true, VectorWeight: new(3.0)}, 3.0 / 61},
			{SearchRequest{Fusion: FusionRRF}, 2.0 / 61},
			{SearchRequest{Fusion: FusionRRF, TextWeight: new(2.0), VectorWeight: new(0.5)}, 2.5 / 61},
			{SearchRequest{}, 1 + scoreVectorWeight},
			{SearchRequest{Fusion: FusionScore, VectorWeight: new(0.25)}, 1.25},
		} {
			c.req.Query = "lighthouse"
			res := wantHits(t, h.DB, c.req, ids...)
			hit, d := res.Hits[0], res.Diagnostics
			if math.Abs(hit.Score-c.want) > 1e-15 || hit.RerankScore != nil || (hit.TextScore != nil) == c.req.NoText || (len(hit.VectorScores) == 1) == c.req.NoVector {
				t.Errorf("%+v: %+v, want %v", c.req, hit, c.want)
			}
			if !c.req.NoVector && !near(hit.VectorScores[hybridSpace], 1) {
				t.Errorf("%+v: %v", c.req, hit.VectorScores)
			}
			if d.TextUsed == c.req.NoText || d.VectorUsed == c.req.NoVector || d.Exact == c.req.NoVector || len(d.Degraded) != 0 || len(d.VectorMissing) != 0 {
				t.Errorf("%+v: %+v", c.req, d)
			}
		}
		ids = append(ids, h.remember("a beacon")...)
		res := wantHits(t, h.DB, SearchRequest{Query: "lighthouse", Explain: true}, ids...)
		if hit := res.Hits[1]; hit.TextScore != nil || hit.Explain.TextRank != 0 || hit.Explain.VectorRank != 2 || hit.Explain.TextPart != 0 ||
			!near(hit.Explain.VectorScore, h.cosine("lighthouse", "a beacon")) || hit.VectorScores[hybridSpace] != hit.Explain.VectorScore {
			t.Errorf("%+v, %+v", hit, hit.Explain)
		}
	})
	t.Run("Q3", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.remember("one", "two", "three")
		h.wantDegraded(SearchRequest{Query: "four", NoVector: true}, 0, false)
	})
	t.Run("Q12", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.switchTier(TierNotes, true)
		writeNotes(t, h.DB, map[string]string{"a.md": "a lighthouse\n\nthe beacon\n\nfar away", "b.md": "lighthouse"})
		h.sync()
		res := h.wantDegraded(only, 2, true)
		for _, hit := range res.Hits {
			if hit.NoteChunks != nil || hit.TopChunks != nil {
				t.Errorf("%+v", hit)
			}
		}
		// Found by vectors, a note tells of its own chunk at least.
		res = h.wantDegraded(SearchRequest{Query: "pharos"}, 2, true)
		for _, hit := range res.Hits {
			if *hit.NoteChunks != 1 || len(hit.TopChunks) == 0 {
				t.Errorf("%+v", hit)
			}
		}
	})
	t.Run("Q13", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.switchTier(TierNotes, true)
		writeNotes(t, h.DB, map[string]string{"a.md": "a lighthouse\n\nthe beacon", "b.md": "lighthouse"})
		h.remember("lighthouse")
		all := search(t, h.DB, only).Hits
		if len(all) != 3 {
			t.Fatalf("%+v", all)
		}
		for _, hit := range all {
			c, ok := hit.Record.(*Chunk)
			if !ok {
				continue
			}
			for _, noText := range []bool{false, true} {
				res := search(t, h.DB, SearchRequest{Query: "lighthouse", NoText: noText, Filter: ReadFilter{NoteIDs: []ID{c.NoteID}}})
				if len(res.Hits) != 1 || res.Hits[0].Record.(*Chunk).NoteID != c.NoteID {
					t.Errorf("%+v", res.Hits)
				}
			}
		}
		h.wantDegraded(SearchRequest{Query: "lighthouse", NoText: true, Filter: ReadFilter{NoteIDs: []ID{99999}}}, 0, true)
	})
	t.Run("Q14", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		ids := entities(t, h.DB, "Aldous", "Brenda", "Lighthouse")
		relate(t, h.DB, relates(ids[0], "knows", ids[1]))
		far := entities(t, h.DB, "Far")[0]
		relate(t, h.DB, relates(ids[1], "knows", far))
		h.remember("lighthouse")
		found := func(req SearchRequest) (got []ID) {
			t.Helper()
			for _, hit := range search(t, h.DB, req).Hits {
				if e, ok := hit.Record.(*Entity); ok {
					got = append(got, e.ID)
				} else {
					got = append(got, 0)
				}
			}
			slices.Sort(got)
			return got
		}
		around := func(depth, limit int) *GraphPrune { return &GraphPrune{Root: ids[0], Depth: depth, Limit: limit} }
		for _, c := range []struct {
			req  SearchRequest
			want []ID
		}{
			{SearchRequest{NoText: true, Prune: around(1, 64)}, ids[:2]},
			{SearchRequest{NoText: true, Prune: around(2, 64)}, []ID{ids[0], ids[1], far}},
			{SearchRequest{NoText: true, Prune: around(2, 2)}, ids[:2]},
			{SearchRequest{NoText: true, Prune: around(2, 1)}, ids[:1]},
			{SearchRequest{Prune: around(1, 64)}, append([]ID{0}, ids...)}, // by text: the memory and the third one
			{SearchRequest{Prune: around(1, 64), Fusion: FusionRRF}, append([]ID{0}, ids...)},
			{SearchRequest{NoText: true, Prune: around(1, 64), Kinds: []Kind{KindMemory}}, nil},
			{SearchRequest{Prune: around(1, 64), Kinds: []Kind{KindMemory}}, []ID{0}},
		} {
			c.req.Query = "lighthouse"
			if got := found(c.req); !slices.Equal(got, c.want) {
				t.Errorf("%+v: %v, want %v", c.req.Prune, got, c.want)
			}
		}
		for field, p := range map[string]GraphPrune{"prune.depth": {ids[0], 0, 1}, "prune.limit": {ids[0], 1, 0}} {
			_, err := h.Search(t.Context(), SearchRequest{Query: "x", Prune: &p})
			if e := wantCode(t, err, ErrValidation); e.Field != field {
				t.Error(e)
			}
		}
		_, err := h.Search(t.Context(), SearchRequest{Query: "x", Prune: &GraphPrune{Root: ids[0], Depth: 1, Limit: 10001}})
		wantCode(t, err, ErrValidation)
		for _, f := range []ReadFilter{{}, scoped("private")} {
			root := ids[0]
			if f.Scopes == nil {
				root = 9999
			}
			_, err = h.Search(t.Context(), SearchRequest{Query: "x", Filter: f, Prune: &GraphPrune{Root: root, Depth: 1, Limit: 1}})
			if e := wantCode(t, err, ErrNotFound); e.Field != "prune.root" {
				t.Error(e)
			}
		}
		h.wantDegraded(SearchRequest{Query: "lighthouse", NoVector: true, Prune: &GraphPrune{Root: 9999, Depth: 1, Limit: 1}}, 2, false)
	})
	t.Run("Q15", func(t *testing.T) {
		h := newHybrid(t, EncodingF32, nil)
		ids := rememberAll(t, h.DB, in(PublicScope, "beacon"), in("private", "pharos"))
		h.sync()
		wantHits(t, h.DB, only, ids[0])
		wantHits(t, h.DB, SearchRequest{Query: "lighthouse", NoText: true, Filter: scoped("private")}, ids[1])
		wantHits(t, h.DB, SearchRequest{Query: "lighthouse", NoText: true, Filter: scoped("private", PublicScope)}, ids...)
		h.wantDegraded(SearchRequest{Query: "lighthouse", NoText: true, Filter: scoped("nobody's")}, 0, true)
		h.wantDegraded(SearchRequest{Query: "lighthouse", NoText: true, Filter: ReadFilter{Namespace: new("nobody's")}}, 0, false)
	})
	t.Run("Q17", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.remember("lighthouse")
		for _, w := range []float64{0, -1, math.NaN(), math.Inf(1)} {
			_, err := h.Search(t.Context(), SearchRequest{Query: "x", VectorWeight: &w})
			if e := wantCode(t, err, ErrValidation); e.Field != "vector_weight" {
				t.Error(e)
			}
		}
		h.wantDegraded(SearchRequest{Query: "lighthouse", NoVector: true, EmbedSpace: "unknown"}, 1, false)
		if calls := h.model.Calls(); len(calls) != 0 {
			t.Errorf("the model was asked for nothing: %v", calls)
		}
	})
}

func TestDegradeCases(t *testing.T) {
	req := SearchRequest{Query: "lighthouse", EmbedSpace: hybridSpace}
	with := func(change func(r *SearchRequest)) SearchRequest {
		r := req
		change(&r)
		return r
	}
	unknown := with(func(r *SearchRequest) { r.EmbedSpace = "unknown" })
	noText := with(func(r *SearchRequest) { r.NoText = true })
	t.Run("X1", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.remember("lighthouse")
		h.switchAll(false)
		h.wantDegraded(req, 1, false, DegradeNamespaceDisabled)
		h.wantDegraded(unknown, 1, false, DegradeNamespaceDisabled)
		h.wantDegraded(SearchRequest{Query: "lighthouse"}, 1, false, DegradeNamespaceDisabled)
		h.wantDegraded(noText, 0, false, DegradeNamespaceDisabled)
		h.switchAll(true)
		h.wantDegraded(req, 1, true)
	})
	t.Run("X2", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.remember("lighthouse")
		h.switchTier(TierMemory, false)
		memories := func(r *SearchRequest) { r.Kinds = []Kind{KindMemory} }
		h.wantDegraded(with(memories), 1, false)
		h.wantDegraded(with(func(r *SearchRequest) { memories(r); r.NoText = true }), 0, false)
		h.wantDegraded(with(func(r *SearchRequest) { memories(r); r.EmbedSpace = "unknown" }), 1, false)
		h.wantDegraded(with(func(r *SearchRequest) { r.Kinds = []Kind{KindChunk}; r.NoText = true }), 0, false)
		h.switchTier(TierMemory, true)
		h.wantDegraded(noText, 1, true) // nothing was deleted
	})
	t.Run("X3", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.remember("lighthouse")
		for range 2 { // with a model, and without
			_, err := h.Search(t.Context(), unknown)
			if e := wantCode(t, err, ErrNotFound); e.Field != "embed_space" {
				t.Error(e)
			}
			_, err = h.SearchPreset(t.Context(), PresetRequest{Query: "lighthouse", EmbedSpace: "unknown"})
			wantCode(t, err, ErrNotFound)
			_, err = h.SearchWithContext(t.Context(), unknown, nil)
			wantCode(t, err, ErrNotFound)
			h.Embeddings().UnregisterEmbedder(hybridSpace)
		}
	})
	t.Run("X4", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		remember(t, h.DB, "lighthouse", "beacon")
		entities(t, h.DB, "Beacon")
		h.wantDegraded(req, 1, false, DegradeVectorNotReady)
		h.wantDegraded(noText, 0, false, DegradeVectorNotReady)
		if calls := h.model.Calls(); len(calls) != 0 {
			t.Errorf("asked without need: %v", calls)
		}
		h.Embeddings().UnregisterEmbedder(hybridSpace)
		h.wantDegraded(req, 1, false, DegradeVectorNotReady)
		h.bind(hybridSpace, nil)
		h.switchTier(TierGraph, false)
		h.sync()
		h.switchTier(TierGraph, true)
		// One of two tiers has vectors: it takes part, and the other is told of.
		res := h.wantDegraded(req, 2, true)
		if want := []VectorMissing{{TierGraph, 1, 1}}; !slices.Equal(res.Diagnostics.VectorMissing, want) {
			t.Errorf("%+v, want %+v", res.Diagnostics.VectorMissing, want)
		}
		remember(t, h.DB, "pharos")
		res = h.wantDegraded(req, 2, true)
		if want := []VectorMissing{{TierMemory, 1, 3}, {TierGraph, 1, 1}}; !slices.Equal(res.Diagnostics.VectorMissing, want) {
			t.Errorf("%+v, want %+v", res.Diagnostics.VectorMissing, want)
		}
		ready := with(func(r *SearchRequest) { r.RequireReady = true })
		h.wantDegraded(ready, 1, false, DegradeVectorNotReady)
		h.sync()
		if res = h.wantDegraded(ready, 4, true); len(res.Diagnostics.VectorMissing) != 0 {
			t.Errorf("%+v", res.Diagnostics)
		}
		// A write takes its own tier out, not the other.
		entities(t, h.DB, "Pharos")
		h.wantDegraded(ready, 3, true)
		// Nothing to compare with is nothing to tell of.
		h.wantDegraded(SearchRequest{Query: "x", Filter: ReadFilter{Namespace: new("empty")}}, 0, false)
	})
	t.Run("X5", func(t *testing.T) {
		h := newHybrid(t, EncodingSQ8, nil)
		h.remember("lighthouse")
		h.Embeddings().UnregisterEmbedder(hybridSpace)
		h.wantDegraded(req, 1, false, DegradeNoEmbedder)
		h.wantDegraded(noText, 0, false, DegradeNoEmbedder)
		must[*Receipt[string]](t)(h.Embeddings().SetDefaultSpace(t.Context(), DefaultNamespace, hybridSpace))
		h.wantDegraded(SearchRequest{Query: "lighthouse"}, 1, false, DegradeNoEmbedder)
		h.space("w", EncodingSQ8)
		h.bind("w", nil) // another space's embedder is of no use
		h.wantDegraded(req, 1, false, DegradeNoEmbedder)
		h.bind(hybridSpace, nil)
		h.eng.models.embedIn = 50 * time.Millisecond
		defer h.model.Release()
		for _, fault := range []fakeembed.Fault{fakeembed.Fails, fakeembed.Hangs, fakeembed.NaN, fakeembed.Zeros, fakeembed.TooFew, fakeembed.TooMany,
			fakeembed.WrongDimension, fakeembed.TooLarge, fakeembed.RateLimited, fakeembed.Panics, fakeembed.HangsForGood} {
			h.model.Fail(fault)
			h.wantDegraded(req, 1, false, DegradeEmbedFailed)
			h.wantDegraded(noText, 0, false, DegradeEmbedFailed)
			got := must[*PresetResult](t)(h.SearchPreset(t.Context(), PresetRequest{Query: "lighthouse"}))
			if len(got.Memories) != 1 || !slices.Equal(got.Diagnostics.Degraded, []Degrade{DegradeEmbedFailed}) {
				t.Errorf("fault %d: %+v", fault, got)
			}
		}
		h.model.Fail(fakeembed.None)
		h.wantDegraded(req, 1, true)
		seen := must[*HealthReport](t)(h.Health(t.Context())).LastDegraded
		slices.Sort(seen)
		if !slices.Equal(seen, []Degrade{DegradeEmbedFailed, DegradeNoEmbedder}) {
			t.Errorf("%v", seen)
		}
	})
	t.Run("X6", func(t *testing.T) {
		for _, encoding := range []VectorEncoding{EncodingSQ8, EncodingF32} {
			h := newHybrid(t, encoding, nil)
			h.switchTier(TierNotes, true)
			writeNotes(t, h.DB, map[string]string{"a.md": "a lighthouse at night\n\nthe beacon and the sea", "b.md": "lighthouse and more"})
			ids := rememberAll(t, h.DB, in(PublicScope, "a beacon is lit"), in("private", "pharos"), MemoryInput{Judgment: "lighthouse keepers", RecordInput: RecordInput{Tags: []string{"t"}}})
			entities(t, h.DB, "Beacon", "Other")
			h.sync()
			vectorOnly := with(func(r *SearchRequest) { r.NoText = true })
			whole := h.wantDegraded(vectorOnly, 6, true)
			h.eng.setIndex(nil)
			res := h.wantDegraded(req, 6, true, DegradeTextIndexUnavailable)
			if res.Diagnostics.TextUsed || !res.Diagnostics.Exact {
				t.Errorf("%+v", res.Diagnostics)
			}
			for i := range res.Hits {
				if res.Hits[i].Key != whole.Hits[i].Key || !near(res.Hits[i].VectorScores[hybridSpace], whole.Hits[i].VectorScores[hybridSpace]) {
					t.Errorf("hit %d: %+v, want %+v", i, res.Hits[i], whole.Hits[i])
				}
			}
			h.wantDegraded(vectorOnly, 6, true)
			wantHits(t, h.DB, SearchRequest{Query: "lighthouse", Limit: new(1), CandidateLimit: new(1), Kinds: []Kind{KindMemory}, Filter: ReadFilter{Tags: []string{"t"}}}, ids[2])
			// A large store is not gone through for ever.
			h.eng.models.truthScan = 2
			if res = search(t, h.DB, vectorOnly); len(res.Hits) != 2 || res.Diagnostics.Exact {
				t.Errorf("%d hits, %+v", len(res.Hits), res.Diagnostics)
			}
			h.Close()
			_, err := h.Search(t.Context(), req)
			wantCode(t, err, ErrClosed)
		}
	})
}

// meddler is a model that does something else while it embeds.
type meddler struct {
	embed.Embedder
	meddle func()
}

func (m *meddler) Embed(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if p == embed.Query && m.meddle != nil {
		m.meddle()
	}
	return m.Embedder.Embed(ctx, texts, p)
}

// TestSpaceGoesDuringSearch deletes what a search is about to look at while its
// query is embedded. The search answers by text and says why.
func TestSpaceGoesDuringSearch(t *testing.T) {
	for name, c := range map[string]struct {
		meddle func(h *hybrid)
		code   Degrade
	}{
		"the space": {func(h *hybrid) {
			must[*Receipt[bool]](h.t)(h.Embeddings().DeleteSpace(h.t.Context(), hybridSpace))
		}, DegradeNoSpace},
		"and another comes": {func(h *hybrid) {
			must[*Receipt[bool]](h.t)(h.Embeddings().DeleteSpace(h.t.Context(), hybridSpace))
			h.space(hybridSpace, EncodingF32)
		}, DegradeNoSpace},
		"the namespace's switch": {func(h *hybrid) { h.switchAll(false) }, DegradeNamespaceDisabled},
		"the records": {func(h *hybrid) {
			must[*Receipt[int64]](h.t)(h.Memories().DeleteByFilter(h.t.Context(), DeleteRequest{Filter: ReadFilter{}}))
		}, ""},
	} {
		for _, asked := range []string{"", hybridSpace} {
			t.Run(name+" "+asked, func(t *testing.T) {
				h := newHybrid(t, EncodingSQ8, nil)
				h.remember("lighthouse")
				m := &meddler{Embedder: h.model}
				if err := h.Embeddings().RegisterEmbedder(t.Context(), hybridSpace, m, nil); err != nil {
					t.Fatal(err)
				}
				m.meddle = func() { m.meddle = nil; c.meddle(h) }
				res := search(t, h.DB, SearchRequest{Query: "lighthouse", EmbedSpace: asked})
				hits, codes := 1, []Degrade{c.code}
				if c.code == "" {
					hits, codes = 0, []Degrade{}
				}
				if len(res.Hits) != hits || res.Diagnostics.VectorUsed || !slices.Equal(res.Diagnostics.Degraded, codes) {
					t.Errorf("%d hits, %+v", len(res.Hits), res.Diagnostics)
				}
			})
		}
	}
}

// TestCallerLeaves holds that a search whose caller has gone is no degraded one.
func TestCallerLeaves(t *testing.T) {
	h := newHybrid(t, EncodingSQ8, nil)
	h.remember("lighthouse")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	h.model.Fail(fakeembed.Hangs)
	_, err := h.Search(ctx, SearchRequest{Query: "lighthouse"})
	wantCode(t, err, ErrCanceled)
	h.model.Fail(fakeembed.None)
}

// TestEmbedderDefaults holds that an embedder's weight and fusion are used, and
// that the request goes before them.
func TestEmbedderDefaults(t *testing.T) {
	h := newHybrid(t, EncodingSQ8, &EmbedderOptions{VectorWeight: new(0.5), Fusion: FusionRRF})
	h.remember("lighthouse")
	for _, c := range []struct {
		req  SearchRequest
		want float64
	}{
		{SearchRequest{}, 1.5 / 61},
		{SearchRequest{VectorWeight: new(2.0)}, 3.0 / 61},
		{SearchRequest{Fusion: FusionScore}, 1.5},
		{SearchRequest{NoVector: true}, 1.0 / 61},
	} {
		c.req.Query = "lighthouse"
		if got := search(t, h.DB, c.req).Hits[0].Score; math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%+v: %v, want %v", c.req, got, c.want)
		}
	}
	if calls := h.model.Calls(); len(calls) != 3 || calls[0].Purpose != embed.Query || !slices.Equal(calls[0].Texts, []string{"lighthouse"}) {
		t.Errorf("%+v", calls)
	}
}

// TestVectorEvents is L1 and L2 for the stages of vectors.
func TestVectorEvents(t *testing.T) {
	h := newHybrid(t, EncodingSQ8, nil)
	h.remember("lighthouse", "beacon")
	r := &recorder{}
	listen(t, h.DB, r.sink)
	search(t, h.DB, SearchRequest{Query: "lighthouse"})
	search(t, h.DB, SearchRequest{Query: "lighthouse", NoVector: true})
	search(t, h.DB, SearchRequest{Query: "lighthouse", NoText: true})
	preset(t, h.DB, PresetRequest{Query: "lighthouse"})
	events := r.settled(t, h.DB)
	want := []string{"embed prepare text vector fuse fold load", "prepare text fuse fold load", "embed prepare vector fuse fold load", "embed prepare text vector fuse fold load"}
	if len(events) != len(want) {
		t.Fatalf("%d events", len(events))
	}
	for i, ev := range events {
		stages := strings.Fields(want[i])
		for _, s := range stages {
			if _, ok := ev.Stages[s]; !ok {
				t.Errorf("event %d: no stage %s in %v", i, s, ev.Stages)
			}
		}
		if len(ev.Stages) != len(stages) {
			t.Errorf("event %d: %v, want %v", i, ev.Stages, stages)
		}
	}
	if events[0].Candidates != 2 || events[1].Candidates != 1 || events[2].Candidates != 2 {
		t.Errorf("%+v", events)
	}
}

// TestVectorNotes holds that one note of many chunks does not fill the window of
// the vector path, and that its chunks fold.
func TestVectorNotes(t *testing.T) {
	h := newHybrid(t, EncodingSQ8, nil)
	h.switchTier(TierNotes, true)
	writeNotes(t, h.DB, map[string]string{"long.md": strings.Repeat("lighthouse\n\n", 150), "a.md": "the beacon of the sea", "b.md": "a pharos on an isle in the sea"})
	h.sync()
	res := h.wantDegraded(SearchRequest{Query: "lighthouse", NoText: true}, 3, true)
	if res.Hits[0].VectorScores[hybridSpace] < 0.99 {
		t.Errorf("%+v", res.Hits[0])
	}
	h.wantDegraded(SearchRequest{Query: "lighthouse", NoText: true, Limit: new(2), CandidateLimit: new(5)}, 1, true)
}

// TestVectorNeighbours holds that a turn next to a good one gains by it, and comes
// in by it, in the vector path.
func TestVectorNeighbours(t *testing.T) {
	for _, encoding := range []VectorEncoding{EncodingSQ8, EncodingF32} {
		h := newHybrid(t, encoding, nil)
		filler := make([]MemoryInput, 30)
		for i := range filler {
			filler[i] = turn("other", int64(i), fmt.Sprintf("the sea number%d and the isle", i))
		}
		rememberAll(t, h.DB, filler...)
		ids := rememberAll(t, h.DB, turn("talk", 1, "what was it then"), turn("talk", 2, "lighthouse"), turn("talk", 3, "certainly so"),
			MemoryInput{Judgment: "on its own"})
		h.sync()
		req := SearchRequest{Query: "pharos", NoText: true, Limit: new(3), CandidateLimit: new(3), Explain: true, NeighbourWeight: 1}
		res := search(t, h.DB, req)
		got := hitIDs(res)
		slices.Sort(got)
		if !slices.Equal(got, ids[:3]) {
			t.Fatalf("%v, want %v", got, ids[:3])
		}
		for _, hit := range res.Hits {
			if hit.Record.(*Memory).ID == ids[1] {
				continue
			}
			floor := 1 - hit.Explain.VectorNeighbourAdd
			if x := hit.Explain; x.VectorNeighbourAdd <= 0 || floor < -1 || floor > 1 || x.VectorRank == 0 ||
				!near(x.VectorScore, h.cosine("pharos", hit.Record.(*Memory).Judgment)) {
				t.Errorf("%+v", x)
			}
		}
		// Scopes and tags keep neighbours apart as they do hits.
		req.Filter = scoped("private")
		if res = search(t, h.DB, req); len(res.Hits) != 0 {
			t.Errorf("%+v", res.Hits)
		}
	}
}

// TestVectorThreads ranks threads by vectors, and adds a thread's share.
func TestVectorThreads(t *testing.T) {
	h := newHybrid(t, EncodingSQ8, nil)
	private := turn("talk", 1, "the pharos of old")
	private.Scope = new("private")
	ids := rememberAll(t, h.DB, turn("talk", 1, "the lighthouse"), turn("talk", 2, "a beacon on an isle"), turn("chat", 1, "an isle in the sea"), private,
		MemoryInput{Judgment: "a beacon of its own"})
	h.sync()
	for _, noText := range []bool{true, false} {
		res := search(t, h.DB, SearchRequest{Query: "lighthouse", NoText: noText, GroupBy: GroupThread, Filter: scoped(PublicScope, "private")})
		keys := map[string]int{}
		for _, hit := range res.Hits {
			keys[hit.Key]++
		}
		if len(res.Hits) != 4 || keys["thread:talk"] != 2 || keys["thread:chat"] != 1 || res.Hits[0].Record.(*Memory).ID != ids[0] {
			t.Errorf("%v, %+v", keys, res.Hits)
		}
	}
	// By its words the thread's best is another record than by its vectors.
	res := search(t, h.DB, SearchRequest{Query: "isle pharos", GroupBy: GroupThread})
	seen := map[string]bool{}
	for _, hit := range res.Hits {
		if seen[hit.Key] {
			t.Errorf("%s twice", hit.Key)
		}
		seen[hit.Key] = true
	}
	res = search(t, h.DB, SearchRequest{Query: "pharos", NoText: true, ThreadWeight: 0.5, Explain: true})
	for _, hit := range res.Hits {
		if (hit.Explain.VectorThreadAdd > 0) != (hit.Record.(*Memory).Thread == "talk") && hit.Record.(*Memory).Thread != "chat" {
			t.Errorf("%+v", hit.Explain)
		}
	}
}

// TestVectorPreset holds that presets look at vectors where hits are found by what
// they say, and never where they are found by names.
func TestVectorPreset(t *testing.T) { // P11, P12
	h := newHybrid(t, EncodingSQ8, nil)
	h.switchTier(TierNotes, true)
	writeNotes(t, h.DB, map[string]string{"pharos/pharos.md": "nothing", "b.md": "the beacon is lit"})
	entities(t, h.DB, "Beacon")
	h.remember("a beacon")
	remember(t, h.DB, "one without a vector")
	got := must[*PresetResult](t)(h.SearchPreset(t.Context(), PresetRequest{Preset: PresetBroad, Query: "lighthouse"}))
	n := got.Notes
	if len(got.Memories) != 1 || len(got.Graph.Entities) != 1 || len(n.Titles) != 0 || len(n.Paths) != 0 || len(n.Contents) != 2 {
		t.Errorf("%+v", got)
	}
	d := got.Diagnostics
	if !d.TextUsed || !d.VectorUsed || !d.Exact || len(d.Degraded) != 0 || !slices.Equal(d.VectorMissing, []VectorMissing{{TierMemory, 1, 2}}) {
		t.Errorf("%+v", d)
	}
	if calls := h.model.Calls(); len(calls) != 1 {
		t.Errorf("the query was embedded %d times", len(calls))
	}
	got = must[*PresetResult](t)(h.SearchPreset(t.Context(), PresetRequest{Preset: PresetNotes, Query: "pharos", NoText: true}))
	if len(got.Notes.Titles) != 1 || len(got.Notes.Contents) != 1 || got.Notes.Titles[0].TextScore == nil || got.Notes.Contents[0].TextScore != nil {
		t.Errorf("%+v", got.Notes)
	}
	got = must[*PresetResult](t)(h.SearchPreset(t.Context(), PresetRequest{Preset: PresetBroad, Query: "lighthouse", NoVector: true}))
	if len(got.Memories)+len(got.Graph.Entities)+len(got.Notes.Contents) != 0 || got.Diagnostics.VectorUsed {
		t.Errorf("%+v", got)
	}
	h.switchAll(false)
	got = must[*PresetResult](t)(h.SearchPreset(t.Context(), PresetRequest{Preset: PresetBroad, Query: "beacon"}))
	if !slices.Equal(got.Diagnostics.Degraded, []Degrade{DegradeNamespaceDisabled}) || len(got.Memories) != 1 {
		t.Errorf("%+v", got.Diagnostics)
	}
}
