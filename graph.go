package loci

// DefaultEntityType is the type of an entity that names none.
const DefaultEntityType = "concept"

// DefaultConfidence is the confidence of a relation or event that names none.
const DefaultConfidence = 0.8

// PredicateSameAs is the built-in symmetric predicate that makes two entities
// one node wherever a graph is walked. It is never an edge.
const PredicateSameAs = "sys:same_as"

// ExpandQueryLimit is the most words that a query is expanded by.
const ExpandQueryLimit = 64

// MatchByName makes an entity of a batch update the one of its normal name and
// type in the scope, if there is one.
const MatchByName = "name"

// Direction says which way a relation may be walked.
type Direction string

// The directions. DirectionOut is the default.
const (
	DirectionOut  Direction = "out"  // from subject to object
	DirectionIn   Direction = "in"   // from object to subject
	DirectionBoth Direction = "both" // either way
)

// Entity is a node of the knowledge graph. Entities of the same name are never
// merged by themselves.
type Entity struct {
	Header
	Name       string              `json:"name"`
	EntityType string              `json:"entity_type"`
	Aliases    []string            `json:"aliases"`    // normalised, sorted
	Attributes map[string][]string `json:"attributes"` // free-form
	Summary    string              `json:"summary"`
}

// Relation is a directed edge between two entities.
type Relation struct {
	Header
	SubjectID  ID      `json:"subject_id"`
	Predicate  string  `json:"predicate"`
	ObjectID   ID      `json:"object_id"`
	Confidence float64 `json:"confidence"` // 0..1
	Reason     string  `json:"reason"`
}

// Event is something that happened to entities.
type Event struct {
	Header
	Name         string  `json:"name"`
	Summary      string  `json:"summary"`
	Participants []ID    `json:"participants"` // distinct, ascending
	Confidence   float64 `json:"confidence"`   // 0..1
	Reason       string  `json:"reason"`
}

// EntityInput is an entity to write.
type EntityInput struct {
	RecordInput
	Ref        string              `json:"ref,omitempty"`         // name of this entity inside the batch
	Match      string              `json:"match,omitempty"`       // MatchByName or ""
	Name       string              `json:"name"`                  // required; refused, not trimmed, when it has outer blanks
	EntityType *string             `json:"entity_type,omitempty"` // default DefaultEntityType
	Aliases    []string            `json:"aliases,omitempty"`     // other names it goes by
	Attributes map[string][]string `json:"attributes,omitempty"`  // lists of words under names of your own
	Summary    string              `json:"summary,omitempty"`     // what it is, in a few words
}

// EntityRef names an entity by id or by its ref inside the batch.
type EntityRef struct {
	ID  ID     `json:"id,omitempty"`  // an entity that is stored
	Ref string `json:"ref,omitempty"` // the ref of an entity of the same batch
}

// RelationInput is a relation to write. Without an id, the relation of the same
// subject, predicate and object in the scope is updated, if there is one.
type RelationInput struct {
	RecordInput
	Subject    EntityRef `json:"subject"`              // where the edge begins
	Predicate  string    `json:"predicate"`            // required; refused, not trimmed, when it has outer blanks
	Object     EntityRef `json:"object"`               // where the edge ends
	Confidence *float64  `json:"confidence,omitempty"` // 0..1, default 0.8
	Reason     string    `json:"reason,omitempty"`     // why it holds
}

// EventInput is an event to write. Without an id, the event of the same name and
// participants in the scope is updated, if there is one.
type EventInput struct {
	RecordInput
	Name         string      `json:"name"`                   // required; refused, not trimmed, when it has outer blanks
	Summary      string      `json:"summary,omitempty"`      // what happened, in a few words
	Participants []EntityRef `json:"participants,omitempty"` // whom it happened to, in any order
	Confidence   *float64    `json:"confidence,omitempty"`   // 0..1, default 0.8
	Reason       string      `json:"reason,omitempty"`       // why it is believed
}

// GraphBatch is written whole or not at all, entities first, then relations,
// then events.
type GraphBatch struct {
	Entities  []EntityInput   `json:"entities,omitempty"`
	Relations []RelationInput `json:"relations,omitempty"`
	Events    []EventInput    `json:"events,omitempty"`
}

// GraphBatchResult is what a batch became, in its order.
type GraphBatchResult struct {
	Entities  []Entity   `json:"entities"`
	Relations []Relation `json:"relations"`
	Events    []Event    `json:"events"`
}

// Neighborhood is what lies one hop around an entity, itself left out. Both
// lists ascend by id.
type Neighborhood struct {
	Entities  []Entity   `json:"entities"`
	Relations []Relation `json:"relations"`
}

// PredicateRule says what a predicate implies the other way round. It adds
// edges when a graph is walked and never records.
type PredicateRule struct {
	Namespace string `json:"namespace,omitempty"` // "" for the whole store
	Predicate string `json:"predicate"`
	Inverse   string `json:"inverse,omitempty"`
	Symmetric bool   `json:"symmetric,omitempty"`
}
