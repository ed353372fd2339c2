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
	// vectors are those staged while this was the current tail, of whatever
	// records.
	vectors vecTail
	// The files cover everything up to startRev, and a rebuild's records up to
	// startCursor, when all older tails have been written.
	startRev    int64
	startCursor int64
	// whole says that the tail began when the index held every record: a
	// rebuild's last records are in older ones.
	whole bool
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
	lives    tailLives
	tags     [][]int64
	attrs    [][]index.Attribute
	deleted  []*deleteStamps
	forward  []uint32 // terms of all documents, one behind the other
	forwards []uint32 // where a document's terms end in it
	sorted   bool     // ids ascend
	terms    map[string]uint32
	lists    []tailList
	gone     statsHistory       // stats of deleted documents over revisions
	goneDocs map[uint32]history // by term: how many of its documents were deleted
}

// stampChunk is how many documents' delete stamps are allocated together.
const stampChunk = 64

// deleteStamps hold the revision at which a document was deleted; 0: live.
type deleteStamps [stampChunk]stampCell

type stampCell = atomic.Int64

func (p *tailPart) stamp(doc uint32) *stampCell {
	return &p.deleted[doc/stampChunk][doc%stampChunk]
}

func (p *tailPart) termsOf(doc uint32) []uint32 {
	from := uint32(0)
	if doc > 0 {
		from = p.forwards[doc-1]
	}
	return p.forward[from:p.forwards[doc]]
}

// tailList is a term's postings. Most terms occur once, so the first posting
// stands in the list itself until there is a second.
type tailList struct {
	term     string
	postings []posting
	first    posting
	maxTF    uint8
	minLen   uint8
}

// all are the list's postings.
func (l *tailList) all() []posting {
	if l.postings == nil && l.maxTF > 0 {
		return []posting{l.first}
	}
	return l.postings
}

func (l *tailList) add(p posting, length uint8) {
	switch {
	case l.maxTF == 0:
		l.first, l.minLen = p, 255
	case l.postings == nil:
		l.postings = append(make([]posting, 0, 4), l.first, p)
	default:
		l.postings = append(l.postings, p)
	}
	l.maxTF, l.minLen = max(l.maxTF, p.tf), min(l.minLen, length)
}

// truncate drops the postings of documents from n on.
func (l *tailList) truncate(n uint32) {
	if l.postings == nil {
		if l.first.doc >= n {
			l.maxTF = 0 // empty
		}
		return
	}
	k := sort.Search(len(l.postings), func(i int) bool { return l.postings[i].doc >= n })
	if l.postings = l.postings[:k]; k == 0 {
		l.postings, l.maxTF = nil, 0
	}
}

func newTail() *tail {
	return &tail{parts: map[partKey]*tailPart{}, live: map[int64]tailLoc{}}
}

// empty says whether nothing was ever added.
func (t *tail) empty() bool { return t.docs == 0 && t.vectors.rows == 0 }

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
	part.lives.add(&d.Life, doc)
	part.tags = append(part.tags, d.Tags)
	part.attrs = append(part.attrs, d.Metadata)
	if doc%stampChunk == 0 {
		part.deleted = append(part.deleted, new(deleteStamps))
	}
	part.stamp(doc).Store(0)
	for i := range a.terms {
		at := &a.terms[i]
		n, ok := part.terms[at.key]
		if !ok {
			n = uint32(len(part.lists))
			// The key is a part of the document's arena, which would otherwise
			// stay as long as the term.
			term := strings.Clone(at.key)
			part.terms[term] = n
			part.lists = append(part.lists, tailList{term: term})
			t.bytes += len(term) + 96
		}
		length := uint8(0)
		if at.key[0] == classAll {
			length = a.lens[lenAll]
		}
		part.lists[n].add(posting{doc: doc, tf: at.tf, extra: at.extra}, length)
		part.forward = append(part.forward, n)
	}
	part.forwards = append(part.forwards, uint32(len(part.forward)))
	t.live[d.ID] = tailLoc{part, doc}
	t.docs++
	t.bytes += 14*len(a.terms) + 200
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
	p.stamp(loc.doc).Store(rev)
	if p.goneDocs == nil {
		p.goneDocs = map[uint32]history{}
	}
	for _, n := range p.termsOf(loc.doc) {
		p.goneDocs[n] = p.goneDocs[n].add(rev, 1, oldest)
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
	p.stamp(loc.doc).Store(0)
	for _, n := range p.termsOf(loc.doc) {
		p.goneDocs[n] = p.goneDocs[n].take(rev, 1)
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
			for _, num := range p.termsOf(doc) {
				p.lists[num].truncate(n)
			}
			if loc := (tailLoc{p, doc}); t.live[p.ids[doc]] == loc {
				delete(t.live, p.ids[doc])
			}
		}
		p.seqs, p.ids, p.sums, p.scope, p.thread = p.seqs[:n], p.ids[:n], p.sums[:n], p.scope[:n], p.thread[:n]
		p.position, p.created, p.tags, p.attrs = p.position[:n], p.created[:n], p.tags[:n], p.attrs[:n]
		p.lives.truncate(n)
		p.forwards = p.forwards[:n]
		p.forward = p.forward[:0]
		if n > 0 {
			p.forward = p.forward[:p.forwards[n-1]]
		}
		p.deleted = p.deleted[:(n+stampChunk-1)/stampChunk]
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
	tl := &p.lists[num]
	l = plist{hi: n, maxTF: tl.maxTF, minLen: tl.minLen}
	if tl.postings == nil {
		if tl.maxTF == 0 || tl.first.doc >= n {
			return plist{}, 0
		}
		l.one, l.df = tl.first, 1
	} else {
		k := len(tl.postings)
		if tl.postings[k-1].doc >= n {
			k = sort.Search(k, func(i int) bool { return tl.postings[i].doc >= n })
		}
		if k == 0 {
			return plist{}, 0
		}
		l.posts, l.df = tl.postings[:k:k], uint32(k)
	}
	l.nblk = int(l.df+blockSize-1) / blockSize
	l.b1, l.nonEmpty = l.nblk, true
	return l, p.goneDocs[num].at(rev)
}
