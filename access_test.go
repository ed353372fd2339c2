package loci

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

func grant(namespace string, write bool, scopes ...string) Grant {
	return Grant{Namespace: namespace, Scopes: scopes, Write: write}
}

func TestAccess(t *testing.T) {
	for _, c := range []struct {
		access            *Access
		namespace, scope  string
		reads, writes     bool
		readAll, writeAll bool
	}{
		{nil, "a", "x", true, true, true, true},
		{&Access{}, "a", "x", false, false, false, false},
		{&Access{Admin: true}, "a", "x", false, false, false, false},
		{&Access{Grants: []Grant{grant("a", false, "x")}}, "a", "x", true, false, false, false},
		{&Access{Grants: []Grant{grant("a", true, "x")}}, "a", "x", true, true, false, false},
		{&Access{Grants: []Grant{grant("a", true, "x")}}, "a", "y", false, false, false, false},
		{&Access{Grants: []Grant{grant("a", true, "x")}}, "b", "x", false, false, false, false},
		{&Access{Grants: []Grant{grant("a", false, Every), grant("a", true, "x")}}, "a", "x", true, true, true, false},
		{&Access{Grants: []Grant{grant("a", false, Every), grant("a", true, "x")}}, "a", "y", true, false, true, false},
		{&Access{Grants: []Grant{grant(Every, true, "x")}}, "b", "x", true, true, false, false},
		{&Access{Grants: []Grant{grant(Every, true, Every)}}, "b", "y", true, true, true, true},
		{&Access{Grants: []Grant{{Namespace: "a"}}}, "a", "x", false, false, false, false},
		// What is named as if it were all of them is one of them.
		{&Access{Grants: []Grant{grant("a", true, "x")}}, Every, Every, false, false, false, false},
	} {
		got := [4]bool{c.access.Reads(c.namespace, c.scope), c.access.Writes(c.namespace, c.scope), c.access.ReadsAll(c.namespace), c.access.WritesAll(c.namespace)}
		if want := [4]bool{c.reads, c.writes, c.readAll, c.writeAll}; got != want {
			t.Errorf("%+v on %s/%s: %v, want %v", c.access, c.namespace, c.scope, got, want)
		}
	}
}

// A refusal tells what would be right, out of nothing but the grants.
func TestRefusals(t *testing.T) {
	long := strings.Repeat("é", 100)
	for _, c := range []struct {
		access         *Access
		verb, field    string
		namespace, has string
	}{
		{&Access{}, "read", "filter.namespace", "a", "it has no grant to read anything"},
		{&Access{Grants: []Grant{grant("b", false, Every)}}, "read", "filter.namespace", "a", `it may read namespace "b"`},
		{&Access{Grants: []Grant{grant("b", false, Every)}}, "write", "filter.namespace", "a", "it has no grant to write anything"},
		{&Access{Grants: []Grant{grant("a", true, "y")}}, "write", "filter.scopes[0]", "a", `it may write scope "y" of namespace "a"`},
		{&Access{Grants: []Grant{grant(Every, true, "y")}}, "read", "filter.scopes[0]", "a", `it may read scope "y" of every namespace`},
		{&Access{Grants: []Grant{grant("a", true, "1", "2", "3", "4", "5")}}, "read", "filter.scopes[0]", "a", `scope "4" of namespace "a" and others`},
		{&Access{Grants: []Grant{grant(long, true, Every)}}, "read", "filter.namespace", "a", `namespace "` + strings.Repeat("é", 40) + `..."`},
	} {
		e := c.access.refusal("filter.", "scopes[0]", c.namespace, "x", c.verb).(*Error)
		if e.Code != ErrForbidden || e.Field != c.field || !strings.Contains(e.Message, c.has) {
			t.Errorf("%+v: %+v, want %s and %s", c.access, e, c.field, c.has)
		}
	}
}

// What stands on an entity and may not be read is not named.
func TestUnseenReferences(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	in := func(scope string) RecordInput { return RecordInput{Namespace: new("a"), Scope: new(scope)} }
	written, err := db.Graph().ApplyBatch(t.Context(), GraphBatch{
		Entities:  []EntityInput{{RecordInput: in(PublicScope), Ref: "l", Name: "lamp"}},
		Relations: []RelationInput{{RecordInput: in("hidden"), Subject: EntityRef{Ref: "l"}, Predicate: "lights", Object: EntityRef{Ref: "l"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	lamp, relation := written.Value.Entities[0].ID, fmt.Sprint(int64(written.Value.Relations[0].ID))
	filter := ReadFilter{Namespace: new("a")}
	for _, see := range []bool{false, true} {
		access := &Access{Grants: []Grant{grant("a", true, PublicScope, "other")}}
		if see {
			access.Grants = append(access.Grants, grant("a", false, "hidden"))
		}
		ctx := WithAccess(t.Context(), access)
		_, deleting := db.Graph().Delete(ctx, KindEntity, lamp, filter)
		_, all := db.Graph().DeleteByFilter(ctx, DeleteRequest{Filter: filter})
		_, dry := db.Graph().DeleteByFilter(ctx, DeleteRequest{Filter: filter, DryRun: true})
		_, moving := db.Graph().ApplyBatch(ctx, GraphBatch{Entities: []EntityInput{{RecordInput: RecordInput{ID: lamp, Scope: new("other")}, Name: "lamp"}}})
		for what, err := range map[string]error{"delete": deleting, "delete by filter": all, "dry run": dry, "move": moving} {
			if !errors.Is(err, ErrConflict) || strings.Contains(err.Error(), relation) != see {
				t.Errorf("%s, seen %v: %v", what, see, err)
			}
		}
	}
	c, err := db.Link().CopyOf(WithAccess(t.Context(), &Access{Grants: []Grant{grant("a", false, "hidden")}}), "a", store.KindRelation, int64(written.Value.Relations[0].ID))
	if err != nil || c == nil || strings.Contains(c.Content, "lamp") || !strings.Contains(c.Content, fmt.Sprintf("entity %d", lamp)) {
		t.Errorf("a copy of a relation whose ends are not seen: %+v, %v", c, err)
	}
	if c, err := db.Link().CopyOf(WithAccess(t.Context(), &Access{Grants: []Grant{grant("a", false, PublicScope)}}), "a", store.KindRelation, int64(written.Value.Relations[0].ID)); c != nil || err != nil {
		t.Errorf("a copy of what may not be read: %+v, %v", c, err)
	}
}

// An update by id may leave the place out, and what is found by the place is not told
// of then.
func TestJudgmentBesideID(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	if _, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: "Secret."}); err != nil {
		t.Fatal(err)
	}
	own, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{Namespace: new("b")}, Judgment: "Mine."})
	if err != nil {
		t.Fatal(err)
	}
	ctx := WithAccess(t.Context(), &Access{Grants: []Grant{grant("b", true, Every)}})
	for _, judgment := range []string{"Secret.", "Nobody said this."} {
		_, err := db.Memories().UpsertByJudgment(ctx, MemoryInput{RecordInput: RecordInput{ID: own.Value.ID}, Judgment: judgment})
		if e := wantCode(t, err, ErrForbidden); e.Field != "namespace" || strings.Contains(e.Error(), "has this judgment") {
			t.Error(err)
		}
	}
}

// What concerns a namespace as a whole takes a grant for all of it, and what concerns
// the store takes admin.
func TestWholesNeedMore(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	scope := WithAccess(t.Context(), &Access{Grants: []Grant{grant("a", true, "x")}})
	reads := WithAccess(t.Context(), &Access{Grants: []Grant{grant("a", false, Every)}})
	writes := WithAccess(t.Context(), &Access{Grants: []Grant{grant("a", true, Every)}})
	admin := WithAccess(t.Context(), &Access{Admin: true})
	graph, embeddings := db.Graph(), db.Embeddings()
	only := func(_ any, err error) error { return err }
	for name, c := range map[string]struct {
		call func(ctx context.Context) error
		need context.Context // the least of them that may
	}{
		"read rules": {func(ctx context.Context) error { return only(graph.PredicateRules(ctx, "a")) }, reads},
		"set rule": {func(ctx context.Context) error {
			return only(graph.SetPredicateRule(ctx, PredicateRule{Namespace: "a", Predicate: "p", Symmetric: true}))
		}, writes},
		"delete rule":        {func(ctx context.Context) error { return only(graph.DeletePredicateRule(ctx, "a", "p")) }, writes},
		"read store's rules": {func(ctx context.Context) error { return only(graph.PredicateRules(ctx, "")) }, admin},
		"set store's rule": {func(ctx context.Context) error {
			return only(graph.SetPredicateRule(ctx, PredicateRule{Predicate: "p", Symmetric: true}))
		}, admin},
		"delete store's rule": {func(ctx context.Context) error { return only(graph.DeletePredicateRule(ctx, "", "p")) }, admin},
		"read equivalents":    {func(ctx context.Context) error { return only(graph.PredicateEquivalents(ctx, "a")) }, reads},
		"expand":              {func(ctx context.Context) error { return only(graph.ExpandQuery(ctx, "a", "lamp")) }, reads},
		"set equivalents": {func(ctx context.Context) error {
			return only(graph.SetPredicateEquivalents(ctx, "a", [][]string{{"p", "q"}}))
		}, writes},
		"delete equivalents": {func(ctx context.Context) error { return only(graph.DeletePredicateEquivalents(ctx, "a", nil)) }, writes},
		"read switch":        {func(ctx context.Context) error { return only(embeddings.Vectorization(ctx, "a", TierNotes)) }, reads},
		"read master switch": {func(ctx context.Context) error { return only(embeddings.NamespaceVectorization(ctx, "a")) }, reads},
		"read default space": {func(ctx context.Context) error { return only(embeddings.DefaultSpace(ctx, "a")) }, reads},
		"set switch":         {func(ctx context.Context) error { return only(embeddings.SetVectorization(ctx, "a", TierNotes, true)) }, writes},
		"set master switch":  {func(ctx context.Context) error { return only(embeddings.SetNamespaceVectorization(ctx, "a", true)) }, writes},
		"export": {func(ctx context.Context) error {
			return only(db.Export(ctx, new(strings.Builder), &ExportOptions{Namespace: new("a")}))
		}, reads},
		"export all":   {func(ctx context.Context) error { return only(db.Export(ctx, new(strings.Builder), nil)) }, admin},
		"import":       {func(ctx context.Context) error { return only(db.Import(ctx, strings.NewReader(""), nil)) }, admin},
		"backup":       {func(ctx context.Context) error { return only(db.Backup(ctx, "")) }, admin},
		"rebuild":      {func(ctx context.Context) error { return only(db.RebuildIndexes(ctx)) }, admin},
		"update index": {func(ctx context.Context) error { return only(db.UpdateIndex(ctx)) }, admin},
		"deep health":  {func(ctx context.Context) error { return only(db.DeepHealth(ctx)) }, admin},
		"spaces":       {func(ctx context.Context) error { return only(embeddings.Spaces(ctx)) }, admin},
		"space":        {func(ctx context.Context) error { return only(embeddings.EmbedderSpace(ctx, "s")) }, admin},
		"register space": {func(ctx context.Context) error {
			return only(embeddings.RegisterSpace(ctx, EmbeddingSpace{ID: "s", Model: "m", Dimension: 2}))
		}, admin},
		"set default space":    {func(ctx context.Context) error { return only(embeddings.SetDefaultSpace(ctx, "a", "")) }, admin},
		"delete space":         {func(ctx context.Context) error { return only(embeddings.DeleteSpace(ctx, "t")) }, admin},
		"sync without a place": {func(ctx context.Context) error { return only(embeddings.Sync(ctx, "s", EmbeddingSyncOptions{})) }, admin},
		"sync": {func(ctx context.Context) error {
			return only(embeddings.Sync(ctx, "s", EmbeddingSyncOptions{Namespace: new("a")}))
		}, writes},
		"set root": {func(ctx context.Context) error { return only(db.Notes().SetRoot(ctx, "a", t.TempDir())) }, admin},
		"root":     {func(ctx context.Context) error { return only(db.Notes().Root(ctx, "a")) }, admin},
		"upsert file": {func(ctx context.Context) error {
			return only(db.Notes().UpsertFile(ctx, NoteFileInput{RecordInput: RecordInput{Namespace: new("a"), Scope: new("x")}, Path: "p.md"}))
		}, writes},
		"sync folder": {func(ctx context.Context) error {
			return only(db.Notes().SyncDir(ctx, "a", SyncOptions{Scope: new("x")}))
		}, writes},
		"embedder": {func(ctx context.Context) error { return embeddings.RegisterEmbedder(ctx, "s", nil, nil) }, admin},
		"reranker": {func(ctx context.Context) error { return db.RegisterReranker(ctx, nil, nil) }, admin},
	} {
		for _, ctx := range []context.Context{scope, reads, writes, admin} {
			may := ctx == c.need || c.need == reads && ctx == writes
			if err := c.call(ctx); errors.Is(err, ErrForbidden) == may {
				t.Errorf("%s with %+v: %v", name, AccessFrom(ctx), err)
			}
		}
	}
}

// Writers that may do different things share commits, and each is held to its own.
func TestAccessInOneCommit(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	limited := WithAccess(t.Context(), &Access{Grants: []Grant{grant("b", true, Every)}})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for j := range 20 {
				m := MemoryInput{RecordInput: RecordInput{Namespace: new("a")}, Judgment: fmt.Sprintf("Lamp %d of %d.", j, i)}
				if _, err := db.Memories().Upsert(t.Context(), m); err != nil {
					t.Errorf("without limits: %v", err)
				}
				m.Namespace = new("b")
				if _, err := db.Memories().Upsert(limited, m); err != nil {
					t.Errorf("in its own namespace: %v", err)
				}
				// As if a check had been forgotten above: the transaction still holds.
				err := func() error {
					_, err := db.eng.write(limited, func(tx *store.WriteTx) error {
						return tx.AddMemory(&store.Memory{Record: store.Record{Namespace: "a", Scope: PublicScope}, Judgment: "forgotten"})
					})
					return err
				}()
				if !errors.Is(err, ErrForbidden) {
					t.Errorf("a write that did not ask: %v", err)
				}
			}
		})
	}
	group.Wait()
	h, err := db.Health(t.Context())
	if err != nil || h.RecordCount != 320 {
		t.Errorf("%d records, want 320: %v", h.RecordCount, err)
	}
}
