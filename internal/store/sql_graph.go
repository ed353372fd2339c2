package store

// schemaGraph is the part of the schema that holds the knowledge graph.
//
// What a relation or an event stands on cannot be deleted under it: that is
// what the foreign keys to entities are for. entity_names has none: it repeats,
// to be searched, what stands in the entities' own rows, and only one function
// writes it. DeepCheck compares the two.
//
// The scope of a relation or an event stands in the indexes too, so that one
// reader's part of an entity that very many share is read alone.
const schemaGraph = `
CREATE TABLE entities (
	id         {id} REFERENCES records (id) ON DELETE CASCADE,
	type_id    BIGINT NOT NULL,
	name       TEXT NOT NULL,
	name_key   TEXT NOT NULL,
	aliases    TEXT NOT NULL,
	attributes TEXT NOT NULL,
	summary    TEXT NOT NULL
);
CREATE TABLE entity_names (
	namespace_id BIGINT NOT NULL,
	name_key     TEXT NOT NULL,
	scope_id     BIGINT NOT NULL,
	is_alias     INTEGER NOT NULL,
	entity_id    BIGINT NOT NULL,
	PRIMARY KEY (namespace_id, name_key, scope_id, is_alias, entity_id)
) {dense};
CREATE TABLE relations (
	id               {id} REFERENCES records (id) ON DELETE CASCADE,
	scope_id         BIGINT NOT NULL,
	subject_id       BIGINT NOT NULL REFERENCES entities (id) ON DELETE RESTRICT,
	predicate_id     BIGINT NOT NULL,
	predicate_key_id BIGINT NOT NULL,
	object_id        BIGINT NOT NULL REFERENCES entities (id) ON DELETE RESTRICT,
	created_at       BIGINT NOT NULL,
	tags             {blob},
	confidence       DOUBLE PRECISION NOT NULL,
	reason           TEXT NOT NULL
);
CREATE UNIQUE INDEX relations_triple ON relations (subject_id, scope_id, predicate_key_id, object_id);
CREATE INDEX relations_object ON relations (object_id, scope_id{then id});
CREATE TABLE events (
	id            {id} REFERENCES records (id) ON DELETE CASCADE,
	identity_hash BIGINT NOT NULL,
	confidence    DOUBLE PRECISION NOT NULL,
	name          TEXT NOT NULL,
	name_key      TEXT NOT NULL,
	summary       TEXT NOT NULL,
	reason        TEXT NOT NULL
);
CREATE INDEX events_identity ON events (identity_hash);
CREATE TABLE participants (
	event_id  BIGINT NOT NULL REFERENCES events (id) ON DELETE CASCADE,
	entity_id BIGINT NOT NULL REFERENCES entities (id) ON DELETE RESTRICT,
	scope_id  BIGINT NOT NULL,
	PRIMARY KEY (event_id, entity_id)
) {dense};
CREATE INDEX participants_entity ON participants (entity_id, scope_id, event_id);
`

// addGraphStatements gives the text of the statements over the knowledge
// graph.
func addGraphStatements(all *[statementCount]string) {
	for which, text := range map[statement]string{
		sqlAddEntity: `INSERT INTO entities (id, type_id, name, name_key, aliases, attributes, summary)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		sqlUpdateEntity: `UPDATE entities SET type_id = $1, name = $2, name_key = $3, aliases = $4, attributes = $5,
			summary = $6 WHERE id = $7`,
		sqlEntity: "SELECT " + recordColumns + `, e.type_id, e.name, e.name_key, e.aliases, e.attributes, e.summary
			FROM records r JOIN entities e ON e.id = r.id WHERE r.id = $1`,
		sqlEntityName:  "SELECT name FROM entities WHERE id = $1",
		sqlRecordPlace: "SELECT kind, namespace_id, scope_id FROM records WHERE id = $1",
		sqlAddName: `INSERT INTO entity_names (namespace_id, name_key, scope_id, is_alias, entity_id)
			VALUES ($1, $2, $3, $4, $5)`,
		sqlDeleteName: `DELETE FROM entity_names WHERE namespace_id = $1 AND name_key = $2 AND scope_id = $3
			AND is_alias = $4 AND entity_id = $5`,
		sqlEntitiesByName: `SELECT entity_id FROM entity_names WHERE namespace_id = $1 AND name_key = $2
			AND scope_id = $3 AND is_alias = 0 ORDER BY entity_id`,
		sqlEntitiesByAlias: `SELECT entity_id FROM entity_names WHERE namespace_id = $1 AND name_key = $2
			AND scope_id = $3 AND is_alias = 1 ORDER BY entity_id`,

		sqlAddRelation: `INSERT INTO relations (id, scope_id, subject_id, predicate_id, predicate_key_id, object_id,
			confidence, reason, tags, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		sqlUpdateRelation: `UPDATE relations SET scope_id = $1, subject_id = $2, predicate_id = $3,
			predicate_key_id = $4, object_id = $5, confidence = $6, reason = $7, tags = $8 WHERE id = $9`,
		sqlRelation: "SELECT " + recordColumns + `, x.subject_id, x.predicate_id, x.predicate_key_id, x.object_id,
			x.confidence, x.reason FROM records r JOIN relations x ON x.id = r.id WHERE r.id = $1`,
		sqlRelationByTriple: `SELECT id FROM relations WHERE subject_id = $1 AND scope_id = $2
			AND predicate_key_id = $3 AND object_id = $4`,
		sqlRelationsOfSubject:      "SELECT id FROM relations WHERE subject_id = $1",
		sqlRelationsOfObject:       "SELECT id FROM relations WHERE object_id = $1",
		sqlRelationsOfSubjectIn:    "SELECT id FROM relations WHERE subject_id = $1 AND scope_id = $2",
		sqlRelationsOfObjectIn:     "SELECT id FROM relations WHERE object_id = $1 AND scope_id = $2",
		sqlCountRelationsOfSubject: "SELECT count(*) FROM relations WHERE subject_id = $1 AND scope_id = $2",
		sqlCountRelationsOfObject: `SELECT count(*) FROM relations WHERE object_id = $1 AND scope_id = $2
			AND subject_id <> $1`,
		sqlAnyRelationOf: `SELECT id FROM (SELECT id FROM relations WHERE subject_id = $1
			UNION ALL SELECT id FROM relations WHERE object_id = $1) AS x LIMIT 1`,

		sqlAddEvent: `INSERT INTO events (id, identity_hash, confidence, name, name_key, summary, reason)
			VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		sqlUpdateEvent: `UPDATE events SET identity_hash = $1, confidence = $2, name = $3, name_key = $4, summary = $5,
			reason = $6 WHERE id = $7`,
		sqlEvent: "SELECT " + recordColumns + `, v.identity_hash, v.confidence, v.name, v.name_key, v.summary, v.reason
			FROM records r JOIN events v ON v.id = r.id WHERE r.id = $1`,
		sqlEventIDsByHash:     "SELECT id FROM events WHERE identity_hash = $1 ORDER BY id",
		sqlAddParticipant:     "INSERT INTO participants (event_id, entity_id, scope_id) VALUES ($1, $2, $3)",
		sqlDeleteParticipants: "DELETE FROM participants WHERE event_id = $1",
		sqlParticipants:       "SELECT entity_id FROM participants WHERE event_id = $1 ORDER BY entity_id",
		sqlEventsOf:           "SELECT event_id FROM participants WHERE entity_id = $1",
		sqlEventsOfIn: `SELECT event_id FROM participants WHERE entity_id = $1 AND scope_id = $2 AND event_id > $3
			ORDER BY event_id LIMIT $4`,
		sqlAnyEventOf: "SELECT event_id FROM participants WHERE entity_id = $1 LIMIT 1",
	} {
		all[which] = text
	}
}
