package loci

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/graph"
)

// GraphText is a text of relations, one a line:
//
//	predicate(subject) = object
//	predicate(subject, object)
//
// Names with one of the signs ( ) , = in them go in quotes; #, % or // begin a
// comment.
type GraphText struct {
	Text       string   `json:"text"`
	Namespace  *string  `json:"namespace,omitempty"` // default DefaultNamespace
	Scope      *string  `json:"scope,omitempty"`     // default PublicScope
	EntityType *string  `json:"entity_type,omitempty"`
	Tags       []string `json:"tags,omitempty"`   // of the relations
	Source     string   `json:"source,omitempty"` // where the text is from: each relation gets it as evidence, with its line
}

// GraphTextResult is what a text became.
type GraphTextResult struct {
	Entities  int `json:"entities"`  // written, known ones included
	Relations int `json:"relations"` // written, known ones included
}

// ImportText writes the relations of a text and the entities that they name.
// What is known already is merged as ApplyBatch does it: an entity of the same
// name and type, a relation of the same ends and predicate, so the same text
// may be imported again. A text with a mistake in it is refused whole, naming
// the lines. One of more than MaxBatch records is written in several batches,
// in its order; should one fail, what was written before it stays.
func (s *GraphStore) ImportText(ctx context.Context, in GraphText) (*Receipt[GraphTextResult], error) {
	const op = "graph.import_text"
	formulas, err := graph.ParseFormulas(in.Text, graph.FormulaLimits{Name: MaxNameBytes})
	if err != nil {
		return nil, errs.WithOp(op, errs.Invalid("text", "%s", strings.ReplaceAll(err.Error(), "\n", "; ")))
	}
	for _, f := range formulas {
		if len(f.Predicate) > MaxLabelBytes {
			return nil, errs.WithOp(op, errs.Invalid("text", "line %d: the predicate is %d bytes long, at most %d are allowed", f.Line, len(f.Predicate), MaxLabelBytes))
		}
	}
	record := RecordInput{Namespace: in.Namespace, Scope: in.Scope, Tags: in.Tags}
	if _, err := record.draft(AccessFrom(ctx), ""); err != nil {
		return nil, errs.WithOp(op, err)
	}
	var result Receipt[GraphTextResult]
	entities := map[ID]bool{}
	// An empty text is a batch, too: its receipt names the revision.
	for first := true; first || len(formulas) > 0; first = false {
		var batch GraphBatch
		batch, formulas = in.batch(formulas)
		r, err := s.ApplyBatch(ctx, batch)
		if e, ok := err.(*errs.Error); ok {
			named := *e
			named.Op = op
			return nil, &named
		}
		for i := range r.Value.Entities {
			entities[r.Value.Entities[i].ID] = true
		}
		result.Value.Relations += len(r.Value.Relations)
		result.Revision, result.Redacted = r.Revision, plusRedacted(result.Redacted, r.Redacted)
	}
	result.Value.Entities = len(entities)
	return &result, nil
}

// batch makes a batch of as many formulas as fit into one, and gives the rest.
func (in *GraphText) batch(formulas []graph.Formula) (b GraphBatch, rest []graph.Formula) {
	record := RecordInput{Namespace: in.Namespace, Scope: in.Scope}
	refs := map[string]bool{}
	ref := func(name string) EntityRef {
		if !refs[name] {
			refs[name] = true
			b.Entities = append(b.Entities, EntityInput{RecordInput: record, Ref: name, Match: MatchByName, Name: name, EntityType: in.EntityType})
		}
		return EntityRef{Ref: name}
	}
	for i, f := range formulas {
		if len(b.Entities)+len(b.Relations)+3 > MaxBatch {
			return b, formulas[i:]
		}
		r := RelationInput{RecordInput: record, Subject: ref(f.Subject), Predicate: f.Predicate, Object: ref(f.Object)}
		r.Tags = in.Tags
		if in.Source != "" {
			line, one := int64(f.Line), int64(1)
			r.Evidence = []Evidence{{Source: in.Source, Offset: &line, Limit: &one}}
		}
		b.Relations = append(b.Relations, r)
	}
	return b, nil
}
