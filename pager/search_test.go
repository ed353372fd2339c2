package pager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

func search(t testing.TB, cs *Store, req SearchRequest) []Found {
	t.Helper()
	return must[*SearchResult](t)(cs.Search(t.Context(), req)).Results
}

// names gives page ids, with those that they were reached by.
func names(found []Found) string {
	var out []string
	for _, f := range found {
		name := f.PageID
		if f.Via != "" {
			name += "<" + f.Via
		}
		out = append(out, name)
	}
	return strings.Join(out, " ")
}

func addMemory(t testing.TB, db *loci.DB, in loci.MemoryInput) loci.Memory {
	t.Helper()
	return must[*loci.Receipt[loci.Memory]](t)(db.Memories().Upsert(t.Context(), in)).Value
}

func TestSearchPages(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "body", Content: "The harbour has a lighthouse and many boats that come in at night."})
	put(t, cs, WriteRequest{PageID: "title", Title: "lighthouse", Summary: "a summary", Content: "It stands by the harbour with many boats coming in at night.", Tier: Working})
	put(t, cs, WriteRequest{PageID: "tag", Tags: []string{"Beacon"}, Content: "Something else.", Tier: Core})
	put(t, cs, WriteRequest{PageID: "row", Title: "step one", Summary: "the quay", Content: "A long report on dredging.", Outline: new(true)})
	put(t, cs, WriteRequest{PageID: "中文", Content: "灯塔在港口的北边。"})
	put(t, cs, WriteRequest{PageID: "old", Content: "a zeppelin"})
	put(t, cs, WriteRequest{PageID: "old", Content: "a balloon", ExpectedVersion: new(int64(1))})
	for query, want := range map[string]string{
		"lighthouse": "title body", "beacon": "tag", "quay": "row", "dredging": "row", "灯塔": "中文", "balloon": "old", "zeppelin": "", "nothing of it": "", "the": "",
	} {
		found := search(t, cs, SearchRequest{Query: query})
		if names(found) != want {
			t.Errorf("%q finds %q, want %q", query, names(found), want)
		}
		for _, f := range found {
			if f.Score <= 0 || f.Reference.Tags == nil || f.Bytes == 0 {
				t.Errorf("%+v", f)
			}
		}
	}
	found := search(t, cs, SearchRequest{Query: "lighthouse", Limit: new(1)})
	if len(found) != 1 || found[0].Summary != "a summary" || found[0].Tier != Working || found[0].Title != "lighthouse" {
		t.Errorf("%+v", found)
	}
}

// TestSearchLinks reaches pages by links, at half the score.
func TestSearchLinks(t *testing.T) {
	cs := openScope(t, Config{})
	for _, id := range []string{"x", "y", "z"} {
		put(t, cs, WriteRequest{PageID: id, Content: "nothing of note"})
	}
	put(t, cs, WriteRequest{PageID: "weak", Content: "A lighthouse among very many other things that are told here, at length, to no end whatever."})
	put(t, cs, WriteRequest{PageID: "strong", Title: "lighthouse", Content: "lighthouse", Links: []string{"x", "weak", "y"}})
	put(t, cs, WriteRequest{PageID: "second", Title: "lighthouse", Content: "lighthouse keeper", Links: []string{"x", "z"}})
	plain := search(t, cs, SearchRequest{Query: "lighthouse", ExpandLinks: new(false)})
	if names(plain) != "strong second weak" {
		t.Fatalf("without links: %s", names(plain))
	}
	scores := map[string]float64{}
	for _, f := range plain {
		scores[f.PageID] = f.Score
	}
	if scores["weak"] > scores["second"]/2 {
		t.Fatalf("the scores %v do not try what is to be tried", scores)
	}
	found := search(t, cs, SearchRequest{Query: "lighthouse", Limit: new(50)})
	if names(found) != "strong second weak<strong x<strong y<strong z<second" {
		t.Errorf("with links: %s", names(found))
	}
	for _, f := range found {
		want := scores[f.PageID]
		if f.Via != "" {
			want = scores[f.Via] / 2
		}
		if f.Score != want {
			t.Errorf("%s has the score %v, want %v", f.PageID, f.Score, want)
		}
	}
	if found := search(t, cs, SearchRequest{Query: "lighthouse", Limit: new(3)}); names(found) != "strong second weak<strong" {
		t.Errorf("the limit is for what links reach, too: %s", names(found))
	}
	if d := cmp.Diff([]string{"x", "weak", "y"}, found[0].Links); d != "" {
		t.Error(d)
	}
}

// TestHalf is about scores below 0, as rerankers have them: what a page links to
// never stands before it.
func TestHalf(t *testing.T) {
	parent := ranked{id: 1, score: -4, page: &resident{Page: &store.Page{PageRevision: store.PageRevision{Links: []int64{2, 3, 1}}}}}
	out := sortRanked(withLinks([]ranked{parent, {id: 3, score: -9, page: &resident{Page: &store.Page{}}}}), 9)
	var got []string
	for _, f := range out {
		got = append(got, fmt.Sprint(f.id, f.score, f.via != nil))
	}
	if d := cmp.Diff([]string{"1 -4 false", "3 -8 true", "2 -8 true"}, got); d != "" {
		t.Error(d)
	}
}

func TestSearchErrors(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "p", Content: "text", Tier: Working})
	before := dumpOf(t, cs)
	for _, c := range []struct {
		req   SearchRequest
		code  Code
		field string
	}{
		{SearchRequest{}, ErrInvalidArgument, "query"},
		{SearchRequest{Query: " \t\n　"}, ErrInvalidArgument, "query"},
		{SearchRequest{Query: "a\xff"}, ErrInvalidArgument, "query"},
		{SearchRequest{Query: strings.Repeat("a", loci.MaxQueryBytes+1)}, ErrTooLarge, "query"},
		{SearchRequest{Query: "a", Limit: new(0)}, ErrInvalidArgument, "limit"},
		{SearchRequest{Query: "a", Limit: new(51)}, ErrInvalidArgument, "limit"},
		{SearchRequest{Query: "a", Kinds: []loci.Kind{"page", "note"}}, ErrInvalidArgument, "kinds"},
		{SearchRequest{Query: "a", Scopes: []string{"public", `["project","other"]`}}, ErrInvalidArgument, "scopes[1]"},
		{SearchRequest{Query: "a", Scopes: []string{"a\xff"}}, ErrInvalidArgument, "scopes[0]"},
		{SearchRequest{Query: "a", Kinds: []loci.Kind{"memory"}, Scopes: []string{" a"}}, ErrInvalidArgument, ""},
		{SearchRequest{Query: "a", Scopes: []string{strings.Repeat("a", loci.MaxScopeBytes+1)}}, ErrInvalidArgument, "scopes[0]"},
	} {
		out, err := cs.Search(t.Context(), c.req)
		wantFail(t, err, c.code, c.field)
		recalled, recallErr := cs.Recall(t.Context(), RecallRequest{SearchRequest: c.req})
		wantFail(t, recallErr, c.code, c.field)
		if out != nil || recalled != nil {
			t.Errorf("%+v came with an error", out)
		}
	}
	sameDump(t, before, dumpOf(t, cs))
	if found := search(t, cs, SearchRequest{Query: strings.Repeat("a ", loci.MaxQueryBytes/2), Scopes: []string{cs.key.scope}}); len(found) != 0 {
		t.Errorf("%+v", found)
	}
}

// TestSearchNothing looks into scopes that nothing was ever written to.
func TestSearchNothing(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"never", "used"}})
	for _, kinds := range [][]loci.Kind{nil, {}, {"memory"}, {"page", "memory", "entity", "relation", "event", "chunk"}} {
		out := must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "anything", Kinds: kinds}))
		if len(out.Results) != 0 || out.Results == nil || out.Degraded == nil {
			t.Errorf("%+v", out)
		}
	}
	if n := must[*loci.HealthReport](t)(db.Health(t.Context())).Revision; n != 0 {
		t.Errorf("looking made revision %d", n)
	}
}

// TestSearchRecords searches pages and the knowledge base at once.
func TestSearchRecords(t *testing.T) {
	db := openDB(t, t.TempDir(), nil)
	cs := scopeOf(t, db, Config{Scope: Scope{"n", "s"}})
	n := new("n")
	in := func(scope, text string) loci.MemoryInput {
		return loci.MemoryInput{Judgment: text, RecordInput: loci.RecordInput{Namespace: n, Scope: &scope, Tags: []string{"t"}}}
	}
	public := addMemory(t, db, in("public", "The lighthouse was built in 1811."))
	team := addMemory(t, db, in("team", "The lighthouse belongs to the team."))
	own := addMemory(t, db, in(cs.key.scope, "The lighthouse of this very session."))
	addMemory(t, db, loci.MemoryInput{Judgment: "The lighthouse of another namespace.", RecordInput: loci.RecordInput{Namespace: new("m")}})
	put(t, cs, WriteRequest{PageID: "p", Content: "A lighthouse in a page."})
	id := func(m loci.Memory) string { return fmt.Sprintf("memory:%d", m.ID) }
	set := func(found []Found) string {
		ids := strings.Fields(names(found))
		slices.Sort(ids)
		return strings.Join(ids, " ")
	}
	for _, c := range []struct {
		kinds  []loci.Kind
		scopes []string
		want   []string
	}{
		{nil, nil, []string{"p"}},
		{nil, []string{"team"}, []string{"p"}},
		{[]loci.Kind{"memory"}, nil, []string{id(public)}},
		{[]loci.Kind{"memory", "page"}, nil, []string{id(public), "p"}},
		{[]loci.Kind{"page", "memory", "page", "chunk"}, []string{"team", "public", "team"}, []string{id(public), id(team), "p"}},
		{[]loci.Kind{"page", "memory"}, []string{cs.key.scope}, []string{id(own), "p"}},
		{[]loci.Kind{"memory"}, []string{cs.key.scope, "team"}, []string{id(own), id(team)}},
		{[]loci.Kind{"entity"}, nil, nil},
		{[]loci.Kind{"memory"}, []string{"nobody"}, nil},
	} {
		slices.Sort(c.want)
		found := search(t, cs, SearchRequest{Query: "lighthouse", Kinds: c.kinds, Scopes: c.scopes, Limit: new(9)})
		if set(found) != strings.Join(c.want, " ") {
			t.Errorf("%v in %v: %q, want %q", c.kinds, c.scopes, set(found), c.want)
		}
	}
	found := search(t, cs, SearchRequest{Query: "1811", Kinds: []loci.Kind{"memory"}})
	want := []Found{{Score: found[0].Score, Reference: Reference{PageID: id(public), Version: public.Revision, Tier: Archive, Mode: "full", Tags: []string{"t"},
		Bytes: len(public.Judgment), Importance: 0.5, Source: "memory", Origin: &Origin{Kind: "memory", ID: public.ID, Revision: public.Revision},
		CreatedAtUS: public.CreatedAtUS, UpdatedAtUS: public.UpdatedAtUS}}}
	if d := cmp.Diff(want, found, ignoreLinks); d != "" {
		t.Error(d)
	}

	// A copy and its record are one result, whichever of them was looked for.
	pageIn(t, cs, PageInRequest{PageID: id(public)})
	for _, kinds := range [][]loci.Kind{{"page"}, {"memory"}, {"memory", "page"}} {
		found := search(t, cs, SearchRequest{Query: "1811", Kinds: kinds})
		if names(found) != id(public) || found[0].Tier != Working || found[0].Origin.Stale {
			t.Errorf("%v: %+v", kinds, found)
		}
	}
	// A limit counts results, not hits.
	var copies []string
	for _, text := range []string{"windmill windmill windmill", "There is, among all of the other things that are told of here, a windmill as well."} {
		m := addMemory(t, db, in("public", text))
		pageIn(t, cs, PageInRequest{PageID: id(m)})
		copies = append(copies, id(m))
	}
	if found := search(t, cs, SearchRequest{Query: "windmill", Kinds: []loci.Kind{"memory", "page"}, Limit: new(2)}); names(found) != strings.Join(copies, " ") {
		t.Errorf("%v were found as %s", copies, names(found))
	}
	// What lies in the context's own scope, and was not asked for, takes no place.
	for i := range 30 {
		addMemory(t, db, in(cs.key.scope, fmt.Sprintf("Tower %d.", i)))
	}
	last := addMemory(t, db, in("public", "There is, beyond all of the other ones that are told of, one last tower."))
	if found := search(t, cs, SearchRequest{Query: "tower", Kinds: []loci.Kind{"memory", "page"}, Limit: new(2)}); names(found) != id(last) {
		t.Errorf("found %q", names(found))
	}
}

// failingReranker never has an answer.
type failingReranker struct{}

func (failingReranker) Rerank(context.Context, string, []string) ([]float64, error) {
	return nil, errors.New("out of order")
}

func TestSearchDegraded(t *testing.T) {
	cs := openScope(t, Config{})
	put(t, cs, WriteRequest{PageID: "p", Content: "A lighthouse."})
	if err := cs.reg.db.RegisterReranker(t.Context(), failingReranker{}, nil); err != nil {
		t.Fatal(err)
	}
	want := []loci.Degrade{loci.DegradeRerankFailed}
	found := must[*SearchResult](t)(cs.Search(t.Context(), SearchRequest{Query: "lighthouse"}))
	recalled := must[*RecallResult](t)(cs.Recall(t.Context(), RecallRequest{SearchRequest: SearchRequest{Query: "lighthouse"}}))
	if names(found.Results) != "p" || !slices.Equal(found.Degraded, want) || !slices.Equal(recalled.Degraded, want) {
		t.Errorf("%+v, %+v", found, recalled)
	}
}
