package index

import "testing"

func TestShows(t *testing.T) {
	for _, c := range []struct {
		life     Life
		now      int64
		hasValid bool
		at       int64
		want     bool
	}{
		{Life{}, 0, false, 0, true},
		{Life{}, 100, true, 100, true},
		{Life{Expires: 10}, 0, false, 0, true},
		{Life{Expires: 10}, 9, false, 0, true},
		{Life{Expires: 10}, 10, false, 0, false},
		{Life{Expires: 10}, 11, false, 0, false},
		{Life{Expires: -10}, 0, false, 0, true},
		{Life{Expires: -10}, -11, false, 0, true},
		{Life{Expires: -10}, -10, false, 0, false},
		{Life{ValidFrom: 10, ValidTo: 20}, 0, false, 5, true},
		{Life{ValidFrom: 10, ValidTo: 20}, 0, true, 9, false},
		{Life{ValidFrom: 10, ValidTo: 20}, 0, true, 10, true},
		{Life{ValidFrom: 10, ValidTo: 20}, 0, true, 19, true},
		{Life{ValidFrom: 10, ValidTo: 20}, 0, true, 20, false},
		{Life{ValidFrom: 10}, 0, true, 0, false},
		{Life{ValidTo: 20}, 0, true, 0, true},
		{Life{ValidFrom: -10}, 0, true, 0, true},
		{Life{Expires: 10, ValidFrom: 10, ValidTo: 20}, 10, true, 15, false},
		{Life{Expires: 10, ValidFrom: 10, ValidTo: 20}, 9, true, 15, true},
	} {
		if got := c.life.Shows(c.now, c.at, c.hasValid); got != c.want {
			t.Errorf("%+v at %d, valid %v %d: %v", c.life, c.now, c.hasValid, c.at, got)
		}
	}
}
