package loci

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

const (
	defaultSyncBatch = 256
	maxSyncBatch     = 10000
)

// EmbeddingSyncOptions tune Sync. The zero value works.
type EmbeddingSyncOptions struct {
	// Batch is how many records are read at a time: 1..10000, default 256. The
	// embedder's own MaxBatch bounds its calls.
	Batch *int `json:"batch,omitempty"`
	// Namespace narrows the sync to one namespace; nil is all of them.
	Namespace *string `json:"namespace,omitempty"`
	// Progress is told how many of the records that lacked a vector are dealt
	// with; nil for none.
	Progress func(done, total int64) `json:"-"`
}

// Sync gives vectors to the records of a space that have none, in the tiers that
// are on: some of each kind of each namespace in turn, newest first. It ends when
// those are done that were there when it began. What is written stays, also when a
// later batch fails: then the report says so in Interrupted. Only one sync of a
// space runs at a time, others wait; the background's gives way to them.
//
// A space without an embedder is ErrValidation; an index that is being rebuilt,
// in which alone stands what is missing, is ErrIndex.
func (s *EmbeddingStore) Sync(ctx context.Context, space string, opts EmbeddingSyncOptions) (*Receipt[EmbeddingReport], error) {
	const op = "embeddings.sync"
	e := s.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	plan := &syncPlan{batch: valueOr(opts.Batch, defaultSyncBatch), namespace: opts.Namespace, progress: opts.Progress}
	if plan.batch < 1 || plan.batch > maxSyncBatch {
		return nil, errs.WithOp(op, errs.Invalid("batch", "must be 1 to %d, not %d", maxSyncBatch, plan.batch))
	}
	if plan.namespace != nil {
		if err := valid.Label("namespace", *plan.namespace, MaxNamespaceBytes); err != nil {
			return nil, errs.WithOp(op, err)
		}
		if err := mayWriteAll(ctx, *plan.namespace); err != nil {
			return nil, errs.WithOp(op, err)
		}
	} else if err := needAdmin(ctx, "namespace", "a sync without a namespace"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	b := e.embedderOf(space)
	if b == nil {
		return nil, errs.WithOp(op, errs.Invalid("space", "has no embedder: register one first"))
	}
	report, err := e.syncSpace(ctx, b, plan)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[EmbeddingReport]{Value: *report, Revision: e.store.Counters().Revision}, nil
}

type syncPlan struct {
	batch      int
	namespace  *string
	among      []int64 // namespaces to look at; nil: all
	progress   func(done, total int64)
	background bool
	// unsettled is set when others wrote so much that it could not be marked that
	// nothing is missing.
	unsettled bool
}

// syncRun is one sync under way.
type syncRun struct {
	*syncPlan
	e      *engine
	b      *boundEmbedder
	report *EmbeddingReport

	began       time.Time
	parts       []syncPart        // that lack vectors, the next one first; they take turns
	bound       int64             // ids from here on are newer than the sync
	seen        *roaring64.Bitmap // ids that were dealt with
	blank       []syncItem        // read last, with nothing to embed
	done, total int64
	only        int64 // the one namespace's number, 0 for all, -1 for one that holds nothing
}

// syncPart is a kind of a namespace whose tier is on.
type syncPart struct {
	namespace int64
	kind      index.Kind
}

// syncItem is a record on its way to a vector.
type syncItem struct {
	id        int64
	kind      store.Kind
	namespace int64
	revision  int64
	text      string // what the model is given
	cut       bool
	// fingerprint is that of the whole text.
	fingerprint uint64
}

// errUnbound ends a sync whose embedder or space has gone.
var errUnbound = errors.New("the space or its embedder has gone")

// Errors that end a sync of the background.
var (
	errTurn  = errors.New("a caller's sync has its turn")
	errSlice = errors.New("there is other work")
)

// take waits for the turn of a caller's sync. That of the background does not
// wait: it is woken when the other one has ended.
func (e *engine) take(ctx context.Context, turn *syncTurn, background bool) (give func(), err error) {
	if background {
		select {
		case turn.taken <- struct{}{}:
			return func() { <-turn.taken }, nil
		default:
			return nil, errTurn
		}
	}
	turn.wanted.Add(1)
	defer turn.wanted.Add(-1)
	select {
	case turn.taken <- struct{}{}:
		return func() {
			<-turn.taken
			e.wakeEmbedding()
		}, nil
	case <-ctx.Done():
		e.wakeEmbedding()
		return nil, ctx.Err()
	}
}

// giveWay is why a sync of the background has to end: a caller waits, or it has
// had its time and there is other work, another space's or that of namespaces
// written to since it began.
func (y *syncRun) giveWay() error {
	switch {
	case !y.background:
		return nil
	case y.e.embedders.turn(y.b.space.ID).wanted.Load() > 0:
		return errTurn
	case time.Since(y.began) > sliceTime && y.e.otherWork():
		return errSlice
	}
	return nil
}

// syncSpace runs a sync. Its error is a reason why nothing could be done or
// reported; whatever stops the work half-way stands in the report.
func (e *engine) syncSpace(ctx context.Context, b *boundEmbedder, plan *syncPlan) (*EmbeddingReport, error) {
	work, cancel := e.untilClosing(ctx)
	defer cancel()
	give, err := e.take(work, e.embedders.turn(b.space.ID), plan.background)
	if errors.Is(err, errTurn) {
		return nil, err
	}
	if err != nil {
		return nil, e.ended(ctx)
	}
	defer give()
	y := &syncRun{syncPlan: plan, e: e, b: b, report: &EmbeddingReport{}, seen: roaring64.New(), began: time.Now()}
	if err := y.begin(work); err != nil {
		if work.Err() != nil {
			return nil, e.ended(ctx)
		}
		return nil, err
	}
	if err = y.run(work); err == nil {
		y.report.Ready, err = y.settle(work)
	}
	y.report.Failed = b.refusedIn(y.only)
	if err == nil {
		return y.report, nil
	}
	if work.Err() != nil {
		return nil, e.ended(ctx)
	}
	if errors.Is(err, errTurn) || errors.Is(err, errSlice) {
		return nil, err
	}
	if errors.Is(err, errs.Index) && y.done == 0 {
		return nil, err
	}
	y.report.Interrupted = failure(err, nil)
	return y.report, nil
}

// ended is the error of a call that ended because its context did, or because
// the engine closes.
func (e *engine) ended(ctx context.Context) error {
	if err := ctx.Err(); err != nil && e.ending.Err() == nil {
		return errs.Wrap(errs.Canceled, err, "the context ended first: the vectors written so far stay")
	}
	return errs.New(errs.Closed, "the store is being closed: the vectors written so far stay")
}

// begin finds out what there is to do.
func (y *syncRun) begin(ctx context.Context) error {
	return y.e.pair(ctx, func(tx *store.ReadTx, view index.View) (err error) {
		if view == nil {
			return errIndexBusy()
		}
		y.parts, y.total = nil, 0
		namespaces, err := y.namespaces(tx)
		if err != nil {
			return err
		}
		for _, namespace := range namespaces {
			on, err := namespaceSwitches(tx, namespace)
			if err != nil {
				return err
			}
			for _, t := range tiers {
				if !on.takes(t) {
					continue
				}
				for _, kind := range tierKinds(t) {
					if n := y.missing(view, namespace, kind); n > 0 {
						y.parts = append(y.parts, syncPart{namespace, kind})
						y.total += n
					}
				}
			}
		}
		y.bound, err = tx.NextID()
		return err
	})
}

// missing counts the records of a kind that lack a vector and do not stay so.
func (y *syncRun) missing(view index.View, namespace int64, kind index.Kind) int64 {
	n := view.CountVectors(y.b.space.ID, namespace, kind)
	return n.Records - n.Vectors - y.e.leftOf(&y.b.space, namespace, kind)
}

func (y *syncRun) namespaces(tx *store.ReadTx) ([]int64, error) {
	if y.among != nil {
		return y.among, nil
	}
	if y.namespace == nil {
		return tx.Namespaces()
	}
	id, ok, err := tx.StringID(*y.namespace)
	if err != nil || !ok {
		y.only = -1
		return nil, err
	}
	y.only = id
	return []int64{id}, nil
}

// run embeds until nothing is missing.
func (y *syncRun) run(ctx context.Context) error {
	for {
		if y.e.embedderOf(y.b.space.Name) != y.b {
			return errUnbound
		}
		if err := y.giveWay(); err != nil {
			return err
		}
		items, err := y.gather(ctx)
		if err != nil || len(items) == 0 {
			return err
		}
		if err := y.embed(ctx, items); err != nil {
			return err
		}
		if y.progress != nil {
			y.progress(y.done, max(y.total, y.done))
		}
	}
}

// gather reads the next records without a vector and what there is of them to
// embed. None means that there are no more.
func (y *syncRun) gather(ctx context.Context) (items []syncItem, err error) {
	for len(items) == 0 && len(y.parts) > 0 {
		err := y.e.pair(ctx, func(tx *store.ReadTx, view index.View) error {
			items, y.blank = items[:0], y.blank[:0]
			if view == nil {
				return errIndexBusy()
			}
			return y.gatherFrom(tx, view, &items)
		})
		for i := 0; i < len(y.blank) && err == nil; i++ {
			err = y.leave(ctx, &y.blank[i])
		}
		if err != nil {
			return nil, err
		}
	}
	for i := range items {
		items[i].text, items[i].cut = y.b.cut(items[i].text, embed.Passage)
	}
	return items, nil
}

const (
	// gatherBytes is how long the texts are together that are read at a time, but
	// for the last one.
	gatherBytes = 8 << 20
	// leastShare is how many records of a batch may be of one kind of a namespace,
	// however many of these there are.
	leastShare = 16
)

func (y *syncRun) gatherFrom(tx *store.ReadTx, view index.View, items *[]syncItem) error {
	skip := func(id int64) bool { return id >= y.bound || y.seen.Contains(uint64(id)) || y.b.isLeft(id) }
	size := 0
	share := max(y.batch/max(1, len(y.parts)), min(y.batch, leastShare))
	for looked := 0; looked < y.batch && size < gatherBytes && len(y.parts) > 0; {
		part := y.parts[0]
		y.parts = y.parts[1:]
		// A switch may have been turned since the sync began.
		on, err := namespaceSwitches(tx, part.namespace)
		if err != nil {
			return err
		}
		if !on.takes(tierOf(part.kind)) {
			continue
		}
		most := min(share, y.batch-looked)
		ids := view.Missing(y.b.space.ID, part.namespace, part.kind, most, skip)
		more := len(ids) == most
		for _, id := range ids {
			if size >= gatherBytes {
				more = true
				break
			}
			looked++
			item, ok, err := y.item(tx, part, id)
			if err != nil {
				return err
			}
			y.seen.Add(uint64(id))
			if !ok {
				y.done++
				continue
			}
			*items = append(*items, item)
			size += len(item.text)
		}
		if more {
			y.parts = append(y.parts, part)
		}
	}
	return nil
}

// item reads a record; false when there is nothing to embed.
func (y *syncRun) item(tx *store.ReadTx, part syncPart, id int64) (item syncItem, ok bool, err error) {
	kind := store.Kind(part.kind)
	r, text, err := textOf(tx, kind, id)
	if err != nil || r == nil {
		return item, false, err
	}
	item = syncItem{id: id, kind: kind, namespace: part.namespace, revision: r.Revision, fingerprint: fingerprintOf(text)}
	if text == "" {
		y.blank = append(y.blank, item)
		return item, false, nil
	}
	item.text = text
	return item, true, nil
}

// recordReader is what a record's text is read from: a snapshot, or the writer's
// transaction.
type recordReader interface {
	nameReader
	RecordOf(kind store.Kind, id int64) (store.Stored, error)
}

// textOf gives a record and its text for embedding; nil when it is gone.
func textOf(tx recordReader, kind store.Kind, id int64) (*store.Record, string, error) {
	r, err := tx.RecordOf(kind, id)
	if err != nil || r == nil {
		return nil, "", err
	}
	d, err := documentOf(tx, r)
	if err != nil || d == nil {
		return nil, "", err
	}
	return r.Head(), embeddedText(d), nil
}

// embed has the items embedded and writes what comes, call by call.
func (y *syncRun) embed(ctx context.Context, items []syncItem) error {
	texts := make([]string, len(items))
	for i := range items {
		texts[i] = items[i].text
	}
	failed := false // the embedder did, and nothing else
	calm := func() {
		if y.background {
			y.e.letSearchesGo(ctx)
		}
	}
	calm()
	inside := func(err error) error {
		failed = err != nil
		return err
	}
	err := y.b.embedEach(ctx, texts, embed.Passage, func(at int, vectors [][]float32) error {
		err := y.write(ctx, items[at:at+len(vectors)], vectors)
		if calm(); err == nil {
			err = y.giveWay()
		}
		return inside(err)
	}, func(at int) error {
		y.done++
		return inside(y.leave(ctx, &items[at]))
	})
	if err == nil || failed || ctx.Err() != nil {
		return err
	}
	y.e.degraded.note([]Degrade{DegradeEmbedFailed})
	return errors.New(failure(err, texts))
}

// leave notes that a text stays without a vector, unless the record has another
// one by now: the engine tells of changes, but of none that came before the note.
func (y *syncRun) leave(ctx context.Context, item *syncItem) error {
	y.b.leave(item.id, leftText{syncPart{item.namespace, index.Kind(item.kind)}, item.text == ""})
	return y.e.read(ctx, func(tx *store.ReadTx) error {
		r, text, err := textOf(tx, item.kind, item.id)
		if err == nil && (r == nil || fingerprintOf(text) != item.fingerprint) {
			y.b.retake(item.id)
		}
		return err
	})
}

// write writes the vectors of records that are still what they were.
func (y *syncRun) write(ctx context.Context, items []syncItem, vectors [][]float32) error {
	var embedded, skipped, cut int64
	_, err := y.e.write(ctx, func(tx *store.WriteTx) error {
		embedded, skipped, cut = 0, 0, 0
		if err := y.stillThere(tx); err != nil {
			return err
		}
		for i := range items {
			item := &items[i]
			r, same, err := item.still(tx)
			if err != nil {
				return err
			}
			if !same {
				skipped++
				continue
			}
			if err := tx.PutVector(&y.b.space, r, item.fingerprint, vectors[i]); err != nil {
				return err
			}
			embedded++
			if item.cut {
				cut++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	y.report.Embedded += embedded
	y.report.Skipped += skipped
	y.report.Cut += cut
	y.done += int64(len(items))
	return nil
}

// still gives the item's record, and whether its text is the one that was
// embedded.
func (item *syncItem) still(tx *store.WriteTx) (*store.Record, bool, error) {
	r, text, err := textOf(tx, item.kind, item.id)
	if err != nil || r == nil {
		return nil, false, err
	}
	return r, r.Revision == item.revision || fingerprintOf(text) == item.fingerprint, nil
}

// settleTries bounds how often a sync looks again because somebody wrote while
// it looked.
const settleTries = 3

// settle says whether nothing is missing, and marks the tiers in which nothing
// is, but for what the model refuses.
func (y *syncRun) settle(ctx context.Context) (ready bool, err error) {
	for range settleTries {
		var marks []store.ReadyMark
		var revision int64
		marks, revision, ready, err = y.complete(ctx)
		if err != nil || len(marks) == 0 {
			return ready, err
		}
		moved := false
		_, err = y.e.write(ctx, func(tx *store.WriteTx) error {
			if moved = tx.Current() != revision; moved {
				return nil
			}
			if err := y.stillThere(tx); err != nil {
				return err
			}
			for _, m := range marks {
				if err := tx.SetVectorReady(m.Namespace, m.Tier, y.b.space.ID); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil || !moved {
			return ready, err
		}
	}
	y.unsettled = true
	return ready, nil
}

// stillThere gives errUnbound when the space was deleted.
func (y *syncRun) stillThere(tx *store.WriteTx) error {
	there, err := tx.SpaceThere(&y.b.space)
	if err == nil && !there {
		err = errUnbound
	}
	return err
}

// complete gives the tiers in which nothing is missing and that are not marked
// yet, and whether nothing is missing in any.
func (y *syncRun) complete(ctx context.Context) (marks []store.ReadyMark, revision int64, ready bool, err error) {
	space := y.b.space.ID
	err = y.e.pair(ctx, func(tx *store.ReadTx, view index.View) error {
		if view == nil {
			return errIndexBusy()
		}
		marks, revision, ready = nil, tx.Revision(), true
		namespaces, err := y.namespaces(tx)
		if err != nil {
			return err
		}
		for _, namespace := range namespaces {
			on, err := namespaceSwitches(tx, namespace)
			if err != nil {
				return err
			}
			for _, t := range tiers {
				if !on.takes(t) {
					continue
				}
				marked, err := tx.VectorReady(namespace, t.number(), space)
				if err != nil {
					return err
				}
				if marked {
					continue
				}
				missing := false
				for _, kind := range tierKinds(t) {
					missing = missing || y.missing(view, namespace, kind) > 0
				}
				if missing {
					ready = false
				} else {
					marks = append(marks, store.ReadyMark{Namespace: namespace, Tier: t.number()})
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, false, fmt.Errorf("what is missing could not be counted: %w", err)
	}
	return marks, revision, ready, nil
}
