package strictjson

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

type pointInput struct {
	ID   loci.PointID  `json:"id"`
	Also *loci.PointID `json:"also,omitempty"`
	TTL  *uint64       `json:"ttl,omitempty"`
}

// TestPointID holds that ids of 64 bits go in as strings or whole numbers, exactly or
// not at all, and come out as strings.
func TestPointID(t *testing.T) {
	schema, err := Infer[pointInput](Types(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]uint64{
		`0`:                    0,
		`1`:                    1,
		`9007199254740993`:     1<<53 + 1,
		`9223372036854775807`:  1<<63 - 1,
		`9223372036854775808`:  1 << 63,
		`18446744073709551615`: 1<<64 - 1,
	} {
		for _, form := range []string{in, `"` + in + `"`} {
			var v pointInput
			if err := Decode(schema, []byte(`{"id":`+form+`,"also":`+form+`}`), &v); err != nil || uint64(v.ID) != want || uint64(*v.Also) != want {
				t.Errorf("%s: %+v, %v", form, v, err)
			}
			out, err := json.Marshal(v.ID)
			if err != nil || string(out) != `"`+in+`"` {
				t.Errorf("%s came out as %s, %v", form, out, err)
			}
		}
	}
	for _, bad := range []string{
		`-1`, `"-1"`, `-0`, `1.5`, `1.0`, `1e3`, `1E3`, `18446744073709551616`, `"18446744073709551616"`, `""`, `" 7"`, `"7 "`,
		`"+7"`, `"0x7"`, `"1_0"`, `"1e3"`, `"1.0"`, `"٧"`, `true`, `null`, `[1]`, `{}`, `"000000000000000000007"`,
	} {
		for _, name := range []string{"id", "also"} {
			in := `{"id":1,"also":` + bad + `}`
			if name == "id" {
				in = `{"id":` + bad + `}`
			}
			var v pointInput
			err := Decode(schema, []byte(in), &v)
			e, ok := errors.AsType[*loci.Error](err)
			if !ok || e.Code != loci.ErrValidation || e.Field != name || !strings.Contains(e.Message, "from 0 to 18446744073709551615") {
				t.Errorf("%s: %v", in, err)
			}
		}
	}
	var v pointInput
	e, ok := errors.AsType[*loci.Error](Decode(schema, []byte(`{}`), &v))
	if !ok || e.Field != "id" || !strings.Contains(e.Message, "is missing") {
		t.Errorf("missing: %v", e)
	}
}

// TestUnsigned holds the range of a number without sign.
func TestUnsigned(t *testing.T) {
	schema, err := Infer[pointInput](Types(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]uint64{`0`: 0, `9223372036854775808`: 1 << 63, `18446744073709551615`: 1<<64 - 1} {
		var v pointInput
		if err := Decode(schema, []byte(`{"id":1,"ttl":`+in+`}`), &v); err != nil || *v.TTL != want {
			t.Errorf("%s: %v, %v", in, v.TTL, err)
		}
	}
	for _, bad := range []string{`-1`, `-0`, `0.5`, `1e3`, `18446744073709551616`, `"1"`, `null`, `true`} {
		var v pointInput
		err := Decode(schema, []byte(`{"id":1,"ttl":`+bad+`}`), &v)
		if e, ok := errors.AsType[*loci.Error](err); !ok || e.Code != loci.ErrValidation || e.Field != "ttl" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestAllowNull holds that an answer's pointer that is written when it is nil may be
// null, whatever it points to.
func TestAllowNull(t *testing.T) {
	type inner struct {
		N int `json:"n"`
	}
	type answer struct {
		Number *int   `json:"number"`
		Object *inner `json:"object"`
		Absent *inner `json:"absent,omitempty"`
	}
	schema, err := Infer[answer](Types(), nil)
	if err != nil {
		t.Fatal(err)
	}
	AllowNull(schema, reflect.TypeFor[answer]())
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	for in, ok := range map[string]bool{
		`{"number":null,"object":null}`:                  true,
		`{"number":1,"object":{"n":1}}`:                  true,
		`{"number":1,"object":{"n":"x"}}`:                false,
		`{"number":1,"object":{}}`:                       false,
		`{"number":1,"object":{"n":1},"absent":null}`:    false,
		`{"number":1,"object":{"n":1},"absent":{"n":2}}`: true,
	} {
		var v any
		if err := json.Unmarshal([]byte(in), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); (err == nil) != ok {
			t.Errorf("%s: %v", in, err)
		}
	}
}
