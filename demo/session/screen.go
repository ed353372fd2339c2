package session

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/pager"
	"github.com/rivo/uniseg"
)

// Terminal styles, as the parameters of the escape sequence.
const (
	bold = "1"
	dim  = "2"
	red  = "31"
	cyan = "1;36"
)

// whatColumns is how wide the column is that says what changed.
const whatColumns = 38

// screen writes the walk-through within 78 columns. The first error stays.
type screen struct {
	w     io.Writer
	color bool
	err   error
}

func (s *screen) line(format string, args ...any) {
	if s.err == nil {
		_, s.err = io.WriteString(s.w, strings.TrimRight(fmt.Sprintf(format, args...), " ")+"\n")
	}
}

func (s *screen) paint(style, text string) string {
	if !s.color {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (s *screen) title(text string) {
	s.line("")
	s.line("%s", s.paint(cyan, text))
	s.line("%s", s.paint(cyan, strings.Repeat("─", uniseg.StringWidth(text))))
}

// para writes a paragraph of words with blanks between them.
func (s *screen) para(text string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && uniseg.StringWidth(line)+1+uniseg.StringWidth(word) > 78 {
			s.line("%s", line)
			line = ""
		}
		line = strings.TrimLeft(line+" "+word, " ")
	}
	s.line("%s", line)
}

func (s *screen) head() {
	s.line("%s", s.paint(dim, fmt.Sprintf("  %4s  %s %7s %9s %11s", "step", pad("what changed", whatColumns), "reused", "rewritten", "invalidated")))
}

func (s *screen) turn(n int64, text string) {
	s.line("")
	s.line("  %s %s", s.paint(bold, fmt.Sprintf("turn %d:", n)), text)
}

func (s *screen) note(format string, args ...any) {
	s.line("%s", s.paint(dim, "        "+fmt.Sprintf(format, args...)))
}

// change writes a step that changed the bytes.
func (s *screen) change(step int64, what string, e *pager.RenderEvent) {
	s.line("  %4d  %s %7s %9s %11s", step, pad(what, whatColumns), count(e.CommonBytes), count(written(e)), count(e.InvalidatedBytes))
	if !e.PrefixIntact {
		s.line("%s", s.paint(red, "        the stable prefix broke"))
	}
}

// same writes a step that left the bytes as they were.
func (s *screen) same(step int64, what string, size int) {
	s.line("  %4d  %s %7s %9s %11s", step, pad(what, whatColumns), count(size), "–", "–")
}

// kinds writes the table of what each kind of change did on average.
func (s *screen) kinds(list []*kind) {
	s.line("%s", s.paint(dim, fmt.Sprintf("  %s %7s %9s %11s  %s", pad("kind", 30), "changes", "rewritten", "invalidated", "prefix intact")))
	for _, k := range list {
		s.line("  %s %7d %9s %11s  %d of %d", pad(k.name, 30), k.changes, count(k.rewritten/k.changes), count(k.lost/k.changes), k.intact, k.changes)
	}
	s.line("%s", s.paint(dim, "  Bytes are averages of a change."))
}

// pad fills text with blanks up to width columns, or cuts it there.
func pad(text string, width int) string {
	var b strings.Builder
	used := 0
	g := uniseg.NewGraphemes(text)
	for g.Next() && used+g.Width() <= width {
		b.WriteString(g.Str())
		used += g.Width()
	}
	return b.String() + strings.Repeat(" ", width-used)
}

// count writes a number with its thousands apart.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
