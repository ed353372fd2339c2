package store

// schemaNotes is the part of the schema that holds notes.
//
// A chunk keeps its note from being deleted under it. The namespace, scope and
// path of a note stand in one unique index, which is what makes a file one
// note; a note never changes any of them. When the file had last changed is a
// hint for those who look for changed files, 0 when it says nothing.
const schemaNotes = `
CREATE TABLE notes (
	id           {id} REFERENCES records (id) ON DELETE CASCADE,
	namespace_id BIGINT NOT NULL,
	scope_id     BIGINT NOT NULL,
	path         TEXT NOT NULL,
	bytes        BIGINT NOT NULL,
	chunk_chars  INTEGER NOT NULL,
	modified     BIGINT NOT NULL,
	fingerprint  {blob} NOT NULL
);
CREATE UNIQUE INDEX notes_path ON notes (namespace_id, scope_id, path);
CREATE TABLE chunks (
	id          {id} REFERENCES records (id) ON DELETE CASCADE,
	note_id     BIGINT NOT NULL REFERENCES notes (id) ON DELETE RESTRICT,
	ordinal     INTEGER NOT NULL,
	line_offset BIGINT NOT NULL,
	line_limit  BIGINT NOT NULL,
	content     TEXT NOT NULL
);
CREATE UNIQUE INDEX chunks_note ON chunks (note_id, ordinal);
CREATE TABLE note_roots (
	namespace_id BIGINT NOT NULL PRIMARY KEY,
	path         TEXT NOT NULL
);
`

const noteColumns = recordColumns + `, n.path, n.bytes, n.chunk_chars, n.modified, n.fingerprint`

const chunkColumns = recordColumns + `, c.note_id, c.ordinal, c.line_offset, c.line_limit, c.content, n.path`

func addNoteStatements(all *[statementCount]string) {
	const fromChunks = " FROM chunks c JOIN records r ON r.id = c.id JOIN notes n ON n.id = c.note_id "
	all[sqlAddNote] = `INSERT INTO notes (id, namespace_id, scope_id, path, bytes, chunk_chars, modified, fingerprint)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`
	all[sqlUpdateNote] = "UPDATE notes SET bytes = $1, chunk_chars = $2, modified = $3, fingerprint = $4 WHERE id = $5"
	all[sqlTouchNote] = "UPDATE notes SET modified = $1 WHERE id = $2"
	all[sqlNote] = "SELECT " + noteColumns + " FROM records r JOIN notes n ON n.id = r.id WHERE r.id = $1"
	all[sqlNoteByPath] = "SELECT id FROM notes WHERE namespace_id = $1 AND scope_id = $2 AND path = $3"
	all[sqlNotesIn] = "SELECT id FROM notes WHERE namespace_id = $1 AND scope_id = $2 ORDER BY path"
	all[sqlAddChunk] = `INSERT INTO chunks (id, note_id, ordinal, line_offset, line_limit, content)
		VALUES ($1, $2, $3, $4, $5, $6)`
	all[sqlParkChunks] = "UPDATE chunks SET ordinal = -1 - ordinal WHERE note_id = $1 AND ordinal >= $2"
	all[sqlMoveChunk] = "UPDATE chunks SET ordinal = $1, line_offset = $2, line_limit = $3 WHERE id = $4"
	all[sqlChunk] = "SELECT " + chunkColumns + fromChunks + "WHERE c.id = $1"
	all[sqlChunksOf] = "SELECT " + chunkColumns + fromChunks + `WHERE c.note_id = $1 AND c.ordinal > $2
		ORDER BY c.ordinal LIMIT $3`
	all[sqlNoteRoot] = "SELECT path FROM note_roots WHERE namespace_id = $1"
	all[sqlSetNoteRoot] = `INSERT INTO note_roots (namespace_id, path) VALUES ($1, $2)
		ON CONFLICT (namespace_id) DO UPDATE SET path = excluded.path`
	all[sqlDeleteNoteRoot] = "DELETE FROM note_roots WHERE namespace_id = $1"
}
