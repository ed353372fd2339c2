package note

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// checkSplit says what holds for every text: chunks are numbered, in order,
// lie where they say they lie, keep to the target, and lose nothing.
func checkSplit(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, target int, chunks []Chunk) {
	t.Helper()
	text = normalize(text)
	lines := strings.Split(text, "\n")
	line := 1
	var all strings.Builder
	for i, c := range chunks {
		switch {
		case c.Ordinal != i:
			t.Fatalf("chunk %d has ordinal %d", i, c.Ordinal)
		case c.Offset < line || c.Limit < 1 || c.Offset+c.Limit-1 > len(lines):
			t.Fatalf("chunk %d is at (%d,%d) after line %d of %d", i, c.Offset, c.Limit, line, len(lines))
		case isBlank(c.Content):
			t.Fatalf("chunk %d is blank", i)
		case strings.Count(c.Content, "\n")+1 != c.Limit:
			t.Fatalf("chunk %d has limit %d: %q", i, c.Limit, c.Content)
		case len(c.Content) > maxWhole && utf8.RuneCountInString(c.Content) > target:
			t.Fatalf("chunk %d is too long", i)
		}
		if source := strings.Join(lines[c.Offset-1:c.Offset+c.Limit-1], "\n"); !strings.Contains(source, c.Content) {
			t.Fatalf("chunk %d (%d,%d) is not what stands there: %q in %q", i, c.Offset, c.Limit, c.Content, source)
		}
		for l := line; l < c.Offset; l++ {
			if (l > line || i == 0) && !isBlank(lines[l-1]) {
				t.Fatalf("line %d is in no chunk", l)
			}
		}
		line = c.Offset + c.Limit - 1
		all.WriteString(inked(c.Content))
	}
	if got, want := all.String(), inked(text); got != want {
		t.Fatalf("text lost:\n%q\n%q", got, want)
	}
}

// inked drops all blanks.
func inked(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, s)
}

// markdown draws texts that are full of structure.
func markdown() *rapid.Generator[string] {
	line := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", "", "", " ", "\u3000", "# 标题", "## b", "===", "---", "***", "```", "````", "~~~", "```go", "> ```", ">", "> a", "> > b",
			"- a", "  - b", "1. c", "    ```", "  ```", "\t- d", "| a | b |", "|---|---|", "| 1 | `x\\|y` |", "---", "a: b", "...",
			"[[页面|标签]]", "![图](a_b.png)", "[x](http://e.org/a_b \"t\")", "[x]: y", "[^1]: 注", "**粗**体", "~~a~~", "<b>x</b>", "<!-- c -->",
			"今日起锚。风力五级！", "One. Two? Three", "max_retry_count", "\\*a\\*", "&amp;", "- [x] done", "a  ", "e\u0301\u0301", "👩‍👧‍👦",
		}),
		rapid.StringN(0, 60, -1),
		rapid.StringMatching(`[ \t>#*_~|\[\]()!<>\-+0-9.a潮。=:\\]{0,40}`),
		rapid.Map(rapid.IntRange(1, 300), func(n int) string { return strings.Repeat("潮", n) }),
	)
	return rapid.Custom(func(t *rapid.T) string {
		br := rapid.SampledFrom([]string{"\n", "\n", "\r\n", "\r"}).Draw(t, "break")
		return strings.Join(rapid.SliceOfN(line, 0, 30).Draw(t, "lines"), br)
	})
}

func TestSplitAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := markdown().Draw(t, "text")
		target := rapid.SampledFrom([]int{16, 17, 64, 220, 1000, 100_000}).Draw(t, "target")
		chunks, err := Split(text, target)
		if err != nil {
			t.Fatal(err)
		}
		checkSplit(t, text, target, chunks)
	})
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{
		"", "# a\nb\n\nc", "```\nx", "|a|\n|-|\n|b|", "---\na: b\n---\n", "> ```\n> a\nb", "- ```\n\n", "\ufeff\r\r\n", "a\xff\xfe", strings.Repeat("。", 300),
	} {
		f.Add(s, 16)
		f.Add(s, 220)
	}
	f.Fuzz(func(t *testing.T, s string, target int) {
		chunks, err := Split(s, target)
		if (err != nil) != (target < MinTarget || target > MaxTarget) {
			t.Fatal(err)
		}
		if err == nil {
			checkSplit(t, s, target, chunks)
		}
	})
}
