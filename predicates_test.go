package loci

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

const harbour = "港务"

func setEquivalents(t *testing.T, db *DB, namespace string, groups ...[]string) int {
	t.Helper()
	return must[*Receipt[int]](t)(db.Graph().SetPredicateEquivalents(t.Context(), namespace, groups)).Value
}

// groupWords lists a namespace's groups.
func groupWords(t *testing.T, db *DB, namespace string) [][]string {
	t.Helper()
	out := [][]string{}
	for _, g := range must[[]PredicateGroup](t)(db.Graph().PredicateEquivalents(t.Context(), namespace)) {
		if !slices.Contains(g.Words, g.Canonical) || !slices.IsSorted(g.Words) {
			t.Errorf("%+v", g)
		}
		out = append(out, g.Words)
	}
	return out
}

func wantExpanded(t *testing.T, db *DB, namespace, text string, want ...string) {
	t.Helper()
	got := must[[]string](t)(db.Graph().ExpandQuery(t.Context(), namespace, text))
	if got == nil || !slices.Equal(got, want) {
		t.Errorf("%q expands to %v, want %v", text, got, want)
	}
}

func TestPredicateEquivalents(t *testing.T) {
	dir := t.TempDir()
	db := openTestDB(t, dir)
	if got := groupWords(t, db, harbour); len(got) != 0 {
		t.Errorf("a new store has %v", got)
	}
	wantExpanded(t, db, harbour, "老柳的夫妻关系")
	if n := setEquivalents(t, db, harbour, []string{"配偶", "夫妻", "伴侣"}); n != 3 {
		t.Errorf("%d words", n)
	}
	check := func(db *DB) {
		t.Helper()
		want := []PredicateGroup{{Canonical: "配偶", Words: []string{"伴侣", "夫妻", "配偶"}}}
		if got := must[[]PredicateGroup](t)(db.Graph().PredicateEquivalents(t.Context(), harbour)); !reflect.DeepEqual(got, want) {
			t.Errorf("%+v", got)
		}
		wantExpanded(t, db, harbour, "老柳的夫妻关系", "伴侣", "夫妻", "配偶")
		wantExpanded(t, db, harbour, "老柳的关系")
		wantExpanded(t, db, harbour, " ")
		wantExpanded(t, db, DefaultNamespace, "老柳的夫妻关系")
	}
	check(db)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTestDB(t, dir)
	check(db)
	for _, c := range []struct {
		words []string
		gone  int
		left  [][]string
	}{
		{[]string{"伴侣"}, 1, [][]string{{"夫妻", "配偶"}}},
		{[]string{"不存在"}, 0, [][]string{{"夫妻", "配偶"}}},
		{[]string{}, 0, [][]string{{"夫妻", "配偶"}}},
		{nil, 2, [][]string{}},
		{nil, 0, [][]string{}},
	} {
		r := must[*Receipt[int]](t)(db.Graph().DeletePredicateEquivalents(t.Context(), harbour, c.words))
		if got := groupWords(t, db, harbour); r.Value != c.gone || !reflect.DeepEqual(got, c.left) {
			t.Errorf("delete %v: %d gone, %v left", c.words, r.Value, got)
		}
	}
	wantExpanded(t, db, harbour, "老柳的夫妻关系")
}

func TestExpandQueryWords(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	const ns = DefaultNamespace
	setEquivalents(t, db, ns, []string{"Cat", "feline"}, []string{"C++", "cpp"}, []string{"life partner", "spouse"})
	wantExpanded(t, db, ns, "CATEGORY list")
	wantExpanded(t, db, ns, "my ＣＡＴ, please", "cat", "feline")
	wantExpanded(t, db, ns, "a feline and its cat", "cat", "feline")
	wantExpanded(t, db, ns, "spouses")
	wantExpanded(t, db, ns, "C++: the spouse's cat", "c++", "cpp", "life partner", "spouse", "cat", "feline")
	wantExpanded(t, db, ns, "her Life  Partner", "life partner", "spouse")

	var long []string
	for i := range 50 {
		long = append(long, fmt.Sprintf("w%02d", i))
	}
	setEquivalents(t, db, ns, long, []string{"v1", "v2"})
	got := must[[]string](t)(db.Graph().ExpandQuery(t.Context(), ns, "v2 w07"))
	if len(got) != 52 || got[0] != "v1" || got[51] != "w49" {
		t.Errorf("%v", got)
	}
	for i := range 50 {
		long[i] += "x"
	}
	setEquivalents(t, db, ns, long)
	if got := must[[]string](t)(db.Graph().ExpandQuery(t.Context(), ns, "w07x w07")); len(got) != ExpandQueryLimit || got[49] != "w49x" || got[50] != "w00" {
		t.Errorf("%d words: %v", len(got), got)
	}
	_, err := db.Graph().ExpandQuery(t.Context(), ns, "a\xff")
	wantCode(t, err, ErrValidation)
	_, err = db.Graph().ExpandQuery(t.Context(), ns, strings.Repeat("a", MaxQueryBytes+1))
	wantCode(t, err, ErrValidation)
	_, err = db.Graph().ExpandQuery(t.Context(), "", "a")
	wantCode(t, err, ErrValidation)
}

func TestEquivalentsMove(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	const ns = DefaultNamespace
	setEquivalents(t, db, ns, []string{"a1", "b1"})
	setEquivalents(t, db, ns, []string{"c1", "b1"})
	if got := groupWords(t, db, ns); !reflect.DeepEqual(got, [][]string{{"a1"}, {"b1", "c1"}}) {
		t.Errorf("%v", got)
	}
	setEquivalents(t, db, "other", []string{"x1", "y1", "z1"})
	setEquivalents(t, db, "other", []string{"w1", "x1"})
	want := []PredicateGroup{{"w1", []string{"w1", "x1"}}, {"y1", []string{"y1", "z1"}}}
	if got := must[[]PredicateGroup](t)(db.Graph().PredicateEquivalents(t.Context(), "other")); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	// Within one call, too; a word that comes twice counts once.
	if n := setEquivalents(t, db, "third", []string{"p", "q", "P"}, []string{"r", "q"}); n != 3 {
		t.Errorf("%d words", n)
	}
	if got := groupWords(t, db, "third"); !reflect.DeepEqual(got, [][]string{{"p"}, {"q", "r"}}) {
		t.Errorf("%v", got)
	}
}

func TestEquivalentsValidation(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	before := stateOf(t, db)
	for _, groups := range [][][]string{
		{{}}, {nil}, {{"ok"}, {}}, {{"ok", ""}}, {{" "}}, {{"a "}}, {{" a"}}, {{"a\tb"}}, {{"\xff"}}, {{strings.Repeat("a", MaxLabelBytes+1)}},
	} {
		_, err := db.Graph().SetPredicateEquivalents(t.Context(), DefaultNamespace, groups)
		wantCode(t, err, ErrValidation)
	}
	_, err := db.Graph().SetPredicateEquivalents(t.Context(), "", [][]string{{"a"}})
	wantCode(t, err, ErrValidation)
	_, err = db.Graph().DeletePredicateEquivalents(t.Context(), DefaultNamespace, []string{""})
	wantCode(t, err, ErrValidation)
	_, err = db.Graph().PredicateEquivalents(t.Context(), " x")
	wantCode(t, err, ErrValidation)
	if n := setEquivalents(t, db, DefaultNamespace); n != 0 {
		t.Errorf("%d words", n)
	}
	if after := stateOf(t, db); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
	if n := setEquivalents(t, db, DefaultNamespace, []string{"lone"}); n != 1 {
		t.Errorf("%d words", n)
	}
	wantExpanded(t, db, DefaultNamespace, "a lone wolf", "lone")
	if r := must[*Receipt[int]](t)(db.Graph().SetPredicateEquivalents(t.Context(), DefaultNamespace, [][]string{{"two"}})); r.Revision != before.revision+2 {
		t.Errorf("revision %d after two writes, was %d", r.Revision, before.revision)
	}
}

// found gives the judgments that a search finds, best first.
func found(t *testing.T, db *DB, namespace, query string) []string {
	t.Helper()
	res := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: query, Filter: ReadFilter{Namespace: &namespace}, Explain: true}))
	var out []string
	for _, h := range res.Hits {
		if m, ok := h.Record.(*Memory); ok {
			out = append(out, m.Judgment)
		}
	}
	return out
}

func TestSearchExpands(t *testing.T) {
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), nil))
	t.Cleanup(func() { db.Close() })
	ns := harbour
	for _, judgment := range []string{"阿青的配偶叫老柳", "石匠是老柳的邻居", "Her life partner keeps the lamp.", "A partner keeps the books."} {
		addMemory(t, db, MemoryInput{RecordInput: RecordInput{Namespace: &ns}, Judgment: judgment})
	}
	addMemory(t, db, MemoryInput{Judgment: "阿青的配偶叫老柳"})
	if got := found(t, db, ns, "伴侣"); len(got) != 0 {
		t.Errorf("before: %q", got)
	}
	setEquivalents(t, db, ns, []string{"配偶", "夫妻", "伴侣", "妻"}, []string{"spouse", "life partner", "it"})
	for query, want := range map[string][]string{
		"伴侣":                {"阿青的配偶叫老柳"},
		"妻":                 {"阿青的配偶叫老柳"},
		"阿青的伴侣叫什么":          {"阿青的配偶叫老柳", "石匠是老柳的邻居"},
		"the lamp's spouse": {"Her life partner keeps the lamp.", "A partner keeps the books."},
		"It":                {"Her life partner keeps the lamp.", "A partner keeps the books."}, // a stop word that is registered
	} {
		if got := found(t, db, ns, query); !slices.Equal(got, want) {
			t.Errorf("%q finds %q, want %q", query, got, want)
		}
	}
	if got := found(t, db, DefaultNamespace, "伴侣"); len(got) != 0 {
		t.Errorf("another namespace: %q", got)
	}
	// A word and its expansions are one word: the query is answered whole.
	res := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "阿青的伴侣叫老柳", Filter: ReadFilter{Namespace: &ns}, Explain: true}))
	if len(res.Hits) == 0 || res.Hits[0].Explain.Round != "every_term" {
		t.Errorf("%+v", res.Hits)
	}
	must[*Receipt[int]](t)(db.Graph().DeletePredicateEquivalents(t.Context(), ns, nil))
	if got := found(t, db, ns, "伴侣"); len(got) != 0 {
		t.Errorf("after: %q", got)
	}
}

// TestSearchFindsEquivalentRelations is about relations: the stored predicate
// stays, and no edge is added.
func TestSearchFindsEquivalentRelations(t *testing.T) {
	db := must[*DB](t)(Open(t.Context(), t.TempDir(), nil))
	t.Cleanup(func() { db.Close() })
	c := newChart(t, db)
	c.ns = harbour
	c.entities("阿青", "老柳")
	id := c.relate("阿青", "配偶", "老柳")
	search := func() []SearchHit {
		t.Helper()
		return must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "伴侣", Filter: c.filter()})).Hits
	}
	if hits := search(); len(hits) != 0 {
		t.Errorf("before: %+v", hits)
	}
	setEquivalents(t, db, harbour, []string{"配偶", "夫妻", "伴侣"})
	hits := search()
	if len(hits) != 1 || hits[0].Record.(*Relation).ID != id || hits[0].Record.(*Relation).Predicate != "配偶" {
		t.Errorf("after: %+v", hits)
	}
	c.wantCounts(2, 1, 1)
	c.wantEgo("老柳", 1)
}

func TestExpandingLeavesTheQuery(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	setEquivalents(t, db, DefaultNamespace, []string{"spouse", "partner"})
	q := analyzeQuery("spouse of x", MatchAll)
	before := fmt.Sprint(q)
	var out index.Query
	err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		x, err := db.eng.equivalentsOf(tx, DefaultNamespace)
		out = x.expandQuery(q, "spouse of x")
		return err
	})
	if err != nil || fmt.Sprint(q) != before || fmt.Sprint(out) == before {
		t.Errorf("%v: %v, was %s, expanded %v", err, q, before, out)
	}
	if len(out.Groups) != len(q.Groups) || len(out.Groups[0].Alternatives) != 2 {
		t.Errorf("%v", out.Groups)
	}
}

func TestPredicateRules(t *testing.T) {
	dir := t.TempDir()
	db := openTestDB(t, dir)
	g, ctx := db.Graph(), t.Context()
	set := func(r PredicateRule) Receipt[PredicateRule] {
		t.Helper()
		return *must[*Receipt[PredicateRule]](t)(g.SetPredicateRule(ctx, r))
	}
	want := func(namespace string, want ...PredicateRule) {
		t.Helper()
		if got := must[[]PredicateRule](t)(g.PredicateRules(ctx, namespace)); got == nil || !slices.Equal(got, want) {
			t.Errorf("rules of %q: %+v, want %+v", namespace, got, want)
		}
	}
	want("")
	first := set(PredicateRule{Predicate: "Knows", Symmetric: true})
	if first.Value.Predicate != "knows" {
		t.Errorf("%+v", first)
	}
	if again := set(PredicateRule{Predicate: "knows", Inverse: "known By"}); again.Revision != first.Revision+1 {
		t.Errorf("%+v after %+v", again, first)
	}
	set(PredicateRule{Namespace: harbour, Predicate: "ｋｎｏｗｓ"})
	set(PredicateRule{Namespace: harbour, Predicate: "同船", Symmetric: true})
	general := PredicateRule{Predicate: "knows", Inverse: "known by"}
	want("", general)
	want(DefaultNamespace, general)
	want(harbour, general, PredicateRule{Namespace: harbour, Predicate: "knows"}, PredicateRule{Namespace: harbour, Predicate: "同船", Symmetric: true})

	before := stateOf(t, db)
	for _, r := range []PredicateRule{
		{}, {Predicate: " "}, {Predicate: "a "}, {Predicate: "a\nb"}, {Predicate: "a", Inverse: "b", Symmetric: true}, {Predicate: "a", Inverse: " b"},
		{Predicate: "a", Namespace: " "}, {Predicate: PredicateSameAs, Symmetric: true}, {Predicate: "a", Inverse: "SYS:same_as"},
	} {
		_, err := g.SetPredicateRule(ctx, r)
		wantCode(t, err, ErrValidation)
	}
	remove := func(namespace, predicate string, deleted bool) {
		t.Helper()
		if r := must[*Receipt[bool]](t)(g.DeletePredicateRule(ctx, namespace, predicate)); r.Value != deleted {
			t.Errorf("delete %s in %q: %v", predicate, namespace, r.Value)
		}
	}
	remove("", "同船", false)
	remove("nobody", "knows", false)
	remove("", PredicateSameAs, false)
	if after := stateOf(t, db); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
	_, err := g.DeletePredicateRule(ctx, "", "")
	wantCode(t, err, ErrValidation)
	_, err = g.PredicateRules(ctx, " ")
	wantCode(t, err, ErrValidation)

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openTestDB(t, dir)
	g = db.Graph()
	remove("", "KNOWS", true)
	remove("", "KNOWS", false)
	want(harbour, PredicateRule{Namespace: harbour, Predicate: "knows"}, PredicateRule{Namespace: harbour, Predicate: "同船", Symmetric: true})
	remove(harbour, "knows", true)
	db.Close()
	_, err = g.PredicateRules(ctx, "")
	wantCode(t, err, ErrClosed)
}
