package loci

// DefaultMemoryType is the type of a memory that names none.
const DefaultMemoryType = "knowledge"

// The memory types the product knows by name; any other word is allowed.
const (
	MemoryKnowledge = "knowledge"
	MemorySkill     = "skill"
	MemoryEmotion   = "emotion"
	MemoryEvent     = "event"
	MemoryTask      = "task"
	MemoryGraph     = "graph"
)

// Memory is one thing remembered: a judgment, why it holds, and how well it
// has served.
type Memory struct {
	Header
	MemoryType string      `json:"memory_type"`
	Judgment   string      `json:"judgment"`
	Reasoning  string      `json:"reasoning"`
	State      MemoryState `json:"state"`
}

// MemoryState is a memory's lifecycle state. Numbers are finite and never
// negative; times are UTC microseconds.
type MemoryState struct {
	Pinned           bool    `json:"pinned"`
	Strength         float64 `json:"strength"` // default 1
	UsefulCount      int64   `json:"useful_count"`
	UsefulScore      float64 `json:"useful_score"`
	LastRecalledAtUS *int64  `json:"last_recalled_at_us,omitempty"`
	LastDecayAtUS    *int64  `json:"last_decay_at_us,omitempty"`
}

// MemoryInput is a memory to write.
type MemoryInput struct {
	RecordInput
	MemoryType *string      `json:"memory_type,omitempty"` // default DefaultMemoryType
	Judgment   string       `json:"judgment"`              // required, not blank
	Reasoning  string       `json:"reasoning,omitempty"`
	State      *MemoryState `json:"state,omitempty"` // nil keeps the stored state
}

// DecayPolicy tunes feedback and decay. Nil fields take the defaults of
// DefaultDecayPolicy.
type DecayPolicy struct {
	Tier0Threshold   *float64 `json:"tier0_threshold,omitempty"`    // default 3
	Tier1Threshold   *float64 `json:"tier1_threshold,omitempty"`    // default 10
	UsefulScoreBoost *float64 `json:"useful_score_boost,omitempty"` // default 2.5
	StrengthBoost    *float64 `json:"strength_boost,omitempty"`     // default 1
	Tier0CycleDays   *int64   `json:"tier0_cycle_days,omitempty"`   // default 3
}

// FeedbackRequest reports which of the recalled memories were useful.
type FeedbackRequest struct {
	Filter      ReadFilter  `json:"filter,omitzero"`
	RecalledIDs []ID        `json:"recalled_ids"`
	UsefulIDs   []ID        `json:"useful_ids,omitempty"` // a subset of RecalledIDs
	NowUS       *int64      `json:"now_us,omitempty"`     // default: the store's clock
	Policy      DecayPolicy `json:"policy,omitzero"`
}

// FeedbackReport counts what feedback did.
type FeedbackReport struct {
	Recalled  int `json:"recalled"`
	Boosted   int `json:"boosted"`
	Penalized int `json:"penalized"`
}

// DecayRequest asks for one decay pass over what the filter covers.
type DecayRequest struct {
	Filter ReadFilter  `json:"filter,omitzero"`
	Policy DecayPolicy `json:"policy,omitzero"`
	AtUS   *int64      `json:"at_us,omitempty"` // default: the store's clock
}

// DecayReport says what a decay pass did. RetirementCandidates are memories
// whose strength is 0 and that never proved themselves; none is deleted.
type DecayReport struct {
	Decayed              int  `json:"decayed"`
	RetirementCandidates []ID `json:"retirement_candidates"`
}

// DeleteRequest asks for the deletion of everything a filter covers.
type DeleteRequest struct {
	Filter ReadFilter `json:"filter,omitzero"`
	DryRun bool       `json:"dry_run,omitempty"` // count only
}
