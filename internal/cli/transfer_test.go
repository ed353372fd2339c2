package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
)

// TestTransfer moves a store by export and import, and by backup and restore.
func TestTransfer(t *testing.T) {
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	in := ""
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := cmdLine{args: args, stdin: in}.run(t)
		if got.code != code {
			t.Fatalf("loci %s: %+v", strings.Join(args, " "), got)
		}
		return got
	}
	a, b, c := "--data="+at("a"), "--data="+at("b"), "--data="+at("c")
	run(0, a, "remember", "The tide table is updated weekly.")
	run(0, a, "remember", "Lamps are lit at seven.", "--namespace", "harbour")

	got := run(0, a, "export", at("all.jsonl"))
	if !strings.Contains(got.stdout, "Exported everything: 2 records, 0 settings, revision 2") {
		t.Errorf("%+v", got)
	}
	if got := run(op.ExitFailed, a, "export", at("all.jsonl")); !strings.Contains(got.stderr, "exists") {
		t.Errorf("%+v", got)
	}
	piped := run(0, a, "export", "--namespace", "harbour")
	if strings.Count(piped.stdout, "\n") != 2 || !strings.Contains(piped.stderr, "namespace harbour: 1 record") {
		t.Errorf("%+v", piped)
	}
	if all := run(0, a, "export", "-", "--namespace", "harbour", "--all", "--quiet"); strings.Count(all.stdout, "\n") != 3 || all.stderr != "" {
		t.Errorf("%+v", all)
	}

	if got := run(0, b, "import", at("all.jsonl"), "--dry-run"); !strings.Contains(got.stdout, "Would import 2 records (memory 2)") {
		t.Errorf("%+v", got)
	}
	run(0, b, "import", at("all.jsonl"))
	if got := run(0, b, "recall", "tide"); !strings.Contains(got.stdout, "updated weekly") {
		t.Errorf("%+v", got)
	}
	in = piped.stdout
	var report struct {
		Kept bool              `json:"kept"`
		IDs  map[string]string `json:"ids"`
	}
	got = run(0, b, "import", "--json")
	if err := json.Unmarshal([]byte(got.stdout), &report); err != nil || report.Kept || report.IDs["2"] != "3" {
		t.Errorf("%v: %+v", err, got)
	}
	in = "nonsense"
	if got := run(op.ExitUsage, b, "import", "-"); !strings.Contains(got.stderr, "line 1") {
		t.Errorf("%+v", got)
	}
	in = ""
	run(op.ExitFailed, b, "import", at("missing"))

	run(0, a, "backup", at("snapshot"))
	got = run(0, a, "restore", at("snapshot"), at("c"))
	if !strings.Contains(got.stdout, "Restored 2 records, revision 2") {
		t.Errorf("%+v", got)
	}
	if got := run(0, c, "recall", "lamps", "--namespace", "harbour"); !strings.Contains(got.stdout, "seven") {
		t.Errorf("%+v", got)
	}
	run(op.ExitFailed, a, "restore", at("snapshot"), at("c"))
	run(op.ExitUsage, a, "restore", at("all.jsonl"), at("d"))
	run(op.ExitUsage, a, "restore", at("snapshot"))
	if _, err := os.Stat(at("d")); err == nil {
		t.Error("a failed restore made a folder")
	}
}

// TestPages has contexts named where people look at a store as a whole.
func TestPages(t *testing.T) {
	folder := t.TempDir()
	run := func(code int, args ...string) outcome {
		t.Helper()
		got := cmdLine{args: append([]string{"--data=" + filepath.Join(folder, "a"), "--namespace=p"}, args...)}.run(t)
		if got.code != code {
			t.Fatalf("loci %s: %+v", strings.Join(args, " "), got)
		}
		return got
	}
	scope := `--scope=["p","s"]`
	run(0, "context", "write", scope, `{"page_id":"light","title":"Lighthouse","summary":"Red.","content":"The lighthouse is red."}`)
	run(0, "context", "write", scope, `{"page_id":"long","content":"`+strings.Repeat("lighthouse ", 100)+`"}`)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"health"}, "counts / page          2"},
		{[]string{"search", "lighthouse", "--kinds=page", scope}, "Lighthouse\n  Red.\n  page:2 · light@1 · archive"},
		{[]string{"search", "lighthouse", "--kinds=page", scope}, "…\n  page:3 · long@1 · archive"},
		{[]string{"search", "lighthouse", "--kinds=page", "--scope=public"}, ""},
		{[]string{"doctor", "--deep"}, "database: integrity checked"},
		{[]string{"export", filepath.Join(folder, "x")}, "2 records, 0 settings, 1 context"},
		{[]string{"import", filepath.Join(folder, "x"), "--dry-run", "--data=" + filepath.Join(folder, "b")}, "Would import 2 records (page 2), 0 settings, 1 context"},
	} {
		got := run(0, c.args...)
		if !strings.Contains(got.stdout, c.want) || c.want == "" && strings.Contains(got.stdout, "page:") {
			t.Errorf("loci %s: %+v", strings.Join(c.args, " "), got)
		}
	}
	if got := run(op.ExitConflict, "import", filepath.Join(folder, "x")); !strings.Contains(got.stderr, `the store has a context ["p","s"] already`) {
		t.Errorf("%+v", got)
	}
}
