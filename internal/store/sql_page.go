package store

// schemaContexts is what schema version 3 adds: scopes of the context store,
// their pages with every revision, and what is kept beside them.
//
// A page's row holds what changes with every touch; its text stands in its
// revisions alone, the current one too, so that a touch writes a short row. The
// length of the current text stands in both, so that counting need not walk the
// revisions. These hang on the page and not on the record, which would cost a
// look-up for every record that is deleted. They are no dense table: long rows
// would leave its inner nodes with few children each.
//
// Nothing refers to a scope with a foreign key, and nothing to the record that
// a page is a copy of, or to the pages that it links to: one function removes
// each of them, and DeepCheck looks.
const schemaContexts = `
CREATE TABLE context_scopes (
	id           {id},
	namespace_id BIGINT NOT NULL,
	scope_id     BIGINT NOT NULL,
	version      BIGINT NOT NULL,
	state        TEXT NOT NULL
);
CREATE UNIQUE INDEX context_scopes_place ON context_scopes (namespace_id, scope_id);
CREATE TABLE context_published (
	context_id {id},
	body       {blob} NOT NULL
);
CREATE TABLE context_policies (
	namespace_id {id},
	policy       TEXT NOT NULL
);
CREATE TABLE pages (
	id           {id} REFERENCES records (id) ON DELETE CASCADE,
	context_id   BIGINT NOT NULL,
	page_id      TEXT NOT NULL,
	version      BIGINT NOT NULL,
	bytes        BIGINT NOT NULL,
	tier         INTEGER NOT NULL,
	outline      INTEGER NOT NULL,
	seq          BIGINT NOT NULL,
	admission    BIGINT NOT NULL,
	row_version  BIGINT NOT NULL,
	pin_reason   TEXT NOT NULL,
	hits         BIGINT NOT NULL,
	touched      BIGINT NOT NULL,
	touched_at   BIGINT NOT NULL,
	evicted_turn BIGINT NOT NULL,
	protected_to BIGINT NOT NULL,
	faults       BIGINT NOT NULL,
	origin_kind  INTEGER,
	origin_id    BIGINT
);
CREATE UNIQUE INDEX pages_name ON pages (context_id, page_id);
CREATE INDEX pages_context ON pages (context_id{then id});
CREATE INDEX pages_resident ON pages (context_id, tier) WHERE tier > 0;
CREATE INDEX pages_origin ON pages (origin_id) WHERE origin_id IS NOT NULL;
CREATE TABLE page_versions (
	page_record BIGINT NOT NULL REFERENCES pages (id) ON DELETE CASCADE,
	version     BIGINT NOT NULL,
	created_at  BIGINT NOT NULL,
	importance  DOUBLE PRECISION NOT NULL,
	operation   TEXT NOT NULL,
	title       TEXT NOT NULL,
	summary     TEXT NOT NULL,
	source      TEXT NOT NULL,
	tags        TEXT,
	links       {blob},
	content     TEXT NOT NULL,
	PRIMARY KEY (page_record, version)
);
CREATE TABLE page_links (
	target      BIGINT NOT NULL,
	page_record BIGINT NOT NULL,
	PRIMARY KEY (target, page_record)
) {dense};
CREATE TABLE context_checkpoints (
	id         {id},
	context_id BIGINT NOT NULL,
	label      TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	pages      {blob}
);
CREATE INDEX context_checkpoints_context ON context_checkpoints (context_id{then id});
CREATE TABLE context_log (
	context_id BIGINT NOT NULL,
	type       INTEGER NOT NULL,
	number     BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	entry_key  TEXT,
	body       TEXT NOT NULL,
	PRIMARY KEY (context_id, type, number)
) {dense};
CREATE UNIQUE INDEX context_log_key ON context_log (context_id, type, entry_key) WHERE entry_key IS NOT NULL;
`

func addContexts(c conn, d dialect) error { return c.exec(d.schemaSQL(schemaContexts)) }

// pageColumns are the columns that readPage reads behind recordColumns.
const pageColumns = recordColumns + `, p.context_id, p.page_id, p.tier, p.outline, p.seq, p.admission, p.row_version,
	p.pin_reason, p.hits, p.touched, p.touched_at, p.evicted_turn, p.protected_to, p.faults, p.origin_kind, p.origin_id,
	` + pageVersionColumns

const pageVersionColumns = `v.version, v.created_at, v.importance, v.operation, v.title, v.summary, v.source, v.tags, v.links, v.content`

// addPageStatements gives the text of the statements of the context store.
func addPageStatements(all *[statementCount]string) {
	const (
		scope    = "SELECT id, namespace_id, scope_id, version, state FROM context_scopes "
		current  = " JOIN page_versions v ON v.page_record = p.id AND v.version = p.version "
		page     = "SELECT " + pageColumns + " FROM pages p JOIN records r ON r.id = p.id" + current
		entry    = "SELECT number, created_at, entry_key, body FROM context_log "
		residing = `tier = $1, outline = $2, seq = $3, admission = $4, row_version = $5, pin_reason = $6, hits = $7,
			touched = $8, touched_at = $9, evicted_turn = $10, protected_to = $11, faults = $12`
	)
	all[sqlAddContext] = "INSERT INTO context_scopes (id, namespace_id, scope_id, version, state) VALUES ($1, $2, $3, $4, $5)"
	all[sqlUpdateContext] = "UPDATE context_scopes SET version = $1, state = $2 WHERE id = $3"
	all[sqlTouchContext] = "UPDATE context_scopes SET version = version + 1 WHERE id = $1"
	all[sqlContext] = scope + "WHERE namespace_id = $1 AND scope_id = $2"
	all[sqlContextByID] = scope + "WHERE id = $1"
	all[sqlContexts] = scope + "WHERE namespace_id = $1 OR $1 = 0 ORDER BY id"
	all[sqlRemoveContext] = "DELETE FROM context_scopes WHERE id = $1"
	all[sqlPublished] = "SELECT body FROM context_published WHERE context_id = $1"
	all[sqlPutPublished] = `INSERT INTO context_published (context_id, body) VALUES ($1, $2)
		ON CONFLICT (context_id) DO UPDATE SET body = excluded.body`
	all[sqlClearPublished] = "DELETE FROM context_published WHERE context_id = $1"
	all[sqlPolicy] = "SELECT policy FROM context_policies WHERE namespace_id = $1"
	all[sqlSetPolicy] = `INSERT INTO context_policies (namespace_id, policy) VALUES ($1, $2)
		ON CONFLICT (namespace_id) DO UPDATE SET policy = excluded.policy`
	all[sqlClearPolicy] = "DELETE FROM context_policies WHERE namespace_id = $1"

	all[sqlAddPage] = `INSERT INTO pages (tier, outline, seq, admission, row_version, pin_reason, hits, touched, touched_at,
		evicted_turn, protected_to, faults, id, context_id, page_id, version, bytes, origin_kind, origin_id)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)`
	all[sqlUpdatePage] = "UPDATE pages SET " + residing + ", version = $13, bytes = $14 WHERE id = $15"
	all[sqlTouchPage] = `UPDATE pages SET hits = hits + $1, touched = CASE WHEN touched < $2 THEN $2 ELSE touched END,
		touched_at = CASE WHEN touched_at < $3 THEN $3 ELSE touched_at END WHERE id = $4`
	all[sqlSetPageState] = "UPDATE pages SET " + residing + " WHERE id = $13"
	all[sqlPage] = page + "WHERE p.id = $1"
	all[sqlPageByID] = page + "WHERE p.context_id = $1 AND p.page_id = $2"
	all[sqlResidentPages] = page + "WHERE p.context_id = $1 AND p.tier > 0"
	all[sqlPagePlace] = "SELECT context_id, page_id FROM pages WHERE id = $1"
	all[sqlPagesAfter] = "SELECT id FROM pages WHERE context_id = $1 AND id > $2 ORDER BY id LIMIT $3"
	all[sqlPageHeads] = `SELECT p.id, p.page_id, p.version, p.tier, p.outline, p.seq, p.admission, p.hits, p.touched,
		p.touched_at, p.evicted_turn, v.title, v.importance, p.bytes FROM pages p` + current +
		"WHERE p.context_id = $1 AND p.id > $2 ORDER BY p.id LIMIT $3"
	all[sqlCountPages] = "SELECT tier, count(*), sum(bytes) FROM pages WHERE context_id = $1 GROUP BY tier"
	all[sqlRecentPages] = "SELECT id FROM pages WHERE context_id = $1 AND tier = $2 ORDER BY touched DESC, id DESC LIMIT $3"
	all[sqlAddPageVersion] = `INSERT INTO page_versions (page_record, version, created_at, importance, operation, title, summary,
		source, tags, links, content) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	all[sqlPageVersion] = "SELECT " + pageVersionColumns + " FROM page_versions v WHERE v.page_record = $1 AND v.version = $2"
	all[sqlPageHistory] = `SELECT version, created_at, operation, octet_length(content) FROM page_versions
		WHERE page_record = $1 ORDER BY version`
	all[sqlPagePlaces] = "SELECT id, version, tier, outline, seq, admission, row_version FROM pages WHERE context_id = $1 ORDER BY id"
	all[sqlPageRowVersion] = `SELECT coalesce(max(o.version), 0) + 1 FROM page_versions n, page_versions o
		WHERE n.page_record = $1 AND n.version = $2 AND o.page_record = $1 AND o.version < $2 AND (o.title <> n.title OR o.summary <> n.summary)`
	all[sqlPageVersionLinks] = "SELECT version, links FROM page_versions WHERE page_record = $1 AND links IS NOT NULL"
	all[sqlSetPageVersionLinks] = "UPDATE page_versions SET links = $1 WHERE page_record = $2 AND version = $3"
	all[sqlAddPageLink] = `INSERT INTO page_links (target, page_record) VALUES ($1, $2)
		ON CONFLICT (target, page_record) DO NOTHING`
	all[sqlDeletePageLink] = "DELETE FROM page_links WHERE target = $1 AND page_record = $2"
	all[sqlDeletePageLinksTo] = "DELETE FROM page_links WHERE target = $1"
	all[sqlPagesLinking] = "SELECT page_record FROM page_links WHERE target = $1 ORDER BY page_record"
	all[sqlCopiesOf] = "SELECT id FROM pages WHERE origin_id = $1 ORDER BY id"
	all[sqlAnyCopy] = "SELECT id FROM pages WHERE origin_id IS NOT NULL LIMIT 1"
	all[sqlRecordHead] = "SELECT " + recordColumns + " FROM records r WHERE r.id = $1"
	all[sqlRecordRevision] = "SELECT revision FROM records WHERE id = $1"

	all[sqlAddLog] = `INSERT INTO context_log (context_id, type, number, created_at, entry_key, body)
		VALUES ($1, $2, $3, $4, $5, $6)`
	all[sqlLogTail] = entry + "WHERE context_id = $1 AND type = $2 ORDER BY number DESC LIMIT $3"
	all[sqlLogByKey] = entry + "WHERE context_id = $1 AND type = $2 AND entry_key = $3"
	all[sqlLogLast] = "SELECT number FROM context_log WHERE context_id = $1 AND type = $2 ORDER BY number DESC LIMIT 1"
	all[sqlTrimLog] = "DELETE FROM context_log WHERE context_id = $1 AND type = $2 AND number <= $3"
	all[sqlClearLog] = "DELETE FROM context_log WHERE context_id = $1"
	all[sqlAddCheckpoint] = `INSERT INTO context_checkpoints (id, context_id, label, created_at, pages)
		VALUES ($1, $2, $3, $4, $5)`
	all[sqlCheckpoints] = "SELECT id, label, created_at FROM context_checkpoints WHERE context_id = $1 ORDER BY id"
	all[sqlCheckpoint] = "SELECT id, label, created_at, pages FROM context_checkpoints WHERE id = $1 AND context_id = $2"
	all[sqlRemoveCheckpoint] = "DELETE FROM context_checkpoints WHERE id = $1 AND context_id = $2"
	all[sqlClearCheckpoints] = "DELETE FROM context_checkpoints WHERE context_id = $1"
}
