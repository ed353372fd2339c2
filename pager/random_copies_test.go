package pager

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci"
)

// memories gives the page ids of the copies that the namespace's memories have
// or may get.
func (w *world) memories() (ids []string) {
	w.t.Helper()
	page, err := w.db.Memories().List(context.Background(), loci.PageRequest{Filter: loci.ReadFilter{Namespace: &w.scope[0]}, Limit: new(100)})
	if err != nil {
		w.t.Fatalf("list: %v", err)
	}
	for _, m := range page.Items {
		ids = append(ids, fmt.Sprintf("memory:%d", m.ID))
	}
	return ids
}

// remember writes a memory beside the context.
func (p *player) remember() {
	if _, err := p.db.Memories().Upsert(context.Background(), loci.MemoryInput{Judgment: p.content() + " lorem", RecordInput: loci.RecordInput{Namespace: &p.scope[0]}}); err != nil {
		p.t.Fatalf("upsert: %v", err)
	}
	p.check("remember", p.m)
	if p.bool("page it in") {
		ids := p.memories()
		p.pageInRecord(ids[len(ids)-1])
	}
}

// changeRecord pages a memory in, changes it, or deletes it with its copies.
func (p *player) changeRecord() {
	ctx := context.Background()
	ids := p.memories()
	if len(ids) == 0 {
		return
	}
	id := p.pick(ids, "memory")
	var number loci.ID
	if _, err := fmt.Sscanf(id, "memory:%d", &number); err != nil {
		p.t.Fatalf("%v", err)
	}
	switch p.pick([]string{"page in", "change", "delete"}, "what") {
	case "page in":
		p.pageInRecord(id)
	case "change":
		in := loci.MemoryInput{Judgment: p.content() + " ipsum", RecordInput: loci.RecordInput{ID: number, Namespace: &p.scope[0]}}
		if _, err := p.db.Memories().Upsert(ctx, in); err != nil {
			p.t.Fatalf("upsert: %v", err)
		}
		p.check("change", p.m)
	default:
		if p.bool("not loaded") {
			p.reopenStore()
		}
		if _, err := p.db.Memories().Delete(ctx, number, loci.ReadFilter{Namespace: &p.scope[0]}); err != nil {
			p.t.Fatalf("delete: %v", err)
		}
		before := p.m.clone()
		if p.m.pages[id] != nil {
			p.m.erase(id)
		}
		// One that was never published broke nothing that anybody has.
		if at := p.m.published; at != nil && len(at.text) < at.size {
			p.m.broke(before, opErase, "")
		}
		p.check("delete", before)
	}
}

func (p *player) pageInRecord(id string) {
	tier := Tier(p.pick([]string{"working", "core"}, "tier"))
	var res *PageInResult
	var evicted []string
	ok := p.try("page_in", id, func() (err error) {
		res, err = p.cs.PageIn(context.Background(), PageInRequest{PageID: id, Tier: tier})
		return err
	}, func(m *model) (code Code) {
		fresh := p.record(id)
		at := m.pages[id]
		changed := true
		switch {
		case at == nil:
			at = m.add(id, *fresh)
			at.copyOf = id
		case at.current().version != fresh.version:
			fresh.links = at.current().links
			at.revisions = append(at.revisions, *fresh)
		default:
			changed = at.tier == Archive || at.tier == Working && tier == Core
		}
		m.use(id)
		if !changed {
			return ""
		}
		if at.tier != Core && (tier == Core || at.tier == Archive) {
			m.move(at, tier)
		}
		if at.tier == Working && m.costBeside(at, nil) > m.budget {
			return ErrBudgetExceeded
		}
		evicted, code = m.settle(map[string]bool{id: true})
		return code
	})
	if ok && !slices.Equal(pageIDs(res.Evicted), evicted) {
		p.t.Fatalf("page_in evicted %v, the model %v", pageIDs(res.Evicted), evicted)
	}
}
