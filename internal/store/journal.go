package store

import (
	"context"
	"encoding/binary"
	"strconv"

	"github.com/loci-memory/loci/internal/errs"
)

// A JournalEntry says that a record was written or deleted, or, with a space,
// that its vector there was; one with a space and no record says that the space
// was deleted. What it is now is read from the truth.
type JournalEntry struct {
	Revision  int64
	ID        int64
	Namespace int64
	Kind      Kind
	Space     int64 // 0: the record itself
	Left      int64 // the scope that the record left, by going to another or by being deleted; 0: none
}

// Marks in the byte of the kind: the number of a space follows, or that of a
// scope that the record has left.
const (
	journalVector = 0x80
	journalLeft   = 0x40
)

// A JournalCursor is a place in the journal: behind a part of a revision.
type JournalCursor struct {
	Revision int64
	Part     int64
}

// AfterRevision is the place behind everything that revision wrote.
func AfterRevision(revision int64) JournalCursor { return JournalCursor{revision, 1 << 62} }

// Journal reads on from a place in the journal. It gives at least limit
// entries if there are as many, and the place to read on from. The journal is
// complete above the journal floor of the counters.
func (s *session) Journal(from JournalCursor, limit int) ([]JournalEntry, JournalCursor, error) {
	st, err := s.stmt(sqlReadJournal)
	if err != nil {
		return nil, from, err
	}
	var out []JournalEntry
	st.bindInt(1, from.Revision)
	st.bindInt(2, from.Part)
	st.bindInt(3, int64(limit)) // rows, each has an entry at least
	defer st.reset()
	for len(out) < limit {
		found, err := st.step()
		if err != nil {
			return nil, from, err
		}
		if !found {
			break
		}
		from = JournalCursor{st.columnInt(0), st.columnInt(1)}
		if out, err = appendEntries(out, from.Revision, st.columnRaw(2)); err != nil {
			return nil, from, err
		}
	}
	return out, from, nil
}

func appendEntries(out []JournalEntry, revision int64, buf []byte) ([]JournalEntry, error) {
	for len(buf) > 0 {
		id, n := binary.Uvarint(buf)
		if n <= 0 {
			return nil, errs.New(errs.Storage, "the database is damaged: a journal row cannot be read")
		}
		namespace, m := binary.Uvarint(buf[n:])
		if m <= 0 || len(buf) <= n+m {
			return nil, errs.New(errs.Storage, "the database is damaged: a journal row cannot be read")
		}
		entry := JournalEntry{Revision: revision, ID: int64(id), Namespace: int64(namespace), Kind: Kind(buf[n+m] &^ (journalVector | journalLeft))}
		of := buf[n+m]
		buf = buf[n+m+1:]
		if of&(journalVector|journalLeft) != 0 {
			number, k := binary.Uvarint(buf)
			if k <= 0 || number == 0 || of&journalVector != 0 && of&journalLeft != 0 {
				return nil, errs.New(errs.Storage, "the database is damaged: a journal row cannot be read")
			}
			if buf = buf[k:]; of&journalVector != 0 {
				entry.Space = int64(number)
			} else {
				entry.Left = int64(number)
			}
		}
		out = append(out, entry)
	}
	return out, nil
}

// JournalFloor is the revision above which the journal of this snapshot is
// complete.
func (s *session) JournalFloor() (int64, error) {
	st, err := s.stmt(sqlReadMeta)
	if err != nil {
		return 0, err
	}
	defer st.reset()
	if found, err := st.step(); err != nil || !found {
		return 0, err
	}
	return st.columnInt(4), nil
}

// Label is the text of a dictionary id that a journal entry holds, with the scope
// that a place stands for. It is "" when the dictionary has no such string any
// more, since what used it was erased.
func (s *session) Label(id int64) (string, error) {
	if text, ok := s.dict.text(id); ok {
		return scopeOfPlace(text), nil
	}
	st, err := s.stmt(sqlStringText)
	if err != nil {
		return "", err
	}
	st.bindInt(1, id)
	defer st.reset()
	found, err := st.step()
	if err != nil || !found {
		return "", err
	}
	text := st.columnText(0)
	s.dict.add(id, text)
	return scopeOfPlace(text), nil
}

// RecordPlace is the namespace and scope of a record, by their dictionary ids,
// and its kind; kind 0 when there is no such record.
func (s *session) RecordPlace(id int64) (kind Kind, namespace, scope int64, err error) {
	err = s.each(sqlRecordPlace, []int64{id}, func(st stmt) bool {
		kind, namespace, scope = Kind(st.columnInt(0)), st.columnInt(1), st.columnInt(2)
		return false
	})
	return kind, namespace, scope, err
}

// pruneRows is the number of journal rows that one operation deletes.
const pruneRows = 500

// PruneJournal deletes the journal up to a revision, which every index must
// have on disk. It works in small operations, so that writers wait for none of
// them long, and moves no revision.
func (s *Store) PruneJournal(ctx context.Context, upTo int64) error {
	for {
		more := false
		_, err := s.Write(ctx, func(tx *WriteTx) error {
			bound := min(upTo, tx.w.state.revision)
			if bound <= tx.w.next.journalFloor {
				return nil
			}
			first, err := tx.ids(sqlJournalPruneBound, bound, pruneRows)
			if err != nil {
				return err
			}
			if len(first) > 0 {
				bound, more = max(first[0]-1, tx.w.next.journalFloor+1), true
			}
			st, err := tx.stmt(sqlPruneJournal)
			if err != nil {
				return err
			}
			st.bindInt(1, bound)
			if err := st.run(); err != nil {
				return err
			}
			tx.w.next.journalFloor = bound
			return nil
		})
		if err != nil || !more {
			return err
		}
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
