package cli

import (
	"errors"
	"io/fs"
	"strconv"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
)

// usageError is a command line that cannot be understood.
type usageError struct {
	err     error
	command string // whose help says more; may be empty
}

// Error implements error.
func (e usageError) Error() string { return e.err.Error() }

// Unwrap gives what was wrong.
func (e usageError) Unwrap() error { return e.err }

// failed is an error that has been shown already; only the exit code is left.
type failed struct{ code int }

// Error implements error.
func (f failed) Error() string { return "exit " + strconv.Itoa(f.code) }

// Failed gives an error that ends the program with code and says nothing more,
// for a command that has shown what is wrong itself.
func Failed(code int) error { return failed{code} }

// isUsage says whether err is about the command line: whatever fails before a
// command's own code begins is.
func (a *App) isUsage(err error) bool {
	_, ok := errors.AsType[usageError](err)
	return ok || !a.running && loci.CodeOf(err) == ""
}

func (a *App) exitCode(err error) int {
	if err == nil {
		return op.ExitOK
	}
	if f, ok := errors.AsType[failed](err); ok {
		return f.code
	}
	if a.isUsage(err) {
		return op.ExitUsage
	}
	if loci.CodeOf(err) == "" {
		return op.ExitFailed
	}
	return op.ExitCode(err)
}

// failure is err as the command line shows it: unlike a server it tells the
// causes, since whoever reads them owns the files they name.
func (a *App) failure(err error) op.Failure {
	if loci.CodeOf(err) == "" {
		f := op.Failure{Code: "failed", Message: err.Error()}
		if a.isUsage(err) {
			f.Code = loci.ErrValidation
		}
		return f
	}
	return op.FailureWithCause(err)
}

// printError shows err on standard error.
func (a *App) printError(err error) {
	if _, ok := errors.AsType[failed](err); ok {
		return
	}
	f := a.failure(err)
	if a.wantsJSON() {
		a.writeJSON(a.deps.Stderr, map[string]any{"error": f})
		return
	}
	w := a.painter(a.deps.Stderr)
	w.Line(w.Red("error:") + " " + failureText(f))
	if a.Quiet() {
		return
	}
	switch {
	case f.Code == loci.ErrLocked:
		w.Line("Another loci process uses this data directory. Stop it, or wait for it with --wait 30s.")
	case f.Code == loci.ErrSchemaVersion:
		w.Line("Install a newer loci; this one leaves the data alone.")
	case f.Code == loci.ErrIndex:
		w.Line("Build the index anew with: loci rebuild-indexes")
	case f.Code == loci.ErrNotFound && f.Field == "space":
		w.Line("loci embeddings sync makes the space of the model in force and its vectors.")
	case f.Code == loci.ErrStorage, f.Code == loci.ErrIO && !ofPath(err, f):
		w.Line("loci doctor looks for the cause.")
	case a.isUsage(err):
		command := "loci"
		if u, ok := errors.AsType[usageError](err); ok && u.command != "" {
			command = u.command
		}
		w.Line("Run '" + command + " --help' for what is possible.")
	}
}

// failureText is a failure in one line for people.
func failureText(f op.Failure) string {
	if f.Field != "" {
		return clean(f.Field + ": " + f.Message)
	}
	return clean(f.Message)
}

// ofPath says whether a failure is about a path or an address that the caller gave,
// which says all there is to say: a look at the data directory finds nothing.
func ofPath(err error, f op.Failure) bool {
	return f.Field != "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist)
}

func quote(s string) string { return strconv.Quote(s) }
