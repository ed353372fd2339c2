package loci

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

func preset(t testing.TB, db *DB, req PresetRequest) *PresetResult {
	t.Helper()
	return must[*PresetResult](t)(db.SearchPreset(t.Context(), req))
}

func TestPresetNames(t *testing.T) { // P1
	for _, p := range SearchPresets() {
		if got, err := ParseSearchPreset(string(p)); got != p || err != nil {
			t.Errorf("%s: %v, %v", p, got, err)
		}
	}
	for _, name := range []string{"", "RAG", "all"} {
		if _, err := ParseSearchPreset(name); !errors.Is(err, ErrValidation) {
			t.Errorf("%q: %v", name, err)
		}
	}
	db := openReal(t, t.TempDir())
	remember(t, db, "harbour master")
	entities(t, db, "harbour")
	writeNotes(t, db, map[string]string{"harbour.md": "ships"})
	for _, c := range []struct {
		preset               SearchPreset
		memory, graph, notes bool
	}{
		{PresetMemory, true, false, false}, {PresetGraph, false, true, false}, {PresetNotes, false, false, true},
		{PresetRAG, true, true, false}, {PresetBroad, true, true, true}, {"", true, true, false},
	} {
		r := preset(t, db, PresetRequest{Preset: c.preset, Query: "harbour"})
		if len(r.Memories) > 0 != c.memory || len(r.Graph.Entities) > 0 != c.graph || len(r.Notes.Titles) > 0 != c.notes {
			t.Errorf("%s: %+v", c.preset, r)
		}
		if r.Memories == nil || r.Graph.Relations == nil || r.Graph.ContextEvents == nil || r.Notes.Paths == nil || r.Diagnostics.Degraded == nil {
			t.Errorf("%s: something is absent instead of empty: %+v", c.preset, r)
		}
		if c.preset == "" && r.Preset != PresetRAG {
			t.Errorf("the default is %s", r.Preset)
		}
	}
}

func TestPresetValidation(t *testing.T) { // P2
	db := openReal(t, t.TempDir())
	for field, req := range map[string]PresetRequest{
		"query":                        {Query: "  "},
		"budget.seed_entities":         {Query: "a", Budget: PresetBudget{SeedEntities: new(0)}},
		"candidate_limit":              {Query: "a", CandidateLimit: new(0)},
		"no_text":                      {Query: "a", NoText: true},
		"preset":                       {Query: "a", Preset: "all"},
		"budget.memory_chars":          {Query: "a", Budget: PresetBudget{MemoryChars: new(-1)}},
		"budget.note_titles":           {Query: "a", Budget: PresetBudget{NoteTitles: new(MaxPage + 1)}},
		"filter.scopes":                {Query: "a", Filter: ReadFilter{Scopes: []string{}}},
		"budget.graph_relations_chars": {Query: "a", Budget: PresetBudget{GraphRelationsChars: new(-5)}},
	} {
		_, err := db.SearchPreset(t.Context(), req)
		if e := wantCode(t, err, ErrValidation); e != nil && e.Field != field {
			t.Errorf("%s: the error is about %s", field, e.Field)
		}
	}
}

func TestPresetMemoryBudget(t *testing.T) { // P3, P4
	db := openReal(t, t.TempDir())
	long := func(n int, more string) string {
		s := []rune("潮水 " + more + " " + strings.Repeat("甲", 100))
		return string(s[:n])
	}
	for i := range 3 {
		if _, err := db.Memories().Upsert(t.Context(), MemoryInput{Judgment: long(30, fmt.Sprint(i)), Reasoning: strings.Repeat("长", 500)}); err != nil {
			t.Fatal(err)
		}
	}
	for chars, want := range map[int]int{60: 2, 59: 1, 5: 1, 0: 0, 90: 3, 2000: 3} {
		if r := preset(t, db, PresetRequest{Preset: PresetMemory, Query: "潮水", Budget: PresetBudget{MemoryChars: &chars}}); len(r.Memories) != want {
			t.Errorf("%d characters: %d memories, want %d", chars, len(r.Memories), want)
		}
	}
	cut := func(lengths []int, chars int) int {
		return len(within(lengths, chars, func(n int) int { return n }))
	}
	if got := cut([]int{30, 50, 10}, 45); got != 1 {
		t.Errorf("P4: %d kept: the cut must not skip ahead", got)
	}
}

// harbourGraph is the graph of P5.
func harbourGraph(t *testing.T, db *DB) (e, r, v map[string]ID) {
	t.Helper()
	res := apply(t, db, GraphBatch{
		Entities: []EntityInput{
			{Ref: "a", Name: "阿青", Aliases: []string{"青姑"}}, {Ref: "l", Name: "老柳"}, {Ref: "s", Name: "石匠"}, {Ref: "g", Name: "更夫"}, {Ref: "c", Name: "茶馆"},
		},
		Relations: []RelationInput{
			{Subject: EntityRef{Ref: "a"}, Predicate: "邻居", Object: EntityRef{Ref: "s"}},
			{Subject: EntityRef{Ref: "l"}, Predicate: "邻居", Object: EntityRef{Ref: "g"}},
			{Subject: EntityRef{Ref: "s"}, Predicate: "师兄", Object: EntityRef{Ref: "g"}},
			{Subject: EntityRef{Ref: "a"}, Predicate: "东家", Object: EntityRef{Ref: "c"}},
		},
		Events: []EventInput{
			{Name: "渡口夜谈", Participants: []EntityRef{{Ref: "a"}, {Ref: "s"}}},
			{Name: "独坐", Participants: []EntityRef{{Ref: "s"}}},
			{Name: "开业", Participants: []EntityRef{{Ref: "c"}}},
		},
	})
	e, r, v = map[string]ID{}, map[string]ID{}, map[string]ID{}
	for _, x := range res.Entities {
		e[x.Name] = x.ID
	}
	for i, x := range res.Relations {
		r[fmt.Sprintf("r%d", i+1)] = x.ID
	}
	for _, x := range res.Events {
		v[x.Name] = x.ID
	}
	return e, r, v
}

func relationIDs(rs []Relation) (ids []ID) {
	for _, r := range rs {
		ids = append(ids, r.ID)
	}
	return ids
}

func eventIDs(vs []Event) (ids []ID) {
	for _, v := range vs {
		ids = append(ids, v.ID)
	}
	return ids
}

func TestPresetGraph(t *testing.T) { // P5, P6, P7, P8
	db := openReal(t, t.TempDir())
	_, r, v := harbourGraph(t, db)
	got := preset(t, db, PresetRequest{Query: "阿青和老柳的邻居是谁"}).Graph
	var names []string
	for _, e := range got.Entities {
		names = append(names, e.Name)
		if e.Name == "阿青" && !slices.Equal(e.Aliases, []string{"青姑"}) {
			t.Errorf("aliases %v", e.Aliases)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, []string{"老柳", "阿青"}) {
		t.Errorf("entities %v", names)
	}
	if want := []ID{r["r1"], r["r2"]}; !slices.Equal(relationIDs(got.Relations), want) {
		t.Errorf("P6: relations %v, want %v", relationIDs(got.Relations), want)
	}
	if want := []ID{r["r3"]}; !slices.Equal(relationIDs(got.ContextRelations), want) {
		t.Errorf("P5: context relations %v, want %v", relationIDs(got.ContextRelations), want)
	}
	if want := []ID{v["渡口夜谈"]}; !slices.Equal(eventIDs(got.ContextEvents), want) {
		t.Errorf("P5: context events %v, want %v", eventIDs(got.ContextEvents), want)
	}
	got = preset(t, db, PresetRequest{Query: "阿青"}).Graph
	if want := []ID{r["r1"], r["r4"]}; !slices.Equal(relationIDs(got.Relations), want) {
		t.Errorf("P7: relations %v, want %v", relationIDs(got.Relations), want)
	}
	if got := preset(t, db, PresetRequest{Query: "阿青的雇主"}).Graph.Relations; len(got) != 0 {
		t.Errorf("P8 without equivalents: %v", relationIDs(got))
	}
	if _, err := db.Graph().SetPredicateEquivalents(t.Context(), DefaultNamespace, [][]string{{"东家", "雇主"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := relationIDs(preset(t, db, PresetRequest{Query: "阿青的雇主"}).Graph.Relations), []ID{r["r4"]}; !slices.Equal(got, want) {
		t.Errorf("P8: %v, want %v", got, want)
	}
}

func TestPresetGraphContext(t *testing.T) { // P9
	db := openReal(t, t.TempDir())
	ids := entities(t, db, "甲乙", "丙丁")
	happens := func(n int) ID {
		// The name, a blank, two participants with a blank between.
		name := []rune(fmt.Sprint(n) + strings.Repeat("事", n))
		return happen(t, db, EventInput{Name: string(name[:n-6]), Participants: []EntityRef{{ID: ids[0]}, {ID: ids[1]}}})[0]
	}
	first := happens(12)
	happens(30)
	happens(14)
	got := preset(t, db, PresetRequest{Query: "甲乙 丙丁", Budget: PresetBudget{GraphContextChars: new(20)}}).Graph
	if want := []ID{first}; !slices.Equal(eventIDs(got.ContextEvents), want) {
		t.Errorf("events %v, want %v", eventIDs(got.ContextEvents), want)
	}
	// Relations come first and take of the same budget.
	r := relate(t, db, RelationInput{Subject: EntityRef{ID: ids[0]}, Predicate: "同船", Object: EntityRef{ID: ids[1]}})
	got = preset(t, db, PresetRequest{Query: "甲乙 丙丁", Budget: PresetBudget{GraphContextChars: new(19), GraphRelationsChars: new(0)}}).Graph
	if len(got.Relations) != 0 || !slices.Equal(relationIDs(got.ContextRelations), r) || len(got.ContextEvents) != 0 {
		t.Errorf("%+v", got)
	}
	got = preset(t, db, PresetRequest{Query: "甲乙 丙丁", Budget: PresetBudget{GraphContextChars: new(0)}}).Graph
	if len(got.ContextRelations)+len(got.ContextEvents) != 0 {
		t.Errorf("a budget of 0 gave %+v", got)
	}
	remember(t, db, "没有这样的实体")
	if got := preset(t, db, PresetRequest{Query: "没有"}); len(got.Memories) != 1 || len(got.Graph.Entities)+len(got.Graph.Relations)+len(got.Graph.ContextRelations)+len(got.Graph.ContextEvents) != 0 {
		t.Errorf("no entity matches: %+v", got)
	}
}

// writeNotes makes a root of these files and brings them in.
func writeNotes(t *testing.T, db *DB, files map[string]string) {
	t.Helper()
	root := t.TempDir()
	if _, err := db.Notes().SetRoot(t.Context(), DefaultNamespace, root); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := db.Notes().UpsertFile(t.Context(), NoteFileInput{Path: path}); err != nil {
			t.Fatal(err)
		}
	}
}

// notePaths are the paths of the notes that chunks were found of.
func notePaths(t *testing.T, db *DB, hits []SearchHit) (paths []string) {
	t.Helper()
	for _, h := range hits {
		n := must[*Note](t)(db.Notes().Get(t.Context(), h.Record.(*Chunk).NoteID, ReadFilter{}))
		paths = append(paths, n.Path)
	}
	slices.Sort(paths)
	return paths
}

func TestPresetNotes(t *testing.T) { // P10, P11
	db := openReal(t, t.TempDir())
	writeNotes(t, db, map[string]string{"harbor/harbor.md": "潮水按月记录", "杂记/见闻.md": "harbor 今日停泊三船", "沧溟/冰原.md": "极北无人"})
	check := func(query string, b PresetBudget, titles, contents, paths []string) {
		t.Helper()
		n := preset(t, db, PresetRequest{Preset: PresetNotes, Query: query, Budget: b}).Notes
		if got := notePaths(t, db, n.Titles); !slices.Equal(got, titles) {
			t.Errorf("%s: titles %v, want %v", query, got, titles)
		}
		if got := notePaths(t, db, n.Contents); !slices.Equal(got, contents) {
			t.Errorf("%s: contents %v, want %v", query, got, contents)
		}
		if got := notePaths(t, db, n.Paths); !slices.Equal(got, paths) {
			t.Errorf("%s: paths %v, want %v", query, got, paths)
		}
	}
	check("harbor", PresetBudget{}, []string{"harbor/harbor.md"}, []string{"杂记/见闻.md"}, nil)
	check("沧溟", PresetBudget{}, nil, nil, []string{"沧溟/冰原.md"})
	check("沧溟", PresetBudget{NoteTitles: new(0)}, nil, nil, nil)
	check("harbor", PresetBudget{NotesChars: new(0)}, []string{"harbor/harbor.md"}, nil, nil)

	files := map[string]string{}
	for i := range 7 {
		files[fmt.Sprintf("walrus/walrus %d.md", i)] = "nothing of note"
	}
	writeNotes(t, db, files)
	n := preset(t, db, PresetRequest{Preset: PresetNotes, Query: "walrus"}).Notes
	if len(n.Titles) != 5 || len(n.Paths) != 0 {
		t.Errorf("P11: %d titles, %d paths", len(n.Titles), len(n.Paths))
	}
}

func TestPresetEvent(t *testing.T) { // P12, L4
	db := openReal(t, t.TempDir())
	harbourGraph(t, db)
	remember(t, db, "阿青住在渡口")
	var mu sync.Mutex
	var events []LogEvent
	if err := db.RegisterEventSink(func(ev LogEvent) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, ev)
	}); err != nil {
		t.Fatal(err)
	}
	r := preset(t, db, PresetRequest{Preset: PresetBroad, Query: "阿青"})
	if !r.Diagnostics.TextUsed || r.Revision == 0 || r.IndexedRevision != r.Revision {
		t.Errorf("%+v", r)
	}
	db.UnregisterEventSink()
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(events) != 1 || events[0].Kind != "search" || events[0].Candidates < 2 || events[0].Stages["text"] <= 0 {
		t.Errorf("%+v", events)
	}
}

func TestSearchWithContext(t *testing.T) { // Q16
	db := openReal(t, t.TempDir())
	res := apply(t, db, GraphBatch{
		Entities: []EntityInput{{Ref: "z", Name: "张叔", Aliases: []string{"更夫"}}, {Ref: "l", Name: "李婶"}, {Ref: "w", Name: "王伯"},
			{Name: "别处", Aliases: []string{"更夫"}, RecordInput: RecordInput{Scope: new("private")}}},
		Relations: []RelationInput{{Subject: EntityRef{Ref: "z"}, Predicate: "knows", Object: EntityRef{Ref: "l"}},
			{Subject: EntityRef{Ref: "w"}, Predicate: "knows", Object: EntityRef{Ref: "z"}}},
	})
	in := MemoryInput{Judgment: "夜里有人敲梆子"}
	in.Tags = []string{"更夫"}
	must[*Receipt[Memory]](t)(db.Memories().Upsert(t.Context(), in))
	remember(t, db, "梆子是木头做的")
	got := must[*ContextualResult](t)(db.SearchWithContext(t.Context(), SearchRequest{Query: "梆子", Kinds: []Kind{KindMemory}}, nil))
	if len(got.Hits) != 2 {
		t.Fatalf("%+v", got)
	}
	for _, h := range got.Hits {
		m := h.Record.(*Memory)
		if len(m.Tags) == 0 {
			if len(h.Context.Entities)+len(h.Context.Relations) != 0 {
				t.Errorf("a memory without tags has context %+v", h.Context)
			}
			continue
		}
		var names []string
		for _, e := range h.Context.Entities {
			names = append(names, e.Name)
		}
		if !slices.Equal(names, []string{"张叔", "李婶", "王伯"}) || !slices.Equal(relationIDs(h.Context.Relations), relationIDs(res.Relations)) {
			t.Errorf("context of %v and %v", names, relationIDs(h.Context.Relations))
		}
	}
	got = must[*ContextualResult](t)(db.SearchWithContext(t.Context(), SearchRequest{Query: "敲梆子", Limit: new(1)}, new(1)))
	if len(got.Hits[0].Context.Relations) != 1 {
		t.Errorf("limit 1: %+v", got.Hits[0].Context)
	}
	_, err := db.SearchWithContext(t.Context(), SearchRequest{Query: "梆子"}, new(0))
	wantCode(t, err, ErrValidation)
}
