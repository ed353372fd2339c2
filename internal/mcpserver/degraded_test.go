package mcpserver

import (
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// TestSearchesTellWhatIsMissing holds that what a search had to do without is in the
// text and in the structure, for a client shows a model one of them.
func TestSearchesTellWhatIsMissing(t *testing.T) {
	db := store(t)
	if _, err := db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "sea", Model: "sea", Dimension: 3}); err != nil {
		t.Fatal(err)
	}
	c := client(t, Config{Caller: op.Local(db)})
	must(t, c, "remember", `{"text":"The tide table is updated weekly."}`)
	for _, tool := range []string{"recall", "search"} {
		a := must(t, c, tool, `{"query":"tide"}`)
		contains(t, a.text, "found by words only", "updated weekly")
		if len(strs(a.doc, "degraded"))+len(items(a.doc, "vector_missing")) == 0 {
			t.Errorf("%s: %+v", tool, a.doc)
		}
	}
}

// TestWhatWasTakenOut holds that one line names every rule.
func TestWhatWasTakenOut(t *testing.T) {
	a := must(t, client(t, Config{}), "remember", `{"text":"Keys: AKIAIOSFODNN7EXAMPLE, AKIAIOSFODNN7EXAMPLF and ghp_abcdefghijklmnopqrstuvwxyz0123456789."}`)
	contains(t, a.text, "taken out before it was stored: aws-access-key-id (2 times), github-token.")
}
