package op

import (
	"errors"
	"net/http"
	"strings"

	"github.com/loci-memory/loci"
)

// The exit codes of the command line.
const (
	ExitOK       = 0
	ExitFailed   = 1
	ExitUsage    = 2
	ExitNotFound = 3
	ExitConflict = 4
	ExitLocked   = 5
)

// Outcome says how the surfaces show an error code.
type Outcome struct {
	Code   loci.Code
	Status int    // HTTP status
	Exit   int    // exit code of the command line
	Title  string // what the code means, for people
}

// Outcomes is the one table from error codes to what surfaces answer.
func Outcomes() []Outcome {
	return []Outcome{
		{loci.ErrValidation, http.StatusBadRequest, ExitUsage, "The request is not valid"},
		{loci.ErrNotFound, http.StatusNotFound, ExitNotFound, "Nothing was found"},
		{loci.ErrConflict, http.StatusConflict, ExitConflict, "The write contradicts what is stored"},
		{loci.ErrStaleRevision, http.StatusPreconditionFailed, ExitConflict, "The record has changed since it was read"},
		{loci.ErrLocked, http.StatusLocked, ExitLocked, "Another process holds the data directory"},
		{loci.ErrClosed, http.StatusServiceUnavailable, ExitFailed, "The store is closed"},
		{loci.ErrSchemaVersion, http.StatusInternalServerError, ExitFailed, "The data was written by a newer version"},
		{loci.ErrInvalidVector, http.StatusUnprocessableEntity, ExitFailed, "The vector is not valid"},
		{loci.ErrIndex, http.StatusServiceUnavailable, ExitFailed, "The index is not usable"},
		{loci.ErrStorage, http.StatusInternalServerError, ExitFailed, "The database failed"},
		// The file is one that the request names, in all but rare cases: asking again
		// does not help, as it might with a status of 500 and above.
		{loci.ErrIO, http.StatusUnprocessableEntity, ExitFailed, "A file could not be read or written"},
		{loci.ErrCanceled, http.StatusGatewayTimeout, ExitFailed, "The operation was stopped before it was done"},
		{loci.ErrForbidden, http.StatusForbidden, ExitFailed, "The caller may not do this"},
	}
}

// OutcomeOf gives the row of err's code. An error without a code counts as a
// storage error.
func OutcomeOf(err error) Outcome {
	code := loci.CodeOf(err)
	var storage Outcome
	for _, o := range Outcomes() {
		if o.Code == code {
			return o
		}
		if o.Code == loci.ErrStorage {
			storage = o
		}
	}
	return storage
}

// ExitCode is the command line's exit code for err; 0 for nil.
func ExitCode(err error) int {
	if err == nil {
		return ExitOK
	}
	return OutcomeOf(err).Exit
}

// Failure is an error as surfaces show it to programs.
type Failure struct {
	Code      loci.Code `json:"code"`
	Operation string    `json:"operation,omitempty"`
	Field     string    `json:"field,omitempty"`
	Message   string    `json:"message"`
	// Reason is the context store's own code, which says more than Code.
	Reason  string         `json:"reason,omitempty"`
	Details map[string]any `json:"details,omitempty"` // figures of a reason
}

// explained is an error that has a finer code than those of package loci.
type explained interface {
	error
	Explain() (reason string, details map[string]any)
}

// FailureOf takes err apart. A coded error may wrap another one: their messages
// are joined. Causes without a code are left out, since they may name files;
// they belong in a log.
func FailureOf(err error) Failure {
	f, _ := failureOf(err)
	return f
}

// FailureWithCause is FailureOf with the cause at the end of the message, for
// someone who may see the server's files.
func FailureWithCause(err error) Failure {
	f, cause := failureOf(err)
	if cause != nil {
		f.Message += ": " + cause.Error()
	}
	return f
}

// failureOf also gives the innermost cause that carries no code.
func failureOf(err error) (Failure, error) {
	o := OutcomeOf(err)
	f := Failure{Code: o.Code}
	if e, ok := errors.AsType[explained](err); ok {
		f.Reason, f.Details = e.Explain()
	}
	cause := err
	var messages []string
	for {
		e, ok := errors.AsType[*loci.Error](cause)
		if !ok {
			break
		}
		if f.Operation == "" {
			f.Operation = e.Op
		}
		if f.Field == "" {
			f.Field = e.Field
		}
		if e.Message != "" {
			messages = append(messages, e.Message)
		}
		cause = e.Err
	}
	if len(messages) == 0 {
		messages = []string{o.Title}
	}
	f.Message = strings.Join(messages, ": ")
	if _, isCode := cause.(loci.Code); isCode {
		cause = nil
	}
	return f, cause
}

// retitle gives err the operation's name and its own names of fields, where a
// friendly operation calls another one underneath.
func retitle(err error, name string, fields map[string]string) error {
	e, ok := errors.AsType[*loci.Error](err)
	if !ok {
		return err
	}
	c := *e
	c.Op = name
	if own, ok := fields[c.Field]; ok {
		c.Field = own
	}
	return &c
}
