package agent

import "github.com/loci-memory/loci"

// PointInput is what facts, episodes and procedures have in common when they are
// stored. What is left out is empty afterwards, whatever was there before.
type PointInput struct {
	// ID is the caller's id.
	ID loci.PointID `json:"id"`
	// Embedding has the memory's dimension and is finite and not zero. Left out, the
	// embedder of the memory's space makes one; without an embedder a fact needs it.
	Embedding []float32 `json:"embedding,omitempty"`
	// Metadata is a JSON object. Keys that begin with "_loci_" are dropped, and
	// "content" too, since the text has its own field.
	Metadata loci.Metadata `json:"metadata,omitempty"`
	Tags     []string      `json:"tags,omitempty"`
	// Thread and Position say where in a conversation or the like it stands; a
	// position is taken once in its thread.
	Thread   *string `json:"thread,omitempty"`
	Position *int64  `json:"position,omitempty"`
	// TTLSeconds is how long it lives; nil: for ever. 0 is checked like any other
	// and then removes what is stored under the id.
	TTLSeconds *uint64 `json:"ttl_seconds,omitempty"`
	// ExpectedRevision refuses the write unless what is stored is at this revision.
	ExpectedRevision *int64 `json:"expected_revision,omitempty"`
}

// FactInput is a fact to store.
type FactInput struct {
	PointInput
	Content     string `json:"content"`                 // at most 1 MiB
	ValidFromUS *int64 `json:"valid_from_us,omitempty"` // UTC microseconds; nil: since ever
	ValidToUS   *int64 `json:"valid_to_us,omitempty"`   // after ValidFromUS; nil: for ever
}

// EpisodeInput is an episode to record.
type EpisodeInput struct {
	PointInput
	Description string `json:"description"`     // at most 1 MiB
	AtUS        *int64 `json:"at_us,omitempty"` // when it happened, UTC microseconds; default now
}

// ProcedureInput is a procedure to learn.
type ProcedureInput struct {
	PointInput
	Name  string   `json:"name"`
	Steps []string `json:"steps"` // 1..1000, together at most 1 MiB
	// Confidence is 0..1. Nil keeps that of a procedure that is there, and is 0.5
	// for a new one.
	Confidence *float64 `json:"confidence,omitempty"`
	// Reset forgets how a procedure that is there has served.
	Reset bool `json:"reset,omitempty"`
}

// VectorState says where a point's vector comes from.
type VectorState string

// The states of a vector.
const (
	VectorGiven   VectorState = "given"   // by the caller
	VectorMade    VectorState = "made"    // by the embedder
	VectorPending VectorState = "pending" // the embedder will make it, in the background
	VectorNone    VectorState = "none"    // there is none
)

// Stored says what became of a point that was stored.
type Stored struct {
	ID loci.PointID `json:"id"`
	// Vector is empty for a point that was removed, by a TTL of 0.
	Vector  VectorState `json:"vector,omitempty"`
	Version int64       `json:"version,omitempty"` // likewise 0
}

// BatchResult says what became of a batch.
type BatchResult struct {
	Stored   int `json:"stored"`   // points, each once
	Removed  int `json:"removed"`  // by a TTL of 0
	Replaced int `json:"replaced"` // entries that a later one of the same id stands for
	Made     int `json:"made"`     // vectors that the embedder made at once
	Pending  int `json:"pending"`  // vectors that the background makes
}

// FactBatch is a batch of facts: all are stored or none.
type FactBatch struct {
	Facts []FactInput `json:"facts"` // at most 10,000
}

// EpisodeBatch is a batch of episodes: all are recorded or none.
type EpisodeBatch struct {
	Episodes []EpisodeInput `json:"episodes"` // at most 10,000
}

// UpdateRequest merges into a live point's metadata.
type UpdateRequest struct {
	ID loci.PointID `json:"id"`
	// Updates is a JSON object: its keys replace those of the same name, null takes
	// one away. Of facts, "content" is the fact's text. Keys that begin with "_loci_"
	// are dropped.
	Updates          loci.Metadata `json:"updates"`
	ExpectedRevision *int64        `json:"expected_revision,omitempty"`
}

// TTLRequest sets how long a live point lives from now on.
type TTLRequest struct {
	ID         loci.PointID `json:"id"`
	TTLSeconds uint64       `json:"ttl_seconds"` // 0 removes it at once
}

// PointRequest names a point.
type PointRequest struct {
	ID loci.PointID `json:"id"`
}

// GetRequest asks for a point.
type GetRequest struct {
	ID loci.PointID `json:"id"`
	// AsOfRecordedUS asks for the version that was believed then, in UTC
	// microseconds; nil for the current one.
	AsOfRecordedUS *int64 `json:"as_of_recorded_us,omitempty"`
	// WithEmbedding gives the vector too. Versions of the past have none.
	WithEmbedding bool `json:"with_embedding,omitempty"`
}

// Found is the answer to a GetRequest.
type Found[T any] struct {
	// Point is null when there is none under that id.
	Point *T `json:"point"`
	// Embedding is as it was given, or as the embedder made it.
	Embedding []float32 `json:"embedding,omitempty"`
}

// ListRequest asks for a page of live points by ascending id.
type ListRequest struct {
	Limit          *int   `json:"limit,omitempty"`  // 1..10000, default 50
	Cursor         string `json:"cursor,omitempty"` // of the page before; "" for the first
	AsOfRecordedUS *int64 `json:"as_of_recorded_us,omitempty"`
}

// Selection narrows a query to some points. Everything in it must hold.
type Selection struct {
	// Filter is a JSON object whose every pair a point's metadata must hold, compared
	// as JSON values: numbers by value, objects whatever the order of their keys.
	// "content" compares with a fact's text.
	Filter loci.Metadata `json:"filter,omitempty"`
	// Where are typed conditions on metadata.
	Where []loci.Condition `json:"where,omitempty"`
	Tags  []string         `json:"tags,omitempty"`
	// Thread is where a point must stand.
	Thread *string `json:"thread,omitempty"`
	// AsOfValidUS is the time at which what a point says must hold, in UTC
	// microseconds; nil is now.
	AsOfValidUS *int64 `json:"as_of_valid_us,omitempty"`
}

// QueryRequest asks for the points whose vectors lie nearest to one.
type QueryRequest struct {
	Embedding []float32 `json:"embedding"`
	K         *int      `json:"k,omitempty"`      // 1..10000, default 10
	Offset    int       `json:"offset,omitempty"` // points to leave out first
	Selection
	// Approximate allows an answer that may miss a point now and then, which is much
	// faster from some thousands of points on. Scores are then right to four digits or so.
	Approximate bool `json:"approximate,omitempty"`
}

// TextRequest asks for points by words, and by vectors where an embedder turns the
// text into one.
type TextRequest struct {
	Text   string `json:"text"`
	K      *int   `json:"k,omitempty"` // 1..10000, default 10
	Offset int    `json:"offset,omitempty"`
	Selection
}

// Hit is a point that answers a query.
type Hit struct {
	ID loci.PointID `json:"id"`
	// Score is the cosine of the two vectors; of a text request what the search gave.
	Score   float64 `json:"score"`
	Content string  `json:"content"`
}

// Hits are the answer to a query, best first.
type Hits struct {
	Hits []Hit `json:"hits"`
	// Degraded says what a text request had to do without.
	Degraded []loci.Degrade `json:"degraded,omitempty"`
}

// Count is a number of points.
type Count struct {
	Count int64 `json:"count"`
	Empty bool  `json:"empty"`
}
