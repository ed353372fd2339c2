package cli

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/valid"
)

// noWorkDir keeps the repository that the tests run in from naming their namespace.
func noWorkDir() (string, error) { return "", errors.New("none") }

// put writes files under a folder; a name that ends in a slash is a folder.
func putFiles(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o755); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestProject(t *testing.T) {
	root := t.TempDir()
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	putFiles(t, root, map[string]string{
		"home/.git/HEAD": "ref", "home/plain/": "", "home/harbour/.git/HEAD": "ref", "home/harbour/src/deep/": "",
		"home/harbour/.git/worktrees/fix/commondir": "../..\n", "home/harbour/.git/worktrees/fix/HEAD": "ref",
		"home/fix/.git":                                   "gitdir: " + root + "/home/harbour/.git/worktrees/fix\n",
		"home/fix/sub/":                                   "",
		"home/harbour/pier/.git":                          "gitdir: ../.git/modules/pier\n",
		"home/harbour/.git/modules/pier/HEAD":             "ref",
		"home/bare.git/worktrees/w/commondir":             root + "/home/bare.git\n",
		"home/w/.git":                                     "gitdir: ../bare.git/worktrees/w",
		"home/broken/.git":                                "something else",
		"home/long/.git":                                  strings.Repeat("gitdir: x", 1000),
		"home/empty/.git/":                                "",
		"home/潮水 表/.git/HEAD":                             "ref",
		"home/ctl\x01 /.git/HEAD":                         "ref",
		"home/" + strings.Repeat("n", 200) + "/.git/HEAD": "ref",
	})
	a := newApp(Deps{Args: []string{}, HomeDir: func() (string, error) { return filepath.Join(root, "home"), nil }})
	for _, c := range []struct{ dir, name, root string }{
		{"home", "", ""}, {"home/plain", "", ""}, {"home/not/there", "", ""},
		{"home/harbour", "harbour", "home/harbour"}, {"home/harbour/src/deep", "harbour", "home/harbour"},
		{"home/fix/sub", "harbour", "home/fix"}, {"home/harbour/pier", "pier", "home/harbour/pier"}, {"home/w", "bare", "home/w"},
		{"home/broken", "", ""}, {"home/long", "", ""}, {"home/empty", "", ""}, {"home/潮水 表", "潮水 表", "home/潮水 表"},
		{"home/ctl\x01 ", "ctl", "home/ctl\x01 "}, {"home/" + strings.Repeat("n", 200), strings.Repeat("n", 200), "home/" + strings.Repeat("n", 200)},
	} {
		p, ok := a.projectOf(filepath.Join(root, filepath.FromSlash(c.dir)))
		if ok != (c.name != "") || p.Name != c.name && ok || ok && p.Root != filepath.Join(root, filepath.FromSlash(c.root)) {
			t.Errorf("%s: %+v, %v", c.dir, p, ok)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "home", "harbour", "src"), link); err != nil {
		t.Fatal(err)
	}
	if p, ok := a.projectOf(link); !ok || p.Name != "harbour" {
		t.Errorf("by a link: %+v, %v", p, ok)
	}
}

func FuzzNamespaceName(f *testing.F) {
	for _, s := range []string{"", ".", "*", " a ", "\xff", "潮水", strings.Repeat("潮", 300), "a\x00b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		name := namespaceName(s)
		if name == "" {
			return
		}
		if err := valid.Label("namespace", name, loci.MaxNamespaceBytes); err != nil || name == loci.Every {
			t.Errorf("%q became %q: %v", s, name, err)
		}
		if again := namespaceName(name); again != name {
			t.Errorf("%q became %q and then %q", s, name, again)
		}
	})
}

func TestWhere(t *testing.T) {
	root := t.TempDir()
	putFiles(t, root, map[string]string{"harbour/.git/HEAD": "ref", "plain/": "", "config.json": `{"namespace":"fromfile"}`})
	for _, c := range []struct {
		name, dir string
		args      []string
		env       map[string]string
		want, why string
	}{
		{"nothing", "plain", nil, nil, "default", "lies in no repository"},
		{"repository", "harbour", nil, nil, "harbour", "lies in the repository"},
		{"file", "harbour", []string{"--config", filepath.Join(root, "config.json")}, nil, "fromfile", "configuration file"},
		{"variable", "harbour", []string{"--config", filepath.Join(root, "config.json")}, map[string]string{"LOCI_NAMESPACE": "v"}, "v", "LOCI_NAMESPACE"},
		{"flag", "harbour", []string{"--namespace", "f"}, map[string]string{"LOCI_NAMESPACE": "v"}, "f", "command line"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := cmdLine{args: append([]string{"where", "--json", "--data", filepath.Join(root, "data")}, c.args...), env: c.env, deps: func(d *Deps) {
				d.WorkDir = func() (string, error) { return filepath.Join(root, c.dir), nil }
			}}.run(t)
			var w whereIs
			if err := json.Unmarshal([]byte(got.stdout), &w); err != nil || got.code != 0 {
				t.Fatalf("%v: %+v", err, got)
			}
			if w.Namespace != c.want || !strings.Contains(w.NamespaceWhy, c.why) || w.DataExists {
				t.Errorf("%+v", w)
			}
		})
	}
}

// TestProjectIsTheNamespace: what is remembered in a repository is found in it and
// not beside it.
func TestProjectIsTheNamespace(t *testing.T) {
	root := t.TempDir()
	putFiles(t, root, map[string]string{"harbour/.git/HEAD": "ref", "plain/": ""})
	run := func(dir string, args ...string) outcome {
		t.Helper()
		got := cmdLine{args: append([]string{"--embedder", "none", "--json", "--data", filepath.Join(root, "data")}, args...), deps: func(d *Deps) {
			d.WorkDir = func() (string, error) { return filepath.Join(root, dir), nil }
		}}.run(t)
		if got.code != 0 {
			t.Fatalf("%v: %+v", args, got)
		}
		return got
	}
	if got := run("harbour", "remember", "The tide table is updated weekly."); !strings.Contains(got.stdout, `"namespace":"harbour"`) {
		t.Error(got.stdout)
	}
	if got := run("harbour", "recall", "tide"); !strings.Contains(got.stdout, "weekly") {
		t.Error(got.stdout)
	}
	if got := run("plain", "recall", "tide"); strings.Contains(got.stdout, "weekly") {
		t.Error(got.stdout)
	}
	if got := run("plain", "call", "recall", `{"query":"tide","namespace":"harbour"}`); !strings.Contains(got.stdout, "weekly") {
		t.Error(got.stdout)
	}
}
