package loci

import (
	"fmt"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// importAgents takes agent memory along.
type importAgents struct {
	memories []importedMemory // by id
	places   map[place]int    // in memories
	found    agentCounts
	edges    bool // an edge came

	// Of the line that may be followed by more of its own.
	point   *store.Point
	version store.PointVersion // that came last; its version is 0 for none

	written int // memories, in the second reading
}

// importedMemory is what is remembered of an agent memory between the two readings.
type importedMemory struct {
	id    int64
	line  int
	place place
	now   *store.AgentMemory // as it was written
}

// of is the memory of the file at a place; nil when there is none.
func (a *importAgents) of(at place) *importedMemory {
	i, ok := a.places[at]
	if !ok {
		return nil
	}
	return &a.memories[i]
}

// meetMemory checks the line of an agent memory against the lines before it.
func (im *importer) meetMemory(m *store.AgentMemory, line int, begun bool) error {
	a := &im.agents
	at := place{m.Namespace, m.Scope}
	dimension, ok := im.vectors.dimensions[m.Space]
	switch {
	case begun || im.contexts.begun || a.edges:
		return errs.Invalid("agent_memory", "must stand before the first record")
	case len(a.memories) > 0 && a.memories[len(a.memories)-1].id >= m.ID:
		return errs.Invalid("agent_memory", "is not above that of the memory before it: memories must ascend by id, each once")
	case im.contexts.ids[m.ID]:
		return errs.Invalid("agent_memory", "is the id of something else in this file")
	case im.header.Namespace != "" && m.Namespace != im.header.Namespace:
		return errs.Invalid("namespace", "is not the one that the header names")
	case a.of(at) != nil:
		return errs.Invalid("scope", "is that of another memory")
	case ok && dimension != m.Dimension:
		return errs.Invalid("dimension", "is %d, the space has %d dimensions", m.Dimension, dimension)
	}
	im.contexts.ids[m.ID], im.contexts.log = true, importedLog{}
	a.places[at] = len(a.memories)
	a.memories = append(a.memories, importedMemory{id: m.ID, line: line, place: at})
	a.found.Memories++
	return nil
}

// meetPoint checks the line of a point against those of the memories.
func (im *importer) meetPoint(p *store.Point) error {
	if im.agents.of(place{p.Namespace, p.Scope}) == nil {
		return errs.Invalid("scope", "and namespace are those of no agent memory that a line before the records names")
	}
	im.agents.point, im.agents.version = p, store.PointVersion{}
	return nil
}

// meetVersion checks the line of an earlier version of a point against the lines
// before it.
func (im *importer) meetVersion(v *importedVersion) error {
	a := &im.agents
	p := a.point
	if p == nil || p.ID != v.point {
		return errs.Invalid("point_version", "must follow the line of its point")
	}
	switch {
	case v.procedure != (p.Kind == store.KindProcedure):
		return errs.Invalid("content", "is what facts and episodes have, and name and steps are what procedures have")
	case p.Kind != store.KindFact && (v.ValidFrom != nil || v.ValidTo != nil):
		return errs.Invalid("valid_from_us", "and valid_to_us are what only facts have")
	case v.Version >= p.Version:
		return errs.Invalid("version", "must be below that of the point, whose line has the current one")
	case v.Version <= a.version.Version:
		return errs.Invalid("version", "must be above that of the version before it")
	case a.version.Version > 0 && v.Recorded < a.version.RecordedTo:
		return errs.Invalid("recorded_at_us", "is before the version before it was given up")
	case v.RecordedTo > p.Recorded:
		return errs.Invalid("recorded_to_us", "is after the current version of the point was recorded")
	}
	a.version = v.PointVersion
	a.found.Versions++
	return nil
}

// meetEdge checks the line of a relation between points against all before it.
func (im *importer) meetEdge(e *store.PointEdge) error {
	im.agents.edges = true
	if _, ok := im.rank(e.ID); ok || im.contexts.ids[e.ID] {
		return errs.Invalid("id", "is that of something else in this file")
	}
	var at [2]int32
	for i, end := range []struct {
		field string
		id    int64
	}{{"from", e.Source}, {"to", e.Target}} {
		k, ok := im.rank(end.id)
		if !ok || !im.records[k].kind.IsPoint() {
			return errs.Invalid(end.field, "names a record that is no fact, episode or procedure of this file")
		}
		at[i] = im.records[k].place
	}
	if at[0] != at[1] {
		return errs.Invalid("to", "names a record of another agent memory")
	}
	im.agents.found.Edges++
	return nil
}

// memoryConflicts notes the agent memories that the store has already: ids of callers
// would mean two things.
func (im *importer) memoryConflicts(tx *store.WriteTx) error {
	for _, m := range im.agents.memories {
		there, err := tx.AgentMemory(m.place.namespace, m.place.scope)
		if err != nil {
			return err
		}
		if there != nil && !im.problems.full() {
			im.problems.add(m.line, &errs.Error{Code: errs.Conflict, Field: "scope", Message: fmt.Sprintf(
				"the store has an agent memory in namespace %q, scope %q already, and two are not merged: import into a store without it",
				m.place.namespace, m.place.scope)})
		}
	}
	return nil
}

// addMemory writes an agent memory of the file, with places of its own.
func (im *importer) addMemory(tx *store.WriteTx, in *store.AgentMemory, report *ImportReport) error {
	a := &im.agents
	if a.written == len(a.memories) || a.memories[a.written].id != in.ID {
		return errChanged()
	}
	m := &a.memories[a.written]
	a.written++
	there, err := tx.Space(in.Space)
	if err != nil {
		return err
	}
	// What the points were given would be lost, or lie among what another model made.
	if _, inFile := im.vectors.dimensions[in.Space]; inFile && im.vectors.spaces[in.Space] == nil || there != nil && there.Dimension != in.Dimension {
		return &errs.Error{Code: errs.Conflict, Field: "space",
			Message: fmt.Sprintf("is %q, and the store has another embedding space of this name: import into a store without it", in.Space)}
	}
	row := *in
	m.now = &row
	report.AgentMemories++
	return tx.AddAgentMemory(&row)
}

// settlePoint says where a point lies now.
func (im *importer) settlePoint(p *store.Point) error {
	m := im.agents.of(place{p.Namespace, p.Scope})
	if m == nil || m.now == nil {
		return errChanged()
	}
	p.ScopeID = m.now.Place(p.Kind)
	return nil
}

// addVersion writes an earlier version of the point before it.
func (im *importer) addVersion(tx *store.WriteTx, v *importedVersion, report *ImportReport) error {
	p, ok := im.vectors.record.(*store.Point)
	if !ok || im.lastID() != v.point {
		return errChanged()
	}
	report.PointVersions++
	return tx.PutPointVersions(p.ID, []store.PointVersion{v.PointVersion})
}

// addEdge writes a relation between points, whose ids are base and up where they are
// not kept.
func (im *importer) addEdge(tx *store.WriteTx, e *store.PointEdge, base int64, report *ImportReport) error {
	from, ok := im.rank(e.Source)
	to, too := im.rank(e.Target)
	if !ok || !too {
		return errChanged()
	}
	m := im.agents.of(im.places[im.records[from].place])
	if m == nil || m.now == nil {
		return errChanged()
	}
	if !report.Kept {
		e.Source, e.Target = base+int64(from), base+int64(to)
	}
	report.PointEdges++
	return tx.AddPointEdge(m.now.Place(im.records[from].kind), e)
}

// explainEdge says what stands in the way of a relation between points.
func explainEdge(err error) error {
	return &errs.Error{Code: errs.Conflict, Field: "point_edge", Message: "is that of another relation, or the two ends have one of this type", Err: err}
}
