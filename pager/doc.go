// Package pager is a context store: it decides which of an agent's pages stand
// in the context window, renders them byte for byte the same as long as nothing
// changes, and counts what every change costs a provider's prompt cache.
//
// Pages lie in one of three tiers. Core is pinned and comes first in the text,
// so that it makes a prefix that a provider's cache can reuse; working follows
// and is evicted when the budget is full; archive is stored, and found, and not
// rendered. Every write makes a revision, and none is ever lost.
//
//	cs, err := pager.Open(ctx, db, pager.Config{Scope: pager.Scope{"project", "session-1"}})
//	...
//	_, err = cs.Write(ctx, pager.WriteRequest{Content: "what the tool found", Title: "result"})
//	found, err := cs.Recall(ctx, pager.RecallRequest{SearchRequest: pager.SearchRequest{Query: "result"}})
//	// found.Context.Text goes to the model.
//
// A scope never sees another scope's pages. All operations are methods, and
// Dispatch reaches them by name with JSON in and out.
package pager
