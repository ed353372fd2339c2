package demo

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/loci-memory/loci"
)

// columns is the width that everything fits into.
const columns = 78

// Terminal styles, as the parameters of the escape sequence.
const (
	bold   = "1"
	dim    = "2"
	green  = "32"
	yellow = "1;33"
	cyan   = "1;36"
)

// screen writes the report. The first error sticks, so that callers need not
// look after every line.
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
	if !s.color || text == "" {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (s *screen) title(text string) {
	s.line("")
	s.line("%s", s.paint(cyan, text))
	s.line("%s", s.paint(cyan, strings.Repeat("─", uniseg.StringWidth(text))))
}

func (s *screen) para(text string) {
	for _, l := range wrap(text, columns, 0) {
		s.line("%s", l)
	}
}

// field writes a name and its value, which may take several lines.
func (s *screen) field(name, value string) {
	const indent = 16
	for i, l := range wrap(value, columns-indent, 0) {
		if i > 0 {
			name = ""
		}
		s.line("  %s%s", s.paint(dim, pad(name, indent-2)), l)
	}
}

func (s *screen) question(n int, q Question) {
	s.line("")
	for i, l := range wrap(q.Query, columns-5, 0) {
		number := ""
		if i == 0 {
			number = strconv.Itoa(n) + "."
		}
		s.line("%s %s", pad(number, 4), s.paint(bold, l))
	}
	var notes []string
	if len(q.Tags) > 0 {
		notes = append(notes, "tags: "+strings.Join(q.Tags, ", "))
	}
	if q.Thread != "" {
		notes = append(notes, "thread: "+q.Thread)
	}
	for _, l := range wrap(strings.Join(append(notes, q.About), " · "), columns-5, 0) {
		s.line("     %s", s.paint(dim, l))
	}
}

// hit writes one search hit; why adds the line that explains it.
func (s *screen) hit(hit loci.SearchHit, m *loci.Memory, right, why bool) {
	mark := " "
	if right {
		mark = s.paint(green, "✓")
	}
	score := hit.Score
	if hit.Explain != nil {
		score = hit.Explain.TextScore
	}
	s.line("   %s %6.2f  %s", mark, score, s.paint(green, clip(label(m), columns-15)))
	var terms []loci.ExplainTerm
	if hit.Explain != nil {
		terms = hit.Explain.Terms
	}
	for _, l := range wrap(passage(m, terms), columns-14, 2) {
		s.line("              %s", s.highlight(l, terms))
	}
	if why && hit.Explain != nil {
		var parts []string
		for i, term := range terms {
			if i == 6 {
				parts = append(parts, fmt.Sprintf("and %d more", len(terms)-i))
				break
			}
			parts = append(parts, fmt.Sprintf("%s %.2f", term.Term, term.Score))
		}
		text := fmt.Sprintf("%s: %s", roundName(hit.Explain.Round), strings.Join(parts, " + "))
		for _, l := range wrap(text, columns-14, 0) {
			s.line("              %s", s.paint(dim, l))
		}
	}
}

func roundName(round string) string {
	switch round {
	case "every_term":
		return "every term"
	case "any_term":
		return "any term"
	case "any_character":
		return "any character"
	}
	return round
}

// speech writes one record of a thread.
func (s *screen) speech(m *loci.Memory, center bool) {
	arrow := "  "
	if center {
		arrow = s.paint(green, "> ")
	}
	for i, l := range wrap(flat(m.Judgment), columns-20, 3) {
		who := ""
		if i == 0 {
			who = fmt.Sprintf("%3d %s", *m.Position, metaOf(m.Metadata).Speaker)
		} else {
			arrow = "  "
		}
		s.line("%s%s %s", arrow, s.paint(dim, pad(who, 17)), l)
	}
}

// highlight marks where the terms stand in a line. Terms are stems and normal
// forms, so a word is marked up to where it parts from its term.
func (s *screen) highlight(line string, terms []loci.ExplainTerm) string {
	if !s.color {
		return line
	}
	marked := make([]bool, len(line))
	for _, t := range terms {
		for _, at := range occurrences(line, t.Term) {
			for i := at; i < at+len(t.Term); i++ {
				marked[i] = true
			}
		}
	}
	var b strings.Builder
	for i := 0; i < len(line); {
		j := i
		for j < len(line) && marked[j] == marked[i] {
			j++
		}
		if marked[i] {
			b.WriteString(s.paint(yellow, line[i:j]))
		} else {
			b.WriteString(line[i:j])
		}
		i = j
	}
	return b.String()
}

// occurrences gives the byte offsets of term in text, letter case aside. An
// alphabetic term counts at the beginning of a word only.
func occurrences(text, term string) []int {
	if term == "" {
		return nil
	}
	var out []int
	first, _ := utf8.DecodeRuneInString(term)
	for i := 0; i+len(term) <= len(text); i++ {
		if !strings.EqualFold(text[i:i+len(term)], term) {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		if unicode.Is(unicode.Han, first) || !unicode.IsLetter(before) && !unicode.IsDigit(before) {
			out = append(out, i)
		}
	}
	return out
}

// passage gives the record's text from the line or sentence on in which the
// terms weigh most.
func passage(m *loci.Memory, terms []loci.ExplainTerm) string {
	pieces := sentences(m.Judgment)
	best, bestScore := 0, 0.0
	for i, p := range pieces {
		score := 0.0
		for _, t := range terms {
			if len(occurrences(p, t.Term)) > 0 {
				score += t.Score
			}
		}
		if score > bestScore {
			best, bestScore = i, score
		}
	}
	text := flat(strings.Join(pieces[best:], ""))
	if best > 0 {
		text = "… " + text
	}
	return text
}

// sentences cuts text behind line ends and Chinese or English sentence ends.
func sentences(text string) []string {
	var out []string
	begin := 0
	for i, r := range text {
		if strings.ContainsRune("\n。！？；", r) {
			end := i + utf8.RuneLen(r)
			out = append(out, text[begin:end])
			begin = end
		}
	}
	if begin < len(text) || len(out) == 0 {
		out = append(out, text[begin:])
	}
	return out
}

// flat joins the lines of a text: with a stroke between lines of verse in a
// spaced script, with nothing in Chinese, whose lines end in punctuation.
func flat(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var b strings.Builder
	for i, l := range lines {
		if i > 0 {
			last, _ := utf8.DecodeLastRuneInString(lines[i-1])
			if last < 0x2E80 {
				b.WriteString(" / ")
			}
		}
		b.WriteString(strings.TrimSpace(l))
	}
	return b.String()
}

// meta is what the demonstration reads from a record's metadata.
type meta struct {
	CorpusID string `json:"corpus_id"`
	Lang     string `json:"lang"`
	Source   string `json:"source"`
	Speaker  string `json:"speaker"`
	Author   string `json:"author"`
	Title    string `json:"title"`
}

// metaOf reads metadata. What does not fit stays empty: it is only shown.
func metaOf(raw loci.Metadata) meta {
	var m meta
	if json.Unmarshal(raw, &m) != nil {
		return meta{}
	}
	return m
}

// label says in a few words where a record comes from.
func label(m *loci.Memory) string {
	d := metaOf(m.Metadata)
	switch {
	case d.Title != "":
		return d.Author + "《" + d.Title + "》"
	case d.Speaker != "":
		return fmt.Sprintf("%s, %s says", m.Thread, d.Speaker)
	case strings.HasPrefix(m.Thread, "udhr"):
		return m.Reasoning
	case m.Thread != "" && m.Position != nil:
		return fmt.Sprintf("%s %d", m.Thread, *m.Position)
	}
	return d.Source
}

// wrap breaks text into lines of at most width columns, where the script
// allows it. With limit > 0 the rest is cut, and the cut shown.
func wrap(text string, width, limit int) []string {
	var lines []string
	line, lineWidth := "", 0
	state := -1
	for rest := text; rest != ""; {
		var segment string
		var hard bool
		segment, rest, hard, state = uniseg.FirstLineSegmentInString(rest, state)
		w := uniseg.StringWidth(strings.TrimRight(segment, " \n"))
		if lineWidth > 0 && lineWidth+w > width {
			lines = append(lines, strings.TrimRight(line, " "))
			line, lineWidth = "", 0
		}
		for w > width { // one word longer than a line
			head := clipTo(segment, width)
			if head == "" {
				break
			}
			lines = append(lines, head)
			segment = segment[len(head):]
			w = uniseg.StringWidth(strings.TrimRight(segment, " \n"))
		}
		line += strings.TrimRight(segment, "\n")
		lineWidth = uniseg.StringWidth(line)
		if hard && rest != "" {
			lines = append(lines, strings.TrimRight(line, " "))
			line, lineWidth = "", 0
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if limit > 0 && len(lines) > limit {
		lines = lines[:limit]
		lines[limit-1] = clipTo(lines[limit-1], width-2) + " …"
	}
	return lines
}

// clip makes text one line of at most width columns.
func clip(text string, width int) string {
	text = flat(text)
	if uniseg.StringWidth(text) <= width {
		return text
	}
	return clipTo(text, width-2) + " …"
}

// clipTo gives the longest head of text that fits into width columns without
// cutting a character as a reader sees it.
func clipTo(text string, width int) string {
	end, used, state := 0, 0, -1
	for rest := text; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width {
			break
		}
		used += w
		end += len(cluster)
	}
	return text[:end]
}

// pad fills text with blanks up to width columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}

// count writes a number with its thousands apart.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
