package loci

import "testing"

// A text path that meets little of the query weighs little: what it finds by a
// number does not stand before what the vectors find.
func TestCoverage(t *testing.T) {
	h := newHybrid(t, EncodingF32, nil)
	h.remember("pharos upon its cliff", "invoice 1887", "the harbor at dusk")
	res := search(t, h.DB, SearchRequest{Query: "lighthouse erected by the keeper before 1887", Explain: true})
	if len(res.Hits) < 2 || res.Hits[0].Record.(*Memory).Judgment != "pharos upon its cliff" {
		t.Fatalf("%+v", res.Hits)
	}
	for _, hit := range res.Hits {
		if hit.Explain.TextRank == 1 && (hit.Explain.TextPart <= 0 || hit.Explain.TextPart > 0.3) {
			t.Errorf("the text path gave %v", hit.Explain.TextPart)
		}
	}
	// Every word is met: the whole weight.
	res = search(t, h.DB, SearchRequest{Query: "invoice 1887", Explain: true})
	if x := res.Hits[0].Explain; x.TextPart != 1 {
		t.Errorf("%+v", x)
	}
}
