package notewatch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// watching starts Watch and gives a channel that gets a value for each call.
func watching(t *testing.T, dir string, o Options) <-chan struct{} {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	calls, done := make(chan struct{}, 100), make(chan error, 1)
	go func() {
		done <- Watch(ctx, dir, o, func(context.Context) error { calls <- struct{}{}; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	wantCall(t, calls, true) // at once
	return calls
}

func wantCall(t *testing.T, calls <-chan struct{}, want bool) {
	t.Helper()
	limit := 10 * time.Second
	if !want {
		limit = 150 * time.Millisecond
	}
	select {
	case <-calls:
		if !want {
			t.Error("a change was told that was none")
		}
	case <-time.After(limit):
		if want {
			t.Fatal("a change was not told")
		}
	}
}

func write(t *testing.T, elem ...string) {
	t.Helper()
	path := filepath.Join(elem...)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(time.Now().String()), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestNotices(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a", "b.md")
	write(t, dir, ".git", "x")
	calls := watching(t, dir, Options{Quiet: 30 * time.Millisecond, Poll: time.Hour, Fallback: time.Hour})
	for range 20 { // one call for all
		write(t, dir, "a", "b.md")
	}
	wantCall(t, calls, true)
	wantCall(t, calls, false)
	write(t, dir, ".git", "x")
	write(t, dir, ".hidden")
	wantCall(t, calls, false)
	write(t, dir, "new", "deep", "c.md")
	wantCall(t, calls, true)
	time.Sleep(50 * time.Millisecond)
	for len(calls) > 0 {
		<-calls
	}
	write(t, dir, "new", "deep", "c.md")
	wantCall(t, calls, true)
	if err := os.RemoveAll(filepath.Join(dir, "new")); err != nil {
		t.Fatal(err)
	}
	wantCall(t, calls, true)
}

func TestNeverQuiet(t *testing.T) {
	dir := t.TempDir()
	calls := watching(t, dir, Options{Quiet: time.Hour, Most: 50 * time.Millisecond, Poll: time.Hour, Fallback: time.Hour})
	write(t, dir, "a.md")
	wantCall(t, calls, true)
}

func TestByTheClock(t *testing.T) {
	calls := watching(t, t.TempDir(), Options{Fallback: 20 * time.Millisecond, pollOnly: true})
	wantCall(t, calls, true)
	wantCall(t, calls, true)
}

func TestFailure(t *testing.T) {
	boom := errors.New("boom")
	if err := Watch(t.Context(), t.TempDir(), Options{}, func(context.Context) error { return boom }); err != boom {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if err := Watch(ctx, t.TempDir(), Options{}, func(context.Context) error { cancel(); return boom }); err != nil {
		t.Error("the end of the context is no failure:", err)
	}
}
