package agent

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// relationModel is a memory's points and relations, kept in the plainest way.
type relationModel struct {
	m     *testMemory
	t     *rapid.T
	scope string

	facts      *SemanticMemory
	episodes   *EpisodicMemory
	procedures *ProceduralMemory

	points map[modelID]*modelPoint
	edges  map[triple]int // the property "n"
	ids    map[triple]loci.PointID
}

type modelID struct {
	kind store.Kind
	id   uint64
}

type modelPoint struct {
	expires  *int64
	from, to *int64
	k        int
	versions int
}

func TestRelationsAgainstAModel(t *testing.T) {
	m := openMemory(t, 4)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		r := &relationModel{m: m, t: rt, scope: fmt.Sprint("run ", runs), points: map[modelID]*modelPoint{}, edges: map[triple]int{}, ids: map[triple]loci.PointID{}}
		a, err := Open(t.Context(), m.db, Config{Scope: r.scope, Dimension: 4})
		r.ok(err)
		r.facts, r.episodes, r.procedures = a.Semantic(), a.Episodic(), a.Procedural()
		rt.Repeat(map[string]func(*rapid.T){
			"store": r.store, "delete": r.remove, "relate": r.relate, "unrelate": r.unrelate, "supersede": r.supersede, "pass": r.pass,
			"expire": r.expire, "sweep": func(*rapid.T) { m.sweep() },
			"relations": r.checkRelations, "match": r.checkMatch, "history": r.checkHistory, "graph": r.checkGraph,
		})
	})
	if !testing.Short() {
		m.sweep()
		m.deepCheck()
	}
}

func (r *relationModel) ok(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *relationModel) now() int64 { return r.m.link.Clock() }

// settle forgets what has expired.
func (r *relationModel) settle() {
	for id, p := range r.points {
		if p.expires != nil && *p.expires <= r.now() {
			r.drop(id)
		}
	}
}

func (r *relationModel) drop(id modelID) {
	delete(r.points, id)
	maps.DeleteFunc(r.edges, func(t triple, _ int) bool {
		return t.fromKind == id.kind && t.from == id.id || t.toKind == id.kind && t.to == id.id
	})
}

func (r *relationModel) current(id modelID, at int64) bool {
	p := r.points[id]
	return p != nil && (p.from == nil || *p.from <= at) && (p.to == nil || at < *p.to)
}

// anyID draws one of few ids, so that they meet.
func anyID(t *rapid.T, name string) uint64 {
	return rapid.SampledFrom([]uint64{0, 1, 2, 3, 1<<64 - 1}).Draw(t, name)
}

func anyKind(t *rapid.T, name string) store.Kind {
	return rapid.SampledFrom([]store.Kind{store.KindFact, store.KindFact, store.KindFact, store.KindEpisode, store.KindProcedure}).Draw(t, name)
}

func anyType(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "B", "a/b", RelSupersedes}).Draw(t, "type")
}

func (r *relationModel) of(kind store.Kind) *points {
	switch kind {
	case store.KindEpisode:
		return &r.episodes.points
	case store.KindProcedure:
		return &r.procedures.points
	}
	return &r.facts.points
}

func (r *relationModel) store(t *rapid.T) {
	r.settle()
	id := modelID{anyKind(t, "kind"), anyID(t, "id")}
	k := rapid.IntRange(0, 1).Draw(t, "k")
	in := PointInput{ID: loci.PointID(id.id), Embedding: x(), Metadata: loci.Metadata(fmt.Sprintf(`{"k":%d}`, k))}
	p := &modelPoint{k: k, versions: 1}
	if rapid.IntRange(0, 2).Draw(t, "ttl?") == 0 {
		ttl := rapid.Uint64Range(1, 5).Draw(t, "ttl")
		in.TTLSeconds, p.expires = &ttl, new(r.now()+int64(ttl)*second)
	}
	if old := r.points[id]; old != nil {
		p.versions = min(old.versions+1, defaultVersions+1)
	}
	var err error
	switch id.kind {
	case store.KindFact:
		_, err = r.facts.Put(r.m.t.Context(), FactInput{PointInput: in, Content: "text"})
	case store.KindEpisode:
		_, err = r.episodes.Record(r.m.t.Context(), EpisodeInput{PointInput: in, Description: "text"})
	default:
		_, err = r.procedures.Learn(r.m.t.Context(), ProcedureInput{PointInput: in, Name: "text", Steps: []string{"step"}})
	}
	r.ok(err)
	r.points[id] = p
}

func (r *relationModel) remove(t *rapid.T) {
	r.settle()
	id := modelID{anyKind(t, "kind"), anyID(t, "id")}
	receipt, err := r.of(id.kind).Delete(r.m.t.Context(), loci.PointID(id.id))
	r.ok(err)
	if want := r.points[id] != nil; receipt.Value != want {
		t.Fatalf("deleted %v, want %v", receipt.Value, want)
	}
	r.drop(id)
}

// pass lets time pass.
func (r *relationModel) pass(t *rapid.T) {
	r.m.clock.Set(r.now() + rapid.Int64Range(0, 3).Draw(t, "seconds")*second)
}

func (r *relationModel) expire(t *rapid.T) {
	r.settle()
	id := modelID{anyKind(t, "kind"), anyID(t, "id")}
	ttl := rapid.Uint64Range(0, 3).Draw(t, "ttl")
	_, err := r.of(id.kind).SetTTL(r.m.t.Context(), TTLRequest{ID: loci.PointID(id.id), TTLSeconds: ttl})
	p := r.points[id]
	if p == nil {
		r.want(t, err, loci.ErrNotFound)
		return
	}
	r.ok(err)
	p.expires = new(r.now() + int64(ttl)*second)
}

func (r *relationModel) want(t *rapid.T, err error, code loci.Code) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Fatalf("error %v, want %s", err, code)
	}
}

func (r *relationModel) relate(t *rapid.T) {
	r.settle()
	e := triple{anyKind(t, "from kind"), anyID(t, "from"), anyType(t), anyKind(t, "to kind"), anyID(t, "to")}
	n := rapid.IntRange(1, 9).Draw(t, "n")
	receipt, err := r.of(e.fromKind).Relate(r.m.t.Context(), RelateRequest{
		From: loci.PointID(e.from), Type: e.typ, To: loci.PointID(e.to), ToKind: publicKind(e.toKind), Properties: loci.Metadata(fmt.Sprintf(`{"n":%d}`, n)),
	})
	if r.points[modelID{e.fromKind, e.from}] == nil || r.points[modelID{e.toKind, e.to}] == nil {
		r.want(t, err, loci.ErrNotFound)
		return
	}
	r.ok(err)
	r.edges[e] = n
	r.isNamed(t, e, receipt.Value.ID)
}

// isNamed checks that a relation has one id, which no other one has.
func (r *relationModel) isNamed(t *rapid.T, e triple, id loci.PointID) {
	t.Helper()
	if before, ok := r.ids[e]; ok && before != id {
		t.Fatalf("%v has the id %d, before %d", e, id, before)
	}
	r.ids[e] = id
	for other, held := range r.ids {
		if held == id && other != e {
			t.Fatalf("%v and %v have one id", e, other)
		}
	}
}

// sortedTriples are the relations of the model by their names, so that a draw is the same
// whenever it is made again.
func sortedTriples[V any](of map[triple]V) []triple {
	return slices.SortedFunc(maps.Keys(of), compareTriples)
}

func compareTriples(a, b triple) int {
	return cmp.Or(cmp.Compare(a.fromKind, b.fromKind), cmp.Compare(a.from, b.from), cmp.Compare(a.typ, b.typ),
		cmp.Compare(a.toKind, b.toKind), cmp.Compare(a.to, b.to))
}

func (r *relationModel) unrelate(t *rapid.T) {
	r.settle()
	if len(r.ids) == 0 {
		t.Skip()
	}
	e := rapid.SampledFrom(sortedTriples(r.ids)).Draw(t, "relation")
	receipt, err := r.of(anyKind(t, "asked")).Unrelate(r.m.t.Context(), r.ids[e])
	r.ok(err)
	if _, there := r.edges[e]; receipt.Value != there {
		t.Fatalf("%v removed: %v, want %v", e, receipt.Value, there)
	}
	delete(r.edges, e)
}

func (r *relationModel) supersede(t *rapid.T) {
	r.settle()
	before, successor := anyID(t, "old"), anyID(t, "new")
	req := SupersedeRequest{Old: loci.PointID(before), New: loci.PointID(successor)}
	from := r.now()
	if rapid.Bool().Draw(t, "given") {
		from += rapid.Int64Range(-3, 3).Draw(t, "from") * second
		req.FromUS = &from
	}
	receipt, err := r.facts.Supersede(r.m.t.Context(), req)
	old, fresh := r.points[modelID{store.KindFact, before}], r.points[modelID{store.KindFact, successor}]
	link := triple{store.KindFact, successor, RelSupersedes, store.KindFact, before}
	others := false
	for e := range r.edges {
		others = others || e.toKind == store.KindFact && e.to == before && e.typ == RelSupersedes && e.fromKind == store.KindFact &&
			e.from != successor && e.from != before
	}
	switch {
	case before == successor:
		r.want(t, err, loci.ErrValidation)
		return
	case old == nil || fresh == nil:
		r.want(t, err, loci.ErrNotFound)
		return
	case old.to != nil && others:
		r.want(t, err, loci.ErrConflict)
		return
	}
	if _, said := r.edges[link]; said && old.to != nil && req.FromUS == nil {
		from = *old.to
	}
	if old.from != nil && from <= *old.from || fresh.to != nil && from >= *fresh.to {
		r.want(t, err, loci.ErrValidation)
		return
	}
	r.ok(err)
	if old.to == nil || *old.to > from {
		old.to = &from
		old.versions = min(old.versions+1, defaultVersions+1)
	}
	if fresh.from == nil {
		fresh.from = &from
		fresh.versions = min(fresh.versions+1, defaultVersions+1)
	}
	if receipt.Value.ValidToUS != *old.to || receipt.Value.ValidFromUS != *fresh.from {
		t.Fatalf("%+v, want an end at %d and a beginning at %d", receipt.Value, *old.to, *fresh.from)
	}
	r.isNamed(t, link, receipt.Value.EdgeID)
	if _, there := r.edges[link]; !there {
		r.edges[link] = 0
	}
}

func tripleOf(e Edge) triple {
	kind := func(k loci.Kind) store.Kind {
		n, _ := checkKind("", k, 0)
		return n
	}
	return triple{kind(e.FromKind), uint64(e.From), e.Type, kind(e.ToKind), uint64(e.To)}
}

// equal compares what was read with what was expected, in order.
func (r *relationModel) equal(t *rapid.T, what string, got []Edge, want []triple) {
	t.Helper()
	names := make([]triple, len(got))
	for i, e := range got {
		names[i] = tripleOf(e)
		if n := r.edges[names[i]]; n > 0 && string(e.Properties) != fmt.Sprintf(`{"n":%d}`, n) {
			t.Fatalf("%s: %v has the properties %s, want n %d", what, names[i], e.Properties, n)
		}
	}
	if !slices.Equal(names, want) {
		t.Fatalf("%s: %v, want %v", what, names, want)
	}
}

func (r *relationModel) checkRelations(t *rapid.T) {
	r.settle()
	id := modelID{anyKind(t, "kind"), anyID(t, "id")}
	limit := rapid.IntRange(1, 5).Draw(t, "limit")
	incoming := rapid.Bool().Draw(t, "incoming")
	read := r.of(id.kind).Relations
	if incoming {
		read = r.of(id.kind).IncomingRelations
	}
	var got []Edge
	for cursor := ""; ; {
		page, err := read(r.m.t.Context(), RelationsRequest{ID: loci.PointID(id.id), Limit: &limit, Cursor: cursor})
		r.ok(err)
		got = append(got, page.Edges...)
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	want := []triple{}
	for e := range r.edges {
		if !incoming && e.fromKind == id.kind && e.from == id.id || incoming && e.toKind == id.kind && e.to == id.id {
			want = append(want, e)
		}
	}
	slices.SortFunc(want, func(a, b triple) int {
		if incoming {
			return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.fromKind, b.fromKind), cmp.Compare(a.from, b.from))
		}
		return cmp.Or(cmp.Compare(a.typ, b.typ), cmp.Compare(a.toKind, b.toKind), cmp.Compare(a.to, b.to))
	})
	r.equal(t, fmt.Sprintf("relations of %v, incoming %v", id, incoming), got, want)
}

func (r *relationModel) checkMatch(t *rapid.T) {
	r.settle()
	kind := anyKind(t, "kind")
	req := MatchRequest{Type: anyType(t), Limit: new(rapid.IntRange(1, 5).Draw(t, "limit"))}
	toKind := store.Kind(0)
	if rapid.Bool().Draw(t, "from?") {
		req.From = id(loci.PointID(anyID(t, "from")))
	}
	if rapid.Bool().Draw(t, "to?") {
		req.To, toKind = id(loci.PointID(anyID(t, "to"))), kind
	}
	if rapid.Bool().Draw(t, "to kind?") {
		toKind = anyKind(t, "to kind")
		req.ToKind = publicKind(toKind)
	}
	at := r.now()
	if rapid.Bool().Draw(t, "as of?") {
		at += rapid.Int64Range(-5, 5).Draw(t, "as of") * second
		req.AsOfValidUS = &at
	}
	filtered := rapid.Bool().Draw(t, "filter?")
	if filtered {
		req.Filter = loci.Metadata(`{"k":1}`)
	}
	var got []Edge
	for {
		page, err := r.of(kind).Match(r.m.t.Context(), req)
		r.ok(err)
		for _, x := range page.Matches {
			got = append(got, x.Edge)
		}
		if req.Cursor = page.NextCursor; req.Cursor == "" {
			break
		}
	}
	want := []triple{}
	for e := range r.edges {
		from, to := modelID{e.fromKind, e.from}, modelID{e.toKind, e.to}
		far := to
		if req.To != nil {
			far = from
		}
		if e.typ == req.Type && e.fromKind == kind && (req.From == nil || uint64(*req.From) == e.from) && (req.To == nil || uint64(*req.To) == e.to) &&
			(toKind == 0 || toKind == e.toKind) && r.current(from, at) && r.current(to, at) && (!filtered || r.points[far].k == 1) {
			want = append(want, e)
		}
	}
	slices.SortFunc(want, compareTriples)
	r.equal(t, fmt.Sprintf("match %s", asJSON(r.m.t, req)), got, want)
}

func (r *relationModel) checkHistory(t *rapid.T) {
	r.settle()
	of := modelID{anyKind(t, "kind"), anyID(t, "id")}
	found, err := r.of(of.kind).History(r.m.t.Context(), PointRequest{ID: loci.PointID(of.id)})
	r.ok(err)
	want := 0
	if p := r.points[of]; p != nil {
		want = p.versions
		if v := found.Versions; len(v) > 0 && !(samePtr(v[0].ValidFromUS, p.from) && samePtr(v[0].ValidToUS, p.to)) {
			t.Fatalf("%v holds between other times than %v and %v: %+v", of, p.from, p.to, v[0])
		}
	}
	if len(found.Versions) != want {
		t.Fatalf("%d versions of %v, want %d", len(found.Versions), of, want)
	}
}

func (r *relationModel) checkGraph(t *rapid.T) {
	r.settle()
	kinds := []store.Kind{store.KindFact}
	filter := loci.ReadFilter{Scopes: []string{r.scope}, Kinds: []loci.Kind{loci.KindFact}}
	if rapid.Bool().Draw(t, "episodes") {
		kinds, filter.Kinds = append(kinds, store.KindEpisode), append(filter.Kinds, loci.KindEpisode)
	}
	view, err := r.m.db.Graph().BuildGraph(r.m.t.Context(), filter, loci.GraphOptions{})
	r.ok(err)
	nodes, edges := 0, 0
	for id := range r.points {
		if slices.Contains(kinds, id.kind) {
			nodes++
		}
	}
	for e := range r.edges {
		if slices.Contains(kinds, e.fromKind) && slices.Contains(kinds, e.toKind) {
			edges++
		}
	}
	if view.NodeCount() != nodes || view.EdgeCount() != edges {
		t.Fatalf("%d nodes and %d edges, want %d and %d", view.NodeCount(), view.EdgeCount(), nodes, edges)
	}
}
