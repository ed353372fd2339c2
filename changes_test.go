package loci

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// follow reads every page behind after.
func followChanges(t testing.TB, db *DB, ctx context.Context, req ChangesRequest) (items []ChangedRecord, next string) {
	t.Helper()
	for {
		page, err := db.Changes(ctx, req)
		if err != nil || page.FloorLost {
			t.Fatal(page, err)
		}
		if len(page.Items) == 0 {
			return items, page.Next
		}
		items, req.After = append(items, page.Items...), page.Next
	}
}

func change(revision int64, id ID, namespace, scope string, what ChangeKind) ChangedRecord {
	return ChangedRecord{Revision: revision, Kind: KindMemory, ID: id, Namespace: namespace, Scope: scope, Change: what}
}

func TestChanges(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	put := func(in MemoryInput) ID {
		t.Helper()
		r, err := db.Memories().Upsert(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		return r.Value.ID
	}
	at := func(namespace, scope string, id ID, judgment string) MemoryInput {
		return MemoryInput{RecordInput: RecordInput{ID: id, Namespace: &namespace, Scope: &scope}, Judgment: judgment}
	}
	a := put(at("n", "s", 0, "one"))
	b := put(at("n", "t", 0, "two"))
	c := put(at("m", "s", 0, "three"))
	put(at("n", "u", a, "one, moved")) // 4
	if _, err := db.Memories().Delete(t.Context(), c, ReadFilter{Namespace: new("m"), Scopes: []string{"s"}}); err != nil {
		t.Fatal(err)
	}
	grants := func(g ...Grant) context.Context { return WithAccess(t.Context(), &Access{Grants: g}) }
	deleted := change(5, c, "m", "s", ChangeDelete)
	moved := []ChangedRecord{change(1, a, "n", "u", ChangeUpsert), change(4, a, "n", "u", ChangeUpsert)}
	left := change(4, a, "n", "s", ChangeDelete)
	second := change(2, b, "n", "t", ChangeUpsert)
	for name, tt := range map[string]struct {
		ctx  context.Context
		req  ChangesRequest
		want []ChangedRecord
	}{
		"all":              {t.Context(), ChangesRequest{}, []ChangedRecord{moved[0], second, moved[1], deleted}},
		"one at a time":    {t.Context(), ChangesRequest{Limit: new(1)}, []ChangedRecord{moved[0], second, moved[1], deleted}},
		"behind a write":   {t.Context(), ChangesRequest{After: "2"}, []ChangedRecord{moved[1], deleted}},
		"a namespace":      {t.Context(), ChangesRequest{Namespace: new("m")}, []ChangedRecord{deleted}},
		"a scope":          {t.Context(), ChangesRequest{Namespace: new("n"), Scopes: []string{"s"}}, []ChangedRecord{left}},
		"another kind":     {t.Context(), ChangesRequest{Kinds: []Kind{KindNote}}, nil},
		"a grant":          {grants(Grant{Namespace: "n", Scopes: []string{"t", "s"}}), ChangesRequest{}, []ChangedRecord{second, left}},
		"a grant's scope":  {grants(Grant{Namespace: "n", Scopes: []string{"t"}}), ChangesRequest{Namespace: new("n")}, []ChangedRecord{second}},
		"no grant":         {grants(), ChangesRequest{}, nil},
		"scopes, no space": {grants(Grant{Namespace: "m", Scopes: []string{Every}}), ChangesRequest{Scopes: []string{"s", "t"}}, []ChangedRecord{deleted}},
	} {
		if tt.req.After == "" {
			tt.req.After = "0"
		}
		if got, next := followChanges(t, db, tt.ctx, tt.req); !cmp.Equal(got, tt.want) || next != "5" {
			t.Errorf("%s: next %s %s", name, next, cmp.Diff(tt.want, got))
		}
	}
	for name, req := range map[string]ChangesRequest{
		"words": {After: "now"}, "sign": {After: "+1"}, "negative": {After: "-1"}, "zero": {After: "1.0"}, "padded": {After: "01"},
		"parts": {After: "1.2.3"}, "limit": {Limit: new(0)}, "large": {Limit: new(MaxChanges + 1)}, "wait": {WaitMS: new(int64(30001))},
		"scopes": {Scopes: []string{}}, "kinds": {Kinds: []Kind{"song"}}, "namespace": {Namespace: new(" ")}, "beyond the row": {After: "2.7"},
	} {
		if _, err := db.Changes(t.Context(), req); !errors.Is(err, ErrValidation) {
			t.Errorf("%s: %v", name, err)
		}
	}
	tenant := grants(Grant{Namespace: "n", Scopes: []string{"t"}})
	for name, req := range map[string]ChangesRequest{
		"namespace": {Namespace: new("m")}, "no namespace": {Namespace: new("nowhere")},
		"scope": {Namespace: new("n"), Scopes: []string{"t", "s"}},
	} {
		if _, err := db.Changes(tenant, req); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if page, err := db.Changes(t.Context(), ChangesRequest{}); err != nil || len(page.Items) > 0 || page.Next != "5" || page.FloorLost {
		t.Error("from now on:", page, err)
	}
	if page, err := db.Changes(t.Context(), ChangesRequest{After: "99"}); err != nil || !page.FloorLost || page.Next != "5" {
		t.Error("ahead of the store:", page, err)
	}
	if err := db.eng.store.PruneJournal(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	if page, err := db.Changes(t.Context(), ChangesRequest{After: "2"}); err != nil || !page.FloorLost || len(page.Items) > 0 || page.Next != "5" {
		t.Error("behind the floor:", page, err)
	}
	if got, _ := followChanges(t, db, t.Context(), ChangesRequest{After: "3"}); !cmp.Equal(got, []ChangedRecord{moved[1], deleted}) {
		t.Error("above the floor:", got)
	}
}

// TestChangesOfOneRevision holds that pages go on inside of a revision, across
// the rows of the journal too.
func TestChangesOfOneRevision(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	for _, n := range []int{1000, 2001, 1, 1999} {
		batch := make([]MemoryInput, n)
		for i := range batch {
			batch[i].Judgment = fmt.Sprint(n, " ", i)
		}
		if _, err := db.Memories().UpsertMany(t.Context(), batch); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1000, 999, 500, 300} {
		got, next := followChanges(t, db, t.Context(), ChangesRequest{After: "0", Limit: &limit})
		if len(got) != 5001 || next != "4" || !slices.IsSortedFunc(got, func(a, b ChangedRecord) int { return int(a.ID - b.ID) }) {
			t.Errorf("limit %d: %d items, next %s", limit, len(got), next)
		}
	}
}

// TestChangesWait holds that a waiting call is woken by a write that it may see,
// by the end of its context and of the store, and by nothing else.
func TestChangesWait(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	type answer struct {
		page *Changes
		err  error
	}
	wait := func(ctx context.Context, ms int64) <-chan answer {
		done := make(chan answer, 1)
		go func() {
			page, err := db.Changes(ctx, ChangesRequest{After: "0", WaitMS: &ms, Namespace: new("wanted")})
			done <- answer{page, err}
		}()
		return done
	}
	put := func(namespace string) {
		t.Helper()
		if _, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{Namespace: &namespace}, Judgment: "x " + namespace}); err != nil {
			t.Fatal(err)
		}
	}
	if got := <-wait(t.Context(), 1); got.err != nil || len(got.page.Items) > 0 || got.page.Next != "0" {
		t.Errorf("patience: %+v", got)
	}
	woken := wait(t.Context(), MaxChangesWait)
	for i := range 20 {
		put(fmt.Sprint("other", i))
	}
	put("wanted")
	if got := <-woken; got.err != nil || len(got.page.Items) != 1 || got.page.Next != "21" {
		t.Errorf("a write: %+v", got)
	}
	if got := <-wait(t.Context(), MaxChangesWait); got.err != nil || len(got.page.Items) != 1 {
		t.Errorf("what is there: %+v", got)
	}
	db = openTestDB(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	ended := wait(ctx, MaxChangesWait)
	cancel()
	if got := <-ended; !errors.Is(got.err, ErrCanceled) {
		t.Errorf("the context: %+v", got)
	}
	closed := wait(t.Context(), MaxChangesWait)
	for db.eng.feed.wake.Load() == nil { // it waits, or is about to
		time.Sleep(time.Millisecond)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := <-closed; !errors.Is(got.err, ErrClosed) {
		t.Errorf("close: %+v", got)
	}
}

// TestChangesModel holds that whoever follows the feed knows which records there
// are, whatever pages it takes and wherever records go.
func TestChangesModel(t *testing.T) {
	scopes := []string{"a", "b", "c"}
	db := openTestDB(t, t.TempDir())
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		runs++
		namespace := fmt.Sprint("run ", runs) // of its own for each run
		begin, err := db.Changes(t.Context(), ChangesRequest{})
		if err != nil {
			rt.Fatal(err)
		}
		stored := map[ID]string{}
		known := map[string]map[ID]bool{} // by what a follower sees
		after := map[string]string{}
		views := map[string][]string{"all": nil, "a": {"a"}, "bc": {"b", "c"}}
		for name := range views {
			known[name], after[name] = map[ID]bool{}, begin.Next
		}
		ids := func() []ID {
			var out []ID
			for id := range stored {
				out = append(out, id)
			}
			slices.Sort(out)
			return out
		}
		var n int
		rt.Repeat(map[string]func(*rapid.T){
			"add": func(rt *rapid.T) {
				n++
				scope := rapid.SampledFrom(scopes).Draw(rt, "scope")
				r, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{Namespace: &namespace, Scope: &scope}, Judgment: fmt.Sprint("m", n)})
				if err != nil {
					rt.Fatal(err)
				}
				stored[r.Value.ID] = scope
			},
			"move": func(rt *rapid.T) {
				if len(stored) == 0 {
					rt.Skip()
				}
				n++
				id, scope := rapid.SampledFrom(ids()).Draw(rt, "id"), rapid.SampledFrom(scopes).Draw(rt, "scope")
				if _, err := db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: RecordInput{ID: id, Namespace: &namespace, Scope: &scope}, Judgment: fmt.Sprint("m", n)}); err != nil {
					rt.Fatal(err)
				}
				stored[id] = scope
			},
			"delete": func(rt *rapid.T) {
				if len(stored) == 0 {
					rt.Skip()
				}
				id := rapid.SampledFrom(ids()).Draw(rt, "id")
				if _, err := db.Memories().Delete(t.Context(), id, ReadFilter{Namespace: &namespace, Scopes: scopes}); err != nil {
					rt.Fatal(err)
				}
				delete(stored, id)
			},
			"follow": func(rt *rapid.T) {
				name := rapid.SampledFrom([]string{"all", "a", "bc"}).Draw(rt, "view")
				page, err := db.Changes(t.Context(), ChangesRequest{After: after[name], Namespace: &namespace, Scopes: views[name], Limit: new(rapid.IntRange(1, 4).Draw(rt, "limit"))})
				if err != nil || page.FloorLost {
					rt.Fatal(page, err)
				}
				after[name] = page.Next
				for _, c := range page.Items {
					if c.Change == ChangeUpsert {
						known[name][c.ID] = true
					} else {
						delete(known[name], c.ID)
					}
				}
				if len(page.Items) > 0 {
					return
				}
				want := map[ID]bool{}
				for id, scope := range stored {
					if views[name] == nil || slices.Contains(views[name], scope) {
						want[id] = true
					}
				}
				if !cmp.Equal(known[name], want) {
					rt.Errorf("%s: %s", name, cmp.Diff(want, known[name]))
				}
			},
		})
	})
}
