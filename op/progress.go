package op

import "context"

// ProgressFunc is told how far a long-running operation is: done of total
// pieces of work. Calls come one at a time.
type ProgressFunc func(done, total int64)

type progressKey struct{}

// WithProgress gives a context whose long-running operations report to f.
func WithProgress(ctx context.Context, f ProgressFunc) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// ProgressFrom is the context's progress function, or nil.
func ProgressFrom(ctx context.Context) ProgressFunc {
	f, _ := ctx.Value(progressKey{}).(ProgressFunc)
	return f
}
