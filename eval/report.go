package eval

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// A Cutoff holds the figures at one depth.
type Cutoff struct {
	K      int     `json:"k"`
	Recall float64 `json:"recall"` // share of the relevant documents found
	Hit    float64 `json:"hit"`    // any of them found
	All    float64 `json:"all"`    // all of them found
}

// Figures are the means over some queries.
type Figures struct {
	Group   string   `json:"group,omitempty"` // empty: all queries
	Queries int      `json:"queries"`
	NDCG10  float64  `json:"ndcg_10"`
	MRR10   float64  `json:"mrr_10"`
	At      []Cutoff `json:"at"`
}

// A Report is what a run is worth on a task.
type Report struct {
	Task    string    `json:"task"`
	Overall Figures   `json:"overall"`
	Groups  []Figures `json:"groups,omitempty"` // by ascending name; queries without a group are only in Overall
}

// DefaultCutoffs are the depths that are usually reported.
func DefaultCutoffs() []int { return []int{1, 5, 10, 20, 32} }

// Evaluate computes a run's figures at the depths ks (none: DefaultCutoffs).
// A query of the set that has a relevant document and is not in the run scores
// 0; a query of the run that is not in the set, or has nothing relevant, counts
// nowhere.
func Evaluate(s *Set, run Run, ks ...int) Report {
	if len(ks) == 0 {
		ks = DefaultCutoffs()
	}
	overall := newTally(ks)
	groups := map[string]*tally{}
	for _, q := range s.Judged() {
		relevant, ranked := s.Relevant(q.ID), ids(run[q.ID])
		overall.add(relevant, ranked)
		if q.Group == "" {
			continue
		}
		g := groups[q.Group]
		if g == nil {
			g = newTally(ks)
			g.Group = q.Group
			groups[q.Group] = g
		}
		g.add(relevant, ranked)
	}
	rep := Report{Task: s.Task, Overall: overall.mean()}
	for _, g := range groups {
		rep.Groups = append(rep.Groups, g.mean())
	}
	slices.SortFunc(rep.Groups, func(a, b Figures) int { return strings.Compare(a.Group, b.Group) })
	return rep
}

// PerQuery gives each query's value of a measure, for the queries that figures
// are means over, in the order of Set.Judged.
func PerQuery(s *Set, run Run, m Measure) []float64 {
	var out []float64
	for _, q := range s.Judged() {
		out = append(out, m(s.Relevant(q.ID), ids(run[q.ID])))
	}
	return out
}

// tally sums the figures of queries.
type tally struct{ Figures }

func newTally(ks []int) *tally {
	t := &tally{}
	for _, k := range ks {
		t.At = append(t.At, Cutoff{K: k})
	}
	return t
}

func (t *tally) add(relevant map[string]int, ranked []string) {
	t.Queries++
	t.NDCG10 += NDCGAt(10)(relevant, ranked)
	t.MRR10 += MRRAt(10)(relevant, ranked)
	for i := range t.At {
		c := &t.At[i]
		c.Recall += RecallAt(c.K)(relevant, ranked)
		c.Hit += HitAt(c.K)(relevant, ranked)
		c.All += AllAt(c.K)(relevant, ranked)
	}
}

func (t *tally) mean() Figures {
	n := float64(max(t.Queries, 1))
	t.NDCG10 /= n
	t.MRR10 /= n
	for i := range t.At {
		c := &t.At[i]
		c.Recall /= n
		c.Hit /= n
		c.All /= n
	}
	return t.Figures
}

// Write writes the report as a table: a line for all queries and one for each
// group.
func (r Report) Write(w io.Writer) error {
	width := len(r.Task)
	for _, g := range r.Groups {
		width = max(width, len(g.Group)+2)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-*s %8s %8s %8s", width, "", "queries", "nDCG@10", "MRR@10")
	for _, c := range r.Overall.At {
		fmt.Fprintf(&b, " %8s %8s %8s", fmt.Sprint("R@", c.K), fmt.Sprint("hit@", c.K), fmt.Sprint("all@", c.K))
	}
	b.WriteByte('\n')
	row := func(name string, f Figures) {
		fmt.Fprintf(&b, "%-*s %8d %8.4f %8.4f", width, name, f.Queries, f.NDCG10, f.MRR10)
		for _, c := range f.At {
			fmt.Fprintf(&b, " %8.4f %8.4f %8.4f", c.Recall, c.Hit, c.All)
		}
		b.WriteByte('\n')
	}
	row(r.Task, r.Overall)
	for _, g := range r.Groups {
		row("  "+g.Group, g)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("eval: %w", err)
	}
	return nil
}
