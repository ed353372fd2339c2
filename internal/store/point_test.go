package store

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci/internal/errs"
	"pgregory.net/rapid"
)

// addAgentMemory makes an agent memory.
func addAgentMemory(t testing.TB, s *Store, namespace, scope string) *AgentMemory {
	t.Helper()
	m := &AgentMemory{Namespace: namespace, Scope: scope, Dimension: 2, Space: "v"}
	writes(t, s, func(tx *WriteTx) error { return tx.AddAgentMemory(m) })
	return m
}

// testPoint is a point that has something in every field that its kind uses.
func testPoint(m *AgentMemory, k Kind, key uint64) *Point {
	p := &Point{
		Record: Record{
			Kind: k, Namespace: m.Namespace, Scope: m.Scope, Created: 5, Updated: 6, Thread: "talk", Tags: []string{"a", "b"},
			Metadata: []byte(`{"k":1}`),
		},
		Key: key, Version: 1, Recorded: 7, Content: fmt.Sprintf("content %d", key),
	}
	switch k {
	case KindFact:
		p.ValidFrom, p.ValidTo = new(int64(-3)), new(int64(0))
	case KindEpisode:
		p.Happened = new(int64(5))
	case KindProcedure:
		p.Confidence, p.Uses, p.Successes, p.LastUsed = 0.5, 3, 2, new(int64(8))
		p.Title, p.Data = "name", []byte(`{"steps":["one"]}`)
	}
	return p
}

// addPoints writes points where their memory has them.
func addPoints(t testing.TB, s *Store, m *AgentMemory, points ...*Point) {
	t.Helper()
	writes(t, s, func(tx *WriteTx) error {
		for _, p := range points {
			if err := tx.AddPoint(m.Place(p.Kind), p); err != nil {
				return err
			}
			tx.Stage(&p.Record, nil)
		}
		return nil
	})
}

func samePoint(t testing.TB, want, got *Point) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(Record{})); d != "" {
		t.Error(d)
	}
}

func keysOf(points []*Point) (keys []uint64) {
	for _, p := range points {
		keys = append(keys, p.Key)
	}
	return keys
}

func sameKeys(t testing.TB, got []*Point, err error, want ...uint64) {
	t.Helper()
	if err != nil || !slices.Equal(keysOf(got), want) {
		t.Errorf("%v, want %v, %v", keysOf(got), want, err)
	}
}

// wideKeys are keys at every place where a number may be mistaken for another.
var wideKeys = [...]uint64{0, 1, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<64 - 1}

func conformPoints(t *testing.T, s *Store, log *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	for k := KindFact; k <= KindProcedure; k++ {
		p := testPoint(m, k, 1<<64-1)
		addPoints(t, s, m, p)
		if p.ID == 0 || p.Revision != s.Counters().Revision || p.ScopeID != m.Place(k) || s.Counters().Counts[k] != 1 {
			t.Errorf("%+v", p)
		}
		read(t, s, func(tx *ReadTx) error {
			for _, get := range []func() (*Point, error){
				func() (*Point, error) { return tx.Point(p.ID) },
				func() (*Point, error) { return tx.PointByKey(m.Place(k), p.Key) },
			} {
				got, err := get()
				if err != nil {
					return err
				}
				samePoint(t, p, got)
			}
			for _, place := range m.Places {
				if none, err := tx.PointByKey(place, p.Key-1); none != nil || err != nil {
					t.Error(none, err)
				}
			}
			kind, namespace, scope, err := tx.Place(p.ID)
			if kind != k || namespace != "n" || scopeOfPlace(scope) != "s" {
				t.Error(kind, namespace, scope)
			}
			none, _ := tx.Point(p.ID + 100)
			if none != nil {
				t.Error(none)
			}
			return err
		})

		// Another of everything; what is nil goes.
		next := *p
		next.Key, next.Version, next.Recorded, next.Content, next.Title, next.Data = p.Key, 2, 9, "else", "other", nil
		next.Tags, next.Metadata, next.Thread, next.Created, next.Updated = []string{"c"}, nil, "", 11, 12
		next.Expires, next.ValidFrom, next.ValidTo, next.LastUsed = new(int64(math.MaxInt64)), nil, new(int64(1)), nil
		if k == KindEpisode {
			next.Happened = new(int64(11))
		}
		writes(t, s, func(tx *WriteTx) error {
			defer tx.Stage(&next.Record, "new")
			return tx.UpdatePoint(p, &next)
		})
		if next.Revision != p.Revision+1 {
			t.Error(next.Revision)
		}
		read(t, s, func(tx *ReadTx) error {
			got, err := tx.RecordOf(k, p.ID)
			samePoint(t, &next, got.(*Point))
			return err
		})
		// It goes with all that hangs on it.
		writes(t, s, func(tx *WriteTx) error {
			e := &PointEdge{Source: p.ID, Type: "self", Target: p.ID, Key: 1, Created: 1}
			return errors.Join(tx.AddPointVersion(p.ID, &PointVersion{Version: 1, Recorded: 7, RecordedTo: 9}, 10), tx.AddPointEdge(m.Place(k), e))
		})
		writes(t, s, func(tx *WriteTx) error { return tx.RemovePoint(&next) })
		if want := []Change{{ID: p.ID, Namespace: p.NamespaceID, Kind: k}}; !cmp.Equal(want, log.changes) {
			t.Errorf("the index was told %+v", log.changes)
		}
		if s.Counters().Counts[k] != 0 {
			t.Error(s.Counters().Counts)
		}
		read(t, s, func(tx *ReadTx) error {
			for _, table := range []string{"points", "point_versions", "point_edges", "records", "record_tags"} {
				if n, err := tx.countRows("SELECT 1 FROM " + table); n != 0 || err != nil {
					t.Error(table, n, err)
				}
			}
			return nil
		})
	}
	if err := failed(t, s, func(tx *WriteTx) error { return tx.UpdatePoint(testPoint(m, KindFact, 1), testPoint(m, KindFact, 1)) }); !errors.Is(err, errs.NotFound) {
		t.Error("a point that is not there was updated: ", err)
	}
}

// failed gives the error of a write.
func failed(t testing.TB, s *Store, fn func(*WriteTx) error) error {
	_, err := s.Write(t.Context(), fn)
	return err
}

func conformPointKeys(t *testing.T, s *Store, _ *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	other := addAgentMemory(t, s, "o", "s") // the same scope of another namespace
	place := m.Place(KindFact)
	free := func(want uint64) {
		t.Helper()
		read(t, s, func(tx *ReadTx) error {
			if key, err := tx.FreePointKey(place, 100); key != want || err != nil {
				t.Errorf("%d, want %d, %v", key, want, err)
			}
			return nil
		})
	}
	free(0)
	expired := testPoint(m, KindFact, 7) // holds nothing
	expired.Expires = new(int64(100))
	addPoints(t, s, m, expired)
	free(0)
	writes(t, s, func(tx *WriteTx) error { return tx.RemovePoint(expired) })
	addPoints(t, s, m, testPoint(m, KindFact, 41))
	free(42)
	writes(t, s, func(tx *WriteTx) error {
		p, err := tx.PointByKey(place, 41)
		if err != nil {
			return err
		}
		return tx.RemovePoint(p)
	})
	order := slices.Clone(wideKeys[:])
	slices.Reverse(order)
	for _, key := range order {
		addPoints(t, s, m, testPoint(m, KindFact, key))
	}
	addPoints(t, s, other, testPoint(other, KindFact, 5))
	addPoints(t, s, m, testPoint(m, KindEpisode, 6))
	free(2)
	if err := failed(t, s, func(tx *WriteTx) error { return tx.AddPoint(place, testPoint(m, KindFact, 1<<63)) }); !errors.Is(err, errs.Conflict) {
		t.Error("a key twice: ", err)
	}
	read(t, s, func(tx *ReadTx) error {
		all := func(after *uint64, limit int, want ...uint64) {
			t.Helper()
			points, err := tx.PointsAfter(place, 0, after, limit)
			sameKeys(t, points, err, want...)
			var texts []string
			err = tx.PointTexts(place, 0, after, limit, func(key uint64, content string) {
				texts = append(texts, fmt.Sprint(key, content))
			})
			for i, key := range want {
				if err != nil || len(texts) != len(want) || texts[i] != fmt.Sprintf("%dcontent %d", key, key) {
					t.Error(texts, want, err)
				}
			}
		}
		all(nil, 10, wideKeys[:]...)
		all(nil, 2, 0, 1)
		for i, key := range wideKeys {
			all(&key, 10, wideKeys[i+1:]...)
			points, err := tx.PointsFrom(place, key, 10)
			sameKeys(t, points, err, wideKeys[i:]...)
		}
		if n, err := tx.CountPoints(place, 0); n != int64(len(wideKeys)) || err != nil {
			t.Error(n, err)
		}
		return nil
	})
	// Where the last key is taken, the lowest free one is looked for in steps.
	var many []*Point
	for key := uint64(2); key < 2*scanChunk+3; key++ {
		many = append(many, testPoint(m, KindFact, key))
	}
	addPoints(t, s, m, many...)
	free(2*scanChunk + 3)
}

func conformPointLife(t *testing.T, s *Store, _ *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	place := m.Place(KindEpisode)
	read(t, s, func(tx *ReadTx) error {
		if at, ok, err := tx.NextExpiry(); at != 0 || ok || err != nil {
			t.Error(at, ok, err)
		}
		return nil
	})
	episode := func(key uint64, at int64, expires *int64) *Point {
		p := testPoint(m, KindEpisode, key)
		p.Created, p.Updated, p.Happened, p.Expires = at, at, &at, expires
		return p
	}
	addPoints(t, s, m,
		episode(4, math.MinInt64, nil), episode(9, 10, nil), episode(2, 20, new(int64(101))), episode(1<<64-1, 20, nil), episode(3, 20, new(int64(math.MaxInt64))),
		episode(5, 30, new(int64(100))), episode(6, 30, new(int64(50))), episode(0, math.MaxInt64, nil))
	read(t, s, func(tx *ReadTx) error {
		for _, c := range []struct {
			now, from, to int64
			limit         int
			want          []uint64
		}{
			{0, math.MinInt64, math.MaxInt64, 10, []uint64{4, 9, 2, 3, 1<<64 - 1, 5, 6}},
			{100, math.MinInt64, math.MaxInt64, 10, []uint64{4, 9, 2, 3, 1<<64 - 1}},
			{101, 10, 21, 2, []uint64{9, 3}},
			{0, 20, 30, 10, []uint64{2, 3, 1<<64 - 1}},
			{0, 21, 30, 10, nil}, {0, 20, 20, 10, nil}, {0, 30, 20, 10, nil},
			{0, math.MaxInt64, math.MaxInt64, 10, nil},
		} {
			points, err := tx.PointsBetween(place, c.now, c.from, c.to, nil, c.limit)
			sameKeys(t, points, err, c.want...)
			// The same, one after the other.
			var keys []uint64
			for after := (*PointTime)(nil); ; {
				points, err := tx.PointsBetween(place, c.now, c.from, c.to, after, 1)
				if err != nil || len(points) == 0 || len(keys) == c.limit {
					break
				}
				keys = append(keys, points[0].Key)
				after = &PointTime{At: *points[0].Happened, Key: points[0].Key}
			}
			if !slices.Equal(keys, c.want) {
				t.Errorf("one after the other: %v, want %v", keys, c.want)
			}
		}
		end, err := tx.PointsBetween(place, 0, 0, math.MaxInt64, &PointTime{math.MaxInt64, 1<<64 - 1}, 10)
		sameKeys(t, end, err)
		before, err := tx.PointsBetween(place, 0, 20, 21, &PointTime{10, 7}, 10)
		sameKeys(t, before, err, 2, 3, 1<<64-1)

		recent, err := tx.RecentPoints(place, 100, math.MinInt64, 10)
		sameKeys(t, recent, err, 0, 1<<64-1, 3, 2, 9, 4)
		recent, err = tx.RecentPoints(place, 0, 20, 4)
		sameKeys(t, recent, err, 0, 6, 5, 1<<64-1)

		expired, err := tx.ExpiredPoints(49, 10)
		sameKeys(t, expired, err)
		expired, err = tx.ExpiredPoints(101, 10)
		sameKeys(t, expired, err, 6, 5, 2)
		expired, err = tx.ExpiredPoints(101, 2)
		sameKeys(t, expired, err, 6, 5)
		if at, ok, err := tx.NextExpiry(); at != 50 || !ok || err != nil {
			t.Error(at, ok, err)
		}
		for now, want := range map[int64]int64{0: 8, 49: 8, 50: 7, 100: 6, 101: 5, math.MaxInt64: 4} {
			live, err := tx.PointsAfter(place, now, nil, 100)
			if n, errCount := tx.CountPoints(place, now); n != want || int64(len(live)) != want || err != nil || errCount != nil {
				t.Error(now, n, len(live), want, err, errCount)
			}
		}
		return nil
	})
	// Expiry of another place does not count here.
	fact := testPoint(m, KindFact, 1)
	fact.Expires = new(int64(1))
	addPoints(t, s, m, fact)
	read(t, s, func(tx *ReadTx) error {
		if n, err := tx.CountPoints(place, 49); n != 8 || err != nil {
			t.Error(n, err)
		}
		return nil
	})
}

func conformPointConfidence(t *testing.T, s *Store, _ *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	for i, c := range []struct {
		confidence float64
		uses       int64
	}{{0.1, 1}, {0.19, 0}, {0.19, 5}, {0.2, 1}, {0, 1}, {1, 9}} {
		p := testPoint(m, KindProcedure, uint64(i))
		p.Confidence, p.Uses, p.Successes = c.confidence, c.uses, 0
		addPoints(t, s, m, p)
	}
	read(t, s, func(tx *ReadTx) error {
		for _, c := range []struct {
			floor float64
			limit int
			want  []uint64
		}{{0.2, 10, []uint64{0, 2, 4}}, {0.2, 2, []uint64{0, 2}}, {0, 10, nil}, {0.1, 10, []uint64{4}}} {
			points, err := tx.PointsBelow(m.Place(KindProcedure), c.floor, c.limit)
			sameKeys(t, points, err, c.want...)
		}
		return nil
	})
}

func conformPointHits(t *testing.T, s *Store, _ *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	with, without := testPoint(m, KindFact, 1<<63), testPoint(m, KindFact, 2)
	addPoints(t, s, m, with, without)
	sp := &Space{Name: "v", Model: "m", Dimension: 2, TextVersion: 1, Encoding: 1}
	writes(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.AddSpace(sp), tx.PutVector(sp, &with.Record, TextOfCaller, []float32{3, 4}))
	})
	room := make([]float32, 0, 2)
	read(t, s, func(tx *ReadTx) error {
		hit, ok, err := tx.PointHit(sp.ID, with.ID, room)
		if d := cmp.Diff(PointHit{1 << 63, with.Content, []float32{3, 4}, 5}, hit); d != "" || !ok || err != nil {
			t.Error(d, ok, err)
		}
		if hit, ok, err = tx.PointHit(sp.ID, without.ID, room); hit.Key != 2 || hit.Content != without.Content || len(hit.Vector) != 0 || !ok || err != nil {
			t.Error(hit, ok, err)
		}
		if hit, ok, err = tx.PointHit(sp.ID, 999, room); ok || err != nil {
			t.Error(hit, ok, err)
		}
		return nil
	})
	// A vector goes along.
	writes(t, s, func(tx *WriteTx) error { return tx.RemovePoint(with) })
	read(t, s, func(tx *ReadTx) error {
		if n, err := tx.countRows("SELECT 1 FROM vectors"); n != 0 || err != nil {
			t.Error(n, err)
		}
		return nil
	})
}

func conformPointVersions(t *testing.T, s *Store, _ *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	p := testPoint(m, KindProcedure, 1)
	addPoints(t, s, m, p)
	versions := func(want ...int64) (all []PointVersion) {
		t.Helper()
		read(t, s, func(tx *ReadTx) (err error) {
			all, err = tx.PointVersions(p.ID)
			return err
		})
		var got []int64
		for _, v := range all {
			got = append(got, v.Version)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
		return all
	}
	versions()
	replace := func(keep int64) {
		t.Helper()
		writes(t, s, func(tx *WriteTx) error {
			old, err := tx.Point(p.ID)
			if err != nil {
				return err
			}
			next := *old
			next.Version, next.Recorded = old.Version+1, old.Recorded+1
			v := PointVersion{
				Version: old.Version, Recorded: old.Recorded, RecordedTo: next.Recorded, ValidFrom: new(int64(-1)), ValidTo: new(int64(0)),
				Title: "t", Data: []byte(`{"steps":["x"]}`), Metadata: []byte(`{}`), Content: fmt.Sprint("c", old.Version),
			}
			return errors.Join(tx.AddPointVersion(p.ID, &v, keep), tx.UpdatePoint(old, &next))
		})
	}
	replace(2)
	replace(2)
	all := versions(1, 2)
	want := PointVersion{
		Version: 2, Recorded: 8, RecordedTo: 9, ValidFrom: new(int64(-1)), ValidTo: new(int64(0)), Title: "t",
		Data: []byte(`{"steps":["x"]}`), Metadata: []byte(`{}`), Content: "c2",
	}
	if d := cmp.Diff(want, all[1]); d != "" {
		t.Error(d)
	}
	replace(2)
	versions(2, 3)
	replace(10)
	versions(2, 3, 4)
	replace(1)
	versions(5)
	replace(0)
	versions()
	replace(3) // versions 1 to 6 are gone
	versions(7)
	// A version alone is a change.
	revision := s.Counters().Revision
	writes(t, s, func(tx *WriteTx) error {
		return tx.AddPointVersion(p.ID, &PointVersion{Version: 6, Recorded: 1, RecordedTo: 1}, 10)
	})
	versions(6, 7)
	if s.Counters().Revision != revision+1 {
		t.Error(s.Counters().Revision)
	}
}

// TestStoredClock keeps the clock of expiry with every write, and with one of
// nothing else.
func TestStoredClock(t *testing.T) {
	dir, now := t.TempDir(), int64(100)
	opts := Options{Clock: func() int64 { return now }}
	reopened := func(want int64) *Store {
		t.Helper()
		s := openTest(t, dir, opts)
		if s.StoredClock() != want {
			t.Errorf("%d, want %d", s.StoredClock(), want)
		}
		return s
	}
	s := reopened(0)
	addAgentMemory(t, s, "n", "s")
	s.Close()
	s = reopened(100)
	now = 50
	revision := s.Counters().Revision
	writes(t, s, func(tx *WriteTx) error { tx.KeepClock(); return nil })
	s.Close()
	s = reopened(100) // it never goes back
	now = 170
	writes(t, s, func(tx *WriteTx) error { tx.KeepClock(); return nil })
	if s.Counters().Revision != revision {
		t.Error("keeping the clock made a revision")
	}
	s.Close()
	reopened(170)
}

// TestPlaceNames reads the names of places back, whatever a scope is called.
func TestPlaceNames(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := placeName{
			memory: rapid.Int64().Draw(t, "memory"), generation: rapid.Int64().Draw(t, "generation"),
			kind: Kind(rapid.IntRange(int(KindFact), int(KindProcedure)).Draw(t, "kind")), scope: rapid.String().Draw(t, "scope"),
		}
		if got, ok := placeOf(n.String()); got != n || !ok || scopeOfPlace(n.String()) != n.scope {
			t.Fatalf("%q: %+v %v", n, got, ok)
		}
	})
	for _, name := range []string{"", "s", placeMark, "\x01a/1/8/s", "\x011/b/8/s", "\x011/1/7/s", "\x011/1/11/s", "\x011/1/8", "\x0101/1/8/s", "1/1/8/s", "\x011/1/264/s"} {
		if n, ok := placeOf(name); ok || scopeOfPlace(name) != name {
			t.Errorf("%q: %+v", name, n)
		}
	}
}

// TestPointKeys keeps the order of the caller's ids.
func TestPointKeys(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := rapid.Uint64().Draw(t, "a"), rapid.Uint64().Draw(t, "b")
		if keyOfOrdered(orderedKey(a)) != a || (orderedKey(a) < orderedKey(b)) != (a < b) {
			t.Fatal(a, b)
		}
	})
}

// TestPointPlans looks that no statement about points walks a table where an index
// leads to what it wants.
func TestPointPlans(t *testing.T) {
	s := openTest(t, t.TempDir(), Options{})
	read(t, s, func(tx *ReadTx) error {
		for which := sqlAddAgentMemory; which < statementCount; which++ {
			if which == sqlAgentMemories || which == sqlAgentPlaces || strings.HasPrefix(s.texts[which], "INSERT") {
				continue
			}
			err := tx.each("EXPLAIN QUERY PLAN "+s.texts[which], func(st stmt) error {
				step := st.columnText(3)
				// The order in which edges were made is sorted for: a point has few.
				sorts := strings.Contains(step, "TEMP B-TREE") && which != sqlPointEdgesFrom && which != sqlPointEdgesTo
				if strings.Contains(step, "SCAN") && step != "SCAN CONSTANT ROW" || strings.Contains(step, "AUTOMATIC") || sorts {
					t.Errorf("%s: %s", s.texts[which], step)
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
