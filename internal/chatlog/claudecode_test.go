package chatlog

import (
	"reflect"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/mark"
)

// session is a session file as Claude Code writes one, in little.
const session = `{"type":"file-history-snapshot","messageId":"m0","snapshot":{},"isSnapshotUpdate":false}
{"parentUuid":null,"isSidechain":false,"userType":"external","cwd":"/srv/harbour","sessionId":"s1","version":"2.1.0","gitBranch":"main","type":"user","message":{"role":"user","content":"When is high tide?"},"uuid":"u1","timestamp":"2026-05-01T10:00:00.000Z"}
{"parentUuid":"u1","isSidechain":false,"sessionId":"s1","type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"thinking","thinking":"Let me look."}]},"uuid":"a1","timestamp":"2026-05-01T10:00:01.000Z"}
{"parentUuid":"a1","isSidechain":false,"sessionId":"s1","type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"text","text":"Let me look at the table."}]},"uuid":"a2","timestamp":"2026-05-01T10:00:02.000Z"}
{"parentUuid":"a2","isSidechain":false,"sessionId":"s1","type":"assistant","message":{"id":"msg_1","role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]},"uuid":"a3","timestamp":"2026-05-01T10:00:03.000Z"}
{"parentUuid":"a3","isSidechain":false,"sessionId":"s1","type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"07:12"}]},"uuid":"u2","timestamp":"2026-05-01T10:00:04.000Z"}
{"parentUuid":"u2","isSidechain":true,"sessionId":"s1","type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":"a helper's words"}]},"uuid":"a4","timestamp":"2026-05-01T10:00:05.000Z"}
{"parentUuid":"u2","isSidechain":false,"isMeta":true,"sessionId":"s1","type":"user","message":{"role":"user","content":"a reminder"},"uuid":"u3","timestamp":"2026-05-01T10:00:06.000Z"}
{"parentUuid":"u2","isSidechain":false,"isCompactSummary":true,"sessionId":"s1","type":"user","message":{"role":"user","content":"This session is being continued."},"uuid":"u4","timestamp":"2026-05-01T10:00:07.000Z"}
{"parentUuid":"u2","isSidechain":false,"sessionId":"s1","type":"user","message":{"role":"user","content":"<command-name>/clear</command-name>"},"uuid":"u5","timestamp":"2026-05-01T10:00:08.000Z"}
{"type":"system","subtype":"compact_boundary","uuid":"x1","sessionId":"s1","timestamp":"2026-05-01T10:00:09.000Z"}

{"parentUuid":"u2","isSidechain":false,"sessionId":"s1","type":"assistant","message":{"role":"assistant","content":"At 07:12 潮水."},"uuid":"a5","timestamp":"2026-05-01T10:00:10.000Z"}
`

func TestClaudeCode(t *testing.T) {
	for _, format := range []Format{ClaudeCode, ""} {
		text := session
		if format == "" {
			text = text[strings.IndexByte(text, '\n')+1:] // the format shows in the first message
		}
		var got []Message
		rep, err := Read(strings.NewReader(text), format, Limits{}, func(m Message) error {
			got = append(got, m)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		const second = 1_000_000
		at := int64(1777629600) * second
		want := []Message{
			{Thread: "s1", ID: "u1", Role: "user", At: at, Text: "When is high tide?"},
			{Thread: "s1", ID: "a2", Role: "assistant", At: at + 2*second, Position: 1, Text: "Let me look at the table."},
			{Thread: "s1", ID: "a5", Role: "assistant", At: at + 10*second, Position: 2, Text: "At 07:12 潮水."},
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
		left := map[Reason]int64{Thinking: 1, ToolCall: 3, Hidden: 3}
		if rep.Format != ClaudeCode || rep.Messages != 3 || !reflect.DeepEqual(rep.LeftOut, left) {
			t.Errorf("%+v", rep)
		}
	}
}

func TestClaudeCodeBroken(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{session + `{"type":"user","mess`, "line 14: the JSON ends in the middle"},
		{session + "[]", "line 14: this must be an object"},
		{`{"type":"user","message":{"role":"user","content":7},"uuid":"u"}`, "content must be a string"},
		{`{"type":"user","message":7,"uuid":"u"}`, "message must be an object"},
	} {
		_, err := Read(strings.NewReader(c.text), ClaudeCode, Limits{}, func(Message) error { return nil })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.want, err)
		}
	}
}

// TestMarkedBlocks: what a memory gave is no message of anyone.
func TestMarkedBlocks(t *testing.T) {
	block := strings.ReplaceAll(strings.ReplaceAll(mark.Wrap("The tide table."), "\n", `\n`), `"`, `\"`)
	var got []string
	rep, err := Read(strings.NewReader(`{"role":"user","content":"`+block+`\n\nWhen?"}`+"\n"+`{"role":"user","text":"`+block+`"}`),
		JSONL, Limits{}, func(m Message) error {
			got = append(got, m.Text)
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, []string{"When?"}) || rep.LeftOut[Recalled] != 1 || rep.TextBytes != 5 {
		t.Errorf("%q, %+v", got, rep)
	}
}
