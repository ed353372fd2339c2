package store

// PointEdge is a relation between two points, which may be of different kinds.
type PointEdge struct {
	ID         int64 // the row's
	Source     int64 // records
	Type       string
	Target     int64
	Key        uint64 // the caller's id, unique in the place of the source
	Created    int64
	Properties []byte // nil for the empty object

	// Where the ends lie, and their keys. Reading fills these in; writing takes them
	// from the points.
	SourcePlace, TargetPlace int64
	SourceKey, TargetKey     uint64

	typeID int64
}

// edgeColumns are the columns that readEdgeRow reads.
const edgeColumns = "e.id, e.source, e.type_id, e.target, e.edge_key, e.created_at, e.properties, e.place, e.source_key, e.target_place, e.target_key"

// addEdgeStatements gives the text of the statements about edges between points.
func addEdgeStatements(all *[statementCount]string) {
	const (
		edge = "SELECT " + edgeColumns + " FROM point_edges e "
		live = "(p.expires_at IS NULL OR p.expires_at > $5)"
	)
	all[sqlAddPointEdge] = `INSERT INTO point_edges (id, source, type_id, target, place, edge_key, created_at, properties,
		source_key, target_place, target_key) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, (SELECT point_key FROM points WHERE id = $2),
		(SELECT place FROM points WHERE id = $4), (SELECT point_key FROM points WHERE id = $4))`
	all[sqlSetPointEdge] = "UPDATE point_edges SET properties = $1 WHERE id = $2"
	all[sqlMovePointEdge] = `UPDATE point_edges SET source = $1, target = $2, place = $3, edge_key = $4,
		source_key = (SELECT point_key FROM points p WHERE p.id = $1), target_place = (SELECT p.place FROM points p WHERE p.id = $2),
		target_key = (SELECT point_key FROM points p WHERE p.id = $2) WHERE id = $5`
	all[sqlDeletePointEdge] = "DELETE FROM point_edges WHERE id = $1"
	all[sqlPointEdge] = edge + `WHERE e.source = $1 AND e.type_id = $2 AND e.target_place = (SELECT place FROM points WHERE id = $3)
		AND e.target_key = (SELECT point_key FROM points WHERE id = $3)`
	all[sqlPointEdgeByKey] = edge + "WHERE e.place = $1 AND e.edge_key = $2"
	all[sqlPointEdgesFrom] = edge + "WHERE e.source = $1 ORDER BY e.id"
	all[sqlPointEdgesTo] = edge + "WHERE e.target = $1 ORDER BY e.id"
	all[sqlPointEdgesIn] = edge + "WHERE e.place = $1 AND e.edge_key >= $2 ORDER BY e.edge_key LIMIT $3"
	all[sqlEdgeTypesFrom] = "SELECT type_id FROM point_edges WHERE source = $1 AND type_id > $2 ORDER BY type_id LIMIT 1"
	all[sqlEdgeTypesTo] = "SELECT type_id FROM point_edges WHERE target = $1 AND type_id > $2 ORDER BY type_id LIMIT 1"
	all[sqlEdgesFrom] = edge + `JOIN points p ON p.id = e.target WHERE e.source = $1 AND e.type_id = $2 AND e.target_place = $3
		AND e.target_key >= $4 AND ` + live + " ORDER BY e.target_key LIMIT $6"
	all[sqlEdgesTo] = edge + `JOIN points p ON p.id = e.source WHERE e.target = $1 AND e.type_id = $2 AND e.place = $3
		AND e.source_key >= $4 AND ` + live + " ORDER BY e.source_key LIMIT $6"
	all[sqlEdgeSources] = `SELECT source FROM point_edges WHERE place = $1 AND type_id = $2 AND source_key >= $3
		ORDER BY source_key LIMIT 1`
	all[sqlGraphPoints] = "SELECT id FROM points WHERE place = $1"
	all[sqlGraphExpiries] = "SELECT id, expires_at FROM points WHERE place = $1 AND expires_at IS NOT NULL"
	all[sqlGraphEdges] = "SELECT id, source, type_id, target, created_at FROM point_edges WHERE place = $1 AND target_place = $2"
}

// AddPointEdge writes a new edge, whose place is that of its source, and fills in
// its row. Its key must be free there.
func (tx *WriteTx) AddPointEdge(place int64, e *PointEdge) (err error) {
	if e.typeID, err = tx.intern(e.Type); err != nil {
		return err
	}
	tx.Change()
	e.ID = tx.ownID(e.ID)
	st, err := tx.stmt(sqlAddPointEdge)
	if err != nil {
		return err
	}
	st.bindInt(1, e.ID)
	st.bindInt(2, e.Source)
	st.bindInt(3, e.typeID)
	st.bindInt(4, e.Target)
	st.bindInt(5, place)
	st.bindInt(6, orderedKey(e.Key))
	st.bindInt(7, e.Created)
	bindMetadata(st, 8, e.Properties)
	return st.run()
}

// SetPointEdge writes the properties of an edge.
func (tx *WriteTx) SetPointEdge(e *PointEdge) error {
	st, err := tx.stmt(sqlSetPointEdge)
	if err != nil {
		return err
	}
	tx.Change()
	bindMetadata(st, 1, e.Properties)
	st.bindInt(2, e.ID)
	return tx.runOnOne(st, "edge", e.ID)
}

// MovePointEdge gives an edge other ends, and with them another place and key.
func (tx *WriteTx) MovePointEdge(e *PointEdge, place int64) error {
	st, err := tx.stmt(sqlMovePointEdge)
	if err != nil {
		return err
	}
	tx.Change()
	st.bindInt(1, e.Source)
	st.bindInt(2, e.Target)
	st.bindInt(3, place)
	st.bindInt(4, orderedKey(e.Key))
	st.bindInt(5, e.ID)
	return tx.runOnOne(st, "edge", e.ID)
}

// RemovePointEdge removes an edge.
func (tx *WriteTx) RemovePointEdge(e *PointEdge) error {
	tx.Change()
	return tx.exec(sqlDeletePointEdge, e.ID)
}

// PointEdge gives the edge between two points, by their records; nil when there is
// none.
func (s *session) PointEdge(source int64, typ string, target int64) (*PointEdge, error) {
	id, ok, err := s.StringID(typ)
	if err != nil || !ok {
		return nil, err
	}
	return s.oneEdge(sqlPointEdge, source, id, target)
}

// PointEdgeByKey gives the edge of a place by the caller's id; nil when there is
// none.
func (s *session) PointEdgeByKey(place int64, key uint64) (*PointEdge, error) {
	return s.oneEdge(sqlPointEdgeByKey, place, orderedKey(key))
}

func (s *session) oneEdge(which statement, args ...int64) (*PointEdge, error) {
	found, err := s.pointEdges(which, args...)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

// PointEdgesFrom gives the edges that go out from a point, by the order they were
// made in.
func (s *session) PointEdgesFrom(id int64) ([]*PointEdge, error) {
	return s.pointEdges(sqlPointEdgesFrom, id)
}

// PointEdgesTo gives the edges that come in to a point, likewise.
func (s *session) PointEdgesTo(id int64) ([]*PointEdge, error) {
	return s.pointEdges(sqlPointEdgesTo, id)
}

// PointEdgesIn gives the edges that go out from the points of a place, by
// ascending key behind after, at most limit; after nil begins with the first.
func (s *session) PointEdgesIn(place int64, after *uint64, limit int) ([]*PointEdge, error) {
	from, ok := behind(after)
	if !ok {
		return nil, nil
	}
	return s.pointEdges(sqlPointEdgesIn, place, from, int64(limit))
}

// EdgeSide says which edges of a point are meant.
type EdgeSide bool

// The edges that go out from a point, and those that come in.
const (
	EdgesOut EdgeSide = false
	EdgesIn  EdgeSide = true
)

// EdgeTypes gives the types of the edges of a point, in no order. It costs a
// look-up for each type, however many edges there are.
func (s *session) EdgeTypes(id int64, side EdgeSide) (types []string, err error) {
	which := sqlEdgeTypesFrom
	if side == EdgesIn {
		which = sqlEdgeTypesTo
	}
	for after := int64(0); ; {
		found, err := s.ids(which, id, after)
		if err != nil || len(found) == 0 {
			return types, err
		}
		after = found[0]
		typ, err := s.String(after)
		if err != nil {
			return nil, err
		}
		types = append(types, typ)
	}
}

// EdgesBy gives the edges of a type of a point whose far ends lie in a place and are
// not expired at now, by ascending key of the far end behind after, at most limit;
// after nil begins with the first.
func (s *session) EdgesBy(id int64, side EdgeSide, typ string, place, now int64, after *uint64, limit int) ([]*PointEdge, error) {
	typeID, ok, err := s.StringID(typ)
	if err != nil || !ok {
		return nil, err
	}
	from, ok := behind(after)
	if !ok {
		return nil, nil
	}
	which := sqlEdgesFrom
	if side == EdgesIn {
		which = sqlEdgesTo
	}
	return s.pointEdges(which, id, typeID, place, from, now, int64(limit))
}

// EdgeSource gives the first point of a place, by key from a key on, from which an
// edge of a type goes out, expired or not; nil when there is none.
func (s *session) EdgeSource(place int64, typ string, from uint64) (*Point, error) {
	typeID, ok, err := s.StringID(typ)
	if err != nil || !ok {
		return nil, err
	}
	found, err := s.points(sqlEdgeSources, place, typeID, orderedKey(from))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[0], nil
}

func (s *session) pointEdges(which statement, args ...int64) (out []*PointEdge, err error) {
	err = s.each(which, args, func(st stmt) bool {
		out = append(out, readEdgeRow(st))
		return true
	})
	if err != nil {
		return nil, err
	}
	for _, e := range out {
		if e.Type, err = s.String(e.typeID); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readEdgeRow(st stmt) *PointEdge {
	return &PointEdge{
		ID: st.columnInt(0), Source: st.columnInt(1), typeID: st.columnInt(2), Target: st.columnInt(3),
		Key: keyOfOrdered(st.columnInt(4)), Created: st.columnInt(5), Properties: columnJSON(st, 6),
		SourcePlace: st.columnInt(7), SourceKey: keyOfOrdered(st.columnInt(8)),
		TargetPlace: st.columnInt(9), TargetKey: keyOfOrdered(st.columnInt(10)),
	}
}

// PointIDs calls fn with the record of every point of a place, expired or not, until
// fn gives false.
func (s *session) PointIDs(place int64, fn func(id int64) bool) error {
	return s.each(sqlGraphPoints, []int64{place}, func(st stmt) bool { return fn(st.columnInt(0)) })
}

// PointExpiries calls fn with the record of every point of a place that expires, and
// when it does.
func (s *session) PointExpiries(place int64, fn func(id, at int64)) error {
	return s.each(sqlGraphExpiries, []int64{place}, func(st stmt) bool {
		fn(st.columnInt(0), st.columnInt(1))
		return true
	})
}

// EdgesBetween calls fn with every edge from a point of one place to a point of
// another, until fn gives false. Predicate is the dictionary's id of the type as it
// was given; the scope and the tags of Edge are empty.
func (s *session) EdgesBetween(source, target int64, fn func(Edge) bool) error {
	return s.each(sqlGraphEdges, []int64{source, target}, func(st stmt) bool {
		return fn(Edge{
			ID: st.columnInt(0), Subject: st.columnInt(1), Predicate: st.columnInt(2), Object: st.columnInt(3), Created: st.columnInt(4),
		})
	})
}
