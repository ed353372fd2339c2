package loci

import "strings"

// normalize is the one normalisation of tags, judgments and query terms.
func normalize(s string) string { return strings.Join(strings.Fields(strings.ToLower(s)), " ") }
