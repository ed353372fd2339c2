package loci

import "encoding/json"

// DefaultNamespace is the namespace of records and filters that name none.
const DefaultNamespace = "default"

// PublicScope is the scope of records and filters that name none.
const PublicScope = "public"

// Limits that every surface enforces. Longer or larger input is refused with
// ErrValidation and nothing is written.
const (
	MaxNamespaceBytes = 512
	MaxScopeBytes     = 1024
	MaxLabelBytes     = 512     // memory_type, thread, predicate, entity type
	MaxNameBytes      = 1024    // name of an entity or an event, one alias after normalisation
	MaxAliases        = 256     // aliases of one entity
	MaxAttributes     = 256     // attribute names of one entity
	MaxParticipants   = 10000   // participants of one event
	MaxTagBytes       = 512     // one tag, after normalisation
	MaxTags           = 256     // tags of one record
	MaxTextBytes      = 1 << 20 // one text field of a record
	MaxMetadataBytes  = 1 << 20
	MaxEvidence       = 256
	MaxBatch          = 10000 // records in one upsert_many
	MaxPage           = 10000 // limit of a page or a search
	MaxQueryBytes     = 1 << 20
)

// ID identifies a record. The store allocates ids in ascending order and never
// reuses one. In JSON an ID is a decimal string, so that no reader rounds it;
// on input a whole number is taken as well.
type ID int64

// Kind says what a record is.
type Kind string

// The kinds of record.
const (
	KindMemory    Kind = "memory"
	KindEntity    Kind = "entity"
	KindRelation  Kind = "relation"
	KindEvent     Kind = "event"
	KindNote      Kind = "note"
	KindChunk     Kind = "chunk"
	KindPage      Kind = "page"
	KindFact      Kind = "fact"
	KindEpisode   Kind = "episode"
	KindProcedure Kind = "procedure"
)

// Metadata is a JSON object that belongs to the caller. It round-trips byte
// for byte as far as JSON allows: key order and number literals are kept. Nil
// stands for the empty object.
type Metadata json.RawMessage

// Header is what every record has, whatever its kind.
type Header struct {
	ID          ID         `json:"id"`
	Namespace   string     `json:"namespace"`
	Scope       string     `json:"scope"`
	Tags        []string   `json:"tags"`
	Evidence    []Evidence `json:"evidence"`
	Metadata    Metadata   `json:"metadata"`
	CreatedAtUS int64      `json:"created_at_us"`      // UTC microseconds since 1970
	UpdatedAtUS int64      `json:"updated_at_us"`      // UTC microseconds, never below CreatedAtUS
	Thread      string     `json:"thread,omitempty"`   // sequence this record stands in, "" for none
	Position    *int64     `json:"position,omitempty"` // place in the thread
	Revision    int64      `json:"revision"`           // the store's revision at the last write
}

// Evidence says where a record's content was taken from. It is a snapshot: the
// source may change or vanish.
type Evidence struct {
	Source         string   `json:"source"`                    // required
	SourceRevision string   `json:"source_revision,omitempty"` // version of the source
	ChunkID        *ID      `json:"chunk_id,omitempty"`
	Offset         *int64   `json:"offset,omitempty"` // first line, from 1; with Limit or not at all
	Limit          *int64   `json:"limit,omitempty"`  // number of lines, from 1
	Quote          string   `json:"quote,omitempty"`
	Metadata       Metadata `json:"metadata,omitempty"`
}

// RecordInput is the part of a write that every kind shares. Nil fields take
// the default on creation; on an update by id, nil Namespace and Scope keep
// what is stored, and nil Tags, Evidence and Metadata empty it.
type RecordInput struct {
	ID               ID         `json:"id,omitempty"`        // 0 creates; else the record to update
	Namespace        *string    `json:"namespace,omitempty"` // default DefaultNamespace
	Scope            *string    `json:"scope,omitempty"`     // default PublicScope
	Tags             []string   `json:"tags,omitempty"`
	Evidence         []Evidence `json:"evidence,omitempty"`
	Metadata         Metadata   `json:"metadata,omitempty"`
	CreatedAtUS      *int64     `json:"created_at_us,omitempty"` // default now; ignored on update
	UpdatedAtUS      *int64     `json:"updated_at_us,omitempty"` // default max(now, created)
	Thread           *string    `json:"thread,omitempty"`
	Position         *int64     `json:"position,omitempty"`          // needs Thread
	ExpectedRevision *int64     `json:"expected_revision,omitempty"` // refuse unless the record is at this revision
}

// ReadFilter says which records an operation may see. Every condition acts
// before a result is cut to its limit.
type ReadFilter struct {
	Namespace     *string     `json:"namespace,omitempty"` // default DefaultNamespace
	Scopes        []string    `json:"scopes,omitempty"`    // nil: ["public"]; empty: validation
	Tags          []string    `json:"tags,omitempty"`      // all of them
	NoteIDs       []ID        `json:"note_ids,omitempty"`  // only chunks of these notes
	Kinds         []Kind      `json:"kinds,omitempty"`     // nil: the operation's own
	Where         []Condition `json:"where,omitempty"`     // all of them
	CreatedFromUS *int64      `json:"created_from_us,omitempty"`
	CreatedToUS   *int64      `json:"created_to_us,omitempty"` // exclusive
	Thread        *string     `json:"thread,omitempty"`        // only this thread
}

// Operator compares a metadata value. Comparisons are strict about type: a
// number never equals or orders against a string.
type Operator string

// The operators of a metadata condition.
const (
	OpEq     Operator = "eq"
	OpNe     Operator = "ne" // key present with another value, or of another type
	OpLt     Operator = "lt"
	OpLe     Operator = "le"
	OpGt     Operator = "gt"
	OpGe     Operator = "ge"
	OpIn     Operator = "in"     // Value is an array of scalars
	OpExists Operator = "exists" // Value is true (default) or false
)

// Condition is one test of a top-level metadata key.
type Condition struct {
	Key   string          `json:"key"`
	Op    Operator        `json:"op"`
	Value json.RawMessage `json:"value,omitempty"` // a JSON scalar; an array for "in"
}

// PageRequest asks for one page of records in ascending id order.
type PageRequest struct {
	Filter ReadFilter `json:"filter,omitzero"`
	Limit  *int       `json:"limit,omitempty"` // 1..10000, default 50
	After  ID         `json:"after,omitempty"` // the previous page's next_cursor
}

// Page is one page of items. NextCursor is 0 on the last page.
type Page[T any] struct {
	Items      []T `json:"items"`
	NextCursor ID  `json:"next_cursor,omitempty"`
}

// Receipt is what a write returns: its value, and the store's revision that
// the write made. When a Receipt is returned the write is on disk.
type Receipt[T any] struct {
	Value    T     `json:"value"`
	Revision int64 `json:"revision"`
	// Redacted is what was taken out of the write, see WithRedaction.
	Redacted []Redacted `json:"redacted,omitempty"`
}
