package op

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/pager"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with a file, or writes it with -update.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is old; run go test ./op -update twice and look at the difference", path)
	}
}

var goPointer = regexp.MustCompile(`\*([A-Z])`)

var goNil = regexp.MustCompile(`\b[Nn]il\b`)

var identifier = regexp.MustCompile(`\b[A-Z][A-Za-z0-9]+\b`)

// stringConstants gives a package's string constants, quoted: a description is
// read by people who do not know the Go names.
func stringConstants(t *testing.T, dir string) map[string]string {
	consts := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && len(v.Names) == 1 && len(v.Values) == 1 && v.Names[0].IsExported() {
				if lit, ok := v.Values[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					consts[v.Names[0].Name] = lit.Value
				}
			}
			return true
		})
	}
	return consts
}

// TestFieldDocs keeps fielddocs.json equal to the comments in the source.
func TestFieldDocs(t *testing.T) {
	docs := map[string]string{}
	root := stringConstants(t, "..")
	for pkg, dir := range map[string]string{"loci": "..", "op": ".", "pager": "../pager", "agent": "../agent"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		consts := maps.Clone(root)
		if pkg == "pager" || pkg == "agent" {
			maps.Copy(consts, stringConstants(t, dir))
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				spec, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				st, ok := spec.Type.(*ast.StructType)
				if !ok || !spec.Name.IsExported() {
					return true
				}
				words := maps.Clone(consts)
				for _, field := range st.Fields.List {
					if field.Tag != nil && len(field.Names) == 1 {
						tag, _ := strconv.Unquote(field.Tag.Value)
						name, _, _ := strings.Cut(reflect.StructTag(tag).Get("json"), ",")
						words[field.Names[0].Name] = name
					}
				}
				for _, field := range st.Fields.List {
					if field.Tag == nil || !strings.Contains(field.Tag.Value, "json:") {
						continue
					}
					doc := strings.Join(strings.Fields(field.Doc.Text()+" "+field.Comment.Text()), " ")
					doc = identifier.ReplaceAllStringFunc(doc, func(w string) string {
						if r := words[w]; r != "" {
							return r
						}
						return w
					})
					doc = goPointer.ReplaceAllString(doc, "$1")
					doc = goNil.ReplaceAllString(doc, "absent")
					for _, name := range field.Names {
						if doc != "" {
							docs[pkg+"."+spec.Name.Name+"."+name.Name] = doc
						}
					}
				}
				return true
			})
		}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(docs); err != nil {
		t.Fatal(err)
	}
	golden(t, "fielddocs.json", b.Bytes())
}

func TestSchemasGolden(t *testing.T) {
	for _, o := range Default().All() {
		raw, err := encode(map[string]any{"input": o.InputSchema(), "output": o.OutputSchema()})
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := json.Indent(&b, raw, "", "  "); err != nil {
			t.Fatal(err)
		}
		b.WriteByte('\n')
		golden(t, filepath.Join("testdata", "schemas", o.Name+".json"), b.Bytes())
	}
}

// TestSchemaForm holds what common clients need of a schema.
func TestSchemaForm(t *testing.T) {
	for _, o := range Default().All() {
		for side, s := range map[string]*jsonschema.Schema{"input": o.InputSchema(), "output": o.OutputSchema()} {
			raw, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if err := json.Unmarshal(raw, &m); err != nil {
				t.Fatal(err)
			}
			if m["type"] != "object" || m["properties"] == nil {
				t.Errorf("%s %s: not an object with properties: %s", o.Name, side, raw)
			}
			for _, no := range []string{`"null"`, `"$ref"`, `"oneOf"`, `"anyOf"`, `"$defs"`} {
				if bytes.Contains(raw, []byte(no)) {
					t.Errorf("%s %s holds %s", o.Name, side, no)
				}
			}
			if _, err := s.Resolve(nil); err != nil {
				t.Errorf("%s %s: %v", o.Name, side, err)
			}
		}
	}
}

func TestDeclarations(t *testing.T) {
	for _, o := range Default().All() {
		if o.Summary == "" || strings.HasSuffix(o.Summary, ".") || strings.Contains(o.Summary, "\n") {
			t.Errorf("%s: the summary must be one line without a full stop", o.Name)
		}
		if len(o.Covers) == 0 {
			t.Errorf("%s covers no Go method", o.Name)
		}
		if o.ReadOnly && (o.Destructive || !o.Idempotent) {
			t.Errorf("%s: what only reads is idempotent and not destructive", o.Name)
		}
		for _, p := range o.Positional {
			if s := o.InputSchema().Properties[p]; s == nil || s.Type != "string" {
				t.Errorf("%s: positional %s is no string field", o.Name, p)
			}
		}
	}
}

// TestEveryMethod holds that no exported method is forgotten.
func TestEveryMethod(t *testing.T) {
	methods := map[string]bool{"ChunkText": true} // functions are not listed by reflection
	for name, typ := range map[string]reflect.Type{
		"DB":          reflect.TypeFor[*loci.DB](),
		"MemoryStore": reflect.TypeFor[*loci.MemoryStore](),
		"GraphStore":  reflect.TypeFor[*loci.GraphStore](),
		"NoteStore":   reflect.TypeFor[*loci.NoteStore](),

		"EmbeddingStore": reflect.TypeFor[*loci.EmbeddingStore](),
		"Store":          reflect.TypeFor[*pager.Store](),

		"AgentMemory":      reflect.TypeFor[*agent.AgentMemory](),
		"SemanticMemory":   reflect.TypeFor[*agent.SemanticMemory](),
		"EpisodicMemory":   reflect.TypeFor[*agent.EpisodicMemory](),
		"ProceduralMemory": reflect.TypeFor[*agent.ProceduralMemory](),
	} {
		for m := range typ.Methods() {
			methods[name+"."+m.Name] = true
		}
	}
	covered := map[string]bool{}
	for _, o := range Default().All() {
		for _, c := range o.Covers {
			if !methods[c] {
				t.Errorf("%s covers %s, which is no method", o.Name, c)
			}
			covered[c] = true
		}
	}
	goOnly := GoOnly()
	for _, m := range slices.Sorted(maps.Keys(methods)) {
		reason, listed := goOnly[m]
		switch {
		case covered[m] && listed:
			t.Errorf("%s is an operation and on the list of Go-only calls", m)
		case !covered[m] && !listed:
			t.Errorf("%s is neither an operation nor on the list of Go-only calls", m)
		case listed && reason == "":
			t.Errorf("%s is on the list without a reason", m)
		}
	}
	for m := range goOnly {
		if !methods[m] {
			t.Errorf("%s is on the list of Go-only calls and does not exist", m)
		}
	}
}

// TestOutcomes holds that every code has a row.
func TestOutcomes(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "../errors.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := 0
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Err") {
			codes++
		}
		return true
	})
	seen := map[loci.Code]bool{}
	for _, o := range Outcomes() {
		if seen[o.Code] || o.Status < 400 || o.Exit == 0 || o.Title == "" {
			t.Errorf("bad or repeated row: %+v", o)
		}
		seen[o.Code] = true
		if got := OutcomeOf(o.Code); got != o {
			t.Errorf("OutcomeOf(%s) = %+v", o.Code, got)
		}
	}
	if codes != len(seen) {
		t.Errorf("%d codes exist, %d have a row", codes, len(seen))
	}
	if ExitCode(nil) != 0 || ExitCode(os.ErrClosed) != ExitFailed {
		t.Error("exit codes of nil and of an error without a code")
	}
}

func TestFailureOf(t *testing.T) {
	inner := &loci.Error{Code: loci.ErrIO, Field: "path", Message: "could not be read", Err: os.ErrPermission}
	outer := &loci.Error{Code: loci.ErrIO, Op: "notes.upsert", Message: "the note", Err: inner}
	want := Failure{Code: loci.ErrIO, Operation: "notes.upsert", Field: "path", Message: "the note: could not be read"}
	if got := FailureOf(outer); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	want.Message += ": permission denied"
	if got := FailureWithCause(outer); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	if got := FailureOf(context.Canceled); got.Code != loci.ErrCanceled || got.Message == "" {
		t.Errorf("%+v", got)
	}
	if got := FailureWithCause(loci.ErrLocked); got.Code != loci.ErrLocked || strings.Contains(got.Message, "locked") {
		t.Errorf("%+v", got)
	}
}
