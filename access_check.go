package loci

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
)

// How access is enforced. A call that names where it reads or writes is refused
// with ErrForbidden before anything is looked at, so that the answer is the same
// whether there is something or not. One that names a record by its id looks at
// the record as it is stored: what may not be read is not there, in the same
// words; what may be read and not written is ErrForbidden. What belongs to a
// namespace as a whole, such as its settings and figures over all its scopes,
// needs a grant for every scope of it.
//
// Below these checks the writer's transaction asks once more for each record it
// adds, changes or deletes, so that a write that forgot to ask fails.

// ReadsAll says whether the records of every scope of a namespace may be read, and
// with them what belongs to the namespace as a whole. A nil Access allows
// everything.
func (a *Access) ReadsAll(namespace string) bool {
	return a == nil || slices.ContainsFunc(a.Grants, func(g Grant) bool { return g.coversAll(namespace) })
}

// WritesAll is ReadsAll for writing.
func (a *Access) WritesAll(namespace string) bool {
	return a == nil || slices.ContainsFunc(a.Grants, func(g Grant) bool { return g.Write && g.coversAll(namespace) })
}

func (g *Grant) coversAll(namespace string) bool {
	return (g.Namespace == Every || g.Namespace == namespace) && slices.Contains(g.Scopes, Every)
}

// namespaces are those in which something may be read, each once; "" alone stands
// for all.
func (a *Access) namespaces() (out []string) {
	for _, g := range a.Grants {
		if g.Namespace == Every {
			return []string{""}
		}
		if !slices.Contains(out, g.Namespace) {
			out = append(out, g.Namespace)
		}
	}
	return out
}

// unrestricted is ctx for work that the store does on its own account, whoever
// set it going.
func unrestricted(ctx context.Context) context.Context {
	if AccessFrom(ctx) == nil {
		return ctx
	}
	return WithAccess(ctx, nil)
}

// mayRead refuses a scope that ctx's access may not read; field goes before the
// names of the fields.
func mayRead(ctx context.Context, field, namespace, scope string) error {
	if a := AccessFrom(ctx); !a.Reads(namespace, scope) {
		return a.refusal(field, "scope", namespace, scope, "read")
	}
	return nil
}

// mayWrite is mayRead for writing.
func mayWrite(ctx context.Context, field, namespace, scope string) error {
	if a := AccessFrom(ctx); !a.Writes(namespace, scope) {
		return a.refusal(field, "scope", namespace, scope, "write")
	}
	return nil
}

// mayReadAll refuses what belongs to a namespace as a whole where ctx's access does
// not cover all of it.
func mayReadAll(ctx context.Context, namespace string) error {
	if a := AccessFrom(ctx); !a.ReadsAll(namespace) {
		return a.refusalAll(namespace, "read")
	}
	return nil
}

// mayWriteAll is mayReadAll for writing.
func mayWriteAll(ctx context.Context, namespace string) error {
	if a := AccessFrom(ctx); !a.WritesAll(namespace) {
		return a.refusalAll(namespace, "write")
	}
	return nil
}

// needAdmin refuses what concerns the store as a whole; field is what of the input
// makes it so, "" for the call itself.
func needAdmin(ctx context.Context, field, what string) error {
	if AccessFrom(ctx).IsAdmin() {
		return nil
	}
	return &errs.Error{Code: errs.Forbidden, Field: field, Message: what + " concerns the store as a whole and needs admin"}
}

// refusal is the error for a namespace and scope. It names the field that is at
// fault by the caller's grants alone.
func (a *Access) refusal(field, scopeField, namespace, scope, verb string) error {
	e := &errs.Error{Code: errs.Forbidden, Field: field + scopeField,
		Message: fmt.Sprintf("the caller may not %s scope %s of namespace %s; %s", verb, shown(scope), shown(namespace), a.offer(verb))}
	if !slices.ContainsFunc(a.Grants, func(g Grant) bool { return g.Namespace == Every || g.Namespace == namespace }) {
		e.Field = field + "namespace"
	}
	return e
}

func (a *Access) refusalAll(namespace, verb string) error {
	return &errs.Error{Code: errs.Forbidden, Field: "namespace",
		Message: fmt.Sprintf("the caller may not %s what belongs to the whole of namespace %s, which takes a grant for every scope of it; %s",
			verb, shown(namespace), a.offer(verb))}
}

// offer says what the caller may read or write, as far as there is room: its own
// grants are no secret to it.
func (a *Access) offer(verb string) string {
	const most = 4
	var granted []string
	for _, g := range a.Grants {
		if verb == "write" && !g.Write {
			continue
		}
		for _, scope := range g.Scopes {
			switch {
			case len(granted) == most:
				return "its grants are " + strings.Join(granted, ", ") + " and others"
			case g.Namespace == Every && scope == Every:
				granted = append(granted, "every namespace")
			case g.Namespace == Every:
				granted = append(granted, "scope "+shown(scope)+" of every namespace")
			case scope == Every:
				granted = append(granted, "namespace "+shown(g.Namespace))
			default:
				granted = append(granted, "scope "+shown(scope)+" of namespace "+shown(g.Namespace))
			}
		}
	}
	if len(granted) == 0 {
		return "it has no grant to " + verb + " anything"
	}
	return "it may " + verb + " " + strings.Join(granted, ", ")
}

// shown is a name in quotes, cut short if it is long.
func shown(name string) string {
	const most = 80
	if len(name) > most {
		cut := most
		for !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "..."
	}
	return fmt.Sprintf("%q", name)
}

// restricted has the writer ask ctx's access for each record that fn adds, changes
// or deletes.
func restricted(ctx context.Context, fn func(*store.WriteTx) error) func(*store.WriteTx) error {
	a := AccessFrom(ctx)
	if a == nil {
		return fn
	}
	return func(tx *store.WriteTx) error {
		tx.Restrict(func(namespace, scope string) error {
			if a.Writes(namespace, scope) {
				return nil
			}
			return a.refusal("", "scope", namespace, scope, "write")
		})
		return fn(tx)
	}
}

// unseenReference stands for a record that the caller may not read, but which
// stands on one that it wants to change.
const unseenReference = "a record that the caller may not read"

// readable says whether access may read the record of an id.
func readable(tx interface {
	Place(id int64) (kind store.Kind, namespace, scope string, err error)
}, a *Access, id int64) (bool, error) {
	if a == nil {
		return true, nil
	}
	_, namespace, scope, err := tx.Place(id)
	return a.Reads(namespace, scope), err
}

// seen gives a record that was found by its id, or the zero value where access may
// not read it: the caller goes on as if there were none.
func seen[R interface {
	comparable
	store.Stored
}](a *Access, r R) (out R) {
	if r == out || a == nil || a.Reads(r.Head().Namespace, r.Head().Scope) {
		return r
	}
	return out
}
