package pager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci"
)

// operation is a method of Store that takes a request.
type operation struct {
	name string
	call reflect.Value
	req  reflect.Type
}

// operations finds all of them.
func operations(cs *Store) (out []operation) {
	v := reflect.ValueOf(cs)
	for i := range v.NumMethod() {
		m := v.Type().Method(i)
		if t := v.Method(i).Type(); t.NumIn() == 2 && strings.HasSuffix(t.In(1).Name(), "Request") {
			out = append(out, operation{m.Name, v.Method(i), t.In(1)})
		}
	}
	return out
}

// usual is a request of an operation on page a that would succeed.
func (o *operation) usual() reflect.Value {
	req := reflect.New(o.req).Elem()
	set := func(name string, v any) {
		if f := req.FieldByName(name); f.IsValid() {
			f.Set(reflect.ValueOf(v))
		}
	}
	set("PageID", "a")
	set("Query", "text")
	set("Content", "text")
	set("Summary", "s")
	set("InputTokens", int64(1))
	set("CheckpointID", loci.ID(1))
	set("Holder", "h")
	set("Executors", []Executor{{ID: "h", QueueMS: 1, ComputeMS: 1}, {ID: "i", QueueMS: 1, ComputeMS: 1, BytesPerMS: 1, CachedPageIDs: []string{"a@1"}}})
	set("ExpectedVersion", new(int64(1)))
	if o.req == reflect.TypeFor[ScheduleRequest]() {
		set("Pages", []SchedulePage{{ID: "a@1", Bytes: 4}})
	}
	return req
}

// fields calls fn with every field of a request, also below others, and the
// name that JSON has for it. What is nil is made.
func fields(v reflect.Value, path string, fn func(path string, f reflect.Value)) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		fields(v.Elem(), path, fn)
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			switch {
			case !f.IsExported():
			case f.Anonymous:
				fields(v.Field(i), path, fn)
			case path == "":
				fields(v.Field(i), name, fn)
			default:
				fields(v.Field(i), path+"."+name, fn)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			fn(path, v)
			return
		}
		if v.Len() == 0 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		}
		fields(v.Index(0), path+"[0]", fn)
	default:
		fn(path, v)
	}
}

// poison sets the n-th field of a request for which bad gives a value, and names
// it; "" when there is none.
func poison(req reflect.Value, n int, bad func(f reflect.Value) (any, bool)) (name string) {
	probe := reflect.New(req.Type()).Elem()
	fields(probe, "", func(path string, f reflect.Value) {
		if _, ok := bad(f); !ok {
			return
		}
		if n == 0 {
			name = path
		}
		n--
	})
	if name == "" {
		return ""
	}
	target := req
	for _, part := range strings.FieldsFunc(name, func(r rune) bool { return r == '.' }) {
		part, indexed := strings.CutSuffix(part, "[0]")
		target = fieldOf(target, part)
		if target.Kind() == reflect.Pointer {
			if target.IsNil() {
				target.Set(reflect.New(target.Type().Elem()))
			}
			target = target.Elem()
		}
		if indexed {
			if target.Len() == 0 {
				target.Set(reflect.MakeSlice(target.Type(), 1, 1))
			}
			target = target.Index(0)
		}
	}
	v, _ := bad(target)
	target.Set(reflect.ValueOf(v).Convert(target.Type()))
	return name
}

// fieldOf finds a field by the name that JSON has for it.
func fieldOf(v reflect.Value, name string) (found reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Anonymous {
			if in := fieldOf(v.Field(i), name); in.IsValid() {
				return in
			}
		}
		if is, _, _ := strings.Cut(f.Tag.Get("json"), ","); is == name {
			return v.Field(i)
		}
	}
	return found
}

func (o *operation) run(ctx context.Context, req reflect.Value) error {
	err, _ := o.call.Call([]reflect.Value{reflect.ValueOf(ctx), req})[1].Interface().(error)
	return err
}

// TestBadText gives every text of every request bytes that are no UTF-8. Each is
// refused by name, nothing is changed, and the error does not repeat them.
func TestBadText(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "a", Content: "text"})
	ops := operations(cs)
	texts := 0
	for _, o := range ops {
		for n := 0; ; n++ {
			req := o.usual()
			name := poison(req, n, func(f reflect.Value) (any, bool) {
				return "bad \xff\xfe", f.Kind() == reflect.String || f.Type() == reflect.TypeFor[json.RawMessage]()
			})
			if name == "" {
				break
			}
			texts++
			before := storedDump(t, cs)
			err := o.run(t.Context(), req)
			e, ok := errors.AsType[*Error](err)
			field, _, _ := strings.Cut(name, "[")
			if ok && o.name == "RecordUsage" && (name == "usage" || name == "provider") {
				field = e.Field // of the two, either says what is wrong with the other
			}
			if !ok || !slices.Contains([]Code{ErrInvalidArgument, ErrLinkInvalid, ErrNotFound}, e.Code) || !strings.HasPrefix(e.Field, field) {
				t.Errorf("%s with bad %s: %v", o.name, name, err)
			} else if strings.Contains(err.Error(), "\xff") {
				t.Errorf("%s with bad %s repeats it: %q", o.name, name, err)
			}
			if d := cmp.Diff(before, storedDump(t, cs)); d != "" {
				t.Errorf("%s with bad %s changed something: %s", o.name, name, d)
			}
		}
	}
	if len(ops) < 25 || texts < 40 {
		t.Errorf("%d texts of %d operations were tried", texts, len(ops))
	}
}

// TestWildNumbers gives every number of every request the worst values there
// are: each is refused without any change, or taken.
func TestWildNumbers(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "a", Content: "text", Tier: Working})
	bad := []func(f reflect.Value) (any, bool){}
	for _, n := range []int64{-1, math.MinInt64, math.MaxInt64} {
		bad = append(bad, func(f reflect.Value) (any, bool) { return n, f.CanInt() })
	}
	for _, x := range []float64{-0.5, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		bad = append(bad, func(f reflect.Value) (any, bool) { return x, f.CanFloat() })
	}
	numbers := 0
	for _, o := range operations(cs) {
		for _, value := range bad {
			for n := 0; ; n++ {
				req := o.usual()
				name := poison(req, n, value)
				if name == "" {
					break
				}
				numbers++
				before := storedDump(t, cs)
				err := o.run(t.Context(), req)
				if code := codeOf(err); code == ErrInternal || code == "?" {
					t.Errorf("%s with a wild %s: %v", o.name, name, err)
				}
				if err == nil {
					put(t, cs, WriteRequest{PageID: "a", Content: "text", Tier: Working, ExpectedVersion: version(t, cs, "a")})
				} else if d := cmp.Diff(before, storedDump(t, cs)); d != "" {
					t.Errorf("%s with a wild %s failed (%v) and changed something: %s", o.name, name, err, d)
				}
				wantCoherent(t, cs)
			}
		}
	}
	if numbers < 100 {
		t.Errorf("%d numbers were tried", numbers)
	}
	checkDeep(t, cs)
}

// version is what a write has to expect; nil for a page that is not there.
func version(t testing.TB, cs *Store, id string) *int64 {
	t.Helper()
	got, err := cs.Read(t.Context(), ReadRequest{PageID: id})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return new(must[*ReadResult](t)(got, err).CurrentVersion)
}

// TestDispatchBadText gives operations JSON whose strings are no UTF-8: a decoder
// that mends them would store what nobody wrote.
func TestDispatchBadText(t *testing.T) {
	cs := openScope(t, Config{})
	for _, content := range []string{"\"\xff\"", `"\ud800"`, `"\udc00 x"`} {
		out := string(cs.Dispatch(t.Context(), "write", json.RawMessage(`{"page_id":"a","content":`+content+`}`)))
		if !strings.Contains(out, `"invalid_argument"`) {
			t.Errorf("content %q: %s", content, out)
		}
	}
}

func TestWriteLimits(t *testing.T) {
	cs := openScope(t, Config{Budget: new(MaxBudget)})
	names := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf("t%03d", i))
		}
		return out
	}
	for _, id := range names(33) {
		put(t, cs, WriteRequest{PageID: id, Content: id})
	}
	for _, c := range []struct {
		name string
		req  WriteRequest
		code Code
	}{
		{"1 MiB", WriteRequest{Content: strings.Repeat("x", MaxContentBytes)}, ""},
		{"1 MiB and a byte", WriteRequest{Content: strings.Repeat("x", MaxContentBytes+1)}, ErrTooLarge},
		{"1 MiB into a smaller window", WriteRequest{Content: strings.Repeat("x", MaxContentBytes), Tier: Working}, ErrBudgetExceeded},
		{"1 MiB into the core of a smaller window", WriteRequest{Content: strings.Repeat("x", MaxContentBytes), Tier: Core}, ErrCoreOverBudget},
		{"64 tags", WriteRequest{Content: "x", Tags: names(64)}, ""},
		{"65 tags", WriteRequest{Content: "x", Tags: names(65)}, ErrTooLarge},
		{"32 links", WriteRequest{Content: "x", Links: names(32)}, ""},
		{"33 links", WriteRequest{Content: "x", Links: names(33)}, ErrLinkInvalid},
		{"a link to nothing", WriteRequest{Content: "x", Links: []string{"nothing"}}, ErrLinkInvalid},
		{"a link to itself", WriteRequest{PageID: "self", Content: "x", Links: []string{"self"}}, ErrLinkInvalid},
		{"a long title", WriteRequest{Content: "x", Title: strings.Repeat("x", MaxTitleBytes+1)}, ErrTooLarge},
		{"a long row title", WriteRequest{Content: "x", Title: strings.Repeat("x", 201), Summary: "s", Outline: new(true)}, ErrOutlineInvalid},
		{"a long row summary", WriteRequest{Content: "x", Title: "t", Summary: strings.Repeat("灯", 81), Outline: new(true)}, ErrOutlineInvalid},
		{"a row of 240 bytes", WriteRequest{Content: "x", Title: strings.Repeat("x", 200), Summary: strings.Repeat("灯", 80), Outline: new(true)}, ""},
		{"no content", WriteRequest{}, ErrInvalidArgument},
		{"the id of a copy", WriteRequest{PageID: "memory:1", Content: "x"}, ErrNotFound},
		{"a colon", WriteRequest{PageID: "a:b", Content: "x"}, ErrInvalidArgument},
		{"an at sign", WriteRequest{PageID: "a@1", Content: "x"}, ErrInvalidArgument},
		{"a long id", WriteRequest{PageID: strings.Repeat("x", MaxPageIDBytes+1), Content: "x"}, ErrInvalidArgument},
	} {
		before := storedDump(t, cs)
		_, err := cs.Write(t.Context(), c.req)
		if codeOf(err) != c.code {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && before != storedDump(t, cs) {
			t.Errorf("%s failed and changed something", c.name)
		}
	}
	for i := range MaxOutlineRows - 1 { // one is there
		put(t, cs, WriteRequest{Content: "x", Title: fmt.Sprint(i), Summary: "s", Outline: new(true)})
	}
	_, err := cs.Write(t.Context(), WriteRequest{Content: "x", Title: "one more", Summary: "s", Outline: new(true)})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != ErrOutlineFull || e.Details["limit"] != MaxOutlineRows {
		t.Errorf("a 33rd row: %v", err)
	}
	checkDeep(t, cs)
}

// TestMeasure opens a scope with other measures than its own.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	db, err := loci.Open(t.Context(), dir, &loci.Options{NoBackgroundEmbedding: true})
	if err != nil {
		t.Fatal(err)
	}
	scope := Scope{"project", "measured"}
	cs := scopeOf(t, db, Config{Scope: scope, Budget: new(2000)})
	put(t, cs, WriteRequest{PageID: "core", Content: strings.Repeat("c", 600), Tier: Core})
	for i := range 3 {
		put(t, cs, WriteRequest{PageID: fmt.Sprint("w", i), Content: strings.Repeat("w", 300), Tier: Working})
	}
	try := func(db *loci.DB, name string, want Code, cfg Config) (*Store, error) {
		t.Helper()
		cfg.Scope = scope
		before := storedDump(t, cs)
		got, err := Open(t.Context(), db, cfg)
		if codeOf(err) != want {
			t.Errorf("%s: %v", name, err)
		}
		if want != "" && before != storedDump(t, cs) {
			t.Errorf("%s failed and changed something", name)
		}
		return got, err
	}
	try(db, "another budget", ErrConfigMismatch, Config{Budget: new(2001)})
	try(db, "tokens", ErrConfigMismatch, Config{Counter: lineTokens{}})
	try(db, "bytes", "", Config{Bytes: true, Budget: new(2000)})
	try(db, "nothing said", "", Config{})
	try(db, "both", ErrInvalidArgument, Config{Bytes: true, Counter: lineTokens{}})
	try(db, "a small budget", ErrInvalidArgument, Config{Budget: new(MinBudget - 1)})
	try(db, "a large budget", ErrInvalidArgument, Config{Budget: new(MaxBudget + 1)})
	_, err = try(db, "under core", ErrCoreOverBudget, Config{Budget: new(500), Reconfigure: true})
	if e, ok := errors.AsType[*Error](err); !ok || e.Details["budget"] != 500 || e.Details["core"].(int) < 600 {
		t.Errorf("%+v", err)
	}
	// A little lower, and one page has to go; the handle that was there is told.
	lower, _ := try(db, "lower", "", Config{Budget: new(1500), Reconfigure: true})
	if s := snapshot(t, lower); strings.Contains(*s.Text, `"w0"`) || !strings.Contains(*s.Text, `"w1"`) || s.Pressure.Budget != 1500 {
		t.Errorf("%+v", s)
	}
	if _, err := cs.Snapshot(t.Context(), SnapshotRequest{}); !errors.Is(err, ErrConfigMismatch) {
		t.Errorf("a handle with the old budget: %v", err)
	}
	cs = lower
	tokens, _ := try(db, "tokens now", "", Config{Counter: textTokens{}, Budget: new(400), Reconfigure: true})
	if s := snapshot(t, tokens); s.Pressure.Unit != UnitTokens || s.Pressure.Cost != (textTokens{}).Count(*s.Text) {
		t.Errorf("%+v", s)
	}
	cs = tokens
	try(db, "another tokenizer", ErrConfigMismatch, Config{Counter: lineTokens{}})
	try(db, "the known tokenizer", "", Config{})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openDB(t, dir, nil)
	cs = scopeOf(t, db, Config{Scope: scope, Tokenizers: findTestCounter})
	if s := snapshot(t, cs); s.Pressure.Unit != UnitTokens || s.Pressure.Budget != 400 {
		t.Errorf("%+v", s)
	}
	back, _ := try(db, "bytes again", "", Config{Bytes: true, Budget: new(1000), Reconfigure: true})
	if s := snapshot(t, back); s.Pressure.Unit != UnitBytes || s.Pressure.Cost != s.TextBytes || s.TextBytes > 1000 {
		t.Errorf("%+v", s)
	}
	cs = back
	wantCoherent(t, cs)
	try(db, "an unnamed tokenizer", ErrInvalidArgument, Config{Counter: namedCounter("")})
	try(db, "a tokenizer with a bad name", ErrInvalidArgument, Config{Counter: namedCounter("\xff"), Reconfigure: true})
	try(db, "tokens of an unknown tokenizer", "", Config{Counter: namedCounter("mine"), Budget: new(500), Reconfigure: true})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openDB(t, dir, nil)
	if _, err := Open(t.Context(), db, Config{Scope: scope}); !errors.Is(err, ErrConfigMismatch) {
		t.Errorf("without its tokenizer: %v", err)
	}
	if _, err := Open(t.Context(), db, Config{Scope: scope, Tokenizers: findTestCounter}); !errors.Is(err, ErrConfigMismatch) {
		t.Errorf("with tokenizers that do not have it: %v", err)
	}
}

type namedCounter string

func (n namedCounter) ID() string          { return string(n) }
func (namedCounter) Count(text string) int { return len(text) / 4 }

// TestUnruly counts with counters that no window can be measured by: that give
// less for more, or jump. The budget holds all the same.
func TestUnruly(t *testing.T) {
	cs := openScope(t, Config{Counter: unruly{}, Budget: new(300)})
	for i := range 60 {
		_, err := cs.Write(t.Context(), WriteRequest{Content: strings.Repeat("x", 7*i), Title: "t", Tier: Working})
		if code := codeOf(err); i > 0 && code != "" && code != ErrBudgetExceeded && code != ErrCoreOverBudget {
			t.Fatal(err)
		}
		s := snapshot(t, cs)
		if s.Pressure.Cost > 300 || s.Pressure.Cost != (unruly{}).Count(*s.Text) {
			t.Fatalf("%+v", s.Pressure)
		}
	}
	wantCoherent(t, cs)
}

// unruly counts by the text's length modulo a prime.
type unruly struct{}

func (unruly) ID() string            { return "test:unruly" }
func (unruly) Count(text string) int { return len(text) % 397 }

// TestCounterTwins opens a scope with counters of one id: the first that the
// store came to know counts for all, so that handles agree.
func TestCounterTwins(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	one := scopeOf(t, db, Config{Scope: Scope{"p"}, Counter: twin{1}, Budget: new(500)})
	two := scopeOf(t, db, Config{Scope: Scope{"p"}, Counter: twin{2}, Budget: new(500)})
	put(t, one, WriteRequest{Content: "text", Tier: Working})
	a, b := snapshot(t, one).Pressure, snapshot(t, two).Pressure
	if a != b {
		t.Errorf("%+v and %+v", a, b)
	}
}

type twin struct{ factor int }

func (twin) ID() string              { return "test:twin" }
func (t twin) Count(text string) int { return t.factor * len(text) / 4 }
