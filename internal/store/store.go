package store

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/loci-memory/loci/internal/errs"
)

// DatabaseFile is the name of the database in a data directory.
const DatabaseFile = "loci.db"

// Change says that a record was written or deleted. Doc is what the writer
// handed over for the index, nil when the record is gone, and its vectors with
// it. With Vector set the change is to that vector alone. Outside marks a page
// that went along with a record that it was a copy of, or was deleted as any
// record is: whoever keeps pages did not ask for it.
type Change struct {
	ID        int64
	Namespace int64
	Kind      Kind
	Doc       any
	Vector    *VectorChange
	Outside   bool
}

// VectorChange is the new state of a record's vector in a space; or, for no
// record, that the space is gone with all its vectors.
type VectorChange struct {
	Space    int64
	Encoding uint8     // the space's
	Scope    int64     // the record's
	Values   []float32 // of length 1; nil: the vector is gone
	Dropped  bool      // the space is
}

// Hooks follow the commits. All are called by the writer's goroutine.
type Hooks interface {
	// Stage comes before a commit that will take the store to revision. Each
	// record and each vector stands in changes once, in its last state; the
	// changes of vectors come last.
	Stage(revision int64, changes []Change)
	// Publish comes after the commit, Discard after it failed.
	Publish()
	Discard()
}

type noHooks struct{}

func (noHooks) Stage(int64, []Change) {}
func (noHooks) Publish()              {}
func (noHooks) Discard()              {}

// Options tune Open. The zero value works.
type Options struct {
	// Hooks follow the commits; nil for none.
	Hooks Hooks
	// Random gives the store's lineage when it is made; nil is crypto/rand.
	Random io.Reader
	// Clock gives the time that expiry is judged by, in UTC microseconds. Each
	// commit stores it, and what is stored never goes back. Nil stores none.
	Clock func() int64
	// VFS names a registered file system of the driver; tests inject faults
	// through it.
	VFS string
	// Readers bounds the connections that read at the same time; 0 is 8.
	Readers int
	// CheckpointPages is the length of the log, in pages, from which it is
	// moved into the database in the background; 0 is 4,000. At four times that the
	// writer waits for it.
	CheckpointPages int

	// migrations replaces the real ones in tests.
	migrations []migration
}

// Counters are what the store knows without reading.
type Counters struct {
	Revision     int64
	JournalFloor int64
	Counts       [kindLimit]int64 // records by Kind
}

// Records is the number of records of all kinds.
func (c *Counters) Records() int64 {
	var n int64
	for _, k := range c.Counts {
		n += k
	}
	return n
}

// Store is an open database. It is safe for concurrent use.
type Store struct {
	dir     string
	path    string
	opts    Options
	dialect dialect
	texts   [statementCount]string
	lineage string
	dict    *dict
	// What is kept of what was read, see there.
	shared   *sharedRecords
	settings *settings
	seen     atomic.Int64 // greatest revision that a reader has seen
	clock    int64        // as it was stored at open
	going    []int64      // deleted spaces that had vectors left at open

	counters atomic.Pointer[Counters]
	readers  *readerPool
	writer   *writer
	ckpt     *checkpointer
	closing  sync.Once
	closeErr error
}

// Open opens the database of a data directory, which must exist and be locked
// by the caller. It initialises an empty one and migrates an older one.
func Open(ctx context.Context, dir string, opts Options) (_ *Store, err error) {
	if opts.Hooks == nil {
		opts.Hooks = noHooks{}
	}
	if opts.Random == nil {
		opts.Random = rand.Reader
	}
	if opts.Readers <= 0 {
		opts.Readers = 8
	}
	if opts.CheckpointPages <= 0 {
		opts.CheckpointPages = 4000
	}
	if opts.migrations == nil {
		opts.migrations = migrations
	}
	s := &Store{
		dir: dir, path: filepath.Join(dir, DatabaseFile), opts: opts,
		dialect: sqliteDialect, texts: sqliteDialect.statements(), dict: newDict(),
		shared: newSharedRecords(), settings: &settings{},
	}
	version := len(opts.migrations)
	found, err := s.probe(version)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	if err := createPrivate(s.path); err != nil {
		return nil, err
	}
	c, err := s.open(openWriter)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			c.close()
		}
	}()
	if found == 0 {
		var random [16]byte
		if _, err := io.ReadFull(opts.Random, random[:]); err != nil {
			return nil, errs.Wrap(errs.IO, err, "no random bytes for a new store")
		}
		err = s.initialise(c, version, hex.EncodeToString(random[:]))
	} else {
		err = s.migrate(c, found, version, opts.migrations)
	}
	if err != nil {
		return nil, err
	}
	// From here on the file's own header says what it is, see checkHeader.
	if _, err := c.checkpoint(true); err != nil {
		return nil, err
	}
	s.shareMode()
	w, err := newWriter(s, c)
	if err != nil {
		return nil, err
	}
	if s.ckpt, err = newCheckpointer(s); err != nil {
		return nil, err
	}
	s.readers = newReaderPool(s, opts.Readers)
	s.writer = w
	go s.ckpt.loop()
	go w.loop()
	return s, nil
}

// createPrivate makes an empty database file that only its owner can read,
// unless there is a file.
func createPrivate(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the database file could not be opened: check its permissions")
	}
	return errs.Wrap(errs.IO, f.Close(), "the database file could not be closed")
}

// shareMode gives the log the permissions of the database, which the driver
// does not.
func (s *Store) shareMode() {
	info, err := os.Stat(s.path)
	if err != nil {
		return
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		_ = os.Chmod(s.path+suffix, info.Mode().Perm())
	}
}

func (s *Store) open(mode openMode) (conn, error) { return openSQLite(s.path, s.opts.VFS, mode) }

// Lineage identifies this database among all others; what derives from it
// carries the same.
func (s *Store) Lineage() string { return s.lineage }

// StoredClock is the clock as the last commit before this store was opened stored
// it, in UTC microseconds; 0 when none did.
func (s *Store) StoredClock() int64 { return s.clock }

// Going gives the deleted spaces that still had vectors when the store was
// opened.
func (s *Store) Going() []int64 { return s.going }

// Counters gives the counters of the last commit.
func (s *Store) Counters() *Counters { return s.counters.Load() }

// Close ends the writer and every connection. No call may be running or
// follow, but Close itself.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.writer.stop()
		s.ckpt.stop()
		s.closeErr = errors.Join(s.readers.close(), s.ckpt.session.close(), s.writer.session.close())
	})
	return s.closeErr
}

// Write runs fn as one operation of the writer. It is a transaction of its
// own; what it changes is on disk when Write returns, and the revision is the
// one that it made, or the current one when it changed nothing. fn runs on the
// writer's goroutine, so it should hold no more than the writes themselves.
//
// A context that ends before fn has begun cancels it; later it is too late.
func (s *Store) Write(ctx context.Context, fn func(*WriteTx) error) (revision int64, err error) {
	return s.writer.submit(ctx, fn)
}

// WriteMany is Write for an operation that deletes very many rows. It shares
// its transaction with no other and so needs no savepoint: inside one, SQLite
// would walk all pages saved so far for every row whose deletion has to look at
// foreign keys.
func (s *Store) WriteMany(ctx context.Context, fn func(*WriteTx) error) (revision int64, err error) {
	if err := ctx.Err(); err != nil {
		return 0, errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	return s.writer.enqueue(ctx, &operation{fn: fn, alone: true, done: make(chan struct{})})
}

// Read runs fn with a consistent snapshot.
func (s *Store) Read(ctx context.Context, fn func(*ReadTx) error) error {
	return s.readers.read(ctx, fn)
}

// ReadKept is Read for functions that may need nothing but what is kept in memory: the
// database is asked for a snapshot only once fn needs it. When there was a commit
// between the call and that, the function gets ErrMoved and so does the caller, who
// starts anew, with Read.
func (s *Store) ReadKept(ctx context.Context, fn func(*ReadTx) error) error {
	return s.readers.readKept(ctx, fn)
}

// DiskBytes is the size of the database and its log.
func (s *Store) DiskBytes() int64 {
	var n int64
	for _, path := range []string{s.path, s.path + "-wal"} {
		if info, err := os.Stat(path); err == nil {
			n += info.Size()
		}
	}
	return n
}
