package pager

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

const (
	defaultThreshold     = 0.55
	defaultOrganizeLimit = 3
	maxOrganizeLimit     = 20
	// maxCandidates bounds the pages that a page is compared with.
	maxCandidates = 50
)

// How pages are compared.
const (
	methodEmbedding = "embedding"
	methodTFIDF     = "tf-idf"
)

// OrganizeRequest links a page with those that are like it.
type OrganizeRequest struct {
	PageID    string   `json:"page_id"`
	Threshold *float64 `json:"threshold,omitempty"` // least cosine, 0..1, default 0.55
	Limit     *int     `json:"limit,omitempty"`     // peers at most, 1..20, default 3
}

// SimilarPage is a page that is like another.
type SimilarPage struct {
	PageID     string  `json:"page_id"`
	Version    int64   `json:"version"`
	Similarity float64 `json:"similarity"` // the cosine, to six decimals
	// Reason says why it was skipped: "linked" (both ways already), "core" (its
	// revision would rewrite the prefix), "copy" (of a record), "links_full" (it
	// has 32), "page_full" (the page itself has 32 by now) or "changed" (since it
	// was compared).
	Reason string `json:"reason,omitempty"`
}

// OrganizeResult says what was linked. Links are candidates by likeness and say
// nothing of facts.
type OrganizeResult struct {
	Method  string        `json:"method"` // "embedding" or "tf-idf"
	Page    Reference     `json:"page"`
	Changed bool          `json:"changed"`
	Linked  []SimilarPage `json:"linked"`  // most alike first, with their new versions
	Skipped []SimilarPage `json:"skipped"` // like enough, but not linked, and why
	Evicted []Reference   `json:"evicted"`
}

// Organize links a page, both ways, with the pages of the scope that are most
// like it: by the cosine of their embeddings, or of their tf-idf vectors where
// the page has no embedding. Those that cannot be linked are skipped, and the
// next ones take their places; those linked already count, so that asking again
// changes nothing. Nothing is merged.
func (cs *Store) Organize(ctx context.Context, req OrganizeRequest) (*OrganizeResult, error) {
	const op = "organize"
	o, err := req.check()
	if err != nil {
		return nil, withOp(op, err)
	}
	for range maxAttempts {
		out, err := cs.organize(ctx, op, o)
		if !errors.Is(err, errStale) {
			return out, withOp(op, err)
		}
	}
	return nil, withOp(op, fail(ErrBusy, "", "the page keeps changing: retry"))
}

// errStale says that a page was changed while others were looked for.
var errStale = errors.New("the page was changed meanwhile")

// organizer is a request that was checked.
type organizer struct {
	pageID    string
	threshold float64
	limit     int
}

// check looks at what needs no scope.
func (r *OrganizeRequest) check() (*organizer, error) {
	o := &organizer{pageID: r.PageID, threshold: defaultThreshold}
	if err := validPageID("page_id", r.PageID); err != nil {
		return nil, err
	}
	if r.Threshold != nil {
		if o.threshold = *r.Threshold; !(o.threshold >= 0 && o.threshold <= 1) || math.IsNaN(o.threshold) {
			return nil, invalid("threshold", "must be from 0 to 1")
		}
	}
	var err error
	o.limit, err = validLimit("limit", r.Limit, defaultOrganizeLimit, 1, maxOrganizeLimit)
	return o, err
}

// organize is one attempt: it looks for peers without the scope's turn, then
// takes it and looks whether all is still as it was.
func (cs *Store) organize(ctx context.Context, op string, o *organizer) (*OrganizeResult, error) {
	leave, err := cs.enter(ctx, op, cs.reg.link.MayWrite)
	if err != nil {
		return nil, err
	}
	defer leave()
	var page *store.Page
	err = cs.with(ctx, op, func(s *scope) error {
		c, err := s.begin(ctx, op)
		if err != nil {
			return err
		}
		r, err := o.self(c)
		if err == nil {
			page = r.Page
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	method, peers, err := cs.peers(ctx, page, o.threshold)
	if err != nil {
		return nil, err
	}
	var out *OrganizeResult
	err = cs.mutate(ctx, op, func(c *change) error {
		out = &OrganizeResult{Method: method, Linked: []SimilarPage{}, Skipped: []SimilarPage{}, Evicted: []Reference{}}
		r, err := o.self(c)
		if err != nil {
			return err
		}
		if r.ID != page.ID || r.Version != page.Version {
			return errStale
		}
		return o.link(c, r, peers, out)
	}, func(c *change) error {
		out.Page = c.scope.reference(c.pages[o.pageID])
		out.Evicted = append(out.Evicted, c.evicted...)
		return c.scope.complete(ctx, &out.Page)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// self gives the page that is to be linked.
func (o *organizer) self(c *change) (*resident, error) {
	r, err := c.page(o.pageID)
	switch {
	case err != nil:
		return nil, err
	case r.OriginID != 0:
		return nil, ofCopy()
	case len(r.Links) >= MaxLinks:
		return nil, fail(ErrLinkInvalid, "page_id", "has %d links, which is all it takes: write it with fewer first", len(r.Links)).
			with("limit", MaxLinks)
	}
	return r, nil
}

// link links a page with its peers, most alike first.
func (o *organizer) link(c *change, self *resident, peers []SimilarPage, out *OrganizeResult) error {
	links := slices.Clone(self.Links)
	counted := 0
	var linked []*resident
	for _, peer := range peers {
		if counted == o.limit {
			break
		}
		r, err := c.lookup(peer.PageID)
		if err != nil {
			return err
		}
		if r == nil {
			continue // removed for good meanwhile
		}
		to, from := slices.Contains(links, r.ID), slices.Contains(r.Links, self.ID)
		switch {
		case r.Version != peer.Version:
			peer.Reason = "changed"
		case r.OriginID != 0:
			peer.Reason = "copy"
		case to && from:
			peer.Reason = "linked"
			counted++
		case r.Tier == store.TierCore:
			peer.Reason = "core"
		case !from && len(r.Links) >= MaxLinks:
			peer.Reason = "links_full"
		case !to && len(links) >= MaxLinks:
			peer.Reason = "page_full"
		}
		if peer.Reason != "" {
			out.Skipped = append(out.Skipped, peer)
			continue
		}
		counted++
		if !to {
			links = append(links, r.ID)
		}
		if !from {
			r = c.revise(r, func(rev *store.PageRevision) { rev.Links = append(slices.Clone(rev.Links), self.ID) })
		}
		linked = append(linked, r)
		out.Linked = append(out.Linked, SimilarPage{PageID: r.PageID, Version: r.Version, Similarity: peer.Similarity})
	}
	if len(linked) == 0 {
		return nil
	}
	out.Changed = true
	if !slices.Equal(links, self.Links) {
		self = c.revise(self, func(rev *store.PageRevision) { rev.Links = links })
	}
	c.touch(self)
	return nil
}

// peers gives the pages that are at least as like a page as threshold, most
// alike first.
func (cs *Store) peers(ctx context.Context, page *store.Page, threshold float64) (method string, peers []SimilarPage, err error) {
	found, ok, err := cs.reg.link.Similar(ctx, page, maxCandidates)
	if err != nil {
		return "", nil, err
	}
	if !ok {
		peers, err = cs.peersByWords(ctx, page, threshold)
		return methodTFIDF, peers, err
	}
	err = cs.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		for _, f := range found {
			similarity := roundCosine(f.Score)
			if similarity < threshold {
				continue
			}
			p, err := tx.Page(f.ID)
			if err != nil {
				return err
			}
			if p != nil && p.Context == page.Context && p.ID != page.ID {
				peers = append(peers, SimilarPage{PageID: p.PageID, Version: p.Version, Similarity: similarity})
			}
		}
		return nil
	})
	return methodEmbedding, peers, err
}

// peersByWords is peers by tf-idf, over the pages that a text search finds for
// the terms that stand for the page.
func (cs *Store) peersByWords(ctx context.Context, page *store.Page, threshold float64) ([]SimilarPage, error) {
	query := weightiest(page.Title, page.Summary, page.Content)
	if query == "" {
		return nil, nil // nothing but stop words and punctuation
	}
	found, err := cs.reg.db.Search(ctx, loci.SearchRequest{
		Query: query, Kinds: []loci.Kind{loci.KindPage}, Limit: new(maxCandidates + 1), NoVector: true, NoRerank: true,
		Filter: loci.ReadFilter{Namespace: &page.Namespace, Scopes: []string{page.Scope}},
	})
	if err != nil {
		return nil, err
	}
	var peers []SimilarPage
	var counts []termCounts
	for _, hit := range found.Hits {
		p, ok := hit.Record.(*loci.ContextPage)
		if !ok || int64(p.ID) == page.ID || len(peers) == maxCandidates {
			continue
		}
		peers = append(peers, SimilarPage{PageID: p.PageID, Version: p.Version})
		counts = append(counts, countTerms(p.Title, p.Summary, p.Content))
	}
	for i, similarity := range similarities(countTerms(page.Title, page.Summary, page.Content), counts) {
		peers[i].Similarity = similarity
	}
	peers = slices.DeleteFunc(peers, func(p SimilarPage) bool { return p.Similarity < threshold })
	slices.SortStableFunc(peers, func(a, b SimilarPage) int { return cmp.Compare(b.Similarity, a.Similarity) })
	return peers, nil
}
