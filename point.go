package loci

import (
	"encoding/json"
	"strconv"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// PointID is the id that a caller gives a fact, an episode or a procedure; all 64
// bits may be used. In JSON it is a decimal string, so that no reader rounds it; on
// input a whole number is taken as well.
type PointID uint64

// MarshalJSON gives the id as a decimal string.
func (id PointID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(id), 10)), nil
}

// UnmarshalJSON takes a decimal string or a whole number; both are exact. Null is
// neither: it must not stand for 0, which is an id like any other.
func (id *PointID) UnmarshalJSON(data []byte) error {
	text := string(data)
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return errs.Invalid("id", "must be a whole number from 0 to 18446744073709551615, or one as a decimal string")
	}
	*id = PointID(n)
	return nil
}

// PointHeader is what facts, episodes and procedures have in common. They belong
// to an agent memory; package agent works with them.
type PointHeader struct {
	ID           PointID  `json:"id"`        // the caller's, unique among its kind in the memory
	RecordID     ID       `json:"record_id"` // the record, as graph views and copies know it
	Namespace    string   `json:"namespace"`
	Scope        string   `json:"scope"`
	Tags         []string `json:"tags"`
	Metadata     Metadata `json:"metadata"`
	Thread       string   `json:"thread,omitempty"`
	Position     *int64   `json:"position,omitempty"`
	CreatedAtUS  int64    `json:"created_at_us"`           // UTC microseconds, as all times; an episode's is when it happened
	UpdatedAtUS  int64    `json:"updated_at_us"`           // when anything about it was written last
	RecordedAtUS int64    `json:"recorded_at_us"`          // when this version of its content was stored
	ExpiresAtUS  *int64   `json:"expires_at_us,omitempty"` // gone from then on; nil: never
	Version      int64    `json:"version"`                 // 1 and up; earlier ones are in its history
	Revision     int64    `json:"revision"`                // the store's at the last write
}

// Fact is a piece of knowledge of an agent memory.
type Fact struct {
	PointHeader
	Content     string `json:"content"`
	ValidFromUS *int64 `json:"valid_from_us,omitempty"` // it holds from then on; nil: since ever
	ValidToUS   *int64 `json:"valid_to_us,omitempty"`   // and no longer from then on; nil: for ever
}

// Episode is something that happened, as an agent memory keeps it.
type Episode struct {
	PointHeader
	Description string `json:"description"`
	AtUS        int64  `json:"at_us"`
}

// Procedure is a way to do something, as an agent memory keeps it, and how well it
// served.
type Procedure struct {
	PointHeader
	Name       string   `json:"name"`
	Steps      []string `json:"steps"`
	Confidence float64  `json:"confidence"` // 0..1
	Uses       int64    `json:"uses"`
	Successes  int64    `json:"successes"`
	LastUsedUS *int64   `json:"last_used_us,omitempty"`
}

// procedureData is what the store keeps of a procedure beside its text.
type procedureData struct {
	Steps []string `json:"steps"`
}

// pointOf is a stored point as the caller gets it: a *Fact, an *Episode or a
// *Procedure.
func pointOf(p *store.Point) any {
	head := headerOf(&p.Record)
	h := PointHeader{
		ID: PointID(p.Key), RecordID: head.ID, Namespace: head.Namespace, Scope: head.Scope, Tags: head.Tags,
		Metadata: head.Metadata, Thread: head.Thread, Position: head.Position, CreatedAtUS: head.CreatedAtUS,
		UpdatedAtUS: head.UpdatedAtUS, RecordedAtUS: p.Recorded, ExpiresAtUS: p.Expires, Version: p.Version, Revision: head.Revision,
	}
	switch p.Kind {
	case store.KindEpisode:
		return &Episode{PointHeader: h, Description: p.Content, AtUS: valueOr(p.Happened, p.Created)}
	case store.KindProcedure:
		out := &Procedure{PointHeader: h, Name: p.Title, Confidence: p.Confidence, Uses: p.Uses, Successes: p.Successes, LastUsedUS: p.LastUsed}
		var data procedureData
		// What cannot be read is damage, which the deep check tells of; the text of
		// the steps is there all the same.
		if json.Unmarshal(p.Data, &data) != nil || len(data.Steps) == 0 {
			data.Steps = []string{p.Content}
		}
		out.Steps = data.Steps
		return out
	default:
		return &Fact{PointHeader: h, Content: p.Content, ValidFromUS: p.ValidFrom, ValidToUS: p.ValidTo}
	}
}

// pointText is what the index learns of a point before it is written.
func pointText(p *store.Point, attributes []index.Attribute) *index.Document {
	d := &index.Document{
		Kind: index.Kind(p.Kind), Text: []string{p.Content}, Tag: p.Tags, Metadata: attributes,
		Life: index.Life{Expires: bound(p.Expires), ValidFrom: bound(p.ValidFrom), ValidTo: bound(p.ValidTo)},
	}
	if p.Title != "" {
		d.Name = []string{p.Title}
	}
	return d
}

// bound is a time as the index takes it, for which 0 is none.
func bound(at *int64) int64 {
	if at == nil {
		return 0
	}
	return index.At(*at)
}

// pointDocument is what the index learns of a stored point.
func pointDocument(p *store.Point) *index.Document {
	return recordDocument(pointText(p, nil), &p.Record)
}

// hiddenPoint says whether a record is a point that is not to be seen: expired, or
// of a place that its memory has given up.
func (e *engine) hiddenPoint(tx placeReader, r store.Stored) (bool, error) {
	p, ok := r.(*store.Point)
	if !ok {
		return false, nil
	}
	if p.Expires != nil && *p.Expires <= e.lifeNow() {
		return true, nil
	}
	scope, ok, err := tx.StringID(p.Scope)
	if err != nil || !ok {
		return true, err
	}
	places, ok, err := tx.Places(p.NamespaceID, scope)
	return !ok || places[p.Kind-store.KindFact] != p.ScopeID, err
}

// placeReader is what places are read from: a snapshot, or the writer's
// transaction.
type placeReader interface {
	StringID(text string) (int64, bool, error)
	Places(namespace, scope int64) ([3]int64, bool, error)
}
