// Package op is the table of operations: what a caller outside Go can ask of
// a store. Each operation is declared once, with its types, its handler and
// its flags; command line, HTTP and every later surface are derived from the
// table, so that they cannot drift apart.
package op

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/strictjson"
)

// Spec is what is declared about an operation besides its types and handler.
type Spec struct {
	// Name is the stable name, such as "memories.upsert".
	Name string
	// Summary is one line without a full stop.
	Summary string
	// Description says what Summary leaves out; it may be empty.
	Description string
	// Positional names the string fields that a command line may take as plain
	// arguments, in order. The last one takes all that is left.
	Positional []string
	// LocalPaths names the string fields that hold a path of the machine that the store
	// is on. Only absolute ones are taken: what a relative one names would depend on
	// where the process that happens to hold the store was started. A command line makes
	// them absolute.
	LocalPaths []string
	// Texts names the fields that hold text to keep, such as "memories[].judgment!".
	// They lose marked blocks, which the memory gave itself; those with a "!" must
	// have something left then.
	Texts []string
	// Covers lists the Go methods and functions that the operation makes reachable, such as
	// "MemoryStore.Upsert".
	Covers []string

	ReadOnly    bool // changes nothing
	Idempotent  bool // doing it twice is doing it once
	Destructive bool // may remove what was stored
	LongRunning bool // may take minutes; reports progress
	// Admin is about the store as a whole, or about files of its machine: a caller
	// with limited access needs more than grants for it.
	Admin bool
}

// Operation is one row of the table.
type Operation struct {
	Spec
	input, output *jsonschema.Schema
	in, out       reflect.Type
	check         func(raw []byte) error
	call          func(ctx context.Context, db *loci.DB, raw []byte) (any, error)
	coded         func(error) error // gives errors codes of the operation's own; nil for none
}

// failed names the operation on an error.
func (o *Operation) failed(err error) error {
	err = errs.WithOp(o.Name, err)
	if o.coded != nil {
		err = o.coded(err)
	}
	return err
}

// validator is an input with rules beyond its form. The store's own rules are
// the store's affair.
type validator interface{ validate() error }

// Define makes an operation of a handler. The schemas come from In and Out,
// which must be structs, and their field comments. It panics on types that have
// no JSON form, since that is a mistake in the program.
func Define[In, Out any](spec Spec, handler func(context.Context, *loci.DB, In) (Out, error)) *Operation {
	in, err := inferSchema[In]()
	if err == nil && in.Type != "object" {
		err = fmt.Errorf("input is %s, not an object", in.Type)
	}
	if err != nil {
		panic("op: " + spec.Name + ": " + err.Error())
	}
	out, err := inferSchema[Out]()
	if err == nil && out.Type != "object" {
		err = fmt.Errorf("output is %s, not an object", out.Type)
	}
	if err != nil {
		panic("op: " + spec.Name + ": " + err.Error())
	}
	strictjson.AllowNull(out, reflect.TypeFor[Out]())
	texts := textFields(spec.Name, reflect.TypeFor[In](), spec.Texts)
	read := func(raw []byte) (v In, err error) {
		if err = decode(in, raw, &v); err == nil {
			err = unmark(&v, texts)
		}
		if err == nil {
			err = checkPaths(raw, spec.LocalPaths)
		}
		if err == nil {
			if own, ok := any(v).(validator); ok {
				err = own.validate()
			}
		}
		return v, errs.WithOp(spec.Name, err)
	}
	o := &Operation{Spec: spec, input: in, output: out, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out]()}
	o.check = func(raw []byte) error {
		_, err := read(raw)
		return err
	}
	o.call = func(ctx context.Context, db *loci.DB, raw []byte) (any, error) {
		v, err := read(raw)
		if err != nil {
			return nil, err
		}
		res, err := handler(ctx, db, v)
		if err != nil {
			return nil, errs.WithOp(spec.Name, err)
		}
		return res, nil
	}
	return o
}

// checkPaths holds that the paths in an input that was decoded are absolute ones.
func checkPaths(raw []byte, names []string) error {
	if len(names) == 0 {
		return nil
	}
	var fields map[string]json.RawMessage
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return errs.Invalid("", "the input is not a JSON object")
		}
	}
	for _, name := range names {
		var path string
		if err := json.Unmarshal(fields[name], &path); err != nil {
			return errs.Invalid(name, "is missing")
		}
		switch {
		case path == "":
			return errs.Invalid(name, "must not be empty")
		case strings.ContainsRune(path, 0):
			return errs.Invalid(name, "must not hold a zero byte")
		case !filepath.IsAbs(path):
			return errs.Invalid(name, "must be an absolute path, of the machine that holds the store")
		}
	}
	return nil
}

// InputSchema is a copy of the JSON Schema of the operation's input.
func (o *Operation) InputSchema() *jsonschema.Schema { return o.input.CloneSchemas() }

// SharedInput is the schema of the operation's input itself, for a surface that
// reads every one of them at each start. It must not be changed.
func (o *Operation) SharedInput() *jsonschema.Schema { return o.input }

// OutputSchema is a copy of the JSON Schema of the operation's result.
func (o *Operation) OutputSchema() *jsonschema.Schema { return o.output.CloneSchemas() }

// InputType is the Go type of the operation's input.
func (o *Operation) InputType() reflect.Type { return o.in }

// OutputType is the Go type of the operation's result, which may be a pointer.
func (o *Operation) OutputType() reflect.Type { return o.out }

// Check says whether raw would be taken as input, without running anything. The
// store may still refuse what it asks for.
func (o *Operation) Check(raw []byte) error { return o.failed(o.check(raw)) }

// CheckPartial is Check for input that is not complete yet: a surface may add
// top-level fields afterwards.
func (o *Operation) CheckPartial(raw []byte) error {
	return o.failed(strictjson.CheckPartial(o.input, raw))
}

// Call runs the operation: JSON in, JSON out. Empty input stands for {}.
func (o *Operation) Call(ctx context.Context, db *loci.DB, raw []byte) (json.RawMessage, error) {
	if err := ctx.Err(); err != nil {
		return nil, o.failed(err)
	}
	if o.Admin && !loci.AccessFrom(ctx).IsAdmin() {
		return nil, o.failed(errs.New(errs.Forbidden, "needs a token with admin"))
	}
	res, err := o.call(ctx, db, raw)
	if err != nil {
		return nil, o.failed(err)
	}
	out, err := encode(res)
	if err != nil {
		return nil, o.failed(errs.Wrap(errs.Storage, err, "the result has no JSON form"))
	}
	return out, nil
}

// encode is json.Marshal without the escapes that only a web page needs.
func encode(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// Table is a fixed set of operations.
type Table struct {
	ops    []*Operation
	byName map[string]*Operation
}

// NewTable makes a table. It panics on a name that comes twice.
func NewTable(ops ...*Operation) *Table {
	t := &Table{ops: ops, byName: make(map[string]*Operation, len(ops))}
	for _, o := range ops {
		if t.byName[o.Name] != nil {
			panic("op: " + o.Name + " is declared twice")
		}
		t.byName[o.Name] = o
	}
	return t
}

// Default is the table of everything a store can do. It is made once and never
// changes.
func Default() *Table { return defaultTable() }

var defaultTable = sync.OnceValue(func() *Table {
	var ops []*Operation
	ops = append(ops, friendlyOps()...)
	ops = append(ops, intakeOps()...)
	ops = append(ops, memoryOps()...)
	ops = append(ops, graphOps()...)
	ops = append(ops, graphViewOps()...)
	ops = append(ops, graphTextOps()...)
	ops = append(ops, predicateOps()...)
	ops = append(ops, noteOps()...)
	ops = append(ops, searchOps()...)
	ops = append(ops, embeddingOps()...)
	ops = append(ops, contextOps()...)
	ops = append(ops, agentOps()...)
	ops = append(ops, changeOps()...)
	ops = append(ops, importOps()...)
	ops = append(ops, storeOps()...)
	ops = append(ops, eraseOps()...)
	return NewTable(ops...)
})

// All lists the operations in the order of their declaration.
func (t *Table) All() []*Operation { return append([]*Operation(nil), t.ops...) }

// Lookup finds an operation by name.
func (t *Table) Lookup(name string) (*Operation, bool) {
	o, ok := t.byName[name]
	return o, ok
}

// Call runs the named operation. An unknown name is a validation error that
// names the closest one.
func (t *Table) Call(ctx context.Context, db *loci.DB, name string, raw []byte) (json.RawMessage, error) {
	o, ok := t.byName[name]
	if !ok {
		return nil, t.Unknown(name)
	}
	return o.Call(ctx, db, raw)
}

// Unknown is the error for a name that is not in the table.
func (t *Table) Unknown(name string) error {
	names := make([]string, len(t.ops))
	for i, o := range t.ops {
		names[i] = o.Name
	}
	msg := "there is no operation " + strictjson.Quote(name)
	if best := Closest(name, names); best != "" {
		msg += "; did you mean " + best + "?"
	} else {
		msg += "; there are " + strings.Join(names, ", ")
	}
	return &errs.Error{Code: errs.Validation, Field: "operation", Message: msg}
}

// Caller runs operations by name: the store itself, or a process that holds
// it. Surfaces depend on this and not on where the store is.
type Caller interface {
	Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error)
}

// Local runs the default table's operations on db.
func Local(db *loci.DB) Caller { return local{db} }

type local struct{ db *loci.DB }

// Call implements Caller.
func (l local) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	return Default().Call(ctx, l.db, name, raw)
}
