package lociworker

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/bench/peers/protocol"
)

// eitherWay is how the comparison walks relations.
func eitherWay() loci.GraphOptions { return loci.GraphOptions{Direction: loci.DirectionBoth} }

// graphBatch is how many records go into one transaction.
const graphBatch = 5000

// graph loads the triples of a file: an entity for each name, a relation for each
// line.
func (w *worker) graph(ctx context.Context, a protocol.Graph) (any, error) {
	raw, err := os.ReadFile(a.Triples)
	if err != nil {
		return nil, err
	}
	var triples [][3]string
	for line := range strings.Lines(string(raw)) {
		parts := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(parts) != 3 {
			return nil, fmt.Errorf("line %d of %s has %d parts, not 3", len(triples), a.Triples, len(parts))
		}
		triples = append(triples, [3]string(parts))
	}
	var m meter
	err = m.call(func() error { return w.store.relate(ctx, triples) })
	return m.cost(), err
}

// relate writes triples, first what they name.
func (s *store) relate(ctx context.Context, triples [][3]string) error {
	ids := map[string]loci.ID{}
	var names []string
	for _, t := range triples {
		for _, name := range []string{t[0], t[2]} {
			if _, ok := ids[name]; !ok {
				ids[name] = 0
				names = append(names, name)
			}
		}
	}
	for len(names) > 0 {
		some := names[:min(graphBatch, len(names))]
		names = names[len(some):]
		batch := loci.GraphBatch{Entities: make([]loci.EntityInput, len(some))}
		for i, name := range some {
			batch.Entities[i] = loci.EntityInput{Name: name, Match: loci.MatchByName}
		}
		written, err := s.db.Graph().ApplyBatch(ctx, batch)
		if err != nil {
			return err
		}
		for i, e := range written.Value.Entities {
			ids[some[i]] = e.ID
		}
	}
	for len(triples) > 0 {
		some := triples[:min(graphBatch, len(triples))]
		triples = triples[len(some):]
		batch := loci.GraphBatch{Relations: make([]loci.RelationInput, len(some))}
		for i, t := range some {
			batch.Relations[i] = loci.RelationInput{
				Subject: loci.EntityRef{ID: ids[t[0]]}, Predicate: t[1], Object: loci.EntityRef{ID: ids[t[2]]},
			}
		}
		if _, err := s.db.Graph().ApplyBatch(ctx, batch); err != nil {
			return err
		}
	}
	return nil
}

// entity is the id of the entity of a name.
func (s *store) entity(ctx context.Context, name string) (loci.ID, error) {
	found, err := s.db.Graph().Resolve(ctx, name, loci.ReadFilter{}, new(1))
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("there is no entity %q", name)
	}
	return found[0].ID, nil
}

func (w *worker) near(ctx context.Context, a protocol.Near) (any, error) {
	return named(len(a.Entities), func(i int) ([]loci.Entity, error) {
		root, err := w.store.entity(ctx, a.Entities[i])
		if err != nil {
			return nil, err
		}
		return w.store.db.Graph().Ego(ctx, root, loci.ReadFilter{}, loci.EgoOptions{GraphOptions: eitherWay(), Depth: &a.Depth, Limit: &a.Limit})
	})
}

func (w *worker) path(ctx context.Context, a protocol.Path) (any, error) {
	return named(len(a.Pairs), func(i int) ([]loci.Entity, error) {
		from, err := w.store.entity(ctx, a.Pairs[i][0])
		if err != nil {
			return nil, err
		}
		to, err := w.store.entity(ctx, a.Pairs[i][1])
		if err != nil {
			return nil, err
		}
		return w.store.db.Graph().Path(ctx, from, to, loci.ReadFilter{}, eitherWay())
	})
}

// named measures n calls that give entities, from the names they are asked for by.
func named(n int, f func(i int) ([]loci.Entity, error)) (any, error) {
	var m meter
	out := protocol.Names{Names: make([][]string, n)}
	for i := range n {
		var found []loci.Entity
		err := m.call(func() (err error) {
			found, err = f(i)
			return err
		})
		if err != nil {
			return nil, err
		}
		out.Names[i] = make([]string, len(found))
		for j := range found {
			out.Names[i][j] = found[j].Name
		}
	}
	out.Cost = m.cost()
	return out, nil
}
