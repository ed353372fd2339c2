package store

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/loci-memory/loci/internal/errs"
)

// PanicError is an operation that panicked. Its text does not give what it
// panicked with, unless that comes from the runtime: it might hold a record's
// text.
type PanicError struct {
	Value any
	Stack []byte
}

// Error implements error.
func (e *PanicError) Error() string {
	if r, ok := e.Value.(runtime.Error); ok {
		return "panic: " + r.Error()
	}
	return fmt.Sprintf("panic with a %T", e.Value)
}

// recovered turns a panic into an error, so that one operation's mistake does
// not end the store.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = errs.Wrap(errs.Storage, &PanicError{Value: p, Stack: debug.Stack()}, "an operation failed unexpectedly")
	}
}
