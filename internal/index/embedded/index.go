package embedded

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/index"
)

// Options tune an index. Analyze and StoreID are required.
type Options struct {
	// Analyze finds the terms of a text; Version changes whenever it finds other
	// ones, and makes older index files unusable.
	Analyze Analyzer
	Version int
	// StoreID names the store that the index belongs to.
	StoreID string
	// TailDocs and TailBytes bound the segment in memory: past either it is
	// written to a file. 0 means 10,000 documents and 32 MiB.
	TailDocs  int
	TailBytes int
	// VectorBytes bounds what vectors take in it: they are scanned from end to
	// end. 0 means 8 MiB.
	VectorBytes int
	// MinLists is the least number of vectors in a partition of a file that are
	// divided into lists, ScanRows how many a search scans before it uses them,
	// and ProbeRows how many it then looks at at least. 0 means 2,048, 5,000
	// and 200.
	MinLists  int
	ScanRows  int
	ProbeRows int
	// Building opens an index that is being rebuilt; see Index.SetCursor. A new
	// one stands at BaseRevision, from which the journal has to be read when all
	// records are in.
	Building     bool
	BaseRevision int64
	// OnCheckpoint is called, on a goroutine of the index, after the files cover
	// a later revision.
	OnCheckpoint func(revision int64)
	// OnError is called when writing files fails. The index goes on in memory
	// and tries again.
	OnError func(error)
}

// ErrUnusable is returned by Open for files that are damaged, of another
// version or of another store: delete them and rebuild.
var ErrUnusable = errors.New("index files are unusable")

const (
	// keptSnapshots is how many past revisions a reader may still ask for.
	keptSnapshots = 16
	// maxFrozen is how many full tails may wait to be written before a write
	// waits for them.
	maxFrozen = 4
	// closeFlushDocs is the least number of documents or vectors in the tail for which
	// Close writes a segment; fewer are cheaper to read from the journal.
	closeFlushDocs = 64
)

// Index is the embedded index. See index.Index for the protocol.
type Index struct {
	fs   FS
	opts Options

	// write is held by whoever changes the current state: from Stage to Publish
	// or Discard, and by the background work when it swaps segments.
	write   sync.Mutex
	segs    []segView
	vecSegs []vecSegView
	tails   []*tail // oldest first; all but the last are frozen
	undo    undoLog
	dropped []int64 // spaces that were dropped; never changed, only replaced
	// forgetting says that the manifest does not yet name all of them.
	forgetting bool
	found      []vecFound // scratch of Stage
	rowBuf     []byte     // likewise
	nextSeg    int
	nextDel    int
	cursor     int64 // of a rebuild; see SetCursor
	built      bool  // complete

	// mu guards the snapshots; it is held for moments only.
	mu   sync.Mutex
	cur  *snapshot
	ring []*snapshot // recent ones, a staged one last
	live []*snapshot // with references, in the order they were made

	checkpointed atomic.Int64
	checkpointMu sync.Mutex // one checkpoint at a time
	manifest     manifest   // as last written
	persisted    map[*mappedFile]persistedDeletes
	obsolete     []*mappedFile // replaced, still named by the manifest on disk

	work     chan struct{}
	merges   chan struct{}
	frozenOK *sync.Cond // on write: a frozen tail was written
	quit     chan struct{}
	wg       sync.WaitGroup
	closed   bool
	flushErr error      // the last attempt to write a tail failed
	flushMu  sync.Mutex // one flush at a time
	mergeMu  sync.Mutex // one merge at a time
}

type segView struct {
	*segment
	del *deleteSet
}

// undoLog says how to take a staged change back.
type undoLog struct {
	rev      int64
	segs     []segView
	removed  []removal
	docs     uint32 // in the current tail before
	segGone  []segRemoval
	snapshot *snapshot

	vecSegs    []vecSegView
	vecGone    []vecRemoval
	vecRows    uint32 // in the current tail before
	vecSegGone []vecSegRemoval
}

type removal struct {
	t   *tail
	id  int64
	loc tailLoc
}

type segRemoval struct {
	s    *segment
	part int
	doc  uint32
}

// Open opens the index in fs, or begins an empty one.
func Open(fs FS, opts Options) (*Index, error) {
	if opts.TailDocs == 0 {
		opts.TailDocs = 10_000
	}
	if opts.TailBytes == 0 {
		opts.TailBytes = 32 << 20
	}
	if opts.VectorBytes == 0 {
		opts.VectorBytes = 8 << 20
	}
	if opts.MinLists == 0 {
		opts.MinLists = 2048
	}
	if opts.ScanRows == 0 {
		opts.ScanRows = 5000
	}
	if opts.ProbeRows == 0 {
		opts.ProbeRows = 200
	}
	if opts.OnCheckpoint == nil {
		opts.OnCheckpoint = func(int64) {}
	}
	if opts.OnError == nil {
		opts.OnError = func(error) {}
	}
	if err := fs.MkdirAll(); err != nil {
		return nil, err
	}
	ix := &Index{fs: fs, opts: opts, persisted: map[*mappedFile]persistedDeletes{}, work: make(chan struct{}, 1), merges: make(chan struct{}, 1), quit: make(chan struct{}), built: !opts.Building}
	ix.frozenOK = sync.NewCond(&ix.write)
	if err := ix.load(); err != nil {
		ix.releaseAll()
		return nil, err
	}
	ix.tails = []*tail{newTail()}
	ix.tails[0].startRev = ix.manifest.Revision
	ix.tails[0].startCursor = ix.manifest.Cursor
	ix.tails[0].whole = ix.built
	ix.cursor = ix.manifest.Cursor
	ix.checkpointed.Store(ix.manifest.Revision)
	ix.install(ix.newSnapshot(ix.manifest.Revision))
	ix.wg.Add(2)
	go ix.background(ix.work, ix.flushFrozen)
	go ix.background(ix.merges, ix.mergeAll)
	ix.wakeMerge()
	return ix, nil
}

func (ix *Index) releaseAll() {
	for _, s := range ix.segs {
		if err := s.release(ix.fs); err != nil {
			ix.opts.OnError(err)
		}
	}
	for _, s := range ix.vecSegs {
		if err := s.release(ix.fs); err != nil {
			ix.opts.OnError(err)
		}
	}
	ix.segs, ix.vecSegs = nil, nil
}

// Complete says whether the index holds every record up to its revision; false
// while it is being rebuilt.
func (ix *Index) Complete() bool {
	ix.write.Lock()
	defer ix.write.Unlock()
	return ix.built
}

// Cursor is the id of the last record that a rebuild has put into files.
func (ix *Index) Cursor() int64 {
	ix.checkpointMu.Lock()
	defer ix.checkpointMu.Unlock()
	return ix.manifest.Cursor
}

// SetCursor notes that a rebuild has published all records up to id. It comes
// to disk with the next checkpoint that covers them.
func (ix *Index) SetCursor(id int64) {
	ix.write.Lock()
	defer ix.write.Unlock()
	ix.cursor = id
}

// SetComplete ends a rebuild: the next checkpoint says that the index is whole.
func (ix *Index) SetComplete() {
	ix.write.Lock()
	defer ix.write.Unlock()
	ix.built = true
	if t := ix.tails[len(ix.tails)-1]; !t.empty() {
		ix.freeze()
	} else {
		t.whole = true
	}
}

// Abandon lets go of all files without writing anything more, after a failure
// that leaves the state in memory in doubt.
func (ix *Index) Abandon() {
	if ix.stop() {
		ix.letGo()
	}
}

// Prepare implements index.Index.
func (ix *Index) Prepare(d *index.Document) *index.Prepared {
	return &index.Prepared{Document: d, Analysed: analyse(ix.opts.Analyze, d)}
}

// Stage implements index.Index. Until Publish or Discard the index is held: no
// other Stage and no swap of segments may come between.
func (ix *Index) Stage(revision int64, changes []index.Change) {
	ix.write.Lock()
	staged := false
	defer func() {
		if !staged {
			ix.write.Unlock() // a panic is on its way to the caller
		}
	}()
	for len(ix.tails) > maxFrozen && ix.flushErr == nil && !ix.closed {
		ix.frozenOK.Wait()
	}
	ix.mu.Lock()
	oldest := ix.live[0].rev
	ix.mu.Unlock()
	u := &ix.undo
	*u = undoLog{rev: revision, segs: slices.Clone(ix.segs), removed: u.removed[:0], segGone: u.segGone[:0],
		vecSegs: slices.Clone(ix.vecSegs), vecGone: u.vecGone[:0], vecSegGone: u.vecSegGone[:0]}
	cur := ix.tails[len(ix.tails)-1]
	u.docs, u.vecRows = cur.docs, cur.vectors.rows
	for i := range changes {
		c := &changes[i]
		if c.Vector != nil {
			ix.stageVector(c, revision, oldest)
			continue
		}
		ix.remove(c, revision, oldest)
		if c.Doc != nil {
			cur.add(c.Doc)
		}
		ix.stageVectorsOf(c, revision, oldest)
	}
	u.snapshot = ix.newSnapshot(revision)
	ix.mu.Lock()
	ix.ring = append(ix.ring, u.snapshot)
	ix.live = append(ix.live, u.snapshot)
	ix.mu.Unlock()
	staged = true
}

// remove marks the document of a record as deleted, wherever it is.
func (ix *Index) remove(c *index.Change, rev, oldest int64) {
	for i := len(ix.tails) - 1; i >= 0; i-- {
		t := ix.tails[i]
		if loc, ok := t.live[c.ID]; ok {
			t.remove(c.ID, loc, rev, oldest)
			ix.undo.removed = append(ix.undo.removed, removal{t, c.ID, loc})
			return
		}
	}
	key := partKey{c.Namespace, c.Kind}
	for i := range ix.segs {
		s := &ix.segs[i]
		part, ok := s.partition(key)
		if !ok {
			continue
		}
		doc, ok := s.find(part, c.ID)
		if !ok || s.del.has(doc) {
			continue
		}
		if s.del == ix.undo.segs[i].del {
			s.del = s.del.clone()
		}
		s.del.add(doc)
		s.deletes.remove(s.segment, part, doc, rev, oldest)
		ix.undo.segGone = append(ix.undo.segGone, segRemoval{s.segment, part, doc})
		return
	}
}

// Publish implements index.Index.
func (ix *Index) Publish() {
	defer ix.write.Unlock() // also after a panic, or nobody could abandon the index
	s := ix.undo.snapshot
	ix.undo.snapshot = nil
	ix.install(s)
	t := ix.tails[len(ix.tails)-1]
	if int(t.docs) >= ix.opts.TailDocs || t.bytes >= ix.opts.TailBytes || t.vectors.bytes >= ix.opts.VectorBytes {
		ix.freeze()
	}
}

// freeze begins a new tail and has the old one written. write is held.
func (ix *Index) freeze() {
	t := newTail()
	t.startRev, t.startCursor, t.whole = ix.cur.rev, ix.cursor, ix.built
	ix.tails = append(ix.tails, t)
	ix.install(ix.newSnapshot(ix.cur.rev))
	ix.wake()
}

func (ix *Index) wake() {
	select {
	case ix.work <- struct{}{}:
	default:
	}
}

func (ix *Index) wakeMerge() {
	select {
	case ix.merges <- struct{}{}:
	default:
	}
}

// Discard implements index.Index.
func (ix *Index) Discard() {
	defer ix.write.Unlock()
	u := &ix.undo
	s := u.snapshot
	u.snapshot = nil
	ix.mu.Lock()
	ix.ring = slices.DeleteFunc(ix.ring, func(o *snapshot) bool { return o == s })
	ix.mu.Unlock()
	ix.releaseSnapshot(s)
	cur := ix.tails[len(ix.tails)-1]
	for i := len(u.removed) - 1; i >= 0; i-- {
		r := u.removed[i]
		docs := r.t.docs
		if r.t == cur {
			docs = u.docs
		}
		r.t.restore(r.id, r.loc, u.rev, docs)
	}
	cur.truncate(u.docs)
	for _, r := range u.segGone {
		r.s.deletes.restore(r.s, r.part, r.doc, u.rev)
	}
	ix.segs = u.segs
	ix.discardVectors()
}

// Revision implements index.Index.
func (ix *Index) Revision() int64 {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	return ix.cur.rev
}

// Checkpointed implements index.Index.
func (ix *Index) Checkpointed() int64 { return ix.checkpointed.Load() }

// Stats implements index.Index.
func (ix *Index) Stats() index.Stats {
	ix.mu.Lock()
	s := ix.cur
	s.refs++
	ix.mu.Unlock()
	defer ix.releaseSnapshot(s)
	var st index.Stats
	for _, v := range s.segs {
		st.Documents += int64(v.numDocs - v.del.count)
		st.Segments++
		st.DiskBytes += v.size
	}
	for _, t := range s.tails {
		n := t.tail.liveDocs(t.covered, s.rev)
		st.Documents += n
		st.TailDocs += n
		st.Vectors += t.tail.liveVectors(t.vectors, s.rev, s.dropped)
	}
	for _, v := range s.vecSegs {
		st.Vectors += v.live(s.dropped)
		st.Segments++
		st.DiskBytes += v.size
	}
	return st
}

// background runs step whenever there may be work, and again after a while when
// it failed.
func (ix *Index) background(work <-chan struct{}, step func() error) {
	defer ix.wg.Done()
	retry := time.NewTimer(0)
	if !retry.Stop() {
		<-retry.C
	}
	defer retry.Stop()
	wait := 100 * time.Millisecond
	for {
		select {
		case <-ix.quit:
			return
		case <-work:
		case <-retry.C:
		}
		if err := step(); err != nil {
			ix.opts.OnError(err)
			retry.Reset(wait)
			wait = min(2*wait, 10*time.Second)
			continue
		}
		wait = 100 * time.Millisecond
	}
}

// flushFrozen writes every frozen tail as a segment, oldest first.
func (ix *Index) flushFrozen() (err error) {
	ix.flushMu.Lock()
	defer ix.flushMu.Unlock()
	defer func() {
		// After a failure writes go on in memory instead of waiting for it.
		ix.write.Lock()
		ix.flushErr = err
		ix.frozenOK.Broadcast()
		ix.write.Unlock()
	}()
	for {
		ix.write.Lock()
		if len(ix.tails) < 2 {
			ix.write.Unlock()
			return nil
		}
		t, rev, covered := ix.tails[0], ix.cur.rev, ix.tails[1].startRev
		ix.write.Unlock()
		if err := ix.flushTail(t, rev, covered); err != nil {
			return err
		}
		if err := ix.checkpoint(); err != nil {
			return err
		}
		ix.wakeMerge()
	}
}

// flushTail writes a frozen tail, the oldest one, as it was at rev, and puts
// segments in its place. Of its vectors those stay that were there at covered,
// the revision that the files cover afterwards (see vecSegment.late).
func (ix *Index) flushTail(t *tail, rev, covered int64) (err error) {
	data, locs := t.segmentData(rev)
	var seg *segment
	if len(data.ids) > 0 {
		name := ix.newName("seg")
		if err := writeSegment(ix.fs, name, data); err != nil {
			return err
		}
		if seg, err = openSegment(ix.fs, name); err != nil {
			return err
		}
		defer func() {
			if err != nil {
				err = errors.Join(err, seg.release(ix.fs)) // the file is swept at the next open
			}
		}()
	}
	rows, places := t.vecRows(covered, ix.droppedSpaces())
	vecSeg, err := ix.newVecSegment(rows)
	if err != nil {
		return err
	}
	ix.write.Lock()
	defer ix.write.Unlock()
	if seg != nil {
		v := segView{seg, newDeleteSet(seg.numDocs)}
		for doc, loc := range locs {
			if loc.part.stamp(loc.doc).Load() != 0 {
				v.markDeleted(uint32(doc), ix.cur.rev)
			}
		}
		ix.segs = append(slices.Clone(ix.segs), v)
	}
	if vecSeg != nil {
		v := vecSegView{vecSeg, newDeleteSet(vecSeg.rows)}
		for row, at := range places {
			if del := at.part.stamp(at.row).Load(); del != 0 {
				v.markDeleted(uint32(row), del, ix.cur.rev)
			}
		}
		ix.vecSegs = append(slices.Clone(ix.vecSegs), v)
	}
	ix.tails = ix.tails[1:]
	ix.install(ix.newSnapshot(ix.cur.rev))
	ix.frozenOK.Broadcast()
	return nil
}

// newVecSegment writes and opens a vector segment; nil when there is nothing to
// write.
func (ix *Index) newVecSegment(rows []vecRows) (*vecSegment, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	name := ix.newName("vec")
	if err := writeVecSegment(ix.fs, name, rows); err != nil {
		return nil, err
	}
	return openVecSegment(ix.fs, name)
}

func (ix *Index) droppedSpaces() []int64 {
	ix.write.Lock()
	defer ix.write.Unlock()
	return ix.dropped
}

// markDeleted marks a document of a segment that no snapshot has seen yet.
func (v *segView) markDeleted(doc uint32, rev int64) {
	if v.del.owned == nil {
		v.del = v.del.clone()
	}
	if v.del.add(doc) {
		v.deletes.remove(v.segment, v.partitionOf(doc), doc, rev, rev)
	}
}

func (ix *Index) newName(sort string) string {
	ix.write.Lock()
	defer ix.write.Unlock()
	ix.nextSeg++
	return fmt.Sprintf("%s-%08d", sort, ix.nextSeg)
}

// Flush implements index.Index: after it the files cover everything published.
func (ix *Index) Flush() error {
	ix.write.Lock()
	if !ix.tails[len(ix.tails)-1].empty() {
		ix.freeze()
	}
	ix.write.Unlock()
	if err := ix.flushFrozen(); err != nil {
		return err
	}
	return ix.checkpoint()
}

// Close writes what is worth writing and lets go of all files but those that
// open views still hold.
func (ix *Index) Close() error {
	if !ix.stop() {
		return nil
	}
	ix.write.Lock()
	n := len(ix.tails)
	t := ix.tails[n-1]
	worth := n > 1 || max(t.docs, t.vectors.rows) >= closeFlushDocs || !ix.built
	ix.write.Unlock()
	var err error
	if worth {
		err = ix.Flush()
	}
	ix.letGo()
	return err
}

// stop ends the background work; false when that was done before.
func (ix *Index) stop() bool {
	ix.write.Lock()
	if ix.closed {
		ix.write.Unlock()
		return false
	}
	ix.closed = true
	ix.frozenOK.Broadcast()
	ix.write.Unlock()
	close(ix.quit)
	ix.wg.Wait()
	return true
}

func (ix *Index) letGo() {
	ix.mu.Lock()
	ring := ix.ring
	ix.ring = nil
	ix.mu.Unlock()
	for _, s := range ring {
		ix.releaseSnapshot(s)
	}
	ix.releaseAll()
}
