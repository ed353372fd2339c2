package store

import "strings"

// schemaText is the schema of version 1; what later ones add stands beside their
// migrations. It is written in SQL that
// SQLite and PostgreSQL share, but for the words in braces, which the dialect
// replaces.
//
// A record's tags stand twice: in its row, as a list of dictionary ids in the
// order of their texts, which is how they are read back; and in record_tags,
// which is how they are searched. Neither tags nor dictionary ids carry foreign
// keys: each would cost a look-up per row for rows that only one function
// writes. DeepCheck compares the two.
//
// Hashes of judgments come in no order, and an index over all of them would
// make every record dirty a page of its own. So the index is cut into epochs of
// epochSize ids: inserts touch the latest one only, and a look-up asks each.
const schemaText = `
CREATE TABLE meta (
	one           INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
	lineage       TEXT NOT NULL,
	revision      BIGINT NOT NULL,
	next_id       BIGINT NOT NULL,
	next_string   BIGINT NOT NULL,
	journal_floor BIGINT NOT NULL
);
CREATE TABLE counts (
	kind INTEGER NOT NULL PRIMARY KEY,
	n    BIGINT NOT NULL
);
CREATE TABLE strings (
	id   {id},
	text TEXT NOT NULL UNIQUE
);
CREATE TABLE records (
	id           {id},
	kind         INTEGER NOT NULL,
	namespace_id BIGINT NOT NULL,
	scope_id     BIGINT NOT NULL,
	thread_id    BIGINT,
	position     BIGINT,
	created_at   BIGINT NOT NULL,
	updated_at   BIGINT NOT NULL,
	revision     BIGINT NOT NULL,
	flags        INTEGER NOT NULL,
	tags         {blob},
	metadata     TEXT
);
CREATE INDEX records_list ON records (namespace_id, kind, scope_id{then id});
CREATE UNIQUE INDEX records_thread ON records (namespace_id, scope_id, kind, thread_id, position)
	WHERE thread_id IS NOT NULL;
CREATE TABLE record_tags (
	namespace_id BIGINT NOT NULL,
	tag_id       BIGINT NOT NULL,
	record_id    BIGINT NOT NULL,
	PRIMARY KEY (namespace_id, tag_id, record_id)
) {dense};
CREATE TABLE evidence (
	record_id       BIGINT NOT NULL REFERENCES records (id) ON DELETE CASCADE,
	ordinal         INTEGER NOT NULL,
	source          TEXT NOT NULL,
	source_revision TEXT NOT NULL,
	chunk_id        BIGINT,
	line_offset     BIGINT,
	line_limit      BIGINT,
	quote           TEXT NOT NULL,
	metadata        TEXT,
	PRIMARY KEY (record_id, ordinal)
) {dense};
CREATE TABLE memories (
	id               {id} REFERENCES records (id) ON DELETE CASCADE,
	type_id          BIGINT NOT NULL,
	epoch            INTEGER NOT NULL,
	judgment_hash    BIGINT NOT NULL,
	pinned           INTEGER NOT NULL,
	strength         DOUBLE PRECISION NOT NULL,
	useful_count     BIGINT NOT NULL,
	useful_score     DOUBLE PRECISION NOT NULL,
	last_recalled_at BIGINT,
	last_decay_at    BIGINT,
	judgment         TEXT NOT NULL,
	reasoning        TEXT NOT NULL
);
CREATE INDEX memories_judgment ON memories (epoch, judgment_hash);
CREATE TABLE predicate_rules (
	namespace_id BIGINT NOT NULL,
	predicate    TEXT NOT NULL,
	inverse      TEXT NOT NULL,
	symmetric    INTEGER NOT NULL,
	PRIMARY KEY (namespace_id, predicate)
) {dense};
CREATE TABLE predicate_equivalents (
	namespace_id BIGINT NOT NULL,
	word         TEXT NOT NULL,
	word_group   BIGINT NOT NULL,
	canonical    INTEGER NOT NULL,
	PRIMARY KEY (namespace_id, word)
) {dense};
CREATE TABLE index_updates (
	revision BIGINT NOT NULL,
	part     INTEGER NOT NULL,
	changes  {blob} NOT NULL,
	PRIMARY KEY (revision, part)
) {dense};
`

func (d dialect) schemaSQL(text string) string {
	for word, sql := range d.schema {
		text = strings.ReplaceAll(text, word, sql)
	}
	return text
}

// statement names a prepared statement.
type statement int

const (
	sqlBeginRead statement = iota
	sqlBeginWrite
	sqlCommit
	sqlRollback
	sqlSavepoint
	sqlRelease
	sqlRollbackTo

	sqlReadMeta
	sqlReadRevision
	sqlWriteMeta
	sqlReadCounts
	sqlWriteCount

	sqlStringID
	sqlStringText
	sqlAddString

	sqlAddRecord
	sqlUpdateRecord
	sqlTouchRecord
	sqlDeleteRecord
	sqlThreadHolder
	sqlAddTag
	sqlDeleteTag
	sqlAddEvidence
	sqlDeleteEvidence
	sqlEvidence

	sqlAddMemory
	sqlUpdateMemory
	sqlUpdateState
	sqlMemory
	sqlMemoryIDsByHash

	sqlListScope
	sqlListScopeTime
	sqlListTag
	sqlListThread
	sqlListAll

	sqlSetPredicateRule
	sqlDeletePredicateRule
	sqlPredicateRules
	sqlSetEquivalent
	sqlDeleteEquivalent
	sqlDeleteEquivalents
	sqlEquivalents

	sqlNodes
	sqlNode
	sqlEdges
	sqlEdge

	sqlAddJournal
	sqlReadJournal
	sqlPruneJournal
	sqlJournalPruneBound

	sqlAddEntity
	sqlUpdateEntity
	sqlEntity
	sqlEntityName
	sqlRecordPlace
	sqlAddName
	sqlDeleteName
	sqlEntitiesByName
	sqlEntitiesByAlias
	sqlAddRelation
	sqlUpdateRelation
	sqlRelation
	sqlRelationByTriple
	sqlRelationsOfSubject
	sqlRelationsOfObject
	sqlRelationsOfSubjectIn
	sqlRelationsOfObjectIn
	sqlCountRelationsOfSubject
	sqlCountRelationsOfObject
	sqlAnyRelationOf
	sqlAddEvent
	sqlUpdateEvent
	sqlEvent
	sqlEventIDsByHash
	sqlAddParticipant
	sqlDeleteParticipants
	sqlParticipants
	sqlEventsOf
	sqlEventsOfIn
	sqlAnyEventOf

	sqlAddNote
	sqlUpdateNote
	sqlTouchNote
	sqlNote
	sqlNoteByPath
	sqlNotesIn
	sqlAddChunk
	sqlParkChunks
	sqlMoveChunk
	sqlChunk
	sqlChunksOf
	sqlNoteRoot
	sqlSetNoteRoot
	sqlDeleteNoteRoot

	sqlSpaces
	sqlSpace
	sqlSpaceIDs
	sqlGoingSpaces
	sqlAddSpace
	sqlSetProbe
	sqlDropSpace
	sqlForgetSpace
	sqlVector
	sqlVectorText
	sqlPutVector
	sqlDeleteVector
	sqlVectorBound
	sqlDeleteVectors
	sqlSwitches
	sqlSetSwitch
	sqlReady
	sqlReadyAll
	sqlSetReady
	sqlClearReady
	sqlClearReadyNamespace
	sqlClearReadySpace
	sqlDefaultSpace
	sqlSetDefaultSpace
	sqlClearDefaultSpace
	sqlClearDefaultSpaces
	sqlNamespaceAfter

	sqlAddContext
	sqlUpdateContext
	sqlTouchContext
	sqlContext
	sqlContextByID
	sqlContexts
	sqlPublished
	sqlPutPublished
	sqlPolicy
	sqlSetPolicy
	sqlClearPolicy
	sqlAddPage
	sqlUpdatePage
	sqlSetPageState
	sqlTouchPage
	sqlPage
	sqlPageByID
	sqlResidentPages
	sqlPagePlace
	sqlPagesAfter
	sqlPageHeads
	sqlCountPages
	sqlRecentPages
	sqlAddPageVersion
	sqlPageVersion
	sqlPageHistory
	sqlPagePlaces
	sqlPageRowVersion
	sqlPageVersionLinks
	sqlSetPageVersionLinks
	sqlAddPageLink
	sqlDeletePageLink
	sqlDeletePageLinksTo
	sqlPagesLinking
	sqlCopiesOf
	sqlAnyCopy
	sqlRecordHead
	sqlRecordRevision
	sqlAddLog
	sqlLogTail
	sqlLogByKey
	sqlLogLast
	sqlTrimLog
	sqlAddCheckpoint
	sqlCheckpoints
	sqlCheckpoint
	sqlRemoveCheckpoint
	sqlClearPublished
	sqlClearLog
	sqlClearCheckpoints
	sqlRemoveContext

	sqlAddAgentMemory
	sqlUpdateAgentMemory
	sqlAgentMemory
	sqlAgentMemories
	sqlAddAgentPlace
	sqlRemoveAgentPlace
	sqlAgentPlaces
	sqlAddPoint
	sqlUpdatePoint
	sqlSetCreated
	sqlPoint
	sqlPointByKey
	sqlPointHit
	sqlPointText
	sqlPointTextMetadata
	sqlPointsAfter
	sqlPointTexts
	sqlPointsFrom
	sqlGreatestPoint
	sqlPointKeysFrom
	sqlCountPoints
	sqlPointsRecent
	sqlPointsBetween
	sqlThreadLast
	sqlExpiredPoints
	sqlNextExpiry
	sqlPointsBelow
	sqlAddPointVersion
	sqlPointVersions
	sqlTrimPointVersions
	sqlAddPointEdge
	sqlSetPointEdge
	sqlMovePointEdge
	sqlDeletePointEdge
	sqlPointEdge
	sqlPointEdgeByKey
	sqlPointEdgesFrom
	sqlPointEdgesTo
	sqlPointEdgesIn
	sqlWholePoints
	sqlWholeVersions
	sqlWholeEdges
	sqlPointRef
	sqlDropEdgeTwins
	sqlRepointEdges
	sqlDropEdgesTo
	sqlAdoptEdges
	sqlExpiredIn
	sqlLongHistories
	sqlEdgeTypesFrom
	sqlEdgeTypesTo
	sqlEdgesFrom
	sqlEdgesTo
	sqlEdgeSources
	sqlGraphPoints
	sqlGraphExpiries
	sqlGraphEdges

	sqlCountVersions
	sqlCountEdges
	sqlLiveEdges

	statementCount
)

// recordColumns are the columns that readRecord reads.
const recordColumns = `r.id, r.kind, r.namespace_id, r.scope_id, r.thread_id, r.position, r.created_at, r.updated_at,
	r.revision, r.flags, r.tags, r.metadata`

const memoryColumns = recordColumns + `, m.type_id, m.judgment_hash, m.pinned, m.strength, m.useful_count,
	m.useful_score, m.last_recalled_at, m.last_decay_at, m.judgment, m.reasoning`

// statements gives the text of every statement. Parameters are numbered in
// the order in which they first appear, so that both databases bind them
// alike.
func (d dialect) statements() [statementCount]string {
	all := [statementCount]string{
		sqlBeginRead:  d.beginRead,
		sqlBeginWrite: d.beginWrite,
		sqlCommit:     "COMMIT",
		sqlRollback:   "ROLLBACK",
		sqlSavepoint:  "SAVEPOINT op",
		sqlRelease:    "RELEASE op",
		sqlRollbackTo: "ROLLBACK TO op",

		sqlReadMeta:     "SELECT lineage, revision, next_id, next_string, journal_floor, next_space, clock FROM meta WHERE one = 1",
		sqlReadRevision: "SELECT revision FROM meta WHERE one = 1",
		sqlWriteMeta: `UPDATE meta SET revision = $1, next_id = $2, next_string = $3, journal_floor = $4,
			next_space = $5, clock = $6 WHERE one = 1`,
		sqlReadCounts: "SELECT kind, n FROM counts",
		sqlWriteCount: "INSERT INTO counts (kind, n) VALUES ($1, $2) ON CONFLICT (kind) DO UPDATE SET n = excluded.n",

		sqlStringID:   "SELECT id FROM strings WHERE text = $1",
		sqlStringText: "SELECT text FROM strings WHERE id = $1",
		sqlAddString:  "INSERT INTO strings (id, text) VALUES ($1, $2)",

		sqlAddRecord: `INSERT INTO records (id, kind, namespace_id, scope_id, thread_id, position, created_at,
			updated_at, revision, flags, tags, metadata) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		sqlUpdateRecord: `UPDATE records SET scope_id = $1, thread_id = $2, position = $3, updated_at = $4,
			revision = $5, flags = $6, tags = $7, metadata = $8 WHERE id = $9`,
		sqlTouchRecord:  "UPDATE records SET revision = $1 WHERE id = $2",
		sqlDeleteRecord: "DELETE FROM records WHERE id = $1",
		sqlThreadHolder: `SELECT id FROM records WHERE namespace_id = $1 AND scope_id = $2 AND kind = $3
			AND thread_id = $4 AND position = $5`,
		sqlAddTag:    "INSERT INTO record_tags (namespace_id, tag_id, record_id) VALUES ($1, $2, $3)",
		sqlDeleteTag: "DELETE FROM record_tags WHERE namespace_id = $1 AND tag_id = $2 AND record_id = $3",
		sqlAddEvidence: `INSERT INTO evidence (record_id, ordinal, source, source_revision, chunk_id, line_offset,
			line_limit, quote, metadata) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		sqlDeleteEvidence: "DELETE FROM evidence WHERE record_id = $1",
		sqlEvidence: `SELECT source, source_revision, chunk_id, line_offset, line_limit, quote, metadata
			FROM evidence WHERE record_id = $1 ORDER BY ordinal`,

		sqlAddMemory: `INSERT INTO memories (id, type_id, epoch, judgment_hash, pinned, strength, useful_count,
			useful_score, last_recalled_at, last_decay_at, judgment, reasoning)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
		sqlUpdateMemory: `UPDATE memories SET type_id = $1, judgment_hash = $2, pinned = $3, strength = $4,
			useful_count = $5, useful_score = $6, last_recalled_at = $7, last_decay_at = $8, judgment = $9,
			reasoning = $10 WHERE id = $11`,
		sqlUpdateState: `UPDATE memories SET pinned = $1, strength = $2, useful_count = $3, useful_score = $4,
			last_recalled_at = $5, last_decay_at = $6 WHERE id = $7`,
		sqlMemory:          "SELECT " + memoryColumns + " FROM records r JOIN memories m ON m.id = r.id WHERE r.id = $1",
		sqlMemoryIDsByHash: "SELECT id FROM memories WHERE epoch = $1 AND judgment_hash = $2 ORDER BY id",

		sqlListScope: `SELECT id FROM records WHERE namespace_id = $1 AND kind = $2 AND scope_id = $3 AND id > $4
			ORDER BY id LIMIT $5`,
		sqlListScopeTime: `SELECT id FROM records WHERE namespace_id = $1 AND kind = $2 AND scope_id = $3
			AND id > $4 AND created_at >= $5 AND created_at < $6 ORDER BY id LIMIT $7`,
		sqlListTag: `SELECT record_id FROM record_tags WHERE namespace_id = $1 AND tag_id = $2 AND record_id > $3
			ORDER BY record_id LIMIT $4`,
		sqlListThread: `SELECT id FROM records WHERE namespace_id = $1 AND scope_id = $2 AND kind = $3
			AND thread_id = $4 AND id > $5 ORDER BY id LIMIT $6`,
		sqlListAll: "SELECT id, kind FROM records WHERE id > $1 ORDER BY id LIMIT $2",

		sqlSetPredicateRule: `INSERT INTO predicate_rules (namespace_id, predicate, inverse, symmetric)
			VALUES ($1, $2, $3, $4) ON CONFLICT (namespace_id, predicate) DO UPDATE SET
			inverse = excluded.inverse, symmetric = excluded.symmetric`,
		sqlDeletePredicateRule: "DELETE FROM predicate_rules WHERE namespace_id = $1 AND predicate = $2",
		sqlPredicateRules: `SELECT namespace_id, predicate, inverse, symmetric FROM predicate_rules
			WHERE namespace_id = 0 OR namespace_id = $1 ORDER BY namespace_id, predicate`,
		sqlSetEquivalent: `INSERT INTO predicate_equivalents (namespace_id, word, word_group, canonical)
			VALUES ($1, $2, $3, $4) ON CONFLICT (namespace_id, word) DO UPDATE SET
			word_group = excluded.word_group, canonical = excluded.canonical`,
		sqlDeleteEquivalent:  "DELETE FROM predicate_equivalents WHERE namespace_id = $1 AND word = $2",
		sqlDeleteEquivalents: "DELETE FROM predicate_equivalents WHERE namespace_id = $1",
		sqlEquivalents: `SELECT word, word_group, canonical FROM predicate_equivalents WHERE namespace_id = $1
			ORDER BY word`,

		sqlAddJournal: "INSERT INTO index_updates (revision, part, changes) VALUES ($1, $2, $3)",
		sqlReadJournal: `SELECT revision, part, changes FROM index_updates WHERE revision > $1
			OR (revision = $1 AND part > $2) ORDER BY revision, part LIMIT $3`,
		sqlPruneJournal: "DELETE FROM index_updates WHERE revision <= $1",
		sqlJournalPruneBound: `SELECT revision FROM index_updates WHERE revision <= $1
			ORDER BY revision LIMIT 1 OFFSET $2`,
	}
	addGraphStatements(&all)
	addAdjacencyStatements(&all)
	addNoteStatements(&all)
	addVectorStatements(&all)
	addPageStatements(&all)
	addAgentStatements(&all)
	addTransferStatements(&all)
	addAgentTransferStatements(&all)
	return all
}
