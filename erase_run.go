package loci

import (
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/internal/store"
)

const (
	// eraseBatch is how many records one transaction erases: other writers wait no
	// longer than that takes. A note goes with all of its chunks.
	eraseBatch      = 250
	eraseBatchNotes = 10
)

// eraseReader is what is read of a record that goes: by a snapshot, or the writer's
// transaction.
type eraseReader interface {
	RecordOf(kind store.Kind, id int64) (store.Stored, error)
	Place(id int64) (kind store.Kind, namespace, scope string, err error)
	RelationsOf(entity int64) ([]int64, error)
	EventsOf(entity int64) ([]int64, error)
	CopiesOf(record int64) ([]int64, error)
	PageHistory(page int64) ([]store.PageVersionInfo, error)
	PagePlace(id int64) (context int64, pageID string, err error)
	PublishedText(context int64) ([]byte, bool, error)
	PointVersions(id int64) ([]store.PointVersion, error)
	PointEdgesFrom(id int64) ([]*store.PointEdge, error)
	PointEdgesTo(id int64) ([]*store.PointEdge, error)
	VectorsOf(id int64) (int64, error)
}

// eraseTally counts what goes. It counts everything once, though a dry run meets a
// copy again with every record that it hangs on.
type eraseTally struct {
	*EraseReport
	seen, edges, cut map[int64]bool
}

func newTally(r *EraseReport) *eraseTally {
	return &eraseTally{r, map[int64]bool{}, map[int64]bool{}, map[int64]bool{}}
}

// add counts a record that goes, with what it takes along.
func (t *eraseTally) add(tx eraseReader, r store.Stored) error {
	head := r.Head()
	if t.seen[head.ID] {
		return nil
	}
	t.seen[head.ID] = true
	t.Total++
	t.Records[kindOf(head.Kind)]++
	vectors, err := tx.VectorsOf(head.ID)
	if err != nil {
		return err
	}
	t.Vectors += vectors
	switch r.(type) {
	case *store.Page:
		err = t.addPage(tx, head.ID)
	case *store.Point:
		err = t.addPoint(tx, head.ID)
	}
	if err != nil {
		return err
	}
	copies, err := tx.CopiesOf(head.ID)
	if err != nil {
		return err
	}
	for _, id := range copies {
		page, err := tx.RecordOf(store.KindPage, id)
		if err != nil {
			return err
		}
		if page == nil {
			continue
		}
		if err := t.add(tx, page); err != nil {
			return err
		}
	}
	return nil
}

func (t *eraseTally) addPage(tx eraseReader, id int64) error {
	history, err := tx.PageHistory(id)
	if err != nil {
		return err
	}
	t.PageRevisions += int64(len(history))
	context, pageID, err := tx.PagePlace(id)
	if err != nil || t.cut[context] {
		return err
	}
	text, ok, err := tx.PublishedText(context)
	if err == nil && ok && render.Find(text, pageID) >= 0 {
		t.cut[context] = true
		t.PublishedTexts++
	}
	return err
}

func (t *eraseTally) addPoint(tx eraseReader, id int64) error {
	versions, err := tx.PointVersions(id)
	if err != nil {
		return err
	}
	t.PointVersions += int64(len(versions))
	for _, side := range []func(int64) ([]*store.PointEdge, error){tx.PointEdgesFrom, tx.PointEdgesTo} {
		edges, err := side(id)
		if err != nil {
			return err
		}
		for _, e := range edges {
			if !t.edges[e.ID] {
				t.edges[e.ID] = true
				t.PointRelations++
			}
		}
	}
	return nil
}

// erase does what a request asks for.
func (e *engine) erase(ctx context.Context, what *eraseWhat, progress func(done, total int64)) (*EraseReport, error) {
	done, err := e.upkeep.take(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	// Who writes a snapshot of a memory, or fills one from a file, has read what is to
	// go, and would bring it back.
	freed, err := e.copying.all(ctx)
	if err != nil {
		return nil, err
	}
	defer freed()
	report := &EraseReport{DryRun: what.dryRun, Records: map[Kind]int64{}, Mentioned: map[Kind]int64{}, MentionedIDs: []ID{}, NoteFiles: []string{}}
	run := &eraseRun{e: e, erasePlan: &erasePlan{eraseWhat: what}, tally: newTally(report), progress: progress}
	err = e.read(ctx, func(tx *store.ReadTx) error {
		report.Revision = tx.Revision()
		if err := run.find(ctx, tx); err != nil || !what.dryRun {
			return err
		}
		return run.count(ctx, tx)
	})
	if err != nil {
		return nil, err
	}
	run.tell()
	if err := run.snapshots(ctx); err != nil {
		return nil, err
	}
	if !what.dryRun {
		if err := run.do(ctx); err != nil {
			return nil, err
		}
	}
	if report.NotReached, err = run.notReached(); err != nil {
		return nil, err
	}
	return report, nil
}

// eraseRun is an erasure at work.
type eraseRun struct {
	*erasePlan
	e        *engine
	tally    *eraseTally
	progress func(done, total int64)
	// unreadable are files of snapshots of which nobody can tell what is in them.
	unreadable []string
}

// tell puts into the receipt what was found and stays.
func (r *eraseRun) tell() {
	for _, m := range r.mentioned {
		r.tally.Mentioned[kindOf(m.kind)]++
		if len(r.tally.MentionedIDs) < maxMentionedIDs {
			r.tally.MentionedIDs = append(r.tally.MentionedIDs, ID(m.id))
		}
	}
	r.tally.NoteFiles = append(r.tally.NoteFiles, r.noteFiles...)
}

// count is what a dry run does in the place of do.
func (r *eraseRun) count(ctx context.Context, tx *store.ReadTx) (err error) {
	for id, c := range r.chosen {
		if err := ctx.Err(); err != nil {
			return err
		}
		record, err := tx.RecordOf(c.kind, id)
		if err != nil {
			return err
		}
		if record == nil {
			continue
		}
		if err := r.tally.add(tx, record); err != nil {
			return err
		}
	}
	for _, c := range r.contexts {
		if err := r.countContext(ctx, tx, c.ID); err != nil {
			return err
		}
	}
	r.tally.AgentMemories = int64(len(r.agents))
	for _, id := range r.evidence {
		kind, _, _, err := tx.Place(id)
		if err != nil {
			return err
		}
		record, err := tx.RecordOf(kind, id)
		if err != nil {
			return err
		}
		if record != nil {
			r.tally.Evidence += int64(len(slices.DeleteFunc(slices.Clone(record.Head().Evidence), r.keepsEvidence)))
		}
	}
	if r.settings {
		r.tally.Settings, err = tx.CountSettings(r.namespace)
	}
	return err
}

// keepsEvidence says of a piece of evidence that it stays.
func (r *eraseRun) keepsEvidence(e store.Evidence) bool {
	if e.ChunkID == nil {
		return true
	}
	c, goes := r.chosen[*e.ChunkID]
	return !goes || c.kind != store.KindChunk
}

// contextReader is what a context is counted from.
type contextReader interface {
	eraseReader
	PagesOf(context, after int64, limit int) ([]int64, error)
	Checkpoints(context int64) ([]store.Checkpoint, error)
	CountLog(context int64) (int64, error)
}

// countContext counts a context that goes as a whole.
func (r *eraseRun) countContext(ctx context.Context, tx contextReader, id int64) error {
	if _, ok, err := tx.PublishedText(id); err != nil {
		return err
	} else if ok && !r.tally.cut[id] {
		r.tally.cut[id] = true
		r.tally.PublishedTexts++
	}
	for after := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		pages, err := tx.PagesOf(id, after, eraseScan)
		if err != nil {
			return err
		}
		for _, page := range pages {
			p, err := tx.RecordOf(store.KindPage, page)
			if err != nil {
				return err
			}
			if p == nil {
				continue
			}
			if err := r.tally.add(tx, p); err != nil {
				return err
			}
		}
		if len(pages) < eraseScan {
			break
		}
		after = pages[len(pages)-1]
	}
	checkpoints, err := tx.Checkpoints(id)
	if err != nil {
		return err
	}
	entries, err := tx.CountLog(id)
	r.tally.Contexts++
	r.tally.Checkpoints += int64(len(checkpoints))
	r.tally.LogEntries += entries
	return err
}

// do erases, in an order in which a second run finds what the first one did not come
// to: what is found by a record goes before it, and the names of a subject last.
func (r *eraseRun) do(ctx context.Context) (err error) {
	var total, gone int64
	for _, kind := range eraseOrder {
		total += int64(len(r.inOrder(kind)))
	}
	if err := r.eraseEvidence(ctx); err != nil {
		return err
	}
	for _, kind := range eraseOrder {
		size := eraseBatch
		if kind == store.KindNote {
			size = eraseBatchNotes
		}
		for part := range slices.Chunk(r.inOrder(kind), size) {
			if err := r.eraseBatch(ctx, kind, part); err != nil {
				return eraseEnded(ctx, gone, total, err)
			}
			gone += int64(len(part))
			r.progress(gone, total)
		}
	}
	for _, step := range []func(context.Context) error{r.eraseContexts, r.eraseAgents, r.eraseSettings, r.cleanContexts, r.eraseDerived} {
		if err := step(ctx); err != nil {
			return eraseEnded(ctx, gone, total, err)
		}
	}
	r.tally.Revision = r.e.store.Counters().Revision
	return nil
}

func eraseEnded(ctx context.Context, gone, total int64, err error) error {
	code := errs.CodeOf(err)
	if ctx.Err() != nil {
		code = errs.Canceled
	} else if code == "" {
		code = errs.Storage
	}
	return &errs.Error{Code: code, Message: fmt.Sprintf("the erasure ended with %d of %d records gone: ask for the same again, it goes on", gone, total), Err: err}
}

// write runs one operation of the writer and takes over its revision.
func (r *eraseRun) write(ctx context.Context, fn func(*store.WriteTx) error) error {
	_, err := r.e.writeMany(ctx, fn)
	return err
}

// eraseEvidence takes out of other records what came from chunks that go.
func (r *eraseRun) eraseEvidence(ctx context.Context) error {
	for part := range slices.Chunk(r.evidence, eraseBatch) {
		err := r.write(ctx, func(tx *store.WriteTx) error {
			for _, id := range part {
				kind, _, _, err := tx.Place(id)
				if err != nil {
					return err
				}
				record, err := tx.RecordOf(kind, id)
				if err != nil {
					return err
				}
				if record == nil {
					continue
				}
				n, err := tx.KeepEvidence(record.Head(), func(e *store.Evidence) bool { return r.keepsEvidence(*e) })
				if err != nil {
					return err
				}
				r.tally.Evidence += n
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// eraseBatch erases records of a kind.
func (r *eraseRun) eraseBatch(ctx context.Context, kind store.Kind, ids []int64) error {
	return r.write(ctx, func(tx *store.WriteTx) error {
		for _, id := range ids {
			record, err := tx.RecordOf(kind, id)
			if err != nil {
				return err
			}
			if record == nil || r.chosen[id].asked && !r.covers(record.Head()) {
				continue
			}
			if err := r.eraseOne(tx, record); err != nil {
				return err
			}
		}
		return nil
	})
}

// eraseOne removes a record with what cannot stay without it.
func (r *eraseRun) eraseOne(tx *store.WriteTx, record store.Stored) error {
	var before []store.Stored
	var err error
	switch record := record.(type) {
	case *store.Entity:
		before, err = standingOn(tx, record.ID)
	case *store.Note:
		var chunks []*store.Chunk
		chunks, err = tx.AllChunks(record.ID)
		for _, c := range chunks {
			before = append(before, c)
		}
	}
	if err != nil {
		return err
	}
	for _, one := range append(before, record) {
		if err := r.tally.add(tx, one); err != nil {
			return err
		}
		if err := tx.Delete(one.Head()); err != nil {
			return err
		}
	}
	return nil
}

// eraseContexts removes contexts as a whole.
func (r *eraseRun) eraseContexts(ctx context.Context) error {
	for _, c := range r.contexts {
		err := r.write(ctx, func(tx *store.WriteTx) error {
			now, err := tx.ContextByID(c.ID)
			if err != nil || now == nil {
				return err
			}
			if err := r.countContext(ctx, tx, c.ID); err != nil {
				return err
			}
			return tx.RemoveContext(c.ID)
		})
		if err != nil {
			return err
		}
		r.e.extensions.each(link.Extension.Changed)
	}
	return nil
}

// eraseAgents removes agent memories as a whole, whose points are gone by now but for
// what was written meanwhile.
func (r *eraseRun) eraseAgents(ctx context.Context) error {
	for _, m := range r.agents {
		err := r.write(ctx, func(tx *store.WriteTx) error {
			now, err := tx.AgentMemory(m.Namespace, m.Scope)
			if err != nil || now == nil || now.ID != m.ID {
				return err
			}
			r.tally.AgentMemories++
			return tx.RemoveAgentMemory(now)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *eraseRun) eraseSettings(ctx context.Context) error {
	if !r.settings || r.namespace == 0 {
		return nil
	}
	return r.write(ctx, func(tx *store.WriteTx) (err error) {
		r.e.equivalents.changing(tx.Change())
		r.tally.Settings, err = tx.ClearSettings(r.namespace)
		return err
	})
}

// cleanContexts takes the names of pages that went out of the contexts of the
// namespace that are left. It looks at all of them: an erasure that was killed behind
// the removal of a page left some.
func (r *eraseRun) cleanContexts(ctx context.Context) error {
	if r.namespace == 0 {
		return nil
	}
	var contexts []*store.ContextScope
	err := r.e.read(ctx, func(tx *store.ReadTx) (err error) {
		contexts, err = tx.Contexts(r.filter.Namespace)
		return err
	})
	if err != nil {
		return err
	}
	for _, c := range contexts {
		var cleaned store.Cleaned
		err := r.write(ctx, func(tx *store.WriteTx) (err error) {
			cleaned, err = tx.CleanContext(c.ID)
			return err
		})
		if err != nil {
			return err
		}
		r.tally.Checkpoints += cleaned.Checkpoints
		r.tally.LogEntries += cleaned.LogEntries
	}
	r.e.extensions.each(link.Extension.Changed)
	return nil
}

// eraseDerived has the index take in what went, drops the journal behind it and what
// is held in memory, and removes the strings that nothing uses any more.
func (r *eraseRun) eraseDerived(ctx context.Context) (err error) {
	r.e.graphs.drop()
	before, err := r.journalRows(ctx)
	if err != nil {
		return err
	}
	if ix := r.e.usableIndex(); ix != nil {
		if err := ix.Flush(); err != nil {
			return errs.Wrap(errs.Index, err, "the index could not be written out; the records are gone")
		}
		if err := r.e.store.PruneJournal(ctx, min(ix.Checkpointed(), r.e.rebuilds.floor.Load())); err != nil {
			return err
		}
	}
	after, err := r.journalRows(ctx)
	if err != nil {
		return err
	}
	r.tally.JournalRows = max(before-after, 0)
	r.tally.Strings, err = r.e.sweepStrings(ctx)
	return err
}

func (r *eraseRun) journalRows(ctx context.Context) (n int64, err error) {
	err = r.e.read(ctx, func(tx *store.ReadTx) (err error) {
		n, err = tx.JournalRows()
		return err
	})
	return n, err
}

// sweepStrings removes what of the dictionary nothing uses. The number of one
// predicate is known to graphs in memory, which outlive its last use.
func (e *engine) sweepStrings(ctx context.Context) (int64, error) {
	return e.store.SweepStrings(ctx, func(text string) bool { return text == PredicateSameAs })
}

// notReached lists where what was erased may still stand.
func (r *eraseRun) notReached() ([]NotReached, error) {
	out := []NotReached{
		{What: UnreachedBackups, Says: "Backups made before hold everything: delete those files, or make new ones and delete the old."},
		{What: UnreachedExports, Says: "Exports, serialized memories and texts that were given to a model are files and services of others: delete them there."},
		{What: UnreachedFreePages, Says: "Free pages of the database and its log hold bytes of what was erased until they are used again: run vacuum."},
		{What: UnreachedIndexFiles, Says: "Index files hold words and vectors of what was erased, which no search finds, until they are merged: run vacuum."},
		{What: UnreachedProcesses, Says: "Programs that have read it may hold it in memory, this one for a while too: end them."},
	}
	copies, err := store.MigrationCopies(r.e.dir)
	if err != nil {
		return nil, err
	}
	for _, file := range copies {
		out = append(out, NotReached{What: UnreachedMigration, File: file,
			Says: "A copy of the database from before it was brought up to a newer version holds what there was then: delete it."})
	}
	for _, file := range r.unreadable {
		out = append(out, NotReached{What: UnreachedSnapshot, File: file,
			Says: "A snapshot of an agent memory is damaged, and may hold what was erased: nobody can restore it, delete it."})
	}
	if r.notes > 0 {
		out = append(out, NotReached{What: UnreachedNoteFiles, Says: fmt.Sprintf(
			"The files of %d notes are yours and stay where they are; a sync or a watch would bring the notes back: delete or change the files, or remove the folder from what is synchronised.", r.notes)})
	}
	if n := len(r.mentioned); n > 0 {
		out = append(out, NotReached{What: UnreachedMentions, Says: fmt.Sprintf(
			"%d records that stay mention what was looked for: read them, and erase them by their ids or with erase_mentions.", n)})
	}
	return out, nil
}
