package loci

import "github.com/loci-memory/loci/rerank"

// Reranker scores documents against a query; see package rerank.
type Reranker = rerank.Reranker

// RerankerOptions bound what a reranker is sent. Both the number of candidates
// and the tokens are limits; tokens are counted at 0.25 a character in ASCII and
// 0.48 elsewhere, rounded up for each text. All must be at least 1.
type RerankerOptions struct {
	MaxCandidates   *int // default 50
	MaxTokensTotal  *int // query and documents together, default 8192
	MaxTokensPerDoc *int // default 1024; longer documents are cut
	MaxTokensQuery  *int // default unlimited
}
