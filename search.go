package loci

// MatchField says which field of a record a text search looks at.
type MatchField string

// The match fields. MatchAll spans text, tags and name.
const (
	MatchAll  MatchField = "all"
	MatchText MatchField = "text"
	MatchName MatchField = "name"
	MatchPath MatchField = "path"
)

// GroupBy says what a search ranks.
type GroupBy string

// The groupings.
const (
	GroupNone   GroupBy = "none"
	GroupThread GroupBy = "thread"
)

// Fusion says how a search makes one score of the paths' scores.
type Fusion string

// The fusions. FusionRRF sums weight / (60 + rank) over the paths, rank from 1
// (Cormack, Clarke and Buettcher, "Reciprocal Rank Fusion", 2009). FusionScore
// sums the paths' scores, each scaled to 0..1 over its candidates.
const (
	FusionRRF   Fusion = "rrf"
	FusionScore Fusion = "score"
)

// SearchRequest asks for the records that answer a query best.
type SearchRequest struct {
	Query           string     `json:"query"` // required, not blank
	Filter          ReadFilter `json:"filter,omitzero"`
	Kinds           []Kind     `json:"kinds,omitempty"`            // default memory, entity, relation, event, chunk
	Limit           *int       `json:"limit,omitempty"`            // 1..10000, default 10
	CandidateLimit  *int       `json:"candidate_limit,omitempty"`  // default max(5*limit, 100)
	MatchField      MatchField `json:"match_field,omitempty"`      // default all
	EmbedSpace      string     `json:"embed_space,omitempty"`      // default the namespace's, else the one that has an embedder
	Fusion          Fusion     `json:"fusion,omitempty"`           // default the embedder's, else score; rrf when text is the only path
	TextWeight      *float64   `json:"text_weight,omitempty"`      // default 1
	VectorWeight    *float64   `json:"vector_weight,omitempty"`    // default the embedder's
	NeighbourWeight float64    `json:"neighbour_weight,omitempty"` // share of the better neighbour's score, 0..1
	ThreadWeight    float64    `json:"thread_weight,omitempty"`    // share of the thread's own score, 0..1
	GroupBy         GroupBy    `json:"group_by,omitempty"`         // default none
	RecencyWeight   float64    `json:"recency_weight,omitempty"`   // adds up to this share of the best score to new records
	StrengthWeight  float64    `json:"strength_weight,omitempty"`  // likewise to strong memories
	GraphWeight     float64    `json:"graph_weight,omitempty"`     // weight of a path of what the graph relates to the best text hits
	// ValidAtUS is the time at which facts must hold, in UTC microseconds; nil is now.
	// Other kinds do not look at it.
	ValidAtUS        *int64      `json:"valid_at_us,omitempty"`
	WithTotal        bool        `json:"with_total,omitempty"` // count all records that match by text
	Explain          bool        `json:"explain,omitempty"`
	NoText           bool        `json:"no_text,omitempty"`             // leave the text path out
	NoVector         bool        `json:"no_vector,omitempty"`           // leave the vector path out
	NoRerank         bool        `json:"no_rerank,omitempty"`           // leave the reranker out
	Exact            bool        `json:"exact,omitempty"`               // compare with every vector, not with the likely ones only
	RequireReady     bool        `json:"require_ready,omitempty"`       // leave out tiers whose vectors are not complete
	Prune            *GraphPrune `json:"prune,omitempty"`               // narrow the vector path to entities around one
	TopChunksPerNote *int        `json:"top_chunks_per_note,omitempty"` // chunks that a note's hit names at most, default 3
}

// GraphPrune narrows the vector path of a search to the entities within some
// hops of one, that one included.
type GraphPrune struct {
	Root  ID  `json:"root"`
	Depth int `json:"depth"` // at least 1
	Limit int `json:"limit"` // entities at most, the nearest ones: 1..10000
}

// SearchHit is one record found. One of kind chunk stands for its note: it is
// the note's best chunk, and NoteChunks and TopChunks tell of the others, unless
// names or folders were matched.
type SearchHit struct {
	Key       string   `json:"key"` // "kind:id"; "thread:name" when grouped by thread
	Score     float64  `json:"score"`
	TextScore *float64 `json:"text_score,omitempty"` // BM25 score of the text path
	// VectorScores are the cosines by space of what the vector path found; empty
	// for what it did not find, and when it did not run.
	VectorScores map[string]float64 `json:"vector_scores"`
	// RerankScore is the reranker's, and then Score is too. Hits that it was not
	// sent stand behind: their scores are below the lowest that it gave.
	RerankScore *float64   `json:"rerank_score,omitempty"`
	Record      any        `json:"record,omitempty"`      // *Memory, *Entity, *Relation, *Event or *Chunk, by kind
	NoteChunks  *int64     `json:"note_chunks,omitempty"` // how many chunks of the hit's note match
	TopChunks   []ChunkRef `json:"top_chunks,omitempty"`  // the best of them among the candidates, the hit itself first
	Explain     *Explain   `json:"explain,omitempty"`
}

// ChunkRef names a chunk of a note.
type ChunkRef struct {
	ID     ID    `json:"id"`
	Offset int64 `json:"offset"` // first line, from 1
}

// Explain says why a hit stands where it does.
type Explain struct {
	TextRank     int           `json:"text_rank"` // from 1 in the text path; 0 when it did not come from there
	TextScore    float64       `json:"text_score"`
	Round        string        `json:"round,omitempty"` // "every_term", "any_term", "any_character" or "folder"
	Terms        []ExplainTerm `json:"terms"`           // terms of the query that this record holds
	FusedScore   float64       `json:"fused_score"`
	NeighbourAdd float64       `json:"neighbour_add,omitempty"` // what neighbour_weight added
	ThreadAdd    float64       `json:"thread_add,omitempty"`    // what thread_weight added
	RecencyAdd   float64       `json:"recency_add,omitempty"`
	StrengthAdd  float64       `json:"strength_add,omitempty"`
	GraphAdd     float64       `json:"graph_add,omitempty"` // what the graph path gave

	VectorRank         int     `json:"vector_rank,omitempty"`          // from 1 in the vector path; 0 when it did not come from there
	VectorScore        float64 `json:"vector_score,omitempty"`         // the cosine
	VectorNeighbourAdd float64 `json:"vector_neighbour_add,omitempty"` // what neighbour_weight added in the vector path
	VectorThreadAdd    float64 `json:"vector_thread_add,omitempty"`    // what thread_weight added in the vector path
	TextPart           float64 `json:"text_part"`                      // what the text path gave to the fused score
	VectorPart         float64 `json:"vector_part"`                    // what the vector path gave to it
	RerankRank         int     `json:"rerank_rank,omitempty"`          // from 1; 0 when it was not sent to the reranker
}

// ExplainTerm is one matching term and its share of the BM25 score.
type ExplainTerm struct {
	Term  string  `json:"term"`
	Score float64 `json:"score"`
}

// Degrade is a reason why a search had to do with less.
type Degrade string

// The degrade codes.
const (
	DegradeNamespaceDisabled    Degrade = "namespace_disabled"
	DegradeNoEmbedder           Degrade = "no_embedder"
	DegradeEmbedFailed          Degrade = "embed_failed"
	DegradeVectorNotReady       Degrade = "vector_not_ready"
	DegradeRerankFailed         Degrade = "rerank_failed"
	DegradeTextIndexUnavailable Degrade = "text_index_unavailable"
	DegradeNoSpace              Degrade = "no_space"
)

// SearchDiagnostics says which paths ran and what was missing.
type SearchDiagnostics struct {
	TextUsed   bool `json:"text_used"`
	VectorUsed bool `json:"vector_used"`
	// Exact says that the vector path looked at every vector that the filter lets
	// see; false when it was approximate or did not run.
	Exact            bool `json:"exact"`
	Reranked         bool `json:"reranked"`
	RerankCandidates int  `json:"rerank_candidates"` // sent to the reranker
	RerankTruncated  int  `json:"rerank_truncated"`  // left behind by its budgets
	// VectorMissing counts over all scopes of the namespace, so it is empty for a caller
	// that may not read them all.
	VectorMissing []VectorMissing `json:"vector_missing"`
	Degraded      []Degrade       `json:"degraded"`
}

// SearchResult is the answer to a search.
type SearchResult struct {
	Hits            []SearchHit       `json:"hits"`
	Revision        int64             `json:"revision"`         // the store's revision the records were read at
	IndexedRevision int64             `json:"indexed_revision"` // the revision the index answered at
	Total           *int64            `json:"total,omitempty"`  // records that match by text; absent without the text path
	Diagnostics     SearchDiagnostics `json:"diagnostics"`
}
