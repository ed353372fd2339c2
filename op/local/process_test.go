package local

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/crash"
	"github.com/loci-memory/loci/op"
)

var (
	writers = flag.Int("local.writers", 2, "how many processes TestManyWriters starts")
	records = flag.Int("local.records", 2000, "how many records each of them writes")
)

// TestLocalChild is what the child processes of this file run; in any other
// process it does nothing.
func TestLocalChild(t *testing.T) {
	role, args := crash.Role()
	switch role {
	case "":
		t.Skip("only in a child process")
	case "write":
		childWrite(t, args)
	case "hang":
		childHang(t, args[0])
	default:
		t.Fatalf("unknown role %q", role)
	}
}

// childWrite writes records in batches, and one in between.
func childWrite(t *testing.T, args []string) {
	dir, name := args[0], args[1]
	n, err := strconv.Atoi(args[2])
	if err != nil {
		t.Fatal(err)
	}
	m, err := Open(t.Context(), dir, quiet())
	if err != nil {
		t.Fatal(err)
	}
	const batch = 40
	for i := 0; i < n; {
		var in struct {
			Memories []map[string]string `json:"memories"`
		}
		for ; len(in.Memories) < batch && i < n; i++ {
			in.Memories = append(in.Memories, map[string]string{"judgment": fmt.Sprintf("%s %d", name, i)})
		}
		raw, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		// Not idempotent: a call that was done twice, or lost, would show.
		if _, err := m.Call(t.Context(), "memories.upsert_many", raw); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	crash.Say("wrote %d", n)
}

// TestManyWriters starts processes that write to one memory at the same time, each
// ending as soon as it is done, which hands the memory on. All records are there,
// once each.
func TestManyWriters(t *testing.T) {
	dir := t.TempDir()
	n := *records
	if testing.Short() {
		n = min(n, 400)
	}
	children := make([]*crash.Child, *writers)
	for i := range children {
		// They have unequal amounts of work, so that the memory changes hands
		// while others write.
		c, err := crash.Start("TestLocalChild", "write", dir, fmt.Sprintf("writer%d", i), strconv.Itoa(n-i*n/(2*len(children))))
		if err != nil {
			t.Fatal(err)
		}
		children[i] = c
	}
	want := 0
	for i, c := range children {
		if said, ended, output := c.Wait(); !ended || len(said) != 1 {
			t.Fatalf("writer %d: %v %q", i, said, output)
		}
		want += n - i*n/(2*len(children))
	}
	m := mustOpen(t, dir, quiet())
	seen := map[string]int{}
	for after := "0"; ; {
		var page loci.Page[loci.Memory]
		out := mustCall(t, m, "memories.list", fmt.Sprintf(`{"limit":1000,"after":%q}`, after))
		if err := json.Unmarshal([]byte(out), &page); err != nil {
			t.Fatal(err)
		}
		for _, r := range page.Items {
			seen[r.Judgment]++
		}
		if page.NextCursor == 0 {
			break
		}
		after = fmt.Sprint(page.NextCursor)
	}
	for text, times := range seen {
		if times != 1 {
			t.Errorf("%q is there %d times", text, times)
		}
	}
	if len(seen) != want {
		t.Errorf("%d records, want %d", len(seen), want)
	}
}

// childHang holds the memory; it does what an attached process asks, says so and
// never answers.
func childHang(t *testing.T, dir string) {
	o := quiet()
	o.Hold = func(_ context.Context, db *loci.DB) (op.Caller, func() error, error) {
		return callerFunc(func(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
			if name == "health" {
				return op.Local(db).Call(ctx, name, raw)
			}
			out, err := op.Local(db).Call(ctx, name, raw)
			crash.Say("%s %v %d", name, err, len(out))
			select {} // until it is killed
		}), func() error { return nil }, nil
	}
	if _, err := Open(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	select {}
}

// TestHolderKilled kills the holder while it does a call of an attached process. A
// call that is idempotent is repeated by whoever takes over; of the other the
// caller is told that it may have been done, which it was.
func TestHolderKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("kills a process")
	}
	for _, tt := range []struct {
		name, in string
		unsure   bool
	}{
		{"remember", `{"text":"The ferry leaves at nine."}`, false},
		{"memories.upsert", `{"judgment":"The ferry leaves at nine."}`, true},
	} {
		dir := t.TempDir()
		child, err := crash.Start("TestLocalChild", "hang", dir)
		if err != nil {
			t.Fatal(err)
		}
		// Those who wait for the child are attached to it, and never hold first.
		var attached []*Memory
		for range 3 {
			o := quiet()
			o.Wait = time.Minute
			m, err := Dial(t.Context(), dir, o)
			if err != nil {
				t.Fatal(err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			attached = append(attached, mustOpen(t, dir, o))
		}
		done := goCall(t.Context(), attached[0], tt.name, tt.in)
		if line, ok := child.First(); !ok {
			t.Fatalf("the holder ended: %s", line)
		}
		child.Kill()
		got := <-done
		if tt.unsure && !errors.Is(got.err, loci.ErrCanceled) || !tt.unsure && got.err != nil {
			t.Errorf("%s: %s %v", tt.name, got.out, got.err)
		}
		child.Wait()
		holders := 0
		for _, m := range attached {
			var page loci.Page[loci.Memory]
			if err := json.Unmarshal([]byte(mustCall(t, m, "memories.list", `{}`)), &page); err != nil {
				t.Fatal(err)
			}
			if len(page.Items) != 1 {
				t.Errorf("%s: %d records", tt.name, len(page.Items))
			}
			if m.Holds() {
				holders++
			}
		}
		if holders != 1 {
			t.Errorf("%d hold the memory", holders)
		}
	}
}
