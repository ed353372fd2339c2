// Package graph keeps the entities and relations of one namespace in memory
// and answers what is asked of them as a graph: neighbourhoods, shortest
// paths, components.
//
// An [Adjacency] is a derived index: it is built once from the records, then
// follows their changes, and can be thrown away at any time. What it publishes
// are immutable [Snapshot]s: compressed rows that never change plus a small
// overlay of what was written since. A [View] looks at a snapshot through a
// filter and the rules for predicates; it copies nothing.
//
// Everything here is a function of its arguments: no input or output, no clock.
package graph

import "github.com/loci-memory/loci/internal/errs"

// ErrUnknown is the code of the error for an entity that the view does not
// cover: it was never there, was deleted, or the filter leaves it out. Test
// for it with errors.Is; on every surface it reads not_found.
const ErrUnknown = errs.NotFound

// A Node is an entity. Scope and tags are dictionary ids.
type Node struct {
	ID    int64
	Scope int64
	Tags  []int64
}

// An Edge is a relation from one entity to another. Predicate, scope and tags
// are dictionary ids, CreatedAt is in microseconds. Predicates are not zero.
type Edge struct {
	ID        int64
	Subject   int64
	Predicate int64
	Object    int64
	Scope     int64
	Tags      []int64
	CreatedAt int64
}

// Changes is what a transaction, or several, did to the records. Each id
// occurs once, with the state it has in the end: in Removed if it is gone, in
// Nodes or Edges if it was added or changed. Removals are applied first, then
// nodes, then edges.
//
// A relation whose ends are not both there is kept out of sight and appears
// with the missing entity, so the order of changes does not matter.
type Changes struct {
	Revision int64   // what the snapshot will call itself
	Nodes    []Node  // entities that are new or changed
	Edges    []Edge  // relations that are new or changed
	Removed  []int64 // entities and relations that are gone; unknown ids are ignored
}

// Direction says which way edges are followed.
type Direction uint8

// The directions. The zero value follows edges from subject to object.
const (
	Out  Direction = iota // from subject to object
	In                    // from object to subject
	Both                  // either way
)

// reversed gives the direction that leads back.
func (d Direction) reversed() Direction {
	switch d {
	case Out:
		return In
	case In:
		return Out
	}
	return Both
}

func unknown(field string) error {
	return &errs.Error{Code: ErrUnknown, Field: field, Message: "no such entity under this filter"}
}
