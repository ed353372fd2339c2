package setup

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func request(home string) *Request {
	return &Request{Env: Env{OS: "linux", Home: home, Config: filepath.Join(home, ".config")}, Server: server()}
}

func apply(t *testing.T, name string, r *Request) []Change {
	t.Helper()
	c, ok := Lookup(name)
	if !ok {
		t.Fatal(name)
	}
	changes, err := c.Plan(r)
	if err != nil {
		t.Fatal(err)
	}
	for i := range changes {
		if err := changes[i].Apply(time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)); err != nil {
			t.Fatal(err)
		}
	}
	return changes
}

// TestEveryClient sets each one up for the user and for a repository, looks, and
// takes it out again.
func TestEveryClient(t *testing.T) {
	for _, c := range Clients() {
		for _, project := range []bool{false, true} {
			home := t.TempDir()
			r := request(home)
			r.Env.Project, r.Project = filepath.Join(home, "repo"), project
			if file, _ := c.Files(&r.Env, project); file == "" {
				if _, err := c.Plan(r); err == nil || !strings.Contains(err.Error(), "repository") {
					t.Errorf("%s: %v", c.Name, err)
				}
				continue
			}
			for _, ch := range apply(t, c.Name, r) {
				if !ch.Changed || ch.Exists || ch.Backup != "" || !strings.Contains(ch.Diff, "+") || !strings.HasPrefix(ch.Path, home) {
					t.Errorf("%s: %+v", c.Name, ch)
				}
			}
			s, ok := c.Look(&r.Env, project)
			if !ok || s.Command != r.Server.Command || s.Problem != "" || len(s.Hooks) != len(c.hooks) || len(s.Missing) > 0 || !s.Installed {
				t.Errorf("%s: %+v", c.Name, s)
			}
			for _, p := range s.HookPaths {
				if p != r.Server.Command {
					t.Errorf("%s: a hook starts %s", c.Name, p)
				}
			}
			for _, ch := range apply(t, c.Name, r) {
				if ch.Changed || ch.Diff != "" {
					t.Errorf("%s again: %+v", c.Name, ch)
				}
			}
			r.Remove = true
			apply(t, c.Name, r)
			if s, _ := c.Look(&r.Env, project); s.Command != "" || len(s.Hooks) > 0 {
				t.Errorf("%s after it was removed: %+v", c.Name, s)
			}
		}
	}
}

func TestApply(t *testing.T) {
	home := t.TempDir()
	real := filepath.Join(home, "dotfiles", "mcp.json")
	link := filepath.Join(home, ".cursor", "mcp.json")
	before := "{\n  // mine\n  \"mcpServers\": {}\n}\n"
	for _, dir := range []string{filepath.Dir(real), filepath.Dir(link)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(real, []byte(before), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, link); err != nil {
		t.Fatal(err)
	}
	changes := apply(t, "cursor", request(home))
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is gone: %v, %v", info, err)
	}
	if info, err = os.Stat(real); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
	kept, err := os.ReadFile(changes[0].Backup)
	if err != nil || string(kept) != before || filepath.Dir(changes[0].Backup) != filepath.Dir(changes[0].real) {
		t.Errorf("the copy %s is %q, %v", changes[0].Backup, kept, err)
	}
	r := request(home)
	r.Remove = true
	c, _ := Lookup("cursor")
	back, err := c.Plan(r)
	if err != nil {
		t.Fatal(err)
	}
	if err := back[0].Apply(time.Date(2026, 5, 1, 11, 0, 0, 0, time.UTC)); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(real); err != nil || string(raw) != before {
		t.Errorf("removed, it is %q, %v", raw, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(real), "*.loci-new-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// TestDiffHoldsNoSecrets checks that other servers' keys, which stand beside what
// changes, are not shown; the file keeps them.
func TestDiffHoldsNoSecrets(t *testing.T) {
	home := t.TempDir()
	path := filepath.Join(home, ".cursor", "mcp.json")
	key := "ghp_" + "aB3dE6gH9jK2mN5pQ8" + "sT1vW4xY7zA0cF3hJ6"
	before := `{"mcpServers":{"forge":{"command":"forge","env":{"FORGE_TOKEN":"` + key + `"}}}}`
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	diff := apply(t, "cursor", request(home))[0].Diff
	if strings.Contains(diff, key) || !strings.Contains(diff, `"FORGE_TOKEN":"[redacted: `) {
		t.Errorf("the difference is shown as\n%s", diff)
	}
	if raw, err := os.ReadFile(path); err != nil || !strings.Contains(string(raw), key) {
		t.Errorf("the file is %s, %v", raw, err)
	}
}

// TestBadDays: nothing is written where something is not as it should be.
func TestBadDays(t *testing.T) {
	cursor, _ := Lookup("cursor")
	home := t.TempDir()
	file := filepath.Join(home, ".cursor", "mcp.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes, err := cursor.Plan(request(home))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(`{"a": 1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := changes[0].Apply(time.Now()); err == nil || !strings.Contains(err.Error(), "changed meanwhile") {
		t.Errorf("changed meanwhile: %v", err)
	}
	for name, breakIt := range map[string]func() error{
		"broken":   func() error { return os.WriteFile(file, []byte("{"), 0o600) },
		"too long": func() error { return os.WriteFile(file, []byte("{"+strings.Repeat(" ", maxFile)+"}"), 0o600) },
		"a folder": func() error { return errorsJoin(os.Remove(file), os.Mkdir(file, 0o755)) },
		"dangling": func() error { return errorsJoin(os.Remove(file), os.Symlink(filepath.Join(home, "nothing"), file)) },
	} {
		if err := os.RemoveAll(file); err != nil {
			t.Fatal(err)
		}
		if name != "broken" && name != "too long" {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := breakIt(); err != nil {
			t.Fatal(err)
		}
		if _, err := cursor.Plan(request(home)); err == nil || !strings.Contains(err.Error(), "left as it is") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, r := range []*Request{{Server: server()}, {Server: server(), Project: true}} {
		if _, err := cursor.Plan(r); err == nil {
			t.Error("no home, and it has a plan")
		}
	}
	if _, ok := cursor.Look(&Env{}, false); ok {
		t.Error("no home, and there is something to look at")
	}
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return // whom no mode stops
	}
	locked := t.TempDir()
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	changes, err = cursor.Plan(request(locked))
	if err != nil {
		t.Fatal(err)
	}
	if err := changes[0].Apply(time.Now()); err == nil || !strings.Contains(err.Error(), "permission") {
		t.Errorf("a home that cannot be written: %v", err)
	}
}

func errorsJoin(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestShell(t *testing.T) {
	for _, c := range []struct{ os, in, want string }{
		{"linux", "/usr/bin/loci", "/usr/bin/loci"}, {"linux", "/a b/it's", `'/a b/it'\''s'`}, {"linux", "$(x)", "'$(x)'"},
		{"windows", `C:\a\loci.exe`, `"C:\a\loci.exe"`}, {"linux", "", "''"}, {"linux", "~x", "'~x'"},
	} {
		if got := Shell(c.os, c.in); got != c.want {
			t.Errorf("%s, %q: %s", c.os, c.in, got)
		}
	}
}
