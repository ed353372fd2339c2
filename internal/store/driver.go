package store

import (
	"context"
	"time"
)

// conn is what the store needs of a database connection. It is used by one
// goroutine at a time.
type conn interface {
	exec(sql string) error
	prepare(sql string) (stmt, error)
	// interruptOn makes statements stop when ctx ends.
	interruptOn(ctx context.Context)
	// inTransaction says whether a transaction is open: some failures roll a
	// whole transaction back by themselves.
	inTransaction() bool
	changes() int64
	busyTimeout(d time.Duration) error
	// checkpoint moves the log into the database. A blocking one waits for
	// readers of old snapshots, up to the busy timeout, so that the log starts
	// anew.
	checkpoint(blocking bool) (done bool, err error)
	// logPages is the length of the log after the last commit.
	logPages() int
	// copyTo copies the database, as the open read transaction sees it, into an
	// empty file.
	copyTo(ctx context.Context, path string, progress func(done, total int64)) error
	// restoreFrom replaces the whole database by the one in a file, in a transaction
	// of its own.
	restoreFrom(ctx context.Context, path string) error
	// truncateLog is a blocking checkpoint that cuts off the log's file; false when
	// a reader of an older snapshot was still there after wait.
	truncateLog(wait time.Duration) (bool, error)
	close() error
}

// stmt is a prepared statement. A bind that fails is reported by the next
// step or run. Parameters count from 1, columns from 0.
type stmt interface {
	bindInt(i int, v int64)
	bindFloat(i int, v float64)
	bindText(i int, v string)
	bindBlob(i int, v []byte)
	bindNull(i int)

	step() (bool, error)
	// run executes a statement that gives no rows.
	run() error
	reset()

	columnNull(i int) bool
	columnInt(i int) int64
	columnFloat(i int) float64
	columnText(i int) string
	// columnRaw is valid until the next step or reset.
	columnRaw(i int) []byte
	close() error
}

// dialect is what differs between databases.
type dialect struct {
	name string
	// schema is replaced into the type words of the schema text.
	schema map[string]string
	// beginWrite and beginRead open transactions.
	beginWrite, beginRead string
	// settings come after opening, for every connection and for a kind of them.
	settings, writerSettings, readerSettings string
	// application and version read what a database says it is, tables counts
	// what is in it.
	application, version, tables string
	// setIdentity and setVersion write that; they take numbers.
	setIdentity, setVersion string
	// checkPages gives "ok" or what is wrong, checkForeignKeys a row for each
	// reference to nothing.
	checkPages, checkForeignKeys string
	// deferReferences lets references lead to nothing until settleReferences,
	// which trusts that they do not any more.
	deferReferences, settleReferences string
	// copyInto writes a consistent copy to a new file.
	copyInto string
}

var sqliteDialect = dialect{
	name: "sqlite",
	schema: map[string]string{
		"{id}":    "INTEGER PRIMARY KEY",
		"{blob}":  "BLOB",
		"{dense}": "WITHOUT ROWID",
		// SQLite ends every index with the id of its own accord.
		"{then id}": "",
	},
	beginWrite: "BEGIN IMMEDIATE",
	beginRead:  "BEGIN",
	settings: "PRAGMA foreign_keys=ON; PRAGMA temp_store=MEMORY; PRAGMA trusted_schema=OFF; PRAGMA synchronous=FULL; " +
		"PRAGMA fullfsync=ON; ",
	writerSettings:   "PRAGMA journal_mode=WAL; PRAGMA cache_size=-65536; PRAGMA journal_size_limit=67108864",
	readerSettings:   "PRAGMA cache_size=-16384; PRAGMA query_only=ON",
	application:      "PRAGMA application_id",
	version:          "PRAGMA user_version",
	tables:           "SELECT count(*) FROM sqlite_master",
	setIdentity:      "PRAGMA application_id=%d",
	setVersion:       "PRAGMA user_version=%d",
	checkPages:       "PRAGMA quick_check",
	checkForeignKeys: "PRAGMA foreign_key_check",
	deferReferences:  "PRAGMA defer_foreign_keys=ON",
	settleReferences: "PRAGMA defer_foreign_keys=OFF",
	copyInto:         "VACUUM INTO $1",
}
