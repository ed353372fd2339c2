package pager

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
)

// model is what a scope should be, in the simplest way: every number is worked
// out anew when it is asked for, and an operation that fails is one whose copy of
// the model is thrown away. It shares no code with what it is compared with.
type model struct {
	budget     int
	count      func(string) int // what a text costs
	lru        bool
	pages      map[string]*modelPage
	tick, turn int64
	ticked     bool // policy_tick counts the turns
	nextSeq    int64
	nextPlace  int64 // in working
	generation int64
	published  *modelText // nil before the first
	// causes are the operations since the last publication that changed bytes of
	// the prefix as it stood before them.
	causes      []Operation
	checkpoints []modelCheckpoint
	made        int64 // pages ever made, for their order
	policy      modelPolicy
	// What policy_tick counted, and the greatest turn that it was given.
	turns, turnsAtRun, lastTurn int64
}

type modelPolicy struct {
	mode              string
	everyN            int64
	threshold, target int // per cent of the budget
	keep              int
}

type modelText struct {
	text   string // perhaps cut, when a page was removed for good
	whole  string
	size   int
	stable int
}

type modelPage struct {
	id        string
	made      int64
	revisions []modelRevision // by version
	tier      Tier
	outline   bool
	seq       int64 // in core
	place     int64 // in working
	row       int64 // version at which the outline row last changed
	pin       string
	touched   int64
	hits      int64
	evicted   int64 // turn of the last eviction, -1
	protected int64
	folded    [2]int64 // of a milestone: the places that it stands for
	copyOf    string   // "kind:id" of the record, "" for a page of its own
}

type modelRevision struct {
	version                         int64
	operation                       string
	title, summary, content, source string
	tags                            []string
	importance                      float64
	links                           []string
}

type modelCheckpoint struct {
	id    loci.ID
	pages map[string]modelPage // as they were; their last revision is the current one
}

func newModel(budget int, count func(string) int) *model {
	return &model{budget: budget, count: count, pages: map[string]*modelPage{}, nextSeq: 1, nextPlace: 1, lastTurn: -1,
		policy: modelPolicy{"manual", 10, 80, 60, 3}}
}

// clone is a copy that an operation may spoil.
func (m *model) clone() *model {
	c := *m
	c.pages = map[string]*modelPage{}
	for id, p := range m.pages {
		q := *p
		q.revisions = slices.Clone(p.revisions)
		for i := range q.revisions {
			q.revisions[i].links = slices.Clone(q.revisions[i].links)
		}
		c.pages[id] = &q
	}
	c.causes, c.checkpoints = slices.Clone(m.causes), slices.Clone(m.checkpoints)
	return &c
}

func (p *modelPage) current() *modelRevision { return &p.revisions[len(p.revisions)-1] }

// in gives the pages of a tier in the order in which they are rendered.
func (m *model) in(tier Tier) (out []*modelPage) {
	for _, p := range m.pages {
		if p.tier == tier {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *modelPage) int {
		return cmp.Or(cmp.Compare(a.seq, b.seq), cmp.Compare(a.place, b.place), cmp.Compare(a.made, b.made))
	})
	return out
}

// text renders the window.
func (m *model) text() (text string, stable int) {
	return modelRender(m.in(Core), m.in(Working))
}

func modelRender(core, working []*modelPage) (text string, stable int) {
	list := func(pages []*modelPage) string {
		lines := make([]string, len(pages))
		for i, p := range pages {
			lines[i] = "\n" + p.line()
		}
		return strings.Join(lines, ",")
	}
	// A list is joined by commas before the newline; the text has them behind it.
	swap := func(s string) string { return strings.ReplaceAll(s, ",\n", "\n,") }
	prefix := `{"vc":1,"core":[` + swap(list(core)) + "\n"
	return prefix + `],"working":[` + swap(list(working)) + "\n]}", len(prefix)
}

func (p *modelPage) line() string {
	r := p.current()
	if p.outline {
		return fmt.Sprintf(`{"id":%s,"version":%d,"mode":"index","seq":%d,"title":%s,"summary":%s}`,
			modelString(p.id), p.row, p.seq, modelString(r.title), modelString(r.summary))
	}
	tags := make([]string, len(r.tags))
	for i, t := range r.tags {
		tags[i] = modelString(t)
	}
	return fmt.Sprintf(`{"id":%s,"version":%d,"mode":"full","title":%s,"tags":[%s],"content":%s}`,
		modelString(p.id), r.version, modelString(r.title), strings.Join(tags, ","), modelString(r.content))
}

// modelString is a JSON string, character by character.
func modelString(s string) string {
	out := `"`
	for _, c := range s {
		short := strings.IndexRune("\"\\\n\r\t\b\f", c)
		switch {
		case short >= 0:
			out += `\` + string(`"\nrtbf`[short])
		case c < ' ':
			out += fmt.Sprintf(`\u%04x`, c)
		default:
			out += string(c)
		}
	}
	return out + `"`
}

func (m *model) cost() int {
	text, _ := m.text()
	return m.count(text)
}

// coreCost is what the window would cost with nothing in working.
func (m *model) coreCost() int {
	text, _ := modelRender(m.in(Core), nil)
	return m.count(text)
}

// worth is a page's value against eviction.
func (m *model) worth(p *modelPage) int {
	i := int(math.Round(1000 * p.current().importance))
	r := int(math.Floor(8000 / float64(8+m.tick-p.touched)))
	f := min(1000, 200*int(math.Floor(math.Log2(float64(1+p.hits)))))
	return 5*i + 3*r + 2*f
}

// first gives the page that is evicted next, nil when none may be.
func (m *model) first(keep map[string]bool) (found *modelPage) {
	before := func(a, b *modelPage) bool {
		guarded := func(p *modelPage) bool { return p.protected > 0 && p.protected >= m.turn }
		if guarded(a) != guarded(b) {
			return guarded(b)
		}
		if wa, wb := m.worth(a), m.worth(b); !m.lru && wa != wb {
			return wa < wb
		}
		if a.touched != b.touched {
			return a.touched < b.touched
		}
		return a.place < b.place
	}
	for _, p := range m.in(Working) {
		if !keep[p.id] && (found == nil || before(p, found)) {
			found = p
		}
	}
	return found
}

// settle evicts one page after another until the budget holds.
func (m *model) settle(touched map[string]bool) (evicted []string, code Code) {
	if m.coreCost() > m.budget {
		return nil, ErrCoreOverBudget
	}
	return m.evictTo(m.budget, touched)
}

func (m *model) evictTo(limit int, keep map[string]bool) (evicted []string, code Code) {
	for m.cost() > limit {
		p := m.first(keep)
		if p == nil {
			return evicted, ErrBudgetExceeded
		}
		m.evict(p)
		evicted = append(evicted, p.id)
	}
	return evicted, ""
}

func (m *model) evict(p *modelPage) {
	m.move(p, Archive)
	p.evicted = m.turn
}

// move puts a page at the end of a tier, unless it is there.
func (m *model) move(p *modelPage, to Tier) {
	if p.tier == to {
		return
	}
	if p.tier == Archive && p.evicted >= 0 {
		if m.turn-p.evicted < 3 {
			p.protected = m.turn + 2
		}
		p.evicted = -1
	}
	p.tier, p.place = to, 0
	if to == Core {
		if p.seq == 0 {
			p.seq = m.nextSeq
			m.nextSeq++
		}
		return
	}
	p.seq, p.pin = 0, ""
	if to == Working {
		p.place = m.nextPlace
		m.nextPlace++
	}
}

// rows counts the rows of the outline.
func (m *model) rows() (n int) {
	for _, p := range m.pages {
		if p.outline {
			n++
		}
	}
	return n
}

// add adds a page to the archive.
func (m *model) add(id string, r modelRevision) *modelPage {
	m.made++
	p := &modelPage{id: id, made: m.made, revisions: []modelRevision{r}, tier: Archive, evicted: -1}
	m.pages[id] = p
	return p
}

// revise gives a page another revision.
func (p *modelPage) revise(r modelRevision) {
	was := p.current()
	r.version = was.version + 1
	if p.outline && (was.title != r.title || was.summary != r.summary) {
		p.row = r.version
	}
	p.revisions = append(p.revisions, r)
}

func sameModelRevision(a, b *modelRevision) bool {
	return a.title == b.title && a.summary == b.summary && a.content == b.content && a.source == b.source &&
		slices.Equal(a.tags, b.tags) && a.importance == b.importance && slices.Equal(a.links, b.links)
}

// publish publishes the window's bytes and gives what that changed, nil when
// they are the ones published last.
func (m *model) publish() *RenderEvent {
	text, stable := m.text()
	old := m.published
	if old != nil && old.whole == text {
		m.published = &modelText{text, text, len(text), stable}
		return nil
	}
	m.generation++
	e := &RenderEvent{Generation: m.generation, TextBytes: len(text), StablePrefixBytes: stable, First: old == nil, PrefixIntact: true}
	if old != nil {
		k := 0
		for k < len(old.text) && k < len(text) && old.text[k] == text[k] {
			k++
		}
		e.CommonBytes, e.InvalidatedBytes, e.RewrittenBytes, e.PrefixIntact = k, old.size-k, len(text)-k, k >= old.stable
	}
	m.published = &modelText{text, text, len(text), stable}
	return e
}

// broke notes an operation if it changed bytes of the prefix before it.
func (m *model) broke(before *model, op, pageID string) {
	was, stable := before.text()
	now, _ := m.text()
	if !strings.HasPrefix(now, was[:stable]) {
		m.causes = append(m.causes, Operation{op, pageID})
	}
}
