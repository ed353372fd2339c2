package strictjson

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
)

// IDFormat marks a schema as a 64-bit id: a decimal string, though a whole
// number is taken as well.
const IDFormat = "int64"

// UnsignedFormat marks a schema as a number of 64 bits without sign: an integer, or
// an id like that of IDFormat.
const UnsignedFormat = "uint64"

// OneOrMore marks a schema of an array of strings as one for which a single
// string is taken as well.
const OneOrMore = "one-or-more"

// Types are the types whose JSON form differs from their Go form, and the closed
// sets of words.
func Types() map[reflect.Type]*jsonschema.Schema {
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[loci.ID]():         {Type: "string", Format: IDFormat, Pattern: "^[0-9]{1,19}$"},
		reflect.TypeFor[loci.PointID]():    {Type: "string", Format: UnsignedFormat, Pattern: "^[0-9]{1,20}$"},
		reflect.TypeFor[loci.Metadata]():   {Type: "object"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[loci.Kind](): Words(
			string(loci.KindMemory), string(loci.KindEntity), string(loci.KindRelation), string(loci.KindEvent),
			string(loci.KindNote), string(loci.KindChunk), string(loci.KindPage), string(loci.KindFact),
			string(loci.KindEpisode), string(loci.KindProcedure)),
		reflect.TypeFor[loci.Operator](): Words(
			string(loci.OpEq), string(loci.OpNe), string(loci.OpLt), string(loci.OpLe),
			string(loci.OpGt), string(loci.OpGe), string(loci.OpIn), string(loci.OpExists)),
		reflect.TypeFor[loci.MatchField](): Words(
			string(loci.MatchAll), string(loci.MatchText), string(loci.MatchName), string(loci.MatchPath)),
		reflect.TypeFor[loci.GroupBy]():   Words(string(loci.GroupNone), string(loci.GroupThread)),
		reflect.TypeFor[loci.Direction](): Words(string(loci.DirectionOut), string(loci.DirectionIn), string(loci.DirectionBoth)),
		reflect.TypeFor[loci.Fusion]():    Words(string(loci.FusionScore), string(loci.FusionRRF)),
		reflect.TypeFor[loci.Tier](): Words(
			string(loci.TierMemory), string(loci.TierGraph), string(loci.TierNotes), string(loci.TierPages), string(loci.TierAgent)),
		reflect.TypeFor[loci.VectorEncoding](): Words(string(loci.EncodingSQ8), string(loci.EncodingF32)),
		reflect.TypeFor[loci.PageTier]():       Words(string(loci.PageCore), string(loci.PageWorking), string(loci.PageArchive)),
	}
}

// Words is the schema of a closed set of words.
func Words(ws ...string) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for _, w := range ws {
		s.Enum = append(s.Enum, w)
	}
	return s
}

// Infer makes the schema of T: without ["null", x] unions, which some clients
// refuse. special are types whose schema is given. doc, if not nil, describes a
// field of a struct.
func Infer[T any](special map[reflect.Type]*jsonschema.Schema, doc func(owner reflect.Type, field, name string) string) (*jsonschema.Schema, error) {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	f := finisher{special, doc}
	f.finish(s, reflect.TypeFor[T]())
	return s, nil
}

type finisher struct {
	special map[reflect.Type]*jsonschema.Schema
	doc     func(owner reflect.Type, field, name string) string
}

// finish walks a schema along the Go type it was made of.
func (w finisher) finish(s *jsonschema.Schema, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if len(s.Types) == 1 && s.Types[0] == "null" { // a pointer to anything
		s.Types = nil
	}
	if w.special[t] != nil {
		return
	}
	switch t.Kind() {
	case reflect.Uint64:
		s.Format = UnsignedFormat
	case reflect.Struct:
		if s.Properties == nil {
			s.Properties = map[string]*jsonschema.Schema{}
		}
		for _, f := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[name]
			if f.Anonymous || p == nil {
				continue
			}
			w.finish(p, f.Type)
			if p.Description == "" && w.doc != nil {
				owner := t
				if len(f.Index) > 1 {
					owner = indirect(t.FieldByIndex(f.Index[:len(f.Index)-1]).Type)
				}
				p.Description = w.doc(owner, f.Name, name)
			}
		}
	case reflect.Slice, reflect.Array:
		w.finish(s.Items, t.Elem())
	case reflect.Map:
		w.finish(s.AdditionalProperties, t.Elem())
	}
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// closed says whether an object schema takes only the properties it names.
func closed(s *jsonschema.Schema) bool {
	return s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
}

// AllowNull loosens the schema of an answer of type t: a pointer that is written
// even when it is nil may be null, and a schema says so by naming no type.
func AllowNull(s *jsonschema.Schema, t reflect.Type) {
	t = indirect(t)
	switch t.Kind() {
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
			p := s.Properties[name]
			if f.Anonymous || p == nil {
				continue
			}
			null := f.Type.Kind() == reflect.Pointer && !strings.Contains(options, "omit")
			if null && p.Properties == nil {
				s.Properties[name] = &jsonschema.Schema{Description: p.Description}
				continue
			}
			AllowNull(p, f.Type)
			if null {
				p.Type = "" // the rest is about objects only
			}
		}
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			AllowNull(s.Items, t.Elem())
		}
	case reflect.Map:
		if s.AdditionalProperties != nil {
			AllowNull(s.AdditionalProperties, t.Elem())
		}
	}
}
