package bench

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
)

// The made-up vectors: what a text's vector is depends on the text alone.
const (
	vectorDimension = 384
	vectorClusters  = 400
	vectorSpread    = 0.6   // of a text around its cluster, to a cluster's own length of 1
	spacedRecords   = 20000 // loaded with and without a space
	embedRounds     = 60
)

// A Model is the embedder that a run measures besides the engine.
type Model struct {
	Name     string
	Embedder embed.Embedder
}

// SpacedReport is what a space of vectors costs loading.
type SpacedReport struct {
	Space string `json:"space"` // "none", "worker off", "worker on"
	Throughput
	// ReadySeconds is how long after the last write nothing lacked a vector; the
	// made-up embedder itself takes next to nothing.
	ReadySeconds float64 `json:"ready_s"`
}

// VectorReport is the cost of one path of searches under one filter.
type VectorReport struct {
	Path      string  `json:"path"`   // "vector", "hybrid", "hybrid, embedded"
	Filter    string  `json:"filter"` // "none", "10 %", "1 %", "0.1 %"
	Latency   Latency `json:"latency"`
	CPUMicros float64 `json:"cpu_us"` // mean, of the whole process
	// Recall is the mean share of the ten nearest that the search found, as an
	// exact one finds them, and Exact the share of searches that were exact
	// anyway. Both are of the path of vectors alone.
	Recall float64 `json:"recall,omitempty"`
	Exact  float64 `json:"exact,omitempty"`
}

// EmbedReport is what a model costs.
type EmbedReport struct {
	What      string  `json:"what"`
	Texts     int     `json:"texts"`
	CPUMS     float64 `json:"cpu_ms"`    // a text
	PerCPUSec float64 `json:"per_cpu_s"` // texts
	WallMS    float64 `json:"wall_ms"`   // a text
}

// clustered is an embedder of made-up vectors. It has the model embed queries as
// well, and pay for it, when there is one.
type clustered struct {
	centers [][]float32
	model   embed.Embedder
}

func newClustered(seed uint64) *clustered {
	c := &clustered{}
	r := newRandom(seed, 1<<43)
	for range vectorClusters {
		c.centers = append(c.centers, direction(r))
	}
	return c
}

// direction draws a vector of length about 1.
func direction(r *random) []float32 {
	v := make([]float32, vectorDimension)
	for i := range v {
		// A sum of uniform numbers is as good as a normal one here.
		x := -2.0
		for range 4 {
			x += r.float()
		}
		v[i] = float32(x * 0.0885) // 1 / sqrt(384/3)
	}
	return v
}

// Embed implements embed.Embedder.
func (c *clustered) Embed(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if c.model != nil && p == embed.Query {
		if _, err := c.model.Embed(ctx, texts, p); err != nil {
			return nil, err
		}
	}
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = c.vector(text)
	}
	return out, nil
}

// vector is the vector of a text.
func (c *clustered) vector(text string) []float32 {
	h := fnv.New64a()
	h.Write([]byte(text))
	r := newRandom(h.Sum64(), 1<<44)
	v := direction(r)
	center := c.centers[r.below(len(c.centers))]
	for j := range v {
		v[j] = center[j] + vectorSpread*v[j]
	}
	return v
}

// space is the id of the space of made-up vectors.
const space = "made up"

func bindTo(ctx context.Context, db *loci.DB, e embed.Embedder) error {
	_, err := db.Embeddings().RegisterSpace(ctx, loci.EmbeddingSpace{ID: space, Model: space, Dimension: vectorDimension})
	if err != nil {
		return err
	}
	return db.Embeddings().RegisterEmbedder(ctx, space, e, &loci.EmbedderOptions{MaxBatch: new(batchSize)})
}

// elsewhere runs f on a store of its own, so that vectors cost the other phases
// nothing.
func (r *run) elsewhere(o loci.Options, f func(db *loci.DB) error) (err error) {
	dir, err := os.MkdirTemp("", "loci-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := loci.Open(r.ctx, dir, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return f(db)
}

// load writes the first n records in batches.
func (r *run) load(db *loci.DB, n int, m *meter) error {
	for from := 0; from < n; from += batchSize {
		batch := slices.Collect(r.corpus.Records(from, min(from+batchSize, n)))
		err := m.measure(func() error {
			_, err := db.Memories().UpsertMany(r.ctx, batch)
			return err
		})
		if err != nil {
			return err
		}
		if r.Progress != nil {
			r.Progress(from+len(batch), n)
		}
	}
	return nil
}

// vector measures searches by made-up vectors, alone and beside the text.
func (r *run) vector() error {
	made := newClustered(r.Seed)
	for _, how := range []string{"none", "worker off", "worker on"} {
		s, err := r.spaced(how, made)
		if err != nil {
			return err
		}
		r.report.Spaced = append(r.report.Spaced, s)
	}
	return r.elsewhere(loci.Options{NoBackgroundEmbedding: true}, func(db *loci.DB) error {
		r.say("loading %d records and their vectors", r.Records)
		var m meter
		if err := r.load(db, r.Records, &m); err != nil {
			return err
		}
		if err := bindTo(r.ctx, db, made); err != nil {
			return err
		}
		var sync meter
		if err := sync.measure(func() error {
			receipt, err := db.Embeddings().Sync(r.ctx, space, loci.EmbeddingSyncOptions{Batch: new(batchSize)})
			if err == nil && !receipt.Value.Ready {
				err = fmt.Errorf("vectors are missing after a sync: %+v", receipt.Value)
			}
			return err
		}); err != nil {
			return err
		}
		r.report.VectorSync = sync.throughput(r.Records)
		paths := []string{"vector", "hybrid"}
		if r.Model != nil {
			paths = append(paths, "hybrid, embedded")
		}
		for _, path := range paths {
			r.say("searching: %s", path)
			made.model = nil
			if path == "hybrid, embedded" {
				made.model = r.Model.Embedder
			}
			for _, f := range filters() {
				v, err := r.searchVectors(db, path, f.name, f.tag)
				if err != nil {
					return err
				}
				r.report.Vector = append(r.report.Vector, v)
			}
		}
		return nil
	})
}

// spaced loads records into a store with no space, with one, and with one that
// the background fills.
func (r *run) spaced(how string, made *clustered) (s SpacedReport, err error) {
	n := min(r.Records, spacedRecords)
	r.say("loading %d records, space: %s", n, how)
	s.Space = how
	err = r.elsewhere(loci.Options{NoBackgroundEmbedding: how != "worker on"}, func(db *loci.DB) error {
		if how != "none" {
			if err := bindTo(r.ctx, db, made); err != nil {
				return err
			}
		}
		var m meter
		if err := r.load(db, n, &m); err != nil {
			return err
		}
		s.Throughput = *m.throughput(n)
		if how != "worker on" {
			return nil
		}
		begin := time.Now()
		// A sync waits for the one in the background.
		_, err := db.Embeddings().Sync(r.ctx, space, loci.EmbeddingSyncOptions{})
		s.ReadySeconds = time.Since(begin).Seconds()
		return err
	})
	return s, err
}

// searchVectors measures one path under one filter.
func (r *run) searchVectors(db *loci.DB, path, filter, tag string) (VectorReport, error) {
	out := VectorReport{Path: path, Filter: filter}
	var requests []loci.SearchRequest
	for _, class := range []Class{EnglishQuestion, ChineseQuestion} {
		for _, q := range r.queries[class] {
			req := loci.SearchRequest{Query: q, Limit: new(searchLimit), NoText: path == "vector"}
			if tag != "" {
				req.Filter.Tags = []string{tag}
			}
			requests = append(requests, req)
		}
	}
	for _, req := range requests { // a first round that is not measured
		result, err := db.Search(r.ctx, req)
		if err != nil {
			return out, err
		}
		if d := result.Diagnostics; !d.VectorUsed || len(d.Degraded) > 0 {
			return out, fmt.Errorf("a search was degraded: %+v", d)
		}
		if path != "vector" {
			continue
		}
		if result.Diagnostics.Exact {
			out.Exact += 1 / float64(len(requests))
		}
		req.Exact = true
		exact, err := db.Search(r.ctx, req)
		if err != nil {
			return out, err
		}
		out.Recall += shared(result.Hits, exact.Hits) / float64(len(requests))
	}
	took := make([]time.Duration, 0, r.samples+len(requests))
	var m meter
	err := m.measure(func() error {
		for len(took) < r.samples {
			for _, req := range requests {
				begin := time.Now()
				if _, err := db.Search(r.ctx, req); err != nil {
					return err
				}
				took = append(took, time.Since(begin))
			}
		}
		return nil
	})
	out.CPUMicros = ratio(microseconds(m.cpu), float64(len(took)))
	out.Latency = newLatency(took)
	return out, err
}

// shared is the share of want that is among got; 1 when nothing is wanted.
func shared(got, want []loci.SearchHit) float64 {
	if len(want) == 0 {
		return 1
	}
	n := 0
	for _, w := range want {
		if slices.ContainsFunc(got, func(g loci.SearchHit) bool { return g.Key == w.Key }) {
			n++
		}
	}
	return float64(n) / float64(len(want))
}

// embed measures the model on questions of two lengths, one at a time, and on
// many passages.
func (r *run) embed() error {
	if r.Model == nil {
		r.say("there is no model to measure")
		return nil
	}
	r.say("embedding by %s", r.Model.Name)
	const short = "what is the best time to see the old sea wall"
	const passage = "The keeper of the light wrote in the log that the wind had gone to the north in the night, and that two boats had come in late with their nets torn and no fish"
	for _, c := range []struct {
		what    string
		text    string
		purpose embed.Purpose
		calls   int
		texts   int
	}{
		{"question of about 16 tokens", short, embed.Query, embedRounds, 1},
		{"question of about 64 tokens", strings.Repeat(short+" ", 5), embed.Query, embedRounds, 1},
		{"passages of about 40 tokens, 32 at a time", passage, embed.Passage, embedRounds / 10, 32},
	} {
		texts := slices.Repeat([]string{c.text}, c.texts)
		if _, err := r.Model.Embedder.Embed(r.ctx, texts, c.purpose); err != nil { // not measured: it may load the model
			return err
		}
		var m meter
		if err := m.measure(func() error {
			for range c.calls {
				if _, err := r.Model.Embedder.Embed(r.ctx, texts, c.purpose); err != nil {
					return err
				}
			}
			return nil
		}); err != nil {
			return err
		}
		n := float64(c.calls * c.texts)
		r.report.Embed = append(r.report.Embed, EmbedReport{What: c.what, Texts: int(n),
			CPUMS: m.cpu.Seconds() * 1000 / n, WallMS: m.wall.Seconds() * 1000 / n, PerCPUSec: ratio(n, m.cpu.Seconds())})
	}
	return nil
}
