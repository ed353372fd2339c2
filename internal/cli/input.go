package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// inputFlags are the flags that an operation's input schema gives its command.
type inputFlags struct {
	flags []inputFlag
	input string // --input
}

// inputFlag sets one field of the input.
type inputFlag struct {
	name   string
	path   []string // the field, or object and field
	schema *jsonschema.Schema
}

// newInputFlags gives cmd a flag for each field of the schema, and for the
// fields of objects one level down: a filter's under their own names where
// these are free, others behind their object's name. What is no scalar and no
// list of words takes JSON. Namespace and scope are left to the root's flags.
func newInputFlags(cmd *cobra.Command, o *op.Operation, schema *jsonschema.Schema) *inputFlags {
	in := &inputFlags{}
	fs := cmd.Flags()
	if len(schema.Properties) > 0 {
		fs.StringVar(&in.input, "input", "", "the whole input as `JSON`, or - to read it from standard input")
	}
	add := func(name string, path []string, s *jsonschema.Schema) {
		if fs.Lookup(name) != nil {
			name = kebab(strings.Join(path, "-"))
		}
		in.flags = append(in.flags, inputFlag{name, path, s})
		defineFlag(fs, name, s)
		if words := enumOf(s); words != nil {
			// The only error is a flag that does not exist.
			_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	}
	var objects []string
	for _, name := range schema.PropertyOrder {
		s := schema.Properties[name]
		switch {
		case isScope(o, name) || slices.Contains(o.Positional, name):
		case s.Type == "object" && len(s.Properties) > 0:
			objects = append(objects, name)
		default:
			add(kebab(name), []string{name}, s)
		}
	}
	for _, object := range objects {
		s := schema.Properties[object]
		for _, name := range s.PropertyOrder {
			if isDomain(name) {
				continue
			}
			flag := kebab(name)
			if object != "filter" {
				flag = kebab(object + "-" + name)
			}
			add(flag, []string{object, name}, s.Properties[name])
		}
	}
	return in
}

// isDomain says whether a field is set by --namespace and --scope.
func isDomain(field string) bool {
	return field == "namespace" || field == "scope" || field == "scopes"
}

func enumOf(s *jsonschema.Schema) []string {
	if s.Type == "array" && s.Items != nil {
		s = s.Items
	}
	var words []string
	for _, w := range s.Enum {
		words = append(words, w.(string))
	}
	return words
}

func isStringList(s *jsonschema.Schema) bool {
	return s.Type == "array" && s.Items != nil && s.Items.Type == "string"
}

// isUnsigned says whether a field is a number of 64 bits without sign.
func isUnsigned(s *jsonschema.Schema) bool {
	return s.Type == "integer" && s.Minimum != nil && *s.Minimum == 0
}

// isSentences says whether the words of a list are sentences, which commas do not
// part.
func isSentences(name string, s *jsonschema.Schema) bool { return name == "steps" && isStringList(s) }

func defineFlag(fs *pflag.FlagSet, name string, s *jsonschema.Schema) {
	usage := s.Description
	if words := enumOf(s); words != nil {
		usage = strings.TrimSpace(usage + " (" + strings.Join(words, ", ") + ")")
	}
	switch {
	case s.Type == "string":
		fs.String(name, "", usage)
	case isUnsigned(s):
		fs.Uint64(name, 0, usage)
	case s.Type == "integer":
		fs.Int64(name, 0, usage)
	case s.Type == "number":
		fs.Float64(name, 0, usage)
	case s.Type == "boolean":
		fs.Bool(name, false, usage)
	case isSentences(name, s):
		fs.StringArray(name, nil, usage+"; several by giving the flag several times")
	case isStringList(s):
		fs.StringSlice(name, nil, usage+repeatHint(usage))
	default:
		fs.String(name, "", strings.TrimSpace(usage+" (`JSON`)"))
	}
}

func repeatHint(usage string) string {
	if usage == "" {
		return "several, separated by commas"
	}
	return "; several are separated by commas"
}

// value is the flag's value as JSON.
func (f inputFlag) value(fs *pflag.FlagSet) (json.RawMessage, error) {
	var v any
	var err error
	switch s := f.schema; {
	case s.Type == "string":
		v, err = fs.GetString(f.name)
	case isUnsigned(s):
		v, err = fs.GetUint64(f.name)
	case s.Type == "integer":
		v, err = fs.GetInt64(f.name)
	case s.Type == "number":
		var n float64
		if n, err = fs.GetFloat64(f.name); err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
			err = fmt.Errorf("--%s takes a number, and this is none", f.name)
		}
		v = n
	case s.Type == "boolean":
		v, err = fs.GetBool(f.name)
	case isSentences(f.name, s):
		v, err = fs.GetStringArray(f.name)
	case isStringList(s):
		v, err = fs.GetStringSlice(f.name)
	default:
		var text string
		text, err = fs.GetString(f.name)
		if err == nil && !json.Valid([]byte(text)) {
			err = fmt.Errorf("--%s takes JSON, and this is none", f.name)
		}
		return json.RawMessage(text), err
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// operationInput makes an operation's input of --input, arguments, flags and
// the namespace and scope in force.
func (a *App) operationInput(cmd *cobra.Command, o *op.Operation, in *inputFlags, args []string) ([]byte, error) {
	var base []byte
	takesJSON := len(o.InputSchema().Properties) > 0
	fields := map[string]json.RawMessage{}
	var err error
	switch {
	case in.input != "":
		if base, err = a.readInput(cmd.Context(), in.input); err != nil {
			return nil, err
		}
	case isContext(o) && (len(o.Positional) > 0 || len(args) == 0):
		if base, args, err = a.contextInput(cmd.Context(), args); err != nil {
			return nil, err
		}
	case len(o.Positional) == 0 && len(args) == 1 && takesJSON:
		if base, err = a.readInput(cmd.Context(), args[0]); err != nil {
			return nil, err
		}
		args = nil
	}
	if len(args) > 0 && len(o.Positional) == 0 {
		return nil, usageError{fmt.Errorf("%s takes no argument %s", cmd.Name(), quote(args[0])), cmd.CommandPath()}
	}
	if len(args) == 0 && len(o.Positional) > 0 && base == nil && slices.Contains(o.InputSchema().Required, o.Positional[0]) {
		return nil, usageError{fmt.Errorf("%s is missing", strings.ToUpper(o.Positional[0])), cmd.CommandPath()}
	}
	for i, name := range o.Positional {
		if i >= len(args) {
			break
		}
		text := args[i]
		if i == len(o.Positional)-1 {
			text = strings.Join(args[i:], " ")
		}
		if text == "-" {
			raw, err := a.readAll(cmd.Context())
			if err != nil {
				return nil, err
			}
			text = string(bytes.TrimRight(raw, "\r\n"))
		}
		if fields[name], err = marshal(text); err != nil {
			return nil, err
		}
	}
	objects := map[string]map[string]json.RawMessage{}
	for _, f := range in.flags {
		if !cmd.Flags().Changed(f.name) {
			continue
		}
		v, err := f.value(cmd.Flags())
		if err != nil {
			return nil, usageError{err, cmd.CommandPath()}
		}
		if len(f.path) == 1 {
			fields[f.path[0]] = v
			continue
		}
		if objects[f.path[0]] == nil {
			objects[f.path[0]] = map[string]json.RawMessage{}
		}
		objects[f.path[0]][f.path[1]] = v
	}
	return a.fillDefaults(o, o.InputSchema(), base, func(m map[string]json.RawMessage) error {
		for name, v := range fields {
			m[name] = v
		}
		for object, members := range objects {
			err := edit(m, object, func(o map[string]json.RawMessage) error {
				for name, v := range members {
					o[name] = v
				}
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// absolute makes typed paths absolute: a store may be elsewhere, and a root is
// kept for other days.
func absolute(fields map[string]json.RawMessage, names []string) error {
	for _, name := range names {
		var path string
		if fields[name] == nil || json.Unmarshal(fields[name], &path) != nil || path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return errs.Wrap(errs.IO, err, "the path could not be resolved")
		}
		if fields[name], err = marshal(abs); err != nil {
			return err
		}
	}
	return nil
}

// fillDefaults puts fields from flags and the namespace and scope in force into
// an input. When there is nothing to put, the input goes on as it came.
func (a *App) fillDefaults(o *op.Operation, schema *jsonschema.Schema, raw []byte, set func(map[string]json.RawMessage) error) ([]byte, error) {
	if err := o.CheckPartial(raw); err != nil {
		return nil, err
	}
	d, err := a.domain()
	if err != nil {
		return nil, err
	}
	if set == nil && d.empty() && !isContext(o) && len(o.LocalPaths) == 0 {
		return raw, nil
	}
	m := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(raw)) > 0 {
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, errs.Invalid("", "the input is not a JSON object")
		}
	}
	if set != nil {
		if err := set(m); err != nil {
			return nil, err
		}
	}
	if err := absolute(m, o.LocalPaths); err != nil {
		return nil, err
	}
	if isContext(o) {
		if err := a.fillContext(m, d, schema); err != nil {
			return nil, err
		}
		return marshal(m)
	}
	// Where a deletion must name what goes, only what was typed counts.
	if schema.Properties["all"] != nil && string(m["all"]) != "true" {
		d = d.typed()
	}
	if isAgent(o) {
		if err := d.fillAgent(m); err != nil {
			return nil, err
		}
		return marshal(m)
	}
	if err := d.fill(m, schema); err != nil {
		return nil, err
	}
	return marshal(m)
}

// domain is the namespace and scope that the settings give.
type domain struct {
	namespace        *string
	scopes           []string
	namespaceIsTyped bool // by a flag: it wins over the input
	scopesAreTyped   bool
}

func (a *App) domain() (domain, error) {
	var d domain
	set, flag := a.settings.given("namespace")
	if set {
		v := a.settings.get("namespace").Value
		d.namespace, d.namespaceIsTyped = &v, flag
	}
	set, flag = a.settings.given("scope")
	if set {
		d.scopes, d.scopesAreTyped = []string{a.settings.get("scope").Value}, flag
		if flag {
			d.scopes = a.flags.scopes
		}
	}
	return d, nil
}

func (d domain) empty() bool { return d.namespace == nil && d.scopes == nil }

// typed is the part that stood on the command line.
func (d domain) typed() domain {
	if !d.namespaceIsTyped {
		d.namespace = nil
	}
	if !d.scopesAreTyped {
		d.scopes = nil
	}
	return d
}

// fill puts the domain into an input: at the top, into its filter and into each
// record of a batch.
func (d domain) fill(m map[string]json.RawMessage, schema *jsonschema.Schema) error {
	if string(m["id"]) != "" && schema.Properties["scope"] != nil {
		// An update keeps where the record is unless a flag says otherwise.
		d = d.typed()
	}
	if d.empty() {
		return nil
	}
	if schema.Properties["namespace"] != nil && d.namespace != nil {
		put(m, "namespace", *d.namespace, d.namespaceIsTyped)
	}
	if schema.Properties["scope"] != nil && d.scopes != nil {
		if len(d.scopes) != 1 {
			return usageError{errors.New("a record has one scope; give --scope once"), ""}
		}
		put(m, "scope", d.scopes[0], d.scopesAreTyped)
	}
	if schema.Properties["scopes"] != nil && d.scopes != nil {
		put(m, "scopes", d.scopes, d.scopesAreTyped)
	}
	for _, name := range schema.PropertyOrder {
		s := schema.Properties[name]
		switch {
		case name == "filter" && s.Properties["namespace"] != nil:
			if err := edit(m, name, func(f map[string]json.RawMessage) error { return d.fill(f, s) }); err != nil {
				return err
			}
		case s.Items != nil && s.Items.Properties["namespace"] != nil && m[name] != nil:
			var items []map[string]json.RawMessage
			if err := json.Unmarshal(m[name], &items); err != nil {
				return errs.Invalid(name, "must be an array of objects")
			}
			for _, item := range items {
				if err := d.fill(item, s.Items); err != nil {
					return err
				}
			}
			raw, err := marshal(items)
			if err != nil {
				return err
			}
			m[name] = raw
		}
	}
	return nil
}

func put(m map[string]json.RawMessage, name string, v any, over bool) {
	if _, there := m[name]; there && !over {
		return
	}
	m[name], _ = marshal(v) // strings always marshal
}

// edit changes an object inside m, made if need be.
func edit(m map[string]json.RawMessage, name string, f func(map[string]json.RawMessage) error) error {
	obj := map[string]json.RawMessage{}
	if raw, ok := m[name]; ok {
		if err := json.Unmarshal(raw, &obj); err != nil {
			return errs.Invalid(name, "must be an object")
		}
	}
	if err := f(obj); err != nil {
		return err
	}
	raw, err := marshal(obj)
	m[name] = raw
	return err
}

// marshal is json.Marshal, which escapes <, > and &, and leaves U+2028 alone.
func marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimRight(b.Bytes(), "\n"), err
}

// readInput is an argument's JSON, or that on standard input for "-".
func (a *App) readInput(ctx context.Context, arg string) ([]byte, error) {
	if arg != "-" {
		return []byte(arg), nil
	}
	return a.readAll(ctx)
}

// readAll reads standard input up to the limit of an operation's input. It
// returns when ctx ends, though a read that hangs stays behind: the program
// ends then anyway.
func (a *App) readAll(ctx context.Context) ([]byte, error) {
	type result struct {
		raw []byte
		err error
	}
	done := make(chan result, 1)
	go func() {
		raw, err := io.ReadAll(io.LimitReader(a.deps.Stdin, op.MaxInputBytes+1))
		done <- result{raw, err}
	}()
	select {
	case <-ctx.Done():
		return nil, errs.Wrap(errs.Canceled, ctx.Err(), "stopped while reading standard input")
	case r := <-done:
		if r.err != nil {
			return nil, errs.Wrap(errs.IO, r.err, "standard input")
		}
		if len(r.raw) > op.MaxInputBytes {
			return nil, errs.Invalid("", "standard input has more than %d bytes", op.MaxInputBytes)
		}
		return r.raw, nil
	}
}
