package loci

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/testkit/fakeembed"
)

// vectorLibrary is a store with two spaces, of which one is not complete.
func vectorLibrary(t testing.TB) *DB {
	t.Helper()
	db := quietDB(t)
	s := db.Embeddings()
	bind(t, db, "v", fakeembed.New(8), nil)
	must[*Receipt[EmbeddingSpace]](t)(s.RegisterSpace(t.Context(), EmbeddingSpace{ID: "w", Model: "fake", Dimension: 3, Encoding: EncodingF32}))
	if err := s.RegisterEmbedder(t.Context(), "w", fakeembed.New(3), nil); err != nil {
		t.Fatal(err)
	}
	setTier(t, db, TierNotes, true)
	must[*Receipt[bool]](t)(s.SetNamespaceVectorization(t.Context(), "silent", false))
	must[*Receipt[string]](t)(s.SetDefaultSpace(t.Context(), DefaultNamespace, "w"))
	addMemories(t, db, 3)
	must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{
		Entities:  []EntityInput{{Ref: "a", Name: "Ada"}, {Ref: "b", Name: "Babbage"}},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "a"}, Predicate: "knows", Object: EntityRef{Ref: "b"}}},
	}))
	putNote(t, db, "a.md", "A line of text.\n")
	syncSpace(t, db, "v", 32)
	syncSpace(t, db, "w", 32)
	addMemory(t, db, MemoryInput{Judgment: "not embedded yet"})
	return db
}

// TestTransferVectors takes vectors through a file and back, to the letter.
func TestTransferVectors(t *testing.T) {
	db := vectorLibrary(t)
	header, body := exported(t, db, nil)
	text := header + "\n" + body
	if n := strings.Count(body, `{"vector":"`); n != 14 {
		t.Errorf("%d vectors", n)
	}
	again, report := imported(t, text, nil)
	if report.Vectors != 14 || report.VectorsSkipped != 0 || !report.Kept {
		t.Errorf("%+v", report)
	}
	if _, second := exported(t, again, nil); second != body {
		t.Errorf("not the same again:\n%s\n%s", body, second)
	}
	for _, space := range []string{"v", "w"} {
		if a, b := vectorsIn(t, db, space), vectorsIn(t, again, space); !slices.Equal(a, b) || len(a) != 7 {
			t.Errorf("%s: %v and %v", space, a, b)
		}
	}
	if h := must[*HealthReport](t)(again.DeepHealth(t.Context())); h.Integrity != "ok" || h.Vectors != 14 {
		t.Errorf("%+v", h)
	}
	if got := must[string](t)(again.Embeddings().DefaultSpace(t.Context(), DefaultNamespace)); got != "w" {
		t.Error(got)
	}
	if must[bool](t)(again.Embeddings().NamespaceVectorization(t.Context(), "silent")) {
		t.Error("the silent namespace speaks")
	}
	// What came is not computed again, and another model is found out.
	drifted := fakeembed.New(8)
	drifted.Drift = 1
	wantCode(t, again.Embeddings().RegisterEmbedder(t.Context(), "v", drifted, nil), ErrConflict)
	plain := strings.Count(body, "\n")
	if _, without := exported(t, db, &ExportOptions{NoVectors: true}); strings.Count(without, "\n") != plain-14 {
		t.Error(without)
	}
}

// TestImportVectorsRemapped brings vectors into a store in use: they follow their
// records to new ids, and those of a space that is another one there stay out.
func TestImportVectorsRemapped(t *testing.T) {
	db := vectorLibrary(t)
	header, body := exported(t, db, nil)
	other := quietDB(t)
	addMemory(t, other, MemoryInput{Judgment: "its own"})
	registerSpace(t, other, "v", 5)
	m := fakeembed.New(3)
	report, err := other.Import(t.Context(), strings.NewReader(header+"\n"+body), nil)
	if err != nil {
		t.Fatal(err)
	}
	if report.Vectors != 7 || report.VectorsSkipped != 7 || report.SettingsKept != 1 {
		t.Errorf("%+v", report)
	}
	var want []int64
	for _, id := range vectorsIn(t, db, "w") {
		want = append(want, int64(report.IDs[ID(id)]))
	}
	if got := vectorsIn(t, other, "w"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if err := other.Embeddings().RegisterEmbedder(t.Context(), "w", m, nil); err != nil {
		t.Fatal(err)
	}
	m.Forget()
	// The two memories that have none yet.
	if got := syncSpace(t, other, "w", 32); got.Embedded != 2 {
		t.Errorf("%+v", got)
	}
	// A vector of a text that changes goes, so its fingerprint came along.
	first := report.IDs[1]
	addMemory(t, other, MemoryInput{RecordInput: RecordInput{ID: first, Tags: []string{"x"}}, Judgment: "memory number0 of many"})
	if !slices.Contains(vectorsIn(t, other, "w"), int64(first)) {
		t.Error("a vector went although its text stayed")
	}
	addMemory(t, other, MemoryInput{RecordInput: RecordInput{ID: first}, Judgment: "changed"})
	if slices.Contains(vectorsIn(t, other, "w"), int64(first)) {
		t.Error("a vector stayed although its text changed")
	}
}

func TestImportVectorsRefuses(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, and much to do")
	}
	const header = `{"format":"loci-export","version":2,"revision":9}` + "\n"
	const space = `{"setting":"embedding_space","space":"v","model":"m","dimension":1,"encoding":"f32"}` + "\n"
	const memory = `{"kind":"memory","id":"3","judgment":"a"}` + "\n"
	const vector = `{"vector":"3","space":"v","fingerprint":"00000000000000ff","value":"AACAPw=="}` + "\n"
	line := func(s, old, new string) string { return strings.Replace(s, old, new, 1) }
	for _, c := range []struct{ name, text, says string }{
		{"no space", header + memory + vector, "line 3: space"},
		{"no record", header + space + vector, "line 3: vector"},
		{"another record", header + space + memory + line(vector, `"3"`, `"4"`), "line 4: vector"},
		{"before its record", header + space + vector + memory, "line 3: vector"},
		{"twice", header + space + memory + vector + vector, "line 5: space"},
		{"dimension", header + line(space, `"dimension":1`, `"dimension":2`) + memory + vector, "line 4: value"},
		{"no dimension", header + line(space, `"dimension":1,`, ``), "line 2: dimension"},
		{"encoding", header + line(space, `f32`, `f8`), "line 2: encoding"},
		{"blank space", header + line(space, `"v"`, `" "`), "line 2: space"},
		{"two spaces", header + space + space, "line 3: space"},
		{"probe", header + line(space, `"encoding"`, `"probe":"AAAA","encoding"`), "line 2: probe"},
		{"zero", header + space + memory + line(vector, "AACAPw==", "AAAAAA=="), "line 4: value"},
		{"not a number", header + space + memory + line(vector, "AACAPw==", "AADAfw=="), "line 4: value"},
		{"three bytes", header + space + memory + line(vector, "AACAPw==", "AAAA"), "line 4: value"},
		{"fingerprint", header + space + memory + line(vector, "ff\"", "FF\""), "line 4: fingerprint"},
		{"tier", header + `{"setting":"vectorization","namespace":"n","tier":"all","enabled":true}`, "line 2: tier"},
		{"enabled", header + `{"setting":"vectorization","namespace":"n","tier":"notes"}`, "line 2: enabled"},
		{"default", header + `{"setting":"default_space","namespace":"n"}`, "line 2: space"},
		{"unknown field", header + space + memory + line(vector, `"space"`, `"SPACE2":1,"space"`), "line 4"},
	} {
		db := quietDB(t)
		before := stateOf(t, db)
		_, err := db.Import(t.Context(), strings.NewReader(c.text), nil)
		if err == nil || CodeOf(err) != ErrValidation || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if stateOf(t, db) != before {
			t.Errorf("%s: something was written", c.name)
		}
	}
	vouched := line(vector, "00000000000000ff", hexadecimal(fingerprintOf("a")))
	db, report := imported(t, header+space+memory+vouched, nil)
	if report.Vectors != 1 || report.VectorsSkipped != 0 || fmt.Sprint(vectorsIn(t, db, "v")) != "[3]" {
		t.Errorf("%+v", report)
	}
	// The vector of another text stays out, and is no error.
	db, report = imported(t, header+space+memory+vector, nil)
	if report.Vectors != 0 || report.VectorsSkipped != 1 || len(vectorsIn(t, db, "v")) != 0 {
		t.Errorf("%+v", report)
	}
}

// TestImportVectorsOfEditedTexts edits texts in a file and leaves the vectors as
// they are: those do not come, also where a text is that of a record which comes
// later in the file.
func TestImportVectorsOfEditedTexts(t *testing.T) {
	db := quietDB(t)
	bind(t, db, "v", fakeembed.New(8), nil)
	first := must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{
		Entities:  []EntityInput{{Ref: "a", Name: "Ada"}, {Ref: "b", Name: "Babbage"}},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "a"}, Predicate: "knows", Object: EntityRef{Ref: "b"}}},
	})).Value
	// The relation turns to an entity that is younger than it.
	must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), GraphBatch{
		Entities: []EntityInput{{Ref: "c", Name: "Lovelace"}},
		Relations: []RelationInput{{RecordInput: RecordInput{ID: first.Relations[0].ID},
			Subject: EntityRef{Ref: "c"}, Predicate: "knows", Object: EntityRef{ID: first.Entities[1].ID}}},
	}))
	addMemories(t, db, 2)
	if got := syncSpace(t, db, "v", 32); got.Embedded != 6 {
		t.Fatalf("%+v", got)
	}
	header, body := exported(t, db, nil)
	for _, c := range []struct {
		name, old, new  string
		vectors, others int64
	}{
		{"as it was", "", "", 6, 0},
		{"a memory", "number1", "number7", 5, 1},
		{"an entity with its relation", `"name":"Lovelace"`, `"name":"Somebody"`, 4, 2},
	} {
		for _, opts := range []*ImportOptions{nil, {Remap: true}} {
			again, report := imported(t, header+"\n"+strings.Replace(body, c.old, c.new, 1), opts)
			if report.Vectors != c.vectors || report.VectorsSkipped != c.others || int64(len(vectorsIn(t, again, "v"))) != c.vectors {
				t.Errorf("%s: %+v", c.name, report)
			}
		}
	}
}

// TestRestoreVectors takes vectors through a snapshot: the model is not called
// again.
func TestRestoreVectors(t *testing.T) {
	db := vectorLibrary(t)
	target := t.TempDir() + "/snapshot"
	must[*BackupReport](t)(db.Backup(t.Context(), target))
	made := must[*DB](t)(Restore(t.Context(), target, t.TempDir()+"/new", &Options{NoBackgroundEmbedding: true}))
	defer made.Close()
	m := fakeembed.New(8)
	if err := made.Embeddings().RegisterEmbedder(t.Context(), "v", m, nil); err != nil {
		t.Fatal(err)
	}
	m.Forget()
	if got := syncSpace(t, made, "v", 32); got.Embedded != 1 || len(m.Calls()) != 1 {
		t.Errorf("%+v", got)
	}
	if got := vectorsIn(t, made, "w"); len(got) != 7 {
		t.Error(got)
	}
}

// TestRebuildVectors builds the index anew: the vectors come from the truth.
func TestRebuildVectors(t *testing.T) {
	db := vectorLibrary(t)
	want := nearest(t, db, "v", "memory number1 of many", KindMemory, KindEntity)
	must[*HealthReport](t)(db.RebuildIndexes(t.Context()))
	if got := nearest(t, db, "v", "memory number1 of many", KindMemory, KindEntity); fmt.Sprint(got) != fmt.Sprint(want) || len(got) == 0 {
		t.Errorf("%v, was %v", got, want)
	}
	for _, space := range []string{"v", "w"} {
		if got := vectorsIn(t, db, space); len(got) != 7 {
			t.Error(space, got)
		}
	}
}
