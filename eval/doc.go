// Package eval measures retrieval on judged data: it loads sets of documents,
// queries and judgments, asks a search function that it is given, and computes
// the usual figures over all queries and by group.
//
// # Sets
//
// A set is a folder of uniform files, UTF-8, one entry a line:
//
//   - docs.jsonl: objects with id and text, often title; optionally date (when
//     it was said), scope (queries of a scope search only its documents) and
//     session (a number or name: the conversation's session it belongs to).
//   - queries.jsonl: objects with id and text, optionally scope.
//   - qrels.tsv: query id, document id, relevance; 0 is judged and not relevant.
//   - groups.tsv, optional: query id, group.
//   - observations.jsonl, optional: facts made of the documents. As docs.jsonl, and
//     source, the ids of the documents that a fact was made of.
//
// A task names a set and, after a colon, a variant; see [Load].
//
// # Figures
//
// Every figure is a mean over the queries that have a relevant document; a
// query that finds nothing scores 0. Mind the unit: any evidence found (hit),
// its share (recall) and all of it (all) are three different things, and so are
// turns and sessions. Where facts are searched it is the documents behind them
// that are ranked and judged, so figures compare with those of the documents; what
// no fact was made of cannot be found.
package eval
