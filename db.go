// Package loci is a memory for AI agents: one engine, one data directory. It
// stores memories with a lifecycle and finds them again by text, in Chinese
// and English, offline and without set-up.
//
//	db, err := loci.Open(ctx, dir, nil)
//	...
//	receipt, err := db.Memories().Upsert(ctx, loci.MemoryInput{Judgment: "The tide table is updated weekly."})
//	result, err := db.Search(ctx, loci.SearchRequest{Query: "tide table"})
//
// A DB is safe for concurrent use. Optional scalars are pointers; write them
// as new(20) or new("work").
package loci

import (
	"context"
	"time"
)

// Options tune Open. The zero value works.
type Options struct {
	// Clock gives the current time; nil is time.Now. Tests replace it.
	Clock func() time.Time
	// WaitForIndex makes Open return only when the index is usable, even if it
	// has to be rebuilt first. By default Open returns at once, searches are
	// degraded, and the rebuild runs in the background.
	WaitForIndex bool
}

// DB is an open data directory. All handles and stores taken from it share one
// engine: after Close every call fails with ErrClosed.
type DB struct{}

// Open opens the data directory, making it and its parents if need be, and
// takes its lock. opts may be nil.
func Open(ctx context.Context, dir string, opts *Options) (*DB, error) { panic("wip") }

// Directory is the absolute path of the data directory.
func (db *DB) Directory() string { panic("wip") }

// Close waits for running operations, writes the index out and releases the
// lock. Closing twice is fine.
func (db *DB) Close() error { panic("wip") }

// Memories gives the memory store.
func (db *DB) Memories() *MemoryStore { panic("wip") }

// Search finds the records that answer a query best.
func (db *DB) Search(ctx context.Context, req SearchRequest) (*SearchResult, error) { panic("wip") }

// Health gives the store's counters.
func (db *DB) Health(ctx context.Context) (*HealthReport, error) { panic("wip") }

// DeepHealth also checks the database's integrity and its foreign keys, which
// reads every page.
func (db *DB) DeepHealth(ctx context.Context) (*HealthReport, error) { panic("wip") }

// UpdateIndex brings the index up to the truth, should it be behind, and gives
// the counters. Writes do this themselves, so it is rarely needed and cheap.
func (db *DB) UpdateIndex(ctx context.Context) (*HealthReport, error) { panic("wip") }

// RebuildIndexes builds every index anew from the truth while reads and writes
// go on, and gives the counters when done. Only one rebuild runs at a time: a
// second call waits for the first.
func (db *DB) RebuildIndexes(ctx context.Context) (*HealthReport, error) { panic("wip") }

// RebuildProgress is a snapshot of the rebuild that runs, if any.
func (db *DB) RebuildProgress() RebuildProgress { panic("wip") }

// RegisterEventSink sends one event for each search and rebuild to sink,
// replacing an earlier one.
func (db *DB) RegisterEventSink(sink EventSink) error { panic("wip") }

// UnregisterEventSink removes the sink and says whether there was one.
func (db *DB) UnregisterEventSink() bool { panic("wip") }

// EventSinkRegistered says whether a sink is registered.
func (db *DB) EventSinkRegistered() bool { panic("wip") }

// MemoryStore reads and writes memories.
type MemoryStore struct{}

// Upsert creates a memory, or replaces the one with the input's id.
func (s *MemoryStore) Upsert(ctx context.Context, in MemoryInput) (*Receipt[Memory], error) {
	panic("wip")
}

// UpsertMany writes all of the inputs or none.
func (s *MemoryStore) UpsertMany(ctx context.Context, ins []MemoryInput) (*Receipt[[]Memory], error) {
	panic("wip")
}

// UpsertByJudgment creates a memory unless one with the same normalised
// judgment exists in its namespace and scope; that one is merged with the
// input. Several such memories are ErrConflict, naming their ids.
func (s *MemoryStore) UpsertByJudgment(ctx context.Context, in MemoryInput) (*Receipt[Memory], error) {
	panic("wip")
}

// Get gives one memory. Outside the filter it is ErrNotFound.
func (s *MemoryStore) Get(ctx context.Context, id ID, f ReadFilter) (*Memory, error) { panic("wip") }

// List gives one page of memories by ascending id.
func (s *MemoryStore) List(ctx context.Context, req PageRequest) (*Page[Memory], error) {
	panic("wip")
}

// Delete removes one memory; false when there is none under the filter.
func (s *MemoryStore) Delete(ctx context.Context, id ID, f ReadFilter) (*Receipt[bool], error) {
	panic("wip")
}

// DeleteByFilter removes every memory the filter covers and gives their
// number.
func (s *MemoryStore) DeleteByFilter(ctx context.Context, req DeleteRequest) (*Receipt[int64], error) {
	panic("wip")
}

// Feedback strengthens what was useful and weakens what was recalled in vain.
func (s *MemoryStore) Feedback(ctx context.Context, req FeedbackRequest) (*Receipt[FeedbackReport], error) {
	panic("wip")
}

// Decay weakens memories that have not been recalled for a while.
func (s *MemoryStore) Decay(ctx context.Context, req DecayRequest) (*Receipt[DecayReport], error) {
	panic("wip")
}
