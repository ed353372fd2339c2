package store

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store/faultvfs"
)

// vectorHistory does something of everything about vectors, step by step, and
// goes on after a step that failed.
type vectorHistory struct {
	space *Space
	batch []*Memory
	made  map[int64]bool // records whose vectors were acknowledged and not taken back
	doubt map[int64]bool // those of steps that failed
	gone  bool           // the space may be
	err   error
}

func (h *vectorHistory) run(s *Store) {
	rng := rand.New(rand.NewPCG(3, 3))
	h.space = &Space{Name: "v", Model: "m", Dimension: 200, TextVersion: 1, Encoding: 2}
	h.made, h.doubt = map[int64]bool{}, map[int64]bool{}
	step := func(fn func(*WriteTx) error) bool {
		_, err := s.Write(context.Background(), fn)
		if err != nil {
			h.err = err
		}
		return err == nil
	}
	for i := range 12 {
		h.batch = append(h.batch, testMemory(rng, i))
	}
	started := step(func(tx *WriteTx) error {
		for _, m := range h.batch {
			if err := tx.AddMemory(m); err != nil {
				return err
			}
			tx.Stage(&m.Record, nil)
		}
		return tx.AddSpace(h.space)
	})
	if !started {
		return
	}
	v := make([]float32, h.space.Dimension)
	for i, m := range h.batch {
		v[0] = float32(i + 1)
		h.made[m.ID] = step(func(tx *WriteTx) error { return tx.PutVector(h.space, &m.Record, 1, v) })
		h.doubt[m.ID] = !h.made[m.ID]
	}
	step(func(tx *WriteTx) error { return tx.SetVectorReady(h.batch[0].NamespaceID, TierMemory, h.space.ID) })
	for i, m := range h.batch[:4] {
		ok := step(func(tx *WriteTx) error {
			if i%2 == 0 {
				return tx.StageText(&m.Record, nil, func() uint64 { return 2 })
			}
			return tx.Delete(&m.Record)
		})
		h.doubt[m.ID] = h.doubt[m.ID] || !ok
		h.made[m.ID] = false
	}
}

// drop deletes the space and removes its vectors.
func (h *vectorHistory) drop(s *Store) {
	h.gone = true
	_, err := s.Write(context.Background(), func(tx *WriteTx) error { return tx.DropSpace(h.space.ID) })
	for more := err == nil; more && err == nil; {
		_, err = s.Write(context.Background(), func(tx *WriteTx) (err error) {
			more, err = tx.RemoveVectors(h.space.ID, 3)
			return err
		})
	}
	if err != nil {
		h.err = err
	}
}

// TestEveryFailureOfVectors lets operation N of the file system fail, for every
// N: what was acknowledged is there, and nothing is in two minds.
func TestEveryFailureOfVectors(t *testing.T) {
	for name, goesOn := range map[string]bool{"once": false, "from then on": true} {
		t.Run(name, func(t *testing.T) {
			step := int64(3)
			if testing.Short() {
				step = 11
			}
			fs := faultvfs.Register("vectors-" + name)
			defer fs.Close()
			for n := int64(1); ; n += step {
				dir := t.TempDir()
				var h vectorHistory
				fs.FailAt(n, faultvfs.Any, faultvfs.ErrIO, goesOn)
				s, err := Open(t.Context(), dir, Options{VFS: fs.Name(), CheckpointPages: 8})
				if err == nil {
					h.run(s)
					if n%2 == 0 && h.space.ID != 0 {
						h.drop(s)
					}
					s.Close()
				}
				for _, err := range []error{err, h.err} {
					if err != nil && errs.CodeOf(err) == "" {
						t.Errorf("no code on %v", err)
					}
				}
				failed := fs.Failed()
				fs.FailAt(0, 0, nil, false)
				h.verify(t, dir)
				if !failed || t.Failed() {
					return
				}
			}
		})
	}
}

func (h *vectorHistory) verify(t *testing.T, dir string) {
	t.Helper()
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal("does not open again: ", err)
	}
	defer s.Close()
	if check, err := s.DeepCheck(t.Context()); err != nil || check != (Check{Integrity: "ok"}) {
		t.Fatalf("%+v, %v", check, err)
	}
	if h.space == nil {
		return
	}
	err = s.Read(t.Context(), func(tx *ReadTx) error {
		sp, err := tx.Space("v")
		if err != nil || sp == nil && h.gone {
			return err
		}
		for _, m := range h.batch {
			if m.ID == 0 || sp == nil {
				continue
			}
			_, _, there, err := tx.Vector(sp.ID, m.ID, nil)
			if err != nil {
				return err
			}
			if there != h.made[m.ID] && !h.doubt[m.ID] {
				t.Errorf("record %d: a vector %v, acknowledged %v", m.ID, there, h.made[m.ID])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
