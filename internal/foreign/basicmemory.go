package foreign

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/loci-memory/loci"
)

// The patterns of Basic Memory. An observation is "[category] text", which a box
// to tick, a link and a wiki link are not.
var (
	observationPattern = regexp.MustCompile(`^\[([^\[\]()]+)\][ \t]+(\S[\s\S]*)$`)
	wikiPattern        = regexp.MustCompile(`\[\[([^\[\]\n]+)\]\]`)
	contextPattern     = regexp.MustCompile(`^([\s\S]*\S)[ \t]+\(([^()\n]+)\)$`)
	hashtagPattern     = regexp.MustCompile(`(?:^|\s)#([\p{L}\p{N}_/-]+)`)
	relationPattern    = regexp.MustCompile(`^([^\[\]\n]*)\[\[([^\[\]\n]+)\]\](?:[ \t]*\(([^()\n]+)\))?$`)
)

// The relations that Basic Memory takes where a page names none.
const (
	relatesTo = "relates_to" // an item that is a link and nothing else
	linksTo   = "links_to"   // a link within a text
)

// ReadBasicMemory reads a folder of Basic Memory. A page becomes an entity, its
// relations and the links in its texts become relations, and its observations and
// all the rest of its text become memories that carry its title as a tag.
func ReadBasicMemory(name string, folder fs.FS) (*Plan, error) {
	p := newPlan(name)
	b := &basicReader{graph: newGraph(p, BasicMemory), names: map[string]string{}}
	b.graph.fallback = "note"
	err := eachPage(p, folder, func(file, text string) error {
		b.pages = append(b.pages, parsePage(file, text, true))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, g := range b.pages {
		b.learn(g)
	}
	for _, g := range b.pages {
		if err := b.page(g); err != nil {
			return nil, err
		}
	}
	b.graph.finish()
	return p.finish(), nil
}

// basicReader is one folder under way.
type basicReader struct {
	graph *graphPlan
	pages []*page
	names map[string]string // what a link may say, in small letters, to the title
	taken map[string]string // title to page
}

// learn notes under which names links lead to a page: title, permalink, path.
func (b *basicReader) learn(g *page) {
	title := g.title()
	link := strings.TrimSuffix(g.name, path.Ext(g.name))
	if b.taken == nil {
		b.taken = map[string]string{}
	}
	if _, twice := b.taken[title]; twice {
		// Two pages of one title are two entities: the path tells them apart.
		title += " (" + link + ")"
		g.front = cloneWith(g.front, "title", title)
	}
	b.taken[title] = g.name
	permalink, _ := g.front["permalink"].(string)
	for _, name := range []string{title, link, permalink, path.Base(link)} {
		if name = strings.ToLower(strings.TrimSpace(name)); name == "" {
			continue
		}
		if _, known := b.names[name]; !known {
			b.names[name] = title
		}
	}
}

func cloneWith(m map[string]any, key string, value any) map[string]any {
	out := map[string]any{key: value}
	for k, v := range m {
		if k != key {
			out[k] = v
		}
	}
	return out
}

// target is the title that a link leads to.
func (b *basicReader) target(link string) string {
	link, _, _ = strings.Cut(link, "|")
	link, _, _ = strings.Cut(link, "#")
	link = strings.TrimSpace(link)
	if title, known := b.names[strings.ToLower(link)]; known {
		return title
	}
	if title, known := b.names[strings.ToLower(strings.TrimPrefix(link, "memory://"))]; known {
		return title
	}
	return link
}

func (b *basicReader) page(g *page) error {
	p, title := b.graph.p, g.title()
	if g.bad != "" {
		p.Leave(g.name, "front matter", "", "cannot be read: %s; it is taken as text", g.bad)
	}
	kind, _ := g.front["type"].(string)
	if label(kind, loci.MaxLabelBytes) == "" {
		kind = "note"
	}
	in := loci.EntityInput{Attributes: map[string][]string{}}
	for _, key := range sortedKeys(g.front) {
		switch key {
		case "title", "type", "tags":
			continue
		}
		name := label(key, loci.MaxLabelBytes)
		if name == "" {
			continue
		}
		switch v := g.front[key].(type) {
		case nil:
		case []any:
			for _, one := range v {
				in.Attributes[name] = append(in.Attributes[name], fmt.Sprint(one))
			}
		case map[string]any:
			p.Leave(g.name, "front matter", key, "is an object, and attributes are lists of words")
		default:
			in.Attributes[name] = []string{fmt.Sprint(v)}
		}
	}
	in.Tags = p.tags(g.name, "entity", g.frontTags())
	where := g.name + ":1"
	if !b.graph.entity(where, 1, title, kind, in) {
		return nil
	}
	last := &p.Entities[len(p.Entities)-1].Input
	last.Evidence = evidence(BasicMemory, g.name, 0, 0, "")
	if err := p.count(); err != nil {
		return err
	}
	for i := range g.blocks {
		b.block(g, title, &g.blocks[i])
		if err := p.count(); err != nil {
			return err
		}
	}
	return nil
}

// block takes an observation, a relation or a text for what it is.
func (b *basicReader) block(g *page, title string, l *block) {
	p := b.graph.p
	if l.item {
		if m := relationPattern.FindStringSubmatch(l.text); m != nil {
			predicate := strings.TrimSpace(m[1])
			if predicate == "" {
				predicate = relatesTo
			}
			b.link(g, l, title, predicate, m[2], m[3])
			return
		}
		if m := observationPattern.FindStringSubmatch(l.text); m != nil && !isBox(m[1]) {
			b.observation(g, l, title, m[1], m[2])
			b.links(g, l, title)
			return
		}
	}
	about := title
	switch h := l.heading(); strings.ToLower(h) {
	case "", "observations", "relations", strings.ToLower(title):
	default:
		about += " > " + h
	}
	p.passage(BasicMemory, g, l, about, append([]string{title}, append(g.frontTags(), hashtags(l.text)...)...))
	b.links(g, l, title)
}

// isBox says whether a category is a box to tick.
func isBox(category string) bool {
	return len(category) == 1 && strings.ContainsAny(category, " xX-/")
}

func hashtags(text string) []string {
	var out []string
	for _, m := range hashtagPattern.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

func (b *basicReader) observation(g *page, l *block, title, category, text string) {
	p, where := b.graph.p, fmt.Sprintf("%s:%d", g.name, l.line)
	said := ""
	if m := contextPattern.FindStringSubmatch(text); m != nil {
		text, said = m[1], m[2]
	}
	text, ok := p.text(where, "memory", "", text)
	if !ok {
		return
	}
	in := loci.MemoryInput{Reasoning: said}
	in.Tags = append(g.frontTags(), hashtags(text)...)
	if kind := label(category, loci.MaxLabelBytes); kind != "" {
		in.MemoryType = &kind
	}
	in.Metadata = object(pair{"path", g.name}, pair{"category", category})
	before := len(p.Memories)
	b.graph.observe(where, l.line, title, text, in)
	p.Memories[before].Input.Evidence = evidence(BasicMemory, g.name, l.line, l.lines, text)
}

// links makes relations of the links within a text.
func (b *basicReader) links(g *page, l *block, title string) {
	for _, m := range wikiPattern.FindAllStringSubmatch(l.text, -1) {
		b.link(g, l, title, linksTo, m[1], "")
	}
}

func (b *basicReader) link(g *page, l *block, title, predicate, target, said string) {
	p, before := b.graph.p, len(b.graph.p.Relations)
	b.graph.relate(fmt.Sprintf("%s:%d", g.name, l.line), l.line, title, predicate, b.target(target), said)
	if len(p.Relations) > before {
		p.Relations[before].Input.Evidence = evidence(BasicMemory, g.name, l.line, l.lines, "")
	}
}
