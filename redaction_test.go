package loci_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/testkit/fakeembed"
	"github.com/loci-memory/loci/pager"
)

// marker is a secret that says which field it was put into, so that the one that
// is left somewhere is named.
func marker(field int) string {
	return "ghp" + fmt.Sprintf("_Q7z%04dkX%s", field, strings.Repeat("m4Zt9", 6))
}

// secretWriter writes to every kind of record, with a marker in every text.
type secretWriter struct {
	t      *testing.T
	ctx    context.Context
	db     *loci.DB
	folder string
	n      int
	lost   []loci.Redacted // of the receipts
}

// next is a text with the next marker.
func (w *secretWriter) next() string {
	w.n++
	return fmt.Sprintf("钥匙 %d 是%s。", w.n, marker(w.n))
}

func (w *secretWriter) object() loci.Metadata {
	raw, err := json.Marshal(map[string]any{"deep": []any{map[string]string{"note": w.next()}}})
	if err != nil {
		w.t.Fatal(err)
	}
	return raw
}

func (w *secretWriter) record() loci.RecordInput {
	return loci.RecordInput{
		Tags:     []string{w.next()},
		Evidence: []loci.Evidence{{Source: w.next(), SourceRevision: w.next(), Quote: w.next(), Metadata: w.object()}},
		Metadata: w.object(),
	}
}

// took keeps what a write says it lost, which must be as many as it was given.
func (w *secretWriter) took(what string, given int, redacted []loci.Redacted, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatalf("%s: %v", what, err)
	}
	lost := 0
	for _, r := range redacted {
		lost += r.Count
		if r.Rule != "github-token" {
			w.t.Errorf("%s: %+v", what, r)
		}
	}
	if loci.RedactionFrom(w.ctx) && lost != given {
		w.t.Errorf("%s: the receipt names %d of %d", what, lost, given)
	}
	w.lost = append(w.lost, redacted...)
}

func (w *secretWriter) memories() {
	m := w.db.Memories()
	from := w.n
	in := loci.MemoryInput{RecordInput: w.record(), Judgment: w.next(), Reasoning: w.next()}
	r, err := m.Upsert(w.ctx, in)
	w.took("Upsert", w.n-from, r.Redacted, err)
	from = w.n
	in = loci.MemoryInput{RecordInput: w.record(), Judgment: w.next(), Reasoning: w.next()}
	r, err = m.UpsertByJudgment(w.ctx, in)
	w.took("UpsertByJudgment", w.n-from, r.Redacted, err)
	from = w.n
	var ins []loci.MemoryInput
	for range 40 {
		ins = append(ins, loci.MemoryInput{RecordInput: w.record(), Judgment: w.next()})
	}
	all, err := m.UpsertMany(w.ctx, ins)
	w.took("UpsertMany", w.n-from, all.Redacted, err)
}

func (w *secretWriter) graph() {
	from := w.n
	entity := func(ref string) loci.EntityInput {
		return loci.EntityInput{RecordInput: w.record(), Ref: ref, Name: "门 " + marker(w.skip()), Aliases: []string{w.next()},
			Attributes: map[string][]string{"colour": {w.next(), "red"}}, Summary: w.next()}
	}
	r, err := w.db.Graph().ApplyBatch(w.ctx, loci.GraphBatch{
		Entities: []loci.EntityInput{entity("a"), entity("b")},
		Relations: []loci.RelationInput{{RecordInput: w.record(), Subject: loci.EntityRef{Ref: "a"}, Predicate: "opens",
			Object: loci.EntityRef{Ref: "b"}, Reason: w.next()}},
		Events: []loci.EventInput{{RecordInput: w.record(), Name: "夜 " + marker(w.skip()), Summary: w.next(), Reason: w.next(),
			Participants: []loci.EntityRef{{Ref: "a"}}}},
	})
	w.took("ApplyBatch", w.n-from, r.Redacted, err)
	from = w.n
	text := fmt.Sprintf("keeps(Ada, \"%s\")\nkeeps(Ada, \"the %s\")", marker(w.skip()), marker(w.skip()))
	imported, err := w.db.Graph().ImportText(w.ctx, loci.GraphText{Text: text})
	w.took("ImportText", w.n-from, imported.Redacted, err)
}

// skip takes a number for a marker that is written without words around it.
func (w *secretWriter) skip() int { w.n++; return w.n }

func (w *secretWriter) notes() {
	if err := os.MkdirAll(filepath.Join(w.folder, "sub"), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.db.Notes().SetRoot(w.ctx, loci.DefaultNamespace, w.folder); err != nil {
		w.t.Fatal(err)
	}
	pem := "-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat("Q7zkX"+"m4Zt9w2Vb\n", 9) + "-----END " + "PRIVATE KEY-----"
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(w.folder, name), []byte(text), 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	from := w.n
	write("one.md", "# Keys\n\n"+w.next()+"\n\nThe last line.\n")
	in := loci.NoteFileInput{RecordInput: w.record(), Path: "one.md"}
	r, err := w.db.Notes().UpsertFile(w.ctx, in)
	w.took("UpsertFile", w.n-from, r.Redacted, err)
	from = w.n
	write("sub/two.md", "# More\n\n"+w.next()+"\n")
	synced, err := w.db.Notes().SyncDir(w.ctx, loci.DefaultNamespace, loci.SyncOptions{Tags: []string{w.next()}})
	w.took("SyncDir", w.n-from+1, synced.Redacted, err) // and that of the first file again
	write("key.md", "before\n\n"+pem+"\n\nafter\n")
	r, err = w.db.Notes().UpsertFile(w.ctx, loci.NoteFileInput{Path: "key.md"})
	if err != nil {
		w.t.Fatal(err)
	}
	if !loci.RedactionFrom(w.ctx) {
		return
	}
	if len(r.Redacted) != 1 || r.Redacted[0] != (loci.Redacted{Rule: "private-key", Count: 1}) {
		w.t.Errorf("a key in a note: %+v", r.Redacted)
	}
	chunks, err := w.db.Notes().Chunks(w.ctx, loci.ChunksRequest{NoteID: r.Value.ID})
	if err != nil {
		w.t.Fatal(err)
	}
	if last := chunks.Items[len(chunks.Items)-1]; last.Content != "after" || last.Offset != 15 {
		w.t.Errorf("what follows a key stands on line %d: %q", last.Offset, last.Content)
	}
}

func (w *secretWriter) agent() {
	m, err := agent.Open(w.ctx, w.db, agent.Config{})
	if err != nil {
		w.t.Fatal(err)
	}
	point := func(id loci.PointID) agent.PointInput {
		return agent.PointInput{ID: id, Tags: []string{w.next()}, Metadata: w.object()}
	}
	fact := func(id loci.PointID) agent.FactInput {
		return agent.FactInput{PointInput: point(id), Content: w.next()}
	}
	episode := func(id loci.PointID) agent.EpisodeInput {
		return agent.EpisodeInput{PointInput: point(id), Description: w.next()}
	}
	facts, episodes := m.Semantic(), m.Episodic()
	stored := func(what string, write func() (*loci.Receipt[agent.Stored], error)) {
		w.t.Helper()
		from := w.n
		r, err := write()
		if err != nil {
			w.t.Fatal(err)
		}
		w.took(what, w.n-from, r.Redacted, nil)
	}
	stored("Put", func() (*loci.Receipt[agent.Stored], error) { return facts.Put(w.ctx, fact(1)) })
	stored("Put again", func() (*loci.Receipt[agent.Stored], error) { return facts.Put(w.ctx, fact(1)) }) // one in the history
	stored("PutUnique", func() (*loci.Receipt[agent.Stored], error) { return facts.PutUnique(w.ctx, fact(1)) })
	stored("UpdateMetadata", func() (*loci.Receipt[agent.Stored], error) {
		updates, err := json.Marshal(map[string]string{"content": w.next(), "other": w.next()})
		if err != nil {
			w.t.Fatal(err)
		}
		return facts.UpdateMetadata(w.ctx, agent.UpdateRequest{ID: 1, Updates: updates})
	})
	stored("Record", func() (*loci.Receipt[agent.Stored], error) { return episodes.Record(w.ctx, episode(1)) })
	stored("Learn", func() (*loci.Receipt[agent.Stored], error) {
		return m.Procedural().Learn(w.ctx, agent.ProcedureInput{PointInput: point(1), Name: "开 " + marker(w.skip()), Steps: []string{"one", w.next()}})
	})
	from := w.n
	batch, err := facts.PutBatch(w.ctx, agent.FactBatch{Facts: []agent.FactInput{fact(7), fact(8)}})
	w.took("PutBatch", w.n-from, batch.Redacted, err)
	from = w.n
	batch, err = episodes.RecordBatch(w.ctx, agent.EpisodeBatch{Episodes: []agent.EpisodeInput{episode(7), episode(8)}})
	w.took("RecordBatch", w.n-from, batch.Redacted, err)
	from = w.n
	edge, err := facts.Relate(w.ctx, agent.RelateRequest{From: 1, To: 7, Type: "near", Properties: w.object()})
	w.took("Relate", w.n-from, edge.Redacted, err)
	from = w.n
	line, err := json.Marshal(map[string]string{"role": "user", "content": w.next(), "conversation_id": "c"})
	if err != nil {
		w.t.Fatal(err)
	}
	said, err := episodes.ImportFrom(w.ctx, bytes.NewReader(line), agent.ImportRequest{})
	w.took("ImportFrom", w.n-from, said.Redacted, err)
	if _, err := m.Snapshot(w.ctx); err != nil {
		w.t.Fatal(err)
	}
}

func (w *secretWriter) context() {
	cs, err := pager.Open(w.ctx, w.db, pager.Config{Scope: pager.Scope{loci.DefaultNamespace, "session"}})
	if err != nil {
		w.t.Fatal(err)
	}
	from := w.n
	page, err := cs.Write(w.ctx, pager.WriteRequest{Content: w.next() + strings.Repeat(" and so on", 20), Title: w.next(), Summary: w.next(), Source: w.next(),
		Tags: []string{w.next()}, PinReason: w.next(), Tier: pager.Core})
	w.took("Write", w.n-from, page.Redacted, err)
	from = w.n
	ingested, err := cs.Ingest(w.ctx, pager.IngestRequest{Content: strings.Repeat("词 ", 9) + w.next() + strings.Repeat("词 ", 99) + w.next(), Title: w.next(),
		Source: w.next(), Tags: []string{w.next()}, PageBytes: new(pager.MinPageBytes)})
	w.took("Ingest", w.n-from, ingested.Redacted, err)
	from = w.n
	in, err := cs.PageIn(w.ctx, pager.PageInRequest{PageID: ingested.Pages[0].PageID, Tier: pager.Core, Reason: w.next()})
	w.took("PageIn", w.n-from, in.Redacted, err)
	from = w.n
	compact, err := cs.Compact(w.ctx, pager.CompactRequest{PageID: page.Page.PageID, ExpectedVersion: new(int64(1)), Summary: w.next()})
	w.took("Compact", w.n-from, compact.Redacted, err)
	for i := range 4 {
		if _, err := cs.Write(w.ctx, pager.WriteRequest{Content: "row", Title: fmt.Sprint("Row ", i), Summary: "a row", Outline: new(true)}); err != nil {
			w.t.Fatal(err)
		}
	}
	from = w.n
	fold, err := cs.Fold(w.ctx, pager.FoldRequest{Word: marker(w.skip()), Keep: new(1)})
	w.took("Fold", w.n-from, fold.Redacted, err)
	if _, err := cs.Snapshot(w.ctx, pager.SnapshotRequest{}); err != nil {
		w.t.Fatal(err)
	}
	from = w.n
	point, err := cs.Checkpoint(w.ctx, pager.CheckpointRequest{Label: w.next()})
	w.took("Checkpoint", w.n-from, point.Redacted, err)
}

// writeSecrets fills a store and gives its directory, closed, its export, and how
// many markers were written.
func writeSecrets(t *testing.T, ctx context.Context, opts loci.Options) (dir string, export []byte, w *secretWriter) {
	dir = t.TempDir()
	db, err := loci.Open(ctx, dir, &opts)
	if err != nil {
		t.Fatal(err)
	}
	model := fakeembed.New(8)
	if _, err := db.Embeddings().RegisterSpace(ctx, loci.EmbeddingSpace{ID: "fake", Model: "fake", Dimension: 8}); err != nil {
		t.Fatal(err)
	}
	if err := db.Embeddings().RegisterEmbedder(ctx, "fake", model, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Embeddings().SetDefaultSpace(ctx, loci.DefaultNamespace, "fake"); err != nil {
		t.Fatal(err)
	}
	w = &secretWriter{t: t, ctx: ctx, db: db, folder: t.TempDir()}
	w.memories()
	w.graph()
	w.notes()
	w.agent()
	w.context()
	var out bytes.Buffer
	if _, err := db.Export(ctx, &out, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Embeddings().Sync(ctx, "fake", loci.EmbeddingSyncOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, call := range model.Calls() {
		fmt.Fprintln(&out, call.Texts) // what left the store is no less open than an export
	}
	return dir, out.Bytes(), w
}

// leaks says which markers are in the export or in a file of the store.
func leaks(t *testing.T, dir string, export []byte, n int) (found map[int][]string) {
	found = map[int][]string{}
	look := func(name string, data []byte) {
		low := bytes.ToLower(data)
		for i := 1; i <= n; i++ {
			// The middle of it: an index may keep words, in lower case.
			if bytes.Contains(low, []byte(strings.ToLower(fmt.Sprintf("Q7z%04dkX", i)))) {
				found[i] = append(found[i], name)
			}
		}
	}
	look("the export", export)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		look(filepath.Base(path), data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestRedactionLeavesNothing(t *testing.T) {
	dir, export, w := writeSecrets(t, loci.WithRedaction(t.Context()), loci.Options{})
	for field, places := range leaks(t, dir, export, w.n) {
		t.Errorf("the secret of field %d is in %v", field, places)
	}
	if !bytes.Contains(export, []byte("[redacted: github-token]")) || len(w.lost) == 0 {
		t.Error("nothing says that something was taken out")
	}
}

func TestRedactAlways(t *testing.T) {
	dir, export, w := writeSecrets(t, t.Context(), loci.Options{Redact: true})
	if found := leaks(t, dir, export, w.n); len(found) > 0 {
		t.Errorf("%v", found)
	}
	if len(w.lost) == 0 {
		t.Error("no receipt says that something was taken out")
	}
}

// TestNoRedaction also shows that the markers would be found.
func TestNoRedaction(t *testing.T) {
	dir, export, w := writeSecrets(t, t.Context(), loci.Options{})
	found := leaks(t, dir, export, w.n)
	for i := 1; i <= w.n; i++ {
		if len(found[i]) == 0 {
			t.Errorf("field %d of %d is nowhere", i, w.n)
		}
	}
	if len(w.lost) > 0 {
		t.Errorf("nobody asked for redaction: %v", w.lost)
	}
}

// TestRedactedInput shows what redaction does to what is matched: two memories of
// different secrets become one, and the caller's lists stay as they are.
func TestRedactedInput(t *testing.T) {
	ctx := loci.WithRedaction(t.Context())
	db, err := loci.Open(ctx, t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	in := loci.MemoryInput{RecordInput: loci.RecordInput{Tags: []string{marker(1)}, Evidence: []loci.Evidence{{Source: "log", Quote: marker(1)}},
		Metadata: loci.Metadata(`{"a":"` + marker(1) + `"}`)}, Judgment: "It is " + marker(1)}
	first, err := db.Memories().UpsertByJudgment(ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	if in.Tags[0] != marker(1) || in.Evidence[0].Quote != marker(1) || !strings.Contains(string(in.Metadata), marker(1)) {
		t.Errorf("the caller's input was changed: %+v", in)
	}
	if want := "It is [redacted: github-token]"; first.Value.Judgment != want || string(first.Value.Metadata) != `{"a":"[redacted: github-token]"}` {
		t.Errorf("%+v", first.Value)
	}
	second, err := db.Memories().UpsertByJudgment(ctx, loci.MemoryInput{Judgment: "It is " + marker(2)})
	if err != nil {
		t.Fatal(err)
	}
	if second.Value.ID != first.Value.ID {
		t.Error("the two differ in nothing but their secrets, and are not merged")
	}
	got, err := json.Marshal(second.Redacted)
	if err != nil || string(got) != `[{"rule":"github-token","count":1}]` {
		t.Errorf("%s %v", got, err)
	}
	plain, err := db.Memories().Upsert(ctx, loci.MemoryInput{Judgment: "Nothing to hide."})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(plain); err != nil || bytes.Contains(got, []byte("redacted")) {
		t.Errorf("%s %v", got, err)
	}
}
