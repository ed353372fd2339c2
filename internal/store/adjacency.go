package store

import "encoding/binary"

// What the graph index reads: as little of each record as it needs.

// A Node is an entity as the graph index sees it.
type Node struct{ ID, Scope int64 }

// An Edge is a relation as the graph index sees it. Its tags are only valid
// until the next one is read.
type Edge struct {
	ID, Scope, Created         int64
	Subject, Predicate, Object int64 // Predicate is that of the normal form
	Tags                       []int64
}

// addAdjacencyStatements gives the text of the statements of the graph index.
func addAdjacencyStatements(all *[statementCount]string) {
	// Ids and scopes come from an index over the records; the rest is kept in
	// relations, so that an edge costs one look-up and not two.
	const edge = `SELECT r.id, r.scope_id, x.created_at, x.tags, x.subject_id, x.predicate_key_id, x.object_id
		FROM records r JOIN relations x ON x.id = r.id `
	// Entities are read from an index that has all that is needed.
	all[sqlNodes] = "SELECT id, scope_id FROM records WHERE namespace_id = $1 AND kind = $2"
	all[sqlNode] = "SELECT id, scope_id FROM records WHERE id = $1 AND namespace_id = $2 AND kind = $3"
	all[sqlEdges] = edge + "WHERE r.namespace_id = $1 AND r.kind = $2"
	all[sqlEdge] = edge + "WHERE r.id = $1 AND r.namespace_id = $2 AND r.kind = $3"
}

// Nodes calls fn with every entity of a namespace, until fn gives false.
func (s *session) Nodes(namespace int64, fn func(Node) bool) error {
	return s.each(sqlNodes, []int64{namespace, int64(KindEntity)}, func(st stmt) bool { return fn(readNode(st)) })
}

// Edges calls fn with every relation of a namespace, until fn gives false.
func (s *session) Edges(namespace int64, fn func(Edge) bool) error {
	var tags []int64
	return s.each(sqlEdges, []int64{namespace, int64(KindRelation)}, func(st stmt) bool {
		var e Edge
		e, tags = readEdge(st, tags)
		return fn(e)
	})
}

// Node gives an entity of a namespace; false when there is none of this id.
func (s *session) Node(namespace, id int64) (n Node, found bool, err error) {
	err = s.each(sqlNode, []int64{id, namespace, int64(KindEntity)}, func(st stmt) bool {
		n, found = readNode(st), true
		return false
	})
	return n, found, err
}

// Edge gives a relation of a namespace; false when there is none of this id.
func (s *session) Edge(namespace, id int64) (e Edge, found bool, err error) {
	err = s.each(sqlEdge, []int64{id, namespace, int64(KindRelation)}, func(st stmt) bool {
		e, _ = readEdge(st, nil)
		found = true
		return false
	})
	return e, found, err
}

// each runs a statement that takes integers and calls fn at each row, until it
// gives false.
func (s *session) each(which statement, args []int64, fn func(stmt) bool) error {
	st, err := s.stmt(which)
	if err != nil {
		return err
	}
	for i, v := range args {
		st.bindInt(i+1, v)
	}
	defer st.reset()
	for {
		found, err := st.step()
		if err != nil || !found || !fn(st) {
			return err
		}
	}
}

func readNode(st stmt) Node { return Node{st.columnInt(0), st.columnInt(1)} }

// readEdge reads a row; its tags go into the storage of tags, which is given
// back for the next one.
func readEdge(st stmt, tags []int64) (Edge, []int64) {
	tags = tags[:0]
	for raw := st.columnRaw(3); len(raw) > 0; {
		id, n := binary.Uvarint(raw)
		if n <= 0 {
			break
		}
		tags, raw = append(tags, int64(id)), raw[n:]
	}
	return Edge{
		ID: st.columnInt(0), Scope: st.columnInt(1), Created: st.columnInt(2), Tags: tags,
		Subject: st.columnInt(4), Predicate: st.columnInt(5), Object: st.columnInt(6),
	}, tags
}
