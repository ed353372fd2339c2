package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// Code is the stable code of an error.
type Code string

// Error implements error.
func (c Code) Error() string { return string(c) }

// Error is what a server answers when an operation fails.
type Error struct {
	Status    int    // of HTTP; 0 when the server was not asked
	Code      Code   // "" when what answered is no Loci server
	Operation string // such as "memories.get"
	Field     string // the offending field, "" for none
	Message   string // for people
	Reason    string // the context store's own code, which says more than Code
	Details   map[string]json.RawMessage
}

// Error implements error.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Operation)
	b.WriteString(": ")
	if e.Field != "" {
		b.WriteString(e.Field + " ")
	}
	b.WriteString(e.Message)
	if e.Code != "" {
		fmt.Fprintf(&b, " (%s)", e.Code)
	}
	return b.String()
}

// Is says that the error has a code, for errors.Is.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code != "" && code == e.Code
}

// maxForeign bounds what is shown of an answer that is no problem document.
const maxForeign = 200

// problem reads an answer that is not a result.
func problem(name string, status int, raw []byte) *Error {
	var p struct {
		Code      Code                       `json:"code"`
		Operation string                     `json:"operation"`
		Field     string                     `json:"field"`
		Title     string                     `json:"title"`
		Detail    string                     `json:"detail"`
		Reason    string                     `json:"reason"`
		Details   map[string]json.RawMessage `json:"details"`
	}
	e := &Error{Status: status, Operation: name}
	if json.Unmarshal(raw, &p) != nil || p.Code == "" {
		text := strings.ToValidUTF8(string(raw[:min(len(raw), maxForeign)]), "")
		e.Message = fmt.Sprintf("the server answered %d %s: %s", status, http.StatusText(status), strings.Join(strings.Fields(text), " "))
		return e
	}
	e.Code, e.Field, e.Message, e.Reason, e.Details = p.Code, p.Field, p.Detail, p.Reason, p.Details
	if p.Operation != "" {
		e.Operation = p.Operation
	}
	if e.Message == "" {
		e.Message = p.Title
	}
	return e
}
