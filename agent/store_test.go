package agent

import "testing"

func TestStoreAndGet(t *testing.T) { // S1
	m := openMemory(t, 4)
	if got := m.store(1, "tide at nine", d()); got.Vector != VectorGiven || got.Version != 1 {
		t.Errorf("receipt %+v", got)
	}
	f := m.get(1)
	if f == nil || f.Content != "tide at nine" || f.ExpiresAtUS != nil || f.CreatedAtUS != T {
		t.Errorf("got %+v", f)
	}
}
