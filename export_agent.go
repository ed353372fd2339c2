package loci

import (
	"encoding/json"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// The lines of agent memory.
type (
	// agentMemoryLine is a memory without its points, which are records.
	agentMemoryLine struct {
		AgentMemory ID              `json:"agent_memory"`
		Namespace   string          `json:"namespace"`
		Scope       string          `json:"scope"`
		Dimension   int             `json:"dimension"`
		Space       string          `json:"space"`
		Snapshot    int64           `json:"snapshot"`         // version of the one taken last, whose file stays behind
		Policy      json.RawMessage `json:"policy,omitempty"` // absent: the default
	}

	// pointPart is what points have beyond a record's header. Their earlier versions
	// follow them.
	pointPart struct {
		PointID      PointID `json:"point_id"` // the caller's
		Version      int64   `json:"version"`
		RecordedAtUS int64   `json:"recorded_at_us"`
		ExpiresAtUS  *int64  `json:"expires_at_us,omitempty"`
	}
	factLine struct {
		Kind Kind `json:"kind"`
		Header
		pointPart
		ValidFromUS *int64 `json:"valid_from_us,omitempty"`
		ValidToUS   *int64 `json:"valid_to_us,omitempty"`
		Content     string `json:"content"`
	}
	episodeLine struct {
		Kind Kind `json:"kind"`
		Header
		pointPart
		AtUS        int64  `json:"at_us"` // as created_at_us
		Description string `json:"description"`
	}
	procedureLine struct {
		Kind Kind `json:"kind"`
		Header
		pointPart
		Confidence float64  `json:"confidence"`
		Uses       int64    `json:"uses"`
		Successes  int64    `json:"successes"`
		LastUsedUS *int64   `json:"last_used_us,omitempty"`
		Name       string   `json:"name"`
		Steps      []string `json:"steps"`
	}

	// pointVersionLine is a version of a point before its current one.
	pointVersionLine struct {
		PointVersion ID       `json:"point_version"` // the point's record
		Version      int64    `json:"version"`
		RecordedAtUS int64    `json:"recorded_at_us"`
		RecordedToUS int64    `json:"recorded_to_us"`
		ValidFromUS  *int64   `json:"valid_from_us,omitempty"` // of a fact
		ValidToUS    *int64   `json:"valid_to_us,omitempty"`
		Metadata     Metadata `json:"metadata"`
		Content      *string  `json:"content,omitempty"` // of a fact, and the description of an episode
		Name         string   `json:"name,omitempty"`    // of a procedure
		Steps        []string `json:"steps,omitempty"`
	}

	// pointEdgeLine is a relation between two points.
	pointEdgeLine struct {
		PointEdge   PointID  `json:"point_edge"` // the caller's
		ID          ID       `json:"id"`         // the store's own
		From        ID       `json:"from"`       // records
		Type        string   `json:"rel_type"`
		To          ID       `json:"to"`
		CreatedAtUS int64    `json:"created_at_us"`
		Properties  Metadata `json:"properties"`
	}
)

// agentCounts says in a header how many lines of agent memory there are besides
// those of the points.
type agentCounts struct {
	Memories int64 `json:"memories"`
	Versions int64 `json:"versions"`
	Edges    int64 `json:"edges"`
}

// exportAgents takes agent memory along.
type exportAgents struct {
	now      int64 // what is expired then stays behind
	counts   agentCounts
	memories []*store.AgentMemory
	places   map[int64]bool // that the memories name
}

// countAgents counts what of agent memory is exported, and sets right what counts,
// of records by kind, says of points.
func (x *exporter) countAgents(tx *store.ReadTx, namespace string, counts map[store.Kind]int64) error {
	n, err := tx.CountAgents(namespace, x.agents.now)
	if err != nil {
		return err
	}
	for i, points := range n.Points {
		kind := store.KindFact + store.Kind(i)
		if delete(counts, kind); points > 0 {
			counts[kind] = points
		}
	}
	x.agents.counts = agentCounts{n.Memories, n.Versions, n.Edges}
	return nil
}

// agentMemories writes the memories.
func (x *exporter) agentMemories(tx *store.ReadTx, namespace string) error {
	all, err := tx.AgentMemories()
	if err != nil {
		return err
	}
	x.agents.places = map[int64]bool{}
	for _, m := range all {
		if namespace != "" && m.Namespace != namespace {
			continue
		}
		if len(m.Settings) > 0 && !json.Valid(m.Settings) {
			return errs.New(errs.Storage, "the database is damaged: the policy of agent memory %d cannot be read: restore a backup", m.ID)
		}
		x.agents.memories = append(x.agents.memories, m)
		for _, place := range m.Places {
			x.agents.places[place] = true
		}
		x.report.AgentMemories++
		if err := x.put(agentMemoryLineOf(m)); err != nil {
			return err
		}
	}
	return nil
}

func agentMemoryLineOf(m *store.AgentMemory) *agentMemoryLine {
	return &agentMemoryLine{
		AgentMemory: ID(m.ID), Namespace: m.Namespace, Scope: m.Scope, Dimension: m.Dimension, Space: m.Space, Snapshot: m.Snapshot,
		Policy: m.Settings,
	}
}

// leavesOut says whether a record stays behind: a point that is expired, or that lies
// in a place which is no memory's, or not yet.
func (x *exporter) leavesOut(r store.Stored) bool {
	p, ok := r.(*store.Point)
	switch {
	case !ok:
		return false
	case !x.agents.places[p.ScopeID]:
		return true
	case p.Expires != nil && *p.Expires <= x.agents.now:
		x.report.ExpiredPoints++
		return true
	}
	return false
}

// stepsOf are the steps of a procedure; false when they cannot be read.
func stepsOf(data []byte) ([]string, bool) {
	var d procedureData
	if json.Unmarshal(data, &d) != nil || len(d.Steps) == 0 {
		return nil, false
	}
	return d.Steps, true
}

// pointLineOf is the line of a point; nil for a procedure whose steps cannot be read.
func pointLineOf(p *store.Point) any {
	head, part := headerOf(&p.Record), pointPart{PointID(p.Key), p.Version, p.Recorded, p.Expires}
	switch p.Kind {
	case store.KindFact:
		return factLine{KindFact, head, part, p.ValidFrom, p.ValidTo, p.Content}
	case store.KindEpisode:
		return episodeLine{KindEpisode, head, part, valueOr(p.Happened, p.Created), p.Content}
	}
	steps, ok := stepsOf(p.Data)
	if !ok {
		return nil
	}
	return procedureLine{KindProcedure, head, part, p.Confidence, p.Uses, p.Successes, p.LastUsed, p.Title, steps}
}

// pointVersions writes what was before the current version of a point.
func (x *exporter) pointVersions(tx *store.ReadTx, r store.Stored) error {
	p, ok := r.(*store.Point)
	if !ok || p.Version == 1 {
		return nil
	}
	versions, err := tx.PointVersions(p.ID)
	if err != nil {
		return err
	}
	for i := range versions {
		line := pointVersionLineOf(p.ID, &versions[i])
		if line == nil {
			return errDamagedSteps(p.ID)
		}
		x.report.PointVersions++
		if err := x.bounded(line, "a version of record", p.ID); err != nil {
			return err
		}
	}
	return nil
}

func errDamagedSteps(id int64) error {
	return errs.New(errs.Storage, "the database is damaged: the steps of procedure %d cannot be read: restore a backup", id)
}

// pointVersionLineOf is the line of a version; nil when its steps cannot be read.
func pointVersionLineOf(record int64, v *store.PointVersion) *pointVersionLine {
	line := &pointVersionLine{
		PointVersion: ID(record), Version: v.Version, RecordedAtUS: v.Recorded, RecordedToUS: v.RecordedTo, ValidFromUS: v.ValidFrom,
		ValidToUS: v.ValidTo, Metadata: Metadata(v.Metadata), Name: v.Title,
	}
	if v.Data == nil {
		line.Content = &v.Content
		return line
	}
	ok := false
	if line.Steps, ok = stepsOf(v.Data); !ok {
		return nil
	}
	return line
}

// pointEdges writes the relations between the points that were written.
func (x *exporter) pointEdges(tx *store.ReadTx) error {
	for _, m := range x.agents.memories {
		for _, place := range m.Places {
			err := tx.LiveEdges(place, x.agents.now, m.Places, func(e *store.PointEdge) error {
				x.report.PointEdges++
				return x.bounded(pointEdgeLineOf(e), "edge", e.ID)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func pointEdgeLineOf(e *store.PointEdge) *pointEdgeLine {
	return &pointEdgeLine{
		PointEdge: PointID(e.Key), ID: ID(e.ID), From: ID(e.Source), Type: e.Type, To: ID(e.Target), CreatedAtUS: e.Created, Properties: Metadata(e.Properties),
	}
}
