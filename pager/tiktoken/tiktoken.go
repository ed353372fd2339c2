// Package tiktoken counts tokens as OpenAI's models do, for budgets in tokens. It
// is exact for them; what other vendors' models make of a text differs, and a
// caller with their tokenizer passes that one to the pager instead.
//
// # Counts add up
//
// The text of a context is counted line by line, since a change leaves most lines
// as they were. That gives the number for the whole text, for these reasons.
//
// All vocabularies cut a text into pieces by a regular expression, matched again
// and again from where the last piece ended, and then merge bytes within a piece.
// The expressions have no look-behind, so the lines add up if a piece ends with
// each line and no piece looks beyond it. In a rendered text the byte before a
// newline is [ or }, and the first byte of the next line is a comma, a bracket or a
// brace. Of the alternatives in the expressions
//
//	o200k_base          ?[^\s\p{L}\p{N}]+[\r\n/]*  |  \s*[\r\n]+  |  \s+(?!\S)  |  \s+
//	cl100k_base         ?[^\s\p{L}\p{N}]+[\r\n]*   |  \s*[\r\n]+  |  \s+(?!\S)  |  \s+
//	p50k, r50k          \s+(?!\S)  |  \s+
//
// no other one takes a newline, and behind a newline these take line ends,
// slashes and white space only: the piece ends with the line. \s+(?!\S) alone looks
// ahead: it gives back its last white space when something else follows. Within a
// line, what follows is of the same line. The newline stands alone, with no white
// space on either side; in the whole text the alternative then fails and \s+ takes
// the newline, and at the end of a line by itself it takes the newline, which is
// the same piece.
//
// In other texts lines need not add up: ";\n" and "\n" may be one piece together.
package tiktoken

import (
	"slices"
	"strings"

	"github.com/tiktoken-go/tokenizer"

	"github.com/loci-memory/loci/internal/errs"
)

// prefix leads the id of a vocabulary, so that another source of one with the same
// name is not taken for it.
const prefix = "tiktoken:"

// Names gives the vocabularies that New knows, in ascending order.
//
// GPT-4o and all later models use o200k_base, GPT-4 and GPT-3.5 cl100k_base, older
// ones the others.
func Names() []string {
	names := []string{
		string(tokenizer.O200kBase), string(tokenizer.Cl100kBase),
		string(tokenizer.P50kBase), string(tokenizer.P50kEdit), string(tokenizer.R50kBase),
	}
	slices.Sort(names)
	return names
}

// A Counter counts by one vocabulary. It is safe for concurrent use.
type Counter struct {
	id    string
	codec interface{ Count(string) (int, error) }
}

// New gives the counter of a vocabulary, by its name or by the ID of its counter.
// The first one of a vocabulary in a process builds its table, which takes up to
// 50 ms and stays in memory: 7 MB for o200k_base, 3 MB for cl100k_base, 2 MB for
// the others. An unknown name is a validation error that lists the known ones.
func New(name string) (*Counter, error) {
	name = strings.TrimPrefix(name, prefix)
	if !slices.Contains(Names(), name) {
		return nil, errs.Invalid("tokenizer", "there is no vocabulary %q; use one of %s", name, strings.Join(Names(), ", "))
	}
	codec, err := tokenizer.Get(tokenizer.Encoding(name))
	if err != nil {
		return nil, errs.Wrap(errs.Validation, err, "tokenizer %q", name)
	}
	codec.SetErrorMode(tokenizer.ErrorModeReplace)
	return &Counter{id: prefix + name, codec: codec}, nil
}

// ID names the vocabulary: "tiktoken:o200k_base".
func (c *Counter) ID() string { return c.id }

// Count gives the number of tokens of the text. What looks like a special token
// ("<|endoftext|>") counts as the characters that it is written with; bytes that
// are no UTF-8 count as U+FFFD. It takes about a millisecond for 2 KB, and allocates
// 40 to 110 times the text's size.
func (c *Counter) Count(text string) int {
	n, err := c.codec.Count(text)
	if err != nil {
		// The splitter gave up, which its limits do not let it do on these
		// expressions. A vocabulary holds every byte, so there are never more
		// tokens than bytes, and a budget that is kept with that many is kept.
		return len(text)
	}
	return n
}

// Additive says that the counts of a rendered text's lines add up to that of the
// whole, in every vocabulary. The package's documentation says why.
func (c *Counter) Additive() bool { return true }
