package loci

import (
	"fmt"
	"slices"
	"testing"
)

// about writes a memory with tags.
func about(t *testing.T, db *DB, scope, judgment string, tags ...string) ID {
	t.Helper()
	in := MemoryInput{Judgment: judgment}
	in.Tags, in.Scope = tags, &scope
	return must[*Receipt[Memory]](t)(db.Memories().Upsert(t.Context(), in)).Value.ID
}

// TestGraphPath walks from the best text hits over one relation to what is
// tagged with the neighbour's names, and steps on nothing that the filter hides.
func TestGraphPath(t *testing.T) {
	db := openReal(t, t.TempDir())
	res := apply(t, db, GraphBatch{
		Entities: []EntityInput{
			{Ref: "l", Name: "Lothair"}, {Ref: "e", Name: "Ermengarde", Aliases: []string{"the queen"}}, {Ref: "h", Name: "Hugo"},
			{Ref: "s", Name: "Secret", RecordInput: RecordInput{Scope: new("private")}},
		},
		Relations: []RelationInput{
			{Subject: EntityRef{Ref: "l"}, Predicate: "mother", Object: EntityRef{Ref: "e"}},
			{Subject: EntityRef{Ref: "h"}, Predicate: "brother", Object: EntityRef{Ref: "l"}},
			{Subject: EntityRef{Ref: "s"}, Predicate: "spy of", Object: EntityRef{Ref: "l"}, RecordInput: RecordInput{Scope: new("private")}},
		},
	})
	_ = res
	start := about(t, db, PublicScope, "When was he crowned at Aachen", "lothair")
	byName := about(t, db, PublicScope, "She died in the spring", "ermengarde")
	byAlias := about(t, db, PublicScope, "Her tomb is in the abbey", "the queen", "tombs")
	backwards := about(t, db, PublicScope, "Lay abbot of a cloister", "hugo")
	hidden := about(t, db, "private", "Her letters were burnt", "ermengarde")
	spy := about(t, db, PublicScope, "Wrote everything down", "secret")
	about(t, db, PublicScope, "Nothing to do with it", "weather")

	req := SearchRequest{Query: "crowned at Aachen", Kinds: []Kind{KindMemory}, Explain: true}
	if got := hitIDs(search(t, db, req)); !slices.Equal(got, []ID{start}) {
		t.Fatalf("without the graph: %v", got)
	}
	req.GraphWeight = 0.9
	r := search(t, db, req)
	if got := hitIDs(r); !slices.Equal(got, []ID{start, byName, byAlias, backwards}) {
		t.Errorf("%v, want %v", got, []ID{start, byName, byAlias, backwards})
	}
	for i, h := range r.Hits {
		x := h.Explain
		if i == 0 && (x.GraphAdd != 0 || x.TextRank != 1 || h.TextScore == nil) || i > 0 && (x.GraphAdd != h.Score || x.TextRank != 0 || h.TextScore != nil || x.Round != "") {
			t.Errorf("hit %d: %+v", i, x)
		}
	}
	if want := 0.9 / 61; r.Hits[1].Score != want {
		t.Errorf("the first of the graph's path scores %v, want %v", r.Hits[1].Score, want)
	}
	req.Filter = ReadFilter{Scopes: []string{PublicScope, "private"}}
	if got := hitIDs(search(t, db, req)); !slices.Contains(got, hidden) || !slices.Contains(got, spy) {
		t.Errorf("with both scopes: %v", got)
	}
	req.Filter = ReadFilter{Tags: []string{"tombs"}}
	req.Query = "tomb abbey"
	if got := hitIDs(search(t, db, req)); !slices.Equal(got, []ID{byAlias}) {
		t.Errorf("a filter holds for what the graph finds: %v", got)
	}
	req = SearchRequest{Query: "crowned at Aachen", GraphWeight: 1, Kinds: []Kind{KindEntity, KindMemory}, Fusion: FusionScore}
	kinds := map[string]int{}
	for _, h := range search(t, db, req).Hits {
		switch h.Record.(type) {
		case *Entity:
			kinds["entity"]++
		case *Memory:
			kinds["memory"]++
		}
	}
	if kinds["entity"] != 2 || kinds["memory"] != 4 {
		t.Errorf("kinds found: %v", kinds)
	}
	for _, w := range []float64{-1, 11} {
		_, err := db.Search(t.Context(), SearchRequest{Query: "x", GraphWeight: w})
		wantCode(t, err, ErrValidation)
	}
}

// TestGraphPathHub does not walk over what is related to everything.
func TestGraphPathHub(t *testing.T) {
	db := openReal(t, t.TempDir())
	var b GraphBatch
	b.Entities = append(b.Entities, EntityInput{Ref: "hub", Name: "Earth"})
	for i := range graphFanOut + 1 {
		ref := fmt.Sprint("e", i)
		b.Entities = append(b.Entities, EntityInput{Ref: ref, Name: fmt.Sprint("Place ", i)})
		b.Relations = append(b.Relations, RelationInput{Subject: EntityRef{Ref: ref}, Predicate: "lies on", Object: EntityRef{Ref: "hub"}})
	}
	apply(t, db, b)
	start := about(t, db, PublicScope, "a blue marble", "earth")
	about(t, db, PublicScope, "somewhere", "place 1")
	got := hitIDs(search(t, db, SearchRequest{Query: "marble", GraphWeight: 1, Kinds: []Kind{KindMemory}}))
	if !slices.Equal(got, []ID{start}) {
		t.Errorf("%v", got)
	}
}
