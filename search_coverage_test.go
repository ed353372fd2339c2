package loci

import (
	"testing"

	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

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

// Texts that the model refuses for good are not missing: nothing is to come of
// them.
func TestRefusedIsNotMissing(t *testing.T) {
	h := newHybrid(t, EncodingF32, nil)
	h.model.Fail(fakeembed.Refuses)
	remember(t, h.DB, "lighthouse", fakeembed.RefusedWord)
	h.sync()
	res := search(t, h.DB, SearchRequest{Query: "lighthouse"})
	if d := res.Diagnostics; !d.VectorUsed || len(d.VectorMissing) != 0 {
		t.Errorf("%+v", d)
	}
	remember(t, h.DB, "the keeper's daughter")
	res = search(t, h.DB, SearchRequest{Query: "lighthouse"})
	if got := res.Diagnostics.VectorMissing; len(got) != 1 || got[0] != (VectorMissing{TierMemory, 1, 3}) {
		t.Errorf("%+v", got)
	}
}
