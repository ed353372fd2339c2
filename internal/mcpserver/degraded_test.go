package mcpserver

import (
	"fmt"
	"strings"
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

// TestStatusTellsHowFarVectorsAre says so while they are being made, and not after.
func TestStatusTellsHowFarVectorsAre(t *testing.T) {
	db := store(t)
	if _, err := db.Embeddings().RegisterSpace(t.Context(), loci.EmbeddingSpace{ID: "sea", Model: "sea", Dimension: 3}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Embeddings().SetDefaultSpace(t.Context(), loci.DefaultNamespace, "sea"); err != nil {
		t.Fatal(err)
	}
	c := client(t, Config{Caller: op.Local(db)})
	if text := must(t, c, "status", `{}`).text; strings.Contains(text, "Vectors of the tier") {
		t.Error(text)
	}
	must(t, c, "remember", `{"text":"The tide table is updated weekly."}`)
	contains(t, must(t, c, "status", `{}`).text, "Vectors of the tier memory: 0 of 1 made.")
}

// TestStatusTellsNoZeros holds that what a caller with a home is not told of the
// store is left out, where a zero would say that there are no vectors.
func TestStatusTellsNoZeros(t *testing.T) {
	c := client(t, Config{})
	must(t, c, "remember", `{"text":"The tide table is updated weekly."}`)
	health := obj(must(t, c, "status", `{}`).doc, "health")
	if fmt.Sprint(health["record_count"]) != "1" || health["index_usable"] != true {
		t.Errorf("%+v", health)
	}
	for _, name := range []string{"vectors", "indexed_documents", "embedder_spaces", "journal_length", "last_degraded", "foreign_key_errors"} {
		if v, ok := health[name]; ok {
			t.Errorf("%s is told as %v", name, v)
		}
	}
}

// TestWhatWasTakenOut holds that one line names every rule.
func TestWhatWasTakenOut(t *testing.T) {
	a := must(t, client(t, Config{}), "remember", `{"text":"Keys: AKIAIOSFODNN7EXAMPLE, AKIAIOSFODNN7EXAMPLF and ghp_abcdefghijklmnopqrstuvwxyz0123456789."}`)
	contains(t, a.text, "taken out before it was stored: aws-access-key-id (2 times), github-token.")
}
