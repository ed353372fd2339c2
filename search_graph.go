package loci

import (
	"cmp"
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/rank"
	"github.com/loci-memory/loci/internal/store"
)

const (
	// graphSeeds is how many of the best text hits the graph path starts from.
	graphSeeds = 5
	// graphFanOut is how many relations an entity may have to be walked over: what
	// is related to everything says nothing about anything.
	graphFanOut = 50
	// graphTagged is how many records with an entity's name as a tag count.
	graphTagged = 10
)

// addGraphPath fuses a second path into the text hits: records that the graph
// relates to the best of them. The entities of a hit are those that its tags
// name (or itself, if it is one); one hop leads to their neighbours; and these
// lead to the memories that carry their name or an alias as a tag. A record's
// place in the path is that of the first hit that led to it, then its own place
// among the text hits. Nothing that the filter hides is stepped on.
func (e *engine) addGraphPath(tx *store.ReadTx, p *searchPlan, hits []fusedHit) ([]fusedHit, error) {
	if p.req.GraphWeight == 0 || len(hits) == 0 || len(p.filter.noteIDs) > 0 {
		return hits, nil
	}
	seeds := hits[:min(len(hits), graphSeeds)]
	if err := p.load(tx, seeds); err != nil {
		return nil, err
	}
	w := &graphWalk{tx: tx, filter: p.filter, kinds: p.kinds, first: map[int64]int{}, kindOf: map[int64]index.Kind{}}
	for i := range seeds {
		if err := w.from(seeds[i].record, i); err != nil {
			return nil, err
		}
	}
	at := make(map[int64]int, len(hits))
	for i, h := range hits {
		at[h.ID] = i
	}
	place := func(id int64) int {
		if i, ok := at[id]; ok {
			return i
		}
		return len(hits)
	}
	path := make([]int64, 0, len(w.first))
	for id := range w.first {
		path = append(path, id)
	}
	slices.SortFunc(path, func(a, b int64) int {
		return cmp.Or(w.first[a]-w.first[b], place(a)-place(b), cmp.Compare(a, b))
	})
	scores := rank.Path{Weight: p.req.GraphWeight}
	for _, id := range path {
		scores.Scores = append(scores.Scores, hits[w.first[id]].fused)
	}
	for i, add := range p.scale(scores) {
		id := path[i]
		k, ok := at[id]
		if !ok {
			k = len(hits)
			hits = append(hits, fusedHit{Hit: index.Hit{ID: id, Kind: w.kindOf[id]}})
		}
		h := &hits[k]
		h.graphAdd = add
		h.score += add
		h.fused += add
	}
	sortFused(hits)
	return hits, nil
}

// graphWalk collects the records that lie one hop away from some hits.
type graphWalk struct {
	tx     *store.ReadTx
	filter *readFilter
	kinds  []index.Kind
	first  map[int64]int // record: the first hit that led to it
	kindOf map[int64]index.Kind
}

func (w *graphWalk) found(id int64, kind store.Kind, seed int) {
	if _, ok := w.first[id]; !ok {
		w.first[id], w.kindOf[id] = seed, index.Kind(kind)
	}
}

// from walks from a hit. The hit itself is no find of its own.
func (w *graphWalk) from(hit store.Stored, seed int) error {
	entities, err := w.entitiesOf(hit)
	if err != nil {
		return err
	}
	// What narrows the hits to look for does not narrow the graph, apart from
	// where it lies.
	relations := &readFilter{Filter: store.Filter{Namespace: w.filter.Namespace, Scopes: w.filter.Scopes, Kind: store.KindRelation}}
	for _, id := range entities {
		n, err := w.tx.CountRelations(id, w.filter.Scopes)
		if err != nil {
			return err
		}
		if n == 0 || n > graphFanOut {
			continue
		}
		around, err := neighborhood(w.tx, id, relations, graphFanOut)
		if err != nil {
			return err
		}
		for i := range around.Entities {
			if err := w.reach(&around.Entities[i], hit.Head().ID, seed); err != nil {
				return err
			}
		}
	}
	return nil
}

// entitiesOf are the entities that a hit stands for.
func (w *graphWalk) entitiesOf(hit store.Stored) (ids []int64, err error) {
	if x, ok := hit.(*store.Entity); ok {
		return []int64{x.ID}, nil
	}
	here := &readFilter{Filter: store.Filter{Namespace: w.filter.Namespace, Scopes: w.filter.Scopes, Kind: store.KindEntity}}
	for _, tag := range hit.Head().Tags {
		found, err := candidates(w.tx, here, tag)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			if !slices.Contains(ids, c.entity.ID) {
				ids = append(ids, c.entity.ID)
			}
		}
	}
	return ids, nil
}

// reach collects an entity, if entities are asked for, and the memories that
// carry one of its names as a tag.
func (w *graphWalk) reach(x *Entity, hit int64, seed int) error {
	if f, some := w.filter.of(store.KindEntity); some && slices.Contains(w.kinds, index.Kind(store.KindEntity)) {
		r, err := w.tx.RecordOf(store.KindEntity, int64(x.ID))
		if err != nil {
			return err
		}
		if r != nil && f.covers(r.Head()) {
			w.found(int64(x.ID), store.KindEntity, seed)
		}
	}
	memories, some := w.filter.of(store.KindMemory)
	if !some || !slices.Contains(w.kinds, index.Kind(store.KindMemory)) {
		return nil
	}
	for _, name := range append([]string{normalize(x.Name)}, x.Aliases...) {
		tagged := memories.Filter
		tagged.Tags = append(slices.Clone(tagged.Tags), name)
		n := 0
		err := w.tx.Scan(tagged, 0, graphTagged, func(r store.Stored) (bool, error) {
			if h := r.Head(); h.ID != hit && memories.covers(h) {
				w.found(h.ID, store.KindMemory, seed)
				n++
			}
			return n < graphTagged, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
