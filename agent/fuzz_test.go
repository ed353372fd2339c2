package agent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
)

// FuzzSelection holds that no filter and no condition does harm, and that a filter
// means the same to a memory as to a comparison of decoded JSON.
func FuzzSelection(f *testing.F) {
	opened := openMemory(f, 4)
	stored := []string{
		`{}`, `{"k":1}`, `{"k":1.5,"o":{"a":1,"b":[1,2]}}`, `{"k":"1"}`, `{"k":null,"v":[]}`, `{"k":9007199254740993}`,
		`{"o":{"b":[1.0,2],"a":1e0}}`, `{"é":true,"k":-0}`, `{"k":{},"a.b":"x"}`, `{"k":1e400}`,
	}
	for i, raw := range stored {
		opened.store(loci.PointID(i), fmt.Sprint("text ", i), x(), withMetadata(raw))
	}
	for _, raw := range stored {
		f.Add(raw, "k", "eq", `1`)
	}
	f.Add(`{"k":1.0}`, "k", "in", `[1,"1",null]`)
	f.Add(`{"content":"text 3"}`, "o", "exists", `true`)
	f.Add(`{"_loci_x":1}`, "k", "ge", `-1e999`)
	f.Add(`null`, "", "ne", `{}`)
	f.Add(`{"k":1e-400}`, "k", "lt", `"é"`)
	f.Fuzz(func(t *testing.T, filter, key, op, value string) {
		m := *opened
		m.t = t
		// What cannot be read of a point is damage, and no match.
		where := []loci.Condition{{Key: key, Op: loci.Operator(op), Value: json.RawMessage(value)}}
		if s, err := (&Selection{Where: where}).check(); err == nil {
			for _, p := range []*store.Point{{}, {Record: store.Record{Metadata: []byte(`{`)}}, {Record: store.Record{Metadata: []byte(stored[2])}}} {
				s.covers(p, T)
			}
			for _, id := range m.selected(Selection{Where: where}) {
				if !s.covers(&store.Point{Record: store.Record{Metadata: []byte(stored[id])}}, T) {
					t.Errorf("%s %s %s finds %s", key, op, value, stored[id])
				}
			}
		} else if loci.CodeOf(err) != loci.ErrValidation {
			t.Errorf("error %v", err)
		}
		s, err := (&Selection{Filter: loci.Metadata(filter)}).check()
		if err != nil {
			if loci.CodeOf(err) != loci.ErrValidation {
				t.Errorf("error %v", err)
			}
			return
		}
		want := []loci.PointID{}
		for i, raw := range stored {
			met := naivelyMeets(t, filter, raw, fmt.Sprint("text ", i))
			if got := s.covers(&store.Point{Record: store.Record{Metadata: []byte(raw)}, Content: fmt.Sprint("text ", i)}, T); got != met {
				t.Errorf("filter %s on %s: %v, want %v", filter, raw, got, met)
			}
			if met {
				want = append(want, loci.PointID(i))
			}
		}
		wantIDs(t, "filter "+filter, m.selected(Selection{Filter: loci.Metadata(filter)}), want...)
	})
}

// naivelyMeets compares by decoded JSON.
func naivelyMeets(t *testing.T, filter, metadata, content string) bool {
	pairs, ok := decoded(t, filter).(map[string]any)
	if !ok {
		return true // null
	}
	held := decoded(t, metadata).(map[string]any)
	held["content"] = content
	for key, want := range pairs {
		got, ok := held[key]
		if !ok || !naivelyEqual(got, want) {
			return false
		}
	}
	return true
}

func decoded(t *testing.T, raw string) (v any) {
	t.Helper()
	if strings.TrimSpace(raw) == "" {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(raw))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%q was taken: %v", raw, err)
	}
	return v
}

func naivelyEqual(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		if !ok || len(a) != len(other) {
			return false
		}
		for key, v := range a {
			if w, ok := other[key]; !ok || !naivelyEqual(v, w) {
				return false
			}
		}
		return true
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, naivelyEqual)
	case json.Number:
		other, ok := b.(json.Number)
		if !ok {
			return false
		}
		if a == other {
			return true
		}
		for _, n := range []json.Number{a, other} { // beyond what can be written out
			if i := strings.IndexAny(string(n), "eE"); i >= 0 && len(n)-i > 5 {
				return meta.EqualValues([]byte(a), []byte(other))
			}
		}
		x, okX := new(big.Rat).SetString(string(a))
		y, okY := new(big.Rat).SetString(string(other))
		return okX && okY && x.Cmp(y) == 0
	}
	return a == b
}

// FuzzUpdates holds that merging is what it is to decoded JSON, and that no update
// leaves what a memory would not store.
func FuzzUpdates(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"a":1,"b":{"x":1,"y":2}}`, `{"b":{"x":9},"c":3,"a":null}`}, {`{}`, `{"content":"lighthouse"}`}, {`{"k":1}`, `{"k":1.0}`},
		{``, `{"_loci_x":1,"zz":null}`}, {`{"a":[1,{"b":null}]}`, `{"a":null,"\u0061":1}`}, {`{"k":1}`, `{"content":null}`}, {`{"k":1}`, `[1]`},
	} {
		f.Add(seed[0], seed[1])
	}
	s := &(&AgentMemory{}).Semantic().points
	f.Fuzz(func(t *testing.T, metadata, updates string) {
		old, _, err := checkMetadata("metadata", loci.Metadata(metadata))
		if err != nil {
			return
		}
		c, err := s.checkUpdates(loci.Metadata(updates))
		if err != nil {
			if loci.CodeOf(err) != loci.ErrValidation {
				t.Errorf("error %v", err)
			}
			return
		}
		merged, err := meta.Merge(old, c.updates, true)
		if err != nil {
			t.Fatalf("%q and %q: %v", metadata, updates, err)
		}
		want := map[string]any{}
		if held, ok := decoded(t, string(old)).(map[string]any); ok {
			want = held
		}
		if pairs, ok := decoded(t, updates).(map[string]any); ok {
			for key, v := range pairs {
				switch {
				case strings.HasPrefix(key, reservedPrefix):
				case key == contentKey:
					if c.content == nil || *c.content != v {
						t.Errorf("content %v of %q", c.content, updates)
					}
				case v == nil:
					delete(want, key)
				default:
					want[key] = v
				}
			}
		}
		got, ok := decoded(t, string(merged)).(map[string]any)
		if !ok && len(bytes.TrimSpace(merged)) == 0 {
			got = map[string]any{}
		}
		if !naivelyEqual(got, want) {
			t.Errorf("%q and %q make %s", metadata, updates, merged)
		}
		if _, _, err := checkMetadata("metadata", merged); err != nil && len(merged) <= loci.MaxMetadataBytes {
			t.Errorf("%q and %q make %s: %v", metadata, updates, merged, err)
		}
	})
}
