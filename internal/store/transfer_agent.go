package store

// What export needs of agent memory.

// AgentCounts says how much agent memory holds besides the current versions of its
// points, as far as somebody sees it.
type AgentCounts struct {
	Memories int64
	Points   [3]int64 // facts, episodes, procedures that are not expired
	Versions int64    // earlier ones of these
	Edges    int64    // between these
}

// CountAgents counts what agent memory holds that is not expired at now: all of it,
// or that of one namespace. It looks at everything.
func (s *session) CountAgents(namespace string, now int64) (n AgentCounts, err error) {
	id := int64(0)
	if namespace != "" {
		var ok bool
		if id, ok, err = s.StringID(namespace); err != nil || !ok {
			return n, err
		}
	}
	memories, err := s.AgentMemories()
	if err != nil {
		return n, err
	}
	for _, m := range memories {
		if id != 0 && m.NamespaceID != id {
			continue
		}
		n.Memories++
		for i, place := range m.Places {
			points, err := s.CountPoints(place, now)
			if err != nil {
				return n, err
			}
			n.Points[i] += points
			versions, err := s.ids(sqlCountVersions, place, now)
			if err != nil {
				return n, err
			}
			edges, err := s.ids(sqlCountEdges, place, now, m.Places[0], m.Places[1], m.Places[2])
			if err != nil {
				return n, err
			}
			n.Versions += versions[0]
			n.Edges += edges[0]
		}
	}
	return n, nil
}

// LiveEdges calls fn with every edge from a point of a place to a point of one of
// others, neither of them expired at now, by ascending key. An error of fn ends it.
func (s *session) LiveEdges(place, now int64, others [3]int64, fn func(*PointEdge) error) error {
	return s.eachUntil(sqlLiveEdges, []int64{place, now, others[0], others[1], others[2]}, func(st stmt) (err error) {
		e := readEdgeRow(st)
		if e.Type, err = s.String(e.typeID); err != nil {
			return err
		}
		return fn(e)
	})
}

// addAgentTransferStatements gives the text of the statements of export.
func addAgentTransferStatements(all *[statementCount]string) {
	// A CROSS JOIN keeps the order of the tables, and with it that of the edges.
	const ends = ` FROM point_edges e CROSS JOIN points s CROSS JOIN points t
		WHERE e.place = $1 AND s.id = e.source AND t.id = e.target AND (s.expires_at IS NULL OR s.expires_at > $2) AND (t.expires_at IS NULL OR t.expires_at > $2)
		AND e.target_place IN ($3, $4, $5)`
	all[sqlCountVersions] = `SELECT count(*) FROM points p JOIN point_versions v ON v.point = p.id
		WHERE p.place = $1 AND (p.expires_at IS NULL OR p.expires_at > $2)`
	all[sqlCountEdges] = "SELECT count(*)" + ends
	all[sqlLiveEdges] = "SELECT " + edgeColumns + ends + " ORDER BY e.edge_key"
}
