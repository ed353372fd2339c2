package remote

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

func TestComplaints(t *testing.T) {
	for body, want := range map[string]complaint{
		`{"error": {"message": "m", "type": "t", "code": "c", "param": "p"}}`:   {"m", "c", "p"},
		`{"error": {"message": "m", "type": "t", "code": null, "param": null}}`: {"m", "t", ""},
		`{"error": {"message": "m", "code": 400}}`:                              {"m", "", ""},
		`{"error": "m", "error_type": "Validation"}`:                            {"m", "Validation", ""},
		`{"message": "m"}`: {"m", "", ""},
		`{"object": "error", "message": "m", "type": "BadRequestError", "code": 400}`: {"m", "", ""},
		`{"detail": "m"}`: {"m", "", ""},
		`{"detail": [{"type": "t", "loc": ["body", "input", 0], "msg": "m", "input": 1}]}`: {"m", "", "input"},
		`{"detail": [{"msg": 7}]}`:    {},
		`{"error": {}, "message": 1}`: {},
		`[1, 2]`:                      {},
		`{"error`:                     {},
		`<html>no</html>`:             {},
		"\xff\xfe":                    {},
		"":                            {},
		"plain words\n":               {"plain words", "", ""},
	} {
		if got := parseComplaint([]byte(body)); got != want {
			t.Errorf("%s: %+v, not %+v", body, got, want)
		}
	}
}

func TestKinds(t *testing.T) {
	for _, c := range []struct {
		status int
		said   complaint
		want   error
	}{
		{413, complaint{}, embed.ErrTooLarge},
		{400, complaint{message: "x"}, embed.ErrRefused},
		{422, complaint{}, embed.ErrRefused},
		{400, complaint{message: "x", field: "model"}, nil},
		{400, complaint{message: "x", field: "input[3]"}, embed.ErrRefused},
		{400, complaint{message: "Requested 309209 tokens, max 300000 tokens per request", code: "max_tokens_per_request"}, embed.ErrTooLarge},
		{400, complaint{message: "the input length exceeds the context length"}, embed.ErrTooLarge},
		{422, complaint{message: "`inputs` must have less than 512 tokens. Given: 534"}, embed.ErrTooLarge},
		{429, complaint{message: "Request too large for model on tokens per min"}, embed.ErrTooLarge},
		{429, complaint{message: "slow down"}, nil},
		{500, complaint{message: "input is too large to process"}, embed.ErrTooLarge},
		{500, complaint{message: "oops"}, nil},
		{503, complaint{message: "context length"}, nil},
		{401, complaint{message: "context length"}, nil},
		{404, complaint{}, nil},
	} {
		if got := kind(c.status, c.said); got != c.want {
			t.Errorf("%d %+v: %v, not %v", c.status, c.said, got, c.want)
		}
	}
}

func TestHide(t *testing.T) {
	secrets := []endpoint.Key{endpoint.NewKey("sk-1"), {}}
	for _, c := range []struct{ message, text, want string }{
		{"nothing to hide", "a text of some length", "nothing to hide"},
		{"bad key sk-1.", "x", "bad key [...]."},
		{"cannot read: a text of some length!", "a text of some length", "cannot read: [...]!"},
		{"cannot read: text of some len...", "a text of some length", "cannot read:[...]..."},
		{"no such word: Anna", "Anna", "no such word: [...]"},
		{"Anna and Anna", "Anna", "[...] and [...]"},
		{"an is in every message", "an", "an is in every message"},
		{"我的日記在哪裡", "我的日記在哪裡呢", "[...]"},
		{"", "a", ""},
	} {
		if got := hide(c.message, secrets, []string{c.text}); got != c.want {
			t.Errorf("%q without %q: %q, not %q", c.message, c.text, got, c.want)
		}
	}
}

// TestHideProperty: what is left shares no run with a text, but for what the
// marks of the cuts bring in.
func TestHideProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.RuneFrom([]rune("abc 日é")), 4, 60, -1).Draw(t, "text")
		from := rapid.IntRange(0, len(text)).Draw(t, "from")
		to := rapid.IntRange(from, len(text)).Draw(t, "to")
		message := rapid.StringOfN(rapid.RuneFrom([]rune("abc 日é")), 0, 20, -1).Draw(t, "before") + strings.ToValidUTF8(text[from:to], "") + "!"
		got := hide(message, nil, []string{text})
		if !utf8.ValidString(got) {
			t.Fatalf("%q", got)
		}
		const shared = 12
		for i := 0; i+shared <= len(got); i++ {
			if run := got[i : i+shared]; !strings.Contains(run, "[...]") && strings.Contains(text, run) {
				t.Fatalf("%q of %q is left in %q", run, text, got)
			}
		}
	})
}

func TestExcerpt(t *testing.T) {
	if got := excerpt("a\n\tb\x00\x1b[31mc  d"); got != "a b [31mc d" {
		t.Errorf("%q", got)
	}
	if got := excerpt(strings.Repeat("日", 300)); got != strings.Repeat("日", 200)+"..." {
		t.Errorf("%q", got)
	}
}
