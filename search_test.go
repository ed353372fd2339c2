package loci

import (
	"context"
	"testing"
)

// openReal opens a store with the real index.
func openReal(t testing.TB, dir string) *DB {
	t.Helper()
	db, err := Open(context.Background(), dir, &Options{Clock: newTestClock().Now, WaitForIndex: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func remember(t testing.TB, db *DB, judgments ...string) (ids []ID) {
	t.Helper()
	for _, j := range judgments {
		r, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: j})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, r.Value.ID)
	}
	return ids
}

func search(t testing.TB, db *DB, req SearchRequest) *SearchResult {
	t.Helper()
	res, err := db.Search(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestSmoke(t *testing.T) {
	dir := t.TempDir()
	db := openReal(t, dir)
	ids := remember(t, db, "红茶馆新开张", "茶馆挂红灯笼, 茶馆茶馆", "the tide table is updated weekly")
	res := search(t, db, SearchRequest{Query: "红茶馆", Explain: true, WithTotal: true})
	if len(res.Hits) != 2 || res.Hits[0].Record.(*Memory).ID != ids[0] || *res.Total != 2 {
		t.Fatalf("%+v", res)
	}
	t.Logf("%+v %+v", res.Hits[0], res.Hits[0].Explain)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openReal(t, dir)
	res = search(t, db, SearchRequest{Query: "tide"})
	if len(res.Hits) != 1 {
		t.Fatalf("%+v", res)
	}
	r, err := db.RebuildIndexes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v %+v", r, db.RebuildProgress())
	res = search(t, db, SearchRequest{Query: "tides"})
	if len(res.Hits) != 1 {
		t.Fatalf("%+v", res)
	}
}
