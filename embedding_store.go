package loci

import (
	"context"
	"math"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// EmbeddingStore keeps the spaces of vectors, the embedders that fill them, and
// what of a namespace gets vectors.
type EmbeddingStore struct {
	eng *engine
}

// Embeddings gives the embedding store.
func (db *DB) Embeddings() *EmbeddingStore { return &EmbeddingStore{eng: db.eng} }

// spaceOf is a stored space as the caller gets it.
func spaceOf(sp *store.Space) EmbeddingSpace {
	out := EmbeddingSpace{ID: sp.Name, Model: sp.Model, Dimension: sp.Dimension, TextVersion: sp.TextVersion, Encoding: EncodingSQ8}
	if index.Encoding(sp.Encoding) == index.EncodingF32 {
		out.Encoding = EncodingF32
	}
	return out
}

// check validates a space and fills in what was left out.
func (sp *EmbeddingSpace) check() (*store.Space, error) {
	if err := valid.Label("id", sp.ID, MaxNamespaceBytes); err != nil {
		return nil, err
	}
	if err := valid.Label("model", sp.Model, MaxLabelBytes); err != nil {
		return nil, err
	}
	if sp.Dimension < 1 || sp.Dimension > MaxDimension {
		return nil, errs.Invalid("dimension", "must be 1 to %d, not %d", MaxDimension, sp.Dimension)
	}
	out := &store.Space{Name: sp.ID, Model: sp.Model, Dimension: sp.Dimension, TextVersion: sp.TextVersion}
	switch sp.TextVersion {
	case 0, TextVersion:
		out.TextVersion = TextVersion
	default:
		return nil, errs.Invalid("text_version", "must be %d, not %d", TextVersion, sp.TextVersion)
	}
	switch sp.Encoding {
	case "", EncodingSQ8:
		out.Encoding = uint8(index.EncodingSQ8)
	case EncodingF32:
		out.Encoding = uint8(index.EncodingF32)
	default:
		return nil, errs.Invalid("encoding", "must be f32 or sq8")
	}
	return out, nil
}

// RegisterSpace adds a space. One of the same definition is left as it is;
// another one under the same id is ErrConflict.
func (s *EmbeddingStore) RegisterSpace(ctx context.Context, space EmbeddingSpace) (*Receipt[EmbeddingSpace], error) {
	const op = "embeddings.register_space"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	wanted, err := space.check()
	if err == nil {
		err = needAdmin(ctx, "", "a space of vectors")
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		there, err := tx.Space(wanted.Name)
		if err != nil || there != nil && there.Same(wanted) {
			return err
		}
		if there != nil {
			return &errs.Error{Code: errs.Conflict, Field: "id", Message: "is that of a space with another model, dimension or encoding: a space never changes, choose another id"}
		}
		return tx.AddSpace(wanted)
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[EmbeddingSpace]{Value: spaceOf(wanted), Revision: revision}, nil
}

// Spaces gives the spaces by id.
func (s *EmbeddingStore) Spaces(ctx context.Context) ([]EmbeddingSpace, error) {
	const op = "embeddings.spaces"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := needAdmin(ctx, "", "the list of spaces"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	out := []EmbeddingSpace{}
	err := s.eng.read(ctx, func(tx *store.ReadTx) error {
		spaces, err := tx.Spaces()
		for _, sp := range spaces {
			out = append(out, spaceOf(sp))
		}
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return out, nil
}

// DeleteSpace deletes a space with its vectors, and unbinds its embedder; false
// when there was none. The namespaces' switches stay. One in which an agent memory
// has points is ErrConflict.
func (s *EmbeddingStore) DeleteSpace(ctx context.Context, space string) (*Receipt[bool], error) {
	const op = "embeddings.delete_space"
	e := s.eng
	if err := e.enter(op); err != nil {
		return nil, err
	}
	defer e.gate.leave()
	if err := valid.Label("space", space, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := needAdmin(ctx, "", "a space of vectors"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	e.embedders.admin.Lock()
	defer e.embedders.admin.Unlock()
	var sp *store.Space
	revision, err := e.write(ctx, func(tx *store.WriteTx) (err error) {
		if sp, err = tx.Space(space); err != nil || sp == nil {
			return err
		}
		if err := unused(tx, space); err != nil {
			return err
		}
		return tx.DropSpace(sp.ID)
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if sp != nil {
		e.embedders.set(space, nil)
		e.goTask(func() { e.removeVectors([]int64{sp.ID}) })
	}
	return &Receipt[bool]{Value: sp != nil, Revision: revision}, nil
}

// unused says why a space cannot be deleted: an agent memory's vectors are of it, and
// those that callers gave would be lost for ever.
func unused(tx *store.WriteTx, space string) error {
	memories, err := tx.AgentMemories()
	if err != nil {
		return err
	}
	for _, m := range memories {
		if m.Space != space {
			continue
		}
		for _, place := range m.Places {
			points, err := tx.PointsFrom(place, 0, 1)
			if err != nil {
				return err
			}
			if len(points) > 0 {
				return &errs.Error{Code: errs.Conflict, Field: "space",
					Message: "is that of an agent memory that holds points, whose vectors would be lost: clear it first"}
			}
		}
	}
	return nil
}

// removeBatch is how many vectors of a deleted space one operation removes.
const removeBatch = 500

// removeVectors removes the vectors of deleted spaces. What it does not get to is
// removed after the next open.
func (e *engine) removeVectors(spaces []int64) {
	for _, space := range spaces {
		for more := true; more; {
			_, err := e.write(e.background, func(tx *store.WriteTx) (err error) {
				more, err = tx.RemoveVectors(space, removeBatch)
				return err
			})
			if err != nil {
				return
			}
		}
	}
}

// Vectorization says whether a tier's own switch is on in a namespace.
func (s *EmbeddingStore) Vectorization(ctx context.Context, namespace string, tier Tier) (bool, error) {
	return s.switchOf(ctx, "embeddings.vectorization", namespace, tier)
}

// NamespaceVectorization says whether a namespace's master switch is on, over
// those of its tiers.
func (s *EmbeddingStore) NamespaceVectorization(ctx context.Context, namespace string) (bool, error) {
	return s.switchOf(ctx, "embeddings.namespace_vectorization", namespace, "")
}

// switchOf reads one switch; tier "" is the master's.
func (s *EmbeddingStore) switchOf(ctx context.Context, op, namespace string, tier Tier) (on bool, err error) {
	if err := s.eng.enter(op); err != nil {
		return false, err
	}
	defer s.eng.gate.leave()
	if err := checkTier(op == "embeddings.namespace_vectorization", tier, namespace); err != nil {
		return false, errs.WithOp(op, err)
	}
	if err := mayReadAll(ctx, namespace); err != nil {
		return false, errs.WithOp(op, err)
	}
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		set, err := readSwitches(tx, namespace)
		on = set[tier.number()]
		return err
	})
	return on, errs.WithOp(op, err)
}

func checkTier(master bool, tier Tier, namespace string) error {
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return err
	}
	if !master && tier.number() == store.TierMaster {
		return errs.Invalid("tier", "must be memory, graph, notes, pages or agent")
	}
	return nil
}

// SetVectorization switches a tier of a namespace. That decides which records
// get vectors and take part in searches by them; it deletes none.
func (s *EmbeddingStore) SetVectorization(ctx context.Context, namespace string, tier Tier, enabled bool) (*Receipt[bool], error) {
	return s.setSwitch(ctx, "embeddings.set_vectorization", namespace, tier, enabled)
}

// SetNamespaceVectorization switches all tiers of a namespace, whose own
// switches stay as they are.
func (s *EmbeddingStore) SetNamespaceVectorization(ctx context.Context, namespace string, enabled bool) (*Receipt[bool], error) {
	return s.setSwitch(ctx, "embeddings.set_namespace_vectorization", namespace, "", enabled)
}

func (s *EmbeddingStore) setSwitch(ctx context.Context, op, namespace string, tier Tier, enabled bool) (*Receipt[bool], error) {
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := checkTier(op == "embeddings.set_namespace_vectorization", tier, namespace); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := mayWriteAll(ctx, namespace); err != nil {
		return nil, errs.WithOp(op, err)
	}
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error {
		set, err := readSwitches(tx, namespace)
		if err != nil || set[tier.number()] == enabled {
			return err
		}
		return tx.SetVectorSwitch(namespace, tier.number(), enabled)
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	s.eng.lookEverywhere()
	return &Receipt[bool]{Value: enabled, Revision: revision}, nil
}

// DefaultSpace is the space that searches of a namespace use when they name
// none; "" when none is set.
func (s *EmbeddingStore) DefaultSpace(ctx context.Context, namespace string) (name string, err error) {
	const op = "embeddings.default_space"
	if err := s.eng.enter(op); err != nil {
		return "", err
	}
	defer s.eng.gate.leave()
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return "", errs.WithOp(op, err)
	}
	if err := mayReadAll(ctx, namespace); err != nil {
		return "", errs.WithOp(op, err)
	}
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		sp, err := defaultSpace(tx, namespace)
		if sp != nil {
			name = sp.Name
		}
		return err
	})
	return name, errs.WithOp(op, err)
}

// SetDefaultSpace sets the space that searches of a namespace use when they name
// none; "" sets none.
func (s *EmbeddingStore) SetDefaultSpace(ctx context.Context, namespace, space string) (*Receipt[string], error) {
	const op = "embeddings.set_default_space"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if space != "" {
		if err := valid.Label("space", space, MaxNamespaceBytes); err != nil {
			return nil, errs.WithOp(op, err)
		}
	}
	if err := needAdmin(ctx, "", "a space of vectors"); err != nil {
		return nil, errs.WithOp(op, err)
	}
	revision, err := s.eng.write(ctx, func(tx *store.WriteTx) error { return setDefaultSpace(tx, namespace, space) })
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return &Receipt[string]{Value: space, Revision: revision}, nil
}

func setDefaultSpace(tx *store.WriteTx, namespace, space string) error {
	var wanted int64
	if space != "" {
		sp, err := tx.Space(space)
		if err != nil {
			return err
		}
		if sp == nil {
			return noSpace("space")
		}
		wanted = sp.ID
	}
	id, _, err := tx.StringID(namespace)
	if err != nil {
		return err
	}
	if set, err := tx.DefaultSpace(id); err != nil || set == wanted {
		return err
	}
	return tx.SetDefaultSpace(namespace, wanted)
}

func noSpace(field string) error {
	return &errs.Error{Code: errs.NotFound, Field: field, Message: "there is no such space: register it first"}
}

// spaceReader is what spaces are read from: a snapshot, or the writer's
// transaction.
type spaceReader interface {
	StringID(text string) (int64, bool, error)
	Spaces() ([]*store.Space, error)
	DefaultSpace(namespace int64) (int64, error)
}

// defaultSpace is a namespace's own default; nil when it has none.
func defaultSpace(tx spaceReader, namespace string) (*store.Space, error) {
	id, ok, err := tx.StringID(namespace)
	if err != nil || !ok {
		return nil, err
	}
	number, err := tx.DefaultSpace(id)
	if err != nil || number == 0 {
		return nil, err
	}
	spaces, err := tx.Spaces()
	for _, sp := range spaces {
		if sp.ID == number {
			return sp, err
		}
	}
	return nil, err
}

// searchSpace is the space that a search uses: the one it asks for, else the
// namespace's default, else the first that has an embedder; nil when there is
// none. One that is asked for and unknown is ErrNotFound.
func (e *engine) searchSpace(tx *store.ReadTx, namespace, asked string) (*store.Space, error) {
	if asked != "" {
		sp, err := tx.Space(asked)
		if err == nil && sp == nil {
			err = noSpace("embed_space")
		}
		return sp, err
	}
	if sp, err := defaultSpace(tx, namespace); err != nil || sp != nil {
		return sp, err
	}
	for _, name := range e.embedders.names() {
		if sp, err := tx.Space(name); err != nil || sp != nil {
			return sp, err
		}
	}
	return nil, nil
}

// VectorReady says whether nothing was missing in a tier of a namespace when a
// sync looked last, and nothing was written to it since. A tier that is off is
// never ready, nor is one of an unknown space.
func (s *EmbeddingStore) VectorReady(ctx context.Context, namespace, space string, tier Tier) (ready bool, err error) {
	const op = "embeddings.vector_ready"
	if err := s.eng.enter(op); err != nil {
		return false, err
	}
	defer s.eng.gate.leave()
	if err := checkTier(false, tier, namespace); err != nil {
		return false, errs.WithOp(op, err)
	}
	if err := mayReadAll(ctx, namespace); err != nil {
		return false, errs.WithOp(op, err)
	}
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		sp, err := tx.Space(space)
		if err != nil || sp == nil {
			return err
		}
		id, ok, err := tx.StringID(namespace)
		if err == nil && ok {
			ready, err = s.eng.vectorReady(tx, id, sp.ID, tier)
		}
		return err
	})
	return ready, errs.WithOp(op, err)
}

// Status says for every tier of a namespace how far it has vectors in a space.
func (s *EmbeddingStore) Status(ctx context.Context, namespace, space string) ([]TierStatus, error) {
	const op = "embeddings.status"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	if err := valid.Label("namespace", namespace, MaxNamespaceBytes); err != nil {
		return nil, errs.WithOp(op, err)
	}
	if err := mayReadAll(ctx, namespace); err != nil {
		return nil, errs.WithOp(op, err)
	}
	var out []TierStatus
	err := s.eng.readPair(ctx, func(tx *store.ReadTx, view index.View) error {
		out = make([]TierStatus, 0, len(tiers))
		sp, err := tx.Space(space)
		if err != nil {
			return err
		}
		if sp == nil {
			return noSpace("space")
		}
		if view == nil {
			return errIndexBusy()
		}
		id, _, err := tx.StringID(namespace)
		if err != nil {
			return err
		}
		on, err := namespaceSwitches(tx, id)
		if err != nil {
			return err
		}
		for _, t := range tiers {
			status := TierStatus{Tier: t, Enabled: on.tier(t)}
			if status.Ready, err = s.eng.vectorReady(tx, id, sp.ID, t); err != nil {
				return err
			}
			for _, kind := range tierKinds(t) {
				n := view.CountVectors(sp.ID, id, kind)
				status.Records += n.Records
				status.Vectors += n.Vectors
				status.Left += min(s.eng.leftOf(sp, id, kind), n.Records-n.Vectors)
			}
			out = append(out, status)
		}
		return nil
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return out, nil
}

func errIndexBusy() error {
	return errs.New(errs.Index, "the index is being rebuilt: wait for rebuild_progress to end, or for update_index")
}

// positive checks a weight.
func positive(field string, v *float64) error {
	if v != nil && (!(*v > 0) || math.IsInf(*v, 0)) {
		return errs.Invalid(field, "must be finite and above 0")
	}
	return nil
}
