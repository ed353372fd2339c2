package graph

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Formula is a relation written as a line of text:
//
//	predicate(subject) = object
//	predicate(subject, object)
type Formula struct {
	Predicate, Subject, Object string
	Line                       int // from 1
}

// FormulaLimits bounds what ParseFormulas reads. Zero stands for the default.
type FormulaLimits struct {
	Bytes    int // of the text, 8 MiB by default
	Formulas int // 100,000 by default
	Name     int // bytes of a name, 1,024 by default
	Errors   int // errors reported, 20 by default; reading stops there
}

// A FormulaError says where a text departs from the form, and what was
// expected there. Lines and columns count from 1, columns in characters.
type FormulaError struct {
	Line, Column int
	Message      string
}

// Error gives the place and the message. It holds no names from the text.
func (e *FormulaError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
}

// ParseFormulas reads one formula a line. Blank lines are skipped.
//
// A name is whatever stands between the signs, without the blanks around it;
// it may have blanks inside. A name that has one of the signs ( ) , = in it, or
// begins with a quote, is written in quotes, 'so', "so" or “so”; a backslash
// in quotes makes the next character stand for itself. The full-width signs
// （ ） ， ＝ are the same as the plain ones. #, % or // begin a comment at the start
// of a line, after a blank, and after a closing bracket or quote; elsewhere
// they belong to the name, as in C#.
//
// The formulas come in the order of the text. If some lines are wrong there
// are no formulas, and the error joins a *FormulaError for each such line, up
// to the limit. O(text).
func ParseFormulas(text string, limits FormulaLimits) ([]Formula, error) {
	limits.fill()
	if len(text) > limits.Bytes {
		return nil, &FormulaError{1, 1, fmt.Sprintf("the text has %d bytes; at most %d are read at a time", len(text), limits.Bytes)}
	}
	text = strings.TrimPrefix(text, "\ufeff")
	var found []Formula
	var wrong []error
	number := 0
	for line := range strings.Lines(text) {
		number++
		line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		p := lineParser{text: line, limit: limits.Name}
		f, some := p.formula()
		switch {
		case p.err != "":
			wrong = append(wrong, &FormulaError{number, utf8.RuneCountInString(line[:p.errAt]) + 1, p.err})
		case some && len(found) == limits.Formulas:
			wrong = append(wrong, &FormulaError{number, 1, fmt.Sprintf("at most %d formulas are read at a time; split the text", limits.Formulas)})
			return nil, errors.Join(wrong...)
		case some:
			f.Line = number
			found = append(found, f)
		}
		if len(wrong) == limits.Errors {
			break
		}
	}
	if wrong != nil {
		return nil, errors.Join(wrong...)
	}
	return found, nil
}

func (l *FormulaLimits) fill() {
	for _, f := range []struct {
		field *int
		value int
	}{{&l.Bytes, 8 << 20}, {&l.Formulas, 100_000}, {&l.Name, 1024}, {&l.Errors, 20}} {
		if *f.field <= 0 {
			*f.field = f.value
		}
	}
}

// String writes the formula so that ParseFormulas reads the same one.
func (f Formula) String() string {
	return quoteName(f.Predicate) + "(" + quoteName(f.Subject) + ") = " + quoteName(f.Object)
}

func quoteName(s string) string {
	first, _ := utf8.DecodeRuneInString(s)
	plain := s != "" && closing(first) == 0 && strings.IndexFunc(s, func(r rune) bool { return sign(r) != 0 }) < 0 && !commentInside(s)
	if plain {
		return s
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

func commentInside(s string) bool {
	blank := true
	for i, r := range s {
		if blank && comment(s[i:]) {
			return true
		}
		blank = unicode.IsSpace(r)
	}
	return false
}

// sign gives the plain form of a sign, 0 for any other character.
func sign(r rune) rune {
	switch r {
	case '(', '（':
		return '('
	case ')', '）':
		return ')'
	case ',', '，':
		return ','
	case '=', '＝':
		return '='
	}
	return 0
}

// closing gives the quote that ends what r opens, 0 if r opens nothing.
func closing(r rune) rune {
	switch r {
	case '"', '\'':
		return r
	case '“':
		return '”'
	}
	return 0
}

func comment(s string) bool {
	return strings.HasPrefix(s, "#") || strings.HasPrefix(s, "%") || strings.HasPrefix(s, "//")
}

// A lineParser reads one line. After the first error it reads on without
// effect.
type lineParser struct {
	text  string
	at    int
	limit int
	err   string
	errAt int
}

func (p *lineParser) fail(at int, format string, args ...any) {
	if p.err == "" {
		p.err, p.errAt = fmt.Sprintf(format, args...), at
	}
}

func (p *lineParser) peek() (rune, int) { return utf8.DecodeRuneInString(p.text[p.at:]) }

func (p *lineParser) blanks() {
	for p.at < len(p.text) {
		r, size := p.peek()
		if !unicode.IsSpace(r) {
			return
		}
		p.at += size
	}
}

// done says whether nothing but a comment is left.
func (p *lineParser) done() bool {
	p.blanks()
	if p.at == len(p.text) {
		return true
	}
	// Right after one of these a name begins, whatever its first character.
	before, _ := utf8.DecodeLastRuneInString(p.text[:p.at])
	if s := sign(before); s != 0 && s != ')' {
		return false
	}
	return comment(p.text[p.at:])
}

// expect reads one of the signs and says which.
func (p *lineParser) expect(what string, signs ...rune) rune {
	if p.err != "" {
		return 0
	}
	if p.done() {
		p.tooEarly(what)
		return 0
	}
	r, size := p.peek()
	s := sign(r)
	if s == 0 || !slices.Contains(signs, s) {
		p.fail(p.at, "expected %s%s, as in predicate(a) = b or predicate(a, b)", what, p.found(r))
		return 0
	}
	p.at += size
	return s
}

func (p *lineParser) tooEarly(what string) {
	hint := ""
	if p.at < len(p.text) {
		hint = "; what follows is a comment: a name that begins so goes in quotes"
	}
	p.fail(p.at, "expected %s, as in predicate(a) = b or predicate(a, b), but the line ends%s", what, hint)
}

// found names what stands in place of the expected if it is a sign; anything
// else might be a piece of a record's text.
func (p *lineParser) found(r rune) string {
	if s := sign(r); s != 0 {
		return fmt.Sprintf(", found %q", string(s))
	}
	return ""
}

func (p *lineParser) formula() (f Formula, some bool) {
	if !utf8.ValidString(p.text) {
		p.fail(invalidAt(p.text), "not UTF-8: save the text in that encoding")
		return f, true
	}
	if p.done() {
		return f, false
	}
	f.Predicate = p.name("the predicate")
	p.expect(`"("`, '(')
	f.Subject = p.name("the name of an entity")
	if p.expect(`")" or ","`, ')', ',') == ',' {
		f.Object = p.name("the name of an entity")
		p.expect(`")"`, ')')
	} else {
		p.expect(`"="`, '=')
		f.Object = p.name("the name of an entity")
	}
	if p.err == "" && !p.done() {
		r, _ := p.peek()
		p.fail(p.at, "expected the end of the line%s: one formula a line, and names with signs in quotes", p.found(r))
	}
	return f, true
}

func invalidAt(s string) int {
	for i, r := range s {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(s[i:]); size == 1 {
				return i
			}
		}
	}
	return 0
}

// name reads a name, in quotes or bare.
func (p *lineParser) name(what string) string {
	if p.err != "" {
		return ""
	}
	if p.done() {
		p.tooEarly(what)
		return ""
	}
	begin := p.at
	var name string
	if r, size := p.peek(); closing(r) != 0 {
		p.at += size
		name = p.quoted(begin, closing(r))
	} else {
		name = p.bare()
	}
	switch {
	case p.err != "":
	case name == "":
		r, _ := p.peek()
		p.fail(begin, "expected %s%s: a name is not empty", what, p.found(r))
	case len(name) > p.limit:
		p.fail(begin, "a name of %d bytes: at most %d are allowed", len(name), p.limit)
	case strings.TrimSpace(name) != name:
		p.fail(begin, "blanks at the start or end of a name: move them out of the quotes")
	}
	return name
}

func (p *lineParser) quoted(begin int, end rune) string {
	var b strings.Builder
	for p.at < len(p.text) {
		r, size := p.peek()
		p.control(r)
		p.at += size
		if r == end {
			return b.String()
		}
		if r == '\\' && p.at < len(p.text) {
			r, size = p.peek()
			p.control(r)
			p.at += size
		}
		b.WriteRune(r)
	}
	p.fail(begin, "the quote that opens here is not closed on this line")
	return ""
}

func (p *lineParser) bare() string {
	begin := p.at
	blank := false
	for p.at < len(p.text) {
		r, size := p.peek()
		if sign(r) != 0 || blank && comment(p.text[p.at:]) {
			break
		}
		blank = unicode.IsSpace(r)
		p.at += size
	}
	name := strings.TrimSpace(p.text[begin:p.at])
	if i := strings.IndexFunc(name, unicode.IsControl); i >= 0 {
		p.fail(begin+i, "a control character in a name: write a blank instead")
	}
	return name
}

func (p *lineParser) control(r rune) {
	if unicode.IsControl(r) {
		p.fail(p.at, "a control character in a name: write a blank instead")
	}
}
