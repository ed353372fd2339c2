package store

// schemaVectors is what schema version 2 adds: spaces of vectors, the vectors,
// and what is set about them. It stands in a migration, and a new database is
// made of version 1 and this.
//
// A vector's key is its space's number above the id of its record, so that the
// vectors of a space lie together in the order of records and one of them is
// one look-up. There is no foreign key to the records: it would cost a look-up
// for every record that is deleted, also where there are no vectors. Whoever
// deletes a record deletes its vectors, and DeepCheck looks.
//
// A space without a name is one that was deleted and whose vectors are still
// being removed. A space's number is never used again.
const schemaVectors = `
ALTER TABLE meta ADD COLUMN next_space BIGINT NOT NULL DEFAULT 1;
CREATE TABLE spaces (
	id           {id},
	name         TEXT UNIQUE,
	model        TEXT NOT NULL,
	dimension    INTEGER NOT NULL,
	text_version INTEGER NOT NULL,
	encoding     INTEGER NOT NULL,
	probe        {blob}
);
CREATE TABLE vectors (
	vector_key  {id},
	fingerprint BIGINT NOT NULL,
	norm        DOUBLE PRECISION NOT NULL,
	value       {blob} NOT NULL
);
CREATE TABLE vectorization (
	namespace_id BIGINT NOT NULL,
	tier         INTEGER NOT NULL,
	enabled      INTEGER NOT NULL,
	PRIMARY KEY (namespace_id, tier)
) {dense};
CREATE TABLE vector_ready (
	namespace_id BIGINT NOT NULL,
	tier         INTEGER NOT NULL,
	space_id     BIGINT NOT NULL,
	PRIMARY KEY (namespace_id, tier, space_id)
) {dense};
CREATE TABLE default_spaces (
	namespace_id BIGINT NOT NULL,
	space_id     BIGINT NOT NULL,
	PRIMARY KEY (namespace_id)
) {dense};
`

func addVectors(c conn, d dialect) error { return c.exec(d.schemaSQL(schemaVectors)) }

// addVectorStatements gives the text of the statements about vectors.
func addVectorStatements(all *[statementCount]string) {
	const space = "SELECT id, name, model, dimension, text_version, encoding, probe FROM spaces "
	all[sqlSpaces] = space + "WHERE name IS NOT NULL ORDER BY name"
	all[sqlSpace] = space + "WHERE name = $1"
	all[sqlSpaceIDs] = "SELECT id FROM spaces ORDER BY id"
	all[sqlGoingSpaces] = "SELECT id FROM spaces WHERE name IS NULL ORDER BY id"
	all[sqlAddSpace] = `INSERT INTO spaces (id, name, model, dimension, text_version, encoding) VALUES ($1, $2, $3, $4, $5, $6)`
	all[sqlSetProbe] = "UPDATE spaces SET probe = $1 WHERE id = $2"
	all[sqlDropSpace] = "UPDATE spaces SET name = NULL, probe = NULL WHERE id = $1"
	all[sqlForgetSpace] = "DELETE FROM spaces WHERE id = $1"

	all[sqlVector] = "SELECT value, norm FROM vectors WHERE vector_key = $1"
	all[sqlVectorText] = "SELECT fingerprint FROM vectors WHERE vector_key = $1"
	all[sqlPutVector] = `INSERT INTO vectors (vector_key, fingerprint, norm, value) VALUES ($1, $2, $3, $4)
		ON CONFLICT (vector_key) DO UPDATE SET fingerprint = excluded.fingerprint, norm = excluded.norm, value = excluded.value`
	all[sqlDeleteVector] = "DELETE FROM vectors WHERE vector_key = $1"
	all[sqlVectorBound] = "SELECT vector_key FROM vectors WHERE vector_key >= $1 AND vector_key < $2 ORDER BY vector_key LIMIT 1 OFFSET $3"
	all[sqlDeleteVectors] = "DELETE FROM vectors WHERE vector_key >= $1 AND vector_key < $2"

	all[sqlSwitches] = "SELECT tier, enabled FROM vectorization WHERE namespace_id = $1"
	all[sqlSetSwitch] = `INSERT INTO vectorization (namespace_id, tier, enabled) VALUES ($1, $2, $3)
		ON CONFLICT (namespace_id, tier) DO UPDATE SET enabled = excluded.enabled`
	all[sqlReady] = "SELECT 1 FROM vector_ready WHERE namespace_id = $1 AND tier = $2 AND space_id = $3"
	all[sqlReadyAll] = "SELECT namespace_id, tier FROM vector_ready"
	all[sqlSetReady] = `INSERT INTO vector_ready (namespace_id, tier, space_id) VALUES ($1, $2, $3)
		ON CONFLICT (namespace_id, tier, space_id) DO NOTHING`
	all[sqlClearReady] = "DELETE FROM vector_ready WHERE namespace_id = $1 AND tier = $2"
	all[sqlClearReadyNamespace] = "DELETE FROM vector_ready WHERE namespace_id = $1"
	all[sqlClearReadySpace] = "DELETE FROM vector_ready WHERE space_id = $1"
	all[sqlDefaultSpace] = "SELECT space_id FROM default_spaces WHERE namespace_id = $1"
	all[sqlSetDefaultSpace] = `INSERT INTO default_spaces (namespace_id, space_id) VALUES ($1, $2)
		ON CONFLICT (namespace_id) DO UPDATE SET space_id = excluded.space_id`
	all[sqlClearDefaultSpace] = "DELETE FROM default_spaces WHERE namespace_id = $1"
	all[sqlClearDefaultSpaces] = "DELETE FROM default_spaces WHERE space_id = $1"
	// The least one above another, again and again, touches an index once for
	// each namespace, where all different ones at once would read all of it.
	all[sqlNamespaceAfter] = "SELECT namespace_id FROM records WHERE namespace_id > $1 ORDER BY namespace_id LIMIT 1"
}
