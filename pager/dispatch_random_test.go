package pager

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// randomJSON makes values that fit a schema, most of the time.
type randomJSON struct{ *rand.Rand }

func (r randomJSON) pick(words ...string) string { return words[r.IntN(len(words))] }

func (r randomJSON) value(s *jsonschema.Schema, name string) string {
	if r.IntN(25) == 0 { // what does not fit
		return r.pick(`null`, `true`, `1`, `-1`, `1.5`, `1e400`, `"x"`, `{}`, `[]`, `[null]`, `{"a":{"b":[]}}`, `"\ud800"`, `nul`, ``)
	}
	quoted := func(text string) string {
		raw, _ := json.Marshal(text) // strings always marshal
		return string(raw)
	}
	switch s.Type {
	case "object":
		if s.Properties == nil {
			return `{"input_tokens":3,"output_tokens":1}`
		}
		var members []string
		for _, field := range s.PropertyOrder {
			required := false
			for _, n := range s.Required {
				required = required || n == field
			}
			if required && r.IntN(30) > 0 || r.IntN(3) == 0 {
				members = append(members, quoted(field)+":"+r.value(s.Properties[field], field))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	case "array":
		items := make([]string, r.IntN(4))
		for i := range items {
			items[i] = r.value(s.Items, name)
		}
		return "[" + strings.Join(items, ",") + "]"
	case "integer":
		return r.pick("0", "1", "2", "3", "5", "32", "60", "80", "200", "-1", "-0", "9223372036854775807", "-9223372036854775808")
	case "number":
		return r.pick("0", "0.5", "1", "2", "1e308", "-1e308", "5e-324", "-0.0", "1000")
	case "boolean":
		return r.pick("true", "false")
	}
	if len(s.Enum) > 0 {
		return quoted(s.Enum[r.IntN(len(s.Enum))].(string))
	}
	switch name {
	case "page_id", "links":
		return quoted(r.pick("a", "b", "w1", "w2", "i3", "p1", "p2", "p3", "memory:1", "memory:9", "", " ", "x y", "新页", strings.Repeat("z", 129)))
	case "checkpoint_id", "after":
		return quoted(r.pick("1", "7", "8", "9", "9223372036854775807"))
	case "mode", "strategy", "provider", "source", "holder", "id":
		return quoted(r.pick("manual", "turns", "either", "lru", "value", "anthropic-5m", "openai", "simulated", "x", "y", ""))
	}
	return quoted(r.pick("", " ", "log", "the plan of the keeper", "潮水表每周更新。", "a\x00b\u2028</script>", strings.Repeat("w ", 1+r.IntN(300)),
		strings.Repeat("S", 240), strings.Repeat("T", 4000)))
}

// TestDispatchRandom calls every operation with arguments that mostly make sense:
// nothing panics, no call finds the store itself at fault, and what fails leaves
// everything as it was.
func TestDispatchRandom(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	cs := openScope(t, Config{Budget: new(3000)})
	writeBase(t, cs)
	r := randomJSON{rand.New(rand.NewPCG(5, 31))}
	rows := dispatchTable().rows
	dump := func() string {
		out := ""
		for _, o := range []string{"status", "render", "checkpoints", "usage", "replacement_policy"} {
			out += string(cs.Dispatch(t.Context(), o, nil))
		}
		return out
	}
	succeeded := map[string]int{}
	before := dump()
	for i := range 600 {
		row := rows[r.IntN(len(rows))]
		arguments := r.value(row.input, "")
		raw := cs.dispatch(t.Context(), row.Name, json.RawMessage(arguments), r.IntN(4) == 0)
		name := fmt.Sprintf("call %d, %s %.300s", i, row.Name, arguments)
		e := readEnvelope(t, raw)
		if e.OK {
			succeeded[row.Name]++
			before = dump()
			continue
		}
		if e.Error.Code == ErrInternal || e.Error.Code == ErrBusy {
			t.Errorf("%s: %s", name, raw)
		}
		if after := dump(); after != before {
			t.Fatalf("%s: it failed and something was changed: %s\n%s\n%s", name, raw, before, after)
		}
	}
	if len(succeeded) < len(rows)*3/4 {
		t.Errorf("of %d operations only %d ever succeeded: %v", len(rows), len(succeeded), succeeded)
	}
}
