package pager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/strictjson"
)

// OperationInfo describes an operation that Dispatch knows.
type OperationInfo struct {
	Name string `json:"name"`
	// Model says whether a model may call it. The others are the host's and the
	// user's: what governs the window for a whole namespace, and deletion for good.
	Model bool `json:"model"`
	// Writes says that it changes pages or what is recorded about them. Such an
	// operation answers with references, never with a page's content.
	Writes bool `json:"writes"`
}

// Operations lists the operations that Dispatch knows, as the documentation has
// them.
func Operations() []OperationInfo {
	rows := dispatchTable().rows
	out := make([]OperationInfo, len(rows))
	for i, r := range rows {
		out[i] = r.OperationInfo
	}
	return out
}

// Dispatch runs an operation by its name: JSON in, JSON out. arguments is an
// object, or nothing for {}. The answer is always one object: the result with
// "ok":true, or
//
//	{"ok":false,"error":{"code":"not_found","message":"…","details":{"field":"page_id"}}}
//
// with one of this package's codes. A field that the operation does not have, a
// value of another type, null, a field given twice and anything behind the object
// are invalid_argument. After an error everything is as it was.
//
// Budget, tokenizer and scope are the handle's and cannot be given here.
func (cs *Store) Dispatch(ctx context.Context, operation string, arguments json.RawMessage) json.RawMessage {
	return cs.dispatch(ctx, operation, arguments, false)
}

// DispatchModel is Dispatch for calls that a model makes: operations that a model
// may not call are unknown_operation, as if they were not there, and the field
// force, by which a user overrides what holds an operation back, is
// invalid_argument.
func (cs *Store) DispatchModel(ctx context.Context, operation string, arguments json.RawMessage) json.RawMessage {
	return cs.dispatch(ctx, operation, arguments, true)
}

func (cs *Store) dispatch(ctx context.Context, operation string, arguments json.RawMessage, model bool) json.RawMessage {
	t := dispatchTable()
	row := t.byName[operation]
	if row == nil || model && !row.Model {
		return failure(t.unknown(operation, model))
	}
	if model {
		if err := row.refuseForce(arguments); err != nil {
			return failure(withOp(row.Name, err))
		}
	}
	result, err := row.run(ctx, cs, arguments)
	if err != nil {
		return failure(withOp(row.Name, err))
	}
	return success(result)
}

// dispatchRow is an operation with what runs it.
type dispatchRow struct {
	OperationInfo
	input  *jsonschema.Schema
	result reflect.Type
	run    func(ctx context.Context, cs *Store, raw json.RawMessage) (any, error)
}

// row makes a row of a method. It panics on a request without a JSON form, since
// that is a mistake in the program.
func row[Req, Res any](info OperationInfo, method func(*Store, context.Context, Req) (*Res, error)) *dispatchRow {
	input, err := strictjson.Infer[Req](strictjson.Types(), nil)
	if err != nil {
		panic("pager: " + info.Name + ": " + err.Error())
	}
	return &dispatchRow{info, input, reflect.TypeFor[Res](), func(ctx context.Context, cs *Store, raw json.RawMessage) (any, error) {
		var req Req
		if err := strictjson.Decode(input, raw, &req); err != nil {
			return nil, err
		}
		return method(cs, ctx, req)
	}}
}

// refuseForce refuses what only a user may ask for.
func (r *dispatchRow) refuseForce(raw json.RawMessage) error {
	if r.input.Properties["force"] == nil {
		return nil
	}
	if err := strictjson.Check(r.input, raw); err != nil {
		return err
	}
	var given struct {
		Force *bool `json:"force"`
	}
	if !strictjson.IsBlank(raw) {
		if err := json.Unmarshal(raw, &given); err != nil {
			return invalid("force", "must be true or false")
		}
	}
	if given.Force != nil {
		return invalid("force", "is for the user to give: leave it out")
	}
	return nil
}

type dispatchRows struct {
	rows   []*dispatchRow
	byName map[string]*dispatchRow
}

// unknown is the error for a name that is not there, or not for a model.
func (t *dispatchRows) unknown(name string, model bool) *Error {
	var names []string
	for _, r := range t.rows {
		if r.Model || !model {
			names = append(names, r.Name)
		}
	}
	if near := strictjson.Closest(name, names); near != "" {
		return fail(ErrUnknownOperation, "operation", "there is no operation %s; did you mean %s?", strictjson.Quote(name), near).with("nearest", near)
	}
	return fail(ErrUnknownOperation, "operation", "there is no operation %s; there are %s", strictjson.Quote(name), strings.Join(names, ", "))
}

const (
	forModel = 1 << iota // a model may call it
	writes               // it answers with references only
)

var dispatchTable = sync.OnceValue(func() *dispatchRows {
	info := func(name string, flags int) OperationInfo {
		return OperationInfo{Name: name, Model: flags&forModel != 0, Writes: flags&writes != 0}
	}
	t := &dispatchRows{byName: map[string]*dispatchRow{}, rows: []*dispatchRow{
		row(info("write", forModel|writes), (*Store).Write),
		row(info("ingest", forModel|writes), (*Store).Ingest),
		row(info("read", forModel), (*Store).Read),
		row(info("history", forModel), (*Store).History),
		row(info("search", forModel), (*Store).Search),
		row(info("page_in", forModel|writes), (*Store).PageIn),
		row(info("page_out", forModel|writes), (*Store).PageOut),
		row(info("unpin", forModel|writes), (*Store).Unpin),
		row(info("recall", forModel), (*Store).Recall),
		row(info("render", forModel), (*Store).Render),
		row(info("snapshot", forModel), (*Store).Snapshot),
		row(info("prefix", forModel), (*Store).Prefix),
		row(info("metrics", forModel), (*Store).Metrics),
		row(info("dashboard", forModel), (*Store).Dashboard),
		row(info("fold", forModel|writes), (*Store).Fold),
		row(info("usage", forModel), (*Store).Usage),
		row(info("record_usage", forModel|writes), (*Store).RecordUsage),
		row(info("status", forModel), (*Store).Status),
		row(info("compact", forModel|writes), (*Store).Compact),
		row(info("organize", forModel|writes), (*Store).Organize),
		row(info("checkpoint", forModel|writes), (*Store).Checkpoint),
		row(info("checkpoints", forModel), (*Store).Checkpoints),
		row(info("restore", forModel|writes), (*Store).Restore),
		row(info("schedule", forModel), (*Store).Schedule),
		row(info("prepare_task", forModel), (*Store).PrepareTask),
		row(info("replacement_policy", 0), (*Store).ReplacementPolicy),
		row(info("set_policy", writes), (*Store).SetPolicy),
		row(info("policy_tick", writes), (*Store).PolicyTick),
		row(info("forget", writes), (*Store).Forget),
	}}
	for _, r := range t.rows {
		t.byName[r.Name] = r
	}
	return t
})

// AsError gives an error of package loci, such as one about an operation's input,
// one of this package's codes. An *Error stays what it is, and nil too.
func AsError(operation string, err error) error { return withOp(operation, err) }

// success is the envelope of a result, which must be a pointer to a struct.
func success(result any) json.RawMessage {
	raw, err := encodeJSON(result)
	if err != nil {
		return failure(&Error{Code: ErrInternal, Message: "the result has no JSON form", Err: err})
	}
	if string(raw) == "{}" {
		return json.RawMessage(`{"ok":true}`)
	}
	return append([]byte(`{"ok":true,`), raw[1:]...)
}

// failureBody is what the envelope says of an error.
type failureBody struct {
	Code    Code           `json:"code"`
	Message string         `json:"message"`
	Details map[string]any `json:"details"`
}

// failure is the envelope of an error of an operation. Causes are left out, since
// they may name files.
func failure(err error) json.RawMessage {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		e = &Error{Code: ErrInternal, Err: err}
	}
	body := failureBody{Code: e.Code, Message: e.Message, Details: maps.Clone(e.Details)}
	if body.Details == nil {
		body.Details = map[string]any{}
	}
	if e.Code == ErrInternal {
		cause := loci.CodeOf(e)
		body.Details["cause"] = cause
		if body.Message == "" {
			switch cause {
			case loci.ErrCanceled:
				body.Message = "the operation was stopped before it was done"
			case loci.ErrClosed:
				body.Message = "the store is closed"
			default:
				body.Message = "the store failed"
			}
		}
	}
	if e.Field != "" {
		body.Message = e.Field + ": " + body.Message
		body.Details["field"] = e.Field
	}
	raw, err := encodeJSON(struct {
		OK    bool        `json:"ok"`
		Error failureBody `json:"error"`
	}{Error: body})
	if err != nil { // details hold numbers, strings and measures
		return json.RawMessage(`{"ok":false,"error":{"code":"internal","message":"the error has no JSON form","details":{}}}`)
	}
	return raw
}

// encodeJSON is json.Marshal without the escapes that only a web page needs.
func encodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}
