package pager

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
)

// adapter reads a provider's usage object.
type adapter struct {
	provider string
	read     func(*usageObject) tokenCounts
}

// adapters are the usage objects that are understood.
func adapters() []adapter {
	return []adapter{
		{"anthropic", readAnthropic}, {"openai", readOpenAI}, {"deepseek", readDeepSeek}, {"gemini", readGemini}, {"dsh", readDisjoint},
	}
}

func adapterNames() (names []string) {
	for _, a := range adapters() {
		names = append(names, a.provider)
	}
	return names
}

// adapt reads the usage object of a provider, or of a profile's provider.
// Fields that are not known are left alone: providers add some. What is missing
// or null is 0. Sums that cannot be are invalid_argument, which names the field.
func adapt(provider string, raw json.RawMessage) (tokenCounts, error) {
	name := provider
	if p, known := profileOf(provider); known {
		name = p.Provider
	}
	all := adapters()
	i := slices.IndexFunc(all, func(a adapter) bool { return a.provider == name })
	if i < 0 {
		return tokenCounts{}, invalid("provider", "is not known: name one of %s, or a profile", strings.Join(adapterNames(), ", "))
	}
	u := &usageObject{path: "usage"}
	// A map, since the decoder of structs takes any case for a field's name.
	if err := json.Unmarshal(raw, &u.fields); err != nil || u.fields == nil {
		return tokenCounts{}, invalid("usage", "must be the usage object of the provider's answer")
	}
	c := all[i].read(u)
	if u.failed != nil {
		return tokenCounts{}, u.failed
	}
	return c, nil
}

// usageObject reads fields of a JSON object. It keeps the first failure.
type usageObject struct {
	path   string
	fields map[string]json.RawMessage
	parent *usageObject
	failed error
}

func (u *usageObject) fail(field, format string, args ...any) {
	if u.parent != nil {
		u.parent.fail(u.name(field), format, args...)
		return
	}
	if u.failed == nil {
		u.failed = invalid(u.name(field), format, args...)
	}
}

// name is the path of a field, which may be one already.
func (u *usageObject) name(field string) string {
	if strings.HasPrefix(field, u.path+".") {
		return field
	}
	return u.path + "." + field
}

// has says whether a field is there and not null.
func (u *usageObject) has(field string) bool {
	raw, ok := u.fields[field]
	return ok && string(raw) != "null"
}

// count gives the first of the named fields that is there; 0 for none.
func (u *usageObject) count(names ...string) int64 {
	for _, name := range names {
		if u.has(name) {
			n, ok := wholeNumber(u.fields[name])
			if !ok {
				u.fail(name, "must be a whole number from 0 to %d", int64(maxExactInt))
			}
			return n
		}
	}
	return 0
}

// object gives the object below a field; an empty one when it is not there.
func (u *usageObject) object(field string) *usageObject {
	o := &usageObject{path: u.path + "." + field, parent: u}
	if u.has(field) {
		if err := json.Unmarshal(u.fields[field], &o.fields); err != nil {
			u.fail(field, "must be an object")
		}
	}
	return o
}

// rest is whole without its parts, which must not be more.
func (u *usageObject) rest(field string, whole int64, parts ...int64) int64 {
	for _, p := range parts {
		if whole -= p; whole < 0 {
			u.fail(field, "is less than what is a part of it")
			return 0
		}
	}
	return whole
}

// sum adds numbers that are at most maxExactInt, and must come to no more.
func (u *usageObject) sum(field string, parts ...int64) (total int64) {
	for _, p := range parts {
		if total += p; total > maxExactInt {
			u.fail(field, "comes to more than %d with what is added to it", int64(maxExactInt))
			return 0
		}
	}
	return total
}

// wholeNumber reads a JSON number from 0 to maxExactInt that has no fraction,
// however it is written.
func wholeNumber(raw []byte) (int64, bool) {
	text := string(raw)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		if n < 0 || n > maxExactInt {
			return 0, false
		}
		return n, true
	}
	if len(text) == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return 0, false // a string, or none at all
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || f != math.Trunc(f) || f < 0 || f > maxExactInt {
		return 0, false
	}
	return int64(f), true
}

// readAnthropic reads {input_tokens, cache_read_input_tokens,
// cache_creation_input_tokens, cache_creation: {ephemeral_5m_input_tokens,
// ephemeral_1h_input_tokens}, output_tokens}. The counters are disjoint;
// cache_creation says in detail what cache_creation_input_tokens sums up.
func readAnthropic(u *usageObject) tokenCounts {
	const sum, detail = "cache_creation_input_tokens", "cache_creation"
	ephemeral := func(o *usageObject) int64 {
		return o.sum("ephemeral_1h_input_tokens", o.count("ephemeral_5m_input_tokens"), o.count("ephemeral_1h_input_tokens"))
	}
	parts := ephemeral(u.object(detail))
	write := parts
	switch raw := u.fields[sum]; {
	case !u.has(sum):
	case raw[0] == '{':
		write = ephemeral(u.object(sum))
	default:
		write = u.count(sum)
	}
	u.rest(sum, write, parts)
	return tokenCounts{u.count("input_tokens"), u.count("cache_read_input_tokens"), write, u.count("output_tokens")}
}

// readOpenAI reads chat completions, {prompt_tokens, prompt_tokens_details:
// {cached_tokens, cache_write_tokens}, completion_tokens}, and responses,
// {input_tokens, input_tokens_details: {...}, output_tokens}. The whole includes
// what was cached.
func readOpenAI(u *usageObject) tokenCounts {
	whole, out := "prompt_tokens", "completion_tokens"
	if !u.has(whole) && u.has("input_tokens") {
		whole, out = "input_tokens", "output_tokens"
	}
	d := u.object(whole + "_details")
	read, write := d.count("cached_tokens"), d.count("cache_write_tokens")
	if !d.has("cache_write_tokens") {
		write = u.count("cache_write_tokens")
	}
	return tokenCounts{u.rest(whole, u.count(whole), read, write), read, write, u.count(out)}
}

// readDeepSeek reads {prompt_tokens, prompt_cache_hit_tokens,
// prompt_cache_miss_tokens, completion_tokens}, where the first is the sum of
// the other two of the prompt.
func readDeepSeek(u *usageObject) tokenCounts {
	const whole, hits, misses = "prompt_tokens", "prompt_cache_hit_tokens", "prompt_cache_miss_tokens"
	hit, miss := u.count(hits), u.count(misses)
	if u.has(whole) {
		prompt := u.count(whole)
		switch {
		case !u.has(misses):
			miss = u.rest(whole, prompt, hit)
		case !u.has(hits):
			hit = u.rest(whole, prompt, miss)
		case hit+miss != prompt:
			u.fail(whole, "must be the sum of %s and %s", hits, misses)
		}
	}
	return tokenCounts{miss, hit, 0, u.count("completion_tokens")}
}

// readGemini reads {promptTokenCount, cachedContentTokenCount,
// candidatesTokenCount, thoughtsTokenCount}, also with the names that its
// clients give them. The prompt includes what was cached; thoughts are output
// besides the candidates.
func readGemini(u *usageObject) tokenCounts {
	read := u.count("cachedContentTokenCount", "cached_content_token_count")
	input := u.rest("promptTokenCount", u.count("promptTokenCount", "prompt_token_count"), read)
	out := u.sum("thoughtsTokenCount", u.count("candidatesTokenCount", "candidates_token_count"), u.count("thoughtsTokenCount", "thoughts_token_count"))
	return tokenCounts{input, read, 0, out}
}

// readDisjoint reads counters that are disjoint already, by the names of this
// store or in camel case.
func readDisjoint(u *usageObject) tokenCounts {
	return tokenCounts{
		u.count("input_tokens", "inputTokens"), u.count("cache_read_tokens", "cacheReadTokens"),
		u.count("cache_write_tokens", "cacheWriteTokens"), u.count("output_tokens", "outputTokens"),
	}
}
