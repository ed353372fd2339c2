package loci

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// graphKind checks that a kind is one of the graph's.
func graphKind(kind Kind) (store.Kind, error) {
	switch kind {
	case KindEntity, KindRelation, KindEvent:
		return kindNumbers[kind], nil
	}
	return 0, errs.Invalid("kind", "must be %s, %s or %s", KindEntity, KindRelation, KindEvent)
}

// Get gives one *Entity, *Relation or *Event. One of another kind, or outside
// the filter, is ErrNotFound.
func (s *GraphStore) Get(ctx context.Context, kind Kind, id ID, f ReadFilter) (any, error) {
	const op = "graph.get"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	number, err := graphKind(kind)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	filter, any := filter.of(number)
	var found store.Stored
	if any {
		err = s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
			found, err = tx.RecordOf(number, int64(id))
			return err
		})
	}
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	if found == nil || !filter.covers(found.Head()) {
		return nil, errs.WithOp(op, noneUnder(kind, id))
	}
	return recordOf(found), nil
}

func noneUnder(kind Kind, id ID) error {
	return &errs.Error{Code: errs.NotFound, Field: "id", Message: fmt.Sprintf("there is no %s %d under this filter", kind, id)}
}

// List gives one page of *Entity, *Relation or *Event by ascending id.
func (s *GraphStore) List(ctx context.Context, kind Kind, req PageRequest) (*Page[any], error) {
	const op = "graph.list"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	number, err := graphKind(kind)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	page, err := listRecords(ctx, s.eng, number, &req, asIs(recordOf))
	return page, errs.WithOp(op, err)
}

// Resolve gives the entities under the filter that go by a name, whatever its
// case and width: first those whose own name it is, then those that have it as
// an alias; among these the ones with more relations in the filter's scopes
// first, ties by ascending id. A nil limit is 50.
func (s *GraphStore) Resolve(ctx context.Context, name string, f ReadFilter, limit *int) ([]Entity, error) {
	const op = "graph.resolve"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	out, err := s.resolve(ctx, name, &f, limit)
	return out, errs.WithOp(op, err)
}

// candidate is an entity that goes by a name.
type candidate struct {
	entity    *store.Entity
	alias     bool
	relations int64
}

func (s *GraphStore) resolve(ctx context.Context, name string, f *ReadFilter, limit *int) ([]Entity, error) {
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, err
	}
	most, err := checkLimit("limit", limit, defaultPage)
	if err != nil {
		return nil, err
	}
	if err := validText("name", name); err != nil {
		return nil, err
	}
	key := normalize(name)
	if key == "" {
		return nil, errs.Invalid("name", "must not be blank")
	}
	out := []Entity{}
	filter, some := filter.of(store.KindEntity)
	if !some {
		return out, nil
	}
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		found, err := candidates(tx, filter, key)
		if err != nil {
			return err
		}
		for _, c := range found[:min(len(found), most)] {
			out = append(out, entityOf(c.entity))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// candidates gives the entities that the filter covers and that go by a
// normalised name, best first.
func candidates(tx *store.ReadTx, filter *readFilter, key string) ([]candidate, error) {
	var found []candidate
	seen := map[string]bool{}
	for _, scope := range filter.Scopes {
		if seen[scope] {
			continue
		}
		seen[scope] = true
		for _, look := range []struct {
			alias bool
			ids   func(namespace, scope, key string) ([]int64, error)
		}{{false, tx.EntitiesByName}, {true, tx.EntitiesByAlias}} {
			ids, err := look.ids(filter.Namespace, scope, key)
			if err != nil {
				return nil, err
			}
			for _, id := range ids {
				e, err := tx.Entity(id)
				if err != nil {
					return nil, err
				}
				if e != nil && filter.covers(&e.Record) {
					found = append(found, candidate{entity: e, alias: look.alias})
				}
			}
		}
	}
	if len(found) < 2 {
		return found, nil
	}
	for i := range found {
		var err error
		if found[i].relations, err = tx.CountRelations(found[i].entity.ID, filter.Scopes); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		switch {
		case !a.alias && b.alias:
			return -1
		case a.alias && !b.alias:
			return 1
		}
		return cmp.Or(cmp.Compare(b.relations, a.relations), cmp.Compare(a.entity.ID, b.entity.ID))
	})
	return found, nil
}

// Neighbors gives what lies one hop around an entity, whichever way the
// relations go: the relations under the filter with the lowest ids, at most
// limit (nil: 50), and the entities at their other ends. The entity and the
// other ends must lie in the filter's scopes; its other conditions hold for the
// relations only.
func (s *GraphStore) Neighbors(ctx context.Context, id ID, f ReadFilter, limit *int) (*Neighborhood, error) {
	const op = "graph.neighbors"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	most, err := checkLimit("limit", limit, defaultPage)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	var out *Neighborhood
	err = s.eng.read(ctx, func(tx *store.ReadTx) (err error) {
		if err := rootUnder(tx, id, filter); err != nil {
			return err
		}
		out, err = neighborhood(tx, int64(id), filter, most)
		return err
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return out, nil
}

// rootUnder checks that an entity lies in the namespace and the scopes of a
// filter.
func rootUnder(tx *store.ReadTx, id ID, filter *readFilter) error {
	ok, err := entityIn(tx, int64(id), filter)
	if err == nil && !ok {
		return noneUnder(KindEntity, id)
	}
	return err
}

func entityIn(tx *store.ReadTx, id int64, filter *readFilter) (bool, error) {
	kind, namespace, scope, err := tx.Place(id)
	return kind == store.KindEntity && namespace == filter.Namespace && slices.Contains(filter.Scopes, scope), err
}

func neighborhood(tx *store.ReadTx, root int64, filter *readFilter, limit int) (*Neighborhood, error) {
	out := &Neighborhood{Entities: []Entity{}, Relations: []Relation{}}
	filter, some := filter.of(store.KindRelation)
	if !some {
		return out, nil
	}
	ids, err := tx.RelationsOfIn(root, filter.Scopes)
	if err != nil {
		return nil, err
	}
	var ends []int64
	for _, id := range ids {
		if len(out.Relations) == limit {
			break
		}
		r, err := tx.Relation(id)
		if err != nil {
			return nil, err
		}
		if r == nil || !filter.covers(&r.Record) {
			continue
		}
		other := r.Object
		if other == root {
			other = r.Subject
		}
		ok, err := entityIn(tx, other, filter)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		out.Relations = append(out.Relations, relationOf(r))
		if other != root {
			ends = append(ends, other)
		}
	}
	slices.Sort(ends)
	for _, id := range slices.Compact(ends) {
		e, err := tx.Entity(id)
		if err != nil {
			return nil, err
		}
		if e != nil {
			out.Entities = append(out.Entities, entityOf(e))
		}
	}
	return out, nil
}

// EventsForEntity gives the events under the filter that an entity takes part
// in, by ascending id, at most limit (nil: 50). The entity must lie in the
// filter's scopes; its other conditions hold for the events only.
func (s *GraphStore) EventsForEntity(ctx context.Context, id ID, f ReadFilter, limit *int) ([]Event, error) {
	const op = "graph.events_for_entity"
	if err := s.eng.enter(op); err != nil {
		return nil, err
	}
	defer s.eng.gate.leave()
	filter, err := f.check(ctx, "filter.")
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	most, err := checkLimit("limit", limit, defaultPage)
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	out := []Event{}
	err = s.eng.read(ctx, func(tx *store.ReadTx) error {
		if err := rootUnder(tx, id, filter); err != nil {
			return err
		}
		filter, some := filter.of(store.KindEvent)
		if !some {
			return nil
		}
		return tx.ScanEventsOf(int64(id), filter.Filter, most, func(v *store.Event) (bool, error) {
			if filter.coversMetadata(&v.Record) {
				out = append(out, eventOf(v))
			}
			return len(out) < most, ctx.Err()
		})
	})
	if err != nil {
		return nil, errs.WithOp(op, err)
	}
	return out, nil
}
