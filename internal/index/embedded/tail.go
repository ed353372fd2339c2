package embedded

import (
	"math/bits"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/loci-memory/loci/internal/index"
)

func trailingZeros(v uint64) int { return bits.TrailingZeros64(v) }

// tail is the mutable segment. One goroutine, the writer, adds to it; readers
// take the slices they need under the lock and then read the part of them that
// their snapshot covers, which never changes again. Deletes carry the revision
// they happened at, so that one tail serves snapshots of many revisions.
type tail struct {
	mu    sync.RWMutex
	parts map[partKey]*tailPart
	docs  uint32 // documents added, in all partitions
	bytes int
	live  map[int64]tailLoc // where a record's live document is
	// The files cover everything up to startRev, and a rebuild's records up to
	// startCursor, when all older tails have been written.
	startRev    int64
	startCursor int64
}

type tailLoc struct {
	part *tailPart
	doc  uint32
}

// tailPart is a partition's share of the tail, with document numbers of its
// own. Slices are by document.
type tailPart struct {
	key      partKey
	seqs     []uint32 // number in the whole tail: what a snapshot covers
	ids      []int64
	lens     [numLens][]uint8
	sums     []fieldStats // stats of all documents up to and including this one
	scope    []uint32
	thread   []uint32
	position []int64
	created  []int64
	tags     [][]int64
	attrs    [][]index.Attribute
	deleted  []*atomic.Int64 // revision of the delete; 0: live
	forward  [][]uint32      // terms of a document
	sorted   bool            // ids ascend
	terms    map[string]uint32
	lists    []*tailList
	gone     statsHistory // stats of deleted documents over revisions
}

// tailList is a term's postings.
type tailList struct {
	term   string
	docs   []uint32
	tfs    []uint8
	extras []uint8 // nil while all are zero
	maxTF  uint8
	minLen uint8
	gone   history // how many of its documents were deleted
}

func newTail() *tail {
	return &tail{parts: map[partKey]*tailPart{}, live: map[int64]tailLoc{}}
}

// add appends a document. It is seen by snapshots that cover its number.
func (t *tail) add(p *index.Prepared) {
	d := p.Document
	a := p.Analysed.(*analysed)
	t.mu.Lock()
	defer t.mu.Unlock()
	key := partKey{d.Namespace, d.Kind}
	part := t.parts[key]
	if part == nil {
		part = &tailPart{key: key, terms: map[string]uint32{}, sorted: true}
		t.parts[key] = part
	}
	doc := uint32(len(part.ids))
	if doc > 0 && part.ids[doc-1] >= d.ID {
		part.sorted = false
	}
	part.seqs = append(part.seqs, t.docs)
	part.ids = append(part.ids, d.ID)
	for i := range numLens {
		part.lens[i] = append(part.lens[i], a.lens[i])
	}
	st := statsOf(a.lens)
	if doc > 0 {
		st.add(&part.sums[doc-1], 1)
	}
	part.sums = append(part.sums, st)
	part.scope = append(part.scope, uint32(d.Scope))
	part.thread = append(part.thread, uint32(d.Thread))
	pos := int64(noPosition)
	if d.HasPosition {
		pos = d.Position
	}
	part.position = append(part.position, pos)
	part.created = append(part.created, d.CreatedAt)
	part.tags = append(part.tags, d.Tags)
	part.attrs = append(part.attrs, d.Metadata)
	part.deleted = append(part.deleted, new(atomic.Int64))
	fwd := make([]uint32, 0, len(a.terms))
	for i := range a.terms {
		at := &a.terms[i]
		n, ok := part.terms[at.key]
		if !ok {
			n = uint32(len(part.lists))
			// The key is a part of the document's arena, which would otherwise
			// stay as long as the term.
			term := strings.Clone(at.key)
			part.terms[term] = n
			part.lists = append(part.lists, &tailList{term: term, minLen: 255})
			t.bytes += len(term) + 160
		}
		l := part.lists[n]
		l.docs = append(l.docs, doc)
		l.tfs = append(l.tfs, at.tf)
		if at.extra != 0 && l.extras == nil {
			l.extras = make([]uint8, len(l.docs)-1, len(l.docs))
		}
		if l.extras != nil {
			l.extras = append(l.extras, at.extra)
		}
		l.maxTF = max(l.maxTF, at.tf)
		if at.key[0] == classAll {
			l.minLen = min(l.minLen, a.lens[lenAll])
		} else {
			l.minLen = 0
		}
		fwd = append(fwd, n)
	}
	part.forward = append(part.forward, fwd)
	t.live[d.ID] = tailLoc{part, doc}
	t.docs++
	t.bytes += 10*len(a.terms) + 200
}

// remove marks a record's live document as deleted from rev on. No snapshot
// older than oldest is looked at any more.
func (t *tail) remove(id int64, loc tailLoc, rev, oldest int64) {
	if t.live[id] == loc {
		delete(t.live, id)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := loc.part
	p.deleted[loc.doc].Store(rev)
	for _, n := range p.forward[loc.doc] {
		p.lists[n].gone = p.lists[n].gone.add(rev, 1, oldest)
	}
	p.gone = p.gone.add(rev, statsOf(p.codes(loc.doc)), oldest)
}

// restore undoes remove. A document that is about to be cut off again does not
// become its record's live one.
func (t *tail) restore(id int64, loc tailLoc, rev int64, docs uint32) {
	if loc.part.seqs[loc.doc] < docs {
		t.live[id] = loc
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	p := loc.part
	p.deleted[loc.doc].Store(0)
	for _, n := range p.forward[loc.doc] {
		p.lists[n].gone = p.lists[n].gone.take(rev, 1)
	}
	p.gone = p.gone.take(rev, statsOf(p.codes(loc.doc)))
}

// truncate cuts the tail back to its first docs documents. No snapshot may
// cover the others.
func (t *tail) truncate(docs uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.docs = docs
	for _, p := range t.parts {
		n := p.count(docs)
		for doc := n; doc < uint32(len(p.ids)); doc++ {
			for _, num := range p.forward[doc] {
				l := p.lists[num]
				k := sort.Search(len(l.docs), func(i int) bool { return l.docs[i] >= n })
				l.docs, l.tfs = l.docs[:k], l.tfs[:k]
				if l.extras != nil {
					l.extras = l.extras[:k]
				}
			}
			if loc := (tailLoc{p, doc}); t.live[p.ids[doc]] == loc {
				delete(t.live, p.ids[doc])
			}
		}
		p.seqs, p.ids, p.sums, p.scope, p.thread = p.seqs[:n], p.ids[:n], p.sums[:n], p.scope[:n], p.thread[:n]
		p.position, p.created, p.tags, p.attrs = p.position[:n], p.created[:n], p.tags[:n], p.attrs[:n]
		p.deleted, p.forward = p.deleted[:n], p.forward[:n]
		for i := range p.lens {
			p.lens[i] = p.lens[i][:n]
		}
	}
}

// liveDocs counts the documents of a snapshot.
func (t *tail) liveDocs(covered uint32, rev int64) (n int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, p := range t.parts {
		st := p.statsAt(p.count(covered), rev)
		n += st.docs[lenAll]
	}
	return n
}

func (p *tailPart) codes(doc uint32) (c [numLens]uint8) {
	for i := range c {
		c[i] = p.lens[i][doc]
	}
	return c
}

// count is how many of the partition's documents a snapshot of `covered`
// documents has.
func (p *tailPart) count(covered uint32) uint32 {
	return uint32(sort.Search(len(p.seqs), func(i int) bool { return p.seqs[i] >= covered }))
}

// statsAt are the stats of the first n documents, less those deleted by rev.
func (p *tailPart) statsAt(n uint32, rev int64) (s fieldStats) {
	if n == 0 {
		return s
	}
	s = p.sums[n-1]
	gone := p.gone.at(rev)
	s.add(&gone, -1)
	return s
}

// list gives a term's postings among the first n documents, and how many of
// them were deleted by rev.
func (p *tailPart) list(term string, n uint32, rev int64) (l plist, gone int64) {
	num, ok := p.terms[term]
	if !ok {
		return l, 0
	}
	tl := p.lists[num]
	k := len(tl.docs)
	if k > 0 && tl.docs[k-1] >= n {
		k = sort.Search(k, func(i int) bool { return tl.docs[i] >= n })
	}
	if k == 0 {
		return l, 0
	}
	l = plist{df: uint32(k), docs: tl.docs[:k:k], tfs: tl.tfs[:k:k], hi: n, maxTF: tl.maxTF, minLen: tl.minLen, nonEmpty: true}
	if tl.extras != nil {
		l.extras = tl.extras[:k:k]
	}
	l.nblk = (k + blockSize - 1) / blockSize
	l.b1 = l.nblk
	return l, tl.gone.at(rev)
}
