package agent

import "github.com/loci-memory/loci/internal/secretscan"

// The redacted method of an input gives it without secrets. It copies what it
// changes, since lists belong to the caller.

func (in PointInput) redacted(r *secretscan.Redactor) PointInput {
	in.Tags, in.Metadata = r.Texts(in.Tags), r.JSON(in.Metadata)
	return in
}

func (in FactInput) redacted(r *secretscan.Redactor) *FactInput {
	in.PointInput, in.Content = in.PointInput.redacted(r), r.Text(in.Content)
	return &in
}

func (in EpisodeInput) redacted(r *secretscan.Redactor) *EpisodeInput {
	in.PointInput, in.Description = in.PointInput.redacted(r), r.Text(in.Description)
	return &in
}

func (in ProcedureInput) redacted(r *secretscan.Redactor) *ProcedureInput {
	in.PointInput, in.Name, in.Steps = in.PointInput.redacted(r), r.Text(in.Name), r.Texts(in.Steps)
	return &in
}
