package store

// Page is a page of the context store: one record in one context scope, whose
// content is that of its current revision. The record's namespace is the first
// element of the scope and its scope the canonical form of it; its tags are
// those of the current revision, and are set by the store.
type Page struct {
	Record
	Context    int64  // the ContextScope that it belongs to
	PageID     string // the caller's id, unique in the scope
	Tier       PageTier
	Outline    bool
	Seq        int64 // place in core, 0 elsewhere
	Admission  int64 // place in working, 0 elsewhere
	RowVersion int64 // version at which the outline row last changed, 0 for a page that is none
	PinReason  string

	Hits         int64
	Touched      int64 // tick of the last touch
	TouchedAt    int64 // UTC microseconds of the last touch
	EvictedTurn  int64 // turn of the last eviction, -1 for none
	ProtectedTo  int64 // turn up to which it is evicted last
	Faults       int64
	OriginKind   Kind // of the record that the page is a copy of, 0 for a page that is none
	OriginID     int64
	PageRevision // the current one
}

// PageTier says where a page lies. The numbers are stored.
type PageTier uint8

// The tiers of pages.
const (
	TierArchived PageTier = 0
	TierWorking  PageTier = 1
	TierCore     PageTier = 2
)

// PageRevision is one revision of a page. A revision never changes, but for
// links to pages that are removed.
type PageRevision struct {
	Version    int64
	At         int64  // UTC microseconds
	Operation  string // what made it
	Title      string
	Summary    string
	Content    string
	Tags       []string // sorted
	Importance float64
	Source     string
	Links      []int64 // ids of pages of the scope, in the caller's order
}

// ContextScope is what the context store keeps about a scope. State is a JSON
// object of package pager.
type ContextScope struct {
	ID        int64
	Namespace string
	Scope     string
	Version   int64 // grows with every change to the scope or its pages
	State     []byte

	NamespaceID, ScopeID int64
}

// PageState is what a page's residency is made of: what a change of tier or a
// touch writes, apart from its revisions.
type PageState struct {
	Tier        PageTier
	Outline     bool
	Seq         int64
	Admission   int64
	RowVersion  int64
	PinReason   string
	Hits        int64
	Touched     int64
	TouchedAt   int64
	EvictedTurn int64
	ProtectedTo int64
	Faults      int64
}

// PageVersionInfo says of a revision what a list of revisions shows.
type PageVersionInfo struct {
	Version   int64
	At        int64 // UTC microseconds
	Operation string
	Bytes     int64 // of its content
}

// PageHead is a page without its text.
type PageHead struct {
	ID          int64 // record
	PageID      string
	Version     int64
	Tier        PageTier
	Outline     bool
	Seq         int64
	Admission   int64
	Bytes       int64 // of its content
	Hits        int64
	Touched     int64 // tick
	TouchedAt   int64 // UTC microseconds
	EvictedTurn int64 // -1 for none
	Title       string
	Importance  float64
}

// LogType tells the entries of a scope's log apart. The numbers are stored.
type LogType uint8

// The types of log entries.
const (
	LogRender    LogType = 1 // published bytes changed
	LogResidency LogType = 2 // a page changed its tier
	LogUsage     LogType = 3 // a model call was billed
)

// LogEntry is an entry of a scope's log. Body is a JSON object of package pager.
type LogEntry struct {
	Number int64  // ascending within scope and type, from 1
	At     int64  // UTC microseconds
	Key    string // unique within scope and type; "" for none
	Body   []byte
}

// Checkpoint is a state of a scope's pages to come back to.
type Checkpoint struct {
	ID      int64
	Context int64
	Label   string
	At      int64
	Pages   []CheckpointPage // by page id (record id)
}

// CheckpointPage is a page in a checkpoint. It may be removed for good later:
// the checkpoint then still names it.
type CheckpointPage struct {
	ID         int64 // record
	Version    int64
	Tier       PageTier
	Outline    bool
	Seq        int64
	Admission  int64
	RowVersion int64 // of an outline row, as in Page
}
