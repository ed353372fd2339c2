package house

import (
	"go/ast"
	"go/token"
)

// allowedGlobals are package-level variables that checkGlobals would refuse,
// each with the reason why it stays. The key is directory and name.
var allowedGlobals = map[string]string{
	"internal/index/embedded.zeroByte": "a zero that inline postings are read from; nothing writes to it",
}

// checkGlobals refuses init functions and package-level variables that change:
// those without an initial value, those that hold a pointer or a channel, and
// those that some statement writes to. Tables, error values and compiled
// patterns, set once where they are declared, pass.
func checkGlobals(t *Tree) []Finding {
	var out []Finding
	for dir, files := range t.packages() {
		written := writes(files)
		for _, f := range files {
			if f.Generated() {
				continue
			}
			for _, decl := range f.AST.Decls {
				switch d := decl.(type) {
				case *ast.FuncDecl:
					if d.Recv == nil && d.Name.Name == "init" {
						out = append(out, t.at(f, d.Pos(), "init runs behind the reader's back"))
					}
				case *ast.GenDecl:
					if d.Tok == token.VAR {
						out = append(out, mutable(t, f, dir, d, written)...)
					}
				}
			}
		}
	}
	return sorted(out)
}

func mutable(t *Tree, f *File, dir string, d *ast.GenDecl, written map[any]bool) []Finding {
	var out []Finding
	for _, spec := range d.Specs {
		s := spec.(*ast.ValueSpec)
		if embedded(d.Doc) || embedded(s.Doc) {
			continue
		}
		for i, name := range s.Names {
			if name.Name == "_" || allowedGlobals[dir+"."+name.Name] != "" {
				continue
			}
			why := ""
			switch {
			case len(s.Values) == 0:
				why = "has no initial value"
			case i < len(s.Values) && holdsPointer(s.Values[i]):
				why = "holds a pointer or a channel"
			case written[name.Obj] || written[name.Name]:
				why = "is written to"
			}
			if why != "" {
				out = append(out, t.at(f, name.Pos(), "package-level variable %s %s", name.Name, why))
			}
		}
	}
	return out
}

// embedded says whether a go:embed directive fills the variable.
func embedded(doc *ast.CommentGroup) bool {
	if doc == nil {
		return false
	}
	for _, c := range doc.List {
		if len(c.Text) > 10 && c.Text[:10] == "//go:embed" {
			return true
		}
	}
	return false
}

func holdsPointer(x ast.Expr) bool {
	switch e := x.(type) {
	case *ast.UnaryExpr:
		return e.Op == token.AND
	case *ast.CallExpr:
		id, ok := e.Fun.(*ast.Ident)
		return ok && id.Obj == nil && (id.Name == "new" || id.Name == "make")
	}
	return false
}

// writes collects what a package's statements write to. A variable of the same
// file is there as its *ast.Object, one of another file as its name, since the
// parser resolves names within one file only.
func writes(files []*File) map[any]bool {
	out := map[any]bool{}
	note := func(x ast.Expr) {
		id := root(x)
		if id == nil {
			return
		}
		if id.Obj != nil {
			out[id.Obj] = true
		} else {
			out[id.Name] = true
		}
	}
	for _, f := range files {
		ast.Inspect(f.AST, func(n ast.Node) bool {
			switch s := n.(type) {
			case *ast.AssignStmt:
				if s.Tok != token.DEFINE {
					for _, x := range s.Lhs {
						note(x)
					}
				}
			case *ast.IncDecStmt:
				note(s.X)
			case *ast.RangeStmt:
				if s.Tok == token.ASSIGN {
					note(s.Key)
					note(s.Value)
				}
			case *ast.UnaryExpr:
				if s.Op == token.AND {
					note(s.X)
				}
			case *ast.CallExpr:
				if id, ok := s.Fun.(*ast.Ident); ok && id.Obj == nil && len(s.Args) > 0 && (id.Name == "delete" || id.Name == "clear") {
					note(s.Args[0])
				}
			}
			return true
		})
	}
	return out
}

// root gives the variable at the bottom of x[i].f, or nil.
func root(x ast.Expr) *ast.Ident {
	for {
		switch e := x.(type) {
		case *ast.Ident:
			return e
		case *ast.IndexExpr:
			x = e.X
		case *ast.SelectorExpr:
			x = e.X
		case *ast.StarExpr:
			x = e.X
		case *ast.ParenExpr:
			x = e.X
		default:
			return nil
		}
	}
}
