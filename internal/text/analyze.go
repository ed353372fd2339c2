package text

import "unicode/utf8"

// Limits of analysis.
const (
	// MaxTermRunes bounds a term. A longer word is cut to it, the same way in
	// documents and queries; the whole of an identifier that would be longer is
	// left out and its parts stand for it.
	MaxTermRunes = 64
	// maxParts bounds the parts of one identifier; what follows begins another.
	maxParts = 16
	// maxCuts bounds how often one run of letters and digits is cut where case
	// or kind changes; a run with more changes (a hash, base64) stays whole.
	maxCuts = 7
	// maxBuffer bounds what an Analyzer keeps between texts, in bytes.
	maxBuffer = 1 << 20
)

// An Analyzer turns text into terms. It holds nothing but buffers, so that one
// that is kept allocates nothing more; it must not be used by two goroutines at
// once. The zero value is ready.
type Analyzer struct {
	buf   []byte // the text in NFKC form
	whole []byte // the identifier at hand, folded, connectors left out
	parts []span // its parts
	cuts  []int  // where the run of letters and digits at hand may be cut
	term  []byte // a word being stemmed
	emit  func(term []byte)
	query *queryBuilder // instead of emit
}

// Analyze calls emit with every term of a document's text, repeated ones
// repeatedly, in the order of the text. The bytes are only valid during the
// call. It returns the text's length as ranking counts it: one for every word
// that is no stop word and for every CJK character. An identifier counts its
// parts; its whole, and pairs of characters, add nothing, because they repeat
// what was counted.
func (a *Analyzer) Analyze(s string, emit func(term []byte)) int {
	a.emit = emit
	n := a.run(s)
	a.emit = nil
	if cap(a.buf) > maxBuffer {
		a.buf = nil
	}
	return n
}

// Analyze is Analyzer.Analyze with buffers of its own.
func Analyze(s string, emit func(term []byte)) int {
	var a Analyzer
	return a.Analyze(s, emit)
}

// termKind says where a term comes from.
type termKind uint8

const (
	kindWord  termKind = iota
	kindPart           // of an identifier, its whole follows
	kindWhole          // an identifier
	kindLone           // a CJK character with no other beside it
	kindChar           // a CJK character of a longer run
	kindPair           // two adjacent CJK characters
)

func (a *Analyzer) put(term []byte, kind termKind) {
	if a.query != nil {
		a.query.add(term, kind)
		return
	}
	a.emit(term)
}

// run analyses s and returns its length.
func (a *Analyzer) run(s string) int {
	a.buf = appendCompat(a.buf[:0], s)
	b := a.buf
	length := 0
	for i := 0; i < len(b); {
		c, size := classAt(b, i)
		switch {
		case isWordClass(c):
			var n int
			n, i = a.word(i)
			length += n
		case c == classCJK:
			var n int
			n, i = a.cjk(i)
			length += n
		default:
			i += size
		}
	}
	return length
}

// classAt gives the class and size of the rune at b[i], which must exist.
func classAt(b []byte, i int) (class, int) {
	if b[i] < utf8.RuneSelf {
		return asciiClass[b[i]], 1
	}
	r, size := utf8.DecodeRune(b[i:])
	return classOf(r), size
}

// cjk emits the run of CJK characters that begins at i: each one, then the
// pair it makes with the one before. It returns their number and where the
// run ends.
func (a *Analyzer) cjk(i int) (n, end int) {
	b := a.buf
	prev, prevSize := 0, 0
	for i < len(b) {
		c, size := classAt(b, i)
		if c == classMark || c == classIgnore { // a voicing mark, a variation selector
			i += size
			continue
		}
		if c != classCJK {
			break
		}
		if n > 0 {
			if n == 1 {
				a.put(b[prev:prev+prevSize], kindChar)
			}
			a.put(b[i:i+size], kindChar)
			if prev+prevSize == i {
				a.put(b[prev:i+size], kindPair)
			} else {
				a.term = append(append(a.term[:0], b[prev:prev+prevSize]...), b[i:i+size]...)
				a.put(a.term, kindPair)
			}
		}
		prev, prevSize = i, size
		n++
		i += size
	}
	if n == 1 {
		a.put(b[prev:prev+prevSize], kindLone)
	}
	return n, i
}

// putWord stems and emits a folded word, unless it is a stop word. It returns
// 1 if the word counts.
func (a *Analyzer) putWord(w []byte, kind termKind) int {
	if isStop(w) {
		return 0
	}
	a.put(a.stemmed(w), kind)
	return 1
}

// stemmed gives the stem of a folded word, in a buffer if it differs.
func (a *Analyzer) stemmed(w []byte) []byte {
	if len(w) <= 2 {
		return w
	}
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return w
		}
	}
	a.term = append(a.term[:0], w...)
	return stem(a.term)
}
