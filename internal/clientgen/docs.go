package clientgen

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"
)

// sourceDocs are the comments of the engine's source that the client repeats.
type sourceDocs struct {
	types  map[string]string     // by key
	fields map[string]string     // by key and field
	words  map[string][]constant // of string types, by key
}

// constant is a word of a type of words.
type constant struct{ name, value, doc string }

// key names a type by its package and its name.
func key(t reflect.Type) string {
	pkg := t.PkgPath()
	name, _, _ := strings.Cut(t.Name(), "[")
	return pkg[strings.LastIndexByte(pkg, '/')+1:] + "." + name
}

func (d *sourceDocs) typeDoc(t reflect.Type) string { return d.types[key(t)] }

// readDocs reads the packages whose types the table uses.
func readDocs(root string) (*sourceDocs, error) {
	d := &sourceDocs{map[string]string{}, map[string]string{}, map[string][]constant{}}
	for _, dir := range []string{".", "op", "agent", "pager"} {
		files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(dir), "*.go"))
		if err != nil {
			return nil, err
		}
		sort.Strings(files)
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			d.read(f)
		}
	}
	return d, nil
}

func (d *sourceDocs) read(f *ast.File) {
	for _, decl := range f.Decls {
		gen, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range gen.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				doc := s.Doc.Text()
				if doc == "" && len(gen.Specs) == 1 {
					doc = gen.Doc.Text()
				}
				d.types[f.Name.Name+"."+s.Name.Name] = doc
				if t, ok := s.Type.(*ast.StructType); ok {
					d.structFields(f.Name.Name+"."+s.Name.Name, t)
				}
			case *ast.ValueSpec:
				if gen.Tok == token.CONST {
					d.constants(f.Name.Name, s)
				}
			}
		}
	}
}

// structFields takes up what is said of the fields of a struct.
func (d *sourceDocs) structFields(owner string, t *ast.StructType) {
	for _, f := range t.Fields.List {
		for _, name := range f.Names {
			d.fields[owner+"."+name.Name] = strings.TrimSpace(f.Doc.Text() + " " + f.Comment.Text())
		}
	}
}

// constants takes up what is declared with a type and a string.
func (d *sourceDocs) constants(pkg string, s *ast.ValueSpec) {
	typ, ok := s.Type.(*ast.Ident)
	if !ok || len(s.Names) != len(s.Values) {
		return
	}
	for i, name := range s.Names {
		lit, ok := s.Values[i].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		value, err := strconv.Unquote(lit.Value)
		if err != nil {
			continue // the compiler has read it
		}
		doc := strings.Join(strings.Fields(s.Doc.Text()+" "+s.Comment.Text()), " ")
		doc = strings.TrimPrefix(doc, name.Name+" ")
		k := pkg + "." + typ.Name
		d.words[k] = append(d.words[k], constant{name.Name, value, doc})
	}
}
