package loci

import (
	"bufio"
	"context"
	"encoding/json"
	"io"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// The format of an export: lines of JSON. The first is a header, then come
// settings, the scopes of the context store, agent memories, records by ascending id,
// the checkpoints of the scopes and the relations between points. See exportHeader and
// the types ending in Line.
const (
	exportFormat  = "loci-export"
	exportVersion = 4 // vectors came with 2, the context store with 3, agent memory with 4
	// maxLineBytes bounds a line. Only a record with many texts of a megabyte
	// comes near.
	maxLineBytes = 128 << 20
)

// ExportOptions tune Export. The zero value exports the whole store.
type ExportOptions struct {
	// Namespace narrows the export to one namespace and its settings; nil is the
	// whole store.
	Namespace *string
	// NoVectors leaves vectors out that come back by being embedded again: all but those
	// that callers gave to facts, episodes and procedures.
	NoVectors bool
	// Progress is told how many records of how many are written; nil for none.
	Progress func(done, total int64)
}

// ExportReport says what an export holds.
type ExportReport struct {
	Revision int64            `json:"revision"` // of the snapshot
	Records  int64            `json:"records"`
	Counts   map[string]int64 `json:"counts"` // records by kind
	Settings int64            `json:"settings"`
	Vectors  int64            `json:"vectors"`
	// Of the context store, besides its pages, which are records:
	Contexts    int64 `json:"contexts"`    // scopes
	Revisions   int64 `json:"revisions"`   // of pages, before the current ones
	LogEntries  int64 `json:"log_entries"` // of scopes
	Checkpoints int64 `json:"checkpoints"`
	// Of agent memory, besides its points, which are records:
	AgentMemories int64 `json:"agent_memories"`
	PointVersions int64 `json:"point_versions"` // before the current ones
	PointEdges    int64 `json:"point_edges"`    // relations between points
	ExpiredPoints int64 `json:"expired_points"` // left out
	Bytes         int64 `json:"bytes"`
}

// exportHeader is the first line of an export.
type exportHeader struct {
	Format       string           `json:"format"`
	Version      int              `json:"version"`
	Lineage      string           `json:"lineage,omitempty"` // of the store it came from
	Namespace    string           `json:"namespace,omitempty"`
	Revision     int64            `json:"revision"`
	NextID       ID               `json:"next_id"` // ids below were in use once
	ExportedAtUS int64            `json:"exported_at_us"`
	Counts       map[string]int64 `json:"counts"` // records by kind
	Contexts     *contextCounts   `json:"contexts,omitempty"`
	Agents       *agentCounts     `json:"agents,omitempty"`
}

// Every line of a record begins with its kind and goes on with the record as it
// is given everywhere else.
type (
	memoryLine struct {
		Kind Kind `json:"kind"`
		Memory
	}
	noteLine struct {
		Kind Kind `json:"kind"`
		Header
		Path        string `json:"path"`
		Bytes       int64  `json:"bytes"`
		ChunkChars  int    `json:"chunk_chars"`
		Modified    int64  `json:"modified"` // of the file, as far as it was known
		Fingerprint []byte `json:"fingerprint"`
	}
	chunkLine struct {
		Kind Kind `json:"kind"`
		Chunk
	}
)

// The settings, each in a line of its own.
const (
	settingRule        = "predicate_rule"
	settingEquivalents = "predicate_equivalents"
	settingRoot        = "note_root"

	settingSpace         = "embedding_space"
	settingVectorization = "vectorization"
	settingDefaultSpace  = "default_space"

	settingPolicy = "context_policy"
)

type settingLine struct {
	Setting   string   `json:"setting"`
	Namespace string   `json:"namespace,omitempty"` // "" of a rule for the whole store
	Predicate string   `json:"predicate,omitempty"`
	Inverse   string   `json:"inverse,omitempty"`
	Symmetric bool     `json:"symmetric,omitempty"`
	Words     []string `json:"words,omitempty"` // of one group, the canonical one first
	Path      string   `json:"path,omitempty"`

	Space       string         `json:"space,omitempty"`
	Model       string         `json:"model,omitempty"`
	Dimension   int            `json:"dimension,omitempty"`
	TextVersion int            `json:"text_version,omitempty"`
	Encoding    VectorEncoding `json:"encoding,omitempty"`
	Probe       []byte         `json:"probe,omitempty"` // what the model made of a fixed text, as a vector's value
	Tier        Tier           `json:"tier,omitempty"`  // "" of the switch over all tiers
	Enabled     *bool          `json:"enabled,omitempty"`

	Policy json.RawMessage `json:"policy,omitempty"` // an object of package pager
}

// lineOf is a stored record as its line; nil for a kind that has none.
func lineOf(r store.Stored) any {
	switch r := r.(type) {
	case *store.Memory:
		return memoryLine{KindMemory, memoryOf(r)}
	case *store.Entity:
		return entityLine{KindEntity, entityOf(r)}
	case *store.Relation:
		return relationLine{KindRelation, relationOf(r)}
	case *store.Event:
		return eventLine{KindEvent, eventOf(r)}
	case *store.Note:
		return noteLine{KindNote, headerOf(&r.Record), r.Path, r.Bytes, r.ChunkChars, r.Modified, r.Fingerprint}
	case *store.Chunk:
		return chunkLine{KindChunk, Chunk{
			Header: headerOf(&r.Record), NoteID: ID(r.NoteID), Ordinal: r.Ordinal, Offset: r.Offset, Limit: r.Limit, Content: r.Content,
		}}
	case *store.Page:
		return pageLineOf(r)
	case *store.Point:
		return pointLineOf(r)
	}
	return nil
}

// exportBatch is how many records are read from the truth at a time.
const exportBatch = 500

// Export writes every record, vector and setting, the context store with every
// revision of its pages, and agent memory with its history, as lines of JSON, all of
// one snapshot. Facts, episodes and procedures that are expired are left out.
// Reads and writes go on meanwhile, though the store's log grows until w has
// taken everything. Import reads it. Indexes are left out: they come back by
// themselves.
func (db *DB) Export(ctx context.Context, w io.Writer, opts *ExportOptions) (*ExportReport, error) {
	const op = "export"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if opts == nil {
		opts = &ExportOptions{}
	}
	if opts.Namespace != nil {
		if err := valid.Label("namespace", *opts.Namespace, MaxNamespaceBytes); err != nil {
			return nil, errs.WithOp(op, err)
		}
		if err := mayReadAll(ctx, *opts.Namespace); err != nil {
			return nil, errs.WithOp(op, err)
		}
	} else if err := needAdmin(ctx, "namespace", "an export without a namespace"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	x := &exporter{buf: bufio.NewWriterSize(w, 1<<16), opts: opts, agents: exportAgents{now: e.lifeNow()}}
	x.enc = jsonLines(x)
	err := e.read(ctx, func(tx *store.ReadTx) error { return x.run(ctx, e, tx) })
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &x.report, nil
}

// jsonLines writes values as an export has them.
func jsonLines(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// exporter is one export under way.
type exporter struct {
	buf      *bufio.Writer
	enc      *json.Encoder
	opts     *ExportOptions
	report   ExportReport
	line     int // bytes of the line that was written last
	spaces   []*store.Space
	values   []float32
	contexts []int64 // scopes that were written
	agents   exportAgents
}

// Write implements io.Writer for the encoder, which gives it a line at a time.
func (x *exporter) Write(p []byte) (int, error) {
	x.line = len(p)
	x.report.Bytes += int64(len(p))
	return x.buf.Write(p)
}

func (x *exporter) put(v any) error {
	if err := x.enc.Encode(v); err != nil {
		return errs.Wrap(errs.IO, err, "the export could not be written")
	}
	return nil
}

// bounded is put for what may be too long for a line.
func (x *exporter) bounded(v any, what string, id int64) error {
	err := x.put(v)
	if err == nil && x.line > maxLineBytes {
		err = errs.New(errs.Validation, "%s %d takes %d bytes, and a line may have %d: make a backup instead", what, id, x.line, maxLineBytes)
	}
	return err
}

func (x *exporter) run(ctx context.Context, e *engine, tx *store.ReadTx) error {
	namespace := valueOr(x.opts.Namespace, "")
	counts, err := tx.CountRecords(namespace)
	if err != nil {
		return err
	}
	if err := x.countAgents(tx, namespace, counts); err != nil {
		return err
	}
	header := exportHeader{
		Format: exportFormat, Version: exportVersion, Lineage: e.store.Lineage(), Namespace: namespace,
		Revision: tx.Revision(), ExportedAtUS: e.clock().UnixMicro(), Counts: map[string]int64{},
	}
	var total int64
	for kind, n := range counts {
		header.Counts[string(kindOf(kind))] = n
		total += n
	}
	next, err := tx.NextID()
	if err != nil {
		return err
	}
	header.NextID = ID(next)
	contexts, err := tx.CountContexts(namespace)
	if err != nil {
		return err
	}
	if contexts != (store.ContextCounts{}) {
		header.Contexts = new(contextCounts(contexts))
	}
	if x.agents.counts != (agentCounts{}) {
		header.Agents = &x.agents.counts
	}
	x.report.Revision, x.report.Counts = header.Revision, header.Counts
	if err := x.put(header); err != nil {
		return err
	}
	if err := x.settings(tx, namespace); err != nil {
		return err
	}
	if err := x.contextScopes(tx, namespace); err != nil {
		return err
	}
	if err := x.agentMemories(tx, namespace); err != nil {
		return err
	}
	if x.spaces, err = tx.Spaces(); err != nil {
		return err
	}
	if err := x.records(ctx, tx, namespace, total); err != nil {
		return err
	}
	if x.report.Records != total {
		return errs.New(errs.Storage, "the database is damaged: %d records are counted, %d can be read: restore a backup", total, x.report.Records)
	}
	if err := x.checkpoints(tx); err != nil {
		return err
	}
	if n := (store.ContextCounts{Scopes: x.report.Contexts, Revisions: x.report.Revisions, Log: x.report.LogEntries, Checkpoints: x.report.Checkpoints}); n != contexts {
		return errs.New(errs.Storage, "the database is damaged: of the context store less can be read than is counted: restore a backup")
	}
	if err := x.pointEdges(tx); err != nil {
		return err
	}
	if n := (agentCounts{x.report.AgentMemories, x.report.PointVersions, x.report.PointEdges}); n != x.agents.counts {
		return errs.New(errs.Storage, "the database is damaged: of agent memory less can be read than is counted: restore a backup")
	}
	return errs.Wrap(errs.IO, x.buf.Flush(), "the export could not be written")
}

func (x *exporter) records(ctx context.Context, tx *store.ReadTx, namespace string, total int64) error {
	scan := tx.ScanRecords
	if namespace != "" {
		id, ok, err := tx.StringID(namespace)
		if err != nil || !ok {
			return err
		}
		scan = func(after int64, limit int) ([]store.Stored, int64, error) { return tx.ScanNamespace(id, after, limit) }
	}
	for after := int64(0); ; {
		if err := ctx.Err(); err != nil {
			return errs.Wrap(errs.Canceled, err, "the context ended first")
		}
		batch, next, err := scan(after, exportBatch)
		if err != nil {
			return err
		}
		for _, r := range batch {
			if x.leavesOut(r) {
				continue
			}
			line := lineOf(r)
			if _, point := r.(*store.Point); point && line == nil {
				return errDamagedSteps(r.Head().ID)
			}
			if line == nil {
				return errs.New(errs.Validation, "records of kind %s cannot be exported: make a backup instead", kindOf(r.Head().Kind))
			}
			if err := x.bounded(line, "record", r.Head().ID); err != nil {
				return err
			}
			x.report.Records++
			if err := x.revisions(tx, r); err != nil {
				return err
			}
			if err := x.pointVersions(tx, r); err != nil {
				return err
			}
			if err := x.vectors(tx, r.Head()); err != nil {
				return err
			}
		}
		if x.opts.Progress != nil {
			x.opts.Progress(x.report.Records, total)
		}
		if next == after {
			return nil
		}
		after = next
	}
}
