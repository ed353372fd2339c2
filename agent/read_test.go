package agent

import (
	"fmt"
	"slices"
	"testing"

	"github.com/loci-memory/loci"
)

// storeMany stores facts 0 to n-1.
func (m *testMemory) storeMany(n int, with ...func(*FactInput)) {
	m.t.Helper()
	for from := 0; from < n; from += MaxBatch {
		var batch []FactInput
		for i := from; i < min(n, from+MaxBatch); i++ {
			batch = append(batch, fact(loci.PointID(i), fmt.Sprint("text ", i), x(), with...))
		}
		if err := m.facts.StoreBatch(m.t.Context(), batch); err != nil {
			m.t.Fatal(err)
		}
	}
}

func TestListPages(t *testing.T) { // L1
	m := openMemory(t, 4)
	n, size := 25_000, 1000
	if testing.Short() {
		n, size = 250, 10
	}
	m.storeMany(n)
	pages, next := 0, loci.PointID(0)
	for cursor := ""; ; pages++ {
		page := must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Limit: &size, Cursor: cursor}))
		for _, f := range page.Items {
			if f.ID != next {
				t.Fatalf("id %d where %d should be", f.ID, next)
			}
			next++
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if pages != 24 || next != loci.PointID(n) {
		t.Errorf("%d pages, %d facts", pages+1, next)
	}
	if page := must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{})); len(page.Items) != 50 {
		t.Errorf("%d facts without a limit", len(page.Items))
	}
	for _, limit := range []int{0, -1, 10001} {
		_, err := m.facts.List(t.Context(), ListRequest{Limit: &limit})
		wantField(t, err, loci.ErrValidation, "limit")
	}
	for _, cursor := range []string{"x", "-1", "01", " 1", "18446744073709551616"} {
		_, err := m.facts.List(t.Context(), ListRequest{Cursor: cursor})
		wantField(t, err, loci.ErrValidation, "cursor")
	}
	if all := must[[]IDContent](t)(m.facts.ListAll(t.Context())); len(all) != n || all[n-1] != (IDContent{loci.PointID(n - 1), fmt.Sprint("text ", n-1)}) {
		t.Errorf("%d facts at once", len(all))
	}
}

func TestListAtTheEnds(t *testing.T) { // L2
	m := openMemory(t, 4)
	m.store(1<<64-2, "text", x())
	m.store(1<<64-1, "text", x())
	page := must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Limit: new(1)}))
	if len(page.Items) != 1 || page.Items[0].ID != 1<<64-2 || page.NextCursor == "" {
		t.Errorf("page %+v", page)
	}
	page = must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Limit: new(1), Cursor: page.NextCursor}))
	if len(page.Items) != 1 || page.Items[0].ID != 1<<64-1 || page.NextCursor != "" {
		t.Errorf("page %+v", page)
	}
	page = must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Cursor: "18446744073709551615"}))
	if len(page.Items) != 0 || page.NextCursor != "" {
		t.Errorf("page %+v", page)
	}
}

func TestListBetweenPages(t *testing.T) { // L3
	m := openMemory(t, 4)
	for _, id := range []loci.PointID{10, 20, 30, 40} {
		m.store(id, "text", x())
	}
	page := must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Limit: new(2)}))
	must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 20))
	m.store(5, "text", x())
	m.store(50, "text", x())
	page = must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Cursor: page.NextCursor}))
	var ids []loci.PointID
	for _, f := range page.Items {
		ids = append(ids, f.ID)
	}
	wantIDs(t, "the second page", ids, 30, 40, 50)
}

func TestReadsLeaveOutWhatIsExpired(t *testing.T) { // L4
	m := openMemory(t, 4)
	for id := range loci.PointID(5) {
		m.store(id, fmt.Sprint("text ", id), x(), withMetadata(fmt.Sprintf(`{"even":%t}`, id%2 == 0)))
	}
	m.store(2, "text 2", x(), withTTL(10), withMetadata(`{"even":true}`))
	m.supersede(3, 4)
	m.clock.Set(T + 10*second)
	wantIDs(t, "list", m.ids(), 0, 1, 3, 4)
	if f := m.get(3); m.count() != 4 || f.ValidToUS == nil || *f.ValidToUS != T {
		t.Errorf("count %d, superseded %+v", m.count(), f)
	}
	page := must[*Page[loci.Fact]](t)(m.facts.List(t.Context(), ListRequest{Limit: new(3)}))
	if len(page.Items) != 3 || page.NextCursor == "" {
		t.Errorf("page %+v", page)
	}
	hits := must[[]Hit](t)(m.facts.QueryFiltered(t.Context(), x(), 2, loci.Metadata(`{"even":true}`), 0))
	wantIDs(t, "a filter's page", hitIDs(hits), 0, 4)
	for id := range loci.PointID(5) {
		if id != 2 {
			m.store(id, "text", x(), withTTL(1))
		}
	}
	m.clock.Set(T + 20*second)
	if n := must[*Count](t)(m.facts.Count(t.Context())); n.Count != 0 || !n.Empty || !must[bool](t)(m.facts.IsEmpty(t.Context())) {
		t.Errorf("count %+v", n)
	}
	if n := m.sweep(); n != 5 {
		t.Errorf("%d swept", n)
	}
}

func TestDelete(t *testing.T) { // L5
	m := openMemory(t, 4)
	m.store(1, "tide", x(), withMetadata(`{"k":1}`))
	m.store(1, "tide again", x())
	m.store(2, "ebb", x())
	m.relate(2, "causes", 1)
	for _, want := range []bool{true, false} {
		if r := must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 1)); r.Value != want {
			t.Errorf("deleted %v, want %v", r.Value, want)
		}
	}
	done := m.unchanged()
	if r := must[*loci.Receipt[bool]](t)(m.facts.Delete(t.Context(), 99)); r.Value {
		t.Error("an unknown id was deleted")
	}
	done()
	if m.get(1) != nil || m.count() != 1 || len(m.history(1)) != 0 || len(m.relations(2)) != 0 {
		t.Error("still there")
	}
	wantIDs(t, "list", m.ids(), 2)
	wantIDs(t, "query", m.query(x(), 10), 2)
	wantIDs(t, "words", m.words("tide"))
	m.store(1, "new", x())
	if f := m.get(1); f.Version != 1 || len(m.history(1)) != 1 {
		t.Errorf("got %+v", f)
	}
}

func TestGetMetadata(t *testing.T) { // L8
	m := openMemory(t, 4)
	m.store(1, "tide", x())
	m.store(2, "ebb", x(), withTTL(10))
	m.clock.Set(T + 10*second)
	for id, want := range map[loci.PointID]bool{1: true, 2: false, 3: false} {
		got, ok, err := m.facts.GetMetadata(t.Context(), id)
		if err != nil || ok != want || ok && asJSON(t, got) != "{}" {
			t.Errorf("%d: %s, %v, %v", id, got, ok, err)
		}
		if m.get(id) != nil != want {
			t.Errorf("get %d: %+v", id, m.get(id))
		}
	}
}

func TestEmptyMemory(t *testing.T) { // Y1, Y2, Y3
	m := openMemory(t, 4)
	ctx := t.Context()
	done := m.unchanged()
	if m.get(1) != nil || len(m.list()) != 0 || len(must[[]IDContent](t)(m.facts.ListAll(ctx))) != 0 || len(m.history(1)) != 0 || len(m.relations(1)) != 0 {
		t.Error("there is something")
	}
	if page := must[*Page[loci.Fact]](t)(m.facts.List(ctx, ListRequest{})); asJSON(t, page) != `{"items":[]}` {
		t.Errorf("list %s", asJSON(t, page))
	}
	for name, hits := range map[string]*Hits{
		"query":      must[*Hits](t)(m.facts.QueryHits(ctx, QueryRequest{Embedding: x()})),
		"filtered":   must[*Hits](t)(m.facts.QueryHits(ctx, QueryRequest{Embedding: x(), Selection: Selection{Filter: loci.Metadata(`{"k":1}`), Tags: []string{"none"}}})),
		"query_text": must[*Hits](t)(m.facts.QueryText(ctx, TextRequest{Text: "tide"})),
	} {
		if hits.Hits == nil || len(hits.Hits) != 0 {
			t.Errorf("%s: %+v", name, hits)
		}
	}
	_, err := m.facts.Query(ctx, x(), 0)
	wantField(t, err, loci.ErrValidation, "k")
	_, err = m.facts.QueryFiltered(ctx, x()[:3], 1, nil, 0)
	wantField(t, err, loci.ErrInvalidVector, "embedding")
	if r := must[*loci.Receipt[bool]](t)(m.facts.Delete(ctx, 1)); r.Value {
		t.Error("deleted")
	}
	m.failUpdate(loci.ErrNotFound, "id", 1, `{"k":1}`)
	wantField(t, m.facts.SetTTLDurable(ctx, 1, 5), loci.ErrNotFound, "id")
	_, err = m.facts.ClearTTL(ctx, 1)
	wantField(t, err, loci.ErrNotFound, "id")
	done()
	wantIDs(t, "unique", []loci.PointID{m.unique(0), m.unique(0)}, 0, 1)
}

func TestListSeesOneTime(t *testing.T) {
	m := openMemory(t, 4)
	m.storeMany(10)
	all := must[[]IDContent](t)(m.facts.ListAll(t.Context()))
	if !slices.IsSortedFunc(all, func(a, b IDContent) int { return int(a.ID) - int(b.ID) }) || len(all) != 10 {
		t.Errorf("%+v", all)
	}
}
