package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/pager"
	"github.com/rivo/uniseg"
)

var update = flag.Bool("update", false, "write the golden file anew")

// TestWalkThrough holds the whole session: what is rendered, evicted, found and
// reckoned shows in it.
func TestWalkThrough(t *testing.T) {
	var out bytes.Buffer
	m, err := Run(t.Context(), Options{Out: &out})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "walk.golden")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the walk-through differs from %s; run the test with -update and look at what changed:\n%s", golden, out.String())
	}
	for line := range strings.Lines(out.String()) {
		if w := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); w > 78 || !utf8.ValidString(line) {
			t.Errorf("%d columns: %q", w, line)
		}
	}

	usage := &m.Usage.Totals
	switch {
	case usage.Simulated.Calls != 40 || usage.Provider.Calls != 0 || len(m.Usage.Records) != 40:
		t.Errorf("the session has %+v calls", usage)
	case m.Totals.Faults == 0 || m.Totals.Evictions == 0 || m.Replacement.State.Runs < 2:
		t.Errorf("nothing was paged: %+v, %+v", m.Totals, m.Replacement.State)
	case m.Now.Cost > Budget || m.Now.Unpublished || int64(len(m.Renders)) != m.Totals.Renders:
		t.Errorf("the window is %+v with %d renders", m.Now, len(m.Renders))
	}
	// Only what rewrites core breaks the prefix, and all of these did.
	broke := map[string]int{}
	for _, e := range m.Renders {
		if !e.PrefixIntact {
			broke[e.Operations[len(e.Operations)-1].Name]++
		}
	}
	if broke["write"] != 1 || broke["unpin"] != 1 || broke["fold"] != 1 || len(broke) != 3 {
		t.Errorf("the prefix was broken by %v", broke)
	}
}

// TestSameAgain plays the session twice: the models are alike byte for byte.
func TestSameAgain(t *testing.T) {
	var first []byte
	for range 2 {
		m, err := Run(t.Context(), Options{})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(raw, first) {
			t.Error("the session went another way the second time")
		}
		first = raw
	}
}

func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	var out bytes.Buffer
	if _, err := Run(t.Context(), Options{Out: &out, Dir: dir, Color: true}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "is kept") || !strings.Contains(out.String(), "\x1b[31m") {
		t.Errorf("no word of the store, or no colour: %.300q", out.String())
	}
	if _, err := Run(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "already holds") {
		t.Errorf("a second session went into the same store: %v", err)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteFailure(t *testing.T) {
	if _, err := Run(t.Context(), Options{Out: full{}}); err == nil || !strings.Contains(err.Error(), "disk full") {
		t.Errorf("got %v", err)
	}
}

func TestPad(t *testing.T) {
	for text, want := range map[string]string{"ab": "ab  ", "abcdef": "abcd", "计划书": "计划", "a计划": "a计 "} {
		if got := pad(text, 4); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	for n, want := range map[int]string{7: "7", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := count(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	if got := written(&pager.RenderEvent{First: true, TextBytes: 9}); got != 9 {
		t.Error(got)
	}
}
