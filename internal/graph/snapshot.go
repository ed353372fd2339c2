package graph

import "sync"

// A Snapshot is the graph at one revision. It never changes and is safe for
// concurrent use; it costs little to keep, since snapshots share what did not
// change between them.
type Snapshot struct {
	base   *base
	labels []label // a prefix of the writer's list
	sameAs int64

	// The overlay: what was written since the base was assembled. Its nodes
	// and edges are numbered after those of the base.
	added     []int64 // ids of nodes
	names     *names
	edges     []deltaEdge
	same      []uint32 // edges of the overlay that say two entities are the same one
	nodeLabel table    // label + 1 of nodes that are new or changed
	outHead   table    // number + 1 of the latest edge going out of a node, as an index into edges
	inHead    table    // the same, coming in
	dead      table    // bits: edges that are gone or replaced

	revision int64
	gone     int // nodes labelled so
	deadN    int // edges that are gone or replaced
	churn    int // size of the overlay, for deciding when to compact
	ordered  bool
	pool     *sync.Pool
}

// A deltaEdge is an edge of the overlay. The edges of a node form a list from
// the latest to the first. A snapshot enters the list where it ended when the
// snapshot was made, so later edges cost it nothing and do not show.
type deltaEdge struct {
	id, created     int64
	subject, object uint32
	label           uint32
	nextOut, nextIn uint32 // index + 1 into the overlay's edges, 0 at the end
}

// names finds the nodes of an overlay by id. It is shared by all snapshots
// over one base: a node keeps its number, and a snapshot ignores numbers that
// were given after it.
type names struct {
	mu sync.RWMutex
	m  map[int64]uint32
}

func (t *names) get(id int64) (uint32, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n, ok := t.m[id]
	return n, ok
}

func (t *names) put(id int64, n uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.m[id] = n
}

// Revision is what the last applied Changes called themselves.
func (s *Snapshot) Revision() int64 { return s.revision }

// Entities is the number of entities, whatever their scope.
func (s *Snapshot) Entities() int { return s.nodes() - s.gone }

// Relations is the number of relations, whatever their scope, including those
// that say two entities are the same and those that lack an end.
func (s *Snapshot) Relations() int { return len(s.base.object) + len(s.edges) - s.deadN }

// Bytes is about how much memory the snapshot takes, most of it shared with
// other snapshots.
func (s *Snapshot) Bytes() int {
	const labelBytes, deltaBytes = 96, 40
	n := s.base.bytes() + labelBytes*len(s.labels) + deltaBytes*cap(s.edges) + 24*len(s.added)
	return n + s.nodeLabel.bytes() + s.outHead.bytes() + s.inHead.bytes() + s.dead.bytes()
}

func (s *Snapshot) nodes() int { return len(s.base.ids) + len(s.added) }

// number finds a node, a gone one too.
func (s *Snapshot) number(id int64) (uint32, bool) {
	if n, ok := s.base.find(id); ok {
		return n, true
	}
	if len(s.added) == 0 {
		return 0, false
	}
	n, ok := s.names.get(id)
	return n, ok && int(n) < s.nodes()
}

func (s *Snapshot) id(n uint32) int64 {
	if int(n) < len(s.base.ids) {
		return s.base.ids[n]
	}
	return s.added[int(n)-len(s.base.ids)]
}

func (s *Snapshot) labelOf(n uint32) uint32 {
	if l := s.nodeLabel.at(n); l != 0 {
		return l - 1
	}
	return s.base.label[n]
}

func (s *Snapshot) node(n uint32) Node {
	l := &s.labels[s.labelOf(n)]
	return Node{s.id(n), l.scope, l.tags}
}

// edge gives an edge by its number. The subject comes from the caller, who
// has it at hand.
func (s *Snapshot) edge(e, subject uint32) Edge {
	if b := s.base; int(e) < len(b.object) {
		l := &s.labels[b.edge[e]]
		return Edge{b.edgeID[e], s.id(subject), l.pred, s.id(b.object[e]), l.scope, l.tags, b.created[e]}
	}
	d := &s.edges[int(e)-len(s.base.object)]
	l := &s.labels[d.label]
	return Edge{d.id, s.id(d.subject), l.pred, s.id(d.object), l.scope, l.tags, d.created}
}
