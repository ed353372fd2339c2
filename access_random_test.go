package loci

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// placed is a record of the model: where it lies, and what it is.
type placed struct {
	kind             Kind
	namespace, scope string
	from, to         ID // of a relation: its ends
}

// accessWorld is a store with records in three scopes of three namespaces, and what
// lies where.
type accessWorld struct {
	db      *DB
	records map[ID]placed
	ids     []ID
}

var accessPlaces = struct{ namespaces, scopes []string }{[]string{"a", "b", DefaultNamespace}, []string{PublicScope, "x", "y"}}

func newAccessWorld(t *testing.T) *accessWorld {
	t.Helper()
	w := &accessWorld{db: openTestDB(t, t.TempDir()), records: map[ID]placed{}}
	random := rand.New(rand.NewPCG(1, 2))
	var memories []MemoryInput
	var batch GraphBatch
	for _, namespace := range accessPlaces.namespaces {
		for _, scope := range accessPlaces.scopes {
			at := RecordInput{Namespace: &namespace, Scope: &scope}
			for i := range 1 + random.IntN(4) {
				memories = append(memories, MemoryInput{RecordInput: at, Judgment: fmt.Sprintf("Lamp %d of %s in %s.", i, scope, namespace)})
			}
			for i := range 1 + random.IntN(3) {
				ref := func(scope string) string { return fmt.Sprintf("%s/%s/%d", namespace, scope, i) }
				batch.Entities = append(batch.Entities, EntityInput{RecordInput: at, Ref: ref(scope), Name: fmt.Sprintf("lamp %s %s %d", namespace, scope, i)})
				if i > 0 {
					continue
				}
				// It may lead from a scope into the public one.
				batch.Relations = append(batch.Relations, RelationInput{RecordInput: at, Subject: EntityRef{Ref: ref(scope)},
					Predicate: "lights", Object: EntityRef{Ref: ref(PublicScope)}})
			}
		}
	}
	written, err := w.db.Memories().UpsertMany(t.Context(), memories)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range written.Value {
		w.records[m.ID] = placed{kind: KindMemory, namespace: m.Namespace, scope: m.Scope}
	}
	graph, err := w.db.Graph().ApplyBatch(t.Context(), batch)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range graph.Value.Entities {
		w.records[e.ID] = placed{kind: KindEntity, namespace: e.Namespace, scope: e.Scope}
	}
	for _, r := range graph.Value.Relations {
		w.records[r.ID] = placed{kind: KindRelation, namespace: r.Namespace, scope: r.Scope, from: r.SubjectID, to: r.ObjectID}
	}
	for id := range w.records {
		w.ids = append(w.ids, id)
	}
	slices.Sort(w.ids)
	return w
}

// drawAccess draws grants, among them those of everything and of nothing.
func drawAccess(t *rapid.T) *Access {
	grants := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Grant {
		return Grant{
			Namespace: rapid.SampledFrom(append([]string{Every}, accessPlaces.namespaces...)).Draw(t, "granted namespace"),
			Scopes:    rapid.SliceOfNDistinct(rapid.SampledFrom(append([]string{Every}, accessPlaces.scopes...)), 0, 2, rapid.ID).Draw(t, "granted scopes"),
			Write:     rapid.Bool().Draw(t, "write"),
		}
	}), 0, 3).Draw(t, "grants")
	return &Access{Grants: grants, Admin: rapid.Bool().Draw(t, "admin")}
}

// allows is the naive twin of Reads and Writes.
func allows(a *Access, write bool, namespace, scope string) bool {
	for _, g := range a.Grants {
		if write && !g.Write || g.Namespace != "*" && g.Namespace != namespace {
			continue
		}
		for _, s := range g.Scopes {
			if s == "*" || s == scope {
				return true
			}
		}
	}
	return false
}

// Whatever a caller may reach, it gets what a naive model gives it, and nothing else.
func TestRandomAccess(t *testing.T) {
	w := newAccessWorld(t)
	rapid.Check(t, func(rt *rapid.T) {
		access := drawAccess(rt)
		ctx := WithAccess(t.Context(), access)
		namespace := rapid.SampledFrom(accessPlaces.namespaces).Draw(rt, "namespace")
		scopes := rapid.SliceOfNDistinct(rapid.SampledFrom(accessPlaces.scopes), 1, 3, rapid.ID).Draw(rt, "scopes")
		filter := ReadFilter{Namespace: &namespace, Scopes: scopes}
		readable, writable := true, true
		for _, scope := range scopes {
			readable = readable && allows(access, false, namespace, scope)
			writable = writable && allows(access, true, namespace, scope)
		}
		want := func(kind Kind) (ids []ID) {
			for _, id := range w.ids {
				if r := w.records[id]; r.kind == kind && r.namespace == namespace && slices.Contains(scopes, r.scope) {
					ids = append(ids, id)
				}
			}
			return ids
		}
		check := func(what string, allowed bool, err error, got, want []ID) {
			rt.Helper()
			slices.Sort(got)
			switch {
			case !allowed && !errors.Is(err, ErrForbidden), allowed && err != nil:
				rt.Fatalf("%s, allowed %v: %v", what, allowed, err)
			case allowed && !slices.Equal(got, want):
				rt.Fatalf("%s gives %v, want %v", what, got, want)
			}
		}
		limit := MaxPage

		page, err := w.db.Memories().List(ctx, PageRequest{Filter: filter, Limit: &limit})
		check("list", readable, err, idsOf(page, func(m Memory) ID { return m.ID }), want(KindMemory))

		found, err := w.db.Search(ctx, SearchRequest{Query: "lamp", Kinds: []Kind{KindMemory, KindEntity}, Filter: filter, Limit: &limit})
		var hits []ID
		if err == nil {
			for _, h := range found.Hits {
				switch r := h.Record.(type) {
				case *Memory:
					hits = append(hits, r.ID)
				case *Entity:
					hits = append(hits, r.ID)
				}
			}
		}
		all := append(want(KindMemory), want(KindEntity)...)
		slices.Sort(all)
		check("search", readable, err, hits, all)

		relations, err := w.db.Graph().List(ctx, KindRelation, PageRequest{Filter: filter, Limit: &limit})
		check("relations", readable, err, idsOf(relations, func(r any) ID { return r.(*Relation).ID }), want(KindRelation))

		_, err = w.db.Memories().DeleteByFilter(ctx, DeleteRequest{Filter: filter, DryRun: true})
		check("delete", writable, err, nil, nil)

		// By id, wherever it lies.
		id := rapid.SampledFrom(w.ids).Draw(rt, "id")
		r := w.records[id]
		here := r.namespace == namespace && slices.Contains(scopes, r.scope)
		switch r.kind {
		case KindMemory:
			_, err = w.db.Memories().Get(ctx, id, filter)
		default:
			_, err = w.db.Graph().Get(ctx, r.kind, id, filter)
		}
		switch {
		case !readable && !errors.Is(err, ErrForbidden), readable && !here && !errors.Is(err, ErrNotFound), readable && here && err != nil:
			rt.Fatalf("get %d of %+v: %v", id, r, err)
		}
		w.writeByID(rt, ctx, access, id)

		if r.kind == KindEntity && readable && here {
			around, err := w.db.Graph().Neighbors(ctx, id, filter, &limit)
			if err != nil {
				rt.Fatal(err)
			}
			for _, e := range around.Entities {
				if at := w.records[e.ID]; !allows(access, false, at.namespace, at.scope) {
					rt.Fatalf("a neighbour in %+v is shown", at)
				}
			}
		}
		w.counts(rt, ctx, access)
	})
}

func idsOf[T any](page *Page[T], id func(T) ID) (ids []ID) {
	if page == nil {
		return nil
	}
	for _, item := range page.Items {
		ids = append(ids, id(item))
	}
	return ids
}

// writeByID writes over a record with access, as it is.
func (w *accessWorld) writeByID(t *rapid.T, ctx context.Context, access *Access, id ID) {
	t.Helper()
	r := w.records[id]
	// Nobody has this id; what may not be read is told of in the same words.
	const nobodys = 1 << 40
	write := func(id ID) (err error) {
		switch r.kind {
		case KindMemory:
			_, err = w.db.Memories().Upsert(ctx, MemoryInput{RecordInput: RecordInput{ID: id}, Judgment: "Lamp written."})
		case KindEntity:
			_, err = w.db.Graph().ApplyBatch(ctx, GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ID: id}, Name: "lamp"}}})
		case KindRelation:
			_, err = w.db.Graph().ApplyBatch(ctx, GraphBatch{Relations: []RelationInput{{RecordInput: RecordInput{ID: id},
				Subject: EntityRef{ID: r.from}, Predicate: "lights", Object: EntityRef{ID: r.to}}}})
		}
		return err
	}
	err := write(id)
	reads, writes := allows(access, false, r.namespace, r.scope), allows(access, true, r.namespace, r.scope)
	far := w.records[r.to] // the other end has to be seen, too
	switch {
	case !reads:
		absent := strings.ReplaceAll(write(nobodys).Error(), fmt.Sprint(int64(nobodys)), fmt.Sprint(int64(id)))
		if !errors.Is(err, ErrNotFound) || err.Error() != absent {
			t.Fatalf("write of %d, which is not seen: %v, not %s", id, err, absent)
		}
	case !writes:
		if !errors.Is(err, ErrForbidden) {
			t.Fatalf("write of %d, which may be read: %v", id, err)
		}
	case r.kind == KindRelation && !allows(access, false, far.namespace, far.scope):
		if !errors.Is(err, ErrNotFound) {
			t.Fatalf("write of %d, whose other end is not seen: %v", id, err)
		}
	case err != nil:
		t.Fatalf("write of %d: %v", id, err)
	}
}

// counts holds health against the model.
func (w *accessWorld) counts(t *rapid.T, ctx context.Context, access *Access) {
	t.Helper()
	want := map[string]int64{}
	total := int64(0)
	for _, r := range w.records {
		if access.Admin || allows(access, false, r.namespace, r.scope) {
			want[string(r.kind)]++
			total++
		}
	}
	h, err := w.db.Health(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(h.Counts, want) || h.RecordCount != total {
		t.Fatalf("health counts %v, want %v", h.Counts, want)
	}
}
