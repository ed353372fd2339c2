package main

import (
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op/local"
)

// attached asks as another process does that is attached to the one that holds the
// store.
func attached(t *testing.T, db *loci.DB) func(*testing.T, sample) answer {
	t.Helper()
	server, err := local.Serve(db, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	m, err := local.Dial(t.Context(), db.Directory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(t *testing.T, s sample) answer { return askCaller(t, m, s) }
}
