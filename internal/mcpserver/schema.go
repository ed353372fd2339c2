package mcpserver

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/strictjson"
)

// property is one argument of a tool.
type property struct {
	name   string
	schema *jsonschema.Schema
	needed bool
}

// object makes a schema of arguments, in the order that they are shown in.
func object(properties ...property) *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "object", Properties: map[string]*jsonschema.Schema{}}
	for _, p := range properties {
		s.Properties[p.name] = p.schema
		s.PropertyOrder = append(s.PropertyOrder, p.name)
		if p.needed {
			s.Required = append(s.Required, p.name)
		}
	}
	return s
}

func text(doc string) *jsonschema.Schema { return &jsonschema.Schema{Type: "string", Description: doc} }

func number(doc string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "integer", Description: doc}
}

func yesNo(doc string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "boolean", Description: doc}
}

func words(doc string, ws ...string) *jsonschema.Schema {
	s := strictjson.Words(ws...)
	s.Description = doc
	return s
}

// id is a 64-bit id. Format is what the decoder goes by, and is not shown.
func id(doc string) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "string", Format: strictjson.IDFormat, Description: doc}
}

func list(doc string, items *jsonschema.Schema) *jsonschema.Schema {
	return &jsonschema.Schema{Type: "array", Items: items, Description: doc}
}

// strict is a schema as the decoder wants it: objects take what they name and no
// more.
func strict(s *jsonschema.Schema) *jsonschema.Schema {
	s = s.CloneSchemas()
	for o := range everySchema(s) {
		if o.Type == "object" && (o == s || len(o.Properties) > 0) {
			o.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
		}
	}
	return s
}

// shown is a schema as clients are shown it: without what one of them refuses,
// and that says nothing to a model. The formats are marks for our own decoder.
// The server checks the arguments itself, by the whole schema.
func shown(s *jsonschema.Schema) *jsonschema.Schema {
	s = s.CloneSchemas()
	for o := range everySchema(s) {
		o.Format, o.Pattern = "", ""
		if o.AdditionalProperties != nil && o.AdditionalProperties.Not != nil {
			o.AdditionalProperties = nil
		}
		if o.Type == "object" && o.Properties == nil && o == s {
			o.Properties = map[string]*jsonschema.Schema{}
		}
	}
	return s
}

// everySchema walks a schema and what it is made of, as far as the tools' schemas
// go: properties, items and free members.
func everySchema(s *jsonschema.Schema) func(yield func(*jsonschema.Schema) bool) {
	return func(yield func(*jsonschema.Schema) bool) { walkSchema(s, yield) }
}

func walkSchema(s *jsonschema.Schema, yield func(*jsonschema.Schema) bool) bool {
	if s == nil {
		return true
	}
	if !yield(s) {
		return false
	}
	for _, name := range propertyNames(s) {
		if !walkSchema(s.Properties[name], yield) {
			return false
		}
	}
	return walkSchema(s.Items, yield) && (s.AdditionalProperties == nil || s.AdditionalProperties.Not != nil ||
		walkSchema(s.AdditionalProperties, yield))
}

func propertyNames(s *jsonschema.Schema) []string {
	names := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// maxSchemaDepth is how deep arguments may be nested. OpenAI takes ten levels.
const maxSchemaDepth = 10

// maxToolName is the longest name of a tool that every client takes.
const maxToolName = 64

// LintTool says what in a tool some client would refuse: Claude, OpenAI and Gemini
// differ, and this is what all of them take. The error lists every finding.
func LintTool(name string, input *jsonschema.Schema) error {
	var found []error
	if !regexp.MustCompile(`^[a-zA-Z0-9_-]+$`).MatchString(name) || len(name) > maxToolName {
		found = append(found, fmt.Errorf("the name may have letters, digits, _ and -, at most %d", maxToolName))
	}
	if err := Lint(input); err != nil {
		found = append(found, err)
	}
	if len(found) == 0 {
		return nil
	}
	return fmt.Errorf("tool %s: %w", name, errors.Join(found...))
}

// Lint says what in a tool's input schema some client would refuse. At the top
// there must be an object with properties and without alternatives; below, each
// part has one type, names what it is made of in place, and ends.
func Lint(s *jsonschema.Schema) error {
	if s == nil {
		return errors.New("there is no schema")
	}
	l := linter{seen: map[*jsonschema.Schema]bool{}}
	if s.Type != "object" {
		l.find("", "is not an object")
	}
	if s.Properties == nil {
		l.find("", "has no properties, not even none")
	}
	l.walk(s, "", 1)
	return errors.Join(l.found...)
}

type linter struct {
	seen  map[*jsonschema.Schema]bool // on the way from the top
	found []error
}

func (l *linter) find(path, format string, args ...any) {
	if path == "" {
		path = "the top"
	}
	l.found = append(l.found, fmt.Errorf("%s "+format, append([]any{path}, args...)...))
}

func (l *linter) walk(s *jsonschema.Schema, path string, depth int) {
	if s == nil {
		return
	}
	if l.seen[s] {
		l.find(path, "contains itself")
		return
	}
	if depth > maxSchemaDepth {
		l.find(path, "is nested more than %d levels deep", maxSchemaDepth)
		return
	}
	l.seen[s] = true
	defer delete(l.seen, s)
	if s.Ref != "" || s.DynamicRef != "" || len(s.Defs) > 0 || len(s.Definitions) > 0 {
		l.find(path, "refers to another schema")
	}
	if len(s.Types) > 0 {
		l.find(path, "has several types")
	}
	if len(s.AnyOf) > 0 || len(s.OneOf) > 0 || len(s.AllOf) > 0 || s.Not != nil || s.If != nil {
		l.find(path, "has alternatives")
	}
	if s.Format != "" {
		l.find(path, "has the format %q, which not every client knows", s.Format)
	}
	if s.Type == "array" && s.Items == nil {
		l.find(path, "is an array of nothing in particular")
	}
	if len(s.Enum) > 0 && s.Type != "string" {
		l.find(path, "lists values and is not a string")
	}
	if len(s.PrefixItems) > 0 || len(s.ItemsArray) > 0 || len(s.PatternProperties) > 0 || len(s.DependentSchemas) > 0 {
		l.find(path, "uses what only a validator understands")
	}
	for _, name := range s.Required {
		if s.Properties[name] == nil {
			l.find(path, "needs %q, which it does not have", name)
		}
	}
	for _, name := range propertyNames(s) {
		l.walk(s.Properties[name], under(path, name), depth+1)
	}
	l.walk(s.Items, path+"[]", depth+1)
	if a := s.AdditionalProperties; a != nil && a.Not == nil {
		l.walk(a, under(path, "*"), depth+1)
	}
}

func under(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
