package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDoctorClients(t *testing.T) {
	home := t.TempDir()
	program := filepath.Join(home, "bin", "loci")
	putFiles(t, home, map[string]string{"bin/loci": "", "other/loci": "", "repo/.git/HEAD": "ref", ".cursor/": "", ".gemini/settings.json": "{broken"})
	doctor := func(lint error) outcome {
		return cmdLine{args: []string{"doctor", "--data", filepath.Join(home, "data")}, deps: func(d *Deps) {
			d.HomeDir = func() (string, error) { return home, nil }
			d.WorkDir = func() (string, error) { return filepath.Join(home, "repo"), nil }
			d.Executable = func() (string, error) { return program, nil }
			d.LintTools = func() error { return lint }
		}}.run(t)
	}
	set := func(args ...string) outcome {
		t.Helper()
		got := cmdLine{args: append([]string{"setup"}, args...), deps: func(d *Deps) {
			d.HomeDir = func() (string, error) { return home, nil }
			d.Executable = func() (string, error) { return program, nil }
		}}.run(t)
		if got.code != 0 {
			t.Fatalf("%+v", got)
		}
		return got
	}
	expect := func(got outcome, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(got.stdout, part) {
				t.Errorf("%q is not in\n%s", part, got.stdout)
			}
		}
	}
	got := doctor(nil)
	expect(got, "namespace: repo", "not set up: cursor", "client gemini: "+filepath.Join(home, ".gemini", "settings.json"), "tools for models: their schemas")
	set("claude", "cursor")
	if list := set(); strings.Contains(list.stdout, ", but ") {
		t.Errorf("%+v", list)
	}
	expect(doctor(nil), "client claude: set up in", "with hooks", "client cursor: set up in")
	program = filepath.Join(home, "other", "loci")
	expect(doctor(nil), "and this program is "+program, "Set it up again with: loci setup claude")
	if err := os.RemoveAll(filepath.Join(home, "bin")); err != nil {
		t.Fatal(err)
	}
	expect(doctor(nil), "which is not there")
	expect(set(), "which is not there: loci setup claude")
	got = doctor(errors.New("tool x is broken"))
	expect(got, "tool x is broken")
	if got.code == 0 {
		t.Error("a broken tool is no trouble")
	}
}
