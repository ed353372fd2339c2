package embedded

import (
	"slices"

	"github.com/loci-memory/loci/internal/index"
)

// snapshot is what the index held at one revision. It never changes; its
// references are counted under Index.mu.
type snapshot struct {
	ix    *Index
	rev   int64
	segs  []segView
	tails []tailView
	refs  int

	vecSegs []vecSegView
	dropped []int64 // spaces whose vectors are not there any more
}

// tailView is a tail and how many of its documents and vectors belong to the
// snapshot.
type tailView struct {
	*tail
	covered uint32
	vectors uint32
}

// newSnapshot captures the current state, with one reference. write is held.
func (ix *Index) newSnapshot(rev int64) *snapshot {
	s := &snapshot{ix: ix, rev: rev, segs: slices.Clone(ix.segs), refs: 1, vecSegs: slices.Clone(ix.vecSegs), dropped: ix.dropped}
	for _, v := range s.segs {
		v.acquire()
		v.del.owned = nil // from now on immutable
	}
	for _, v := range s.vecSegs {
		v.acquire()
		v.del.owned = nil
	}
	for _, t := range ix.tails {
		if !t.empty() {
			s.tails = append(s.tails, tailView{t, t.docs, t.vectors.rows})
		}
	}
	return s
}

// install makes s the current snapshot, to be found in the ring. write is held.
func (ix *Index) install(s *snapshot) {
	ix.mu.Lock()
	ix.cur = s
	if !slices.Contains(ix.ring, s) {
		// A staged snapshot is in the ring already.
		ix.ring = append(ix.ring, s)
		ix.live = append(ix.live, s)
	}
	var old []*snapshot
	if n := len(ix.ring) - keptSnapshots; n > 0 {
		old = slices.Clone(ix.ring[:n])
		ix.ring = slices.Delete(ix.ring, 0, n)
	}
	ix.mu.Unlock()
	for _, o := range old {
		ix.releaseSnapshot(o)
	}
}

func (ix *Index) releaseSnapshot(s *snapshot) {
	ix.mu.Lock()
	s.refs--
	last := s.refs == 0
	if last {
		ix.live = slices.DeleteFunc(ix.live, func(o *snapshot) bool { return o == s })
	}
	ix.mu.Unlock()
	if !last {
		return
	}
	for _, v := range s.segs {
		if err := v.release(ix.fs); err != nil {
			ix.opts.OnError(err)
		}
	}
	for _, v := range s.vecSegs {
		if err := v.release(ix.fs); err != nil {
			ix.opts.OnError(err)
		}
	}
}

// View implements index.Index.
func (ix *Index) View(revision int64) (index.View, bool) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	for i := len(ix.ring) - 1; i >= 0; i-- {
		if s := ix.ring[i]; s.rev == revision {
			s.refs++
			return &view{snapshot: s}, true
		}
	}
	return nil, false
}

// view is one reader's hold on a snapshot.
type view struct {
	*snapshot
	closed bool
}

// Revision implements index.View.
func (v *view) Revision() int64 { return v.rev }

// Close implements index.View.
func (v *view) Close() {
	if !v.closed {
		v.closed = true
		v.ix.releaseSnapshot(v.snapshot)
	}
}
