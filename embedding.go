package loci

import "github.com/loci-memory/loci/embed"

// Embedder turns texts into vectors; see package embed. Loci calls it outside
// of transactions and locks, and never while a record is written.
type Embedder = embed.Embedder

// VectorEncoding says in which form an index scans vectors. The vectors
// themselves are kept as float32 in both, and hits are scored by these.
type VectorEncoding string

// The encodings.
const (
	EncodingF32 VectorEncoding = "f32" // float32, four bytes a dimension
	EncodingSQ8 VectorEncoding = "sq8" // one byte a dimension: a quarter of the memory and of the time
)

// Bounds of an embedding space.
const (
	MaxDimension = 65536
	TextVersion  = 1 // the only version of how a record becomes the text that is embedded
)

// EmbeddingSpace is one model's vectors: only vectors of one space are
// comparable. A space never changes; another model is another space.
type EmbeddingSpace struct {
	ID          string         `json:"id"`                     // chosen by the caller, at most 512 bytes
	Model       string         `json:"model"`                  // the model's name, with its version
	Dimension   int            `json:"dimension"`              // 1..65536
	TextVersion int            `json:"text_version,omitempty"` // default 1
	Encoding    VectorEncoding `json:"encoding,omitempty"`     // default sq8
}

// EmbedderOptions tune how an embedder is used. The zero value works.
type EmbedderOptions struct {
	// MaxBatch bounds the texts of one call: 1..10000, default 32.
	MaxBatch *int
	// MaxTokensPerText cuts longer texts, counted at 0.25 tokens a character in
	// ASCII and 0.48 elsewhere. Nil: an embedder that is an embed.Limiter cuts by
	// itself, and others get whole texts.
	MaxTokensPerText *int
	// VectorWeight and Fusion are what searches by this embedder use unless they
	// say otherwise: a strong model deserves a larger weight. Above 0, and finite.
	VectorWeight *float64
	Fusion       Fusion
}

// Tier is a group of kinds whose records get vectors together.
type Tier string

// The tiers, with the kinds that they cover.
const (
	TierMemory Tier = "memory" // memories; on by default
	TierGraph  Tier = "graph"  // entities, relations and events; on by default
	TierNotes  Tier = "notes"  // chunks; off by default
	TierPages  Tier = "pages"  // pages; on by default
	TierAgent  Tier = "agent"  // facts, episodes and procedures; on by default
)

// EmbeddingReport says what EmbeddingStore.Sync did.
type EmbeddingReport struct {
	Embedded int64 `json:"embedded"` // vectors written
	Skipped  int64 `json:"skipped"`  // records that changed or went meanwhile
	Failed   int64 `json:"failed"`   // texts that the model refuses for good, also those found earlier
	Cut      int64 `json:"cut"`      // of the embedded ones, texts longer than the model reads
	Ready    bool  `json:"ready"`    // nothing is missing any more in the tiers that are on
	// Interrupted says why the sync ended early; what was written stays.
	Interrupted string `json:"interrupted,omitempty"`
}

// TierStatus says how far a tier of a namespace has its vectors.
type TierStatus struct {
	Tier    Tier  `json:"tier"`
	Enabled bool  `json:"enabled"` // the tier's own switch
	Ready   bool  `json:"ready"`
	Records int64 `json:"records"`
	Vectors int64 `json:"vectors"`
	// Left counts those of the others that stay without a vector until their text
	// changes: the model refuses it, or there is nothing in it to embed. A sync
	// finds them out, once after each registration, and they do not keep a tier
	// from being ready.
	Left int64 `json:"left"`
}

// VectorMissing says that records of a tier could not be found by their
// vectors, having none yet.
type VectorMissing struct {
	Tier    Tier  `json:"tier"`
	Missing int64 `json:"missing"`
	Total   int64 `json:"total"`
}
