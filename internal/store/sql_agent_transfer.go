package store

// addTransferStatements gives the text of the statements that read and replace the
// points of agent memories as a whole.
//
// A CROSS JOIN keeps the order of the tables, which is that of the rows wanted: a
// plan that sorts would hold everything before it gives the first row.
func addTransferStatements(all *[statementCount]string) {
	const (
		live = "(p.expires_at IS NULL OR p.expires_at > $2)"
		// successor is the point that an edge is to lead to: that of the same id in another
		// place.
		successor = "SELECT n.id FROM points n WHERE n.place = $1 AND n.point_key = point_edges.target_key"
	)
	all[sqlWholePoints] = "SELECT " + pointColumns + `, v.fingerprint, v.value FROM points p CROSS JOIN records r
		LEFT JOIN vectors v ON v.vector_key = $1 + p.id
		WHERE p.place = $2 AND (p.expires_at IS NULL OR p.expires_at > $3) AND r.id = p.id ORDER BY p.point_key`
	all[sqlWholeVersions] = `SELECT v.version, v.recorded_at, v.recorded_to, v.valid_from, v.valid_to, v.title, v.data,
		v.metadata, v.content, p.point_key FROM points p CROSS JOIN point_versions v
		WHERE p.place = $1 AND ` + live + " AND v.point = p.id AND v.version >= p.version - $3 ORDER BY p.point_key, v.version"
	all[sqlWholeEdges] = `SELECT p.point_key, e.type_id, e.target_place, e.target_key, e.edge_key, e.created_at, e.properties
		FROM points p CROSS JOIN point_edges e CROSS JOIN points t
		WHERE p.place = $1 AND ` + live + ` AND e.source = p.id AND e.target_place IN ($3, $4, $5) AND t.id = e.target
		AND (t.expires_at IS NULL OR t.expires_at > $2) ORDER BY p.point_key`
	all[sqlPointRef] = "SELECT id, version, expires_at FROM points WHERE place = $1 AND point_key = $2"
	all[sqlDropEdgeTwins] = `DELETE FROM point_edges WHERE place = $1 AND target_place = $2 AND EXISTS (SELECT 1 FROM point_edges d
		WHERE d.source = point_edges.source AND d.type_id = point_edges.type_id AND d.target_place = $3
		AND d.target_key = point_edges.target_key)`
	all[sqlRepointEdges] = "UPDATE point_edges SET target = (" + successor + `), target_place = $1
		WHERE place = $2 AND target_place = $3 AND EXISTS (` + successor + `)
		AND NOT EXISTS (SELECT 1 FROM points o WHERE o.id = point_edges.target AND o.expires_at <= $4)`
	all[sqlDropEdgesTo] = "DELETE FROM point_edges WHERE place = $1 AND target_place = $2"
	all[sqlAdoptEdges] = `UPDATE point_edges SET place = $1
		WHERE place = $2 AND EXISTS (SELECT 1 FROM points s WHERE s.id = point_edges.source AND s.place = $1)`
	// The sign has them looked for among those that expire, as in sqlCountPoints.
	all[sqlExpiredIn] = "SELECT id FROM points WHERE +place = $1 AND expires_at <= $2 ORDER BY expires_at LIMIT $3"
	all[sqlLongHistories] = `SELECT p.id, p.point_key FROM points p WHERE p.place = $1 AND p.point_key >= $2
		AND EXISTS (SELECT 1 FROM point_versions v WHERE v.point = p.id AND v.version < p.version - $3)
		ORDER BY p.point_key LIMIT $4`
}
