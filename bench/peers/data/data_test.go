package data

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/bench/peers/protocol"
)

func small(t *testing.T, seed uint64) *Set {
	t.Helper()
	s, err := corpus(context.Background(), t.TempDir(), seed, 1500, 30, 21, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sum(t *testing.T, s *Set) [4][32]byte {
	t.Helper()
	var out [4][32]byte
	for i, name := range []string{s.Records, s.Vectors, s.Asked, filepath.Join(filepath.Dir(s.Records), "set.json")} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[i] = sha256.Sum256(content)
	}
	return out
}

// TestSet shares one set, because it takes a while to make.
func TestSet(t *testing.T) {
	s := small(t, 3)
	t.Run("same seed, same data", func(t *testing.T) { sameSeed(t, s) })
	t.Run("the truth is that of a naive loop", func(t *testing.T) { truth(t, s) })
	t.Run("records", func(t *testing.T) { recordsAndQueries(t, s) })
	t.Run("recall", func(t *testing.T) { recall(t, s) })
}

func sameSeed(t *testing.T, s *Set) {
	a, b, other := sum(t, s), sum(t, small(t, 3)), sum(t, small(t, 6))
	if a != b {
		t.Error("the same seed gave other data")
	}
	for i := range a {
		if a[i] == other[i] {
			t.Errorf("file %d does not depend on the seed", i)
		}
	}
}

func TestKept(t *testing.T) {
	dir := t.TempDir()
	made := 0
	get := func() *Set {
		s, err := corpus(context.Background(), dir, 2, 1200, 10, 4, func(string) { made++ })
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := get()
	before := made
	second := get()
	if made != before {
		t.Error("a set that is there was made again")
	}
	if a, b := first.Truth["none"][1], second.Truth["none"][1]; !slices.Equal(a.IDs, b.IDs) || a.Worst != b.Worst {
		t.Errorf("kept %v, made %v", b, a)
	}
	// Without its description a set is not complete.
	if err := os.Remove(filepath.Join(filepath.Dir(first.Records), "set.json")); err != nil {
		t.Fatal(err)
	}
	if get(); made == before {
		t.Error("an incomplete set was taken for complete")
	}
}

func readRecords(t *testing.T, s *Set) []protocol.Record {
	t.Helper()
	f, err := os.Open(s.Records)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []protocol.Record
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r protocol.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		out = append(out, r)
	}
	return out
}

func truth(t *testing.T, s *Set) {
	records := readRecords(t, s)
	var rows [][]float32
	for i := range records {
		row, err := s.row(s.Vectors, i)
		if err != nil {
			t.Fatal(err)
		}
		norm := 0.0
		for _, x := range row {
			norm += float64(x) * float64(x)
		}
		if math.Abs(norm-1) > 1e-5 {
			t.Fatalf("vector %d has length %f", i, math.Sqrt(norm))
		}
		rows = append(rows, row)
	}
	for _, f := range s.Filters {
		for q := range s.Asks {
			asked, err := s.row(s.Asked, q)
			if err != nil {
				t.Fatal(err)
			}
			type hit struct {
				id     int
				cosine float64
			}
			var hits []hit
			for id := range s.Count {
				if f.Tag != "" && !slices.Contains(records[id].Tags, f.Tag) {
					continue
				}
				h := hit{id: id}
				for j, x := range asked {
					h.cosine += float64(x) * float64(rows[id][j])
				}
				hits = append(hits, h)
			}
			sort.Slice(hits, func(a, b int) bool { return hits[a].cosine > hits[b].cosine })
			hits = hits[:min(Neighbours, len(hits))]
			got := s.Truth[f.Name][q]
			if len(got.IDs) != len(hits) {
				t.Fatalf("%s, query %d: %d neighbours, want %d", f.Name, q, len(got.IDs), len(hits))
			}
			var ids []int
			for i, h := range hits {
				ids = append(ids, h.id)
				if int(got.IDs[i]) != h.id && (i == 0 || math.Abs(hits[i-1].cosine-h.cosine) > 1e-6) && (i+1 == len(hits) || math.Abs(hits[i+1].cosine-h.cosine) > 1e-6) {
					t.Errorf("%s, query %d: neighbour %d is %d, want %d", f.Name, q, i, got.IDs[i], h.id)
				}
			}
			if r, err := s.Recall(f.Name, q, ids); err != nil || r != 1 {
				t.Errorf("%s, query %d: the true ones have a recall of %f, %v", f.Name, q, r, err)
			}
		}
	}
}

func recall(t *testing.T, made *Set) {
	s := *made
	s.Truth = map[string][]Truth{"none": {{IDs: []uint32{1, 2, 3, 4}, Worst: 2}, {IDs: []uint32{}}, {IDs: []uint32{1, 2}, Worst: -1}}}
	tests := []struct {
		name  string
		query int
		ids   []int
		want  float64
	}{
		{"all", 0, []int{4, 3, 2, 1}, 1},
		{"half", 0, []int{4, 9, 2, 8}, 0.5},
		{"twice the same counts once", 0, []int{4, 4, 4, 4}, 0.25},
		{"none", 0, nil, 0},
		{"no record", 0, []int{-1, 1 << 40}, 0},
		{"beyond the tenth place", 0, []int{9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 1}, 0},
		{"nothing to find", 1, nil, 1},
		{"as near as the true ones", 2, []int{7, 8, 9}, 1},
		{"records that were not loaded", 2, []int{s.Count, s.Count + 1}, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := s.Recall("none", tt.query, tt.ids)
			if err != nil || got != tt.want {
				t.Errorf("got %f, %v, want %f", got, err, tt.want)
			}
		})
	}
}

func recordsAndQueries(t *testing.T, s *Set) {
	records := readRecords(t, s)
	if len(records) != s.Count+s.Extra {
		t.Fatalf("%d records", len(records))
	}
	words := map[string]int{}
	for _, r := range records {
		for _, w := range slices.Compact(slices.Sorted(strings.FieldsSeq(r.Words))) {
			words[w]++
		}
	}
	c := bench.NewCorpus(3, s.Count)
	for i, r := range records {
		if r.ID != i || !slices.Equal(r.Tags, c.Record(i).Tags) {
			t.Fatalf("record %d: %+v", i, r)
		}
		if i < s.Count {
			continue
		}
		own, _, _ := strings.Cut(r.Text, " ")
		if first, _, _ := strings.Cut(r.Words, " "); first != own || words[own] != 1 {
			t.Errorf("record %d: the first word %q of %q is not its own", i, own, r.Words)
		}
	}
	for _, f := range s.Filters[1:] {
		if !s.Carries(c, int(s.Truth[f.Name][0].IDs[0]), f.Tag) {
			t.Errorf("%s: a neighbour without the tag", f.Name)
		}
	}
	// What a query asks for is what records hold.
	for _, class := range s.Classes {
		if len(s.Texts[class]) != QueriesPerClass {
			t.Errorf("%s: %d queries", class, len(s.Texts[class]))
		}
		known := 0
		for _, q := range s.Texts[class] {
			for w := range strings.FieldsSeq(q.Words) {
				if words[w] > 0 {
					known++
					break
				}
			}
		}
		if known < QueriesPerClass/2 {
			t.Errorf("%s: %d of %d queries have a word that occurs", class, known, QueriesPerClass)
		}
	}
}

func TestWords(t *testing.T) {
	tests := []struct{ text, words, query string }{
		{"The running Dogs", "run dog", "run dog"},
		{"数据库", "数 据 数据 库 据库", "数据 据库"},
		{"库", "库", "库"},
	}
	for _, tt := range tests {
		if got := Words(tt.text); got != tt.words {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.words)
		}
		if got := QueryWords(tt.text); got != tt.query {
			t.Errorf("query %q: %q, want %q", tt.text, got, tt.query)
		}
	}
}

func TestGraph(t *testing.T) {
	g, err := NewGraph(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(g.Triples)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(content), "\n"); n != g.Relations {
		t.Errorf("%d relations", n)
	}
	first := strings.Split(strings.SplitN(string(content), "\n", 2)[0], "\t")
	pair := [2]string{first[0], first[2]}
	if !g.IsShortest(pair, []string{pair[0], pair[1]}) {
		t.Error("a relation is no path")
	}
	for _, wrong := range [][]string{nil, {pair[0]}, {pair[1], pair[0]}, {pair[0], pair[1], pair[0], pair[1]}, {pair[0], "nobody", pair[1]}} {
		if g.IsShortest(pair, wrong) {
			t.Errorf("%v is a shortest path", wrong)
		}
	}
	var near []string
	for i := range g.levels(g.number(pair[0]), 1) {
		near = append(near, EntityName(i))
	}
	if got := g.NearShare(pair[0], 1, 1000, append(near, pair[0])); got != 1 {
		t.Errorf("the neighbours are %f of the neighbours", got)
	}
	if got := g.NearShare(pair[0], 1, 1000, near[1:]); got >= 1 {
		t.Errorf("all but one neighbour are %f", got)
	}
	if got := g.NearShare(pair[0], 1, 1000, append(near, "nobody")); got != 0 {
		t.Errorf("a stranger among them gives %f", got)
	}
	for _, p := range g.Asks(1, 0, 5) {
		if g.distance(g.number(p[0]), g.number(p[1])) == 0 {
			t.Errorf("no path joins %v", p)
		}
	}
}
