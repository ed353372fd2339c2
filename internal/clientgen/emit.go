package clientgen

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/op"
)

// camel turns a name of the table into one of Go.
func camel(name string) string {
	var b strings.Builder
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '.' || r == '_' || r == '-' || r == ' ' }) {
		switch word {
		case "ttl", "id", "io":
			b.WriteString(strings.ToUpper(word))
		default:
			b.WriteString(strings.ToUpper(word[:1]) + word[1:])
		}
	}
	return b.String()
}

func methodName(o *op.Operation) string {
	_, name, found := strings.Cut(o.Name, ".")
	if !found {
		name = o.Name
	}
	return camel(name)
}

func inputName(o *op.Operation) string { return camel(o.Name) + "Input" }

// sentence makes a full sentence of a line that may be none.
func sentence(s string) string {
	if s = strings.TrimSpace(s); s != "" && !strings.HasSuffix(s, ".") {
		s += "."
	}
	return s
}

// comment writes a comment in lines of a bearable length. Lines of the text that
// are indented stay as they are.
func comment(w *bytes.Buffer, text string) {
	const width = 110
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if line == "" || line[0] == ' ' || line[0] == '\t' {
			fmt.Fprintln(w, strings.TrimRight("// "+line, " "))
			continue
		}
		at := "//"
		for _, word := range strings.Fields(line) {
			if len(at)+1+len(word) > width {
				fmt.Fprintln(w, at)
				at = "//"
			}
			at += " " + word
		}
		fmt.Fprintln(w, at)
	}
}

// input writes the type of an operation's input.
func (g *generator) input(w *bytes.Buffer, o *op.Operation) {
	name := inputName(o)
	if g.named[name] != nil {
		g.fail("%s is taken", name)
	}
	comment(w, name+" is the input of "+o.Name+".")
	fmt.Fprintf(w, "type %s struct {\n", name)
	g.structFields(w, o.InputType(), o.InputSchema(), true)
	fmt.Fprint(w, "}\n\n")
}

func (g *generator) structFields(w *bytes.Buffer, t reflect.Type, s *jsonschema.Schema, input bool) {
	for _, f := range fields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		text := ""
		if p := property(s, f); p != nil {
			text = p.Description
		}
		if text == "" {
			text = g.docs.fields[key(owner(t, f))+"."+f.Name]
		}
		if input && s != nil && slices.Contains(s.Required, name) && !strings.Contains(text, "required") {
			text = strings.TrimSpace(sentence(text) + " Required.")
		}
		if text != "" {
			comment(w, text)
		}
		typ := g.expr(f.Type)
		if f.Name == generic(t) && generic(t) != "" { // the place of the argument
			typ = map[string]string{"Value": "T", "Items": "[]T", "Point": "*T"}[f.Name]
		}
		tag := f.Tag.Get("json")
		if f.Type.Kind() == reflect.Slice || f.Type.Kind() == reflect.Map {
			// An empty list of scopes is not the same as none, and must be sent.
			tag = strings.Replace(tag, ",omitempty", ",omitzero", 1)
		}
		fmt.Fprintf(w, "%s %s `json:%q`\n", f.Name, typ, tag)
	}
}

// owner is the struct that declares a field of t.
func owner(t reflect.Type, f reflect.StructField) reflect.Type {
	if len(f.Index) > 1 {
		t = t.FieldByIndex(f.Index[:len(f.Index)-1]).Type
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// method writes the method of an operation.
func (g *generator) method(w *bytes.Buffer, o *op.Operation, group string) {
	text := methodName(o) + ": " + sentence(o.Summary)
	if o.Description != "" {
		text += " " + sentence(o.Description)
	}
	var flags []string
	for _, f := range []struct {
		on         bool
		name, says string
	}{
		{o.ReadOnly || o.Idempotent, "repeatable", ""}, {o.LongRunning, "long", "It may take minutes, see WithProgress."},
		{o.Destructive, "", "It may remove what was stored."}, {o.Admin, "", "It needs a token with admin."},
	} {
		if f.on && f.name != "" {
			flags = append(flags, f.name)
		}
		if f.on && f.says != "" {
			text += "\n\n" + f.says
		}
	}
	comment(w, text)
	receiver, client := "(c *Client)", "c"
	if group != "" {
		receiver, client = "(g "+camel(group)+")", "g.c"
	}
	out := o.OutputType()
	for out.Kind() == reflect.Pointer {
		out = out.Elem()
	}
	flagged := "0"
	if len(flags) > 0 {
		flagged = strings.Join(flags, "|")
	}
	fmt.Fprintf(w, "func %s %s(ctx context.Context, in %s) (*%s, error) {\nreturn call[%s](ctx, %s, %q, %s, in)\n}\n\n",
		receiver, methodName(o), inputName(o), g.expr(out), g.expr(out), client, o.Name, flagged)
}

// groups writes the groups of operations that a client has.
func (g *generator) groups(names []string) *bytes.Buffer {
	var w bytes.Buffer
	comment(&w, "groups are the operations by the beginnings of their names.")
	fmt.Fprint(&w, "type groups struct {\n")
	for _, n := range names {
		if n != "" {
			fmt.Fprintf(&w, "%s %s // %s.*\n", camel(n), camel(n), n)
		}
	}
	fmt.Fprint(&w, "}\n\nfunc groupsOf(c *Client) groups {\nreturn groups{\n")
	for _, n := range names {
		if n != "" {
			fmt.Fprintf(&w, "%s: %s{c},\n", camel(n), camel(n))
		}
	}
	fmt.Fprint(&w, "}\n}\n\n")
	for _, n := range names {
		if n != "" {
			if g.named[camel(n)] != nil {
				g.fail("the group %s has the name of a type", n)
			}
			comment(&w, camel(n)+" are the operations "+n+".*; a Client has them.")
			fmt.Fprintf(&w, "type %s struct{ c *Client }\n\n", camel(n))
		}
	}
	return &w
}

// types writes the shared types.
func (g *generator) types() *bytes.Buffer {
	var w bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(g.named)) {
		t := g.named[name]
		text := g.docs.typeDoc(t)
		if text == "" {
			text = name + " is a part of what operations take and give."
		} else if bare, _, _ := strings.Cut(t.Name(), "["); bare != name {
			text = name + strings.TrimPrefix(text, bare)
		}
		comment(&w, text)
		if t.Kind() != reflect.Struct {
			fmt.Fprintf(&w, "type %s %s\n\n", name, t.Kind())
			g.constants(&w, name, t)
			continue
		}
		parameter := ""
		if generic(t) != "" {
			parameter = "[T any]"
		}
		fmt.Fprintf(&w, "type %s%s struct {\n", name, parameter)
		g.structFields(&w, t, g.schemas[t], false)
		fmt.Fprint(&w, "}\n\n")
	}
	return &w
}

// constants writes the words of a type that the engine names.
func (g *generator) constants(w *bytes.Buffer, name string, t reflect.Type) {
	words := g.docs.words[key(t)]
	if len(words) == 0 {
		return
	}
	comment(w, "The words of "+name+".")
	fmt.Fprint(w, "const (\n")
	for _, c := range words {
		constant := strings.ToUpper(c.name[:1]) + c.name[1:]
		if g.words[constant] || g.named[constant] != nil {
			constant = name + camel(c.value)
		}
		if g.words[constant] || g.named[constant] != nil {
			g.fail("%s comes twice", constant)
		}
		g.words[constant] = true
		fmt.Fprintf(w, "%s %s = %q", constant, name, c.value)
		if c.doc != "" {
			fmt.Fprintf(w, " // %s", c.doc)
		}
		fmt.Fprintln(w)
	}
	fmt.Fprint(w, ")\n\n")
}

// codes writes the codes of errors.
func (g *generator) codes() *bytes.Buffer {
	var w bytes.Buffer
	comment(&w, "The codes of errors. They are errors themselves, so that errors.Is compares an Error with one.")
	fmt.Fprint(&w, "const (\n")
	for _, o := range op.Outcomes() {
		fmt.Fprintf(&w, "Err%s Code = %q // %s\n", camel(string(o.Code)), string(o.Code), strings.ToLower(o.Title[:1])+o.Title[1:])
	}
	fmt.Fprint(&w, ")\n")
	return &w
}
