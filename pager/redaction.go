package pager

import (
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/secretscan"
)

// redactedBy is what a redactor took out of a request, by rule; nil for nothing.
func redactedBy(r *secretscan.Redactor) []loci.Redacted {
	var out []loci.Redacted
	for _, c := range r.Counts() {
		out = append(out, loci.Redacted(c))
	}
	return out
}

// redact takes the secrets out of the texts of a page.
func (r *WriteRequest) redact(by *secretscan.Redactor) {
	r.Content, r.Title, r.Summary = by.Text(r.Content), by.Text(r.Title), by.Text(r.Summary)
	r.Source, r.PinReason, r.Tags = by.Text(r.Source), by.Text(r.PinReason), by.Texts(r.Tags)
}

// redact takes the secrets out of a text before it is cut: a cut may part one.
func (r *IngestRequest) redact(by *secretscan.Redactor) {
	r.Content, r.Title, r.Source, r.Tags = by.Text(r.Content), by.Text(r.Title), by.Text(r.Source), by.Texts(r.Tags)
}
