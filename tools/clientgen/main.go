// Clientgen writes the generated files of package client. Run it with go generate
// ./client.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/loci-memory/loci/internal/clientgen"
	"github.com/loci-memory/loci/op"
)

func main() {
	root := flag.String("root", ".", "folder of the module")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "clientgen:", err)
		os.Exit(1)
	}
}

// run writes the files, and removes those of operations that are gone.
func run(root string) error {
	files, err := clientgen.Generate(op.Default(), root)
	if err != nil {
		return err
	}
	dir := filepath.Join(root, "client")
	old, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range old {
		if strings.HasSuffix(e.Name(), "_gen.go") && files[e.Name()] == nil {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
