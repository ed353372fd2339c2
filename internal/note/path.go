package note

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/internal/errs"
)

const (
	maxRelPiece = 255  // bytes of a file name, as most file systems have it
	maxRel      = 4096 // bytes of a path
)

// Title is a file name without its last extension. A name that is nothing but
// an extension is kept.
func Title(name string) string {
	if i := strings.LastIndexByte(name, '.'); i > 0 {
		return name[:i]
	}
	return name
}

// PathTags gives the folders of a relative path and the title of its file, in
// that order and as they are written. A title like that of its folder comes
// twice; tags are normalised later anyway.
func PathTags(rel string) []string {
	var tags []string
	for piece := range strings.SplitSeq(rel, "/") {
		if piece != "" && piece != "." {
			tags = append(tags, piece)
		}
	}
	if n := len(tags); n > 0 && !strings.HasSuffix(rel, "/") {
		tags[n-1] = Title(tags[n-1])
	}
	return tags
}

// CheckRel refuses what cannot be the path of a note under its root, on any
// platform: notes move between machines, and their paths with them. A path has
// forward slashes, no empty, "." or ".." pieces, does not begin at a root or a
// drive, and no piece of it is a device of Windows.
func CheckRel(rel string) error {
	switch {
	case rel == "":
		return errs.Invalid("path", "is empty")
	case len(rel) > maxRel:
		return errs.Invalid("path", "has %d bytes, at most %d are allowed", len(rel), maxRel)
	case !utf8.ValidString(rel):
		return errs.Invalid("path", "is not UTF-8")
	case strings.ContainsRune(rel, '\\'):
		return errs.Invalid("path", "has a backslash; pieces are separated by forward slashes")
	case rel[0] == '/' || len(rel) > 1 && rel[1] == ':' && unicode.IsLetter(rune(rel[0])):
		return errs.Invalid("path", "must be relative to the root of the notes")
	}
	for _, r := range rel {
		if unicode.IsControl(r) {
			return errs.Invalid("path", "has the control character %U", r)
		}
	}
	for piece := range strings.SplitSeq(rel, "/") {
		switch {
		case piece == "" || piece == "." || piece == "..":
			return errs.Invalid("path", "has the piece %q; only names are allowed", piece)
		case len(piece) > maxRelPiece:
			return errs.Invalid("path", "has a piece of %d bytes, at most %d are allowed", len(piece), maxRelPiece)
		case isDevice(piece):
			return errs.Invalid("path", "has the piece %q, which is a device on Windows", piece)
		}
	}
	return nil
}

// isDevice is true for the names that Windows opens as devices in every
// folder, with whatever extension.
func isDevice(name string) bool {
	name, _, _ = strings.Cut(name, ".")
	name = strings.ToUpper(strings.TrimRight(name, " "))
	switch name {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$":
		return true
	}
	port, ok := strings.CutPrefix(name, "COM")
	if !ok {
		port, ok = strings.CutPrefix(name, "LPT")
	}
	return ok && strings.Contains("1 2 3 4 5 6 7 8 9 ¹ ² ³", port) && utf8.RuneCountInString(port) == 1 && port != " "
}

// FoldKey is the same for two paths that some file system takes for one:
// those that differ in case, or in whether accents are parts of letters. It
// folds single characters, as file systems do: ß and ss are two names.
func FoldKey(rel string) string {
	fold := func(s string) string { return norm.NFC.String(strings.Map(foldRune, norm.NFC.String(s))) }
	key := fold(rel)
	for range 3 { // composing may bring letters that fold once more
		next := fold(key)
		if next == key {
			break
		}
		key = next
	}
	return key
}

// foldRune gives one of the characters that differ from r in case only: the
// small letter of the capital one, if they are equal under simple folding.
func foldRune(r rune) rune {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return r
	}
	if isIdeograph(r) {
		return r
	}
	want := unicode.ToLower(unicode.ToUpper(r))
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		if f == want {
			return want
		}
	}
	return r
}
