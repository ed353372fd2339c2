package graph

import (
	"cmp"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// An Adjacency is the graph of one namespace. One writer at a time changes it,
// any number of readers take its snapshots; all methods are safe for
// concurrent use.
type Adjacency struct {
	current atomic.Pointer[Snapshot]

	mu      sync.Mutex // held by writers
	labels  *interner
	place   map[int64]uint32 // numbers of the edges in the overlay that are alive
	gen     uint64
	pending []Changes // what came while a compaction ran
	running bool      // a compaction runs
}

// Build makes an adjacency from all entities and relations of a namespace, in
// any order; of two with one id the later counts. A nil stream is empty. sameAs is the predicate that
// declares two entities the same one, 0 if there is none. The slices in what
// the streams give are not kept.
//
// O(n) for streams by ascending id, O(n log n) otherwise.
func Build(sameAs int64, nodes iter.Seq[Node], edges iter.Seq[Edge]) *Adjacency {
	in := newInterner()
	ns, es := gather(in, nodes, edges)
	ns = resolve(ns, es)
	a := &Adjacency{}
	a.install(&Snapshot{sameAs: sameAs, pool: newPool()}, assemble(ns, es, in.list, sameAs), in)
	return a
}

// install starts over with a new base. What does not belong to the base comes
// from prev.
func (a *Adjacency) install(prev *Snapshot, b *base, in *interner) {
	a.labels = in
	a.place = map[int64]uint32{}
	a.current.Store(&Snapshot{
		base: b, labels: in.list, sameAs: prev.sameAs, names: &names{m: map[int64]uint32{}},
		revision: prev.revision, gone: b.gone, ordered: true, pool: prev.pool,
	})
}

// Snapshot gives the graph as of the last Apply. O(1).
func (a *Adjacency) Snapshot() *Snapshot { return a.current.Load() }

// Apply adds changes and gives the snapshot that has them. Snapshots in hand
// stay as they are. The slices in c must not be changed afterwards.
//
// O(changes * log(graph)), independent of the graph but for a copy of some
// page lists, 8 bytes for each 512 nodes. An overlay that nobody compacted
// although it should have been (see NeedsCompaction) is compacted here once it
// has half the size of its base; that one call is O(graph).
func (a *Adjacency) Apply(c Changes) *Snapshot {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.running {
		a.pending = append(a.pending, c)
	}
	s := a.apply(c)
	if !a.running && s.churn > 1<<14+s.size()/2 {
		b, in := s.rebuilt()
		a.install(s, b, in)
	}
	return a.current.Load()
}

// NeedsCompaction says whether the overlay has grown so large, an eighth of
// its base and some, that queries would gain from Compact.
func (s *Snapshot) NeedsCompaction() bool { return s.churn > 1<<12+s.size()/8 }

func (s *Snapshot) size() int { return len(s.base.ids) + len(s.base.object) }

// Compact folds the overlay into a new base and gives the snapshot over it,
// which shows the same graph. Readers and writers go on meanwhile. Of several
// calls at a time one works, the others return at once. O(graph).
func (a *Adjacency) Compact() *Snapshot {
	a.mu.Lock()
	from := a.current.Load()
	if a.running || from.churn == 0 {
		a.mu.Unlock()
		return from
	}
	a.running = true
	a.mu.Unlock()

	b, in := from.rebuilt()

	a.mu.Lock()
	defer a.mu.Unlock()
	a.install(from, b, in)
	for _, c := range a.pending {
		a.apply(c)
	}
	a.running, a.pending = false, nil
	return a.current.Load()
}

// rebuilt assembles a base from a snapshot. It leaves out dead edges, and
// nodes and labels that nothing needs any more.
func (s *Snapshot) rebuilt() (*base, *interner) {
	in := newInterner()
	in.ids = make(map[labelKey]uint32, len(s.labels))
	moved := make([]uint32, len(s.labels)) // 0 until used; gone stays 0
	move := func(l uint32) uint32 {
		if l != gone && moved[l] == 0 {
			was := &s.labels[l]
			moved[l] = in.intern(was.node, was.pred, was.scope, was.tags)
		}
		return moved[l]
	}
	// Rows know their subject, single edges do not.
	subject := make([]uint32, len(s.base.object))
	for n := range s.base.ids {
		for e := s.base.out[n]; e < s.base.out[n+1]; e++ {
			subject[e] = uint32(n)
		}
	}
	es := make([]rawEdge, 0, s.Relations())
	used := make([]bool, s.nodes())
	keep := func(id, created int64, subject, object, label uint32) {
		used[subject], used[object] = true, true
		es = append(es, rawEdge{id, created, int64(subject), int64(object), move(label)})
	}
	for _, e := range s.base.byID {
		if !s.dead.bit(e) {
			keep(s.base.edgeID[e], s.base.created[e], subject[e], s.base.object[e], s.base.edge[e])
		}
	}
	for i := range s.edges {
		if e := &s.edges[i]; !s.dead.bit(uint32(len(s.base.object) + i)) {
			keep(e.id, e.created, e.subject, e.object, e.label)
		}
	}
	es = arrange(es, func(e rawEdge) int64 { return e.id })

	order := make([]uint32, 0, s.nodes())
	for n := range used {
		if used[n] || s.labelOf(uint32(n)) != gone {
			order = append(order, uint32(n))
		}
	}
	if !s.ordered {
		slices.SortFunc(order, func(x, y uint32) int { return cmp.Compare(s.id(x), s.id(y)) })
	}
	ns := make([]rawNode, len(order))
	number := make([]uint32, s.nodes())
	for i, n := range order {
		ns[i] = rawNode{s.id(n), move(s.labelOf(n))}
		number[n] = uint32(i)
	}
	for i := range es {
		es[i].subject, es[i].object = int64(number[es[i].subject]), int64(number[es[i].object])
	}
	return assemble(ns, es, in.list, s.sameAs), in
}

// A batch is the next snapshot in the making.
type batch struct {
	Snapshot
	a                            *Adjacency
	label, outgo, income, killed editor
}

// apply makes and publishes the next snapshot. The caller holds the lock.
func (a *Adjacency) apply(c Changes) *Snapshot {
	prev := a.current.Load()
	a.gen++
	b := &batch{Snapshot: *prev, a: a}
	b.label = editor{table: prev.nodeLabel, gen: a.gen}
	b.outgo = editor{table: prev.outHead, gen: a.gen}
	b.income = editor{table: prev.inHead, gen: a.gen}
	b.killed = editor{table: prev.dead, gen: a.gen}
	for _, id := range c.Removed {
		if e, ok := b.findEdge(id); ok {
			b.kill(id, e)
		} else if n, ok := b.number(id); ok {
			b.relabel(n, gone)
		}
	}
	for i := range c.Nodes {
		b.relabel(b.ensure(c.Nodes[i].ID), a.labels.node(&c.Nodes[i]))
	}
	for i := range c.Edges {
		b.putEdge(&c.Edges[i])
	}
	next := b.Snapshot
	next.labels, next.revision = a.labels.list, c.Revision
	next.nodeLabel, next.outHead, next.inHead, next.dead = b.label.table, b.outgo.table, b.income.table, b.killed.table
	a.current.Store(&next)
	return &next
}

// findEdge gives the number of the edge that is alive under that id.
func (b *batch) findEdge(id int64) (uint32, bool) {
	if e, ok := b.a.place[id]; ok {
		return e, true
	}
	e, ok := b.base.findEdge(id)
	return e, ok && !b.killed.bit(e)
}

func (b *batch) kill(id int64, e uint32) {
	b.killed.setBit(e)
	b.deadN++
	b.churn++
	delete(b.a.place, id)
}

// labelNow reads what the batch itself may have written.
func (b *batch) labelNow(n uint32) uint32 {
	if l := b.label.at(n); l != 0 {
		return l - 1
	}
	return b.base.label[n]
}

func (b *batch) relabel(n, l uint32) {
	was := b.labelNow(n)
	if was == l {
		return
	}
	if was == gone {
		b.gone--
	}
	if l == gone {
		b.gone++
	}
	b.label.set(n, l+1)
	b.churn++
}

// ensure gives the number of a node; one that is not there is added as gone.
func (b *batch) ensure(id int64) uint32 {
	if n, ok := b.number(id); ok {
		return n
	}
	n := uint32(b.nodes())
	if n > 0 && id < b.id(n-1) {
		b.ordered = false
	}
	b.added = append(b.added, id)
	b.names.put(id, n)
	b.label.set(n, gone+1)
	b.gone++
	b.churn++
	return n
}

func (b *batch) putEdge(e *Edge) {
	l := b.a.labels.edge(e)
	subject, object := b.ensure(e.Subject), b.ensure(e.Object)
	if old, ok := b.findEdge(e.ID); ok {
		if b.equal(old, e.CreatedAt, subject, object, l) {
			return
		}
		b.kill(e.ID, old)
	}
	i := uint32(len(b.edges))
	b.edges = append(b.edges, deltaEdge{
		id: e.ID, created: e.CreatedAt, subject: subject, object: object, label: l,
		nextOut: b.outgo.at(subject), nextIn: b.income.at(object),
	})
	b.outgo.set(subject, i+1)
	b.income.set(object, i+1)
	number := uint32(len(b.base.object)) + i
	if b.sameAs != 0 && e.Predicate == b.sameAs {
		b.same = append(b.same, number)
	}
	b.a.place[e.ID] = number
	b.churn++
}

func (b *batch) equal(e uint32, created int64, subject, object, label uint32) bool {
	if int(e) >= len(b.base.object) {
		d := &b.edges[int(e)-len(b.base.object)]
		return d.created == created && d.subject == subject && d.object == object && d.label == label
	}
	return b.base.created[e] == created && b.base.subject(e) == subject && b.base.object[e] == object && b.base.edge[e] == label
}
