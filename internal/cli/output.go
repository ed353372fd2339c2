package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// Print shows a result: v as JSON for programs, or what human writes for
// people.
func (a *App) Print(v any, human func(*Painter)) error {
	if a.JSON() {
		return a.writeJSON(a.deps.Stdout, v)
	}
	w := a.painter(a.deps.Stdout)
	human(w)
	return w.err
}

// printResult shows an operation's result.
func (a *App) printResult(name string, raw json.RawMessage) error {
	if a.JSON() {
		return a.writeJSON(a.deps.Stdout, raw)
	}
	w := a.painter(a.deps.Stdout)
	if strings.HasPrefix(name, contextPrefix) {
		notes := a.painter(a.deps.Stderr)
		if a.Quiet() {
			notes.w = io.Discard
		}
		if shown, err := renderContextResult(w, notes, name, raw); shown {
			return errors.Join(err, w.err, notes.err)
		}
	}
	if err := renderResult(w, name, raw); err != nil {
		return err
	}
	return w.err
}

// WriteJSON writes v on standard output, whatever --json says: for a command
// that only programs run.
func (a *App) WriteJSON(v any) error { return a.writeJSON(a.deps.Stdout, v) }

// writeJSON writes one document on one line.
func (a *App) writeJSON(w io.Writer, v any) error {
	raw, err := marshal(v)
	if err != nil {
		return err
	}
	_, err = w.Write(append(raw, '\n'))
	return err
}

func (a *App) writeJSONIndent(w io.Writer, v any) error {
	raw, err := marshal(v)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = w.Write(b.Bytes())
	return err
}

// Note says something to a person on standard error, unless they want quiet or
// a program reads.
func (a *App) Note(format string, args ...any) {
	if a.Quiet() || a.JSON() {
		return
	}
	a.painter(a.deps.Stderr).Line(clean(fmt.Sprintf(format, args...)))
}

// Painter writes lines for people, coloured where that is wanted. The first
// error stops it.
type Painter struct {
	w     io.Writer
	color bool
	width int // columns of the terminal; 0 when it is none
	// wordsOnly says that vectors were turned off, so that nobody need be told
	// that they are not there.
	wordsOnly bool
	err       error
}

func (a *App) painter(w io.Writer) *Painter {
	p := &Painter{w: w, width: terminalWidth(w), wordsOnly: a.embedderOff()}
	switch a.settings.get("color").Value {
	case "always":
		p.color = true
	case "auto":
		t, _ := a.deps.LookupEnv("TERM")
		p.color = p.width > 0 && t != "dumb"
	}
	return p
}

// terminalWidth is 0 when w is no terminal.
func terminalWidth(w io.Writer) int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0
	}
	if cols, _, err := term.GetSize(int(f.Fd())); err == nil && cols > 0 {
		return cols
	}
	return 80
}

// Line writes one line.
func (p *Painter) Line(text string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, text+"\n")
	}
}

// Text writes a text as it is, so that a file gets every byte of it; on a
// terminal without what would drive one. A line end is added where none is.
func (p *Painter) Text(text string) {
	if p.width > 0 {
		text = clean(text)
	}
	p.Line(strings.TrimSuffix(text, "\n"))
}

func (p *Painter) paint(code, text string) string {
	if !p.color || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold makes text stand out.
func (p *Painter) Bold(text string) string { return p.paint("1", text) }

// Dim takes text back.
func (p *Painter) Dim(text string) string { return p.paint("2", text) }

// Red marks what is wrong.
func (p *Painter) Red(text string) string { return p.paint("31", text) }

// Green marks what is well.
func (p *Painter) Green(text string) string { return p.paint("32", text) }

// Yellow marks what deserves a look.
func (p *Painter) Yellow(text string) string { return p.paint("33", text) }

// Table writes aligned columns. On a terminal the last column is cut to fit.
// Cells are cleaned.
func (p *Painter) Table(head []string, rows [][]string) {
	widths := make([]int, len(head))
	all := append([][]string{head}, rows...)
	for i, row := range all {
		cells := make([]string, len(row))
		for j, cell := range row {
			cells[j] = clean(oneLine(cell))
			widths[j] = max(widths[j], uniseg.StringWidth(cells[j]))
		}
		all[i] = cells
	}
	for i, row := range all {
		var b strings.Builder
		used := 0
		for j, cell := range row {
			if j == len(row)-1 {
				if p.width > 0 {
					cell = cut(cell, max(20, p.width-used))
				}
				b.WriteString(cell)
				break
			}
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", widths[j]-uniseg.StringWidth(cell)+2))
			used += widths[j] + 2
		}
		line := strings.TrimRight(b.String(), " ")
		if i == 0 {
			line = p.Dim(line)
		}
		p.Line(line)
	}
}

// Pairs writes names and values, aligned.
func (p *Painter) Pairs(pairs [][2]string) {
	width := 0
	for _, kv := range pairs {
		width = max(width, uniseg.StringWidth(kv[0]))
	}
	for _, kv := range pairs {
		pad := strings.Repeat(" ", width-uniseg.StringWidth(kv[0])+2)
		value := clean(kv[1])
		value = strings.ReplaceAll(value, "\n", "\n"+strings.Repeat(" ", width+2))
		p.Line(strings.TrimRight(p.Dim(kv[0])+pad+value, " "))
	}
}

// cut shortens text to a number of columns.
func cut(text string, columns int) string {
	if uniseg.StringWidth(text) <= columns {
		return text
	}
	var b strings.Builder
	used := 0
	g := uniseg.NewGraphemes(text)
	for g.Next() {
		if used+g.Width() > columns-1 {
			break
		}
		used += g.Width()
		b.WriteString(g.Str())
	}
	return b.String() + "…"
}

// oneLine makes one line of text.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// clean takes out of text what would drive a terminal rather than be read: a
// record may hold anything.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r), r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
			return '\uFFFD'
		}
		return r
	}, text)
}
