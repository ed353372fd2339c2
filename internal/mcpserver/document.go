package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
)

// document is a JSON object. Its numbers are json.Number, so that they go on as
// they came.
type document = map[string]any

func asError(err error) (*errs.Error, bool) { return errors.AsType[*errs.Error](err) }

func decode(raw json.RawMessage) (document, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var doc document
	if err := dec.Decode(&doc); err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the result is not a JSON object")
	}
	return doc, nil
}

// encode is json.Marshal without the escapes that only a web page needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the result has no JSON form")
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// str is the string m[name], or "".
func str(m document, name string) string {
	v, _ := m[name].(string)
	return v
}

// obj is the object m[name], or an empty one.
func obj(m document, name string) document {
	v, _ := m[name].(document)
	return v
}

// items are the objects of the array m[name].
func items(m document, name string) []document {
	list, _ := m[name].([]any)
	out := make([]document, 0, len(list))
	for _, v := range list {
		if o, ok := v.(document); ok {
			out = append(out, o)
		}
	}
	return out
}

// strs are the strings of the array m[name].
func strs(m document, name string) []string {
	list, _ := m[name].([]any)
	var out []string
	for _, v := range list {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

// slim takes out of a record what says nothing to a model: empty members, and the
// store's own figures.
func slim(v any) any {
	switch v := v.(type) {
	case document:
		out := document{}
		for name, member := range v {
			switch name {
			case "revision", "updated_at_us", "state", "vector_scores", "text_score", "indexed_revision", "diagnostics",
				"source_revision", "recorded_at_us", "version", "record_id", "bytes", "chunk_chars":
				continue
			}
			if m := slim(member); !empty(m) {
				out[name] = m
			}
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = slim(v[i])
		}
		return out
	}
	return v
}

func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case []any:
		return len(v) == 0
	case document:
		return len(v) == 0
	}
	return false
}

// tokens estimates how many tokens of a model a text has: four Latin letters make
// one, and so does each sign of another script.
func tokens(text []byte) int {
	ascii, others := 0, 0
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r < utf8.RuneSelf {
			ascii++
		} else {
			others++
		}
		text = text[n:]
	}
	return (ascii+3)/4 + others
}

// cutSign stands where a text was cut.
const cutSign = " … [cut]"

// shortest is how short, in signs, a text is cut at most.
const shortest = 120

// cut brings doc down to a budget of tokens: whole items go from the ends of its
// lists, the last list first, and when each has one left, the longest texts are
// cut. What was left out is counted in doc, and said.
func cut(doc document, lists []string, budget int) string {
	total := size(doc)
	if total <= budget {
		return ""
	}
	// What is said about it costs something, too.
	budget -= 40
	left := document{}
	for _, name := range slices.Backward(lists) {
		list, _ := doc[name].([]any)
		n := len(list)
		for n > 1 && total > budget {
			n--
			total -= size(list[n])
		}
		if n < len(list) {
			doc[name] = list[:n:n]
			left[name] = len(list) - n
		}
	}
	shortened := false
	for total > budget {
		saved := shorten(doc)
		if saved == 0 {
			break
		}
		shortened = true
		total -= saved
	}
	var said []string
	for _, name := range slices.Sorted(maps.Keys(left)) {
		said = append(said, fmt.Sprintf("%d more %s", left[name], name))
	}
	out := ""
	if len(said) > 0 {
		doc["left_out"] = left
		out = strings.Join(said, " and ") + " were left out to keep this short"
	}
	if shortened {
		doc["texts_cut"] = true
		if out != "" {
			out += ", and long texts were cut"
		} else {
			out = "Long texts were cut to keep this short"
		}
	}
	if out == "" {
		return ""
	}
	return strings.ToUpper(out[:1]) + out[1:] + fmt.Sprintf("; call again with a larger max_tokens (this was %d) or ask for less.", budget+40)
}

// size estimates the tokens of a value's JSON.
func size(v any) int {
	raw, err := encode(v)
	if err != nil {
		return 0 // it came from JSON
	}
	return tokens(raw) + 1
}

// shorten halves the longest text in v and gives how many tokens that saved; 0 when
// none is long.
func shorten(v any) int {
	var longest int
	var replace func(string)
	var text string
	var walk func(v any)
	see := func(s string, put func(string)) {
		if n := utf8.RuneCountInString(s); n > shortest && n > longest {
			longest, text, replace = n, s, put
		}
	}
	walk = func(v any) {
		switch v := v.(type) {
		case document:
			for _, name := range slices.Sorted(maps.Keys(v)) {
				if s, ok := v[name].(string); ok {
					see(s, func(short string) { v[name] = short })
				} else {
					walk(v[name])
				}
			}
		case []any:
			for i := range v {
				if s, ok := v[i].(string); ok {
					see(s, func(short string) { v[i] = short })
				} else {
					walk(v[i])
				}
			}
		}
	}
	walk(v)
	if replace == nil {
		return 0
	}
	runes := []rune(strings.TrimSuffix(text, cutSign))
	short := string(runes[:max(len(runes)/2, shortest/2)]) + cutSign
	replace(short)
	return max(tokens([]byte(text))-tokens([]byte(short)), 1)
}
