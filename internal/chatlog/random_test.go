package chatlog

import (
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// fatalf is what testing.TB and rapid.T have in common.
type fatalf interface {
	Helper()
	Fatalf(string, ...any)
}

// check says what holds for whatever was read.
func check(t fatalf, size int, messages []Message, report Report) {
	t.Helper()
	next := map[string]int64{}
	keys := map[uint64]int{}
	var bytes, repeated int64
	for i := range messages {
		m := &messages[i]
		if m.Position != next[m.Thread] {
			t.Fatalf("message %d has position %d in %q, want %d", i, m.Position, m.Thread, next[m.Thread])
		}
		next[m.Thread]++
		if strings.TrimSpace(m.Text) == "" || m.Role == "" || m.Thread == "" {
			t.Fatalf("message %d lacks text, role or thread: %+v", i, m)
		}
		for _, s := range []string{m.Thread, m.Title, m.ID, m.Role, m.Author, m.Text} {
			if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
				t.Fatalf("message %d has what is no character: %+v", i, m)
			}
		}
		for _, s := range []string{m.Thread, m.Title, m.ID, m.Role, m.Author} {
			if len(s) > maxName {
				t.Fatalf("message %d has a name of %d bytes", i, len(s))
			}
		}
		key := Key(m.Thread, m)
		if j, ok := keys[key]; ok || key == 0 {
			t.Fatalf("messages %d and %d have the key %d", j, i, key)
		}
		keys[key] = i
		bytes += int64(len(m.Text))
		if m.Repeat > 0 {
			repeated++
		}
	}
	// U+FFFD has three bytes and may stand for one.
	if bytes > 3*int64(size) || bytes != report.TextBytes {
		t.Fatalf("%d bytes of text, %d reported, from %d", bytes, report.TextBytes, size)
	}
	if report.Messages != int64(len(messages)) || report.Threads != int64(len(next)) || report.RepeatedIDs != repeated || report.EmptyThreads < 0 {
		t.Fatalf("%d messages in %d threads, %d repeated, and the report says %+v", len(messages), len(next), repeated, report)
	}
	for why, n := range report.LeftOut {
		if n <= 0 || why == "" {
			t.Fatalf("report %+v", report)
		}
	}
}

// checkRead reads twice, once of them slowly, and compares. Without an error
// it gives how many messages there were, those left out among them.
func checkRead(t fatalf, in string, format Format, limits Limits) (total int64, ok bool) {
	t.Helper()
	messages, report, err := read(in, format, limits)
	check(t, len(in), messages, report)
	var again []Message
	report2, err2 := Read(&halting{in: in}, format, limits, func(m Message) error {
		again = append(again, m)
		return nil
	})
	if !reflect.DeepEqual(messages, again) || !reflect.DeepEqual(report, report2) || (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() {
		t.Fatalf("read twice, it differs: %+v, %v and %+v, %v", report, err, report2, err2)
	}
	total = report.Messages
	for _, n := range report.LeftOut {
		total += n
	}
	return total, err == nil
}

// halting gives few bytes at a time, and sometimes none.
type halting struct {
	in string
	n  int
}

func (h *halting) Read(p []byte) (int, error) {
	if h.n++; h.n%3 == 0 {
		return 0, nil
	}
	if h.in == "" {
		return 0, io.EOF
	}
	n := copy(p, h.in[:min(len(h.in), 1+h.n%7)])
	h.in = h.in[n:]
	return n, nil
}

// fuzzLimits are small, so that the fuzzer meets them.
func fuzzLimits(cut bool) Limits {
	return Limits{MaxMessageBytes: 200, CutLong: cut, MaxConversationBytes: 4000, MaxLineBytes: 2000, MaxThreads: 20, MaxMessages: 50}
}

func fuzz(f *testing.F, format Format, file string) {
	whole := sample(f, file)
	f.Add([]byte(whole), false)
	for _, line := range strings.SplitAfter(whole, "\n") {
		f.Add([]byte(line), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, cut bool) {
		checkRead(t, string(in), format, fuzzLimits(cut))
		checkRead(t, string(in), "", Limits{CutLong: cut})
	})
}

func FuzzJSONL(f *testing.F) {
	for _, in := range []string{`{"role":"a","content":[{"type":"text","text":"\ud800\u0000"}]}`, `{"messages":[{"role":"a","text":"b"}],"messages":[{"text":"c"}]}`, "{\"role\":\"a\xff\",\"text\":\"\xf0\x28\"}"} {
		f.Add([]byte(in), true)
	}
	fuzz(f, JSONL, "messages.jsonl")
}

func FuzzChatGPT(f *testing.F) {
	for _, in := range []string{gptTree("b", "a b b", "b a a"), gptTree("", "r - a,b", "a r -", "b r -"), `{"conversations":[{"mapping":{"":{"message":{"content":{"parts":["x"]}}}}}]}`} {
		f.Add([]byte(in), true)
	}
	fuzz(f, ChatGPT, "chatgpt.json")
}

func FuzzClaude(f *testing.F) {
	f.Add([]byte(`{"uuid":"a","conversations":[],"chat_messages":[{"sender":"human","content":"x"}]}`), true)
	fuzz(f, Claude, "claude.json")
}

// FuzzUnquote holds the reader of strings against that of encoding/json.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{`a`, `\u00e9\n\/\"\\`, `\ud83d\ude00`, `\ud83d`, `\ud83d\u0041`, `\udc00\ud800`, "\xff潮\xe6\xbd", `\u0000`, `\ufffd`, `\ud83d\n`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		in := append(append([]byte{'"'}, body...), '"')
		var want string
		if json.Unmarshal(in, &want) != nil || in[0] != '"' {
			t.Skip()
		}
		got, d := unquote([]byte(strings.TrimSpace(string(in))))
		if got != strings.ReplaceAll(want, "\x00", replacement) {
			t.Fatalf("%q gives %q, want %q", in, got, want)
		}
		if zeros := int64(strings.Count(want, "\x00")); d.nuls != zeros || d.replaced < 0 || d.replaced > int64(strings.Count(want, replacement)) {
			t.Fatalf("%q: %+v for %q", in, d, want)
		}
		if clean, none := unquote([]byte(`"` + strings.ReplaceAll(strings.ReplaceAll(got, `\`, `\\`), `"`, `\"`) + `"`)); clean != got || none != (damage{}) {
			t.Fatalf("%q is not clean: %+v", got, none)
		}
	})
}

// TestFormatsAgree writes the same conversations in each format: every message
// comes back, or is counted, and has the same key everywhere.
func TestFormatsAgree(t *testing.T) {
	type said struct{ ID, Role, Text string }
	text := rapid.OneOf(rapid.SampledFrom([]string{"", " ", "\n", "你好", "a\x00b", "x\xffy", "👩‍👧", `"quoted" \u0041`}), rapid.StringN(0, 40, -1))
	rapid.Check(t, func(rt *rapid.T) {
		var jsonl strings.Builder
		var gpt, claude []any
		var total int64
		for c := range rapid.IntRange(0, 4).Draw(rt, "conversations") {
			id := fmt.Sprintf("c%d", c)
			mapping := map[string]any{}
			list := []any{}
			last := ""
			for i := range rapid.IntRange(0, 6).Draw(rt, "messages") {
				m := said{fmt.Sprintf("%s-%d", id, i), rapid.SampledFrom([]string{"user", "assistant"}).Draw(rt, "role"), text.Draw(rt, "text")}
				total++
				write(rt, &jsonl, map[string]any{"thread": id, "title": "t", "id": m.ID, "role": m.Role, "content": m.Text})
				node := map[string]any{"parent": last, "message": map[string]any{"id": m.ID, "author": map[string]any{"role": m.Role},
					"content": map[string]any{"content_type": "text", "parts": []string{m.Text}}}}
				mapping[m.ID] = node
				sender := strings.Replace(m.Role, "user", "human", 1)
				list = append(list, map[string]any{"uuid": m.ID, "sender": sender, "parent_message_uuid": "0" + last, "text": m.Text})
				last = m.ID
			}
			for _, m := range list {
				m.(map[string]any)["parent_message_uuid"] = "" // one line
			}
			gpt = append(gpt, map[string]any{"id": id, "title": "t", "current_node": last, "mapping": mapping})
			claude = append(claude, map[string]any{"uuid": id, "name": "t", "chat_messages": list})
		}
		var first []Message
		for i, in := range []struct {
			text   string
			format Format
		}{{jsonl.String(), JSONL}, {encoded(rt, gpt), ChatGPT}, {encoded(rt, claude), Claude}} {
			if n, ok := checkRead(rt, in.text, in.format, Limits{}); !ok || n != total {
				rt.Fatalf("%s: %d messages of %d", in.format, n, total)
			}
			got, _, err := read(in.text, in.format, Limits{})
			if err != nil {
				rt.Fatal(err)
			}
			if i == 0 {
				first = got
			}
			if !reflect.DeepEqual(first, got) {
				rt.Fatalf("%s gives %+v, jsonl gives %+v", in.format, got, first)
			}
		}
	})
}

func write(t *rapid.T, out *strings.Builder, v any) {
	out.WriteString(encoded(t, v) + "\n")
}

func encoded(t *rapid.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if string(data) == "null" {
		return "[]"
	}
	return string(data)
}

// TestMemory reads 100 MB of each format and looks at what is alive meanwhile.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 300 MB")
	}
	const size, allowed = 100 << 20, 24 << 20
	body := strings.Repeat("潮汐来了又走。The tide comes and goes. ", 20)
	for _, test := range []struct {
		format           Format
		head, each, tail string
	}{
		{JSONL, "", `{"thread":"t%d","id":"m%[1]d","role":"user","content":"` + body + "\"}\n", ""},
		{ChatGPT, "[", `{"id":"c%d","mapping":{"m%[1]d":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":["` + body + `"]}}}}},`, `{"mapping":{}}]`},
		{Claude, "[", `{"uuid":"c%d","chat_messages":[{"uuid":"m%[1]d","sender":"human","text":"` + body + `","attachments":[{"extracted_content":"` + body + `"}]}]},`, `{"chat_messages":[]}]`},
	} {
		t.Run(string(test.format), func(t *testing.T) {
			in := &endless{each: test.each, left: size, tail: test.tail}
			in.now = []byte(test.head)
			before := alive()
			var worst, n uint64
			report, err := Read(in, test.format, Limits{}, func(Message) error {
				if n++; n%10000 == 0 {
					worst = max(worst, alive())
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if report.Messages != in.count || n < 20000 {
				t.Fatalf("%d messages of %d", report.Messages, in.count)
			}
			if worst > before+allowed {
				t.Fatalf("%d bytes alive after %d messages, %d before", worst, n, before)
			}
		})
	}
}

// alive is how many bytes on the heap are in use.
func alive() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// endless writes conversations while they are read.
type endless struct {
	each, tail string
	now        []byte
	left       int
	count      int64
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.now) == 0 {
		if e.left <= 0 {
			if e.tail == "" {
				return 0, io.EOF
			}
			e.now, e.tail = []byte(e.tail), ""
		} else {
			e.now = fmt.Appendf(e.now[:0], e.each, e.count)
			e.left -= len(e.now)
			e.count++
		}
	}
	n := copy(p, e.now)
	e.now = e.now[n:]
	return n, nil
}
