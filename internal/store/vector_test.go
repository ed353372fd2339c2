package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci/internal/errs"
)

// vectorStore is a store with a space of two dimensions and three memories, all
// with vectors.
func vectorStore(t testing.TB, dir string, opts Options) (*Store, *Space, []*Memory) {
	t.Helper()
	s := openTest(t, dir, opts)
	sp := &Space{Name: "v", Model: "m", Dimension: 2, TextVersion: 1, Encoding: 2}
	rng := rand.New(rand.NewPCG(1, 2))
	batch := []*Memory{testMemory(rng, 0), testMemory(rng, 1), testMemory(rng, 2)}
	addBatch(t, s, batch)
	writes(t, s, func(tx *WriteTx) error {
		if err := tx.AddSpace(sp); err != nil {
			return err
		}
		for i, m := range batch {
			if err := tx.PutVector(sp, &m.Record, uint64(i), []float32{3, float32(4 * i)}); err != nil {
				return err
			}
		}
		return nil
	})
	return s, sp, batch
}

func writes(t testing.TB, s *Store, fn func(*WriteTx) error) int64 {
	t.Helper()
	revision, err := s.Write(t.Context(), fn)
	if err != nil {
		t.Fatal(err)
	}
	return revision
}

// inTruth gives the first numbers of a space's vectors by record.
func inTruth(t testing.TB, s *Store, space int64, records ...*Memory) (out []string) {
	t.Helper()
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		for _, m := range records {
			v, norm, ok, err := tx.Vector(space, m.ID, make([]float32, 0, 2))
			if err != nil {
				return err
			}
			if ok {
				made, _, err := tx.VectorText(space, m.ID)
				if err != nil {
					return err
				}
				out = append(out, fmt.Sprint(v, norm, made))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVectors(t *testing.T) {
	log := &hookLog{}
	s, sp, batch := vectorStore(t, t.TempDir(), Options{Hooks: log})
	if got := inTruth(t, s, sp.ID, batch...); !slices.Equal(got, []string{"[3 0] 3 0", "[3 4] 5 1", "[3 8] 8.54400374531753 2"}) {
		t.Error(got)
	}
	if c := log.changes[1]; c.ID != batch[1].ID || c.Vector == nil || c.Vector.Space != sp.ID || c.Vector.Scope != batch[1].ScopeID ||
		!cmp.Equal(c.Vector.Values, []float32{0.6, 0.8}) {
		t.Errorf("%+v", c)
	}
	// Of the same text it stays, of another one it goes, and so it does with its
	// record.
	writes(t, s, func(tx *WriteTx) error {
		text := func(n uint64) func() uint64 { return func() uint64 { return n } }
		return errors.Join(tx.StageText(&batch[0].Record, 1, text(0)), tx.StageText(&batch[1].Record, 1, text(7)), tx.Delete(&batch[2].Record))
	})
	if got := inTruth(t, s, sp.ID, batch...); len(got) != 1 {
		t.Error(got)
	}
	if n := len(log.changes); n != 4 || log.changes[3].Vector == nil || log.changes[3].ID != batch[1].ID || log.changes[3].Vector.Values != nil {
		t.Errorf("%+v", log.changes)
	}
	for _, v := range [][]float32{{1}, {0, 0}, {float32(math.NaN()), 1}, {float32(math.Inf(1)), 1}, nil} {
		_, err := s.Write(t.Context(), func(tx *WriteTx) error { return tx.PutVector(sp, &batch[0].Record, 1, v) })
		if !errors.Is(err, errs.InvalidVector) {
			t.Errorf("%v: %v", v, err)
		}
	}
	if check, err := s.DeepCheck(t.Context()); err != nil || check.Integrity != "ok" {
		t.Error(check, err)
	}
}

// TestStageTextOfNewRecords asks for no fingerprint where there can be no vector.
func TestStageTextOfNewRecords(t *testing.T) {
	s, _, _ := vectorStore(t, t.TempDir(), Options{})
	writes(t, s, func(tx *WriteTx) error {
		m := testMemory(rand.New(rand.NewPCG(1, 2)), 5)
		if err := tx.AddMemory(m); err != nil {
			return err
		}
		return tx.StageText(&m.Record, nil, func() uint64 { t.Error("asked"); return 0 })
	})
}

func TestVectorJournal(t *testing.T) {
	s, sp, batch := vectorStore(t, t.TempDir(), Options{})
	writes(t, s, func(tx *WriteTx) error { return tx.DropSpace(sp.ID) })
	var got []JournalEntry
	err := s.Read(t.Context(), func(tx *ReadTx) (err error) {
		got, _, err = tx.Journal(AfterRevision(1), 100)
		return err
	})
	want := []JournalEntry{
		{2, batch[0].ID, batch[0].NamespaceID, KindMemory, sp.ID, 0}, {2, batch[1].ID, batch[1].NamespaceID, KindMemory, sp.ID, 0},
		{2, batch[2].ID, batch[2].NamespaceID, KindMemory, sp.ID, 0}, {Revision: 3, Space: sp.ID},
	}
	if err != nil || !cmp.Equal(got, want) {
		t.Error(err, cmp.Diff(want, got))
	}
}

func FuzzJournalRow(f *testing.F) {
	f.Add([]byte{1, 2, 3})
	f.Add([]byte{0x80, 1, 2, 0x83, 0x90, 1, 7, 7, 7})
	f.Add([]byte{0, 0, 0x80, 5})
	f.Add([]byte{1, 2, 0x41, 6, 1, 2, 0xc1, 6})
	f.Fuzz(func(t *testing.T, row []byte) {
		entries, err := appendEntries(nil, 4, row)
		if err != nil {
			if !errors.Is(err, errs.Storage) {
				t.Fatal(err)
			}
			return
		}
		var again []byte
		for _, e := range entries {
			again = binary.AppendUvarint(again, uint64(e.ID))
			again = binary.AppendUvarint(again, uint64(e.Namespace))
			if again = append(again, byte(e.Kind)); e.Space != 0 {
				again[len(again)-1] |= journalVector
				again = binary.AppendUvarint(again, uint64(e.Space))
			} else if e.Left != 0 {
				again[len(again)-1] |= journalLeft
				again = binary.AppendUvarint(again, uint64(e.Left))
			}
		}
		twice, err := appendEntries(nil, 4, again)
		if err != nil || !slices.Equal(entries, twice) {
			t.Fatal(err, entries, twice)
		}
	})
}

func TestCompactVectors(t *testing.T) {
	record := func(id int64, doc any) Change { return Change{ID: id, Kind: KindMemory, Doc: doc} }
	vector := func(id, space int64, values ...float32) Change {
		return Change{ID: id, Kind: KindMemory, Vector: &VectorChange{Space: space, Values: values}}
	}
	drop := Change{Vector: &VectorChange{Space: 9, Dropped: true}}
	for _, c := range []struct {
		name     string
		in, want []Change
	}{
		{"new", []Change{record(1, 1), record(2, 1)}, []Change{record(1, 1), record(2, 1)}},
		{"vectors only", []Change{vector(1, 1, 5), vector(2, 1, 5)}, []Change{vector(1, 1, 5), vector(2, 1, 5)}},
		{"spaces apart", []Change{vector(2, 1, 5), vector(2, 2, 6), vector(2, 1, 7)}, []Change{vector(2, 2, 6), vector(2, 1, 7)}},
		{"behind records", []Change{vector(3, 1, 5), record(3, 1), record(2, 1)}, []Change{record(3, 1), record(2, 1), vector(3, 1, 5)}},
		{"of what is gone", []Change{record(3, 1), vector(3, 1, 5), record(3, nil), vector(2, 1, 5)}, []Change{record(3, nil), vector(2, 1, 5)}},
		{"a space", []Change{record(3, 1), drop, record(3, 2)}, []Change{record(3, 2), drop}},
	} {
		if got := compact(slices.Clone(c.in)); !cmp.Equal(got, c.want) {
			t.Errorf("%s: %s", c.name, cmp.Diff(c.want, got))
		}
	}
}

// TestDropSpace deletes a space, closes the store before its vectors are removed,
// and removes them afterwards.
func TestDropSpace(t *testing.T) {
	dir := t.TempDir()
	s, sp, batch := vectorStore(t, dir, Options{})
	writes(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.SetVectorReady(batch[0].NamespaceID, TierMemory, sp.ID), tx.SetDefaultSpace("default", sp.ID), tx.DropSpace(sp.ID))
	})
	s.Close()
	s = openTest(t, dir, Options{})
	if got := s.Going(); !slices.Equal(got, []int64{sp.ID}) {
		t.Error(got)
	}
	next := &Space{Name: "v", Model: "m", Dimension: 2, TextVersion: 1, Encoding: 2}
	writes(t, s, func(tx *WriteTx) error {
		if there, err := tx.Space("v"); there != nil || err != nil {
			t.Error(there, err)
		}
		if ready, err := tx.VectorReady(batch[0].NamespaceID, TierMemory, sp.ID); ready || err != nil {
			t.Error(ready, err)
		}
		if space, err := tx.DefaultSpace(batch[0].NamespaceID); space != 0 || err != nil {
			t.Error(space, err)
		}
		return tx.AddSpace(next)
	})
	if next.ID == sp.ID {
		t.Error("a space's number is used again")
	}
	writes(t, s, func(tx *WriteTx) error { return tx.PutVector(next, &batch[0].Record, 1, []float32{1, 1}) })
	if check, err := s.DeepCheck(t.Context()); err != nil || check.Integrity != "ok" {
		t.Error(check, err)
	}
	before := s.Counters().Revision
	steps := 0
	for more := true; more; steps++ {
		writes(t, s, func(tx *WriteTx) (err error) {
			more, err = tx.RemoveVectors(sp.ID, 2)
			return err
		})
	}
	if steps != 2 || s.Counters().Revision != before {
		t.Errorf("%d steps, revision %d after %d", steps, s.Counters().Revision, before)
	}
	if n, err := queryInt(s.writer.session.c, "SELECT count(*) FROM vectors"); n != 1 || err != nil {
		t.Error(n, err)
	}
	s.Close()
	if got := openTest(t, dir, Options{}).Going(); len(got) != 0 {
		t.Error(got)
	}
}

// TestReadyMarks clears a mark with any write to its tier, also when the write
// before it was rolled back.
func TestReadyMarks(t *testing.T) {
	s, sp, batch := vectorStore(t, t.TempDir(), Options{})
	namespace := batch[0].NamespaceID
	mark := func(tiers ...Tier) {
		writes(t, s, func(tx *WriteTx) error {
			for _, tier := range tiers {
				if err := tx.SetVectorReady(namespace, tier, sp.ID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	marked := func() (out []bool) {
		err := s.Read(t.Context(), func(tx *ReadTx) error {
			for tier := TierMemory; tier < tierLimit; tier++ {
				ready, err := tx.VectorReady(namespace, tier, sp.ID)
				if err != nil {
					return err
				}
				out = append(out, ready)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	stage := func(tx *WriteTx) error { tx.Stage(&batch[0].Record, nil); return nil }
	mark(TierMemory, TierGraph)
	if got := marked(); !slices.Equal(got, []bool{true, true, false, false, false}) {
		t.Error(got)
	}
	boom := errors.New("boom")
	if _, err := s.Write(t.Context(), func(tx *WriteTx) error { return errors.Join(stage(tx), boom) }); !errors.Is(err, boom) {
		t.Error(err)
	}
	writes(t, s, func(tx *WriteTx) error { return tx.PutVector(sp, &batch[0].Record, 9, []float32{1, 2}) })
	if got := marked(); !got[0] {
		t.Error(got)
	}
	writes(t, s, stage)
	if got := marked(); !slices.Equal(got, []bool{false, true, false, false, false}) {
		t.Error(got)
	}
	mark(TierMemory)
	writes(t, s, func(tx *WriteTx) error { return tx.Delete(&batch[1].Record) })
	if got := marked(); !slices.Equal(got, []bool{false, true, false, false, false}) {
		t.Error(got)
	}
	mark(TierMemory)
	writes(t, s, func(tx *WriteTx) error { return tx.SetVectorSwitch("default", TierPages, false) })
	if got := marked(); slices.Contains(got, true) {
		t.Error(got)
	}
}

// TestMigrationToVectors opens a database as version 1 wrote it.
func TestMigrationToVectors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, DatabaseFile)
	schema := sqliteDialect.schemaSQL(schemaText + schemaGraph + schemaNotes)
	execFile(t, path, "PRAGMA journal_mode=WAL; "+schema+`;
		INSERT INTO meta (one, lineage, revision, next_id, next_string, journal_floor) VALUES (1, 'abc', 1, 2, 4, 0);
		INSERT INTO counts (kind, n) VALUES (1, 1);
		INSERT INTO strings (id, text) VALUES (1, 'default'), (2, 'public'), (3, 'knowledge');
		INSERT INTO records (id, kind, namespace_id, scope_id, created_at, updated_at, revision, flags) VALUES (1, 1, 1, 2, 5, 6, 1, 0);
		INSERT INTO memories (id, type_id, epoch, judgment_hash, pinned, strength, useful_count, useful_score, judgment, reasoning)
			VALUES (1, 3, 0, 77, 0, 1, 0, 0, 'kept', '');
		INSERT INTO index_updates (revision, part, changes) VALUES (1, 0, x'010101');
		PRAGMA application_id=`+fmt.Sprint(applicationID)+`; PRAGMA user_version=1`)
	s := openTest(t, dir, Options{})
	m := loadMemory(t, s, 1)
	if m == nil || m.Judgment != "kept" || s.Lineage() != "abc" {
		t.Fatalf("%+v", m)
	}
	sp := &Space{Name: "v", Model: "m", Dimension: 1, TextVersion: 1, Encoding: 1}
	writes(t, s, func(tx *WriteTx) error {
		if err := tx.AddSpace(sp); err != nil {
			return err
		}
		return tx.PutVector(sp, &m.Record, 3, []float32{2})
	})
	if got := inTruth(t, s, sp.ID, m); !slices.Equal(got, []string{"[2] 2 3"}) {
		t.Error(got)
	}
	if check, err := s.DeepCheck(t.Context()); err != nil || check.Integrity != "ok" {
		t.Error(check, err)
	}
	// A new database and a migrated one have the same schema.
	schemaOf := func(s *Store) (out []string) {
		err := s.Read(t.Context(), func(tx *ReadTx) error {
			return tx.each("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY name", func(st stmt) error {
				out = append(out, st.columnText(0))
				return nil
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if a, b := schemaOf(s), schemaOf(openTest(t, t.TempDir(), Options{})); !slices.Equal(a, b) {
		t.Error(cmp.Diff(a, b))
	}
	if files(t, dir)[DatabaseFile+".v1"] == "" {
		t.Error("there is no copy of the database as it was")
	}
}

// TestDeepCheckVectors damages vectors in every way that the check looks for.
func TestDeepCheckVectors(t *testing.T) {
	for sql, says := range map[string]string{
		"UPDATE vectors SET value = x'00000000'":                                                        "size",
		"UPDATE vectors SET value = x'0000C07F0000C07F'":                                                "length",
		"UPDATE vectors SET norm = 7":                                                                   "length",
		"INSERT INTO vectors SELECT vector_key + 100000, fingerprint, norm, value FROM vectors LIMIT 1": "no record",
		"DELETE FROM spaces":                                                                            "no such space",
	} {
		dir := t.TempDir()
		s, _, _ := vectorStore(t, dir, Options{})
		s.Close()
		execFile(t, filepath.Join(dir, DatabaseFile), sql)
		check, err := openTest(t, dir, Options{}).DeepCheck(t.Context())
		if err != nil || !strings.Contains(check.Integrity, says) {
			t.Errorf("%s: %v, %v", sql, check, err)
		}
	}
}

func TestNamespaces(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	var want []int64
	for i := range 5 {
		m := testMemory(rand.New(rand.NewPCG(1, 2)), i)
		m.Namespace = fmt.Sprint("n", i%3)
		addBatch(t, s, []*Memory{m})
		if !slices.Contains(want, m.NamespaceID) {
			want = append(want, m.NamespaceID)
		}
	}
	err := s.Read(t.Context(), func(tx *ReadTx) error {
		got, err := tx.Namespaces()
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func BenchmarkVector(b *testing.B) {
	s := openTest(b, b.TempDir(), Options{})
	const n, dimension = 20000, 384
	rng := rand.New(rand.NewPCG(1, 2))
	sp := &Space{Name: "v", Model: "m", Dimension: dimension, TextVersion: 1, Encoding: 2}
	writes(b, s, func(tx *WriteTx) error { return tx.AddSpace(sp) })
	v := make([]float32, dimension)
	for done := 0; done < n; done += 1000 {
		batch := make([]*Memory, 1000)
		for i := range batch {
			batch[i] = testMemory(rng, done+i)
		}
		addBatch(b, s, batch)
		writes(b, s, func(tx *WriteTx) error {
			for _, m := range batch {
				for i := range v {
					v[i] = rng.Float32()
				}
				if err := tx.PutVector(sp, &m.Record, 1, v); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err := s.Read(b.Context(), func(tx *ReadTx) error {
		var buf []float32
		for b.Loop() {
			var ok bool
			var err error
			if buf, _, ok, err = tx.Vector(sp.ID, 1+rng.Int64N(n), buf); err != nil || !ok {
				b.Fatal(ok, err)
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}
