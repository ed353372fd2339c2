package chatlog

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/internal/errs"
)

var update = flag.Bool("update", false, "write the golden files anew")

// read collects what Read gives.
func read(in string, format Format, limits Limits) ([]Message, Report, error) {
	var out []Message
	report, err := Read(strings.NewReader(in), format, limits, func(m Message) error {
		out = append(out, m)
		return nil
	})
	return out, report, err
}

// sample is a file of testdata.
func sample(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// dump writes down what was read, for people.
func dump(t *testing.T, messages []Message, report Report) []byte {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i := range messages {
		m := &messages[i]
		if err := enc.Encode(m); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "  key %d\n", Key(m.Thread, m))
	}
	enc.SetIndent("", "  ")
	if err := enc.Encode(report); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestGolden(t *testing.T) {
	for _, test := range []struct {
		file   string
		format Format
	}{
		{"messages.jsonl", JSONL}, {"chatgpt.json", ChatGPT}, {"claude.json", Claude},
	} {
		t.Run(test.file, func(t *testing.T) {
			in := sample(t, test.file)
			messages, report, err := read(in, "", Limits{})
			if err != nil {
				t.Fatal(err)
			}
			if report.Format != test.format {
				t.Errorf("format %q was found, want %q", report.Format, test.format)
			}
			check(t, len(in), messages, report)
			got := dump(t, messages, report)
			golden := filepath.Join("testdata", test.file+".golden")
			if *update {
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}

			// However the bytes arrive, and with the format given: the same.
			var slow []Message
			again, err := Read(iotest.OneByteReader(strings.NewReader("\ufeff"+in)), test.format, Limits{}, func(m Message) error {
				slow = append(slow, m)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(messages, slow) + cmp.Diff(report, again); diff != "" {
				t.Errorf("read byte by byte, behind a byte order mark:\n%s", diff)
			}
		})
	}
}

// TestCutAnywhere cuts exports short at every byte: each cut is an error that
// says so, and what comes before it is given as it is in the whole.
func TestCutAnywhere(t *testing.T) {
	for _, test := range []struct {
		file   string
		format Format
	}{{"chatgpt.json", ChatGPT}, {"claude.json", Claude}} {
		in := strings.TrimSpace(sample(t, test.file))
		whole, _, err := read(in, test.format, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for n := range len(in) {
			got, _, err := read(in[:n], test.format, Limits{})
			if !errors.Is(err, errs.Validation) {
				t.Fatalf("%s: %d of %d bytes: error %v", test.file, n, len(in), err)
			}
			if n > 0 && !strings.Contains(err.Error(), "cut short") {
				t.Fatalf("%s: %d of %d bytes: %v", test.file, n, len(in), err)
			}
			if len(got) > len(whole) || len(got) > 0 && cmp.Diff(whole[:len(got)], got) != "" {
				t.Fatalf("%s: %d of %d bytes: other messages", test.file, n, len(in))
			}
		}
	}
}

func TestDetect(t *testing.T) {
	big := strings.Repeat("x", headBytes)
	for _, test := range []struct {
		in   string
		want Format // "" for an error
	}{
		{"", JSONL},
		{" \n\t", JSONL},
		{`[]`, ChatGPT},
		{"\ufeff" + ` [ { "title" : "a", "tags":[{"mapping":1}], "mapping" : {} } ]`, ChatGPT},
		{`[{"uuid":"u","chat_messages":[]}]`, Claude},
		{`{"account":{"role":1},"conversations":[{"uuid":"u","chat_messages":[]}]}`, Claude},
		{`{"conversations":[{"mapping":{}}]}`, ChatGPT},
		{`{"conversations":[]}`, Claude},
		{`{"mapping":{}}`, ChatGPT},
		{`{"chat_messages":[]}` + "\n" + `{"chat_messages":[]}`, Claude},
		{`{"thread":"t","role":"user","content":"` + big + `"}`, JSONL},
		{`{"content":[],"role":"user"}`, JSONL},
		{`{"id":"c","messages":[]}`, JSONL},
		{`{"text":"a","author":"b"}`, JSONL},
		{`{"note":"` + big + `","role":"user","content":"a"}`, ""},
		{`[{"role":"user","content":"a"}]`, ""},
		{`{"conversations":[{"from":"human"}]}`, ""},
		{`{"conversations":{}}`, ""},
		{`{"type":"summary"}`, ""},
		{`[1]`, ""}, {`[`, ""}, {`{`, ""}, {`{"a`, ""}, {`7`, ""}, {`hello`, ""}, {"\x00", ""},
	} {
		_, report, err := read(test.in, "", Limits{})
		switch {
		case test.want == "" && !errors.Is(err, errs.Validation):
			t.Errorf("%.60q: format %q, error %v, want a refusal", test.in, report.Format, err)
		case test.want != "" && (err != nil || report.Format != test.want):
			t.Errorf("%.60q: format %q, error %v, want %s", test.in, report.Format, err, test.want)
		}
	}
}

func TestErrors(t *testing.T) {
	node := `{"mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["hi"]}}}}}`
	for _, test := range []struct {
		name   string
		in     string
		format Format
		limits Limits
		want   string // in the message
	}{
		{"format", "", "csv", Limits{}, "must be jsonl, chatgpt, claude or claude-code"},
		{"negative limit", "", JSONL, Limits{MaxThreads: -1}, "max_threads: must not be negative"},
		{"long default thread", "", JSONL, Limits{Thread: strings.Repeat("t", 513)}, "512 bytes"},
		{"zip", "PK\x03\x04...", "", Limits{}, "zip archive"},
		{"UTF-16", "\xff\xfe[\x00", ChatGPT, Limits{}, "UTF-16"},

		{"truncated line", "{\"role\":\"user\",\"content\":\"a\"}\n\n{\"role\":\"us", JSONL, Limits{}, "line 3: the JSON ends in the middle"},
		{"broken line", "{\"role\":\"user\",\"secret\"}", JSONL, Limits{}, "line 1: byte 24 of it"},
		{"no object", "\n[]", JSONL, Limits{}, "line 2: this must be an object"},
		{"several lines", "{\n\"role\":\"user\"\n}", JSONL, Limits{}, "line 1: the JSON ends in the middle"},
		{"array in several lines", "[\n{}]", JSONL, Limits{}, "line 1: this must be an object"},
		{"null", "null", JSONL, Limits{}, "line 1: this must be an object"},
		{"no role", `{"content":"a"}`, JSONL, Limits{}, "line 1: a message needs a role"},
		{"no content", `{"role":"user"}`, JSONL, Limits{}, "line 1: a message needs content or text"},
		{"number as content", `{"role":"user","content":5}`, JSONL, Limits{}, "content must be a string or an array of parts"},
		{"thread", `{"thread":["a"],"role":"user","content":"a"}`, JSONL, Limits{}, "must be a string or a number"},
		{"title", `{"title":5,"role":"user","content":"a"}`, JSONL, Limits{}, "title must be a string"},
		{"time", `{"timestamp":"yesterday","role":"user","content":"a"}`, JSONL, Limits{}, "line 1: timestamp must be"},
		{"time of the line", `{"time":true,"messages":[]}`, JSONL, Limits{}, "line 1: time must be"},
		{"messages", `{"messages":{}}`, JSONL, Limits{}, "line 1: messages must be an array"},
		{"message of messages", `{"messages":[{"role":"user","content":"a"},5]}`, JSONL, Limits{}, "line 1: messages must be an object"},
		{"second message", `{"messages":[{"role":"user","content":"a"},{"content":"b"}]}`, JSONL, Limits{}, "line 1: message 2: a message needs a role"},
		{"long id", `{"role":"user","content":"a","id":"` + strings.Repeat("i", 513) + `"}`, JSONL, Limits{}, "line 1: the id is longer than 512 bytes"},
		{"long line", "\n" + `{"role":"user","content":"aaaaaaaaaa"}`, JSONL, Limits{MaxLineBytes: 20}, "line 2: it is longer than 20 bytes"},
		{"long text", `{"role":"user","content":"12345"}`, JSONL, Limits{MaxMessageBytes: 4}, "line 1: the text has 5 bytes, more than 4"},
		{"threads", `{"thread":"a","role":"user","content":"a"}` + "\n" + `{"thread":"b","role":"user","content":"a"}`, JSONL, Limits{MaxThreads: 1}, "line 2: the input has more than 1 conversations"},
		{"messages limit", `{"messages":[{"role":"user","content":"a"},{"role":"user","content":"b"}]}`, JSONL, Limits{MaxMessages: 1}, "line 1: message 2: the input has more than 1 messages"},

		{"empty", " \n", ChatGPT, Limits{}, "the input is empty"},
		{"scalar", "5", ChatGPT, Limits{}, "must be an array of conversations"},
		{"broken", `[{"mapping":{}} ; secret`, ChatGPT, Limits{}, "this is not JSON"},
		{"no conversation", `[{"mapping":{}},[]]`, ChatGPT, Limits{}, "conversation 2, near byte"},
		{"other program's", `[{"chat_messages":[]}]`, ChatGPT, Limits{}, "it has no mapping"},
		{"mapping", `[{"mapping":[]}]`, ChatGPT, Limits{}, "mapping must be an object"},
		{"node", `[{"mapping":{}},{"mapping":{"secret":[]}}]`, ChatGPT, Limits{}, "conversation 2, near byte 36: this must be an object"},
		{"author", `[{"mapping":{"a":{"message":{"author":"secret"}}}}]`, ChatGPT, Limits{}, "message.author must be an object"},
		{"garbage behind", `[` + node + `] secret`, ChatGPT, Limits{}, "conversation 1, near byte"},
		{"long conversation", `[` + node + `,` + node + `]`, ChatGPT, Limits{MaxConversationBytes: 50}, "conversation 1, near byte 16: a conversation takes more than 50 bytes"},
		{"other program's", `[` + node + `]`, Claude, Limits{}, "it has no chat_messages"},
		{"chat_messages", `[{"chat_messages":{}}]`, Claude, Limits{}, "chat_messages must be an array"},
		{"chat message", `[{"chat_messages":["secret"]}]`, Claude, Limits{}, "this must be an object"},
		{"conversations", `{"conversations":5}`, Claude, Limits{}, "conversations must be an array"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := read(test.in, test.format, test.limits)
			if !errors.Is(err, errs.Validation) || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error %v, want %q", err, test.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Fatalf("error %q repeats the input", err)
			}
		})
	}
}

// TestOthersErrors are not the input's fault.
func TestOthersErrors(t *testing.T) {
	broken := errors.New("the disk is gone")
	stop := errors.New("enough")
	for _, test := range []struct {
		file   string
		format Format
	}{{"messages.jsonl", JSONL}, {"chatgpt.json", ChatGPT}, {"claude.json", Claude}} {
		in := sample(t, test.file)
		r := io.MultiReader(strings.NewReader(in[:len(in)/2]), iotest.ErrReader(broken))
		if _, err := Read(r, test.format, Limits{}, func(Message) error { return nil }); !errors.Is(err, broken) || !errors.Is(err, errs.IO) {
			t.Errorf("%s: error %v, want that of the reader", test.file, err)
		}
		pad := strings.Repeat(" ", headBytes)
		r = io.MultiReader(strings.NewReader(pad+in[:len(in)/2]), iotest.ErrReader(broken))
		if _, err := Read(r, test.format, Limits{}, func(Message) error { return nil }); !errors.Is(err, broken) || !errors.Is(err, errs.IO) {
			t.Errorf("%s: error %v, want that of the reader", test.file, err)
		}
		n := 0
		report, err := Read(strings.NewReader(in), test.format, Limits{}, func(Message) error {
			if n++; n == 3 {
				return stop
			}
			return nil
		})
		if err != stop || n != 3 || report.Messages != 2 {
			t.Errorf("%s: error %v after %d calls, %d counted", test.file, err, n, report.Messages)
		}
	}
	if _, err := Read(silent{}, JSONL, Limits{}, nil); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader that gives nothing for ever: %v", err)
	}
}

// silent is a reader that never gives anything.
type silent struct{}

func (silent) Read([]byte) (int, error) { return 0, nil }

// TestExactLimits are met by what is as long as it may be, and not by a byte more.
func TestExactLimits(t *testing.T) {
	conv := `{"mapping":{"a":{"message":{"author":{"role":"user"},"content":{"parts":["hi"]}}}}}`
	line := `{"role":"user","content":"hi"}`
	for _, test := range []struct {
		in     string
		format Format
		limits Limits
		ok     bool
	}{
		{"[" + conv + ",\n" + conv + "]", ChatGPT, Limits{MaxConversationBytes: int64(len(conv))}, true},
		{conv + conv, ChatGPT, Limits{MaxConversationBytes: int64(len(conv))}, true},
		{"[" + conv + "]", ChatGPT, Limits{MaxConversationBytes: int64(len(conv)) - 1}, false},
		{conv, ChatGPT, Limits{MaxConversationBytes: int64(len(conv)) - 1}, false},
		{line + "\n" + line, JSONL, Limits{MaxLineBytes: len(line), MaxMessages: 2, MaxThreads: 1, MaxMessageBytes: 2}, true},
		{line + "\n", JSONL, Limits{MaxLineBytes: len(line) - 1}, false},
		{line, JSONL, Limits{MaxLineBytes: len(line) - 1}, false},
		{line, JSONL, Limits{MaxMessageBytes: 1}, false},
	} {
		for _, in := range []io.Reader{strings.NewReader(test.in), iotest.OneByteReader(strings.NewReader(test.in))} {
			if _, err := Read(in, test.format, test.limits, func(Message) error { return nil }); (err == nil) != test.ok {
				t.Errorf("%.40q with %+v: %v", test.in, test.limits, err)
			}
		}
	}
}

func TestCutLong(t *testing.T) {
	in := `{"role":"user","content":"潮汐潮汐","title":"` + strings.Repeat("题", 200) + `"}` + "\n" + `{"role":"user","content":"    a"}`
	got, report, err := read(in, JSONL, Limits{CutLong: true, MaxMessageBytes: 4})
	if err != nil {
		t.Fatal(err)
	}
	want := []Message{{Thread: "default", Title: strings.Repeat("题", 170), Role: "user", Text: "潮"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if report.CutTexts != 2 || report.CutNames != 1 || report.LeftOut[Empty] != 1 || report.TextBytes != 3 {
		t.Errorf("%+v", report)
	}
}

// TestShapes are inputs that stand in other shapes than those of the samples.
func TestShapes(t *testing.T) {
	gpt := func(id, text string) string {
		return fmt.Sprintf(`{"id":%q,"mapping":{"n":{"message":{"author":{"role":"user"},"content":{"content_type":"text","parts":[%q]}}}}}`, id, text)
	}
	claude := func(id, text string) string {
		return fmt.Sprintf(`{"chat_messages":[{"sender":"human","text":%q}],"uuid":%q}`, text, id)
	}
	for _, test := range []struct {
		name, in string
		format   Format
		want     string // thread/position/role/id/repeat=text
	}{
		{"parts of an export", `[` + gpt("a", "1") + "]\n[" + gpt("b", "2") + `]`, "", "a/0/user/n/0=1 b/0/user/n/0=2"},
		{"conversations by themselves", gpt("a", "1") + gpt("b", "2"), "", "a/0/user/n/0=1 b/0/user/n/0=2"},
		{"an object around them", `{"x":[{"y":1}],"conversations":[` + claude("a", "1") + "," + claude("b", "2") + `],"z":1}`, "", "a/0/user//0=1 b/0/user//0=2"},
		{"the same conversation twice", `[` + gpt("a", "1") + "," + gpt("a", "1") + `]`, "", "a/0/user/n/0=1 a/1/user/n/1=1"},
		{"no id", `[` + claude("", "1") + `]`, "", nameless("", "", "1", "") + "/0/user//0=1"},
		{"no id for ChatGPT", `[` + gpt("", "1") + "," + gpt("", "2") + `]`, "", nameless("", "n", "1") + "/0/user/n/0=1 " + nameless("", "n", "2") + "/0/user/n/0=2"},
		{"default thread", `{"role":"user","text":"1"}`, JSONL, "mine/0/user//0=1"},
		{"ids that come again", `{"role":"a","text":"1","id":5}` + "\n" + `{"role":"a","text":"2","id":5}` + "\n" + `{"role":"a","text":"1","id":5}`, JSONL,
			"mine/0/a/5/0=1 mine/1/a/5/1=2 mine/2/a/5/2=1"},
		{"threads in turns", `{"thread":"x","role":"a","text":"1"}` + "\r\n" + `{"thread":"y","role":"a","text":"2"}` + "\r\n" + `{"thread":"x","role":"a","text":"3"}`, JSONL,
			"x/0/a//0=1 y/0/a//0=2 x/1/a//0=3"},
		{"text beside content", `{"role":"a","content":null,"text":"1"}`, JSONL, "mine/0/a//0=1"},
		{"one part alone", `{"role":"a","content":{"type":"text","text":"1"}}`, JSONL, "mine/0/a//0=1"},
		{"parts without a type", `{"role":"a","content":["1",null,{"text":"2"},{"text":3},{},7]}`, JSONL, "mine/0/a//0=1\n2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, report, err := read(test.in, test.format, Limits{Thread: "mine"})
			if err != nil {
				t.Fatal(err)
			}
			check(t, len(test.in), got, report)
			var list []string
			for _, m := range got {
				list = append(list, fmt.Sprintf("%s/%d/%s/%s/%d=%s", m.Thread, m.Position, m.Role, m.ID, m.Repeat, m.Text))
			}
			if diff := cmp.Diff(test.want, strings.Join(list, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTimes(t *testing.T) {
	for _, test := range []struct {
		in   string
		want int64
		bad  bool
	}{
		{`null`, 0, false}, {`""`, 0, false}, {`0`, 0, false},
		{`1709654410`, 1709654410_000000, false},
		{`1709654410.123456`, 1709654410_123456, false},
		{`1.709654410e9`, 1709654410_000000, false},
		{`-1.5`, -1_500000, false},
		{`99999999999`, 99999999999_000000, false},
		{`100000000000`, 100000000_000000, false},
		{`1709654410123`, 1709654410_123000, false},
		{`1709654410123.5`, 1709654410_123500, false},
		{`1709654410123456`, 1709654410_123456, false},
		{`1709654410123456789`, 1709654410_123456, false},
		{`"1709654410"`, 1709654410_000000, false},
		{`"2024-03-05T16:00:10Z"`, 1709654410_000000, false},
		{`"2024-03-05T17:00:10.123456789+01:00"`, 1709654410_123456, false},
		{`-99999999999`, 0, true}, {`1e30`, 0, true}, {`-1e300`, 0, true}, {`true`, 0, true}, {`{}`, 0, true},
		{`"0000-12-31T00:00:00Z"`, 0, true}, {`"2024-03-05"`, 0, true}, {`"nan"`, 0, true}, {`"inf"`, 0, true}, {`"5 s"`, 0, true},
	} {
		var v value
		if err := json.Unmarshal([]byte(test.in), &v); err != nil {
			t.Fatal(err)
		}
		got, ok := readTime(v)
		if ok == test.bad || ok && got != test.want {
			t.Errorf("%s: %d, %v; want %d", test.in, got, ok, test.want)
		}
	}
}

// TestKey holds the keys: stores know imported messages by them.
func TestKey(t *testing.T) {
	for _, test := range []struct {
		thread string
		m      Message
		want   uint64
	}{
		{"t", Message{ID: "m", Role: "user", Text: "a"}, 14898607316973621152},
		{"t", Message{ID: "m", Repeat: 1}, 3468156346258283817},
		{"t", Message{Role: "user", Text: "a"}, 6621100662579797930},
		{"t", Message{Role: "user", Text: "a", Position: 1}, 6026130398873587368},
		{"t", Message{Role: "usera"}, 3573420887093805610},
		{"tu", Message{Role: "ser", Text: "a"}, 2417650195212322979},
		{"", Message{}, 2759551904973117844},
	} {
		if got := Key(test.thread, &test.m); got != test.want {
			t.Errorf("key of %q %+v is %d, want %d", test.thread, test.m, got, test.want)
		}
	}
	a := Message{Thread: "x", ID: "m", Position: 3, Role: "user", Text: "a", Title: "t"}
	b := Message{Thread: "y", ID: "m", Position: 9, Role: "assistant", Text: "b"}
	if Key("t", &a) != Key("t", &b) {
		t.Error("a message with an id is known by it alone")
	}
}
