package note

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/internal/errs"
)

// at is where a chunk lies: its first line and the number of its lines.
type at struct{ Offset, Limit int }

func places(chunks []Chunk) []at {
	var out []at
	for _, c := range chunks {
		out = append(out, at{c.Offset, c.Limit})
	}
	return out
}

func mustSplit(t testing.TB, s string, target int) []Chunk {
	t.Helper()
	chunks, err := Split(s, target)
	if err != nil {
		t.Fatal(err)
	}
	return chunks
}

func TestSplit(t *testing.T) {
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format+"\n", i)
		}
		return b.String()
	}
	cases := []struct {
		name   string
		text   string
		target int
		want   []at
	}{
		{"nothing", "", 220, nil},
		{"blank", " \n\t\n\u3000\n", 220, nil},
		{"short paragraphs stay apart", "甲区供水正常\n\n乙区停电一夜\n\n丙区道路封闭", 220, []at{{1, 1}, {3, 1}, {5, 1}}},
		{"a heading keeps what is under it", "# 航海日志\n今日起锚\n\n风力五级\n## 补给\n淡水三桶", 220, []at{{1, 2}, {4, 1}, {5, 2}}},
		{"a fence needs no blank lines", "启动步骤如下:\n```sh\nmake all\nmake run\n```\n执行完毕", 220, []at{{1, 1}, {2, 4}, {6, 1}}},
		{"tildes", "~~~text\n```\n仍在围栏里\n~~~\n围栏之后", 220, []at{{1, 4}, {5, 1}}},
		{"a longer fence", "````\n```\n\nx\n````\ny", 220, []at{{1, 5}, {6, 1}}},
		{"a longer closing fence", "```\nx\n``````\ny", 220, []at{{1, 3}, {4, 1}}},
		{"an open fence", "前言\n\n```go\nx := 1\n\ny := 2", 220, []at{{1, 1}, {3, 4}}},
		{"an open fence and blank lines", "```\nx\n\n\n", 220, []at{{1, 2}}},
		{"code over the target", "```\n" + lines(40, "value_%d = some text") + "```", 64, []at{{1, 42}}},
		{"a table", "价目表\n| 品名 | 单价 |\n|---|---|\n| 海盐 | 3 |\n| 粗糖 | 5 |\n以上为准", 220, []at{{1, 1}, {2, 4}, {6, 1}}},
		{"a row after a blank line", "|a|b|\n|-|-|\n\n|1|2|", 220, []at{{1, 2}, {4, 1}}},
		{"a table over the target", "|a|b|\n|-|-|\n" + lines(40, "|%d|more|"), 64, []at{{1, 42}}},
		{"a long paragraph", strings.Repeat("潮", 500), 220, []at{{1, 1}, {1, 1}, {1, 1}}},
		{"long lines", strings.Join([]string{strings.Repeat("风", 100), strings.Repeat("浪", 100), strings.Repeat("潮", 100)}, "\n"), 220, []at{{1, 3}, {3, 1}}},
		{"lists", "- 盐\n- 糖\n- 茶\n\n1. 起锚\n2. 升帆", 220, []at{{1, 3}, {5, 2}}},
		{"all of it", "# 灯塔\n\n每晚七点点灯\n\n```ini\nlamp = on\n```\n\n守夜人换班", 220, []at{{1, 1}, {3, 1}, {5, 3}, {9, 1}}},

		{"inline code is no fence", "```x``` a\n\nb", 220, []at{{1, 1}, {3, 1}}},
		{"two marks are no fence", "``\n\nb", 220, []at{{1, 1}, {3, 1}}},
		{"an indented fence is code", "a\n\n    ```\n\nb\n\n    ```", 220, []at{{1, 1}, {3, 1}, {5, 1}, {7, 1}}},
		{"a fence in a list", "- a\n\n    ```\n    x\n\n    y\n    ```\n- b", 220, []at{{1, 1}, {3, 5}, {8, 1}}},
		{"a fence that is an item", "- ```\n  x\n\n  y\n  ```\n- b", 220, []at{{1, 5}, {6, 1}}},
		{"a fence in a quote", "> a\n> ```\n> x\n>\n> ```\n> b", 220, []at{{1, 1}, {2, 4}, {6, 1}}},
		{"a quote ends its fence", "> ```\n> x\n\ny\n\nz", 220, []at{{1, 2}, {4, 1}, {6, 1}}},
		{"a deep rule is code", "```\n        ```\n\nx\n```\ny", 220, []at{{1, 5}, {6, 1}}},
		{"a fence in code", "```\n> ```\n```\ny", 220, []at{{1, 3}, {4, 1}}},

		{"heading after heading", "# a\n## b\ntext", 220, []at{{1, 1}, {2, 2}}},
		{"heading over code", "# a\n```\nx\n```", 220, []at{{1, 1}, {2, 3}}},
		{"a tag is no heading", "text\n#tag more", 220, []at{{1, 2}}},
		{"seven marks are no heading", "text\n####### more", 220, []at{{1, 2}}},
		{"setext heading", "Title\n=====\nunder\n\nnext", 220, []at{{1, 3}, {5, 1}}},
		{"setext after setext", "A\n===\nx\n\nB\n---\ny", 220, []at{{1, 3}, {5, 3}}},
		{"setext directly under setext", "A\n===\nB\n---\ny", 220, []at{{1, 2}, {3, 3}}},
		{"setext directly under a heading", "# A\nB\n---\ny", 220, []at{{1, 1}, {2, 3}}},
		{"a rule under a list", "# A\n- b\n---\ny", 220, []at{{1, 4}}},
		{"a comment in a fence", "```\n# x\n```", 220, []at{{1, 3}}},

		{"front matter", "---\ntitle: x\n\ntags: [a]\n---\n# y", 220, []at{{1, 5}, {6, 1}}},
		{"front matter with dots", "---\n# note\ntitle: x\n...\ny", 220, []at{{1, 4}, {5, 1}}},
		{"a rule at the start", "---\n\na\n\n---\n\nb", 220, []at{{1, 1}, {3, 1}, {5, 1}, {7, 1}}},
		{"front matter not at the start", "\n---\na: b\n\nc: d\n---", 220, []at{{2, 2}, {5, 2}}},
		{"a pipe is no table", "a | b\n\nc", 220, []at{{1, 1}, {3, 1}}},
		{"a table without outer pipes", "a | b\n--- | ---\nc | d\ne", 220, []at{{1, 3}, {4, 1}}},
		{"a table in a list", "- x\n\n    | a | b |\n    |---|---|\n    | c | d |\n  y", 220, []at{{1, 1}, {3, 3}, {6, 1}}},
		{"an escaped pipe is no row", "|a|\n|-|\nb \\| c", 220, []at{{1, 2}, {3, 1}}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			for _, br := range []string{"\n", "\r\n", "\r"} {
				text := strings.ReplaceAll(c.text, "\n", br)
				for _, mark := range []string{"", "\ufeff"} {
					chunks := mustSplit(t, mark+text, c.target)
					if diff := cmp.Diff(c.want, places(chunks)); diff != "" {
						t.Fatalf("line break %+v: (-want +got)\n%s%+v", br, diff, chunks)
					}
					checkSplit(t, text, c.target, chunks)
				}
			}
		})
	}
}

func TestSplitTarget(t *testing.T) {
	for target, ok := range map[int]bool{-1: false, 0: false, 15: false, 16: true, 220: true, 100_000: true, 100_001: false} {
		_, err := Split("a", target)
		if ok != (err == nil) || !ok && !errors.Is(err, errs.Validation) {
			t.Errorf("target %d: %v", target, err)
		}
	}
}

// How long the pieces of a long block are, and where they end.
func TestSplitLong(t *testing.T) {
	r := strings.Repeat
	cases := []struct {
		name   string
		text   string
		target int
		want   []string
	}{
		{"characters, not bytes", r("潮", 500), 220, []string{r("潮", 220), r("潮", 220), r("潮", 60)}},
		{"letters", r("x", 20), 16, []string{r("x", 16), r("x", 4)}},
		{"just fits", r("潮", 16), 16, []string{r("潮", 16)}},
		{"line breaks count", r("a", 100) + "\n" + r("b", 100) + "\n" + r("c", 100), 220,
			[]string{r("a", 100) + "\n" + r("b", 100) + "\n" + r("c", 18), r("c", 82)}},
		{"chinese sentence", "今日起锚风力五级。淡水三桶已经装船完毕了", 16, []string{"今日起锚风力五级。", "淡水三桶已经装船完毕了"}},
		{"quoted sentence", "他说：“今日起锚！”众人都去装淡水与海盐了", 16, []string{"他说：“今日起锚！”", "众人都去装淡水与海盐了"}},
		{"the quote does not fit", "甲乙。丙丁戊己庚辛壬癸子丑寅卯。”后面还有", 16, []string{"甲乙。丙丁戊己庚辛壬癸子丑寅卯。", "”后面还有"}},
		{"too short a sentence", "好。" + r("潮", 20), 16, []string{"好。" + r("潮", 14), r("潮", 6)}},
		{"english sentence", "The tide is in. Ships leave now", 24, []string{"The tide is in.", "Ships leave now"}},
		{"ends with the last character", "The tide is in. Ships leave now", 16, []string{"The tide is in.", "Ships leave now"}},
		{"no end inside numbers", "Use version 3.5 of it for all ships", 22, []string{"Use version 3.5 of it", "for all ships"}},
		{"no end after a title", "We all met Mr. Harbor by the old pier", 24, []string{"We all met Mr. Harbor by", "the old pier"}},
		{"words stay whole", "a lighthouse keeper goes home", 16, []string{"a lighthouse", "keeper goes home"}},
		{"list items", "- salt and sugar\n- tea and rope", 20, []string{"- salt and sugar", "- tea and rope"}},
		{"an accent stays", r("a", 15) + "e\u0301" + r("a", 5), 16, []string{r("a", 15), "e\u0301" + r("a", 5)}},
		{"indentation stays", r("x", 16) + "\n  yy", 16, []string{r("x", 16), "  yy"}},
		{"wide blanks", "　　" + r("潮", 20), 16, []string{"　　" + r("潮", 14), r("潮", 6)}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			chunks := mustSplit(t, c.text, c.target)
			var got []string
			for _, ch := range chunks {
				got = append(got, ch.Content)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			checkSplit(t, c.text, c.target, chunks)
		})
	}
}

// Code over 16 KiB is cut at line ends, a line of it that is longer between
// characters.
func TestSplitLongCode(t *testing.T) {
	row := strings.Repeat("x", 99) + "\n"
	text := "```\n" + strings.Repeat(row, 200) + "```"
	chunks := mustSplit(t, text, 220)
	if diff := cmp.Diff([]at{{1, 164}, {165, 38}}, places(chunks)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	checkSplit(t, text, 220, chunks)

	text = "```\n" + strings.Repeat("潮", 10_000) + "\nend\n```"
	chunks = mustSplit(t, text, 220)
	if diff := cmp.Diff([]at{{1, 1}, {2, 1}, {2, 3}}, places(chunks)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	checkSplit(t, text, 220, chunks)

	text = "|a|b|\n|-|-|\n" + strings.Repeat("|"+strings.Repeat("y", 97)+"|\n", 300)
	for _, c := range mustSplit(t, text, 16) {
		if len(c.Content) > maxWhole {
			t.Errorf("%d bytes in a chunk", len(c.Content))
		}
	}
}
