// Package unigram splits text into the pieces of a SentencePiece Unigram
// vocabulary, as multilingual models of the XLM-RoBERTa family want it.
package unigram

import (
	"fmt"
	"math"
	"sync"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/modelfile"
)

// Ids of the pieces that stand for no text. Every vocabulary begins with them.
const (
	Begin   = 0 // <s>, before a text
	Pad     = 1 // <pad>
	End     = 2 // </s>, behind a text
	Unknown = 3 // <unk>, a run of characters that the vocabulary has no piece for

	// Specials is the id of the first piece that stands for text.
	Specials = 4
)

// Names of the sections that hold a vocabulary.
const (
	SectionPieces = "unigram.pieces" // the pieces' bytes, one behind the other
	SectionEnds   = "unigram.ends"   // a uint32 a piece: where it ends in them
	SectionScores = "unigram.scores" // a float32 a piece: the logarithm of its probability
)

// Limits of what one piece, and one search for the best split, may hold.
const (
	maxPieceBytes = 256
	maxWord       = 1 << 16 // characters
	// begunBits is how many bits of begun there are for a slot of the table.
	begunBits = 16
	// lookahead is how many pieces beyond those asked for a search covers.
	lookahead = 16
)

// A Model is a vocabulary: pieces with scores. The specials come first, with
// names that no text can give. It is safe for concurrent use.
type Model struct {
	pieces   string
	ends     string
	scores   string
	table    []int32  // hash of a piece to its id; 0 is an empty slot
	begun    []uint64 // a bit for the hash of each beginning of a piece, so that a search stops where no piece goes on
	runes    int      // characters of the piece with the most
	unknown  float64  // score of one character without a piece
	searches sync.Pool
}

// Load takes the vocabulary out of a model file. The sections stay where they
// are. Errors wrap modelfile.ErrFormat.
func Load(f *modelfile.File) (*Model, error) {
	s, err := f.Need(SectionPieces, SectionEnds, SectionScores)
	if err != nil {
		return nil, err
	}
	return New(s[0], s[1], s[2])
}

// New makes a model of a vocabulary in the form of the sections, which it keeps.
// Errors wrap modelfile.ErrFormat.
func New(pieces, ends, scores string) (*Model, error) {
	n := len(ends) / 4
	if len(ends)%4 != 0 || len(scores) != len(ends) || n < Specials || n > 1<<24 {
		return nil, fmt.Errorf("%w: a vocabulary of %d ends and %d scores", modelfile.ErrFormat, len(ends), len(scores))
	}
	m := &Model{pieces: pieces, ends: ends, scores: scores, runes: 1}
	size := 1
	for size < 2*n {
		size *= 2
	}
	m.table = make([]int32, size)
	m.begun = make([]uint64, max(1, size*begunBits/64))
	least, at := 0.0, 0
	for id := range n {
		end := int(number(ends, int32(id)))
		if end <= at || end-at > maxPieceBytes || end > len(pieces) || !utf8.ValidString(pieces[at:end]) {
			return nil, fmt.Errorf("%w: piece %d is empty, too long or not text", modelfile.ErrFormat, id)
		}
		score := m.score(int32(id))
		if math.IsNaN(score) || score > 0 || score < -1e6 {
			return nil, fmt.Errorf("%w: the score of piece %d is no logarithm of a probability", modelfile.ErrFormat, id)
		}
		if id >= Specials {
			if !m.insert(int32(id), pieces[at:end]) {
				return nil, fmt.Errorf("%w: piece %d is there twice", modelfile.ErrFormat, id)
			}
			least = min(least, score)
		}
		at = end
	}
	if at != len(pieces) {
		return nil, fmt.Errorf("%w: %d bytes lie behind the last piece", modelfile.ErrFormat, len(pieces)-at)
	}
	// The score of <unk> is that of the rarest piece of the vocabulary this one
	// was cut from: what is worse than every piece stays so after the cut.
	m.unknown = min(least, m.score(Unknown)) - 10
	return m, nil
}

// Len is the number of pieces, specials included. Ids are below it.
func (m *Model) Len() int { return len(m.ends) / 4 }

// Piece gives the text of a piece, in which U+2581 stands for the space before
// a word. It panics unless 0 <= id < Len.
func (m *Model) Piece(id int32) string {
	from := uint32(0)
	if id > 0 {
		from = number(m.ends, id-1)
	}
	return m.pieces[from:number(m.ends, id)]
}

// Score gives the natural logarithm of a piece's probability. It panics unless
// 0 <= id < Len.
func (m *Model) Score(id int32) float64 { return m.score(id) }

// Lookup gives the id of a piece and whether there is such a one. The specials
// are not found.
func (m *Model) Lookup(piece string) (id int32, ok bool) {
	h := hashStart()
	for i := range len(piece) {
		h = hashNext(h, piece[i])
	}
	id = m.find(h, []byte(piece))
	return id, id != 0
}

// Encode appends the ids of the pieces of text to dst, at most limit of them and
// no specials but Unknown, and says up to which byte of text they reach: the
// length of text if nothing was left out. Spaces around text and repeated ones
// change nothing, so the ids of "a b" are those of "a " and of "b".
//
// It splits each word in the way that has the highest sum of scores. Of equal
// ones it takes the one whose last piece is longest. Cut lies between two
// characters; it is 0 if limit is too small for the first.
func (m *Model) Encode(dst []int32, text string, limit int) (ids []int32, cut int) {
	s, _ := m.searches.Get().(*search)
	if s == nil {
		s = &search{}
	}
	defer m.searches.Put(s)
	scan := scanner{source: text}
	unknown := false // the last piece of the word so far was <unk>
	for {
		wide := min(maxWord, (min(max(limit, 0), maxWord)+lookahead)*m.runes)
		unknown = unknown && scan.inWord
		if !scan.next(&s.word, wide) {
			return dst, len(text)
		}
		s.split(m)
		for i := len(s.path) - 1; i >= 0; i-- {
			piece := s.path[i]
			switch {
			case piece.id == Unknown && unknown:
				// The run of unknown characters goes on.
			case limit <= 0:
				// Of a character that gives several pieces, some of them
				// among those left out, nothing counts as reached.
				return dst, min(cut, s.word.from[piece.from])
			default:
				dst = append(dst, piece.id)
				limit--
			}
			unknown = piece.id == Unknown
			cut = s.word.to[piece.to-1]
		}
	}
}

// A search holds what finding the best split of a word needs.
type search struct {
	word word
	best []node
	path []step // the best split, last piece first
}

// A node is the best way to a place between two characters.
type node struct {
	score float64
	from  int32 // where its last piece begins
	id    int32 // that piece
}

type step struct {
	id       int32
	from, to int32 // characters of the word
}

// split finds the best split of the word.
func (s *search) split(m *Model) {
	n := len(s.word.start) - 1
	s.best = append(s.best[:0], node{})
	for range n {
		s.best = append(s.best, node{score: math.Inf(-1)})
	}
	text, start := s.word.text, s.word.start
	for i := range n {
		here, at := s.best[i].score, int(start[i])
		h := hashStart()
		for j := i + 1; j <= n; j++ {
			for _, b := range text[start[j-1]:start[j]] {
				h = hashNext(h, b)
			}
			if !m.goesOn(h) {
				break
			}
			if id := m.find(h, text[at:start[j]]); id != 0 {
				if score := here + m.score(id); score > s.best[j].score {
					s.best[j] = node{score, int32(i), id}
				}
			}
		}
		if score := here + m.unknown; score > s.best[i+1].score {
			s.best[i+1] = node{score, int32(i), Unknown}
		}
	}
	s.path = s.path[:0]
	for to := int32(n); to > 0; to = s.best[to].from {
		s.path = append(s.path, step{s.best[to].id, s.best[to].from, to})
	}
}

func (m *Model) score(id int32) float64 {
	return float64(math.Float32frombits(number(m.scores, id)))
}

// number gives entry i of a list of little-endian numbers.
func number(list string, i int32) uint32 {
	b := list[4*i : 4*i+4]
	return uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24
}

// insert puts a piece into the table unless it is there.
func (m *Model) insert(id int32, piece string) bool {
	h, runes := hashStart(), 0
	for i := range len(piece) {
		h = hashNext(h, piece[i])
		if i+1 == len(piece) || utf8.RuneStart(piece[i+1]) {
			bit := slot(h) & uint64(len(m.begun)*64-1)
			m.begun[bit/64] |= 1 << (bit % 64)
			runes++
		}
	}
	m.runes = max(m.runes, runes)
	mask := uint64(len(m.table) - 1)
	for i := slot(h) & mask; ; i = (i + 1) & mask {
		switch other := m.table[i]; {
		case other == 0:
			m.table[i] = id
			return true
		case m.Piece(other) == piece:
			return false
		}
	}
}

// goesOn says whether a piece may begin with the characters that gave h. It
// errs now and then, but never says no where one does.
func (m *Model) goesOn(h uint64) bool {
	bit := slot(h) & uint64(len(m.begun)*64-1)
	return m.begun[bit/64]>>(bit%64)&1 != 0
}

// find gives the id of the piece with hash h, or 0.
func (m *Model) find(h uint64, piece []byte) int32 {
	mask := uint64(len(m.table) - 1)
	for i := slot(h) & mask; ; i = (i + 1) & mask {
		id := m.table[i]
		if id == 0 || m.Piece(id) == string(piece) {
			return id
		}
	}
}

// The hash is FNV-1a, which grows byte by byte as a piece does.
func hashStart() uint64                { return 14695981039346656037 }
func hashNext(h uint64, b byte) uint64 { return (h ^ uint64(b)) * 1099511628211 }
func slot(h uint64) uint64             { return h ^ h>>32 }
