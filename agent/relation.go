package agent

import (
	"context"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/meta"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// RelateRequest relates a live point to another, or to itself.
type RelateRequest struct {
	From loci.PointID `json:"from"` // of the kind that the request is made to
	To   loci.PointID `json:"to"`
	// ToKind is the kind of To: fact, episode or procedure; default that of From.
	ToKind loci.Kind `json:"to_kind,omitempty"`
	// Type says how they are related: 1..512 bytes without blanks at its ends and
	// control characters, compared as it is given.
	Type string `json:"rel_type"`
	// Properties is a JSON object of at most 1 MiB. Into those of a relation that is
	// there it is merged: its keys replace those of the same name, null takes one away.
	Properties loci.Metadata `json:"properties,omitempty"`
}

// Edge is a relation between two points of a memory.
type Edge struct {
	// ID is the same number whenever the same points are related by the same type, and
	// never 0.
	ID          loci.PointID  `json:"id"`
	FromKind    loci.Kind     `json:"from_kind"`
	From        loci.PointID  `json:"from"`
	Type        string        `json:"rel_type"`
	ToKind      loci.Kind     `json:"to_kind"`
	To          loci.PointID  `json:"to"`
	Properties  loci.Metadata `json:"properties"`
	CreatedAtUS int64         `json:"created_at_us"` // UTC microseconds
}

// RelationsRequest asks for the relations of a point.
type RelationsRequest struct {
	ID     loci.PointID `json:"id"`
	Limit  *int         `json:"limit,omitempty"`  // 1..10000, default 50
	Cursor string       `json:"cursor,omitempty"` // of the page before; "" for the first
}

// Edges is a page of relations.
type Edges struct {
	Edges []Edge `json:"edges"`
	// NextCursor asks for the next page; "" after the last one.
	NextCursor string `json:"next_cursor,omitempty"`
}

// triple is what a relation is known by.
type triple struct {
	fromKind store.Kind
	from     uint64
	typ      string
	toKind   store.Kind
	to       uint64
}

// hash is the id that a relation has unless another one has it.
func (t triple) hash() uint64 {
	buf := make([]byte, 0, 18+len(t.typ))
	buf = binary.LittleEndian.AppendUint64(append(buf, byte(t.fromKind)), t.from)
	buf = binary.LittleEndian.AppendUint64(append(buf, byte(t.toKind)), t.to)
	return max(xxhash.Sum64(append(buf, t.typ...)), 1)
}

// pointKinds are the kinds of points, in the order in which they are given.
func pointKinds() [3]store.Kind {
	return [3]store.Kind{store.KindFact, store.KindEpisode, store.KindProcedure}
}

// publicKind is a kind of points as callers know it.
func publicKind(k store.Kind) loci.Kind {
	switch k {
	case store.KindEpisode:
		return loci.KindEpisode
	case store.KindProcedure:
		return loci.KindProcedure
	}
	return loci.KindFact
}

// checkKind is the kind that a caller names, or another one where he names none.
func checkKind(field string, named loci.Kind, otherwise store.Kind) (store.Kind, error) {
	if named == "" {
		return otherwise, nil
	}
	for _, k := range pointKinds() {
		if publicKind(k) == named {
			return k, nil
		}
	}
	return 0, errs.Invalid(field, "must be %s, %s or %s, not %q", loci.KindFact, loci.KindEpisode, loci.KindProcedure, named)
}

// checkRelType checks the type of a relation.
func checkRelType(typ string) error { return valid.Label("rel_type", typ, loci.MaxLabelBytes) }

// Relate relates two live points; one that there is not is ErrNotFound. Where they
// are related by that type already, it is the same relation, and the properties are
// merged into its own. A relation goes when one of its points goes.
func (s *points) Relate(ctx context.Context, req RelateRequest) (*loci.Receipt[Edge], error) {
	return s.relate(ctx, &req, triple.hash)
}

// relate is Relate with ids made by hash.
func (s *points) relate(ctx context.Context, req *RelateRequest, hash func(triple) uint64) (*loci.Receipt[Edge], error) {
	const call = "relate"
	r := s.m.link.Redactor(ctx)
	properties := loci.Metadata(r.JSON(req.Properties))
	toKind, err := checkKind("to_kind", req.ToKind, s.kind)
	if err == nil {
		err = checkRelType(req.Type)
	}
	if err == nil {
		err = checkProperties(properties)
	}
	if err != nil {
		return nil, errs.WithOp(s.name(call), err)
	}
	var out Edge
	revision, err := s.change(ctx, call, func(w *writer) error {
		from, err := w.requiredOf("from", s.kind, uint64(req.From))
		if err != nil {
			return err
		}
		to, err := w.requiredOf("to", toKind, uint64(req.To))
		if err != nil {
			return err
		}
		e, err := w.relate(from, to, req.Type, properties, hash)
		if err == nil {
			out = edgeOf(w.row, e)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return receiptOf(out, revision, r), nil
}

// checkProperties checks the properties of a relation.
func checkProperties(m loci.Metadata) error {
	if len(m) > loci.MaxMetadataBytes {
		return errs.Invalid("properties", "is %d bytes long, at most %d are allowed", len(m), loci.MaxMetadataBytes)
	}
	if _, err := meta.Scan(m); err != nil {
		return errs.Invalid("properties", "%s", err)
	}
	return nil
}

// requiredOf is required for a point of any kind of the memory.
func (w *writer) requiredOf(field string, kind store.Kind, key uint64) (*store.Point, error) {
	p, err := w.tx.PointByKey(w.row.Place(kind), key)
	if err == nil && (p == nil || expired(p, w.now)) {
		of := points{w.s.m, kind, ""}
		err = of.notFound(field, key)
	}
	return p, err
}

// relate writes the relation between two points, or merges properties into it.
func (w *writer) relate(from, to *store.Point, typ string, properties []byte, hash func(triple) uint64) (*store.PointEdge, error) {
	e, err := w.tx.PointEdge(from.ID, typ, to.ID)
	if err != nil {
		return nil, err
	}
	isNew := e == nil
	if isNew {
		e = &store.PointEdge{
			Source: from.ID, Type: typ, Target: to.ID, Created: w.s.m.link.Now().UnixMicro(),
			SourcePlace: from.ScopeID, SourceKey: from.Key, TargetPlace: to.ScopeID, TargetKey: to.Key,
		}
		if e.Key, err = w.freeEdge(hash(triple{from.Kind, from.Key, typ, to.Kind, to.Key})); err != nil {
			return nil, err
		}
	}
	merged, err := meta.Merge(e.Properties, properties, true)
	if err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the properties of relation %d are damaged", e.Key)
	}
	if len(merged) > loci.MaxMetadataBytes {
		return nil, errs.Invalid("properties", "would become %d bytes long, at most %d are allowed", len(merged), loci.MaxMetadataBytes)
	}
	same := meta.Equal(e.Properties, merged)
	if !same {
		e.Properties = merged
	}
	switch {
	case isNew:
		err = w.tx.AddPointEdge(from.ScopeID, e)
	case !same:
		err = w.tx.SetPointEdge(e)
	}
	return e, err
}

// freeEdge is the first id of a relation from a number on that none of the memory
// has. That the number itself is taken by another relation is all but impossible.
func (w *writer) freeEdge(key uint64) (uint64, error) {
	for ; ; key++ {
		taken := key == 0
		for _, place := range w.row.Places {
			if taken {
				break
			}
			e, err := w.tx.PointEdgeByKey(place, key)
			if err != nil {
				return 0, err
			}
			taken = e != nil
		}
		if !taken {
			return key, nil
		}
	}
}

// edgeOf is a stored relation as callers get it.
func edgeOf(row *store.AgentMemory, e *store.PointEdge) Edge {
	return Edge{
		ID: loci.PointID(e.Key), FromKind: publicKind(kindOfPlace(row, e.SourcePlace)), From: loci.PointID(e.SourceKey), Type: e.Type,
		ToKind: publicKind(kindOfPlace(row, e.TargetPlace)), To: loci.PointID(e.TargetKey),
		Properties: loci.Metadata(e.Properties), CreatedAtUS: e.Created,
	}
}

// kindOfPlace is the kind of the points of one of a memory's places; 0 for a place
// that is not one of them, or no longer.
func kindOfPlace(row *store.AgentMemory, place int64) store.Kind {
	for _, k := range pointKinds() {
		if row.Place(k) == place {
			return k
		}
	}
	return 0
}

// Relations gives the relations that go out from a live point to others that are
// live, sorted by type, then kind and id of the other end; none for a point that
// there is not. A page costs no more than what it holds and a look-up for each type
// that the point's relations have.
func (s *points) Relations(ctx context.Context, req RelationsRequest) (*Edges, error) {
	return s.edges(ctx, "relations", req, store.EdgesOut)
}

// IncomingRelations gives the relations that come in to a live point from others
// that are live, likewise.
func (s *points) IncomingRelations(ctx context.Context, req RelationsRequest) (*Edges, error) {
	return s.edges(ctx, "incoming_relations", req, store.EdgesIn)
}

func (s *points) edges(ctx context.Context, call string, req RelationsRequest, side store.EdgeSide) (*Edges, error) {
	op := s.name(call)
	limit, err := checkLimit("limit", req.Limit, defaultPage)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	after, err := parseEdgeCursor(req.Cursor)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	out := &Edges{Edges: []Edge{}}
	err = s.m.read(ctx, op, func(tx *store.ReadTx, row *store.AgentMemory) error {
		now := s.m.link.Clock()
		p, err := tx.PointByKey(row.Place(s.kind), uint64(req.ID))
		if err != nil || p == nil || expired(p, now) {
			return err
		}
		types, err := tx.EdgeTypes(p.ID, side)
		if err != nil {
			return err
		}
		slices.Sort(types)
		for _, typ := range types {
			for _, kind := range pointKinds() {
				from, some := after.within(typ, kind)
				if !some {
					continue
				}
				// One more than is wanted says whether there is a next page.
				found, err := tx.EdgesBy(p.ID, side, typ, row.Place(kind), now, from, limit+1-len(out.Edges))
				if err != nil {
					return err
				}
				for _, e := range found {
					if len(out.Edges) == limit {
						out.NextCursor = edgeCursor(&out.Edges[limit-1], side)
						return nil
					}
					out.Edges = append(out.Edges, edgeOf(row, e))
				}
				if err := ctx.Err(); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// edgePlace is a place in the order of a point's relations: that of its last one on
// a page.
type edgePlace struct {
	kind store.Kind
	key  uint64
	typ  string
}

// edgeCursor is the cursor of a page that ends with e.
func edgeCursor(e *Edge, side store.EdgeSide) string {
	kind, id := e.ToKind, e.To
	if side == store.EdgesIn {
		kind, id = e.FromKind, e.From
	}
	return string(kind) + "/" + keyCursor(uint64(id)) + "/" + e.Type
}

// parseEdgeCursor reads what edgeCursor gave; nil for "".
func parseEdgeCursor(cursor string) (*edgePlace, error) {
	if cursor == "" {
		return nil, nil
	}
	parts := strings.SplitN(cursor, "/", 3)
	if len(parts) == 3 && parts[0] != "" && parts[1] != "" {
		kind, errKind := checkKind("cursor", loci.Kind(parts[0]), 0)
		key, errKey := cursorKey(parts[1])
		if errKind == nil && errKey == nil && checkRelType(parts[2]) == nil {
			return &edgePlace{kind, *key, parts[2]}, nil
		}
	}
	return nil, errs.Invalid("cursor", "is not one that a page gave")
}

// within says behind which far end the relations of a type and of a kind of far ends
// come that are behind the place, nil for all of them; false when none are.
func (a *edgePlace) within(typ string, kind store.Kind) (*uint64, bool) {
	switch {
	case a == nil || typ > a.typ || typ == a.typ && kind > a.kind:
		return nil, true
	case typ == a.typ && kind == a.kind:
		return &a.key, true
	}
	return nil, false
}

// Unrelate removes a relation by its id; false when no such relation of live points
// is there. Relations that come in from points of other kinds are found too.
func (s *points) Unrelate(ctx context.Context, edge loci.PointID) (*loci.Receipt[bool], error) {
	removed := false
	revision, err := s.change(ctx, "unrelate", func(w *writer) error {
		removed = false
		e, err := w.edge(uint64(edge))
		if err != nil || e == nil {
			return err
		}
		removed = true
		return w.tx.RemovePointEdge(e)
	})
	if err != nil {
		return nil, err
	}
	return &loci.Receipt[bool]{Value: removed, Revision: revision}, nil
}

// edge finds a relation of live points by its id, those that go out from points of
// the writer's own kind first; nil when there is none.
func (w *writer) edge(key uint64) (*store.PointEdge, error) {
	kinds := pointKinds()
	slices.SortStableFunc(kinds[:], func(a, b store.Kind) int {
		switch w.s.kind {
		case a:
			return -1
		case b:
			return 1
		}
		return 0
	})
	for _, kind := range kinds {
		e, err := w.tx.PointEdgeByKey(w.row.Place(kind), key)
		if err != nil {
			return nil, err
		}
		if e == nil {
			continue
		}
		live := kindOfPlace(w.row, e.TargetPlace) != 0
		for _, end := range []int64{e.Source, e.Target} {
			p, err := w.tx.Point(end)
			if err != nil {
				return nil, err
			}
			live = live && p != nil && !expired(p, w.now)
		}
		if live {
			return e, nil
		}
	}
	return nil, nil
}
