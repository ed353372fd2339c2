package store

import (
	"slices"
	"testing"
)

func conformPagePlaces(t *testing.T, s *Store, _ *hookLog) {
	c, other := addScope(t, s, "n"), addScope(t, s, "m")
	plain, working, row := testPage(c, "c"), inWorking(testPage(c, "b"), 7), inCore(testPage(c, "a"), 9)
	row.Outline, row.RowVersion = true, 1
	addPages(t, s, plain, working)
	addPages(t, s, testPage(other, "a"), row)
	want := []CheckpointPage{
		{ID: plain.ID, Version: 1}, {ID: working.ID, Version: 1, Tier: TierWorking, Admission: 7},
		{ID: row.ID, Version: 1, Tier: TierCore, Outline: true, Seq: 9, RowVersion: 1},
	}
	for most := range 4 {
		var got []CheckpointPage
		read(t, s, func(tx *ReadTx) error {
			return tx.PagePlaces(c.ID, func(p CheckpointPage) bool { got = append(got, p); return len(got) != most })
		})
		if n := most; n == 0 {
			sameNotes(t, want, got)
		} else if !slices.Equal(got, want[:n]) {
			t.Errorf("the first %d are %+v", n, got)
		}
	}
}
