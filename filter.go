package loci

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

const (
	maxFilterScopes = 10000
	maxFilterNotes  = 10000
	maxConditions   = 256
	defaultPage     = 50
)

// readFilter is a ReadFilter that was checked and had its defaults filled in.
type readFilter struct {
	store.Filter // its Kind is the operation's to set
	kinds        []index.Kind
	noteIDs      []ID
	where        []index.Condition
}

// check validates the filter; field goes before the names of its fields.
func (f *ReadFilter) check(field string) (*readFilter, error) {
	out := &readFilter{Filter: store.Filter{Namespace: DefaultNamespace, Scopes: []string{PublicScope}}}
	if f.Namespace != nil {
		if err := validLabel(field+"namespace", *f.Namespace, MaxNamespaceBytes); err != nil {
			return nil, err
		}
		out.Namespace = *f.Namespace
	}
	if f.Scopes != nil {
		if len(f.Scopes) == 0 {
			return nil, errs.Invalid(field+"scopes", "must name at least one scope; leave it out for %q", PublicScope)
		}
		if len(f.Scopes) > maxFilterScopes {
			return nil, errs.Invalid(field+"scopes", "has %d entries, at most %d are allowed", len(f.Scopes), maxFilterScopes)
		}
		for i, scope := range f.Scopes {
			if err := validLabel(fmt.Sprintf("%sscopes[%d]", field, i), scope, MaxScopeBytes); err != nil {
				return nil, err
			}
		}
		out.Scopes = slices.Clone(f.Scopes)
	}
	var err error
	if out.Tags, err = validTags(field+"tags", f.Tags); err != nil {
		return nil, err
	}
	if len(f.NoteIDs) > maxFilterNotes {
		return nil, errs.Invalid(field+"note_ids", "has %d entries, at most %d are allowed", len(f.NoteIDs), maxFilterNotes)
	}
	for i, id := range f.NoteIDs {
		if id < 1 {
			return nil, errs.Invalid(fmt.Sprintf("%snote_ids[%d]", field, i), "must be above 0, not %d", id)
		}
	}
	out.noteIDs = slices.Clone(f.NoteIDs)
	for i, kind := range f.Kinds {
		n := kind.number()
		if n == 0 {
			return nil, errs.Invalid(fmt.Sprintf("%skinds[%d]", field, i), "is not a kind of record")
		}
		out.kinds = append(out.kinds, n)
	}
	if out.where, err = checkConditions(field+"where", f.Where); err != nil {
		return nil, err
	}
	if f.CreatedFromUS != nil && f.CreatedToUS != nil && *f.CreatedFromUS > *f.CreatedToUS {
		return nil, errs.Invalid(field+"created_from_us", "is %d, after created_to_us %d", *f.CreatedFromUS, *f.CreatedToUS)
	}
	out.From, out.To = clonePtr(f.CreatedFromUS), clonePtr(f.CreatedToUS)
	if f.Thread != nil {
		if err := validLabel(field+"thread", *f.Thread, MaxLabelBytes); err != nil {
			return nil, err
		}
		out.Thread = *f.Thread
	}
	return out, nil
}

// memories narrows the filter to memories; false when it covers none.
func (f *readFilter) memories() bool {
	f.Kind = store.KindMemory
	return (len(f.kinds) == 0 || slices.Contains(f.kinds, index.Kind(store.KindMemory))) && len(f.noteIDs) == 0
}

// of is the filter for records of one kind; false when it covers none.
func (f *readFilter) of(kind store.Kind) (*readFilter, bool) {
	narrowed := *f
	narrowed.Kind = kind
	return &narrowed, (len(f.kinds) == 0 || slices.Contains(f.kinds, index.Kind(kind))) &&
		(len(f.noteIDs) == 0 || kind == store.KindChunk)
}

// covers says whether the filter covers a record, its metadata included.
func (f *readFilter) covers(r *store.Record) bool {
	return f.Covers(r) && f.coversMetadata(r)
}

func (f *readFilter) coversMetadata(r *store.Record) bool {
	if len(f.where) == 0 {
		return true
	}
	members, err := scanMetadata(r.Metadata)
	if err != nil {
		return false
	}
	attributes := attributes(members)
	for _, condition := range f.where {
		if !matchCondition(condition, attributes) {
			return false
		}
	}
	return true
}

var operators = map[Operator]index.Operator{
	OpEq: index.OpEq, OpNe: index.OpNe, OpLt: index.OpLt, OpLe: index.OpLe, OpGt: index.OpGt, OpGe: index.OpGe,
	OpIn: index.OpIn, OpExists: index.OpExists,
}

// checkConditions validates conditions and gives them as the index takes them.
func checkConditions(field string, conditions []Condition) ([]index.Condition, error) {
	if len(conditions) > maxConditions {
		return nil, errs.Invalid(field, "has %d entries, at most %d are allowed", len(conditions), maxConditions)
	}
	var out []index.Condition
	for i, c := range conditions {
		at := fmt.Sprintf("%s[%d]", field, i)
		op, ok := operators[c.Op]
		if !ok {
			return nil, errs.Invalid(at+".op", "must be eq, ne, lt, le, gt, ge, in or exists")
		}
		if err := validText(at+".key", c.Key); err != nil {
			return nil, err
		}
		converted := index.Condition{Key: c.Key, Op: op}
		raw := bytes.TrimSpace(c.Value)
		if len(raw) == 0 && op != index.OpExists {
			return nil, errs.Invalid(at+".value", "is required")
		}
		if len(raw) > 0 {
			if err := checkJSON(raw); err != nil {
				return nil, errs.Invalid(at+".value", "%s", err)
			}
		}
		switch op {
		case index.OpExists:
			switch string(raw) {
			case "", "true":
			case "false":
				converted.Op = index.OpMissing
			default:
				return nil, errs.Invalid(at+".value", "must be true or false")
			}
		case index.OpIn:
			if raw[0] != '[' {
				return nil, errs.Invalid(at+".value", "must be an array of scalars")
			}
			for _, element := range elements(raw) {
				v := scalarValue(element)
				if v.Type == index.TypeOther {
					return nil, errs.Invalid(at+".value", "must be an array of scalars")
				}
				converted.Values = append(converted.Values, v)
			}
		default:
			v := scalarValue(raw)
			if v.Type == index.TypeOther {
				return nil, errs.Invalid(at+".value", "must be a string, a number, true, false or null")
			}
			if op != index.OpEq && op != index.OpNe && v.Type != index.TypeNumber && v.Type != index.TypeString {
				return nil, errs.Invalid(at+".value", "must be a number or a string: nothing else has an order")
			}
			converted.Values = []index.Value{v}
		}
		out = append(out, converted)
	}
	return out, nil
}

// checkJSON checks one JSON value as strictly as metadata is checked.
func checkJSON(raw json.RawMessage) error {
	wrapped := make([]byte, 0, len(raw)+6)
	wrapped = append(append(append(wrapped, `{"v":`...), raw...), '}')
	members, err := scanMetadata(wrapped)
	if err != nil || len(members) != 1 || len(members[0].value) != len(raw) {
		return fmt.Errorf("is not a JSON value")
	}
	return nil
}

// matchCondition says whether metadata meets a condition. Comparisons are
// strict about type: values of different types are unequal and have no order.
// A missing key meets only OpMissing.
func matchCondition(c index.Condition, attributes []index.Attribute) bool {
	var v *index.Value
	for i := range attributes {
		if attributes[i].Key == c.Key {
			v = &attributes[i].Value
			break
		}
	}
	if v == nil {
		return c.Op == index.OpMissing
	}
	switch c.Op {
	case index.OpExists:
		return true
	case index.OpMissing:
		return false
	case index.OpIn:
		return slices.ContainsFunc(c.Values, func(w index.Value) bool { return sameValue(*v, w) })
	}
	w := c.Values[0]
	switch c.Op {
	case index.OpEq:
		return sameValue(*v, w)
	case index.OpNe:
		return !sameValue(*v, w)
	}
	if v.Type != w.Type {
		return false
	}
	var order int
	switch v.Type {
	case index.TypeNumber:
		order = compare(v.Number, w.Number)
	case index.TypeString:
		order = compare(v.String, w.String)
	default:
		return false
	}
	switch c.Op {
	case index.OpLt:
		return order < 0
	case index.OpLe:
		return order <= 0
	case index.OpGt:
		return order > 0
	default:
		return order >= 0
	}
}

func sameValue(a, b index.Value) bool { return a.Type != index.TypeOther && a == b }

func compare[T float64 | string](a, b T) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// checkLimit gives a limit or its default.
func checkLimit(field string, limit *int, otherwise int) (int, error) {
	if limit == nil {
		return otherwise, nil
	}
	if *limit < 1 || *limit > MaxPage {
		return 0, errs.Invalid(field, "must be 1 to %d, not %d", MaxPage, *limit)
	}
	return *limit, nil
}
