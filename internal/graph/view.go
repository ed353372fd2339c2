package graph

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// A Filter says what a view covers. The zero filter covers everything.
//
// Scopes hold for entities and relations alike, tags for relations only. A
// relation is covered if it passes and both its entities do.
type Filter struct {
	Scopes []int64 // nil stands for all; an empty list for none
	Tags   []int64 // a relation must have all of them

	// Node and Edge narrow the view further, if set. They are called during
	// traversal, more than once for the same record and from several
	// goroutines at a time, so they should be cheap and must always answer
	// the same. The slices that they get must not be changed.
	Node func(Node) bool
	Edge func(Edge) bool
}

// A Rule adds an edge back for each relation of a predicate: under the
// predicate Inverse, or, if Symmetric, under the same one. A rule says nothing
// about the relations of its inverse.
type Rule struct {
	Inverse   int64 // 0 for none
	Symmetric bool
}

// Rules gives the rule of each predicate that has one. One for the predicate
// that declares entities the same has no effect.
type Rules map[int64]Rule

// A View shows a snapshot through a filter and rules. Entities that relations
// covered by the filter declare to be the same are one node, and so on
// transitively; the lowest id of them stands for all, and all their ids are
// understood. A view never changes and is safe for concurrent use.
type View struct {
	snap   *Snapshot
	scopes []int64 // ascending; nil for all
	tags   []int64 // ascending
	rules  Rules
	nodeOK func(Node) bool
	edgeOK func(Edge) bool

	verdicts []uint32 // by label, 0 until judged
	allNodes bool     // every node is covered
	allEdges bool     // every edge is, if its ends are
	ruled    bool     // some rule may apply

	// Classes of two entities and more that are declared the same. A class
	// begins with the lowest id, which stands for it.
	class   table    // class + 1 of nodes
	begins  []uint32 // where each class begins in members
	members []uint32

	once   sync.Once
	totals totals
}

// A verdict is what a view thinks of a label.
const (
	judged    uint32 = 1 << iota
	covered          // nodes: the filter covers it
	follow           // edges: the filter covers it and it is no declaration of sameness
	back             // edges: follow, and a rule adds an edge back
	symmetric        // edges: back, under the same predicate
	sameness         // edges: the filter covers it and it declares two entities the same
)

// View gives a view of the snapshot. The slices and the map are copied.
//
// O(labels + relations that declare entities the same), where labels are the
// distinct combinations of predicate, scope and tags.
func (s *Snapshot) View(f Filter, r Rules) *View {
	v := &View{
		snap: s, tags: distinct(f.Tags), nodeOK: f.Node, edgeOK: f.Edge,
		rules: maps.Clone(r), verdicts: make([]uint32, len(s.labels)),
	}
	if f.Scopes != nil {
		v.scopes = distinct(f.Scopes)
	}
	v.survey()
	v.contract()
	return v
}

// distinct gives a sorted copy without repetitions, never nil.
func distinct(s []int64) []int64 {
	c := append(make([]int64, 0, len(s)), s...)
	slices.Sort(c)
	return slices.Compact(c)
}

// survey finds out whether traversal can do without looking at verdicts. With
// very many labels that is not worth it: they are judged as they are met.
func (v *View) survey() {
	v.ruled = len(v.rules) > 0
	if len(v.snap.labels) > 1<<10 {
		return
	}
	v.allNodes = v.nodeOK == nil && v.snap.gone == 0
	v.allEdges = v.edgeOK == nil
	v.ruled = false
	for l := 1; l < len(v.snap.labels); l++ {
		verdict := v.judge(uint32(l))
		if v.snap.labels[l].node {
			v.allNodes = v.allNodes && verdict&covered != 0
		} else {
			v.allEdges = v.allEdges && verdict&follow != 0
		}
		v.ruled = v.ruled || verdict&back != 0
	}
}

// verdict is safe for concurrent use: whoever comes first stores what anybody
// would.
func (v *View) verdict(l uint32) uint32 {
	if x := atomic.LoadUint32(&v.verdicts[l]); x != 0 {
		return x
	}
	return v.judge(l)
}

func (v *View) judge(l uint32) uint32 {
	x := judged
	lb := &v.snap.labels[l]
	if l != gone && v.inScope(lb.scope) {
		switch {
		case lb.node:
			x |= covered
		case !covers(lb.tags, v.tags):
		case v.snap.sameAs != 0 && lb.pred == v.snap.sameAs:
			x |= sameness
		default:
			x |= follow
			if r, ok := v.rules[lb.pred]; ok && r.Symmetric {
				x |= back | symmetric
			} else if ok && r.Inverse != 0 {
				x |= back
			}
		}
	}
	atomic.StoreUint32(&v.verdicts[l], x)
	return x
}

func (v *View) inScope(scope int64) bool {
	if v.scopes == nil {
		return true
	}
	_, ok := slices.BinarySearch(v.scopes, scope)
	return ok
}

// covers says whether the view shows the node.
func (v *View) covers(n uint32) bool {
	if v.allNodes {
		return true
	}
	return v.verdict(v.snap.labelOf(n))&covered != 0 && (v.nodeOK == nil || v.nodeOK(v.snap.node(n)))
}

// contract finds the classes of entities declared the same.
func (v *View) contract() {
	s := v.snap
	if len(s.base.same)+len(s.same) == 0 {
		return
	}
	x := s.scratch()
	parent := &x.from
	parent.start(s.nodes())
	joined := x.queue[:0]
	root := func(n uint32) uint32 {
		if !parent.has(n) {
			parent.set(n, n)
			joined = append(joined, n)
		}
		for p := parent.get(n); p != n; p = parent.get(n) {
			parent.set(n, parent.get(p))
			n = p
		}
		return n
	}
	unite := func(e, subject, object, label uint32) {
		if subject == object || s.dead.bit(e) || v.verdict(label)&sameness == 0 || !v.covers(subject) || !v.covers(object) {
			return
		}
		if v.edgeOK != nil && !v.edgeOK(s.edge(e, subject)) {
			return
		}
		low, high := root(subject), root(object)
		if s.id(high) < s.id(low) {
			low, high = high, low
		}
		parent.set(high, low)
	}
	for _, e := range s.base.same {
		unite(e, s.base.subject(e), s.base.object[e], s.base.edge[e])
	}
	for _, e := range s.same {
		d := &s.edges[int(e)-len(s.base.object)]
		unite(e, d.subject, d.object, d.label)
	}
	v.classify(joined, root)
	x.queue = joined
	s.release(x)
}

// classify lays out the classes of the joined nodes.
func (v *View) classify(joined []uint32, root func(uint32) uint32) {
	if len(joined) == 0 {
		return
	}
	// Representatives open their classes, in two passes over the nodes: one
	// counts, one places.
	class := editor{gen: 1}
	for _, n := range joined {
		if root(n) == n {
			v.begins = append(v.begins, 0)
			class.set(n, uint32(len(v.begins)))
		}
	}
	for _, n := range joined {
		if r := root(n); r != n {
			class.set(n, class.at(r))
		}
		v.begins[class.at(n)-1]++
	}
	free := make([]uint32, len(v.begins))
	at := uint32(0)
	for c, size := range v.begins {
		v.begins[c], free[c] = at, at+1
		at += size
	}
	v.begins = append(v.begins, at)
	v.members = make([]uint32, at)
	for _, n := range joined {
		c := class.at(n) - 1
		if root(n) == n {
			v.members[v.begins[c]] = n
		} else {
			v.members[free[c]] = n
			free[c]++
		}
	}
	v.class = class.table
}

// standsFor gives the node that stands for n.
func (v *View) standsFor(n uint32) uint32 {
	if c := v.class.at(n); c != 0 {
		return v.members[v.begins[c-1]]
	}
	return n
}

// shows says whether n is a node of the view rather than hidden or merged
// into another.
func (v *View) shows(n uint32) bool { return v.standsFor(n) == n && v.covers(n) }

// locate finds the node of the view for an entity.
func (v *View) locate(id int64) (uint32, bool) {
	n, ok := v.snap.number(id)
	if !ok || !v.covers(n) {
		return 0, false
	}
	return v.standsFor(n), true
}

// Resolve gives the id that stands for an entity in this view: its own, or the
// lowest of those that are declared the same. It is false for an entity that
// the view does not cover. O(log entities).
func (v *View) Resolve(id int64) (int64, bool) {
	n, ok := v.locate(id)
	if !ok {
		return 0, false
	}
	return v.snap.id(n), true
}

// Snapshot is what the view looks at.
func (v *View) Snapshot() *Snapshot { return v.snap }

// neighbours appends the nodes one step from n, those that rules add included,
// in no order and with repetitions; n itself may be among them.
func (v *View) neighbours(buf []uint32, n uint32, d Direction) []uint32 {
	out, in := v.needs(d)
	return v.expand(buf, n, out, in)
}

// needs gives the verdicts that edges going out and coming in must have for a
// step in that direction, 0 where they do not matter.
func (v *View) needs(d Direction) (out, in uint32) {
	rules := uint32(0)
	if v.ruled {
		rules = back
	}
	switch d {
	case Out:
		return follow, rules
	case In:
		return rules, follow
	}
	return follow, follow
}

// expand appends the nodes at the other ends of the edges that have the needed
// verdicts, for n and what is the same.
func (v *View) expand(buf []uint32, n, out, in uint32) []uint32 {
	if c := v.class.at(n); c != 0 {
		for _, m := range v.members[v.begins[c-1]:v.begins[c]] {
			buf = v.rows(buf, m, out, in)
		}
		return buf
	}
	return v.rows(buf, n, out, in)
}

func (v *View) rows(buf []uint32, n, out, in uint32) []uint32 {
	s, b := v.snap, v.snap.base
	if int(n) < len(b.ids) {
		if out != 0 {
			buf = v.row(buf, n, b.object, b.edge, nil, b.out[n], b.out[n+1], out)
		}
		if in != 0 {
			buf = v.row(buf, n, b.source, b.arriving, b.incoming, b.in[n], b.in[n+1], in)
		}
	}
	if len(s.edges) == 0 {
		return buf
	}
	if out != 0 {
		for i := s.outHead.at(n); i != 0; i = s.edges[i-1].nextOut {
			if d := &s.edges[i-1]; v.verdict(d.label)&out != 0 && v.admits(uint32(len(b.object))+i-1, n, d.object) {
				buf = append(buf, v.standsFor(d.object))
			}
		}
	}
	if in != 0 {
		for i := s.inHead.at(n); i != 0; i = s.edges[i-1].nextIn {
			if d := &s.edges[i-1]; v.verdict(d.label)&in != 0 && v.admits(uint32(len(b.object))+i-1, d.subject, d.subject) {
				buf = append(buf, v.standsFor(d.subject))
			}
		}
	}
	return buf
}

// row appends the other ends in a row of the base. labels and numbers are
// those of its edges; numbers is nil where they are the places in the row.
func (v *View) row(buf []uint32, n uint32, ends, labels, numbers []uint32, lo, hi, need uint32) []uint32 {
	if v.allEdges && need == follow && len(v.snap.dead.pages) == 0 {
		// Nothing to check on the edges; nor are there classes, since a
		// declaration of sameness is no edge to follow.
		if v.allNodes {
			return append(buf, ends[lo:hi]...)
		}
		for _, end := range ends[lo:hi] {
			if v.covers(end) {
				buf = append(buf, end)
			}
		}
		return buf
	}
	for i := lo; i < hi; i++ {
		if v.verdict(labels[i])&need == 0 {
			continue
		}
		e, subject, end := i, n, ends[i]
		if numbers != nil {
			e, subject = numbers[i], end
		}
		if v.admits(e, subject, end) {
			buf = append(buf, v.standsFor(end))
		}
	}
	return buf
}

// admits says whether an edge whose label passed may be followed to its end.
func (v *View) admits(e, subject, end uint32) bool {
	return !v.snap.dead.bit(e) && (v.allNodes || v.covers(end)) && (v.edgeOK == nil || v.edgeOK(v.snap.edge(e, subject)))
}
