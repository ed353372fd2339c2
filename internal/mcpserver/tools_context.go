package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/strictjson"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/pager"
)

const contextPrefix = "context."

// hostsOwn are the arguments of a context operation that are the host's and the
// user's to give: whose window it is, how it is measured, and what overrides its
// rules.
func hostsOwn() []string {
	return []string{"scope", "namespace", "budget", "unit", "tokenizer", "reconfigure", "force"}
}

// modelOperations are the context operations that a model may call.
func modelOperations() []string {
	var names []string
	for _, o := range pager.Operations() {
		if o.Model {
			names = append(names, o.Name)
		}
	}
	return names
}

func vctxTool() *tool {
	t := &tool{
		name: "vctx", title: "Context window",
		doc: "Manage this agent's context window: pages in three tiers (core is pinned, working is in the window, archive is stored) within a budget. " +
			"Operations: write {content, title?, tier?, page_id?, expected_version?}, read {page_id}, search {query}, recall {query} (finds pages and brings them in), " +
			"page_in / page_out / unpin {page_id}, ingest {content} (a long text), compact {page_id, summary, expected_version}, fold, render, status, " +
			"checkpoint {label}, checkpoints, restore {checkpoint_id}, history {page_id}. The answer is {\"ok\":true, ...} or {\"ok\":false, \"error\":{code, message, details}}.",
		input: object(
			property{"operation", text("the operation's name"), true},
			property{"input", text("its arguments, a JSON object as text; default {}"), false},
		),
	}
	for _, name := range modelOperations() {
		t.rows = append(t.rows, contextPrefix+name)
	}
	t.run = func(ctx context.Context, s *server, raw json.RawMessage) (*reply, error) {
		raw, err := withoutNull(raw)
		if err != nil {
			return nil, err
		}
		name, input, err := vctxArguments(raw)
		if err != nil {
			return nil, err
		}
		doc, err := s.vctx(ctx, name, input)
		if err != nil {
			s.failed(t.name, err)
			return &reply{doc: vctxFailure(err), whole: true, failed: true}, nil
		}
		doc["ok"] = true
		return &reply{doc: doc, whole: true}, nil
	}
	return t
}

// vctxArguments reads what vctx is called with. The input is JSON text; models also
// give the object itself, which says the same.
func vctxArguments(raw json.RawMessage) (name string, input json.RawMessage, err error) {
	loose := object(property{"operation", text(""), true}, property{"input", &jsonschema.Schema{}, false})
	var in struct {
		Operation string          `json:"operation"`
		Input     json.RawMessage `json:"input"`
	}
	if err := strictjson.Decode(strict(loose), raw, &in); err != nil {
		return "", nil, err
	}
	if strings.HasPrefix(string(in.Input), `"`) {
		var text string
		if err := json.Unmarshal(in.Input, &text); err != nil {
			return "", nil, errs.Invalid("input", "must be JSON text")
		}
		in.Input = json.RawMessage(text)
	}
	return strings.TrimPrefix(in.Operation, contextPrefix), in.Input, nil
}

// vctx runs an operation on the context that the server is bound to, as
// pager.Store.DispatchModel does, wherever the store is.
func (s *server) vctx(ctx context.Context, name string, input json.RawMessage) (document, error) {
	may := modelOperations()
	o, ok := op.Default().Lookup(contextPrefix + name)
	if !ok || !slices.Contains(may, name) {
		e := &pager.Error{Code: pager.ErrUnknownOperation, Field: "operation"}
		if near := op.Closest(name, may); near != "" {
			e.Message = "there is no operation " + strictjson.Quote(name) + "; did you mean " + near + "?"
			e.Details = map[string]any{"nearest": near}
		} else {
			e.Message = "there is no operation " + strictjson.Quote(name) + "; there are " + strings.Join(may, ", ")
		}
		return nil, e
	}
	if err := o.CheckPartial(input); err != nil {
		return nil, err
	}
	args := map[string]json.RawMessage{}
	if !strictjson.IsBlank(input) {
		if err := json.Unmarshal(input, &args); err != nil {
			return nil, errs.Invalid("input", "must be a JSON object")
		}
	}
	for _, own := range hostsOwn() {
		if _, given := args[own]; given {
			return nil, errs.Invalid(own, "is not for a model to give: leave it out")
		}
	}
	scope, err := json.Marshal(s.home(ctx, nil).context)
	if err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the scope has no JSON form")
	}
	args["scope"] = scope
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, errs.Wrap(errs.Validation, err, "the input has no JSON form")
	}
	out, err := s.Caller.Call(ctx, o.Name, raw)
	if err != nil {
		return nil, err
	}
	return decode(out)
}

// vctxFailure is the envelope of an error, with a code of the context store.
func vctxFailure(err error) document {
	f := op.FailureOf(err)
	if f.Reason == "" {
		f = op.FailureOf(pager.AsError("vctx", err))
	}
	details := map[string]any{}
	for name, v := range f.Details {
		details[name] = v
	}
	message := f.Message
	if f.Field != "" {
		details["field"] = f.Field
		message = f.Field + ": " + message
	}
	return document{"ok": false, "error": document{"code": f.Reason, "message": message, "details": details}}
}
