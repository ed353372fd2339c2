package eval

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/text"
)

// What the engine ranks with; see docs.
const (
	k1         = 1.1
	b          = 0.45
	candidates = 100
)

// bm25 is a brute-force twin of the engine's text path: every document is
// scored, nothing is skipped. It says what the analyser and the ranking rules
// are worth by themselves.
type bm25 struct {
	set      *Set
	postings map[string][]posting
	length   []float64
	average  float64
	first    map[string]int // scope: its documents are first..last
	last     map[string]int
	threads  []int // each document's thread, by number
	names    []string
	tlength  []float64
	taverage float64
	b        float64 // of documents
}

type posting struct {
	doc int
	tf  float64
}

func newBM25(set *Set) *bm25 {
	x := &bm25{set: set, postings: map[string][]posting{}, first: map[string]int{}, last: map[string]int{}}
	var a text.Analyzer
	numbers := map[string]int{}
	for i, d := range set.Docs {
		tf := map[string]float64{}
		n := float64(a.Analyze(d.Content(), func(term []byte) { tf[string(term)]++ }))
		x.length = append(x.length, n)
		x.average += n / float64(len(set.Docs))
		for term, f := range tf {
			x.postings[term] = append(x.postings[term], posting{i, f})
		}
		for _, scope := range []string{"", d.Scope} {
			if _, ok := x.first[scope]; !ok {
				x.first[scope] = i
			}
			x.last[scope] = i
		}
		t, ok := numbers[d.Thread]
		if !ok {
			t = len(x.names)
			numbers[d.Thread] = t
			x.names = append(x.names, d.Thread)
			x.tlength = append(x.tlength, 0)
		}
		x.threads = append(x.threads, t)
		x.tlength[t] += n
	}
	x.b = lengthShare(x.average)
	for _, n := range x.tlength {
		x.taverage += n / float64(len(x.tlength))
	}
	return x
}

// lengthShare is b for documents of a mean length.
func lengthShare(mean float64) float64 {
	return b + 0.15*min(max(math.Log2(mean/100), 0), 2)
}

func saturate(tf, length, average, b float64) float64 {
	return tf * (k1 + 1) / (tf + k1*(1-b+b*length/average))
}

func (x *bm25) idf(term string) float64 {
	n, df := float64(len(x.set.Docs)), float64(len(x.postings[term]))
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// scores are what a query gives to every document and thread.
type scores struct {
	bm25, chars, thread []float64
	all                 []bool
}

func (x *bm25) score(query string) scores {
	n := len(x.set.Docs)
	s := scores{make([]float64, n), make([]float64, n), make([]float64, len(x.names)), make([]bool, n)}
	q := text.AnalyzeQuery(query)
	seen := map[string]bool{}
	add := func(term string) {
		if seen[term] {
			return
		}
		seen[term] = true
		idf, sums := x.idf(term), map[int]float64{}
		for _, p := range x.postings[term] {
			s.bm25[p.doc] += idf * saturate(p.tf, x.length[p.doc], x.average, x.b)
			sums[x.threads[p.doc]] += p.tf
		}
		for t, tf := range sums {
			s.thread[t] += idf * saturate(tf, x.tlength[t], x.taverage, b)
		}
	}
	answered := make([]int, n)
	for _, g := range q.Groups {
		holds := map[int]bool{}
		for _, a := range g.Alternatives {
			add(a[0])
			for _, p := range x.postings[a[0]] {
				holds[p.doc] = true
			}
		}
		for d := range holds {
			answered[d]++
		}
		for _, o := range g.Optional {
			add(o)
		}
	}
	for d, a := range answered {
		s.all[d] = a > 0 && a == len(q.Groups)
	}
	for _, c := range q.Chars {
		idf := x.idf(c)
		for _, p := range x.postings[c] {
			s.chars[p.doc] += idf * saturate(p.tf, x.length[p.doc], x.average, x.b)
		}
	}
	return s
}

type hit struct {
	doc         int
	path, score float64
}

func sortHits(h []hit) {
	slices.SortFunc(h, func(a, b hit) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return a.doc - b.doc
	})
}

// window gives the candidates, best first, by the rules of the rounds.
func (x *bm25) window(s scores, scope string) []hit {
	var rounds [3][]hit
	for d := x.first[scope]; d <= x.last[scope]; d++ {
		switch {
		case s.all[d]:
			rounds[0] = append(rounds[0], hit{d, s.bm25[d], s.bm25[d]})
		case s.bm25[d] > 0:
			rounds[1] = append(rounds[1], hit{d, s.bm25[d], s.bm25[d]})
		case s.chars[d] > 0:
			rounds[2] = append(rounds[2], hit{d, s.chars[d], s.chars[d]})
		}
	}
	room, used := candidates, 0
	for i := range rounds {
		sortHits(rounds[i])
		rounds[i] = rounds[i][:min(room, len(rounds[i]))]
		room -= len(rounds[i])
		used += len(rounds[i])
	}
	out := make([]hit, 0, used)
	raise := 0.0
	for i := 2; i >= 0; i-- {
		most := raise
		for j := range rounds[i] {
			h := &rounds[i][j]
			h.path += raise
			h.score = h.path
			most = max(most, h.path)
		}
		raise = most
	}
	for _, r := range rounds {
		out = append(out, r...)
	}
	return out
}

type weights struct{ neighbour, thread float64 }

// rank gives documents, with the weights of their neighbourhood.
func (x *bm25) rank(s scores, found []hit, w weights) []hit {
	in := map[int]bool{}
	for _, h := range found {
		in[h.doc] = true
	}
	out := slices.Clone(found)
	beside := func(d, step int) int {
		if n := d + step; n >= 0 && n < len(x.threads) && x.threads[n] == x.threads[d] {
			return n
		}
		return -1
	}
	if w.neighbour > 0 {
		for _, h := range found {
			for _, step := range []int{-1, 1} {
				if n := beside(h.doc, step); n >= 0 && !in[n] {
					in[n] = true
					out = append(out, hit{n, s.bm25[n], 0})
				}
			}
		}
	}
	for i := range out {
		h := &out[i]
		best := 0.0
		for _, step := range []int{-1, 1} {
			if n := beside(h.doc, step); n >= 0 {
				best = max(best, s.bm25[n])
			}
		}
		h.score = h.path + w.neighbour*best + w.thread*s.thread[x.threads[h.doc]]
	}
	sortHits(out)
	return out
}

// byThread ranks threads: half their best record, half the thread itself.
func (x *bm25) byThread(s scores, found []hit) []hit {
	best := map[int]float64{}
	for _, h := range found {
		t := x.threads[h.doc]
		best[t] = max(best[t], s.bm25[h.doc])
	}
	var out []hit
	for t, v := range best {
		out = append(out, hit{doc: t, score: v/2 + s.thread[t]/2})
	}
	sortHits(out)
	return out
}

func (x *bm25) search(w weights) SearchFunc {
	return func(_ context.Context, q Query, k int) ([]Scored, error) {
		s := x.score(q.Text)
		found := x.window(s, q.Scope)
		name := func(d int) string { return x.set.Docs[d].ID }
		if x.set.Unit == UnitThread {
			found = x.byThread(s, found)
			name = func(t int) string { return x.names[t] }
		} else if w != (weights{}) {
			found = x.rank(s, found, w)
		}
		var out []Scored
		for _, h := range found[:min(k, len(found))] {
			out = append(out, Scored{name(h.doc), h.score})
		}
		return out, nil
	}
}

// The figures that the analyser and the ranking rules must keep. They are bars,
// a little under what was measured, not targets.
func TestRankingOnJudgedData(t *testing.T) {
	if testing.Short() {
		t.Skip("ranks ten thousand queries by brute force")
	}
	at := func(k int, f func(Cutoff) float64) func(Figures) float64 {
		return func(g Figures) float64 {
			for _, c := range g.At {
				if c.K == k {
					return f(c)
				}
			}
			return 0
		}
	}
	recall := func(c Cutoff) float64 { return c.Recall }
	hits := func(c Cutoff) float64 { return c.Hit }
	ndcg := func(g Figures) float64 { return g.NDCG10 }
	mrr := func(g Figures) float64 { return g.MRR10 }
	type bar struct {
		name  string
		value func(Figures) float64
		least float64
	}
	for _, c := range []struct {
		task string
		w    weights
		bars []bar
	}{
		{"scifact", weights{}, []bar{{"nDCG@10", ndcg, 0.69}}},
		{"xquad:zh", weights{}, []bar{{"nDCG@10", ndcg, 0.965}}},
		{"xquad:en", weights{}, []bar{{"nDCG@10", ndcg, 0.968}}},
		{"cmrc2018", weights{}, []bar{{"MRR@10", mrr, 0.979}}},
		{"2wiki", weights{}, []bar{{"R@5", at(5, recall), 0.67}}},
		{"notes", weights{}, []bar{{"MRR@10", mrr, 0.62}, {"R@5", at(5, recall), 0.80}}},
		{"locomo:turns", weights{}, []bar{{"R@10", at(10, recall), 0.66}}},
		{"locomo:turns", weights{0.5, 0.5}, []bar{{"R@10", at(10, recall), 0.76}}},
		{"locomo:sessions", weights{}, []bar{{"hit@1", at(1, hits), 0.76}, {"hit@5", at(5, hits), 0.93}}},
	} {
		name := c.task
		if c.w != (weights{}) {
			name += " with neighbours and threads"
		}
		t.Run(name, func(t *testing.T) {
			set, err := Load(dataDir(t), c.task)
			if err != nil {
				t.Fatal(err)
			}
			run, err := Search(context.Background(), set, 32, newBM25(set).search(c.w))
			if err != nil {
				t.Fatal(err)
			}
			rep := Evaluate(set, run)
			var table strings.Builder
			if err := rep.Write(&table); err != nil {
				t.Fatal(err)
			}
			t.Log("\n" + table.String())
			for _, bar := range c.bars {
				if got := bar.value(rep.Overall); got < bar.least {
					t.Errorf("%s is %.4f, want %.4f or more", bar.name, got, bar.least)
				}
			}
		})
	}
}
