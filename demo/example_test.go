package demo_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
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
