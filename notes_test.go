package loci

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// noteBox is a store with a folder of notes.
type noteBox struct {
	t   testing.TB
	db  *DB
	dir string
}

func newNoteBox(t testing.TB) *noteBox { return newNoteBoxAt(t, nil) }

// newNoteBoxAt is newNoteBox with a clock.
func newNoteBoxAt(t testing.TB, clock func() time.Time) *noteBox {
	t.Helper()
	db, err := Open(t.Context(), t.TempDir(), &Options{WaitForIndex: true, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	b := &noteBox{t, db, t.TempDir()}
	must[*Receipt[string]](t)(db.Notes().SetRoot(t.Context(), DefaultNamespace, b.dir))
	return b
}

func (b *noteBox) file(name, text string) {
	b.t.Helper()
	path := filepath.Join(b.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// put writes a file and brings it in.
func (b *noteBox) put(name, text string, tags ...string) Note {
	b.t.Helper()
	b.file(name, text)
	return b.upsert(NoteFileInput{Path: name, RecordInput: RecordInput{Tags: tags}}).Value
}

func (b *noteBox) upsert(in NoteFileInput) *Receipt[Note] {
	b.t.Helper()
	return must[*Receipt[Note]](b.t)(b.db.Notes().UpsertFile(b.t.Context(), in))
}

func (b *noteBox) refuse(path string, code Code) *Error {
	b.t.Helper()
	_, err := b.db.Notes().UpsertFile(b.t.Context(), NoteFileInput{Path: path})
	return wantCode(b.t, err, code)
}

func (b *noteBox) chunks(id ID) []Chunk {
	b.t.Helper()
	return must[*Page[Chunk]](b.t)(b.db.Notes().Chunks(b.t.Context(), ChunksRequest{NoteID: id, Limit: new(MaxPage)})).Items
}

func chunkIDs(chunks []Chunk) (ids []ID) {
	for _, c := range chunks {
		ids = append(ids, c.ID)
	}
	return ids
}

func (b *noteBox) search(req SearchRequest) []SearchHit {
	b.t.Helper()
	return must[*SearchResult](b.t)(b.db.Search(b.t.Context(), req)).Hits
}

func (b *noteBox) find(query string) []SearchHit { return b.search(SearchRequest{Query: query}) }

// noteOfHit is the id of the note that a hit's chunk is of.
func noteOfHit(h SearchHit) ID { return h.Record.(*Chunk).NoteID }

func TestNotes(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(t *testing.T, b *noteBox)
	}{
		{"N1 no root", func(t *testing.T, b *noteBox) {
			b.file("a.md", "text")
			_, err := b.db.Notes().UpsertFile(t.Context(), NoteFileInput{Path: "a.md", RecordInput: RecordInput{Namespace: new("other")}})
			wantCode(t, err, ErrValidation)
			for _, dir := range []string{filepath.Join(b.dir, "nothing"), filepath.Join(b.dir, "a.md"), "relative", ""} {
				_, err := b.db.Notes().SetRoot(t.Context(), DefaultNamespace, dir)
				wantCode(t, err, ErrValidation)
			}
			if s := stateOf(t, b.db); s.records != 0 || s.revision != 1 {
				t.Errorf("%+v", s)
			}
		}},
		{"N2 root", func(t *testing.T, b *noteBox) {
			s, ctx := b.db.Notes(), t.Context()
			got := must[*Receipt[string]](t)(s.SetRoot(ctx, DefaultNamespace, b.dir+string(filepath.Separator)))
			if got.Value != b.dir || got.Revision != 1 {
				t.Errorf("%+v", got)
			}
			if root := must[string](t)(s.Root(ctx, DefaultNamespace)); root != b.dir {
				t.Error(root)
			}
			if root := must[string](t)(s.Root(ctx, "other")); root != "" {
				t.Error(root)
			}
			n := b.put("x/a.md", "text")
			for _, want := range []bool{true, false} {
				if r := must[*Receipt[bool]](t)(s.UnsetRoot(ctx, DefaultNamespace)); r.Value != want {
					t.Errorf("%+v", r)
				}
			}
			b.refuse("x/a.md", ErrValidation)
			if got := must[*Note](t)(s.Get(ctx, n.ID, ReadFilter{})); got.Source != "x/a.md" || len(b.chunks(n.ID)) != 1 {
				t.Errorf("%+v", got)
			}
			moved := t.TempDir()
			must[*Receipt[string]](t)(s.SetRoot(ctx, DefaultNamespace, moved))
			if got := must[*Note](t)(s.Get(ctx, n.ID, ReadFilter{})); got.Source != filepath.Join(moved, "x", "a.md") {
				t.Errorf("%+v", got)
			}
		}},
		{"N3 outside", func(t *testing.T, b *noteBox) {
			twin := b.dir + "b"
			if err := os.Mkdir(twin, 0o755); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(twin) })
			outside := filepath.Join(twin, "x.md")
			if err := os.WriteFile(outside, []byte("secret"), 0o600); err != nil {
				t.Fatal(err)
			}
			for name, target := range map[string]string{"link.md": outside, "folder": twin, "dangling.md": filepath.Join(twin, "no.md"), "loop.md": "loop.md"} {
				if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
					t.Skip("no symbolic links here")
				}
			}
			for _, path := range []string{outside, b.dir, b.dir + "/../" + filepath.Base(twin) + "/x.md", "../" + filepath.Base(twin) + "/x.md",
				"link.md", "folder/x.md", filepath.Join(b.dir, "folder", "x.md"), "", ".", "/", "a/../a.md", "a\x00b", filepath.Join(twin, "no.md"), "folder"} {
				b.refuse(path, ErrValidation)
			}
			b.refuse("loop.md", ErrIO)
			b.refuse("dangling.md", ErrValidation) // as if the file outside were there
			if s := stateOf(t, b.db); s.records != 0 {
				t.Errorf("%+v", s)
			}
		}},
		{"links inside", func(t *testing.T, b *noteBox) {
			n := b.put("real/a.md", "text")
			for name, target := range map[string]string{"abs.md": filepath.Join(b.dir, "real", "a.md"), "rel.md": "real/a.md", "folder": "real"} {
				if err := os.Symlink(target, filepath.Join(b.dir, name)); err != nil {
					t.Skip("no symbolic links here")
				}
			}
			for _, path := range []string{"abs.md", "rel.md", "folder/a.md", filepath.Join(b.dir, "real", "a.md"), "./real//a.md"} {
				if r := b.upsert(NoteFileInput{Path: path}); r.Value.ID != n.ID || r.Value.Path != "real/a.md" {
					t.Errorf("%s: %+v", path, r)
				}
			}
		}},
		{"N4 unreadable", func(t *testing.T, b *noteBox) {
			b.refuse("no.md", ErrIO)
			b.file("bad.md", "\xff\xfe\xfd")
			b.file("latin.md", "caf\xe9")
			b.file("wide.md", "\xff\xfeh\x00i\x00")
			b.file("zero.md", "a\x00b")
			b.file("big.md", strings.Repeat("x", MaxNoteBytes+1))
			for _, path := range []string{"bad.md", "latin.md", "wide.md", "zero.md", "big.md"} {
				b.refuse(path, ErrValidation)
			}
			b.file("sub/x.md", "")
			b.refuse("sub", ErrValidation)
			if s := stateOf(t, b.db); s.records != 0 {
				t.Errorf("%+v", s)
			}
		}},
		{"N5 identity", func(t *testing.T, b *noteBox) {
			n := b.put("潮汐表.2024.md", "\ufeff高潮\r\n\r\n低潮\r\n")
			if n.Title != "潮汐表.2024" || n.Source != filepath.Join(b.dir, "潮汐表.2024.md") || n.Path != "潮汐表.2024.md" ||
				n.ChunkChars != DefaultChunkChars || n.Bytes != 21 {
				t.Errorf("%+v", n)
			}
			if cs := b.chunks(n.ID); len(cs) != 2 || cs[0].Content != "高潮" || cs[1].Offset != 3 {
				t.Errorf("%+v", cs)
			}
			before := stateOf(t, b.db)
			if again := b.upsert(NoteFileInput{Path: n.Source}); again.Value.ID != n.ID || again.Revision != n.Revision || stateOf(t, b.db) != before {
				t.Errorf("%+v", again)
			}
			second := b.upsert(NoteFileInput{Path: n.Path, RecordInput: RecordInput{Scope: new("private")}})
			if second.Value.ID == n.ID {
				t.Error("one note in two scopes")
			}
		}},
		{"N6 path tags", func(t *testing.T, b *noteBox) {
			n := b.put("设定/人物/阿青.md", "一\n\n二", "主角")
			want := []string{"主角", "人物", "设定", "阿青"}
			for _, c := range b.chunks(n.ID) {
				if !slices.Equal(c.Tags, want) {
					t.Error(c.Tags)
				}
			}
			list := must[*Page[Note]](t)(b.db.Notes().List(t.Context(), PageRequest{Filter: ReadFilter{Tags: []string{"人物"}}})).Items
			if len(list) != 1 || list[0].ID != n.ID {
				t.Errorf("%+v", list)
			}
		}},
		{"N7 rebuild of chunks", func(t *testing.T, b *noteBox) {
			n := b.put("a.md", "alpha\n\nbeta\n\ngamma")
			first := b.chunks(n.ID)
			quote := RecordInput{Evidence: []Evidence{{Source: n.Path, ChunkID: &first[1].ID, Quote: "beta"}}}
			m := addMemory(t, b.db, MemoryInput{Judgment: "quoted", RecordInput: quote})
			b.put("a.md", "alpha\n\nbeta\n\ngamma\n\ndelta")
			second := b.chunks(n.ID)
			if !slices.Equal(chunkIDs(second)[:3], chunkIDs(first)) || len(second) != 4 || second[3].Ordinal != 3 {
				t.Error(chunkIDs(first), chunkIDs(second))
			}
			b.put("a.md", "new\n\nalpha\n\nbeta\n\ngamma\n\ndelta")
			third := b.chunks(n.ID)
			if !slices.Equal(chunkIDs(third)[1:], chunkIDs(second)) || third[1].Offset != 3 || third[1].Ordinal != 1 || third[1].Revision <= second[0].Revision {
				t.Errorf("%+v", third)
			}
			b.put("a.md", "gamma\n\nalpha\n\n\nbeta\n\nalpha")
			fourth := b.chunks(n.ID)
			if ids := chunkIDs(fourth); ids[0] != third[3].ID || ids[1] != third[1].ID || ids[2] != third[2].ID || len(ids) != 4 || fourth[2].Offset != 6 {
				t.Errorf("%+v", fourth)
			}
			b.put("a.md", "omega")
			for _, c := range fourth {
				_, err := b.db.Notes().GetChunk(t.Context(), c.ID, ReadFilter{})
				wantCode(t, err, ErrNotFound)
			}
			if hits := b.find("beta"); len(hits) != 0 {
				t.Errorf("%+v", hits)
			}
			if hits := b.find("omega"); len(hits) != 1 || *hits[0].NoteChunks != 1 {
				t.Errorf("%+v", hits)
			}
			if got := getMemory(t, b.db, m.ID, ReadFilter{}); got.Evidence[0].Quote != "beta" || *got.Evidence[0].ChunkID != first[1].ID {
				t.Errorf("%+v", got)
			}
		}},
		{"N8 file gone", func(t *testing.T, b *noteBox) {
			n := b.put("a.md", "the walrus sleeps")
			if err := os.RemoveAll(b.dir); err != nil {
				t.Fatal(err)
			}
			must[*HealthReport](t)(b.db.RebuildIndexes(t.Context()))
			if hits := b.find("walrus"); len(hits) != 1 || hits[0].Record.(*Chunk).Content != "the walrus sleeps" {
				t.Errorf("%+v", hits)
			}
			if cs := b.chunks(n.ID); cs[0].Content != "the walrus sleeps" {
				t.Errorf("%+v", cs)
			}
			b.refuse("a.md", ErrIO)
		}},
		{"N9 counts", func(t *testing.T, b *noteBox) {
			n := b.put("a.md", "a\n\nb\n\nc\n\nd")
			if s := stateOf(t, b.db); s.records != 5 || s.documents != 4 {
				t.Errorf("%+v", s)
			}
			if hits := b.search(SearchRequest{Query: "a b", Kinds: []Kind{KindNote}}); len(hits) != 0 {
				t.Errorf("%+v", hits)
			}
			cs := b.chunks(n.ID)
			if r := must[*Receipt[bool]](t)(b.db.Notes().Delete(t.Context(), n.ID, ReadFilter{})); !r.Value {
				t.Error("not deleted")
			}
			_, err := b.db.Notes().GetChunk(t.Context(), cs[0].ID, ReadFilter{})
			wantCode(t, err, ErrNotFound)
			if s := stateOf(t, b.db); s.records != 0 || s.documents != 0 {
				t.Errorf("%+v", s)
			}
			b.put("a.md", "a\n\nb")
			b.put("b.md", "a\n\nb")
			req := DeleteRequest{DryRun: true}
			for _, left := range []int64{6, 0} {
				if r := must[*Receipt[int64]](t)(b.db.Notes().DeleteByFilter(t.Context(), req)); r.Value != 2 {
					t.Errorf("%+v", r)
				}
				if s := stateOf(t, b.db); s.records != left {
					t.Errorf("%+v", s)
				}
				req.DryRun = false
			}
		}},
		{"N10 names and folders", func(t *testing.T, b *noteBox) {
			long := strings.Repeat("江上无风。\n\n", 5)
			n := b.put("人物/阿青.md", long)
			if hits := b.find("阿青"); len(hits) != 1 || hits[0].Record.(*Chunk).Ordinal != 0 {
				t.Errorf("%+v", hits)
			}
			text := b.put("别处/x.md", "写一个人物。")
			if hits := b.find("人物"); len(hits) != 2 || noteOfHit(hits[0]) != text.ID || noteOfHit(hits[1]) != n.ID {
				t.Errorf("%+v", hits)
			}
			if hits := b.search(SearchRequest{Query: "人物", MatchField: MatchPath}); len(hits) != 1 || noteOfHit(hits[0]) != n.ID {
				t.Errorf("%+v", hits)
			}
			if hits := b.search(SearchRequest{Query: "江上", Filter: ReadFilter{Tags: []string{"人物"}}}); len(hits) != 1 {
				t.Errorf("%+v", hits)
			}
		}},
		{"N11 markup", func(t *testing.T, b *noteBox) {
			n := b.put("a.md", "这里有 **蓝鲸** 出没\n\n```go\nfunc orca(max_retry_count int)\n```\n")
			for _, query := range []string{"蓝鲸", "orca", "max_retry_count", "retry"} {
				if hits := b.find(query); len(hits) != 1 {
					t.Error(query, hits)
				}
			}
			if c := b.chunks(n.ID)[0]; c.Content != "这里有 **蓝鲸** 出没" {
				t.Errorf("%+v", c)
			}
		}},
		{"what an update says", func(t *testing.T, b *noteBox) {
			b.file("a.md", "text")
			n := b.upsert(NoteFileInput{Path: "a.md", RecordInput: RecordInput{Metadata: Metadata(`{"k":1}`), Tags: []string{"x"}}}).Value
			c := b.chunks(n.ID)[0]
			_, err := b.db.Notes().UpsertFile(t.Context(), NoteFileInput{Path: "a.md", RecordInput: RecordInput{ExpectedRevision: new(int64(0))}})
			wantCode(t, err, ErrStaleRevision)
			_, err = b.db.Notes().UpsertFile(t.Context(), NoteFileInput{Path: "a.md", RecordInput: RecordInput{ID: n.ID + 100}})
			wantCode(t, err, ErrNotFound)
			_, err = b.db.Notes().UpsertFile(t.Context(), NoteFileInput{Path: "a.md", ChunkChars: new(15)})
			wantCode(t, err, ErrValidation)
			m := b.upsert(NoteFileInput{Path: "a.md", RecordInput: RecordInput{ID: n.ID, Metadata: Metadata(`{"k":2}`), Tags: []string{"x"},
				ExpectedRevision: &n.Revision}}).Value
			if m.ID != n.ID || m.Revision <= n.Revision || string(m.Metadata) != `{"k":2}` || b.chunks(n.ID)[0].Revision != c.Revision {
				t.Errorf("%+v", m)
			}
			m = b.upsert(NoteFileInput{Path: "a.md", RecordInput: RecordInput{Tags: []string{"y"}}}).Value
			d := b.chunks(n.ID)[0]
			if !slices.Equal(m.Tags, []string{"a", "y"}) || d.ID != c.ID || !slices.Equal(d.Tags, m.Tags) || len(b.find("y")) != 1 || len(b.find("x")) != 0 {
				t.Errorf("%+v %+v", m, d)
			}
		}},
		{"pages of chunks", func(t *testing.T, b *noteBox) {
			n := b.put("a.md", strings.Repeat("line\n\n", 7))
			req := ChunksRequest{NoteID: n.ID, Limit: new(3)}
			for _, want := range []int{3, 3, 1} {
				page := must[*Page[Chunk]](t)(b.db.Notes().Chunks(t.Context(), req))
				if len(page.Items) != want || page.Items[0].Ordinal != int(req.After) {
					t.Errorf("%+v", page)
				}
				req.After = page.NextCursor
			}
			if req.After != 0 {
				t.Error(req.After)
			}
			_, err := b.db.Notes().Chunks(t.Context(), ChunksRequest{NoteID: n.ID, Filter: scoped("other")})
			if e := wantCode(t, err, ErrNotFound); e.Field != "note_id" {
				t.Error(e)
			}
		}},
		{"empty and odd files", func(t *testing.T, b *noteBox) {
			if n := b.put("empty.md", ""); len(b.chunks(n.ID)) != 0 {
				t.Error("chunks of nothing")
			}
			b.put("open.md", "前言\n\n```go\nx := 1\n\ny := 2")
			if n := b.put("long.md", strings.Repeat("word ", 2<<20)); len(b.chunks(n.ID)) < MaxPage {
				t.Error(len(b.chunks(n.ID)))
			}
			b.refuse("aux.md", ErrValidation)
			b.file("aux.md", "x")
			b.refuse("aux.md", ErrValidation)
			deep := strings.Repeat("深/", 100) + "底.md"
			if n := b.put(deep, "sunken"); n.Path != deep || len(b.find("sunken")) != 1 {
				t.Errorf("%+v", n)
			}
			b.refuse(strings.Repeat("x", 300)+".md", ErrValidation)
		}},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newNoteBox(t)) })
	}
}
