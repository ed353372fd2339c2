package agent

import (
	"context"
	"errors"
	"io"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Restored says what points of a memory were replaced by.
type Restored struct {
	Version    int64 `json:"version,omitempty"` // of the snapshot; 0: it was none
	Facts      int64 `json:"facts"`
	Episodes   int64 `json:"episodes"`
	Procedures int64 `json:"procedures"`
	Versions   int64 `json:"versions"` // earlier ones, of all points
	Relations  int64 `json:"relations"`
	// Expired counts points that were left out since they have expired by now.
	Expired int64 `json:"expired"`
	// DroppedRelations counts relations that are gone since a point that they led from
	// or to is not there: those of the file, and those that points of other kinds had.
	DroppedRelations int64 `json:"dropped_relations"`
	// Warnings tell of newer snapshots that could not be used.
	Warnings []string `json:"warnings,omitempty"`
}

// Deserialize replaces all points by those that Serialize wrote, here or elsewhere.
// All of r is read and checked first: what is damaged, of another kind or cut short
// is ErrValidation, what a newer version wrote ErrSchemaVersion, another dimension
// ErrInvalidVector, what r fails with ErrIO; then nothing has changed. Others see all
// of the old points or all of the new. What is stored while it runs may be replaced
// too; what is stored after it returned stays.
//
// Points that have expired since are left out. Relations that points of other kinds
// have to the ones that are replaced lead to the new ones of the same ids, as far as
// there are. Vectors that an embedder made in a space of another name are made anew
// where this memory's space has an embedder, and are kept otherwise.
func (s *points) Deserialize(ctx context.Context, r io.Reader) (*loci.Receipt[Restored], error) {
	op := s.name("deserialize")
	out, err := s.m.replacing(ctx, op, func(work context.Context) (*loci.Receipt[Restored], error) {
		want, err := s.expect(work)
		if err != nil {
			return nil, err
		}
		f, remove, err := s.m.spool()
		if err != nil {
			return nil, err
		}
		defer remove()
		h, _, err := want.inspect(work, io.TeeReader(r, f))
		if err != nil {
			return nil, err
		}
		return s.m.replace(work, op, f, h, want)
	})
	return out, errs.WithOp(op, err)
}

// DeserializeFrom is Deserialize from a regular file; a pipe or a device is
// ErrValidation.
func (s *points) DeserializeFrom(ctx context.Context, req FileRequest) (*loci.Receipt[Restored], error) {
	op := s.name("deserialize")
	if err := req.check(); err != nil {
		return nil, errs.WithOp(op, err)
	}
	f, _, err := openRegular(req.Path, errs.NotFound)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	defer f.Close()
	out, err := s.m.replacing(ctx, op, func(work context.Context) (*loci.Receipt[Restored], error) {
		want, err := s.expect(work)
		if err != nil {
			return nil, err
		}
		h, _, err := want.inspect(work, f)
		if err != nil {
			return nil, err
		}
		return s.m.replace(work, op, f, h, want)
	})
	return out, errs.WithOp(op, err)
}

// expect is what a file for points of one kind must be.
func (s *points) expect(ctx context.Context) (*expectation, error) {
	want := &expectation{kinds: []store.Kind{s.kind}}
	return want, s.m.expect(ctx, want)
}

// expect fills in the dimension that the memory has by now.
func (m *AgentMemory) expect(ctx context.Context, want *expectation) error {
	row, err := m.stored(ctx)
	if err == nil {
		want.dimension = row.Dimension
	}
	return err
}

// stored is the memory as it is stored; its number is 0 where it is not there yet.
func (m *AgentMemory) stored(ctx context.Context) (row *store.AgentMemory, err error) {
	err = m.link.Read(ctx, func(tx *store.ReadTx) (err error) {
		row, err = m.row(tx)
		return err
	})
	return row, err
}

// replacing runs fn as one call that replaces points. It ends when the store closes.
func (m *AgentMemory) replacing(ctx context.Context, op string, fn func(context.Context) (*loci.Receipt[Restored], error)) (*loci.Receipt[Restored], error) {
	leave, err := m.enterWriting(ctx, op)
	if err != nil {
		return nil, err
	}
	defer leave()
	work, stop := m.link.UntilClosing(ctx)
	defer stop()
	out, err := fn(work)
	return out, closing(ctx, work, err)
}

// replace replaces points by those of a file that was inspected.
func (m *AgentMemory) replace(ctx context.Context, op string, f io.ReadSeeker, h *agentfile.Header, want *expectation) (*loci.Receipt[Restored], error) {
	if err := m.ensureAs(ctx, h.Dimension); err != nil {
		return nil, err
	}
	done, err := m.take(ctx, workPlaces)
	if err != nil {
		return nil, err
	}
	defer done()
	a := &arrival{m: m, op: op, want: want, header: h}
	defer m.link.SweepSoon() // what goes, or what was staged in vain
	defer a.release()
	if err := a.stage(ctx); err != nil {
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return nil, errs.Wrap(errs.IO, err, "the file cannot be read again")
	}
	if err := a.fill(ctx, f); err != nil {
		return nil, err
	}
	revision, err := a.flip(ctx)
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[Restored]{Value: a.out, Revision: revision}, nil
}

// ensureAs is ensure for a memory that, if nothing says otherwise, gets a dimension.
func (m *AgentMemory) ensureAs(ctx context.Context, dimension int) (err error) {
	c := *m
	if c.lazy && c.dimension == 0 {
		if c.dimension, c.space, err = m.plan(ctx, Config{Dimension: dimension}); err != nil {
			return err
		}
	}
	return c.ensure(ctx)
}

// arrival is a file whose points are on their way into a memory: into places of
// their own, in as many transactions as it takes, until the memory names those.
type arrival struct {
	m      *AgentMemory
	op     string
	want   *expectation
	header *agentfile.Header

	staged [3]int64 // places by kind; 0 for a kind that stays
	ends   [3]int64 // where the points of a kind are looked up: the staged ones, or the memory's
	// incoming says that the file has relations from points of a kind that stays.
	incoming bool
	// remake says that vectors that a model made are of another model.
	remake bool
	out    Restored
}

// stage makes the places.
func (a *arrival) stage(ctx context.Context) error {
	_, err := a.m.write(ctx, a.op, func(tx *store.WriteTx, row *store.AgentMemory) (err error) {
		a.ends = row.Places
		if a.header.Dimension != row.Dimension {
			return errs.New(errs.InvalidVector, "the file's vectors have %d numbers, the memory's %d", a.header.Dimension, row.Dimension)
		}
		if _, err := a.space(tx, row); err != nil {
			return err
		}
		makes, err := a.m.link.MakesVectors(tx, row.Space, row.Namespace)
		if err != nil {
			return err
		}
		a.remake = makes && a.header.Space != row.Space
		for _, k := range a.want.kinds {
			i := k - store.KindFact
			if a.staged[i], err = tx.StagePlace(row, k); err != nil {
				return err
			}
			a.m.link.Staging(a.staged[i], true)
			a.ends[i] = a.staged[i]
		}
		return nil
	})
	return err
}

// space is that of the memory's vectors.
func (a *arrival) space(tx *store.WriteTx, row *store.AgentMemory) (*store.Space, error) {
	space, err := tx.Space(row.Space)
	switch {
	case err != nil:
		return nil, err
	case space == nil:
		return nil, errs.New(errs.Conflict, "the embedding space %q of the memory was deleted: register it again", row.Space)
	case space.Dimension != row.Dimension:
		return nil, errs.New(errs.InvalidVector, "the embedding space %q of the memory now has %d dimensions, the memory's vectors %d",
			row.Space, space.Dimension, row.Dimension)
	}
	return space, nil
}

// release leaves the places to the sweeper, except for those that have become the
// memory's.
func (a *arrival) release() {
	for _, place := range a.staged {
		if place != 0 {
			a.m.link.Staging(place, false)
		}
	}
}

// Batches are written in one transaction each. Other writers wait no longer than
// that takes.
const (
	arrivalBatch = 500
	arrivalBytes = 2 << 20
	arrivalEdges = 2000 // relations and versions are small
)

// load is what one transaction writes.
type load struct {
	drafts   []*draft
	versions []*agentfile.PointVersion
	edges    []*agentfile.Edge
	bytes    int
}

func (l *load) full() bool {
	return len(l.drafts) >= arrivalBatch || l.bytes >= arrivalBytes || len(l.versions)+len(l.edges) >= arrivalEdges
}

// fill writes the file's records to the places. While one batch is written, the next
// one is read and analysed.
func (a *arrival) fill(ctx context.Context, r io.Reader) error {
	ctx, stop := context.WithCancel(ctx)
	loads := make(chan *load)
	var failed error // of reading; set before loads is closed
	go func() {
		defer close(loads)
		failed = a.read(ctx, r, func(l *load) error {
			select {
			case loads <- l:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	}()
	var err error
	for l := range loads {
		if err == nil {
			if err = a.write(ctx, l); err != nil {
				stop()
			}
			a.keepUp()
		}
	}
	stop()
	if err != nil {
		return err
	}
	return failed
}

// mostBehind is how many records the index may hold in memory alone. It takes them
// faster than it writes them to its files, where left to itself.
const mostBehind = 4000

// keepUp has the index write what it was given to its files. Where that fails it does so
// in its own time, as ever.
func (a *arrival) keepUp() {
	if a.m.link.Backlog() > mostBehind {
		_ = a.m.link.FlushIndex()
	}
}

// read reads the file and gives its records in batches. All is checked again, since
// it is read again.
func (a *arrival) read(ctx context.Context, r io.Reader, give func(*load) error) error {
	in, err := agentfile.NewReader(&contextReader{ctx, r})
	if err != nil {
		return err
	}
	if err := a.want.header(in.Header()); err != nil {
		return err
	}
	l := &load{}
	for {
		record, err := in.Next()
		last := errors.Is(err, io.EOF)
		if err != nil && !last {
			return err
		}
		if err := a.take(l, record); err != nil {
			return err
		}
		if !last && !l.full() {
			continue
		}
		// All drafts are of one memory, so it does not matter which kind prepares them.
		(&points{m: a.m, kind: store.KindFact}).prepare(l.drafts)
		if err := give(l); err != nil || last {
			return err
		}
		l = &load{}
	}
}

// take puts a record into a batch.
func (a *arrival) take(l *load, record any) error {
	switch record := record.(type) {
	case *agentfile.Point:
		p, attributes, err := checkPoint(record)
		if err != nil {
			return err
		}
		p.Namespace, p.Scope = a.m.namespace, a.m.scope
		d := &draft{point: *p, attributes: attributes, vector: record.Vector, fingerprint: record.VectorText}
		if a.remake && d.fingerprint != store.TextOfCaller {
			d.vector = nil
		}
		l.drafts = append(l.drafts, d)
		l.bytes += len(p.Content) + len(p.Metadata) + len(p.Data) + 4*len(d.vector)
	case *agentfile.PointVersion:
		if err := checkVersion(record); err != nil {
			return err
		}
		l.versions = append(l.versions, record)
		l.bytes += len(record.Content) + len(record.Metadata) + len(record.Data)
	case *agentfile.Edge:
		if err := checkEdge(record); err != nil {
			return err
		}
		l.edges = append(l.edges, record)
		l.bytes += len(record.Properties)
	}
	return nil
}

// write writes one batch.
func (a *arrival) write(ctx context.Context, l *load) error {
	_, err := a.m.link.WriteMany(ctx, func(tx *store.WriteTx) error {
		row, err := a.m.row(tx)
		if err != nil {
			return err
		}
		space, err := a.space(tx, row)
		if err != nil {
			return err
		}
		now := a.m.link.Clock()
		for _, d := range l.drafts {
			if err := a.point(tx, space, now, d); err != nil {
				return err
			}
		}
		if err := a.history(tx, l.versions); err != nil {
			return err
		}
		return a.edges(tx, now, l.edges)
	})
	return err
}

// point writes a point.
func (a *arrival) point(tx *store.WriteTx, space *store.Space, now int64, d *draft) error {
	p := &d.point
	if expired(p, now) {
		a.out.Expired++
		return nil
	}
	err := tx.AddPoint(a.staged[p.Kind-store.KindFact], p)
	if errs.CodeOf(err) == errs.Conflict {
		return errs.New(errs.Validation, "%s %d of the file stands at a position of its thread that another one has", kindName(p.Kind), p.Key)
	}
	if err != nil {
		return err
	}
	if err := a.m.link.StagePoint(tx, p, d.prepared); err != nil {
		return err
	}
	*[...]*int64{&a.out.Facts, &a.out.Episodes, &a.out.Procedures}[p.Kind-store.KindFact]++
	if d.vector == nil {
		return nil
	}
	return tx.PutVector(space, &p.Record, d.fingerprint, d.vector)
}

// history writes earlier versions. Those of points that were left out are too.
func (a *arrival) history(tx *store.WriteTx, versions []*agentfile.PointVersion) error {
	for _, v := range versions {
		ref, ok, err := tx.PointRef(a.staged[kindNamed(v.Kind)-store.KindFact], v.Key)
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		err = tx.PutPointVersions(ref.ID, []store.PointVersion{{
			Version: v.Version, Recorded: v.RecordedAt, RecordedTo: v.RecordedTo, ValidFrom: v.ValidFrom, ValidTo: v.ValidTo,
			Title: v.Title, Data: v.Data, Metadata: v.Metadata, Content: v.Content,
		}})
		if err != nil {
			return err
		}
		a.out.Versions++
	}
	return nil
}

// edges writes relations. One that goes out from a point of a kind that stays is
// written to the place of its target, where nobody sees it yet.
func (a *arrival) edges(tx *store.WriteTx, now int64, edges []*agentfile.Edge) error {
	for _, e := range edges {
		fromKind, toKind := kindNamed(e.FromKind)-store.KindFact, kindNamed(e.ToKind)-store.KindFact
		from, ok, err := tx.PointRef(a.ends[fromKind], e.From)
		if err != nil {
			return err
		}
		to, there, err := tx.PointRef(a.ends[toKind], e.To)
		if err != nil {
			return err
		}
		if !ok || !there || gone(from.Expires, now) || gone(to.Expires, now) {
			a.out.DroppedRelations++
			continue
		}
		place := a.staged[fromKind]
		if place == 0 {
			place, a.incoming = a.staged[toKind], true
		}
		err = tx.AddPointEdge(place, &store.PointEdge{
			Source: from.ID, Type: e.Type, Target: to.ID, Key: e.ID, Created: e.CreatedAt, Properties: e.Properties,
		})
		if err != nil {
			return err
		}
		a.out.Relations++
	}
	return nil
}

// gone is expired for a time.
func gone(expires *int64, now int64) bool { return expires != nil && *expires <= now }

// flip makes the staged places the memory's. What it costs depends on the relations
// that points of other kinds have, not on the points.
func (a *arrival) flip(ctx context.Context) (int64, error) {
	var dropped int64
	revision, err := a.m.link.WriteMany(ctx, func(tx *store.WriteTx) error {
		row, err := a.m.row(tx)
		if err != nil {
			return err
		}
		before, now := row.Places, a.m.link.Clock()
		for _, k := range a.want.kinds {
			if err := tx.SetPlace(row, k, a.staged[k-store.KindFact]); err != nil {
				return err
			}
		}
		for i, place := range a.staged {
			for other := range a.staged {
				if place == 0 || a.staged[other] != 0 {
					continue
				}
				n, err := tx.ReplaceEdges(row.Places[other], before[i], place, now)
				if err != nil {
					return err
				}
				dropped += n
				if a.incoming {
					if err := tx.AdoptEdges(row.Places[other], place); err != nil {
						return err
					}
				}
			}
		}
		if a.want.place != nil {
			row.Settings = a.header.Settings
		}
		return tx.UpdateAgentMemory(row)
	})
	a.out.DroppedRelations += dropped
	return revision, err
}
