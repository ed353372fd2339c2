package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

func notesTool() *tool {
	return define(tool{
		name: "notes", title: "Notes",
		doc: "The user's own Markdown notes, kept up to date from a folder. Without id: list them. With id: read one. " +
			"To find a passage use search with kinds [\"chunk\"], which names its note_id.",
		input: object(
			property{"id", id("the note to read"), false},
			property{"after", text("go on behind this: next_cursor of the answer before"), false},
			property{"limit", number("how many notes or passages, 1..100; default 20"), false},
			maxTokens(),
		),
		rows: []string{"notes.list", "notes.get", "notes.chunks"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		ID    *loci.ID `json:"id"`
		After *string  `json:"after"`
		Limit *int     `json:"limit"`
	}) (*reply, error) {
		budget, err := in.budget()
		if err != nil {
			return nil, err
		}
		args := map[string]any{"filter": s.home(ctx, in.Namespace).filter(), "limit": 20}
		if err := limited(args, in.Limit); err != nil {
			return nil, err
		}
		if in.After != nil {
			args["after"] = *in.After
		}
		if in.ID != nil {
			return s.readNote(ctx, *in.ID, args, budget)
		}
		doc, err := s.call(ctx, "notes.list", args)
		if err != nil {
			return nil, renamed(err, nil)
		}
		const none = "There are no notes here."
		r := &reply{doc: document{"notes": slim(doc["items"])}, lists: []string{"notes"}, budget: budget, recalled: true, none: none}
		r.goOn(doc)
		r.say = func(doc document) string {
			return lines(items(doc, "notes"), none, func(m document) string { return recordLine("note", m) })
		}
		return r, nil
	})
}

// goOn tells where a list goes on.
func (r *reply) goOn(page document) {
	if next := str(page, "next_cursor"); next != "" {
		r.doc["next_cursor"] = next
		r.notes = append(r.notes, "There is more: call again with after "+strconv.Quote(next)+".")
	}
}

func (s *server) readNote(ctx context.Context, id loci.ID, args map[string]any, budget int) (*reply, error) {
	note, err := s.call(ctx, "notes.get", map[string]any{"id": id, "filter": args["filter"]})
	if err != nil {
		return nil, renamed(err, nil)
	}
	args["note_id"] = id
	page, err := s.call(ctx, "notes.chunks", args)
	if err != nil {
		return nil, renamed(err, map[string]string{"note_id": "id"})
	}
	r := &reply{
		doc:   document{"note": slim(note), "chunks": slim(page["items"])},
		lists: []string{"chunks"}, budget: budget, recalled: true,
	}
	r.goOn(page)
	r.say = func(doc document) string {
		n := obj(doc, "note")
		out := []string{str(n, "title") + about(str(n, "path"), "note "+str(n, "id")), ""}
		for _, c := range items(doc, "chunks") {
			out = append(out, str(c, "content"))
		}
		return strings.Join(out, "\n")
	}
	return r, nil
}

// statusHealth is what health tells of a part of the store.
func statusHealth() []string {
	return []string{"schema_version", "revision", "indexed_revision", "pending_index_updates", "index_usable", "record_count", "counts", "reranker_registered"}
}

func statusTool() *tool {
	return define(tool{
		name: "status", title: "Status",
		doc:   "What the memory holds and whether it works: counts by kind, the state of index and vectors, and where the tools read and write.",
		input: object(),
		rows:  []string{"health", "embeddings.status"}, home: true,
	}, func(ctx context.Context, s *server, in struct{ common }) (*reply, error) {
		h := s.home(ctx, in.Namespace)
		health, err := s.call(ctx, "health", nil)
		if err != nil {
			return nil, err
		}
		// Of the rest a caller with a home is told nothing, and a zero would mislead.
		for name := range health {
			if !slices.Contains(statusHealth(), name) {
				delete(health, name)
			}
		}
		doc := document{"namespace": h.namespace, "scopes": h.scopes, "context": h.context, "health": health}
		vectors, err := s.call(ctx, "embeddings.status", map[string]any{"namespace": h.namespace})
		switch {
		case err == nil:
			doc["vectors"] = vectors
		case !errors.Is(err, errs.NotFound):
			return nil, err
		}
		return &reply{doc: doc, say: func(doc document) string {
			out := []string{fmt.Sprintf("Namespace %s, scopes %s, context %s.", h.namespace, strings.Join(h.scopes, ", "), strings.Join(h.context, " / "))}
			counts := obj(health, "counts")
			if len(counts) == 0 {
				out = append(out, "Nothing is stored yet.")
			} else {
				var parts []string
				for _, kind := range sortedNames(counts) {
					parts = append(parts, fmt.Sprintf("%v %s", counts[kind], kind))
				}
				out = append(out, "Stored: "+strings.Join(parts, ", ")+".")
			}
			if health["index_usable"] == false {
				out = append(out, "The index is not usable; searches are degraded until it is built.")
			}
			if vectors == nil {
				out = append(out, "There are no vectors yet: search goes by words only.")
			}
			for _, t := range items(vectors, "tiers") {
				if t["enabled"] == true && t["ready"] == false && fmt.Sprint(t["records"]) != "0" {
					out = append(out, fmt.Sprintf("Vectors of the tier %s: %v of %v made.", str(t, "tier"), t["vectors"], t["records"]))
				}
			}
			return strings.Join(out, "\n")
		}}, nil
	})
}
