package loci

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func erase(t testing.TB, db *DB, req EraseRequest) *EraseReport {
	t.Helper()
	return must[*EraseReport](t)(db.Erase(t.Context(), req))
}

func applyBatch(t testing.TB, db *DB, batch GraphBatch) GraphBatchResult {
	t.Helper()
	return must[*Receipt[GraphBatchResult]](t)(db.Graph().ApplyBatch(t.Context(), batch)).Value
}

// TestEraseSubject holds that a subject goes with its relations and events, wherever
// they lie, and that what mentions it is told of.
func TestEraseSubject(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	batch := applyBatch(t, db, GraphBatch{
		Entities: []EntityInput{{Ref: "ada", Name: "Ada", Aliases: []string{"The Countess"}}, {Ref: "bob", Name: "Bob"}, {Ref: "lamp", Name: "lamp"}},
		Relations: []RelationInput{
			{Subject: EntityRef{Ref: "ada"}, Predicate: "knows", Object: EntityRef{Ref: "bob"}},
			{Subject: EntityRef{Ref: "bob"}, Predicate: "lights", Object: EntityRef{Ref: "lamp"}},
		},
		Events: []EventInput{{Name: "tea", Participants: []EntityRef{{Ref: "ada"}, {Ref: "bob"}}}},
	})
	elsewhere := applyBatch(t, db, GraphBatch{Relations: []RelationInput{{RecordInput: RecordInput{Scope: new("elsewhere")},
		Subject: EntityRef{ID: batch.Entities[1].ID}, Predicate: "met", Object: EntityRef{ID: batch.Entities[0].ID}}}})
	mentions := []ID{
		addMemory(t, db, MemoryInput{Judgment: "What ADA said."}).ID,
		addMemory(t, db, MemoryInput{Judgment: "x", Reasoning: "the countess knows"}).ID,
		addMemory(t, db, MemoryInput{Judgment: "y", RecordInput: RecordInput{Metadata: Metadata(`{"who":["\u0041da"]}`)}}).ID,
		addMemory(t, db, MemoryInput{Judgment: "z", RecordInput: RecordInput{Evidence: []Evidence{{Source: "s", Quote: "Ada, again"}}}}).ID,
	}
	other := addMemory(t, db, MemoryInput{Judgment: "Adamant about adage."})
	req := EraseRequest{Subject: new("the countess")}
	dry := req
	dry.DryRun = true
	before := stateOf(t, db)
	counted := erase(t, db, dry)
	if now := stateOf(t, db); now != before {
		t.Fatalf("a dry run changed %+v to %+v", before, now)
	}
	report := erase(t, db, req)
	if report.Total != 4 || counted.Total != 4 || report.Records[KindEntity] != 1 || report.Records[KindRelation] != 2 || report.Records[KindEvent] != 1 {
		t.Fatalf("%+v, counted %+v", report, counted)
	}
	if !slices.Equal(report.MentionedIDs, mentions) || report.Mentioned[KindMemory] != 4 {
		t.Fatalf("mentioned %v, want %v", report.MentionedIDs, mentions)
	}
	if _, err := db.Graph().Get(t.Context(), KindRelation, elsewhere.Relations[0].ID, scoped("elsewhere")); !isNotFound(err) {
		t.Fatal(err)
	}
	if _, err := db.Graph().Get(t.Context(), KindRelation, batch.Relations[1].ID, ReadFilter{}); err != nil {
		t.Fatal(err)
	}
	// The entity is gone, so its other names are not known any more.
	report = erase(t, db, EraseRequest{Subject: new("ada"), Mentions: []string{"The  Countess"}, EraseMentions: true})
	if report.Total != 4 || len(report.Mentioned) != 0 {
		t.Fatalf("%+v", report)
	}
	if left := listMemories(t, db, ReadFilter{}); len(left) != 1 || left[0].ID != other.ID {
		t.Fatalf("left: %v", left)
	}
	if report = erase(t, db, EraseRequest{Subject: new(fmt.Sprint(batch.Entities[1].ID))}); report.Total != 2 {
		t.Fatalf("by id: %+v", report)
	}
}

func isNotFound(err error) bool { return CodeOf(err) == ErrNotFound }

// TestEraseNotes holds that a chunk takes its note along, and evidence of it goes from
// what stays.
func TestEraseNotes(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	root := t.TempDir()
	for name, text := range map[string]string{"a.md": "# A\n\nAda was here.\n", "b.md": "# B\n\nNobody.\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	must[*Receipt[string]](t)(db.Notes().SetRoot(t.Context(), DefaultNamespace, root))
	must[*Receipt[SyncReport]](t)(db.Notes().SyncDir(t.Context(), DefaultNamespace, SyncOptions{}))
	chunk := func(path string) ID {
		notes := must[*Page[Note]](t)(db.Notes().List(t.Context(), PageRequest{})).Items
		i := slices.IndexFunc(notes, func(n Note) bool { return n.Path == path })
		return must[*Page[Chunk]](t)(db.Notes().Chunks(t.Context(), ChunksRequest{NoteID: notes[i].ID})).Items[0].ID
	}
	a, b := chunk("a.md"), chunk("b.md")
	m := addMemory(t, db, MemoryInput{Judgment: "Somebody was here.", RecordInput: RecordInput{Evidence: []Evidence{
		{Source: "a.md", ChunkID: &a, Quote: "was here"}, {Source: "b.md", ChunkID: &b}, {Source: "hearsay"},
	}}})
	report := erase(t, db, EraseRequest{IDs: []ID{a}, DryRun: true})
	if report.Evidence != 1 || report.Total < 2 {
		t.Fatalf("counted %+v", report)
	}
	report = erase(t, db, EraseRequest{IDs: []ID{a}})
	if report.Evidence != 1 || report.Records[KindNote] != 1 || !slices.Equal(report.NoteFiles, []string{"a.md"}) {
		t.Fatalf("%+v", report)
	}
	if !slices.ContainsFunc(report.NotReached, func(n NotReached) bool { return n.What == UnreachedNoteFiles }) {
		t.Fatal("nothing is said of the file")
	}
	m = getMemory(t, db, m.ID, ReadFilter{})
	if len(m.Evidence) != 2 || m.Evidence[0].Source != "b.md" || m.Evidence[1].Source != "hearsay" {
		t.Fatalf("%+v", m.Evidence)
	}
	// What is left of it goes too, and then the record says that there is none.
	erase(t, db, EraseRequest{IDs: []ID{b}})
	if m = getMemory(t, db, m.ID, ReadFilter{}); len(m.Evidence) != 1 {
		t.Fatalf("%+v", m.Evidence)
	}
	if h := must[*HealthReport](t)(db.DeepHealth(t.Context())); h.Integrity != "ok" {
		t.Fatal(h.Integrity)
	}
}

// TestEraseRefusals are requests that are wrong.
func TestEraseRefusals(t *testing.T) {
	db := openTestDB(t, t.TempDir())
	many := make([]ID, maxEraseIDs+1)
	for i := range many {
		many[i] = ID(i + 1)
	}
	for name, req := range map[string]EraseRequest{
		"scopes twice": {Filter: scoped("a"), EveryScope: true},
		"no scopes":    {Filter: ReadFilter{Scopes: []string{}}},
		"id":           {IDs: []ID{-1}},
		"ids":          {IDs: many},
		"blank":        {Mentions: []string{"\t"}},
		"long":         {Mentions: []string{strings.Repeat("x", MaxNameBytes+1)}},
		"many words":   {Mentions: slices.Repeat([]string{"x"}, maxMentions+1)},
		"nothing":      {EraseMentions: true},
		"subject":      {Subject: new(" x")},
		// What is there and empty comes of a variable that was not set, and must not
		// mean everything.
		"empty subject":  {Subject: new("")},
		"empty ids":      {IDs: []ID{}},
		"empty mentions": {Mentions: []string{}},
		"empty tags":     {Filter: ReadFilter{Tags: []string{}}},
		"empty kinds":    {Filter: ReadFilter{Kinds: []Kind{}}},
		"empty note ids": {Filter: ReadFilter{NoteIDs: []ID{}}},
		"empty where":    {Filter: ReadFilter{Where: []Condition{}}},
	} {
		if _, err := db.Erase(t.Context(), req); CodeOf(err) != ErrValidation {
			t.Errorf("%s: %v", name, err)
		}
	}
	reader := WithAccess(t.Context(), &Access{Grants: []Grant{{Namespace: Every, Scopes: []string{Every}, Write: true}}})
	_, err := db.Erase(reader, EraseRequest{IDs: []ID{1}})
	wantCode(t, err, ErrForbidden)
	_, err = db.Vacuum(reader)
	wantCode(t, err, ErrForbidden)
	if r := erase(t, db, EraseRequest{Filter: ReadFilter{Namespace: new("nobody's")}, EveryScope: true}); r.Total != 0 {
		t.Fatalf("%+v", r)
	}
}

// TestEraseModel compares what random erasures leave of random stores with a model.
func TestEraseModel(t *testing.T) {
	namespaces, scopes := []string{DefaultNamespace, "n"}, []string{PublicScope, "s", `["n","t"]`}
	words := []string{"ann", "bo", "灯塔", "x y"}
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp("", "erase")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		db, err := Open(t.Context(), dir, withFakeIndex(&Options{Clock: newTestClock().Now}, nil))
		if err != nil {
			rt.Fatal(err)
		}
		defer db.Close()
		left := map[ID]Memory{}
		pick := func(list []string, name string) string { return rapid.SampledFrom(list).Draw(rt, name) }
		var ins []MemoryInput
		for range rapid.IntRange(1, 12).Draw(rt, "records") {
			ins = append(ins, MemoryInput{Judgment: "says " + pick(words, "word"), RecordInput: RecordInput{
				Namespace: new(pick(namespaces, "namespace")), Scope: new(pick(scopes, "scope")), Tags: []string{pick(words, "tag")}, Thread: new(pick(words, "thread")),
			}})
		}
		written, err := db.Memories().UpsertMany(t.Context(), ins)
		if err != nil {
			rt.Fatal(err)
		}
		for _, m := range written.Value {
			left[m.ID] = m
		}
		for range rapid.IntRange(1, 2).Draw(rt, "erasures") {
			req := EraseRequest{Filter: ReadFilter{Namespace: new(pick(namespaces, "in"))}, EveryScope: rapid.Bool().Draw(rt, "every")}
			if !req.EveryScope {
				req.Filter.Scopes = rapid.SliceOfNDistinct(rapid.SampledFrom(scopes), 1, 2, rapid.ID).Draw(rt, "scopes")
			}
			if rapid.Bool().Draw(rt, "by tag") {
				req.Filter.Tags = []string{pick(words, "tag")}
			}
			if rapid.Bool().Draw(rt, "by thread") {
				req.Filter.Thread = new(pick(words, "thread"))
			}
			if rapid.Bool().Draw(rt, "by word") {
				req.Mentions, req.EraseMentions = []string{pick(words, "mention")}, rapid.Bool().Draw(rt, "erase mentions")
			}
			if rapid.Bool().Draw(rt, "by id") {
				req.IDs = []ID{ID(rapid.IntRange(1, 12).Draw(rt, "id"))}
			}
			goes := func(m Memory) bool {
				if m.Namespace != *req.Filter.Namespace || !req.EveryScope && !slices.Contains(req.Filter.Scopes, m.Scope) {
					return false
				}
				if len(req.Filter.Tags) > 0 && !slices.Contains(m.Tags, req.Filter.Tags[0]) || req.Filter.Thread != nil && m.Thread != *req.Filter.Thread {
					return false
				}
				if req.IDs == nil && req.Mentions == nil {
					return true
				}
				mentions := func(word string) bool {
					return strings.Contains(m.Judgment, word) || m.Thread == word || slices.Contains(m.Tags, word)
				}
				return slices.Contains(req.IDs, m.ID) || req.EraseMentions && mentions(req.Mentions[0])
			}
			var want int64
			for id, m := range left {
				if goes(m) {
					delete(left, id)
					want++
				}
			}
			report, err := db.Erase(t.Context(), req)
			if err != nil {
				rt.Fatal(err)
			}
			if report.Total != want {
				rt.Fatalf("%+v: %d went, want %d", req, report.Total, want)
			}
		}
		found := 0
		for _, namespace := range namespaces {
			page, err := db.Memories().List(t.Context(), PageRequest{Filter: ReadFilter{Namespace: &namespace, Scopes: scopes}, Limit: new(100)})
			if err != nil {
				rt.Fatal(err)
			}
			for _, m := range page.Items {
				if w, ok := left[m.ID]; !ok || w.Judgment != m.Judgment || !slices.Equal(w.Tags, m.Tags) {
					rt.Fatalf("%+v is there, want %+v", m, w)
				}
				found++
			}
		}
		if found != len(left) {
			rt.Fatalf("%d are there, want %d", found, len(left))
		}
		if h, err := db.DeepHealth(t.Context()); err != nil || h.Integrity != "ok" {
			rt.Fatal(h, err)
		}
	})
}
