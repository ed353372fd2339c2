package loci

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// What a call of Changes may ask for.
const (
	MaxChanges      = 1000  // of one page
	MaxChangesWait  = 30000 // milliseconds
	defaultChanges  = 100
	maxChangesScope = 10000
)

// ChangesRequest asks what has changed since a place in the journal. Its zero
// value asks for the place that the journal is at now.
type ChangesRequest struct {
	// After is the next of an earlier answer, or a revision in digits, such as that
	// of a receipt. Left out: what changes from now on; "0": all that the journal
	// still has.
	After string `json:"after,omitempty"`
	Limit *int   `json:"limit,omitempty"` // 1..1000, default 100
	// WaitMS is how long to wait for a change when there is none yet: 0..30000
	// milliseconds, default 0.
	WaitMS    *int64   `json:"wait_ms,omitempty"`
	Namespace *string  `json:"namespace,omitempty"` // left out: every one that the caller may read
	Scopes    []string `json:"scopes,omitempty"`    // left out: every one that the caller may read
	Kinds     []Kind   `json:"kinds,omitempty"`     // left out: every kind
}

// Changes are what has changed, oldest first.
type Changes struct {
	Items []ChangedRecord `json:"items"`
	// Next is where to go on. It moves on past changes that were not asked for.
	Next string `json:"next"`
	// FloorLost says that the journal does not go back to where the caller was, or,
	// after a restore, does not reach there:
	// there are no items, and what the caller holds has to be read anew, after
	// which it goes on from Next.
	FloorLost bool `json:"floor_lost,omitempty"`
}

// ChangeKind says what became of a record.
type ChangeKind string

// What becomes of a record.
const (
	ChangeUpsert ChangeKind = "upsert" // it was written, and is there
	ChangeDelete ChangeKind = "delete" // it was deleted, or has left the scope
)

// ChangedRecord says that a record changed, without its text. A record that was
// written several times may come several times.
type ChangedRecord struct {
	Revision  int64      `json:"revision"` // of the write
	Kind      Kind       `json:"kind"`
	ID        ID         `json:"id"` // the record's; that of a fact, episode or procedure is not the caller's own
	Namespace string     `json:"namespace"`
	Scope     string     `json:"scope"`
	Change    ChangeKind `json:"change"` // upsert or delete
}

// Changes gives what was written and deleted behind a place in the store's
// journal, oldest first, as far as the context's access covers it, and can wait
// for more. An upsert tells where the record is now; one that was deleted since is
// told by its deletion alone, and one that went where the caller does not see it as
// deleted from where it was. What moves no text is not told: feedback, decay, vectors, settings.
// An agent memory that is replaced as a whole is told as its new points and, once
// the old ones are removed, as deletions.
//
// The journal goes back at least to what the index has not written out yet, and
// hence not for ever: see FloorLost.
func (db *DB) Changes(ctx context.Context, req ChangesRequest) (*Changes, error) {
	const op = "changes"
	if err := db.eng.enter(op); err != nil {
		return nil, err
	}
	defer db.eng.gate.leave()
	out, err := db.eng.changes(ctx, &req)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return out, nil
}

// feed wakes those who wait for a commit. It costs a commit one load while
// nobody does.
type feed struct{ wake atomic.Pointer[chan struct{}] }

// publish tells that a commit is there for readers to see.
func (f *feed) publish() {
	if f.wake.Load() == nil {
		return
	}
	if ch := f.wake.Swap(nil); ch != nil {
		close(*ch)
	}
}

// next is closed at the next commit. Whoever takes it before it reads misses
// none.
func (f *feed) next() <-chan struct{} {
	for {
		if ch := f.wake.Load(); ch != nil {
			return *ch
		}
		if ch := make(chan struct{}); f.wake.CompareAndSwap(nil, &ch) {
			return ch
		}
	}
}

// changeCursor is a place in the journal: behind so many entries of a revision,
// or behind all of them when given is 0.
type changeCursor struct{ revision, given int64 }

func (c changeCursor) String() string {
	text := strconv.FormatInt(c.revision, 10)
	if c.given > 0 {
		text += "." + strconv.FormatInt(c.given, 10)
	}
	return text
}

func parseChangeCursor(text string) (c changeCursor, err error) {
	revision, given, parts := strings.Cut(text, ".")
	c.revision, err = digits(revision)
	if err == nil && parts {
		if c.given, err = digits(given); c.given == 0 {
			err = strconv.ErrSyntax
		}
	}
	if err != nil {
		return c, errs.Invalid("after", "must be a revision in digits, or the next of an earlier answer")
	}
	return c, nil
}

// digits reads a number that is written in the one way in which it is given out.
func digits(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || strconv.FormatInt(n, 10) != text) {
		err = strconv.ErrSyntax
	}
	return n, err
}

// changeFilter is a ChangesRequest that was checked.
type changeFilter struct {
	limit     int
	wait      time.Duration
	namespace string // "": every one
	scopes    []string
	kinds     []Kind
	access    *Access
}

func (r *ChangesRequest) check(ctx context.Context) (*changeFilter, error) {
	f := &changeFilter{limit: defaultChanges, access: AccessFrom(ctx), scopes: r.Scopes, kinds: r.Kinds}
	if r.Limit != nil {
		if f.limit = *r.Limit; f.limit < 1 || f.limit > MaxChanges {
			return nil, errs.Invalid("limit", "must be 1 to %d, not %d", MaxChanges, f.limit)
		}
	}
	if r.WaitMS != nil {
		if *r.WaitMS < 0 || *r.WaitMS > MaxChangesWait {
			return nil, errs.Invalid("wait_ms", "must be 0 to %d, not %d", MaxChangesWait, *r.WaitMS)
		}
		f.wait = time.Duration(*r.WaitMS) * time.Millisecond
	}
	if r.Namespace != nil {
		if err := valid.Label("namespace", *r.Namespace, MaxNamespaceBytes); err != nil {
			return nil, err
		}
		f.namespace = *r.Namespace
	}
	if r.Scopes != nil && len(r.Scopes) == 0 {
		return nil, errs.Invalid("scopes", "must name at least one scope; leave it out for every one")
	}
	if len(r.Scopes) > maxChangesScope {
		return nil, errs.Invalid("scopes", "has %d entries, at most %d are allowed", len(r.Scopes), maxChangesScope)
	}
	for i, scope := range r.Scopes {
		field := fmt.Sprintf("scopes[%d]", i)
		if err := valid.Label(field, scope, MaxScopeBytes); err != nil {
			return nil, err
		}
		if f.namespace != "" && !f.access.Reads(f.namespace, scope) {
			return nil, f.access.refusal("", field, f.namespace, scope, "read")
		}
	}
	for i, kind := range r.Kinds {
		if kind.number() == 0 {
			return nil, errs.Invalid(fmt.Sprintf("kinds[%d]", i), "is not a kind of record")
		}
	}
	if f.namespace != "" && !f.access.readsSome(f.namespace) {
		return nil, f.access.refusal("", "scope", f.namespace, Every, "read")
	}
	return f, nil
}

// readsSome says whether any scope of a namespace may be read.
func (a *Access) readsSome(namespace string) bool {
	return a == nil || slices.ContainsFunc(a.Grants, func(g Grant) bool {
		return (g.Namespace == Every || g.Namespace == namespace) && len(g.Scopes) > 0
	})
}

func (f *changeFilter) covers(kind Kind, namespace, scope string) bool {
	return (f.namespace == "" || f.namespace == namespace) &&
		(f.scopes == nil || slices.Contains(f.scopes, scope)) &&
		(len(f.kinds) == 0 || slices.Contains(f.kinds, kind)) &&
		f.access.Reads(namespace, scope)
}

func (e *engine) changes(ctx context.Context, req *ChangesRequest) (*Changes, error) {
	f, err := req.check(ctx)
	if err != nil {
		return nil, err
	}
	var at changeCursor
	if req.After == "" {
		at.revision = e.store.Counters().Revision
	} else if at, err = parseChangeCursor(req.After); err != nil {
		return nil, err
	}
	var patience <-chan time.Time
	if f.wait > 0 {
		timer := time.NewTimer(f.wait)
		defer timer.Stop()
		patience = timer.C
	}
	for {
		committed := e.feed.next()
		out, next, err := e.readChanges(ctx, f, at)
		if err != nil || out.FloorLost || len(out.Items) > 0 || patience == nil {
			return out, err
		}
		at = next
		select {
		case <-committed:
		case <-patience:
			return out, nil
		case <-ctx.Done():
			return nil, errs.Wrap(errs.Canceled, ctx.Err(), "the context ended while waiting for changes")
		case <-e.ending.Done():
			return nil, errs.New(errs.Closed, "the store is closed")
		}
	}
}

// changesRows is how many rows of the journal one snapshot reads.
const changesRows = 256

// readChanges gives one page behind a place, which may be empty only at the end
// of the journal.
func (e *engine) readChanges(ctx context.Context, f *changeFilter, at changeCursor) (*Changes, changeCursor, error) {
	out := &Changes{Items: []ChangedRecord{}}
	for done := false; !done && len(out.Items) < f.limit && !out.FloorLost; {
		err := e.read(ctx, func(tx *store.ReadTx) error {
			floor, err := tx.JournalFloor()
			if err != nil {
				return err
			}
			if at.revision < floor || at.revision == floor && at.given > 0 || at.revision > tx.Revision() {
				// What was there before cannot be told; and a store that was restored does
				// not know what it had.
				at, out.FloorLost, out.Items = changeCursor{revision: tx.Revision()}, true, out.Items[:0]
				return nil
			}
			for range changesRows {
				if done, err = f.readRow(tx, &at, out); err != nil || done || len(out.Items) >= f.limit {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return nil, at, err
		}
	}
	out.Next = at.String()
	return out, at, nil
}

// readRow takes the entries of one row of the journal, as far as there is room on
// the page, and moves at behind them. It says whether the journal is at its end.
func (f *changeFilter) readRow(tx *store.ReadTx, at *changeCursor, out *Changes) (done bool, err error) {
	from, skip := store.AfterRevision(at.revision), 0
	if at.given > 0 {
		from.Part, skip = at.given/store.JournalPart-1, int(at.given%store.JournalPart)
	}
	entries, cursor, err := tx.Journal(from, 1)
	if err != nil {
		return false, err
	}
	if len(entries) == 0 {
		*at = changeCursor{revision: tx.Revision()}
		return true, nil
	}
	if cursor.Revision != at.revision {
		skip = 0
	}
	if skip > len(entries) {
		return false, errs.Invalid("after", "is no place in this store's journal")
	}
	for i := skip; i < len(entries); i++ {
		if len(out.Items) >= f.limit {
			*at = changeCursor{cursor.Revision, cursor.Part*store.JournalPart + int64(i)}
			return false, nil
		}
		if err := f.take(tx, &entries[i], out); err != nil {
			return false, err
		}
	}
	*at = changeCursor{revision: cursor.Revision}
	if len(entries) == store.JournalPart { // the revision may have more rows
		at.given = (cursor.Part + 1) * store.JournalPart
	}
	return false, nil
}

// take puts what an entry says on the page: where the record is now, if the caller
// may know, or else that it has left a scope.
func (f *changeFilter) take(tx *store.ReadTx, entry *store.JournalEntry, out *Changes) error {
	kind := kindOf(entry.Kind)
	if entry.Space != 0 || len(f.kinds) > 0 && !slices.Contains(f.kinds, kind) {
		return nil
	}
	namespace, err := tx.Label(entry.Namespace)
	if err != nil || namespace == "" {
		return err
	}
	there, _, scope, err := tx.RecordPlace(entry.ID)
	if err != nil {
		return err
	}
	add := func(scope int64, change ChangeKind) (bool, error) {
		label, err := tx.Label(scope)
		if err != nil || label == "" || !f.covers(kind, namespace, label) {
			return false, err
		}
		out.Items = append(out.Items, ChangedRecord{Revision: entry.Revision, Kind: kind, ID: ID(entry.ID), Namespace: namespace,
			Scope: label, Change: change})
		return true, nil
	}
	if there != 0 {
		if told, err := add(scope, ChangeUpsert); told || err != nil {
			return err
		}
	}
	if entry.Left != 0 && (there == 0 || scope != entry.Left) {
		_, err = add(entry.Left, ChangeDelete)
	}
	return err
}
