package note

import (
	"bytes"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdownParser reads CommonMark with tables, task lists and the marks below.
// It leaves out what would lose words in a text that is only a part of a note:
//
//   - Link reference definitions stay text. The links that use them may be in
//     another chunk.
//   - HTML blocks are read as paragraphs, so that the Markdown in them counts.
//   - Fenced code is never given to it, see plain.go.
//
// A parser may be used by several goroutines.
var markdownParser = newMarkdownParser()

func newMarkdownParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewSetextHeadingParser(), 100),
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(wikilinkParser{}, 50),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewRawHTMLParser(), 400),
			util.Prioritized(markParser{}, 500),
		),
		parser.WithParagraphTransformers(
			util.Prioritized(extension.NewTableParagraphTransformer(), 200),
		),
	)
}

// A wikilinkParser reads [[page]], [[page|label]], the same with an
// exclamation mark in front, and footnote marks. It gives them as the text
// that a reader sees.
type wikilinkParser struct{}

// Trigger names the bytes that Parse is called for.
func (wikilinkParser) Trigger() []byte { return []byte{'[', '!'} }

// Parse reads one link or gives nil.
func (wikilinkParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	if n := footnoteMark(line); n > 0 {
		block.Advance(n)
		return ast.NewString(nil)
	}
	n := 0
	if line[0] == '!' {
		n = 1
	}
	rest, ok := bytes.CutPrefix(line[n:], []byte("[["))
	if !ok {
		return nil
	}
	end := bytes.Index(rest, []byte("]]"))
	if end <= 0 {
		return nil
	}
	inner := rest[:end]
	if bytes.IndexByte(inner, '[') >= 0 || len(bytes.TrimSpace(inner)) == 0 {
		return nil
	}
	block.Advance(n + 2 + end + 2)
	return ast.NewString(wikilinkText(inner))
}

// wikilinkText is the label, or the page with its section.
func wikilinkText(inner []byte) []byte {
	page, label, _ := bytes.Cut(inner, []byte{'|'})
	if label = bytes.TrimSpace(label); len(label) > 0 {
		return label
	}
	page = bytes.TrimSpace(bytes.TrimSuffix(bytes.TrimSpace(page), []byte{'\\'}))
	return bytes.TrimSpace(bytes.ReplaceAll(page, []byte{'#'}, []byte{' '}))
}

// footnoteMark measures "[^name]" and "[^name]:". Neither is part of the
// text, and left in place it would part the characters around it.
func footnoteMark(line []byte) int {
	if !bytes.HasPrefix(line, []byte("[^")) {
		return 0
	}
	end := bytes.IndexAny(line, "] \t\n")
	if end <= 2 || line[end] != ']' {
		return 0
	}
	if end+1 < len(line) {
		switch line[end+1] {
		case ':':
			rest := line[end+2:]
			return len(line) - len(bytes.TrimLeft(rest, " \t"))
		case '(', '[':
			return 0 // a link
		}
	}
	return end + 1
}

// A markParser reads emphasis, strikethrough and highlights. CommonMark asks
// for a blank or punctuation beside a mark that has punctuation on its other
// side; Chinese text has no blanks, so a neighbour that is Chinese will do.
type markParser struct{}

// Trigger names the bytes that Parse is called for.
func (markParser) Trigger() []byte { return []byte{'*', '_', '~', '='} }

// Parse reads a run of marks or gives nil, and it stays text.
func (p markParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	c := line[0]
	if before == rune(c) && c != '*' && c != '_' {
		return nil
	}
	d := parser.ScanDelimiter(line, before, 1, p)
	n := d.Length
	after := ' '
	if n < len(line) {
		after, _ = utf8.DecodeRune(line[n:])
	}
	if (c == '~' && n > 2) || (c == '=' && n != 2) || isProduct(c, n, before, after) {
		return nil
	}
	wide := isCJK(before) || isCJK(after)
	switch {
	case wide && c != '_':
		d.CanOpen = !util.IsSpaceRune(after)
		d.CanClose = !util.IsSpaceRune(before)
	case c == '~' || c == '=':
		// As for underscores: not inside a word, where a==b is code.
		left, right := d.CanOpen, d.CanClose
		d.CanOpen = left && (!right || util.IsPunctRune(before))
		d.CanClose = right && (!left || util.IsPunctRune(after))
	case wide:
		d.CanOpen = d.CanOpen || isCJK(before) && !util.IsSpaceRune(after)
		d.CanClose = d.CanClose || isCJK(after) && !util.IsSpaceRune(before)
	}
	if !d.CanOpen && !d.CanClose {
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + n)
	block.Advance(n)
	pc.PushDelimiter(d)
	return d
}

// isProduct is true for asterisks that multiply: 2*3, a*b, 2**8.
func isProduct(c byte, n int, before, after rune) bool {
	if c != '*' || before >= utf8.RuneSelf || after >= utf8.RuneSelf {
		return false
	}
	if n == 1 {
		return isWordByte(byte(before)) && isWordByte(byte(after))
	}
	return '0' <= before && before <= '9' && '0' <= after && after <= '9'
}

// IsDelimiter is true for the marks.
func (markParser) IsDelimiter(b byte) bool { return b == '*' || b == '_' || b == '~' || b == '=' }

// CanOpenCloser is true for two runs of the same mark, and of the same
// length where that matters.
func (markParser) CanOpenCloser(opener, closer *parser.Delimiter) bool {
	return opener.Char == closer.Char && (opener.Char == '*' || opener.Char == '_' || opener.Length == closer.Length)
}

// OnMatch gives the node for a pair. All marks are dropped alike.
func (markParser) OnMatch(consumes int) ast.Node { return ast.NewEmphasis(consumes) }
