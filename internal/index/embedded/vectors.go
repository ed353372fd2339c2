package embedded

import (
	"slices"
	"sync"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// flatVectors keeps vectors in memory, each with the revisions at which it was
// there.
type flatVectors struct {
	mu      sync.RWMutex
	rows    []*flatRow
	dropped []int64
}

type flatRow struct {
	key      partKey
	space    int64
	id       int64
	scope    int64
	values   []float32
	from, to int64 // to 0: still there
}

func (r *flatRow) at(rev int64) bool { return r.from <= rev && (r.to == 0 || r.to > rev) }

// apply takes one change at rev.
func (f *flatVectors) apply(c index.Change, rev int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rows {
		if r.id != c.ID || r.to != 0 {
			continue
		}
		switch {
		case c.Vector != nil && c.Vector.Space == r.space, c.Vector == nil && c.Doc == nil:
			r.to = rev
		case c.Vector == nil && r.scope != c.Doc.Document.Scope:
			r.to = rev
			n := *r
			n.from, n.to, n.scope = rev, 0, c.Doc.Document.Scope
			f.rows = append(f.rows, &n)
			return
		}
	}
	if v := c.Vector; v != nil && v.Values != nil {
		f.rows = append(f.rows, &flatRow{key: partKey{c.Namespace, c.Kind}, space: v.Space, id: c.ID, scope: v.Scope, values: slices.Clone(v.Values), from: rev})
	}
}

// undo takes back what was applied at rev.
func (f *flatVectors) undo(rev int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rows = slices.DeleteFunc(f.rows, func(r *flatRow) bool { return r.from == rev })
	for _, r := range f.rows {
		if r.to == rev {
			r.to = 0
		}
	}
}

// DropSpace implements index.Index.
func (ix *Index) DropSpace(space int64) {
	ix.vectors.mu.Lock()
	defer ix.vectors.mu.Unlock()
	ix.vectors.rows = slices.DeleteFunc(ix.vectors.rows, func(r *flatRow) bool { return r.space == space })
}

// Nearest implements index.View.
func (v *view) Nearest(q index.VectorQuery, f index.Filter) (index.VectorResult, error) {
	s := searchers.Get().(*searcher)
	defer s.release()
	s.prepare(v, &index.Query{}, &f)
	res := index.VectorResult{Exact: true}
	fl := &v.ix.vectors
	fl.mu.RLock()
	defer fl.mu.RUnlock()
	for _, r := range fl.rows {
		if r.space != q.Space || !r.at(v.rev) || len(r.values) != len(q.Values) || r.key.namespace != f.Namespace {
			continue
		}
		k := s.kind(r.key.kind)
		if k == nil {
			continue
		}
		if q.IDs != nil {
			if _, ok := slices.BinarySearch(q.IDs, r.id); !ok {
				continue
			}
		}
		p, doc, ok := k.locate(r.id)
		if !ok || !p.accept(doc) {
			continue
		}
		res.Hits = append(res.Hits, index.VectorHit{ID: r.id, Kind: r.key.kind, Thread: p.thread(doc), Score: vec.Dot(q.Values, r.values)})
	}
	slices.SortFunc(res.Hits, func(a, b index.VectorHit) int {
		if a.Score != b.Score {
			return cmpInt(a.Score > b.Score)
		}
		return cmpInt(a.ID < b.ID)
	})
	res.Hits = res.Hits[:min(len(res.Hits), max(q.Limit, 0))]
	return res, nil
}

// records gives the ids of a partition's live documents, newest first.
func (v *view) records(key partKey) (ids []int64) {
	s := searchers.Get().(*searcher)
	defer s.release()
	s.prepare(v, &index.Query{}, &index.Filter{Namespace: key.namespace, Kinds: []index.Kind{key.kind}})
	for _, k := range s.kinds {
		for _, p := range k.parts {
			for doc := p.lo; doc < p.hi; doc++ {
				if !p.deleted(doc) {
					ids = append(ids, p.id(doc))
				}
			}
		}
	}
	slices.Sort(ids)
	slices.Reverse(ids)
	return ids
}

func (v *view) vectorIDs(space int64, key partKey) map[int64]bool {
	has := map[int64]bool{}
	fl := &v.ix.vectors
	fl.mu.RLock()
	defer fl.mu.RUnlock()
	for _, r := range fl.rows {
		if r.space == space && r.key == key && r.at(v.rev) {
			has[r.id] = true
		}
	}
	return has
}

// CountVectors implements index.View.
func (v *view) CountVectors(space, namespace int64, kind index.Kind) index.VectorCount {
	key := partKey{namespace, kind}
	return index.VectorCount{Records: int64(len(v.records(key))), Vectors: int64(len(v.vectorIDs(space, key)))}
}

// Missing implements index.View.
func (v *view) Missing(space, namespace int64, kind index.Kind, limit int, skip func(id int64) bool) (out []int64) {
	key := partKey{namespace, kind}
	has := v.vectorIDs(space, key)
	for _, id := range v.records(key) {
		if len(out) >= limit {
			break
		}
		if !has[id] && (skip == nil || !skip(id)) {
			out = append(out, id)
		}
	}
	return out
}
