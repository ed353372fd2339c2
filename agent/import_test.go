package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/chatlog"
)

// sample is one of the conversations that the reader's tests have made up.
func sample(name string) string { return filepath.Join("..", "internal", "chatlog", "testdata", name) }

// imports brings in a file.
func (m *testMemory) imports(path string, with ...func(*ImportRequest)) ImportReport {
	m.t.Helper()
	req := ImportRequest{Path: path}
	for _, f := range with {
		f(&req)
	}
	return must[*loci.Receipt[ImportReport]](m.t)(m.episodes.Import(m.t.Context(), req)).Value
}

// importsText brings in what a file would hold.
func (m *testMemory) importsText(text string, with ...func(*ImportRequest)) ImportReport {
	m.t.Helper()
	req := ImportRequest{}
	for _, f := range with {
		f(&req)
	}
	return must[*loci.Receipt[ImportReport]](m.t)(m.episodes.ImportFrom(m.t.Context(), strings.NewReader(text), req)).Value
}

// line is a message as a line.
func line(thread, id, text string, at int64) string {
	out := map[string]any{"thread": thread, "role": "user", "content": text}
	if id != "" {
		out["id"] = id
	}
	if at != 0 {
		out["timestamp"] = time.UnixMicro(at).UTC().Format(time.RFC3339Nano)
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // these are strings
	}
	return string(raw) + "\n"
}

// said gives the episodes of a thread by position, as "position text".
func (m *testMemory) said(thread string) []string {
	m.t.Helper()
	var found []loci.Episode
	for _, e := range m.allEpisodes() {
		if e.Thread == thread {
			found = append(found, e)
		}
	}
	slices.SortFunc(found, func(a, b loci.Episode) int { return int(*a.Position - *b.Position) })
	var out []string
	for _, e := range found {
		out = append(out, strconv.FormatInt(*e.Position, 10)+" "+e.Description)
	}
	return out
}

// alike is what two imports of the same have in common.
func alike(t testing.TB, episodes []loci.Episode) string {
	t.Helper()
	for i := range episodes {
		episodes[i].RecordID, episodes[i].Revision = 0, 0
	}
	return asJSON(t, episodes)
}

func TestImport(t *testing.T) { // C1, C2
	for _, c := range []struct {
		file     string
		format   ImportFormat
		messages int64
		threads  int64
	}{{"chatgpt.json", ImportChatGPT, 7, 2}, {"claude.json", ImportClaude, 4, 2}, {"messages.jsonl", ImportJSONL, 14, 6}} {
		t.Run(c.file, func(t *testing.T) {
			m := openMemory(t, 4)
			raw := must[[]byte](t)(os.ReadFile(sample(c.file)))
			var messages []chatlog.Message
			must[chatlog.Report](t)(chatlog.Read(bytes.NewReader(raw), "", chatlog.Limits{}, func(m chatlog.Message) error {
				messages = append(messages, m)
				return nil
			}))
			before := m.revision()
			dry := m.imports(sample(c.file), func(r *ImportRequest) { r.DryRun = true })
			if m.revision() != before || m.episodeCount() != 0 {
				t.Error("a dry run has written")
			}
			got := m.imports(sample(c.file))
			if got.Format != c.format || got.Messages != c.messages || got.Stored != c.messages || got.Threads != c.threads ||
				got.Updated+got.Unchanged+got.IDTaken+got.Displaced+got.Pending != 0 || len(got.LeftOut) == 0 || len(got.Parts) == 0 {
				t.Errorf("%+v", got)
			}
			if dry.DryRun = false; asJSON(t, dry) != asJSON(t, got) {
				t.Errorf("a dry run reports %s, the import %s", asJSON(t, dry), asJSON(t, got))
			}
			for i := range messages {
				msg := &messages[i]
				e := m.episode(loci.PointID(chatlog.Key(msg.Thread, msg)))
				if e == nil || e.Description != msg.Text || e.Thread != msg.Thread || *e.Position != msg.Position || msg.At != 0 && e.AtUS != msg.At {
					t.Fatalf("message %+v became %+v", msg, e)
				}
				var md map[string]string
				if err := json.Unmarshal(e.Metadata, &md); err != nil {
					t.Fatal(err)
				}
				want := map[string]string{"role": msg.Role, "author": msg.Author, "title": msg.Title, "message_id": msg.ID, "source": string(c.format)}
				for key, value := range want {
					if got, ok := md[key]; got != value || ok != (value != "") {
						t.Errorf("metadata %s, want %s %q", e.Metadata, key, value)
					}
				}
				if len(md) > len(want) {
					t.Errorf("metadata %s", e.Metadata)
				}
			}
			all, revision := alike(t, m.allEpisodes()), m.revision()
			again := m.imports(sample(c.file), func(r *ImportRequest) { r.Format = c.format })
			if again.Unchanged != c.messages || again.Stored+again.Updated != 0 || m.revision() != revision || alike(t, m.allEpisodes()) != all {
				t.Errorf("again %+v, revision %d after %d", again, m.revision(), revision)
			}
			m.reopen()
			if alike(t, m.allEpisodes()) != all {
				t.Error("other episodes after a reopen")
			}
			m.deepCheck()
		})
	}
}

// TestImportTwoFormats holds that a conversation is one, whatever it is written in.
func TestImportTwoFormats(t *testing.T) { // C3
	m := openMemory(t, 4)
	m.imports(sample("chatgpt.json"))
	all := alike(t, m.allEpisodes())
	var lines strings.Builder
	raw := must[[]byte](t)(os.ReadFile(sample("chatgpt.json")))
	must[chatlog.Report](t)(chatlog.Read(bytes.NewReader(raw), "", chatlog.Limits{}, func(msg chatlog.Message) error {
		return json.NewEncoder(&lines).Encode(map[string]any{
			"thread": msg.Thread, "id": msg.ID, "role": msg.Role, "content": msg.Text, "timestamp": msg.At,
		})
	}))
	got := m.importsText(lines.String())
	if got.Format != ImportJSONL || got.Unchanged != 7 || got.Stored+got.Updated != 0 || alike(t, m.allEpisodes()) != all {
		t.Errorf("%+v", got)
	}
}

// TestImportNewer holds what a later export of the same conversations does.
func TestImportNewer(t *testing.T) { // C4 to C7
	m := openMemory(t, 4)
	first := line("talk", "a", "when is high tide", T-9) + line("talk", "b", "at nine", T-8) + line("talk", "c", "thanks", T-7)
	m.importsText(first, func(r *ImportRequest) { r.TTLSeconds = new(uint64(100)) })
	a := m.episodeOf("talk", "a")
	must[*loci.Receipt[Stored]](t)(m.episodes.UpdateMetadata(t.Context(), UpdateRequest{ID: a.ID, Updates: loci.Metadata(`{"mine":1,"title":"kept"}`)}))
	m.clock.Set(T + second)

	t.Run("more messages", func(t *testing.T) {
		got := m.importsText(first + line("talk", "d", "and low tide", T-6))
		if got.Unchanged != 3 || got.Stored != 1 || got.Displaced != 0 {
			t.Errorf("%+v", got)
		}
	})
	t.Run("an edited message", func(t *testing.T) {
		got := m.importsText(line("talk", "a", "when is high tide today", T-9))
		if got.Updated != 1 || got.Stored+got.Unchanged != 0 {
			t.Errorf("%+v", got)
		}
		e := m.episodeOf("talk", "a")
		if e.Description != "when is high tide today" || e.Version != a.Version+2 || string(e.Metadata) != `{"role":"user","message_id":"a","source":"jsonl","mine":1,"title":"kept"}` ||
			*e.ExpiresAtUS != T+100*second || *e.Position != 0 {
			t.Errorf("%+v", e)
		}
		wantIDs(t, "by its new words", m.recallSimilar(RecallRequest{Text: "today"}), e.ID)
	})
	t.Run("another time, another life", func(t *testing.T) {
		m.importsText(line("talk", "a", "when is high tide today", T-day), func(r *ImportRequest) { r.TTLSeconds = new(uint64(5)) })
		e := m.episodeOf("talk", "a")
		if e.AtUS != T-day || e.CreatedAtUS != T-day || *e.ExpiresAtUS != T+6*second {
			t.Errorf("%+v", e)
		}
		wantIDs(t, "oldest", m.olderThan(T, 1), e.ID)
	})
	t.Run("another branch", func(t *testing.T) {
		text := line("talk", "a", "when is high tide today", T-day) + line("talk", "b2", "at ten", T-5) + line("talk", "c2", "sure?", T-4) + line("talk", "e", "yes", T-3)
		dry := m.importsText(text, func(r *ImportRequest) { r.DryRun = true })
		got := m.importsText(text)
		if got.Stored != 3 || got.Displaced != 3 || got.Unchanged != 1 || dry.Displaced != 3 {
			t.Errorf("%+v, dry %+v", got, dry)
		}
		want := []string{"0 when is high tide today", "1 at nine", "2 thanks", "3 and low tide", "4 at ten", "5 sure?", "6 yes"}
		if said := m.said("talk"); !slices.Equal(said, want) {
			t.Errorf("%q", said)
		}
		if got := m.importsText(text); got.Unchanged != 4 || !slices.Equal(m.said("talk"), want) {
			t.Errorf("again %+v", got)
		}
	})
	t.Run("deleted and expired", func(t *testing.T) {
		must[*loci.Receipt[bool]](t)(m.episodes.Delete(t.Context(), m.episodeOf("talk", "b").ID))
		m.clock.Set(T + 6*second) // a has expired, and is not swept
		got := m.importsText(line("talk", "a", "when is high tide", T-9) + line("talk", "b", "at nine", T-8))
		if got.Stored != 2 || got.Displaced != 0 || m.episodeOf("talk", "a").Version != 1 || string(m.episodeOf("talk", "a").Metadata) != `{"role":"user","message_id":"a","source":"jsonl"}` {
			t.Errorf("%+v, %+v", got, m.episodeOf("talk", "a"))
		}
		if said := m.said("talk"); !slices.Equal(said[:2], []string{"0 when is high tide", "1 at nine"}) {
			t.Errorf("%q", said)
		}
	})
	m.deepCheck()
}

// episodeOf gives the episode of a message.
func (m *testMemory) episodeOf(thread, id string) *loci.Episode {
	m.t.Helper()
	e := m.episode(loci.PointID(chatlog.Key(thread, &chatlog.Message{ID: id})))
	if e == nil {
		m.t.Fatalf("there is no episode of message %q", id)
	}
	return e
}

// TestImportTimes holds what time messages without one have.
func TestImportTimes(t *testing.T) { // C8
	m := openMemory(t, 4)
	text := line("talk", "a", "one", 0) + line("talk", "b", "two", T-5) + line("other", "a", "three", 0) + line("talk", "c", "four", 0)
	if got := m.importsText(text); got.Dated != 3 || got.Stored != 4 {
		t.Errorf("%+v", got)
	}
	check := func() {
		t.Helper()
		for key, at := range map[[2]string]int64{{"talk", "a"}: T, {"talk", "b"}: T - 5, {"other", "a"}: T, {"talk", "c"}: T - 5} {
			if e := m.episodeOf(key[0], key[1]); e.AtUS != at {
				t.Errorf("%v at %d, want %d", key, e.AtUS, at)
			}
		}
	}
	check()
	m.clock.Set(T + day)
	if got := m.importsText(text); got.Unchanged != 4 || got.Dated != 0 {
		t.Errorf("%+v", got)
	}
	check()
	m.importsText(line("talk", "c", "four", 0) + line("talk", "d", "five", 0))
	if e := m.episodeOf("talk", "d"); e.AtUS != T-5 {
		t.Errorf("at %d: the message before is there already, with its time", e.AtUS)
	}
}

func TestImportThreads(t *testing.T) { // C9
	m := openMemory(t, 4)
	text := line("", "a", "one", T) + line(" padded ", "b", "two", T) + line("padded", "c", "three", T) + line("two\nlines", "d", "four", T) +
		line(" ", "e", "five", T) + line(strings.Repeat("長", 170)+"\t", "f", "six", T)
	got := m.importsText(text, func(r *ImportRequest) { r.Thread = new("mine") })
	if got.Stored != 6 || got.Renamed != 4 || got.Displaced != 0 {
		t.Errorf("%+v", got)
	}
	threads := map[string]bool{}
	for _, e := range m.allEpisodes() {
		threads[e.Thread] = true
	}
	if len(threads) != 6 || !threads["mine"] || !threads["padded"] {
		t.Errorf("threads %v", threads)
	}
	if got := m.importsText(text, func(r *ImportRequest) { r.Thread = new("mine") }); got.Unchanged != 6 {
		t.Errorf("again %+v", got)
	}
	if got := m.importsText(line("", "a", "one", T)); got.Stored != 1 || m.said("default") == nil {
		t.Errorf("without a thread %+v", got)
	}
}

// TestImportIDTaken holds that an episode of something else is never overwritten.
func TestImportIDTaken(t *testing.T) { // C6, C10
	m := openMemory(t, 4)
	key := loci.PointID(chatlog.Key("talk", &chatlog.Message{ID: "b"}))
	m.recordEpisode(key, "mine")
	got := m.importsText(line("talk", "a", "one", T) + line("talk", "b", "two", T) + line("talk", "c", "three", T))
	if got.IDTaken != 1 || got.Stored != 2 || got.Messages != 3 || m.episode(key).Description != "mine" {
		t.Errorf("%+v", got)
	}
	m.recordEpisode(77, "at the end of positions", standing("talk", 1<<63-1))
	_, err := m.episodes.ImportFrom(t.Context(), strings.NewReader(line("talk", "x", "taken", T)), ImportRequest{})
	wantCode(t, err, loci.ErrConflict)
}

func TestImportRefused(t *testing.T) { // C11, C12
	m := openMemory(t, 4)
	ctx, dir := t.Context(), t.TempDir()
	file := filepath.Join(dir, "talk.jsonl")
	if err := os.WriteFile(file, []byte(line("talk", "a", "one", T)), 0o600); err != nil {
		t.Fatal(err)
	}
	before := m.revision()
	for name, c := range map[string]struct {
		req   ImportRequest
		code  loci.Code
		field string
	}{
		"no path":   {ImportRequest{}, loci.ErrValidation, "path"},
		"zero byte": {ImportRequest{Path: "a\x00b"}, loci.ErrValidation, "path"},
		"folder":    {ImportRequest{Path: dir}, loci.ErrValidation, "path"},
		"missing":   {ImportRequest{Path: filepath.Join(dir, "none")}, loci.ErrIO, "path"},
		"no folder": {ImportRequest{Path: filepath.Join(file, "none")}, loci.ErrIO, "path"},
		"format":    {ImportRequest{Path: file, Format: "yaml"}, loci.ErrValidation, "format"},
		"ttl":       {ImportRequest{Path: file, TTLSeconds: new(uint64(0))}, loci.ErrValidation, "ttl_seconds"},
		"thread":    {ImportRequest{Path: file, Thread: new(" ")}, loci.ErrValidation, "thread"},
	} {
		_, err := m.episodes.Import(ctx, c.req)
		t.Run(name, func(t *testing.T) {
			wantField(t, err, c.code, c.field)
			if strings.Contains(err.Error(), dir) {
				t.Errorf("error %v holds the path", err)
			}
		})
	}
	for name, c := range map[string]struct {
		text string
		want string
	}{
		"no format": {"neither", "cannot be told"},
		"broken":    {line("talk", "a", "one", T) + `{"thread":"talk","role":"us`, "line 2"},
		"long":      {line("talk", "a", strings.Repeat("b", loci.MaxTextBytes+1), T), "line 1"},
	} {
		_, err := m.episodes.ImportFrom(ctx, strings.NewReader(c.text), ImportRequest{})
		t.Run(name, func(t *testing.T) {
			if e := wantCode(t, err, loci.ErrValidation); !strings.Contains(e.Error(), c.want) {
				t.Errorf("error %v does not say %q", err, c.want)
			}
		})
	}
	canceled, stop := context.WithCancel(ctx)
	stop()
	_, err := m.episodes.Import(canceled, ImportRequest{Path: file})
	wantCode(t, err, loci.ErrCanceled)
	if m.revision() != before || m.episodeCount() != 0 {
		t.Error("something was written")
	}
	if got := m.importsText(line("talk", "a", strings.Repeat("b", loci.MaxTextBytes+1), T), func(r *ImportRequest) { r.CutLong = true }); got.CutTexts != 1 || got.Stored != 1 {
		t.Errorf("%+v", got)
	}
	if got := m.importsText(""); got.Messages != 0 || got.Format != ImportJSONL || asJSON(t, got.LeftOut) != "{}" {
		t.Errorf("nothing: %+v", got)
	}
	if err := m.db.Close(); err != nil {
		t.Fatal(err)
	}
	_, err = m.episodes.Import(ctx, ImportRequest{Path: file})
	wantCode(t, err, loci.ErrClosed)
}

// manyLines are messages of some conversations, in turns, with words each that make
// them long.
func manyLines(n int, words string) string {
	var out strings.Builder
	for i := range n {
		thread, id := fmt.Sprint("talk ", i%17), ""
		if i%3 > 0 {
			id = strconv.Itoa(i)
		}
		at := T - day + int64(i)
		if i%11 == 0 {
			at = 0
		}
		out.WriteString(line(thread, id, "boat "+strconv.Itoa(i)+words, at))
	}
	return out.String()
}

// longWords make a file longer than what the format is told from.
func longWords() string { return strings.Repeat(" and the tide", 50) }

// TestImportInterrupted holds that an import that fails says what it has kept, and that
// another one completes it as if nothing had happened.
func TestImportInterrupted(t *testing.T) { // C13
	if testing.Short() {
		t.Skip("thousands of messages, one at a time")
	}
	text := manyLines(3*importBatch+40, longWords())
	want := openMemory(t, 4)
	want.importsText(text)
	whole := alike(t, want.allEpisodes())
	for _, at := range []int{0, 10, len(text) / 2, len(text) - 1} {
		m := openMemory(t, 4)
		broken := io.MultiReader(strings.NewReader(text[:at]), iotest.ErrReader(errors.New("the cable came out")))
		_, err := m.episodes.ImportFrom(t.Context(), broken, ImportRequest{Format: ImportJSONL})
		e := wantCode(t, err, loci.ErrIO)
		kept := m.episodeCount()
		if kept%importBatch != 0 || kept > 0 != strings.Contains(e.Message, fmt.Sprintf("after %d messages", kept)) {
			t.Errorf("%d are kept, and the error is %v", kept, err)
		}
		if at == len(text)/2 && kept == 0 {
			t.Error("nothing was kept")
		}
		got := m.importsText(text)
		if got.Unchanged != kept || got.Stored != got.Messages-kept {
			t.Errorf("completed by %+v, %d were kept", got, kept)
		}
		if alike(t, m.allEpisodes()) != whole {
			t.Errorf("interrupted at byte %d, it is not what it would have been", at)
		}
		m.deepCheck()
	}
}

// TestImportEnded holds that a context that ends while the file is read is told as
// that, and not as a file that cannot be read.
func TestImportEnded(t *testing.T) { // C13
	text := manyLines(importBatch+40, longWords())
	for at, kept := range map[int]int64{0: 0, 10: 0, len(text) - 1: importBatch} {
		m := openMemory(t, 4)
		ctx, stop := context.WithCancel(t.Context())
		r := io.MultiReader(strings.NewReader(text[:at]), stopping{stop}, strings.NewReader(text[at:]))
		_, err := m.episodes.ImportFrom(ctx, r, ImportRequest{})
		e := wantCode(t, err, loci.ErrCanceled)
		if got := m.episodeCount(); got != kept || !strings.Contains(e.Message, "the context ended first") ||
			kept > 0 != strings.Contains(e.Message, fmt.Sprintf("after %d messages", kept)) {
			t.Errorf("ended at byte %d, %d are kept, and the error is %v", at, got, err)
		}
	}
}

// stopping is a reader that ends a context, and has nothing to read.
type stopping struct{ stop func() }

func (s stopping) Read([]byte) (int, error) {
	s.stop()
	return 0, io.EOF
}

// TestImportProgress holds that the bytes are told, and that they end at the file's
// length.
func TestImportProgress(t *testing.T) { // C17
	m := openMemory(t, 4)
	file := filepath.Join(t.TempDir(), "talk.jsonl")
	text := manyLines(importBatch+1, "")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var last, calls int64
	m.imports(file, func(r *ImportRequest) {
		r.Progress = func(done, total int64) {
			if done < last || done > total || total != int64(len(text)) {
				t.Errorf("%d of %d after %d", done, total, last)
			}
			last = done
			calls++
		}
	})
	if last != int64(len(text)) || calls != 2 {
		t.Errorf("%d calls, the last one said %d of %d", calls, last, len(text))
	}
}

func TestImportVectors(t *testing.T) { // C15
	m := openEmbedding(t, 8)
	text := line("talk", "a", "tide", T) + line("talk", "b", "ferry", T)
	if got := m.importsText(text); got.Pending != 2 || len(m.fake.Calls()) != 0 {
		t.Errorf("%+v, %d calls of the embedder", got, len(m.fake.Calls()))
	}
	m.embedPending()
	wantIDs(t, "by vector", m.recallSimilar(RecallRequest{Embedding: m.fake.Vector("tide"), K: new(1)}), m.episodeOf("talk", "a").ID)
	m.fake.Forget()
	if got := m.importsText(text); got.Pending != 0 || got.Unchanged != 2 {
		t.Errorf("%+v", got)
	}
	if got := m.importsText(line("talk", "a", "lighthouse", T)); got.Pending != 1 || got.Updated != 1 {
		t.Errorf("%+v", got)
	}
	wantIDs(t, "without the old vector", m.recallSimilar(RecallRequest{Embedding: m.fake.Vector("tide")}), m.episodeOf("talk", "b").ID)
	m.embedPending()
	wantIDs(t, "by the new one", m.recallSimilar(RecallRequest{Embedding: m.fake.Vector("lighthouse"), K: new(1)}), m.episodeOf("talk", "a").ID)
	m.recordEpisode(m.episodeOf("talk", "b").ID, "ferry", pointing(axis8(1)), standing("talk", 1))
	if got := m.importsText(line("talk", "b", "ferry", T)); got.Updated != 1 || got.Pending != 0 { // its metadata
		t.Errorf("%+v", got)
	}
	wantIDs(t, "by the caller's", m.recallSimilar(RecallRequest{Embedding: axis8(1), K: new(1)}), m.episodeOf("talk", "b").ID)
}
