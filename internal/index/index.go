// Package index is the seam between the engine and an index that answers
// searches. The truth lies elsewhere; whatever an index keeps can be deleted
// and comes back from the truth and its journal.
//
// Strings that repeat (namespaces, scopes, tags, threads) come as the integers
// of the truth's dictionary.
package index

import "math"

// Kind is a record's kind as a small integer. The numbers are part of the
// index format and never change.
type Kind uint8

// A Document is what the index learns of one record.
type Document struct {
	ID        int64
	Namespace int64
	Kind      Kind
	Scope     int64
	// Thread is the sequence that the record stands in; 0: none. Who numbers
	// them is the caller's affair: threads are numbered by the dictionary, and
	// the chunks of a note stand in the note, under its id.
	Thread      int64
	Position    int64
	HasPosition bool
	CreatedAt   int64 // UTC microseconds
	Life        Life
	Tags        []int64 // ascending
	Metadata    []Attribute

	Text []string // field "text", piece by piece
	Name []string
	Tag  []string // the tags' own words
	Path []string
}

// A Life says when a record is there to be found, in UTC microseconds. Zero is no
// bound; the zero Life always shows.
type Life struct {
	Expires   int64 // it is gone at this time and later
	ValidFrom int64 // what it says holds from then on
	ValidTo   int64 // and no longer from then on
}

// At is a time as a Life and a Filter have it, for which 0 is none: the epoch and
// all before it stand one earlier.
func At(us int64) int64 {
	if us <= 0 && us > math.MinInt64 {
		us--
	}
	return us
}

// Shows says whether a filter for the given times lets see a record of this life.
// With now 0 nothing is expired; validAt is not looked at unless hasValid is set.
func (l *Life) Shows(now, validAt int64, hasValid bool) bool {
	if now != 0 && l.Expires != 0 && l.Expires <= now {
		return false
	}
	return !hasValid || (l.ValidFrom == 0 || l.ValidFrom <= validAt) && (l.ValidTo == 0 || validAt < l.ValidTo)
}

// An Attribute is one top-level scalar of a record's metadata.
type Attribute struct {
	Key   string
	Value Value
}

// ValueType orders and separates metadata values: values of different types
// never compare.
type ValueType uint8

// The types of a metadata value. Objects and arrays are TypeOther: they exist
// and equal nothing.
const (
	TypeNull ValueType = iota
	TypeBool
	TypeNumber
	TypeString
	TypeOther
)

// A Value is a metadata scalar.
type Value struct {
	Type   ValueType
	Number float64 // TypeNumber; 0 or 1 for TypeBool
	String string  // TypeString
}

// Field selects what a query is matched against.
type Field uint8

// The fields. FieldAll spans text, name and tags.
const (
	FieldAll Field = iota
	FieldText
	FieldName
	FieldPath
)

// A Query is an analysed query.
type Query struct {
	// Groups are the query's words. A record answers every group in the first
	// round and any of them in the second.
	Groups []Group
	// Chars are the single Han characters of the query's longer runs, tried in
	// the last round.
	Chars []string
	Field Field
}

// A Group is a query word with its expansions: any alternative stands for it.
type Group struct {
	Alternatives [][]string // terms; all terms of an alternative must be there
	Optional     []string   // terms that only add to the score, such as an identifier as a whole
}

// Operator is a metadata comparison.
type Operator uint8

// The operators.
const (
	OpEq Operator = iota
	OpNe
	OpLt
	OpLe
	OpGt
	OpGe
	OpIn
	OpExists
	OpMissing
)

// A Condition is one test of a metadata key; Values has one entry except for
// OpIn (any number) and OpExists, OpMissing (none).
type Condition struct {
	Key    string
	Op     Operator
	Values []Value
}

// A Filter narrows a search before its top k is cut.
type Filter struct {
	Namespace   int64
	Kinds       []Kind // required
	Scopes      []int64
	Tags        []int64 // all of them
	Where       []Condition
	HasFrom     bool
	HasTo       bool
	CreatedFrom int64   // inclusive
	CreatedTo   int64   // exclusive
	Threads     []int64 // any of them; none: whatever the thread
	// Now hides the records that are expired then; 0 hides none. HasValid narrows
	// to those whose content is valid at ValidAt. Statistics, such as those of
	// BM25, count what is hidden until it is deleted.
	Now      int64
	HasValid bool
	ValidAt  int64
}

// Round says how well a hit answers the query; lower is better.
type Round uint8

// The rounds.
const (
	RoundAll  Round = iota // every group
	RoundAny               // any group
	RoundChar              // any single Han character
)

// A Hit is a record that answers a query.
type Hit struct {
	ID    int64
	Kind  Kind
	Round Round
	// Score is the path score: the BM25 score, raised for an earlier round by
	// the maximum of the later ones, so that rounds never interleave.
	Score  float64
	BM25   float64
	Thread int64
	// NeighbourAdd and ThreadAdd are what the weights of Options added to Score.
	NeighbourAdd float64
	ThreadAdd    float64
}

// Options tune a search.
type Options struct {
	Limit int // candidates wanted
	Total bool
	// NeighbourWeight adds that share of the BM25 score of the better of the two
	// records next to a hit in its thread, of those that the filter lets see. The
	// neighbours of candidates become candidates.
	NeighbourWeight float64
	// ThreadWeight adds that share of the score of the hit's thread, taken as
	// one document of what the filter lets see of it.
	ThreadWeight float64
	ByThread     bool // rank threads, half by best record, half as one document
}

// Result is the answer to a search: hits by descending score, ties by
// ascending id. With Options.ByThread each hit is its thread's best record.
type Result struct {
	Hits  []Hit
	Total int64 // records that match at all; only with Options.Total
}

// TermScore is one matching term's share of a BM25 score.
type TermScore struct {
	Term  string
	Score float64
}

// A Change is one record's new state: Doc nil means deleted, and its vectors
// with it. A record that is staged anew keeps its vectors, which follow it into
// its new scope; its namespace and kind never change. With Vector set the change
// is to that vector alone and Doc is not looked at.
type Change struct {
	ID        int64
	Namespace int64
	Kind      Kind
	Doc       *Prepared
	Vector    *VectorChange
}

// Encoding says in which form an index scans vectors. The numbers are part of
// the index format and never change.
type Encoding uint8

// The encodings.
const (
	EncodingF32 Encoding = 1 // float32 as they are
	EncodingSQ8 Encoding = 2 // int8 codes with one scale a vector
)

// A VectorChange is the new state of a record's vector in one space. The record
// itself must have been staged before, or in the same batch before it. When a
// journal is read again, a vector that is gone by now, with its record or alone,
// is staged as gone.
type VectorChange struct {
	Space    int64 // 1 and up
	Encoding Encoding
	Scope    int64     // the record's
	Values   []float32 // of unit length, 1 to 65,536 of them; nil: the vector is gone
}

// A VectorQuery asks for the records whose vectors lie nearest to one.
type VectorQuery struct {
	Space  int64
	Values []float32 // of unit length and the space's dimension
	Limit  int
	// Want is how many of the hits, from the best, an answer from a part of the vectors
	// is to find; 0, or more than Limit, means all of them.
	Want int
	// Exact forbids answers from a part of the vectors only.
	Exact bool
	// Certain asks for every record that may be among the Limit nearest ones by the
	// cosines themselves: for more than Limit of them where the scanned form cannot
	// tell. It implies Exact.
	Certain bool
	// NoThreads leaves Thread of the hits 0.
	NoThreads bool
	// IDs narrows the search to these records, ascending; nil: no narrowing.
	IDs []int64
}

// A VectorHit is a record near to a query.
type VectorHit struct {
	ID     int64
	Kind   Kind
	Thread int64 // as in Document; 0 where Certain was asked for
	// Score is the cosine: up to rounding for EncodingF32, off by some millionths, at
	// worst by a few ten-thousandths, for EncodingSQ8.
	Score float32
	// Slack is how far the cosine may lie from Score, at most; 0 unless Certain was
	// asked for.
	Slack float32
}

// VectorResult is the answer to a VectorQuery: hits by descending score, ties by
// ascending id.
type VectorResult struct {
	Hits []VectorHit
	// Exact says that every vector that the filter lets see was looked at.
	Exact bool
	// Rest is for a query that asked for Certain: no record that was left out has a
	// cosine above it. It is below -1 when fewer than Limit were there.
	Rest float32
}

// VectorCount is how far a kind's records have vectors.
type VectorCount struct {
	Records int64 // of the namespace and kind
	Vectors int64 // of them in the space
}

// Prepared is a Document after analysis, ready to be staged. Making one is
// pure and needs no lock.
type Prepared struct {
	Document *Document
	Analysed any // the index's own form
}

// A View is an index snapshot: what the index held at one revision. It is safe
// for concurrent use and must be closed.
type View interface {
	Revision() int64
	Search(q Query, f Filter, o Options) (Result, error)
	// Explain gives the terms of q that the record holds, best first.
	Explain(q Query, id int64, namespace int64, kind Kind) []TermScore
	// Scores gives the BM25 scores of records of some kinds, which stand beside
	// their ids: 0 for one that holds none of q's words or that f does not let see.
	// Characters of the last round do not count. Ascending ids are the cheapest.
	Scores(q Query, f Filter, ids []int64, kinds []Kind) ([]float64, error)
	// Nearest finds the records whose vectors lie nearest to q's, of those that f
	// lets see. Filters act before the limit cuts.
	Nearest(q VectorQuery, f Filter) (VectorResult, error)
	// Adjacent gives, for each record of hits, the ids of the records before and
	// after it in its thread that f lets see; 0 where there is none.
	Adjacent(f Filter, ids []int64, kinds []Kind) [][2]int64
	// Count is the number of records that f lets see. It reads none of them where
	// f narrows by little: it is meant to be asked with every search.
	Count(f Filter) (int64, error)
	// CountVectors says how many records of a namespace and kind there are and
	// how many have a vector in a space.
	CountVectors(space, namespace int64, kind Kind) VectorCount
	// Missing gives records of a namespace and kind that have no vector in a
	// space, newest first, at most limit, skipping those that skip holds.
	Missing(space, namespace int64, kind Kind, limit int, skip func(id int64) bool) []int64
	Close()
}

// Stats are an index's counters.
type Stats struct {
	Documents int64
	Segments  int
	DiskBytes int64
	TailDocs  int64
	Vectors   int64 // of all spaces
}

// An Index answers searches and follows the journal. Stage, Publish, Discard
// and Checkpointed are called by one goroutine at a time, the writer; View and
// Stats by any.
type Index interface {
	// DropSpace forgets a space's vectors, for ever: its number is not used again.
	// It is called by the writer's goroutine between commits, and takes effect for
	// views made from now on; those that are open keep what they saw.
	DropSpace(space int64)
	// Prepare analyses a document. It is pure.
	Prepare(*Document) *Prepared
	// Stage takes the changes that lead to revision without showing them,
	// before the truth commits. It is memory only.
	Stage(revision int64, changes []Change)
	// Publish shows what was staged; Discard forgets it after a failed commit.
	Publish()
	Discard()
	// View gives the snapshot of exactly this revision, staged ones included,
	// since a reader may see the truth's commit before Publish runs. It gives
	// false when that revision is no longer or not yet known.
	View(revision int64) (View, bool)
	// Revision is the revision last published.
	Revision() int64
	// Checkpointed is the revision that the files on disk cover: the journal up
	// to it is no longer needed.
	Checkpointed() int64
	// Flush writes everything published to disk.
	Flush() error
	Stats() Stats
	Close() error
}
