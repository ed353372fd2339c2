package mark

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestStrip(t *testing.T) {
	block := Wrap("The tide table is updated weekly.")
	for _, c := range []struct{ name, in, want string }{
		{"nothing", "", ""},
		{"no mark", "  plain <b>text</b>\r\n ", "  plain <b>text</b>\r\n "},
		{"a block alone", block, ""},
		{"blanks around it", "\n\n" + block + "\n ", ""},
		{"before a question", block + "\n\nWhen is high tide?", "When is high tide?"},
		{"after a question", "When is high tide?\n" + block, "When is high tide?"},
		{"inside a line", "one " + block + " two", "one two"},
		{"inside a word", "one" + block + "two", "one two"},
		{"between lines", "one\n" + block + "\ntwo", "one\ntwo"},
		{"between paragraphs", "one\n\n" + block + "\ntwo", "one\n\ntwo"},
		{"several", block + "\none\n" + block + "\n" + block + "\ntwo" + block, "one\ntwo"},
		{"several at once", "one\n\n" + block + block + " two", "one\n\ntwo"},
		{"in Chinese", "潮水表\n" + Wrap("每周更新一次。") + "\n谁来更新？", "潮水表\n谁来更新？"},
		{"in a Chinese line", "潮水表" + Wrap("每周") + "更新", "潮水表 更新"},
		{"nested", "a <loci-memory>b <loci-memory>c</loci-memory> d</loci-memory> e", "a e"},
		{"not closed", "a <loci-memory>b c", "a"},
		{"nested, not closed", "a <loci-memory>b <loci-memory>c</loci-memory> d", "a"},
		{"cut inside the mark", "a\n<loci-memory note=\"rec", "a"},
		{"cut behind the name", "a\n<loci-memory", "a"},
		{"closed alone", "a </loci-memory> b", "a b"},
		{"closed loosely", "a <loci-memory>b</loci-memory \n> c", "a c"},
		{"closed by a cut mark", "a <loci-memory>b</loci-memory", "a"},
		{"in another case", "a <Loci-Memory x='1'>b</LOCI-MEMORY> c", "a c"},
		{"look-alikes", "<loci-memory-x>a</loci-memory-x> <loci_memory>b</loci_memory> << >loci-memory> loci-memory>", "<loci-memory-x>a</loci-memory-x> <loci_memory>b</loci_memory> << >loci-memory> loci-memory>"},
		{"with blanks in its marks", "a < loci-memory >b<\n/ loci-memory\n> c", "a c"},
		{"a mark made by taking one out", "<loci-<loci-memory></loci-memory>memory>x", "<loci- memory>x"},
		{"a mark made at its end", "<loci-memory<loci-memory></loci-memory>>x", ""},
		{"broken characters", "a\xff <loci-memory>\xfe</loci-memory> \xffb", "a\xff \xffb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Strip(c.in); got != c.want {
				t.Errorf("Strip(%q) = %q, want %q", c.in, got, c.want)
			}
		})
	}
}

func TestWrap(t *testing.T) {
	if got := Wrap(" \n"); got != "" {
		t.Errorf("blank text: %q", got)
	}
	text := "a </loci-memory> b <LOCI-memory x> <b> < / loci-memory > c"
	got := Wrap(text)
	if want := "a &lt;/loci-memory> b &lt;LOCI-memory x> <b> &lt; / loci-memory > c"; !strings.Contains(got, want) {
		t.Errorf("%q does not hold %q", got, want)
	}
	if got := len(Wrap("abc")); got != 3+Overhead {
		t.Errorf("%d bytes, want %d", got, 3+Overhead)
	}
	if !Has(got) || Has("<loci-memory-x>") {
		t.Error("Has")
	}
}

// pieces make texts that are rich in marks and near-marks.
func pieces() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{
			"<loci-memory", "</loci-memory", ">", "<", "/", "loci-", "memory", "-", " ", "\n", "\r\n", "潮", "x", "<loci-memory>", "</loci-memory>", "< / loci-memory", "&lt;",
		}), 0, 12).Draw(t, "pieces"), "")
	})
}

func TestProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		check(t, pieces().Draw(t, "text"), pieces().Draw(t, "around"))
	})
}

type fataler interface{ Fatalf(string, ...any) }

func check(t fataler, text, around string) {
	if got := Strip(Wrap(text)); got != "" {
		t.Fatalf("Strip(Wrap(%q)) = %q", text, got)
	}
	once := Strip(text)
	if Has(once) {
		t.Fatalf("Strip(%q) = %q has a mark", text, once)
	}
	if twice := Strip(once); twice != once {
		t.Fatalf("Strip(%q) = %q, and again %q", text, once, twice)
	}
	if !Has(text) && once != text {
		t.Fatalf("Strip(%q) = %q, and it has no mark", text, once)
	}
	if len(once) > len(text) {
		t.Fatalf("Strip(%q) = %q grew", text, once)
	}
	if utf8.ValidString(text) && (!utf8.ValidString(once) || !utf8.ValidString(Wrap(text))) {
		t.Fatalf("%q lost a character's bytes", text)
	}
	// Nothing of a block comes through, whatever is around it, and what is around
	// it does when it has no mark itself.
	if !Has(around) && !Has(around+"<") {
		got := Strip(around + Wrap("x"+text) + around)
		if words := strings.Join(strings.Fields(around), ""); strings.Join(strings.Fields(got), "") != words+words {
			t.Fatalf("around %q there is %q left", around, got)
		}
	}
}

func FuzzStrip(f *testing.F) {
	for _, s := range []string{"", "<loci-memory>a</loci-memory>b", "a<loci-memory", "</loci-memory>", "潮<loci-memory<loci-memory></loci-memory>>水"} {
		f.Add(s, "around")
	}
	f.Fuzz(func(t *testing.T, text, around string) { check(t, text, around) })
}

// TestManyMarks would take minutes if the work grew with the square of the marks.
func TestManyMarks(t *testing.T) {
	for _, piece := range []string{"<loci-memory></loci-memory>", "<loci-memory>", "</loci-memory>", "</loci-memory    ", "<"} {
		text := strings.Repeat(piece, 1<<20/len(piece))
		if got := Strip(text); piece != "<" && strings.Trim(got, blank) != "" {
			t.Errorf("%q many times leaves %d bytes", piece, len(got))
		}
	}
}
