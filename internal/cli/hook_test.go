package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/mark"
	"github.com/loci-memory/loci/op"
)

// hookWorld is a memory, a repository and a client's session.
type hookWorld struct {
	t          *testing.T
	root, data string
}

func newHookWorld(t *testing.T) *hookWorld {
	root := t.TempDir()
	putFiles(t, root, map[string]string{"harbour/.git/HEAD": "ref"})
	return &hookWorld{t, root, filepath.Join(root, "data")}
}

func (w *hookWorld) line(stdin string, args ...string) outcome {
	return cmdLine{stdin: stdin, args: append([]string{"--data", w.data, "--embedder", "none"}, args...)}.run(w.t)
}

// hook runs an event as a client does.
func (w *hookWorld) hook(event string, in map[string]any, args ...string) outcome {
	w.t.Helper()
	in["cwd"], in["session_id"] = filepath.Join(w.root, "harbour"), "s1"
	raw, err := json.Marshal(in)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.line(string(raw), append([]string{"hook", event}, args...)...)
}

func (w *hookWorld) episodes() []string {
	w.t.Helper()
	got := w.line("", "--json", "--namespace", "harbour", "call", "episodes.between", `{"from_us":0,"to_us":9000000000000000}`)
	var page struct {
		Items []struct {
			Description string `json:"description"`
			Thread      string `json:"thread"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &page); err != nil || got.code != 0 {
		w.t.Fatalf("%v: %+v", err, got)
	}
	texts := []string{}
	for _, e := range page.Items {
		if e.Thread != "s1" {
			w.t.Errorf("%q is in thread %q", e.Description, e.Thread)
		}
		texts = append(texts, e.Description)
	}
	return texts
}

func said(n int, role, text string) string {
	raw, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return fmt.Sprintf(`{"parentUuid":"m%d","isSidechain":false,"sessionId":"s1","type":"%s","message":{"role":"%s","content":%s},"uuid":"m%d","timestamp":"2026-05-01T10:%02d:00.000Z"}`+"\n",
		n-1, role, role, raw, n, n)
}

func (w *hookWorld) write(path, text string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// TestHookCapture follows a transcript that grows, is read in the middle of a line,
// is begun anew and is cut.
func TestHookCapture(t *testing.T) {
	w := newHookWorld(t)
	path := filepath.Join(w.root, "s1.jsonl")
	stop := func(want ...string) {
		t.Helper()
		for range 2 { // a second time nothing is new
			if got := w.hook("stop", map[string]any{"transcript_path": path}, "--strict"); got.code != 0 || got.stdout != "" {
				t.Fatalf("%+v", got)
			}
		}
		if got := w.episodes(); strings.Join(got, "|") != strings.Join(want, "|") {
			t.Errorf("kept %q, want %q", got, want)
		}
	}
	stop() // there is no transcript yet
	one, two := said(1, "user", "When is high tide?"), said(2, "assistant", "At 07:12.")
	w.write(path, one+two)
	stop("When is high tide?", "At 07:12.")
	echo := said(3, "user", mark.Wrap("The tide table is updated weekly.")+"\nAnd tomorrow?")
	w.write(path, one+two+echo+`{"type":"assistant","mess`)
	stop("When is high tide?", "At 07:12.", "And tomorrow?")
	four := said(4, "assistant", "The key is AKIA"+"Z7Q4M2XK9W3RT5VB.")
	w.write(path, one+two+echo+said(9, "user", mark.Wrap("all recalled"))+four)
	if got := w.hook("stop", map[string]any{"transcript_path": path}, "--strict"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	kept := w.episodes()
	if len(kept) != 4 || strings.Contains(kept[3], "Z7Q4") || strings.Contains(strings.Join(kept, ""), "recalled") {
		t.Errorf("kept %q", kept)
	}
	// Begun anew under the same session: what is known stays as it is.
	w.write(path, one+said(5, "user", "新的问题"))
	if got := w.hook("session-end", map[string]any{"transcript_path": path}, "--strict"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if kept := w.episodes(); len(kept) != 5 || kept[4] != "新的问题" {
		t.Errorf("kept %q", kept)
	}
	// A line that a client left half-written stays in the file for ever.
	w.write(path, one+`{"type":"user","message":{"role":"us`+two+said(7, "user", "Which lamp?")+"[]\n"+said(8, "assistant", "The red one."))
	got := w.hook("stop", map[string]any{"transcript_path": path})
	if kept := w.episodes(); got.code != 0 || !strings.Contains(got.stderr, "left out: 2") || len(kept) != 7 || kept[6] != "The red one." {
		t.Errorf("broken lines: %+v, kept %q", got, kept)
	}
	w.write(path, "")
	if got := w.hook("pre-compact", map[string]any{"transcript_path": path}, "--strict"); got.code != 0 || len(w.episodes()) != 7 {
		t.Errorf("cut: %+v", got)
	}
}

func TestHookCaptureOfOthers(t *testing.T) {
	w := newHookWorld(t)
	for range 2 {
		got := w.hook("stop", map[string]any{"prompt": "When is high tide?", "prompt_response": "At 07:12.", "timestamp": "2026-05-01T10:00:00Z"}, "--client", "gemini", "--strict")
		if got.code != 0 {
			t.Fatalf("%+v", got)
		}
		for _, e := range []string{"prompt", "stop"} {
			got = w.hook(e, map[string]any{"prompt": "And low tide?", "last_assistant_message": "At 13:20.", "turn_id": "t1"}, "--client", "codex", "--strict")
			if got.code != 0 {
				t.Fatalf("%+v", got)
			}
		}
	}
	if kept := w.episodes(); len(kept) != 4 {
		t.Errorf("kept %q", kept)
	}
}

// given is the text that a hook gives.
func given(t *testing.T, got outcome, event string) string {
	t.Helper()
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("%+v", got)
	}
	if got.stdout == "" {
		return ""
	}
	var out struct {
		Specific struct {
			Event   string `json:"hookEventName"`
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if err := json.Unmarshal([]byte(got.stdout), &out); err != nil || out.Specific.Event != event || mark.Strip(out.Specific.Context) != "" {
		t.Fatalf("%v: %+v", err, got)
	}
	return out.Specific.Context
}

func TestHookPrompt(t *testing.T) {
	w := newHookWorld(t)
	for _, text := range []string{"The tide table is updated weekly by the harbour master.", "Deploys go out on Tuesdays.", "潮水表每周更新"} {
		if got := w.line("", "--namespace", "harbour", "remember", text); got.code != 0 {
			t.Fatalf("%+v", got)
		}
	}
	prompt := func(text string, args ...string) string {
		return given(t, w.hook("prompt", map[string]any{"hook_event_name": "UserPromptSubmit", "prompt": text}, args...), "UserPromptSubmit")
	}
	if got := prompt("how often is the tide table updated?"); !strings.Contains(got, "harbour master") || strings.Contains(got, "Tuesdays") {
		t.Errorf("%q", got)
	}
	for _, small := range []string{"", "hi", "thanks, looks good", "ok continue", "yes do it", "你好", "好的"} {
		if got := prompt(small); got != "" {
			t.Errorf("%q brings up %q", small, got)
		}
	}
	if got := prompt("tide table", "--budget", "20"); got != "" {
		t.Errorf("beyond its budget: %q", got)
	}
	// What was given and comes back is not looked up again.
	if got := prompt(mark.Wrap("tide table updated")); got != "" {
		t.Errorf("an echo brings up %q", got)
	}
}

func TestHookSessionStart(t *testing.T) {
	w := newHookWorld(t)
	start := func() string {
		return given(t, w.hook("session-start", map[string]any{"hook_event_name": "SessionStart", "source": "startup"}), "SessionStart")
	}
	if got := start(); got != "" {
		t.Errorf("an empty memory gives %q", got)
	}
	if got := w.line("", "--namespace", "harbour", "remember", "The tide table is updated weekly."); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	if got := w.line("", "--scope", "harbour", "context", "write", `{"content":"Lamps are lit at seven.","tier":"core"}`); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	path := filepath.Join(w.root, "old.jsonl")
	w.write(path, strings.ReplaceAll(said(1, "user", "Is the tide table updated?"), "s1", "s0"))
	raw := fmt.Sprintf(`{"session_id":"s0","cwd":%q,"transcript_path":%q}`, filepath.Join(w.root, "harbour"), path)
	if got := w.line(raw, "hook", "stop", "--strict"); got.code != 0 {
		t.Fatalf("%+v", got)
	}
	got := start()
	for _, part := range []string{"Memory of harbour", "Lamps are lit", "Is the tide table updated?", "updated weekly"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is not in %q", part, got)
		}
	}
}

// TestHookNeverStopsAClient: whatever is wrong, the exit code is 0 and standard
// output stays empty.
func TestHookNeverStopsAClient(t *testing.T) {
	w := newHookWorld(t)
	secret := filepath.Join(w.root, "secret.txt")
	w.write(secret, "do not read")
	for _, c := range []struct {
		name, stdin string
		args        []string
		strict      int
	}{
		{"no JSON", "hello", []string{"stop"}, op.ExitUsage},
		{"no event", "{}", nil, op.ExitUsage},
		{"another event", "{}", []string{"stopp"}, op.ExitUsage},
		{"no session", `{"transcript_path":"/x.jsonl"}`, []string{"stop"}, op.ExitUsage},
		{"a relative path", `{"session_id":"s","transcript_path":"../x.jsonl"}`, []string{"stop"}, op.ExitUsage},
		{"another file", fmt.Sprintf(`{"session_id":"s","transcript_path":%q}`, secret), []string{"stop"}, op.ExitUsage},
		{"a device", `{"session_id":"s","transcript_path":"/dev/zero"}`, []string{"stop"}, op.ExitUsage},
		{"a wrong flag", "{}", []string{"prompt", "--within", "soon"}, op.ExitUsage},
		{"wrong types", `{"session_id":7}`, []string{"prompt"}, op.ExitUsage},
		{"a broken configuration", "{}", []string{"prompt", "--config", secret}, op.ExitUsage},
		{"a data directory that is a file", `{"prompt":"tide table"}`, []string{"prompt", "--data", secret}, op.ExitFailed},
	} {
		got := w.line(c.stdin, append([]string{"hook"}, c.args...)...)
		if got.code != 0 || got.stdout != "" || !strings.HasPrefix(got.stderr, "loci hook: ") {
			t.Errorf("%s: %+v", c.name, got)
		}
		if c.name == "no session" && !strings.Contains(got.stderr, "session_id: is missing") {
			t.Errorf("%s does not name the field: %s", c.name, got.stderr)
		}
		if strings.Contains(got.stderr, "do not read") {
			t.Errorf("%s tells what is in a file: %s", c.name, got.stderr)
		}
		if got := w.line(c.stdin, append([]string{"hook", "--strict"}, c.args...)...); got.code != c.strict {
			t.Errorf("%s with --strict: %+v", c.name, got)
		}
	}
	folder := filepath.Join(w.root, "x.jsonl")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := w.hook("stop", map[string]any{"transcript_path": folder}); got.code != 0 || got.stderr == "" {
		t.Errorf("%+v", got)
	}
	if got := w.line("{}", "hook", "prompt", "--from-the-future", "x"); got.code != 0 {
		t.Errorf("a flag of a newer setup: %+v", got)
	}
}

func TestTranscriptTail(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.jsonl")
	var b strings.Builder
	for i := range 3000 { // some pieces long
		b.WriteString(said(i, "user", strings.Repeat("x", i)))
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 1, 1500, 2900, 2998, 2999} {
		got, err := transcriptTail(path, fmt.Sprintf("m%d", n))
		want := b.String()[strings.Index(b.String(), fmt.Sprintf(`"uuid":"m%d"`, n)):]
		_, want, _ = strings.Cut(want, "\n")
		if err != nil || string(got) != want {
			t.Errorf("behind m%d there are %d bytes, want %d, %v", n, len(got), len(want), err)
		}
	}
	if got, err := transcriptTail(path, "nobody"); err != nil || len(got) != b.Len() {
		t.Errorf("of an unknown one %d bytes, want %d, %v", len(got), b.Len(), err)
	}
}
