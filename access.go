package loci

import (
	"context"
	"slices"
)

// Every stands in a Grant for every namespace or every scope. A namespace or
// scope of that name can be granted only by it.
const Every = "*"

// Access is what a caller may reach of a store. A server makes one of a token
// and puts it on the context of each call with WithAccess; a program that opens
// the store for itself has none and reaches everything.
//
// The store holds every call to it. A call that names what the grants do not cover is
// ErrForbidden, whether there is something or not. A record that is named by its id
// and may not be read is not there. What belongs to a namespace as a whole, such as
// its rules, its switches and the files of its notes, takes a grant for Every scope.
type Access struct {
	// Admin allows what concerns the store as a whole: spaces, rebuilds, backups,
	// erasure, deep health. It grants no namespace.
	Admin bool `json:"admin,omitempty"`
	// Grants are what may be read and written; none is nothing.
	Grants []Grant `json:"grants,omitempty"`
}

// Grant opens scopes of one namespace. The scope of a context of package pager is its
// canonical form, such as `["acme","session-1"]`, and that of an agent memory the one
// that it was opened with.
type Grant struct {
	Namespace string   `json:"namespace"`       // or Every
	Scopes    []string `json:"scopes"`          // or one that is Every
	Write     bool     `json:"write,omitempty"` // reading is always allowed
}

func (g *Grant) covers(namespace, scope string) bool {
	return (g.Namespace == Every || g.Namespace == namespace) &&
		(slices.Contains(g.Scopes, Every) || slices.Contains(g.Scopes, scope))
}

// Reads says whether records of a namespace and scope may be read. A nil Access
// allows everything.
func (a *Access) Reads(namespace, scope string) bool {
	return a == nil || slices.ContainsFunc(a.Grants, func(g Grant) bool { return g.covers(namespace, scope) })
}

// Writes says whether records of a namespace and scope may be written.
func (a *Access) Writes(namespace, scope string) bool {
	return a == nil || slices.ContainsFunc(a.Grants, func(g Grant) bool { return g.Write && g.covers(namespace, scope) })
}

// IsAdmin says whether what concerns the whole store is allowed.
func (a *Access) IsAdmin() bool { return a == nil || a.Admin }

type accessKey struct{}

// WithAccess gives a context whose calls reach no more than access allows. What
// was narrowed cannot be widened again below it by mistake: the innermost one
// counts, so only a server that knows its caller sets it.
func WithAccess(ctx context.Context, access *Access) context.Context {
	return context.WithValue(ctx, accessKey{}, access)
}

// AccessFrom is the context's access, nil for none.
func AccessFrom(ctx context.Context) *Access {
	a, _ := ctx.Value(accessKey{}).(*Access)
	return a
}
