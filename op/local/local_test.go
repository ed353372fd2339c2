package local

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet are options of tests: nothing runs in the background.
func quiet() *Options {
	return &Options{Wait: 30 * time.Second, Store: &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true, NoBackgroundSweep: true}}
}

func mustOpen(t *testing.T, dir string, o *Options) *Memory {
	t.Helper()
	m, err := Open(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

func mustCall(t *testing.T, m *Memory, name, in string) string {
	t.Helper()
	out, err := m.Call(t.Context(), name, []byte(in))
	if err != nil {
		t.Fatalf("%s %s: %v", name, in, err)
	}
	return string(out)
}

// TestAttached is two memories on one directory: both write, both find it all, and
// when the first one goes the second takes its place.
func TestAttached(t *testing.T) {
	dir := t.TempDir()
	a := mustOpen(t, dir, quiet())
	b := mustOpen(t, dir, quiet())
	if !a.Holds() || b.Holds() || a.DB() == nil || b.DB() != nil {
		t.Fatalf("holds: %v and %v", a.Holds(), b.Holds())
	}
	mustCall(t, a, "remember", `{"text":"The tide table is updated weekly."}`)
	mustCall(t, b, "remember", `{"text":"The lamp is lit at seven."}`)
	for _, m := range []*Memory{a, b} {
		if got := mustCall(t, m, "memories.list", `{}`); !strings.Contains(got, "tide") || !strings.Contains(got, "lamp") {
			t.Error(got)
		}
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := mustCall(t, b, "recall", `{"query":"tide lamp"}`); !strings.Contains(got, "tide") || !strings.Contains(got, "lamp") {
		t.Error(got)
	}
	if !b.Holds() {
		t.Error("nobody holds the memory")
	}
	if _, err := a.Call(context.Background(), "health", nil); !errors.Is(err, loci.ErrClosed) {
		t.Errorf("a call of a closed memory: %v", err)
	}
}
