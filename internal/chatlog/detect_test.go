package chatlog

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/loci-memory/loci/internal/errs"
)

// TestDetectAhead holds that a format is found, that the reader gives all of the input
// after it, and that what is read by it is what is read without it.
func TestDetectAhead(t *testing.T) {
	for name, c := range map[string]struct {
		input string
		said  Format
		want  Format
	}{
		"lines":   {`{"role":"user","content":"tide"}` + "\n", "", JSONL},
		"nothing": {"", "", JSONL},
		"chatgpt": {`[{"title":"a","mapping":{}}]`, "", ChatGPT},
		"claude":  {`[{"uuid":"a","chat_messages":[]}]`, "", Claude},
		"said":    {`[{"uuid":"a","chat_messages":[]}]`, ChatGPT, ChatGPT},
	} {
		t.Run(name, func(t *testing.T) {
			format, rest, err := Detect(iotest.OneByteReader(strings.NewReader(c.input)), c.said)
			if err != nil || format != c.want {
				t.Fatalf("format %q, error %v, want %q", format, err, c.want)
			}
			all, err := io.ReadAll(rest)
			if err != nil || string(all) != c.input {
				t.Errorf("%q is left, error %v", all, err)
			}
		})
	}
	for input, said := range map[string]Format{"neither": "", "{}": "yaml", "PK\x03\x04": ""} {
		if _, _, err := Detect(strings.NewReader(input), said); errs.CodeOf(err) != errs.Validation {
			t.Errorf("%q as %q: %v", input, said, err)
		}
	}
}
