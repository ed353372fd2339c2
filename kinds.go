package loci

import (
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// documentOf is what the index learns of a stored record; nil for a kind that
// is not indexed, and for no record.
func documentOf(names nameReader, r store.Stored) (*index.Document, error) {
	switch r := r.(type) {
	case *store.Memory:
		return memoryDocument(r), nil
	case *store.Entity:
		return entityDocument(r), nil
	case *store.Relation:
		return relationDocument(names, r)
	case *store.Event:
		return eventDocument(names, r)
	case *store.Chunk:
		return chunkDocument(r), nil
	case *store.Page:
		return pageDocument(r), nil
	case *store.Point:
		return pointDocument(r), nil
	default:
		return nil, nil
	}
}

// recordOf is a stored record as the caller gets it: a pointer to the public
// type of its kind.
func recordOf(r store.Stored) any {
	switch r := r.(type) {
	case *store.Memory:
		m := memoryOf(r)
		return &m
	case *store.Entity:
		e := entityOf(r)
		return &e
	case *store.Relation:
		x := relationOf(r)
		return &x
	case *store.Event:
		v := eventOf(r)
		return &v
	case *store.Chunk:
		c := chunkOf(r)
		return &c
	case *store.Page:
		p := pageOf(r)
		return &p
	case *store.Point:
		return pointOf(r)
	default:
		return nil
	}
}

// strengthOf is a memory's strength; other kinds have none.
func strengthOf(r store.Stored) float64 {
	if m, ok := r.(*store.Memory); ok {
		return m.State.Strength
	}
	return 0
}
