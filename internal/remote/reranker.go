package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// A Reranker is a rerank.Reranker over a service. Its fields are set before the
// first call and not changed afterwards.
type Reranker struct {
	*Client
	Path         string // of the operation, below the base address
	MaxDocuments int    // documents in a request
	MaxBytes     int    // bytes of documents in a request; a single longer one is sent all the same
	// Whole says that the model looks at all documents of a request together, so
	// that scores of two requests cannot be compared. More than MaxDocuments or
	// MaxBytes are then too large; otherwise they are sent in several requests.
	Whole bool
	// Request gives the body for documents; Decode reads the answer to n of them.
	Request func(query string, documents []string) any
	Decode  func(answer []byte, n int) ([]float64, error)
}

// Rerank implements rerank.Reranker. A blank query or document refuses the
// whole call before anything is sent, with an *endpoint.TextError that names
// it. Errors are those of embedders.
func (r *Reranker) Rerank(ctx context.Context, query string, documents []string) ([]float64, error) {
	if strings.TrimSpace(query) == "" {
		return nil, &located{r.service, &endpoint.TextError{Index: -1, Reason: "is blank"}}
	}
	if err := r.refuseBlank(documents, 0); err != nil {
		return nil, err
	}
	out := make([]float64, 0, len(documents))
	for from, to := range spans(documents, r.MaxDocuments, r.MaxBytes) {
		if r.Whole && to-from < len(documents) {
			return nil, fmt.Errorf("%s: %d documents at once: %w", r.service, len(documents), embed.ErrTooLarge)
		}
		part := documents[from:to]
		answer, err := r.Post(ctx, r.Path, r.Request(query, part), append([]string{query}, part...))
		if err != nil {
			return nil, err
		}
		scores, err := r.Decode(answer, len(part))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.service, err)
		}
		out = append(out, scores...)
	}
	return out, nil
}

// A Score is one result of a reranker. Services name the number differently.
type Score struct {
	Index          *int     `json:"index"`
	RelevanceScore *float64 `json:"relevance_score"`
	Score          *float64 `json:"score"`
}

// Scores puts the scores of n documents in the places that their indexes name.
func Scores(results []Score, n int) ([]float64, error) {
	if len(results) != n {
		return nil, fmt.Errorf("%d scores for %d documents", len(results), n)
	}
	out := make([]float64, n)
	taken := make([]bool, n)
	for _, s := range results {
		if err := place(s.Index, n, func(i int) bool { return taken[i] }); err != nil {
			return nil, err
		}
		value := s.RelevanceScore
		if value == nil {
			value = s.Score
		}
		if value == nil {
			return nil, fmt.Errorf("result %d has no score", *s.Index)
		}
		// JSON has no number that is not finite, and the decoder refuses those
		// beyond float64.
		out[*s.Index], taken[*s.Index] = *value, true
	}
	return out, nil
}

// Results reads an answer {"results": [...]} for n documents.
func Results(answer []byte, n int) ([]float64, error) {
	var body struct {
		Results []Score `json:"results"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, Unreadable(err)
	}
	return Scores(body.Results, n)
}

// Data reads an answer {"data": [...]} for n documents.
func Data(answer []byte, n int) ([]float64, error) {
	var body struct {
		Data []Score `json:"data"`
	}
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, Unreadable(err)
	}
	return Scores(body.Data, n)
}

// List reads an answer [...] for n documents.
func List(answer []byte, n int) ([]float64, error) {
	var body []Score
	if err := json.Unmarshal(answer, &body); err != nil {
		return nil, Unreadable(err)
	}
	return Scores(body, n)
}
