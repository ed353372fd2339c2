// Package fakeindex is an index for tests of what drives one: it keeps
// documents in maps, one snapshot per revision, and matches by substring.
package fakeindex

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/loci-memory/loci/internal/index"
)

// Index is a naive index. The zero value is not usable; see New.
type Index struct {
	mu         sync.Mutex
	published  *view
	staged     *view
	past       []*view
	checkpoint int64
	stages     int
	// FailStage makes the next Stage panic.
	FailStage bool
}

// kept is how many past snapshots can still be viewed.
const kept = 16

// New gives an empty index at a revision.
func New(revision int64) *Index {
	return &Index{published: &view{revision: revision, docs: map[int64]*index.Document{}, vectors: map[vectorKey][]float32{}}, checkpoint: revision}
}

// DropSpace implements index.Index.
func (ix *Index) DropSpace(space int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	next := *ix.published
	next.vectors = maps.Clone(next.vectors)
	maps.DeleteFunc(next.vectors, func(k vectorKey, _ []float32) bool { return k.space == space })
	ix.published = &next
}

// Prepare implements index.Index.
func (ix *Index) Prepare(d *index.Document) *index.Prepared {
	return &index.Prepared{Document: d, Analysed: true}
}

// Stage implements index.Index.
func (ix *Index) Stage(revision int64, changes []index.Change) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.FailStage {
		ix.FailStage = false
		panic("fakeindex: told to fail")
	}
	if ix.staged != nil {
		panic("fakeindex: staged twice")
	}
	next := &view{revision: revision, docs: maps.Clone(ix.published.docs), vectors: maps.Clone(ix.published.vectors)}
	for _, c := range changes {
		if x := c.Vector; x != nil {
			if x.Values == nil {
				delete(next.vectors, vectorKey{x.Space, c.ID})
			} else {
				next.vectors[vectorKey{x.Space, c.ID}] = x.Values
			}
			continue
		}
		if c.Doc == nil {
			delete(next.docs, c.ID)
			maps.DeleteFunc(next.vectors, func(k vectorKey, _ []float32) bool { return k.id == c.ID })
			continue
		}
		if c.Doc.Document.ID != c.ID || c.Doc.Document.Namespace != c.Namespace || c.Doc.Document.Kind != c.Kind {
			panic("fakeindex: a change does not agree with its document")
		}
		next.docs[c.ID] = c.Doc.Document
	}
	ix.staged = next
	ix.stages++
}

// Publish implements index.Index.
func (ix *Index) Publish() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.past = append(ix.past, ix.published)
	if len(ix.past) > kept {
		ix.past = slices.Delete(ix.past, 0, 1)
	}
	ix.published, ix.staged = ix.staged, nil
}

// Discard implements index.Index.
func (ix *Index) Discard() {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.staged = nil
}

// View implements index.Index.
func (ix *Index) View(revision int64) (index.View, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for _, v := range append(slices.Clone(ix.past), ix.published, ix.staged) {
		if v != nil && v.revision == revision {
			return v, true
		}
	}
	return nil, false
}

// Revision implements index.Index.
func (ix *Index) Revision() int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.published.revision
}

// Checkpointed implements index.Index.
func (ix *Index) Checkpointed() int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.checkpoint
}

// Flush implements index.Index.
func (ix *Index) Flush() error {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	ix.checkpoint = ix.published.revision
	return nil
}

// Stats implements index.Index.
func (ix *Index) Stats() index.Stats {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return index.Stats{Documents: int64(len(ix.published.docs)), Vectors: int64(len(ix.published.vectors))}
}

// Stages is the number of calls to Stage.
func (ix *Index) Stages() int {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.stages
}

// Documents gives what is published, by id.
func (ix *Index) Documents() map[int64]*index.Document {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return maps.Clone(ix.published.docs)
}

// Close implements index.Index.
func (ix *Index) Close() error { return nil }

type view struct {
	revision int64
	docs     map[int64]*index.Document
	vectors  map[vectorKey][]float32
}

// vectorKey names a record's vector in a space.
type vectorKey struct{ space, id int64 }

func (v *view) Revision() int64 { return v.revision }
func (v *view) Close()          {}

func (v *view) Explain(index.Query, int64, int64, index.Kind) []index.TermScore { return nil }

// Scores gives 1 to what Search would find.
func (v *view) Scores(q index.Query, f index.Filter, ids []int64, _ []index.Kind) ([]float64, error) {
	scores := make([]float64, len(ids))
	for i, id := range ids {
		if d := v.docs[id]; d != nil && covers(&f, d) && holdsAny(d, q) {
			scores[i] = 1
		}
	}
	return scores, nil
}

// Search gives the documents whose text holds any term of the query, each with
// score 1, by ascending id. Metadata conditions are not looked at.
func (v *view) Search(q index.Query, f index.Filter, o index.Options) (index.Result, error) {
	var out index.Result
	for _, id := range slices.Sorted(maps.Keys(v.docs)) {
		d := v.docs[id]
		if !covers(&f, d) || !holdsAny(d, q) {
			continue
		}
		out.Total++
		if o.Limit == 0 || len(out.Hits) < o.Limit {
			out.Hits = append(out.Hits, index.Hit{ID: id, Kind: d.Kind, Score: 1, BM25: 1, Thread: d.Thread})
		}
	}
	return out, nil
}

// covers says whether f lets see a document, metadata conditions, tags and the time
// of its making aside.
func covers(f *index.Filter, d *index.Document) bool {
	return d.Namespace == f.Namespace && slices.Contains(f.Kinds, d.Kind) && slices.Contains(f.Scopes, d.Scope) &&
		d.Life.Shows(f.Now, f.ValidAt, f.HasValid)
}

func holdsAny(d *index.Document, q index.Query) bool {
	text := strings.ToLower(strings.Join(slices.Concat(d.Name, d.Text), "\n"))
	for _, g := range q.Groups {
		for _, terms := range g.Alternatives {
			for _, term := range terms {
				if strings.Contains(text, term) {
					return true
				}
			}
		}
	}
	return len(q.Groups) == 0
}

// Nearest implements index.View by comparing with every vector.
func (v *view) Nearest(q index.VectorQuery, f index.Filter) (index.VectorResult, error) {
	res := index.VectorResult{Exact: true}
	for key, values := range v.vectors {
		d := v.docs[key.id]
		if key.space != q.Space || d == nil || !covers(&f, d) || q.IDs != nil && !slices.Contains(q.IDs, key.id) {
			continue
		}
		hit := index.VectorHit{ID: d.ID, Kind: d.Kind, Thread: d.Thread}
		for i, x := range values {
			hit.Score += x * q.Values[i]
		}
		res.Hits = append(res.Hits, hit)
	}
	slices.SortFunc(res.Hits, func(a, b index.VectorHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	res.Hits = res.Hits[:min(len(res.Hits), q.Limit)]
	return res, nil
}

// Adjacent implements index.View.
func (v *view) Adjacent(f index.Filter, ids []int64, _ []index.Kind) [][2]int64 {
	out := make([][2]int64, len(ids))
	for i, id := range ids {
		d := v.docs[id]
		if d == nil || d.Thread == 0 || !d.HasPosition {
			continue
		}
		var before, after *index.Document
		for _, o := range v.docs {
			if o.Thread != d.Thread || !o.HasPosition || o.Kind != d.Kind || o.Scope != d.Scope || !covers(&f, o) {
				continue
			}
			if o.Position < d.Position && (before == nil || o.Position > before.Position) {
				before = o
			}
			if o.Position > d.Position && (after == nil || o.Position < after.Position) {
				after = o
			}
		}
		if before != nil {
			out[i][0] = before.ID
		}
		if after != nil {
			out[i][1] = after.ID
		}
	}
	return out
}

// Count implements index.View.
func (v *view) Count(f index.Filter) (n int64, err error) {
	for _, d := range v.docs {
		if covers(&f, d) {
			n++
		}
	}
	return n, nil
}

// CountVectors implements index.View.
func (v *view) CountVectors(space, namespace int64, kind index.Kind) (n index.VectorCount) {
	for id, d := range v.docs {
		if d.Namespace != namespace || d.Kind != kind {
			continue
		}
		n.Records++
		if v.vectors[vectorKey{space, id}] != nil {
			n.Vectors++
		}
	}
	return n
}

// Missing implements index.View.
func (v *view) Missing(space, namespace int64, kind index.Kind, limit int, skip func(int64) bool) (ids []int64) {
	for id, d := range v.docs {
		if d.Namespace == namespace && d.Kind == kind && v.vectors[vectorKey{space, id}] == nil && !skip(id) {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b int64) int { return cmp.Compare(b, a) })
	return ids[:min(len(ids), limit)]
}
