package agent

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci"
)

// TestExportImport takes a memory through a file, into a store that never held
// anything and into one that is in use. // K5
func TestExportImport(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, and much to write")
	}
	for name, open := range map[string]func(testing.TB, int) *testMemory{"given": openMemory, "made": openEmbedding} {
		t.Run(name, func(t *testing.T) {
			m, ctx := open(t, 4), t.Context()
			furnish(t, m)
			must[*loci.Receipt[Policy]](t)(m.SetPolicy(ctx, Policy{KeepVersions: new(5)}))
			m.store(11, "gone by then", x(), withTTL(1))
			join(t, &m.facts.points, 11, "about", "", 0, ``)
			m.clock.Set(T + 20*second)
			want := whole(t, m.AgentMemory)
			var file strings.Builder
			report := must[*loci.ExportReport](t)(m.db.Export(ctx, &file, nil))
			if report.ExpiredPoints != 1 || report.AgentMemories != 1 {
				t.Errorf("%+v", report)
			}
			for _, used := range []bool{false, true} {
				clock := &testClock{at: T + 20*second}
				db := openDB(t, t.TempDir(), clock)
				t.Cleanup(func() { db.Close() })
				if used {
					elsewhere := must[*AgentMemory](t)(Open(ctx, db, Config{Scope: "elsewhere", Dimension: 3}))
					must[*loci.Receipt[Stored]](t)(elsewhere.Semantic().Put(ctx, fact(0, "the lighthouse of others", []float32{1, 2, 3})))
				}
				must[*loci.ImportReport](t)(db.Import(ctx, strings.NewReader(file.String()), nil))
				if m.fake != nil {
					bindEmbedder(t, db, "words", m.fake)
				}
				there := must[*AgentMemory](t)(OpenExisting(ctx, db, Config{Dimension: 4}))
				wantWhole(t, "in the file", there, want)
				// What it is given from now on goes on from there, by the clock too.
				again := RelateRequest{From: 0, To: greatestID, Type: "causes"}
				edge := must[*loci.Receipt[Edge]](t)(m.facts.Relate(ctx, again)).Value.ID
				if got := must[*loci.Receipt[Edge]](t)(there.Semantic().Relate(ctx, again)); got.Value.ID != edge {
					t.Errorf("%+v, was %d", got, edge)
				}
				clock.Set(T + 62*second)
				if f := must[*Found[loci.Fact]](t)(there.Semantic().Get(ctx, GetRequest{ID: 7})); f.Point != nil {
					t.Errorf("%+v", f)
				}
				if h := must[*loci.HealthReport](t)(db.DeepHealth(ctx)); h.Integrity != "ok" || h.ForeignKeyErrors != 0 {
					t.Errorf("%+v", h)
				}
				before, revision := whole(t, there), must[*loci.HealthReport](t)(db.Health(ctx)).Revision
				_, err := db.Import(ctx, strings.NewReader(file.String()), nil)
				wantCode(t, err, loci.ErrConflict)
				if wantWhole(t, "after the conflict", there, before); must[*loci.HealthReport](t)(db.Health(ctx)).Revision != revision {
					t.Error("something was written")
				}
			}
		})
	}
}
