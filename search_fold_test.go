package loci

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func TestFold(t *testing.T) {
	// A note of 8 chunks that say overview, one of 3 of which one does.
	many := strings.Repeat("an overview\n\n", 8)
	few := "first\n\nan overview of everything there is in this place\n\nlast"
	for _, c := range []struct {
		name string
		run  func(t *testing.T, b *noteBox, many, few Note)
	}{
		{"Q10", func(t *testing.T, b *noteBox, many, few Note) {
			hits := b.find("overview")
			if len(hits) != 2 || noteOfHit(hits[0]) != many.ID || noteOfHit(hits[1]) != few.ID || *hits[0].NoteChunks != 8 || *hits[1].NoteChunks != 1 {
				t.Fatalf("%+v", hits)
			}
			chunks := b.chunks(many.ID)
			// The first one's text is longer by the title.
			if want := []ChunkRef{{chunks[1].ID, 3}, {chunks[2].ID, 5}, {chunks[3].ID, 7}}; !slices.Equal(hits[0].TopChunks, want) {
				t.Errorf("%+v, want %+v", hits[0].TopChunks, want)
			}
			if own := hits[1].Record.(*Chunk); !slices.Equal(hits[1].TopChunks, []ChunkRef{{own.ID, 3}}) || hits[1].Key != fmt.Sprint("chunk:", own.ID) {
				t.Errorf("%+v", hits[1])
			}
			if hits := b.search(SearchRequest{Query: "overview", Limit: new(1)}); len(hits) != 1 || *hits[0].NoteChunks != 8 {
				t.Errorf("%+v", hits)
			}
			if hits := b.search(SearchRequest{Query: "overview", TopChunksPerNote: new(0)}); len(hits[0].TopChunks) != 0 || *hits[0].NoteChunks != 8 {
				t.Errorf("%+v", hits)
			}
			if hits := b.search(SearchRequest{Query: "overview", TopChunksPerNote: new(100)}); len(hits[0].TopChunks) != 8 {
				t.Errorf("%+v", hits)
			}
			_, err := b.db.Search(t.Context(), SearchRequest{Query: "overview", TopChunksPerNote: new(-1)})
			wantCode(t, err, ErrValidation)
		}},
		{"Q11", func(t *testing.T, b *noteBox, many, few Note) {
			hits := b.search(SearchRequest{Query: "overview", Limit: new(1), CandidateLimit: new(1)})
			if len(hits) != 1 || len(hits[0].TopChunks) != 1 || *hits[0].NoteChunks != 8 {
				t.Errorf("%+v", hits)
			}
			b.put("中文.txt", "青山\n\n青草\n\n山路\n\n流水")
			if hits := b.find("青山"); len(hits) != 1 || *hits[0].NoteChunks != 3 || hits[0].TopChunks[0].Offset != 1 {
				t.Errorf("chunks with any single character: %+v", hits)
			}
		}},
		{"Q12", func(t *testing.T, b *noteBox, many, few Note) {
			for query, field := range map[string]MatchField{"many": MatchName, "folder": MatchPath} {
				hits := b.search(SearchRequest{Query: query, MatchField: field})
				if len(hits) != 1 || hits[0].NoteChunks != nil || hits[0].TopChunks != nil {
					t.Errorf("%s: %+v", query, hits)
				}
			}
			if hits := b.search(SearchRequest{Query: "overview", MatchField: MatchText}); len(hits) != 2 || *hits[0].NoteChunks != 8 {
				t.Errorf("%+v", hits)
			}
		}},
		{"Q13", func(t *testing.T, b *noteBox, many, few Note) {
			addMemory(t, b.db, MemoryInput{Judgment: "an overview"})
			for _, c := range []struct {
				filter ReadFilter
				want   []ID
				others int
			}{
				{ReadFilter{NoteIDs: []ID{few.ID}}, []ID{few.ID}, 0},
				{ReadFilter{NoteIDs: []ID{few.ID, many.ID}}, []ID{many.ID, few.ID}, 0},
				{ReadFilter{NoteIDs: []ID{many.ID, few.ID}, Tags: []string{"few"}}, []ID{few.ID}, 0},
				{ReadFilter{NoteIDs: []ID{99999}}, nil, 0},
				{ReadFilter{NoteIDs: []ID{1 << 40}}, nil, 0},
				{ReadFilter{NoteIDs: []ID{}}, []ID{many.ID, few.ID}, 1},
				{ReadFilter{Thread: new("t")}, nil, 0},
				{ReadFilter{NoteIDs: []ID{many.ID}, Kinds: []Kind{KindMemory}}, nil, 0},
			} {
				var got []ID
				others := 0
				res := must[*SearchResult](t)(b.db.Search(t.Context(), SearchRequest{Query: "overview", Filter: c.filter, WithTotal: true}))
				for _, h := range res.Hits {
					if _, ok := h.Record.(*Chunk); ok {
						got = append(got, noteOfHit(h))
					} else {
						others++
					}
				}
				slices.Sort(got)
				slices.Sort(c.want)
				if !slices.Equal(got, c.want) || others != c.others {
					t.Errorf("%+v: %v and %d others, want %v and %d", c.filter, got, others, c.want, c.others)
				}
			}
		}},
		{"a long note does not hide the others", func(t *testing.T, b *noteBox, many, few Note) {
			n := b.put("long.md", strings.Repeat("overview\n\n", 600))
			hits := b.find("overview")
			at := slices.IndexFunc(hits, func(h SearchHit) bool { return noteOfHit(h) == n.ID })
			if len(hits) != 3 || *hits[at].NoteChunks != 600 {
				t.Errorf("%+v", hits)
			}
		}},
		{"neighbours stand in the note", func(t *testing.T, b *noteBox, many, few Note) {
			n := b.put("walk.md", "nothing here\n\na walrus and a whale\n\nnothing there\n\nfar away")
			hits := b.search(SearchRequest{Query: "walrus", NeighbourWeight: 0.5, TopChunksPerNote: new(10)})
			if len(hits) != 1 || noteOfHit(hits[0]) != n.ID || len(hits[0].TopChunks) != 3 || hits[0].TopChunks[0].Offset != 3 || *hits[0].NoteChunks != 1 {
				t.Errorf("%+v", hits)
			}
		}},
		{"grouped by thread", func(t *testing.T, b *noteBox, many, few Note) {
			addMemory(t, b.db, MemoryInput{Judgment: "an overview", RecordInput: RecordInput{Thread: new("talk"), Position: new(int64(1))}})
			hits := b.search(SearchRequest{Query: "overview", GroupBy: GroupThread})
			keys := map[string]bool{}
			for _, h := range hits {
				keys[strings.SplitN(h.Key, ":", 2)[0]] = true
			}
			if len(hits) != 3 || !keys["chunk"] || !keys["thread"] {
				t.Errorf("%+v", hits)
			}
		}},
		{"folders", func(t *testing.T, b *noteBox, many, few Note) {
			res := must[*SearchResult](t)(b.db.Search(t.Context(), SearchRequest{Query: "folder", WithTotal: true, Explain: true}))
			if len(res.Hits) != 1 || *res.Total != 1 || noteOfHit(res.Hits[0]) != many.ID || res.Hits[0].Explain.Round != "folder" ||
				len(res.Hits[0].Explain.Terms) != 1 || *res.Hits[0].NoteChunks != 1 || len(res.Hits[0].TopChunks) != 1 {
				t.Fatalf("%+v", res)
			}
			for _, fusion := range []Fusion{FusionRRF, FusionScore} {
				m := addMemory(t, b.db, MemoryInput{Judgment: "somebody asked for a folder once: " + strings.Repeat("long ", 300)})
				res = must[*SearchResult](t)(b.db.Search(t.Context(), SearchRequest{Query: "folder", WithTotal: true, Fusion: fusion}))
				last := res.Hits[len(res.Hits)-1]
				if *res.Total != int64(len(res.Hits)) || res.Hits[0].Key == last.Key || last.Key[:5] != "chunk" {
					t.Errorf("%s %d: %+v", fusion, m.ID, res)
				}
			}
			// A note in a folder of that name, whose text says it as well, comes once.
			n := b.put("folder/other.md", "first\n\nthe folder itself")
			res = must[*SearchResult](t)(b.db.Search(t.Context(), SearchRequest{Query: "folder", WithTotal: true, Filter: ReadFilter{Kinds: []Kind{KindChunk}}}))
			if len(res.Hits) != 2 || noteOfHit(res.Hits[0]) != n.ID || len(res.Hits[0].TopChunks) != 1 {
				t.Errorf("%+v", res)
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newNoteBox(t)
			c.run(t, b, b.put("folder/many.md", many), b.put("few.md", few))
		})
	}
}

// BenchmarkNoteSearch searches the folder that BenchmarkSyncDir brings in.
func BenchmarkNoteSearch(b *testing.B) {
	dir := notesFolder(b)
	db, err := Open(b.Context(), b.TempDir(), &Options{WaitForIndex: true})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	must[*Receipt[string]](b)(db.Notes().SetRoot(b.Context(), DefaultNamespace, dir))
	must[*Receipt[SyncReport]](b)(db.Notes().SyncDir(b.Context(), DefaultNamespace, SyncOptions{}))
	for _, query := range []string{"configuration", "how do I deploy the config service", "坐标轴刻度怎么设置"} {
		b.Run(query, func(b *testing.B) {
			for b.Loop() {
				if res := must[*SearchResult](b)(db.Search(b.Context(), SearchRequest{Query: query})); len(res.Hits) == 0 {
					b.Fatal("no hits")
				}
			}
		})
	}
}
