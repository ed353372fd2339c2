package pager

import "github.com/loci-memory/loci"

// Tier says where a page lies.
type Tier = loci.PageTier

// The tiers.
const (
	Archive = loci.PageArchive
	Working = loci.PageWorking
	Core    = loci.PageCore
)

// Reference names a page and says what is known about it, all but its content.
type Reference struct {
	PageID      string   `json:"page_id"`
	Version     int64    `json:"version"`
	Tier        Tier     `json:"tier"`
	Mode        string   `json:"mode"`          // how it is rendered: "full" or, as an outline row, "index"
	Seq         int64    `json:"seq,omitempty"` // place in core
	Title       string   `json:"title,omitempty"`
	Tags        []string `json:"tags"`
	Summary     string   `json:"summary,omitempty"`
	Bytes       int      `json:"bytes"` // UTF-8 bytes of its content
	Importance  float64  `json:"importance"`
	Source      string   `json:"source,omitempty"`
	Links       []string `json:"links,omitempty"`
	PinReason   string   `json:"pin_reason,omitempty"`
	Origin      *Origin  `json:"origin,omitempty"`    // the record that it is a copy of
	IngestID    string   `json:"ingest_id,omitempty"` // the text that it was cut from
	Ordinal     *int64   `json:"ordinal,omitempty"`   // its place in that text, from 0
	Hits        int64    `json:"hits"`
	CreatedAtUS int64    `json:"created_at_us"`
	UpdatedAtUS int64    `json:"updated_at_us"`

	links []int64 // records, until complete names them
}

// Origin says which record a page is a copy of.
type Origin struct {
	Kind     loci.Kind `json:"kind"`
	ID       loci.ID   `json:"id"`
	Revision int64     `json:"revision"`        // of the record when it was copied; the page's version
	Stale    bool      `json:"stale,omitempty"` // the record has changed since: page_in takes the change
}

// Snapshot says what is in the window.
type Snapshot struct {
	Generation        int64    `json:"generation"` // of the bytes published last
	Epoch             int64    `json:"residency_epoch"`
	SHA               string   `json:"sha"`                 // SHA-256 of the text, lower-case hex
	CoreSHA           string   `json:"core_sha"`            // of its stable prefix
	StablePrefixBytes int      `json:"stable_prefix_bytes"` // up to and with the last core page
	TextBytes         int      `json:"text_bytes"`
	Changed           bool     `json:"changed"` // as against what the caller has
	Pressure          Pressure `json:"pressure"`
	Text              *string  `json:"text,omitempty"`
}

// Pressure says how full the window is.
type Pressure struct {
	Level  string  `json:"level"` // "low", "advisory" from 70 %, "high" from the policy's threshold, "hard" from its hard threshold
	Cost   int     `json:"cost"`  // of the whole text
	Budget int     `json:"budget"`
	Unit   Unit    `json:"unit"`
	Used   float64 `json:"used"` // cost over budget
}

// Movement is an entry of the paging ledger: a page that changed its tier.
type Movement struct {
	AtUS      int64  `json:"at_us"`
	Operation string `json:"operation"`
	PageID    string `json:"page_id"`
	From      string `json:"from"` // a tier, or "none" for a new page
	To        string `json:"to"`   // a tier, or "none" for one that was removed
	Reason    string `json:"reason"`
	Bytes     int    `json:"bytes"`           // of its content
	Fault     bool   `json:"fault,omitempty"` // it had been evicted shortly before
}

// RenderEvent is a change of the published bytes and what it cost.
type RenderEvent struct {
	AtUS              int64       `json:"at_us"`
	Generation        int64       `json:"generation"`
	First             bool        `json:"first,omitempty"` // nothing was published before
	TextBytes         int         `json:"text_bytes"`
	StablePrefixBytes int         `json:"stable_prefix_bytes"`
	CommonBytes       int         `json:"common_bytes"`      // from the start, the same as before
	InvalidatedBytes  int         `json:"invalidated_bytes"` // of the old text, behind those
	RewrittenBytes    int         `json:"rewritten_bytes"`   // of the new text, behind those
	PrefixIntact      bool        `json:"prefix_intact"`     // the old stable prefix stands as it was
	Operations        []Operation `json:"operations"`        // since the publication before
}

// Operation is an operation that changed the window.
type Operation struct {
	Name   string `json:"operation"`
	PageID string `json:"page_id,omitempty"`
}
