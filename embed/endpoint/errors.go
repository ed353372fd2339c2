package endpoint

import (
	"fmt"
	"net/http"

	"github.com/loci-memory/loci/embed"
)

// An Error is an answer of a service that is no success. It holds nothing of
// the request: no key, no text.
type Error struct {
	Service string // which one and where: "openai at https://api.openai.com/v1"
	Status  int    // the HTTP status
	Message string // what the service said, cut short; "" if nothing readable
	// Kind is embed.ErrTooLarge, embed.ErrRefused or nil. A refused request may
	// owe its fate to one of its texts; embed them one by one to find it.
	Kind error
}

// Error implements error.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %d %s", e.Service, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		s += ": " + e.Message
	}
	return s
}

// Unwrap gives Kind.
func (e *Error) Unwrap() error { return e.Kind }

// A TextError speaks of one text of a call. It wraps embed.ErrRefused.
type TextError struct {
	Index  int    // its position among the texts or documents; -1: the query
	Reason string // what is wrong with it, without the text
}

// Error implements error.
func (e *TextError) Error() string {
	if e.Index < 0 {
		return "the query " + e.Reason
	}
	return fmt.Sprintf("text %d %s", e.Index, e.Reason)
}

// Unwrap gives embed.ErrRefused.
func (e *TextError) Unwrap() error { return embed.ErrRefused }
