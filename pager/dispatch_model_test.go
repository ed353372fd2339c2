package pager

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// modelOperations are those that a model may call.
var modelOperations = []string{
	"write", "ingest", "read", "history", "search", "page_in", "page_out", "unpin", "recall", "render", "snapshot", "prefix",
	"metrics", "dashboard", "fold", "usage", "record_usage", "status", "compact", "organize", "checkpoint", "checkpoints",
	"restore", "schedule", "prepare_task",
}

// hostOperations are the others.
var hostOperations = []string{"replacement_policy", "set_policy", "policy_tick", "forget"}

func TestOperations(t *testing.T) {
	var model, host []string
	for _, o := range Operations() {
		if o.Model {
			model = append(model, o.Name)
		} else {
			host = append(host, o.Name)
		}
	}
	for _, l := range []struct{ got, want []string }{{model, modelOperations}, {host, hostOperations}} {
		slices.Sort(l.got)
		want := slices.Clone(l.want)
		slices.Sort(want)
		if !slices.Equal(l.got, want) {
			t.Errorf("%v, want %v", l.got, want)
		}
	}
}

// TestDispatchModel holds what a model may not do.
func TestDispatchModel(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	before := string(cs.Dispatch(t.Context(), "status", nil))
	for _, name := range append(slices.Clone(hostOperations), "sql", "open", "reconfigure", "") {
		e := readEnvelope(t, cs.DispatchModel(t.Context(), name, json.RawMessage(`{"page_id":"a"}`)))
		if e.Error == nil || e.Error.Code != ErrUnknownOperation {
			t.Errorf("%s: %+v", name, e.Error)
		}
		for _, host := range hostOperations {
			if e.Error != nil && name != host && strings.Contains(e.Error.Message, host) {
				t.Errorf("%s: a model is told of %s: %s", name, host, e.Error.Message)
			}
		}
	}
	for _, tt := range []struct {
		operation, arguments string
		code                 Code
		want                 string
	}{
		{"fold", `{"force":true}`, ErrInvalidArgument, "force: is for the user to give"},
		{"fold", `{"force":false}`, ErrInvalidArgument, "force: is for the user to give"},
		{"fold", `{"for\u0063e":true,"keep":1}`, ErrInvalidArgument, "force: is for the user to give"},
		{"fold", `{"Force":true}`, ErrInvalidArgument, "did you mean force?"},
		{"fold", `{"force":1}`, ErrInvalidArgument, "force: must be true or false"},
		{"fold", `{"force":`, ErrInvalidArgument, "not valid JSON"},
		{"write", `{"content":"x","force":true}`, ErrInvalidArgument, `no field \"force\"`},
		{"write", `{"content":"x","scope":["other"]}`, ErrInvalidArgument, `no field \"scope\"`},
		{"write", `{"content":"x","reconfigure":true}`, ErrInvalidArgument, `no field \"reconfigure\"`},
		{"fold", `{}`, "", `"changed":false`},
		{"fold", ``, "", `"changed":false`},
		{"status", `{"limit":1}`, "", `"ok":true`},
	} {
		raw := cs.DispatchModel(t.Context(), tt.operation, json.RawMessage(tt.arguments))
		e := readEnvelope(t, raw)
		var code Code
		if e.Error != nil {
			code = e.Error.Code
		}
		if code != tt.code || !strings.Contains(string(raw), tt.want) {
			t.Errorf("%s %s: %s", tt.operation, tt.arguments, raw)
		}
	}
	if after := string(cs.Dispatch(t.Context(), "status", nil)); after != before {
		t.Errorf("something was changed:\n%s\n%s", before, after)
	}
	if raw := cs.Dispatch(t.Context(), "fold", json.RawMessage(`{"force":true}`)); !readEnvelope(t, raw).OK {
		t.Errorf("the user's force is refused: %s", raw)
	}
}

// TestWritesAnswerWithReferences runs every operation that writes and looks for
// the pages' texts in what it answers.
func TestWritesAnswerWithReferences(t *testing.T) {
	cs := openScope(t, Config{Budget: new(2500)})
	const secret = "lighthouse keeper"
	n := 0
	text := func() string { n++; return fmt.Sprintf("%s %d %s", secret, n, strings.Repeat("logs the light ", 20)) }
	page := func(extra string) string {
		return fmt.Sprintf(`{"content":%q%s}`, text(), extra)
	}
	calls := []struct{ operation, arguments string }{
		{"write", page(`,"page_id":"a","tier":"core"`)},
		{"write", page(`,"page_id":"a","expected_version":1`)},
		{"write", page(`,"page_id":"b","tier":"working"`)},
		{"write", page(`,"page_id":"c","tier":"working","links":["a","b"]`)},
		{"ingest", fmt.Sprintf(`{"content":%q,"page_bytes":64}`, text())},
		{"checkpoint", `{"label":"one"}`},
		{"write", page(`,"page_id":"i1","title":"1","summary":"s","outline":true`)},
		{"write", page(`,"page_id":"i2","title":"2","summary":"s","outline":true`)},
		{"write", page(`,"page_id":"i3","title":"3","summary":"s","outline":true`)},
		{"page_in", `{"page_id":"p1"}`},
		{"page_in", `{"page_id":"p1","tier":"core"}`},
		{"unpin", `{"page_id":"p1"}`},
		{"page_out", `{"page_id":"p1"}`},
		{"compact", `{"page_id":"b","summary":"` + secret + `","expected_version":1}`},
		{"organize", `{"page_id":"c","threshold":0.01}`},
		{"fold", `{"keep":1}`},
		{"record_usage", `{"input_tokens":1}`},
		{"set_policy", `{"mode":"threshold","threshold_pct":11,"target_pct":10,"keep_recent":0}`},
		{"policy_tick", `{"force":true}`},
		{"restore", `{"checkpoint_id":"$"}`},
		{"forget", `{"page_id":"b"}`},
	}
	checkpoint := ""
	ran := map[string]bool{}
	for _, call := range calls {
		raw := cs.Dispatch(t.Context(), call.operation, json.RawMessage(strings.Replace(call.arguments, `"$"`, checkpoint, 1)))
		if e := readEnvelope(t, raw); !e.OK {
			t.Fatalf("%s: %+v", call.operation, e.Error)
		}
		if strings.Contains(string(raw), secret) {
			t.Errorf("%s answers with a page's text: %s", call.operation, raw)
		}
		ran[call.operation] = true
		if call.operation == "checkpoint" {
			var made struct {
				Checkpoint struct {
					ID json.RawMessage `json:"checkpoint_id"`
				} `json:"checkpoint"`
			}
			if err := json.Unmarshal(raw, &made); err != nil {
				t.Fatal(err)
			}
			checkpoint = string(made.Checkpoint.ID)
		}
	}
	for _, o := range Operations() {
		if o.Writes && !ran[o.Name] {
			t.Errorf("%s writes and was not tried", o.Name)
		}
	}
}

// FuzzDispatch holds that whatever comes in, one JSON object comes out, and that
// what fails changes nothing.
func FuzzDispatch(f *testing.F) {
	for _, o := range Operations() {
		f.Add(o.Name, `{}`)
	}
	for _, seed := range [][2]string{
		{"write", `{"content":"x","tier":"core"}`},
		{"write", `{"page_id":"a","expected_version":1,"content":"y","outline":true,"title":"t","summary":"s"}`},
		{"write", `{"content":"` + strings.Repeat("x", 9000) + `","tier":"working"}`},
		{"ingest", `{"content":"one\n\ntwo","page_bytes":32}`},
		{"page_in", `{"page_id":"memory:1","tier":"core","reason":"r","scopes":["public"]}`},
		{"recall", `{"query":"log","limit":50,"publish":false,"kinds":["page","memory"]}`},
		{"search", `{"query":"\u0000(AND","expand_links":false}`},
		{"fold", `{"keep":1,"word":"里程碑","force":true}`},
		{"record_usage", `{"provider":"anthropic","usage":{"input_tokens":1,"cache_creation":{"ephemeral_5m_input_tokens":2}},"turn":9223372036854775807}`},
		{"schedule", `{"holder":"a","executors":[{"id":"a","queue_ms":1e308,"compute_ms":1e308}],"congestion":1e308}`},
		{"set_policy", `{"mode":"either","threshold_pct":10,"target_pct":5}`},
		{"policy_tick", `{"turn_id":-9223372036854775808,"force":true}`},
		{"restore", `{"checkpoint_id":"9223372036854775807"}`},
		{"snapshot", `{"since":-1}`},
		{"sql", `{"query":"select 1"}`},
		{"write", `{"content":`}, {"", ""}, {"write", "\xff"}, {"render", `[[[[`},
	} {
		f.Add(seed[0], seed[1])
	}
	cs := openScope(f, Config{})
	writeBase(f, cs)
	f.Fuzz(func(t *testing.T, operation, arguments string) {
		var before, after state
		look := func(to *state) {
			if err := cs.with(t.Context(), "test", func(s *scope) error { *to = s.state; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		look(&before)
		rendered := string(cs.Dispatch(t.Context(), "render", nil))
		raw := cs.Dispatch(t.Context(), operation, json.RawMessage(arguments))
		if e := readEnvelope(t, raw); e.OK {
			return
		}
		look(&after)
		if before.Epoch != after.Epoch || before.Generation != after.Generation || before.NextPage != after.NextPage || before.NextSeq != after.NextSeq {
			t.Errorf("%s %s: it failed and changed the scope: %s", operation, arguments, raw)
		}
		if again := string(cs.Dispatch(t.Context(), "render", nil)); again != rendered {
			t.Errorf("%s %s: it failed and changed the window: %s", operation, arguments, raw)
		}
	})
}
