package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/valid"
)

// ProceduralMemory keeps procedures: ways to do something, and how well they served.
type ProceduralMemory struct{ points }

// MaxSteps bounds the steps of one procedure.
const MaxSteps = 1000

// procedureData is what the store keeps of a procedure beside its text, which is its
// steps as lines.
type procedureData struct {
	Steps []string `json:"steps"`
}

// draftProcedure checks a procedure.
func (s *ProceduralMemory) draftProcedure(in *ProcedureInput) (*draft, error) {
	d, err := s.draft("", &in.PointInput)
	if err != nil {
		return nil, err
	}
	if err := valid.Label("name", in.Name, loci.MaxNameBytes); err != nil {
		return nil, err
	}
	if n := len(in.Steps); n < 1 || n > MaxSteps {
		return nil, errs.Invalid("steps", "must be 1 to %d, not %d", MaxSteps, n)
	}
	for i, step := range in.Steps {
		field := fmt.Sprintf("steps[%d]", i)
		if err := valid.Text(field, step, loci.MaxTextBytes); err != nil {
			return nil, err
		}
		if strings.TrimSpace(step) == "" {
			return nil, errs.Invalid(field, "must not be blank")
		}
	}
	if err := checkConfidence("confidence", in.Confidence); err != nil {
		return nil, err
	}
	d.confidence, d.reset = in.Confidence, in.Reset
	d.point.Title, d.point.Content = in.Name, strings.Join(in.Steps, "\n")
	if d.point.Data, err = json.Marshal(procedureData{in.Steps}); err != nil {
		return nil, errs.Wrap(errs.Validation, err, "the steps cannot be written")
	}
	return d, d.checkText("steps", d.point.Content)
}

// checkConfidence checks a confidence that may be absent.
func checkConfidence(field string, c *float64) error {
	if c != nil && !(*c >= 0 && *c <= 1) {
		return errs.Invalid(field, "must be from 0 to 1")
	}
	return nil
}

// Learn stores a procedure under its id. What is there is replaced, but for its
// relations and for how well it served, and kept in its history.
func (s *ProceduralMemory) Learn(ctx context.Context, in ProcedureInput) (*loci.Receipt[Stored], error) {
	r := s.m.link.Redactor(ctx)
	d, err := s.draftProcedure(in.redacted(r))
	if err != nil {
		return nil, errs.WithOp(s.name("learn"), err)
	}
	return s.putOne(ctx, "learn", d, r)
}

// Get reads a live procedure; the answer's point is nil when there is none.
func (s *ProceduralMemory) Get(ctx context.Context, req GetRequest) (*Found[loci.Procedure], error) {
	p, embedding, err := s.get(ctx, req)
	return found[loci.Procedure](&s.points, p, embedding, err)
}

// List reads a page of live procedures by ascending id.
func (s *ProceduralMemory) List(ctx context.Context, req ListRequest) (*Page[loci.Procedure], error) {
	return page[loci.Procedure](ctx, &s.points, req)
}

// ProcedureRecallRequest asks for the procedures that are most like something: a
// vector or a text, one of the two.
type ProcedureRecallRequest struct {
	Embedding []float32 `json:"embedding,omitempty"`
	// Text finds procedures by the words of their names and steps, and by vectors where
	// an embedder turns it into one.
	Text   string `json:"text,omitempty"`
	K      *int   `json:"k,omitempty"`      // 1..10000, default 10
	Offset int    `json:"offset,omitempty"` // procedures to leave out first
	// MinConfidence leaves out procedures of less confidence, 0..1, before the best are
	// taken; nil leaves out none.
	MinConfidence *float64 `json:"min_confidence,omitempty"`
	Selection
	// Approximate allows an answer to an embedding that may miss a procedure now and
	// then, which is much faster from some 20,000 procedures on.
	Approximate bool `json:"approximate,omitempty"`
}

// ProcedureHit is a procedure that answers a request.
type ProcedureHit struct {
	// Score is the cosine of the two vectors; of a text what the search gave.
	Score     float64        `json:"score"`
	Procedure loci.Procedure `json:"procedure"`
}

// ProcedureHits are the answer to a ProcedureRecallRequest, best first.
type ProcedureHits struct {
	Hits []ProcedureHit `json:"hits"`
	// Degraded says what a text had to do without.
	Degraded []loci.Degrade `json:"degraded,omitempty"`
}

// Recall gives the current procedures that are most like a vector or a text, among
// those that the selection and the least confidence leave. By vector it compares all
// of them, unless Approximate is set, ties by ascending id; a procedure without a
// vector is found by words alone.
func (s *ProceduralMemory) Recall(ctx context.Context, req ProcedureRecallRequest) (*ProcedureHits, error) {
	const call = "recall"
	if err := checkConfidence("min_confidence", req.MinConfidence); err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	found, degraded, err := recall[loci.Procedure](ctx, &s.points, call, &recalled{
		embedding: req.Embedding, text: req.Text, k: req.K, offset: req.Offset, selection: &req.Selection, approximate: req.Approximate,
		least: valueOr(req.MinConfidence, 0),
	})
	if err != nil {
		return nil, err
	}
	out := &ProcedureHits{Hits: make([]ProcedureHit, len(found)), Degraded: degraded}
	for i, h := range found {
		out.Hits[i] = ProcedureHit{h.score, *h.point}
	}
	return out, nil
}
