package loci

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/store"
)

// graph is the graph's path: the entities that the query finds, their relations
// that meet it, and what else there is among these entities and the ends of
// these relations.
func (s *presetSearch) graph(tx *store.ReadTx) error {
	if s.seeds == nil || len(s.seeds.hits) == 0 {
		return nil
	}
	s.tx = tx
	out := &s.out.Graph
	around := map[int64]bool{}
	for _, h := range s.seeds.hits {
		e := h.Record.(*Entity)
		out.Entities = append(out.Entities, *e)
		around[int64(e.ID)] = true
	}
	given := map[int64]bool{}
	relations, err := s.seedRelations(around)
	if err != nil {
		return err
	}
	for _, r := range within(relations, s.budget.relationChars, func(r scoredRelation) int { return r.chars }) {
		out.Relations = append(out.Relations, relationOf(r.relation))
		given[r.relation.ID] = true
		around[r.relation.Subject], around[r.relation.Object] = true, true
	}
	return s.graphContext(around, given)
}

// scoredRelation is a relation, how well it meets the query, and its length in
// characters: its ends and its predicate with a blank between.
type scoredRelation struct {
	relation *store.Relation
	score    int
	chars    int
}

// seedRelations gives the relations of the seeds that hold a term of the query,
// best first, ties by id. A term of two characters or more counts 2, a single
// one 1. The seeds' own names are no terms, since every relation of theirs holds
// them, unless the query consists of nothing else.
func (s *presetSearch) seedRelations(seeds map[int64]bool) ([]scoredRelation, error) {
	filter, some := s.filter.of(store.KindRelation)
	if !some {
		return nil, nil
	}
	terms, err := s.queryTerms()
	if err != nil {
		return nil, err
	}
	var found []scoredRelation
	err = s.relationsAmong(seeds, filter, func(r *store.Relation) error {
		d, err := relationDocument(s.tx, r)
		if err != nil {
			return err
		}
		held := map[string]bool{}
		for _, piece := range d.Text {
			analyzeText(piece, func(term []byte) { held[string(term)] = true })
		}
		x := scoredRelation{relation: r, chars: utf8.RuneCountInString(strings.Join(d.Text[:3], " "))}
		for _, t := range terms {
			if held[t] {
				x.score += min(utf8.RuneCountInString(t), 2)
			}
		}
		if x.score > 0 {
			found = append(found, x)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b scoredRelation) int {
		return cmp.Or(b.score-a.score, cmp.Compare(a.relation.ID, b.relation.ID))
	})
	return found, err
}

// queryTerms are the distinct terms of the query and of what it is expanded by,
// the names of the entities found taken out.
func (s *presetSearch) queryTerms() ([]string, error) {
	x, err := s.e.equivalentsOf(s.tx, s.filter.Namespace)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range s.out.Graph.Entities {
		names = append(append(names, normalize(e.Name)), e.Aliases...)
	}
	// Longer names first: one may be a part of another.
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	rest := normalize(s.req.Query)
	for _, n := range names {
		if n != "" {
			rest = strings.ReplaceAll(rest, n, " ")
		}
	}
	terms := func(query string) (out []string) {
		q := x.expandQuery(analyzeQuery(query, MatchText), query)
		add := func(t string) {
			if !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
		for _, g := range q.Groups {
			for _, alt := range g.Alternatives {
				for _, t := range alt {
					add(t)
				}
			}
			for _, t := range g.Optional {
				add(t)
			}
		}
		for _, c := range q.Chars {
			add(c)
		}
		return out
	}
	if out := terms(rest); len(out) > 0 {
		return out, nil
	}
	return terms(s.req.Query), nil
}

// relationsAmong calls fn with each relation of the given entities that the
// filter covers and whose ends it lets see, by ascending id.
func (s *presetSearch) relationsAmong(entities map[int64]bool, filter *readFilter, fn func(*store.Relation) error) error {
	var ids []int64
	for id := range entities {
		mine, err := s.tx.RelationsOfIn(id, filter.Scopes)
		if err != nil {
			return err
		}
		ids = append(ids, mine...)
	}
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		r, err := s.tx.Relation(id)
		if err != nil {
			return err
		}
		if r == nil || !filter.covers(&r.Record) {
			continue
		}
		for _, end := range []int64{r.Subject, r.Object} {
			ok := entities[end]
			if !ok {
				if ok, err = entityIn(s.tx, end, filter); err != nil {
					return err
				}
			}
			if !ok {
				r = nil
				break
			}
		}
		if r == nil {
			continue
		}
		if err := fn(r); err != nil {
			return err
		}
	}
	return nil
}

// graphContext gives every relation with both ends among the entities, and
// every event that at least two of them took part in, less what was given
// already, by id, relations first, within one budget.
func (s *presetSearch) graphContext(entities, given map[int64]bool) error {
	if s.budget.contextChars == 0 {
		return nil
	}
	type item struct {
		relation *store.Relation
		event    *store.Event
		chars    int
	}
	var items []item
	if filter, some := s.filter.of(store.KindRelation); some {
		err := s.relationsAmong(entities, filter, func(r *store.Relation) error {
			if given[r.ID] || !entities[r.Subject] || !entities[r.Object] {
				return nil
			}
			d, err := relationDocument(s.tx, r)
			if err != nil {
				return err
			}
			items = append(items, item{relation: r, chars: utf8.RuneCountInString(strings.Join(d.Text[:3], " "))})
			return nil
		})
		if err != nil {
			return err
		}
	}
	events, err := s.eventsAmong(entities)
	if err != nil {
		return err
	}
	for _, v := range events {
		d, err := eventDocument(s.tx, v)
		if err != nil {
			return err
		}
		names := append([]string{v.Name}, d.Text[2:len(d.Text)-1]...)
		items = append(items, item{event: v, chars: utf8.RuneCountInString(strings.Join(names, " "))})
	}
	for _, x := range within(items, s.budget.contextChars, func(x item) int { return x.chars }) {
		if x.relation != nil {
			s.out.Graph.ContextRelations = append(s.out.Graph.ContextRelations, relationOf(x.relation))
		} else {
			s.out.Graph.ContextEvents = append(s.out.Graph.ContextEvents, eventOf(x.event))
		}
	}
	return nil
}

// eventsAmong gives the events that the filter covers and that at least two of
// the entities took part in, by ascending id.
func (s *presetSearch) eventsAmong(entities map[int64]bool) ([]*store.Event, error) {
	filter, some := s.filter.of(store.KindEvent)
	if !some {
		return nil, nil
	}
	found := map[int64]*store.Event{}
	for id := range entities {
		err := s.tx.ScanEventsOf(id, filter.Filter, 0, func(v *store.Event) (bool, error) {
			in := 0
			for _, p := range v.Participants {
				if entities[p] {
					in++
				}
			}
			if in >= 2 && filter.coversMetadata(&v.Record) {
				found[v.ID] = v
			}
			return true, s.ctx.Err()
		})
		if err != nil {
			return nil, err
		}
	}
	out := make([]*store.Event, 0, len(found))
	for _, v := range found {
		out = append(out, v)
	}
	slices.SortFunc(out, func(a, b *store.Event) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
}
