package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/rivo/uniseg"
)

// The demonstration runs on the real engine, so this test also says whether
// the product finds what a person would look for.
func TestRun(t *testing.T) {
	var out bytes.Buffer
	loaded := 0
	dir := t.TempDir()
	err := Run(t.Context(), Options{Out: &out, Dir: dir, Progress: func(done, total int) {
		if done > total || done <= loaded {
			t.Errorf("progress %d of %d after %d", done, total, loaded)
		}
		loaded = done
	}})
	if err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if loaded != 3092 {
		t.Errorf("progress ended at %d", loaded)
	}
	for n, l := range strings.Split(out.String(), "\n") {
		if w := uniseg.StringWidth(l); w > columns && !strings.Contains(l, dir) {
			t.Errorf("line %d is %d columns wide: %s", n+1, w, l)
		}
		if strings.Contains(l, "\x1b") {
			t.Errorf("line %d is coloured: %q", n+1, l)
		}
	}
	questions, err := Questions()
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%d of %d questions", len(questions), len(questions)); !strings.Contains(out.String(), want) {
		t.Errorf("not %s found what they wanted:\n%s", want, out.String())
	}
	for _, want := range []string{"Gertrude mother of Hamlet", "颜回 老师 孔子", "Ophelia -> Polonius -> Hamlet -> Horatio", "stage/props.md, line 13", "书房/借书.md, line 3", "There is no embedder"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
	if t.Failed() {
		return
	}
	if err := Run(t.Context(), Options{Dir: dir}); err == nil || !strings.Contains(err.Error(), "already holds") {
		t.Errorf("a second run over the same directory gave %v", err)
	}
}

// lengths is no model: it tells texts apart and knows nothing of what they mean.
type lengths struct{}

func (lengths) Embed(_ context.Context, texts []string, _ embed.Purpose) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, text := range texts {
		out[i] = []float32{1, float32(len(text)) / 1000}
	}
	return out, nil
}

// A model that finds nothing spoils nothing; what a real one finds is tested with
// the command line.
func TestRunWithModel(t *testing.T) {
	if testing.Short() {
		t.Skip("loads the whole corpus")
	}
	var out bytes.Buffer
	if err := Run(t.Context(), Options{Out: &out, Model: &Model{Name: "lengths", Dimension: 2, Embedder: lengths{}}}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{"60 articles of the declaration", "of 4 questions found their article", "18 of 18 questions"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report does not say %q", want)
		}
	}
}

func TestRunStopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		limit int
		want  string
	}{
		{"", 10, 0, ""},
		{"one two three", 7, 0, "one two|three"},
		{"one two three", 7, 1, "one t …"},
		{"学而时习之，不亦说乎", 8, 0, "学而时习|之，不亦|说乎"},
		{"ab 学而", 5, 0, "ab 学|而"},
		{"a\nb", 5, 0, "a|b"},
		{"abcdefghij", 4, 0, "abcd|efgh|ij"},
	} {
		if got := strings.Join(wrap(c.text, c.width, c.limit), "|"); got != c.want {
			t.Errorf("wrap(%q, %d, %d) = %s, want %s", c.text, c.width, c.limit, got, c.want)
		}
	}
}

func TestPieces(t *testing.T) {
	if got := clip("学而时习之", 7); got != "学而 …" {
		t.Errorf("clip: %q", got)
	}
	if got := pad("学", 4); got != "学  " {
		t.Errorf("pad: %q", got)
	}
	if got := strings.Join(sentences("甲。乙\nc"), "|"); got != "甲。|乙\n|c" {
		t.Errorf("sentences: %q", got)
	}
	if got := flat("one,\n  two\n三。\n四"); got != "one, / two / 三。四" {
		t.Errorf("flat: %q", got)
	}
	for n, want := range map[int]string{0: "0", 999: "999", 3092: "3,092", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := count(n); got != want {
			t.Errorf("count(%d) = %s", n, got)
		}
	}
	if got := fmt.Sprint(occurrences("Love and glove, LOVE; 相爱", "love"), occurrences("相爱", "爱")); got != "[0 16] [3]" {
		t.Errorf("occurrences: %s", got)
	}
}

func TestColorOnlyAddsEscapes(t *testing.T) {
	s := &screen{color: true}
	if got := regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(s.paint(bold, "x"), ""); got != "x" {
		t.Errorf("%q", got)
	}
	if (&screen{}).paint(bold, "x") != "x" {
		t.Error("painted without colour")
	}
}
