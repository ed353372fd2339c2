package pager

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestScopeModel runs random sequences of operations on a scope and on the model
// of one. After every step all must be the same, and what must always hold, hold.
func TestScopeModel(t *testing.T) {
	measures := []struct {
		counter Counter
		budgets []int
	}{
		{nil, []int{400, 700, 1200, 3000}},
		{lineTokens{}, []int{128, 180, 300, 800}},
		{textTokens{}, []int{128, 160, 220, 500}},
	}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "db")
		if err != nil {
			rt.Fatal(err)
		}
		c := measures[rapid.IntRange(0, len(measures)-1).Draw(rt, "measure")]
		budget := rapid.SampledFrom(c.budgets).Draw(rt, "budget")
		w := newWorld(rt, dir, Config{Scope: Scope{"project", "session"}, Budget: &budget, Counter: c.counter})
		// rapid ends a run that fails by a panic; the store must not stay open.
		defer func() {
			if w.db != nil {
				w.db.Close()
			}
		}()
		p := &player{world: w, rt: rt, budgets: c.budgets}
		rt.Repeat(p.actions())
		w.close()
		w.db = nil
	})
}

// player draws operations.
type player struct {
	*world
	rt      *rapid.T
	budgets []int
}

func (p *player) actions() map[string]func(*rapid.T) {
	one := func(do func()) func(*rapid.T) { return func(*rapid.T) { do() } }
	return map[string]func(*rapid.T){
		"write": one(p.write), "rewrite": one(p.rewrite), "publish": one(p.publishSome), "page in": one(p.pageIn), "page out": one(p.pageOut),
		"unpin": one(p.unpin), "forget": one(p.forget), "recall": one(p.recall), "compact": one(p.compact), "ingest": one(p.ingest),
		"fold": one(p.fold), "checkpoint": one(p.checkpoint), "restore": one(p.restore), "policy tick": one(p.policyTick),
		"rows": one(p.someRows), "organize": one(p.organize), "remember": one(p.remember), "change record": one(p.changeRecord),
		"seldom": one(p.seldom),
	}
}

// seldom does what matters less to the others.
func (p *player) seldom() {
	switch p.pick([]string{"reopen", "reconfigure", "read", "history", "search", "look", "record usage", "set policy", "later"}, "what") {
	case "reopen":
		p.reopen()
	case "reconfigure":
		p.reconfigure()
	case "read":
		p.read()
	case "history":
		p.history()
	case "search":
		p.search()
	case "look":
		p.look()
	case "record usage":
		p.recordUsage()
	case "set policy":
		p.setPolicy()
	default:
		p.clock.at = p.clock.at.Add(time.Second)
	}
}

// Few of these differ, so that pages meet.
var (
	someIDs    = []string{"a", "b", "c", "d", "e", "f", "g", "h", "i\"j", "漢", "k\\l"}
	someTitles = []string{"", "rules", "the \"goal\"", "tab\tand\nline", "目标\u2028"}
	someTexts  = []string{"x", "lorem ipsum dolor ", "a\\b\"c\x01\x1f", "漢字かな交じり", "<&/>\r\n\b\f"}
	someTags   = []string{"red", "blue", "Green", "tag with blank", "标签"}
)

func (p *player) bool(label string) bool { return rapid.Bool().Draw(p.rt, label) }
func (p *player) odds(n int, label string) bool {
	return rapid.IntRange(0, n-1).Draw(p.rt, label) == n-1
}
func (p *player) pick(from []string, label string) string {
	return rapid.SampledFrom(from).Draw(p.rt, label)
}

func (p *player) content() string {
	return strings.Repeat(p.pick(someTexts, "text"), rapid.IntRange(1, 12).Draw(p.rt, "times"))
}

// pageID gives the id of a page that is there, or, seldom, of none.
func (p *player) pageID() string {
	ids := p.ids()
	if len(ids) == 0 || p.odds(8, "other") {
		return p.pick(someIDs, "page")
	}
	return p.pick(ids, "page")
}

// ids gives the ids of all pages.
func (w *world) ids() []string {
	ids := make([]string, 0, len(w.m.pages))
	for id := range w.m.pages {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// draft draws a write but for its id and version.
func (p *player) draft() WriteRequest {
	req := WriteRequest{Content: p.content(), Title: p.pick(someTitles, "title"), Source: p.pick([]string{"", "tool"}, "source")}
	req.Tags = rapid.SliceOfN(rapid.SampledFrom(someTags), 0, 3).Draw(p.rt, "tags")
	if p.bool("has importance") {
		req.Importance = new(rapid.SampledFrom([]float64{0, 0.2, 0.5, 0.9, 1}).Draw(p.rt, "importance"))
	}
	if p.bool("has summary") {
		req.Summary = strings.Repeat(p.pick(someTexts, "summary"), 2)
	}
	req.Tier = Tier(p.pick([]string{"", "working", "working", "core", "archive"}, "tier"))
	switch rapid.IntRange(0, 5).Draw(p.rt, "outline") {
	case 0:
		req.Outline, req.Tier = new(true), ""
		if p.bool("proper") {
			req.Title, req.Summary = "row", "of the outline"
		}
	case 1:
		req.Outline = new(false)
	}
	if p.odds(4, "has reason") {
		req.PinReason = p.pick([]string{"it is the goal", "rule"}, "reason")
	}
	if ids := p.ids(); len(ids) > 0 && p.odds(3, "has links") {
		req.Links = rapid.SliceOfN(rapid.SampledFrom(ids), 0, 3).Draw(p.rt, "links")
	}
	return req
}

func (p *player) write() {
	req := p.draft()
	if p.bool("has id") {
		req.PageID = p.pick(someIDs, "page")
	}
	if p.odds(3, "expects") {
		req.ExpectedVersion = new(rapid.Int64Range(0, 3).Draw(p.rt, "version"))
	}
	p.doWrite(req)
}

// rewrite writes a page that is there, mostly as it has to be done.
func (p *player) rewrite() {
	ids := p.ids()
	if len(ids) == 0 {
		return
	}
	req := p.draft()
	req.PageID = p.pick(ids, "page")
	at := p.m.pages[req.PageID]
	req.ExpectedVersion = new(at.current().version)
	if p.odds(4, "as it is") {
		r := at.current()
		req.Content, req.Title, req.Summary, req.Source, req.Tags, req.Links = r.content, r.title, r.summary, r.source, r.tags, r.links
		req.Importance = &r.importance
	}
	p.doWrite(req)
}

func (p *player) doWrite(req WriteRequest) {
	var res *WriteResult
	var evicted []string
	changed := false
	id := req.PageID
	if id == "" { // a write that fails for its size does not tell which id it was to have
		id = p.nextPageID()
	}
	ok := p.try("write", req.PageID, func() (err error) {
		res, err = p.cs.Write(context.Background(), req)
		return err
	}, func(m *model) (code Code) {
		changed, evicted, code = m.write(id, &req)
		return code
	})
	if !ok {
		return
	}
	if res.Page.PageID != id {
		p.t.Fatalf("the page that was written is %s, not %s", res.Page.PageID, id)
	}
	if res.Changed != changed {
		p.t.Fatalf("write of %s says changed %v, the model %v", res.Page.PageID, res.Changed, changed)
	}
	if got := pageIDs(res.Evicted); !slices.Equal(got, evicted) {
		p.t.Fatalf("write evicted %v, the model %v", got, evicted)
	}
	at := p.m.pages[res.Page.PageID]
	if res.Page.Version != at.current().version || res.Page.Tier != at.tier || !slices.Equal(res.Page.Links, at.current().links) {
		p.t.Fatalf("write answers %+v, the model has %+v", res.Page, at)
	}
}

// nextPageID is the page id that the store will give.
func (p *player) nextPageID() (id string) {
	err := p.cs.with(context.Background(), "test", func(s *scope) error {
		next := s.state.NextPage
		for id = fmt.Sprint("p", next); p.m.pages[id] != nil; id = fmt.Sprint("p", next) {
			next++
		}
		return nil
	})
	if err != nil {
		p.t.Fatalf("the next page id: %v", err)
	}
	return id
}

func pageIDs(refs []Reference) []string {
	var out []string
	for _, r := range refs {
		out = append(out, r.PageID)
	}
	return out
}

// write is what a write should do.
func (m *model) write(id string, req *WriteRequest) (changed bool, evicted []string, code Code) {
	wantRow := req.Outline != nil && *req.Outline
	row := func() bool { return req.Title != "" && req.Summary != "" && (req.Tier == "" || req.Tier == Core) }
	if wantRow && !row() {
		return false, nil, ErrOutlineInvalid
	}
	p := m.pages[id]
	expected := int64(0)
	if req.ExpectedVersion != nil {
		expected = *req.ExpectedVersion
	}
	switch {
	case req.PageID == "" && expected != 0:
		return false, nil, ErrInvalidArgument
	case p == nil && expected != 0:
		return false, nil, ErrNotFound
	case p != nil && p.copyOf != "":
		return false, nil, ErrInvalidArgument
	case p != nil && (req.ExpectedVersion == nil || expected != p.current().version):
		return false, nil, ErrVersionConflict
	}
	r := modelRevision{version: 1, operation: "write", title: req.Title, summary: req.Summary, content: req.Content, source: req.Source, importance: 0.5}
	if req.Importance != nil {
		r.importance = *req.Importance
	}
	for _, tag := range req.Tags {
		if tag = strings.ToLower(tag); !slices.Contains(r.tags, tag) {
			r.tags = append(r.tags, tag)
		}
	}
	slices.Sort(r.tags)
	for _, link := range req.Links {
		if link == id || m.pages[link] == nil {
			return false, nil, ErrLinkInvalid
		}
		if !slices.Contains(r.links, link) {
			r.links = append(r.links, link)
		}
	}
	tier := req.Tier
	if p == nil {
		if req.PinReason != "" && !wantRow && tier != Core {
			return false, nil, ErrInvalidArgument
		}
		p = m.add(id, r)
	} else {
		switch {
		case req.Outline == nil && p.outline:
			wantRow = true
			if !row() {
				return false, nil, ErrOutlineInvalid
			}
		case tier == "" && p.outline && !wantRow:
			tier = Archive
		case tier == "":
			tier = p.tier
		}
		if wantRow {
			tier = Core
		}
		if req.PinReason != "" && tier != Core {
			return false, nil, ErrInvalidArgument
		}
		same := sameModelRevision(&r, p.current())
		pinned := req.PinReason != "" && req.PinReason != p.pin
		if same && wantRow == p.outline && tier == p.tier && !pinned {
			return false, nil, ""
		}
		if !same {
			p.revise(r)
		}
	}
	if wantRow {
		tier = Core
	} else if tier == "" {
		tier = Archive
	}
	m.tick++
	p.touched = m.tick
	if wantRow != p.outline {
		if wantRow && m.rows() >= 32 {
			return false, nil, ErrOutlineFull
		}
		p.outline, p.row = wantRow, 0
		if wantRow {
			p.row = p.current().version
		}
	}
	m.move(p, tier)
	if tier == Core && req.PinReason != "" {
		p.pin = req.PinReason
	}
	evicted, code = m.settle(map[string]bool{id: true})
	return true, evicted, code
}

// publishSome publishes by one of the operations that do.
func (p *player) publishSome() {
	ctx := context.Background()
	which := p.pick([]string{"snapshot", "since", "prefix", "render"}, "which")
	var since *int64
	if which == "since" {
		since = new(rapid.Int64Range(-1, p.m.generation+2).Draw(p.rt, "since"))
	}
	var snap *Snapshot
	var e *RenderEvent
	causes := p.m.causes
	p.try(which, "", func() (err error) {
		switch which {
		case "prefix":
			var parts *PrefixResult
			if parts, err = p.cs.Prefix(ctx, PrefixRequest{}); err == nil {
				snap = &parts.Snapshot
				snap.Text = new(parts.Prefix + parts.Tail)
			}
		case "render":
			snap, err = p.cs.Render(ctx, RenderRequest{Publish: true})
		default:
			snap, err = p.cs.Snapshot(ctx, SnapshotRequest{Since: since})
		}
		return err
	}, func(m *model) Code {
		e, m.causes = m.publish(), nil
		return ""
	})
	if changed := since == nil || *since != p.m.generation; snap.Changed != changed || (snap.Text != nil) != changed {
		p.t.Fatalf("snapshot since %v says changed %v; the generation is %d", since, snap.Changed, p.m.generation)
	}
	p.published(which, snap, e, causes)
}

// reopen closes the store and opens it: all must be as it was.
func (p *player) reopen() {
	p.reopenStore()
	p.check("reopen", p.m)
}

func (p *player) reopenStore() {
	p.world.close()
	p.open(Config{Scope: p.scope})
	if p.used() {
		return
	}
	// Nothing was stored, so the budget would be the default one.
	if err := p.db.Close(); err != nil {
		p.t.Fatalf("close: %v", err)
	}
	p.open(Config{Scope: p.scope, Budget: &p.m.budget, Counter: p.counter()})
}

// used says whether anything is stored of the scope.
func (w *world) used() (used bool) {
	w.inside(func(s *scope) { used = s.stored != nil })
	return used
}

// counter is the one by which the model counts.
func (w *world) counter() Counter {
	for _, c := range testCounters {
		if c != nil && w.m.count("漢 b\nc") == c.Count("漢 b\nc") {
			return c
		}
	}
	return nil
}

// reconfigure changes the budget, which may not be possible.
func (p *player) reconfigure() {
	budget := rapid.SampledFrom(p.budgets).Draw(p.rt, "new budget")
	p.try("reconfigure", "", func() error {
		cs, err := Open(context.Background(), p.db, Config{Scope: p.scope, Budget: &budget, Counter: p.counter(), Bytes: p.counter() == nil, Reconfigure: true})
		if err == nil {
			p.cs = cs
		}
		return err
	}, func(m *model) Code {
		m.budget = budget
		_, code := m.settle(nil)
		return code
	})
}
