package note

import (
	"html"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

// Bounds on what is given to the Markdown parser at once. Its time can grow
// with the square of links, of marks and of nesting, so none of them may grow
// with the text. Texts that people write stay far below.
const (
	maxParagraph = 4 << 10  // bytes of a paragraph or a line
	maxTable     = 64 << 10 // bytes of a table
	maxNesting   = 32       // quotes and lists that begin on one line
	maxBrackets  = 256      // in a paragraph
	maxCells     = 50_000   // rows times columns: short rows are filled up
)

// PlainText renders Markdown to what is indexed: the words that a reader sees,
// and what only a writer sees if it may be looked for.
//
//   - Kept: all text, code with the language of its fence, headings, list
//     numbers, table cells, link texts, the alt texts and titles of images and
//     links, bare addresses, front matter, HTML comments.
//   - Dropped: the marks of headings, lists, quotes, emphasis, highlights and
//     strikethrough, check boxes, footnote marks, HTML tags, and the
//     addresses behind link texts. An address is kept where it is all there
//     is, of an image then only its file name. Tags that are not HTML, as in
//     vector<int>, are text.
//   - [[page|label]] gives the label, [[page]] and ![[page]] the page.
//
// Identifiers keep their underscores. Emphasis is found without blanks around
// it where the text is Chinese. Lines that were wrapped in the middle of
// Chinese text are joined.
//
// PlainText reads block by block as Split does: the text of a note is that of
// its chunks. It returns for every input, in time that grows with its length.
func PlainText(markdown string) string {
	src := dedent(normalize(markdown))
	lines := splitLines(src)
	p := plain{src: src, lines: lines}
	p.out.Grow(len(src))
	for _, b := range scan(src, lines) {
		p.block(b)
	}
	return strings.TrimSpace(p.out.String())
}

// dedent moves text to the left that begins with the item of an inner list:
// it was cut from its outer items, and would be taken for code.
func dedent(s string) string {
	columns, n := indent(s)
	if columns < 4 || listMarker(s) == 0 {
		return s
	}
	prefix := s[:n]
	for line := range strings.SplitSeq(s, "\n") {
		if !isBlank(line) && !strings.HasPrefix(line, prefix) {
			return s
		}
	}
	return strings.ReplaceAll(s, "\n"+prefix, "\n")[n:]
}

// plain collects the text of blocks.
type plain struct {
	src   string
	lines []span
	out   strings.Builder
	md    []byte // the source of the tree that is being rendered
}

func (p *plain) block(b block) {
	at := span{p.lines[b.start].start, p.lines[b.end-1].end}
	switch {
	case b.kind == frontBlock:
		p.raw(p.lines[b.start+1:b.end-1], 0, 0)
	case b.kind == codeBlock:
		p.code(b)
	case b.kind == tableBlock && at.end-at.start <= maxTable && !p.hasLongLine(b):
		p.render(p.src[at.start:at.end])
	default:
		for at.start < at.end {
			n := at.end - at.start
			if n > maxParagraph {
				n = cut(p.src[at.start:at.end], maxParagraph/utf8.UTFMax)
			}
			p.render(p.src[at.start : at.start+n])
			at.start += n
		}
	}
}

func (p *plain) hasLongLine(b block) bool {
	for _, l := range p.lines[b.start:b.end] {
		if l.end-l.start > maxParagraph {
			return true
		}
	}
	return false
}

// code writes fenced code as it is, without quote markers and the indent of
// its fence.
func (p *plain) code(b block) {
	lines := p.lines[b.start+1 : b.end]
	if b.closed {
		lines = lines[:len(lines)-1]
	}
	p.newLine()
	p.out.WriteString(b.fence.info)
	p.raw(lines, b.fence.depth, b.fence.column)
}

func (p *plain) raw(lines []span, depth, column int) {
	for _, l := range lines {
		s, _ := unquote(p.src[l.start:l.end], depth)
		for n := 0; n < column && s != "" && s[0] == ' '; n++ {
			s = s[1:]
		}
		p.newLine()
		p.out.WriteString(strings.TrimRight(s, " \t"))
	}
}

// newLine begins a line unless one has just begun.
func (p *plain) newLine() {
	if s := p.out.String(); s != "" && s[len(s)-1] != '\n' {
		p.out.WriteByte('\n')
	}
}

// render writes the text of some Markdown.
func (p *plain) render(md string) {
	p.newLine()
	mark := p.out.Len()
	defer func() {
		// The parser is not ours. Should it fail on some text, that text
		// is still found, with its marks.
		if recover() != nil && p.out.Len() == mark {
			p.out.WriteString(md)
		}
	}()
	if isProse(md) {
		p.out.WriteString(md)
		return
	}
	p.md = []byte(tame(md))
	doc := markdownParser.Parse(text.NewReader(p.md))
	_ = ast.Walk(doc, p.visit)
}

// isProse is true for one line in which nothing can be a mark.
func isProse(s string) bool {
	return !strings.ContainsAny(s, "*_~=`[]<>&\\#|+\n\t") && s != "" && s[0] != ' ' && s[0] != '-' && listMarker(s) == 0
}

// tame takes from s what would make its parsing slow.
func tame(s string) string {
	deep, pipes, rows := false, 0, 0
	for line := range strings.SplitSeq(s, "\n") {
		_, more := containers(line)
		deep = deep || more
		pipes = max(pipes, strings.Count(line, "|"))
		rows++
	}
	if deep {
		var b strings.Builder
		for line := range strings.SplitAfterSeq(s, "\n") {
			if n, more := containers(line); more {
				line = line[n:]
			}
			b.WriteString(line)
		}
		s = b.String()
	}
	if (pipes+1)*rows > maxCells {
		s = strings.ReplaceAll(s, "|", " ")
	}
	if strings.Count(s, "[") > maxBrackets && !strings.Contains(s, "|") {
		s = strings.ReplaceAll(s, "[", " ")
	}
	return s
}

// containers measures the quote and list markers that a line begins with, and
// says whether they are too many.
func containers(line string) (n int, deep bool) {
	for count := 0; ; count++ {
		rest := line[n:]
		_, i := indent(rest)
		switch {
		case i < len(rest) && rest[i] == '>':
			n += i + 1
		case listMarker(rest) > 0:
			n += listMarker(rest)
		default:
			return n, count > maxNesting
		}
	}
}

// visit writes the text of one node.
func (p *plain) visit(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		switch n := n.(type) {
		case *ast.Link:
			p.address(n, n.Destination, n.Title)
		case *ast.Image:
			p.address(n, fileName(n.Destination), n.Title)
		case *east.TableCell:
			if n.NextSibling() != nil {
				p.out.WriteByte('\t')
			}
		case *ast.CodeSpan, *ast.AutoLink, *ast.String:
		default:
			return ast.WalkContinue, nil
		}
		p.part(n.NextSibling())
		return ast.WalkContinue, nil
	}
	if n.Type() == ast.TypeBlock && n.Kind() != east.KindTableCell {
		if n.Parent() == nil || n.Parent().Kind() != ast.KindListItem || n.PreviousSibling() != nil {
			p.newLine()
		}
	}
	switch n := n.(type) {
	case *ast.Link, *ast.Image, *ast.CodeSpan, *ast.AutoLink, *ast.String:
		p.part(n)
	}
	switch n := n.(type) {
	case *ast.ListItem:
		p.number(n)
	case *ast.CodeBlock, *ast.FencedCodeBlock:
		p.codeLines(n)
		return ast.WalkSkipChildren, nil
	case *ast.Text:
		p.text(n)
	case *ast.String:
		p.out.Write(n.Value)
	case *ast.CodeSpan:
		p.codeSpan(n)
		return ast.WalkSkipChildren, nil
	case *ast.AutoLink:
		p.out.Write(n.Label(p.md))
	case *ast.RawHTML:
		p.tag(string(n.Segments.Value(p.md)))
	}
	return ast.WalkContinue, nil
}

// part writes a blank in front of n if a Latin word would go on there: the
// styles of code and links part words for a reader, so they part them here.
func (p *plain) part(n ast.Node) {
	out := p.out.String()
	if n == nil || out == "" || !isWordByte(out[len(out)-1]) {
		return
	}
	switch n := n.(type) {
	case *ast.Text:
		if n.Segment.Len() == 0 || !isWordByte(p.md[n.Segment.Start]) {
			return
		}
	case *ast.String:
		if len(n.Value) == 0 {
			return
		}
	}
	p.out.WriteByte(' ')
}

// number writes the number of an ordered list's item as it stands in the
// source: 1984. may begin a sentence.
func (p *plain) number(n *ast.ListItem) {
	list, ok := n.Parent().(*ast.List)
	if !ok || !list.IsOrdered() || n.FirstChild() == nil {
		return
	}
	end := n.FirstChild().Pos()
	if end < 0 || end > len(p.md) {
		return
	}
	for end > 0 && (p.md[end-1] == ' ' || p.md[end-1] == '\t') {
		end--
	}
	start := end - 1
	for start > 0 && '0' <= p.md[start-1] && p.md[start-1] <= '9' {
		start--
	}
	if start >= 0 && start < end-1 {
		p.out.Write(p.md[start:end])
		p.out.WriteByte(' ')
	}
}

func (p *plain) codeLines(n ast.Node) {
	if f, ok := n.(*ast.FencedCodeBlock); ok && f.Info != nil {
		p.out.Write(f.Info.Segment.Value(p.md))
		p.out.WriteByte('\n')
	}
	for i := range n.Lines().Len() {
		l := n.Lines().At(i)
		p.out.Write(l.Value(p.md))
	}
}

func (p *plain) codeSpan(n ast.Node) {
	cell := n.Parent() != nil && n.Parent().Kind() == east.KindTableCell
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		t, ok := c.(*ast.Text)
		if !ok {
			continue
		}
		s := string(t.Segment.Value(p.md))
		if cell {
			s = strings.ReplaceAll(s, `\|`, "|")
		}
		p.out.WriteString(strings.ReplaceAll(s, "\n", " "))
	}
}

// text writes a run of characters and the line break behind it.
func (p *plain) text(n *ast.Text) {
	s := n.Segment.Value(p.md)
	if n.IsRaw() {
		p.out.Write(s)
	} else {
		p.out.WriteString(unescape(string(s)))
	}
	switch {
	case n.HardLineBreak(), n.SoftLineBreak() && !p.isWrapped(n):
		p.newLine()
	}
}

// isWrapped says whether the line break behind n was made by an editor that
// wraps long lines: it parts two Chinese characters and its line is long.
// Writers break short lines on purpose.
func (p *plain) isWrapped(n *ast.Text) bool {
	const wrapped = 25
	if n.HardLineBreak() {
		return false
	}
	out := p.out.String()
	last, _ := utf8.DecodeLastRuneInString(out)
	next := n.NextSibling()
	for next != nil && next.Kind() == ast.KindEmphasis {
		next = next.FirstChild()
	}
	t, ok := next.(*ast.Text)
	if !ok || !isIdeograph(last) {
		return false
	}
	first, _ := utf8.DecodeRune(t.Segment.Value(p.md))
	if !isIdeograph(first) {
		return false
	}
	line := out[max(0, len(out)-4*wrapped):]
	if i := strings.LastIndexByte(line, '\n'); i >= 0 {
		line = line[i+1:]
	} else if len(out) > len(line) {
		return true
	}
	return utf8.RuneCountInString(line) >= wrapped
}

// isIdeograph is true for characters of words that are written without blanks.
func isIdeograph(r rune) bool {
	return 0x3040 <= r && r < 0xA4D0 || 0xF900 <= r && r < 0xFB00 || 0x20000 <= r && r < 0x40000
}

// address writes what a link or an image has besides its text.
func (p *plain) address(n ast.Node, destination, title []byte) {
	if !hasText(n) {
		p.out.Write(destination)
	}
	if len(title) > 0 {
		p.out.WriteByte(' ')
		p.out.WriteString(unescape(string(title)))
	}
}

// hasText says whether anything in n is seen.
func hasText(n ast.Node) bool {
	found := false
	_ = ast.Walk(n, func(c ast.Node, entering bool) (ast.WalkStatus, error) {
		switch c := c.(type) {
		case *ast.Text:
			found = found || c.Segment.Len() > 0
		case *ast.String, *ast.AutoLink:
			found = true
		case *ast.Image:
			found = found || c != n // writes at least its file name
		}
		if found {
			return ast.WalkStop, nil
		}
		return ast.WalkContinue, nil
	})
	return found
}

// fileName is the last piece of an address. Images in the text itself have
// none.
func fileName(destination []byte) []byte {
	s := string(destination)
	if strings.HasPrefix(s, "data:") {
		return nil
	}
	if i := strings.IndexAny(s, "?#"); i >= 0 {
		s = s[:i]
	}
	return []byte(s[strings.LastIndexByte(s, '/')+1:])
}

var entity = regexp.MustCompile(`&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});`)

// unescape resolves backslashes and entities.
func unescape(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return entities(s)
	}
	var b strings.Builder
	start := 0
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '\\' && isPunctuation(s[i+1]) {
			b.WriteString(entities(s[start:i]))
			b.WriteByte(s[i+1])
			i++
			start = i + 1
		}
	}
	b.WriteString(entities(s[start:]))
	return b.String()
}

func entities(s string) string {
	if strings.IndexByte(s, '&') < 0 {
		return s
	}
	return entity.ReplaceAllStringFunc(s, html.UnescapeString)
}

func isPunctuation(c byte) bool {
	return '!' <= c && c <= '/' || ':' <= c && c <= '@' || '[' <= c && c <= '`' || '{' <= c && c <= '~'
}
