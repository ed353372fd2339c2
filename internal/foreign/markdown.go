package foreign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"go.yaml.in/yaml/v3"
)

// block is a piece of a Markdown page that stands on its own: an item of a list
// with all that is under it, a paragraph, a table, a piece of code.
type block struct {
	text     string
	line     int // the first, from 1
	lines    int
	item     bool     // of a list, its bullet taken off
	headings []string // under which it stands, outermost first
}

// page is a Markdown file taken apart.
type page struct {
	name   string // path in the folder, or the file's name
	front  map[string]any
	blocks []block
	bad    string // why its front matter cannot be read
}

// title is the page's own, else the name of its file.
func (g *page) title() string {
	if s, ok := g.front["title"].(string); ok && strings.TrimSpace(s) != "" {
		return strings.TrimSpace(s)
	}
	base := path.Base(g.name)
	return strings.TrimSuffix(base, path.Ext(base))
}

// frontTags are the tags of the front matter: a list, or words with commas.
func (g *page) frontTags() []string {
	var out []string
	switch v := g.front["tags"].(type) {
	case []any:
		for _, t := range v {
			out = append(out, strings.TrimPrefix(strings.TrimSpace(fmt.Sprint(t)), "#"))
		}
	case string:
		for t := range strings.SplitSeq(v, ",") {
			out = append(out, strings.TrimPrefix(strings.TrimSpace(t), "#"))
		}
	}
	return out
}

// maxFrontBytes bounds front matter.
const maxFrontBytes = 1 << 16

// parsePage takes a page apart. With flat, an item within an item is one of its
// own.
func parsePage(name, text string, flat bool) *page {
	g := &page{name: name}
	lines := strings.Split(strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n"), "\n")
	start := g.frontMatter(lines)
	w := &blockWalk{page: g, flat: flat}
	for i := start; i < len(lines); i++ {
		w.line(lines[i], i+1)
	}
	w.end()
	return g
}

// frontMatter reads what stands between two lines of dashes at the top, and
// gives the line after it.
func (g *page) frontMatter(lines []string) int {
	if len(lines) == 0 || strings.TrimRight(lines[0], " \t") != "---" {
		return 0
	}
	size := 0
	for i, l := range lines[1:] {
		if size += len(l) + 1; size > maxFrontBytes {
			return 0
		}
		if l = strings.TrimRight(l, " \t"); l != "---" && l != "..." {
			continue
		}
		var front map[string]any
		if err := yaml.Unmarshal([]byte(strings.Join(lines[1:i+1], "\n")), &front); err != nil {
			g.bad = strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " ")
			return 0
		}
		g.front = front
		return i + 2
	}
	return 0
}

// blockWalk gathers blocks line by line.
type blockWalk struct {
	page     *page
	flat     bool
	headings []heading
	cur      []string
	start    int
	item     bool
	indent   int    // of the text of the item
	fence    string // that a piece of code ends with
	blank    bool   // the line before was blank, inside an item
	last     int    // the last line that is not blank
}

type heading struct {
	level int
	text  string
}

func (w *blockWalk) end() {
	text := strings.TrimSpace(strings.Join(w.cur, "\n"))
	if text != "" {
		b := block{text: text, line: w.start, lines: w.last - w.start + 1, item: w.item}
		for _, h := range w.headings {
			b.headings = append(b.headings, h.text)
		}
		w.page.blocks = append(w.page.blocks, b)
	}
	w.cur, w.item, w.blank, w.fence = nil, false, false, ""
}

func (w *blockWalk) add(text string, n int) {
	if len(w.cur) == 0 {
		w.start = n
	}
	w.cur, w.last = append(w.cur, text), n
}

func (w *blockWalk) line(text string, n int) {
	text = strings.TrimRight(text, " \t")
	indent := len(text) - len(strings.TrimLeft(text, " \t"))
	body := text[indent:]
	switch {
	case w.fence != "":
		w.add(text, n)
		if strings.HasPrefix(body, w.fence) && strings.Trim(body, w.fence[:1]) == "" {
			if w.fence = ""; !w.item {
				w.end()
			}
		}
		return
	case body == "":
		if w.item {
			w.blank = true
			w.cur = append(w.cur, "")
		} else {
			w.end()
		}
		return
	}
	if level, title, ok := headingOf(text); ok {
		w.end()
		for len(w.headings) > 0 && w.headings[len(w.headings)-1].level >= level {
			w.headings = w.headings[:len(w.headings)-1]
		}
		if title != "" {
			w.headings = append(w.headings, heading{level, title})
		}
		return
	}
	if isRule(body) && (!w.item || w.blank) {
		w.end()
		return
	}
	if width := bullet(body); width > 0 && (w.flat || !w.item || indent < w.indent) {
		w.end()
		w.add(body[width:], n)
		w.item, w.indent = true, indent+width
	} else {
		if w.item && w.blank && indent < min(w.indent, 2) {
			w.end()
		}
		if w.item {
			text = text[min(indent, w.indent):]
		}
		w.blank = false
		w.add(text, n)
	}
	if f := fenceOf(strings.TrimLeft(w.cur[len(w.cur)-1], " \t")); f != "" {
		w.fence = f
	}
}

// headingOf reads a line such as "## Title ##".
func headingOf(text string) (level int, title string, ok bool) {
	if strings.HasPrefix(text, "    ") {
		return 0, "", false
	}
	text = strings.TrimLeft(text, " ")
	for level < len(text) && text[level] == '#' {
		level++
	}
	rest := text[level:]
	if level == 0 || level > 6 || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
		return 0, "", false
	}
	title = strings.TrimSpace(rest)
	if cut := strings.TrimRight(title, "#"); cut == "" || strings.HasSuffix(cut, " ") {
		title = strings.TrimSpace(cut)
	}
	return level, title, true
}

// isRule says whether a line only draws one.
func isRule(body string) bool {
	bare := strings.ReplaceAll(body, " ", "")
	return len(bare) >= 3 && (strings.Trim(bare, "-") == "" || strings.Trim(bare, "*") == "" || strings.Trim(bare, "_") == "")
}

// bullet is the width of a list's bullet and the blanks after it; 0 for none.
func bullet(body string) int {
	n := 0
	switch {
	case strings.ContainsRune("-*+", rune(body[0])):
		n = 1
	default:
		for n < len(body) && n < 9 && body[n] >= '0' && body[n] <= '9' {
			n++
		}
		if n == 0 || n == len(body) || body[n] != '.' && body[n] != ')' {
			return 0
		}
		n++
	}
	blanks := len(body[n:]) - len(strings.TrimLeft(body[n:], " \t"))
	if blanks == 0 {
		return 0
	}
	return n + blanks
}

// fenceOf is the fence that a line opens, "" for none.
func fenceOf(body string) string {
	for _, c := range []string{"`", "~"} {
		n := len(body) - len(strings.TrimLeft(body, c))
		if n >= 3 && !(c == "`" && strings.Contains(body[n:], "`")) {
			return strings.Repeat(c, n)
		}
	}
	return ""
}

// ReadMarkdown reads the Markdown files of a folder: each item of a list and each
// paragraph becomes a memory. It begins with the heading that it stands under,
// without which most items say nothing.
func ReadMarkdown(name string, folder fs.FS) (*Plan, error) {
	p := newPlan(name)
	if err := eachPage(p, folder, p.markdown); err != nil {
		return nil, err
	}
	return p.finish(), nil
}

// ReadMarkdownFile is ReadMarkdown for one file.
func ReadMarkdownFile(name string, r io.Reader) (*Plan, error) {
	switch strings.ToLower(path.Ext(name)) {
	case ".json", ".jsonl": // of another memory, which would come in as one long text
		return nil, errs.Invalid("path", "is JSON and no Markdown: say of which memory it is")
	}
	p := newPlan(name)
	if text, ok := p.pageText(name, r); ok {
		if err := p.markdown(name, text); err != nil {
			return nil, err
		}
	}
	return p.finish(), nil
}

func (p *Plan) markdown(file, text string) error {
	g := parsePage(file, text, false)
	if g.bad != "" {
		p.Leave(file, "front matter", "", "cannot be read: %s; it is taken as text", g.bad)
	}
	for i := range g.blocks {
		p.passage(Markdown, g, &g.blocks[i], g.blocks[i].heading(), g.frontTags())
		if err := p.count(); err != nil {
			return err
		}
	}
	return nil
}

// heading is the innermost heading that a block stands under.
func (b *block) heading() string {
	if n := len(b.headings); n > 0 {
		return b.headings[n-1]
	}
	return ""
}

// passage makes a memory of a block, which begins with what it is about.
func (p *Plan) passage(source Source, g *page, b *block, about string, tags []string) {
	where := fmt.Sprintf("%s:%d", g.name, b.line)
	text, ok := p.text(where, "memory", "", b.text)
	if !ok {
		return
	}
	quote := text
	if about = clean(about); about != "" && !strings.HasPrefix(text, about) {
		between := ": "
		if !b.item {
			between = "\n\n"
		}
		text = about + between + text
	}
	if len(text) > loci.MaxTextBytes {
		p.Leave(where, "memory", "", "is %d bytes long, at most %d are allowed", len(text), loci.MaxTextBytes)
		return
	}
	if text == quote {
		quote = ""
	}
	in := loci.MemoryInput{Judgment: text}
	in.Tags = p.tags(where, "memory", tags)
	in.Evidence = evidence(source, g.name, b.line, b.lines, quote)
	in.Metadata = object(pair{"path", g.name}, pair{"headings", strings.Join(b.headings, " > ")})
	p.Memories = append(p.Memories, Memory{
		Where: where, Key: string(source) + ":" + g.name + "#" + Hash(append([]string{b.text}, b.headings...)...), Input: in,
	})
}

// eachPage reads every Markdown file of a folder in the order of their paths.
// Links are not followed, and folders whose names begin with a dot are passed by.
func eachPage(p *Plan, folder fs.FS, f func(file, text string) error) error {
	var files []string
	err := fs.WalkDir(folder, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil && name == ".":
			return err
		case err != nil:
			p.Leave(name, "file", "", "cannot be read")
			if d != nil && d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			if name != "." && strings.HasPrefix(d.Name(), ".") {
				return fs.SkipDir
			}
			if strings.Count(name, "/") >= maxDepth {
				p.Leave(name, "folder", "", "lies more than %d folders deep", maxDepth)
				return fs.SkipDir
			}
			return nil
		}
		switch strings.ToLower(path.Ext(name)) {
		case ".md", ".markdown", ".mdown":
		default:
			p.Leave(name, "file", "", "is no Markdown")
			return nil
		}
		if !d.Type().IsRegular() {
			p.Leave(name, "file", "", "is a link or no regular file, and is not followed")
			return nil
		}
		if files = append(files, name); len(files) > MaxFiles {
			return errs.Invalid("path", "holds more than %d files: import it in parts", MaxFiles)
		}
		return nil
	})
	if err != nil {
		if _, coded := errors.AsType[*errs.Error](err); coded {
			return err
		}
		return errs.Wrap(errs.IO, err, "the folder could not be read")
	}
	slices.Sort(files)
	total := 0
	for _, name := range files {
		text, ok := p.readPage(folder, name)
		if !ok {
			continue
		}
		if total += len(text); total > MaxFolderBytes {
			return errs.Invalid("path", "holds more than %d bytes of Markdown: import it in parts", MaxFolderBytes)
		}
		if err := f(name, text); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) readPage(folder fs.FS, name string) (string, bool) {
	f, err := folder.Open(name)
	if err != nil {
		p.Leave(name, "file", "", "cannot be read")
		return "", false
	}
	defer f.Close()
	return p.pageText(name, f)
}

// pageText is a page as text; false, and listed, when it is none.
func (p *Plan) pageText(name string, r io.Reader) (string, bool) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxPageBytes+1))
	switch {
	case err != nil:
		p.Leave(name, "file", "", "cannot be read")
	case len(raw) > MaxPageBytes:
		p.Leave(name, "file", "", "has more than %d bytes", MaxPageBytes)
	case !utf8.Valid(raw):
		p.Leave(name, "file", "", "is not valid UTF-8")
	case strings.TrimSpace(string(raw)) == "":
		p.Leave(name, "file", "", "is empty")
	default:
		return string(raw), true
	}
	return "", false
}
