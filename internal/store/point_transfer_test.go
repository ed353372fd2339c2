package store

import (
	"slices"
	"testing"
)

// TestReplaceEdges holds what becomes of edges to a place that another one replaces.
func TestReplaceEdges(t *testing.T) {
	s, m := agentStore(t, t.TempDir(), Options{})
	facts, episodes := m.Place(KindFact), m.Place(KindEpisode)
	var staged int64
	point := func(tx *WriteTx, place int64, k Kind, key uint64) *Point {
		p, err := tx.PointByKey(place, key)
		if err == nil && p == nil {
			p = testPoint(m, k, key)
			p.Thread, p.Position, p.Expires = "", nil, nil
			if key == 7104 && place == facts {
				p.Expires = new(int64(5))
			}
			err = tx.AddPoint(place, p)
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	var before []*PointEdge
	_, err := s.Write(t.Context(), func(tx *WriteTx) (err error) {
		if staged, err = tx.StagePlace(m, KindFact); err != nil {
			return err
		}
		source := point(tx, episodes, KindEpisode, 7001)
		for i, key := range []uint64{7101, 7102, 7103, 7104} {
			e := &PointEdge{Source: source.ID, Type: "of", Target: point(tx, facts, KindFact, key).ID, Key: 900 + uint64(i)}
			if err := tx.AddPointEdge(episodes, e); err != nil {
				return err
			}
		}
		// The staged place has the first and the second, and an edge of its own to that. It
		// has the fourth too, whose old one has expired.
		point(tx, staged, KindFact, 7101)
		point(tx, staged, KindFact, 7104)
		twin := &PointEdge{Source: source.ID, Type: "of", Target: point(tx, staged, KindFact, 7102).ID, Key: 901, Properties: []byte(`{"new":1}`)}
		if err := tx.AddPointEdge(staged, twin); err != nil {
			return err
		}
		before, err = tx.PointEdgesFrom(source.ID)
		return err
	})
	if err != nil || len(before) != 5 {
		t.Fatalf("%d edges, %v", len(before), err)
	}
	_, err = s.Write(t.Context(), func(tx *WriteTx) error {
		dropped, err := tx.ReplaceEdges(episodes, facts, staged, 5)
		if err != nil {
			return err
		}
		if dropped != 2 {
			t.Errorf("%d edges were dropped, want 2", dropped)
		}
		if err := tx.AdoptEdges(episodes, staged); err != nil {
			return err
		}
		edges, err := tx.PointEdgesFrom(before[0].Source)
		var got []uint64
		for _, e := range edges {
			if e.SourcePlace != episodes || e.TargetPlace != staged || (e.Properties != nil) != (e.TargetKey == 7102) {
				t.Errorf("%+v", e)
			}
			got = append(got, e.TargetKey)
		}
		if slices.Sort(got); !slices.Equal(got, []uint64{7101, 7102}) {
			t.Errorf("edges lead to %v", got)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
