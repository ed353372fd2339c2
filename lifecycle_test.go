package loci

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const day = 86_400_000_000

func withState(st MemoryState, created int64) MemoryInput {
	return MemoryInput{RecordInput: RecordInput{CreatedAtUS: &created}, Judgment: "m", State: &st}
}

func feedback(t *testing.T, db *DB, req FeedbackRequest) FeedbackReport {
	t.Helper()
	return must[*Receipt[FeedbackReport]](t)(db.Memories().Feedback(t.Context(), req)).Value
}

func decay(t *testing.T, db *DB, req DecayRequest) DecayReport {
	t.Helper()
	return must[*Receipt[DecayReport]](t)(db.Memories().Decay(t.Context(), req)).Value
}

func decayAt(t *testing.T, db *DB, at int64) DecayReport {
	t.Helper()
	return decay(t, db, DecayRequest{AtUS: &at})
}

func TestFeedback(t *testing.T) {
	stateIs := func(t *testing.T, db *DB, id ID, want MemoryState) {
		t.Helper()
		if d := cmp.Diff(want, getMemory(t, db, id, ReadFilter{}).State); d != "" {
			t.Error(d)
		}
	}
	cases := []struct {
		name string
		run  func(t *testing.T, db *DB)
	}{
		{"D1", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m"})
			got := feedback(t, db, FeedbackRequest{RecalledIDs: []ID{m.ID}, UsefulIDs: []ID{m.ID}, NowUS: new(int64(7))})
			if got != (FeedbackReport{1, 1, 0}) {
				t.Error(got)
			}
			stateIs(t, db, m.ID, MemoryState{Strength: 2, UsefulCount: 1, UsefulScore: 2.5, LastRecalledAtUS: new(int64(7))})
		}},
		{"D2", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m"})
			for i, score := range []float64{2.5, 5, 7.5, 10} {
				feedback(t, db, FeedbackRequest{RecalledIDs: []ID{m.ID}, UsefulIDs: []ID{m.ID}})
				got := getMemory(t, db, m.ID, ReadFilter{}).State
				if got.UsefulScore != score || got.Strength != float64(i+2) {
					t.Error(got)
				}
			}
		}},
		{"D3", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m"})
			hidden := addMemory(t, db, MemoryInput{RecordInput: RecordInput{Scope: new("private")}, Judgment: "m"})
			before := stateOf(t, db)
			_, err := db.Memories().Feedback(t.Context(), FeedbackRequest{RecalledIDs: []ID{m.ID}, UsefulIDs: []ID{m.ID, 9}})
			wantCode(t, err, ErrValidation)
			for _, other := range []ID{777, hidden.ID} {
				_, err = db.Memories().Feedback(t.Context(), FeedbackRequest{RecalledIDs: []ID{m.ID, other}, UsefulIDs: []ID{m.ID}})
				wantCode(t, err, ErrNotFound)
			}
			stateIs(t, db, m.ID, MemoryState{Strength: 1})
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
		}},
		{"D4", func(t *testing.T, db *DB) {
			a, b := addMemory(t, db, MemoryInput{Judgment: "a"}), addMemory(t, db, MemoryInput{Judgment: "b"})
			before := stateOf(t, db)
			if got := feedback(t, db, FeedbackRequest{RecalledIDs: []ID{a.ID, a.ID, b.ID}}); got != (FeedbackReport{2, 0, 0}) {
				t.Error(got)
			}
			stateIs(t, db, a.ID, MemoryState{Strength: 1})
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
		}},
		{"D5", func(t *testing.T, db *DB) {
			for score, want := range map[float64]float64{2.99: 2, 3: 1, 9.99: 1, 10: 2} {
				m := addMemory(t, db, withState(MemoryState{Strength: 2, UsefulScore: score}, 0))
				feedback(t, db, FeedbackRequest{RecalledIDs: []ID{m.ID}})
				stateIs(t, db, m.ID, MemoryState{Strength: want, UsefulScore: score})
			}
		}},
		{"D6", func(t *testing.T, db *DB) {
			m := addMemory(t, db, withState(MemoryState{UsefulScore: 5}, 0))
			if got := feedback(t, db, FeedbackRequest{RecalledIDs: []ID{m.ID}}); got != (FeedbackReport{1, 0, 1}) {
				t.Error(got)
			}
			stateIs(t, db, m.ID, MemoryState{UsefulScore: 5})
			p := addMemory(t, db, withState(MemoryState{Pinned: true, Strength: 2, UsefulScore: 5}, 0))
			if got := feedback(t, db, FeedbackRequest{RecalledIDs: []ID{p.ID}}); got != (FeedbackReport{1, 0, 0}) {
				t.Error(got)
			}
			stateIs(t, db, p.ID, MemoryState{Pinned: true, Strength: 2, UsefulScore: 5})
			feedback(t, db, FeedbackRequest{RecalledIDs: []ID{p.ID}, UsefulIDs: []ID{p.ID}, NowUS: new(int64(1))})
			stateIs(t, db, p.ID, MemoryState{Pinned: true, Strength: 3, UsefulScore: 7.5, UsefulCount: 1, LastRecalledAtUS: new(int64(1))})
		}},
		{"D7", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m"})
			feedback(t, db, FeedbackRequest{RecalledIDs: []ID{m.ID}, UsefulIDs: []ID{m.ID}, NowUS: new(int64(1)),
				Policy: DecayPolicy{StrengthBoost: new(3.0), UsefulScoreBoost: new(1.0)}})
			stateIs(t, db, m.ID, MemoryState{Strength: 4, UsefulCount: 1, UsefulScore: 1, LastRecalledAtUS: new(int64(1))})
		}},
		{"D15", func(t *testing.T, db *DB) {
			m := addMemory(t, db, MemoryInput{Judgment: "m"})
			for _, p := range []DecayPolicy{
				{Tier0Threshold: new(0.0)}, {Tier1Threshold: new(3.0)}, {Tier0Threshold: new(math.NaN())}, {Tier1Threshold: new(math.Inf(1))},
				{UsefulScoreBoost: new(math.Inf(1))}, {StrengthBoost: new(math.NaN())}, {UsefulScoreBoost: new(0.0)}, {StrengthBoost: new(0.0)},
				{StrengthBoost: new(0.5)}, {Tier0CycleDays: new(int64(0))},
			} {
				_, err := db.Memories().Feedback(t.Context(), FeedbackRequest{RecalledIDs: []ID{m.ID}, Policy: p})
				wantCode(t, err, ErrValidation)
				_, err = db.Memories().Decay(t.Context(), DecayRequest{Policy: p})
				wantCode(t, err, ErrValidation)
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, openTestDB(t, t.TempDir())) })
	}
}

func TestDecay(t *testing.T) {
	is := func(t *testing.T, got DecayReport, decayed int, candidates ...ID) {
		t.Helper()
		if got.Decayed != decayed || !slices.Equal(got.RetirementCandidates, candidates) {
			t.Errorf("%+v, want %d %v", got, decayed, candidates)
		}
	}
	stateIs := func(t *testing.T, db *DB, id ID, strength float64, last int64) {
		t.Helper()
		got := getMemory(t, db, id, ReadFilter{}).State
		if got.Strength != strength || valueOr(got.LastDecayAtUS, -1) != last {
			t.Errorf("strength %v, last decay %v, want %v, %v", got.Strength, valueOr(got.LastDecayAtUS, -1), strength, last)
		}
	}
	cases := []struct {
		name string
		run  func(t *testing.T, db *DB)
	}{
		{"D8", func(t *testing.T, db *DB) {
			m := addMemory(t, db, withState(MemoryState{Strength: 5}, 0))
			is(t, decayAt(t, db, 10*day), 1)
			stateIs(t, db, m.ID, 2, 9*day)
			before := stateOf(t, db)
			is(t, decayAt(t, db, 10*day), 0)
			is(t, decayAt(t, db, 11*day), 0)
			if after := stateOf(t, db); after != before {
				t.Errorf("%+v, was %+v", after, before)
			}
			is(t, decayAt(t, db, 12*day), 1)
			stateIs(t, db, m.ID, 1, 12*day)
		}},
		{"D9, D10", func(t *testing.T, db *DB) {
			m := addMemory(t, db, withState(MemoryState{Strength: 1}, 0))
			is(t, decayAt(t, db, 3*day-1), 0)
			is(t, decayAt(t, db, 4*day), 1, m.ID)
			stateIs(t, db, m.ID, 0, 3*day)
			feedback(t, db, FeedbackRequest{RecalledIDs: []ID{m.ID}, UsefulIDs: []ID{m.ID}, NowUS: new(int64(5 * day))})
			stateIs(t, db, m.ID, 1, 3*day)
			is(t, decayAt(t, db, 5*day), 0)
			is(t, decayAt(t, db, 7*day), 0)
			is(t, decayAt(t, db, 8*day), 1, m.ID)
			stateIs(t, db, m.ID, 0, 8*day)
		}},
		{"D11", func(t *testing.T, db *DB) {
			m := addMemory(t, db, withState(MemoryState{Strength: 2}, 0))
			is(t, decayAt(t, db, 300*day), 1, m.ID)
			stateIs(t, db, m.ID, 0, 300*day)
			n := addMemory(t, db, withState(MemoryState{Strength: 2}, 400*day))
			is(t, decayAt(t, db, 350*day), 0, m.ID)
			stateIs(t, db, n.ID, 2, -1)
		}},
		{"D12", func(t *testing.T, db *DB) {
			m := addMemory(t, db, withState(MemoryState{Strength: 5}, 0))
			is(t, decay(t, db, DecayRequest{AtUS: new(int64(20 * day)), Policy: DecayPolicy{Tier0CycleDays: new(int64(7))}}), 1)
			stateIs(t, db, m.ID, 3, 14*day)
		}},
		{"D13", func(t *testing.T, db *DB) {
			t0 := addMemory(t, db, withState(MemoryState{}, 0))
			t1 := addMemory(t, db, withState(MemoryState{UsefulScore: 5}, 0))
			addMemory(t, db, withState(MemoryState{UsefulScore: 10}, 0))
			addMemory(t, db, withState(MemoryState{Pinned: true}, 0))
			strong := addMemory(t, db, withState(MemoryState{UsefulScore: 5, Strength: 9}, 0))
			is(t, decayAt(t, db, 100*day), 0, t0.ID, t1.ID)
			is(t, decayAt(t, db, 200*day), 0, t0.ID, t1.ID)
			stateIs(t, db, strong.ID, 9, -1)
		}},
		{"D14", func(t *testing.T, db *DB) {
			in := withState(MemoryState{Strength: 5}, 0)
			plain := addMemory(t, db, in)
			in.Tags = []string{"t"}
			tagged := addMemory(t, db, in)
			is(t, decay(t, db, DecayRequest{Filter: ReadFilter{Tags: []string{"T"}}, AtUS: new(int64(3 * day))}), 1)
			stateIs(t, db, plain.ID, 5, -1)
			stateIs(t, db, tagged.ID, 4, 3*day)
			if n := stateOf(t, db).records; n != 2 {
				t.Error(n)
			}
		}},
		{"extremes", func(t *testing.T, db *DB) {
			m := addMemory(t, db, withState(MemoryState{Strength: math.MaxFloat64}, math.MinInt64))
			is(t, decayAt(t, db, math.MaxInt64), 1)
			feedback(t, db, FeedbackRequest{RecalledIDs: []ID{m.ID}, UsefulIDs: []ID{m.ID}, Policy: DecayPolicy{StrengthBoost: new(math.MaxFloat64)}})
			if got := getMemory(t, db, m.ID, ReadFilter{}).State.Strength; math.IsInf(got, 0) {
				t.Error(got)
			}
			is(t, decay(t, db, DecayRequest{Policy: DecayPolicy{Tier0CycleDays: new(int64(math.MaxInt64))}}), 0)
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, openTestDB(t, t.TempDir())) })
	}
}
