package op

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
)

// idFormat marks a schema as a 64-bit id: a decimal string, though a whole
// number is taken as well.
const idFormat = "int64"

// typeSchemas are the types whose JSON form differs from their Go form, and
// the closed sets of words.
func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	words := func(ws ...string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range ws {
			s.Enum = append(s.Enum, w)
		}
		return s
	}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[loci.ID]():         {Type: "string", Format: idFormat, Pattern: "^[0-9]{1,19}$"},
		reflect.TypeFor[loci.Metadata]():   {Type: "object"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[loci.Kind](): words(
			string(loci.KindMemory), string(loci.KindEntity), string(loci.KindRelation), string(loci.KindEvent),
			string(loci.KindNote), string(loci.KindChunk), string(loci.KindPage), string(loci.KindFact),
			string(loci.KindEpisode), string(loci.KindProcedure)),
		reflect.TypeFor[loci.Operator](): words(
			string(loci.OpEq), string(loci.OpNe), string(loci.OpLt), string(loci.OpLe),
			string(loci.OpGt), string(loci.OpGe), string(loci.OpIn), string(loci.OpExists)),
		reflect.TypeFor[loci.MatchField](): words(
			string(loci.MatchAll), string(loci.MatchText), string(loci.MatchName), string(loci.MatchPath)),
		reflect.TypeFor[loci.GroupBy]():   words(string(loci.GroupNone), string(loci.GroupThread)),
		reflect.TypeFor[loci.Direction](): words(string(loci.DirectionOut), string(loci.DirectionIn), string(loci.DirectionBoth)),
		reflect.TypeFor[loci.Fusion]():    words(string(loci.FusionScore), string(loci.FusionRRF)),
		reflect.TypeFor[loci.Tier](): words(
			string(loci.TierMemory), string(loci.TierGraph), string(loci.TierNotes), string(loci.TierPages), string(loci.TierAgent)),
		reflect.TypeFor[loci.VectorEncoding](): words(string(loci.EncodingSQ8), string(loci.EncodingF32)),
		reflect.TypeFor[Match]():               words(string(matchName), string(matchNone)),
	}
}

// inferSchema makes the schema of T: an object with properties, without
// ["null", x] unions, which some clients refuse, and with the field comments
// of the Go source as descriptions.
func inferSchema[T any]() (*jsonschema.Schema, error) {
	special := typeSchemas()
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, err
	}
	finish(s, reflect.TypeFor[T](), special)
	return s, nil
}

// finish walks a schema along the Go type it was made of.
func finish(s *jsonschema.Schema, t reflect.Type, special map[reflect.Type]*jsonschema.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	if len(s.Types) == 1 && s.Types[0] == "null" { // a pointer to anything
		s.Types = nil
	}
	if special[t] != nil {
		return
	}
	switch t.Kind() {
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
			finish(p, f.Type, special)
			if p.Description == "" {
				owner := t
				if len(f.Index) > 1 {
					owner = indirect(t.FieldByIndex(f.Index[:len(f.Index)-1]).Type)
				}
				p.Description = fieldDoc(owner, f.Name)
				if p.Description == "" {
					p.Description = commonDoc(name)
				}
			}
		}
	case reflect.Slice, reflect.Array:
		finish(s.Items, t.Elem(), special)
	case reflect.Map:
		finish(s.AdditionalProperties, t.Elem(), special)
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

//go:embed fielddocs.json
var fieldDocsJSON []byte

// fieldDocs maps "package.Type.Field" to the field's comment in the Go source.
// The file is written by this package's tests with -update, and a test fails
// when it is old.
var fieldDocs = sync.OnceValue(func() map[string]string {
	m := map[string]string{}
	if err := json.Unmarshal(fieldDocsJSON, &m); err != nil {
		panic("op: fielddocs.json: " + err.Error())
	}
	return m
})

func fieldDoc(t reflect.Type, field string) string {
	pkg := t.PkgPath()
	pkg = pkg[strings.LastIndexByte(pkg, '/')+1:]
	name, _, _ := strings.Cut(t.Name(), "[") // the type arguments of a generic type
	return fieldDocs()[pkg+"."+name+"."+field]
}

// commonDoc describes a field whose meaning is the same wherever it stands and
// that the Go source leaves to its name.
func commonDoc(name string) string {
	switch name {
	case "filter":
		return "which records count; left out: namespace default, scope public"
	case "tags":
		return "words to find it by; normalised and without repeats"
	case "evidence":
		return "where the content was taken from"
	case "metadata":
		return "a JSON object of your own; kept as it is"
	case "reasoning":
		return "why the judgment holds"
	case "thread":
		return "the conversation or log it stands in"
	case "position":
		return "place in the thread"
	case "policy":
		return "what tunes feedback and decay; left out: the defaults"
	case "created_from_us":
		return "inclusive; UTC microseconds since 1970"
	case "key":
		return "a top-level key of the metadata"
	case "quote":
		return "the words of the source"
	case "chunk_id":
		return "the chunk of a note that it was taken from"
	case "recalled_ids":
		return "the memories that were recalled"
	case "explain":
		return "why each hit stands where it does"
	case "recency_weight":
		return "what being recent adds to the score"
	case "strength_weight":
		return "what a memory's strength adds to the score"
	case "last_recalled_at_us", "last_decay_at_us":
		return "UTC microseconds since 1970"
	case "root":
		return "id of the entity in the middle"
	case "useful_count":
		return "how often it was useful"
	case "useful_score":
		return "what its usefulness adds up to"
	}
	return ""
}
