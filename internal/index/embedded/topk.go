package embedded

import "slices"

// candidate is a document on its way to becoming a hit.
type candidate struct {
	score uint32
	id    int64
	part  *searchPart
	doc   uint32
}

// before says whether a ranks above o: by score, then by lower id.
func (a *candidate) before(o *candidate) bool {
	if a.score != o.score {
		return a.score > o.score
	}
	return a.id < o.id
}

// topK keeps the k best candidates in a heap whose root is the worst of them.
type topK struct {
	k    int
	heap []candidate
}

func (t *topK) reset(k int) {
	t.k = k
	t.heap = t.heap[:0]
}

func (t *topK) full() bool { return len(t.heap) >= t.k }

// need is the least score that a document whose id is at least minID must have
// to get in.
func (t *topK) need(minID int64) uint32 {
	if !t.full() {
		return 1
	}
	if t.k == 0 {
		return none
	}
	if worst := &t.heap[0]; minID > worst.id {
		return worst.score + 1
	}
	return t.heap[0].score
}

func (t *topK) add(c candidate) {
	if !t.full() {
		t.heap = append(t.heap, c)
		for i := len(t.heap) - 1; i > 0; {
			up := (i - 1) / 2
			if !t.heap[up].before(&t.heap[i]) {
				break
			}
			t.heap[up], t.heap[i] = t.heap[i], t.heap[up]
			i = up
		}
		return
	}
	if t.k == 0 || !c.before(&t.heap[0]) {
		return
	}
	t.heap[0] = c
	for i := 0; ; {
		worst := i
		for _, down := range [2]int{2*i + 1, 2*i + 2} {
			if down < len(t.heap) && t.heap[worst].before(&t.heap[down]) {
				worst = down
			}
		}
		if worst == i {
			return
		}
		t.heap[i], t.heap[worst] = t.heap[worst], t.heap[i]
		i = worst
	}
}

// sorted gives the candidates best first; the heap is no heap any more.
func (t *topK) sorted() []candidate {
	slices.SortFunc(t.heap, func(a, b candidate) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	return t.heap
}
