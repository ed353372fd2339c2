package store

import (
	"encoding/binary"
	"slices"
)

// Kind is a record's kind as a number. The numbers are stored, so they never
// change.
type Kind uint8

// The kinds.
const (
	KindMemory    Kind = 1
	KindEntity    Kind = 2
	KindRelation  Kind = 3
	KindEvent     Kind = 4
	KindNote      Kind = 5
	KindChunk     Kind = 6
	KindPage      Kind = 7
	KindFact      Kind = 8
	KindEpisode   Kind = 9
	KindProcedure Kind = 10

	kindLimit = 16
)

// Record is a record's header. The dictionary ids beside the strings are set
// by the store.
type Record struct {
	ID        int64
	Kind      Kind
	Namespace string
	Scope     string
	Thread    string // "" for none
	Position  *int64
	Created   int64
	Updated   int64
	Revision  int64
	Tags      []string // sorted by text
	Evidence  []Evidence
	Metadata  []byte // nil for the empty object

	NamespaceID int64
	ScopeID     int64
	ThreadID    int64
	TagIDs      []int64 // in the order of Tags

	hasEvidence bool
}

// Evidence says where a record's content was taken from.
type Evidence struct {
	Source         string
	SourceRevision string
	ChunkID        *int64
	Offset         *int64
	Limit          *int64
	Quote          string
	Metadata       []byte
}

// Memory is a memory record.
type Memory struct {
	Record
	Type         string
	Judgment     string
	Reasoning    string
	JudgmentHash int64 // of namespace, scope and normalised judgment
	State        State

	typeID int64
}

// State is a memory's lifecycle state.
type State struct {
	Pinned       bool
	Strength     float64
	UsefulCount  int64
	UsefulScore  float64
	LastRecalled *int64
	LastDecay    *int64
}

const flagEvidence = 1

func (r *Record) flags() int64 {
	if len(r.Evidence) > 0 {
		return flagEvidence
	}
	return 0
}

// A Filter says which records of one kind an operation covers.
type Filter struct {
	Namespace string
	Kind      Kind
	Scopes    []string
	Tags      []string // all of them
	Thread    string   // "" for any
	From      *int64   // creation, inclusive
	To        *int64   // creation, exclusive
}

// Covers says whether the filter covers the record.
func (f *Filter) Covers(r *Record) bool {
	return r.Kind == f.Kind && r.Namespace == f.Namespace && slices.Contains(f.Scopes, r.Scope) && f.coversRest(r)
}

// coversRest checks what the listing statements leave open.
func (f *Filter) coversRest(r *Record) bool {
	if f.Thread != "" && r.Thread != f.Thread {
		return false
	}
	if f.From != nil && r.Created < *f.From || f.To != nil && r.Created >= *f.To {
		return false
	}
	for _, tag := range f.Tags {
		if !slices.Contains(r.Tags, tag) {
			return false
		}
	}
	return true
}

func encodeIDs(ids []int64) []byte {
	if len(ids) == 0 {
		return nil
	}
	buf := make([]byte, 0, 3*len(ids))
	for _, id := range ids {
		buf = binary.AppendUvarint(buf, uint64(id))
	}
	return buf
}

func decodeIDs(buf []byte) []int64 {
	if len(buf) == 0 {
		return nil
	}
	ids := make([]int64, 0, len(buf)/2+1)
	for len(buf) > 0 {
		id, n := binary.Uvarint(buf)
		if n <= 0 {
			return ids
		}
		ids, buf = append(ids, int64(id)), buf[n:]
	}
	return ids
}
