package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

func TestTextFindsByWords(t *testing.T) { // X1
	m := openMemory(t, 4)
	m.store(1, "灯塔每晚七点点灯", x())
	m.store(2, "The ferry leaves at nine", x())
	wantIDs(t, "灯塔", m.words("灯塔"), 1)
	hits := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "ferries leaving"}))
	if len(hits.Hits) != 1 || hits.Hits[0].ID != 2 || hits.Hits[0].Content != "The ferry leaves at nine" || !(hits.Hits[0].Score > 0) || len(hits.Degraded) == 0 {
		t.Errorf("%+v", hits)
	}
}

func TestTextFindsByMeaning(t *testing.T) { // X2
	m := openEmbedding(t, 32)
	m.fake.Alike("boat", "ferry")
	m.store(1, "the ferry leaves at nine", nil)
	m.store(2, "lighthouse", nil)
	hits := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "boat", K: new(1)}))
	if len(hits.Hits) != 1 || hits.Hits[0].ID != 1 || len(hits.Degraded) != 0 {
		t.Errorf("%+v", hits)
	}
	m.fake.Fail(fakeembed.Fails)
	hits = must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "lighthouse boat"}))
	if len(hits.Hits) != 1 || hits.Hits[0].ID != 2 || !slices.Contains(hits.Degraded, loci.DegradeEmbedFailed) {
		t.Errorf("%+v", hits)
	}
}

// TestTextInTheMemorysSpace holds that the vectors compared are the memory's, whatever
// space the namespace's searches use.
func TestTextInTheMemorysSpace(t *testing.T) { // X2, V12
	m := openEmbedding(t, 32)
	m.fake.Alike("boat", "ferry")
	m.store(1, "the ferry leaves at nine", nil)
	m.store(2, "lighthouse", nil)
	other := fakeembed.New(8)
	bindEmbedder(t, m.db, "other", other)
	must[*loci.Receipt[string]](t)(m.db.Embeddings().SetDefaultSpace(t.Context(), "default", "other"))
	other.Forget()
	hits := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "boat", K: new(1)}))
	if len(hits.Hits) != 1 || hits.Hits[0].ID != 1 || len(other.Calls()) != 0 {
		t.Errorf("%+v, %d calls of the other model", hits, len(other.Calls()))
	}
}

func TestTextBounds(t *testing.T) { // X3
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	for _, bad := range []string{"", "  ", "\xff", strings.Repeat("a", loci.MaxQueryBytes+1)} {
		_, err := m.facts.QueryText(t.Context(), TextRequest{Text: bad})
		wantField(t, err, loci.ErrValidation, "text")
	}
	_, err := m.facts.QueryText(t.Context(), TextRequest{Text: "tide", K: new(0)})
	wantField(t, err, loci.ErrValidation, "k")
	_, err = m.facts.QueryText(t.Context(), TextRequest{Text: "tide", Offset: -1})
	wantField(t, err, loci.ErrValidation, "offset")
	wantIDs(t, "!!!", m.words("!!!"))
}

func TestTextSelectsBeforeItCuts(t *testing.T) { // X4
	m := openMemory(t, 4)
	n := 10_000
	if testing.Short() {
		n = 300
	}
	m.storeMany(n, withMetadata(`{"o":{"a":2},"k":2}`))
	m.store(1<<40, strings.Repeat("other words that make it long ", 50)+"text", x(), withMetadata(`{"o":{"a":1},"k":1}`), withTags("rare"), withValidity(nil, new(T+day)))
	for id := range loci.PointID(20) { // superseded ones take no place either
		m.store(id, "text", x(), withMetadata(`{"o":{"a":1},"k":1}`), withTags("rare"), withValidity(nil, new(T)))
	}
	for name, s := range map[string]Selection{
		"an object": {Filter: loci.Metadata(`{"o":{"a":1}}`)},
		"a number":  {Filter: loci.Metadata(`{"k":1}`)},
		"tags":      {Tags: []string{"rare"}},
		"where":     {Where: []loci.Condition{{Key: "k", Op: loci.OpLt, Value: []byte(`2`)}}},
	} {
		hits := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "text", K: new(1), Selection: s}))
		wantIDs(t, name, hitIDs(hits.Hits), 1<<40)
	}
	s := Selection{Filter: loci.Metadata(`{"o":{"a":1}}`), AsOfValidUS: new(T + day)}
	wantIDs(t, "later", hitIDs(must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "text", Selection: s})).Hits))
	s.AsOfValidUS = new(T - 1)
	if hits := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "text", K: new(100), Selection: s})); len(hits.Hits) != 21 {
		t.Errorf("%d hits", len(hits.Hits))
	}
}

func TestTextFollowsWrites(t *testing.T) { // X5
	m := openMemory(t, 4)
	for id, word := range []string{1: "changed", 2: "deleted", 3: "expired", 4: "superseded", 5: "successor"} {
		if id > 0 {
			m.store(loci.PointID(id), word+" tide", x())
		}
	}
	wantIDs(t, "before", m.words("changed"), 1)
	m.store(1, "another tide", x())
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 2))
	if err := m.facts.SetTTLDurable(t.Context(), 3, 10); err != nil {
		t.Fatal(err)
	}
	m.supersede(4, 5)
	m.clock.Set(T + 10*second)
	for _, word := range []string{"changed", "deleted", "expired", "superseded"} {
		wantIDs(t, word, m.words(word))
	}
	got := m.words("tide")
	slices.Sort(got)
	wantIDs(t, "tide", got, 1, 5)
}

// TestTextPages holds that pages are disjoint and contiguous, also where the windows
// that they come from are several.
func TestTextPages(t *testing.T) {
	m := openEmbedding(t, 16)
	n := 1300
	if testing.Short() {
		n = 320
	}
	var batch []FactInput
	for i := range n {
		content := "tide " + strings.Repeat(fmt.Sprint("word", i%37, " "), i%11)
		batch = append(batch, fact(loci.PointID(i), content, m.fake.Vector(content), withMetadata(fmt.Sprintf(`{"o":[%d]}`, i%2))))
	}
	if err := m.facts.StoreBatch(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	for _, filter := range []string{``, `{"o":[1]}`} {
		want := n
		if filter != "" {
			want = n / 2
		}
		s := Selection{Filter: loci.Metadata(filter)}
		all := must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "tide word7", K: new(10000), Selection: s})).Hits
		var pages []Hit
		for offset := 0; offset < n; offset += 60 {
			pages = append(pages, must[*Hits](t)(m.facts.QueryText(t.Context(), TextRequest{Text: "tide word7", K: new(60), Offset: offset, Selection: s})).Hits...)
		}
		if len(all) != want || !slices.Equal(pages, all) {
			t.Errorf("filter %q: %d at once, %d by pages, want %d", filter, len(all), len(pages), want)
		}
		if !slices.IsSortedFunc(all, func(a, b Hit) int { return int(1e9 * (b.Score - a.Score)) }) {
			t.Error("scores are not in order")
		}
	}
}
