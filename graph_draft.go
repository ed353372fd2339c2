package loci

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/valid"
)

// graphDraft is a batch, checked and normalised, so that the writer has little
// left to do.
type graphDraft struct {
	entities  []entityDraft
	relations []relationDraft
	events    []eventDraft
}

type entityDraft struct {
	recordDraft
	field      string // goes before field names in errors
	ref        string
	byName     bool
	name, key  string
	entityType string
	aliases    []string
	values     map[string][]string
	summary    string
}

type relationDraft struct {
	recordDraft
	field           string
	subject, object EntityRef
	predicate, key  string
	confidence      *float64
	reason          string
}

type eventDraft struct {
	recordDraft
	field        string
	name, key    string
	summary      string
	participants []EntityRef
	confidence   *float64
	reason       string
}

// draft checks a batch.
func (b *GraphBatch) draft(access *Access) (*graphDraft, error) {
	if n := len(b.Entities) + len(b.Relations) + len(b.Events); n > MaxBatch {
		return nil, errs.Invalid("", "the batch has %d records, at most %d are allowed", n, MaxBatch)
	}
	d := &graphDraft{
		entities: make([]entityDraft, len(b.Entities)), relations: make([]relationDraft, len(b.Relations)),
		events: make([]eventDraft, len(b.Events)),
	}
	refs := map[string]bool{}
	for i := range b.Entities {
		e := &d.entities[i]
		if err := e.fill(access, &b.Entities[i], fmt.Sprintf("entities[%d].", i)); err != nil {
			return nil, err
		}
		if e.ref == "" {
			continue
		}
		if refs[e.ref] {
			return nil, errs.Invalid(e.field+"ref", "is taken by another entity of the batch")
		}
		refs[e.ref] = true
	}
	for i := range b.Relations {
		if err := d.relations[i].fill(access, &b.Relations[i], fmt.Sprintf("relations[%d].", i), refs); err != nil {
			return nil, err
		}
	}
	for i := range b.Events {
		if err := d.events[i].fill(access, &b.Events[i], fmt.Sprintf("events[%d].", i), refs); err != nil {
			return nil, err
		}
	}
	return d, nil
}

func (d *entityDraft) fill(access *Access, in *EntityInput, field string) (err error) {
	d.field = field
	if d.recordDraft, err = in.RecordInput.draft(access, field); err != nil {
		return err
	}
	if in.Ref != "" {
		if err := valid.Label(field+"ref", in.Ref, MaxNameBytes); err != nil {
			return err
		}
		d.ref = in.Ref
	}
	switch in.Match {
	case "":
	case MatchByName:
		if in.ID != 0 {
			return errs.Invalid(field+"match", "goes without an id: give one or the other")
		}
		d.byName = true
	default:
		return errs.Invalid(field+"match", "must be %q or left out", MatchByName)
	}
	if d.name, d.key, err = validName(field+"name", in.Name, MaxNameBytes); err != nil {
		return err
	}
	d.entityType = DefaultEntityType
	if in.EntityType != nil {
		if err := valid.Label(field+"entity_type", *in.EntityType, MaxLabelBytes); err != nil {
			return err
		}
		d.entityType = *in.EntityType
	}
	if d.aliases, err = validAliases(field+"aliases", in.Aliases); err != nil {
		return err
	}
	if d.values, err = validAttributes(field+"attributes", in.Attributes); err != nil {
		return err
	}
	d.summary = in.Summary
	return validText(field+"summary", in.Summary)
}

func (d *relationDraft) fill(access *Access, in *RelationInput, field string, refs map[string]bool) (err error) {
	d.field = field
	if d.recordDraft, err = in.RecordInput.draft(access, field); err != nil {
		return err
	}
	for _, end := range []struct {
		name string
		ref  EntityRef
	}{{"subject", in.Subject}, {"object", in.Object}} {
		if err := end.ref.valid(field+end.name, refs); err != nil {
			return err
		}
	}
	d.subject, d.object = in.Subject, in.Object
	if d.predicate, d.key, err = validName(field+"predicate", in.Predicate, MaxLabelBytes); err != nil {
		return err
	}
	if d.confidence, err = validConfidence(field+"confidence", in.Confidence); err != nil {
		return err
	}
	d.reason = in.Reason
	return validText(field+"reason", in.Reason)
}

func (d *eventDraft) fill(access *Access, in *EventInput, field string, refs map[string]bool) (err error) {
	d.field = field
	if d.recordDraft, err = in.RecordInput.draft(access, field); err != nil {
		return err
	}
	if d.name, d.key, err = validName(field+"name", in.Name, MaxNameBytes); err != nil {
		return err
	}
	if len(in.Participants) > MaxParticipants {
		return errs.Invalid(field+"participants", "has %d entries, at most %d are allowed", len(in.Participants), MaxParticipants)
	}
	for i, p := range in.Participants {
		if err := p.valid(fmt.Sprintf("%sparticipants[%d]", field, i), refs); err != nil {
			return err
		}
	}
	d.participants = slices.Clone(in.Participants)
	if d.confidence, err = validConfidence(field+"confidence", in.Confidence); err != nil {
		return err
	}
	d.summary, d.reason = in.Summary, in.Reason
	if err := validText(field+"summary", in.Summary); err != nil {
		return err
	}
	return validText(field+"reason", in.Reason)
}

// valid checks that the reference names one entity, by id or by a ref of the
// batch.
func (r EntityRef) valid(field string, refs map[string]bool) error {
	switch {
	case r.ID != 0 && r.Ref != "":
		return errs.Invalid(field, "names an id and a ref: give one of them")
	case r.ID == 0 && r.Ref == "":
		return errs.Invalid(field, "must name an entity by id or by ref")
	case r.ID < 0:
		return errs.Invalid(field+".id", "must be above 0, not %d", r.ID)
	case r.Ref != "" && !refs[r.Ref]:
		return errs.Invalid(field+".ref", "is the ref of no entity of this batch")
	}
	return nil
}

// validName checks a name that is found by its normal form, and gives that
// too.
func validName(field, s string, limit int) (name, key string, err error) {
	if err := valid.Label(field, s, limit); err != nil {
		return "", "", err
	}
	if key = normalize(s); key == "" {
		return "", "", errs.Invalid(field, "must not be blank")
	}
	return s, key, nil
}

// validAliases normalises aliases, drops blank and repeated ones, and sorts
// them.
func validAliases(field string, aliases []string) ([]string, error) {
	var out []string
	for i, alias := range aliases {
		at := fmt.Sprintf("%s[%d]", field, i)
		if err := validText(at, alias); err != nil {
			return nil, err
		}
		alias = normalize(alias)
		switch {
		case alias == "":
			continue
		case len(alias) > MaxNameBytes:
			return nil, errs.Invalid(at, "is %d bytes long, at most %d are allowed", len(alias), MaxNameBytes)
		case strings.ContainsFunc(alias, unicode.IsControl):
			return nil, errs.Invalid(at, "must not hold control characters")
		}
		out = append(out, alias)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > MaxAliases {
		return nil, errs.Invalid(field, "has %d entries, at most %d are allowed", len(out), MaxAliases)
	}
	return out, nil
}

// validAttributes copies attributes, whose names and values are free.
func validAttributes(field string, attributes map[string][]string) (map[string][]string, error) {
	if len(attributes) > MaxAttributes {
		return nil, errs.Invalid(field, "has %d entries, at most %d are allowed", len(attributes), MaxAttributes)
	}
	out := make(map[string][]string, len(attributes))
	size := 0
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		// The name of an attribute is the caller's text: the error leaves it out.
		if err := valid.Label(field, name, MaxLabelBytes); err != nil {
			return nil, errs.Invalid(field, "the name of an attribute %s", err.(*errs.Error).Message)
		}
		size += len(name)
		for _, value := range attributes[name] {
			if !utf8.ValidString(value) {
				return nil, errs.Invalid(field, "a value is not valid UTF-8")
			}
			size += len(value) + 1
		}
		out[name] = slices.Clone(attributes[name])
		if out[name] == nil {
			out[name] = []string{}
		}
	}
	if size > MaxTextBytes {
		return nil, errs.Invalid(field, "are %d bytes long together, at most %d are allowed", size, MaxTextBytes)
	}
	return out, nil
}

// encodeAttributes is the stored form of attributes.
func encodeAttributes(attributes map[string][]string) ([]byte, error) {
	if len(attributes) == 0 {
		return nil, nil
	}
	return json.Marshal(attributes)
}

// decodeAttributes reads the stored form of attributes.
func decodeAttributes(raw []byte) (map[string][]string, error) {
	out := map[string][]string{}
	if len(raw) == 0 {
		return out, nil
	}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the stored attributes are damaged")
	}
	return out, nil
}

func validConfidence(field string, confidence *float64) (*float64, error) {
	if confidence != nil && !(*confidence >= 0 && *confidence <= 1) {
		return nil, errs.Invalid(field, "must be 0 to 1, not %v", *confidence)
	}
	return clonePtr(confidence), nil
}
