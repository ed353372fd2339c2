package pager

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestAdapters(t *testing.T) {
	for _, c := range []struct {
		provider, raw string
		want          tokenCounts
	}{
		{"anthropic", `{"input_tokens":1000,"cache_read_input_tokens":8000,"cache_creation_input_tokens":1000,"output_tokens":300}`, tokenCounts{1000, 8000, 1000, 300}},
		{"anthropic", `{"input_tokens":5,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},
			"cache_read_input_tokens":null,"output_tokens":1,"service_tier":"standard","server_tool_use":{"web_search_requests":0}}`, tokenCounts{5, 0, 30, 1}},
		{"anthropic", `{"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}`, tokenCounts{0, 0, 30, 0}},
		{"anthropic", `{"cache_creation_input_tokens":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20}}`, tokenCounts{0, 0, 30, 0}},
		{"anthropic", `{"cache_creation_input_tokens":40,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_24h_input_tokens":30}}`, tokenCounts{0, 0, 40, 0}},
		{"anthropic-1h", `{"input_tokens":1e3}`, tokenCounts{1000, 0, 0, 0}},
		{"openai", `{"prompt_tokens":2006,"completion_tokens":300,"total_tokens":2306,"prompt_tokens_details":{"cached_tokens":1920,"audio_tokens":0},
			"completion_tokens_details":{"reasoning_tokens":5}}`, tokenCounts{86, 1920, 0, 300}},
		{"openai", `{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},"completion_tokens":1}`, tokenCounts{10, 60, 30, 1}},
		{"openai-5.6", `{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":60},"cache_write_tokens":40}`, tokenCounts{0, 60, 40, 0}},
		{"openai", `{"prompt_tokens":100,"prompt_tokens_details":null,"completion_tokens":7}`, tokenCounts{100, 0, 0, 7}},
		{"openai", `{"input_tokens":125,"input_tokens_details":{"cached_tokens":98,"cache_write_tokens":20},"output_tokens":48,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":173}`,
			tokenCounts{7, 98, 20, 48}},
		{"deepseek", `{"prompt_tokens":100,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36,"completion_tokens":9,"total_tokens":109}`, tokenCounts{36, 64, 0, 9}},
		{"deepseek-pro", `{"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`, tokenCounts{36, 64, 0, 0}},
		{"deepseek", `{"prompt_tokens":100,"prompt_cache_hit_tokens":64}`, tokenCounts{36, 64, 0, 0}},
		{"deepseek", `{"prompt_tokens":100,"prompt_cache_miss_tokens":64}`, tokenCounts{64, 36, 0, 0}},
		{"deepseek", `{"prompt_tokens":100}`, tokenCounts{100, 0, 0, 0}},
		{"gemini", `{"promptTokenCount":1000,"cachedContentTokenCount":900,"candidatesTokenCount":50,"thoughtsTokenCount":25,"totalTokenCount":1075,
			"promptTokensDetails":[{"modality":"TEXT","tokenCount":1000}]}`, tokenCounts{100, 900, 0, 75}},
		{"gemini-pro", `{"prompt_token_count":10,"cached_content_token_count":null,"candidates_token_count":3}`, tokenCounts{10, 0, 0, 3}},
		{"dsh", `{"input_tokens":1,"cache_read_tokens":2,"cache_write_tokens":3,"output_tokens":4}`, tokenCounts{1, 2, 3, 4}},
		{"dsh", `{"inputTokens":1,"cacheReadTokens":2,"cacheWriteTokens":3,"outputTokens":4}`, tokenCounts{1, 2, 3, 4}},
		{"openai", `{}`, tokenCounts{}},
		{"openai", `{"Prompt_Tokens":5,"PROMPT_TOKENS":6}`, tokenCounts{}}, // fields that are not known
		{"openai", `{"prompt_tokens":9007199254740992}`, tokenCounts{1 << 53, 0, 0, 0}},
	} {
		got, err := adapt(c.provider, json.RawMessage(c.raw))
		if err != nil || got != c.want {
			t.Errorf("%s %s: %+v, %v", c.provider, c.raw, got, err)
		}
	}
}

func TestAdaptersRefuse(t *testing.T) {
	for _, c := range []struct{ provider, raw, field string }{
		{"anthropic", `{"input_tokens":-1}`, "usage.input_tokens"},
		{"anthropic", `{"input_tokens":1.5}`, "usage.input_tokens"},
		{"anthropic", `{"input_tokens":"12"}`, "usage.input_tokens"},
		{"anthropic", `{"input_tokens":true}`, "usage.input_tokens"},
		{"anthropic", `{"input_tokens":[1]}`, "usage.input_tokens"},
		{"anthropic", `{"output_tokens":9007199254740993}`, "usage.output_tokens"},
		{"anthropic", `{"output_tokens":1e400}`, "usage.output_tokens"},
		{"anthropic", `{"output_tokens":1e19}`, "usage.output_tokens"},
		{"anthropic", `{"cache_creation":7}`, "usage.cache_creation"},
		{"anthropic", `{"cache_creation":{"ephemeral_5m_input_tokens":-7}}`, "usage.cache_creation.ephemeral_5m_input_tokens"},
		{"anthropic", `{"cache_creation_input_tokens":{"ephemeral_1h_input_tokens":0.5}}`, "usage.cache_creation_input_tokens.ephemeral_1h_input_tokens"},
		{"anthropic", `{"cache_creation_input_tokens":5,"cache_creation":{"ephemeral_5m_input_tokens":6}}`, "usage.cache_creation_input_tokens"},
		{"anthropic", `{"cache_creation":{"ephemeral_5m_input_tokens":9007199254740992,"ephemeral_1h_input_tokens":1}}`, "usage.cache_creation.ephemeral_1h_input_tokens"},
		{"openai", `{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":11}}`, "usage.prompt_tokens"},
		{"openai", `{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":6,"cache_write_tokens":5}}`, "usage.prompt_tokens"},
		{"openai", `{"prompt_tokens_details":{"cached_tokens":6}}`, "usage.prompt_tokens"},
		{"openai", `{"input_tokens":10,"input_tokens_details":{"cached_tokens":11}}`, "usage.input_tokens"},
		{"openai", `{"input_tokens":10,"input_tokens_details":[]}`, "usage.input_tokens_details"},
		{"deepseek", `{"prompt_tokens":100,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":37}`, "usage.prompt_tokens"},
		{"deepseek", `{"prompt_tokens":100,"prompt_cache_hit_tokens":101}`, "usage.prompt_tokens"},
		{"deepseek", `{"prompt_tokens":100,"prompt_cache_miss_tokens":101}`, "usage.prompt_tokens"},
		{"gemini", `{"promptTokenCount":10,"cachedContentTokenCount":11}`, "usage.promptTokenCount"},
		{"gemini", `{"candidatesTokenCount":9007199254740992,"thoughtsTokenCount":1}`, "usage.thoughtsTokenCount"},
		{"dsh", `{"inputTokens":-0.5}`, "usage.inputTokens"},
		{"openai", ``, "usage"}, {"openai", `null`, "usage"}, {"openai", `7`, "usage"}, {"openai", `{"a":`, "usage"}, {"openai", `{} {}`, "usage"},
		{"", `{}`, "provider"}, {"Anthropic", `{}`, "provider"},
	} {
		got, err := adapt(c.provider, json.RawMessage(c.raw))
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Code != ErrInvalidArgument || e.Field != c.field || got != (tokenCounts{}) {
			t.Errorf("%s %s: %+v, %v", c.provider, c.raw, got, err)
		}
	}
}

// FuzzAdapters reads anything as a usage object: counters come out that are
// within their range and add up, or invalid_argument, which does not repeat what
// was read.
func FuzzAdapters(f *testing.F) {
	for _, raw := range []string{
		`{"input_tokens":1000,"cache_read_input_tokens":8000,"cache_creation":{"ephemeral_5m_input_tokens":10}}`,
		`{"prompt_tokens":100,"prompt_tokens_details":{"cached_tokens":60,"cache_write_tokens":30},"completion_tokens":1}`,
		`{"prompt_tokens":100,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}`,
		`{"promptTokenCount":1000,"cachedContentTokenCount":900,"thoughtsTokenCount":1e3}`,
		`{"inputTokens":-1}`, `{"input_tokens":9007199254740992,"input_tokens_details":{"cached_tokens":null}}`, `[]`, "",
	} {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, name := range adapterNames() {
			c, err := adapt(name, raw)
			if err != nil {
				e, ok := errors.AsType[*Error](err)
				if !ok || e.Code != ErrInvalidArgument || !strings.HasPrefix(e.Field, "usage") || c != (tokenCounts{}) {
					t.Fatalf("%s: %v, %+v", name, err, c)
				}
				continue
			}
			for _, n := range []int64{c.Input, c.CacheRead, c.CacheWrite, c.Output} {
				if n < 0 || n > maxExactInt {
					t.Fatalf("%s: %+v", name, c)
				}
			}
			if !json.Valid(raw) {
				t.Fatalf("%s read what is no JSON", name)
			}
		}
	})
}
