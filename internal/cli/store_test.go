package cli

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// script is a line of a conversation with the program: standard output is to
// hold out, or to be empty for "", and standard error likewise.
type script struct {
	args     []string
	stdin    string
	code     int
	out, err string
}

func words(line string) []string { return strings.Fields(line) }

// TestConversation plays a session on one store, as a person sees it.
func TestConversation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "on", "demand")
	fixed := func(d *Deps) {
		d.Open = func(ctx context.Context, dir string, opts *loci.Options) (*loci.DB, error) {
			o := loci.Options{}
			if opts != nil {
				o = *opts
			}
			o.Clock = func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
			return loci.Open(ctx, dir, &o)
		}
	}
	for _, s := range []script{
		{args: words("recall tide"), out: "Nothing is remembered about that"},
		{args: []string{"remember", "The tide table is updated weekly.", "--tags", "harbour"}, out: "Remembered #1 in default/public"},
		{args: words("remember - --scope private"), stdin: "灯塔每晚七点点灯\n", out: "Remembered #2 in default/private"},
		{args: words("recall tide table"), out: "The tide table is updated weekly.\n  #1 · knowledge · harbour · 2026-01-02 · score"},
		{args: words("recall 灯塔 --scope private"), out: "灯塔每晚七点点灯"},
		{args: words("recall 灯塔"), out: "Nothing is remembered about that"},
		{args: words("search tide --explain --with-total"), out: "1 of 1"},
		{args: words("memories list"), out: "ID  TYPE       CREATED     TAGS     JUDGMENT\n1   knowledge  2026-01-02  harbour  The tide table is updated weekly.\n"},
		{args: words("memories list --limit 1 --scope public --scope private"), out: "There are more: --after 1"},
		{args: words("memories get 1"), out: "judgment              The tide table is updated weekly.\n"},
		{args: words("memories get 2"), code: 3, err: "error: "},
		{args: words("memories get 9 --json"), code: 3, err: `{"error":{"code":"not_found","operation":"memories.get"`},
		{args: words("memories upsert --id 1 --judgment x --expected-revision 77"), code: 4, err: "expected_revision"},
		{args: words("remember x --namespace="), code: 2, err: "error: "},
		{args: words("health"), out: "record count           2\n"},
		{args: words("rebuild-indexes --quiet"), out: "index usable           yes\n"},
		{args: words("memories delete 1"), out: "Deleted\n"},
		{args: words("memories delete 1"), out: "There was nothing to delete\n"},
		{args: words("doctor"), out: "All is well"},
	} {
		got := cmdLine{args: append([]string{"--data", dir}, s.args...), stdin: s.stdin, deps: fixed}.run(t)
		if got.code != s.code || !strings.Contains(got.stdout, s.out) || s.out == "" && got.stdout != "" ||
			!strings.Contains(got.stderr, s.err) || s.err == "" && got.stderr != "" && !strings.Contains(got.stderr, "Build every index") {
			t.Errorf("loci %s: exit %d\n%s%s", strings.Join(s.args, " "), got.code, got.stdout, got.stderr)
		}
	}
}

// TestLockedStore holds what a second process sees.
func TestLockedStore(t *testing.T) {
	dir := t.TempDir()
	db, err := loci.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := cmdLine{args: words("--wait 0s recall x --data " + dir)}.run(t)
	if got.code != op.ExitLocked || got.stdout != "" || !strings.Contains(got.stderr, "--wait") {
		t.Errorf("%+v", got)
	}
	if got := (cmdLine{args: words("doctor --json --data " + dir)}).run(t); got.code != op.ExitLocked || !strings.Contains(got.stdout, `"ok":false`) {
		t.Errorf("%+v", got)
	}
	// Once the other one is done, waiting pays.
	released := make(chan error, 1)
	time.AfterFunc(100*time.Millisecond, func() { released <- db.Close() })
	if got := (cmdLine{args: words("--wait 20s recall x --data " + dir)}).run(t); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}

// TestInterrupt holds that an ended context ends the command with an error.
func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errOut strings.Builder
	code := Run(ctx, Deps{
		Args: words("recall x --json --data " + t.TempDir()), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errOut,
		LookupEnv: func(string) (string, bool) { return "", false }, WorkDir: noWorkDir,
	})
	var e struct {
		Error op.Failure `json:"error"`
	}
	if err := json.Unmarshal([]byte(errOut.String()), &e); err != nil || code != op.ExitFailed || out.Len() > 0 || e.Error.Code != loci.ErrCanceled {
		t.Errorf("exit %d, %q, %q", code, out.String(), errOut.String())
	}
}

// TestStdinLimit holds that endless input is refused and not gathered.
func TestStdinLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 64 MiB")
	}
	var errOut strings.Builder
	code := Run(t.Context(), Deps{
		Args: words("call memories.list - --data /nowhere"), Stdin: endless{}, Stdout: &strings.Builder{}, Stderr: &errOut,
		LookupEnv: func(string) (string, bool) { return "", false }, WorkDir: noWorkDir,
	})
	if code != op.ExitUsage || !strings.Contains(errOut.String(), "more than") {
		t.Errorf("exit %d, %q", code, errOut.String())
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestDamagedStore holds that doctor says so and still ends in good order.
func TestDamagedStore(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "loci.db"), []byte(strings.Repeat("this is no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	got := cmdLine{args: words("doctor --data " + dir)}.run(t)
	if got.code != op.ExitFailed || !strings.Contains(got.stdout, "trouble") || !strings.Contains(got.stdout, "store") {
		t.Errorf("%+v", got)
	}
}

// TestPanic holds that a mistake in the program is no wrong command line.
func TestPanic(t *testing.T) {
	got := cmdLine{args: words("recall x --data /nowhere"), deps: func(d *Deps) {
		d.Open = func(context.Context, string, *loci.Options) (*loci.DB, error) { panic("ouch") }
	}}.run(t)
	if got.code != op.ExitFailed || !strings.Contains(got.stderr, "a mistake in loci: ouch") {
		t.Errorf("%+v", got)
	}
}
