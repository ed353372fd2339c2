package loci

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestWhereEverywhere compares the three ways in which a metadata condition is
// looked at: listing reads the truth, searching reads the index in memory, and
// after a reopen the index on disk.
func TestWhereEverywhere(t *testing.T) {
	dir := t.TempDir()
	open := func() *DB {
		db, err := Open(t.Context(), dir, &Options{WaitForIndex: true})
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	db := open()
	rng := rand.New(rand.NewPCG(3, 4))
	values := []string{`0`, `-0.0`, `1`, `1.0`, `1e0`, `-2.5`, `9007199254740993`, `1e400`, `-1e400`, `""`, `"1"`, `"a"`, `"ä"`, `"b"`, `"\u0061"`, `true`, `false`, `null`, `[1]`, `{"a":1}`}
	keys := []string{"k", "l", "", "ключ"}
	var ins []MemoryInput
	for range 400 {
		var members []string
		for _, key := range keys {
			if rng.IntN(3) > 0 {
				members = append(members, fmt.Sprintf("%q:%s", key, values[rng.IntN(len(values))]))
			}
		}
		ins = append(ins, MemoryInput{Judgment: "tide", RecordInput: RecordInput{Metadata: Metadata("{" + strings.Join(members, ",") + "}")}})
	}
	must[*Receipt[[]Memory]](t)(db.Memories().UpsertMany(t.Context(), ins))
	var conditions [][]Condition
	for _, op := range []Operator{OpEq, OpNe, OpLt, OpLe, OpGt, OpGe, OpExists, OpIn} {
		for _, value := range values[:18] {
			c := Condition{Key: keys[rng.IntN(len(keys))], Op: op, Value: []byte(value)}
			ordered := value[0] == '"' || value[0] == '-' || value[0] >= '0' && value[0] <= '9'
			switch op {
			case OpLt, OpLe, OpGt, OpGe:
				if !ordered {
					continue
				}
			case OpExists:
				c.Value = []byte([]string{"true", "false"}[rng.IntN(2)])
			case OpIn:
				c.Value = []byte("[" + value + "," + values[rng.IntN(18)] + "]")
			}
			other := Condition{Key: keys[rng.IntN(len(keys))], Op: OpExists}
			conditions = append(conditions, []Condition{c}, []Condition{c, other})
		}
	}
	for _, round := range []string{"in memory", "on disk"} {
		for _, where := range conditions {
			f := ReadFilter{Where: where}
			var listed, found []ID
			for _, m := range listMemories(t, db, f) {
				listed = append(listed, m.ID)
			}
			r := must[*SearchResult](t)(db.Search(t.Context(), SearchRequest{Query: "tide", Filter: f, Limit: new(MaxPage)}))
			for _, hit := range r.Hits {
				found = append(found, hit.Record.(*Memory).ID)
			}
			slices.Sort(found)
			if !slices.Equal(listed, found) {
				t.Errorf("%s: %s %s %s: listed %d, found %d", round, where[0].Key, where[0].Op, where[0].Value, len(listed), len(found))
			}
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		db = open()
	}
	db.Close()
}
