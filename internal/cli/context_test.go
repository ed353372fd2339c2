package cli

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// contextRun runs a context command on a data directory, without a model.
func contextRun(t *testing.T, dir, stdin, args string, more ...string) outcome {
	t.Helper()
	return cmdLine{stdin: stdin, args: append(append([]string{"--data", dir, "--embedder", "none", "context"}, strings.Fields(args)...), more...)}.run(t)
}

// mustRun is contextRun for a command that succeeds.
func mustRun(t *testing.T, dir, stdin, args string, more ...string) outcome {
	t.Helper()
	got := contextRun(t, dir, stdin, args, more...)
	if got.code != 0 {
		t.Fatalf("loci context %s: exit %d: %s", args, got.code, got.stderr)
	}
	return got
}

// TestContextInput holds where a context operation's arguments come from.
func TestContextInput(t *testing.T) {
	dir := t.TempDir()
	tests := []struct {
		stdin, args string
		more        []string
		want        string // part of the answer
	}{
		{`{"page_id":"a","title":"from standard input","content":"one"}`, "write --scope s --json", nil, `"page_id":"a"`},
		{"", "read --scope s a --json", nil, `"content":"one"`},
		{" \n", "read --scope s a --json", nil, `"title":"from standard input"`},
		{`{"page_id":"b","content":"two","title":"x"}`, "write --scope s --title flags --json", nil, `"title":"flags"`},
		{"not read", "write --scope s --json", []string{`{"page_id":"c","content":"three"}`}, `"page_id":"c"`},
		{"not read", "write --scope s --json --input", []string{`{"page_id":"d","content":"four"}`}, `"page_id":"d"`},
		{`{"page_id":"e","content":"five"}`, "write --scope s --json --input -", nil, `"page_id":"e"`},
		{`{"page_id":"f","content":"six"}`, "write --scope s --json -", nil, `"page_id":"f"`},
		{`{"page_id":"a"}`, "read --scope s --json", nil, `"content":"one"`},
		{`{"tier":"core"}`, "page-in b --scope s --json", nil, `"tier":"core"`},
		{"not read", "read --scope s --json", []string{`{"page_id":"b"}`}, `"content":"two"`},
		{"two\n", "search --scope s --json -", nil, `"page_id":"b"`},
		{`{"scope":"s","page_id":"a"}`, "read --json", nil, `"content":"one"`},
		{`{"scope":["s"],"page_id":"a"}`, "read --json --scope s", nil, `"content":"one"`},
		{`{"scope":"s","page_id":"a"}`, `read --json --scope ["s"]`, nil, `"content":"one"`},
		{"", "status --json --namespace s", nil, `"scope":["s"]`},
		{"", "status --json --scope s --scope t", nil, `"scope":["s","t"]`},
		{"", `status --json --scope ["s","t"]`, nil, `"scope":["s","t"]`},
		{"", "status --json --scope s --namespace s", nil, `"scope":["s"]`},
	}
	for _, tt := range tests {
		if got := mustRun(t, dir, tt.stdin, tt.args, tt.more...); !strings.Contains(got.stdout, tt.want) || got.stderr != "" {
			t.Errorf("%s %v: %s%s", tt.args, tt.more, got.stdout, got.stderr)
		}
	}
}

// TestContextRefused holds what is refused, before a store is made where that can
// be told.
func TestContextRefused(t *testing.T) {
	tests := []struct {
		stdin, args string
		stderr      string
	}{
		{"", "status", "scope: is missing"},
		{`{"content":"x"}`, "write", "scope: is missing"},
		{"", "write --scope s", "content: is missing"},
		{"", "read --scope s", "PAGE_ID is missing"},
		{`{"content":"x","titel":"y"}`, "write --scope s", "did you mean title?"},
		{`{"content":"x"} {}`, "write --scope s", "more text"},
		{`[]`, "write --scope s", "must be an object"},
		{`{"scope":"other","content":"x"}`, "write --scope s", "scope: of the input is another one than --scope"},
		{`{"scope":["s","t"],"content":"x"}`, "write --scope s", "scope: of the input is another one than --scope"},
		{`{"scope":["s","t"],"content":"x"}`, "write --namespace t", "namespace: is not the first string of scope"},
		{`{"namespace":"t","content":"x"}`, "write --namespace s", "namespace: of the input is another one"},
		{`{"content":"x"}`, `write --scope ["s"`, "--scope takes a string or a JSON array"},
		{`{"content":"x"}`, "write --scope s --scope t --namespace u", "namespace: is not the first string of scope"},
		{`{"content":"x"}`, "write --scope s --unit tokens", "tokenizer: is missing"},
		{`{"content":"x"}`, "write --scope s {} {}", "takes no argument"},
		{"", "nope --scope s", `there is no command "nope" here`},
		{"", "page-inn --scope s", "did you mean page-in?"},
	}
	for _, tt := range tests {
		c := cmdLine{stdin: tt.stdin, args: append([]string{"--data", "/nowhere", "context"}, strings.Fields(tt.args)...), deps: noStore(t)}
		if got := c.run(t); got.code != op.ExitUsage || got.stdout != "" || !strings.Contains(got.stderr, tt.stderr) {
			t.Errorf("%s < %s: exit %d, %s", tt.args, tt.stdin, got.code, got.stderr)
		}
	}
	got := cmdLine{args: []string{"--data", "/nowhere", "context", "write", "--scope", "s"}, deps: func(d *Deps) {
		noStore(t)(d)
		d.Stdin = iotest.ErrReader(io.ErrUnexpectedEOF)
	}}.run(t)
	if got.code != op.ExitFailed || !strings.Contains(got.stderr, "standard input") {
		t.Errorf("exit %d, %s", got.code, got.stderr)
	}
}

// TestContextDomain holds which settings name a context.
func TestContextDomain(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct {
		env  map[string]string
		args string
		want string
	}{
		{map[string]string{"LOCI_NAMESPACE": "env"}, "status", `"scope":["env"]`},
		{map[string]string{"LOCI_NAMESPACE": "env", "LOCI_SCOPE": "private"}, "status", `"scope":["env"]`},
		{map[string]string{"LOCI_NAMESPACE": "env"}, "status --scope s", `"scope":["s"]`},
		{map[string]string{"LOCI_NAMESPACE": "env"}, `status {"scope":"s"}`, `"scope":["s"]`},
	} {
		args := append([]string{"--data", dir, "--json", "context"}, strings.Fields(tt.args)...)
		if got := (cmdLine{env: tt.env, args: args}).run(t); !strings.Contains(got.stdout, tt.want) {
			t.Errorf("%v %s: %s%s", tt.env, tt.args, got.stdout, got.stderr)
		}
	}
}

// TestContextExits holds the exit codes, and that programs are told the context
// store's own codes.
func TestContextExits(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "", "write --scope s --page-id a --content one --tier core")
	for _, tt := range []struct {
		args    string
		code    int
		reason  string
		details string
	}{
		{"read nobody --scope s", op.ExitNotFound, "not_found", ""},
		{"read a --scope t", op.ExitNotFound, "not_found", ""},
		{"write --scope s --page-id a --content two --expected-version 7", op.ExitConflict, "version_conflict", `"current":1`},
		{"write --scope s --page-id a --content two", op.ExitConflict, "version_conflict", `"current":1`},
		{"page-out a --scope s", op.ExitConflict, "pinned", ""},
		{"status --scope s --budget 500", op.ExitConflict, "config_mismatch", `"budget":8192`},
		{"write --scope s --content x --links nobody", op.ExitUsage, "link_invalid", `"link":"nobody"`},
		{"compact a --scope s --summary longer --expected-version 1", op.ExitUsage, "not_shorter", `"current_bytes":3`},
		{"metrics --scope s --limit 0", op.ExitUsage, "invalid_argument", ""},
		{"metrics --scope s --nope 0", op.ExitUsage, "", ""},
	} {
		got := contextRun(t, dir, "", tt.args+" --json")
		var e struct {
			Error op.Failure `json:"error"`
		}
		if err := json.Unmarshal([]byte(got.stderr), &e); err != nil || got.code != tt.code || e.Error.Reason != tt.reason ||
			!strings.Contains(got.stderr, tt.details) || got.stdout != "" {
			t.Errorf("%s: exit %d, %s%s", tt.args, got.code, got.stdout, got.stderr)
		}
	}
	db, err := loci.Open(t.Context(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := contextRun(t, dir, "", "status --scope s --wait 0s")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got.code != op.ExitLocked {
		t.Errorf("locked: exit %d, %s", got.code, got.stderr)
	}
}

// TestContextTimeout holds that a context operation gives up after --timeout and
// leaves nothing behind.
func TestContextTimeout(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	dir := t.TempDir()
	mustRun(t, dir, "", "write --scope s --page-id a --content one")
	// So long a text takes seconds to analyse, on any machine.
	text := strings.Repeat("The tide table of the northern harbours is an hour late. ", 400_000)
	raw, err := json.Marshal(map[string]any{"content": text, "page_bytes": 512})
	if err != nil {
		t.Fatal(err)
	}
	got := contextRun(t, dir, string(raw), "ingest --scope s --timeout 100ms")
	if got.code != op.ExitFailed || got.stdout != "" || !strings.Contains(got.stderr, "deadline") {
		t.Errorf("exit %d, %.200s%.500s", got.code, got.stdout, got.stderr)
	}
	var status struct {
		Counts struct{ Archive struct{ Pages int64 } }
	}
	if err := json.Unmarshal([]byte(mustRun(t, dir, "", "status --scope s --json").stdout), &status); err != nil {
		t.Fatal(err)
	}
	if status.Counts.Archive.Pages != 1 {
		t.Errorf("%d pages are in the archive, not the one from before", status.Counts.Archive.Pages)
	}
	for _, out := range []string{"99ms", "601s", "0s"} {
		if got := contextRun(t, dir, "", "status --scope s --timeout "+out); got.code != op.ExitUsage || !strings.Contains(got.stderr, "100ms") {
			t.Errorf("--timeout %s: exit %d, %s%s", out, got.code, got.stdout, got.stderr)
		}
	}
}

// TestContextPublishing holds that what people look at is not published, and what
// programs get is.
func TestContextPublishing(t *testing.T) {
	dir := t.TempDir()
	mustRun(t, dir, "", "write --scope s --page-id a --title rules --content one --tier core")
	mustRun(t, dir, "", "write --scope s --page-id b --title log --content two")
	events := func() int {
		t.Helper()
		var m struct{ Events []json.RawMessage }
		if err := json.Unmarshal([]byte(mustRun(t, dir, "", "metrics --scope s --json").stdout), &m); err != nil {
			t.Fatal(err)
		}
		return len(m.Events)
	}
	executors := `{"query":"two","holder":"x","executors":[{"id":"x","queue_ms":0,"compute_ms":1}]}`
	for _, args := range []string{"snapshot", "prefix", "render", "recall two", "dashboard", "status"} {
		mustRun(t, dir, "", args+" --scope s")
	}
	mustRun(t, dir, executors, "prepare-task --scope s")
	if n := events(); n != 0 {
		t.Fatalf("looking published %d texts", n)
	}
	mustRun(t, dir, "", "snapshot --scope s --json --publish=false")
	mustRun(t, dir, "", "render --scope s --json")
	if n := events(); n != 0 {
		t.Fatalf("%d texts were published that were not to be", n)
	}
	for i, args := range []string{"snapshot --json", "prefix --json --reconfigure --budget 600", "snapshot"} {
		mustRun(t, dir, "", args+" --scope s")
		if n := events(); n != 1 {
			t.Errorf("%d: %s: %d texts are published", i, args, n)
		}
	}
	mustRun(t, dir, "", "write --scope s --page-id c --title more --content three --tier working")
	mustRun(t, dir, executors, "prepare-task --scope s --json")
	if n := events(); n != 2 {
		t.Errorf("%d texts are published", n)
	}
}

// TestContextHuman holds what people see of each operation.
func TestContextHuman(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("The keeper logs every light that he sees. ", 30)
	for _, tt := range []struct {
		args, stdin    string
		stdout, stderr string // parts
	}{
		{"status", "", "budget         8192 bytes", ""},
		{"metrics", "", "Nothing was published yet", ""},
		{"checkpoints", "", "There are no checkpoints", ""},
		{"search nothing", "", "Nothing was found", ""},
		{"write", `{"page_id":"a","title":"rules","content":"one\u202eline","tier":"core"}`, "Page a@1 written, now in core", ""},
		{"write", `{"page_id":"a","title":"rules","content":"one\u202eline","tier":"core","expected_version":1}`, "Page a@1 is like that already", ""},
		{"render", "", `{"vc":1,"core":[` + "\n" + `{"id":"a","version":1,`, "stable prefix "},
		{"snapshot", "", `"working":[` + "\n]}\n", "generation 0"},
		{"snapshot --quiet", "", `"working":[` + "\n]}\n", ""},
		{"prefix", "", `"working":[` + "\n]}\n", "of 8192 bytes (1%, low)"},
		{"read a", "", "one\u202eline\n", "a@1 · core · rules"},
		{"ingest", `{"content":"` + text + `","page_bytes":200,"title":"log"}`, "stored in the archive, p1 to p", ""},
		{"search keeper", "", "PAGE", ""},
		{"recall keeper", "", "Brought in: ", "of 8192 bytes"},
		{"page-out p1", "", "p1@1", ""},
		{"page-in p1", "", "p1@1", ""},
		{"history p1", "", "VERSION", ""},
		{"write", `{"page_id":"i1","title":"first","summary":"s","content":"x","outline":true}`, "now in the outline", ""},
		{"write", `{"page_id":"i2","title":"second","summary":"s","content":"x","outline":true}`, "now in the outline", ""},
		{"write", `{"page_id":"i3","title":"third","summary":"s","content":"long","outline":true}`, "now in the outline", ""},
		{"compact i3 --summary x --expected-version 1", "", "compacted from 4 to 1 bytes", ""},
		{"fold", "", "There is nothing to fold: the outline has 3 rows", ""},
		{"checkpoint --label noon", "", "Checkpoint #", ""},
		{"checkpoints", "", "noon", ""},
		{"fold --keep 1", "", "2 rows folded into ", ""},
		{"organize p1 --threshold 0.1", "", "compared by tf-idf", ""},
		{"record-usage --input-tokens 10 --cache-read-tokens 30", "", "40 input tokens recorded, 75.0% of them from the cache", ""},
		{"record-usage --input-tokens 10 --source simulated", "", "recorded", ""},
		{"usage", "", "billed: 1 call, 40 input tokens, hit rate 75.0%", ""},
		{"usage", "", "simulated, billed by nobody: 1 call", ""},
		{"schedule", `{"holder":"x","page_bytes":900,"executors":[{"id":"x","queue_ms":100,"compute_ms":10},{"id":"y","queue_ms":0,"compute_ms":10,"bytes_per_ms":10}]}`, "x (holder)", ""},
		{"prepare-task", `{"query":"keeper","holder":"x","executors":[{"id":"x","queue_ms":0,"compute_ms":1}]}`, "EXECUTOR", "of 8192 bytes"},
		{"replacement-policy", "", "manual", ""},
		{"set-policy --mode turns", "", "turns", ""},
		{"policy-tick", "", "Turn 1; the policy has nothing to do", ""},
		{"policy-tick --force", "", "The policy ran (force)", ""},
		{"unpin a", "", "Page a@1 unpinned, now in working", ""},
		{"status", "", "PAGE", ""},
		{"forget a", "", "Page a removed for good, with 1 revision", ""},
	} {
		got := mustRun(t, dir, tt.stdin, tt.args+" --scope s")
		if !strings.Contains(got.stdout, tt.stdout) || !strings.Contains(got.stderr, tt.stderr) || tt.stderr == "" && got.stderr != "" {
			t.Errorf("%s:\n%s%s", tt.args, got.stdout, got.stderr)
		}
	}
	mustRun(t, dir, "", "snapshot --scope s --json")
	if got := mustRun(t, dir, "", "metrics --scope s"); !strings.Contains(got.stdout, "GENERATION") || !strings.Contains(got.stdout, "1 change in all") {
		t.Error(got.stdout)
	}
	if got := mustRun(t, dir, "", "snapshot --scope s --since 1"); got.stdout != "Nothing has changed since generation 1\n" {
		t.Error(got.stdout)
	}
}
