package pager

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"pgregory.net/rapid"
)

// use counts a use of pages that changes nothing else.
func (m *model) use(ids ...string) {
	if len(ids) == 0 {
		return
	}
	m.tick++
	for _, id := range ids {
		m.pages[id].hits++
		m.pages[id].touched = m.tick
	}
}

func (p *player) read() {
	id := p.pageID()
	var version *int64
	if p.odds(3, "old") {
		version = new(rapid.Int64Range(1, 4).Draw(p.rt, "version"))
	}
	var res *ReadResult
	var want modelRevision
	ok := p.try("read", id, func() (err error) {
		res, err = p.cs.Read(context.Background(), ReadRequest{PageID: id, Version: version})
		return err
	}, func(m *model) Code {
		at := m.pages[id]
		if at == nil {
			return ErrNotFound
		}
		want = *at.current()
		if version != nil {
			i := slices.IndexFunc(at.revisions, func(r modelRevision) bool { return r.version == *version })
			if i < 0 {
				return ErrNotFound
			}
			want = at.revisions[i]
		}
		m.use(id)
		return ""
	})
	if ok && (res.Content != want.content || res.Page.Version != want.version || res.Page.Title != want.title) {
		p.t.Fatalf("read of %s gives %+v, the model has %+v", id, res, want)
	}
}

func (p *player) history() {
	id := p.pageID()
	p.try("history", id, func() error {
		res, err := p.cs.History(context.Background(), HistoryRequest{PageID: id})
		if err == nil && len(res.Versions) != len(p.m.pages[id].revisions) {
			p.t.Fatalf("%+v", res)
		}
		return err
	}, func(m *model) Code {
		if m.pages[id] == nil {
			return ErrNotFound
		}
		m.use(id)
		return ""
	})
}

// fits says what a page would cost beside core and the pages of keep.
func (m *model) costBeside(page *modelPage, keep map[string]bool) int {
	var working []*modelPage
	for _, o := range m.in(Working) {
		if keep[o.id] || o.id == page.id {
			working = append(working, o)
		}
	}
	if page.tier != Working {
		working = append(working, page)
	}
	text, _ := modelRender(m.in(Core), working)
	return m.count(text)
}

func (p *player) pageIn() {
	req := PageInRequest{PageID: p.pageID(), Tier: Tier(p.pick([]string{"", "working", "core"}, "tier"))}
	if at := p.m.pages[req.PageID]; at != nil && at.copyOf != "" {
		p.pageInRecord(req.PageID)
		return
	}
	if req.Tier == Core && p.bool("has reason") {
		req.Reason = "pinned"
	}
	var res *PageInResult
	var evicted []string
	changed := false
	ok := p.try("page_in", req.PageID, func() (err error) {
		res, err = p.cs.PageIn(context.Background(), req)
		return err
	}, func(m *model) (code Code) {
		at := m.pages[req.PageID]
		if at == nil {
			return ErrNotFound
		}
		pinned := (req.Tier == Core || at.tier == Core) && req.Reason != "" && req.Reason != at.pin
		if at.tier == Core && !pinned || at.tier == Working && req.Tier != Core {
			m.use(at.id)
			return ""
		}
		changed = true
		m.use(at.id)
		to := Working
		if req.Tier == Core || at.tier == Core {
			to = Core
		}
		m.move(at, to)
		if req.Reason != "" {
			at.pin = req.Reason
		}
		if to == Working && m.costBeside(at, nil) > m.budget {
			return ErrBudgetExceeded
		}
		evicted, code = m.settle(map[string]bool{at.id: true})
		return code
	})
	if ok && (res.Changed != changed || !slices.Equal(pageIDs(res.Evicted), evicted) || res.Page.Tier != p.m.pages[req.PageID].tier) {
		p.t.Fatalf("page_in answers %+v, evicted in the model: %v, changed %v", res, evicted, changed)
	}
}

func (p *player) pageOut() {
	id := p.pageID()
	p.try("page_out", id, func() error {
		_, err := p.cs.PageOut(context.Background(), PageOutRequest{PageID: id})
		return err
	}, func(m *model) Code {
		at := m.pages[id]
		switch {
		case at == nil:
			return ErrNotFound
		case at.tier == Core:
			return ErrPinned
		}
		m.move(at, Archive)
		return ""
	})
}

func (p *player) unpin() {
	id := p.pageID()
	var res *UnpinResult
	var evicted []string
	ok := p.try("unpin", id, func() (err error) {
		res, err = p.cs.Unpin(context.Background(), UnpinRequest{PageID: id})
		return err
	}, func(m *model) (code Code) {
		at := m.pages[id]
		switch {
		case at == nil:
			return ErrNotFound
		case at.outline:
			return ErrPinned
		case at.tier == Archive:
			return ErrInvalidArgument
		case at.tier == Working:
			return ""
		}
		m.tick++
		at.touched = m.tick
		m.move(at, Working)
		evicted, code = m.settle(map[string]bool{id: true})
		return code
	})
	if ok && !slices.Equal(pageIDs(res.Evicted), evicted) {
		p.t.Fatalf("unpin evicted %v, the model %v", pageIDs(res.Evicted), evicted)
	}
}

func (p *player) forget() {
	id := p.pageID()
	var res *ForgetResult
	linked := 0
	ok := p.try("forget", id, func() (err error) {
		res, err = p.cs.Forget(context.Background(), ForgetRequest{PageID: id})
		return err
	}, func(m *model) Code {
		if m.pages[id] == nil {
			return ErrNotFound
		}
		linked = m.erase(id)
		return ""
	})
	if ok && (res.LinksStripped != linked || res.PageID != id) {
		p.t.Fatalf("forget answers %+v, %d pages linked to it", res, linked)
	}
}

// erase removes a page for good.
func (m *model) erase(id string) (linked int) {
	delete(m.pages, id)
	for _, o := range m.pages {
		had := false
		for i := range o.revisions {
			r := &o.revisions[i]
			n := len(r.links)
			r.links = slices.DeleteFunc(r.links, func(link string) bool { return link == id })
			had = had || len(r.links) < n
		}
		if had {
			linked++
		}
	}
	if m.published != nil {
		now := *m.published
		for _, lead := range []string{"\n{\"id\":", "\n,{\"id\":"} {
			if i := strings.Index(now.text, lead+modelString(id)+","); i >= 0 {
				now.text = now.text[:i+1]
			}
		}
		m.published = &now
	}
	return linked
}

var someQueries = []string{"lorem ipsum", "rules", "漢字", "goal red", "目标", "nothing like it"}

func (p *player) search() {
	req := p.question()
	var res *SearchResult
	p.try("search", "", func() (err error) {
		res, err = p.cs.Search(context.Background(), req)
		return err
	}, func(m *model) Code {
		if res == nil {
			return ""
		}
		var ids []string
		for _, f := range res.Results {
			if m.pages[f.PageID] != nil {
				ids = append(ids, f.PageID)
			} else if f.Origin == nil {
				p.t.Fatalf("search found %s, which is not there", f.PageID)
			}
		}
		p.checkFound(res.Results)
		m.use(ids...)
		return ""
	})
}

func (p *player) question() SearchRequest {
	req := SearchRequest{Query: p.pick(someQueries, "query"), Limit: new(rapid.IntRange(1, 8).Draw(p.rt, "limit"))}
	if p.odds(3, "records") {
		req.Kinds = []loci.Kind{loci.KindPage, loci.KindMemory}
	}
	return req
}

// checkFound checks what needs no ranking: no result twice, the best first.
func (p *player) checkFound(found []Found) {
	p.t.Helper()
	seen := map[string]bool{}
	for i, f := range found {
		if seen[f.PageID] || i > 0 && f.Score > found[i-1].Score {
			p.t.Fatalf("found: %+v", found)
		}
		seen[f.PageID] = true
		if at := p.m.pages[f.Via]; f.Via != "" && (at == nil || !slices.Contains(at.current().links, f.PageID)) {
			p.t.Fatalf("%s was reached by %s, which does not link to it", f.PageID, f.Via)
		}
	}
}

func (p *player) recall() {
	req := RecallRequest{SearchRequest: p.question()}
	if p.odds(4, "silent") {
		req.Publish = new(false)
	}
	var res *RecallResult
	var admitted, skipped, evicted []string
	var e *RenderEvent
	causes := p.m.causes
	if !p.try("recall", "", func() (err error) {
		res, err = p.cs.Recall(context.Background(), req)
		return err
	}, func(m *model) (code Code) {
		if res == nil {
			return ""
		}
		p.checkFound(res.Ranked)
		admitted, skipped, evicted, code = m.recall(p.world, res)
		if code == "" && req.Publish == nil {
			e, m.causes = m.publish(), nil
		}
		return code
	}) {
		return
	}
	var gotSkipped []string
	for _, s := range res.Skipped {
		gotSkipped = append(gotSkipped, s.PageID)
	}
	if !slices.Equal(pageIDs(res.Admitted), admitted) || !slices.Equal(pageIDs(res.Evicted), evicted) || !slices.Equal(gotSkipped, skipped) {
		p.t.Fatalf("recall admitted %v, evicted %v, skipped %v; the model %v, %v, %v", pageIDs(res.Admitted), pageIDs(res.Evicted), gotSkipped,
			admitted, evicted, skipped)
	}
	if req.Publish == nil {
		p.published("recall", res.Context, e, causes)
	}
}

// recall is what a recall should do with what it found.
func (m *model) recall(w *world, res *RecallResult) (admitted, skipped, evicted []string, code Code) {
	if !m.ticked {
		m.turn++
	}
	keep := map[string]bool{}
	var uses []string
	ticked := false
	hit := func(at *modelPage) {
		if !ticked {
			m.tick++
			ticked = true
		}
		at.hits++
		at.touched = m.tick
		keep[at.id] = true
	}
	for _, f := range res.Ranked {
		at := m.pages[f.PageID]
		var fresh *modelRevision
		if f.Origin != nil {
			fresh = w.record(f.PageID)
		}
		switch {
		case at != nil && at.tier == Core:
			hit(at)
			continue
		case at == nil: // a record
			probe := &modelPage{id: f.PageID, tier: Archive, revisions: []modelRevision{*fresh}}
			if m.costBeside(probe, keep) > m.budget {
				skipped = append(skipped, f.PageID)
				continue
			}
			at = m.add(f.PageID, *fresh)
			at.copyOf = f.PageID
		default:
			was := at.revisions
			if fresh != nil && fresh.version != at.current().version {
				fresh.links = at.current().links
				at.revisions = append(slices.Clone(was), *fresh)
			}
			if m.costBeside(at, keep) > m.budget {
				at.revisions = was
				skipped, uses = append(skipped, at.id), append(uses, at.id)
				continue
			}
		}
		hit(at)
		if at.tier == Archive {
			m.move(at, Working)
			admitted = append(admitted, at.id)
		}
	}
	evicted, code = m.settle(keep)
	m.use(uses...)
	return admitted, skipped, evicted, code
}

// record gives a memory as a copy of it should show it; nil when there is none.
func (w *world) record(pageID string) *modelRevision {
	w.t.Helper()
	var id loci.ID
	if _, err := fmt.Sscanf(pageID, "memory:%d", &id); err != nil {
		return nil
	}
	m, err := w.db.Memories().Get(context.Background(), id, loci.ReadFilter{Namespace: &w.scope[0]})
	if err != nil {
		return nil
	}
	return &modelRevision{version: m.Revision, content: m.Judgment, source: "memory", tags: m.Tags, importance: 0.5}
}
