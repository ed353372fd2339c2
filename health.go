package loci

import (
	"context"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// HealthReport is the store's state in counters. It costs microseconds; the
// integrity fields hold the result of the last deep check. For a caller without
// admin, records are counted that it may read, which costs a look at each, and what
// tells of the store as a whole is left at zero.
type HealthReport struct {
	SchemaVersion       int              `json:"schema_version"`
	Revision            int64            `json:"revision"`
	IndexedRevision     int64            `json:"indexed_revision"`
	PendingIndexUpdates int64            `json:"pending_index_updates"`
	JournalLength       int64            `json:"journal_length"` // revisions whose changes are kept for indexes that do not have them on disk
	IndexUsable         bool             `json:"index_usable"`
	IndexedDocuments    int64            `json:"indexed_documents"`
	RecordCount         int64            `json:"record_count"`
	Counts              map[string]int64 `json:"counts"`          // by kind, kinds without records left out
	EmbedderSpaces      []string         `json:"embedder_spaces"` // that have an embedder, sorted
	Vectors             int64            `json:"vectors"`         // in the index, of all spaces
	RerankerRegistered  bool             `json:"reranker_registered"`
	LastDegraded        []Degrade        `json:"last_degraded"`
	Integrity           string           `json:"integrity,omitempty"` // "ok", or what the database reports; empty before the first deep check
	ForeignKeyErrors    int64            `json:"foreign_key_errors"`
	IntegrityAtUS       int64            `json:"integrity_at_us,omitempty"`
	DroppedEvents       int64            `json:"dropped_events"` // log events lost because the sink was slow
	// SweepError is what keeps expired points of agent memories in the file, where
	// nobody sees them; empty while nothing does. It is tried again.
	SweepError string `json:"sweep_error,omitempty"`
}

// integrityResult is what the last deep check found.
type integrityResult struct {
	store.Check
	atUS int64
}

// Health gives the store's counters.
func (db *DB) Health(ctx context.Context) (*HealthReport, error) {
	const op = "health"
	if err := db.eng.enter(op); err != nil {
		return nil, err
	}
	defer db.eng.gate.leave()
	if err := ctx.Err(); err != nil {
		return nil, errs.WithOp(op, err)
	}
	report, err := db.eng.healthFor(ctx)
	return report, errs.WithOp(op, err)
}

// DeepHealth also checks the database's integrity and its foreign keys, which
// reads every page. It needs admin.
func (db *DB) DeepHealth(ctx context.Context) (*HealthReport, error) {
	const op = "health"
	if err := db.eng.enter(op); err != nil {
		return nil, err
	}
	defer db.eng.gate.leave()
	if err := needAdmin(ctx, "deep", "a deep check"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := db.eng.checkIntegrity(ctx); err != nil {
		return nil, errs.WithOp(op, err)
	}
	return db.eng.health(), nil
}

// checkIntegrity runs the deep check and keeps its result for health.
func (e *engine) checkIntegrity(ctx context.Context) error {
	check, err := e.store.DeepCheck(ctx)
	if err != nil {
		return err
	}
	e.integrity.Store(&integrityResult{Check: check, atUS: e.clock().UnixMicro()})
	return nil
}

// healthFor is health for ctx's access.
func (e *engine) healthFor(ctx context.Context) (*HealthReport, error) {
	access := AccessFrom(ctx)
	all := e.health()
	if access.IsAdmin() {
		return all, nil
	}
	report := &HealthReport{
		SchemaVersion: all.SchemaVersion, Revision: all.Revision, IndexedRevision: all.IndexedRevision,
		PendingIndexUpdates: all.PendingIndexUpdates, IndexUsable: all.IndexUsable, RerankerRegistered: all.RerankerRegistered,
		Counts: map[string]int64{}, EmbedderSpaces: []string{}, LastDegraded: []Degrade{},
	}
	err := e.read(ctx, func(tx *store.ReadTx) error {
		for _, namespace := range access.namespaces() {
			err := tx.CountPlaces(namespace, func(namespace, scope string, kind store.Kind, n int64) {
				if access.Reads(namespace, scope) {
					report.Counts[string(kindOf(kind))] += n
					report.RecordCount += n
				}
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return report, nil
}

// health reads counters only.
func (e *engine) health() *HealthReport {
	c := e.store.Counters()
	report := &HealthReport{
		SchemaVersion:      store.SchemaVersion,
		Revision:           c.Revision,
		JournalLength:      c.Revision - c.JournalFloor,
		RecordCount:        c.Records(),
		Counts:             map[string]int64{},
		EmbedderSpaces:     append([]string{}, e.embedders.names()...),
		RerankerRegistered: e.rerankerRegistered(),
		LastDegraded:       e.degraded.list(),
		DroppedEvents:      e.sinks.dropped.Load(),
	}
	if failure := e.sweeps.failure.Load(); failure != nil {
		report.SweepError = *failure
	}
	for number, n := range c.Counts {
		if n > 0 {
			report.Counts[string(kindOf(store.Kind(number)))] = n
		}
	}
	if ix := e.usableIndex(); ix != nil {
		report.IndexUsable = true
		stats := ix.Stats()
		report.IndexedDocuments, report.Vectors = stats.Documents, stats.Vectors
		// The index may have published since the counters were read.
		report.IndexedRevision = min(ix.Revision(), c.Revision)
	}
	report.PendingIndexUpdates = c.Revision - report.IndexedRevision
	if r := e.integrity.Load(); r != nil {
		report.Integrity, report.ForeignKeyErrors, report.IntegrityAtUS = r.Integrity, r.ForeignKeyErrors, r.atUS
	}
	return report
}
