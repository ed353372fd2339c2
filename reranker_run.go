package loci

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/rank"
)

const (
	defaultRerankCandidates = 50
	defaultRerankTokens     = 8192
	defaultRerankDocTokens  = 1024

	// A search waits no longer than this for a model. The first reads one short
	// text, the second may read thousands of tokens.
	defaultEmbedWait  = 10 * time.Second
	defaultRerankWait = 30 * time.Second
)

// searchModels are what searches ask besides the stores, and how patient they
// are, which is set before the first search or not at all.
type searchModels struct {
	reranker          atomic.Pointer[boundReranker]
	embedIn, rerankIn time.Duration // 0: the default
	truthScan         int           // likewise
}

func (m *searchModels) embedWait() time.Duration  { return cmp.Or(m.embedIn, defaultEmbedWait) }
func (m *searchModels) rerankWait() time.Duration { return cmp.Or(m.rerankIn, defaultRerankWait) }

// boundReranker is a registered reranker with its budgets.
type boundReranker struct {
	model                            Reranker
	candidates, total, doc, ofAQuery int
	hanging                          atomic.Int64 // calls that were left to themselves
}

// bind checks options and fills in their defaults. o may be nil.
func (o *RerankerOptions) bind(r Reranker) (*boundReranker, error) {
	if o == nil {
		o = &RerankerOptions{}
	}
	b := &boundReranker{model: r}
	for _, f := range []struct {
		name      string
		value     *int
		otherwise int
		to        *int
	}{
		{"max_candidates", o.MaxCandidates, defaultRerankCandidates, &b.candidates},
		{"max_tokens_total", o.MaxTokensTotal, defaultRerankTokens, &b.total},
		{"max_tokens_per_doc", o.MaxTokensPerDoc, defaultRerankDocTokens, &b.doc},
		{"max_tokens_query", o.MaxTokensQuery, math.MaxInt, &b.ofAQuery},
	} {
		if *f.to = valueOr(f.value, f.otherwise); *f.to < 1 {
			return nil, errs.Invalid(f.name, "must be at least 1, not %d; leave it out for the default", *f.to)
		}
	}
	return b, nil
}

// errScores means that a reranker's answer has the wrong shape.
type errScores struct{ reason string }

func (e *errScores) Error() string { return "the reranker " + e.reason }

// sample tries the reranker on two documents.
func (b *boundReranker) sample(ctx context.Context, wait time.Duration) error {
	_, err := b.run(ctx, wait, "a lamp at sea", []string{"The lighthouse is lit at seven.", "Flour, salt and water."})
	if ctx.Err() != nil {
		return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while the reranker was tried")
	}
	if shape, ok := err.(*errScores); ok {
		return errs.Invalid("reranker", "%s", shape.reason)
	}
	return nil // any other error may have gone by the time of a search
}

// run asks the reranker and checks its answer. It never takes longer than wait:
// a call that does not look at its context is left to itself, and when maxHanging
// are no other is made. A panic of the model is an error.
func (b *boundReranker) run(ctx context.Context, wait time.Duration, query string, documents []string) ([]float64, error) {
	if b.hanging.Load() >= maxHanging {
		return nil, fmt.Errorf("%d calls of the reranker hang", maxHanging)
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	type answer struct {
		scores []float64
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if recover() != nil {
				a = answer{err: errors.New("the reranker panicked")}
			}
			done <- a
		}()
		a.scores, a.err = b.model.Rerank(ctx, query, documents)
	}()
	var a answer
	select {
	case a = <-done:
	case <-ctx.Done():
		b.hanging.Add(1)
		go func() {
			<-done
			b.hanging.Add(-1)
		}()
		return nil, ctx.Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	if len(a.scores) != len(documents) {
		return nil, &errScores{fmt.Sprintf("gave %d scores for %d documents", len(a.scores), len(documents))}
	}
	for i, s := range a.scores {
		if math.IsNaN(s) || math.IsInf(s, 0) {
			return nil, &errScores{fmt.Sprintf("gave %v as score %d", s, i)}
		}
	}
	return a.scores, nil
}

// rerankDraft is what a reranker is to be sent for a search. It is put together
// on the search's snapshot and sent after that was given back.
type rerankDraft struct {
	bound     *boundReranker
	query     string
	documents []string // of the first candidates, in their order
	tokens    int      // of query and documents
}

// draftRerank begins a draft, or gives nil when none is wanted or there is no
// reranker.
func (e *engine) draftRerank(p *searchPlan) *rerankDraft {
	b := e.models.reranker.Load()
	if b == nil || p.req.NoRerank {
		return nil
	}
	d := &rerankDraft{bound: b}
	d.query, _ = rank.CutTokens(p.req.Query, b.ofAQuery)
	d.tokens = rank.Tokens(d.query)
	return d
}

// room says whether another candidate may be taken in.
func (d *rerankDraft) room() bool { return len(d.documents) < d.bound.candidates }

// add takes in a candidate's document, or says that it does not fit any more.
func (d *rerankDraft) add(document string) bool {
	document, _ = rank.CutTokens(document, d.bound.doc)
	n := rank.Tokens(document)
	if n > d.bound.total-d.tokens {
		return false
	}
	d.tokens += n
	d.documents = append(d.documents, document)
	return true
}

// rerankText is what a reranker reads of a record: what a search by text looks
// at, tags and folders left out. A chunk's text is its own, whatever its note is
// called; an entity has its name.
func rerankText(d *index.Document) string {
	var pieces []string
	if d.Kind != kindChunk {
		pieces = append(pieces, d.Name...)
	}
	pieces = append(pieces, d.Text...)
	return strings.Join(slices.DeleteFunc(pieces, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")
}

// rerank asks the reranker about the first hits and puts them into its order,
// equal scores by ascending id. The others stay behind them in their order; their
// scores continue one below the lowest that the reranker gave and fall as their
// fused scores did. When it fails the hits stay as they are.
func (e *engine) rerank(ctx context.Context, s *searched, t *trace) {
	if s.draft == nil {
		return
	}
	d, sent := &s.res.Diagnostics, len(s.draft.documents)
	d.RerankCandidates, d.RerankTruncated = sent, s.folded-sent
	if sent == 0 {
		return
	}
	ctx, stop := e.untilClosing(ctx)
	defer stop()
	scores, err := s.draft.bound.run(ctx, e.models.rerankWait(), s.draft.query, s.draft.documents)
	t.reranked(sent, s.draft.tokens)
	if err != nil {
		d.Degraded = append(d.Degraded, DegradeRerankFailed)
		return
	}
	d.Reranked = true
	first, behind := s.hits[:sent], s.hits[sent:]
	for i := range first {
		first[i].Score, first[i].RerankScore = scores[i], &scores[i]
	}
	slices.SortFunc(first, func(a, b finishedHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.id, b.id))
	})
	for i := range first {
		if x := first[i].Explain; x != nil {
			x.RerankRank = i + 1
		}
	}
	if len(behind) == 0 {
		return
	}
	below, top := first[sent-1].Score-1, behind[0].Score
	for i := range behind {
		behind[i].Score = below - (top - behind[i].Score)
	}
}
