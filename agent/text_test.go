package agent

import "testing"

func TestTextFindsByWords(t *testing.T) { // X1
	m := openMemory(t, 4)
	m.store(1, "灯塔每晚七点点灯", x())
	m.store(2, "The ferry leaves at nine", x())
	wantIDs(t, "灯塔", m.words("灯塔"), 1)
	wantIDs(t, "ferries leaving", m.words("ferries leaving"), 2)
}
