// Package openapi describes the HTTP surface as an OpenAPI 3.1 document, made of
// the operation table and of nothing else.
package openapi

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// object is a JSON object whose keys come out in alphabetical order.
type object = map[string]any

// Document is the description of a table, indented, the same for the same table
// and version.
func Document(table *op.Table, version string) []byte {
	if version == "" {
		version = "unknown"
	}
	b := &builder{names: map[form]string{}, schemas: object{"Problem": problemSchema()}}
	paths := object{}
	tags := []object{}
	for _, o := range table.All() {
		paths["/v1/"+o.Name] = object{"post": b.operation(o)}
		tag := object{"name": tagOf(o)}
		if !slices.ContainsFunc(tags, func(t object) bool { return t["name"] == tag["name"] }) {
			tags = append(tags, tag)
		}
	}
	if feed, ok := paths["/v1/changes"].(object); ok {
		feed["get"] = b.feed()
	}
	maps.Copy(paths, watched())
	doc := object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Loci", "version": version,
			"description": "A memory for AI agents. Every operation takes a JSON object by POST and answers with one; an error is application/problem+json. " +
				"Ids are decimal strings, so that no reader rounds them; times are UTC microseconds since 1970. A field that is not named here is refused, and so is null in an input. " +
				"With Accept: text/event-stream an operation sends events: progress, and at last result or problem.",
		},
		"servers":  []object{{"url": "/"}},
		"security": []object{{"token": []string{}}, {}},
		"tags":     tags,
		"paths":    paths,
		"components": object{
			"schemas": b.schemas,
			"securitySchemes": object{"token": object{
				"type": "http", "scheme": "bearer",
				"description": "A token that loci token new made. Needed if the server was started with a file of tokens.",
			}},
			"responses": responses(),
		},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(doc); err != nil {
		panic("openapi: " + err.Error()) // maps, strings and schemas have a JSON form
	}
	return bytes.TrimRight(out.Bytes(), "\n")
}

func tagOf(o *op.Operation) string {
	if group, _, ok := strings.Cut(o.Name, "."); ok {
		return group
	}
	return "store"
}

// builder collects the schemas that operations have in common.
type builder struct {
	names   map[form]string
	schemas object
}

// form is a Go type with its schema.
type form struct {
	t      reflect.Type
	schema string
}

func ref(kind, name string) object { return object{"$ref": "#/components/" + kind + "/" + name} }

func (b *builder) operation(o *op.Operation) object {
	input, output := b.schema(o.InputSchema(), o.InputType()), b.schema(o.OutputSchema(), o.OutputType())
	text := o.Description
	if o.Admin {
		text = strings.TrimSpace(text + " Needs a token with admin, where there are tokens.")
	}
	content := object{"application/json": object{"schema": output}}
	if o.LongRunning {
		content["text/event-stream"] = object{"schema": object{
			"type": "string", "description": "events: progress with done and total, then result as in JSON, or problem",
		}}
	}
	answers := object{"200": object{"description": "The result", "content": content}}
	for name := range responses() {
		answers[strings.TrimPrefix(name, "Problem")] = ref("responses", name)
	}
	made := object{
		"operationId": o.Name, "summary": o.Summary, "tags": []string{tagOf(o)},
		"requestBody": object{
			"required": len(o.InputSchema().Required) > 0,
			"content":  object{"application/json": object{"schema": input}},
		},
		"responses": answers,
		"x-loci": object{
			"read_only": o.ReadOnly, "idempotent": o.Idempotent, "destructive": o.Destructive, "long_running": o.LongRunning, "admin": o.Admin,
		},
	}
	if text != "" {
		made["description"] = text
	}
	return made
}

// responses are the ways in which an operation fails, by the name of the
// component, which ends in the status.
func responses() object {
	titles := map[string]string{
		"400": "The input is not valid", "401": "A token is needed", "403": "The token's grants do not cover this",
		"408": "The request came too slowly", "413": "The request is too large", "415": "The body is not JSON", "default": "Another error",
	}
	for _, o := range op.Outcomes() {
		if o.Status < 500 {
			status := string([]byte{byte('0' + o.Status/100), byte('0' + o.Status/10%10), byte('0' + o.Status%10)})
			if titles[status] == "" {
				titles[status] = o.Title
			}
		}
	}
	out := object{}
	for status, title := range titles {
		out["Problem"+status] = object{
			"description": title,
			"content":     object{"application/problem+json": object{"schema": ref("schemas", "Problem")}},
		}
	}
	return out
}

func problemSchema() object {
	codes := []string{}
	for _, o := range op.Outcomes() {
		codes = append(codes, string(o.Code))
	}
	text := func(description string) object { return object{"type": "string", "description": description} }
	return object{
		"type": "object", "description": "An error, as RFC 9457 has it",
		"required": []string{"type", "title", "status", "detail", "code"},
		"properties": object{
			"type":      text("urn:loci:error: and the code"),
			"title":     text("what the code means"),
			"status":    object{"type": "integer", "description": "the HTTP status"},
			"detail":    text("what is wrong and what would be right"),
			"code":      object{"type": "string", "enum": codes, "description": "stable, for programs"},
			"operation": text("which operation failed"),
			"field":     text("which field of the input is at fault"),
			"reason":    text("a finer code, where an operation has one"),
			"details":   object{"type": "object", "description": "figures of the reason"},
		},
	}
}

// feed describes the change feed, which is the one stream without an end.
func (b *builder) feed() object {
	query := func(name string, schema object, description string) object {
		return object{"name": name, "in": "query", "schema": schema, "description": description}
	}
	text := object{"type": "string"}
	several := object{"type": "array", "items": text}
	return object{
		"operationId": "changes.stream", "summary": "Follow what is written and deleted", "tags": []string{"store"},
		"description": "Events named changes hold what POST /v1/changes answers; the id of an event is the place behind it, and Last-Event-ID goes on there. It needs Accept: text/event-stream.",
		"parameters": []object{
			query("after", text, "where to begin; left out: from now on"),
			query("limit", object{"type": "integer", "minimum": 1, "maximum": loci.MaxChanges}, "records in one event"),
			query("namespace", text, "left out: every one that the caller may read"),
			query("scope", several, "left out: every one that the caller may read"),
			query("kind", several, "left out: every kind"),
			{"name": "Last-Event-ID", "in": "header", "schema": text, "description": "wins over after"},
		},
		"responses": object{
			"200":     object{"description": "The events", "content": object{"text/event-stream": object{"schema": text}}},
			"default": ref("responses", "Problemdefault"),
		},
	}
}

// watched are the places that a server is watched by.
func watched() object {
	get := func(id, summary, kind string, open bool) object {
		o := object{
			"operationId": id, "summary": summary, "tags": []string{"server"},
			"responses": object{
				"200":     object{"description": "The answer", "content": object{kind: object{"schema": object{}}}},
				"default": ref("responses", "Problemdefault"),
			},
		}
		if open {
			o["security"] = []object{{}}
		}
		return object{"get": o}
	}
	return object{
		"/v1":           get("server.operations", "List the operations", "application/json", false),
		"/openapi.json": get("server.openapi", "This document", "application/json", false),
		"/metrics":      get("server.metrics", "Figures for Prometheus; needs admin", "text/plain", false),
		"/healthz":      get("server.health", "Whether the process lives", "application/json", true),
		"/readyz":       get("server.ready", "Whether the store answers and its index can be used", "application/json", true),
	}
}

// schema turns an operation's schema into one of the document: an object that is
// made of a Go type of its own becomes a component.
func (b *builder) schema(s *jsonschema.Schema, t reflect.Type) any {
	t = indirect(t)
	description := s.Description
	if t.Kind() != reflect.Struct || t.Name() == "" || s.Type != "object" || s.Properties == nil {
		return b.plain(s, t)
	}
	own := *s
	own.Description = ""
	raw, err := json.Marshal(&own)
	if err != nil {
		panic("openapi: " + err.Error())
	}
	// A result may hold null where an input may not, so one type can have two forms.
	key := form{t, string(raw)}
	name, known := b.names[key]
	if !known {
		name = b.name(t)
		b.names[key] = name
		b.schemas[name] = b.plain(&own, t)
	}
	r := ref("schemas", name)
	if description != "" {
		r["description"] = description
	}
	return r
}

// plain turns a schema into JSON with its parts as components.
func (b *builder) plain(s *jsonschema.Schema, t reflect.Type) any {
	flat := *s
	flat.Properties, flat.Items, flat.AdditionalProperties, flat.PropertyOrder = nil, nil, nil, nil
	raw, err := json.Marshal(&flat)
	if err != nil {
		panic("openapi: " + err.Error())
	}
	made := object{}
	if err := json.Unmarshal(raw, &made); err != nil { // true: anything goes
		made = object{}
	}
	if s.Items != nil {
		made["items"] = b.part(s.Items, elem(t, reflect.Slice, reflect.Array))
	}
	if s.AdditionalProperties != nil {
		if s.AdditionalProperties.Not != nil {
			made["additionalProperties"] = false
		} else {
			made["additionalProperties"] = b.part(s.AdditionalProperties, elem(t, reflect.Map))
		}
	}
	if s.Properties != nil {
		fields := map[string]reflect.Type{}
		if t.Kind() == reflect.Struct {
			for _, f := range reflect.VisibleFields(t) {
				if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && !f.Anonymous {
					fields[name] = f.Type
				}
			}
		}
		properties := object{}
		for name, p := range s.Properties {
			properties[name] = b.part(p, fields[name])
		}
		made["properties"] = properties
	}
	return made
}

// part is schema for a part whose Go type may not be known.
func (b *builder) part(s *jsonschema.Schema, t reflect.Type) any {
	if t == nil {
		t = reflect.TypeFor[any]()
	}
	return b.schema(s, t)
}

func elem(t reflect.Type, kinds ...reflect.Kind) reflect.Type {
	if slices.Contains(kinds, t.Kind()) {
		return t.Elem()
	}
	return nil
}

func indirect(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}

// name is a component's name: that of the Go type, with the package before it
// where two types have the same.
func (b *builder) name(t reflect.Type) string {
	base, args, generic := strings.Cut(t.Name(), "[")
	if generic { // Receipt[.../loci.Memory] is ReceiptMemory
		for arg := range strings.SplitSeq(strings.TrimSuffix(args, "]"), ",") {
			base += title(arg[strings.LastIndexAny(arg, "./]*")+1:])
		}
	}
	base = title(base)
	if b.schemas[base] != nil || base == "Problem" {
		pkg := t.PkgPath()
		base = title(pkg[strings.LastIndexByte(pkg, '/')+1:]) + base
	}
	name := base
	for n := 2; b.schemas[name] != nil; n++ {
		name = base + string(rune('0'+n))
	}
	return name
}

func title(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}
