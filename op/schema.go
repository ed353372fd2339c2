package op

import (
	_ "embed"
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/strictjson"
)

// typeSchemas are the types whose JSON form differs from their Go form, and the
// closed sets of words.
func typeSchemas() map[reflect.Type]*jsonschema.Schema {
	special := strictjson.Types()
	special[reflect.TypeFor[Match]()] = strictjson.Words(string(matchName), string(matchNone))
	special[reflect.TypeFor[loci.ChangeKind]()] = strictjson.Words(string(loci.ChangeUpsert), string(loci.ChangeDelete))
	importTypes(special)
	contextTypes(special)
	agentTypes(special)
	return special
}

// inferSchema makes the schema of T, with the field comments of the Go source as
// descriptions.
func inferSchema[T any]() (*jsonschema.Schema, error) {
	return strictjson.Infer[T](typeSchemas(), func(owner reflect.Type, field, name string) string {
		if doc := fieldDoc(owner, field); doc != "" {
			return doc
		}
		return commonDoc(name)
	})
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
