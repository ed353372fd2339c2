package loci

import "github.com/loci-memory/loci/internal/errs"

// Error is what every operation returns when it fails: a stable code, the
// operation, the field and a message that says what would be right. It never
// holds record text. Reach it with errors.As, or test the code with
// errors.Is(err, loci.ErrNotFound).
type Error = errs.Error

// Code is a stable, machine-readable error code.
type Code = errs.Code

// The error codes. Each is itself an error, to be used with errors.Is.
const (
	ErrValidation    = errs.Validation
	ErrNotFound      = errs.NotFound
	ErrConflict      = errs.Conflict
	ErrLocked        = errs.Locked
	ErrClosed        = errs.Closed
	ErrSchemaVersion = errs.SchemaVersion
	ErrInvalidVector = errs.InvalidVector
	ErrStaleRevision = errs.StaleRevision
	ErrIndex         = errs.Index
	ErrStorage       = errs.Storage
	ErrIO            = errs.IO
	ErrCanceled      = errs.Canceled
	ErrForbidden     = errs.Forbidden
)

// CodeOf gives the code that err carries, ErrCanceled for a context that
// ended, or "" when there is none.
func CodeOf(err error) Code { return errs.CodeOf(err) }
