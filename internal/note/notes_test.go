package note

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// realNotes reads the Markdown files of the evaluation data: $LOCI_EVAL_DATA,
// or shared/data beside the repository.
func realNotes(t testing.TB) map[string]string {
	t.Helper()
	dir := os.Getenv("LOCI_EVAL_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	dir = filepath.Join(dir, "notes")
	notes := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".md" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		notes[filepath.ToSlash(rel)] = string(data)
		return nil
	})
	if err != nil {
		t.Skipf("no notes to read (set LOCI_EVAL_DATA): %v", err)
	}
	if len(notes) == 0 {
		t.Skip("no notes to read (set LOCI_EVAL_DATA)")
	}
	return notes
}

var (
	latin   = regexp.MustCompile(`[A-Za-z0-9]+|[\x{4E00}-\x{9FFF}]`)
	unseen  = regexp.MustCompile(`\]\([^)\n]*\)|</?[A-Za-z][^<>]*>|\[\[[^\]|]*\\?\||&[a-z]+;|&#[0-9]+;|\[\^[^\]]*\]|\[[ xX]\]`)
	inFence = regexp.MustCompile("(?ms)^[ \t]*```.*?^[ \t]*```")
)

// words are what can be found in a text: Latin words and Chinese characters.
func words(s string) []string { return latin.FindAllString(s, -1) }

func TestRealNotes(t *testing.T) {
	notes := realNotes(t)
	chunks, long := 0, 0
	for name, raw := range notes {
		text, enc, err := Decode([]byte(raw))
		if err != nil || enc != UTF8 {
			t.Errorf("%s: %s, %v", name, enc, err)
		}
		if err := CheckRel(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, target := range []int{16, DefaultTarget, 2000} {
			got := mustSplit(t, text, target)
			checkSplit(t, text, target, got)
			if target != DefaultTarget {
				continue
			}
			chunks += len(got)
			var parts []string
			for _, c := range got {
				if utf8.RuneCountInString(c.Content) > target {
					long++
				}
				p := PlainText(c.Content)
				if p == "" && words(unseen.ReplaceAllString(c.Content, "")) != nil {
					t.Errorf("%s: nothing is left of %q", name, c.Content)
				}
				parts = append(parts, p)
			}
			// A cut loses nothing, but may leave half a tag or an address.
			whole, joined := len(words(PlainText(text))), len(words(strings.Join(parts, "\n")))
			if d := whole - joined; d > whole/50+5 || d < -whole/3-10 {
				t.Errorf("%s: %d words, but %d by chunks", name, whole, joined)
			}
		}
		checkWords(t, name, text)
	}
	t.Logf("%d notes, %d chunks, %d of them over the target", len(notes), chunks, long)
}

// checkWords says that PlainText loses no word but those behind links and in
// tags, and makes none up.
func checkWords(t *testing.T, name, text string) {
	t.Helper()
	plain := words(PlainText(text))
	have := map[string]bool{}
	for _, w := range plain {
		have[w] = true
	}
	code := strings.Join(inFence.FindAllString(text, -1), "\n")
	prose := unseen.ReplaceAllString(inFence.ReplaceAllString(text, ""), " ")
	for _, w := range words(prose + code) {
		if !have[w] {
			t.Errorf("%s: %q is lost", name, w)
			have[w] = true
		}
	}
	for _, w := range plain {
		if !strings.Contains(text, w) && !slices.Contains(strings.FieldsFunc(text, isMark), w) {
			t.Errorf("%s: %q is made up", name, w)
		}
	}
}

func isMark(r rune) bool { return r == '*' || r == '_' || r == '~' }

func BenchmarkRealNotes(b *testing.B) {
	notes := realNotes(b)
	size := 0
	for _, s := range notes {
		size += len(s)
	}
	b.Run("split", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, s := range notes {
				mustSplit(b, s, DefaultTarget)
			}
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.SetBytes(int64(size))
		b.ReportAllocs()
		for b.Loop() {
			for _, s := range notes {
				PlainText(s)
			}
		}
	})
	b.Run("both", func(b *testing.B) {
		b.SetBytes(int64(size))
		for b.Loop() {
			for _, s := range notes {
				for _, c := range mustSplit(b, s, DefaultTarget) {
					PlainText(c.Content)
				}
			}
		}
	})
}

func BenchmarkSplitOneLine(b *testing.B) {
	for name, s := range map[string]string{
		"letters":   strings.Repeat("x", 10<<20),
		"chinese":   strings.Repeat("今日起锚风力五级", 10<<20/24),
		"sentences": strings.Repeat("The tide is in. ", 10<<20/16),
		"quotes":    strings.Repeat("> ", 5<<20),
		"stops":     strings.Repeat(".", 10<<20),
		"blanks":    "x" + strings.Repeat(" ", 10<<20) + "x",
		"accents":   strings.Repeat("\u0301", 5<<20),
		"breaks":    strings.Repeat("x\n", 5<<20),
		"pipes":     strings.Repeat("|", 10<<20),
		"items":     strings.Repeat("- ", 5<<20),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			for b.Loop() {
				mustSplit(b, s, DefaultTarget)
			}
		})
	}
}
