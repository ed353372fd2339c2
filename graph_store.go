package loci

// GraphStore keeps the entities, relations and events of the knowledge graph,
// and answers what is asked of them as a graph.
type GraphStore struct {
	eng *engine
}

// Graph gives the knowledge graph.
func (db *DB) Graph() *GraphStore { return &GraphStore{eng: db.eng} }
