// Package local embeds in this process, without a network or a library outside
// of Go: it runs a transformer whose weights are in a model file.
package local

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"slices"
	"sync"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/modelfile"
	"github.com/loci-memory/loci/internal/transformer"
	"github.com/loci-memory/loci/internal/unigram"
	"github.com/loci-memory/loci/internal/vec"
)

// passTokens is how many tokens run through the model together, unless a single
// text has more. Larger passes would be no faster, and the context is looked at
// between two passes.
const passTokens = 256

// specials is the number of tokens that every text gets besides its own.
const specials = 2

// Options say how to embed. The zero value is a good choice.
type Options struct {
	// Threads is how many goroutines a call of Embed works on. 0: one, which
	// leaves the other processors to searches.
	Threads int
	// Frame says what of the model's vectors tells nothing of a text. The first row,
	// of the model's dimension, is the centre: the mean of what the model makes of
	// all sorts of texts. Further rows are directions of unit length at right angles
	// to each other, such as the one from texts of one language to the same ones in
	// another. Vectors are given relative to the centre and without what lies in
	// those directions, at unit length. Empty: as the model makes them.
	Frame []float32
}

// An Embedder runs one model. It is safe for concurrent use, and gives a text
// the same bits on every machine, whatever other texts are embedded with it.
type Embedder struct {
	file    *modelfile.File
	card    modelfile.Card
	threads int
	frame   []float32
	load    func() (*engine, error)
}

var (
	_ embed.Embedder = (*Embedder)(nil)
	_ embed.Limiter  = (*Embedder)(nil)
)

// engine is a model that is ready to run.
type engine struct {
	model  *transformer.Model
	pieces *unigram.Model
	prefix map[embed.Purpose][]int32
	space  int32 // the piece of a blank that stands alone; unigram.Unknown when there is none
	most   int   // tokens of a text, prefix and specials included
}

// Open makes an embedder of a model file, which stays in use and must not
// change: a package under models has one in the executable. It reads the file's
// directory alone; the rest is read when the first text comes, by which the
// bytes in use, and only they, come into memory. Nil options are the zero value.
//
// An error says that data is no model file, or one of a model that is no
// encoder. Damage inside of it shows at the first text, or in Verify.
func Open(data string, options *Options) (*Embedder, error) {
	var o Options
	if options != nil {
		o = *options
	}
	if o.Threads < 0 {
		return nil, fmt.Errorf("local: Threads is %d, want 0 or more", o.Threads)
	}
	file, err := modelfile.Open(data)
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	card, err := file.Card()
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	if card.Name == "" || card.Layers < 1 || card.Dimension < 1 || card.MaxTokens < 1 {
		return nil, fmt.Errorf("local: %w: %q is no encoder with a name, a dimension and a limit", modelfile.ErrFormat, card.Name)
	}
	if err := checkFrame(o.Frame, card.Dimension); err != nil {
		return nil, err
	}
	e := &Embedder{file: file, card: card, threads: max(1, o.Threads), frame: slices.Clone(o.Frame)}
	e.load = sync.OnceValues(e.read)
	return e, nil
}

// read loads the model.
func (e *Embedder) read() (*engine, error) {
	positions, _ := e.file.Section(transformer.SectionPositions)
	weights, err := transformer.ReadWeights(transformer.Config{
		Layers: e.card.Layers, Hidden: e.card.Dimension, Heads: e.card.Heads, Intermediate: e.card.Intermediate,
		MaxPositions: len(positions) / 4 / e.card.Dimension, Epsilon: e.card.Epsilon,
	}, e.file.Section)
	if err != nil {
		return nil, fmt.Errorf("local: %w: %w", modelfile.ErrFormat, err)
	}
	model, err := transformer.New(weights)
	if err != nil {
		return nil, fmt.Errorf("local: %w: %w", modelfile.ErrFormat, err)
	}
	pieces, err := unigram.Load(e.file)
	if err != nil {
		return nil, fmt.Errorf("local: %w", err)
	}
	if pieces.Len() != model.Vocabulary() {
		return nil, fmt.Errorf("local: %w: %d pieces and vectors of %d", modelfile.ErrFormat, pieces.Len(), model.Vocabulary())
	}
	if n := model.Config().MaxPositions; n < e.card.MaxTokens {
		return nil, fmt.Errorf("local: %w: %d positions for %d tokens", modelfile.ErrFormat, n, e.card.MaxTokens)
	}
	g := &engine{model: model, pieces: pieces, most: e.card.MaxTokens, prefix: map[embed.Purpose][]int32{}}
	var ok bool
	if g.space, ok = pieces.Lookup("\u2581"); !ok {
		g.space = unigram.Unknown
	}
	for purpose, text := range map[embed.Purpose]string{embed.Query: e.card.Query, embed.Passage: e.card.Passage} {
		ids, cut := pieces.Encode(nil, text, g.most-specials)
		if cut < len(text) || len(ids) >= g.most-specials {
			return nil, fmt.Errorf("local: %w: %d tokens are too few for the prefix %q", modelfile.ErrFormat, g.most, text)
		}
		g.prefix[purpose] = ids
	}
	return g, nil
}

// Accelerated says whether there are kernels in assembly for this processor.
// Without, a text takes some thirty times as long, and what embeds by a table of
// words alone may serve better.
func Accelerated() bool { return transformer.HasSIMD() }

// Dimension is the length of a vector.
func (e *Embedder) Dimension() int { return e.card.Dimension }

// MaxTokens is the number of tokens that the model reads of a text, counting the
// prefix of its purpose and the two special tokens around it. Limit says where
// in a text that ends.
func (e *Embedder) MaxTokens() int { return e.card.MaxTokens }

// ModelID names the model. It changes whenever the vectors do, whether by other
// weights or by another arithmetic.
func (e *Embedder) ModelID() string {
	id := fmt.Sprintf("%s@%s.%d", e.card.Name, e.card.Version, transformer.Numerics)
	if len(e.frame) > 0 {
		sum := crc32.NewIEEE()
		for _, x := range e.frame {
			sum.Write(binary.LittleEndian.AppendUint32(nil, math.Float32bits(x)))
		}
		id = fmt.Sprintf("%s-%08x", id, sum.Sum32())
	}
	return id
}

// Verify reads the whole file and says whether it is what was written. A file
// from a disk or a wire deserves it once; one in the executable does not need
// it.
func (e *Embedder) Verify() error {
	if err := e.file.Verify(); err != nil {
		return fmt.Errorf("local: %w", err)
	}
	_, err := e.load()
	return err
}

// Limit implements embed.Limiter. If the model cannot be read it gives the
// whole text, and Embed says what is wrong.
func (e *Embedder) Limit(text string, purpose embed.Purpose) (kept string, cut bool) {
	g, err := e.load()
	if err != nil {
		return text, false
	}
	_, end := g.pieces.Encode(nil, text, g.room(purpose))
	return text[:end], end < len(text)
}

// room is the number of tokens that a text may have of its own.
func (g *engine) room(purpose embed.Purpose) int { return g.most - specials - len(g.prefix[purpose]) }

// encode gives the token ids of a text.
func (g *engine) encode(text string, purpose embed.Purpose) []int32 {
	ids := append([]int32{unigram.Begin}, g.prefix[purpose]...)
	ids, _ = g.pieces.Encode(ids, text, g.room(purpose))
	return append(ids, unigram.End)
}

// strange says whether a text's pieces are unknown for the most part: then the
// vector would be much the same whatever the text says, and near to all others
// of that sort.
func (g *engine) strange(ids []int32, purpose embed.Purpose) bool {
	unknown, known := 0, 0
	for _, id := range ids[1+len(g.prefix[purpose]) : len(ids)-1] {
		switch id {
		case unigram.Unknown:
			unknown++
		case g.space:
		default:
			known++
		}
	}
	return unknown > known
}

// Embed implements embed.Embedder. The vectors have length 1. Of a text that is
// longer than the model reads, only what Limit gives counts.
//
// Errors are the context's, one that says that the model is damaged, one that
// the purpose is unknown, and embed.ErrRefused for a text that is for the most
// part in scripts that the model does not know.
func (e *Embedder) Embed(ctx context.Context, texts []string, purpose embed.Purpose) ([][]float32, error) {
	if purpose != embed.Query && purpose != embed.Passage {
		return nil, fmt.Errorf("local: no such purpose as %q", purpose)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	g, err := e.load()
	if err != nil {
		return nil, err
	}
	j := &job{engine: g, texts: make([][]int32, len(texts)), frame: e.frame, out: make([][]float32, len(texts))}
	// All texts are looked at before any is embedded: who is refused asks again for
	// the others.
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if j.texts[i] = g.encode(text, purpose); g.strange(j.texts[i], purpose) {
			return nil, fmt.Errorf("local: %w: text %d is in a script that the model does not know", embed.ErrRefused, i)
		}
	}
	var workers sync.WaitGroup
	for range min(e.threads, len(texts)) - 1 {
		workers.Go(func() { j.work(ctx) })
	}
	j.work(ctx)
	workers.Wait()
	if j.err != nil {
		return nil, j.err
	}
	return j.out, nil
}

// job is one call of Embed, which several workers may share.
type job struct {
	engine *engine
	texts  [][]int32 // as tokens
	frame  []float32
	out    [][]float32

	mu    sync.Mutex
	taken int   // texts that a worker has
	err   error // the first one
}

// work takes passes until none is left or something fails.
func (j *job) work(ctx context.Context) {
	for {
		first, pass := j.next(ctx)
		if len(pass) == 0 {
			return
		}
		vectors, err := j.engine.model.Embed(pass)
		if err != nil {
			j.fail(fmt.Errorf("local: %w", err))
			return
		}
		for i, v := range vectors {
			if err := reframe(v, j.frame); err != nil {
				j.fail(err)
				return
			}
			j.out[first+i] = v
		}
	}
}

// next takes the texts of a pass: as many as fit, in order, at least one.
func (j *job) next(ctx context.Context) (first int, pass [][]int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	first = j.taken
	if j.err == nil {
		j.err = ctx.Err()
	}
	if j.err != nil {
		return first, nil
	}
	for tokens := 0; j.taken < len(j.texts); j.taken++ {
		ids := j.texts[j.taken]
		if tokens += len(ids); tokens > passTokens && len(pass) > 0 {
			break
		}
		pass = append(pass, ids)
	}
	return first, pass
}

// reframe takes the centre away from a vector, and what then lies in the
// directions, and brings it back to unit length.
func reframe(v, frame []float32) error {
	if len(frame) == 0 {
		return nil
	}
	n := len(v)
	for i := range v {
		v[i] -= frame[i]
	}
	for axis := frame[n:]; len(axis) > 0; axis = axis[n:] {
		var share float64
		for i, x := range v {
			share += float64(x) * float64(axis[i])
		}
		for i := range v {
			v[i] -= float32(share * float64(axis[i]))
		}
	}
	if _, ok := vec.Normalize(v, v); !ok {
		return fmt.Errorf("local: %w: nothing is left of a text's vector in this frame", embed.ErrRefused)
	}
	return nil
}

// checkFrame says what is wrong with a frame.
func checkFrame(frame []float32, dimension int) error {
	if len(frame)%dimension != 0 {
		return fmt.Errorf("local: Frame has %d values, want rows of %d", len(frame), dimension)
	}
	if !vec.Finite(frame) {
		return fmt.Errorf("local: Frame has values that are not finite")
	}
	for i := dimension; i < len(frame); i += dimension {
		for k := dimension; k <= i; k += dimension {
			var want float32
			if i == k {
				want = 1
			}
			if c := vec.Dot(frame[i:i+dimension], frame[k:k+dimension]); math.Abs(float64(c-want)) > 1e-4 {
				return fmt.Errorf("local: Frame's directions %d and %d have a dot product of %v, want %v", k/dimension, i/dimension, c, want)
			}
		}
	}
	return nil
}

func (j *job) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.err == nil {
		j.err = err
	}
}
