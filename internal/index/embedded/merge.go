package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"iter"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/loci-memory/loci/internal/index"
)

// tailTerms yields the terms of a tail in ascending order, with documents
// renumbered, and fills in forward.
func tailTerms(parts []*tailPart, renumber [][]uint32, forward *forwardLists) iter.Seq2[[]byte, []posting] {
	return func(yield func([]byte, []posting) bool) {
		type ref struct {
			prefix uint64 // the term's first bytes, which mostly decide
			part   uint32
			list   uint32
		}
		var refs []ref
		term := func(r ref) string { return parts[r.part].lists[r.list].term }
		for pi, p := range parts {
			for li := range p.lists {
				var b [8]byte
				copy(b[:], p.lists[li].term)
				refs = append(refs, ref{binary.BigEndian.Uint64(b[:]), uint32(pi), uint32(li)})
			}
		}
		slices.SortFunc(refs, func(a, b ref) int {
			if a.prefix != b.prefix {
				return cmpInt(a.prefix < b.prefix)
			}
			if c := strings.Compare(term(a), term(b)); c != 0 {
				return c
			}
			return int(a.part) - int(b.part)
		})
		var list []posting
		num := uint32(0)
		for i := 0; i < len(refs); {
			key := term(refs[i])
			list = list[:0]
			for ; i < len(refs) && term(refs[i]) == key; i++ {
				p := parts[refs[i].part]
				from := len(list)
				for _, post := range p.lists[refs[i].list].all() {
					if post.doc = renumber[refs[i].part][post.doc]; post.doc != none {
						list = append(list, post)
					}
				}
				if !p.sorted {
					slices.SortFunc(list[from:], func(a, b posting) int { return cmpInt(a.doc < b.doc) })
				}
			}
			if len(list) == 0 {
				continue
			}
			for _, p := range list {
				forward.nums[forward.next[p.doc]] = num
				forward.next[p.doc]++
			}
			num++
			if !yield([]byte(key), list) {
				return
			}
		}
	}
}

// tailAttrs yields the attributes of documents in segment order.
func tailAttrs(locs []tailLoc) iter.Seq2[[]byte, []uint32] {
	return func(yield func([]byte, []uint32) bool) {
		byKey := map[string][]uint32{}
		var buf []byte
		add := func(key []byte, doc int) { byKey[string(key)] = append(byKey[string(key)], uint32(doc)) }
		for doc, l := range locs {
			p := l.part
			buf = scopeKey(buf[:0], p.scope[l.doc])
			add(buf, doc)
			for _, t := range p.tags[l.doc] {
				buf = tagKey(buf[:0], uint32(t))
				add(buf, doc)
			}
			for _, a := range p.attrs[l.doc] {
				buf = existsKey(buf[:0], a.Key)
				add(buf, doc)
				if a.Value.Type != index.TypeOther {
					buf = valueKey(buf[:0], a.Key, a.Value)
					add(buf, doc)
				}
			}
		}
		keys := make([]string, 0, len(byKey))
		for k := range byKey {
			keys = append(keys, k)
		}
		sort.Strings(keys)
		for _, k := range keys {
			if !yield([]byte(k), slices.Compact(byKey[k])) {
				return
			}
		}
	}
}

const (
	// mergeFanIn is how many segments of one tier make a segment of the next;
	// tierBase is the size of the lowest tier.
	mergeFanIn = 8
	tierBase   = 1000
	// A segment with more than this share of deleted documents is rewritten.
	maxDeletedShare = 0.25
)

// tier is a segment's size class: each holds some eight times the last.
func tier(docs uint32) int {
	if docs < tierBase {
		return 0
	}
	return 1 + int(math.Log(float64(docs)/tierBase)/math.Log(mergeFanIn))
}

// pickMerge chooses segments to merge, or none.
func pickMerge(segs []segView) []segView {
	tiers := map[int][]segView{}
	for _, v := range segs {
		live := v.numDocs - v.del.count
		if v.del.count > 0 && float64(v.del.count) >= maxDeletedShare*float64(v.numDocs) {
			return []segView{v}
		}
		tiers[tier(live)] = append(tiers[tier(live)], v)
	}
	for t := range 16 {
		if len(tiers[t]) >= mergeFanIn {
			return tiers[t]
		}
	}
	return nil
}

// mergeAll merges until nothing is left to merge.
func (ix *Index) mergeAll() error {
	ix.mergeMu.Lock()
	defer ix.mergeMu.Unlock()
	if ix.toForget() {
		// A manifest that names the dropped spaces must not wait for a merge.
		if err := ix.checkpoint(); err != nil {
			return err
		}
	}
	for !ix.quitting() {
		ix.mu.Lock()
		snap := ix.cur
		snap.refs++
		ix.mu.Unlock()
		err := ix.mergeOnce(snap)
		ix.releaseSnapshot(snap)
		if errors.Is(err, errNothing) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := ix.checkpoint(); err != nil {
			return err
		}
	}
	return nil
}

// errNothing says that there was nothing to merge, or no time for it.
var errNothing = errors.New("nothing to merge")

// mergeOnce merges some segments of a snapshot, those of the text first: they
// take less time.
func (ix *Index) mergeOnce(snap *snapshot) error {
	if in := pickMerge(snap.segs); in != nil {
		return ix.merge(in)
	}
	if in := ix.pickVecMerge(snap); in != nil {
		return ix.mergeVectors(in, snap.dropped)
	}
	return errNothing
}

func (ix *Index) quitting() bool {
	select {
	case <-ix.quit:
		return true
	default:
		return false
	}
}

func (ix *Index) toForget() bool {
	ix.write.Lock()
	defer ix.write.Unlock()
	return ix.forgetting
}

// merge writes the live documents of some segments as one and puts it in their
// place. The caller holds a snapshot with them.
func (ix *Index) merge(in []segView) error {
	m := newMerge(in)
	var out *segment
	if len(m.data.ids) > 0 {
		name := ix.newName("seg")
		if err := writeSegment(ix.fs, name, &m.data); err != nil {
			return err
		}
		var err error
		if out, err = openSegment(ix.fs, name); err != nil {
			return err
		}
	}
	ix.write.Lock()
	defer ix.write.Unlock()
	var segs []segView
	var v segView
	if out != nil {
		v = segView{out, newDeleteSet(out.numDocs)}
	}
	for _, s := range ix.segs {
		i := slices.IndexFunc(in, func(o segView) bool { return o.segment == s.segment })
		if i < 0 {
			segs = append(segs, s)
			continue
		}
		// What was deleted since the merge began is in the new segment.
		s.del.each(in[i].del, func(doc uint32) { v.markDeleted(m.renumber[i][doc], ix.cur.rev) })
		ix.obsolete = append(ix.obsolete, s.mappedFile)
	}
	if out != nil {
		segs = append(segs, v)
	}
	ix.segs = segs
	ix.install(ix.newSnapshot(ix.cur.rev))
	return nil
}

// merging is the state of one merge.
type merging struct {
	in       []segView
	data     segmentData
	renumber [][]uint32 // per segment: document -> merged document, or none
	terms    [][]uint32 // per segment: term -> merged term
}

type mergeDoc struct {
	seg int
	doc uint32
}

func newMerge(in []segView) *merging {
	m := &merging{in: in, renumber: make([][]uint32, len(in)), terms: make([][]uint32, len(in))}
	keys := map[partKey]bool{}
	for i, s := range in {
		m.renumber[i] = make([]uint32, s.numDocs)
		m.terms[i] = make([]uint32, s.numTerms())
		for _, p := range s.parts {
			keys[p.key] = true
		}
	}
	order := make([]partKey, 0, len(keys))
	for k := range keys {
		order = append(order, k)
	}
	sort.Slice(order, func(i, j int) bool { return order[i].less(order[j]) })
	var docs []mergeDoc
	for _, k := range order {
		lo := len(docs)
		for i, s := range in {
			part, ok := s.partition(k)
			if !ok {
				continue
			}
			for doc := s.parts[part].lo; doc < s.parts[part].hi; doc++ {
				if s.del.has(doc) {
					m.renumber[i][doc] = none
				} else {
					docs = append(docs, mergeDoc{i, doc})
				}
			}
		}
		mine := docs[lo:]
		if len(mine) == 0 {
			continue
		}
		slices.SortFunc(mine, func(a, b mergeDoc) int { return cmpInt(in[a.seg].id(a.doc) < in[b.seg].id(b.doc)) })
		for n, d := range mine {
			m.renumber[d.seg][d.doc] = uint32(lo + n)
		}
		m.data.parts = append(m.data.parts, partRange{key: k, lo: uint32(lo), hi: uint32(len(docs))})
	}
	m.columns(docs)
	m.data.terms = m.mergeTerms
	m.data.attrs = m.mergeAttrs
	m.data.forward = func(doc uint32, dst []uint32) []uint32 {
		d := docs[doc]
		to := m.terms[d.seg]
		in[d.seg].forward(d.doc, func(term uint32) { dst = append(dst, to[term]) })
		return dst
	}
	return m
}

func (m *merging) columns(docs []mergeDoc) {
	d := &m.data
	n := len(docs)
	d.ids, d.scope, d.thread = make([]int64, n), make([]uint32, n), make([]uint32, n)
	d.position, d.created = make([]int64, n), make([]int64, n)
	for i := range d.lens {
		d.lens[i] = make([]uint8, n)
	}
	for i, s := range m.in {
		s.eachBound(func(bound int, e boundEntry) {
			if doc := m.renumber[i][e.doc]; doc != none {
				d.bounds[bound] = append(d.bounds[bound], boundEntry{e.time, doc})
			}
		})
	}
	for i, x := range docs {
		s := m.in[x.seg]
		d.ids[i], d.scope[i], d.thread[i] = s.id(x.doc), s.scope(x.doc), s.thread(x.doc)
		d.position[i], d.created[i] = s.position(x.doc), s.created(x.doc)
		codes := s.codes(x.doc)
		for k := range d.lens {
			d.lens[k][i] = codes[k]
		}
	}
}

// heads walks several ascending key sequences together: next gives the smallest
// key and the sequences that stand on it.
type heads struct {
	keys [][]byte // current key of each; nil: at its end
	on   []int
}

func (h *heads) next() []byte {
	var low []byte
	h.on = h.on[:0]
	for i, k := range h.keys {
		if k == nil {
			continue
		}
		c := -1
		if low != nil {
			c = bytes.Compare(k, low)
		}
		if c < 0 {
			low = k
			h.on = h.on[:0]
		}
		if c <= 0 {
			h.on = append(h.on, i)
		}
	}
	return low
}

func (m *merging) mergeTerms(yield func([]byte, []posting) bool) {
	h := heads{keys: make([][]byte, len(m.in))}
	at := make([]uint32, len(m.in))
	step := func(i int) {
		h.keys[i] = nil
		if int(at[i]) < m.in[i].numTerms() {
			h.keys[i] = m.in[i].term(m.in[i].dict(at[i]))
		}
	}
	for i := range m.in {
		step(i)
	}
	var list []posting
	num := uint32(0)
	for key := h.next(); key != nil; key = h.next() {
		list = list[:0]
		ascending := true
		for _, i := range h.on {
			list = m.appendList(list, i, at[i], &ascending)
			m.terms[i][at[i]] = num
			at[i]++
			step(i)
		}
		if len(list) == 0 {
			continue
		}
		if !ascending {
			slices.SortFunc(list, func(a, b posting) int { return cmpInt(a.doc < b.doc) })
		}
		num++
		if !yield(key, list) {
			return
		}
	}
}

func (m *merging) appendList(list []posting, seg int, term uint32, ascending *bool) []posting {
	s := m.in[seg]
	l := s.list(term, 0, s.numDocs)
	to := m.renumber[seg]
	for i := range l.nblk {
		v := l.block(i)
		for k := range v.n {
			doc := to[v.doc(k)]
			if doc == none {
				continue
			}
			if n := len(list); n > 0 && list[n-1].doc >= doc {
				*ascending = false
			}
			tf, extra := v.freq(k)
			list = append(list, posting{doc, tf, extra})
		}
	}
	return list
}

func (m *merging) mergeAttrs(yield func([]byte, []uint32) bool) {
	h := heads{keys: make([][]byte, len(m.in))}
	at := make([]int, len(m.in))
	step := func(i int) {
		h.keys[i] = nil
		if at[i] < m.in[i].numAttrs() {
			h.keys[i], _ = m.in[i].attr(at[i])
		}
	}
	for i := range m.in {
		step(i)
	}
	var docs []uint32
	for key := h.next(); key != nil; key = h.next() {
		docs = docs[:0]
		for _, i := range h.on {
			to := m.renumber[i]
			m.in[i].attrDocs(at[i], func(doc uint32) {
				if n := to[doc]; n != none {
					docs = append(docs, n)
				}
			})
			at[i]++
			step(i)
		}
		slices.Sort(docs)
		if len(docs) > 0 && !yield(key, docs) {
			return
		}
	}
}

// attrDocs calls f for each document of attribute i.
func (s *segment) attrDocs(i int, f func(doc uint32)) {
	for it := s.attrBitmap(i).Iterator(); it.HasNext(); {
		f(it.Next())
	}
}

// attrBitmap are the documents of attribute i; it may share the file's memory
// and must not be changed.
func (s *segment) attrBitmap(i int) *roaring.Bitmap {
	_, e := s.attr(i)
	return s.bitmap(e)
}
