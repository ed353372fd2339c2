package cli

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode"

	"github.com/loci-memory/loci"
	"github.com/spf13/cobra"
)

// project is a repository that a folder lies in.
type project struct {
	Root string // its root folder; of a worktree that of the worktree
	Name string // as a namespace
}

// gitFileBytes bounds the files that are read to find a repository: they hold one
// path.
const gitFileBytes = 8 << 10

// projectOf finds the repository that dir lies in; false when it lies in none. A
// worktree belongs to the repository it was made of, a submodule is one of its own.
// The home folder is none: people keep their settings in a repository there.
func (a *App) projectOf(dir string) (project, bool) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return project{}, false
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	home, err := a.deps.HomeDir()
	if err == nil {
		if real, err := filepath.EvalSymlinks(home); err == nil {
			home = real
		}
	}
	for {
		if dir != home {
			if main, ok := repositoryAt(dir); ok {
				name := namespaceName(filepath.Base(main))
				return project{Root: dir, Name: name}, name != ""
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return project{}, false
		}
		dir = parent
	}
}

// repositoryAt says whether dir is the root of a repository, and gives the folder
// that names it.
func repositoryAt(dir string) (main string, ok bool) {
	dot := filepath.Join(dir, ".git")
	info, err := os.Stat(dot)
	switch {
	case err != nil:
		return "", false
	case info.IsDir():
		// Any folder may be called that; a repository has a HEAD.
		_, err := os.Lstat(filepath.Join(dot, "HEAD"))
		return dir, err == nil
	}
	target, ok := pathIn(dot, "gitdir:")
	if !ok {
		return "", false
	}
	if !filepath.IsAbs(target) {
		target = filepath.Join(dir, target)
	}
	// A worktree names the repository that it shares; a submodule does not.
	common, ok := pathIn(filepath.Join(target, "commondir"), "")
	if !ok {
		return dir, true
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(target, common)
	}
	if filepath.Base(common) == ".git" {
		return filepath.Dir(common), true
	}
	return strings.TrimSuffix(common, ".git"), true // a bare one
}

// pathIn reads the path that stands behind a word in a small file.
func pathIn(file, word string) (string, bool) {
	info, err := os.Stat(file)
	if err != nil || !info.Mode().IsRegular() || info.Size() > gitFileBytes {
		return "", false
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", false
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	text, ok := strings.CutPrefix(strings.TrimSpace(string(line)), word)
	text = strings.TrimSpace(text)
	return filepath.FromSlash(text), ok && text != ""
}

// namespaceName makes a folder's name one of a namespace: what names may not hold
// goes, and what is too long is cut. It may be empty then.
func namespaceName(folder string) string {
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, strings.ToValidUTF8(folder, ""))
	for len(name) > loci.MaxNamespaceBytes {
		name = strings.ToValidUTF8(name[:len(name)-1], "")
	}
	name = strings.TrimSpace(name)
	switch name {
	case ".", "..", loci.Every, string(filepath.Separator):
		return ""
	}
	return name
}

// defaultNamespace is the namespace where nobody named one, and why.
func (a *App) defaultNamespace() (name, source string) {
	dir, err := a.deps.WorkDir()
	if err == nil {
		if p, ok := a.projectOf(dir); ok {
			return p.Name, repositorySource + p.Root
		}
	}
	return loci.DefaultNamespace, sourceDefault
}

// repositorySource begins the source of a namespace that a repository gave.
const repositorySource = "repository "

// whereIs is what the where command shows.
type whereIs struct {
	Namespace       string `json:"namespace"`
	NamespaceSource string `json:"namespace_source"`
	NamespaceWhy    string `json:"namespace_why"`
	Scope           string `json:"scope"`
	ScopeSource     string `json:"scope_source"`
	Data            string `json:"data"`
	DataSource      string `json:"data_source"`
	DataExists      bool   `json:"data_exists"` // there is a memory in it
	Config          string `json:"config"`
	ConfigExists    bool   `json:"config_exists"`
}

func (a *App) where() whereIs {
	namespace, scope, data := a.settings.get("namespace"), a.settings.get("scope"), a.settings.get("data")
	err := fs.ErrNotExist
	if data.Value != "" {
		_, err = os.Stat(filepath.Join(data.Value, "loci.db"))
	}
	return whereIs{
		Namespace: namespace.Value, NamespaceSource: namespace.Source, NamespaceWhy: a.namespaceWhy(namespace),
		Scope: scope.Value, ScopeSource: scope.Source, Data: data.Value, DataSource: data.Source,
		DataExists: !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR), Config: a.settings.file, ConfigExists: a.settings.exists,
	}
}

// namespaceWhy says in words where a namespace comes from.
func (a *App) namespaceWhy(v setting) string {
	root, ok := strings.CutPrefix(v.Source, repositorySource)
	switch {
	case ok:
		return "the working folder lies in the repository " + root
	case v.Source == sourceDefault:
		return "the working folder lies in no repository, and no --namespace, LOCI_NAMESPACE or setting names one"
	case strings.HasPrefix(v.Source, "--"):
		return "it stands on the command line"
	case v.Source == a.settings.file:
		return "the configuration file names it"
	}
	return "the variable " + v.Source + " names it"
}

func (a *App) whereCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "where",
		Short: "Show which namespace and data directory are in force, and why",
		Long: `Shows where what you store goes and where what you ask is looked for. The
namespace is what --namespace, LOCI_NAMESPACE or the configuration file names, else
the name of the repository that the working folder lies in, else "default". A
worktree counts as the repository it was made of, a submodule as one of its own.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			is := a.where()
			return a.Print(is, func(w *Painter) {
				state := "there is no memory yet"
				if is.DataExists {
					state = "there is a memory"
				}
				data := is.DataSource + "; " + state
				if is.Data == "" {
					data = "there is no home directory; name one with --data or LOCI_DATA"
				}
				config := "not there"
				if is.ConfigExists {
					config = "read"
				}
				w.Table([]string{"WHAT", "IS", "BECAUSE"}, [][]string{
					{"namespace", is.Namespace, is.NamespaceWhy},
					{"scope", is.Scope, is.ScopeSource},
					{"data", is.Data, data},
					{"configuration", is.Config, config},
				})
			})
		},
	}
}
