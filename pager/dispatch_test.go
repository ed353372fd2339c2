package pager

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
)

// envelope is what Dispatch answers, but for a result's fields.
type envelope struct {
	OK    bool `json:"ok"`
	Error *struct {
		Code    Code           `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	} `json:"error"`
}

func readEnvelope(t testing.TB, raw json.RawMessage) envelope {
	t.Helper()
	var e envelope
	if err := json.Unmarshal(raw, &e); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if e.OK == (e.Error != nil) {
		t.Fatalf("neither a result nor an error, or both: %s", raw)
	}
	if e.Error != nil && (e.Error.Code == "" || e.Error.Message == "" || e.Error.Details == nil) {
		t.Fatalf("an incomplete error: %s", raw)
	}
	return e
}

func TestDispatch(t *testing.T) {
	cs := openScope(t, Config{})
	writeBase(t, cs)
	const secret = "nobody may see this"
	tests := []struct {
		operation, arguments string
		code                 Code
		want                 string // part of the answer
	}{
		{"render", ``, "", `{"ok":true,"generation":0,`},
		{"render", " \n", "", `"text_bytes":1013`},
		{"snapshot", `{}`, "", `"generation":1`},
		{"snapshot", `{"since":1}`, "", `"changed":false`},
		{"prefix", `{"publish":false}`, "", `"prefix":"{\"vc\":1`},
		{"write", `{"page_id":"w2","expected_version":1,"title":"plan","content":"<&>","tier":"working"}`, "", `"version":2`},
		{"write", `{"page_id":"w2","expected_version":1,"content":"x"}`, ErrVersionConflict, `"current":2`},
		{"write", `{"content":"x","page_id":"no such page","expected_version":0}`, ErrInvalidArgument, `"field":"page_id"`},
		{"write", `{"content":"x","page_id":"no","expected_version":3}`, ErrNotFound, `"field":"page_id"`},
		{"write", `{"content":""}`, ErrInvalidArgument, `"message":"content: must not be empty"`},
		{"write", `{}`, ErrInvalidArgument, "content: is missing"},
		{"write", ``, ErrInvalidArgument, "content: is missing"},
		{"write", `{"content":"x","outline":true}`, ErrOutlineInvalid, "title and a summary"},
		{"write", `{"content":"x","links":["nobody"]}`, ErrLinkInvalid, `"link":"nobody"`},
		{"write", `{"content":"` + strings.Repeat("x", MaxContentBytes+1) + `"}`, ErrTooLarge, `"limit":1048576`},
		{"write", `{"content":"` + strings.Repeat("x", 9000) + `","tier":"core"}`, ErrCoreOverBudget, `"budget":8192`},
		{"write", `{"content":"` + strings.Repeat("x", 9000) + `","tier":"working"}`, ErrBudgetExceeded, `"budget":8192`},
		{"write", `{"content":"` + secret + `","conten":"x"}`, ErrInvalidArgument, "did you mean content?"},
		{"write", `{"Content":"` + secret + `"}`, ErrInvalidArgument, "did you mean content?"},
		{"write", `{"content":"` + secret + `","content":"x"}`, ErrInvalidArgument, "twice"},
		{"write", `{"content":"` + secret + `"}{}`, ErrInvalidArgument, "more text"},
		{"write", `{"content":"` + secret + `","tags":"` + secret + `"}`, ErrInvalidArgument, "tags: must be an array of strings"},
		{"write", `{"content":"` + secret + `","tags":[1]}`, ErrInvalidArgument, `"field":"tags[0]"`},
		{"write", `{"content":"` + secret + `","tier":"` + secret + `"}`, ErrInvalidArgument, "tier: must be one of core, working, archive"},
		{"write", `{"content":"` + secret + `","importance":1e400}`, ErrInvalidArgument, "importance: must be a number in the range"},
		{"write", `{"content":"` + secret + `","importance":1.5}`, ErrInvalidArgument, "importance: must be from 0 to 1"},
		{"write", `{"content":"` + secret + `","importance":null}`, ErrInvalidArgument, "not null"},
		{"write", `{"content":"` + secret + `","expected_version":1.0}`, ErrInvalidArgument, "must be a whole number"},
		{"write", `{"content":"` + secret + `","expected_version":1e2}`, ErrInvalidArgument, "must be a whole number"},
		{"write", `{"content":"` + secret + `","expected_version":9223372036854775808}`, ErrInvalidArgument, "must be a whole number"},
		{"write", `{"content":"` + secret + `","scope":"other"}`, ErrInvalidArgument, `there is no field \"scope\"`},
		{"write", `{"content":"` + secret + `","budget":1000000}`, ErrInvalidArgument, `there is no field \"budget\"`},
		{"write", "{\"content\":\"\xff\"}", ErrInvalidArgument, "not valid UTF-8"},
		{"write", `{"content":"\ud800"}`, ErrInvalidArgument, "surrogate"},
		{"write", `[]`, ErrInvalidArgument, "must be an object"},
		{"write", `null`, ErrInvalidArgument, "must be an object"},
		{"write", `{"content":`, ErrInvalidArgument, "not valid JSON"},
		{"render", `{"publish":1}`, ErrInvalidArgument, "publish: must be true or false"},
		{"rendr", `{}`, ErrUnknownOperation, "did you mean render?"},
		{"sql", `{}`, ErrUnknownOperation, "there are write, "},
		{"", `{}`, ErrUnknownOperation, `"field":"operation"`},
		{"Write", `{"content":"x"}`, ErrUnknownOperation, `"nearest":"write"`},
	}
	for _, tt := range tests {
		name := tt.operation + " " + tt.arguments[:min(len(tt.arguments), 80)]
		before := string(cs.Dispatch(t.Context(), "render", nil))
		raw := cs.Dispatch(t.Context(), tt.operation, json.RawMessage(tt.arguments))
		e := readEnvelope(t, raw)
		var code Code
		if e.Error != nil {
			code = e.Error.Code
			if after := string(cs.Dispatch(t.Context(), "render", nil)); after != before {
				t.Errorf("%s: it failed and changed the window", name)
			}
		}
		if code != tt.code || !strings.Contains(string(raw), tt.want) || strings.Contains(string(raw), secret) {
			t.Errorf("%s: %.400s", name, raw)
		}
	}
}

// TestDispatchBusy holds that an operation waits for another one no longer than
// it is told to, and that its caller may stop it.
func TestDispatchBusy(t *testing.T) {
	cs := openScope(t, Config{Wait: time.Millisecond})
	taken, done := make(chan struct{}), make(chan error)
	give := make(chan struct{})
	go func() {
		done <- cs.take(context.Background(), "test", cs.reg.link.MayRead, func(*scope) error {
			close(taken)
			<-give
			return nil
		})
	}()
	<-taken
	e := readEnvelope(t, cs.Dispatch(t.Context(), "write", json.RawMessage(`{"content":"x"}`)))
	if e.Error == nil || e.Error.Code != ErrBusy {
		t.Errorf("%+v", e.Error)
	}
	patient := *cs
	patient.wait = defaultWait
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e = readEnvelope(t, patient.Dispatch(ctx, "write", json.RawMessage(`{"content":"x"}`)))
	if e.Error == nil || e.Error.Code != ErrInternal || e.Error.Details["cause"] != string(loci.ErrCanceled) {
		t.Errorf("%+v", e.Error)
	}
	close(give)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if e := readEnvelope(t, patient.Dispatch(t.Context(), "write", json.RawMessage(`{"content":"x"}`))); !e.OK {
		t.Errorf("%+v", e.Error)
	}
}

// TestDispatchClosed holds that a store that was closed is told from one that
// fails.
func TestDispatchClosed(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	cs := scopeOf(t, db, Config{Scope: Scope{"s"}})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	e := readEnvelope(t, cs.Dispatch(t.Context(), "render", nil))
	if e.Error == nil || e.Error.Code != ErrInternal || e.Error.Details["cause"] != string(loci.ErrClosed) {
		t.Errorf("%+v", e.Error)
	}
	if _, err := cs.Render(t.Context(), RenderRequest{}); !errors.Is(err, loci.ErrClosed) {
		t.Error(err)
	}
}

// TestFailure holds that causes, which may name files, stay inside.
func TestFailure(t *testing.T) {
	raw := failure(withOp("write", &loci.Error{Code: loci.ErrStorage, Message: "the disk is full", Err: errors.New("/secret/path")}))
	if e := readEnvelope(t, raw); e.Error.Code != ErrInternal || strings.Contains(string(raw), "secret") {
		t.Errorf("%s", raw)
	}
	if e := readEnvelope(t, failure(errors.New("/secret/path"))); e.Error.Message != "the store failed" {
		t.Errorf("%+v", e.Error)
	}
	details := map[string]any{"current": int64(3)}
	failure(&Error{Code: ErrVersionConflict, Field: "expected_version", Message: "x", Details: details})
	if len(details) != 1 {
		t.Error("the error itself was changed")
	}
}
