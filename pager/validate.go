package pager

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/text"
)

// validPageID checks the id of a page that a caller names: 1 to 128 bytes
// without blanks, control characters, ":" (copies of records have it) and "@"
// (it divides id and version).
func validPageID(field, id string) error {
	switch {
	case id == "":
		return invalid(field, "must not be empty")
	case len(id) > MaxPageIDBytes:
		return invalid(field, "is %d bytes long, at most %d are allowed", len(id), MaxPageIDBytes)
	case !utf8.ValidString(id):
		return invalid(field, "is not valid UTF-8")
	case strings.ContainsFunc(id, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '@' }):
		return invalid(field, "must not hold blanks, control characters or @")
	}
	return nil
}

// validNewPageID is validPageID for a page that a caller makes.
func validNewPageID(field, id string) error {
	if err := validPageID(field, id); err != nil {
		return err
	}
	if strings.Contains(id, ":") {
		return invalid(field, "must not hold a colon: such ids are those of copies of records")
	}
	return nil
}

// validText checks a text of at most limit bytes.
func validText(field, s string, limit int) error {
	if !utf8.ValidString(s) {
		return invalid(field, "is not valid UTF-8")
	}
	if len(s) > limit {
		return fail(ErrTooLarge, field, "is %d bytes long, at most %d are allowed", len(s), limit).with("bytes", len(s)).with("limit", limit)
	}
	return nil
}

// validTags normalises tags as those of every record are, drops blank and
// repeated ones, and sorts them.
func validTags(tags []string) ([]string, error) {
	if len(tags) > MaxTags {
		return nil, fail(ErrTooLarge, "tags", "has %d entries, at most %d are allowed", len(tags), MaxTags).with("limit", MaxTags)
	}
	var out []string
	for i, tag := range tags {
		field := fmt.Sprintf("tags[%d]", i)
		if err := validText(field, tag, 4*loci.MaxTagBytes); err != nil {
			return nil, err
		}
		tag = text.Normalize(tag)
		if err := validText(field, tag, loci.MaxTagBytes); err != nil {
			return nil, err
		}
		if strings.ContainsFunc(tag, unicode.IsControl) {
			return nil, invalid(field, "must not hold control characters")
		}
		if tag != "" {
			out = append(out, tag)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// validLimit gives a limit within its range, or its default.
func validLimit(field string, limit *int, preset, least, most int) (int, error) {
	if limit == nil {
		return preset, nil
	}
	if *limit < least || *limit > most {
		return 0, invalid(field, "must be from %d to %d, not %d", least, most, *limit)
	}
	return *limit, nil
}
