package loci

// HealthReport is the store's state in counters. It costs microseconds; the
// integrity fields hold the result of the last deep check.
type HealthReport struct {
	SchemaVersion       int              `json:"schema_version"`
	Revision            int64            `json:"revision"`
	IndexedRevision     int64            `json:"indexed_revision"`
	PendingIndexUpdates int64            `json:"pending_index_updates"`
	IndexUsable         bool             `json:"index_usable"`
	IndexedDocuments    int64            `json:"indexed_documents"`
	RecordCount         int64            `json:"record_count"`
	Counts              map[string]int64 `json:"counts"` // by kind, kinds without records left out
	LastDegraded        []Degrade        `json:"last_degraded"`
	Integrity           string           `json:"integrity,omitempty"` // "ok", or what the database reports; empty before the first deep check
	ForeignKeyErrors    int64            `json:"foreign_key_errors"`
	IntegrityAtUS       int64            `json:"integrity_at_us,omitempty"`
	DroppedEvents       int64            `json:"dropped_events"` // log events lost because the sink was slow
}

// RebuildProgress is a snapshot of an index rebuild.
type RebuildProgress struct {
	Active    bool  `json:"active"`
	Processed int64 `json:"processed"` // records read so far
	Total     int64 `json:"total"`     // records there were when it began
}
