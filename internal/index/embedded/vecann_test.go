package embedded

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/vec"
)

// readVecs reads an fvecs file as rows of 32-bit words.
func readVecs(t testing.TB, name string) (rows [][]uint32) {
	t.Helper()
	dir := os.Getenv("LOCI_EVAL_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	data, err := os.ReadFile(filepath.Join(dir, "ann", "glove", name))
	if err != nil {
		t.Skipf("no vectors to read (set LOCI_EVAL_DATA): %v", err)
	}
	le := binary.LittleEndian
	for len(data) > 0 {
		n := int(le.Uint32(data))
		row := make([]uint32, n)
		for i := range row {
			row[i] = le.Uint32(data[4+4*i:])
		}
		rows = append(rows, row)
		data = data[4+4*n:]
	}
	return rows
}

func unitVecs(rows [][]uint32) (out [][]float32) {
	for _, row := range rows {
		v := make([]float32, len(row))
		for i, b := range row {
			v[i] = math.Float32frombits(b)
		}
		vec.Normalize(v, v)
		out = append(out, v)
	}
	return out
}

// TestWordVectors searches real vectors through lists, for both encodings, and
// compares with their true neighbours.
func TestWordVectors(t *testing.T) {
	base, queries := unitVecs(readVecs(t, "base.fvecs")), unitVecs(readVecs(t, "query.fvecs"))
	truth := readVecs(t, "gt_cosine.ivecs")
	for _, encoding := range []index.Encoding{index.EncodingSQ8, index.EncodingF32} {
		ix, err := Open(DirFS(t.TempDir()), Options{Analyze: words, Version: 1, StoreID: "s", ScanRows: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer ix.Close()
		var changes []index.Change
		for i, v := range base {
			id := int64(i + 1)
			changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(&index.Document{ID: id, Namespace: 1, Kind: 1, Scope: 1})},
				index.Change{ID: id, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: encoding, Scope: 1, Values: v}})
		}
		ix.Stage(1, changes)
		ix.Publish()
		if err := ix.Flush(); err != nil {
			t.Fatal(err)
		}
		if err := ix.mergeAll(); err != nil {
			t.Fatal(err)
		}
		v, _ := ix.View(1)
		defer v.Close()
		for _, exact := range []bool{false, true} {
			found := 0
			for i, q := range queries {
				res, err := v.Nearest(index.VectorQuery{Space: 1, Values: q, Limit: 50, Exact: exact}, index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{1}})
				if err != nil {
					t.Fatal(err)
				}
				if res.Exact != exact {
					t.Fatalf("exact is %v, want %v", res.Exact, exact)
				}
				slices.SortFunc(res.Hits, func(a, b index.VectorHit) int {
					return cmpInt(vec.Dot(q, base[a.ID-1]) > vec.Dot(q, base[b.ID-1]))
				})
				for _, h := range res.Hits[:10] {
					if slices.Contains(truth[i][:10], uint32(h.ID-1)) {
						found++
					}
				}
			}
			recall := float64(found) / float64(10*len(queries))
			t.Logf("encoding %d, exact %v: recall@10 %.4f", encoding, exact, recall)
			if want := 0.99; recall < want || exact && recall < 0.9995 {
				t.Errorf("encoding %d, exact %v: recall@10 is %.4f", encoding, exact, recall)
			}
		}
	}
}
