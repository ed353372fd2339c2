package pager

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/render"
)

// Scope names whose context it is: one or more strings, the first of which is
// the namespace that the scope's records lie in. In JSON a single string stands
// for an array of one.
type Scope []string

// maxScopeParts bounds the strings of a scope.
const maxScopeParts = 16

// UnmarshalJSON implements json.Unmarshaler.
func (s *Scope) UnmarshalJSON(raw []byte) error {
	var one string
	if err := json.Unmarshal(raw, &one); err == nil && string(raw) != "null" {
		*s = Scope{one}
		return nil
	}
	var many []string
	if err := json.Unmarshal(raw, &many); err != nil || many == nil {
		return invalid("scope", "must be a string or an array of strings")
	}
	*s = many
	return nil
}

// ParseScope reads a scope as a command line has it: a JSON array, or the
// namespace alone as it is.
func ParseScope(text string) (Scope, error) {
	if !strings.HasPrefix(text, "[") {
		return Scope{text}, nil
	}
	var s Scope
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, invalid("scope", `must be a string or a JSON array of strings, such as ["project","session-1"]`)
	}
	return s, nil
}

// scopeKey is a scope in its canonical form.
type scopeKey struct {
	namespace string
	scope     string // a compact JSON array
}

// key checks the scope and gives its canonical form.
func (s Scope) key() (scopeKey, error) {
	if len(s) == 0 {
		return scopeKey{}, invalid("scope", "must not be empty: name a namespace, and a session below it if you like")
	}
	if len(s) > maxScopeParts {
		return scopeKey{}, invalid("scope", "has %d parts, at most %d are allowed", len(s), maxScopeParts)
	}
	text := []byte{'['}
	for i, part := range s {
		field := fmt.Sprintf("scope[%d]", i)
		switch {
		case part == "":
			return scopeKey{}, invalid(field, "must not be empty")
		case len(part) > loci.MaxNamespaceBytes:
			return scopeKey{}, invalid(field, "is %d bytes long, at most %d are allowed", len(part), loci.MaxNamespaceBytes)
		case !utf8.ValidString(part):
			return scopeKey{}, invalid(field, "is not valid UTF-8")
		case strings.TrimSpace(part) != part:
			return scopeKey{}, invalid(field, "must not begin or end with a blank")
		case strings.ContainsFunc(part, unicode.IsControl):
			return scopeKey{}, invalid(field, "must not hold control characters")
		}
		if i > 0 {
			text = append(text, ',')
		}
		text = render.AppendString(text, part)
	}
	text = append(text, ']')
	if len(text) > loci.MaxScopeBytes {
		return scopeKey{}, invalid("scope", "takes %d bytes as JSON, at most %d are allowed", len(text), loci.MaxScopeBytes)
	}
	return scopeKey{s[0], string(text)}, nil
}
