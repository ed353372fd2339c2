package store

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci/internal/errs"
)

// keptModel changes a store at random and compares what is kept with what the
// database says, in snapshots that lie inside of one another.
type keptModel struct {
	*testing.T
	*rand.Rand
	s      *Store
	ids    []int64
	spaces []string
}

// change is one write: of records, or of settings.
func (k *keptModel) change() {
	fails := k.IntN(6) == 0
	_, err := k.s.Write(k.Context(), func(tx *WriteTx) error {
		for range 1 + k.IntN(3) {
			if err := k.changeOne(tx); err != nil {
				return err
			}
		}
		if fails {
			return errs.Invalid("", "on purpose")
		}
		return nil
	})
	if (err != nil) != fails {
		k.Fatal(err)
	}
}

func (k *keptModel) changeOne(tx *WriteTx) error {
	switch k.IntN(8) {
	case 0:
		m := testMemory(k.Rand, len(k.ids))
		if err := tx.AddMemory(m); err != nil {
			return err
		}
		k.ids = append(k.ids, m.ID)
		tx.Stage(&m.Record, nil)
		return nil
	case 1:
		return tx.SetVectorSwitch("default", Tier(k.IntN(tierLimit)), k.IntN(2) == 0)
	case 2:
		sp := &Space{Name: fmt.Sprint("space-", len(k.spaces)), Model: "m", Dimension: 2, TextVersion: 1, Encoding: 2}
		k.spaces = append(k.spaces, sp.Name)
		if err := tx.AddSpace(sp); err != nil {
			return err
		}
		return tx.SetDefaultSpace("default", sp.ID)
	case 3:
		spaces, err := tx.Spaces()
		if err != nil || len(spaces) == 0 {
			return err
		}
		sp := spaces[k.IntN(len(spaces))]
		if k.IntN(2) == 0 {
			return tx.SetProbe(sp.ID, []float32{k.Float32(), 1})
		}
		return tx.DropSpace(sp.ID)
	case 4:
		id, ok, err := tx.StringID("default")
		if err != nil || !ok {
			return err
		}
		_, err = tx.ClearSettings(id)
		return err
	}
	m, err := tx.Memory(k.ids[k.IntN(len(k.ids))])
	if err != nil || m == nil {
		return err
	}
	switch k.IntN(4) {
	case 0:
		return tx.Delete(&m.Record)
	case 1:
		m.State.UsefulCount++
		return tx.UpdateState(m)
	case 2:
		_, err := tx.KeepEvidence(&m.Record, func(*Evidence) bool { return false })
		return err
	}
	changed := *m
	changed.Judgment = fmt.Sprint("changed ", k.Int64())
	changed.Tags = []string{fmt.Sprint("tag-", k.IntN(50))}
	changed.Evidence = []Evidence{{Source: "s", Quote: fmt.Sprint(k.Int64())}}
	if err := tx.UpdateMemory(m, &changed); err != nil {
		return err
	}
	tx.Stage(&changed.Record, nil)
	return nil
}

// compare holds that a snapshot sees through what is kept what the database says.
func (k *keptModel) compare(tx *ReadTx) error {
	for range 6 {
		id := k.ids[k.IntN(len(k.ids))]
		got, err := tx.SharedRecord(KindMemory, id)
		if err != nil {
			return err
		}
		want, err := tx.Memory(id)
		if err != nil {
			return err
		}
		if got == nil && want == nil {
			continue
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(Record{}, Memory{})); diff != "" {
			return fmt.Errorf("revision %d, record %d:\n%s", tx.Revision(), id, diff)
		}
	}
	namespace, _, err := tx.StringID("default")
	if err != nil {
		return err
	}
	for _, c := range []struct{ kept, stored func() (any, error) }{
		{func() (any, error) { return tx.Spaces() }, func() (any, error) { return tx.session.Spaces() }},
		{func() (any, error) { return tx.DefaultSpace(namespace) }, func() (any, error) { return tx.session.DefaultSpace(namespace) }},
		{func() (any, error) { return tx.VectorSwitches(namespace) }, func() (any, error) { return tx.session.VectorSwitches(namespace) }},
	} {
		got, err := c.kept()
		if err != nil {
			return err
		}
		want, err := c.stored()
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			return fmt.Errorf("revision %d, settings:\n%s", tx.Revision(), diff)
		}
	}
	return nil
}

// run goes depth snapshots deep, and changes and compares at each.
func (k *keptModel) run(depth int) error {
	read := k.s.Read
	if k.IntN(2) == 0 {
		read = k.s.ReadKept
	}
	return read(k.Context(), func(tx *ReadTx) error {
		if _, err := tx.session.storedRevision(); err != nil { // from here on it is a snapshot
			return err
		}
		for range 3 {
			k.change()
			if err := k.compare(tx); err != nil {
				return err
			}
			if depth > 0 {
				if err := k.run(depth - 1); err != nil {
					return err
				}
			}
		}
		return k.compare(tx)
	})
}

// TestKept holds that what is kept of what was read never shows another state than
// the snapshot's, whatever commits or fails meanwhile.
func TestKept(t *testing.T) {
	for seed := range uint64(6) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			k := &keptModel{T: t, Rand: rand.New(rand.NewPCG(seed, 5)), s: openTest(t, t.TempDir(), Options{})}
			if seed%2 == 1 {
				k.s.shared.limit = 16 << 10 // generations change all the time
			}
			batch := make([]*Memory, 40)
			for i := range batch {
				batch[i] = testMemory(k.Rand, i)
			}
			addBatch(t, k.s, batch)
			for _, m := range batch {
				k.ids = append(k.ids, m.ID)
			}
			for range 4 {
				if err := k.run(2); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestKeptIsBounded holds that what is kept of records stays within its bound, and
// that it is kept at all.
func TestKeptIsBounded(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	s.shared.limit = 64 << 10
	rng := rand.New(rand.NewPCG(1, 2))
	batch := make([]*Memory, 500)
	for i := range batch {
		batch[i] = testMemory(rng, i)
	}
	batch[7].Judgment = string(make([]byte, 4<<10))
	addBatch(t, s, batch)
	for range 2 {
		for _, m := range batch {
			if err := s.Read(t.Context(), func(tx *ReadTx) error {
				first, err := tx.SharedRecord(KindMemory, m.ID)
				if err != nil {
					return err
				}
				second, err := tx.SharedRecord(KindMemory, m.ID)
				if (first == second) != (m != batch[7]) {
					return fmt.Errorf("record %d: kept %v", m.ID, first == second)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			for _, generation := range []map[int64]*Memory{s.shared.young, s.shared.old} {
				bytes := 0
				for _, m := range generation {
					bytes += sizeOf(m)
				}
				if bytes > s.shared.limit {
					t.Fatalf("%d bytes are kept", bytes)
				}
			}
		}
	}
}

func TestReadKept(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{Readers: 1})
	rng := rand.New(rand.NewPCG(1, 2))
	m := testMemory(rng, 0)
	addBatch(t, s, []*Memory{m})
	failed := errors.New("failed")
	moved := func(tx *ReadTx) error {
		addBatch(t, s, []*Memory{testMemory(rng, 1)})
		_, err := tx.Memory(m.ID)
		return err
	}
	for _, c := range []struct {
		name string
		fn   func(tx *ReadTx) error
		want error
	}{
		{"nothing is needed", func(tx *ReadTx) error {
			if tx.Revision() != s.Counters().Revision {
				return fmt.Errorf("revision %d", tx.Revision())
			}
			return nil
		}, nil},
		{"it fails", func(*ReadTx) error { return failed }, failed},
		{"there was a commit", moved, ErrMoved},
		{"there was a commit, and nobody cares", func(tx *ReadTx) error { _ = moved(tx); return nil }, nil},
		{"there was none", func(tx *ReadTx) error {
			found, err := tx.Memory(m.ID)
			addBatch(t, s, []*Memory{testMemory(rng, 1)}) // too late to matter
			if err == nil && found.Judgment != m.Judgment {
				return errors.New(found.Judgment)
			}
			_, err = tx.Memory(m.ID)
			return err
		}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the only connection is given back in order
				if err := s.ReadKept(t.Context(), c.fn); !errors.Is(err, c.want) {
					t.Fatal(err)
				}
				if err := s.Read(t.Context(), func(tx *ReadTx) error { return tx.session.begun() }); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.ReadKept(ctx, func(*ReadTx) error { return nil }); errs.CodeOf(err) != errs.Canceled {
		t.Fatal(err)
	}
}
