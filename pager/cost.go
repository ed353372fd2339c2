package pager

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/loci-memory/loci/internal/render"
)

// meter measures windows.
type meter struct {
	counter Counter // nil: bytes
}

// cost is what a window takes of the budget: bytes, or tokens of the whole text.
func (m meter) cost(w *window) int {
	if m.counter == nil {
		var core, working render.Tally
		for _, r := range w.core {
			core.Add(len(r.line))
		}
		for _, r := range w.working {
			working.Add(len(r.line))
		}
		total, _ := render.SizeOf(core, working)
		return total
	}
	if a, ok := m.counter.(AdditiveCounter); ok && a.Additive() {
		return m.costByLine(w)
	}
	text, _ := w.text()
	return m.count(string(text))
}

// maxCount is what a text counts at most: far beyond any budget, and small enough
// to reckon with.
const maxCount = 1 << 30

// count is what the counter says of a text, as far as it can be.
func (m meter) count(text string) int { return min(max(m.counter.Count(text), 0), maxCount) }

// costByLine adds up the counts of the lines, which each page remembers.
func (m meter) costByLine(w *window) int {
	empty, _ := (&window{}).text()
	total := 0
	for _, line := range render.SplitLines(empty) {
		total += m.count(string(line))
	}
	for _, list := range [][]*resident{w.core, w.working} {
		for i, r := range list {
			known, comma := &r.first, ""
			if i > 0 {
				known, comma = &r.next, ","
			}
			if *known == 0 {
				*known = m.count(comma + string(r.line) + "\n")
			}
			total = min(total+*known, maxCount)
		}
	}
	return total
}

// value is a page's worth in the window: V = 5*I + 3*R + 2*F, where
// I = round(1000*importance), R = floor(8000/(8+age in ticks)) and
// F = min(1000, 200*floor(log2(1+hits))). What is worth least goes first.
func value(importance float64, hits, age int64) int64 {
	i := int64(math.Round(1000 * importance))
	r := 8000 / (8 + max(age, 0))
	f := min(1000, 200*int64(bits.Len64(uint64(1+max(hits, 0)))-1))
	return 5*i + 3*r + 2*f
}

// evictionOrder sorts pages in the order in which they are evicted: those under
// protection last, and otherwise by value or, with lru, by the last touch; ties
// by last touch, admission and id.
func evictionOrder(pages []*resident, strategy string, tick, turn int64) {
	protected := func(r *resident) int {
		if r.ProtectedTo >= turn && r.ProtectedTo > 0 {
			return 1
		}
		return 0
	}
	slices.SortFunc(pages, func(a, b *resident) int {
		if d := cmp.Compare(protected(a), protected(b)); d != 0 {
			return d
		}
		if strategy != "lru" {
			d := cmp.Compare(value(a.Importance, a.Hits, tick-a.Touched), value(b.Importance, b.Hits, tick-b.Touched))
			if d != 0 {
				return d
			}
		}
		return cmp.Or(cmp.Compare(a.Touched, b.Touched), cmp.Compare(a.Admission, b.Admission), cmp.Compare(a.PageID, b.PageID))
	})
}

// shortestEviction gives the least number of pages of order, from its beginning,
// without which the window, which costs so much, costs at most limit, and what it
// costs then; len(order)+1 when even without all of them it costs more. Costs are
// taken to fall with every page that goes. A counter may have to count the whole
// text for every try, so that the first one is a guess by the pages' bytes, and
// the next ones are near it.
func (m meter) shortestEviction(w *window, order []*resident, cost, limit int) (n, left int) {
	if cost <= limit {
		return 0, cost
	}
	without := func(n int) int {
		gone := make(map[*resident]bool, n)
		for _, r := range order[:n] {
			gone[r] = true
		}
		rest := window{core: w.core, working: make([]*resident, 0, len(w.working)-n)}
		for _, r := range w.working {
			if !gone[r] {
				rest.working = append(rest.working, r)
			}
		}
		return m.cost(&rest)
	}
	lo, hi := 1, len(order)+1 // the answer lies between, both included
	next, step, missed, fitted := w.guessEviction(order, cost, limit), 1, false, false
	for lo < hi {
		if missed && fitted {
			next = (lo + hi) / 2
		}
		next = min(max(next, lo), hi-1)
		if c := without(next); c <= limit {
			hi, left, fitted = next, c, true
			next -= step
		} else {
			lo, missed = next+1, true
			next += step
		}
		step *= 2
	}
	return lo, left
}

// guessEviction is shortestEviction, were the cost of a page a matter of its
// bytes.
func (w *window) guessEviction(order []*resident, cost, limit int) (n int) {
	total := 0
	for _, list := range [][]*resident{w.core, w.working} {
		for _, r := range list {
			total += len(r.line)
		}
	}
	excess := int(float64(cost-limit) * float64(total) / float64(cost)) // in bytes
	for n < len(order) && excess > 0 {
		excess -= len(order[n].line)
		n++
	}
	return n
}
