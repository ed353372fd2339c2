package note

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/internal/errs"
)

func TestTitle(t *testing.T) {
	for name, want := range map[string]string{
		"潮汐表.2024.md": "潮汐表.2024", "a.md": "a", "README": "README", ".md": ".md", "a.": "a", "..md": ".", "": "",
	} {
		if got := Title(name); got != want {
			t.Errorf("Title(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestPathTags(t *testing.T) {
	for rel, want := range map[string][]string{
		"设定/人物/阿青.md": {"设定", "人物", "阿青"}, "a.md": {"a"}, "": nil, "./a//b.c.md": {"a", "b.c"}, "harbor/harbor.md": {"harbor", "harbor"}, "v1.2/x": {"v1.2", "x"},
	} {
		if diff := cmp.Diff(want, PathTags(rel)); diff != "" {
			t.Errorf("PathTags(%q): (-want +got)\n%s", rel, diff)
		}
	}
}

func TestCheckRel(t *testing.T) {
	long := strings.Repeat("a", 255)
	good := []string{
		"a.md", "设定/人物/阿青.md", "...", "a..b", ".hidden/x", "console.md", "com.md", "com10.md", "COM0", "lpt", "a b.md", "12:30.md", long,
		"aux2/nul1", "ab:c",
	}
	bad := []string{
		"", "/a", "//a", "../a", "a/../b", "a/..", ".", "./a", "a/", "a//b", "a\x00b", "a\nb", "a\\b", `\\host\a`, "C:/a", "c:a", "\xff",
		long + "a", strings.Repeat("a/", 2100) + "a", "con", "CON.md", "a/Nul.txt", "aux .md", "com1", "LPT9.tar.gz", "com¹.md", "conin$",
	}
	for _, rel := range good {
		if err := CheckRel(rel); err != nil {
			t.Errorf("%q: %v", rel, err)
		}
	}
	for _, rel := range bad {
		if err := CheckRel(rel); !errors.Is(err, errs.Validation) {
			t.Errorf("%q: %v", rel, err)
		}
	}
}

func TestFoldKey(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{"A/Harbor.md", "a/harbor.MD", true},
		{"caf\u00e9", "CAFE\u0301", true},
		{"Σίσυφος", "ΣΊΣΥΦΟΣ", true},
		{"\u212a", "k", true},
		{"灯塔", "灯塔", true},
		{"ß", "ss", false},
		{"ı", "i", false},
		{"İ", "i", false},
		{"ａ", "a", false},
		{"é", "e", false},
	} {
		if got := FoldKey(c.a) == FoldKey(c.b); got != c.same {
			t.Errorf("%q and %q: %v", c.a, c.b, got)
		}
	}
}

func TestFoldKeyIsStable(t *testing.T) {
	check := func(f func(string, ...any), s string) {
		k := FoldKey(s)
		for _, v := range []string{k, norm.NFC.String(s), norm.NFD.String(s), norm.NFD.String(k)} {
			if got := FoldKey(v); got != k {
				f("FoldKey(%+q) = %+q, FoldKey(%+q) = %+q", s, k, v, got)
			}
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if 0xD800 <= r && r < 0xE000 || isIdeograph(r) && r > 0x4E10 && r < 0xF900 {
			continue
		}
		check(t.Errorf, string(r))
		if f := unicode.SimpleFold(r); f != r && FoldKey(string(f)) != FoldKey(string(r)) {
			t.Errorf("%U and %U differ", r, f)
		}
	}
	rapid.Check(t, func(t *rapid.T) { check(t.Fatalf, rapid.String().Draw(t, "path")) })
}
