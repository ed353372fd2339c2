package loci

import (
	"fmt"
	"strings"
	"testing"
)

func TestImportText(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	g, ctx := db.Graph(), t.Context()
	c := newChart(t, db)
	text := "师父(小满) = 老柳 # of the boat\n\n邻居（老柳，石匠）\nknows('C, D', 小满)\n"
	for range 2 {
		r := must[*Receipt[GraphTextResult]](t)(g.ImportText(ctx, GraphText{Text: text, Tags: []string{"kin"}, Source: "village.txt"}))
		if r.Value != (GraphTextResult{Entities: 4, Relations: 3}) || r.Revision == 0 {
			t.Errorf("%+v", r)
		}
		c.wantCounts(4, 3, 1)
	}
	page := must[*Page[any]](t)(g.List(ctx, KindRelation, PageRequest{Filter: ReadFilter{Tags: []string{"kin"}}}))
	if len(page.Items) != 3 {
		t.Fatalf("%d relations", len(page.Items))
	}
	r := page.Items[1].(*Relation)
	if r.Predicate != "邻居" || len(r.Evidence) != 1 || r.Evidence[0].Source != "village.txt" || *r.Evidence[0].Offset != 3 {
		t.Errorf("%+v", r)
	}
	before := stateOf(t, db)
	for _, bad := range []GraphText{
		{Text: "p(a) = b\np(a)\n"}, {Text: "p(a) = b", Scope: new(" ")}, {Text: "", Namespace: new("")}, {Text: strings.Repeat("p", MaxLabelBytes+1) + "(a) = b"},
		{Text: "p(" + strings.Repeat("a", MaxNameBytes+1) + ") = b"}, {Text: "p(a) = b", EntityType: new("")},
	} {
		_, err := g.ImportText(ctx, bad)
		if e := wantCode(t, err, ErrValidation); e.Op != "graph.import_text" {
			t.Errorf("%v", e)
		}
	}
	if _, err := g.ImportText(ctx, GraphText{Text: "p(a) = b\np(a)\n"}); !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
	if r := must[*Receipt[GraphTextResult]](t)(g.ImportText(ctx, GraphText{Text: "# nothing\n"})); r.Value != (GraphTextResult{}) {
		t.Errorf("%+v", r)
	}
	if after := stateOf(t, db); after != before {
		t.Errorf("%+v, was %+v", after, before)
	}
	// More than one batch.
	var b strings.Builder
	for i := range MaxBatch {
		fmt.Fprintf(&b, "next(n%d) = n%d\n", i, i+1)
	}
	many := must[*Receipt[GraphTextResult]](t)(g.ImportText(ctx, GraphText{Text: b.String(), Namespace: new("long")}))
	c.ns = "long"
	if many.Value != (GraphTextResult{Entities: MaxBatch + 1, Relations: MaxBatch}) {
		t.Errorf("%+v", many)
	}
	c.wantCounts(MaxBatch+1, MaxBatch, 1)
}
