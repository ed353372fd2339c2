// Package house holds the house rules as code: which layer may import which,
// what must be documented, what no source may hold. Its test applies them to
// the whole module, so a rule that is broken fails the build.
package house

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"sort"
	"strings"
)

// Module is the import path that the layers hang under.
const Module = "github.com/loci-memory/loci"

// A File is one file of the tree. AST is nil unless it is a Go file.
type File struct {
	Path string // slash-separated, relative to the module's root
	Src  []byte
	AST  *ast.File
}

// A Tree is what the rules look at.
type Tree struct {
	Files []*File
	fset  *token.FileSet
}

// A Finding is one place where a rule is broken.
type Finding struct {
	Path    string
	Line    int
	Message string
}

// String gives the finding in the form that editors jump to.
func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Message) }

// A Rule is one house rule.
type Rule struct {
	Name  string
	Check func(*Tree) []Finding
}

// Rules gives every rule.
func Rules() []Rule {
	return []Rule{
		{"pure packages do no I/O", checkPure},
		{"layers import downwards", checkLayers},
		{"exported names have doc comments", checkDocs},
		{"packages have a package comment", checkPackageComments},
		{"files stay short", checkLength},
		{"nothing is left unfinished", checkUnfinished},
		{"no hidden global state", checkGlobals},
		{"libraries print nothing", checkPrinting},
		{"no machine's paths", checkPaths},
	}
}

// Load reads a tree. Directories that begin with a dot are left out except
// .ci, and so are build results; files under testdata are text, not Go.
func Load(root fs.FS) (*Tree, error) {
	t := &Tree{fset: token.NewFileSet()}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := d.Name()
		if d.IsDir() {
			if name != "." && base != ".ci" && strings.HasPrefix(base, ".") || name == "bin" {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || base == "coverage.out" || strings.HasSuffix(base, ".test") {
			return nil
		}
		src, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		return t.add(name, src)
	})
	return t, err
}

func (t *Tree) add(name string, src []byte) error {
	f := &File{Path: name, Src: src}
	if strings.HasSuffix(name, ".go") && !strings.Contains("/"+name, "/testdata/") {
		parsed, err := parser.ParseFile(t.fset, name, src, parser.ParseComments)
		if err != nil {
			return err
		}
		f.AST = parsed
	}
	t.Files = append(t.Files, f)
	return nil
}

// Dir is the package directory, "." for the module's root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// Test says whether the file belongs to a test.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Generated says whether a tool wrote the file.
func (f *File) Generated() bool { return f.AST != nil && ast.IsGenerated(f.AST) }

// goFiles gives the Go files that belong to the product, and the tests' too
// if asked.
func (t *Tree) goFiles(tests bool) []*File {
	var out []*File
	for _, f := range t.Files {
		if f.AST != nil && (tests || !f.Test()) {
			out = append(out, f)
		}
	}
	return out
}

// packages groups the product's Go files by directory.
func (t *Tree) packages() map[string][]*File {
	out := map[string][]*File{}
	for _, f := range t.goFiles(false) {
		out[f.Dir()] = append(out[f.Dir()], f)
	}
	return out
}

func (t *Tree) at(f *File, pos token.Pos, format string, args ...any) Finding {
	return Finding{f.Path, t.fset.Position(pos).Line, fmt.Sprintf(format, args...)}
}

// sorted orders findings by place, so that failures read the same every time.
func sorted(fs []Finding) []Finding {
	sort.Slice(fs, func(i, j int) bool {
		if fs[i].Path != fs[j].Path {
			return fs[i].Path < fs[j].Path
		}
		return fs[i].Line < fs[j].Line
	})
	return fs
}

// lineOf gives the line, from 1, that holds the byte at offset.
func lineOf(src []byte, offset int) int { return 1 + bytes.Count(src[:offset], []byte("\n")) }
