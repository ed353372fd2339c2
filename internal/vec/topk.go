package vec

import (
	"math"
	"slices"
)

// Hit is a row and its score.
type Hit struct {
	Row   uint32  // the row's number, as pushed
	Score float32 // higher is better
}

// TopK keeps the k best of the hits that are pushed: the higher score, and of
// equal scores the lower row, whatever the order of pushing. Scores that are
// NaN are ignored; 0 and -0 are equal. The zero value keeps nothing; Reset says
// how many to keep.
type TopK struct {
	k    int
	keys []uint64 // a heap, the worst on top; see key
}

// key makes a hit a number that is higher for a better hit: the score's bits,
// turned so that they sort as integers, above the row's complement.
func key(row uint32, score float32) uint64 {
	const sign = 1 << 31
	bits := math.Float32bits(score + 0) // -0 becomes 0
	if bits&sign != 0 {
		bits = ^bits
	} else {
		bits |= sign
	}
	return uint64(bits)<<32 | uint64(^row)
}

// hit undoes key.
func hit(key uint64) Hit {
	const sign = 1 << 31
	bits := uint32(key >> 32)
	if bits&sign != 0 {
		bits &^= sign
	} else {
		bits = ^bits
	}
	return Hit{Row: ^uint32(key), Score: math.Float32frombits(bits)}
}

// scoreInt8 is the score of a row of codes: both kernels round like this.
func scoreInt8(sum int32, scale, qscale float32) float32 {
	return float32(sum) * scale * qscale
}

// Reset empties t and makes it keep the k best from now on; k below 1 keeps
// nothing. It reserves 8 bytes a hit, after which nothing else allocates.
func (t *TopK) Reset(k int) {
	t.k = max(k, 0)
	t.keys = slices.Grow(t.keys[:0], t.k)
}

// Len gives how many hits t holds now.
func (t *TopK) Len() int { return len(t.keys) }

// Threshold gives the score that a hit must reach to be kept: the worst one
// held, which an equal score displaces only with a lower row; -Inf while there
// is room; +Inf if t keeps nothing.
func (t *TopK) Threshold() float32 {
	switch {
	case t.k == 0:
		return float32(math.Inf(1))
	case len(t.keys) < t.k:
		return float32(math.Inf(-1))
	}
	return hit(t.keys[0]).Score
}

// Push offers one hit.
func (t *TopK) Push(row uint32, score float32) {
	if score != score || t.k == 0 {
		return
	}
	key := key(row, score)
	if len(t.keys) < t.k {
		t.keys = append(t.keys, key)
		t.up()
	} else if key > t.keys[0] {
		t.keys[0] = key
		t.down()
	}
}

// PushInt8 offers the rows base, base+1, ... with the scores
// float32(sums[i])*scales[i]*qscale, where sums are what ScanInt8 gave. scales
// is as long as sums.
func (t *TopK) PushInt8(sums []int32, scales []float32, qscale float32, base uint32) {
	scales = scales[:len(sums)]
	for i := 0; ; i++ {
		if i = reachInt8(sums, scales, qscale, t.Threshold(), i); i == len(sums) {
			return
		}
		t.Push(base+uint32(i), scoreInt8(sums[i], scales[i], qscale))
	}
}

// PushInt8Rows is PushInt8 for rows with numbers of their own: sums[i] belongs
// to rows[i]. scales and rows are as long as sums.
func (t *TopK) PushInt8Rows(sums []int32, scales []float32, qscale float32, rows []uint32) {
	scales, rows = scales[:len(sums)], rows[:len(sums)]
	for i := 0; ; i++ {
		if i = reachInt8(sums, scales, qscale, t.Threshold(), i); i == len(sums) {
			return
		}
		t.Push(rows[i], scoreInt8(sums[i], scales[i], qscale))
	}
}

// PushFloat32 offers the rows base, base+1, ... with the given scores.
func (t *TopK) PushFloat32(scores []float32, base uint32) {
	for i := 0; ; i++ {
		if i = reachFloat32(scores, t.Threshold(), i); i == len(scores) {
			return
		}
		t.Push(base+uint32(i), scores[i])
	}
}

// Sorted appends the hits held to dst, the best first. t stays usable.
func (t *TopK) Sorted(dst []Hit) []Hit {
	slices.Sort(t.keys) // ascending order is a heap too
	for _, key := range slices.Backward(t.keys) {
		dst = append(dst, hit(key))
	}
	return dst
}

// up moves the last key to its place.
func (t *TopK) up() {
	i := len(t.keys) - 1
	key := t.keys[i]
	for i > 0 && key < t.keys[(i-1)/2] {
		t.keys[i] = t.keys[(i-1)/2]
		i = (i - 1) / 2
	}
	t.keys[i] = key
}

// down moves the first key to its place.
func (t *TopK) down() {
	key := t.keys[0]
	i := 0
	for {
		child := 2*i + 1
		if child >= len(t.keys) {
			break
		}
		if child+1 < len(t.keys) && t.keys[child+1] < t.keys[child] {
			child++
		}
		if key <= t.keys[child] {
			break
		}
		t.keys[i] = t.keys[child]
		i = child
	}
	t.keys[i] = key
}
