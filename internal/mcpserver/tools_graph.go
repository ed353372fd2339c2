package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
)

// maxTriples bounds one call of relate.
const maxTriples = 50

// triple is one relation between two named things.
type triple struct {
	Subject     string `json:"subject"`
	SubjectType string `json:"subject_type"`
	Predicate   string `json:"predicate"`
	Object      string `json:"object"`
	ObjectType  string `json:"object_type"`
	Reason      string `json:"reason"`
}

func relateTool() *tool {
	item := object(
		property{"subject", text(""), true},
		property{"predicate", text("a verb, such as works at"), true},
		property{"object", text(""), true},
		property{"subject_type", text("such as person, place, project"), false},
		property{"object_type", text(""), false},
		property{"reason", text("why it holds"), false},
	)
	return define(tool{
		name: "relate", title: "Relate",
		doc: "Store in the graph how named things are related: people, places, projects, parts. A name that is known is the same thing again. " +
			"Use remember for what is not a relation.",
		input: object(property{"triples", list("at most 50", item), true}),
		rows:  []string{"graph.apply_batch"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Triples []triple `json:"triples"`
	}) (*reply, error) {
		if len(in.Triples) == 0 || len(in.Triples) > maxTriples {
			return nil, errs.Invalid("triples", "must be from 1 to %d", maxTriples)
		}
		h := s.home(ctx, in.Namespace)
		doc, err := s.call(ctx, "graph.apply_batch", batch(in.Triples, h))
		if err != nil {
			return nil, err
		}
		doc["value"] = slim(doc["value"])
		return &reply{doc: doc, lists: nil, notes: redactions(doc), say: func(doc document) string {
			v := obj(doc, "value")
			return lines(named(items(v, "relations"), items(v, "entities")), "Nothing was stored.", func(m document) string {
				return "Stored " + recordLine("relation", m)
			})
		}}, nil
	})
}

// batch makes one write of triples: each name is one entity of it.
func batch(triples []triple, h home) map[string]any {
	var entities, relations []any
	refs := map[string]string{}
	ref := func(name, kind string) string {
		key := strings.ToLower(strings.TrimSpace(name))
		r, ok := refs[key]
		if !ok {
			r = fmt.Sprintf("e%d", len(refs))
			refs[key] = r
			e := map[string]any{"ref": r, "name": name, "namespace": h.namespace, "scope": h.scopes[0]}
			if kind != "" {
				e["entity_type"] = kind
			}
			entities = append(entities, e)
		}
		return r
	}
	for _, t := range triples {
		subject, object := ref(t.Subject, t.SubjectType), ref(t.Object, t.ObjectType)
		r := map[string]any{
			"subject": map[string]any{"ref": subject}, "predicate": t.Predicate, "object": map[string]any{"ref": object},
			"namespace": h.namespace, "scope": h.scopes[0],
		}
		if t.Reason != "" {
			r["reason"] = t.Reason
		}
		relations = append(relations, r)
	}
	return map[string]any{"entities": entities, "relations": relations}
}

// named gives relations the names of the entities at their ends.
func named(relations, entities []document) []document {
	names := map[string]string{}
	for _, e := range entities {
		names[str(e, "id")] = str(e, "name")
	}
	for _, r := range relations {
		for _, end := range []string{"subject", "object"} {
			if name := names[str(r, end+"_id")]; name != "" {
				r[end+"_name"] = name
			}
		}
	}
	return relations
}

func exploreTool() *tool {
	return define(tool{
		name: "explore", title: "Explore the graph",
		doc: "Look around a named thing in the graph: what it is, its relations and events. With to, how it is connected to another thing. " +
			"With depth 2 or 3, also what lies further away.",
		input: object(
			property{"name", text("a name, an alias or an entity's id"), true},
			property{"to", text("another thing: the shortest path to it"), false},
			property{"depth", number("1..3, default 1"), false},
			property{"limit", number("how many relations or entities, 1..100; default 20"), false},
			maxTokens(),
		),
		rows: []string{"graph.resolve", "graph.get", "graph.neighbors", "graph.events_for_entity", "graph.ego", "graph.path"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Name  string  `json:"name"`
		To    *string `json:"to"`
		Depth *int    `json:"depth"`
		Limit *int    `json:"limit"`
	}) (*reply, error) {
		budget, err := in.budget()
		if err != nil {
			return nil, err
		}
		x := explorer{s: s, filter: s.home(ctx, in.Namespace).filter(), limit: 20, depth: 1}
		bound := map[string]any{}
		if err := limited(bound, in.Limit); err != nil {
			return nil, err
		}
		if in.Limit != nil {
			x.limit = *in.Limit
		}
		if in.Depth != nil {
			if x.depth = *in.Depth; x.depth < 1 || x.depth > 3 {
				return nil, errs.Invalid("depth", "must be from 1 to 3")
			}
		}
		from, others, err := x.resolve(ctx, "name", in.Name)
		if err != nil {
			return nil, err
		}
		if in.To != nil {
			to, _, err := x.resolve(ctx, "to", *in.To)
			if err != nil {
				return nil, err
			}
			return x.path(ctx, from, to, budget)
		}
		return x.around(ctx, from, others, budget)
	})
}

// explorer asks the graph for one caller.
type explorer struct {
	s            *server
	filter       map[string]any
	limit, depth int
}

// resolve finds the entity that goes by a name or an id, and how many others go by
// the name as well.
func (x explorer) resolve(ctx context.Context, field, name string) (document, int, error) {
	if name != "" && len(name) < 20 && strings.Trim(name, "0123456789") == "" {
		doc, err := x.s.call(ctx, "graph.get", map[string]any{"kind": "entity", "id": name, "filter": x.filter})
		if err == nil {
			return obj(doc, "record"), 0, nil
		}
		if !errors.Is(err, errs.NotFound) {
			return nil, 0, renamed(err, map[string]string{"id": field})
		}
	}
	doc, err := x.s.call(ctx, "graph.resolve", map[string]any{"name": name, "filter": x.filter, "limit": 5})
	if err != nil {
		return nil, 0, renamed(err, map[string]string{"name": field})
	}
	found := items(doc, "entities")
	if len(found) == 0 {
		return nil, 0, &errs.Error{Code: errs.NotFound, Field: field, Message: "nothing in the graph goes by this name; search finds what is like it"}
	}
	return found[0], len(found) - 1, nil
}

func (x explorer) path(ctx context.Context, from, to document, budget int) (*reply, error) {
	doc, err := x.s.call(ctx, "graph.path", map[string]any{"from": str(from, "id"), "to": str(to, "id"), "direction": "both", "filter": x.filter})
	if err != nil {
		return nil, renamed(err, nil)
	}
	out := document{"path": slim(doc["entities"])}
	return &reply{
		doc: out, lists: []string{"path"}, budget: budget, recalled: true,
		say: func(doc document) string {
			var names []string
			for _, e := range items(doc, "path") {
				names = append(names, str(e, "name"))
			}
			return strings.Join(names, " - ") + "\n" + lines(items(doc, "path"), "", func(m document) string { return recordLine("entity", m) })
		},
	}, nil
}

func (x explorer) around(ctx context.Context, from document, others, budget int) (*reply, error) {
	at := str(from, "id")
	near, err := x.s.call(ctx, "graph.neighbors", map[string]any{"id": at, "filter": x.filter, "limit": x.limit})
	if err != nil {
		return nil, renamed(err, nil)
	}
	events, err := x.s.call(ctx, "graph.events_for_entity", map[string]any{"id": at, "filter": x.filter, "limit": x.limit})
	if err != nil {
		return nil, renamed(err, nil)
	}
	entities := near["entities"]
	if x.depth > 1 {
		far, err := x.s.call(ctx, "graph.ego", map[string]any{
			"root": at, "direction": "both", "depth": x.depth, "limit": x.limit, "filter": x.filter,
		})
		if err != nil {
			return nil, renamed(err, nil)
		}
		entities = far["entities"]
	}
	relations := named(items(near, "relations"), append(items(near, "entities"), from))
	list := make([]any, len(relations))
	for i, r := range relations {
		list[i] = slim(r)
	}
	doc := document{"entity": slim(from), "relations": list, "entities": slim(entities), "events": slim(events["events"])}
	for name, v := range doc {
		if v == nil {
			doc[name] = []any{}
		}
	}
	r := &reply{doc: doc, lists: []string{"relations", "events", "entities"}, budget: budget, recalled: true}
	if others > 0 {
		r.notes = append(r.notes, fmt.Sprintf("%d more go by this name; explore takes an id as well.", others))
	}
	r.say = func(doc document) string {
		out := []string{recordLine("entity", obj(doc, "entity"))}
		for _, part := range []struct{ list, kind string }{{"relations", "relation"}, {"events", "event"}, {"entities", "entity"}} {
			for _, m := range items(doc, part.list) {
				out = append(out, recordLine(part.kind, m))
			}
		}
		return strings.Join(out, "\n")
	}
	return r, nil
}
