package mcpserver

import (
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/op"
)

func TestLint(t *testing.T) {
	inside := func(s *jsonschema.Schema) *jsonschema.Schema {
		return object(property{"x", list("", object(property{"y", s, false})), false})
	}
	loop := object()
	loop.Properties["again"] = loop
	deep := text("")
	for range maxSchemaDepth {
		deep = list("", deep)
	}
	tests := []struct {
		name string
		s    *jsonschema.Schema
		want string // "" is fine
	}{
		{"nothing", object(), ""},
		{"plain", inside(number("")), ""},
		{"words", inside(words("", "a", "b")), ""},
		{"free members", inside(&jsonschema.Schema{Type: "object", AdditionalProperties: text("")}), ""},
		{"anything", inside(&jsonschema.Schema{}), ""},
		{"none", nil, "there is no schema"},
		{"an array", list("", text("")), "the top is not an object"},
		{"no properties", &jsonschema.Schema{Type: "object"}, "the top has no properties"},
		{"several types", inside(&jsonschema.Schema{Types: []string{"null", "string"}}), "x[].y has several types"},
		{"alternatives at the top", &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, OneOf: []*jsonschema.Schema{{}}}, "the top has alternatives"},
		{"alternatives below", inside(&jsonschema.Schema{AnyOf: []*jsonschema.Schema{{}}}), "x[].y has alternatives"},
		{"a reference", inside(&jsonschema.Schema{Ref: "#/$defs/a"}), "x[].y refers to another schema"},
		{"definitions", &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, Defs: map[string]*jsonschema.Schema{"a": {}}}, "the top refers"},
		{"a loop", loop, "again contains itself"},
		{"too deep", object(property{"x", deep, false}), "nested more than 10"},
		{"a format", inside(id("")), `x[].y has the format "int64"`},
		{"an array of nothing", inside(&jsonschema.Schema{Type: "array"}), "x[].y is an array of nothing"},
		{"numbers to choose from", inside(&jsonschema.Schema{Type: "integer", Enum: []any{1}}), "x[].y lists values"},
		{"needs what is not there", &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}, Required: []string{"z"}}, `needs "z"`},
		{"patterns", inside(&jsonschema.Schema{Type: "object", PatternProperties: map[string]*jsonschema.Schema{"a": {}}}), "only a validator"},
	}
	for _, c := range tests {
		err := Lint(c.s)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	for name, fine := range map[string]bool{"a_b-9": true, "a.b": false, "": false, "灯": false, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false} {
		if err := LintTool(name, object()); (err == nil) != fine {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// A schema that is shown is the operation's own, but for what clients refuse.
func TestShown(t *testing.T) {
	for _, o := range op.Default().All() {
		in := o.InputSchema()
		out := shown(in)
		if len(out.Properties) != len(in.Properties) || len(out.Required) != len(in.Required) {
			t.Errorf("%s: %d of %d properties are shown", o.Name, len(out.Properties), len(in.Properties))
		}
		if err := Lint(out); err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
	}
	if LintTools() != nil {
		t.Error(LintTools())
	}
}
