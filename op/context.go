package op

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/strictjson"
	"github.com/loci-memory/loci/pager"
	"github.com/loci-memory/loci/pager/tiktoken"
)

// ContextTarget says whose context an operation is about, and how its window is
// measured.
type ContextTarget struct {
	// Scope is one string or several: the first one is the namespace, the others
	// say which context in it, such as a session.
	Scope pager.Scope `json:"scope,omitempty"`
	// Namespace stands for a scope of one string where scope is left out; next to
	// a scope it must be its first string.
	Namespace *string `json:"namespace,omitempty"`
	// Budget bounds the rendered text, 128..1000000: default what is stored for the
	// scope, else 8192. Another one than is stored is refused.
	Budget *int `json:"budget,omitempty"`
	// Unit is what the budget counts: default what is stored for the scope, else
	// bytes, or tokens where a tokenizer is named.
	Unit pager.Unit `json:"unit,omitempty"`
	// Tokenizer names the vocabulary that counts tokens: o200k_base, cl100k_base,
	// p50k_base, p50k_edit or r50k_base.
	Tokenizer string `json:"tokenizer,omitempty"`
}

// ContextChange is a target that an operation may change.
type ContextChange struct {
	ContextTarget
	// Reconfigure stores the given budget and unit in the place of others that are
	// stored. What no longer fits is evicted. It is done before the operation, and
	// stays done when that fails.
	Reconfigure bool `json:"reconfigure,omitempty"`
}

// contextTypes are the types of the context store that have a form of their own.
func contextTypes(special map[reflect.Type]*jsonschema.Schema) {
	special[reflect.TypeFor[pager.Scope]()] = &jsonschema.Schema{
		Type: "array", Format: strictjson.OneOrMore, Items: &jsonschema.Schema{Type: "string"},
	}
	special[reflect.TypeFor[pager.Unit]()] = strictjson.Words(string(pager.UnitBytes), string(pager.UnitTokens))
}

func (t ContextTarget) validate() error {
	_, err := t.scope()
	if err == nil {
		err = t.checkMeasure()
	}
	return err
}

// scope is the scope that is meant.
func (t ContextTarget) scope() (pager.Scope, error) {
	switch {
	case t.Scope == nil && t.Namespace == nil:
		return nil, errs.Invalid("scope", "is missing; it must be a string or an array of strings, the first one of which is the namespace")
	case t.Scope == nil:
		return pager.Scope{*t.Namespace}, nil
	case t.Namespace != nil && (len(t.Scope) == 0 || t.Scope[0] != *t.Namespace):
		return nil, errs.Invalid("namespace", "is not the first string of scope: leave one of them out")
	}
	return t.Scope, nil
}

func (t ContextTarget) checkMeasure() error {
	switch {
	case t.Unit == pager.UnitBytes && t.Tokenizer != "":
		return errs.Invalid("tokenizer", "is for a budget in tokens, and unit is bytes: leave one of them out")
	case t.Unit == pager.UnitTokens && t.Tokenizer == "":
		return errs.Invalid("tokenizer", "is missing; a budget in tokens needs the vocabulary that counts them: one of %v", tiktoken.Names())
	case t.Tokenizer != "" && !slices.Contains(tiktoken.Names(), strings.TrimPrefix(t.Tokenizer, "tiktoken:")):
		return errs.Invalid("tokenizer", "must be one of %v", tiktoken.Names())
	}
	return nil
}

// open gives a handle on the scope.
func (t ContextTarget) open(ctx context.Context, db *loci.DB, reconfigure bool) (*pager.Store, error) {
	scope, err := t.scope()
	if err != nil {
		return nil, err
	}
	cfg := pager.Config{
		Scope: scope, Budget: t.Budget, Bytes: t.Unit == pager.UnitBytes, Tokenizers: tokenizer, Reconfigure: reconfigure,
	}
	if t.Tokenizer != "" {
		if cfg.Counter, err = tokenizer(t.Tokenizer); err != nil {
			return nil, err
		}
	}
	return pager.Open(ctx, db, cfg)
}

func tokenizer(id string) (pager.Counter, error) {
	c, err := tiktoken.New(id)
	if err != nil {
		return nil, err // not c, which would be an interface that is not nil
	}
	return c, nil
}

// inContext runs an operation that changes nothing but statistics.
func inContext[Req, Res any](ctx context.Context, db *loci.DB, t ContextTarget, req Req,
	method func(*pager.Store, context.Context, Req) (*Res, error),
) (*Res, error) {
	cs, err := t.open(ctx, db, false)
	if err != nil {
		return nil, err
	}
	return method(cs, ctx, req)
}

// changeContext runs an operation that may change the context.
func changeContext[Req, Res any](ctx context.Context, db *loci.DB, t ContextChange, req Req,
	method func(*pager.Store, context.Context, Req) (*Res, error),
) (*Res, error) {
	cs, err := t.open(ctx, db, t.Reconfigure)
	if err != nil {
		return nil, err
	}
	return method(cs, ctx, req)
}

// contextOps are the operations of the context store: what pager.Operations
// lists, each with the scope in its input.
func contextOps() []*Operation {
	ops := slices.Concat(contextPageOps(), contextWindowOps(), contextStateOps(), contextMeasureOps())
	for _, o := range ops {
		o.coded = func(err error) error { return contextError(o.Name, err) }
	}
	return ops
}

// contextError gives an error that has none a code of the context store.
func contextError(name string, err error) error {
	if _, ok := errors.AsType[*pager.Error](err); ok || err == nil {
		return err
	}
	return pager.AsError(name[len("context."):], err)
}
