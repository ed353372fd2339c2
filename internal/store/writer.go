package store

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

const (
	queueLength     = 1024
	maxGroup        = 256                    // operations that share a commit
	maxGroupWork    = 50 * time.Millisecond  // spent in operations before their commit
	maxWait         = 500 * time.Microsecond // for callers to come back
	restartWait     = 100 * time.Millisecond // for readers, when the log must start anew
	logLimitFactor  = 4
	keptChanges     = 1 << 16 // room for the changes of a group that is kept for the next
	operationQueued = 0
	operationTaken  = 1
	operationGone   = 2
)

// operation is a caller's write on its way through the writer.
type operation struct {
	fn       func(*WriteTx) error
	between  func() // instead of fn: runs while no transaction is open
	alone    bool   // shares its transaction with no other, see Store.WriteMany
	state    atomic.Int32
	done     chan struct{}
	revision int64
	err      error
}

// writer is the one goroutine that changes the database. Operations that are
// there at the same time share one transaction and its one sync, each inside a
// savepoint of its own.
type writer struct {
	s       *Store
	session *session
	tx      WriteTx

	queue   chan *operation
	quit    chan struct{}
	stopped chan struct{}

	// The state that the database holds, and the one that the running group
	// leads to.
	state, next state
	stored      [kindLimit]int64 // counts as they stand in the table

	group   []*operation
	changes []Change
	held    *operation // a between or an alone that ended the group before it

	commitTime   time.Duration // moving average
	callers      int           // estimate of those that come back for another write
	checkpointed int           // length of the log when a checkpoint was last asked for

	cache  vectorCache
	copies copiesState

	touched []int64 // records that the running group adds, changes or removes, see sharedRecords

	used map[int64]struct{} // strings used since a sweep of the dictionary began; nil: none runs
	gone []int64            // strings that the running group removes

	waited     time.Duration // for the running group
	waitMisses int           // waits in a row that brought nobody
	skipWaits  int           // groups that will not wait
}

// state is what the meta and counts tables hold.
type state struct {
	revision, nextID, nextString, journalFloor, nextSpace, clock int64
	counts                                                       [kindLimit]int64
	// hints counts the writes that make no revision, so that a group of nothing
	// else is committed all the same. It is not stored.
	hints int64
}

// pendingStrings are dictionary entries that are not committed yet.
type pendingStrings struct {
	ids   map[string]int64
	texts map[int64]string
	order []string
}

func (p *pendingStrings) add(id int64, text string) {
	p.ids[text], p.texts[id] = id, text
	p.order = append(p.order, text)
}

// truncate forgets all but the first n.
func (p *pendingStrings) truncate(n int) {
	for _, text := range p.order[n:] {
		delete(p.texts, p.ids[text])
		delete(p.ids, text)
	}
	p.order = p.order[:n]
}

func newWriter(s *Store, c conn) (*writer, error) {
	w := &writer{
		s: s, session: newSession(s, c),
		queue: make(chan *operation, queueLength), quit: make(chan struct{}), stopped: make(chan struct{}),
	}
	w.session.pending = &pendingStrings{ids: map[string]int64{}, texts: map[int64]string{}}
	w.tx = WriteTx{session: w.session, w: w}
	st, err := w.session.stmt(sqlReadMeta)
	if err != nil {
		return nil, err
	}
	found, err := st.step()
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errs.New(errs.Storage, "the database is damaged: its meta row is missing")
	}
	s.lineage = st.columnText(0)
	w.state = state{
		revision: st.columnInt(1), nextID: st.columnInt(2), nextString: st.columnInt(3), journalFloor: st.columnInt(4),
		nextSpace: st.columnInt(5), clock: st.columnInt(6),
	}
	st.reset()
	if st, err = w.session.stmt(sqlReadCounts); err != nil {
		return nil, err
	}
	defer st.reset()
	for {
		found, err := st.step()
		if err != nil {
			return nil, err
		}
		if !found {
			break
		}
		if kind := st.columnInt(0); kind >= 0 && kind < kindLimit {
			w.state.counts[kind] = st.columnInt(1)
		}
	}
	st.reset()
	if s.going, err = w.session.ids(sqlGoingSpaces); err != nil {
		return nil, err
	}
	s.clock = w.state.clock
	w.stored = w.state.counts
	w.publishCounters()
	return w, nil
}

func (w *writer) publishCounters() {
	w.s.counters.Store(&Counters{Revision: w.state.revision, JournalFloor: w.state.journalFloor, Counts: w.state.counts})
}

func (w *writer) submit(ctx context.Context, fn func(*WriteTx) error) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, errs.Wrap(errs.Canceled, err, "the context ended first")
	}
	return w.enqueue(ctx, &operation{fn: fn, done: make(chan struct{})})
}

func (w *writer) enqueue(ctx context.Context, op *operation) (int64, error) {
	select {
	case w.queue <- op:
	case <-ctx.Done():
		return 0, errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while waiting to write")
	case <-w.stopped:
		return 0, errs.New(errs.Closed, "the store is closed")
	}
	select {
	case <-op.done:
	case <-ctx.Done():
		if op.state.CompareAndSwap(operationQueued, operationGone) {
			return 0, errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while waiting to write")
		}
		<-op.done
	case <-w.stopped:
		select {
		case <-op.done:
		default:
			return 0, errs.New(errs.Closed, "the store is closed")
		}
	}
	return op.revision, op.err
}

// stop lets what is queued finish and ends the goroutine.
func (w *writer) stop() {
	close(w.quit)
	<-w.stopped
}

func (w *writer) loop() {
	defer close(w.stopped)
	for {
		select {
		case op := <-w.queue:
			w.runGroup(op)
		case <-w.quit:
			for {
				select {
				case op := <-w.queue:
					w.runGroup(op)
				default:
					return
				}
			}
		}
	}
}

// runGroup runs first and what else comes along in one transaction, commits
// and answers.
func (w *writer) runGroup(first *operation) {
	if !first.state.CompareAndSwap(operationQueued, operationTaken) {
		return
	}
	for op := first; op != nil; op = w.takeHeld() {
		if op.between != nil {
			w.runBetween(op)
		} else {
			w.runTaken(op)
		}
	}
}

// takeHeld gives the operation that ended the last group, if one did.
func (w *writer) takeHeld() *operation {
	op := w.held
	w.held = nil
	return op
}

func (w *writer) runTaken(first *operation) {
	w.group, w.changes, w.touched = w.group[:0], w.changes[:0], w.touched[:0]
	w.session.resets = false
	w.next = w.state
	began := time.Now()
	if err := w.session.run(sqlBeginWrite); err != nil {
		w.answer([]*operation{first}, err)
		return
	}
	var broken error
	w.waited = 0
	for op := first; op != nil; op = w.following(began) {
		w.group = append(w.group, op)
		op.err = w.runOne(op)
		if !w.session.c.inTransaction() {
			// A failure that ended the whole transaction takes the others of
			// the group along.
			broken = errs.Wrap(errs.Storage, op.err, "the transaction that this write shared was rolled back, retry")
			break
		}
	}
	commitBegan := time.Now()
	err := broken
	if err == nil {
		err = w.commit()
	}
	if err != nil {
		w.abandon()
	} else if w.state.revision != w.next.revision {
		w.observeCommit(time.Since(commitBegan))
	}
	if err == nil {
		w.accept()
	}
	n := len(w.group)
	w.answer(w.group, err)
	clear(w.changes) // they hold documents
	if cap(w.changes) > keptChanges {
		w.changes = nil
	}
	if cap(w.touched) > keptChanges {
		w.touched = nil
	}
	w.callers = n + len(w.queue)
	w.boundLog()
}

func (w *writer) runBetween(op *operation) {
	defer func() {
		if r := recover(); r != nil {
			op.err = errs.New(errs.Storage, "a step between two writes failed: %v", r)
		}
		close(op.done)
	}()
	op.between()
}

// runOne runs one operation inside its savepoint; one that is alone needs none.
func (w *writer) runOne(op *operation) error {
	if !op.alone {
		if err := w.session.run(sqlSavepoint); err != nil {
			return err
		}
	}
	before, strings, changes := w.next, len(w.session.pending.order), len(w.changes)
	w.tx.begin()
	err := w.tx.call(op.fn)
	if err == nil {
		err = w.tx.unready()
	}
	if err == nil {
		err = w.tx.writeJournal()
	}
	if err == nil && !op.alone {
		err = w.session.run(sqlRelease)
	}
	if err != nil {
		w.session.resetAll()
		w.next = before
		w.session.pending.truncate(strings)
		w.changes = w.changes[:changes]
		w.cache.known = false
		if w.session.c.inTransaction() {
			if op.alone || w.rollbackOne() != nil {
				w.session.run(sqlRollback)
			}
		}
	}
	op.revision = w.next.revision
	return err
}

func (w *writer) rollbackOne() error {
	if err := w.session.run(sqlRollbackTo); err != nil {
		return err
	}
	return w.session.run(sqlRelease)
}

// following gives the next operation for the group, nil when it is full or
// nobody else is there. When several callers write at the same time it waits a
// moment for those that were answered last: they are on their way back, and a
// commit without them makes them wait for the one after it.
func (w *writer) following(began time.Time) *operation {
	if w.group[0].alone || len(w.group) >= maxGroup || time.Since(began) > maxGroupWork {
		return nil
	}
	if op := w.poll(); op != nil || w.held != nil {
		return op
	}
	if len(w.group) >= w.callers {
		return nil
	}
	if w.skipWaits > 0 {
		w.skipWaits--
		return nil
	}
	// The scheduler's timers are too coarse for this, so it yields instead: on
	// a busy machine the callers run meanwhile.
	limit := min(w.commitTime/2, maxWait) - w.waited
	start := time.Now()
	spent := time.Duration(0)
	for spent < limit {
		runtime.Gosched()
		op := w.poll()
		spent = time.Since(start)
		if op != nil {
			w.waited += spent
			w.waitMisses = 0
			return op
		}
		if w.held != nil {
			return nil
		}
	}
	// Whoever was waited for has something else to do: wait less often.
	w.waitMisses++
	w.skipWaits = 1<<min(w.waitMisses, 6) - 2
	return nil
}

func (w *writer) poll() *operation {
	for {
		select {
		case op := <-w.queue:
			if !op.state.CompareAndSwap(operationQueued, operationTaken) {
				continue
			}
			if op.between != nil || op.alone {
				w.held = op
				return nil
			}
			return op
		default:
			return nil
		}
	}
}

// commit writes the group's state and makes it durable.
func (w *writer) commit() error {
	if w.next == w.state {
		return w.session.run(sqlRollback) // nothing changed: no sync
	}
	if err := w.writeState(); err != nil {
		return err
	}
	w.s.shared.change(w.touched, w.next.revision)
	if w.session.resets {
		w.s.settings.change(w.next.revision)
	}
	moved := w.next.revision != w.state.revision
	if moved {
		w.s.opts.Hooks.Stage(w.next.revision, compact(w.changes))
	}
	err := w.session.run(sqlCommit)
	if moved && err == nil {
		w.s.opts.Hooks.Publish()
	} else if moved {
		w.s.opts.Hooks.Discard()
	}
	return err
}

func (w *writer) writeState() error {
	st, err := w.session.stmt(sqlWriteMeta)
	if err != nil {
		return err
	}
	st.bindInt(1, w.next.revision)
	st.bindInt(2, w.next.nextID)
	st.bindInt(3, w.next.nextString)
	st.bindInt(4, w.next.journalFloor)
	if clock := w.s.opts.Clock; clock != nil {
		w.next.clock = max(w.next.clock, clock())
	}
	st.bindInt(5, w.next.nextSpace)
	st.bindInt(6, w.next.clock)
	if err := st.run(); err != nil {
		return err
	}
	for kind, n := range w.next.counts {
		if n == w.stored[kind] {
			continue
		}
		st, err := w.session.stmt(sqlWriteCount)
		if err != nil {
			return err
		}
		st.bindInt(1, int64(kind))
		st.bindInt(2, n)
		if err := st.run(); err != nil {
			return err
		}
	}
	return nil
}

// accept makes the committed state the current one.
func (w *writer) accept() {
	for _, text := range w.session.pending.order {
		w.s.dict.add(w.session.pending.ids[text], text)
	}
	w.session.pending.truncate(0)
	w.s.dict.forget(w.gone)
	w.gone = nil
	if w.next != w.state {
		w.state = w.next
		w.stored = w.state.counts
		w.publishCounters()
	}
}

// abandon rolls the whole group back.
func (w *writer) abandon() {
	w.session.resetAll()
	if w.session.c.inTransaction() {
		w.session.run(sqlRollback)
	}
	w.session.pending.truncate(0)
	w.gone = nil
	w.cache.known = false
}

// answer tells the callers. A failure of the group does not hide an
// operation's own.
func (w *writer) answer(ops []*operation, err error) {
	for i, op := range ops {
		if err != nil {
			op.revision = 0
			if op.err == nil {
				op.err = err
			}
		}
		ops[i] = nil
		close(op.done)
	}
}

func (w *writer) observeCommit(d time.Duration) {
	if w.commitTime == 0 {
		w.commitTime = d
		return
	}
	w.commitTime += (d - w.commitTime) / 8
}

// boundLog has the log moved into the database when it has become long, and
// again each time it has grown by half of that. When commits or readers keep
// the background from finishing, the log is made to start anew here: writers
// wait for that, readers do not.
func (w *writer) boundLog() {
	pages, limit := w.session.c.logPages(), w.s.opts.CheckpointPages
	if pages < w.checkpointed {
		w.checkpointed = 0 // the log has started anew
	}
	if pages < limit || pages < w.checkpointed+limit/2 {
		return
	}
	w.checkpointed = pages
	if pages < logLimitFactor*limit {
		w.s.ckpt.poke()
		return
	}
	w.session.c.busyTimeout(restartWait)
	w.session.c.checkpoint(true)
	w.session.c.busyTimeout(busyTimeout)
}

// compact keeps the last change of each record and of each vector, those of
// vectors behind all others and none of a record that is gone.
func compact(changes []Change) []Change {
	ascending := 1
	for ascending < len(changes) && changes[ascending-1].ID < changes[ascending].ID {
		ascending++
	}
	if ascending >= len(changes) { // as when all are new
		return changes
	}
	type key struct{ id, space int64 }
	keyOf := func(c *Change) key {
		if c.Vector != nil {
			return key{c.ID, c.Vector.Space}
		}
		return key{c.ID, 0}
	}
	last := make(map[key]int, len(changes))
	vectors := false
	for i := range changes {
		last[keyOf(&changes[i])] = i
		vectors = vectors || changes[i].Vector != nil
	}
	if len(last) == len(changes) && !vectors {
		return changes
	}
	out := make([]Change, 0, len(last))
	for i := range changes {
		if changes[i].Vector == nil && last[key{changes[i].ID, 0}] == i {
			out = append(out, changes[i])
		}
	}
	if !vectors {
		return out
	}
	for i := range changes {
		c := &changes[i]
		if c.Vector == nil || last[keyOf(c)] != i {
			continue
		}
		// An id is never used again, so one that is gone stays gone.
		if at, ok := last[key{c.ID, 0}]; ok && changes[at].Doc == nil && !c.Vector.Dropped {
			continue
		}
		out = append(out, *c)
	}
	return out
}
