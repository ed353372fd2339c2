package note

import (
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
)

const (
	// DefaultTarget is the length of chunks where the caller has no opinion.
	DefaultTarget = 220
	// MinTarget is the least length that Split can be asked for.
	MinTarget = 16
	// MaxTarget is the greatest.
	MaxTarget = 100_000

	// maxWhole is how many bytes of code or table stay together whatever the
	// target is.
	maxWhole = 16 << 10
)

// Chunk is a piece of a text.
type Chunk struct {
	Ordinal int    // place in the text, from 0
	Offset  int    // first line, from 1
	Limit   int    // number of lines; where a line was cut, both sides have it
	Content string // as it was written, with "\n" between lines
}

// Split cuts a text into chunks of at most target characters, block by block:
// short paragraphs are not merged. Fenced code, tables and front matter stay
// whole even over the target, up to 16 KiB, and are then cut at line ends. Any
// other block is cut after a sentence if one ends in the last three quarters
// of what fits, else in front of a word, else between two characters.
//
// No text is lost: every character that is not blank is in exactly one chunk.
// Blank text has no chunks. Time grows with the length of the text only.
func Split(content string, target int) ([]Chunk, error) {
	if target < MinTarget || target > MaxTarget {
		return nil, errs.Invalid("chunk_chars", "is %d, must be from %d to %d", target, MinTarget, MaxTarget)
	}
	src := normalize(content)
	s := splitter{src: src, lines: splitLines(src), target: target}
	for _, b := range scan(src, s.lines) {
		s.block(b)
	}
	return s.out, nil
}

type splitter struct {
	src    string
	lines  []span
	target int
	out    []Chunk
}

func (s *splitter) block(b block) {
	at := span{s.lines[b.start].start, s.lines[b.end-1].end}
	size := at.end - at.start
	switch {
	case !longerThan(s.src[at.start:at.end], s.target), b.kind != textBlock && size <= maxWhole:
		s.put(at, b.start)
	case b.kind == textBlock:
		s.text(at, b.start)
	default:
		s.rows(b)
	}
}

// put appends a chunk that begins on the given line and returns the line on
// which it ends.
func (s *splitter) put(at span, line int) int {
	content := s.src[at.start:at.end]
	n := strings.Count(content, "\n")
	s.out = append(s.out, Chunk{Ordinal: len(s.out), Offset: line + 1, Limit: n + 1, Content: content})
	return line + n
}

// text cuts a block that is too long. Blanks at a cut belong to neither
// side, except those that indent a line.
func (s *splitter) text(at span, line int) {
	for at.start < at.end {
		end := at.start + cut(s.src[at.start:at.end], s.target)
		if part := strings.TrimSpace(s.src[at.start:end]); part == "" {
			// Only blanks fit: they are no chunk.
			line += strings.Count(s.src[at.start:end], "\n")
			at.start = end
			continue
		}
		piece := strings.TrimRight(s.src[at.start:end], blanks)
		line = s.put(span{at.start, at.start + len(piece)}, line)
		end = at.start + len(piece)
		gap := leadingBlanks(s.src[end:at.end])
		if i := strings.LastIndexByte(gap, '\n'); i >= 0 {
			line += strings.Count(gap, "\n")
			gap = gap[:i+1]
		}
		at.start = end + len(gap)
	}
}

// blanks are what may be dropped at a cut. It is less than Unicode's white
// space: an ideographic space may be what a text is indented with.
const blanks = " \t\n"

func leadingBlanks(s string) string { return s[:len(s)-len(strings.TrimLeft(s, blanks))] }

// rows cuts code or a table at line ends, a line that is too long in itself
// between characters.
func (s *splitter) rows(b block) {
	start, first := s.lines[b.start].start, b.start // of the open piece
	end := start                                    // of the last line in it
	for i := b.start; i < b.end; i++ {
		l := s.lines[i]
		if l.end-start > maxWhole && end > start {
			s.putRows(span{start, end}, first)
			start, first = l.start, i
		}
		for l.end-start > maxWhole {
			n := start + maxWhole
			for n > start+1 && n > start+maxWhole-utf8.UTFMax && !utf8.RuneStart(s.src[n]) {
				n--
			}
			s.putRows(span{start, n}, i)
			start, first = n, i
		}
		end = l.end
	}
	s.putRows(span{start, end}, first)
}

// putRows drops blank lines around a piece, and a piece that has no others.
func (s *splitter) putRows(at span, line int) {
	content := s.src[at.start:at.end]
	if isBlank(content) {
		return
	}
	for {
		i := strings.IndexByte(content, '\n')
		if i < 0 || !isBlank(content[:i]) {
			break
		}
		content = content[i+1:]
		at.start += i + 1
		line++
	}
	for {
		i := strings.LastIndexByte(content, '\n')
		if i < 0 || !isBlank(content[i:]) {
			break
		}
		content = content[:i]
	}
	s.put(span{at.start, at.start + len(content)}, line)
}
