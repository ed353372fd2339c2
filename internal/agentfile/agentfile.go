// Package agentfile writes and reads snapshots of an agent's memory: points,
// their earlier versions and the relations between them, as one stream with a
// checked header, blocks and a checked end. Both ways hold one block in memory
// and never the file. docs/format/agent-snapshot.md specifies the bytes.
//
// What a Writer takes a Reader gives, and a Writer refuses what a Reader would:
// both apply the same rules. What the values mean together, such as times, is
// for the store to judge.
package agentfile

import "encoding/json"

// What every snapshot begins with, and the version that is written.
const (
	Magic   = "LOCIAGT1"
	Version = 1
)

// The kinds of points, in the order in which they stand in a file.
const (
	KindFact      = "fact"
	KindEpisode   = "episode"
	KindProcedure = "procedure"
)

// Limits on a file.
const (
	MaxHeaderBytes = 1 << 20  // of the header's JSON
	MaxRecordBytes = 64 << 20 // of one point, version or edge as it is encoded
	MaxDimension   = 65536    // of the vectors
	MaxTags        = 65536    // of one point
)

// A Header says what a file holds and where it comes from.
type Header struct {
	Namespace string `json:"namespace"`
	Scope     string `json:"scope"`
	Dimension int    `json:"dimension"`     // of the vectors, at most MaxDimension; 0: there are none
	Space     string `json:"space"`         // embedding space of the vectors, for information
	CreatedAt int64  `json:"created_at_us"` // when the file was made, UTC microseconds
	Clock     int64  `json:"clock_us"`      // the store's expiry clock then, UTC microseconds
	// Kinds are those that the file replaces as a whole, in the order of the
	// kinds; at least one.
	Kinds []string `json:"kinds"`
	// Settings are the memory's own, a JSON object; nil when the file has none.
	// Blanks between its tokens are not kept.
	Settings json.RawMessage `json:"settings,omitempty"`
}

// A Point is a fact, an episode or a procedure. Times are UTC microseconds.
// Texts are UTF-8; JSON is kept byte for byte, and nil when it is empty.
type Point struct {
	Kind    string // one of the header's
	Key     uint64 // the caller's id, unique within the kind
	Title   string
	Content string

	Data     json.RawMessage // what only the kind has, an object or an array; nil for none
	Metadata json.RawMessage // an object; nil for the empty one
	Evidence json.RawMessage // an object or an array; nil for none
	Tags     []string        // at most MaxTags, none of them empty
	Thread   string          // empty for none
	Position *int64          // in the thread

	Created    int64
	Updated    int64
	Recorded   int64
	ExpiresAt  *int64
	ValidFrom  *int64
	ValidTo    *int64
	HappenedAt *int64

	Confidence float64 // 0 to 1
	Uses       int64   // at least 0
	Successes  int64   // 0 to Uses
	LastUsed   *int64
	Version    int64 // of its history, from 1

	Vector     []float32 // of the header's dimension, finite and not all zero; nil for none
	VectorText uint64    // fingerprint of the text that the vector was made of; 0: the caller's vector, or none
}

// A PointVersion is an earlier version of a point. Times are UTC microseconds.
type PointVersion struct {
	Kind       string // of a point in the file
	Key        uint64 // of a point in the file
	Version    int64  // from 1, unique within the point
	RecordedAt int64  // the store believed it from then on,
	RecordedTo int64  // and no longer from then on
	ValidFrom  *int64
	ValidTo    *int64
	Title      string
	Content    string
	Data       json.RawMessage // as in a Point
	Metadata   json.RawMessage // as in a Point
}

// An Edge is a relation. Each end is a point of the file, or of a kind that the
// file does not hold; one of them is in the file.
type Edge struct {
	FromKind   string
	From       uint64
	Type       string // not empty
	ToKind     string
	To         uint64
	ID         uint64
	CreatedAt  int64           // UTC microseconds
	Properties json.RawMessage // an object; nil for the empty one
}

// A Summary counts what a file holds.
type Summary struct {
	Facts      int64 // points of this kind
	Episodes   int64 // points of this kind
	Procedures int64 // points of this kind
	Versions   int64 // earlier versions of points
	Edges      int64
	Vectors    int64 // points that have a vector
	Bytes      int64 // length of the file
}

// Points is the number of points of all kinds.
func (s Summary) Points() int64 { return s.Facts + s.Episodes + s.Procedures }
