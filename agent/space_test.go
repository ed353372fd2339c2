package agent

import (
	"errors"
	"testing"

	"github.com/loci-memory/loci"
)

// TestSpaceInUse deletes the space of a memory: refused while vectors would be lost.
func TestSpaceInUse(t *testing.T) {
	m := openMemory(t, 4)
	space := m.AgentMemory.Space()
	remove := func() error {
		_, err := m.db.Embeddings().DeleteSpace(t.Context(), space)
		return err
	}
	if err := m.facts.Store(t.Context(), 1, "tide", x()); err != nil {
		t.Fatal(err)
	}
	if err := remove(); !errors.Is(err, loci.ErrConflict) {
		t.Fatal(err)
	}
	if hits := must[[]Hit](t)(m.facts.Query(t.Context(), x(), 1)); len(hits) != 1 {
		t.Fatal(hits)
	}
	must[*loci.Receipt[int64]](t)(m.facts.Clear(t.Context()))
	if err := remove(); err != nil {
		t.Fatal(err)
	}
}
