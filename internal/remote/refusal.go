package remote

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/redact"
)

const maxExcerpt = 200 // runes of a service's message that an error shows

// tooLarge are phrases, in lower case, by which services say that a request
// holds too much, if they do not say it by its status.
var tooLarge = []string{
	"context_length_exceeded", "max_tokens_per_request", "array_above_max_length",
	"context length", "context window", "maximum input length", "maximum sequence length", "max tokens per request",
	"too many tokens", "too many inputs", "too many texts", "tokens exceed", "token limit", "must have less than",
	"too long", "too large to process", "batch size",
}

// refusal turns an answer that is no success into an error, and says whether
// another try may have a better one.
func (c *Client) refusal(resp *http.Response, texts []string) (retry, error) {
	status := resp.StatusCode
	e := &endpoint.Error{Service: c.service, Status: status}
	if status >= 300 && status < 400 {
		e.Message = "it redirects elsewhere"
		if to, err := resp.Location(); err == nil {
			e.Message = "it redirects to " + (&url.URL{Scheme: to.Scheme, Host: to.Host}).String() + ", which was not asked"
		}
		return retry{}, e
	}
	// A body that breaks off is still good for what came.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	said := parseComplaint(body)
	e.Message = excerpt(hide(said.message, c.secrets, texts))
	e.Kind = kind(status, said)
	if e.Kind != nil {
		return retry{}, e
	}
	after, asked := retryAfter(resp.Header.Get("Retry-After"), c.now())
	switch {
	case status == http.StatusTooManyRequests:
		return retry{again: said.code != "insufficient_quota", after: after, limited: true}, e
	case status == http.StatusServiceUnavailable && asked:
		return retry{again: true, after: after, limited: true}, e
	case status == http.StatusRequestTimeout || status >= 500:
		return retry{again: true, after: after}, e
	}
	return retry{}, e
}

// kind says what a status means for the texts of a request. Some servers
// complain of too much text with a status of their own, 500 included.
func kind(status int, said complaint) error {
	if status == http.StatusRequestEntityTooLarge {
		return embed.ErrTooLarge
	}
	if status == http.StatusTooManyRequests && strings.Contains(strings.ToLower(said.message), "request too large") {
		return embed.ErrTooLarge // for the budget of a whole minute: it can never pass
	}
	text := status == http.StatusBadRequest || status == http.StatusUnprocessableEntity
	if text || status == http.StatusInternalServerError {
		words := strings.ToLower(said.code + " " + said.message)
		for _, phrase := range tooLarge {
			if strings.Contains(words, phrase) {
				return embed.ErrTooLarge
			}
		}
	}
	// A complaint about another field is about the settings: no text is to blame.
	if text && (said.field == "" || strings.HasPrefix(said.field, "input") || strings.HasPrefix(said.field, "text") ||
		strings.HasPrefix(said.field, "documents") || strings.HasPrefix(said.field, "query")) {
		return embed.ErrRefused
	}
	return nil
}

// A complaint is what the body of an error says.
type complaint struct {
	message string
	code    string // a word for programs
	field   string // the field of the request that it is about
}

// parseComplaint knows the usual forms: error as an object or as text, message,
// detail as text or as a list. Of anything else only plain text is kept.
func parseComplaint(body []byte) complaint {
	var outer struct {
		Error   json.RawMessage `json:"error"`
		Type    any             `json:"error_type"`
		Message any             `json:"message"`
		Detail  json.RawMessage `json:"detail"`
	}
	if json.Unmarshal(body, &outer) != nil {
		text := strings.TrimSpace(string(body))
		if strings.HasPrefix(text, "<") || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[") || !utf8.ValidString(text) {
			return complaint{}
		}
		return complaint{message: text}
	}
	var out complaint
	var inner struct {
		Message any `json:"message"`
		Type    any `json:"type"`
		Code    any `json:"code"`
		Param   any `json:"param"`
	}
	var text string
	var list []struct {
		Loc []any `json:"loc"`
		Msg any   `json:"msg"`
	}
	switch {
	case json.Unmarshal(outer.Error, &text) == nil && text != "":
		out.message, out.code = text, word(outer.Type)
	case json.Unmarshal(outer.Error, &inner) == nil && word(inner.Message) != "":
		out.message, out.code, out.field = word(inner.Message), word(inner.Code), word(inner.Param)
		if out.code == "" {
			out.code = word(inner.Type)
		}
	case word(outer.Message) != "":
		out.message = word(outer.Message)
	case json.Unmarshal(outer.Detail, &text) == nil && text != "":
		out.message = text
	case json.Unmarshal(outer.Detail, &list) == nil && len(list) > 0:
		out.message = word(list[0].Msg)
		// The first step says that it is the body; the second names the field.
		if loc := list[0].Loc; len(loc) > 1 {
			out.field = word(loc[1])
		}
	}
	return out
}

func word(x any) string {
	s, _ := x.(string)
	return s
}

// hide takes out of a message what it repeats of secrets and texts.
func hide(message string, secrets []endpoint.Key, texts []string) string {
	revealed := make([]string, len(secrets))
	for i, key := range secrets {
		revealed[i] = key.Reveal()
	}
	return redact.Hide(message, revealed, texts)
}

// excerpt makes one short line of a message.
func excerpt(message string) string {
	words := strings.FieldsFunc(message, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) })
	line := []rune(strings.Join(words, " "))
	if len(line) > maxExcerpt {
		return string(line[:maxExcerpt]) + "..."
	}
	return string(line)
}
