package loci

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/store/faultvfs"
	"github.com/loci-memory/loci/internal/testkit/crash"
	"pgregory.net/rapid"
)

// childTransfer backs up, restores or imports again and again, to a new name
// each time, and says before and after each time. It never ends.
func childTransfer(t *testing.T, role, from, folder string) {
	ctx := context.Background()
	var db *DB
	if role == "backup" {
		db = must[*DB](t)(Open(ctx, from, &Options{WaitForIndex: true}))
	}
	for n := 1; ; n++ {
		to := filepath.Join(folder, fmt.Sprint(n))
		crash.Say("begin %d", n)
		var err error
		switch role {
		case "backup":
			_, err = db.Backup(ctx, to)
		case "restore":
			var made *DB
			if made, err = Restore(ctx, from, to, nil); err == nil {
				err = made.Close()
			}
		case "import":
			var made *DB
			if made, err = Open(ctx, to, nil); err == nil {
				var f *os.File
				if f, err = os.Open(from); err == nil {
					_, err = made.Import(ctx, f, nil)
				}
				if err == nil {
					crash.Say("done %d", n)
					err = made.Close()
				}
			}
		}
		if err != nil {
			crash.Say("failed: %v", err)
			os.Exit(1)
		}
		crash.Say("done %d", n)
	}
}

// TestKillTransfer kills processes that back up, restore or import: what has a
// name is whole, and an import is there in full or not at all.
func TestKillTransfer(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a killed child's files stay open for a while on Windows")
	}
	const records = 400
	source := openReal(t, t.TempDir())
	ins := make([]MemoryInput, records)
	for i := range ins {
		ins[i] = MemoryInput{Judgment: fmt.Sprint("memory ", i), RecordInput: RecordInput{Tags: []string{"t"}}}
	}
	must[*Receipt[[]Memory]](t)(source.Memories().UpsertMany(t.Context(), ins))
	files := t.TempDir()
	snapshot, lines := filepath.Join(files, "snapshot"), filepath.Join(files, "lines")
	must[*BackupReport](t)(source.Backup(t.Context(), snapshot))
	header, body := exported(t, source, nil)
	if err := os.WriteFile(lines, []byte(header+"\n"+body), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	whole := func(db *DB) {
		t.Helper()
		defer db.Close()
		h := must[*HealthReport](t)(db.DeepHealth(t.Context()))
		if h.RecordCount != records || h.Integrity != "ok" || h.IndexedDocuments != records || h.PendingIndexUpdates != 0 {
			t.Errorf("%+v", h)
		}
	}
	random := rand.New(rand.NewPCG(3, 1))
	rounds := 12
	if testing.Short() {
		rounds = 3
	}
	for role, from := range map[string]string{"backup": source.Directory(), "restore": snapshot, "import": lines} {
		done, half := 0, 0
		for range rounds {
			folder := t.TempDir()
			child, err := crash.Start("TestCrashChild", role, from, folder)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := child.First(); !ok {
				_, _, output := child.Wait()
				t.Fatalf("%s: the child said nothing: %s", role, output)
			}
			// The moment is what this test varies; nothing depends on which it is.
			time.Sleep(time.Duration(random.IntN(120_000)) * time.Microsecond)
			child.Kill()
			said, ended, output := child.Wait()
			if ended || strings.HasPrefix(said[len(said)-1], "failed") {
				t.Fatalf("%s: %q %s", role, said, output)
			}
			finished := map[string]bool{}
			for _, line := range said {
				if n, ok := strings.CutPrefix(line, "done "); ok {
					finished[n] = true
				}
			}
			done += len(finished)
			entries := must[[]os.DirEntry](t)(os.ReadDir(folder))
			for _, entry := range entries {
				name := entry.Name()
				path := filepath.Join(folder, name)
				switch {
				case strings.HasPrefix(name, store.PartialPrefix):
					half++
				case role == "backup":
					whole(must[*DB](t)(Restore(t.Context(), path, path+" restored", nil)))
				case role == "restore":
					whole(must[*DB](t)(Open(t.Context(), path, &Options{WaitForIndex: true})))
				default:
					db := must[*DB](t)(Open(t.Context(), path, &Options{WaitForIndex: true}))
					if s := stateOf(t, db); !finished[name] && s.records == 0 && s.revision == 0 {
						half++
						db.Close()
						continue
					}
					whole(db)
				}
				delete(finished, name)
			}
			if len(finished) > 0 {
				t.Errorf("%s: acknowledged and not there: %v", role, finished)
			}
		}
		t.Logf("%s: %d done, %d were killed half-way", role, done, half)
	}
}

// TestTransferProperty takes stores after random histories through a file, and
// through a snapshot, and holds that they are the same to the letter.
func TestTransferProperty(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, and much to do")
	}
	words := rapid.SampledFrom([]string{"a", "b", "灯塔", "Tide", "é\u0301", "x<y&z", "line\nbreak", "\u2028", "\\u0041"})
	rapid.Check(t, func(rt *rapid.T) {
		folder, err := os.MkdirTemp(t.TempDir(), "p")
		if err != nil {
			rt.Fatal(err)
		}
		db, err := Open(t.Context(), filepath.Join(folder, "a"), &Options{WaitForIndex: true})
		if err != nil {
			rt.Fatal(err)
		}
		defer db.Close()
		g := db.Graph()
		for range rapid.IntRange(0, 25).Draw(rt, "steps") {
			record := RecordInput{Tags: rapid.SliceOfN(words, 0, 3).Draw(rt, "tags")}
			if rapid.Bool().Draw(rt, "placed") {
				record.Namespace, record.Scope = new(rapid.SampledFrom([]string{"n1", "n2"}).Draw(rt, "n")), new(rapid.SampledFrom([]string{"s1", "s2"}).Draw(rt, "s"))
			}
			if rapid.Bool().Draw(rt, "threaded") {
				record.Thread, record.Position = new("t"), new(rapid.Int64Range(-3, 3).Draw(rt, "position"))
			}
			if rapid.Bool().Draw(rt, "more") {
				record.Metadata = Metadata(rapid.SampledFrom([]string{`{"a" : 1.0}`, `{"b":[1e400,-0,"<>"],"a":{}}`, "{\n}", `{"\u0041":"\ud83d\ude00"}`}).Draw(rt, "metadata"))
				record.Evidence = []Evidence{{Source: words.Draw(rt, "source"), Quote: words.Draw(rt, "quote"), ChunkID: new(ID(3))}}
				record.CreatedAtUS = new(rapid.Int64Range(-5, 5).Draw(rt, "created"))
			}
			id := ID(rapid.IntRange(1, 20).Draw(rt, "id"))
			switch rapid.IntRange(0, 7).Draw(rt, "step") {
			case 0, 1:
				_, err = db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: record, Judgment: words.Draw(rt, "judgment") + "!", Reasoning: words.Draw(rt, "reasoning"),
					State: &MemoryState{Strength: rapid.Float64Range(0, 1e300).Draw(rt, "strength"), UsefulScore: rapid.SampledFrom([]float64{0, 0.1, 5e-324, 1e21}).Draw(rt, "score")}})
			case 2:
				record.ID = id
				_, err = db.Memories().Upsert(t.Context(), MemoryInput{RecordInput: record, Judgment: words.Draw(rt, "judgment")})
			case 3:
				_, err = db.Memories().Delete(t.Context(), id, ReadFilter{})
			case 4, 5:
				other := record
				other.Thread, other.Position = nil, nil
				_, err = g.ApplyBatch(t.Context(), GraphBatch{
					Entities:  []EntityInput{{RecordInput: record, Ref: "a", Match: rapid.SampledFrom([]string{"", MatchByName}).Draw(rt, "match"), Name: strings.TrimSpace(strings.ReplaceAll(strings.ReplaceAll(words.Draw(rt, "name"), "\n", ""), "\u2028", "")) + "x", Aliases: []string{words.Draw(rt, "alias")}, Attributes: map[string][]string{"k": {words.Draw(rt, "value")}}}},
					Relations: []RelationInput{{RecordInput: other, Subject: EntityRef{Ref: "a"}, Predicate: rapid.SampledFrom([]string{"p", "P", "q"}).Draw(rt, "predicate"), Object: EntityRef{Ref: "a"}}},
					Events:    []EventInput{{RecordInput: other, Name: "e", Participants: []EntityRef{{Ref: "a"}}}},
				})
			case 6:
				_, err = g.SetPredicateEquivalents(t.Context(), "n1", [][]string{{rapid.SampledFrom([]string{"w1", "w2", "w3"}).Draw(rt, "w"), rapid.SampledFrom([]string{"w3", "w4", "w5"}).Draw(rt, "w")}})
			case 7:
				_, err = g.SetPredicateRule(t.Context(), PredicateRule{Namespace: rapid.SampledFrom([]string{"", "n1"}).Draw(rt, "n"), Predicate: "p", Symmetric: rapid.Bool().Draw(rt, "symmetric")})
			}
			if code := CodeOf(err); err != nil && code != ErrConflict && code != ErrNotFound && code != ErrValidation {
				rt.Fatal(err)
			}
		}
		write := func(db *DB) (header, body string) {
			var b strings.Builder
			if _, err := db.Export(t.Context(), &b, nil); err != nil {
				rt.Fatal(err)
			}
			header, body, _ = strings.Cut(b.String(), "\n")
			return header, body
		}
		header, body := write(db)
		same := func(how string, made *DB) {
			defer made.Close()
			if _, again := write(made); again != body {
				rt.Fatalf("%s:\n%s\nwas\n%s", how, again, body)
			}
			h, err := made.DeepHealth(t.Context())
			if err != nil || h.Integrity != "ok" || h.ForeignKeyErrors != 0 || h.Revision != db.eng.store.Counters().Revision || !h.IndexUsable || h.PendingIndexUpdates != 0 {
				rt.Fatalf("%s: %+v, %v", how, h, err)
			}
		}
		made, err := Open(t.Context(), filepath.Join(folder, "b"), nil)
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := made.Import(t.Context(), strings.NewReader(header+"\n"+body), nil); err != nil {
			made.Close()
			rt.Fatalf("%v\n%s\n%s", err, header, body)
		}
		same("import", made)
		if _, err := db.Backup(t.Context(), filepath.Join(folder, "snapshot")); err != nil {
			rt.Fatal(err)
		}
		if made, err = Restore(t.Context(), filepath.Join(folder, "snapshot"), filepath.Join(folder, "c"), nil); err != nil {
			rt.Fatal(err)
		}
		same("restore", made)
	})
}

// TestImportBesideWriters imports while others write, search, export, back up
// and rebuild: all of it is there afterwards, and the index answers as one that
// was built anew.
func TestImportBesideWriters(t *testing.T) {
	source := openReal(t, t.TempDir())
	ins := make([]MemoryInput, 3000)
	for i := range ins {
		ins[i] = MemoryInput{Judgment: fmt.Sprint("brought ", i%7, " in ", i), RecordInput: RecordInput{Tags: []string{"t"}}}
	}
	must[*Receipt[[]Memory]](t)(source.Memories().UpsertMany(t.Context(), ins))
	header, body := exported(t, source, nil)
	db := openReal(t, t.TempDir())
	remember(t, db, "here before")
	var stop atomic.Bool
	var written atomic.Int64
	var others sync.WaitGroup
	for w := range 2 {
		others.Go(func() {
			for i := 0; !stop.Load(); i++ {
				if _, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: fmt.Sprint("written by ", w, " as ", i)}); err != nil {
					t.Error(err)
					return
				}
				written.Add(1)
			}
		})
	}
	others.Go(func() {
		for !stop.Load() {
			res, err := db.Search(t.Context(), SearchRequest{Query: "here before"})
			if err != nil || len(res.Hits) == 0 && len(res.Diagnostics.Degraded) == 0 {
				t.Errorf("%+v, %v", res, err)
				return
			}
		}
	})
	others.Go(func() {
		for i := 0; !stop.Load(); i++ {
			if _, err := db.RebuildIndexes(t.Context()); err != nil {
				t.Error(err)
				return
			}
		}
	})
	const rounds = 3
	for round := range rounds {
		report, err := db.Import(t.Context(), strings.NewReader(header+"\n"+body), nil)
		if err != nil || len(report.IDs) != len(ins) {
			t.Fatalf("round %d: %v", round, err)
		}
		if res := search(t, db, SearchRequest{Query: "brought 3", WithTotal: true}); len(res.Diagnostics.Degraded) == 0 && *res.Total < int64((round+1)*len(ins)/7) {
			t.Errorf("round %d: %d are found", round, *res.Total)
		}
	}
	stop.Store(true)
	others.Wait()
	must[*HealthReport](t)(db.UpdateIndex(t.Context()))
	h := must[*HealthReport](t)(db.DeepHealth(t.Context()))
	if h.RecordCount != int64(rounds*len(ins))+written.Load()+1 || h.IndexedDocuments != h.RecordCount || h.PendingIndexUpdates != 0 || h.Integrity != "ok" {
		t.Errorf("%+v, %d written", h, written.Load())
	}
	reqs := []SearchRequest{{Query: "brought 3", Limit: new(100)}, {Query: "written"}, {Query: "here before in 17"}}
	got := answersOf(t, db, reqs)
	rebuild(t, db)
	wantAnswers(t, db, reqs, got)
}

// TestImportEveryFailure lets operation N of the file system fail during an
// import, for every N: all of it is there afterwards or nothing, also for those
// that write meanwhile, and the store opens again.
func TestImportEveryFailure(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, and much to do")
	}
	header, body := exported(t, mixed(t), nil)
	for _, c := range []struct {
		name   string
		ops    faultvfs.Op
		err    error
		goesOn bool
	}{{"once", faultvfs.Any, faultvfs.ErrIO, false}, {"disk full", faultvfs.Write | faultvfs.Truncate, faultvfs.ErrDiskFull, true}} {
		fs := faultvfs.Register("import-" + c.name)
		for n := int64(1); ; n++ {
			dir := t.TempDir()
			opts := &Options{WaitForIndex: true, store: store.Options{VFS: fs.Name()}}
			db := must[*DB](t)(Open(t.Context(), dir, opts))
			fs.FailAt(n, c.ops, c.err, c.goesOn)
			_, err := db.Import(t.Context(), strings.NewReader(header+"\n"+body), nil)
			failed := fs.Failed()
			fs.FailAt(0, 0, nil, false)
			if err != nil && CodeOf(err) != ErrIO && CodeOf(err) != ErrStorage {
				t.Errorf("%s, operation %d: %v", c.name, n, err)
			}
			if err != nil {
				remember(t, db, "written after the failure")
			}
			must[*HealthReport](t)(db.UpdateIndex(t.Context()))
			if err := db.Close(); err != nil {
				t.Errorf("%s, operation %d: %v", c.name, n, err)
			}
			db = openReal(t, dir)
			_, again := exported(t, db, nil)
			h := must[*HealthReport](t)(db.DeepHealth(t.Context()))
			if err == nil && again != body || err != nil && h.RecordCount != 1 || h.Integrity != "ok" || h.PendingIndexUpdates != 0 {
				t.Errorf("%s, operation %d: %v, %+v", c.name, n, err, h)
			}
			db.Close()
			if !failed {
				t.Logf("%s: %d places to fail", c.name, n)
				break
			}
		}
		fs.Close()
	}
}

// FuzzImportLine holds that any line is decoded or refused with a code, and that
// what was decoded survives another round to the letter.
func FuzzImportLine(f *testing.F) {
	header, body := exported(f, mixed(f), nil)
	for _, line := range strings.Split(header+"\n"+body, "\n") {
		f.Add([]byte(line))
	}
	for _, line := range []string{"", "{", "null", `{"kind":1}`, `{"kind":"memory","id":"1","judgment":"\ud800"}`, `{"setting":"note_root"}`, "\xff",
		`{"setting":"embedding_space","space":"v","model":"m","dimension":1,"encoding":"f32","probe":"AACAPw=="}`, `{"setting":"vectorization","namespace":"n","enabled":false}`,
		`{"setting":"default_space","namespace":"n","space":"v"}`, `{"vector":"3","space":"v","fingerprint":"00000000000000ff","value":"AACAPw=="}`,
		`{"setting":"context_policy","namespace":"n","policy":{"mode":"turns"}}`, `{"context":"2","namespace":"n","scope":"[\"n\",\"s\"]","version":1,"state":{ "a":1},"published":""}`,
		`{"log":"2","type":"usage","number":3,"body":{"x":" "},"key":"k"}`, `{"page_revision":"3","version":1,"content":"c","tags":["B","a"],"links":["4"]}`,
		`{"kind":"page","id":"3","context":"2","page_id":"memory:4","content":"c","origin":{"kind":"memory","id":"4"},"version":7}`,
		`{"checkpoint":"9","context":"2","pages":[{"id":"3","version":1,"tier":"core","seq":2,"outline":true},{"id":"4","version":1}]}`,
		`{"agent_memory":"2","namespace":"n","scope":"s","dimension":2,"space":"v","policy":{ "keep_versions":3}}`, `{"point_edge":"9","from":3,"rel_type":"t","to":"4","properties":{}}`,
		`{"kind":"fact","id":"3","point_id":18446744073709551615,"content":"","valid_from_us":-1,"valid_to_us":0,"expires_at_us":9}`,
		`{"kind":"episode","id":"3","point_id":"0","at_us":5,"description":"d"}`, `{"kind":"procedure","id":"3","point_id":0,"name":"n","steps":["<a>","b"],"uses":1}`,
		`{"point_version":"3","version":1,"content":"","metadata":{"a":1}}`, `{"point_version":"3","version":1,"name":"n","steps":["s"]}`} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		line, err := parseLine(text, 7)
		if err != nil {
			if code := CodeOf(err); code != ErrValidation && code != ErrSchemaVersion {
				t.Fatalf("%v", err)
			}
			return
		}
		encode := func(line importLine) []byte {
			var v any
			switch {
			case line.record != nil:
				v = lineOf(line.record)
			case line.context != nil:
				c := line.context
				out := contextLine{Context: ID(c.ID), Namespace: c.Namespace, Scope: c.Scope, Version: c.Version, State: c.State}
				if c.published != nil {
					out.Published = new(string(c.published))
				}
				v = out
			case line.log != nil:
				v = logLineOf(line.log.context, line.log.typ, &line.log.entry)
			case line.revision != nil:
				v = revisionLineOf(line.revision.page, &line.revision.PageRevision)
			case line.checkpoint != nil:
				v = checkpointLineOf(line.checkpoint)
			case line.memory != nil:
				v = agentMemoryLineOf(line.memory)
			case line.version != nil:
				v = pointVersionLineOf(line.version.point, &line.version.PointVersion)
			case line.edge != nil:
				if line.edge.ID == 0 {
					line.edge.ID = 1
				}
				v = pointEdgeLineOf(line.edge)
			default:
				return nil
			}
			var b bytes.Buffer
			if err := jsonLines(&b).Encode(v); err != nil {
				t.Fatal(err)
			}
			return b.Bytes()
		}
		once := encode(line)
		if once == nil {
			return
		}
		again, err := parseLine(once, 8)
		if err != nil {
			t.Fatalf("%v: %s", err, once)
		}
		if twice := encode(again); !bytes.Equal(once, twice) {
			t.Fatalf("%s\n%s", once, twice)
		}
	})
}

// BenchmarkTransfer exports and imports 100,000 memories.
func BenchmarkTransfer(b *testing.B) {
	const records = 100_000
	db := openReal(b, b.TempDir())
	for from := 0; from < records; from += MaxBatch {
		ins := make([]MemoryInput, MaxBatch)
		for i := range ins {
			ins[i] = MemoryInput{
				Judgment:    fmt.Sprintf("Sentence %d is as long as what people note down in one go, about a hundred letters or so.", from+i),
				Reasoning:   "Because it was said in passing and nobody objected at the time.",
				RecordInput: RecordInput{Tags: []string{fmt.Sprint("tag-", i%100), fmt.Sprint("more-", i%1000)}},
			}
		}
		must[*Receipt[[]Memory]](b)(db.Memories().UpsertMany(b.Context(), ins))
	}
	path := filepath.Join(b.TempDir(), "lines")
	export := func() {
		f := must[*os.File](b)(os.Create(path))
		must[*ExportReport](b)(db.Export(b.Context(), f, nil))
		f.Close()
	}
	export()
	b.Run("export", func(b *testing.B) {
		for b.Loop() {
			export()
		}
	})
	for _, dry := range []bool{true, false} {
		b.Run(fmt.Sprintf("import/dry=%v", dry), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				made := must[*DB](b)(Open(b.Context(), filepath.Join(b.TempDir(), "d"), nil))
				f := must[*os.File](b)(os.Open(path))
				b.StartTimer()
				must[*ImportReport](b)(made.Import(b.Context(), f, &ImportOptions{DryRun: dry}))
				b.StopTimer()
				made.Close()
				f.Close()
				os.RemoveAll(made.Directory())
				b.StartTimer()
			}
		})
	}
	b.Run("backup", func(b *testing.B) {
		for i := 0; b.Loop(); i++ {
			must[*BackupReport](b)(db.Backup(b.Context(), filepath.Join(b.TempDir(), fmt.Sprint(i))))
		}
	})
	snapshot := filepath.Join(b.TempDir(), "snapshot")
	must[*BackupReport](b)(db.Backup(b.Context(), snapshot))
	b.Run("restore", func(b *testing.B) {
		for b.Loop() {
			made := must[*DB](b)(Restore(b.Context(), snapshot, filepath.Join(b.TempDir(), "r"), nil))
			made.Close()
			os.RemoveAll(made.Directory())
		}
	})
}

// TestTransferNotes takes notes of real files through a file and a snapshot.
func TestTransferNotes(t *testing.T) {
	db := openReal(t, t.TempDir())
	root := t.TempDir()
	path := filepath.Join(root, "人物", "阿青.md")
	if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("# 阿青\n\n这里有 **蓝鲸** 出没\n\n```go\nmax_retry_count := 1\n```\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	must[*Receipt[string]](t)(db.Notes().SetRoot(t.Context(), DefaultNamespace, root))
	must[*Receipt[Note]](t)(db.Notes().UpsertFile(t.Context(), NoteFileInput{Path: path}))
	header, body := exported(t, db, nil)
	again, _ := imported(t, header+"\n"+body, nil)
	if _, second := exported(t, again, nil); second != body {
		t.Errorf("%s\nwas\n%s", second, body)
	}
	other := openReal(t, t.TempDir())
	remember(t, other, "its own")
	report := must[*ImportReport](t)(other.Import(t.Context(), strings.NewReader(header+"\n"+body), nil))
	for _, made := range []*DB{again, other} {
		for _, q := range []string{"蓝鲸", "max_retry_count"} {
			if res := search(t, made, SearchRequest{Query: q}); len(res.Hits) != 1 {
				t.Errorf("%s: %+v", q, res)
			}
		}
		// A file that did not change is no new revision.
		before := stateOf(t, made).revision
		must[*Receipt[Note]](t)(made.Notes().UpsertFile(t.Context(), NoteFileInput{Path: path}))
		if now := stateOf(t, made).revision; now != before {
			t.Errorf("revision %d, was %d", now, before)
		}
	}
	_, err := other.Import(t.Context(), strings.NewReader(header+"\n"+body), nil)
	if e := wantCode(t, err, ErrConflict); !strings.Contains(e.Message, "path: is that of a note") {
		t.Errorf("%v; %+v", e, report)
	}
}
