package note

import (
	"regexp"
	"strings"
)

// seen are the attributes whose values a reader of the page can see.
var seen = regexp.MustCompile(`(?is)\s(?:alt|title)\s*=\s*(?:"([^"]*)"|'([^']*)')`)

// tag writes what is left of an HTML tag or comment: nothing, a gap, or a
// text that it holds.
func (p *plain) tag(s string) {
	if inner, ok := strings.CutPrefix(s, "<!--"); ok {
		p.out.WriteString(strings.TrimSuffix(inner, "-->"))
		return
	}
	if inner, ok := strings.CutPrefix(s, "<![CDATA["); ok {
		p.out.WriteString(strings.TrimSuffix(inner, "]]>"))
		return
	}
	kind, ok := elements[tagName(s)]
	switch {
	case !ok && !strings.Contains(tagName(s), "-"):
		p.out.WriteString(s) // code, or another language's tag
		return
	case kind != inlineElement:
		p.gap()
	}
	for _, m := range seen.FindAllStringSubmatch(s, -1) {
		if v := strings.TrimSpace(m[1] + m[2]); v != "" {
			p.gap()
			p.out.WriteString(entities(v))
			p.out.WriteByte(' ')
		}
	}
}

// gap writes a blank unless there is one.
func (p *plain) gap() {
	if s := p.out.String(); s != "" && s[len(s)-1] != '\n' && s[len(s)-1] != ' ' {
		p.out.WriteByte(' ')
	}
}

func tagName(s string) string {
	s = strings.TrimLeft(s, "</")
	if i := strings.IndexAny(s, " \t\n/>"); i >= 0 {
		s = s[:i]
	}
	return strings.ToLower(s)
}

type elementKind uint8

const (
	blockElement  elementKind = iota + 1 // parts the words around it
	inlineElement                        // may stand inside a word
)

// elements are the names of HTML, and those of SVG that are met in notes.
// Superscripts part words: they are notes and trade marks more often than
// parts of formulas.
var elements = elementTable()

func elementTable() map[string]elementKind {
	const block = `address article aside audio base blockquote body br button canvas caption center col colgroup datalist dd
		details dialog dir div dl dt embed fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head
		header hgroup hr html iframe img input legend li link main map area menu meta nav noframes noscript object ol
		optgroup option output p param picture pre progress meter script search section select slot source style summary
		sup svg path g rect circle line polygon polyline ellipse defs use video tbody td template textarea tfoot th thead
		title tr track table ul`
	const inline = `a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd label mark math q rp rt rtc ruby s
		samp small span strike strong sub time tt u var wbr`
	m := make(map[string]elementKind)
	for _, name := range strings.Fields(block) {
		m[name] = blockElement
	}
	for _, name := range strings.Fields(inline) {
		m[name] = inlineElement
	}
	return m
}
