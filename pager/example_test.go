package pager_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/pager"
)

// A host keeps an agent's window: the goal pinned, a result in working, and at
// every step only as much read as has changed.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "loci-example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := loci.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()

	cs, err := pager.Open(ctx, db, pager.Config{Scope: pager.Scope{"project", "session-1"}})
	if err != nil {
		log.Fatal(err)
	}
	for _, page := range []pager.WriteRequest{
		{PageID: "goal", Title: "goal", Content: "Make the build faster.", Tier: pager.Core, PinReason: "it is the task"},
		{PageID: "build", Title: "build", Content: "The build takes 40 s."},
	} {
		if _, err := cs.Write(ctx, page); err != nil {
			log.Fatal(err)
		}
	}
	found, err := cs.Recall(ctx, pager.RecallRequest{SearchRequest: pager.SearchRequest{Query: "how long does the build take"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(*found.Context.Text)

	again, err := cs.Snapshot(ctx, pager.SnapshotRequest{Since: &found.Context.Generation})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("changed:", again.Changed)
	// Output:
	// {"vc":1,"core":[
	// {"id":"goal","version":1,"mode":"full","title":"goal","tags":[],"content":"Make the build faster."}
	// ],"working":[
	// {"id":"build","version":1,"mode":"full","title":"build","tags":[],"content":"The build takes 40 s."}
	// ]}
	// changed: false
}

// The window in two parts, for a host that puts a cache breakpoint between them.
func ExampleStore_Prefix() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "loci-example-*")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := loci.Open(ctx, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	cs, err := pager.Open(ctx, db, pager.Config{Scope: pager.Scope{"project"}})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := cs.Write(ctx, pager.WriteRequest{PageID: "rules", Content: "Answer in English.", Tier: pager.Core}); err != nil {
		log.Fatal(err)
	}
	before, err := cs.Prefix(ctx, pager.PrefixRequest{})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := cs.Write(ctx, pager.WriteRequest{PageID: "log", Content: "made at step 1", Tier: pager.Working}); err != nil {
		log.Fatal(err)
	}
	after, err := cs.Prefix(ctx, pager.PrefixRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("same prefix:", before.Prefix == after.Prefix, "intact:", after.Last.PrefixIntact)
	// Output: same prefix: true intact: true
}
