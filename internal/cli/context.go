package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/pager"
	"golang.org/x/term"
)

// contextPrefix begins the names of the operations of the context store.
const contextPrefix = "context."

// contextLong is the help of the context group.
const contextLong = `Keeps an agent's context window: pages in three tiers, rendered byte for byte
the same as long as nothing changes, within a budget. Core is pinned and makes
the prefix that a provider's cache reuses, working is evicted when the budget is
full, and archive is stored, found and not rendered.

--scope says whose context it is: a namespace, with a session below it if you
like. These two are the same:

  --scope project --scope session-1
  --scope '["project","session-1"]'

Without it --namespace, LOCI_NAMESPACE or the configuration file names a context
of one string. LOCI_SCOPE is for records and does not count here.

The arguments of an operation are its flags, or a JSON object: as an argument, or
on standard input when that is no terminal, which is read to its end then; give
--input '{}' where nobody ends it. Flags win over the object. Where an operation
takes a plain argument, such as a PAGE_ID, an object may stand in its place.

  echo '{"content": "The build takes 40 s.", "title": "build"}' |
    loci context write --scope project
  loci context recall "how long is the build" --scope project --json

--timeout is 30s here, from 100ms to 10m.

With --json, snapshot, prefix, recall and prepare-task publish the text: it is
what later changes are compared with. What people look at is not published.`

func isContext(o *op.Operation) bool { return strings.HasPrefix(o.Name, contextPrefix) }

// isScope says whether a field of an operation's input is set by --namespace and
// --scope. The scopes of a context operation are those of records that it may
// look at, and have a flag of their own.
func isScope(o *op.Operation, field string) bool {
	return isDomain(field) && !(isContext(o) && field == "scopes")
}

// contextInput finds the JSON object that a context operation takes its arguments
// from: the argument if it is one, else standard input unless that is a terminal
// or an argument stands for it. rest are the other arguments.
func (a *App) contextInput(ctx context.Context, args []string) (base []byte, rest []string, err error) {
	if len(args) == 1 && strings.HasPrefix(strings.TrimSpace(args[0]), "{") {
		return []byte(args[0]), nil, nil
	}
	if slices.Contains(args, "-") || a.stdinIsTerminal() {
		return nil, args, nil
	}
	raw, err := a.readAll(ctx)
	if err != nil || len(bytes.TrimSpace(raw)) == 0 {
		return nil, args, err
	}
	return raw, args, nil
}

// The range and the default of --timeout for an operation of the context store:
// hosts call them between two steps of a model and must not hang there.
const (
	contextTimeout    = 30 * time.Second
	minContextTimeout = 100 * time.Millisecond
	maxContextTimeout = 10 * time.Minute
)

// limit puts the time that an operation may take on ctx.
func (a *App) limit(ctx context.Context, o *op.Operation) (context.Context, context.CancelFunc, error) {
	if !isContext(o) {
		ctx, cancel := a.WithTimeout(ctx)
		return ctx, cancel, nil
	}
	d := contextTimeout
	if set, _ := a.settings.given("timeout"); set {
		if d = a.Timeout(); d < minContextTimeout || d > maxContextTimeout {
			return nil, nil, usageError{fmt.Errorf("--timeout of a context operation must be from %s to %s, not %s",
				minContextTimeout, maxContextTimeout, d), ""}
		}
	}
	ctx, cancel := context.WithTimeout(ctx, d)
	return ctx, cancel, nil
}

func (a *App) stdinIsTerminal() bool {
	f, ok := a.deps.Stdin.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// fillContext puts the scope in force into the input of a context operation, and
// for a person, that looking publishes nothing. An input of another scope than
// the one on the command line is refused.
func (a *App) fillContext(m map[string]json.RawMessage, d domain, schema *jsonschema.Schema) error {
	if d.scopesAreTyped {
		scope, err := contextScope(d.scopes)
		if err != nil {
			return err
		}
		if err := putSame(m, "scope", scope); err != nil {
			return err
		}
	}
	if d.namespaceIsTyped {
		if err := putSame(m, "namespace", pager.Scope{*d.namespace}); err != nil {
			return err
		}
	} else if d.namespace != nil && m["scope"] == nil {
		put(m, "namespace", *d.namespace, false)
	}
	if schema.Properties["publish"] != nil && !a.JSON() {
		put(m, "publish", false, false)
	}
	return nil
}

// contextScope reads --scope: one string, several, or a JSON array.
func contextScope(given []string) (pager.Scope, error) {
	if len(given) != 1 {
		return given, nil
	}
	scope, err := pager.ParseScope(given[0])
	if err != nil {
		return nil, usageError{errors.New(`--scope takes a string or a JSON array of strings, such as '["project","session-1"]'`), ""}
	}
	return scope, nil
}

// putSame puts what a flag says into an input that may say the same.
func putSame(m map[string]json.RawMessage, name string, scope pager.Scope) error {
	if raw, there := m[name]; there {
		var has pager.Scope
		if err := json.Unmarshal(raw, &has); err != nil {
			return errs.Invalid(name, "must be a string or an array of strings")
		}
		if !slices.Equal(has, scope) {
			return errs.Invalid(name, "of the input is another one than --%s: give one of them", name)
		}
		return nil
	}
	var v any = scope
	if len(scope) == 1 {
		v = scope[0]
	}
	raw, err := marshal(v)
	m[name] = raw
	return err
}

// contextNamespace is the namespace that a context operation's input is about.
func contextNamespace(raw json.RawMessage) (string, error) {
	var in struct {
		Scope     pager.Scope `json:"scope"`
		Namespace string      `json:"namespace"`
	}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &in); err != nil {
			return "", err
		}
	}
	if len(in.Scope) > 0 {
		return in.Scope[0], nil
	}
	return in.Namespace, nil
}

// contextSearches names the context operations that a query's vector helps.
func contextSearches(name string) bool {
	switch strings.TrimPrefix(name, contextPrefix) {
	case "search", "recall", "organize", "prepare_task":
		return strings.HasPrefix(name, contextPrefix)
	}
	return false
}

// contextWrites names the context operations that write text, which then gets
// vectors as other records do.
func contextWrites(name string) bool {
	switch strings.TrimPrefix(name, contextPrefix) {
	case "write", "ingest", "page_in", "compact", "fold", "organize", "restore":
		return strings.HasPrefix(name, contextPrefix)
	}
	return false
}
