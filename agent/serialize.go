package agent

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/loci-memory/loci/internal/agentfile"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// Summary says what a file of a memory's points holds.
type Summary struct {
	Revision   int64 `json:"revision"` // of the store that it shows
	Facts      int64 `json:"facts"`
	Episodes   int64 `json:"episodes"`
	Procedures int64 `json:"procedures"`
	Versions   int64 `json:"versions"` // earlier ones, of all points
	Relations  int64 `json:"relations"`
	Vectors    int64 `json:"vectors"`
	Bytes      int64 `json:"bytes"`

	created int64 // when the file says that it was made
}

func summaryOf(s *agentfile.Summary, revision int64) *Summary {
	return &Summary{
		Revision: revision, Facts: s.Facts, Episodes: s.Episodes, Procedures: s.Procedures, Versions: s.Versions,
		Relations: s.Edges, Vectors: s.Vectors, Bytes: s.Bytes,
	}
}

// FileRequest names a file of a memory's points.
type FileRequest struct {
	Path string `json:"path"`
}

func (r *FileRequest) check() error {
	if r.Path == "" {
		return errs.Invalid("path", "must not be empty: name a file")
	}
	return nil
}

// kindNames are what the format calls the kinds.
var kindNames = [...]string{agentfile.KindFact, agentfile.KindEpisode, agentfile.KindProcedure}

func kindName(k store.Kind) string { return kindNames[k-store.KindFact] }

// kindNamed is the kind of a name that the format has.
func kindNamed(name string) store.Kind {
	switch name {
	case agentfile.KindEpisode:
		return store.KindEpisode
	case agentfile.KindProcedure:
		return store.KindProcedure
	}
	return store.KindFact
}

// Serialize writes all live points with their vectors, expiry, earlier versions and
// relations, also those with other kinds, as they are at one moment, in the format of
// docs/format/agent-snapshot.md. Nothing of it is held in memory. Reads and writes go
// on meanwhile, though the store's log grows until w has taken everything. What w
// fails with is ErrIO.
func (s *points) Serialize(ctx context.Context, w io.Writer) (*Summary, error) {
	op := s.name("serialize")
	sum, err := s.m.serialize(ctx, op, w, []store.Kind{s.kind}, false)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return sum, nil
}

// SerializeTo is Serialize to a new file, which only its owner may read. A file that
// is there is ErrIO and stays as it is; when it fails, nothing is left of it.
func (s *points) SerializeTo(ctx context.Context, req FileRequest) (*Summary, error) {
	op := s.name("serialize")
	if err := req.check(); err != nil {
		return nil, errs.WithOp(op, err)
	}
	f, err := os.OpenFile(req.Path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil, errs.WithOp(op, &errs.Error{Code: errs.IO, Field: "path", Message: "exists and stays as it is: name a new file"})
	}
	if err != nil {
		return nil, errs.WithOp(op, errs.Wrap(errs.IO, err, "the file could not be made"))
	}
	sum, err := s.Serialize(ctx, f)
	if err == nil {
		err = errs.Wrap(errs.IO, f.Sync(), "the file could not be written out")
	}
	if closed := f.Close(); err == nil {
		err = errs.Wrap(errs.IO, closed, "the file could not be written out")
	}
	if err == nil {
		err = syncDir(filepath.Dir(req.Path))
	}
	if err != nil {
		return nil, errs.WithOp(op, errors.Join(err, os.Remove(req.Path)))
	}
	return sum, nil
}

// serialize writes the points of some kinds, and the memory's settings if whole is
// set.
func (m *AgentMemory) serialize(ctx context.Context, op string, w io.Writer, kinds []store.Kind, whole bool) (sum *Summary, err error) {
	work, stop := m.link.UntilClosing(ctx)
	defer stop()
	err = m.read(work, op, func(tx *store.ReadTx, row *store.AgentMemory) error {
		c, err := m.copier(work, tx, row, w, kinds, whole)
		if err != nil {
			return err
		}
		for _, section := range []func(store.Kind) error{c.points, c.versions} {
			for _, k := range kinds {
				if err := section(k); err != nil {
					return err
				}
			}
		}
		for _, k := range pointKinds() {
			if err := c.edges(k); err != nil {
				return err
			}
		}
		done, err := c.w.Close()
		sum = summaryOf(&done, tx.Revision())
		sum.created = c.created
		return err
	})
	return sum, closing(ctx, work, err)
}

// closing is the error of work that was ended because the store closes.
func closing(ctx, work context.Context, err error) error {
	if err != nil && ctx.Err() == nil && work.Err() != nil {
		return errs.New(errs.Closed, "the store is closing: nothing was changed")
	}
	return err
}

// copier writes points as they are in a snapshot of the store.
type copier struct {
	ctx   context.Context
	tx    *store.ReadTx
	row   *store.AgentMemory
	w     *agentfile.Writer
	kinds [3]bool // those that the file holds
	now   int64
	// created is when the file says that it was made.
	created int64
	keep    int64
	space   int64 // 0: there is none any more
	copied  int   // records, to look at the context now and then
}

func (m *AgentMemory) copier(ctx context.Context, tx *store.ReadTx, row *store.AgentMemory, w io.Writer, kinds []store.Kind, whole bool) (*copier, error) {
	c := &copier{ctx: ctx, tx: tx, row: row, now: m.link.Clock(), created: m.link.Now().UnixMicro()}
	policy, err := policyOf(row)
	if err != nil {
		return nil, err
	}
	c.keep = policy.keepVersions()
	space, err := tx.Space(row.Space)
	if err != nil {
		return nil, err
	}
	if space != nil {
		c.space = space.ID
	}
	h := &agentfile.Header{
		Namespace: m.namespace, Scope: m.scope, Dimension: row.Dimension, Space: row.Space,
		CreatedAt: c.created, Clock: c.now,
	}
	for _, k := range kinds {
		c.kinds[k-store.KindFact] = true
		h.Kinds = append(h.Kinds, kindName(k))
	}
	if whole {
		h.Settings = row.Settings
	}
	c.w, err = agentfile.NewWriter(w, h)
	return c, err
}

// goOn ends the copy when the context has ended.
func (c *copier) goOn() error {
	if c.copied++; c.copied%256 != 0 {
		return nil
	}
	return c.ctx.Err()
}

// points writes the points of a kind.
func (c *copier) points(k store.Kind) error {
	var out agentfile.Point
	return c.tx.WholePoints(c.row.Place(k), c.now, c.space, func(p *store.WholePoint) error {
		out = agentfile.Point{
			Kind: kindName(k), Key: p.Key, Title: p.Title, Content: p.Content, Data: p.Data, Metadata: p.Metadata, Tags: p.Tags,
			Thread: p.Thread, Position: p.Position, Created: p.Created, Updated: p.Updated, Recorded: p.Recorded,
			ExpiresAt: p.Expires, ValidFrom: p.ValidFrom, ValidTo: p.ValidTo, HappenedAt: p.Happened, Confidence: p.Confidence,
			Uses: p.Uses, Successes: p.Successes, LastUsed: p.LastUsed, Version: p.Version, Vector: p.Vector, VectorText: p.VectorText,
		}
		if len(p.Vector) != c.row.Dimension {
			// Those of a space that was registered anew with another dimension mean nothing.
			out.Vector, out.VectorText = nil, 0
		}
		if err := c.w.Point(&out); err != nil {
			return c.damaged(err)
		}
		return c.goOn()
	})
}

// versions writes the earlier versions of the points of a kind that the policy keeps.
func (c *copier) versions(k store.Kind) error {
	return c.tx.WholeVersions(c.row.Place(k), c.now, c.keep, func(key uint64, v *store.PointVersion) error {
		err := c.w.Version(&agentfile.PointVersion{
			Kind: kindName(k), Key: key, Version: v.Version, RecordedAt: v.Recorded, RecordedTo: v.RecordedTo, ValidFrom: v.ValidFrom,
			ValidTo: v.ValidTo, Title: v.Title, Content: v.Content, Data: v.Data, Metadata: v.Metadata,
		})
		if err != nil {
			return c.damaged(err)
		}
		return c.goOn()
	})
}

// edges writes the relations from the points of a kind: all of those that can be
// seen, and of a kind that the file does not hold those to points that it holds.
func (c *copier) edges(k store.Kind) error {
	others := c.row.Places
	if !c.kinds[k-store.KindFact] {
		for i := range others {
			if !c.kinds[i] {
				others[i] = 0 // no place
			}
		}
	}
	return c.tx.WholeEdges(c.row.Place(k), c.now, others, func(e *store.WholeEdge) error {
		to := store.KindFact
		for i, place := range others {
			if place == e.ToPlace {
				to += store.Kind(i)
			}
		}
		err := c.w.Edge(&agentfile.Edge{
			FromKind: kindName(k), From: e.From, Type: e.Type, ToKind: kindName(to), To: e.To, ID: e.Key,
			CreatedAt: e.Created, Properties: e.Properties,
		})
		if err != nil {
			return c.damaged(err)
		}
		return c.goOn()
	})
}

// damaged makes what the format refuses an error of the store: callers could not have
// stored it.
func (c *copier) damaged(err error) error {
	if errs.CodeOf(err) == errs.Validation {
		return &errs.Error{Code: errs.Storage, Message: "what is stored cannot be written out, as only damage explains: run the deep check", Err: err}
	}
	return err
}
