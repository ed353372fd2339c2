package loci

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// knownRows reads a table of tab-separated values of a published graph.
func knownRows(t *testing.T, name string) [][]string {
	t.Helper()
	dir := os.Getenv("LOCI_EVAL_DATA")
	if dir == "" {
		dir = filepath.Join("..", "shared", "data")
	}
	text, err := os.ReadFile(filepath.Join(dir, "graph", name))
	if err != nil {
		t.Skipf("no evaluation data (set LOCI_EVAL_DATA): %v", err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		rows = append(rows, strings.Split(strings.TrimRight(line, "\r\n"), "\t"))
	}
	return rows
}

// TestKnownGraphs writes published graphs into a store and checks every row of
// their tables of distances and of neighbourhoods.
func TestKnownGraphs(t *testing.T) {
	for name, nodes := range map[string]int{"nations": 14, "umls": 135} {
		t.Run(name, func(t *testing.T) {
			db := openTestDB(t, t.TempDir())
			var batch GraphBatch
			seen, triples := map[string]bool{}, map[string]bool{}
			for _, row := range knownRows(t, name+".tsv") {
				for _, entity := range []string{row[0], row[2]} {
					if !seen[entity] {
						seen[entity] = true
						batch.Entities = append(batch.Entities, EntityInput{Ref: entity, Name: entity})
					}
				}
				batch.Relations = append(batch.Relations, RelationInput{Subject: EntityRef{Ref: row[0]}, Predicate: row[1], Object: EntityRef{Ref: row[2]}})
				triples[strings.Join(row[:3], "\t")] = true
			}
			r := must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), batch))
			ids := map[string]ID{}
			for _, e := range r.Value.Entities {
				ids[e.Name] = e.ID
			}
			views := map[Direction]*GraphView{}
			for _, d := range []Direction{DirectionOut, DirectionBoth} {
				views[d] = must[*GraphView](t)(db.Graph().BuildGraph(t.Context(), ReadFilter{}, GraphOptions{Direction: d}))
			}
			if v := views[DirectionOut]; v.NodeCount() != nodes || v.EdgeCount() != len(triples) || v.ComponentCount() != 1 {
				t.Errorf("%d nodes, %d edges, %d components", v.NodeCount(), v.EdgeCount(), v.ComponentCount())
			}
			for _, row := range knownRows(t, name+"_ego.tsv")[1:] {
				for i, look := range []struct {
					d     Direction
					depth int
				}{{DirectionBoth, 1}, {DirectionBoth, 2}, {DirectionBoth, 3}, {DirectionOut, 1}, {DirectionOut, 2}} {
					got := must[[]ID](t)(views[look.d].EgoIDs(ids[row[0]], look.depth, MaxPage))
					if strconv.Itoa(len(got)) != row[1+i] {
						t.Errorf("%s, %d steps %s: %d, want %s", row[0], look.depth, look.d, len(got), row[1+i])
					}
				}
			}
			for _, row := range knownRows(t, name+"_paths.tsv")[1:] {
				for i, d := range []Direction{DirectionOut, DirectionBoth} {
					got := must[[]ID](t)(views[d].PathIDs(ids[row[0]], ids[row[1]]))
					if strconv.Itoa(len(got)-1) != row[2+i] {
						t.Errorf("%s to %s, %s: %d steps, want %s", row[0], row[1], d, len(got)-1, row[2+i])
					}
				}
			}
			// One of the paths with its entities.
			row := knownRows(t, name+"_paths.tsv")[1]
			path := must[[]Entity](t)(db.Graph().Path(t.Context(), ids[row[0]], ids[row[1]], ReadFilter{}, GraphOptions{}))
			if len(path) == 0 || path[0].Name != row[0] || !slices.ContainsFunc(path, func(e Entity) bool { return e.Name == row[1] }) {
				t.Errorf("%v", path)
			}
		})
	}
}
