package loci

import (
	"context"
	"slices"

	"github.com/loci-memory/loci/internal/secretscan"
)

type redactionKey struct{}

// WithRedaction gives a context whose writes lose what looks like a secret: keys,
// tokens, private keys and card numbers. "[redacted: RULE]" stands in the place
// of each, in what is stored, embedded, found and given back. What was taken out
// is named in the receipt. What is stored already stays as it is, and so does
// what Import and the restoring of snapshots put back.
func WithRedaction(ctx context.Context) context.Context {
	return context.WithValue(ctx, redactionKey{}, true)
}

// RedactionFrom says whether the context's writes lose secrets.
func RedactionFrom(ctx context.Context) bool {
	on, _ := ctx.Value(redactionKey{}).(bool)
	return on
}

// Redacted says what a write lost.
type Redacted struct {
	Rule  string `json:"rule"`  // what it looked like, such as github-token
	Count int    `json:"count"` // how many of them, 1 and up
}

// redactor gives what takes secrets out of a write; nil, which leaves everything
// in, where nobody asked for it.
func (e *engine) redactor(ctx context.Context) *secretscan.Redactor {
	if e.redact || RedactionFrom(ctx) {
		return &secretscan.Redactor{}
	}
	return nil
}

// redactedBy is what a redactor took out, by rule; nil for nothing.
func redactedBy(r *secretscan.Redactor) []Redacted {
	var out []Redacted
	for _, c := range r.Counts() {
		out = append(out, Redacted(c))
	}
	return out
}

// plusRedacted adds up what two writes lost.
func plusRedacted(a, b []Redacted) []Redacted {
	out := slices.Clone(a)
	for _, more := range b {
		if i := slices.IndexFunc(out, func(o Redacted) bool { return o.Rule == more.Rule }); i >= 0 {
			out[i].Count += more.Count
		} else {
			out = append(out, more)
		}
	}
	slices.SortFunc(out, func(x, y Redacted) int {
		if x.Rule < y.Rule {
			return -1
		}
		return 1
	})
	return out
}

// The redacted method of an input gives it without secrets. It copies what it
// changes, since lists belong to the caller.

func (in RecordInput) redacted(r *secretscan.Redactor) RecordInput {
	if r == nil {
		return in
	}
	in.Tags, in.Metadata = r.Texts(in.Tags), r.JSON(in.Metadata)
	in.Evidence = slices.Clone(in.Evidence)
	for i := range in.Evidence {
		e := &in.Evidence[i]
		e.Source, e.SourceRevision, e.Quote = r.Text(e.Source), r.Text(e.SourceRevision), r.Text(e.Quote)
		e.Metadata = r.JSON(e.Metadata)
	}
	return in
}

func (in MemoryInput) redacted(r *secretscan.Redactor) MemoryInput {
	if r == nil {
		return in
	}
	in.RecordInput = in.RecordInput.redacted(r)
	in.Judgment, in.Reasoning = r.Text(in.Judgment), r.Text(in.Reasoning)
	return in
}

func (b GraphBatch) redacted(r *secretscan.Redactor) GraphBatch {
	if r == nil {
		return b
	}
	b.Entities, b.Relations, b.Events = slices.Clone(b.Entities), slices.Clone(b.Relations), slices.Clone(b.Events)
	for i := range b.Entities {
		e := &b.Entities[i]
		e.RecordInput = e.RecordInput.redacted(r)
		e.Name, e.Summary = r.Text(e.Name), r.Text(e.Summary)
		e.Aliases, e.Attributes = r.Texts(e.Aliases), r.Map(e.Attributes)
	}
	for i := range b.Relations {
		e := &b.Relations[i]
		e.RecordInput, e.Reason = e.RecordInput.redacted(r), r.Text(e.Reason)
	}
	for i := range b.Events {
		e := &b.Events[i]
		e.RecordInput = e.RecordInput.redacted(r)
		e.Name, e.Summary, e.Reason = r.Text(e.Name), r.Text(e.Summary), r.Text(e.Reason)
	}
	return b
}
