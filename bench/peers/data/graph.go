package data

import (
	"bufio"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sort"
)

// A Graph is entities and relations between them, some entities having many more
// than others, as people and places do.
type Graph struct {
	Triples   string // file of lines of subject, relation, object, parted by tabs
	Entities  int
	Relations int
	near      [][]int // neighbours either way, ascending
}

const (
	graphEntities  = 10_000
	graphRelations = 50_000
	graphStream    = 4 << 60
	graphSkew      = 0.6 // of how often entities are an object: Zipf's exponent
)

// NewGraph makes the graph of a seed, its triples in a file in dir.
func NewGraph(dir string, seed uint64) (*Graph, error) {
	g := &Graph{Triples: filepath.Join(dir, "triples.tsv"), Entities: graphEntities, Relations: graphRelations}
	r := rand.New(rand.NewPCG(seed, graphStream))
	bounds := make([]float64, g.Entities)
	sum := 0.0
	for i := range bounds {
		sum += math.Pow(float64(i+1), -graphSkew)
		bounds[i] = sum
	}
	relations := []string{"knows", "uses", "part of", "works with", "decided", "depends on", "located in", "caused"}
	g.near = make([][]int, g.Entities)
	type pair struct{ a, b int }
	seen := map[pair]bool{}
	err := writeFile(g.Triples, func(w *bufio.Writer) error {
		for len(seen) < g.Relations {
			p := pair{r.IntN(g.Entities), min(sort.SearchFloat64s(bounds, r.Float64()*sum), g.Entities-1)}
			if p.a == p.b || seen[p] || seen[pair{p.b, p.a}] {
				continue
			}
			seen[p] = true
			g.near[p.a] = append(g.near[p.a], p.b)
			g.near[p.b] = append(g.near[p.b], p.a)
			if _, err := fmt.Fprintf(w, "%s\t%s\t%s\n", EntityName(p.a), relations[r.IntN(len(relations))], EntityName(p.b)); err != nil {
				return err
			}
		}
		return nil
	})
	for i := range g.near {
		slices.Sort(g.near[i])
	}
	return g, err
}

// EntityName gives the name of entity i.
func EntityName(i int) string { return fmt.Sprintf("entity %05d", i) }

// Asks gives n pairs of entities, other ones each round: those that have relations.
func (g *Graph) Asks(seed uint64, round, n int) [][2]string {
	r := rand.New(rand.NewPCG(seed, graphStream+1+uint64(round)))
	one := func() int {
		for {
			if i := r.IntN(g.Entities); len(g.near[i]) > 0 {
				return i
			}
		}
	}
	out := make([][2]string, 0, n)
	for len(out) < n {
		if a, b := one(), one(); a != b && g.distance(a, b) > 0 {
			out = append(out, [2]string{EntityName(a), EntityName(b)})
		}
	}
	return out
}

// levels gives the entities within depth steps of one, without it.
func (g *Graph) levels(from, depth int) map[int]bool {
	out := map[int]bool{from: true}
	edge := []int{from}
	for range depth {
		var next []int
		for _, i := range edge {
			for _, j := range g.near[i] {
				if !out[j] {
					out[j] = true
					next = append(next, j)
				}
			}
		}
		edge = next
	}
	delete(out, from)
	return out
}

// distance gives the steps between two entities, 0 if no path joins them.
func (g *Graph) distance(a, b int) int {
	seen := make([]bool, g.Entities)
	seen[a] = true
	edge := []int{a}
	for steps := 1; len(edge) > 0; steps++ {
		var next []int
		for _, i := range edge {
			for _, j := range g.near[i] {
				if j == b {
					return steps
				}
				if !seen[j] {
					seen[j] = true
					next = append(next, j)
				}
			}
		}
		edge = next
	}
	return 0
}

// number undoes EntityName; -1 for other names.
func (g *Graph) number(name string) int {
	var i int
	if n, err := fmt.Sscanf(name, "entity %d", &i); n != 1 || err != nil || i < 0 || i >= g.Entities || EntityName(i) != name {
		return -1
	}
	return i
}

// NearShare gives which share, 0 to 1, of the entities within depth steps of one a
// list of names holds, of limit of them where there are more. A name that does not
// belong there gives 0: the answer is wrong.
func (g *Graph) NearShare(entity string, depth, limit int, names []string) float64 {
	from := g.number(entity)
	if from < 0 {
		return 0
	}
	want := g.levels(from, depth)
	found := map[int]bool{}
	for _, name := range names {
		i := g.number(name)
		if i == from {
			continue // some count it in
		}
		if !want[i] {
			return 0
		}
		found[i] = true
	}
	return math.Min(1, float64(len(found))/float64(max(1, min(limit, len(want)))))
}

// IsShortest says if names lead from the first of a pair to the second along
// relations, and no way is shorter.
func (g *Graph) IsShortest(pair [2]string, names []string) bool {
	if len(names) < 2 || names[0] != pair[0] || names[len(names)-1] != pair[1] {
		return false
	}
	for i := 1; i < len(names); i++ {
		a, b := g.number(names[i-1]), g.number(names[i])
		if a < 0 || b < 0 {
			return false
		}
		if _, ok := slices.BinarySearch(g.near[a], b); !ok {
			return false
		}
	}
	return len(names)-1 == g.distance(g.number(pair[0]), g.number(pair[1]))
}
