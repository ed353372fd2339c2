package store

// schemaAgent is what schema version 4 adds: points, which are the facts,
// episodes and procedures of agent memories, with their earlier versions and the
// edges between them; the memories themselves; and the clock that expiry is
// judged by.
//
// A point lies in a scope of the dictionary that no caller can name, its place:
// agent_memories says which place holds the points of a memory's kind now. So a
// memory is replaced as a whole, however many points it has, by writing the new
// ones to a place of their own, in as many transactions as it takes, and then
// naming that place. Places that nothing names stand in agent_places until they
// are empty, also those that a killed process was filling.
//
// A caller's id is an unsigned number of 64 bits; point_key is that number less
// 2^63, which keeps the order. An edge has the places and keys of its ends beside
// their records, since it is read in the order of these; a point keeps both for as
// long as it is there.
const schemaAgent = `
ALTER TABLE meta ADD COLUMN clock BIGINT NOT NULL DEFAULT 0;
CREATE TABLE agent_memories (
	id              {id},
	namespace_id    BIGINT NOT NULL,
	scope_id        BIGINT NOT NULL,
	dimension       INTEGER NOT NULL,
	space           TEXT NOT NULL,
	fact_place      BIGINT NOT NULL,
	episode_place   BIGINT NOT NULL,
	procedure_place BIGINT NOT NULL,
	generation      BIGINT NOT NULL,
	snapshot        BIGINT NOT NULL,
	settings        TEXT
);
CREATE UNIQUE INDEX agent_memories_place ON agent_memories (namespace_id, scope_id);
CREATE TABLE agent_places (
	place {id}
);
CREATE TABLE points (
	id          {id} REFERENCES records (id) ON DELETE CASCADE,
	place       BIGINT NOT NULL,
	point_key   BIGINT NOT NULL,
	version     BIGINT NOT NULL,
	recorded_at BIGINT NOT NULL,
	expires_at  BIGINT,
	valid_from  BIGINT,
	valid_to    BIGINT,
	happened_at BIGINT,
	confidence  DOUBLE PRECISION NOT NULL,
	uses        BIGINT NOT NULL,
	successes   BIGINT NOT NULL,
	last_used   BIGINT,
	title       TEXT NOT NULL,
	data        TEXT,
	content     TEXT NOT NULL
);
CREATE UNIQUE INDEX points_key ON points (place, point_key);
CREATE INDEX points_expiry ON points (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX points_happened ON points (place, happened_at, point_key) WHERE happened_at IS NOT NULL;
CREATE TABLE point_versions (
	point       BIGINT NOT NULL REFERENCES points (id) ON DELETE CASCADE,
	version     BIGINT NOT NULL,
	recorded_at BIGINT NOT NULL,
	recorded_to BIGINT NOT NULL,
	valid_from  BIGINT,
	valid_to    BIGINT,
	title       TEXT NOT NULL,
	data        TEXT,
	metadata    TEXT,
	content     TEXT NOT NULL,
	PRIMARY KEY (point, version)
);
CREATE TABLE point_edges (
	id           {id},
	source       BIGINT NOT NULL REFERENCES points (id) ON DELETE CASCADE,
	type_id      BIGINT NOT NULL,
	target       BIGINT NOT NULL REFERENCES points (id) ON DELETE CASCADE,
	place        BIGINT NOT NULL,
	source_key   BIGINT NOT NULL,
	target_place BIGINT NOT NULL,
	target_key   BIGINT NOT NULL,
	edge_key     BIGINT NOT NULL,
	created_at   BIGINT NOT NULL,
	properties   TEXT
);
CREATE UNIQUE INDEX point_edges_triple ON point_edges (source, type_id, target_place, target_key);
CREATE INDEX point_edges_target ON point_edges (target, type_id, place, source_key);
CREATE INDEX point_edges_type ON point_edges (place, type_id, source_key);
CREATE UNIQUE INDEX point_edges_key ON point_edges (place, edge_key);
`

func addAgent(c conn, d dialect) error { return c.exec(d.schemaSQL(schemaAgent)) }

// pointColumns are the columns that readPoint reads behind recordColumns.
const pointColumns = recordColumns + `, p.point_key, p.version, p.recorded_at, p.expires_at, p.valid_from, p.valid_to,
	p.happened_at, p.confidence, p.uses, p.successes, p.last_used, p.title, p.data, p.content`

// addAgentStatements gives the text of the statements about agent memory.
func addAgentStatements(all *[statementCount]string) {
	const (
		memory = `SELECT id, namespace_id, scope_id, dimension, space, fact_place, episode_place, procedure_place,
			generation, snapshot, settings FROM agent_memories `
		point = "SELECT " + pointColumns + " FROM points p JOIN records r ON r.id = p.id "
		live  = "(expires_at IS NULL OR expires_at > $2)"
	)
	all[sqlAddAgentMemory] = `INSERT INTO agent_memories (id, namespace_id, scope_id, dimension, space, fact_place, episode_place,
		procedure_place, generation, snapshot, settings) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	all[sqlUpdateAgentMemory] = `UPDATE agent_memories SET fact_place = $1, episode_place = $2, procedure_place = $3,
		generation = $4, snapshot = $5, settings = $6 WHERE id = $7`
	all[sqlAgentMemory] = memory + "WHERE namespace_id = $1 AND scope_id = $2"
	all[sqlAgentMemories] = memory + "ORDER BY id"
	all[sqlAddAgentPlace] = "INSERT INTO agent_places (place) VALUES ($1)"
	all[sqlRemoveAgentPlace] = "DELETE FROM agent_places WHERE place = $1"
	all[sqlAgentPlaces] = "SELECT place FROM agent_places ORDER BY place"

	all[sqlAddPoint] = `INSERT INTO points (id, place, point_key, version, recorded_at, expires_at, valid_from, valid_to, happened_at,
		confidence, uses, successes, last_used, title, data, content)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
	all[sqlUpdatePoint] = `UPDATE points SET version = $1, recorded_at = $2, expires_at = $3, valid_from = $4, valid_to = $5,
		happened_at = $6, confidence = $7, uses = $8, successes = $9, last_used = $10, title = $11, data = $12, content = $13
		WHERE id = $14`
	all[sqlSetCreated] = "UPDATE records SET created_at = $1 WHERE id = $2"
	all[sqlPoint] = point + "WHERE p.id = $1"
	all[sqlPointByKey] = point + "WHERE p.place = $1 AND p.point_key = $2"
	all[sqlPointHit] = `SELECT p.point_key, p.content, v.norm, v.value FROM points p LEFT JOIN vectors v ON v.vector_key = $1
		WHERE p.id = $2`
	all[sqlPointText] = "SELECT point_key, content FROM points WHERE id = $1"
	all[sqlPointTextMetadata] = `SELECT p.point_key, p.content, r.metadata FROM points p JOIN records r ON r.id = p.id
		WHERE p.id = $1`
	all[sqlPointsAfter] = "SELECT id FROM points WHERE place = $1 AND " + live + ` AND point_key >= $3
		ORDER BY point_key LIMIT $4`
	all[sqlPointTexts] = "SELECT point_key, content FROM points WHERE place = $1 AND " + live + ` AND point_key >= $3
		ORDER BY point_key LIMIT $4`
	all[sqlPointsFrom] = "SELECT id FROM points WHERE place = $1 AND point_key >= $2 ORDER BY point_key LIMIT $3"
	all[sqlGreatestPoint] = "SELECT point_key FROM points WHERE place = $1 AND " + live + " ORDER BY point_key DESC LIMIT 1"
	all[sqlPointKeysFrom] = "SELECT point_key FROM points WHERE place = $1 AND point_key >= $2 ORDER BY point_key LIMIT $3"
	// The sign has the expired ones, which are few, looked for among those that
	// expire. To look at every point of the place would mean to read it.
	all[sqlCountPoints] = `SELECT (SELECT count(*) FROM points WHERE place = $1) -
		(SELECT count(*) FROM points WHERE +place = $1 AND expires_at <= $2)`
	all[sqlPointsRecent] = "SELECT id FROM points WHERE place = $1 AND " + live + ` AND happened_at >= $3
		ORDER BY happened_at DESC, point_key DESC LIMIT $4`
	all[sqlPointsBetween] = "SELECT id FROM points WHERE place = $1 AND " + live + ` AND happened_at >= $3 AND happened_at < $4
		AND (happened_at, point_key) >= ($5, $6) ORDER BY happened_at, point_key LIMIT $7`
	all[sqlThreadLast] = `SELECT position FROM records WHERE namespace_id = $1 AND scope_id = $2 AND kind = $3 AND thread_id = $4
		AND position IS NOT NULL ORDER BY position DESC LIMIT 1`
	all[sqlExpiredPoints] = "SELECT id FROM points WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2"
	all[sqlNextExpiry] = "SELECT expires_at FROM points WHERE expires_at IS NOT NULL ORDER BY expires_at LIMIT 1"
	all[sqlPointsBelow] = `SELECT id FROM points WHERE place = $1 AND confidence < $2 AND uses > 0 ORDER BY point_key LIMIT $3`

	all[sqlAddPointVersion] = `INSERT INTO point_versions (point, version, recorded_at, recorded_to, valid_from, valid_to, title, data,
		metadata, content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	all[sqlPointVersions] = `SELECT version, recorded_at, recorded_to, valid_from, valid_to, title, data, metadata, content
		FROM point_versions WHERE point = $1 ORDER BY version`
	all[sqlTrimPointVersions] = "DELETE FROM point_versions WHERE point = $1 AND version <= $2"
	addEdgeStatements(all)
}
