package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/op"
)

func setupLine(t *testing.T, home string, args ...string) outcome {
	t.Helper()
	return cmdLine{args: append([]string{"setup"}, args...), deps: func(d *Deps) {
		d.HomeDir = func() (string, error) { return home, nil }
		d.WorkDir = func() (string, error) { return filepath.Join(home, "repo"), nil }
		d.Executable = func() (string, error) { return "/opt/loci/loci", nil }
		noStore(t)(d)
	}}.run(t)
}

func TestSetup(t *testing.T) {
	home := t.TempDir()
	putFiles(t, home, map[string]string{"repo/.git/HEAD": "ref", ".claude.json": "{\n  \"theme\": \"dark\"\n}\n", ".cursor/": ""})
	if got := setupLine(t, home); got.code != 0 || !strings.Contains(got.stdout, "found, not set up: loci setup cursor") {
		t.Errorf("%+v", got)
	}
	if got := setupLine(t, home, "claude", "--dry-run"); got.code != 0 || !strings.Contains(got.stdout, "+  \"mcpServers\": {") {
		t.Errorf("%+v", got)
	}
	raw, err := os.ReadFile(filepath.Join(home, ".claude.json"))
	if err != nil || strings.Contains(string(raw), "loci") {
		t.Fatalf("a dry run wrote %s, %v", raw, err)
	}
	got := setupLine(t, home, "claude", "--json")
	var res struct {
		Clients []setupDone `json:"clients"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &res); err != nil || got.code != 0 || len(res.Clients[0].Changes) != 2 || res.Clients[0].Changes[0].Backup == "" {
		t.Fatalf("%v: %+v", err, got)
	}
	if raw, err = os.ReadFile(filepath.Join(home, ".claude", "settings.json")); err != nil || !strings.Contains(string(raw), `"/opt/loci/loci hook prompt --client claude"`) {
		t.Errorf("%s, %v", raw, err)
	}
	if got := setupLine(t, home, "claude"); got.code != 0 || !strings.Contains(got.stdout, "nothing to do") {
		t.Errorf("%+v", got)
	}
	if got := setupLine(t, home, "claude", "--remove"); got.code != 0 || !strings.Contains(got.stdout, "taken out") {
		t.Errorf("%+v", got)
	}
	if raw, err = os.ReadFile(filepath.Join(home, ".claude.json")); err != nil || string(raw) != "{\n  \"theme\": \"dark\"\n}\n" {
		t.Errorf("%q, %v", raw, err)
	}
	if got := setupLine(t, home, "cursor", "--project"); got.code != 0 {
		t.Errorf("%+v", got)
	}
	if _, err := os.Stat(filepath.Join(home, "repo", ".cursor", "mcp.json")); err != nil {
		t.Error(err)
	}
	if got := setupLine(t, home, "codex", "--print"); got.code != 0 || !strings.Contains(got.stdout, "[mcp_servers.loci]") {
		t.Errorf("%+v", got)
	}
}

func TestSetupRefuses(t *testing.T) {
	home := t.TempDir()
	putFiles(t, home, map[string]string{".cursor/mcp.json": "{broken"})
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"cursr"}, op.ExitUsage, "did you mean cursor?"},
		{[]string{"--remove"}, op.ExitUsage, "name a client"},
		{[]string{"cursor"}, op.ExitUsage, "left as it is"},
		{[]string{"windsurf", "--project"}, op.ExitUsage, "no repository"},
		{[]string{"gemini", "cursor"}, op.ExitUsage, "left as it is"},
	} {
		if got := setupLine(t, home, c.args...); got.code != c.code || !strings.Contains(got.stderr, c.want) {
			t.Errorf("%v: %+v", c.args, got)
		}
	}
	if _, err := os.Stat(filepath.Join(home, ".gemini")); err == nil {
		t.Error("one client's files were written though another's are broken")
	}
	got := cmdLine{args: []string{"setup", "cursor"}}.run(t)
	if got.code == 0 || !strings.Contains(got.stderr, "no home directory") {
		t.Errorf("no home: %+v", got)
	}
	got = cmdLine{args: []string{"setup", "cursor", "--data", "/nowhere"}, deps: func(d *Deps) {
		d.HomeDir = func() (string, error) { return home, nil }
		d.Executable = func() (string, error) { return filepath.Join(os.TempDir(), "go-build1", "loci"), nil }
	}}.run(t)
	if !strings.Contains(got.stderr, "made by go run") {
		t.Errorf("a passing program: %+v", got)
	}
}
