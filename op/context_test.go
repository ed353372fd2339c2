package op

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/strictjson"
	"github.com/loci-memory/loci/pager"
)

// TestContextOperations holds that the table has what Dispatch has, and that what
// says which context is meant stands in every input.
func TestContextOperations(t *testing.T) {
	var want, got []string
	for _, o := range pager.Operations() {
		want = append(want, "context."+o.Name)
		row, ok := Default().Lookup("context." + o.Name)
		if ok && o.Writes && row.ReadOnly {
			t.Errorf("%s writes and is said to read only", row.Name)
		}
	}
	for _, o := range Default().All() {
		if !strings.HasPrefix(o.Name, "context.") {
			continue
		}
		got = append(got, o.Name)
		in := o.InputSchema()
		for _, field := range []string{"scope", "namespace", "budget", "unit", "tokenizer"} {
			if in.Properties[field] == nil {
				t.Errorf("%s: another field hides %s", o.Name, field)
			}
		}
		if s := in.Properties["scope"]; s != nil && s.Format != strictjson.OneOrMore {
			t.Errorf("%s: another field hides scope", o.Name)
		}
		if (in.Properties["reconfigure"] == nil) != o.ReadOnly {
			t.Errorf("%s: what only reads must not reconfigure, and all else may", o.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("rows %v\noperations %v", got, want)
	}
}

// TestContextTarget holds which context is meant.
func TestContextTarget(t *testing.T) {
	tests := []struct {
		in    string
		field string // offending field
		want  string // part of the message; "" when the input is fine
	}{
		{`{"scope":"a"}`, "", ""},
		{`{"scope":["a","b"]}`, "", ""},
		{`{"scope":"a","namespace":"a"}`, "", ""},
		{`{"scope":["a","b"],"namespace":"a"}`, "", ""},
		{`{"namespace":"a"}`, "", ""},
		{`{"scope":"a","budget":500,"unit":"bytes"}`, "", ""},
		{`{"scope":"a","tokenizer":"o200k_base"}`, "", ""},
		{`{"scope":"a","tokenizer":"tiktoken:o200k_base","unit":"tokens"}`, "", ""},
		{`{}`, "scope", "is missing"},
		{`{"scope":null}`, "scope", "must be a string or an array of strings, not null"},
		{`{"scope":1}`, "scope", "must be a string or an array of strings, not a number"},
		{`{"scope":{}}`, "scope", "must be a string or an array of strings, not an object"},
		{`{"scope":["a",1]}`, "scope[1]", "must be a string, not a number"},
		{`{"scope":["a"],"namespace":"b"}`, "namespace", "is not the first string of scope"},
		{`{"scope":[],"namespace":"b"}`, "namespace", "is not the first string of scope"},
		{`{"scope":"a","unit":"words"}`, "unit", "must be one of bytes, tokens"},
		{`{"scope":"a","unit":"tokens"}`, "tokenizer", "is missing"},
		{`{"scope":"a","unit":"bytes","tokenizer":"o200k_base"}`, "tokenizer", "leave one of them out"},
		{`{"scope":"a","tokenizer":"mine"}`, "tokenizer", "must be one of"},
	}
	o, _ := Default().Lookup("context.render")
	for _, tt := range tests {
		err := o.Check([]byte(tt.in))
		if tt.want == "" {
			if err != nil {
				t.Errorf("%s: %v", tt.in, err)
			}
			continue
		}
		f := FailureOf(err)
		if f.Code != loci.ErrValidation || f.Operation != o.Name || f.Field != tt.field || !strings.Contains(f.Message, tt.want) ||
			f.Reason != string(pager.ErrInvalidArgument) {
			t.Errorf("%s: %+v", tt.in, f)
		}
	}
}

// TestContextFailure holds that surfaces are told the context store's own code
// and figures.
func TestContextFailure(t *testing.T) {
	inner := &pager.Error{
		Code: pager.ErrVersionConflict, Op: "write", Field: "expected_version", Message: "the page is at version 3",
		Details: map[string]any{"current": 3},
	}
	f := FailureOf(errors.Join(inner))
	if f.Code != loci.ErrStaleRevision || f.Reason != "version_conflict" || f.Details["current"] != 3 || f.Operation != "context.write" ||
		f.Field != "expected_version" || f.Message != "the page is at version 3" {
		t.Errorf("%+v", f)
	}
	if f := FailureOf(loci.ErrNotFound); f.Reason != "" || f.Details != nil {
		t.Errorf("%+v", f)
	}
}
