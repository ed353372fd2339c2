package op

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/strictjson"
)

func TestCheck(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 80) + "1" + strings.Repeat("}", 80)
	tests := []struct {
		op, in string
		field  string // offending field
		want   string // part of the message; "" when the input is fine
	}{
		{"memories.upsert", `{"judgment":"x"}`, "", ""},
		{"memories.upsert", `  {"judgment":"x","id":"12","metadata":{"a":[1,{"b":null}],"A":1}}  `, "", ""},
		{"memories.upsert", `{"judgment":"x","id":12,"state":{"pinned":true}}`, "", ""},
		{"memories.upsert", `{"judgment":"\ud83d\ude00 \u00e9"}`, "", ""},
		{"health", ``, "", ""},
		{"health", " \n", "", ""},
		{"update_index", `{}`, "", ""},
		{"search", `{"query":"x","text_weight":1e-3,"where":1}`, "", `no field "where"`},
		{"memories.upsert", ``, "judgment", "is missing"},
		{"memories.upsert", `[]`, "", "must be an object, not an array"},
		{"memories.upsert", `null`, "", "must be an object, not null"},
		{"memories.upsert", `{"judgment":1}`, "judgment", "must be a string, not a number"},
		{"memories.upsert", `{"judgment":null}`, "judgment", "not null; leave it out"},
		{"memories.upsert", `{"Judgment":"x"}`, "", `did you mean judgment?`},
		{"memories.upsert", `{"judgment":"x","memoryType":"y"}`, "", `did you mean memory_type?`},
		{"memories.upsert", `{"judgment":"x","judgment":"y"}`, "", "twice"},
		{"memories.upsert", `{"judgment":"x","judg\u006dent":"y"}`, "", "twice"},
		{"memories.upsert", `{"judgment":"x","metadata":{"k":1,"k":2}}`, "metadata", "twice"},
		{"memories.upsert", `{"judgment":"x"} {}`, "", "more text"},
		{"memories.upsert", `{"judgment":"x",}`, "", "field name"},
		{"memories.upsert", `{"judgment":"x"`, "", "no comma or closing brace"},
		{"memories.upsert", `{judgment:"x"}`, "", "double quotes"},
		{"memories.upsert", `{"judgment":"x`, "judgment", "ends inside a string"},
		{"memories.upsert", "{\"judgment\":\"a\nb\"}", "judgment", "control character"},
		{"memories.upsert", `{"judgment":"\ud83d"}`, "judgment", "surrogate"},
		{"memories.upsert", `{"judgment":"\ude00"}`, "judgment", "surrogate"},
		{"memories.upsert", `{"judgment":"\u12g4"}`, "judgment", "escape"},
		{"memories.upsert", `{"judgment":"\x"}`, "judgment", "unknown escape"},
		{"memories.upsert", "{\"judgment\":\"\xff\"}", "", "UTF-8"},
		{"memories.upsert", `{"judgment":"x","id":-1}`, "id", "must be an id"},
		{"memories.upsert", `{"judgment":"x","id":"12a"}`, "id", "must be an id"},
		{"memories.upsert", `{"judgment":"x","id":1.0}`, "id", "must be an id"},
		{"memories.upsert", `{"judgment":"x","id":"9223372036854775808"}`, "id", "must be an id"},
		{"memories.upsert", `{"judgment":"x","position":1.5}`, "position", "must be a whole number"},
		{"memories.upsert", `{"judgment":"x","position":9223372036854775808}`, "position", "must be a whole number"},
		{"memories.upsert", `{"judgment":"x","position":01}`, "", "no comma"},
		{"memories.upsert", `{"judgment":"x","tags":["a",2]}`, "tags[1]", "must be a string"},
		{"memories.upsert", `{"judgment":"x","tags":"a"}`, "tags", "must be an array of strings, not a string"},
		{"memories.upsert", `{"judgment":"x","metadata":[]}`, "metadata", "must be an object"},
		{"memories.upsert", `{"judgment":"x","metadata":` + deep + `}`, "", "nested deeper"},
		{"memories.upsert", `{"judgment":"x","state":{"strength":1e999}}`, "state.strength", "64-bit float"},
		{"memories.upsert", `{"judgment":"x","state":{"pinned":"yes"}}`, "state.pinned", "must be true or false"},
		{"memories.upsert", `{"judgment":"x","state":{"pinned":tru}}`, "state.pinned", "unknown word"},
		{"memories.upsert", `{"judgment":"x","evidence":[{"source":"a"},{}]}`, "evidence[1].source", "is missing"},
		{"memories.upsert_many", `{"memories":[{"judgment":"a"},{"judgement":"b"}]}`, "memories[1]", "did you mean judgment?"},
		{"memories.list", `{"filter":{"kinds":["memories"]}}`, "filter.kinds[0]", "must be one of memory, entity"},
		{"memories.list", `{"filter":{"where":[{"key":"a","op":"==","value":1}]}}`, "filter.where[0].op", "must be one of eq"},
		{"memories.list", `{"filter":{"where":[{"key":"a","op":"in","value":[1,"b",null]}]}}`, "", ""},
		{"update_index", `{"deep":true}`, "", "there are no fields here"},
	}
	for _, tt := range tests {
		o, _ := Default().Lookup(tt.op)
		err := o.Check([]byte(tt.in))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s %.80s: %v", tt.op, tt.in, err)
			}
			continue
		}
		e, ok := errors.AsType[*loci.Error](err)
		if !ok {
			t.Errorf("%s %.80s: no error, want %q", tt.op, tt.in, tt.want)
			continue
		}
		if e.Code != loci.ErrValidation || e.Op != tt.op || !strings.Contains(e.Message, tt.want) {
			t.Errorf("%s %.80s: %v, want %q", tt.op, tt.in, e, tt.want)
		}
		if tt.field != "" && e.Field != tt.field {
			t.Errorf("%s %.80s: field %q, want %q", tt.op, tt.in, e.Field, tt.field)
		}
	}
}

func TestUnknownOperation(t *testing.T) {
	_, err := Default().Call(t.Context(), nil, "memories.upsrt", nil)
	if !errors.Is(err, loci.ErrValidation) || !strings.Contains(err.Error(), "did you mean memories.upsert?") {
		t.Error(err)
	}
}

func TestStateWrite(t *testing.T) {
	var w MemoryWrite
	o, _ := Default().Lookup("memories.upsert")
	if err := decode(o.input, []byte(`{"judgment":"x","state":{"pinned":true}}`), &w); err != nil {
		t.Fatal(err)
	}
	if s := w.input().State; s == nil || !s.Pinned || s.Strength != 1 {
		t.Errorf("state = %+v", s)
	}
	if err := decode(o.input, []byte(`{"judgment":"x","state":{"strength":0}}`), &w); err != nil {
		t.Fatal(err)
	}
	if s := w.input().State; s.Strength != 0 {
		t.Errorf("an explicit zero became %v", s.Strength)
	}
}

func TestDeleteManyNeedsWords(t *testing.T) {
	o, _ := Default().Lookup("memories.delete_by_filter")
	for in, field := range map[string]string{
		`{}`:                                    "filter.namespace",
		`{"dry_run":true}`:                      "filter.namespace",
		`{"filter":{"namespace":"a"}}`:          "filter.scopes",
		`{"filter":{"scopes":["a"]}}`:           "filter.namespace",
		`{"filter":{"tags":["a"]},"all":false}`: "filter.namespace",
	} {
		_, err := o.Call(t.Context(), nil, []byte(in))
		if e, ok := errors.AsType[*loci.Error](err); !ok || e.Code != loci.ErrValidation || e.Field != field {
			t.Errorf("%s: %v", in, err)
		}
	}
}

// FuzzDecode holds that whatever the checker lets through, the standard
// decoder reads as well, and that nothing panics.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{
		`{"judgment":"x","id":"12","metadata":{"a":[1,{"b":null}]}}`,
		`{"judgment":"\ud83d\ude00","tags":["a","b"],"state":{"pinned":true,"strength":0.5e1}}`,
		`{"query":"潮水","filter":{"scopes":[],"where":[{"key":"k","op":"eq","value":1}]},"limit":3}`,
		`{"filter":{"namespace":"a"},"policy":{"tier0_cycle_days":3},"at_us":-1}`,
		`{"id":18446744073709551615,"content":"x","embedding":[0.5,-1e-46,3e38],"ttl_seconds":18446744073709551615,"scope":"s"}`,
		`{"id":"0","embedding":[1e39],"k":1,"filter":{"a":1.0},"where":[{"key":"k","op":"in","value":[1]}]}`,
		`{`, `{"a":`, `[[[[`, `{"judgment":"\u`, ` `, `{"memories":[{}]}`,
	} {
		f.Add(s)
	}
	ops := Default().All()
	f.Fuzz(func(t *testing.T, s string) {
		for _, o := range ops {
			err := o.Check([]byte(s))
			if err != nil {
				if !errors.Is(err, loci.ErrValidation) {
					t.Fatalf("%s: %v", o.Name, err)
				}
				continue
			}
			if strictjson.IsBlank([]byte(s)) {
				continue
			}
			if !json.Valid([]byte(s)) {
				t.Fatalf("%s took what is not JSON: %q", o.Name, s)
			}
			var err2 error
			switch o.Name {
			case "memories.upsert":
				err2 = decode(o.input, []byte(s), new(MemoryWrite))
			case "search":
				err2 = decode(o.input, []byte(s), new(loci.SearchRequest))
			case "memories.decay":
				err2 = decode(o.input, []byte(s), new(loci.DecayRequest))
			case "facts.store":
				err2 = decode(o.input, []byte(s), new(struct {
					AgentMake
					agent.FactInput
				}))
			case "facts.query":
				err2 = decode(o.input, []byte(s), new(struct {
					AgentTarget
					agent.QueryRequest
				}))
			}
			if err2 != nil {
				t.Fatalf("%s: checked but not decoded: %q: %v", o.Name, s, err2)
			}
		}
	})
}
