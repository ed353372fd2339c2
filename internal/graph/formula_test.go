package graph

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestFormulas(t *testing.T) {
	for _, c := range []struct{ text, predicate, subject, object string }{
		{"knows(Ann) = Bob", "knows", "Ann", "Bob"},
		{"knows(Ann, Bob)", "knows", "Ann", "Bob"},
		{"  knows ( Ann )=Bob  ", "knows", "Ann", "Bob"},
		{"works at(Ann Lee) = ACME Corp", "works at", "Ann Lee", "ACME Corp"},
		{"师父(小满) = 老柳", "师父", "小满", "老柳"},
		{"师父（小满）＝老柳", "师父", "小满", "老柳"},
		{"师父（小满，老柳）", "师父", "小满", "老柳"},
		{`likes("f(x) = y, z", '"it"')`, "likes", "f(x) = y, z", `"it"`},
		{`likes(“老柳”) = "a \"b\" \\ c"`, "likes", "老柳", `a "b" \ c`},
		{`'it\'s'(a) = b`, "it's", "a", "b"},
		{"is(O'Brien) = Müller", "is", "O'Brien", "Müller"},
		{"isa(land_reform.n.01) = reform.n.01", "isa", "land_reform.n.01", "reform.n.01"},
		{"uses(Ann) = C# # she says", "uses", "Ann", "C#"},
		{"at(Ann) = http://example.org/a // home", "at", "Ann", "http://example.org/a"},
		{"share(Ann) = 50% % of it", "share", "Ann", "50%"},
		{"posts(#general,//x)# both", "posts", "#general", "//x"},
		{`posts(a) = "# b"// c`, "posts", "a", "# b"},
		{"\ufeffa(b) = c\r\n", "a", "b", "c"},
		{"a(b, c) \t", "a", "b", "c"},
	} {
		got, err := ParseFormulas(c.text, FormulaLimits{})
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		same(t, c.text, got, []Formula{{c.predicate, c.subject, c.object, 1}})
	}
}

func TestFormulaLines(t *testing.T) {
	got, err := ParseFormulas("# a list\n\n% more\n// and more\na(b) = c\r\n   \n  # and\nd(e, f)", FormulaLimits{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "formulas", got, []Formula{{"a", "b", "c", 5}, {"d", "e", "f", 8}})
	got, err = ParseFormulas("", FormulaLimits{})
	if err != nil || len(got) != 0 {
		t.Errorf("empty text: %v, %v", got, err)
	}
}

func TestFormulaErrors(t *testing.T) {
	for _, c := range []struct {
		text   string
		column int
		part   string
	}{
		{"knows", 6, `expected "(", as in`},
		{"师父 小满", 6, `expected "(", as in`},
		{"knows Ann = Bob", 11, `expected "(", found "="`},
		{"knows(Ann = Bob", 11, `expected ")" or ",", found "="`},
		{"knows(Ann)", 11, `expected "=", as in predicate(a) = b or predicate(a, b), but the line ends`},
		{"knows(Ann) Bob", 12, `expected "=", as in`},
		{"knows(Ann) =", 13, "expected the name of an entity"},
		{"knows(Ann) = # Bob", 14, "a name that begins so goes in quotes"},
		{"knows() = Bob", 7, `expected the name of an entity, found ")"`},
		{"(Ann) = Bob", 1, `expected the predicate, found "("`},
		{`knows("") = Bob`, 7, "not empty"},
		{"knows(Ann, Bob, Cid)", 15, `expected ")", found ","`},
		{"knows(Ann, Bob) = Cid", 17, `expected the end of the line, found "="`},
		{"knows(Ann) = Bob, Cid", 17, `expected the end of the line, found ","`},
		{`knows("Ann) = Bob`, 7, "not closed"},
		{`knows("Ann\`, 7, "not closed"},
		{`knows(" Ann") = Bob`, 7, "blanks"},
		{"knows(A\tnn) = Bob", 8, "control character"},
		{"knows(\"A\x00\") = Bob", 9, "control character"},
		{"knows(Ännchen \xff) = Bob", 15, "UTF-8"},
		{"knows(" + strings.Repeat("x", 1025) + ") = Bob", 7, "at most 1024"},
	} {
		got, err := ParseFormulas("a(b) = c\n"+c.text+"\n", FormulaLimits{})
		var at *FormulaError
		if got != nil || !errors.As(err, &at) {
			t.Errorf("%q: %v, %v", c.text, got, err)
			continue
		}
		if at.Line != 2 || at.Column != c.column || !strings.Contains(at.Message, c.part) {
			t.Errorf("%q: %v, want column %d and %q", c.text, err, c.column, c.part)
		}
		if strings.Contains(err.Error(), "Ann") {
			t.Errorf("%q: the message holds a name: %v", c.text, err)
		}
	}
}

func TestFormulaLimits(t *testing.T) {
	lines := func(n int, line string) string { return strings.Repeat(line+"\n", n) }
	for _, c := range []struct {
		name   string
		text   string
		limits FormulaLimits
		want   []int // lines with errors
	}{
		{"bytes", lines(3, "a(b) = c"), FormulaLimits{Bytes: 26}, []int{1}},
		{"bytes, just enough", lines(3, "a(b) = c"), FormulaLimits{Bytes: 27}, nil},
		{"formulas", lines(3, "a(b) = c"), FormulaLimits{Formulas: 2}, []int{3}},
		{"formulas, just enough", lines(3, "a(b) = c"), FormulaLimits{Formulas: 3}, nil},
		{"name", "a(bbb) = c", FormulaLimits{Name: 2}, []int{1}},
		{"errors", lines(5, "a(b"), FormulaLimits{Errors: 2}, []int{1, 2}},
		{"errors", lines(30, "a(b"), FormulaLimits{}, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}},
	} {
		_, err := ParseFormulas(c.text, c.limits)
		var got []int
		var one *FormulaError
		if list, ok := err.(interface{ Unwrap() []error }); ok {
			for _, e := range list.Unwrap() {
				errors.As(e, &one)
				got = append(got, one.Line)
			}
		} else if errors.As(err, &one) {
			got = append(got, one.Line)
		}
		same(t, c.name, got, c.want)
	}
}

func FuzzFormulas(f *testing.F) {
	for _, s := range []string{
		"knows(Ann) = Bob", "师父（小满，老柳）", `a("(,)=" , 'b\'') // c`, "a(b)=C# # d", "\ufeff%\n\na(b", "a(#x) = # y", "“a”(b) = “c", "\\(\\) = \\",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		limits := FormulaLimits{Name: 64, Formulas: 100, Bytes: 1 << 16}
		found, err := ParseFormulas(text, limits)
		if err != nil {
			if found != nil {
				t.Fatal("formulas and an error")
			}
			lines := strings.Count(text, "\n") + 1
			for _, part := range strings.Split(err.Error(), "\n") {
				var line, column int
				if n, _ := fmt.Sscanf(part, "line %d, column %d:", &line, &column); n != 2 || line < 1 || line > lines || column < 1 || column > len(text)+1 {
					t.Fatalf("a strange error: %q", part)
				}
			}
			return
		}
		for i, f := range found {
			if f.Line < 1 || i > 0 && f.Line <= found[i-1].Line {
				t.Fatalf("line %d after %v", f.Line, found[:i])
			}
			for _, name := range []string{f.Predicate, f.Subject, f.Object} {
				if name == "" || len(name) > limits.Name || strings.TrimSpace(name) != name {
					t.Fatalf("name %q", name)
				}
			}
			again, err := ParseFormulas(f.String(), limits)
			if err != nil || len(again) != 1 {
				t.Fatalf("%q, written as %q: %v, %v", f, f.String(), again, err)
			}
			again[0].Line = f.Line
			if again[0] != f {
				t.Fatalf("%q became %q", f, again[0])
			}
		}
	})
}
