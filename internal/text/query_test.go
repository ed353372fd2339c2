package text

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// show writes a query on one line: groups separated by blanks, alternatives by
// |, optional terms after ?, chars after /.
func show(q Query) string {
	var b strings.Builder
	for i, g := range q.Groups {
		if i > 0 {
			b.WriteByte(' ')
		}
		for j, a := range g.Alternatives {
			if j > 0 {
				b.WriteByte('|')
			}
			b.WriteString(strings.Join(a, "&"))
		}
		for _, o := range g.Optional {
			b.WriteString("?" + o)
		}
	}
	if len(q.Chars) > 0 {
		b.WriteString(" / " + strings.Join(q.Chars, " "))
	}
	return strings.TrimSpace(b.String())
}

func TestAnalyzeQuery(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"words", "When did Anna paint the sunrise?", "anna paint sunris"},
		{"repeats", "tea Tea TEAS red tea", "tea red"},
		{"a run of characters", "红茶馆", "红茶 茶馆 / 红 茶 馆"},
		{"two", "灯塔", "灯塔 / 灯 塔"},
		{"a pair and a lone character", "杭州 茶", "杭州 茶 / 杭 州"},
		{"a pair twice", "茶馆茶馆", "茶馆 馆茶 / 茶 馆"},
		{"kana is not tried alone", "お茶", "お茶 / 茶"},
		{"width and case", "ａｐｉ API", "api"},
		{"identifier", "foo-bar", "foo|foobar?foobar bar|foobar"},
		{"two identifiers with a part in common", "C++ C#", "c|c++|c#?c++?c#"},
		{"an identifier twice", "foo-bar foo_bar", "foo|foobar?foobar bar|foobar"},
		{"an identifier of stop words", "my to-do list", "todo list"},
		{"camel", "JavaScript", "java|javascript?javascript script|javascript"},
		{"mixed scripts", "重跑gen-itgc后50条", "重跑 gen|genitgc?genitgc itgc|genitgc 后 50 条 / 重 跑"},
		{"no operators", `+"cat" AND (dog* OR tag:x) ~2 -fish [a TO b]`, "cat dog tag|tagx?tagx x|tagx 2 fish b"},
		{"unbalanced", `"((cat`, "cat"},
		{"only stop words", "to be or not to be", ""},
		{"only punctuation", "?! ... 。，、", ""},
		{"only emoji", "🎉🎉", ""},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := show(AnalyzeQuery(c.in)); got != c.want {
				t.Errorf("query %q\n got %s\nwant %s", c.in, got, c.want)
			}
		})
	}
}

func TestAnalyzeQueryBounds(t *testing.T) {
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "w%dx ", i)
	}
	start := time.Now()
	q := AnalyzeQuery(b.String())
	if d := time.Since(start); d > time.Second {
		t.Errorf("a query of %d bytes took %v", b.Len(), d)
	}
	if len(q.Groups) != MaxQueryGroups {
		t.Errorf("%d groups, want %d", len(q.Groups), MaxQueryGroups)
	}

	// Cut in the middle of a character, which is then left out.
	q = AnalyzeQuery(strings.Repeat("x", MaxQueryBytes-1) + "茶")
	if len(q.Groups) != 1 || len(q.Chars) != 0 {
		t.Errorf("query cut at its limit: %s", show(q))
	}

	b.Reset()
	for r := rune(0x4E00); r < 0x4E00+5000; r++ {
		b.WriteRune(r)
	}
	if q = AnalyzeQuery(b.String()); len(q.Groups) != MaxQueryGroups || len(q.Chars) != MaxQueryGroups {
		t.Errorf("%d groups, %d chars, want %d of both", len(q.Groups), len(q.Chars), MaxQueryGroups)
	}
}

// checkQuery tests what holds for every query: its terms are terms of the same
// text taken as a document, and a document that is the query answers every
// group.
func checkQuery(t *testing.T, s string) {
	t.Helper()
	if len(s) > MaxQueryBytes {
		return
	}
	list, _ := terms(s)
	doc := map[string]bool{}
	for _, term := range list {
		doc[term] = true
	}
	q := AnalyzeQuery(s)
	if len(q.Groups) > MaxQueryGroups || len(q.Chars) > MaxQueryGroups {
		t.Errorf("query %q: %d groups, %d chars", s, len(q.Groups), len(q.Chars))
	}
	if len(list) > 0 != (len(q.Groups) > 0) {
		t.Errorf("query %q: %d terms but %d groups", s, len(list), len(q.Groups))
	}
	seen := map[string]bool{}
	for _, g := range q.Groups {
		if len(g.Alternatives) == 0 {
			t.Errorf("query %q has a group without alternatives", s)
			continue
		}
		for _, a := range g.Alternatives {
			if len(a) != 1 || !doc[a[0]] {
				t.Errorf("query %q: alternative %q is not in the document %q", s, a, list)
			}
		}
		if seen[g.Alternatives[0][0]] {
			t.Errorf("query %q has the group %q twice", s, g.Alternatives[0])
		}
		seen[g.Alternatives[0][0]] = true
		for _, o := range g.Optional {
			if !doc[o] {
				t.Errorf("query %q: optional %q is not in the document %q", s, o, list)
			}
		}
	}
	for i, c := range q.Chars {
		if !doc[c] || slices.Contains(q.Chars[:i], c) {
			t.Errorf("query %q: char %q is not in the document or is there twice", s, c)
		}
	}
	if again := AnalyzeQuery(s); !reflect.DeepEqual(again, q) {
		t.Errorf("query %q: %s, then %s", s, show(q), show(again))
	}
}

func FuzzQuery(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) { checkQuery(t, s) })
}
