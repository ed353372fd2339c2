package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"pgregory.net/rapid"
)

// callerFunc makes a caller of a function.
type callerFunc func(ctx context.Context, name string, raw []byte) (json.RawMessage, error)

// Call implements op.Caller.
func (f callerFunc) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	return f(ctx, name, raw)
}

// holding are options whose holder tells when a call of an attached process has
// begun, and does nothing until its context ends or it is let go.
func holding(t *testing.T) (o *Options, began <-chan context.Context, letGo func()) {
	t.Helper()
	begun, gone := make(chan context.Context, 2*maxPeerCalls), make(chan struct{})
	o = quiet()
	o.Hold = func(_ context.Context, db *loci.DB) (op.Caller, func() error, error) {
		return callerFunc(func(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
			if !Attached(ctx) {
				return op.Local(db).Call(ctx, name, raw)
			}
			begun <- ctx
			select {
			case <-ctx.Done():
				return nil, errs.WithOp(name, ctx.Err())
			case <-gone:
				return op.Local(db).Call(ctx, name, raw)
			}
		}), func() error { return nil }, nil
	}
	return o, begun, sync.OnceFunc(func() { close(gone) })
}

type outcome struct {
	out json.RawMessage
	err error
}

func goCall(ctx context.Context, m *Memory, name, in string) <-chan outcome {
	done := make(chan outcome, 1)
	go func() {
		out, err := m.Call(ctx, name, []byte(in))
		done <- outcome{out, err}
	}()
	return done
}

// TestCancelCrosses holds that a caller's context ends the call at the holder, and
// that its deadline is known there.
func TestCancelCrosses(t *testing.T) {
	dir := t.TempDir()
	o, began, _ := holding(t)
	mustOpen(t, dir, o)
	m := mustOpen(t, dir, quiet())
	ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
	done := goCall(ctx, m, "health", "")
	at := <-began
	if end, ok := at.Deadline(); !ok || time.Until(end) > time.Hour {
		t.Errorf("the holder's deadline is %v, %v", end, ok)
	}
	cancel()
	<-at.Done()
	if got := <-done; !errors.Is(got.err, loci.ErrCanceled) {
		t.Errorf("%s %v", got.out, got.err)
	}
	// A connection that ends, ends its calls.
	other, err := Dial(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	done = goCall(t.Context(), other, "health", "")
	at = <-began
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	<-at.Done()
	if got := <-done; got.err == nil {
		t.Errorf("%s", got.out)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Call(ended, "health", nil); !errors.Is(err, loci.ErrCanceled) {
		t.Error(err)
	}
}

// TestCloseWaits holds that a holder that closes answers what runs first, and
// that calls which come meanwhile are done by the next one.
func TestCloseWaits(t *testing.T) {
	dir := t.TempDir()
	o, began, letGo := holding(t)
	a := mustOpen(t, dir, o)
	b := mustOpen(t, dir, quiet())
	c := mustOpen(t, dir, quiet())
	running := goCall(t.Context(), b, "memories.upsert", `{"judgment":"The ferry leaves at nine."}`)
	<-began
	closed := make(chan error, 1)
	go func() { closed <- a.Close() }()
	for !a.place.server.isClosing() {
		time.Sleep(time.Millisecond)
	}
	late := goCall(t.Context(), c, "memories.upsert", `{"judgment":"The ferry returns at ten."}`)
	letGo()
	for _, done := range []<-chan outcome{running, late} {
		if got := <-done; got.err != nil {
			t.Error(got.err)
		}
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if b.Holds() == c.Holds() {
		t.Errorf("holds: %v and %v", b.Holds(), c.Holds())
	}
	if got := mustCall(t, b, "memories.list", `{}`); strings.Count(got, `"judgment":`) != 2 {
		t.Error(got)
	}
}

// TestMovedCall holds that a call that can be repeated does not keep a holder from
// going: it is done by the next one.
func TestMovedCall(t *testing.T) {
	dir := t.TempDir()
	o, began, _ := holding(t)
	a := mustOpen(t, dir, o)
	b := mustOpen(t, dir, quiet())
	done := goCall(t.Context(), b, "remember", `{"text":"The ferry leaves at nine."}`)
	<-began
	if err := a.Close(); err != nil {
		t.Error(err)
	}
	if got := <-done; got.err != nil || !b.Holds() {
		t.Errorf("%v, holds %v", got.err, b.Holds())
	}
}

// TestContextCrosses holds that access, redaction and progress reach the holder.
func TestContextCrosses(t *testing.T) {
	dir := t.TempDir()
	seen := make(chan context.Context, 1)
	o := quiet()
	o.Hold = func(_ context.Context, db *loci.DB) (op.Caller, func() error, error) {
		return callerFunc(func(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
			seen <- ctx
			if f := op.ProgressFrom(ctx); f != nil {
				f(1, 3)
				f(3, 3)
			}
			return op.Local(db).Call(ctx, name, raw)
		}), func() error { return nil }, nil
	}
	mustOpen(t, dir, o)
	m := mustOpen(t, dir, quiet())
	mustCall(t, m, "remember", `{"text":"Ours.","namespace":"ours"}`)
	if ctx := <-seen; !Attached(ctx) || loci.AccessFrom(ctx) != nil || loci.RedactionFrom(ctx) || op.ProgressFrom(ctx) != nil {
		t.Error("a call without anything has something")
	}
	mustCall(t, m, "remember", `{"text":"Theirs.","namespace":"theirs"}`)
	<-seen
	access := &loci.Access{Grants: []loci.Grant{{Namespace: "ours", Scopes: []string{loci.Every}}}}
	var progress []int64
	ctx := op.WithProgress(loci.WithRedaction(loci.WithAccess(t.Context(), access)), func(done, total int64) { progress = append(progress, done, total) })
	out, err := m.Call(ctx, "memories.list", []byte(`{"filter":{"namespace":"ours"}}`))
	if err != nil || !strings.Contains(string(out), "Ours.") {
		t.Errorf("%s %v", out, err)
	}
	if ctx := <-seen; fmt.Sprint(loci.AccessFrom(ctx)) != fmt.Sprint(access) || !loci.RedactionFrom(ctx) {
		t.Errorf("%+v, redaction %v", loci.AccessFrom(ctx), loci.RedactionFrom(ctx))
	}
	if n := len(progress); n < 2 || progress[n-2] != 3 || progress[n-1] != 3 {
		t.Errorf("progress %v", progress)
	}
	for name, in := range map[string]string{"memories.list": `{"filter":{"namespace":"theirs"}}`, "remember": `{"text":"x","namespace":"theirs"}`, "embeddings.spaces": `{}`} {
		if out, err := m.Call(ctx, name, []byte(in)); !errors.Is(err, loci.ErrForbidden) {
			t.Errorf("%s with a grant for another namespace: %s %v", name, out, err)
		}
		<-seen
	}
}

// TestPanicCrosses holds that a holder survives a mistake in an operation, and
// that nobody is told what its panic quotes.
func TestPanicCrosses(t *testing.T) {
	dir := t.TempDir()
	o := quiet()
	o.Hold = func(context.Context, *loci.DB) (op.Caller, func() error, error) {
		return callerFunc(func(context.Context, string, []byte) (json.RawMessage, error) { panic("a secret") }), func() error { return nil }, nil
	}
	mustOpen(t, dir, o)
	m := mustOpen(t, dir, quiet())
	for range 2 {
		if _, err := m.Call(t.Context(), "health", nil); !errors.Is(err, loci.ErrStorage) || strings.Contains(err.Error(), "secret") {
			t.Error(err)
		}
	}
}

// TestServe is the one line for a program with a store of its own.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	db, err := loci.Open(t.Context(), dir, quiet().Store)
	if err != nil {
		t.Fatal(err)
	}
	server, err := Serve(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := mustOpen(t, dir, quiet())
	mustCall(t, m, "remember", `{"text":"The lamp is lit at seven."}`)
	if n, err := db.Memories().List(t.Context(), loci.PageRequest{}); err != nil || len(n.Items) != 1 {
		t.Errorf("%+v %v", n, err)
	}
	if err := errors.Join(server.Close(), server.Close(), db.Close()); err != nil {
		t.Error(err)
	}
	mustCall(t, m, "health", "")
	if !m.Holds() {
		t.Error("nobody took over")
	}
}

// TestSameAsDirect calls random operations on two equal stores, directly and
// through the socket, and holds that they say the same. The stores live through
// all runs, so that what is found grows.
func TestSameAsDirect(t *testing.T) {
	open := func(dir string) *Memory {
		o := quiet()
		o.Store.Clock = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
		return mustOpen(t, dir, o)
	}
	here, there := t.TempDir(), t.TempDir()
	direct, _, attached := open(here), open(there), open(there)
	rapid.Check(t, func(rt *rapid.T) {
		text := rapid.SampledFrom([]string{"The tide turns.", "潮水表每周更新", "Lamps are lit.", "", "  ", "\u0000", strings.Repeat("long ", 9000)})
		id := rapid.IntRange(0, 6)
		for range rapid.IntRange(1, 12).Draw(rt, "calls") {
			name := rapid.SampledFrom([]string{"remember", "recall", "memories.upsert", "memories.get", "memories.delete", "memories.list",
				"search", "graph.apply_batch", "graph.list", "context.write", "context.snapshot", "health", "no.such", "facts.store"}).Draw(rt, "op")
			in := map[string]any{}
			switch name {
			case "remember":
				in["text"] = text.Draw(rt, "text")
			case "recall", "search":
				in["query"] = text.Draw(rt, "query")
			case "memories.upsert":
				in["judgment"] = text.Draw(rt, "judgment")
				if rapid.Bool().Draw(rt, "known") {
					in["id"] = fmt.Sprint(id.Draw(rt, "id"))
				}
			case "memories.get", "memories.delete":
				in["id"] = fmt.Sprint(id.Draw(rt, "id"))
			case "graph.apply_batch":
				in["entities"] = []any{map[string]any{"name": text.Draw(rt, "name")}}
			case "graph.list":
				in["kind"] = rapid.SampledFrom([]string{"entity", "memory"}).Draw(rt, "kind")
			case "context.write":
				in["scope"], in["content"], in["title"] = "s", text.Draw(rt, "content"), "t"
			case "context.snapshot":
				in["scope"] = "s"
			case "facts.store":
				in["id"], in["content"], in["embedding"] = id.Draw(rt, "id"), text.Draw(rt, "content"), []float32{1, 0}
			}
			if rapid.IntRange(0, 9).Draw(rt, "wrong") == 0 {
				in["nonsense"] = true
			}
			raw, err := json.Marshal(in)
			if err != nil {
				rt.Fatal(err)
			}
			out, errOut := direct.Call(context.Background(), name, raw)
			got, errGot := attached.Call(context.Background(), name, raw)
			if show(name, out, errOut) != show(name, got, errGot) {
				rt.Fatalf("%s %s:\n%s\n%s", name, raw, show(name, out, errOut), show(name, got, errGot))
			}
		}
	})
}

// show is what a surface shows of a result, but for what differs between two
// stores of the same records.
func show(name string, out json.RawMessage, err error) string {
	if err != nil {
		raw, _ := json.Marshal(op.FailureWithCause(err))
		return string(raw)
	}
	if name == "health" {
		var h struct {
			Records  int64 `json:"record_count"`
			Revision int64 `json:"revision"`
		}
		if err := json.Unmarshal(out, &h); err != nil {
			return err.Error()
		}
		return fmt.Sprint(h)
	}
	return string(out)
}
