package local

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

// failure is an error on its way to the caller's process: all that surfaces show
// of it, and the cause, which whoever may see this machine's files may read.
type failure struct {
	op.Failure
	Cause string `json:"cause,omitempty"`
}

func encodeFailure(err error) ([]byte, error) {
	f := failure{Failure: op.FailureOf(err)}
	if why, ok := strings.CutPrefix(op.FailureWithCause(err).Message, f.Message+": "); ok {
		f.Cause = why
	}
	return json.Marshal(f)
}

func decodeFailure(body []byte) (error, error) {
	var f failure
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.UseNumber() // a detail's number stays as it was written
	if err := dec.Decode(&f); err != nil {
		return nil, fmt.Errorf("%w: a failure that cannot be read: %w", errFrame, err)
	}
	if f.Code == "" {
		return nil, fmt.Errorf("%w: a failure without a code", errFrame)
	}
	e := &errs.Error{Code: f.Code, Op: f.Operation, Field: f.Field, Message: f.Message}
	if f.Cause != "" {
		e.Err = cause(f.Cause)
	}
	if f.Reason == "" {
		return e, nil
	}
	return &explained{e, f.Reason, f.Details}, nil
}

// cause is the text of an error without a code that happened at the holder.
type cause string

// Error implements error.
func (c cause) Error() string { return string(c) }

// explained is an error with a finer code, as package op looks for it.
type explained struct {
	coded   *errs.Error
	reason  string
	details map[string]any
}

// Error implements error.
func (e *explained) Error() string { return e.coded.Error() }

// Unwrap gives the coded error.
func (e *explained) Unwrap() error { return e.coded }

// Explain gives the finer code and its figures.
func (e *explained) Explain() (reason string, details map[string]any) { return e.reason, e.details }

// unsure is the error for a call whose process ended before it answered.
func unsure(name string) error {
	return &errs.Error{Code: loci.ErrCanceled, Op: name, Message: "the process that held the memory ended before it answered: " +
		"this may or may not have been done; look before you repeat it"}
}
