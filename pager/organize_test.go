package pager

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

func organize(t testing.TB, cs *Store, req OrganizeRequest) *OrganizeResult {
	t.Helper()
	return must[*OrganizeResult](t)(cs.Organize(t.Context(), req))
}

func similarIDs(pages []SimilarPage) string {
	var out []string
	for _, p := range pages {
		name := p.PageID
		if p.Reason != "" {
			name += ":" + p.Reason
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func TestOrganize(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	text := "The cache of the provider holds the prefix that the last call sent."
	put(t, cs, WriteRequest{PageID: "x", Content: text, Tier: Working, Links: []string{}})
	put(t, cs, WriteRequest{PageID: "same", Content: text, Links: []string{"x"}, Tags: []string{"k"}, Summary: ""})
	put(t, cs, WriteRequest{PageID: "near", Content: "The provider's cache holds the prefix of the last call, and more.", Tier: Working})
	put(t, cs, WriteRequest{PageID: "far", Content: "The prefix of a word is read first."})
	put(t, cs, WriteRequest{PageID: "bread", Content: "Bread is baked from flour and water."})
	put(t, cs, WriteRequest{PageID: "pinned", Content: text, Tier: Core})
	put(t, cs, WriteRequest{PageID: "row", Title: "t", Summary: "s", Content: text, Outline: new(true)})
	other := scopeOf(t, db, Config{Scope: Scope{"project", "other"}})
	put(t, other, WriteRequest{PageID: "alien", Content: text})
	s := snapshot(t, cs)
	got := organize(t, cs, OrganizeRequest{PageID: "x"})
	if got.Method != "tf-idf" || !got.Changed || similarIDs(got.Linked) != "same near" || similarIDs(got.Skipped) != "pinned:core row:core" {
		t.Fatalf("%+v", got)
	}
	if same := got.Linked[0]; same.Similarity != 1 || same.Version != 1 || got.Linked[1].Similarity >= 1 || got.Linked[1].Version != 2 {
		t.Errorf("%+v", got.Linked)
	}
	if got.Page.Version != 2 || !slices.Equal(got.Page.Links, []string{"same", "near"}) {
		t.Errorf("%+v", got.Page)
	}
	if p := read(t, cs, "near").Page; p.Version != 2 || !slices.Equal(p.Links, []string{"x"}) || p.Tier != Working {
		t.Errorf("%+v", p)
	}
	if p := read(t, cs, "same"); p.Page.Version != 1 || p.Content != text {
		t.Errorf("linked already, it has %+v", p.Page)
	}
	if after := snapshot(t, cs); after.SHA == s.SHA || after.CoreSHA != s.CoreSHA || !newestEvent(t, cs).PrefixIntact {
		t.Error("the window is not as it should be")
	}
	// Asked again, nothing changes.
	before := dumpOf(t, cs)
	again := organize(t, cs, OrganizeRequest{PageID: "x", Limit: new(2)})
	if again.Changed || len(again.Linked) != 0 || similarIDs(again.Skipped) != "pinned:core same:linked near:linked" {
		t.Errorf("%q %q", similarIDs(again.Linked), similarIDs(again.Skipped))
	}
	sameDump(t, before, dumpOf(t, cs))
	// With a threshold of 0 all that shares a word is near.
	low := organize(t, cs, OrganizeRequest{PageID: "x", Threshold: new(0.0), Limit: new(20)})
	if similarIDs(low.Linked) != "far" {
		t.Errorf("%q %q", similarIDs(low.Linked), similarIDs(low.Skipped))
	}
	if got := organize(t, cs, OrganizeRequest{PageID: "bread"}); got.Changed || len(got.Linked)+len(got.Skipped) != 0 || got.Linked == nil || got.Skipped == nil {
		t.Errorf("%+v", got)
	}
	// A core page may be organized; its row stays.
	s = snapshot(t, cs)
	if got := organize(t, cs, OrganizeRequest{PageID: "row", Limit: new(1)}); !got.Changed || got.Page.Version != 2 {
		t.Errorf("%+v", got)
	}
	if after := snapshot(t, cs); after.CoreSHA != s.CoreSHA {
		t.Error("the row changed")
	}
	checkDeep(t, cs)
}

func TestOrganizeChinese(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "x", Title: "缓存", Content: "提供商的前缀缓存保存上一次调用发送的内容，前缀不变时可以复用。"})
	put(t, cs, WriteRequest{PageID: "near", Content: "前缀缓存保存上一次调用的内容，前缀不变时提供商可以复用缓存。"})
	put(t, cs, WriteRequest{PageID: "weather", Content: "今天天气很好，我们去公园散步。"})
	put(t, cs, WriteRequest{PageID: "empty", Content: "！！！"})
	if got := organize(t, cs, OrganizeRequest{PageID: "x", Threshold: new(0.3)}); similarIDs(got.Linked) != "near" || len(got.Skipped) != 0 {
		t.Errorf("%+v", got)
	}
	if got := organize(t, cs, OrganizeRequest{PageID: "empty"}); got.Changed || len(got.Linked) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestOrganizeLimits fills pages with links.
func TestOrganizeLimits(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	var all []string
	for i := range MaxLinks {
		all = append(all, put(t, cs, WriteRequest{PageID: fmt.Sprint("l", i), Content: fmt.Sprint("filler", i)}).PageID)
	}
	text := "windmills grind wheat between stones"
	put(t, cs, WriteRequest{PageID: "full", Content: text, Links: all})
	put(t, cs, WriteRequest{PageID: "x", Content: text, Links: all[1:]})
	put(t, cs, WriteRequest{PageID: "y1", Content: text + " y"})
	put(t, cs, WriteRequest{PageID: "y2", Content: text + " y z"})
	copyInto(t, db, cs, text)
	got := organize(t, cs, OrganizeRequest{PageID: "x", Limit: new(20), Threshold: new(0.3)})
	skipped := strings.Split(similarIDs(got.Skipped), " ")
	slices.Sort(skipped)
	if similarIDs(got.Linked) != "y1" || len(skipped) != 3 || skipped[0] != "full:links_full" || !strings.HasSuffix(skipped[1], ":copy") || skipped[2] != "y2:page_full" {
		t.Errorf("%q %q", similarIDs(got.Linked), skipped)
	}
	before := dumpOf(t, cs)
	_, err := cs.Organize(t.Context(), OrganizeRequest{PageID: "x"})
	wantFail(t, err, ErrLinkInvalid, "page_id")
	for _, c := range []struct {
		req   OrganizeRequest
		code  Code
		field string
	}{
		{OrganizeRequest{}, ErrInvalidArgument, "page_id"},
		{OrganizeRequest{PageID: "nobody"}, ErrNotFound, "page_id"},
		{OrganizeRequest{PageID: "memory:33"}, ErrNotFound, "page_id"},
		{OrganizeRequest{PageID: "x", Threshold: new(1.1)}, ErrInvalidArgument, "threshold"},
		{OrganizeRequest{PageID: "x", Threshold: new(-0.1)}, ErrInvalidArgument, "threshold"},
		{OrganizeRequest{PageID: "x", Threshold: new(math.NaN())}, ErrInvalidArgument, "threshold"},
		{OrganizeRequest{PageID: "x", Limit: new(0)}, ErrInvalidArgument, "limit"},
		{OrganizeRequest{PageID: "x", Limit: new(21)}, ErrInvalidArgument, "limit"},
	} {
		_, err := cs.Organize(t.Context(), c.req)
		wantFail(t, err, c.code, c.field)
	}
	sameDump(t, before, dumpOf(t, cs))
}

func TestOrganizeCopy(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	copied := copyInto(t, db, cs, "windmills grind wheat")
	_, err := cs.Organize(t.Context(), OrganizeRequest{PageID: copied.PageID})
	wantFail(t, err, ErrInvalidArgument, "page_id")
}

// TestOrganizeEmbedding compares by vectors where the page has one.
func TestOrganizeEmbedding(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	model := fakeembed.New(64)
	must[*loci.Receipt[loci.EmbeddingSpace]](t)(db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "v", Model: "fake", Dimension: 64}))
	if err := db.Embeddings().RegisterEmbedder(t.Context(), "v", model, nil); err != nil {
		t.Fatal(err)
	}
	put(t, cs, WriteRequest{PageID: "x", Content: "windmills grind wheat between stones"})
	put(t, cs, WriteRequest{PageID: "same", Content: "windmills grind wheat between stones"})
	put(t, cs, WriteRequest{PageID: "far", Content: "completely unrelated sentence"})
	put(t, scopeOf(t, db, Config{Scope: Scope{"project", "other"}}), WriteRequest{PageID: "alien", Content: "windmills grind wheat between stones"})
	must[*loci.Receipt[loci.EmbeddingReport]](t)(db.Embeddings().Sync(t.Context(), "v", loci.EmbeddingSyncOptions{}))
	put(t, cs, WriteRequest{PageID: "new", Content: "windmills grind wheat between stones"}) // without a vector
	got := organize(t, cs, OrganizeRequest{PageID: "x", Threshold: new(0.9)})
	if got.Method != "embedding" || similarIDs(got.Linked) != "same" || got.Linked[0].Similarity != 1 {
		t.Errorf("%+v", got)
	}
	if got := organize(t, cs, OrganizeRequest{PageID: "new", Threshold: new(1.0)}); got.Method != "tf-idf" || similarIDs(got.Linked) != "x same" {
		t.Errorf("%+v", got)
	}
}

// TestOrganizeBusy organizes pages that others change all the time: every page
// must end up with links both ways and dense versions.
func TestOrganizeBusy(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"project", "s"}})
	const n = 6
	for i := range n {
		put(t, cs, WriteRequest{PageID: fmt.Sprint(i), Content: "windmills grind wheat between stones"})
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			if _, err := cs.Organize(t.Context(), OrganizeRequest{PageID: fmt.Sprint(i), Limit: new(n)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	links := map[string][]string{}
	for i := range n {
		p := read(t, cs, fmt.Sprint(i)).Page
		links[p.PageID] = p.Links
	}
	for id, to := range links {
		for _, other := range to {
			if !slices.Contains(links[other], id) {
				t.Errorf("%s links to %s and not back", id, other)
			}
		}
	}
	checkDeep(t, cs)
}
