package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/eval"
)

// taskPairs is the task that rates an embedder alone.
const taskPairs = "sts"

// isPairs says whether a task is one of pairs of sentences.
func isPairs(root, task string) bool {
	files, err := filepath.Glob(filepath.Join(root, task, "*_test.tsv"))
	return err == nil && len(files) > 0
}

// embedBatch is how many texts are embedded between two signs of progress.
const embedBatch = 64

// embed gives every document of a set its vector, and has the queries' ready, so
// that they count in no search.
func (e *evaluation) embed(ctx context.Context, db *loci.DB, set *eval.Set) error {
	if e.model == nil {
		return nil
	}
	p := e.app.Progress("Embedding " + set.Task)
	defer p.Close()
	texts, took := e.cache.Cost()
	batch := embedBatch
	receipt, err := db.Embeddings().Sync(ctx, e.model.ID, loci.EmbeddingSyncOptions{Batch: &batch, Progress: p.Update})
	if err != nil {
		return err
	}
	if r := receipt.Value; !r.Ready || r.Failed > 0 {
		return fmt.Errorf("not everything could be embedded: %+v", r)
	}
	queries := make([]string, 0, len(set.Queries))
	for _, q := range set.Judged() {
		queries = append(queries, q.Text)
	}
	if err := e.warm(ctx, queries, "Embedding the questions of "+set.Task); err != nil {
		return err
	}
	if n, t := e.cache.Cost(); n > texts {
		e.app.Note("%s: %d texts embedded, %.1f a second", set.Task, n-texts, float64(n-texts)/(t-took).Seconds())
	}
	return nil
}

// warm embeds queries in batches.
func (e *evaluation) warm(ctx context.Context, texts []string, label string) error {
	p := e.app.Progress(label)
	defer p.Close()
	for from := 0; from < len(texts); from += embedBatch {
		part := texts[from:min(from+embedBatch, len(texts))]
		if _, err := e.cache.Embed(ctx, part, embed.Query); err != nil {
			return err
		}
		p.Update(int64(from+len(part)), int64(len(texts)))
	}
	return nil
}

// pairsResult is how an embedder's cosines order pairs of sentences.
type pairsResult struct {
	File     string  `json:"file"`
	Pairs    int     `json:"pairs"`
	Spearman float64 `json:"spearman"`
}

// pairs measures the embedder on every file of pairs, both sentences embedded as
// questions, since neither is to be found by the other.
func (e *evaluation) pairs(ctx context.Context, root, task string, show func(evalResult) error) error {
	if e.model == nil {
		return invalid("embedder", "is none, and this task measures nothing else")
	}
	files, err := filepath.Glob(filepath.Join(root, task, "*.tsv"))
	if err != nil {
		return err
	}
	r := evalResult{Report: eval.Report{Task: task}, Path: pathVector, Embedder: e.app.Embedder(), Unit: "pair"}
	for _, file := range files {
		pairs, err := eval.LoadPairs(file)
		if err != nil {
			return &loci.Error{Code: loci.ErrValidation, Field: "task", Message: "cannot be loaded", Err: err}
		}
		name := strings.TrimSuffix(filepath.Base(file), ".tsv")
		one, err := e.rate(ctx, task+" "+name, pairs)
		if err != nil {
			return err
		}
		one.File = name
		r.Pairs = append(r.Pairs, one)
	}
	return show(r)
}

func (e *evaluation) rate(ctx context.Context, label string, pairs []eval.Pair) (r pairsResult, err error) {
	texts := make([]string, 0, 2*len(pairs))
	for _, p := range pairs {
		texts = append(texts, p.A, p.B)
	}
	began := time.Now()
	if err := e.warm(ctx, texts, "Embedding "+label); err != nil {
		return r, err
	}
	e.app.Note("%s: %d texts in %.1f s", label, len(texts), time.Since(began).Seconds())
	var said, cosines []float64
	for from := 0; from < len(pairs); from += embedBatch {
		part := texts[2*from : 2*min(from+embedBatch, len(pairs))]
		vectors, err := e.cache.Embed(ctx, part, embed.Query)
		if err != nil {
			return r, err
		}
		for i := 0; i < len(vectors); i += 2 {
			c, err := cosine(vectors[i], vectors[i+1])
			if err != nil {
				return r, err
			}
			said, cosines = append(said, pairs[from+i/2].Score), append(cosines, c)
		}
	}
	rho, err := eval.Spearman(said, cosines)
	return pairsResult{Pairs: len(pairs), Spearman: rho}, err
}

func cosine(a, b []float32) (float64, error) {
	if len(a) != len(b) {
		return 0, errors.New("the embedder gave vectors of two dimensions")
	}
	var ab, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		ab, aa, bb = ab+x*y, aa+x*x, bb+y*y
	}
	return ab / math.Sqrt(aa*bb), nil
}
