package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/op"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestGolden keeps the description where a change of it is seen. It holds the names
// of what there is and not every comment, which the schemas of package op hold.
func TestGolden(t *testing.T) {
	doc := document(t)
	var b bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(doc.Paths[path])) {
			o := doc.Paths[path][method]
			b.WriteString(method + " " + path + " " + o.OperationID + " " + strings.Join(slices.Sorted(maps.Keys(o.Responses)), ","))
			for kind, body := range o.RequestBody.Content {
				ref, _ := body.Schema["$ref"].(string)
				b.WriteString(" " + kind + " " + strings.TrimPrefix(ref, "#/components/schemas/"))
			}
			b.WriteByte('\n')
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(doc.Components.Schemas[name], &s); err != nil {
			t.Fatal(err)
		}
		b.WriteString("schema " + name + " " + strings.Join(slices.Sorted(maps.Keys(s.Properties)), ",") + "\n")
	}
	const path = "testdata/openapi.golden"
	if *update {
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(b.Bytes(), want) {
		t.Errorf("%s is old; run go test ./internal/openapi -update and look at the difference (%v)", path, err)
	}
}

type described struct {
	OpenAPI    string                                   `json:"openapi"`
	Paths      map[string]map[string]describedOperation `json:"paths"`
	Components struct {
		Schemas   map[string]json.RawMessage `json:"schemas"`
		Responses map[string]json.RawMessage `json:"responses"`
	} `json:"components"`
}

type describedOperation struct {
	OperationID string                   `json:"operationId"`
	Responses   map[string]describedBody `json:"responses"`
	RequestBody describedBody            `json:"requestBody"`
}

type describedBody struct {
	Content map[string]struct {
		Schema map[string]any `json:"schema"`
	} `json:"content"`
}

func document(t *testing.T) described {
	t.Helper()
	var doc described
	raw := Document(op.Default(), "v1.2.3")
	if !bytes.Equal(raw, Document(op.Default(), "v1.2.3")) {
		t.Error("two documents of one table differ")
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestReferences holds that every reference leads somewhere, that nothing stands
// unused, and that operation ids are unique.
func TestReferences(t *testing.T) {
	doc := document(t)
	raw := string(Document(op.Default(), ""))
	for kind, components := range map[string]map[string]json.RawMessage{"schemas": doc.Components.Schemas, "responses": doc.Components.Responses} {
		for name := range components {
			if !strings.Contains(raw, `"#/components/`+kind+`/`+name+`"`) {
				t.Errorf("%s %s is not used", kind, name)
			}
		}
		for _, part := range strings.Split(raw, `"#/components/`+kind+`/`)[1:] {
			if name, _, _ := strings.Cut(part, `"`); components[name] == nil {
				t.Errorf("%s %s is referred to and not there", kind, name)
			}
		}
	}
	ids := map[string]bool{}
	for path, methods := range doc.Paths {
		for _, o := range methods {
			if o.OperationID == "" || ids[o.OperationID] {
				t.Errorf("%s: operation id %q is missing or taken", path, o.OperationID)
			}
			ids[o.OperationID] = true
		}
	}
	for _, o := range op.Default().All() {
		if !ids[o.Name] {
			t.Errorf("%s is not described", o.Name)
		}
	}
}

// TestSameSchemas holds that a schema with its parts put back in is the operation's
// own: components are a matter of form.
func TestSameSchemas(t *testing.T) {
	doc := document(t)
	for _, o := range op.Default().All() {
		made := doc.Paths["/v1/"+o.Name]["post"]
		for side, pair := range map[string]struct {
			body describedBody
			own  *jsonschema.Schema
		}{"input": {made.RequestBody, o.InputSchema()}, "output": {made.Responses["200"], o.OutputSchema()}} {
			raw, err := json.Marshal(pair.own)
			if err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(whole(t, doc, want), whole(t, doc, pair.body.Content["application/json"].Schema)); d != "" {
				t.Errorf("%s %s: %s", o.Name, side, d)
			}
		}
	}
}

// whole puts references' targets in their places.
func whole(t *testing.T, doc described, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			var target map[string]any
			if err := json.Unmarshal(doc.Components.Schemas[strings.TrimPrefix(ref, "#/components/schemas/")], &target); err != nil {
				t.Fatal(ref, err)
			}
			out := whole(t, doc, target).(map[string]any)
			if text, ok := v["description"]; ok {
				out["description"] = text
			}
			return out
		}
		out := map[string]any{}
		for key, part := range v {
			if out[key] = whole(t, doc, part); key == "items" && part == true {
				out[key] = map[string]any{} // two ways to write that anything goes
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, part := range v {
			out[i] = whole(t, doc, part)
		}
		return out
	}
	return v
}
