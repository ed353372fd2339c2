package op

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
)

// pathFields are the names that inputs give to what may be a path.
var pathFields = []string{"path", "paths", "root", "target", "file", "files", "dir", "directory", "folder", "source"}

// noPaths are fields of those names that name no file of the machine, each with the
// reason.
var noPaths = map[string]string{
	"notes.upsert_file path": "lies under the namespace's root, which an admin has set; its own cases are in TestPathsBelowARoot",
}

// places gives where the fields of a name are in a schema.
func places(s *jsonschema.Schema, at string, into map[string]*jsonschema.Schema) {
	for name, field := range s.Properties {
		if slices.Contains(pathFields, name) {
			into[strings.TrimPrefix(at+"."+name, ".")] = field
		}
		places(field, at+"."+name, into)
	}
	if s.Items != nil {
		places(s.Items, at+"[]", into)
	}
}

// pathInput is an operation's smallest input with a path.
func pathInput(t *testing.T, o *Operation, field, path string) []byte {
	t.Helper()
	in := map[string]any{field: path}
	for _, name := range o.InputSchema().Required {
		if s := o.InputSchema().Properties[name]; name != field && len(s.Enum) > 0 {
			in[name] = s.Enum[0]
		}
	}
	if o.Name == "import_from" {
		in["from"] = "jsonl"
	}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// pathRows are the operations that take a path, with the field.
func pathRows(t *testing.T) map[*Operation]string {
	t.Helper()
	rows := map[*Operation]string{}
	for _, o := range Default().All() {
		for _, name := range o.LocalPaths {
			rows[o] = name
		}
	}
	if len(rows) < 10 {
		t.Fatalf("only %d operations take a path", len(rows))
	}
	return rows
}

// Whatever is named like a path is one, and held to its rules, or is on the list.
func TestPathsAreDeclared(t *testing.T) {
	listed := maps.Clone(noPaths)
	for _, o := range Default().All() {
		found := map[string]*jsonschema.Schema{}
		places(o.InputSchema(), "", found)
		for at, s := range found {
			key := o.Name + " " + at
			reason := listed[key]
			delete(listed, key)
			// What a record says that it comes from is a word of its own and opens nothing.
			// An id has a pattern.
			if s.Type != "string" || strings.HasSuffix(at, "source") || s.Pattern != "" {
				continue
			}
			if declared := slices.Contains(o.LocalPaths, at); declared == (reason != "") {
				t.Errorf("%s: put it into LocalPaths, or into noPaths with the reason, and not into both", key)
			}
		}
		for _, name := range o.LocalPaths {
			if found[name] == nil {
				t.Errorf("%s: there is no field %s, or its name is not in pathFields", o.Name, name)
			}
		}
	}
	for key := range listed {
		t.Errorf("noPaths lists %s, which is no field", key)
	}
}

// Every operation that takes a path of the machine: only an admin's, only an absolute
// one, and nothing that is not a plain file is waited for, followed or written over.
func TestPaths(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	// A memory is there, so that what writes one to a file has something to write.
	for _, kind := range []string{"facts", "episodes", "procedures"} {
		in := map[string]string{
			"facts": `{"id":1,"content":"x","embedding":[1,0]}`, "episodes": `{"id":1,"description":"x","embedding":[1,0]}`,
			"procedures": `{"id":1,"name":"x","steps":["y"],"embedding":[1,0]}`,
		}[kind]
		call := map[string]string{"facts": "facts.store", "episodes": "episodes.record", "procedures": "procedures.learn"}[kind]
		if _, err := Default().Call(t.Context(), db, call, []byte(in)); err != nil {
			t.Fatal(err)
		}
	}
	folder := t.TempDir()
	t.Chdir(folder)
	before := map[string]string{"text": "not for anybody\n", "victim": ""}
	for name, text := range before {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link": "text", "dangling": "made", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Skip(err)
		}
	}
	pipe := makePipe(t, filepath.Join(folder, "pipe"))
	everywhere := &loci.Access{Grants: []loci.Grant{{Namespace: loci.Every, Scopes: []string{loci.Every}, Write: true}}}
	for o, field := range pathRows(t) {
		call := func(ctx context.Context, path string) Failure {
			t.Helper()
			_, err := o.Call(ctx, db, pathInput(t, o, field, path))
			if err == nil {
				return Failure{}
			}
			f := FailureOf(err)
			if strings.Contains(f.Message, "not for anybody") {
				t.Errorf("%s %q: the answer holds the file's text: %s", o.Name, path, f.Message)
			}
			return f
		}
		for _, path := range []string{filepath.Join(folder, "text"), filepath.Join(folder, "nothing"), "/etc/passwd", "../x", ""} {
			if f := call(loci.WithAccess(t.Context(), everywhere), path); f.Code != loci.ErrForbidden || f.Field != "" {
				t.Errorf("%s %q without admin: %+v", o.Name, path, f)
			}
		}
		for _, path := range []string{"", ".", "text", "./text", "../x", "../../../../etc/passwd", "~/x", `..\x`, "a\x00b", folder + "/text\x00.jsonl"} {
			if f := call(t.Context(), path); f.Code != loci.ErrValidation || f.Field != field {
				t.Errorf("%s %q: %+v", o.Name, path, f)
			}
		}
		bad := []string{"nothing/below", "text/below", "loop", "loop/below", strings.Repeat("long", 200)}
		if o.Name != "notes.set_root" { // which takes a folder, and one behind a link
			bad = append(bad, "text", "link", ".")
			if !o.ReadOnly && o.Name != "import_from" {
				bad = append(bad, "dangling")
			}
		}
		if pipe {
			bad = append(bad, "pipe")
		}
		for _, path := range bad {
			f := call(t.Context(), filepath.Join(folder, path))
			switch f.Code {
			case loci.ErrValidation, loci.ErrIO, loci.ErrNotFound:
			case "":
				if o.Name != "import_from" && o.Name != "episodes.import" {
					t.Errorf("%s %q was taken", o.Name, path)
				}
			default:
				t.Errorf("%s %q: %+v", o.Name, path, f)
			}
		}
	}
	for name, text := range before {
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || string(got) != text {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(folder, "made")); err == nil {
		t.Error("a file was written where a link led")
	}
	left, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		if !slices.Contains([]string{"text", "victim", "link", "dangling", "loop", "pipe"}, e.Name()) {
			t.Errorf("%s was left", e.Name())
		}
	}
}

// A path of notes stays below the namespace's root, however it is written, and what
// is refused is told the same whether the file is there or not.
func TestPathsBelowARoot(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	for _, name := range []string{"root", "root2"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"secret.md", "root2/x.md", "root/note.md"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("not for anybody"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"out.md": "../secret.md", "abs.md": filepath.Join(dir, "secret.md"), "folder": "..", "none.md": "../none.md"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Skip(err)
		}
	}
	if _, err := Default().Call(t.Context(), db, "notes.set_root", pathInput(t, mustLookup(t, "notes.set_root"), "root", root)); err != nil {
		t.Fatal(err)
	}
	note := mustLookup(t, "notes.upsert_file")
	answers := map[string]bool{}
	writer := &loci.Access{Grants: []loci.Grant{{Namespace: "default", Scopes: []string{loci.Every}, Write: true}}}
	for _, path := range []string{
		"../secret.md", "../none.md", "note.md/../../secret.md", "./../secret.md", "folder/secret.md", "folder/none.md", "out.md", "abs.md", "none.md",
		filepath.Join(dir, "secret.md"), filepath.Join(dir, "none.md"), root + "2/x.md", root + "/../secret.md", "/etc/passwd", "note.md\x00.txt", "", ".", root, "..",
	} {
		_, err := note.Call(loci.WithAccess(t.Context(), writer), db, pathInput(t, note, "path", path))
		f := FailureOf(err)
		if f.Code != loci.ErrValidation && f.Code != loci.ErrIO || f.Field != "path" || strings.Contains(f.Message, "not for anybody") {
			t.Errorf("%q: %+v", path, f)
		}
		if path != "" && !strings.Contains(path, "\x00") && !strings.Contains(path, "..") && path != "." {
			answers[string(f.Code)+f.Message] = true
		}
	}
	if len(answers) != 1 {
		t.Errorf("a file outside is told from none: %v", answers)
	}
	if _, err := note.Call(loci.WithAccess(t.Context(), writer), db, pathInput(t, note, "path", "note.md")); err != nil {
		t.Error(err)
	}
}

func mustLookup(t *testing.T, name string) *Operation {
	t.Helper()
	o, ok := Default().Lookup(name)
	if !ok {
		t.Fatalf("there is no %s", name)
	}
	return o
}
