package loci

import "github.com/loci-memory/loci/internal/text"

// normalize is the one normalisation of tags, judgments and query terms.
func normalize(s string) string { return text.Normalize(s) }
