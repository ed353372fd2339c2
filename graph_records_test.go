package loci

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// openGraphDB opens a store with the real index, since the graph's documents
// are part of what is tested.
func openGraphDB(t testing.TB, dir string) *DB {
	t.Helper()
	db, err := Open(t.Context(), dir, &Options{Clock: newTestClock().Now, WaitForIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func apply(t testing.TB, db *DB, b GraphBatch) GraphBatchResult {
	t.Helper()
	return must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), b)).Value
}

// entities writes one entity a name.
func entities(t testing.TB, db *DB, names ...string) []ID {
	t.Helper()
	var b GraphBatch
	for _, name := range names {
		b.Entities = append(b.Entities, EntityInput{Name: name})
	}
	var ids []ID
	for _, e := range apply(t, db, b).Entities {
		ids = append(ids, e.ID)
	}
	return ids
}

func relates(subject ID, predicate string, object ID) RelationInput {
	return RelationInput{Subject: EntityRef{ID: subject}, Predicate: predicate, Object: EntityRef{ID: object}}
}

func happens(name string, participants ...ID) EventInput {
	in := EventInput{Name: name}
	for _, id := range participants {
		in.Participants = append(in.Participants, EntityRef{ID: id})
	}
	return in
}

func relate(t testing.TB, db *DB, in ...RelationInput) []ID {
	t.Helper()
	var ids []ID
	for _, r := range apply(t, db, GraphBatch{Relations: in}).Relations {
		ids = append(ids, r.ID)
	}
	return ids
}

func happen(t testing.TB, db *DB, in ...EventInput) []ID {
	t.Helper()
	var ids []ID
	for _, v := range apply(t, db, GraphBatch{Events: in}).Events {
		ids = append(ids, v.ID)
	}
	return ids
}

func getEntity(t testing.TB, db *DB, id ID, f ReadFilter) Entity {
	t.Helper()
	return *must[any](t)(db.Graph().Get(t.Context(), KindEntity, id, f)).(*Entity)
}

func getRelation(t testing.TB, db *DB, id ID, f ReadFilter) Relation {
	t.Helper()
	return *must[any](t)(db.Graph().Get(t.Context(), KindRelation, id, f)).(*Relation)
}

func getEvent(t testing.TB, db *DB, id ID, f ReadFilter) Event {
	t.Helper()
	return *must[any](t)(db.Graph().Get(t.Context(), KindEvent, id, f)).(*Event)
}

func resolved(t testing.TB, db *DB, name string, f ReadFilter) []ID {
	t.Helper()
	out := []ID{}
	for _, e := range must[[]Entity](t)(db.Graph().Resolve(t.Context(), name, f, nil)) {
		out = append(out, e.ID)
	}
	return out
}

// hitKeys gives the keys of what a search finds, best first.
func hitKeys(t testing.TB, db *DB, query string) []string {
	t.Helper()
	r := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: query, Limit: new(1000)}))
	keys := []string{}
	for _, h := range r.Hits {
		keys = append(keys, h.Key)
	}
	return keys
}

func key(kind Kind, id ID) string { return fmt.Sprintf("%s:%d", kind, id) }

// refuses checks that a batch fails with a code and leaves the store as it was.
func refuses(t testing.TB, db *DB, code Code, field string, b GraphBatch) {
	t.Helper()
	before := stateOf(t, db)
	_, err := db.Graph().ApplyBatch(t.Context(), b)
	if e := wantCode(t, err, code); field != "" && e.Field != field {
		t.Errorf("field %q, want %q: %v", e.Field, field, err)
	}
	if after := stateOf(t, db); after != before {
		t.Errorf("state %+v, was %+v", after, before)
	}
}

func listed(t testing.TB, db *DB, kind Kind, f ReadFilter) int {
	t.Helper()
	return len(must[*Page[any]](t)(db.Graph().List(t.Context(), kind, PageRequest{Filter: f, Limit: new(10000)})).Items)
}

func equal(t testing.TB, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.EquateComparable(dbState{})); d != "" {
		t.Error(d)
	}
}

func TestGraphDefaults(t *testing.T) { // G1
	db := openGraphDB(t, t.TempDir())
	id := entities(t, db, "阿青")[0]
	e := getEntity(t, db, id, ReadFilter{})
	if e.EntityType != "concept" || e.Aliases == nil || len(e.Aliases) != 0 || e.Attributes == nil || len(e.Attributes) != 0 || e.Summary != "" {
		t.Errorf("%+v", e)
	}
	r := apply(t, db, GraphBatch{Entities: []EntityInput{{Name: "x", Aliases: []string{" 老柳 ", "", "柳叔", "老柳"},
		Attributes: map[string][]string{"K": {"b", "a"}, "empty": nil}}}}).Entities[0]
	equal(t, r.Aliases, []string{"柳叔", "老柳"})
	equal(t, r.Attributes, map[string][]string{"K": {"b", "a"}, "empty": {}})
	equal(t, getEntity(t, db, r.ID, ReadFilter{}), r)
	for _, name := range []string{" 老柳", "", "老\n柳", "老柳 ", "a\tb", strings.Repeat("长", 400), "\xff"} { // G2, W1
		refuses(t, db, ErrValidation, "entities[0].name", GraphBatch{Entities: []EntityInput{{Name: name}}})
		refuses(t, db, ErrValidation, "events[0].name", GraphBatch{Events: []EventInput{{Name: name}}})
		refuses(t, db, ErrValidation, "relations[0].predicate", GraphBatch{Relations: []RelationInput{relates(id, name, id)}})
		refuses(t, db, ErrValidation, "entities[0].entity_type", GraphBatch{Entities: []EntityInput{{Name: "x", EntityType: &name}}})
	}
}

func TestGraphConfidence(t *testing.T) { // G3
	db := openGraphDB(t, t.TempDir())
	ids := entities(t, db, "a", "b")
	r := getRelation(t, db, relate(t, db, relates(ids[0], "knows", ids[1]))[0], ReadFilter{})
	if r.Confidence != 0.8 {
		t.Error(r.Confidence)
	}
	for _, c := range []float64{0, 1} {
		in, v := relates(ids[0], "likes", ids[1]), happens("met")
		in.Confidence, v.Confidence = &c, &c
		out := apply(t, db, GraphBatch{Relations: []RelationInput{in}, Events: []EventInput{v}})
		if out.Relations[0].Confidence != c || out.Events[0].Confidence != c {
			t.Error(out)
		}
	}
	for _, c := range []float64{1.01, -0.1, math.NaN(), math.Inf(1)} {
		in, v := relates(ids[0], "fears", ids[1]), happens("fled")
		in.Confidence, v.Confidence = &c, &c
		refuses(t, db, ErrValidation, "relations[0].confidence", GraphBatch{Entities: []EntityInput{{Name: "c"}}, Relations: []RelationInput{in}})
		refuses(t, db, ErrValidation, "events[0].confidence", GraphBatch{Events: []EventInput{v}})
	}
	v := happen(t, db, happens("meeting", ids[1], ids[0], ids[1]), happens("alone"))
	equal(t, getEvent(t, db, v[0], ReadFilter{}).Participants, []ID{ids[0], ids[1]})
	equal(t, getEvent(t, db, v[1], ReadFilter{}).Participants, []ID{})
	refuses(t, db, ErrNotFound, "events[0].participants[1]", GraphBatch{Events: []EventInput{happens("x", ids[0], 777)}})
}

func TestGraphEndpoints(t *testing.T) { // G4
	db := openGraphDB(t, t.TempDir())
	public := entities(t, db, "public")[0]
	in := func(namespace, scope string) ID {
		return apply(t, db, GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{Namespace: &namespace, Scope: &scope}, Name: "e"}}}).Entities[0].ID
	}
	private, other, elsewhere := in("default", "private"), in("default", "other"), in("港务", "public")
	note := addMemory(t, db, MemoryInput{Judgment: "no entity"}).ID
	for _, bad := range []ID{777, private, elsewhere, note} {
		for _, r := range []RelationInput{relates(public, "p", bad), relates(bad, "p", public)} {
			refuses(t, db, ErrNotFound, "", GraphBatch{Entities: []EntityInput{{Name: "new"}}, Relations: []RelationInput{r}})
		}
		refuses(t, db, ErrNotFound, "", GraphBatch{Entities: []EntityInput{{Name: "new"}}, Events: []EventInput{happens("v", public, bad)}})
	}
	r := relates(private, "p", public)
	r.Scope = new("private")
	relate(t, db, r)
	r = relates(private, "p", other)
	r.Scope = new("private")
	refuses(t, db, ErrNotFound, "relations[0].object", GraphBatch{Relations: []RelationInput{r}})

	// A relation cannot move to where it does not see its ends.
	id := relate(t, db, relates(public, "p", public))[0]
	r = relates(public, "p", public)
	r.ID, r.Scope = id, new("private")
	relate(t, db, r)
	r = relates(private, "p", public)
	r.ID, r.Scope = id, new("public")
	refuses(t, db, ErrNotFound, "relations[0].subject", GraphBatch{Relations: []RelationInput{r}})
}

func TestGraphSameTriple(t *testing.T) { // G5
	db := openGraphDB(t, t.TempDir())
	ids := entities(t, db, "阿青", "石匠")
	in := relates(ids[0], "Neighbour of", ids[1])
	in.Tags, in.Evidence, in.Metadata = []string{"x"}, []Evidence{{Source: "one"}}, Metadata(`{"a":1,"b":2}`)
	in.Reason, in.Confidence = "seen", new(0.5)
	first := apply(t, db, GraphBatch{Relations: []RelationInput{in}}).Relations[0]
	again := relates(ids[0], "ｎeighbour  OF", ids[1])
	again.Tags, again.Evidence, again.Metadata = []string{"y"}, []Evidence{{Source: "two"}, {Source: "one"}}, Metadata(`{"b":3}`)
	second := apply(t, db, GraphBatch{Relations: []RelationInput{again}}).Relations[0]
	if second.ID != first.ID || second.Predicate != "Neighbour of" || second.Reason != "seen" || second.Confidence != 0.5 || second.Revision <= first.Revision {
		t.Errorf("%+v", second)
	}
	equal(t, second.Tags, []string{"x", "y"})
	equal(t, second.Evidence, []Evidence{{Source: "one"}, {Source: "two"}})
	equal(t, second.Metadata.String(), `{"a":1,"b":3}`)
	again.Confidence, again.Reason = new(0.0), "heard"
	third := apply(t, db, GraphBatch{Relations: []RelationInput{again, again}})
	equal(t, third.Relations[0], third.Relations[1])
	if third.Relations[0].Confidence != 0 || third.Relations[0].Reason != "heard" || listed(t, db, KindRelation, ReadFilter{}) != 1 {
		t.Errorf("%+v", third)
	}
	// The other way round, another predicate and another scope are others.
	in.Scope = new("private")
	relate(t, db, relates(ids[1], "Neighbour of", ids[0]), relates(ids[0], "friend", ids[1]), in)
	if n := listed(t, db, KindRelation, scoped("public", "private")); n != 4 {
		t.Error(n)
	}
	// By id a relation does not become another that is there.
	moved := relates(ids[0], "friend", ids[1])
	moved.ID = first.ID
	refuses(t, db, ErrConflict, "relations[0]", GraphBatch{Relations: []RelationInput{moved}})

	v := happens("Night Talk", ids[1], ids[0])
	v.Evidence, v.Summary, v.Reason = []Evidence{{Source: "one"}}, "they talked", "told"
	one := apply(t, db, GraphBatch{Events: []EventInput{v}}).Events[0]
	w := happens("night  talk", ids[0], ids[1], ids[0])
	w.Evidence = []Evidence{{Source: "two"}}
	two := apply(t, db, GraphBatch{Events: []EventInput{w}}).Events[0]
	if two.ID != one.ID || two.Name != "Night Talk" || two.Summary != "they talked" || two.Reason != "told" || len(two.Evidence) != 2 {
		t.Errorf("%+v", two)
	}
	rest := happen(t, db, happens("night talk", ids[0]), happens("day talk", ids[0], ids[1]))
	if listed(t, db, KindEvent, ReadFilter{}) != 3 {
		t.Error("other events were merged")
	}
	w.ID = rest[0]
	refuses(t, db, ErrConflict, "events[0]", GraphBatch{Events: []EventInput{w}})
}

func TestGraphResolve(t *testing.T) { // G6
	db := openGraphDB(t, t.TempDir())
	alias := func(name string, aliases ...string) EntityInput { return EntityInput{Name: name, Aliases: aliases} }
	out := apply(t, db, GraphBatch{Entities: []EntityInput{alias("甲", "小舟"), alias("乙", "小舟"), alias("Harbor API"), alias("小舟", "小舟")}}).Entities
	a, b, harbor, own := out[0].ID, out[1].ID, out[2].ID, out[3].ID
	equal(t, resolved(t, db, " 小舟", ReadFilter{}), []ID{own, a, b})
	relate(t, db, relates(b, "p", harbor), relates(b, "p", b))
	equal(t, resolved(t, db, "小舟", ReadFilter{}), []ID{own, b, a})
	first := must[[]Entity](t)(db.Graph().Resolve(t.Context(), "小舟", ReadFilter{}, new(1)))
	if len(first) != 1 || first[0].ID != own {
		t.Error(first)
	}
	equal(t, resolved(t, db, "nobody", ReadFilter{}), []ID{})
	equal(t, resolved(t, db, "ｈａｒｂｏｒ   api", ReadFilter{}), []ID{harbor})
	equal(t, resolved(t, db, "小舟", scoped("private")), []ID{})
	equal(t, resolved(t, db, "小舟", ReadFilter{Namespace: new("x")}), []ID{})
	equal(t, resolved(t, db, "小舟", ReadFilter{Tags: []string{"x"}}), []ID{})
	equal(t, resolved(t, db, "小舟", ReadFilter{Kinds: []Kind{KindMemory}}), []ID{})
	equal(t, resolved(t, db, "小舟", scoped("public", "public", "private")), []ID{own, b, a})
	// Relations that a reader may not see do not move what he sees.
	secret := relates(a, "q", harbor)
	secret.Scope = new("private")
	third := relates(a, "r", harbor)
	third.Scope = new("private")
	fourth := relates(a, "s", harbor)
	fourth.Scope = new("private")
	relate(t, db, secret, third, fourth)
	equal(t, resolved(t, db, "小舟", ReadFilter{}), []ID{own, b, a})
	equal(t, resolved(t, db, "小舟", scoped("public", "private")), []ID{own, a, b})
	_, err := db.Graph().Resolve(t.Context(), " ", ReadFilter{}, nil)
	wantCode(t, err, ErrValidation)
}

func TestGraphRename(t *testing.T) { // G7
	db := openGraphDB(t, t.TempDir())
	ids := entities(t, db, "阿青", "石匠")
	r := relate(t, db, relates(ids[0], "邻居", ids[1]), relates(ids[1], "邻居", ids[1]))
	v := happen(t, db, happens("渡口夜谈", ids[0]), happens("独坐", ids[1]))
	before := []int64{getRelation(t, db, r[0], ReadFilter{}).Revision, getEvent(t, db, v[0], ReadFilter{}).Revision}
	quiet := apply(t, db, GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ID: ids[0]}, Name: "阿青", Aliases: []string{"青姑"}, Summary: "撑船人"}}})
	equal(t, []int64{getRelation(t, db, r[0], ReadFilter{}).Revision, getEvent(t, db, v[0], ReadFilter{}).Revision}, before)
	if !slices.Contains(hitKeys(t, db, "阿青"), key(KindRelation, r[0])) {
		t.Error("not found by the name")
	}
	renamed := must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(),
		GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ID: ids[0]}, Name: "柳娘"}}}))
	got := []int64{getRelation(t, db, r[0], ReadFilter{}).Revision, getEvent(t, db, v[0], ReadFilter{}).Revision}
	equal(t, got, []int64{renamed.Revision, renamed.Revision})
	if renamed.Revision != quiet.Entities[0].Revision+1 {
		t.Error(renamed.Revision)
	}
	for query, want := range map[string][]string{
		"柳娘": {key(KindEntity, ids[0]), key(KindEvent, v[0]), key(KindRelation, r[0])}, "阿青": {}, "青姑": {},
	} {
		got := hitKeys(t, db, query)
		slices.Sort(got)
		equal(t, got, want)
	}
	equal(t, resolved(t, db, "阿青", ReadFilter{}), []ID{})
	equal(t, resolved(t, db, "柳娘", ReadFilter{}), []ID{ids[0]})
	if g := getRelation(t, db, r[1], ReadFilter{}); g.Revision >= renamed.Revision {
		t.Error("what does not name the entity was written")
	}
	// A match by name never renames, so it leaves them alone too.
	apply(t, db, GraphBatch{Entities: []EntityInput{{Name: "柳娘", Match: MatchByName, Aliases: []string{"阿青"}}}})
	equal(t, getRelation(t, db, r[0], ReadFilter{}).Revision, renamed.Revision)
	equal(t, resolved(t, db, "阿青", ReadFilter{}), []ID{ids[0]})
}

func TestGraphNeighbors(t *testing.T) { // G8, G9, G10
	db := openGraphDB(t, t.TempDir())
	ids := entities(t, db, "a", "b", "c", "d")
	tagged := relates(ids[0], "p", ids[3])
	tagged.Tags = []string{"亲缘"}
	r := relate(t, db, relates(ids[0], "p", ids[1]), relates(ids[2], "p", ids[0]), tagged, relates(ids[1], "p", ids[2]))
	see := func(id ID, f ReadFilter, limit *int) (entities, relations []ID) {
		t.Helper()
		n := must[*Neighborhood](t)(db.Graph().Neighbors(t.Context(), id, f, limit))
		for _, e := range n.Entities {
			entities = append(entities, e.ID)
		}
		for _, r := range n.Relations {
			relations = append(relations, r.ID)
		}
		return entities, relations
	}
	e, x := see(ids[0], ReadFilter{}, nil)
	equal(t, e, []ID{ids[1], ids[2], ids[3]})
	equal(t, x, r[:3])
	e, x = see(ids[0], ReadFilter{}, new(2))
	equal(t, e, []ID{ids[1], ids[2]})
	equal(t, x, r[:2])
	e, x = see(ids[0], ReadFilter{Tags: []string{"亲缘"}}, nil)
	equal(t, e, []ID{ids[3]})
	equal(t, x, []ID{r[2]})
	e, x = see(ids[0], ReadFilter{Kinds: []Kind{KindEntity}}, nil)
	equal(t, len(e)+len(x), 0)
	loop := relate(t, db, relates(ids[3], "p", ids[3]))
	e, x = see(ids[3], ReadFilter{}, nil)
	equal(t, e, []ID{ids[0]})
	equal(t, x, []ID{r[2], loop[0]})
	// Scopes hold for the root and for the ends.
	private := apply(t, db, GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{Scope: new("private")}, Name: "p"}}}).Entities[0].ID
	secret := relates(private, "p", ids[0])
	secret.Scope = new("private")
	s := relate(t, db, secret)
	_, x = see(private, scoped("private"), nil)
	equal(t, x, []ID{})
	e, x = see(private, scoped("private", "public"), nil)
	equal(t, e, ids[:1])
	equal(t, x, s)
	for _, c := range []struct {
		id ID
		f  ReadFilter
	}{{777, ReadFilter{}}, {r[0], ReadFilter{}}, {private, ReadFilter{}}, {ids[0], scoped("private")}, {ids[0], ReadFilter{Namespace: new("x")}}} {
		_, err := db.Graph().Neighbors(t.Context(), c.id, c.f, nil)
		wantCode(t, err, ErrNotFound)
		_, err = db.Graph().EventsForEntity(t.Context(), c.id, c.f, nil)
		wantCode(t, err, ErrNotFound)
	}

	market := happens("market", ids[0], ids[1])
	market.Tags = []string{"fair"}
	hidden := happens("hidden", ids[0])
	hidden.Scope = new("private")
	v := happen(t, db, happens("one", ids[0]), market, happens("other", ids[1]), hidden, happens("last", ids[0]))
	events := func(f ReadFilter, limit *int) (out []ID) {
		t.Helper()
		for _, v := range must[[]Event](t)(db.Graph().EventsForEntity(t.Context(), ids[0], f, limit)) {
			out = append(out, v.ID)
		}
		return out
	}
	equal(t, events(ReadFilter{}, nil), []ID{v[0], v[1], v[4]})
	equal(t, events(scoped("private", "public"), nil), []ID{v[0], v[1], v[3], v[4]})
	equal(t, events(ReadFilter{}, new(2)), v[:2])
	equal(t, events(ReadFilter{Tags: []string{"fair"}}, nil), v[1:2])
}

func TestGraphKinds(t *testing.T) { // G12, W2
	db := openGraphDB(t, t.TempDir())
	ids := entities(t, db, "a")
	g := db.Graph()
	for _, kind := range []Kind{KindMemory, KindNote, KindChunk, "x", ""} {
		_, err := g.Get(t.Context(), kind, ids[0], ReadFilter{})
		wantCode(t, err, ErrValidation)
		_, err = g.List(t.Context(), kind, PageRequest{})
		wantCode(t, err, ErrValidation)
		_, err = g.Delete(t.Context(), kind, ids[0], ReadFilter{})
		wantCode(t, err, ErrValidation)
	}
	_, err := g.Get(t.Context(), KindRelation, ids[0], ReadFilter{})
	wantCode(t, err, ErrNotFound)
	_, err = g.Get(t.Context(), KindEntity, ids[0], ReadFilter{Kinds: []Kind{KindRelation}})
	wantCode(t, err, ErrNotFound)
	_, err = g.Get(t.Context(), KindEntity, ids[0], ReadFilter{NoteIDs: []ID{1}})
	wantCode(t, err, ErrNotFound)
	for _, limit := range []int{0, 10001, -1} {
		_, err := g.Resolve(t.Context(), "a", ReadFilter{}, &limit)
		wantCode(t, err, ErrValidation)
		_, err = g.Neighbors(t.Context(), ids[0], ReadFilter{}, &limit)
		wantCode(t, err, ErrValidation)
		_, err = g.EventsForEntity(t.Context(), ids[0], ReadFilter{}, &limit)
		wantCode(t, err, ErrValidation)
		_, err = g.List(t.Context(), KindEntity, PageRequest{Limit: &limit})
		wantCode(t, err, ErrValidation)
	}
	for _, limit := range []int{1, 10000} {
		must[[]Entity](t)(g.Resolve(t.Context(), "a", ReadFilter{}, &limit))
		must[*Neighborhood](t)(g.Neighbors(t.Context(), ids[0], ReadFilter{}, &limit))
		must[[]Event](t)(g.EventsForEntity(t.Context(), ids[0], ReadFilter{}, &limit))
	}
	empty := ReadFilter{Scopes: []string{}}
	_, err = g.Resolve(t.Context(), "a", empty, nil)
	wantCode(t, err, ErrValidation)
	_, err = g.DeleteByFilter(t.Context(), DeleteRequest{Filter: empty})
	wantCode(t, err, ErrValidation)
	// Pages.
	entities(t, db, "b", "c", "d", "e")
	var seen []ID
	req := PageRequest{Limit: new(2)}
	for {
		page := must[*Page[any]](t)(g.List(t.Context(), KindEntity, req))
		for _, item := range page.Items {
			seen = append(seen, item.(*Entity).ID)
		}
		if req.After = page.NextCursor; req.After == 0 {
			break
		}
	}
	if len(seen) != 5 || !slices.IsSorted(seen) {
		t.Error(seen)
	}
}

func TestGraphDelete(t *testing.T) { // G13, R14
	db := openGraphDB(t, t.TempDir())
	ids := entities(t, db, "阿青", "石匠")
	r := relate(t, db, relates(ids[0], "邻居", ids[1]))
	v := happen(t, db, happens("夜谈", ids[0], ids[1]))
	remove := func(kind Kind, id ID, f ReadFilter) bool {
		t.Helper()
		return must[*Receipt[bool]](t)(db.Graph().Delete(t.Context(), kind, id, f)).Value
	}
	move := EntityInput{RecordInput: RecordInput{ID: ids[1], Scope: new("private")}, Name: "石匠"}
	for range 2 {
		before := stateOf(t, db)
		_, err := db.Graph().Delete(t.Context(), KindEntity, ids[0], ReadFilter{})
		wantCode(t, err, ErrConflict)
		equal(t, stateOf(t, db), before)
		equal(t, resolved(t, db, "阿青", ReadFilter{}), ids[:1])
		refuses(t, db, ErrConflict, "entities[0].scope", GraphBatch{Entities: []EntityInput{move}})
		if !slices.Contains(hitKeys(t, db, "阿青"), key(KindEntity, ids[0])) {
			t.Error("not found any more")
		}
		remove(KindRelation, r[0], ReadFilter{}) // the event refers on
	}
	if remove(KindEvent, v[0], scoped("private")) || !remove(KindEvent, v[0], ReadFilter{}) || remove(KindEvent, v[0], ReadFilter{}) {
		t.Error("the event")
	}
	if !remove(KindEntity, ids[0], ReadFilter{}) || remove(KindEntity, ids[0], ReadFilter{}) || remove(KindRelation, ids[1], ReadFilter{}) {
		t.Error("the entity")
	}
	equal(t, hitKeys(t, db, "阿青"), []string{})
	equal(t, resolved(t, db, "阿青", ReadFilter{}), []ID{})
	equal(t, apply(t, db, GraphBatch{Entities: []EntityInput{move}}).Entities[0].ID, ids[1])
	equal(t, resolved(t, db, "石匠", ReadFilter{}), []ID{})
	equal(t, resolved(t, db, "石匠", scoped("private")), ids[1:])
}

func TestGraphDeleteByFilter(t *testing.T) { // G14
	db := openGraphDB(t, t.TempDir())
	remove := func(f ReadFilter, dry bool) int64 {
		t.Helper()
		return must[*Receipt[int64]](t)(db.Graph().DeleteByFilter(t.Context(), DeleteRequest{Filter: f, DryRun: dry})).Value
	}
	equal(t, remove(ReadFilter{}, false), int64(0))
	ids := entities(t, db, "a", "b")
	relate(t, db, relates(ids[0], "p", ids[1]))
	happen(t, db, happens("v", ids[0]))
	addMemory(t, db, MemoryInput{Judgment: "stays"})
	equal(t, remove(ReadFilter{}, true), int64(4))
	equal(t, remove(ReadFilter{Kinds: []Kind{KindMemory}}, false), int64(0))
	equal(t, remove(ReadFilter{Kinds: []Kind{KindRelation}}, true), int64(1))
	equal(t, remove(ReadFilter{}, false), int64(4))
	equal(t, listed(t, db, KindEntity, ReadFilter{})+listed(t, db, KindRelation, ReadFilter{})+listed(t, db, KindEvent, ReadFilter{}), 0)
	equal(t, len(listMemories(t, db, ReadFilter{})), 1)

	old := apply(t, db, GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{Tags: []string{"old"}}, Name: "c", Ref: "c"},
		{RecordInput: RecordInput{Tags: []string{"old"}}, Name: "d"}},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "c"}, Predicate: "p", Object: EntityRef{Ref: "c"}}}})
	for _, dry := range []bool{true, false} {
		before := stateOf(t, db)
		_, err := db.Graph().DeleteByFilter(t.Context(), DeleteRequest{Filter: ReadFilter{Tags: []string{"old"}}, DryRun: dry})
		wantCode(t, err, ErrConflict)
		equal(t, stateOf(t, db), before)
	}
	must[*Receipt[bool]](t)(db.Graph().Delete(t.Context(), KindRelation, old.Relations[0].ID, ReadFilter{}))
	equal(t, remove(ReadFilter{Tags: []string{"old"}}, false), int64(2))
}

func TestGraphText(t *testing.T) { // G15
	db := openGraphDB(t, t.TempDir())
	out := apply(t, db, GraphBatch{
		Entities: []EntityInput{
			{Name: "Alder", Aliases: []string{"Birch"}, Attributes: map[string][]string{"cedar": {"dogwood", "elm"}}, Summary: "fir"},
			{Name: "Ginkgo", Ref: "g"}, {Name: "Hazel", Ref: "h"}, {Name: "Ivy", Ref: "i"},
		},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "g"}, Predicate: "juniper", Object: EntityRef{Ref: "h"}, Reason: "kapok",
			RecordInput: RecordInput{Tags: []string{"linden"}}}},
		Events: []EventInput{{Name: "maple", Summary: "nutmeg", Participants: []EntityRef{{Ref: "i"}}, Reason: "oak"}},
	})
	alder, relation, event := key(KindEntity, out.Entities[0].ID), key(KindRelation, out.Relations[0].ID), key(KindEvent, out.Events[0].ID)
	for words, want := range map[string]string{
		"alder birch cedar dogwood elm fir": alder, "ginkgo juniper hazel kapok linden": relation, "maple nutmeg ivy oak": event,
	} {
		for _, word := range strings.Fields(words) {
			if !slices.Contains(hitKeys(t, db, word), want) {
				t.Errorf("%s does not find %s", word, want)
			}
		}
	}
	res := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "birch juniper nutmeg", Filter: ReadFilter{}}))
	for _, h := range res.Hits {
		switch h.Record.(type) {
		case *Entity, *Relation, *Event:
		default:
			t.Errorf("%s is a %T", h.Key, h.Record)
		}
	}
	if len(res.Hits) != 3 {
		t.Error(len(res.Hits))
	}
	only := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "alder", MatchField: MatchName}))
	if len(only.Hits) != 1 {
		t.Error(only.Hits)
	}
}

func TestGraphNameFirst(t *testing.T) { // Q8
	db := openGraphDB(t, t.TempDir())
	out := apply(t, db, GraphBatch{Entities: []EntityInput{
		{Name: "话本", Aliases: []string{"青梅"}, Attributes: map[string][]string{"甲": {"青梅"}, "乙": {"青梅"}, "丙": {"青梅"}}},
		{Name: "青梅"},
	}}).Entities
	equal(t, hitKeys(t, db, "青梅"), []string{key(KindEntity, out[1].ID), key(KindEntity, out[0].ID)})
}
