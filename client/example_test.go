package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/client"
	"github.com/loci-memory/loci/internal/httpapi"
	"github.com/loci-memory/loci/op"
)

// serve stands for loci serve, which runs elsewhere.
func serve() (address string, stop func()) {
	dir, err := os.MkdirTemp("", "loci-example-*")
	if err != nil {
		panic(err)
	}
	db, err := loci.Open(context.Background(), dir, nil)
	if err != nil {
		panic(err)
	}
	server := httptest.NewServer(httpapi.Handler(httpapi.Config{Caller: op.Local(db)}))
	return server.URL, func() {
		server.Close()
		if err := errors.Join(db.Close(), os.RemoveAll(dir)); err != nil {
			panic(err)
		}
	}
}

func Example() {
	ctx := context.Background()
	address, stop := serve()
	defer stop()

	c := client.New(address)
	if _, err := c.Remember(ctx, client.RememberInput{Text: "The tide table is updated weekly.", Tags: []string{"harbour"}}); err != nil {
		panic(err)
	}
	found, err := c.Search(ctx, client.SearchInput{Query: "tide", Limit: new(3)})
	if err != nil {
		panic(err)
	}
	for _, hit := range found.Hits {
		value, err := hit.Record.Value()
		if err != nil {
			panic(err)
		}
		if m, ok := value.(*client.Memory); ok {
			fmt.Println(m.Judgment, m.Tags)
		}
	}
	_, err = c.Memories.Get(ctx, client.MemoriesGetInput{ID: 777})
	fmt.Println(errors.Is(err, client.ErrNotFound))
	// Output:
	// The tide table is updated weekly. [harbour]
	// true
}
