package loci

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/store"
	"pgregory.net/rapid"
)

// agentWriter writes agent memory below package agent.
type agentWriter struct {
	t  testing.TB
	db *DB
}

func (w agentWriter) write(fn func(tx *store.WriteTx) error) {
	w.t.Helper()
	if _, err := w.db.Link().Write(w.t.Context(), fn); err != nil {
		w.t.Fatal(err)
	}
}

// memory makes an agent memory, and its space if need be.
func (w agentWriter) memory(namespace, scope string, dimension int) *store.AgentMemory {
	w.t.Helper()
	m := &store.AgentMemory{Namespace: namespace, Scope: scope, Dimension: dimension, Space: fmt.Sprintf("agent-%d", dimension)}
	must[*Receipt[EmbeddingSpace]](w.t)(w.db.Embeddings().RegisterSpace(w.t.Context(), EmbeddingSpace{ID: m.Space, Model: "caller", Dimension: dimension, Encoding: EncodingF32}))
	w.write(func(tx *store.WriteTx) error { return tx.AddAgentMemory(m) })
	return m
}

// point writes a point, with a vector if it is given.
func (w agentWriter) point(m *store.AgentMemory, p *store.Point, vector ...float32) *store.Point {
	w.t.Helper()
	l := w.db.Link()
	p.Namespace, p.Scope = m.Namespace, m.Scope
	p.Version = max(p.Version, 1)
	prepared := l.PreparePoint(p, nil)
	w.write(func(tx *store.WriteTx) error {
		if err := tx.AddPoint(m.Place(p.Kind), p); err != nil {
			return err
		}
		if err := l.StagePoint(tx, p, prepared); err != nil || len(vector) == 0 {
			return err
		}
		sp, err := tx.Space(m.Space)
		if err != nil {
			return err
		}
		return tx.PutVector(sp, &p.Record, store.TextOfCaller, vector)
	})
	return p
}

func (w agentWriter) edge(m *store.AgentMemory, from *store.Point, typ string, to *store.Point, key uint64, properties string) {
	w.t.Helper()
	w.write(func(tx *store.WriteTx) error {
		return tx.AddPointEdge(m.Place(from.Kind), &store.PointEdge{Source: from.ID, Type: typ, Target: to.ID, Key: key, Created: 9, Properties: []byte(properties)})
	})
}

// farAway is when points of the tests expire.
const farAway = 1_800_000_000_000_000

// addAgents adds to a store something of everything that agent memory keeps: a memory
// with facts at both ends of the ids, of which one has a history, an episode, a
// procedure that was used, vectors, relations within and across kinds, and a policy;
// and one of two other facts with the same ids.
func addAgents(t testing.TB, db *DB) {
	t.Helper()
	w := agentWriter{t, db}
	m := w.memory(DefaultNamespace, "helper <1>", 2)
	m.Settings, m.Snapshot = []byte(`{"evict_below_confidence":0.2,"keep_versions":3}`), 4
	w.write(func(tx *store.WriteTx) error { return tx.UpdateAgentMemory(m) })
	old := w.point(m, &store.Point{
		Record: store.Record{Kind: store.KindFact, Created: 5, Updated: 8, Tags: []string{"a", "b"}, Metadata: []byte(`{"k":1.50,"l":["<"]}`), Thread: "talk", Position: new(int64(-1))},
		Key:    1<<64 - 1, Version: 3, Recorded: 7, Expires: new(int64(farAway)), ValidFrom: new(int64(-2)), ValidTo: new(int64(0)), Content: "the lighthouse\nis lit at seven & <eight>",
	}, 3, 4)
	zero := w.point(m, &store.Point{Record: store.Record{Kind: store.KindFact, Created: 6, Updated: 6}, Key: 0, Recorded: 6, Content: ""}, 1e-45, 0)
	episode := w.point(m, &store.Point{Record: store.Record{Kind: store.KindEpisode, Created: -4, Updated: 6}, Key: 1 << 63, Recorded: 6, Happened: new(int64(-4)), Content: "a power cut at the harbour"})
	procedure := w.point(m, &store.Point{
		Record: store.Record{Kind: store.KindProcedure, Created: 6, Updated: 6}, Key: 7, Version: 2, Recorded: 9, Title: "deploy <it>", Content: "build\nship & go\nbuild",
		Data: []byte(`{"steps":["build","ship \u0026 go","build"]}`), Confidence: 1.0 / 3, Uses: 3, Successes: 2, LastUsed: new(int64(-1)),
	}, 0, -2)
	w.write(func(tx *store.WriteTx) error {
		return errors.Join(
			tx.AddPointVersion(old.ID, &store.PointVersion{Version: 1, Recorded: 3, RecordedTo: 5, Content: "lit at six", Metadata: []byte(`{"k":1.0}`), ValidTo: new(int64(4))}, 9),
			tx.AddPointVersion(old.ID, &store.PointVersion{Version: 2, Recorded: 5, RecordedTo: 7, Content: ""}, 9),
			tx.AddPointVersion(procedure.ID, &store.PointVersion{Version: 1, Recorded: 6, RecordedTo: 9, Title: "deploy", Content: "ship", Data: []byte(`{"steps":["ship"]}`)}, 9),
		)
	})
	w.edge(m, old, "causes", zero, 1<<63, `{"w":1.0}`)
	w.edge(m, zero, "causes", zero, 1, "")
	w.edge(m, episode, "属于", procedure, 1<<64-1, "")
	w.edge(m, procedure, "属于", old, 2, `{"n":{"a":"<"}}`)
	o := w.memory("港务", "private", 3)
	w.point(o, &store.Point{Record: store.Record{Kind: store.KindFact, Created: 6, Updated: 6}, Key: 0, Recorded: 6, Content: "of another tenant"}, 1, 2, 3)
	w.point(o, &store.Point{Record: store.Record{Kind: store.KindFact, Created: 6, Updated: 6}, Key: 1<<64 - 1, Recorded: 6, Content: "without a vector"})
}

// agentStore is a store with agent memories, and its export.
func agentStore(t testing.TB) (db *DB, text string) {
	t.Helper()
	db = openReal(t, t.TempDir())
	remember(t, db, "a memory before them")
	addAgents(t, db)
	header, body := exported(t, db, nil)
	return db, header + "\n" + body
}

// TestTransferAgents takes agent memory through a file and back, to the letter, and
// through a snapshot, which carries the clock of expiry too.
func TestTransferAgents(t *testing.T) {
	db, text := agentStore(t)
	header, body, _ := strings.Cut(text, "\n")
	if !strings.Contains(header, `"counts":{"episode":1,"fact":4,"memory":1,"procedure":1},"agents":{"memories":2,"versions":3,"edges":4}`) {
		t.Error(header)
	}
	again, report := imported(t, text, nil)
	if !report.Kept || report.AgentMemories != 2 || report.PointVersions != 3 || report.PointEdges != 4 || report.Vectors != 4 || report.VectorsSkipped != 0 || report.Counts["fact"] != 4 {
		t.Errorf("%+v", report)
	}
	snapshot := t.TempDir() + "/s"
	must[*BackupReport](t)(db.Backup(t.Context(), snapshot))
	restored := must[*DB](t)(Restore(t.Context(), snapshot, t.TempDir()+"/r", nil))
	t.Cleanup(func() { restored.Close() })
	if was, is := db.eng.lifeNow(), restored.eng.store.StoredClock(); is == 0 || is > was {
		t.Errorf("the clock of the snapshot shows %d, that of the store %d", is, was)
	}
	for how, made := range map[string]*DB{"import": again, "restore": restored} {
		if _, second := exported(t, made, nil); second != body {
			t.Errorf("%s: not the same again:\n%s\n%s", how, body, second)
		}
		h := must[*HealthReport](t)(made.DeepHealth(t.Context()))
		if h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.Counts["fact"] != 4 || h.IndexedDocuments != 7 || h.PendingIndexUpdates != 0 {
			t.Errorf("%s: %+v", how, h)
		}
		found := search(t, made, SearchRequest{Query: "harbour", Kinds: []Kind{KindEpisode}, Filter: ReadFilter{Scopes: []string{"helper <1>"}}})
		if len(found.Hits) != 1 {
			t.Errorf("%s: %+v", how, found)
		}
		err := made.eng.read(t.Context(), func(tx *store.ReadTx) error {
			m, err := tx.AgentMemory(DefaultNamespace, "helper <1>")
			if err != nil {
				return err
			}
			if m.Snapshot != 4 || string(m.Settings) != `{"evict_below_confidence":0.2,"keep_versions":3}` || m.Dimension != 2 || m.Space != "agent-2" {
				t.Errorf("%s: %+v", how, m)
			}
			p, err := tx.PointByKey(m.Place(store.KindProcedure), 7)
			if err != nil {
				return err
			}
			if p.Title != "deploy <it>" || p.Content != "build\nship & go\nbuild" || string(p.Data) != `{"steps":["build","ship \u0026 go","build"]}` || p.Confidence != 1.0/3 {
				t.Errorf("%s: %+v", how, p)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	// The next id is none that a memory, a point or a relation had.
	if a, b := remember(t, db, "next"), remember(t, again, "next"); a[0] != b[0] {
		t.Errorf("%d, was %d", b, a)
	}
	// One namespace takes its memories along, and only those.
	_, part := exported(t, db, &ExportOptions{Namespace: new("港务")})
	if strings.Count(part, `{"agent_memory":"`) != 1 || strings.Count(part, `"kind":"fact"`) != 2 || strings.Contains(part, "lighthouse") || strings.Contains(part, `{"point_edge"`) {
		t.Error(part)
	}
	alone, _ := imported(t, first(exported(t, db, &ExportOptions{Namespace: new("港务")}))+"\n"+part, nil)
	if h := must[*HealthReport](t)(alone.DeepHealth(t.Context())); h.Integrity != "ok" || h.Counts["fact"] != 2 {
		t.Errorf("%+v", h)
	}
	// Vectors of callers do not come back by being embedded again, so they stay.
	if _, without := exported(t, db, &ExportOptions{NoVectors: true}); strings.Count(without, `{"vector":"`) != 4 {
		t.Error(without)
	}
}

// TestExportLeavesOutExpired leaves out what nobody sees any more: points that are
// expired, with what hangs on them, and what a memory has given up or is filled with.
func TestExportLeavesOutExpired(t *testing.T) {
	clock := newTestClock()
	db := openWith(t, t.TempDir(), &Options{Clock: clock.Now, WaitForIndex: true, NoBackgroundSweep: true})
	w := agentWriter{t, db}
	m := w.memory("n", "s", 2)
	fact := func(key uint64, expires *int64) *store.Point {
		return w.point(m, &store.Point{Record: store.Record{Kind: store.KindFact}, Key: key, Version: 2, Expires: expires, Content: fmt.Sprint("fact ", key)}, 1, 2)
	}
	now := clock.Now().UnixMicro()
	live, gone := fact(1, new(now+1)), fact(2, new(now))
	w.edge(m, live, "a", gone, 1, "")
	w.edge(m, gone, "a", live, 2, "")
	w.edge(m, live, "a", live, 3, "")
	w.write(func(tx *store.WriteTx) error {
		place, err := tx.StagePlace(m, store.KindFact)
		if err != nil {
			return err
		}
		staged := &store.Point{Record: store.Record{Kind: store.KindFact, Namespace: "n", Scope: "s"}, Key: 1, Version: 1, Content: "staged"}
		version := store.PointVersion{Version: 1}
		return errors.Join(tx.AddPoint(place, staged), tx.AddPointVersion(live.ID, &version, 9), tx.AddPointVersion(gone.ID, &version, 9))
	})
	var b strings.Builder
	report, err := db.Export(t.Context(), &b, nil)
	if err != nil || report.ExpiredPoints != 1 || report.Counts["fact"] != 1 || report.PointEdges != 1 || report.PointVersions != 1 || report.Vectors != 1 || strings.Contains(b.String(), "staged") {
		t.Errorf("%+v, %v\n%s", report, err, b.String())
	}
	made, _ := imported(t, b.String(), nil)
	if h := must[*HealthReport](t)(made.DeepHealth(t.Context())); h.Integrity != "ok" || h.Counts["fact"] != 1 {
		t.Errorf("%+v", h)
	}
	// What has expired since is not seen where it comes to, and goes.
	clock.Set(now + 1)
	late := openWith(t, t.TempDir(), &Options{Clock: clock.Now, WaitForIndex: true, NoBackgroundSweep: true})
	must[*ImportReport](t)(late.Import(t.Context(), strings.NewReader(b.String()), nil))
	filter := ReadFilter{Namespace: new("n"), Scopes: []string{"s"}}
	if found := search(t, late, SearchRequest{Query: "fact", Kinds: []Kind{KindFact}, Filter: filter}); len(found.Hits) != 0 {
		t.Errorf("%+v", found)
	}
	if n := must[int64](t)(late.Link().Sweep(t.Context())); n != 1 {
		t.Error(n)
	}
	b.Reset()
	if report, err = db.Export(t.Context(), &b, nil); err != nil || report.ExpiredPoints != 2 || report.Records != 0 || report.AgentMemories != 1 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestImportAgentsRemapped brings agent memory into a store that is in use: what the
// caller calls it by stays as it is.
func TestImportAgentsRemapped(t *testing.T) {
	db, text := agentStore(t)
	other := openReal(t, t.TempDir())
	remember(t, other, "its own")
	m := agentWriter{t, other}.memory(DefaultNamespace, PublicScope, 2) // another memory, in the same space
	agentWriter{t, other}.point(m, &store.Point{Record: store.Record{Kind: store.KindFact}, Key: 0, Content: "its own fact"}, 1, 1)
	report, err := other.Import(t.Context(), strings.NewReader(text), nil)
	if err != nil || report.Kept || report.PointEdges != 4 || report.PointVersions != 3 || report.Vectors != 4 || report.SettingsKept != 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	if h := must[*HealthReport](t)(other.DeepHealth(t.Context())); h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.Counts["fact"] != 5 || h.PendingIndexUpdates != 0 {
		t.Errorf("%+v", h)
	}
	shape := func(db *DB) (out []string) {
		err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
			m, err := tx.AgentMemory(DefaultNamespace, "helper <1>")
			if err != nil {
				return err
			}
			sp, err := tx.Space(m.Space)
			if err != nil {
				return err
			}
			for _, place := range m.Places {
				points, err := tx.PointsAfter(place, 0, nil, 100)
				if err != nil {
					return err
				}
				for _, p := range points {
					versions, err := tx.PointVersions(p.ID)
					if err != nil {
						return err
					}
					v, _, _, err := tx.Vector(sp.ID, p.ID, nil)
					if err != nil {
						return err
					}
					out = append(out, fmt.Sprint(p.Kind, p.Key, p.Version, p.Content, string(p.Metadata), len(versions), v))
				}
				edges, err := tx.PointEdgesIn(place, nil, 100)
				if err != nil {
					return err
				}
				for _, e := range edges {
					out = append(out, fmt.Sprint(e.Key, e.SourceKey, e.Type, e.TargetKey, e.Created, string(e.Properties)))
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	was, is := shape(db), shape(other)
	if len(was) != 8 || !slices.Equal(was, is) {
		t.Errorf("%q\nwas %q", is, was)
	}
	// Two memories of one scope are not merged, and nothing is written. K5.
	before := stateOf(t, other)
	for _, dry := range []bool{true, false} {
		_, err = other.Import(t.Context(), strings.NewReader(text), &ImportOptions{DryRun: dry})
		e := wantCode(t, err, ErrConflict)
		for i, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, `{"agent_memory"`) && !strings.Contains(e.Message, fmt.Sprintf("line %d: scope", i+1)) {
				t.Error(e)
			}
		}
	}
	if stateOf(t, other) != before {
		t.Errorf("%+v, was %+v", stateOf(t, other), before)
	}
	// Nor is one whose vectors would lie among those of another model.
	for _, space := range []EmbeddingSpace{{ID: "agent-2", Model: "caller", Dimension: 3}, {ID: "agent-2", Model: "another", Dimension: 2, Encoding: EncodingF32}} {
		taken := openReal(t, t.TempDir())
		must[*Receipt[EmbeddingSpace]](t)(taken.Embeddings().RegisterSpace(t.Context(), space))
		before := stateOf(t, taken)
		_, err := taken.Import(t.Context(), strings.NewReader(text), nil)
		if e := wantCode(t, err, ErrConflict); !strings.Contains(e.Message, `space: is "agent-2"`) || stateOf(t, taken) != before {
			t.Error(e)
		}
	}
}

// TestImportAgentsByHand takes lines that no export wrote: what is left out is filled
// in.
func TestImportAgentsByHand(t *testing.T) {
	clock := newTestClock()
	now := clock.Now().UnixMicro()
	db, report := imported(t, `{"format":"loci-export","version":4}
{"setting":"embedding_space","space":"v","model":"m","dimension":2,"encoding":"f32"}
{"agent_memory":4,"namespace":"default","scope":"public","dimension":2,"space":"v"}
{"kind":"fact","id":5,"point_id":18446744073709551615,"content":"c","metadata":{ "k" : 1 }}
{"kind":"episode","id":6,"point_id":"0","at_us":12,"description":"d"}
{"kind":"episode","id":7,"point_id":1,"created_at_us":13,"description":"e"}
{"kind":"procedure","id":8,"point_id":1,"name":"n","steps":["s"]}
{"point_edge":9,"from":5,"rel_type":"t","to":8}
`, nil)
	if report.Kept || report.PointEdges != 1 {
		t.Errorf("%+v", report)
	}
	err := db.eng.read(t.Context(), func(tx *store.ReadTx) error {
		m, err := tx.AgentMemory(DefaultNamespace, PublicScope)
		if err != nil {
			return err
		}
		if m.Settings != nil || m.Snapshot != 0 {
			t.Errorf("%+v", m)
		}
		fact, err1 := tx.PointByKey(m.Place(store.KindFact), 1<<64-1)
		dated, err2 := tx.PointByKey(m.Place(store.KindEpisode), 0)
		created, err3 := tx.PointByKey(m.Place(store.KindEpisode), 1)
		procedure, err4 := tx.PointByKey(m.Place(store.KindProcedure), 1)
		if err := errors.Join(err1, err2, err3, err4); err != nil {
			return err
		}
		if fact.Version != 1 || fact.Recorded < now || fact.Created < now || fact.Expires != nil || *dated.Happened != 12 || dated.Created != 12 ||
			*created.Happened != 13 || procedure.Confidence != 0.5 || procedure.Uses != 0 || procedure.LastUsed != nil || procedure.Content != "s" {
			t.Errorf("%+v\n%+v\n%+v\n%+v", fact, dated, created, procedure)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" {
		t.Errorf("%+v", h)
	}
}

// TestExportDamagedAgents says what cannot be read, instead of leaving it out.
func TestExportDamagedAgents(t *testing.T) {
	for name, damage := range map[string]func(tx *store.WriteTx, m *store.AgentMemory, p *store.Point) error{
		"policy": func(tx *store.WriteTx, m *store.AgentMemory, _ *store.Point) error {
			m.Settings = []byte("{")
			return tx.UpdateAgentMemory(m)
		},
		"steps": func(tx *store.WriteTx, _ *store.AgentMemory, p *store.Point) error {
			next := *p
			next.Data = []byte(`{"steps":1}`)
			return tx.UpdatePoint(p, &next)
		},
		"steps of a version": func(tx *store.WriteTx, _ *store.AgentMemory, p *store.Point) error {
			return tx.AddPointVersion(p.ID, &store.PointVersion{Version: 1, Data: []byte(`{}`)}, 9)
		},
	} {
		db := openReal(t, t.TempDir())
		w := agentWriter{t, db}
		m := w.memory("n", "s", 2)
		p := w.point(m, &store.Point{Record: store.Record{Kind: store.KindProcedure}, Version: 2, Title: "n", Data: []byte(`{"steps":["s"]}`), Content: "s"})
		w.write(func(tx *store.WriteTx) error { return damage(tx, m, p) })
		_, err := db.Export(t.Context(), &strings.Builder{}, nil)
		if e := wantCode(t, err, ErrStorage); !strings.Contains(e.Error(), "damaged") {
			t.Errorf("%s: %v", name, e)
		}
	}
}

// TestTransferAgentsProperty takes memories after random histories through a file and
// holds that they are the same to the letter.
func TestTransferAgentsProperty(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, and much to do")
	}
	rapid.Check(t, func(rt *rapid.T) {
		db, err := Open(t.Context(), t.TempDir(), nil)
		if err != nil {
			rt.Fatal(err)
		}
		defer db.Close()
		write := func(db *DB) string {
			var b strings.Builder
			if _, err := db.Export(t.Context(), &b, nil); err != nil {
				rt.Fatal(err)
			}
			return b.String()
		}
		w := agentWriter{t, db}
		words := rapid.SampledFrom([]string{"a", "灯塔", "é\u0301", "x<y&z", "line\nbreak", "\u2028", "\\u0041", ""})
		keys := rapid.SampledFrom([]uint64{0, 1, 1<<53 + 1, 1 << 63, 1<<64 - 1})
		memories := []*store.AgentMemory{w.memory("n", "s", 2), w.memory("n", "S", 2), w.memory("o", "s", 3)}
		points := map[*store.AgentMemory][]*store.Point{}
		optional := func(name string) *int64 {
			return rapid.Ptr(rapid.Int64Range(-3, farAway), true).Draw(rt, name)
		}
		for range rapid.IntRange(0, 20).Draw(rt, "steps") {
			m := rapid.SampledFrom(memories).Draw(rt, "memory")
			there := points[m]
			switch step := rapid.IntRange(0, 9).Draw(rt, "step"); {
			case step < 5 || len(there) == 0:
				p := &store.Point{
					Record: store.Record{Kind: store.KindFact + store.Kind(rapid.IntRange(0, 2).Draw(rt, "kind")), Created: rapid.Int64Range(-5, 5).Draw(rt, "created"), Updated: 9},
					Key:    keys.Draw(rt, "key"), Version: rapid.Int64Range(1, 3).Draw(rt, "version"), Recorded: 100, Content: words.Draw(rt, "content"),
					Expires: rapid.Ptr(rapid.Int64Range(farAway, 1<<63-1), true).Draw(rt, "expires"),
				}
				if slices.ContainsFunc(there, func(o *store.Point) bool { return o.Kind == p.Kind && o.Key == p.Key }) {
					continue
				}
				switch p.Kind {
				case store.KindFact:
					if p.ValidFrom = optional("from"); p.ValidFrom == nil {
						p.ValidTo = optional("to")
					}
				case store.KindEpisode:
					p.Happened = new(p.Created)
				case store.KindProcedure:
					p.Title, p.Content, p.Data = "name", "one\ntwo", []byte(`{"steps":["one","two"]}`)
					p.Confidence, p.LastUsed = rapid.Float64Range(0, 1).Draw(rt, "confidence"), optional("used")
				}
				var vector []float32
				if rapid.Bool().Draw(rt, "vector") {
					vector = rapid.SliceOfN(rapid.Float32Range(1, 2), m.Dimension, m.Dimension).Draw(rt, "numbers")
				}
				w.point(m, p, vector...)
				points[m] = append(there, p)
				for v := int64(1); v < p.Version; v++ {
					version := store.PointVersion{Version: v, Recorded: 10 * v, RecordedTo: 10*v + rapid.Int64Range(0, 10).Draw(rt, "believed"), Title: p.Title, Data: p.Data, Content: p.Content}
					w.write(func(tx *store.WriteTx) error {
						return tx.AddPointVersion(p.ID, &version, rapid.Int64Range(0, 3).Draw(rt, "keep"))
					})
				}
			case step < 8:
				from, to := rapid.SampledFrom(there).Draw(rt, "source"), rapid.SampledFrom(there).Draw(rt, "target")
				e := &store.PointEdge{Source: from.ID, Target: to.ID, Type: "type", Key: rapid.Uint64Min(1).Draw(rt, "id"), Created: 1}
				_, err := db.Link().Write(t.Context(), func(tx *store.WriteTx) error { return tx.AddPointEdge(m.Place(from.Kind), e) })
				if err != nil && CodeOf(err) != ErrConflict {
					rt.Fatal(err)
				}
			default:
				i := rapid.IntRange(0, len(there)-1).Draw(rt, "gone")
				w.write(func(tx *store.WriteTx) error {
					p, err := tx.Point(there[i].ID)
					if err != nil {
						return err
					}
					return tx.RemovePoint(p)
				})
				points[m] = slices.Delete(there, i, i+1)
			}
		}
		text := write(db)
		made, err := Open(t.Context(), t.TempDir(), nil)
		if err != nil {
			rt.Fatal(err)
		}
		defer made.Close()
		if _, err := made.Import(t.Context(), strings.NewReader(text), nil); err != nil {
			rt.Fatalf("%v\n%s", err, text)
		}
		_, body, _ := strings.Cut(text, "\n")
		if _, again, _ := strings.Cut(write(made), "\n"); again != body {
			rt.Fatalf("%s\nwas\n%s", again, body)
		}
		h, err := made.DeepHealth(t.Context())
		if err != nil || h.Integrity != "ok" || h.ForeignKeyErrors != 0 || !h.IndexUsable || h.PendingIndexUpdates != 0 {
			rt.Fatalf("%+v, %v", h, err)
		}
	})
}

// TestImportAgentsRefuses holds that what contradicts itself is refused, by line and
// without its text.
func TestImportAgentsRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("left out by -short: it takes seconds, and there is nothing in it for the race detector")
	}
	const header = `{"format":"loci-export","version":4,"revision":9,"next_id":50}` + "\n"
	const space = `{"setting":"embedding_space","space":"v","model":"m","dimension":2,"encoding":"f32"}` + "\n"
	const memory = `{"agent_memory":"2","namespace":"n","scope":"s","dimension":2,"space":"v"}` + "\n"
	const start = space + memory
	// Lines: 1 header, 2 space, 3 memory.
	point := func(kind string, id int, more string) string {
		return fmt.Sprintf(`{"kind":"%s","id":"%d","namespace":"n","scope":"s","point_id":"%[2]d","recorded_at_us":20%s}`+"\n", kind, id, more)
	}
	fact := func(id int, more string) string { return point("fact", id, `,"content":"SECRET"`+more) }
	procedure := func(id int, more string) string {
		return point("procedure", id, `,"name":"SECRET","steps":["SECRET"]`+more)
	}
	version := func(id, n int, more string) string {
		return fmt.Sprintf(`{"point_version":"%d","version":%d%s}`+"\n", id, n, more)
	}
	const text = `,"content":"SECRET"`
	edge := func(key string, from, to int, more string) string {
		return fmt.Sprintf(`{"point_edge":%s,"from":"%d","to":"%d","rel_type":"SECRET"%s}`+"\n", key, from, to, more)
	}
	swap := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("%s is not in %s", old, text)
		}
		return strings.Replace(text, old, new, 1)
	}
	for _, c := range []struct{ name, text, says string }{
		{"memory without id", space + swap(memory, `"2"`, `0`), "line 3: agent_memory"},
		{"memory without dimension", space + swap(memory, `,"dimension":2`, ""), "line 3: dimension"},
		{"memory of another dimension than its space", space + swap(memory, `"dimension":2`, `"dimension":3`), "line 3: dimension"},
		{"memory of too many dimensions", space + swap(memory, `"dimension":2`, `"dimension":65537`), "line 3: dimension"},
		{"memory without space", space + swap(memory, `,"space":"v"`, ""), "line 3: space"},
		{"memory without namespace", space + swap(memory, `"n"`, `""`), "line 3: namespace"},
		{"memory of a blank scope", space + swap(memory, `"s"`, `" s"`), "line 3: scope"},
		{"snapshots below nothing", space + swap(memory, `}`, `,"snapshot":-1}`), "line 3: snapshot"},
		{"policy is no object", space + swap(memory, `}`, `,"policy":"SECRET"}`), "line 3: policy"},
		{"policy out of its range", space + swap(memory, `}`, `,"policy":{"keep_versions":1001}}`), "line 3: keep_versions"},
		{"policy of another kind", space + swap(memory, `}`, `,"policy":{"SECRET":1}}`), "line 3: policy"},
		{"memory twice", start + swap(memory, `"2"`, `"3"`), "line 4: scope"},
		{"memory id twice", start + swap(memory, `"s"`, `"t"`), "line 4: agent_memory"},
		{"memory too late", start + fact(3, "") + swap(swap(memory, `"2"`, `"4"`), `"s"`, `"t"`), "line 5: agent_memory"},
		{"memory of another namespace", `{"format":"loci-export","version":4,"namespace":"o"}` + "\n" + start, "line 3: namespace"},
		{"memory id of a scope", space + `{"context":"2","namespace":"n","scope":"[\"n\"]","version":1,"state":{}}` + "\n" + memory, "line 4: agent_memory"},
		{"setting too late", start + swap(space, `"v"`, `"w"`), "line 4: setting"},
		{"a log behind a memory", space + `{"context":"1","namespace":"n","scope":"[\"n\"]","version":1,"state":{}}` + "\n" + memory + `{"log":"1","type":"usage","number":1,"body":{}}`, "line 5: log"},

		{"point without memory", space + fact(3, ""), "line 3: scope"},
		{"point of another scope", start + swap(fact(3, ""), `"s"`, `"S"`), "line 4: scope"},
		{"point of another namespace", start + swap(fact(3, ""), `"n"`, `"o"`), "line 4: scope"},
		{"id of the memory", start + fact(2, ""), "line 4: id"},
		{"no point id", start + swap(fact(3, ""), `"point_id":"3",`, ""), "line 4: point_id"},
		{"point id above all", start + swap(fact(3, ""), `"point_id":"3"`, `"point_id":18446744073709551616`), "line 4: id"},
		{"point id twice", start + fact(3, "") + swap(fact(4, ""), `"point_id":"4"`, `"point_id":"3"`), "line 5: point_id"},
		{"position twice", start + fact(3, `,"thread":"t","position":1`) + fact(4, `,"thread":"t","position":1`), "line 5: position"},
		{"no content", start + point("fact", 3, ""), "line 4: content"},
		{"no description", start + point("episode", 3, ""), "line 4: description"},
		{"content of an episode", start + point("episode", 3, `,"content":"SECRET","description":"d"`), "line 4: has a field"},
		{"evidence", start + fact(3, `,"evidence":[{"source":"s"}]`), "line 4: evidence"},
		{"metadata of callers only", start + fact(3, `,"metadata":{"_loci_x":"SECRET"}`), "line 4: metadata"},
		{"content in metadata", start + fact(3, `,"metadata":{"content":"SECRET"}`), "line 4: metadata"},
		{"metadata is no object", start + fact(3, `,"metadata":["SECRET"]`), "line 4: metadata"},
		{"version 0", start + fact(3, `,"version":0`), "line 4: version"},
		{"expires before time", start + fact(3, `,"expires_at_us":-1`), "line 4: expires_at_us"},
		{"valid never", start + fact(3, `,"valid_from_us":5,"valid_to_us":5`), "line 4: valid_to_us"},
		{"validity of an episode", start + point("episode", 3, `,"description":"d","valid_from_us":5`), "line 4: has a field"},
		{"an episode of two times", start + point("episode", 3, `,"description":"d","at_us":5,"created_at_us":4,"updated_at_us":9`), "line 4: at_us"},
		{"no name", start + swap(procedure(3, ""), `"name":"SECRET",`, ""), "line 4: name"},
		{"no steps", start + swap(procedure(3, ""), `,"steps":["SECRET"]`, ""), "line 4: steps"},
		{"a blank step", start + swap(procedure(3, ""), `["SECRET"]`, `["SECRET"," "]`), "line 4: steps[1]"},
		{"too many steps", start + swap(procedure(3, ""), `["SECRET"]`, `["s"`+strings.Repeat(`,"s"`, maxSteps)+`]`), "line 4: steps"},
		{"too long steps", start + swap(procedure(3, ""), `["SECRET"]`, `["`+strings.Repeat("x", MaxTextBytes)+`","x"]`), "line 4: steps"},
		{"too sure", start + procedure(3, `,"confidence":1.1`), "line 4: confidence"},
		{"more successes than uses", start + procedure(3, `,"uses":1,"successes":2`), "line 4: successes"},

		{"version of nothing", start + version(3, 1, text), "line 4: point_version"},
		{"version of another point", start + fact(3, "") + fact(4, `,"version":2`) + version(3, 1, text), "line 6: point_version"},
		{"version behind another record", start + fact(3, `,"version":2`) + `{"kind":"memory","id":4,"judgment":"j"}` + "\n" + version(3, 1, text), "line 6: point_version"},
		{"version above", start + fact(3, "") + version(3, 1, text), "line 5: version"},
		{"version below 1", start + fact(3, `,"version":2`) + version(3, 0, text), "line 5: version"},
		{"version twice", start + fact(3, `,"version":3`) + version(3, 2, text) + version(3, 2, text), "line 6: version"},
		{"version believed backwards", start + fact(3, `,"version":3`) + version(3, 1, text+`,"recorded_at_us":5,"recorded_to_us":4`), "line 5: recorded_to_us"},
		{"versions that overlap", start + fact(3, `,"version":3`) + version(3, 1, text+`,"recorded_to_us":5`) + version(3, 2, text+`,"recorded_at_us":4,"recorded_to_us":6`), "line 6: recorded_at_us"},
		{"version believed too long", start + fact(3, `,"version":3`) + version(3, 1, text+`,"recorded_to_us":21`), "line 5: recorded_to_us"},
		{"version valid never", start + fact(3, `,"version":3`) + version(3, 1, text+`,"valid_from_us":5,"valid_to_us":5`), "line 5: valid_to_us"},
		{"version with hidden metadata", start + fact(3, `,"version":3`) + version(3, 1, text+`,"metadata":{"_loci_":1}`), "line 5: metadata"},
		{"version without text", start + fact(3, `,"version":3`) + version(3, 1, ""), "line 5: name"},
		{"version of two kinds", start + fact(3, `,"version":3`) + version(3, 1, text+`,"name":"n"`), "line 5: content"},
		{"version of another kind", start + fact(3, `,"version":3`) + version(3, 1, `,"name":"n","steps":["s"]`), "line 5: content"},
		{"version of a procedure with content", start + procedure(3, `,"version":3`) + version(3, 1, text), "line 5: content"},
		{"validity of a procedure", start + procedure(3, `,"version":3`) + version(3, 1, `,"name":"n","steps":["s"],"valid_to_us":1`), "line 5: valid_from_us"},

		{"edge without id", start + fact(3, "") + edge("0", 3, 3, ""), "line 5: point_edge"},
		{"edge from nothing", start + fact(3, "") + edge("1", 9, 3, ""), "line 5: from"},
		{"edge to nothing", start + fact(3, "") + edge("1", 3, 0, ""), "line 5: to"},
		{"edge to a memory", start + fact(3, "") + `{"kind":"memory","id":4,"judgment":"j"}` + "\n" + edge("1", 3, 4, ""), "line 6: to"},
		{"edge to another memory", start + swap(swap(memory, `"2"`, `"3"`), `"s"`, `"t"`) + fact(4, "") + swap(fact(5, ""), `"s"`, `"t"`) + edge("1", 4, 5, ""), "line 7: to"},
		{"edge without type", start + fact(3, "") + swap(edge("1", 3, 3, ""), "SECRET", " "), "line 5: rel_type"},
		{"edge with wrong properties", start + fact(3, "") + edge("1", 3, 3, `,"properties":["SECRET"]`), "line 5: properties"},
		{"edge with a record's id", start + fact(3, "") + edge("1", 3, 3, `,"id":3`), "line 5: id"},
		{"edge with id 0", start + fact(3, "") + edge("1", 3, 3, `,"id":0`), "line 5: id"},
		{"edge key twice", start + fact(3, "") + fact(4, "") + edge("1", 3, 3, "") + edge("1", 3, 4, ""), "line 7: point_edge"},
		{"edge triple twice", start + fact(3, "") + edge("1", 3, 3, "") + edge("2", 3, 3, ""), "line 6: point_edge"},
		{"edge before the last record", start + fact(3, "") + edge("1", 3, 3, "") + fact(4, ""), "line 6: kind"},
		{"cut short", `{"format":"loci-export","version":4,"agents":{"memories":1,"versions":0,"edges":1}}` + "\n" + start + fact(3, ""), "cut short"},
		{"cut short by counts", `{"format":"loci-export","version":4,"counts":{"fact":1}}` + "\n" + start + fact(3, ""), "agents: the file ends"},
		{"counts below nothing", `{"format":"loci-export","version":4,"agents":{"memories":-1}}`, "line 1: agents"},
	} {
		text := c.text
		if !strings.HasPrefix(text, `{"format"`) {
			text = header + text
		}
		db := openReal(t, t.TempDir())
		_, err := db.Import(t.Context(), strings.NewReader(text), nil)
		if CodeOf(err) != ErrValidation && CodeOf(err) != ErrConflict || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, want %q", c.name, err, c.says)
		}
		if s := stateOf(t, db); s != (dbState{}) {
			t.Errorf("%s: %+v", c.name, s)
		}
		db.Close()
	}
	// The same lines, as they should be.
	good := header + start + fact(3, `,"version":3,"valid_to_us":0`) + version(3, 1, text+`,"recorded_at_us":4,"recorded_to_us":5`) + version(3, 2, text+`,"recorded_at_us":5,"recorded_to_us":20`) +
		`{"vector":"3","space":"v","fingerprint":"0000000000000000","value":"AACAPwAAAEA="}` + "\n" + procedure(4, `,"version":2,"uses":2,"successes":2,"confidence":0`) +
		version(4, 1, `,"name":"n","steps":["s"]`) + edge("1", 3, 4, `,"id":30`) + edge(`"18446744073709551615"`, 4, 4, "")
	db, report := imported(t, good, nil)
	if report.PointVersions != 3 || report.PointEdges != 2 || report.Vectors != 1 || report.VectorsSkipped != 0 {
		t.Errorf("%+v", report)
	}
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" {
		t.Errorf("%+v", h)
	}
}

// TestImportAgentsCutAnywhere ends a file of agent memory behind every line but the
// last: it is cut short, and nothing of it is taken.
func TestImportAgentsCutAnywhere(t *testing.T) {
	_, text := agentStore(t)
	lines := strings.SplitAfter(strings.TrimSpace(text), "\n")
	db := openReal(t, t.TempDir())
	for n := 1; n < len(lines); n++ {
		if strings.HasPrefix(lines[n], `{"vector"`) {
			continue // vectors may be left out: another line is missing then anyway, or none
		}
		_, err := db.Import(t.Context(), strings.NewReader(strings.Join(lines[:n], "")), nil)
		if e := wantCode(t, err, ErrValidation); !strings.Contains(e.Message, "cut short") {
			t.Errorf("%d lines: %v", n, e)
		}
	}
	if s := stateOf(t, db); s != (dbState{}) {
		t.Errorf("%+v", s)
	}
}
