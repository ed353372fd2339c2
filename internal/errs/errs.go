// Package errs holds the one error type of the product. The root package
// exports it under the same names; it lives here so that internal packages
// can return coded errors without importing the root.
package errs

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Code is a stable, machine-readable error code. Codes are errors
// themselves, so errors.Is(err, loci.ErrNotFound) works on any error that
// wraps one.
type Code string

// The codes. Their strings are frozen: they appear on every surface.
const (
	Validation    Code = "validation"     // the request is malformed; the message says what would be right
	NotFound      Code = "not_found"      // no such record under the given filter
	Conflict      Code = "conflict"       // the write contradicts what is stored
	Locked        Code = "locked"         // another process holds the data directory
	Closed        Code = "closed"         // the store was closed
	SchemaVersion Code = "schema_version" // the data was written by a newer version
	InvalidVector Code = "invalid_vector" // wrong dimension, non-finite or zero norm
	StaleRevision Code = "stale_revision" // expected_revision does not match
	Index         Code = "index"          // a derived index is unusable
	Storage       Code = "storage"        // the database refused or is damaged
	IO            Code = "io"             // a file could not be read or written
	Canceled      Code = "canceled"       // the context ended first
	Forbidden     Code = "forbidden"      // the caller lacks the grant
)

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return string(c) }

// Error is what every operation returns when it fails. Its text names the
// operation, the field and the reason; it never holds record text.
type Error struct {
	Code    Code
	Op      string // operation, e.g. "memories.upsert"; may be empty
	Field   string // offending field, e.g. "filter.scopes"; may be empty
	Message string // what was wrong and what would be right
	Err     error  // cause; may be nil
}

// Error renders "op: field: message: cause (code)".
func (e *Error) Error() string {
	var b strings.Builder
	for _, part := range []string{e.Op, e.Field, e.Message} {
		if part == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(part)
	}
	if e.Err != nil {
		if b.Len() > 0 {
			b.WriteString(": ")
		}
		b.WriteString(e.Err.Error())
	}
	b.WriteString(" (" + string(e.Code) + ")")
	return b.String()
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is e's code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// New makes an error with a formatted message.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid makes a validation error about one field.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: Validation, Field: field, Message: fmt.Sprintf(format, args...)}
}

// Wrap gives err a code and a message. A nil err stays nil, and an error that
// already carries a code keeps it.
func Wrap(code Code, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if c := CodeOf(err); c != "" {
		code = c
	}
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Err: err}
}

// WithOp names the operation on err. Errors without a code become canceled
// when a context ended, storage otherwise.
func WithOp(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := err.(*Error); ok {
		if e.Op == "" {
			c := *e
			c.Op = op
			return &c
		}
		return e
	}
	code := CodeOf(err)
	if code == "" {
		code = Storage
	}
	return &Error{Code: code, Op: op, Err: err}
}

// CodeOf gives the code err carries, canceled for an ended context, or "".
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	var c Code
	if errors.As(err, &c) {
		return c
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Canceled
	}
	return ""
}
