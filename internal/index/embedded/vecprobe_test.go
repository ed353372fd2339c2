package embedded

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// TestOutlook learns from rows whose scores are what it takes them to be, and
// foretells how many of others are above something.
func TestOutlook(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	const factor, deviation = 0.8, 0.05
	draw := func(centroid float64, n int) []float32 {
		out := make([]float32, n)
		for i := range out {
			out[i] = float32(factor*centroid + deviation*rng.NormFloat64())
		}
		return out
	}
	var o outlook
	o.begin()
	for range 40 {
		o.centroid = 0.3 + 0.4*rng.Float64()
		o.learn(draw(o.centroid, 1+rng.IntN(60)))
	}
	if f, d := o.fit(); math.Abs(f-factor) > 0.01 || math.Abs(d-deviation) > 0.005 {
		t.Fatalf("factor %v, deviation %v", f, d)
	}
	l := listOrder{best: 0.6, step: 0.1 / listSteps}
	for _, least := range []float32{0.45, 0.5, 0.55, 0.6, 0.7} {
		clear(l.rows[:])
		l.items = []listItem{{step: 10}}
		above := 0
		for step := uint32(10); step < listSteps; step += 7 {
			l.rows[step] = 4000
			for _, s := range draw(float64(l.best)-(float64(step)+0.5)*float64(l.step), 4000) {
				if s > least {
					above++
				}
			}
		}
		// What is drawn lies about what is to be expected.
		low, high := 0.8*float64(above)-10, 1.25*float64(above)+10
		if low > 0 && !l.expect(0, &o, least, low) || l.expect(0, &o, least, high) {
			t.Errorf("above %v: %d rows drawn, not between %v and %v expected", least, above, low, high)
		}
	}
}

// TestListOrder holds that lists are in the order of their scores, up to a step, and
// that each step's rows are those of its lists.
func TestListOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 1))
	for _, n := range []int{1, 2, 700} {
		for _, width := range []float64{0, 1e-9, 0.5} {
			var l listOrder
			l.reset()
			var runs []run
			kind := &nearKind{filter: vecFilter{mode: passScope, count: 1, total: 2}}
			total := 0.0
			for number := range uint32(3) {
				p := &vecPart{}
				end := uint32(0)
				for list := range uint32(n) {
					end += uint32(rng.IntN(9))
					p.ends = append(p.ends, end)
					l.items = append(l.items, listItem{float32(0.9 - width*rng.Float64()), number, list, 0})
				}
				total += float64(end) / 2
				runs = append(runs, run{kind: kind, part: p})
			}
			before := slices.Clone(l.items)
			l.order(runs)
			same := func(a, b listItem) int { return cmp.Or(cmp.Compare(a.run, b.run), cmp.Compare(a.list, b.list)) }
			after := slices.Clone(l.items)
			slices.SortFunc(after, same)
			slices.SortFunc(before, same)
			for i := range after {
				if after[i].score != before[i].score || same(after[i], before[i]) != 0 {
					t.Fatalf("%d lists: %v became %v", n, before[i], after[i])
				}
			}
			for i := 1; i < len(l.items); i++ {
				if l.items[i].score > l.items[i-1].score+1.001*l.step+1e-7 {
					t.Fatalf("%d lists, width %v: %v behind %v", n, width, l.items[i], l.items[i-1])
				}
			}
			for i := range l.items {
				item := &l.items[i]
				from, to := runs[item.run].part.list(int(item.list))
				l.take(item, float64(to-from)/2)
				total -= float64(to-from) / 2
			}
			for step, rows := range l.rows {
				if math.Abs(rows) > 1e-6 || math.Abs(total) > 1e-6 {
					t.Fatalf("%d lists: step %d has %v rows left", n, step, rows)
				}
			}
		}
	}
}

// TestGreatest keeps the k greatest.
func TestGreatest(t *testing.T) {
	rng := rand.New(rand.NewPCG(33, 1))
	for _, k := range []int{0, 1, 2, 10, 50} {
		var g greatest
		g.reset(k)
		var all []float32
		for range 40 {
			all = append(all, float32(rng.IntN(20)))
			g.add(all[len(all)-1])
			slices.SortFunc(all, func(a, b float32) int { return cmp.Compare(b, a) })
			want := float32(noneLeft)
			if k > 0 && len(all) >= k {
				want = all[k-1]
			}
			if got := g.least(); got != want || len(g.heap) != min(k, len(all)) {
				t.Fatalf("the %d greatest of %v: the least is %v", k, all, got)
			}
		}
	}
}

// TestFineScores holds the scores of hits to the cosines, in segments with lists and in
// the tail, where one large number makes the codes coarse as well.
func TestFineScores(t *testing.T) {
	w := world{rand.New(rand.NewPCG(34, 1))}
	ids := make([]int64, 2000)
	for i := range ids {
		ids[i] = int64(i + 1)
	}
	doc := func(id int64) *index.Document { return &index.Document{ID: id, Namespace: 1, Kind: 1, Scope: 10} }
	ix, m := filled(t, Options{MinLists: 100, ScanRows: 200}, ids, doc, func(int64) []float32 { return w.vector(40) })
	var changes []index.Change
	for id := int64(2001); id <= 2100; id++ {
		m.docs[id], m.vectors[1][id] = doc(id), w.vector(40)
		changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(m.docs[id])},
			index.Change{ID: id, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: 10, Values: m.vectors[1][id]}})
	}
	ix.Stage(2, changes)
	ix.Publish()
	v, _ := ix.View(2)
	defer v.Close()
	worst, tails := 0.0, 0
	for range 50 {
		q := index.VectorQuery{Space: 1, Values: w.vector(40), Limit: 40}
		res, err := v.Nearest(q, index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{10}})
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range res.Hits {
			worst = max(worst, math.Abs(float64(h.Score)-float64(vec.Dot(q.Values, m.vectors[1][h.ID]))))
			if h.ID > 2000 {
				tails++
			}
		}
	}
	if worst > 3e-5 || tails == 0 {
		t.Errorf("scores are off by up to %v; %d hits of the tail", worst, tails)
	}
}
