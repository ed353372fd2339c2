package note

import (
	"math"
	"strings"
)

type blockKind uint8

const (
	textBlock  blockKind = iota // a paragraph, a list, a heading with its lines
	codeBlock                   // fenced code
	tableBlock                  // header, delimiter and rows
	frontBlock                  // front matter between its rules
)

// A block is a range of lines without blank ones at its ends.
type block struct {
	kind       blockKind
	start, end int // indexes of lines, end exclusive
	fence      fence
	closed     bool // the last line closes the fence
}

// A scanner cuts lines into blocks. It reads each line once, with one line
// of lookahead, and knows of Markdown only what decides where blocks end.
type scanner struct {
	src   string
	lines []span
	out   []block

	open   int  // first line of the open text block, or -1
	para   int  // first line of the plain paragraph at its end, or -1
	nested bool // the lines belong to a list item or a quote
	list   bool // deep indentation is that of a list item, not of code
	gap    bool // the line before was blank
}

// scan gives the blocks of src. Every line that is not blank is in exactly
// one of them, and they are in order.
func scan(src string, lines []span) []block {
	s := scanner{src: src, lines: lines, open: -1, para: -1}
	i := s.frontMatter()
	for i < len(lines) {
		i = s.step(i)
	}
	s.flush(i)
	return s.out
}

func (s *scanner) line(i int) string { return s.src[s.lines[i].start:s.lines[i].end] }

// flush ends the open text block in front of line i.
func (s *scanner) flush(i int) {
	if s.open >= 0 && s.open < i {
		s.out = append(s.out, block{kind: textBlock, start: s.open, end: i})
	}
	s.open, s.para, s.nested = -1, -1, false
}

// frontMatter takes a block of YAML at the very start: a rule, a key, and
// a closing rule. Without a key, the rule is a thematic break.
func (s *scanner) frontMatter() int {
	end, ok := frontMatter(s)
	if !ok {
		return 0
	}
	s.out = append(s.out, block{kind: frontBlock, start: 0, end: end})
	return end
}

func frontMatter(s *scanner) (end int, ok bool) {
	if len(s.lines) < 3 || strings.TrimRight(s.line(0), " \t") != "---" {
		return 0, false
	}
	key := false
	for i := 1; i < len(s.lines); i++ {
		l := strings.TrimRight(s.line(i), " \t")
		switch {
		case l == "---" || l == "...":
			return i + 1, key
		case key || strings.HasPrefix(l, "#"):
		case isKey(l):
			key = true
		default:
			return 0, false
		}
	}
	return 0, false
}

// isKey is true for "name:" and "name: value" without an indent.
func isKey(s string) bool {
	i := strings.IndexByte(s, ':')
	return i > 0 && s[0] != ' ' && s[0] != '\t' && s[0] != '-' && (i+1 == len(s) || s[i+1] == ' ' || s[i+1] == '\t')
}

// step reads the line i, and the lines of the block that it opens if their end
// can be told from there, and returns the next line to read.
func (s *scanner) step(i int) int {
	line := s.line(i)
	if isBlank(line) {
		s.flush(i)
		s.gap = true
		return i + 1
	}
	inner, depth := unquote(line, math.MaxInt)
	columns, _ := indent(inner)
	marker := listMarker(inner)
	isItem := marker > 0 && (columns <= 3 || s.list) && !isRule(inner)
	if isItem {
		s.list = true
	} else if columns == 0 && s.gap {
		s.list = false
	}
	s.gap = false

	if columns <= 3 || s.list {
		if f, ok := openFence(inner); ok {
			s.flush(i)
			f.depth = depth
			return s.code(i, f)
		}
		if hasPipe(inner) && i+1 < len(s.lines) {
			if next, d := unquote(s.line(i+1), math.MaxInt); d == depth && isDelimiter(next) {
				s.flush(i)
				return s.table(i, depth)
			}
		}
	}
	switch {
	case depth == 0 && isHeading(inner):
		s.flush(i)
		s.open, s.list = i, false
	case s.para >= 0 && depth == 0 && isUnderline(inner):
		// The paragraph is a heading, and a heading opens a block.
		if para := s.para; para > s.open {
			s.flush(para)
			s.open = para
		}
		s.para = -1
	default:
		if s.open < 0 {
			s.open = i
		}
		switch {
		case depth > 0 || isItem:
			s.nested, s.para = true, -1
		case isRule(inner):
			s.nested, s.para = false, -1
		case s.para < 0 && !s.nested && columns <= 3:
			s.para = i
		}
	}
	return i + 1
}

// code takes the fenced code that f opens on line i. It ends after the
// closing fence, where the quote around it ends, or with the text.
func (s *scanner) code(i int, f fence) int {
	b := block{kind: codeBlock, start: i, end: len(s.lines), fence: f}
	for j := i + 1; j < len(s.lines); j++ {
		inner, depth := unquote(s.line(j), f.depth)
		if depth < f.depth {
			b.end = j
			break
		}
		if f.closes(inner) {
			b.end, b.closed = j+1, true
			break
		}
	}
	next := b.end
	for b.end > i+1 && isBlank(s.line(b.end-1)) {
		b.end--
	}
	s.out = append(s.out, b)
	return next
}

// table takes the table whose header is line i. Its rows are the lines with
// a pipe.
func (s *scanner) table(i, depth int) int {
	end := i + 2
	for end < len(s.lines) {
		inner, d := unquote(s.line(end), math.MaxInt)
		if d != depth || isBlank(inner) || !hasPipe(inner) {
			break
		}
		end++
	}
	s.out = append(s.out, block{kind: tableBlock, start: i, end: end})
	return end
}
