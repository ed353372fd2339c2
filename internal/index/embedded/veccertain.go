package embedded

import (
	"cmp"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// noneLeft is below every cosine.
const noneLeft = -2

// sureTop keeps every row that may be among the k best by the cosines themselves,
// of which the scanned form says only so much: a row stays as long as the most that
// its cosine can be is not below the least that those of k rows are.
//
// Codes are the numbers of a vector in steps of its scale, rounded to the nearest.
// So each number is off by half a scale at most, and the inner product with q by that
// times the sum of |q|. What q's own codes are off by is known, as a vector; its
// inner product with another is at most the product of their lengths.
type sureTop struct {
	on   bool
	k    int
	lows greatest // of the lower bounds
	may  []mayHit
	full int // length of may at which those are dropped that may no more

	perScale float32 // how far off a score is, for each unit of its row's scale
	plus     float32 // and whatever its scale

	finePerScale float32 // the same of scores that take in all codes
	finePlus     float32
}

// mayHit is a row that may be among the best.
type mayHit struct {
	score float32
	upper float32 // the most that its cosine can be
	row   uint32
	run   *run
}

// rounding is how far off sums of float32 are by their rounding alone, for vectors of
// length 1: half a unit in the last place for each number that is added.
func rounding(dim int) float32 { return float32(dim+16) * 0x1p-23 }

// reset prepares for a query.
func (t *sureTop) reset(q *index.VectorQuery, asked *codedQuery) {
	t.on, t.k = q.Certain, max(q.Limit, 0)
	if !t.on {
		return
	}
	t.lows.reset(t.k)
	t.may, t.full = t.may[:0], 4*t.k+1024
	var sum float64
	for _, x := range q.Values {
		sum += math.Abs(float64(x))
	}
	off, rest := asked.left(q.Values)
	// A row's codes stand for a vector of a length of 1 and half a scale for each
	// number at most.
	n := len(q.Values)
	most := math.Sqrt(float64(n)) / 2
	t.perScale, t.plus = float32(sum/2+off*most), float32(off)+rounding(n)
	t.finePerScale, t.finePlus = float32((sum/2+rest*most)/vec.FineSteps), float32(rest)+rounding(n)
}

func (t *sureTop) release() {
	clear(t.may)
	t.may = t.may[:0]
}

// slack is how far off the score of a row may be.
func (t *sureTop) slack(r *run, row uint32) float32 {
	if r.form.encoding == index.EncodingF32 {
		return rounding(int(r.form.dim))
	}
	return t.perScale*r.scales[row] + t.plus
}

// floor is what a row's upper bound must reach to be kept.
func (t *sureTop) floor() float32 {
	if t.k == 0 {
		return 3
	}
	return t.lows.least()
}

// add offers a row that passes and is live.
func (t *sureTop) add(r *run, row uint32, score float32) {
	slack := t.slack(r, row)
	if !(score+slack >= t.floor()) {
		return
	}
	t.lows.add(score - slack)
	if t.may = append(t.may, mayHit{score, score + slack, row, r}); len(t.may) >= t.full {
		floor := t.floor()
		t.may = slices.DeleteFunc(t.may, func(h mayHit) bool { return h.upper < floor })
		t.full = max(t.full, 2*len(t.may))
	}
}

// offerSure is offer for a query that asks for certainty.
func (s *scanner) offerSure(r *run, from, n uint32) {
	f, t := &r.kind.filter, &s.sure
	all, clean := f.all(), r.clean()
	floor := t.floor()
	coded := r.form.encoding != index.EncodingF32
	slack := t.slack(r, from)
	for i, score := range s.scores[:n] {
		row := from + uint32(i)
		if coded {
			slack = t.perScale*r.scales[row] + t.plus
		}
		if !(score+slack >= floor) {
			continue
		}
		if (clean || !r.dead(row)) && (all || f.pass(r, row)) {
			t.add(r, row, score)
			floor = t.floor()
		}
	}
}

// certain gives the rows that may be among the best, best first, ties by ascending
// id, and what no other one's cosine is above. To the scores of those that the scan
// has left is added what the query's codes have left out, which leaves fewer of them.
func (n *nearest) certain() (hits []index.VectorHit, rest float32, err error) {
	t := &n.sure
	floor := t.floor()
	left := len(t.lows.heap) == t.k && t.k > 0
	t.lows.reset(t.k)
	hits = make([]index.VectorHit, 0, len(t.may))
	for _, h := range t.may {
		if h.upper < floor {
			continue
		}
		hit := index.VectorHit{ID: h.run.ids[h.row], Kind: h.run.kind.key.kind}
		if hit.Score, hit.Slack, err = n.refined(&h); err != nil {
			return nil, 0, err
		}
		t.lows.add(hit.Score - hit.Slack)
		hits = append(hits, hit)
	}
	if !left {
		rest = noneLeft // fewer than k rows pass
	} else {
		rest = t.floor()
		hits = slices.DeleteFunc(hits, func(h index.VectorHit) bool { return h.Score+h.Slack < rest })
	}
	slices.SortFunc(hits, func(a, b index.VectorHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.ID, b.ID))
	})
	return hits, rest, nil
}

// refined is the score of a row by all codes, and how far off it may be.
func (n *nearest) refined(h *mayHit) (score, slack float32, err error) {
	r := h.run
	if r.form.encoding == index.EncodingF32 {
		return h.score, rounding(int(r.form.dim)), nil
	}
	score, err = n.fineScore(r, h.row)
	return score, n.sure.finePerScale*r.scales[h.row] + n.sure.finePlus, err
}
