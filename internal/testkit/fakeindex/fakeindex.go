// Package fakeindex is an index for tests of what drives one: it keeps
// documents in maps, one snapshot per revision, and matches by substring.
package fakeindex

import (
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
	return &Index{published: &view{revision: revision, docs: map[int64]*index.Document{}}, checkpoint: revision}
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
	next := &view{revision: revision, docs: maps.Clone(ix.published.docs)}
	for _, c := range changes {
		if c.Doc == nil {
			delete(next.docs, c.ID)
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
	return index.Stats{Documents: int64(len(ix.published.docs))}
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
}

func (v *view) Revision() int64 { return v.revision }
func (v *view) Close()          {}

func (v *view) Explain(index.Query, int64, int64, index.Kind) []index.TermScore { return nil }

// Search gives the documents whose text holds any term of the query, each with
// score 1, by ascending id. Metadata conditions are not looked at.
func (v *view) Search(q index.Query, f index.Filter, o index.Options) (index.Result, error) {
	var out index.Result
	for _, id := range slices.Sorted(maps.Keys(v.docs)) {
		d := v.docs[id]
		if d.Namespace != f.Namespace || !slices.Contains(f.Kinds, d.Kind) || !slices.Contains(f.Scopes, d.Scope) ||
			!holdsAny(d, q) {
			continue
		}
		out.Total++
		if o.Limit == 0 || len(out.Hits) < o.Limit {
			out.Hits = append(out.Hits, index.Hit{ID: id, Kind: d.Kind, Score: 1, BM25: 1, Thread: d.Thread})
		}
	}
	return out, nil
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
