package embedded

import (
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// codedQuery is a query as codes, and what these leave of it as codes again.
type codedQuery struct {
	codes []int8
	scale float32

	fine      []int8
	fineScale float32
	room      []float32
}

func (c *codedQuery) encode(q []float32) {
	n := len(q)
	c.codes, c.fine, c.room = slices.Grow(c.codes[:0], n)[:n], slices.Grow(c.fine[:0], n)[:n], slices.Grow(c.room[:0], n)[:n]
	c.scale = vec.Quantize(c.codes, q)
	for i, x := range q {
		c.room[i] = x - float32(c.codes[i])*c.scale
	}
	c.fineScale = vec.Quantize(c.fine, c.room)
}

// left gives the lengths of what the codes, and what all of them, leave of the query.
func (c *codedQuery) left(q []float32) (off, rest float64) {
	for i, x := range q {
		l := float64(x - float32(c.codes[i])*c.scale)
		off += l * l
		l -= float64(float32(c.fine[i]) * c.fineScale)
		rest += l * l
	}
	return math.Sqrt(off), math.Sqrt(rest)
}

// fineScore is a row's score by all codes, which is its cosine but for some
// millionths.
func (s *scanner) fineScore(r *run, row uint32) (float32, error) {
	codes, err := r.read(row, row+1)
	if err != nil {
		return 0, err
	}
	fine, err := r.readFine(row)
	if err != nil {
		return 0, err
	}
	n := len(s.codes)
	return s.fineProduct(codesOf(codes)[:n], codesOf(fine)[:n], r.scales[row]), nil
}

func (s *codedQuery) fineProduct(codes, fine []int8, scale float32) float32 {
	a := float64(vec.DotInt8(s.codes, codes)) + float64(vec.DotInt8(s.codes, fine))/vec.FineSteps
	b := float64(vec.DotInt8(s.fine, codes)) + float64(vec.DotInt8(s.fine, fine))/vec.FineSteps
	return float32(float64(scale) * (float64(s.scale)*a + float64(s.fineScale)*b))
}

// hits are the best rows by all codes, best first, ties by ascending id.
func (n *nearest) hits() ([]index.VectorHit, error) {
	for i := range n.top.heap {
		h := &n.top.heap[i]
		if r := &n.runs[h.run]; r.form.encoding != index.EncodingF32 {
			var err error
			if h.score, err = n.fineScore(r, h.row); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(n.top.heap, func(a, b vecHit) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	best := n.top.heap[:min(len(n.top.heap), n.q.Limit)]
	out := make([]index.VectorHit, len(best))
	for i, h := range best {
		kind := n.runs[h.run].kind.key.kind
		out[i] = index.VectorHit{ID: h.id, Kind: kind, Score: h.score}
		if n.q.NoThreads {
			continue
		}
		if p, doc, ok := n.text.kind(kind).locate(h.id); ok {
			out[i].Thread = p.thread(doc)
		}
	}
	return out, nil
}
