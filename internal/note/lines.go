package note

import (
	"strings"
	"unicode/utf8"
)

// A span is a range of bytes.
type span struct{ start, end int }

// normalize drops a byte order mark and writes every line break as "\n", so
// that all later code, and all numbers, are the same for every platform.
func normalize(s string) string {
	s = strings.TrimPrefix(s, "\ufeff")
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for {
		i := strings.IndexByte(s, '\r')
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		b.WriteByte('\n')
		s = s[i+1:]
		if s != "" && s[0] == '\n' {
			s = s[1:]
		}
	}
}

// splitLines gives the lines of s without their line breaks. A line break at
// the end of s ends the last line and begins no other.
func splitLines(s string) []span {
	lines := make([]span, 0, strings.Count(s, "\n")+1)
	for start := 0; start < len(s); {
		n := strings.IndexByte(s[start:], '\n')
		if n < 0 {
			lines = append(lines, span{start, len(s)})
			break
		}
		lines = append(lines, span{start, start + n})
		start += n + 1
	}
	return lines
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// indent measures the blanks that s begins with: how many columns they take,
// with tab stops every four, and how many bytes.
func indent(s string) (columns, bytes int) {
	for bytes < len(s) {
		switch s[bytes] {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, bytes
		}
		bytes++
	}
	return columns, bytes
}

// unquote drops up to limit block quote markers from the start of s and
// returns how many there were.
func unquote(s string, limit int) (rest string, depth int) {
	for depth < limit {
		i := 0
		for i < 3 && i < len(s) && s[i] == ' ' {
			i++
		}
		if i == len(s) || s[i] != '>' {
			break
		}
		s = s[i+1:]
		if s != "" && s[0] == ' ' {
			s = s[1:]
		}
		depth++
	}
	return s, depth
}

// listMarker returns the length of the list marker that s begins with, with
// the blanks in front of it and one behind it, or 0. Nothing after the marker
// makes it an empty item.
func listMarker(s string) int {
	_, i := indent(s)
	switch {
	case i == len(s):
		return 0
	case s[i] == '-' || s[i] == '*' || s[i] == '+':
		i++
	default:
		d := i
		for i < len(s) && i-d < 9 && '0' <= s[i] && s[i] <= '9' {
			i++
		}
		if i == d || i == len(s) || s[i] != '.' && s[i] != ')' {
			return 0
		}
		i++
	}
	if i == len(s) {
		return i
	}
	if s[i] == ' ' || s[i] == '\t' {
		return i + 1
	}
	return 0
}

// isHeading is true for "# ..." up to six marks.
func isHeading(s string) bool {
	columns, i := indent(s)
	if columns > 3 {
		return false
	}
	n := 0
	for i < len(s) && s[i] == '#' {
		i++
		n++
	}
	return 1 <= n && n <= 6 && (i == len(s) || s[i] == ' ' || s[i] == '\t')
}

// isUnderline is true for a line that makes the paragraph above it a heading.
func isUnderline(s string) bool {
	columns, i := indent(s)
	if columns > 3 || i == len(s) {
		return false
	}
	c := s[i]
	return (c == '=' || c == '-') && strings.Trim(strings.TrimRight(s[i:], " \t"), string(c)) == ""
}

// isRule is true for a line of three or more dashes, asterisks or underscores.
func isRule(s string) bool {
	columns, i := indent(s)
	if columns > 3 || i == len(s) || s[i] != '-' && s[i] != '*' && s[i] != '_' {
		return false
	}
	n := 0
	for _, c := range []byte(s[i:]) {
		switch c {
		case s[i]:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

// A fence is what opens fenced code.
type fence struct {
	mark   byte // '`' or '~'
	size   int  // how many marks
	column int  // where the marks stand
	depth  int  // block quotes around it
	info   string
}

// openFence reads a fence, also one that opens a list item.
func openFence(s string) (f fence, ok bool) {
	column := 0
	for n := listMarker(s); n > 0; n = listMarker(s) {
		column += n
		s = s[n:]
	}
	c, i := indent(s)
	if i == len(s) || s[i] != '`' && s[i] != '~' {
		return f, false
	}
	f = fence{mark: s[i], column: column + c}
	for i < len(s) && s[i] == f.mark {
		i++
		f.size++
	}
	f.info = strings.TrimSpace(s[i:])
	if f.size < 3 || f.mark == '`' && strings.IndexByte(f.info, '`') >= 0 {
		return f, false
	}
	return f, true
}

// closes says whether s, without block quote markers, ends the fenced code.
// A rule that is indented much deeper than the opening one is code.
func (f fence) closes(s string) bool {
	columns, i := indent(s)
	if columns > f.column+3 {
		return false
	}
	n := i
	for n < len(s) && s[n] == f.mark {
		n++
	}
	return n-i >= f.size && isBlank(s[n:])
}

// isDelimiter is true for the row under a table's header. It must have a pipe,
// or any line of dashes would be one.
func isDelimiter(s string) bool {
	pipes, dashes := 0, 0
	for _, c := range []byte(s) {
		switch c {
		case '|':
			pipes++
		case '-':
			dashes++
		case ':', ' ', '\t':
		default:
			return false
		}
	}
	return pipes > 0 && dashes > 0
}

// hasPipe is true for a line with a pipe that no backslash hides.
func hasPipe(s string) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '|':
			return true
		}
	}
	return false
}

// longerThan says whether s has more than n runes, without counting them all.
func longerThan(s string, n int) bool {
	if len(s) <= n {
		return false
	}
	if len(s) > n*utf8.UTFMax {
		return true
	}
	return utf8.RuneCountInString(s) > n
}
