package op

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
)

// takesPlace says whether an input has a namespace: of its own, of its filter, or of
// each record in it.
func takesPlace(s *jsonschema.Schema) bool {
	for name, field := range s.Properties {
		if name == "namespace" || name == "filter" && takesPlace(field) {
			return true
		}
		if field.Items != nil && takesPlace(field.Items) {
			return true
		}
	}
	return false
}

// Every row is about a namespace, needs admin, or is on the list.
func TestEveryRowHasAccess(t *testing.T) {
	free := NoPlace()
	for _, o := range Default().All() {
		reason, listed := free[o.Name]
		delete(free, o.Name)
		switch placed := takesPlace(o.InputSchema()); {
		case listed && (placed || o.Admin || reason == ""):
			t.Errorf("%s is listed in NoPlace without need, or without a reason", o.Name)
		case !listed && !placed && !o.Admin:
			t.Errorf("%s takes no namespace: make it Admin, or list it in NoPlace", o.Name)
		case len(o.LocalPaths) > 0 && !o.Admin:
			t.Errorf("%s takes a path of the store's machine and is not Admin", o.Name)
		}
	}
	for name := range free {
		t.Errorf("NoPlace lists %s, which is no operation", name)
	}
}

func TestAdminRowsRefuse(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	all := []loci.Grant{{Namespace: loci.Every, Scopes: []string{loci.Every}, Write: true}}
	for _, o := range Default().All() {
		if !o.Admin {
			continue
		}
		// An input that would be refused is not looked at: who may not call it learns
		// nothing from it.
		_, err := o.Call(loci.WithAccess(t.Context(), &loci.Access{Grants: all}), db, []byte(`{"nonsense":1}`))
		if f := FailureOf(err); f.Code != loci.ErrForbidden || f.Operation != o.Name {
			t.Errorf("%s without admin: %v", o.Name, err)
		}
		for _, ctx := range []context.Context{t.Context(), loci.WithAccess(t.Context(), &loci.Access{Admin: true})} {
			if _, err := o.Call(ctx, db, []byte(`{"nonsense":1}`)); !errors.Is(err, loci.ErrValidation) {
				t.Errorf("%s with admin: %v", o.Name, err)
			}
		}
	}
}

// A caller without admin is not told which spaces there are.
func TestSpacesAreNotNamed(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, id := range []string{"one", "two"} {
		if _, err := db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: id, Model: "m", Dimension: 3}); err != nil {
			t.Fatal(err)
		}
	}
	grants := []loci.Grant{{Namespace: "b", Scopes: []string{loci.Every}}}
	for access, want := range map[*loci.Access]string{
		{Grants: grants}:              "is needed: there are several",
		{Grants: grants, Admin: true}: "must be one of one, two",
		nil:                           "must be one of one, two",
	} {
		_, err := Default().Call(loci.WithAccess(t.Context(), access), db, "embeddings.status", []byte(`{"namespace":"b"}`))
		if f := FailureOf(err); f.Code != loci.ErrValidation || f.Field != "space" || f.Message != want {
			t.Errorf("access %v: %v", access, err)
		}
	}
	_, err = Default().Call(loci.WithAccess(t.Context(), &loci.Access{Grants: grants}), db, "embeddings.status", []byte(`{"namespace":"a"}`))
	if f := FailureOf(err); f.Code != loci.ErrForbidden || f.Field != "namespace" {
		t.Errorf("another namespace: %v", err)
	}
}

func TestTakesPlace(t *testing.T) {
	var with []string
	for _, name := range []string{"memories.upsert_many", "memories.get", "notes.sync_dir", "context.read", "facts.store", "chunk_text", "backup"} {
		o, ok := Default().Lookup(name)
		if !ok {
			t.Fatalf("there is no %s", name)
		}
		if takesPlace(o.InputSchema()) {
			with = append(with, name)
		}
	}
	if want := []string{"memories.upsert_many", "memories.get", "notes.sync_dir", "context.read", "facts.store"}; !slices.Equal(with, want) {
		t.Error(with)
	}
}
