package store

import (
	"errors"
	"strconv"
	"strings"
)

// Point is a fact, an episode or a procedure of an agent memory. The record's
// scope is the memory's, as callers know it; its ScopeID is the place where the
// point lies.
type Point struct {
	Record
	Key       uint64 // the caller's id, unique in its place
	Version   int64  // 1 and up, grows with what the history keeps
	Recorded  int64  // when this version was stored
	Expires   *int64 // all times are UTC microseconds
	ValidFrom *int64
	ValidTo   *int64
	Happened  *int64 // an episode's time

	Confidence float64 // a procedure's, 0..1
	Uses       int64
	Successes  int64
	LastUsed   *int64

	Title   string // a procedure's name
	Data    []byte // what else the kind has, a JSON object; nil for nothing
	Content string
}

// PointVersion is an earlier version of a point.
type PointVersion struct {
	Version    int64
	Recorded   int64
	RecordedTo int64 // when the next one was stored
	ValidFrom  *int64
	ValidTo    *int64
	Title      string
	Data       []byte
	Metadata   []byte
	Content    string
}

// PointHit is what an answer to a query shows of a point. Vector is valid until
// the next call with the same room for it.
type PointHit struct {
	Key     uint64
	Content string
	Vector  []float32 // empty: none
	Norm    float64
}

// PointText is what an answer shows of a point, without its vector.
type PointText struct {
	Key      uint64
	Content  string
	Metadata []byte // only if it was asked for
}

// AgentMemory is what is kept about an agent memory.
type AgentMemory struct {
	ID         int64
	Namespace  string
	Scope      string
	Dimension  int
	Space      string // name of the embedding space of its vectors
	Places     [3]int64
	Generation int64 // of the place made last
	Snapshot   int64 // version of the snapshot taken last
	Settings   []byte

	NamespaceID, ScopeID int64
}

// Place is where the points of a kind lie.
func (m *AgentMemory) Place(k Kind) int64 { return m.Places[k-KindFact] }

// IsPoint says whether a kind is one of agent memory.
func (k Kind) IsPoint() bool { return k >= KindFact && k <= KindProcedure }

// placeMark begins the names of places. No caller's scope holds a control
// character.
const placeMark = "\x01"

// A placeName says whose place something is. The memory's id is in it because two
// namespaces may have a scope of one name, and a place belongs to one memory alone.
type placeName struct {
	memory, generation int64
	kind               Kind
	scope              string // the memory's
}

func (n placeName) String() string {
	return placeMark + itoa(n.memory) + "/" + itoa(n.generation) + "/" + itoa(int64(n.kind)) + "/" + n.scope
}

// placeOf reads the name of a place; false when it is none.
func placeOf(name string) (n placeName, ok bool) {
	rest, marked := strings.CutPrefix(name, placeMark)
	parts := strings.SplitN(rest, "/", 4)
	if !marked || len(parts) != 4 {
		return n, false
	}
	memory, err1 := strconv.ParseInt(parts[0], 10, 64)
	generation, err2 := strconv.ParseInt(parts[1], 10, 64)
	kind, err3 := strconv.ParseUint(parts[2], 10, 8)
	n = placeName{memory, generation, Kind(kind), parts[3]}
	return n, errors.Join(err1, err2, err3) == nil && n.kind.IsPoint() && n.String() == name
}

// scopeOfPlace is the scope of the memory that a place belongs to; a scope that
// is none stays as it is.
func scopeOfPlace(name string) string {
	if n, ok := placeOf(name); ok {
		return n.scope
	}
	return name
}

// orderedKey is a caller's id as it is stored, and back.
func orderedKey(key uint64) int64   { return int64(key ^ 1<<63) }
func keyOfOrdered(key int64) uint64 { return uint64(key) ^ 1<<63 }
