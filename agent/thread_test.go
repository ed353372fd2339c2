package agent

import (
	"errors"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

func TestLast(t *testing.T) {
	m := openMemory(t, 2)
	last := func(thread string) string {
		t.Helper()
		got, err := m.episodes.Last(t.Context(), ThreadRequest{Thread: thread})
		if err != nil {
			t.Fatal(err)
		}
		if got.Point == nil {
			return ""
		}
		return got.Point.Description
	}
	if got := last("talk"); got != "" {
		t.Errorf("an empty memory has %q", got)
	}
	text := `{"thread":"talk","role":"user","id":"1","content":"one"}
{"thread":"other","role":"user","id":"1","content":"elsewhere"}
{"thread":"talk","role":"user","id":"2","content":"two"}`
	if _, err := m.episodes.ImportFrom(t.Context(), strings.NewReader(text), ImportRequest{}); err != nil {
		t.Fatal(err)
	}
	if got := last("talk"); got != "two" {
		t.Errorf("the last of talk is %q", got)
	}
	if got := last("other"); got != "elsewhere" {
		t.Errorf("the last of other is %q", got)
	}
	if got := last("none"); got != "" {
		t.Errorf("a thread that is not there has %q", got)
	}
	if _, err := m.episodes.Last(t.Context(), ThreadRequest{}); !errors.Is(err, loci.ErrValidation) {
		t.Errorf("no thread: %v", err)
	}
}
