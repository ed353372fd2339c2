package demo_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed/local"
	"github.com/loci-memory/loci/models/e5small"
)

// tideTable is the example of the README, word for word.
func tideTable(ctx context.Context, dir string) error {
	db, err := loci.Open(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	tide := loci.MemoryInput{Judgment: "The tide table is updated weekly."}
	tide.Tags = []string{"harbour"}
	if _, err := db.Memories().Upsert(ctx, tide); err != nil {
		return err
	}
	result, err := db.Search(ctx, loci.SearchRequest{Query: "When do they update tide tables?", Explain: true})
	if err != nil {
		return err
	}
	for _, hit := range result.Hits {
		fmt.Println(hit.Record.(*loci.Memory).Judgment, hit.Explain.Round)
	}
	return nil
}

func Example() {
	dir, err := os.MkdirTemp("", "loci-example-")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := tideTable(context.Background(), dir); err != nil {
		fmt.Println(err)
	}
	// Output: The tide table is updated weekly. every_term
}

// TestReadmeExample keeps the README's example the one that was run above.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Skip("no README here:", err)
	}
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(readme), "```go\n")
	code, _, closed := strings.Cut(rest, "```")
	if !ok || !closed {
		t.Fatal("the README has no Go example")
	}
	if n := strings.Count(code, "\n"); n > 20 {
		t.Errorf("the example has %d lines", n)
	}
	indented := "\t" + strings.TrimSuffix(strings.ReplaceAll(code, "\n", "\n\t"), "\t")
	if !strings.Contains(string(source), indented) {
		t.Error("the README's example is not the one that is tested")
	}
}

// bindModel is the example of the README's section on embeddings.
func bindModel(ctx context.Context, db *loci.DB) (space string, err error) {
	model, err := local.Open(e5small.Data(), &local.Options{Frame: e5small.Frame()})
	if err != nil {
		return "", err
	}
	sp := loci.EmbeddingSpace{ID: model.ModelID(), Model: model.ModelID(), Dimension: model.Dimension()}
	if _, err := db.Embeddings().RegisterSpace(ctx, sp); err != nil {
		return "", err
	}
	return sp.ID, db.Embeddings().RegisterEmbedder(ctx, sp.ID, model, nil)
}

func Example_meaning() {
	ctx := context.Background()
	err := func() error {
		dir, err := os.MkdirTemp("", "loci-example-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		db, err := loci.Open(ctx, dir, nil)
		if err != nil {
			return err
		}
		defer db.Close()
		for _, text := range []string{"My daughter is allergic to peanuts.", "The invoice was paid by bank transfer."} {
			if _, err := db.Memories().Upsert(ctx, loci.MemoryInput{Judgment: text}); err != nil {
				return err
			}
		}
		space, err := bindModel(ctx, db)
		if err != nil {
			return err
		}
		// The background does this as well; a sync waits until it is done.
		if _, err := db.Embeddings().Sync(ctx, space, loci.EmbeddingSyncOptions{}); err != nil {
			return err
		}
		result, err := db.Search(ctx, loci.SearchRequest{Query: "孩子不能吃什么", Limit: new(1)})
		if err != nil {
			return err
		}
		fmt.Println(result.Hits[0].Record.(*loci.Memory).Judgment)
		return nil
	}()
	if err != nil {
		fmt.Println(err)
	}
	// Output: My daughter is allergic to peanuts.
}
