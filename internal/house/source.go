package house

import (
	"bytes"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// The longest a file may be, in lines. Past that, look for the seam.
const (
	maxLines     = 700
	maxTestLines = 1000
)

func checkDocs(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(false) {
		if f.Generated() || f.AST.Name.Name == "main" {
			continue
		}
		for _, decl := range f.AST.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && receiverExported(d) && d.Doc == nil {
					out = append(out, t.at(f, d.Pos(), "%s has no doc comment", d.Name.Name))
				}
			case *ast.GenDecl:
				out = append(out, undocumented(t, f, d)...)
			}
		}
	}
	return sorted(out)
}

// undocumented finds the names of a type, const or var declaration that no
// comment speaks of. One comment above a group speaks for all of it.
func undocumented(t *Tree, f *File, d *ast.GenDecl) []Finding {
	if d.Doc != nil {
		return nil
	}
	var out []Finding
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			if s.Name.IsExported() && s.Doc == nil {
				out = append(out, t.at(f, s.Pos(), "%s has no doc comment", s.Name.Name))
			}
		case *ast.ValueSpec:
			for _, n := range s.Names {
				if n.IsExported() && s.Doc == nil && s.Comment == nil {
					out = append(out, t.at(f, n.Pos(), "%s has no doc comment", n.Name))
				}
			}
		}
	}
	return out
}

// receiverExported is true for functions and for methods of exported types.
func receiverExported(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	x := d.Recv.List[0].Type
	for {
		switch e := x.(type) {
		case *ast.StarExpr:
			x = e.X
		case *ast.IndexExpr:
			x = e.X
		case *ast.IndexListExpr:
			x = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return true
		}
	}
}

func checkPackageComments(t *Tree) []Finding {
	var out []Finding
	for dir, files := range t.packages() {
		documented := false
		for _, f := range files {
			documented = documented || f.AST.Doc != nil
		}
		if !documented {
			out = append(out, Finding{path.Join(dir, path.Base(files[0].Path)), 1, "the package has no package comment"})
		}
	}
	return sorted(out)
}

func checkLength(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(true) {
		limit := maxLines
		if f.Test() {
			limit = maxTestLines
		}
		if n := bytes.Count(f.Src, []byte("\n")); n > limit && !f.Generated() {
			out = append(out, Finding{f.Path, n, "longer than a file should be; look for the seam"})
		}
	}
	return sorted(out)
}

var unfinished = regexp.MustCompile(`\b(TODO|FIXME|XXX|HACK)\b`)

func checkUnfinished(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(true) {
		for _, group := range f.AST.Comments {
			for _, c := range group.List {
				if m := unfinished.FindString(c.Text); m != "" {
					out = append(out, t.at(f, c.Pos(), "%s: finish it or file it", m))
				}
			}
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) != 1 {
				return true
			}
			id, isName := call.Fun.(*ast.Ident)
			lit, isText := call.Args[0].(*ast.BasicLit)
			if isName && isText && id.Name == "panic" && lit.Kind == token.STRING {
				switch text := strings.ToLower(lit.Value); {
				case strings.Contains(text, "wip"), strings.Contains(text, "not implemented"), strings.Contains(text, "unimplemented"):
					out = append(out, t.at(f, call.Pos(), "panic(%s): not implemented yet", lit.Value))
				}
			}
			return true
		})
	}
	return sorted(out)
}

// mayPrint are the directories whose code talks to a terminal or, for tests,
// to child processes.
var mayPrint = []string{"cmd", "internal/cli", testkit}

// terminal names what talks to the terminal or to the process's environment,
// by package.
var terminal = map[string][]string{
	"fmt": {"Print", "Printf", "Println"},
	"log": {"Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
	"os":  {"Getenv", "LookupEnv", "Environ", "Exit"},
}

func checkPrinting(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.goFiles(false) {
		if under(f.Dir(), mayPrint...) || f.Generated() || f.AST.Name.Name == "main" {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch e := n.(type) {
			case *ast.SelectorExpr:
				id, ok := e.X.(*ast.Ident)
				if ok && id.Obj == nil && listed(e.Sel.Name, terminal[id.Name]) {
					out = append(out, t.at(f, e.Pos(), "%s.%s outside cmd and internal/cli", id.Name, e.Sel.Name))
				}
			case *ast.CallExpr:
				if id, ok := e.Fun.(*ast.Ident); ok && id.Obj == nil && (id.Name == "print" || id.Name == "println") {
					out = append(out, t.at(f, e.Pos(), "%s outside cmd and internal/cli", id.Name))
				}
			}
			return true
		})
	}
	return sorted(out)
}

// machinePath is an absolute path into somebody's home or work directory. The
// character before it keeps web addresses out.
var machinePath = regexp.MustCompile(`(?:^|[\s"'=(:,;<>\x60])(?:/(?:home|Users|root|work|workspace|mnt)/[A-Za-z0-9._-]+|[A-Za-z]:\\+Users\\+[A-Za-z0-9._-]+)`)

// someone are the home directories of nobody in particular, which examples and
// tests may speak of.
var someone = [][]byte{[]byte("/home/me"), []byte("/home/user"), []byte("/Users/me")}

func checkPaths(t *Tree) []Finding {
	var out []Finding
	for _, f := range t.Files {
		if bytes.IndexByte(f.Src, 0) >= 0 {
			continue // not text
		}
		for _, at := range machinePath.FindAllIndex(f.Src, -1) {
			hit := bytes.TrimLeft(f.Src[at[0]:at[1]], "\n \t\"'=(:,;<>`")
			if slices.ContainsFunc(someone, func(s []byte) bool { return bytes.Equal(s, hit) }) {
				continue
			}
			out = append(out, Finding{f.Path, lineOf(f.Src, at[1]-1), "a path of one machine: " + string(hit)})
		}
	}
	return sorted(out)
}
