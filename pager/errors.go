package pager

import (
	"errors"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
)

// Code is a stable, machine-readable error code of the context store. Codes are
// errors themselves, so errors.Is(err, pager.ErrPinned) works.
type Code string

// Error makes a Code usable as a target of errors.Is.
func (c Code) Error() string { return string(c) }

// The codes.
const (
	ErrInvalidArgument  Code = "invalid_argument"
	ErrNotFound         Code = "not_found"
	ErrVersionConflict  Code = "version_conflict" // details: current
	ErrPinned           Code = "pinned"
	ErrOutlineFull      Code = "outline_full" // details: rows, limit
	ErrOutlineInvalid   Code = "outline_invalid"
	ErrLinkInvalid      Code = "link_invalid"     // details: link
	ErrTooLarge         Code = "too_large"        // details: bytes, limit
	ErrNotShorter       Code = "not_shorter"      // details: bytes, current_bytes
	ErrBudgetExceeded   Code = "budget_exceeded"  // details: cost, budget
	ErrCoreOverBudget   Code = "core_over_budget" // details: core, budget
	ErrConfigMismatch   Code = "config_mismatch"  // details: stored, given
	ErrBusy             Code = "busy"
	ErrForbidden        Code = "forbidden"
	ErrUnknownOperation Code = "unknown_operation"
	// ErrInternal stands for what no caller can mend: the database, the disk, a
	// store that was closed. The error below it says which.
	ErrInternal Code = "internal"
)

// outer gives the code of package loci that stands for a code, so that every
// surface knows what to answer.
func (c Code) outer() loci.Code {
	switch c {
	case ErrNotFound:
		return loci.ErrNotFound
	case ErrVersionConflict:
		return loci.ErrStaleRevision
	case ErrPinned, ErrOutlineFull, ErrBudgetExceeded, ErrCoreOverBudget, ErrConfigMismatch:
		return loci.ErrConflict
	case ErrBusy:
		return loci.ErrCanceled
	case ErrForbidden:
		return loci.ErrForbidden
	case ErrInternal:
		return loci.ErrStorage
	}
	return loci.ErrValidation
}

// Error is what every operation returns when it fails. Nothing was changed. It
// never holds page text.
type Error struct {
	Code    Code
	Op      string // such as "write"; may be empty
	Field   string // the argument that is wrong; may be empty
	Message string // what was wrong and what would be right
	Details map[string]any
	Err     error // cause; may be nil
}

// Error renders "op: field: message: cause (code)".
func (e *Error) Error() string {
	text := ""
	for _, part := range []string{e.Op, e.Field, e.Message} {
		if part != "" && text != "" {
			text += ": "
		}
		text += part
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text + " (" + string(e.Code) + ")"
}

// Is reports whether target is e's code.
func (e *Error) Is(target error) bool {
	c, ok := target.(Code)
	return ok && c == e.Code
}

// Explain gives the code and the details to surfaces, which know the codes of
// package loci otherwise.
func (e *Error) Explain() (reason string, details map[string]any) { return string(e.Code), e.Details }

// Unwrap gives the error as package loci has it, whose code every surface knows.
func (e *Error) Unwrap() error {
	outer := &loci.Error{Code: e.Code.outer(), Field: e.Field, Message: e.Message, Err: e.Err}
	if e.Op != "" {
		outer.Op = "context." + e.Op
	}
	if inner := loci.CodeOf(e.Err); e.Code == ErrInternal && inner != "" {
		outer.Code = inner
	}
	return outer
}

func fail(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Message: fmt.Sprintf(format, args...)}
}

func invalid(field, format string, args ...any) *Error {
	return fail(ErrInvalidArgument, field, format, args...)
}

// with adds a detail.
func (e *Error) with(key string, value any) *Error {
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	e.Details[key] = value
	return e
}

// withOp names the operation on err and gives errors of the store below a code.
func withOp(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		if e.Op != "" {
			return e
		}
		c := *e
		c.Op = op
		return &c
	}
	inner := &Error{Code: ErrInternal, Op: op, Err: err}
	if e, ok := errors.AsType[*loci.Error](err); ok {
		switch e.Code {
		case loci.ErrValidation:
			inner.Code, inner.Field, inner.Message, inner.Err = ErrInvalidArgument, e.Field, e.Message, e.Err
		case loci.ErrForbidden:
			inner.Code, inner.Field, inner.Message, inner.Err = ErrForbidden, strings.TrimPrefix(e.Field, "filter."), e.Message, e.Err
		case loci.ErrNotFound:
			inner.Code, inner.Field, inner.Message, inner.Err = ErrNotFound, e.Field, e.Message, e.Err
		}
	}
	return inner
}
