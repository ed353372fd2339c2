package loci

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/graph"
	"github.com/loci-memory/loci/internal/store"
)

// The graph index: an adjacency for each namespace that is asked about, in
// memory only. One is built from the truth when it is first needed. From then on
// the writer notes which records each commit changes, and whoever asks next
// reads these in his own snapshot of the truth and brings the adjacency up to
// it. So a write costs next to nothing, a reader always sees the graph as his
// snapshot has it, and a failure costs no more than another build.

const (
	// graphBytes is about how much memory all adjacencies may take. The one
	// asked for last stays, whatever its size.
	graphBytes = 256 << 20
	// graphLimit bounds their number.
	graphLimit = 1024
	// graphSpans is how many snapshots of an adjacency are kept, for readers
	// whose snapshot of the truth is not the latest.
	graphSpans = 4
	// graphSlack is how many changed records are noted at least before an
	// adjacency is given up as too far behind.
	graphSlack = 4096
)

type graphIndex struct {
	mu        sync.Mutex
	graphs    map[int64]*namespaceGraph
	uses      int64
	published int64 // the revision of the last commit that was noted

	points pointGraphs // has a lock of its own

	// What the commit under way changes, if one is.
	staged  int64
	changes []graphChange
}

// graphChange is an entity or a relation that a commit changed.
type graphChange struct {
	revision  int64
	namespace int64
	id        int64
	kind      store.Kind
}

// namespaceGraph is the adjacency of one namespace. Its fields belong to
// graphIndex.mu, except those of whoever holds busy.
type namespaceGraph struct {
	namespace int64
	busy      chan struct{} // held by whoever builds it or brings it up

	adjacency  *graph.Adjacency // busy's
	sameAs     int64            // busy's: the predicate, 0 while nothing uses it
	compacting bool

	from  int64 // commits after this revision are noted
	dirty []graphChange
	spans []graphSpan // ascending
	bytes int
	used  int64
}

// graphSpan is a snapshot that shows the graph at all revisions from from to
// until.
type graphSpan struct {
	from, until int64
	snapshot    *graph.Snapshot
}

const forever = 1<<63 - 1

// stage notes the changes of a commit under way, which may show to readers
// before publish is called.
func (x *graphIndex) stage(revision int64, changes []store.Change) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.staged, x.changes = revision, x.changes[:0]
	for i := range changes {
		c := &changes[i]
		if c.Vector != nil || c.Kind != store.KindEntity && c.Kind != store.KindRelation {
			continue
		}
		change := graphChange{revision, c.Namespace, c.ID, c.Kind}
		x.changes = append(x.changes, change)
		if g := x.graphs[c.Namespace]; g != nil {
			g.dirty = append(g.dirty, change)
		}
	}
	for i := range x.changes {
		if g := x.graphs[x.changes[i].namespace]; g != nil && len(g.dirty) > g.slack() {
			delete(x.graphs, g.namespace)
		}
	}
}

// slack is how many changes it pays to catch up with.
func (g *namespaceGraph) slack() int {
	n := graphSlack
	if len(g.spans) > 0 {
		s := g.spans[len(g.spans)-1].snapshot
		n = max(n, (s.Entities()+s.Relations())/8)
	}
	return n
}

func (x *graphIndex) publish() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.staged != 0 {
		x.published, x.staged = x.staged, 0
	}
}

// discard forgets a commit that failed.
func (x *graphIndex) discard() {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range x.changes {
		g := x.graphs[c.namespace]
		if g != nil && len(g.dirty) > 0 && g.dirty[len(g.dirty)-1].revision == x.staged {
			g.dirty = slices.DeleteFunc(g.dirty, func(d graphChange) bool { return d.revision == x.staged })
		}
	}
	x.staged, x.changes = 0, x.changes[:0]
}

// drop forgets every adjacency.
func (x *graphIndex) drop() {
	x.points.forget()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.graphs = nil
}

// at gives the snapshot of a namespace at a revision. Without one it gives the
// adjacency to bring up, or errAgain when the revision is behind what is kept.
func (x *graphIndex) at(namespace, revision int64) (*graph.Snapshot, *namespaceGraph, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	g := x.graphs[namespace]
	if g == nil {
		g = &namespaceGraph{namespace: namespace, busy: make(chan struct{}, 1), from: x.published}
		if x.staged != 0 {
			for _, c := range x.changes {
				if c.namespace == namespace {
					g.dirty = append(g.dirty, c)
				}
			}
		}
		if x.graphs == nil {
			x.graphs = map[int64]*namespaceGraph{}
		}
		x.graphs[namespace] = g
	}
	x.uses++
	g.used = x.uses
	if revision < g.from {
		return nil, nil, errAgain
	}
	s, err := g.at(revision)
	return s, g, err
}

// at gives the snapshot at a revision, nil when it has yet to be made.
func (g *namespaceGraph) at(revision int64) (*graph.Snapshot, error) {
	for i, span := range slices.Backward(g.spans) {
		if revision < span.from {
			continue
		}
		if revision > span.until {
			return nil, errAgain // between two that were made
		}
		if i == len(g.spans)-1 && slices.ContainsFunc(g.dirty, func(c graphChange) bool { return c.revision <= revision }) {
			return nil, nil
		}
		return span.snapshot, nil
	}
	if len(g.spans) > 0 {
		return nil, errAgain
	}
	return nil, nil
}

// readGraph runs fn with a snapshot of the truth and of a namespace's graph at
// the same revision.
func (e *engine) readGraph(ctx context.Context, namespace string, fn func(*store.ReadTx, *graph.Snapshot) error) error {
	for attempts := 0; attempts < pairAttempts; {
		var wait *namespaceGraph
		err := e.read(ctx, func(tx *store.ReadTx) error {
			id, ok, err := tx.StringID(namespace)
			if err != nil {
				return err
			}
			if !ok {
				return fn(tx, graph.Build(0, nil, nil).Snapshot())
			}
			snapshot, g, err := e.graphs.at(id, tx.Revision())
			if err != nil {
				return err
			}
			if snapshot == nil {
				select {
				case g.busy <- struct{}{}:
				default:
					wait = g
					return errAgain
				}
				snapshot, err = e.bringUp(tx, g)
				<-g.busy
				if err != nil {
					return err
				}
			}
			return fn(tx, snapshot)
		})
		if !errors.Is(err, errAgain) {
			return err
		}
		if wait == nil {
			attempts++
			runtime.Gosched()
			continue
		}
		// Whoever builds it takes a while: no snapshot of the truth is held
		// meanwhile.
		select {
		case wait.busy <- struct{}{}:
			<-wait.busy
		case <-ctx.Done():
			return errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while the graph was read")
		}
	}
	return errs.New(errs.Index, "the graph does not keep up with the writes: retry")
}

// bringUp builds an adjacency, or brings it up to a snapshot of the truth. The
// caller holds busy. What fails half-way is dropped.
func (e *engine) bringUp(tx *store.ReadTx, g *namespaceGraph) (snapshot *graph.Snapshot, err error) {
	x := &e.graphs
	revision := tx.Revision()
	x.mu.Lock()
	var dirty []graphChange
	current := x.graphs[g.namespace] == g
	if current {
		if snapshot, err = g.at(revision); snapshot == nil && err == nil {
			for _, c := range g.dirty {
				if c.revision <= revision {
					dirty = append(dirty, c)
				}
			}
		}
	}
	x.mu.Unlock()
	switch {
	case !current:
		return nil, errAgain
	case snapshot != nil || err != nil:
		return snapshot, err
	}
	done := false
	defer func() {
		if r := recover(); r != nil {
			err = errs.New(errs.Index, "the graph could not be read: %v", r)
		}
		if !done {
			x.forget(g)
		}
	}()
	from, until := int64(0), int64(0)
	if len(dirty) > 0 {
		from, until = dirty[len(dirty)-1].revision, dirty[0].revision-1
	}
	sameAs := g.sameAs
	if sameAs == 0 {
		if sameAs, _, err = tx.StringID(PredicateSameAs); err != nil {
			return nil, err
		}
	}
	build := g.adjacency == nil || sameAs != g.sameAs
	if build {
		g.sameAs = sameAs
		if g.adjacency, err = buildGraph(tx, g.namespace, sameAs, from); err != nil {
			return nil, err
		}
		snapshot = g.adjacency.Snapshot()
	} else {
		changes, err := changedGraph(tx, g.namespace, dirty)
		if err != nil {
			return nil, err
		}
		changes.Revision = from
		snapshot = g.adjacency.Apply(changes)
	}
	x.accept(g, graphSpan{max(from, g.from), forever, snapshot}, until, build)
	if snapshot.NeedsCompaction() {
		e.compactGraph(g)
	}
	done = true
	return snapshot, nil
}

// accept makes a snapshot the latest of its adjacency and gives up others when
// there are too many. The changes up to its revision are in it; the one before it
// holds up to until.
func (x *graphIndex) accept(g *namespaceGraph, span graphSpan, until int64, built bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	g.dirty = slices.DeleteFunc(g.dirty, func(c graphChange) bool { return c.revision <= span.from })
	if built {
		g.spans = nil
	}
	if n := len(g.spans); n > 0 {
		g.spans[n-1].until = until
		if n == graphSpans {
			g.spans = slices.Delete(g.spans, 0, 1)
		}
	}
	g.spans = append(g.spans, span)
	g.bytes = span.snapshot.Bytes()
	for {
		total := 0
		var oldest *namespaceGraph
		for _, other := range x.graphs {
			total += other.bytes
			if other != g && (oldest == nil || other.used < oldest.used) {
				oldest = other
			}
		}
		if oldest == nil || total <= graphBytes && len(x.graphs) <= graphLimit {
			return
		}
		delete(x.graphs, oldest.namespace)
	}
}

// forget gives an adjacency up.
func (x *graphIndex) forget(g *namespaceGraph) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.graphs[g.namespace] == g {
		delete(x.graphs, g.namespace)
	}
}

// compactGraph folds what was written lately into the adjacency's base, in the
// background. The caller holds busy.
func (e *engine) compactGraph(g *namespaceGraph) {
	x := &e.graphs
	x.mu.Lock()
	defer x.mu.Unlock()
	if g.compacting {
		return
	}
	g.compacting = true
	adjacency := g.adjacency
	e.goTask(func() {
		defer func() {
			if recover() != nil {
				x.forget(g)
			}
		}()
		compacted := adjacency.Compact()
		x.mu.Lock()
		defer x.mu.Unlock()
		g.compacting = false
		if n := len(g.spans); n > 0 && g.spans[n-1].snapshot.Revision() == compacted.Revision() {
			g.spans[n-1].snapshot = compacted
			g.bytes = compacted.Bytes()
		}
	})
}

// buildGraph reads all entities and relations of a namespace.
func buildGraph(tx *store.ReadTx, namespace, sameAs, revision int64) (*graph.Adjacency, error) {
	var err error
	a := graph.Build(sameAs,
		func(yield func(graph.Node) bool) {
			err = errors.Join(err, tx.Nodes(namespace, func(n store.Node) bool { return yield(graph.Node{ID: n.ID, Scope: n.Scope}) }))
		},
		func(yield func(graph.Edge) bool) {
			err = errors.Join(err, tx.Edges(namespace, func(e store.Edge) bool { return yield(graphEdge(e)) }))
		})
	if err != nil {
		return nil, err
	}
	a.Apply(graph.Changes{Revision: revision})
	return a, nil
}

func graphEdge(e store.Edge) graph.Edge {
	return graph.Edge{ID: e.ID, Subject: e.Subject, Predicate: e.Predicate, Object: e.Object, Scope: e.Scope, Tags: e.Tags, CreatedAt: e.Created}
}

// changedGraph reads what has become of changed records.
func changedGraph(tx *store.ReadTx, namespace int64, dirty []graphChange) (c graph.Changes, err error) {
	seen := make(map[int64]bool, len(dirty))
	for _, d := range dirty {
		if seen[d.id] {
			continue
		}
		seen[d.id] = true
		found := false
		if d.kind == store.KindEntity {
			var n store.Node
			if n, found, err = tx.Node(namespace, d.id); found {
				c.Nodes = append(c.Nodes, graph.Node{ID: n.ID, Scope: n.Scope})
			}
		} else {
			var e store.Edge
			if e, found, err = tx.Edge(namespace, d.id); found {
				c.Edges = append(c.Edges, graphEdge(e))
			}
		}
		if err != nil {
			return c, err
		}
		if !found {
			c.Removed = append(c.Removed, d.id)
		}
	}
	return c, nil
}
