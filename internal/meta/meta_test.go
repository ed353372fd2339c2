package meta

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
)

func TestMerge(t *testing.T) {
	for _, c := range []struct {
		old, newer string
		drop       bool
		want       string
	}{
		{``, ``, false, ``},
		{``, `{"a":1}`, false, `{"a":1}`},
		{`{"a":1}`, ``, false, `{"a":1}`},
		{`{"a":1,"b":2}`, `{"b":3,"c":4}`, false, `{"a":1,"b":3,"c":4}`},
		{`{"a":1,"b":2}`, `{"a":null}`, false, `{"a":null,"b":2}`},
		{`{"a":1,"b":2}`, `{"a":null}`, true, `{"b":2}`},
		{`{"a":1}`, `{"a":null}`, true, ``},
		{``, `{"a":null,"b":1}`, true, `{"b":1}`},
		{`{"a":{"x":1,"y":2}}`, `{"a":{"x":9}}`, true, `{"a":{"x":9}}`},
		{`{"a":null}`, `{"b":1}`, true, `{"a":null,"b":1}`},
	} {
		got, err := Merge([]byte(c.old), []byte(c.newer), c.drop)
		if err != nil || string(got) != c.want {
			t.Errorf("%s and %s: %s, %v, want %s", c.old, c.newer, got, err, c.want)
		}
	}
	for _, bad := range [][2]string{{`[`, `{"a":1}`}, {`{"a":1}`, `{"a":1,"a":2}`}} {
		if _, err := Merge([]byte(bad[0]), []byte(bad[1]), true); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

func TestEqual(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1e0}`, true},
		{`{"a":1}`, `{"a":1.0000000000000000001}`, false},
		{`{"a":9007199254740993}`, `{"a":9007199254740992}`, false},
		{`{"a":0}`, `{"a":-0.0}`, true},
		{`{"a":"\u0031"}`, `{"a":"1"}`, true},
		{`{"a":[1,2]}`, `{"a":[2,1]}`, false},
		{`{"a":{"x":[{}]}}`, `{"a":{"x":[{}]}}`, true},
		{`{"a":null}`, `{}`, false},
		{`{"a":true}`, `{"a":"true"}`, false},
		{`[`, `[`, false},
	} {
		if got := Equal([]byte(c.a), []byte(c.b)); got != c.want {
			t.Errorf("%s and %s: %v", c.a, c.b, got)
		}
	}
}

func TestConditions(t *testing.T) {
	got, err := Conditions("where", []Condition{{"a", "in", []byte(`[1,"x",null]`)}, {"b", "exists", []byte(`false`)}, {"c", "gt", []byte(`"m"`)}})
	want := []index.Condition{
		{Key: "a", Op: index.OpIn, Values: []index.Value{{Type: index.TypeNumber, Number: 1}, {Type: index.TypeString, String: "x"}, {Type: index.TypeNull}}},
		{Key: "b", Op: index.OpMissing},
		{Key: "c", Op: index.OpGt, Values: []index.Value{{Type: index.TypeString, String: "m"}}},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	for name, c := range map[string]Condition{
		"where[0].op":    {"a", "like", []byte(`1`)},
		"where[0].key":   {"\xff", "eq", []byte(`1`)},
		"where[0].value": {"a", "lt", []byte(`true`)},
	} {
		_, err := Conditions("where", []Condition{c})
		if e, ok := err.(*errs.Error); !ok || e.Code != errs.Validation || e.Field != name {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// FuzzScan holds the scanner to the standard library: what it takes is JSON of the
// same content, and what it gives makes the same object again.
func FuzzScan(f *testing.F) {
	for _, seed := range []string{
		`{}`, ` {"a" : 1e-5 , "b":[true,null,{"c":"\ud83d\ude00"}]} `, `{"a":1,"a":2}`, `{"a":"\ud83d"}`, `{"a":01}`, `[1]`, `{"a":"` + "\xff" + `"}`,
		`{"a":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`, `{"a":-0.0}`, "{\"a\":\"\x01\"}", `{"a":1}x`,
	} {
		f.Add([]byte(seed), []byte(`{"a":null,"z":1}`))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		members, err := Scan(a)
		if err != nil || len(a) == 0 {
			return
		}
		var std map[string]json.RawMessage
		if err := json.Unmarshal(a, &std); err != nil {
			t.Fatalf("taken, but it is no object: %v", err)
		}
		if len(std) != len(members) {
			t.Fatalf("%d members, want %d", len(members), len(std))
		}
		for _, m := range members {
			if string(std[m.Key]) != string(m.Value) {
				t.Fatalf("key %q: %q, want %q", m.Key, m.Value, std[m.Key])
			}
			if !EqualValues(m.Value, m.Value) {
				t.Fatalf("%s does not equal itself", m.Value)
			}
			Scalar(m.Value)
		}
		if again := Join(members); len(members) > 0 && !Equal(again, a) {
			t.Fatalf("%s is not %s", again, a)
		}
		if _, err := Scan(b); err != nil {
			return
		}
		for _, drop := range []bool{false, true} {
			merged, err := Merge(a, b, drop)
			if err != nil {
				t.Fatal(err)
			}
			twice, err := Merge(merged, b, drop)
			if err != nil || !Equal(merged, twice) && len(merged)+len(twice) > 0 {
				t.Fatalf("merged twice: %s, %s, %v", merged, twice, err)
			}
		}
	})
}
