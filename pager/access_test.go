package pager

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

// What a handle may do is up to the caller that uses it, not to the one that opened it.
func TestAccess(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	cs, err := Open(t.Context(), db, Config{Scope: Scope{"ship", "watch"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cs.Write(t.Context(), WriteRequest{PageID: "a", Content: "Log every light."}); err != nil {
		t.Fatal(err)
	}
	grants := func(write bool, scopes ...string) *loci.Access {
		return &loci.Access{Grants: []loci.Grant{{Namespace: "ship", Scopes: scopes, Write: write}}}
	}
	const own = `["ship","watch"]`
	for _, c := range []struct {
		access               *loci.Access
		reads, writes, whole bool
	}{
		{nil, true, true, true},
		{&loci.Access{Admin: true}, false, false, false},
		{grants(true, `["ship"]`, "watch"), false, false, false},
		{grants(false, own), true, false, false},
		{grants(true, own), true, true, false},
		{grants(false, loci.Every), true, false, false},
		{grants(true, loci.Every), true, true, true},
	} {
		ctx := loci.WithAccess(t.Context(), c.access)
		only := func(_ any, err error) error { return err }
		for name, call := range map[string]struct {
			err error
			may bool
		}{
			"open":       {only(Open(ctx, db, Config{Scope: Scope{"ship", "watch"}})), c.reads},
			"read":       {only(cs.Read(ctx, ReadRequest{PageID: "a"})), c.reads},
			"search":     {only(cs.Search(ctx, SearchRequest{Query: "light"})), c.reads},
			"status":     {only(cs.Status(ctx, StatusRequest{})), c.reads},
			"write":      {only(cs.Write(ctx, WriteRequest{PageID: "b", Content: fmt.Sprintf("%p", c.access)})), c.writes},
			"ingest":     {only(cs.Ingest(ctx, IngestRequest{Content: "x"})), c.writes},
			"organize":   {only(cs.Organize(ctx, OrganizeRequest{PageID: "a"})), c.writes},
			"checkpoint": {only(cs.Checkpoint(ctx, CheckpointRequest{})), c.writes},
			"set policy": {only(cs.SetPolicy(ctx, SetPolicyRequest{})), c.whole},
		} {
			if call.err != nil && name == "write" && call.may {
				continue // it has another version by now
			}
			if call.may != (call.err == nil) || !call.may && (!errors.Is(call.err, ErrForbidden) || !errors.Is(call.err, loci.ErrForbidden)) {
				t.Errorf("%s with %+v: %v", name, c.access, call.err)
			}
		}
		if !c.reads {
			raw := cs.Dispatch(ctx, "read", json.RawMessage(`{"page_id":"a"}`))
			if !strings.Contains(string(raw), `"code":"forbidden"`) || !strings.Contains(string(raw), "the caller may not read") {
				t.Errorf("dispatch: %s", raw)
			}
		}
	}
}

// A record that the caller may not read cannot be brought into a context that it
// owns, and is not told from one that is not there.
func TestAccessToCopies(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	m, err := db.Memories().Upsert(t.Context(), loci.MemoryInput{RecordInput: loci.RecordInput{Namespace: new("ship")}, Judgment: "Secret light."})
	if err != nil {
		t.Fatal(err)
	}
	const own = `["ship","watch"]`
	blind := loci.WithAccess(t.Context(), &loci.Access{Grants: []loci.Grant{{Namespace: "ship", Scopes: []string{own}, Write: true}}})
	cs, err := Open(blind, db, Config{Scope: Scope{"ship", "watch"}})
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprintf("memory:%d", m.Value.ID)
	_, there := cs.PageIn(blind, PageInRequest{PageID: id})
	_, absent := cs.PageIn(blind, PageInRequest{PageID: "memory:777777"})
	if !errors.Is(there, ErrNotFound) || strings.ReplaceAll(there.Error(), id, "memory:777777") != absent.Error() {
		t.Errorf("%v\n%v", there, absent)
	}
	_, err = cs.Search(blind, SearchRequest{Query: "light", Kinds: []loci.Kind{loci.KindMemory}})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != ErrForbidden || e.Field != "scopes[0]" {
		t.Errorf("a search of records that may not be read: %v", err)
	}
	if found, err := cs.Search(blind, SearchRequest{Query: "light"}); err != nil || len(found.Results) != 0 {
		t.Errorf("a search of pages: %+v, %v", found, err)
	}
	sees := loci.WithAccess(t.Context(), &loci.Access{Grants: []loci.Grant{{Namespace: "ship", Scopes: []string{own}, Write: true}, {Namespace: "ship", Scopes: []string{loci.PublicScope}}}})
	if _, err := cs.PageIn(sees, PageInRequest{PageID: id}); err != nil {
		t.Error(err)
	}
}
