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

func conformPageRowVersion(t *testing.T, s *Store, _ *hookLog) {
	c := addScope(t, s, "n")
	p, other := testPage(c, "p"), testPage(c, "other")
	p.Title, p.Summary = "t", "s"
	addPages(t, s, p, other)
	for _, row := range [][3]string{{"t", "s", "body"}, {"u", "s", "body"}, {"u", "s", "other body"}, {"u", "r", ""}, {"u", "r", "x"}, {"t", "s", "body"}} {
		writes(t, s, func(tx *WriteTx) error {
			old := *p
			p.Version, p.Title, p.Summary, p.Content = p.Version+1, row[0], row[1], row[2]
			return tx.AddPageRevision(&old, p)
		})
	}
	read(t, s, func(tx *ReadTx) error {
		for i, want := range []int64{1, 1, 3, 3, 5, 5, 7} {
			got, err := tx.PageRowVersion(p.ID, int64(i+1))
			if err != nil || got != want {
				t.Errorf("version %d has the row of version %d, not %d: %v", i+1, got, want, err)
			}
		}
		got, err := tx.PageRowVersion(other.ID, 1)
		if got != 1 {
			t.Errorf("a page of one revision has the row of version %d", got)
		}
		return err
	})
}
