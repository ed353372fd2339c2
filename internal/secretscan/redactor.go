package secretscan

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Count says how often a rule found something.
type Count struct {
	Rule  string
	Count int
}

// Redactor takes secrets out of texts and counts what it took. It may be used by
// many goroutines. A nil one leaves everything as it is.
type Redactor struct {
	mu    sync.Mutex
	found map[string]int
}

// Mark is what stands in the place of a secret.
func Mark(rule string) string { return "[redacted: " + rule + "]" }

func (r *Redactor) note(rule string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.found == nil {
		r.found = map[string]int{}
	}
	r.found[rule]++
}

// Counts gives what was taken out so far, by rule; nil for nothing.
func (r *Redactor) Counts() []Count {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []Count
	for _, rule := range slices.Sorted(maps.Keys(r.found)) {
		out = append(out, Count{rule, r.found[rule]})
	}
	return out
}

// Text is a text without its secrets.
func (r *Redactor) Text(s string) string { return r.text(s, false) }

// Lines is Text for a text whose lines are counted: what stood on several lines
// still does.
func (r *Redactor) Lines(s string) string { return r.text(s, true) }

func (r *Redactor) text(s string, lines bool) string {
	if r == nil {
		return s
	}
	hits := Find(s)
	if len(hits) == 0 {
		return s
	}
	var out strings.Builder
	at := 0
	for _, h := range hits {
		r.note(h.Rule)
		out.WriteString(s[at:h.Start])
		out.WriteString(Mark(h.Rule))
		if lines {
			out.WriteString(strings.Repeat("\n", strings.Count(s[h.Start:h.End], "\n")))
		}
		at = h.End
	}
	out.WriteString(s[at:])
	return out.String()
}

// Under is Text for a text under a name that may say that it is a secret.
func (r *Redactor) Under(name, s string) string {
	if r == nil {
		return s
	}
	if out := r.Text(s); out != s {
		return out
	}
	if rule := Named(name, s); rule != "" {
		r.note(rule)
		return Mark(rule)
	}
	return s
}

// Texts is Text for each of a list, which stays as it is.
func (r *Redactor) Texts(list []string) []string { return r.texts("", list) }

func (r *Redactor) texts(name string, list []string) []string {
	if r == nil {
		return list
	}
	var out []string
	for i, s := range list {
		if clean := r.Under(name, s); clean != s {
			if out == nil {
				out = slices.Clone(list)
			}
			out[i] = clean
		}
	}
	if out == nil {
		return list
	}
	return out
}

// Map is Under for each of the texts of a map of lists, which stays as it is.
func (r *Redactor) Map(m map[string][]string) map[string][]string {
	if r == nil || len(m) == 0 {
		return m
	}
	out := make(map[string][]string, len(m))
	for name, list := range m {
		out[name] = r.texts(name, list)
	}
	return out
}

// JSON is a JSON value without the secrets of its strings, at any depth. Keys and
// everything else stay as they are, byte for byte. What is no JSON comes back as
// it is: whoever takes it refuses it.
func (r *Redactor) JSON(raw []byte) []byte {
	if r == nil || len(raw) == 0 || !json.Valid(raw) {
		return raw
	}
	var out []byte
	key, at := "", 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		end++
		var s string
		if json.Unmarshal(raw[i:end], &s) != nil {
			return raw
		}
		after := end
		for after < len(raw) && (raw[after] == ' ' || raw[after] == '\n' || raw[after] == '\t' || raw[after] == '\r') {
			after++
		}
		if after < len(raw) && raw[after] == ':' {
			key = s
		} else if clean := r.Under(key, s); clean != s {
			out = append(append(out, raw[at:i]...), quoted(clean)...)
			at = end
		}
		i = end - 1
	}
	if at == 0 {
		return raw
	}
	return append(out, raw[at:]...)
}

// quoted is a text as a JSON string, without the escapes that only web pages
// need.
func quoted(s string) []byte {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return []byte(`""`) // of a string it cannot be
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}
