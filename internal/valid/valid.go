// Package valid checks the strings that callers give, and says what would be
// right.
package valid

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/text"
)

// maxRawTag bounds a tag before the work of normalising it.
const maxRawTag = 1 << 20

// Label checks a string that names something: exact, so neither blank nor
// padded, and free of control characters.
func Label(field, s string, limit int) error {
	switch {
	case s == "":
		return errs.Invalid(field, "must not be empty")
	case len(s) > limit:
		return errs.Invalid(field, "is %d bytes long, at most %d are allowed", len(s), limit)
	case !utf8.ValidString(s):
		return errs.Invalid(field, "is not valid UTF-8")
	case strings.TrimSpace(s) != s:
		return errs.Invalid(field, "must not begin or end with a blank")
	case strings.ContainsFunc(s, unicode.IsControl):
		return errs.Invalid(field, "must not hold control characters")
	}
	return nil
}

// Text checks a text of at most limit bytes.
func Text(field, s string, limit int) error {
	if len(s) > limit {
		return errs.Invalid(field, "is %d bytes long, at most %d are allowed", len(s), limit)
	}
	if !utf8.ValidString(s) {
		return errs.Invalid(field, "is not valid UTF-8")
	}
	return nil
}

// Tags normalises tags, drops blank and repeated ones, and sorts them. There may be
// at most that many, of at most so many bytes once normalised.
func Tags(field string, tags []string, most, bytes int) ([]string, error) {
	if len(tags) == 0 {
		return nil, nil
	}
	out := make([]string, 0, len(tags))
	for i, tag := range tags {
		if !utf8.ValidString(tag) {
			return nil, errs.Invalid(fmt.Sprintf("%s[%d]", field, i), "is not valid UTF-8")
		}
		if len(tag) > maxRawTag { // before the work of normalising
			return nil, errs.Invalid(fmt.Sprintf("%s[%d]", field, i), "is longer than %d bytes", bytes)
		}
		tag = text.Normalize(tag)
		if tag == "" {
			continue
		}
		if len(tag) > bytes {
			return nil, errs.Invalid(fmt.Sprintf("%s[%d]", field, i), "is %d bytes long, at most %d are allowed", len(tag), bytes)
		}
		if strings.ContainsFunc(tag, unicode.IsControl) {
			return nil, errs.Invalid(fmt.Sprintf("%s[%d]", field, i), "must not hold control characters")
		}
		out = append(out, tag)
	}
	slices.Sort(out)
	out = slices.Compact(out)
	if len(out) > most {
		return nil, errs.Invalid(field, "has %d entries, at most %d are allowed", len(out), most)
	}
	return out, nil
}
