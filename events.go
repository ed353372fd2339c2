package loci

// LogEvent tells an event sink about one search or one rebuild. It never holds
// query text or record text.
type LogEvent struct {
	TS         string             `json:"ts"`   // RFC 3339 with milliseconds, UTC
	Kind       string             `json:"kind"` // "search" or "rebuild"
	MS         float64            `json:"ms"`
	Stages     map[string]float64 `json:"stages"` // stage to milliseconds: prepare, text, fuse, fold, count, load
	Candidates int                `json:"candidates"`
	Folded     int                `json:"folded"` // candidates left after folding
	RerankDocs int                `json:"rerank_docs"`
	Hits       int                `json:"hits"`
	Degraded   []Degrade          `json:"degraded,omitempty"`
}

// EventSink receives log events, one at a time, on a goroutine of its own. A
// sink that panics loses that event only.
type EventSink func(LogEvent)
