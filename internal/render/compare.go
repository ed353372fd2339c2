package render

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// Delta is what a new text does to the cached one before it, in bytes. Common is
// the most that a cache can reuse: a provider reuses up to a breakpoint or a block
// of its own at or before it.
type Delta struct {
	Common      int  // the longest common prefix of the two
	Invalidated int  // what of the old text lies behind it
	Rewritten   int  // what of the new text lies behind it, to be paid for
	Intact      bool // the old stable prefix, or more, is still there
}

// Compare says what the new text does to a text of oldSize bytes whose stable
// prefix had oldStable. old is what is known of that text from its beginning: it
// is shorter where the end was cut away with a page that was removed for good, and
// Common is then at most its length. With an oldSize of 0 there was no text, so
// that nothing is invalidated or rewritten.
func Compare(old []byte, oldSize, oldStable int, text []byte) Delta {
	if oldSize == 0 {
		return Delta{Intact: true}
	}
	k := Common(old, text)
	return Delta{Common: k, Invalidated: oldSize - k, Rewritten: len(text) - k, Intact: k >= oldStable}
}

// Common gives the length of the longest common prefix of a and b.
func Common(a, b []byte) int {
	n := min(len(a), len(b))
	a, b = a[:n], b[:n]
	i := 0
	// bytes.Equal uses the processor's wide registers; two texts share most.
	const block = 512
	for i+block <= n && bytes.Equal(a[i:i+block], b[i:i+block]) {
		i += block
	}
	for ; i+8 <= n; i += 8 {
		if d := binary.LittleEndian.Uint64(a[i:]) ^ binary.LittleEndian.Uint64(b[i:]); d != 0 {
			return i + bits.TrailingZeros64(d)/8
		}
	}
	for ; i < n && a[i] == b[i]; i++ {
	}
	return i
}

// Find gives the offset of the first byte of the line of the item with this id, or
// -1 when the text has none; the text may be cut at its end. What is before the
// offset holds nothing of the item.
func Find(text []byte, id string) int {
	// A newline is raw between lines only, so that content cannot pose as one.
	key := AppendString([]byte("\n,{\"id\":"), id)
	key = append(key, ',')
	if i := bytes.Index(text, key); i >= 0 {
		return i + 1
	}
	key[1] = '\n' // the first of its list has no comma
	if i := bytes.Index(text, key[1:]); i >= 0 {
		return i + 1
	}
	return -1
}

// Sum gives the SHA-256 of the text in lower-case hex.
func Sum(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// SplitLines cuts the text behind each newline, so that the lines put together
// are the text. A line is what changes as one: an item, or the punctuation around
// a list.
func SplitLines(text []byte) [][]byte {
	lines := make([][]byte, 0, bytes.Count(text, []byte{'\n'})+1)
	for len(text) > 0 {
		end := len(text)
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			end = i + 1
		}
		lines = append(lines, text[:end:end])
		text = text[end:]
	}
	return lines
}
