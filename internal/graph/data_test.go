package graph

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// dataDir is where the evaluation sets lie: $LOCI_EVAL_DATA or beside the
// repository.
func dataDir() string {
	if d := os.Getenv("LOCI_EVAL_DATA"); d != "" {
		return d
	}
	return filepath.Join("..", "..", "..", "shared", "data")
}

// rows reads a table of tab-separated values.
func rows(t testing.TB, name string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dataDir(), "graph", name))
	if err != nil {
		t.Fatal(err)
	}
	var rs [][]string
	for line := range strings.Lines(string(text)) {
		rs = append(rs, strings.Split(strings.TrimRight(line, "\r\n"), "\t"))
	}
	return rs
}

// A known graph is one of the published ones.
type known struct {
	ids    map[string]int64
	edges  []Edge
	linked map[[2]int64]bool
	view   *View
}

func load(t testing.TB, name string) *known {
	k := &known{ids: map[string]int64{}, linked: map[[2]int64]bool{}}
	var ns []Node
	id := func(name string) int64 {
		n, ok := k.ids[name]
		if !ok {
			n = int64(len(k.ids) + 1)
			k.ids[name] = n
			ns = append(ns, Node{ID: n, Scope: public})
		}
		return n
	}
	predicates := map[string]int64{}
	for i, r := range rows(t, name+".tsv") {
		if predicates[r[1]] == 0 {
			predicates[r[1]] = int64(len(predicates) + 1)
		}
		e := Edge{ID: int64(1_000_000 + i), Subject: id(r[0]), Predicate: predicates[r[1]], Object: id(r[2]), Scope: public}
		k.edges = append(k.edges, e)
		k.linked[[2]int64{e.Subject, e.Object}] = true
	}
	k.view = Build(0, slices.Values(ns), slices.Values(k.edges)).Snapshot().View(Filter{Scopes: []int64{public}}, nil)
	return k
}

// TestKnownGraphs checks every row of the tables of distances and of
// neighbourhoods, and that paths are made of edges.
func TestKnownGraphs(t *testing.T) {
	if _, err := os.Stat(filepath.Join(dataDir(), "graph")); err != nil {
		t.Skipf("no evaluation data (set LOCI_EVAL_DATA): %v", err)
	}
	for _, g := range []struct {
		name                     string
		nodes, edges, components int
	}{
		{"umls", 135, 6529, 1},
		{"kinship", 104, 10686, 1},
		{"nations", 14, 2024, 1},
		{"countries", 271, 1158, 2},
		{"wn18rr", 41105, 93003, 15},
	} {
		t.Run(g.name, func(t *testing.T) {
			k := load(t, g.name)
			wantCounts(t, k.view, g.nodes, g.edges, g.components)
			checked := 0
			for _, r := range rows(t, g.name+"_paths.tsv")[1:] {
				checked += k.wantLength(t, r[0], r[1], Out, r[2]) + k.wantLength(t, r[0], r[1], Both, r[3]) + k.wantLength(t, r[1], r[0], In, r[2])
			}
			for _, r := range rows(t, g.name+"_ego.tsv")[1:] {
				for depth, want := range r[1:4] {
					checked += k.wantNear(t, r[0], depth+1, Both, want)
				}
				for depth, want := range r[4:6] {
					checked += k.wantNear(t, r[0], depth+1, Out, want)
				}
			}
			t.Logf("%d values compared", checked)
		})
	}
}

func (k *known) wantLength(t *testing.T, from, to string, d Direction, want string) int {
	t.Helper()
	path, err := k.view.PathIDs(k.ids[from], k.ids[to], d)
	if err != nil {
		t.Fatal(err)
	}
	if got := strconv.Itoa(len(path) - 1); got != want {
		t.Errorf("%s to %s, direction %d: %s steps, want %s", from, to, d, got, want)
	}
	if len(path) > 0 && (path[0] != k.ids[from] || path[len(path)-1] != k.ids[to]) {
		t.Errorf("%s to %s: the path has other ends", from, to)
	}
	for i := range max(0, len(path)-1) {
		out, in := k.linked[[2]int64{path[i], path[i+1]}], k.linked[[2]int64{path[i+1], path[i]}]
		if !(out && d != In || in && d != Out) {
			t.Errorf("%s to %s: no edge at step %d", from, to, i+1)
		}
	}
	return 1
}

func (k *known) wantNear(t *testing.T, root string, depth int, d Direction, want string) int {
	t.Helper()
	ids, err := k.view.EgoIDs(k.ids[root], depth, 1<<30, d)
	if err != nil {
		t.Fatal(err)
	}
	if got := strconv.Itoa(len(ids)); got != want {
		t.Errorf("%s, %d steps, direction %d: %s entities, want %s", root, depth, d, got, want)
	}
	return 1
}

func BenchmarkWordNetPaths(b *testing.B) {
	if _, err := os.Stat(filepath.Join(dataDir(), "graph")); err != nil {
		b.Skipf("no evaluation data (set LOCI_EVAL_DATA): %v", err)
	}
	k := load(b, "wn18rr")
	pairs := rows(b, "wn18rr_paths.tsv")[1:]
	for _, m := range []struct {
		name string
		d    Direction
	}{{"out", Out}, {"both", Both}} {
		b.Run(m.name, func(b *testing.B) {
			i := 0
			for b.Loop() {
				p := pairs[i%len(pairs)]
				i++
				if _, err := k.view.PathIDs(k.ids[p[0]], k.ids[p[1]], m.d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
