package loci

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// ImportOptions tune Import. The zero value imports.
type ImportOptions struct {
	// DryRun does everything but keep the result: it reports what an import would
	// do, or why it would fail.
	DryRun bool
	// Remap gives new ids and revisions even in a store that never held anything.
	Remap bool
	// Progress is told how many steps of how many are done, a record taking two;
	// nil for none.
	Progress func(done, total int64)
}

// ImportReport says what an import did, or would do.
type ImportReport struct {
	DryRun   bool             `json:"dry_run"`
	Kept     bool             `json:"kept"` // ids and revisions are those of the file
	Records  int64            `json:"records"`
	Counts   map[string]int64 `json:"counts"` // records by kind
	Settings int64            `json:"settings"`
	// SettingsKept counts the settings of the file that the store had otherwise,
	// and that stay as they were.
	SettingsKept int64 `json:"settings_kept"`
	Vectors      int64 `json:"vectors"`
	// VectorsSkipped counts vectors of a space that the store has otherwise, and
	// those that were made of another text than the record has in the file: their
	// records are embedded again.
	VectorsSkipped int64 `json:"vectors_skipped"`
	// Of the context store, besides its pages, which are records:
	Contexts    int64 `json:"contexts"`    // scopes
	Revisions   int64 `json:"revisions"`   // of pages, before the current ones
	LogEntries  int64 `json:"log_entries"` // of scopes
	Checkpoints int64 `json:"checkpoints"`
	// RevisionsSkipped counts earlier revisions of pages that are copies of
	// records, which stay out when ids are not kept.
	RevisionsSkipped int64 `json:"revisions_skipped"`
	// Of agent memory, besides its points, which are records:
	AgentMemories int64 `json:"agent_memories"`
	PointVersions int64 `json:"point_versions"` // before the current ones
	PointEdges    int64 `json:"point_edges"`    // relations between points
	Revision      int64 `json:"revision"`       // of the store after it
	// IDs maps the file's ids to those that the records got; it is empty when ids
	// were kept.
	IDs map[ID]ID `json:"ids,omitempty"`
}

// Import reads what Export wrote, or what was written like it, and writes all of
// it in one transaction or nothing. The whole file is checked first; whatever is
// wrong is named with its line. Other writes wait while it runs; searches are
// degraded until its records are indexed, which they are when it returns.
//
// A store that never held anything takes over ids, times and revisions. Any
// other gives new ids, in the order of the old ones, keeps times, and reports
// which id became which; settings that it has stay as they are. What evidence
// says of chunks that are not in the file is left out then. A scope of the context
// store that is there already is ErrConflict: two histories of one window are not
// merged. So is an agent memory, or one whose embedding space the store has otherwise.
//
// An r that cannot seek is copied to a file in the data directory first.
func (db *DB) Import(ctx context.Context, r io.Reader, opts *ImportOptions) (*ImportReport, error) {
	const op = "import"
	e := db.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if opts == nil {
		opts = &ImportOptions{}
	}
	if err := needAdmin(ctx, "", "an import"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	ctx = unrestricted(ctx) // the file says where its records lie
	in, done, err := e.seekable(ctx, r)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	defer done()
	im := &importer{eng: e, opts: opts, in: in, now: e.clock().UnixMicro()}
	if err := im.check(ctx); err != nil {
		return nil, errs.WithOp(op, err)
	}
	report, err := im.write(ctx)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if !report.DryRun {
		// Whoever holds scopes in memory reads them again.
		e.extensions.each(link.Extension.Changed)
		e.sweeps.soon() // what has expired since
	}
	return report, nil
}

// importer is one import under way.
type importer struct {
	eng  *engine
	opts *ImportOptions
	in   io.ReadSeeker
	now  int64

	header   exportHeader
	records  []importedRecord // by id
	places   []place
	counts   map[string]int64
	settings []importedSetting
	vectors  importVectors
	contexts importContexts
	agents   importAgents
	problems problems
	done     int64
	at       int // records of the second reading
}

// importedRecord is what is remembered of a record between the two readings.
type importedRecord struct {
	id    int64
	stamp int64 // of a page the greatest version that a checkpoint may name, of any other record its revision
	kind  store.Kind
	place int32
}

type importedSetting struct {
	settingLine
	line int
}

// check reads the whole input and checks all that needs no store.
func (im *importer) check(ctx context.Context) error {
	im.counts, im.vectors.dimensions = map[string]int64{}, map[string]int{}
	im.contexts.places, im.contexts.ids, im.agents.places = map[place]bool{}, map[int64]bool{}, map[place]int{}
	places := map[place]int32{}
	var ahead []aheadRef
	last := 0
	began, begun := false, false // the header came; a record came
	err := im.lines(ctx, func(n numbered) error {
		last = n.line
		err := n.err
		switch {
		case err != nil:
		case n.header != nil && began:
			err = errs.Invalid("format", "may stand in the first line only")
		case n.header != nil:
			im.header, began = *n.header, true
		case !began:
			err = errs.Invalid("", "must be a header, as the first line of an export is")
		case n.setting != nil && (begun || len(im.contexts.scopes)+len(im.agents.memories) > 0):
			err = errs.Invalid("setting", "must stand before the first scope, the first agent memory and the first record")
		case n.setting != nil:
			im.settings = append(im.settings, importedSetting{*n.setting, n.line})
			if n.setting.Setting == settingSpace {
				if im.vectors.dimensions[n.setting.Space] != 0 {
					err = errs.Invalid("space", "is that of another setting of this file")
				}
				im.vectors.dimensions[n.setting.Space] = n.setting.Dimension
			}
		case n.context != nil:
			err = im.meetScope(n.context, n.line, begun)
		case n.log != nil:
			err = im.meetLog(n.log, begun)
		case n.memory != nil:
			err = im.meetMemory(n.memory, n.line, begun)
		case n.version != nil:
			err = im.meetVersion(n.version)
		case n.vector != nil:
			err = im.vectors.meet(n.vector)
		case n.revision != nil:
			if err = im.meetRevision(n.revision); err == nil {
				ahead, err = im.takeRefs(n, ahead)
			}
		default:
			im.endPage()
			im.agents.point = nil
			if n.checkpoint != nil || n.edge != nil {
				im.vectors.follow(nil, false)
				if n.checkpoint != nil {
					err = im.meetCheckpoint(n.checkpoint)
				} else {
					err = im.meetEdge(n.edge)
				}
				break
			}
			begun = true
			im.vectors.follow(n.record, false)
			ahead, err = im.take(n, places, ahead)
		}
		if err == nil {
			return nil
		}
		im.problems.add(n.line, err)
		if im.problems.full() || !began {
			return im.problems.err()
		}
		return nil
	})
	if err != nil {
		return err
	}
	if !began {
		return errs.Invalid("", "the input is empty: it must begin with a header, as the first line of an export is")
	}
	im.endPage()
	for _, a := range ahead {
		if !im.problems.full() {
			if err := im.meets(a.ref, a.place); err != nil {
				im.problems.add(a.line, err)
			}
		}
	}
	if err := im.problems.err(); err != nil {
		return err
	}
	if want := im.header.Counts; want != nil {
		for kind := range kindNumbers {
			if got := im.counts[string(kind)]; got != want[string(kind)] {
				return errs.Invalid("counts", "the file ends after line %d with %d records of kind %s, and its header says %d: it is cut short or was changed",
					last, got, kind, want[string(kind)])
			}
		}
	}
	return im.complete(last)
}

// complete says whether the file, whose last line has that number, holds as much of
// the context store and of agent memory as its header says.
func (im *importer) complete(last int) error {
	want, agents := im.header.Contexts, im.header.Agents
	if want == nil && im.header.Counts != nil {
		want = &contextCounts{}
	}
	if agents == nil && im.header.Counts != nil {
		agents = &agentCounts{}
	}
	if got := im.contexts.found; want != nil && got != *want {
		return errs.Invalid("contexts", "the file ends after line %d with %d scopes, %d earlier revisions, %d log entries and %d checkpoints, and its header says %d, %d, %d and %d: it is cut short or was changed",
			last, got.Scopes, got.Revisions, got.Log, got.Checkpoints, want.Scopes, want.Revisions, want.Log, want.Checkpoints)
	}
	if got := im.agents.found; agents != nil && got != *agents {
		return errs.Invalid("agents", "the file ends after line %d with %d agent memories, %d earlier versions and %d relations between points, and its header says %d, %d and %d: it is cut short or was changed",
			last, got.Memories, got.Versions, got.Edges, agents.Memories, agents.Versions, agents.Edges)
	}
	return nil
}

// endPage notes a page whose revisions are not complete.
func (im *importer) endPage() {
	line := im.contexts.pageLine
	if err := im.contexts.endPage(); err != nil && !im.problems.full() {
		im.problems.add(line, err)
	}
}

// aheadRef is a reference to a record that comes later in the file.
type aheadRef struct {
	line  int
	ref   importRef
	place int32
}

// take notes a record of the first reading.
func (im *importer) take(n numbered, places map[place]int32, ahead []aheadRef) ([]aheadRef, error) {
	r := n.record.Head()
	if k := len(im.records); k > 0 && im.records[k-1].id >= r.ID {
		if im.records[k-1].id == r.ID {
			return ahead, errs.Invalid("id", "is that of the record before it")
		}
		return ahead, errs.Invalid("id", "is below that of the record before it: records must ascend by id, each id once")
	}
	if r.Revision > im.header.Revision {
		return ahead, errs.Invalid("revision", "is above the header's, which is %d", im.header.Revision)
	}
	if im.header.Namespace != "" && r.Namespace != im.header.Namespace {
		return ahead, errs.Invalid("namespace", "is not the one that the header names")
	}
	if im.contexts.begun || im.agents.edges {
		return ahead, errs.Invalid("kind", "must stand before the first checkpoint and the first relation between points")
	}
	if im.contexts.ids[r.ID] {
		return ahead, errs.Invalid("id", "is that of a scope or an agent memory of this file")
	}
	stamp := r.Revision
	if p, ok := n.record.(*store.Page); ok {
		if err := im.meetPage(p, n.line); err != nil {
			return ahead, err
		}
		stamp = p.Version
		if p.OriginID != 0 {
			stamp = math.MaxInt64 // checkpoints do not go back to versions of copies
		}
	}
	if p, ok := n.record.(*store.Point); ok {
		if err := im.meetPoint(p); err != nil {
			return ahead, err
		}
	}
	at := place{r.Namespace, r.Scope}
	number, ok := places[at]
	if !ok {
		number = int32(len(im.places))
		places[at] = number
		im.places = append(im.places, at)
	}
	im.records = append(im.records, importedRecord{r.ID, stamp, r.Kind, number})
	im.counts[string(kindOf(r.Kind))]++
	im.step()
	return im.takeRefs(n, ahead)
}

// takeRefs checks what the record that was taken last stands on, as far as it came
// already, and notes the rest.
func (im *importer) takeRefs(n numbered, ahead []aheadRef) ([]aheadRef, error) {
	r := &im.records[len(im.records)-1]
	for _, ref := range n.refs {
		if ref.id == r.id && ref.kind == store.KindPage {
			return ahead, errs.Invalid(ref.field, "names the page itself")
		}
		if ref.id >= r.id {
			ref.move = nil
			ahead = append(ahead, aheadRef{n.line, ref, r.place})
			continue
		}
		if err := im.meets(ref, r.place); err != nil {
			return ahead, err
		}
	}
	return ahead, nil
}

// rank is the place of an id among the file's.
func (im *importer) rank(id int64) (int, bool) {
	return slices.BinarySearchFunc(im.records, id, func(r importedRecord, id int64) int {
		switch {
		case r.id < id:
			return -1
		case r.id > id:
			return 1
		}
		return 0
	})
}

// meets says whether what a record at a place stands on is in the file and where
// it may be.
func (im *importer) meets(ref importRef, at int32) error {
	i, ok := im.rank(ref.id)
	if !ok || im.records[i].kind != ref.kind {
		return errs.Invalid(ref.field, "names a record that is no %s of this file", kindOf(ref.kind))
	}
	to, from := im.places[im.records[i].place], im.places[at]
	if to != from && (to.namespace != from.namespace ||
		!ref.anyScope && (to.scope != PublicScope || ref.kind == store.KindNote || ref.kind == store.KindPage)) {
		return errs.Invalid(ref.field, "names a record of another namespace or scope")
	}
	return nil
}

func (im *importer) step() {
	im.done++
	if im.opts.Progress != nil && im.done%256 == 0 {
		var total int64
		for _, n := range im.header.Counts {
			total += n
		}
		im.opts.Progress(im.done, max(2*total, im.done))
	}
}

// errDryRun takes the transaction of a dry run back.
var errDryRun = errors.New("dry run")

// write does the second reading, inside one operation of the writer.
func (im *importer) write(ctx context.Context) (*ImportReport, error) {
	report := &ImportReport{DryRun: im.opts.DryRun, Records: int64(len(im.records)), Counts: im.counts, Settings: int64(len(im.settings))}
	var base int64
	revision, err := im.eng.writeUnindexed(ctx, func(tx *store.WriteTx) error {
		// A file that was not exported has no revisions to take over.
		report.Kept = tx.Unused() && !im.opts.Remap && (im.header.Revision > 0 || len(im.records) == 0)
		base = tx.NextID() + int64(len(im.contexts.scopes)+len(im.agents.memories)) // which come first
		if report.Kept {
			if err := tx.Adopt(im.header.Revision); err != nil {
				return err
			}
		}
		if err := tx.InAnyOrder(func() error { return im.writeAll(ctx, tx, base, report) }); err != nil {
			return err
		}
		if report.Kept {
			tx.ReserveIDs(int64(im.header.NextID))
		}
		report.Revision = tx.Current()
		if im.opts.DryRun {
			return errDryRun
		}
		return nil
	})
	if errors.Is(err, errDryRun) {
		err = nil
	} else if err == nil {
		report.Revision = revision
	}
	if err != nil {
		return nil, err
	}
	if !report.Kept {
		report.IDs = make(map[ID]ID, len(im.records))
		for i, r := range im.records {
			report.IDs[ID(r.id)] = ID(base + int64(i))
		}
	}
	if im.opts.Progress != nil {
		im.opts.Progress(2*report.Records, 2*report.Records)
	}
	return report, nil
}

func (im *importer) writeAll(ctx context.Context, tx *store.WriteTx, base int64, report *ImportReport) error {
	im.vectors.spaces, im.vectors.later = map[string]*store.Space{}, nil
	if err := cmp.Or(im.conflicts(tx), im.memoryConflicts(tx)); err != nil || im.problems.full() {
		return cmp.Or(err, im.problems.err())
	}
	for _, s := range im.settings {
		kept, err := im.importSetting(tx, s.settingLine)
		if err != nil {
			return err
		}
		if s.Setting == settingEquivalents {
			im.eng.equivalents.changing(tx.Current())
		}
		if kept {
			report.SettingsKept++
		}
	}
	im.at, im.contexts.written, im.agents.written = 0, 0, 0
	err := im.lines(ctx, func(n numbered) error { return im.writeLine(tx, n, base, report) })
	if err == nil {
		err = im.problems.err()
	}
	if err == nil && (im.at != len(im.records) || im.contexts.written != len(im.contexts.scopes) || im.agents.written != len(im.agents.memories)) {
		return errChanged()
	}
	if err != nil {
		return err
	}
	stale, err := im.vectors.settle(tx)
	report.Vectors -= stale
	report.VectorsSkipped += stale
	return err
}

// lastID is the file's id of the record that was read last, 0 before the first.
func (im *importer) lastID() int64 {
	if im.at == 0 {
		return 0
	}
	return im.records[im.at-1].id
}

// writeLine writes what a line of the second reading has.
func (im *importer) writeLine(tx *store.WriteTx, n numbered, base int64, report *ImportReport) (err error) {
	failed := len(im.problems.list) > 0 // it comes to nothing anyway: only conflicts of records are still looked for
	switch {
	case n.err != nil:
		return errChanged()
	case n.header != nil || n.setting != nil:
		return nil
	case n.record == nil && failed:
		return nil
	case n.vector != nil:
		if im.lastID() != int64(n.vector.Vector) {
			return errChanged()
		}
		return im.addVector(tx, n.vector, report)
	case n.context != nil:
		return im.addContext(tx, n.context, base, report)
	case n.log != nil:
		err = im.addLog(tx, n.log, base, report)
	case n.revision != nil:
		err = im.addRevision(tx, n, base, report)
	case n.memory != nil:
		err = im.addMemory(tx, n.memory, report)
	case n.version != nil:
		err = im.addVersion(tx, n.version, report)
	case n.edge != nil:
		if err = im.addEdge(tx, n.edge, base, report); CodeOf(err) == errs.Conflict {
			err = explainEdge(err)
		}
	case n.checkpoint != nil:
		err = im.addCheckpoint(tx, n.checkpoint, base, report)
	default:
		err = im.addRecord(tx, n, base, report)
	}
	if err == nil || CodeOf(err) != errs.Conflict {
		return err
	}
	im.problems.add(n.line, explainConflict(n.record, err))
	if im.problems.full() {
		return im.problems.err()
	}
	return nil
}

// addRecord writes a record.
func (im *importer) addRecord(tx *store.WriteTx, n numbered, base int64, report *ImportReport) (err error) {
	if im.at == len(im.records) || im.records[im.at].id != n.record.Head().ID {
		return errChanged()
	}
	im.at++
	if p, ok := n.record.(*store.Page); ok {
		if len(im.problems.list) > 0 {
			return nil // its scope may not be there
		}
		if err := im.settlePage(tx, p, n.refs, report.Kept); err != nil {
			return err
		}
	}
	if p, ok := n.record.(*store.Point); ok {
		if len(im.problems.list) > 0 {
			return nil // nor its memory
		}
		if err := im.settlePoint(p); err != nil {
			return err
		}
	}
	if report.Kept {
		if r := n.record.Head(); r.Revision == 0 {
			r.Revision = im.header.Revision
		}
	} else if err := im.remap(n.refs, n.record.Head().Evidence, base); err != nil {
		return err
	}
	im.step()
	if v, ok := n.record.(*store.Event); ok {
		err = settleEvent(tx, v)
	}
	if err == nil {
		err = tx.Add(n.record)
	}
	im.vectors.follow(n.record, slices.ContainsFunc(n.refs, func(r importRef) bool { return r.id > im.lastID() }))
	return err
}

// addVector writes a vector of the record before it.
func (im *importer) addVector(tx *store.WriteTx, l *vectorLine, report *ImportReport) error {
	written, err := im.vectors.write(tx, l)
	switch {
	case err != nil:
		return err
	case written:
		report.Vectors++
	default:
		report.VectorsSkipped++
	}
	return nil
}

// explainConflict says what stands in a record's way where the store only knows
// that something does.
func explainConflict(r store.Stored, err error) error {
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Field == "" && e.Err != nil {
		switch r.(type) {
		case *store.Note:
			return &errs.Error{Code: errs.Conflict, Field: "path", Message: "is that of a note of the same namespace and scope: delete that one first"}
		case *store.Chunk:
			return &errs.Error{Code: errs.Conflict, Field: "ordinal", Message: "is that of another chunk of the note"}
		case *store.Page:
			return &errs.Error{Code: errs.Conflict, Field: "page_id", Message: "is that of another page of the scope"}
		case *store.Point:
			return &errs.Error{Code: errs.Conflict, Field: "point_id", Message: "is that of another record of this kind in the memory"}
		}
	}
	return err
}

// remap puts the ids that the file's records get in the place of those that refs
// and evidence name.
func (im *importer) remap(refs []importRef, evidence []store.Evidence, base int64) error {
	for _, ref := range refs {
		i, ok := im.rank(ref.id)
		if !ok {
			return errChanged()
		}
		ref.move(base + int64(i))
	}
	for i := range evidence {
		if id := evidence[i].ChunkID; id != nil {
			evidence[i].ChunkID = nil
			if k, ok := im.rank(*id); ok && im.records[k].kind == store.KindChunk {
				evidence[i].ChunkID = new(base + int64(k))
			}
		}
	}
	return nil
}
