package tiktoken

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/render"
)

func mustNew(t testing.TB, name string) *Counter {
	t.Helper()
	c, err := New(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func counters(t testing.TB) []*Counter {
	t.Helper()
	var list []*Counter
	for _, name := range Names() {
		list = append(list, mustNew(t, name))
	}
	return list
}

func TestNew(t *testing.T) {
	for _, name := range Names() {
		c := mustNew(t, name)
		if c.ID() != "tiktoken:"+name {
			t.Errorf("%s has the id %s", name, c.ID())
		}
		if same := mustNew(t, c.ID()); same.ID() != c.ID() {
			t.Errorf("by its id %s became %s", c.ID(), same.ID())
		}
	}
	for _, name := range []string{"", "o200k", "O200K_BASE", "gpt-4o", "claude", "tiktoken:"} {
		_, err := New(name)
		if !errors.Is(err, errs.Validation) {
			t.Errorf("%q: got %v", name, err)
			continue
		}
		for _, known := range Names() {
			if !strings.Contains(err.Error(), known) {
				t.Errorf("%q: %v does not list %s", name, err, known)
			}
		}
	}
}

// The counts are those of js-tiktoken 1.0.21; the first five are also in OpenAI's
// guide to counting tokens.
func TestCounts(t *testing.T) {
	base, err := os.ReadFile(filepath.Join("..", "..", "internal", "render", "testdata", "base.json"))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, text                          string
		o200k, cl100k, p50k, p50kEdit, r50k int
	}{
		{"nothing", "", 0, 0, 0, 0, 0},
		{"two words", "hello world", 2, 2, 2, 2, 2},
		{"a long word", "antidisestablishmentarianism", 6, 6, 5, 5, 5},
		{"a sum", "2 + 2 = 4", 7, 7, 5, 5, 5},
		{"japanese", "お誕生日おめでとう", 8, 9, 14, 14, 14},
		{"special tokens", "a<|endoftext|>b <|fim_prefix|><|endofprompt|>", 21, 21, 24, 24, 24},
		{"apostrophes", "I'll DON'T we've 'S x'RE '' it’s", 11, 13, 17, 17, 17},
		{"white space", "a  b\t\tc \r\n\r\n  d   \n\n\n e  ", 12, 12, 18, 18, 21},
		{"digits", "1234567 3.14159 ١٢٣ ⅷ 12a34", 19, 22, 19, 19, 19},
		{"slashes", "https://a.b/c//d/ ///\n//x\n/", 13, 13, 16, 16, 16},
		{"rare white space", "a\u0085b\u2028c\u00a0d\u3000e", 10, 11, 12, 12, 12},
		{"marks", "e\u0301 é ñ n\u0303 हिन्दी", 7, 14, 21, 21, 21},
		{"emoji", "👩‍👩‍👧‍👦🏴‍☠️ ok", 18, 27, 23, 23, 23},
		{"capitals", "HTTPServer getURLFor XMLHttpRequest ABCdef", 9, 8, 11, 11, 11},
		{"one letter", strings.Repeat("R", 5000), 2500, 2500, 2500, 2500, 2500},
		{"spaces", strings.Repeat(" ", 3000) + "x", 25, 25, 188, 188, 3000},
		{"a rendered text", string(base), 375, 371, 407, 407, 407},
	}
	for _, c := range cases {
		want := map[string]int{"o200k_base": c.o200k, "cl100k_base": c.cl100k, "p50k_base": c.p50k, "p50k_edit": c.p50kEdit, "r50k_base": c.r50k}
		for _, counter := range counters(t) {
			name := strings.TrimPrefix(counter.ID(), prefix)
			if got := counter.Count(c.text); got != want[name] {
				t.Errorf("%s, %s: got %d, want %d", c.name, name, got, want[name])
			}
		}
	}
}

func TestNotUTF8(t *testing.T) {
	for _, c := range counters(t) {
		if got, want := c.Count("a\xffb\xe7\x81"), c.Count("a\ufffdb\ufffd"); got != want {
			t.Errorf("%s: got %d, want %d", c.ID(), got, want)
		}
	}
}

// Runs that a splitter which goes back over what it took would be slow with, or
// give up on.
func TestLongRuns(t *testing.T) {
	c := mustNew(t, "o200k_base")
	for _, unit := range []string{" ", "A", "灯", "\u0301", "\n", "/", "Aa'"} {
		n := (1 << 18) / len(unit)
		got := c.Count(strings.Repeat(unit, n))
		if got == 0 || got >= n*len(unit) {
			t.Errorf("%d of %q: got %d", n, unit, got)
		}
	}
}

type failing struct{}

func (failing) Count(string) (int, error) { return 3, errors.New("gave up") }

func TestSplitterThatGivesUp(t *testing.T) {
	c := &Counter{id: "x", codec: failing{}}
	if got := c.Count("灯塔"); got != 6 {
		t.Errorf("got %d, want a token a byte", got)
	}
}

func sumOfLines(c *Counter, text []byte) int {
	sum := 0
	for _, line := range render.SplitLines(text) {
		sum += c.Count(string(line))
	}
	return sum
}

func rendered(core, working []render.Item) []byte {
	lines := func(list []render.Item) (out [][]byte) {
		for i := range list {
			out = append(out, render.AppendItem(nil, &list[i]))
		}
		return out
	}
	text, _ := render.Append(nil, lines(core), lines(working))
	return text
}

var (
	anyText = rapid.OneOf(
		rapid.String(),
		rapid.StringOfN(rapid.SampledFrom([]rune(" \t\r\n/'sStTlL0123{}[],:\";.aA灯é\u0301\u00a0\u0085\u2028\u3000ſ😀")), 0, 30, -1),
		rapid.SampledFrom([]string{"", " ", "\n", "x \n", "{ ", "it's ", "'", "//", "\r\n\r\n", "<|endoftext|>"}),
	)
	anyItems = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) render.Item {
		return render.Item{
			ID: anyText.Draw(t, "id"), Version: rapid.Int64Range(1, 1e6).Draw(t, "version"), Index: rapid.Bool().Draw(t, "index"),
			Seq: rapid.Int64Range(1, 99).Draw(t, "seq"), Title: anyText.Draw(t, "title"), Tags: rapid.SliceOfN(anyText, 0, 2).Draw(t, "tags"),
			Content: anyText.Draw(t, "content"), Summary: anyText.Draw(t, "summary"),
		}
	}), 0, 4)
)

func TestLinesAddUp(t *testing.T) {
	for _, c := range counters(t) {
		t.Run(c.ID(), func(t *testing.T) {
			if !c.Additive() {
				t.Fatal("not additive")
			}
			rapid.Check(t, func(t *rapid.T) {
				text := rendered(anyItems.Draw(t, "core"), anyItems.Draw(t, "working"))
				if whole, sum := c.Count(string(text)), sumOfLines(c, text); whole != sum {
					t.Fatalf("the text has %d tokens, its lines %d: %q", whole, sum, text)
				}
			})
			// The sum tells the two apart: lines of other texts do not add up.
			other := []byte("a\n\n\nb")
			if whole, sum := c.Count(string(other)), sumOfLines(c, other); whole == sum {
				t.Errorf("%q has %d tokens either way", other, whole)
			}
		})
	}
}

func FuzzLinesAddUp(f *testing.F) {
	for _, s := range []string{"", "x \n", "it's\r\n//", "{\t", "灯塔\u3000", "<|endoftext|>", "\xff", "1234 567"} {
		f.Add(s, s)
	}
	all := counters(f)
	f.Fuzz(func(t *testing.T, title, content string) {
		it := render.Item{ID: "a", Version: 1, Title: title, Content: content}
		row := render.Item{ID: content, Version: 1, Index: true, Seq: 1, Title: content, Summary: title}
		text := rendered([]render.Item{it, row}, []render.Item{it, it})
		for _, c := range all {
			whole := c.Count(string(text))
			if sum := sumOfLines(c, text); whole != sum || whole > len(text) {
				t.Fatalf("%s: the text of %d bytes has %d tokens, its lines %d: %q", c.ID(), len(text), whole, sum, text)
			}
		}
	})
}

func TestConcurrentCounts(t *testing.T) {
	c := mustNew(t, "cl100k_base")
	text := strings.Repeat("The keeper's 12345 lamps // 灯塔\n", 20)
	want := c.Count(text)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			again, err := New("cl100k_base")
			if err != nil {
				t.Error(err)
				return
			}
			for range 20 {
				if got := c.Count(text); got != want {
					t.Errorf("got %d, want %d", got, want)
				}
				if got := again.Count(text); got != want {
					t.Errorf("a second counter gives %d, want %d", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkCount(b *testing.B) {
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(path...))
		if err != nil {
			b.Fatal(err)
		}
		return strings.ToValidUTF8(strings.Repeat(string(text), 1+(1<<16)/len(text))[:1<<16], "")
	}
	texts := []struct{ name, text string }{
		{"english", read("..", "..", "demo", "corpus", "hamlet.jsonl")},
		{"chinese", read("..", "..", "demo", "corpus", "mengzi.jsonl")},
		{"code", read("tiktoken_test.go")},
	}
	for _, c := range counters(b) {
		for _, x := range texts {
			b.Run(strings.TrimPrefix(c.ID(), prefix)+"/"+x.name, func(b *testing.B) {
				b.SetBytes(int64(len(x.text)))
				b.ReportAllocs()
				n := 0
				for b.Loop() {
					n = c.Count(x.text)
				}
				b.ReportMetric(float64(n), "tokens")
			})
		}
	}
}
