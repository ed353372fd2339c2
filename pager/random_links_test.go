package pager

import (
	"context"
	"fmt"
	"slices"

	"pgregory.net/rapid"
)

// someRows writes rows of the outline, and may fold them.
func (p *player) someRows() {
	for n := range rapid.IntRange(1, 5).Draw(p.rt, "rows") {
		p.doWrite(WriteRequest{Content: p.content(), Title: fmt.Sprint("step ", n), Summary: "done", Outline: new(true)})
	}
	if p.bool("then fold") {
		p.fold()
	}
}

func (p *player) organize() {
	req := OrganizeRequest{PageID: p.pageID(), Threshold: new(rapid.SampledFrom([]float64{0, 0.3, 0.9}).Draw(p.rt, "threshold")),
		Limit: new(rapid.IntRange(1, 4).Draw(p.rt, "limit"))}
	var res *OrganizeResult
	var evicted []string
	ok := p.try("organize", req.PageID, func() (err error) {
		res, err = p.cs.Organize(context.Background(), req)
		return err
	}, func(m *model) (code Code) {
		self := m.pages[req.PageID]
		switch {
		case self == nil:
			return ErrNotFound
		case self.copyOf != "":
			return ErrInvalidArgument
		case len(self.current().links) >= MaxLinks:
			return ErrLinkInvalid
		case res == nil || len(res.Linked) == 0:
			return ""
		}
		links := slices.Clone(self.current().links)
		for _, like := range res.Linked {
			peer := m.pages[like.PageID]
			if peer == nil || peer == self || peer.tier == Core || peer.copyOf != "" || like.Similarity < *req.Threshold {
				p.t.Fatalf("organize linked %s with %+v", self.id, like)
			}
			if !slices.Contains(links, peer.id) {
				links = append(links, peer.id)
			}
			peer.link(append(slices.Clone(peer.current().links), self.id), self.id)
			if like.Version != peer.current().version {
				p.t.Fatalf("organize says that %s is at version %d, not %d", peer.id, like.Version, peer.current().version)
			}
		}
		self.link(links, "")
		m.tick++
		self.touched = m.tick
		evicted, code = m.settle(map[string]bool{self.id: true})
		return code
	})
	if ok && (!slices.Equal(pageIDs(res.Evicted), evicted) || len(res.Linked) > *req.Limit) {
		p.t.Fatalf("organize answers %+v, the model evicted %v", res, evicted)
	}
}

// link gives a page other links, as a new revision, unless it has them; added is
// the one that may be there already.
func (p *modelPage) link(links []string, added string) {
	was := p.current()
	if slices.Equal(links, was.links) || added != "" && slices.Contains(was.links, added) {
		return
	}
	r := *was
	r.links, r.operation = links, "organize"
	p.revise(r)
}
