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
		"house/.git/HEAD": "ref", "house/plain/": "", "house/harbour/.git/HEAD": "ref", "house/harbour/src/deep/": "",
		"house/harbour/.git/worktrees/fix/commondir": "../..\n", "house/harbour/.git/worktrees/fix/HEAD": "ref",
		"house/fix/.git":                                   "gitdir: " + root + "/house/harbour/.git/worktrees/fix\n",
		"house/fix/sub/":                                   "",
		"house/harbour/pier/.git":                          "gitdir: ../.git/modules/pier\n",
		"house/harbour/.git/modules/pier/HEAD":             "ref",
		"house/bare.git/worktrees/w/commondir":             root + "/house/bare.git\n",
		"house/w/.git":                                     "gitdir: ../bare.git/worktrees/w",
		"house/broken/.git":                                "something else",
		"house/long/.git":                                  strings.Repeat("gitdir: x", 1000),
		"house/empty/.git/":                                "",
		"house/潮水 表/.git/HEAD":                             "ref",
		"house/ctl\x01 /.git/HEAD":                         "ref",
		"house/" + strings.Repeat("n", 200) + "/.git/HEAD": "ref",
	})
	a := newApp(Deps{Args: []string{}, HomeDir: func() (string, error) { return filepath.Join(root, "house"), nil }})
	for _, c := range []struct{ dir, name, root string }{
		{"house", "", ""}, {"house/plain", "", ""}, {"house/not/there", "", ""},
		{"house/harbour", "harbour", "house/harbour"}, {"house/harbour/src/deep", "harbour", "house/harbour"},
		{"house/fix/sub", "harbour", "house/fix"}, {"house/harbour/pier", "pier", "house/harbour/pier"}, {"house/w", "bare", "house/w"},
		{"house/broken", "", ""}, {"house/long", "", ""}, {"house/empty", "", ""}, {"house/潮水 表", "潮水 表", "house/潮水 表"},
		{"house/ctl\x01 ", "ctl", "house/ctl\x01 "}, {"house/" + strings.Repeat("n", 200), strings.Repeat("n", 200), "house/" + strings.Repeat("n", 200)},
	} {
		p, ok := a.projectOf(filepath.Join(root, filepath.FromSlash(c.dir)))
		if ok != (c.name != "") || p.Name != c.name && ok || ok && p.Root != filepath.Join(root, filepath.FromSlash(c.root)) {
			t.Errorf("%s: %+v, %v", c.dir, p, ok)
		}
	}
	link := filepath.Join(root, "link")
	if err := os.Symlink(filepath.Join(root, "house", "harbour", "src"), link); err != nil {
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
