package mcpserver

import (
	"context"
	"slices"
	"time"
)

func recentTool() *tool {
	return define(tool{
		name: "recent", title: "What happened last",
		doc: "What was done, said and remembered last, newest first. Call it at the start of a session, or when the user asks where you " +
			"left off. For a topic use recall or search.",
		input: object(
			property{"limit", number("how many of each kind, 1..100; default 10"), false},
			maxTokens(),
		),
		rows: []string{"episodes.recent", "memories.list"}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Limit *int `json:"limit"`
	}) (*reply, error) {
		budget, err := in.budget()
		if err != nil {
			return nil, err
		}
		args := map[string]any{"limit": 10}
		if err := limited(args, in.Limit); err != nil {
			return nil, err
		}
		doc, err := s.recent(ctx, s.home(ctx, in.Namespace), args["limit"].(int))
		if err != nil {
			return nil, err
		}
		const none = "Nothing has happened yet."
		return &reply{
			doc: doc, lists: []string{"memories", "episodes"}, budget: budget, recalled: true, none: none,
			say: func(doc document) string {
				out := append(items(doc, "episodes"), items(doc, "memories")...)
				return lines(out, none, func(m document) string {
					if _, ok := m["description"]; ok {
						return recordLine("episode", m)
					}
					return recordLine("memory", m)
				})
			},
		}, nil
	})
}

// recentPages bounds how many pages of memories are read to find the newest.
const recentPages = 5

// recent gathers the last episodes and memories, newest first.
func (s *server) recent(ctx context.Context, h home, limit int) (document, error) {
	episodes := []any{}
	for _, scope := range h.scopes {
		page, err := s.call(ctx, "episodes.recent", map[string]any{"namespace": h.namespace, "scope": scope, "limit": limit})
		if err != nil {
			return nil, err
		}
		list, _ := slim(page["items"]).([]any)
		episodes = append(episodes, list...)
	}
	memories, err := s.newest(ctx, h, limit)
	if err != nil {
		return nil, err
	}
	return document{"episodes": episodes[:min(len(episodes), limit)], "memories": memories}, nil
}

// newest lists the memories that were made last. Lists go by ascending id, so it
// looks back a day, a month and a year until there are enough.
func (s *server) newest(ctx context.Context, h home, limit int) ([]any, error) {
	now := time.Now()
	list := []any{}
	for _, back := range []time.Duration{24 * time.Hour, 30 * 24 * time.Hour, 365 * 24 * time.Hour} {
		filter := h.filter()
		filter["created_from_us"] = now.Add(-back).UnixMicro()
		args := map[string]any{"filter": filter, "limit": 200}
		list = list[:0]
		for range recentPages {
			page, err := s.call(ctx, "memories.list", args)
			if err != nil {
				return nil, err
			}
			found, _ := page["items"].([]any)
			list = append(list, found...)
			next := str(page, "next_cursor")
			if next == "" {
				break
			}
			args["after"] = next
		}
		if len(list) >= limit {
			break
		}
	}
	slices.Reverse(list)
	list, _ = slim(list[:min(len(list), limit)]).([]any)
	return list, nil
}
