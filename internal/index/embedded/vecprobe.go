package embedded

import (
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/vec"
)

const (
	// missShare is how much of each hit that is wanted may be expected among the rows
	// of the lists that a search leaves out, going by those that it has looked at.
	// Rows lie less evenly than that takes them to, so what is missed is some ten
	// times as much: see docs/adr.
	missShare = 0.0005
	// probeShare and probeFloor say how many rows a search looks at where hardly
	// any structure helps: this many times the square root of all, as 24 lists hold
	// when there are twice the root of them, or the floor. probeMost times that is
	// where it ends whatever is to be expected.
	probeShare = 12
	probeFloor = 4000
	probeMost  = 8
)

// probe searches the lists that were scored, the nearest first, until the others are
// not expected to hold what is wanted.
func (n *nearest) probe() (exact bool, err error) {
	l := &n.lists
	if len(l.items) == 0 {
		return true, nil
	}
	rows, passing := 0, 0.0
	for _, ri := range l.runs {
		r := &n.runs[ri]
		rows += len(r.ids)
		passing += float64(len(r.ids)) * r.kind.filter.share()
	}
	share := min(passing/float64(rows), 1)
	// Rows that pass are counted rather than lists, so that a filter that leaves out
	// the query's own neighbourhood makes the search look further.
	least := float64(n.v.ix.opts.ProbeRows)
	most := probeMost * max(probeShare*math.Sqrt(float64(rows)), probeFloor) * math.Pow(share, 0.75) * limitShare(n.top.k)
	l.order(n.runs)
	n.outlook.begin()
	defer n.outlook.end()
	enough := missShare * float64(n.wanted.k)
	passed := 0.0
	for i := range l.items {
		if passed >= least && n.top.full() && (passed >= most || !l.expect(i, &n.outlook, n.wanted.least(), enough)) {
			return false, nil
		}
		item := &l.items[i]
		r := &n.runs[item.run]
		from, to := r.part.list(int(item.list))
		n.outlook.centroid = float64(item.score)
		p, err := n.scan(r, from, to)
		if err != nil {
			return false, err
		}
		passed += p
		l.take(item, float64(to-from)*r.kind.filter.share())
	}
	return true, nil
}

// limitShare widens a search for more hits than the usual.
func limitShare(limit int) float64 { return max(1, math.Sqrt(float64(limit)/50)) }

// scoreLists scores the centroids of a run.
func (n *nearest) scoreLists(ri uint32, r *run) {
	p := r.part
	n.lists.runs = append(n.lists.runs, ri)
	stride := p.form.codeStride()
	for from := 0; from < len(p.weights); from += scanBlock {
		to := min(from+scanBlock, len(p.weights))
		vec.ScanInt8(n.codes, p.centroids[from*stride:], stride, n.sums[:to-from])
		for i, sum := range n.sums[:to-from] {
			n.lists.items = append(n.lists.items, listItem{float32(sum) * p.weights[from+i] * n.scale, ri, uint32(from + i), 0})
		}
	}
}

// outlook learns from the rows that a search through lists scores how scores depend
// on that of a list's centroid: they are taken to be it, times a factor, and
// something that is normally distributed and the same for all lists. So it foretells
// how many rows of a list score above something, which differs much between queries
// and between sets of vectors, and a fixed number of lists would be too many for most.
type outlook struct {
	on       bool
	centroid float64 // the score of the list that is being looked at

	rows                float64
	scores, ofCentroids float64 // sums of squares
	both                float64 // sum of products
}

func (o *outlook) begin() { *o = outlook{on: true} }

func (o *outlook) end() { o.on = false }

// learn takes in the scores of rows of the list.
func (o *outlook) learn(scores []float32) {
	// Two sums of each, which do not wait for each other.
	var sum, more, squares, others float32
	n := float64(len(scores))
	for ; len(scores) >= 2; scores = scores[2:] {
		a, b := scores[0], scores[1]
		sum, more = sum+a, more+b
		squares, others = squares+a*a, others+b*b
	}
	if len(scores) > 0 {
		sum, squares = sum+scores[0], squares+scores[0]*scores[0]
	}
	o.rows += n
	o.scores += float64(squares + others)
	o.both += o.centroid * float64(sum+more)
	o.ofCentroids += o.centroid * o.centroid * n
}

// fit gives the factor and the deviation.
func (o *outlook) fit() (factor, deviation float64) {
	if o.ofCentroids > 0 {
		factor = o.both / o.ofCentroids
	}
	return factor, math.Sqrt(max((o.scores-factor*o.both)/max(o.rows, 1), 1e-8))
}

// listSteps is how many steps the scores of centroids are sorted by.
const listSteps = 256

// listOrder is the lists of a search, by descending score of their centroids.
type listOrder struct {
	items []listItem
	runs  []uint32 // that they belong to

	spare []listItem
	best  float32 // the highest score
	step  float32 // how far scores of one step lie apart, at most
	// rows is how many rows pass that the lists of each step still hold, about.
	rows [listSteps]float64
}

type listItem struct {
	score float32
	run   uint32
	list  uint32
	step  uint32
}

func (l *listOrder) reset() { l.items, l.runs = l.items[:0], l.runs[:0] }

// order sorts the lists, those of one step as they come.
func (l *listOrder) order(runs []run) {
	best, worst := l.items[0].score, l.items[0].score
	for i := range l.items {
		// max and min ask for NaN as well, which takes several times as long.
		if s := l.items[i].score; s > best {
			best = s
		} else if s < worst {
			worst = s
		}
	}
	l.best, l.step = best, max((best-worst)/(listSteps-1), 0x1p-40)
	clear(l.rows[:])
	var ends [listSteps + 1]uint32
	per := 1 / l.step
	for i := 0; i < len(l.items); {
		// Lists of a run stand together.
		number := l.items[i].run
		part, share := runs[number].part, runs[number].kind.filter.share()
		from := uint32(0)
		for ; i < len(l.items) && l.items[i].run == number; i++ {
			item := &l.items[i]
			item.step = min(uint32((best-item.score)*per), listSteps-1)
			ends[item.step+1]++
			to := part.ends[item.list]
			l.rows[item.step] += float64(to-from) * share
			from = to
		}
	}
	for i := range listSteps {
		ends[i+1] += ends[i]
	}
	l.spare = slices.Grow(l.spare[:0], len(l.items))[:len(l.items)]
	for _, item := range l.items {
		l.spare[ends[item.step]] = item
		ends[item.step]++
	}
	l.items, l.spare = l.spare, l.items
}

// take counts so many rows as looked at.
func (l *listOrder) take(item *listItem, rows float64) { l.rows[item.step] -= rows }

// expect says whether the lists from the i-th on are expected to hold at least as
// many rows as enough whose scores are above least.
func (l *listOrder) expect(i int, o *outlook, least float32, enough float64) bool {
	factor, deviation := o.fit()
	sum := 0.0
	for step := l.items[i].step; step < listSteps; step++ {
		if l.rows[step] <= 0 {
			continue
		}
		score := float64(l.best) - (float64(step)+0.5)*float64(l.step)
		away := (float64(least) - factor*score) / deviation
		if sum += l.rows[step] * 0.5 * math.Erfc(away/math.Sqrt2); sum >= enough {
			return true
		}
		if away > 9 && factor > 0 {
			return false // the others lie further away
		}
	}
	return false
}

// greatest keeps the k greatest of some numbers in a heap with the least on top.
type greatest struct {
	k    int
	heap []float32
}

func (g *greatest) reset(k int) { g.k, g.heap = k, g.heap[:0] }

// least is what a number must reach to be among them; noneLeft while there is room.
func (g *greatest) least() float32 {
	if len(g.heap) < g.k || g.k == 0 {
		return noneLeft
	}
	return g.heap[0]
}

func (g *greatest) add(v float32) {
	h := g.heap
	if len(h) < g.k {
		h = append(h, v)
		for i := len(h) - 1; i > 0 && h[i] < h[(i-1)/2]; i = (i - 1) / 2 {
			h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
		}
		g.heap = h
		return
	}
	if len(h) == 0 || v <= h[0] {
		return
	}
	h[0] = v
	for i := 0; ; {
		c := 2*i + 1
		if c+1 < len(h) && h[c+1] < h[c] {
			c++
		}
		if c >= len(h) || h[i] <= h[c] {
			return
		}
		h[i], h[c] = h[c], h[i]
		i = c
	}
}
