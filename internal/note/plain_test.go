package note

import (
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestPlainText(t *testing.T) {
	cases := []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"blank", " \n\n\u3000", ""},
		{"a word", "灯塔", "灯塔"},
		{"emphasis", "这里有 **蓝鲸** 出没", "这里有 蓝鲸 出没"},
		{"emphasis inside chinese", "这里有**蓝鲸**出*没*，__粗__体", "这里有蓝鲸出没，粗体"},
		{"emphasis around punctuation", "这是**“重点”**内容。**注意：**请看", "这是“重点”内容。注意：请看"},
		{"highlight and strikethrough", "这是==高亮==的~~旧~~字", "这是高亮的旧字"},
		{"operators", "2*3*4, a*b*c, 2**8**2, a==b==c, x ~ y", "2*3*4, a*b*c, 2**8**2, a==b==c, x ~ y"},
		{"identifiers", "`max_retry_count` and max_retry_count", "max_retry_count and max_retry_count"},
		{"code beside a word", "Set`APP_ID`now, see[this](u)too", "Set APP_ID now, see this too"},
		{"escapes", `\*a\* max\_retry\_count &amp; &lt;b&gt; &nope;`, "*a* max_retry_count & <b> &nope;"},
		{"fenced code", "```go\nx := a*b*c // **no**\n\n\tif\n```", "go\nx := a*b*c // **no**\n\tif"},
		{"code in a list", "- a\n  ```sh\n  make *\n  ```", "a\nsh\nmake *"},
		{"code in a quote", "> ```\n> a > b\n> ```", "a > b"},
		{"indented code", "text\n\n    a = __b__", "text\na = __b__"},
		{"an inner item", "    - **x**\n      y", "x\ny"},
		{"headings", "# A *b* #\nunder\n\nC\n===\nD", "A b\nunder\nC\nD"},
		{"lists", "- a\n* b\n  + c\n\n1. d\n1984. e", "a\nb\nc\n1. d\n1984. e"},
		{"tasks", "- [ ] open\n- [x] done", "open\ndone"},
		{"quotes", "> a\n> > b\nc", "a\nb\nc"},
		{"tables", "| 品名 | **单价** |\n|---|:-:|\n| `a\\|b` | [[p\\|三]] |", "品名\t单价\na|b\t三"},
		{"links", `[海图](http://e.org/a_b "标题") <http://e.org/x_y> http://e.org/z_z`, "海图 标题 http://e.org/x_y http://e.org/z_z"},
		{"a link without a text", "[](http://e.org)", "http://e.org"},
		{"images", "![图](a/b.png) ![](c/潮汐.png?x=1) ![](data:image/png;base64,AAAA)", "图 潮汐.png"},
		{"an image in a link", "[![badge](b.svg)](http://e.org) [![](d.svg)](x)", "badge d.svg"},
		{"reference links", "[a][b]\n\n[b]: http://e.org \"T\"", "[a][b]\n[b]: http://e.org \"T\""},
		{"wikilinks", "见[[灯塔]]与[[港口|码头]]，![[图.png]]，[[a/b#c]]", "见灯塔与码头，图.png，a/b c"},
		{"no wikilink", "[[]] [[a] x[[1]]", "[[]] [[a] x 1"},
		{"footnotes", "灯塔[^1]出没\n\n[^1]: 注释", "灯塔出没\n注释"},
		{"html", "<div>\n<b>粗</b>体<br>x &copy; <img src='a.png' alt='架构 图'/>\n</div>", "粗体 x © 架构 图"},
		{"a comment", "a <!-- 记得 --> b", "a  记得  b"},
		{"not html", "vector<int> and <dependency>", "vector<int> and <dependency>"},
		{"front matter", "---\ntitle: a_b\n---\n# c", "title: a_b\nc"},
		{"breaks", "今日\n起锚  \n风力\\\n五级", "今日\n起锚\n风力\n五级"},
		{"wrapped lines", strings.Repeat("潮", 30) + "\n汐表", strings.Repeat("潮", 30) + "汐表"},
		{"line breaks", "a\r\n\r\n**b**\rc", "a\nb\nc"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := PlainText(c.in); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

// hostile texts take some parsers a time that grows with the square of their
// length, or more.
func hostile(n int) map[string]string {
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	var ticks, deep strings.Builder
	for i := 1; ticks.Len() < n; i++ {
		ticks.WriteString(strings.Repeat("`", i) + " ")
	}
	for i := 0; deep.Len() < n; i++ {
		deep.WriteString(strings.Repeat("  ", i) + "- a\n")
	}
	half := strings.Repeat("[", n/2) + strings.Repeat("]", n/2)
	m := map[string]string{
		"ticks": ticks.String(), "deep list": deep.String(), "nested brackets": half,
		"wide table": strings.Repeat("|a", n/8) + "\n" + strings.Repeat("|-", n/8) + "|\n" + strings.Repeat("|\n", n/4),
		"long table": strings.Repeat("|a", 1900) + "\n" + strings.Repeat("|-", 1900) + "|\n" + strings.Repeat("|\n", min(n, 50_000)/2),
		"quoted":     strings.Repeat(strings.Repeat(">", 200)+"a\n", n/200),
	}
	for _, s := range []string{
		">", "> ", "[", "![", "[a](", "[x](<", "[[", "[^", "*a_ ", "*a **a ", "<", "<a ", "<!--", "- ", "1. ", "> - ", "[a][b]", "~~a ", "==a ", "潮*",
		"&", "\\", "*", "a**b", "_a", "\n", "```\n", "~", "$", "- a\n", "|", "a|b\n-|-\n", "#", "# \n", "---\n", "=", "<![CDATA[", "<?", "\x00", "\xff", "\t", "`a", "![[a]] ", "<b>",
	} {
		m[s] = rep(s)
	}
	return m
}

func TestPlainTextIsBounded(t *testing.T) {
	for name, s := range hostile(100_000) {
		start := time.Now()
		PlainText(s)
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("%q takes %v", name, d)
		} else if d > 100*time.Millisecond {
			t.Logf("%q takes %v", name, d)
		}
		for _, c := range mustSplit(t, s, DefaultTarget) {
			PlainText(c.Content)
		}
	}
}

// Bounds cost marks, not words.
func TestTame(t *testing.T) {
	deep := strings.Repeat("> - ", maxNesting) + "灯塔"
	links := strings.Repeat("[灯](塔", maxBrackets+1)
	wide := strings.Repeat("|灯", 300) + "\n" + strings.Repeat("|-", 300) + "|\n" + strings.Repeat("|塔\n", 300)
	for name, s := range map[string]string{"deep": deep, "links": links, "wide": wide} {
		out := tame(s)
		if out == s {
			t.Errorf("%s: nothing done", name)
		}
		if got, want := words(PlainText(s)), words(s); !slices.Equal(got, want) {
			t.Errorf("%s: %d words of %d", name, len(got), len(want))
		}
	}
	if s := "> - [a](b)\n\n|c|\n|-|\n"; tame(s) != s {
		t.Errorf("%q becomes %q", s, tame(s))
	}
}

// Nothing is made of nothing, and what is rendered is text.
func TestPlainTextAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := markdown().Draw(t, "text")
		p := PlainText(s)
		if !utf8.ValidString(p) || strings.TrimSpace(p) != p {
			t.Fatalf("%q", p)
		}
		if again := PlainText(s); again != p {
			t.Fatalf("%q, then %q", p, again)
		}
	})
}

// Letters that no markup is around come through in order.
func TestPlainTextKeepsLetters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(rapid.StringMatching(`[\p{Han}a-z_.,，。 *]{0,30}`), 0, 10).Draw(t, "lines"), "\n")
		letters := func(s string) string {
			return strings.Map(func(r rune) rune {
				if isIdeograph(r) || 'a' <= r && r <= 'z' {
					return r
				}
				return -1
			}, s)
		}
		if got, want := letters(PlainText(s)), letters(s); got != want {
			t.Fatalf("%q: %q", s, got)
		}
	})
}

func FuzzPlainText(f *testing.F) {
	for _, s := range hostile(300) {
		f.Add(s)
	}
	f.Add("# a\n\n- [ ] b\n  > c\n\n|a|b|\n|-|-|\n|[[c\\|d]]|`e`|\n")
	f.Fuzz(func(t *testing.T, s string) {
		p := PlainText(s)
		if len(p) > 4*len(s)+16 {
			t.Fatalf("%d bytes become %d", len(s), len(p))
		}
		if utf8.ValidString(s) && !utf8.ValidString(p) {
			t.Fatalf("%q", p)
		}
	})
}
