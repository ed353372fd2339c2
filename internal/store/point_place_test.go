package store

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci/internal/errs"
)

func conformPointEdges(t *testing.T, s *Store, _ *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	a, b, c := testPoint(m, KindFact, 1), testPoint(m, KindEpisode, 1), testPoint(m, KindFact, 2)
	addPoints(t, s, m, a, b, c)
	facts, episodes := m.Place(KindFact), m.Place(KindEpisode)
	add := func(place int64, source *Point, typ string, target *Point, key uint64) *PointEdge {
		t.Helper()
		e := &PointEdge{Source: source.ID, Type: typ, Target: target.ID, Key: key, Created: 4, Properties: []byte(`{"w":1}`)}
		writes(t, s, func(tx *WriteTx) error { return tx.AddPointEdge(place, e) })
		e.SourcePlace, e.SourceKey, e.TargetPlace, e.TargetKey = source.ScopeID, source.Key, target.ScopeID, target.Key
		return e
	}
	ab := add(facts, a, "causes", b, 1<<64-1)
	aa := add(facts, a, "causes", a, 0)
	ba := add(episodes, b, "causes", a, 0)
	ac := add(facts, a, "Causes", c, 1<<63)
	same := func(got []*PointEdge, err error, want ...*PointEdge) {
		t.Helper()
		if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.AllowUnexported(PointEdge{})); d != "" || err != nil {
			t.Error(d, err)
		}
	}
	one := func(got *PointEdge, err error) ([]*PointEdge, error) {
		if got == nil {
			return nil, err
		}
		return []*PointEdge{got}, err
	}
	look := func(fn func(tx *ReadTx)) {
		t.Helper()
		read(t, s, func(tx *ReadTx) error { fn(tx); return nil })
	}
	look(func(tx *ReadTx) {
		t.Helper()
		got, err := tx.PointEdgesFrom(a.ID)
		same(got, err, ab, aa, ac)
		got, err = tx.PointEdgesTo(a.ID)
		same(got, err, aa, ba)
		got, err = one(tx.PointEdge(a.ID, "causes", b.ID))
		same(got, err, ab)
		got, err = one(tx.PointEdge(a.ID, "never said", b.ID))
		same(got, err)
		got, err = one(tx.PointEdge(c.ID, "causes", b.ID))
		same(got, err)
		for _, e := range []*PointEdge{ab, aa, ac} {
			got, err = one(tx.PointEdgeByKey(facts, e.Key))
			same(got, err, e)
		}
		got, err = one(tx.PointEdgeByKey(episodes, 0))
		same(got, err, ba)
		got, err = one(tx.PointEdgeByKey(episodes, 1))
		same(got, err)
		got, err = tx.PointEdgesIn(facts, nil, 10)
		same(got, err, aa, ac, ab)
		got, err = tx.PointEdgesIn(facts, &aa.Key, 1)
		same(got, err, ac)
		got, err = tx.PointEdgesIn(facts, &ab.Key, 1)
		same(got, err)
	})
	for _, twice := range []*PointEdge{
		{Source: a.ID, Type: "causes", Target: b.ID, Key: 77}, {Source: c.ID, Type: "causes", Target: b.ID, Key: 1 << 63},
	} {
		if err := failed(t, s, func(tx *WriteTx) error { return tx.AddPointEdge(facts, twice) }); !errors.Is(err, errs.Conflict) {
			t.Error("two edges of one triple or key: ", err)
		}
	}
	gone := PointEdge{ID: 999, Source: a.ID, Target: a.ID}
	for name, fn := range map[string]func(tx *WriteTx) error{
		"an end": func(tx *WriteTx) error {
			return tx.AddPointEdge(facts, &PointEdge{Source: a.ID, Type: "causes", Target: 999, Key: 5})
		},
		"set":  func(tx *WriteTx) error { return tx.SetPointEdge(&gone) },
		"move": func(tx *WriteTx) error { return tx.MovePointEdge(&gone, facts) },
	} {
		if err := failed(t, s, fn); errs.CodeOf(err) == "" {
			t.Errorf("%s that is not there: %v", name, err)
		}
	}
	writes(t, s, func(tx *WriteTx) error {
		ab.Properties = nil
		if err := tx.SetPointEdge(ab); err != nil {
			return err
		}
		ba.Source, ba.Target, ba.Key = c.ID, b.ID, 12
		ba.SourcePlace, ba.SourceKey, ba.TargetPlace, ba.TargetKey = facts, c.Key, episodes, b.Key
		return errors.Join(tx.MovePointEdge(ba, facts), tx.RemovePointEdge(aa))
	})
	look(func(tx *ReadTx) {
		t.Helper()
		got, err := tx.PointEdgesFrom(a.ID)
		same(got, err, ab, ac)
		got, err = one(tx.PointEdgeByKey(facts, 12))
		same(got, err, ba)
		got, err = tx.PointEdgesIn(episodes, nil, 10)
		same(got, err)
	})
	// Both ends take an edge along.
	writes(t, s, func(tx *WriteTx) error { return tx.RemovePoint(b) })
	look(func(tx *ReadTx) {
		t.Helper()
		got, err := tx.PointEdgesIn(facts, nil, 10)
		same(got, err, ac)
	})
}

func conformAgentMemories(t *testing.T, s *Store, _ *hookLog) {
	m := &AgentMemory{Namespace: "n", Scope: "a/b", Dimension: 384, Space: "v", Snapshot: 7, Settings: []byte(`{"keep_versions":1}`)}
	writes(t, s, func(tx *WriteTx) error { return tx.AddAgentMemory(m) })
	o := addAgentMemory(t, s, "o", "a/b")
	get := func(namespace, scope string) (m *AgentMemory) {
		t.Helper()
		read(t, s, func(tx *ReadTx) (err error) {
			m, err = tx.AgentMemory(namespace, scope)
			return err
		})
		return m
	}
	same := func(want *AgentMemory) {
		t.Helper()
		if d := cmp.Diff(want, get(want.Namespace, want.Scope)); d != "" {
			t.Error(d)
		}
	}
	same(m)
	same(o)
	for _, place := range m.Places {
		if slices.Contains(o.Places[:], place) {
			t.Error("two memories share a place")
		}
	}
	if get("n", "s") != nil || get("never said", "a/b") != nil {
		t.Error("there is a memory that nobody made")
	}
	if err := failed(t, s, func(tx *WriteTx) error { return tx.AddAgentMemory(&AgentMemory{Namespace: "n", Scope: "a/b"}) }); !errors.Is(err, errs.Conflict) {
		t.Error("two memories of one scope: ", err)
	}
	m.Snapshot, m.Settings = 8, nil
	writes(t, s, func(tx *WriteTx) error { return tx.UpdateAgentMemory(m) })
	same(m)
	same(o)
	read(t, s, func(tx *ReadTx) error {
		all, err := tx.AgentMemories()
		if d := cmp.Diff([]*AgentMemory{m, o}, all); d != "" {
			t.Error(d)
		}
		places, ok, err2 := tx.Places(m.NamespaceID, m.ScopeID)
		if places != m.Places || !ok {
			t.Error(places, ok)
		}
		_, ok, err3 := tx.Places(m.NamespaceID, m.NamespaceID)
		if ok {
			t.Error("a scope without a memory has places")
		}
		return errors.Join(err, err2, err3)
	})
}

func conformPlaces(t *testing.T, s *Store, _ *hookLog) {
	m := addAgentMemory(t, s, "n", "s")
	before := m.Place(KindFact)
	old := testPoint(m, KindFact, 1)
	episode := testPoint(m, KindEpisode, 1)
	addPoints(t, s, m, old, episode)
	var staged int64
	fresh := testPoint(m, KindFact, 1) // the same key and thread
	fresh.Position = new(int64(1))
	writes(t, s, func(tx *WriteTx) (err error) {
		if staged, err = tx.StagePlace(m, KindFact); err != nil {
			return err
		}
		return tx.AddPoint(staged, fresh)
	})
	empty := func(want ...int64) {
		t.Helper()
		read(t, s, func(tx *ReadTx) error {
			got, err := tx.EmptyPlaces()
			sameIDs(t, got, err, want...)
			return nil
		})
	}
	empty(staged)
	list := func(want ...*Point) {
		t.Helper()
		read(t, s, func(tx *ReadTx) error {
			var got []int64
			err := tx.Scan(Filter{Namespace: "n", Kind: KindFact, Scopes: []string{"s"}}, 0, 10, func(r Stored) (bool, error) {
				got = append(got, r.Head().ID)
				return true, nil
			})
			if len(want) != len(got) || err != nil || len(got) > 0 && got[0] != want[0].ID {
				t.Errorf("%v, %v", got, err)
			}
			return nil
		})
	}
	list(old)
	writes(t, s, func(tx *WriteTx) error {
		return errors.Join(tx.SetPlace(m, KindFact, staged), tx.UpdateAgentMemory(m))
	})
	list(fresh)
	empty(before)
	if m.Place(KindFact) != staged {
		t.Error(m)
	}
	for _, place := range []int64{staged, m.Place(KindEpisode), 999} {
		if err := failed(t, s, func(tx *WriteTx) error { return tx.SetPlace(m, KindFact, place) }); !errors.Is(err, errs.Storage) {
			t.Error("a place that was not staged: ", err)
		}
	}
	for i := range 4 {
		addPoints(t, s, &AgentMemory{Namespace: "n", Scope: "s", Places: [3]int64{before}}, testPoint(m, KindFact, uint64(i+10)))
	}
	step := func(limit int, more bool, removed int) {
		t.Helper()
		writes(t, s, func(tx *WriteTx) error {
			gotMore, gotRemoved, err := tx.EmptyPlace(before, limit)
			if gotMore != more || gotRemoved != removed {
				t.Error(gotMore, gotRemoved, err)
			}
			return err
		})
	}
	step(3, true, 3)
	empty(before)
	step(2, true, 2) // there is none left, which nobody knows
	step(2, false, 0)
	empty()
	list(fresh)
	read(t, s, func(tx *ReadTx) error {
		points, err := tx.PointsAfter(m.Place(KindEpisode), 0, nil, 10)
		sameKeys(t, points, err, 1)
		return nil
	})
	if s.Counters().Counts[KindFact] != 1 {
		t.Error(s.Counters().Counts)
	}
	// No place is ever given twice.
	writes(t, s, func(tx *WriteTx) error {
		place, err := tx.StagePlace(m, KindFact)
		if place == before || place == staged {
			t.Error(place)
		}
		return err
	})
}

func conformAgentCounts(t *testing.T, s *Store, _ *hookLog) {
	m, o := addAgentMemory(t, s, "n", "s"), addAgentMemory(t, s, "o", "s")
	facts := m.Place(KindFact)
	a, b, gone := testPoint(m, KindFact, 1), testPoint(m, KindFact, 2), testPoint(m, KindFact, 3)
	a.Version, gone.Version, gone.Expires = 3, 2, new(int64(100))
	episode := testPoint(m, KindEpisode, 1)
	addPoints(t, s, m, a, b, gone, episode)
	addPoints(t, s, o, testPoint(o, KindProcedure, 1))
	var staged int64
	twin := testPoint(m, KindFact, 1)
	twin.Version = 2
	writes(t, s, func(tx *WriteTx) (err error) {
		if staged, err = tx.StagePlace(m, KindFact); err != nil {
			return err
		}
		version := func(p *Point, n int64) error {
			return tx.AddPointVersion(p.ID, &PointVersion{Version: n, Recorded: 1, RecordedTo: 1}, 10)
		}
		edge := func(place int64, from, to *Point, key uint64) error {
			return tx.AddPointEdge(place, &PointEdge{Source: from.ID, Type: "causes", Target: to.ID, Key: key})
		}
		return errors.Join(
			tx.AddPoint(staged, twin), version(a, 1), version(a, 2), version(gone, 1), version(twin, 1),
			edge(facts, a, b, 1<<63), edge(facts, a, gone, 1), edge(facts, gone, a, 2), edge(facts, b, episode, 3),
			edge(m.Place(KindEpisode), episode, episode, 4), edge(m.Place(KindEpisode), episode, twin, 5), edge(staged, twin, twin, 6),
		)
	})
	read(t, s, func(tx *ReadTx) error {
		for _, c := range []struct {
			namespace string
			now       int64
			want      AgentCounts
		}{
			{"", 100, AgentCounts{Memories: 2, Points: [3]int64{2, 1, 1}, Versions: 2, Edges: 3}},
			{"n", 99, AgentCounts{Memories: 1, Points: [3]int64{3, 1, 0}, Versions: 3, Edges: 5}},
			{"o", 99, AgentCounts{Memories: 1, Points: [3]int64{0, 0, 1}}},
			{"never said", 99, AgentCounts{}},
		} {
			if got, err := tx.CountAgents(c.namespace, c.now); got != c.want || err != nil {
				t.Errorf("%s at %d: %+v, want %+v, %v", c.namespace, c.now, got, c.want, err)
			}
		}
		var keys []uint64
		enough := errors.New("enough")
		live := func(place, now int64, most int) error {
			keys = nil
			return tx.LiveEdges(place, now, m.Places, func(e *PointEdge) error {
				if keys = append(keys, e.Key); e.Type != "causes" || e.SourcePlace != place {
					t.Errorf("%+v", e)
				}
				if len(keys) == most {
					return enough
				}
				return nil
			})
		}
		if err := live(facts, 99, 9); err != nil || !slices.Equal(keys, []uint64{1, 2, 3, 1 << 63}) {
			t.Error(keys, err)
		}
		if err := live(facts, 100, 9); err != nil || !slices.Equal(keys, []uint64{3, 1 << 63}) {
			t.Error(keys, err)
		}
		if err := live(m.Place(KindEpisode), 100, 9); err != nil || !slices.Equal(keys, []uint64{4}) {
			t.Error(keys, err)
		}
		if err := live(facts, 99, 2); !errors.Is(err, enough) || len(keys) != 2 {
			t.Error(keys, err)
		}
		return nil
	})
}
