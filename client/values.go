package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
)

// ID identifies a record. In JSON it is a decimal string, so that no reader rounds
// it.
type ID int64

// MarshalJSON gives the id as a decimal string.
func (id ID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(id), 10)), nil
}

// UnmarshalJSON takes a decimal string or a whole number.
func (id *ID) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	n, err := strconv.ParseInt(unquoted(data), 10, 64)
	*id = ID(n)
	return err
}

// PointID identifies a fact, an episode or a procedure: a number of the caller's
// choice. In JSON it is a decimal string.
type PointID uint64

// MarshalJSON gives the id as a decimal string.
func (id PointID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatUint(uint64(id), 10)), nil
}

// UnmarshalJSON takes a decimal string or a whole number. Null is neither, since 0
// is an id like any other.
func (id *PointID) UnmarshalJSON(data []byte) error {
	n, err := strconv.ParseUint(unquoted(data), 10, 64)
	*id = PointID(n)
	return err
}

func unquoted(data []byte) string { return string(bytes.Trim(data, `"`)) }

// Record is a record of any kind, as a search or a list of several kinds gives it.
type Record json.RawMessage

// MarshalJSON gives the record as it came.
func (r Record) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps the record as it is.
func (r *Record) UnmarshalJSON(data []byte) error {
	*r = append(Record(nil), data...)
	return nil
}

// Decode reads the record into a value of the type that it is known to have, such
// as a *Memory.
func (r Record) Decode(into any) error { return json.Unmarshal(r, into) }

// Kind tells what the record is by what it holds; "" for what this client does not
// know.
func (r Record) Kind() Kind {
	var has map[string]json.RawMessage
	if json.Unmarshal(r, &has) != nil {
		return ""
	}
	for _, k := range []struct {
		field string
		kind  Kind
	}{
		{"judgment", KindMemory}, {"entity_type", KindEntity}, {"subject_id", KindRelation}, {"participants", KindEvent},
		{"chunk_chars", KindNote}, {"note_id", KindChunk}, {"page_id", KindPage}, {"steps", KindProcedure},
		{"description", KindEpisode}, {"record_id", KindFact},
	} {
		if _, ok := has[k.field]; ok {
			return k.kind
		}
	}
	return ""
}

// Value is As for the record's own kind.
//
//	switch v := value.(type) {
//	case *client.Memory: ...
//	case *client.Chunk: ...
//	}
func (r Record) Value() (any, error) { return r.As(r.Kind()) }

// As gives a record of a kind: a *Memory, *Entity, *Relation, *Event, *Note,
// *Chunk, *ContextPage, *Fact, *Episode or *Procedure.
func (r Record) As(kind Kind) (any, error) {
	var v any
	switch kind {
	case KindMemory:
		v = new(Memory)
	case KindEntity:
		v = new(Entity)
	case KindRelation:
		v = new(Relation)
	case KindEvent:
		v = new(Event)
	case KindNote:
		v = new(Note)
	case KindChunk:
		v = new(Chunk)
	case KindPage:
		v = new(ContextPage)
	case KindFact:
		v = new(Fact)
	case KindEpisode:
		v = new(Episode)
	case KindProcedure:
		v = new(Procedure)
	default:
		return nil, fmt.Errorf("records of the kind %q are not known to this client", string(kind))
	}
	if err := r.Decode(v); err != nil {
		return nil, fmt.Errorf("the %s is not what this client knows: %w", kind, err)
	}
	return v, nil
}
