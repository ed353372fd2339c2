package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/pager"
)

// TestDashboard shows a context in all the ways that there are, none of which
// publishes anything.
func TestDashboard(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "dashboard.html")
	in := ""
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := cmdLine{args: append([]string{"--data=" + filepath.Join(folder, "data"), "--embedder=none"}, args...), stdin: in}.run(t)
		if got.code != code {
			t.Fatalf("loci %s: %+v", strings.Join(args, " "), got)
		}
		return got
	}
	scope := []string{"--scope", "project", "--scope", "session-1"}
	with := func(args ...string) []string { return append(args, scope...) }
	model := func(got outcome) (m pager.Dashboard) {
		t.Helper()
		if err := json.Unmarshal([]byte(got.stdout), &m); err != nil {
			t.Fatalf("%v: %.300s", err, got.stdout)
		}
		return m
	}

	if got := run(0, with("context", "dashboard")...); !strings.Contains(got.stdout, "33 of 8192 bytes") || !strings.Contains(got.stdout, "nothing published yet") {
		t.Errorf("an empty context: %+v", got)
	}
	in = `{"content": "The build takes 40 s.", "title": "</script><script>alert(1)</script>", "tier": "core"}`
	run(0, with("context", "write", "--json")...)
	in = ""
	run(0, with("context", "snapshot", "--json")...)
	in = `{"content": "The table is an hour late.", "title": "late", "tier": "working"}`
	run(0, with("context", "write", "--json")...)
	in = `{"source": "simulated", "input_tokens": 10, "cache_read_tokens": 30}`
	run(0, with("context", "record-usage", "--json")...)
	in = ""

	got := run(0, with("context", "dashboard")...)
	for _, want := range []string{"project / session-1", "generation 1, changes wait to be published", "core     1", "working  1",
		"Simulated accounting: 1 call that nobody billed, cache hit rate 75.0%", "Policy manual"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("no %q in\n%s", want, got.stdout)
		}
	}
	if called := run(0, "call", "context.dashboard", `{"scope": ["project", "session-1"]}`); called.stdout != got.stdout {
		t.Errorf("called by its name it says\n%s", called.stdout)
	}
	m := model(run(0, with("context", "dashboard", "--json", "--events", "1")...))
	if m.Now.Generation != 1 || !m.Now.Unpublished || len(m.Residency) != 1 || len(m.Pages) != 2 {
		t.Errorf("the model is %+v", m)
	}

	if got := run(0, with("context", "dashboard", "--out", file)...); !strings.Contains(got.stdout, "Drawn into ") {
		t.Errorf("%+v", got)
	}
	page := contents(t, file)
	if !strings.HasPrefix(page, "<!doctype html>") || strings.Contains(page, "<script>alert") || !strings.Contains(page, `"title":"late"`) {
		t.Errorf("the page is %.300s", page)
	}
	if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if got := run(op.ExitFailed, with("context", "dashboard", "--out", file)...); !strings.Contains(got.stderr, "stays as it is") || contents(t, file) != page {
		t.Errorf("%+v", got)
	}
	in = `{"content": "Later.", "title": "later"}`
	run(0, with("context", "write", "--json")...)
	in = ""
	m = model(run(0, with("context", "dashboard", "--out", file, "--force", "--json")...))
	if again := contents(t, file); again == page || !strings.Contains(again, `"title":"later"`) || m.Now.Generation != 1 {
		t.Errorf("the page was not replaced, or something was published: %+v", m.Now)
	}
	if got := run(0, with("context", "dashboard", "--out", "-")...); !strings.HasPrefix(got.stdout, "<!doctype html>") || !strings.HasSuffix(got.stdout, "</html>\n") {
		t.Errorf("%.300s", got.stdout)
	}
	run(op.ExitUsage, with("context", "dashboard", "--out", "-", "--json")...)
	for _, bad := range []string{filepath.Join(folder, "none", "x.html"), folder} {
		run(op.ExitFailed, with("context", "dashboard", "--out", bad)...)
		run(op.ExitFailed, with("context", "dashboard", "--out", bad, "--force")...)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 2 {
		t.Errorf("besides the data and the page there are %v, %v", left, err)
	}
	run(op.ExitUsage, with("context", "dashboard", "--events", "0")...)
}

func contents(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestContextDemo(t *testing.T) {
	folder := t.TempDir()
	file, keep := filepath.Join(folder, "session.html"), filepath.Join(folder, "kept")
	data := "--data=" + filepath.Join(folder, "data")
	got := cmdLine{args: []string{data, "context", "demo", "--out", file, "--keep", keep}, deps: noStore(t)}.run(t)
	if got.code != 0 || !strings.Contains(got.stdout, "What each kind of change did to the prefix") || !strings.Contains(got.stdout, "Drawn into ") {
		t.Fatalf("%+v", got)
	}
	if page := contents(t, file); !strings.Contains(page, `"source":"simulated"`) {
		t.Errorf("the page is %.300s", page)
	}
	kept := cmdLine{args: []string{"--data=" + keep, "--embedder=none", "context", "dashboard", "--scope", "demo", "--scope", "tide-table"}}.run(t)
	if kept.code != 0 || !strings.Contains(kept.stdout, "demo / tide-table") {
		t.Errorf("%+v", kept)
	}
	got = cmdLine{args: []string{data, "context", "demo", "--json"}, deps: noStore(t)}.run(t)
	var result struct {
		Report    string          `json:"report"`
		Dashboard pager.Dashboard `json:"dashboard"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil || got.code != 0 || got.stderr != "" ||
		!strings.Contains(result.Report, "turn 10") || len(result.Dashboard.Usage.Records) != 40 {
		t.Errorf("%v: %+v", err, got)
	}
	if got := (cmdLine{args: []string{data, "context", "demo", "--out", "-"}}).run(t); got.code != op.ExitUsage {
		t.Errorf("%+v", got)
	}
}
