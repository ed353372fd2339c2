package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

func rememberTool() *tool {
	return define(tool{
		name: "remember", title: "Remember",
		doc: "Keep one thing for later sessions: a fact, decision, preference, lesson or event. One sentence per call that stands on its own, " +
			"with names in the place of pronouns. What is known already is merged, not kept twice. Not for secrets, nor for what the files say.",
		input: object(
			property{"text", text("what to remember"), true},
			property{"reasoning", text("why it holds, or where it comes from"), false},
			property{"type", text("knowledge (default), skill, emotion, event, task, or a word of your own"), false},
			property{"tags", list("a few words to find it by", text("")), false},
		),
		rows: []string{"remember"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Text      string   `json:"text"`
		Reasoning string   `json:"reasoning"`
		Type      *string  `json:"type"`
		Tags      []string `json:"tags"`
	}) (*reply, error) {
		h := s.home(ctx, in.Namespace)
		args := map[string]any{"text": in.Text, "namespace": h.namespace, "scope": h.scopes[0]}
		if in.Reasoning != "" {
			args["reasoning"] = in.Reasoning
		}
		if in.Type != nil {
			args["type"] = *in.Type
		}
		if len(in.Tags) > 0 {
			args["tags"] = in.Tags
		}
		doc, err := s.call(ctx, "remember", args)
		if err != nil {
			return nil, err
		}
		return &reply{doc: doc, say: func(doc document) string {
			return fmt.Sprintf("Remembered as %s: %s", str(doc, "id"), str(doc, "text"))
		}, notes: redactions(doc)}, nil
	})
}

// redactions says what was taken out of a write.
func redactions(doc document) []string {
	var rules []string
	for _, r := range items(doc, "redacted") {
		rule := str(r, "rule")
		if n := fmt.Sprint(r["count"]); n != "1" {
			rule += " (" + n + " times)"
		}
		rules = append(rules, rule)
	}
	if len(rules) == 0 {
		return nil
	}
	return []string{"What looked like a secret was taken out before it was stored: " + strings.Join(rules, ", ") + "."}
}

func recallTool() *tool {
	return define(tool{
		name: "recall", title: "Recall",
		doc: "Find what was remembered about something, best first. Call it before answering what earlier sessions may bear on. " +
			"Ask in plain words, in the language of the question. Tell feedback which answers helped.",
		input: object(
			property{"query", text("what you want to know"), true},
			property{"limit", number("how many, 1..100; default 10"), false},
			property{"tags", list("only what has all of these tags", text("")), false},
			property{"thread", text("only this conversation"), false},
			maxTokens(),
		),
		rows: []string{"recall"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Query  string   `json:"query"`
		Limit  *int     `json:"limit"`
		Tags   []string `json:"tags"`
		Thread *string  `json:"thread"`
	}) (*reply, error) {
		budget, err := in.budget()
		if err != nil {
			return nil, err
		}
		h := s.home(ctx, in.Namespace)
		args := map[string]any{"query": in.Query, "namespace": h.namespace, "scopes": h.scopes}
		if err := limited(args, in.Limit); err != nil {
			return nil, err
		}
		if len(in.Tags) > 0 {
			args["tags"] = in.Tags
		}
		if in.Thread != nil {
			args["thread"] = *in.Thread
		}
		doc, err := s.call(ctx, "recall", args)
		if err != nil {
			return nil, err
		}
		const none = "Nothing is remembered about that."
		return &reply{
			doc: doc, lists: []string{"hits"}, budget: budget, recalled: true, notes: degraded(doc), none: none,
			say: func(doc document) string {
				return lines(items(doc, "hits"), none, func(m document) string {
					return memoryLine(m, str(m, "text"), str(m, "type"))
				})
			},
		}, nil
	})
}

// maxLimit bounds how many items a model may ask for at once.
const maxLimit = 100

// limited puts a limit among an operation's arguments.
func limited(args map[string]any, limit *int) error {
	if limit == nil {
		return nil
	}
	if *limit < 1 || *limit > maxLimit {
		return errs.Invalid("limit", "must be from 1 to %d", maxLimit)
	}
	args["limit"] = *limit
	return nil
}

// searchKinds are the kinds of records that search finds.
func searchKinds() *jsonschema.Schema {
	return words("", "memory", "entity", "relation", "event", "chunk", "fact", "episode", "procedure")
}

func searchTool() *tool {
	return define(tool{
		name: "search", title: "Search everything",
		doc: "Search every kind of record: memories, passages of notes (chunk), entities, relations and events of the graph, facts, " +
			"and episodes (what was said and done). Use it when recall is not enough, or for notes and past conversations.",
		input: object(
			property{"query", text("plain words; no sign is an operator"), true},
			property{"kinds", list("default memory, entity, relation, event, chunk", searchKinds()), false},
			property{"limit", number("how many, 1..100; default 10"), false},
			property{"tags", list("only what has all of these tags", text("")), false},
			property{"thread", text("only this conversation"), false},
			property{"since", text("only what is not older: a day such as 2026-01-31, or a time in RFC 3339"), false},
			maxTokens(),
		),
		rows: []string{"search"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Query  string   `json:"query"`
		Kinds  []string `json:"kinds"`
		Limit  *int     `json:"limit"`
		Tags   []string `json:"tags"`
		Thread *string  `json:"thread"`
		Since  *string  `json:"since"`
	}) (*reply, error) {
		budget, err := in.budget()
		if err != nil {
			return nil, err
		}
		filter := s.home(ctx, in.Namespace).filter()
		args := map[string]any{"query": in.Query, "filter": filter}
		if err := limited(args, in.Limit); err != nil {
			return nil, err
		}
		if len(in.Kinds) > 0 {
			args["kinds"] = in.Kinds
		}
		if len(in.Tags) > 0 {
			filter["tags"] = in.Tags
		}
		if in.Thread != nil {
			filter["thread"] = *in.Thread
		}
		if in.Since != nil {
			at, err := moment(*in.Since)
			if err != nil {
				return nil, errs.Invalid("since", "must be a day such as 2026-01-31, or a time such as 2026-01-31T08:00:00Z")
			}
			filter["created_from_us"] = at.UnixMicro()
		}
		doc, err := s.call(ctx, "search", args)
		if err != nil {
			return nil, renamed(err, map[string]string{"filter.created_from_us": "since"})
		}
		told := obj(doc, "diagnostics")
		notes := degraded(told)
		if err := s.nameEnds(ctx, items(doc, "hits"), filter); err != nil {
			return nil, renamed(err, nil)
		}
		hits, _ := slim(doc["hits"]).([]any)
		const none = "Nothing was found."
		return &reply{
			// Clients that show a model the structure alone must not hide what was missing.
			doc:   document{"hits": hits, "degraded": told["degraded"], "vector_missing": told["vector_missing"]},
			lists: []string{"hits"}, budget: budget, recalled: true, notes: notes, none: none,
			say: func(doc document) string {
				return lines(items(doc, "hits"), none, func(m document) string {
					kind, _, _ := strings.Cut(str(m, "key"), ":")
					return recordLine(kind, obj(m, "record"))
				})
			},
		}, nil
	})
}

// nameEnds gives the relations among hits the names of what they relate: an id
// says nothing to a model.
func (s *server) nameEnds(ctx context.Context, hits []document, filter map[string]any) error {
	home := map[string]any{"namespace": filter["namespace"], "scopes": filter["scopes"]}
	names := map[string]string{}
	for _, h := range hits {
		if !strings.HasPrefix(str(h, "key"), "relation:") {
			continue
		}
		r := obj(h, "record")
		for _, end := range []string{"subject", "object"} {
			at := str(r, end+"_id")
			name, asked := names[at]
			if !asked {
				doc, err := s.call(ctx, "graph.get", map[string]any{"kind": "entity", "id": at, "filter": home})
				if errors.Is(err, errs.NotFound) {
					err = nil // it lies in another scope: its id must do
				}
				if err != nil {
					return err
				}
				name = str(obj(doc, "record"), "name")
				names[at] = name
			}
			if name != "" {
				r[end+"_name"] = name
			}
		}
	}
	return nil
}

func moment(text string) (time.Time, error) {
	if at, err := time.Parse(time.DateOnly, text); err == nil {
		return at, nil
	}
	return time.Parse(time.RFC3339, text)
}

func feedbackTool() *tool {
	return define(tool{
		name: "feedback", title: "Feedback",
		doc: "After an answer that used recall: say which memories were shown and which of them helped. Those that help stay strong, " +
			"the others fade. Call it once per answer.",
		input: object(
			property{"recalled_ids", list("the ids that recall gave", id("")), true},
			property{"useful_ids", list("those of them that helped; none is left out", id("")), false},
		),
		rows: []string{"memories.feedback"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Recalled []loci.ID `json:"recalled_ids"`
		Useful   []loci.ID `json:"useful_ids"`
	}) (*reply, error) {
		args := map[string]any{"recalled_ids": in.Recalled, "filter": s.home(ctx, in.Namespace).filter()}
		if len(in.Useful) > 0 {
			args["useful_ids"] = in.Useful
		}
		doc, err := s.call(ctx, "memories.feedback", args)
		if err != nil {
			return nil, renamed(err, nil)
		}
		return &reply{doc: doc, say: func(doc document) string {
			v := obj(doc, "value")
			return fmt.Sprintf("Noted: %v recalled, %v of them strengthened.", v["recalled"], v["boosted"])
		}}, nil
	})
}

func forgetTool() *tool {
	return define(tool{
		name: "forget", title: "Forget",
		doc: "Delete one record by the id that recall, search, recent or explore gave. Use it when the user asks, or when a memory is wrong; " +
			"to correct one, remember what is right as well. It cannot be undone.",
		input: object(
			property{"id", &jsonschema.Schema{Type: "string", Format: "uint64", Description: "the record's id"}, true},
			property{"kind", words("default memory", "memory", "entity", "relation", "event", "note", "fact", "episode", "procedure"), false},
		),
		rows: []string{"memories.delete", "graph.delete", "notes.delete", "facts.delete", "episodes.delete", "procedures.delete"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		ID   loci.PointID `json:"id"` // wide enough for every kind
		Kind string       `json:"kind"`
	}) (*reply, error) {
		h := s.home(ctx, in.Namespace)
		if in.Kind == "" {
			in.Kind = "memory"
		}
		row, args := "memories.delete", map[string]any{"id": in.ID}
		switch in.Kind {
		case "entity", "relation", "event":
			row = "graph.delete"
			args["kind"] = in.Kind
		case "note":
			row = "notes.delete"
		case "fact", "episode", "procedure":
			row = in.Kind + "s.delete"
		}
		if strings.HasSuffix(row, "s.delete") && row != "memories.delete" && row != "notes.delete" {
			args["namespace"], args["scope"] = h.namespace, h.scopes[0]
		} else {
			args["filter"] = h.filter()
		}
		doc, err := s.call(ctx, row, args)
		if err != nil {
			return nil, renamed(err, nil)
		}
		return &reply{doc: doc, say: func(doc document) string {
			if doc["value"] == true {
				return fmt.Sprintf("The %s %v is forgotten.", in.Kind, in.ID)
			}
			return fmt.Sprintf("There is no %s %v here, so nothing was deleted.", in.Kind, in.ID)
		}}, nil
	})
}
