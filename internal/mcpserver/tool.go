package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"runtime/debug"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/mark"
	"github.com/loci-memory/loci/internal/strictjson"
	"github.com/loci-memory/loci/op"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is what a model is offered.
type tool struct {
	name, title, doc string
	input            *jsonschema.Schema
	rows             []string // the operations that it may call; its hints come from theirs
	home             bool     // it works in a namespace, which its caller may name where that is allowed
	limit            time.Duration
	run              func(ctx context.Context, s *server, raw json.RawMessage) (*reply, error)
}

// common are the arguments that several tools have.
type common struct {
	Namespace *string `json:"namespace"`
	MaxTokens *int    `json:"max_tokens"`
}

// reply is what a tool has to say.
type reply struct {
	doc document
	// lists name the members of doc that items may be taken from when there is too
	// much, the first one last.
	lists []string
	// budget is what the caller asks for; 0 is the server's.
	budget int
	whole  bool // doc is never cut
	failed bool // doc is an error
	// say puts doc, as far as it is left, into words; nil is doc's JSON.
	say func(doc document) string
	// recalled says that the words are what was stored, and are marked as such.
	recalled bool
	none     string   // the words when there is nothing, which are not marked
	notes    []string // what stands below the words
}

// define makes a tool whose arguments are decoded into an A.
func define[A any](t tool, run func(ctx context.Context, s *server, in A) (*reply, error)) *tool {
	bound, free := strict(t.input), strict(t.input)
	if t.home {
		free.Properties["namespace"] = text("")
	}
	t.run = func(ctx context.Context, s *server, raw json.RawMessage) (*reply, error) {
		raw, err := withoutNull(raw)
		if err != nil {
			return nil, err
		}
		schema := bound
		if s.AnyNamespace {
			schema = free
		}
		var in A
		if err := strictjson.Decode(schema, raw, &in); err != nil {
			return nil, err
		}
		return run(ctx, s, in)
	}
	return &t
}

// withoutNull takes out arguments that are null: models write it for what they
// leave out. Anything else that is wrong is for the decoder to say.
func withoutNull(raw json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(raw, []byte("null")) || len(raw) > op.MaxInputBytes {
		return raw, nil
	}
	if err := strictjson.Check(&jsonschema.Schema{}, raw); err != nil {
		return raw, nil //nolint:nilerr // the decoder finds it again, and says where
	}
	var m map[string]json.RawMessage
	if err := json.Unmarshal(raw, &m); err != nil {
		return raw, nil //nolint:nilerr // not an object: likewise
	}
	for name, v := range m {
		if string(v) == "null" {
			delete(m, name)
		}
	}
	raw, err := json.Marshal(m)
	return raw, errs.Wrap(errs.Validation, err, "the arguments have no JSON form")
}

// shown is the tool as clients see it.
func (t *tool) shown(s *server) *mcp.Tool {
	input := shown(t.input)
	if t.home && s.AnyNamespace {
		input.Properties["namespace"] = text("where to work; default " + s.Namespace)
		input.PropertyOrder = append(input.PropertyOrder, "namespace")
	}
	readOnly, idempotent, destructive := true, true, false
	for _, name := range t.rows {
		o, ok := op.Default().Lookup(name)
		if !ok {
			panic("mcpserver: " + t.name + " needs the operation " + name)
		}
		readOnly, idempotent, destructive = readOnly && o.ReadOnly, idempotent && o.Idempotent, destructive || o.Destructive
	}
	return &mcp.Tool{
		Name: t.name, Title: t.title, Description: t.doc, InputSchema: input,
		Annotations: &mcp.ToolAnnotations{
			ReadOnlyHint: readOnly, IdempotentHint: idempotent, DestructiveHint: &destructive, OpenWorldHint: new(false),
		},
	}
}

// handle is the tool as the library calls it. What goes wrong is an answer that a
// model can read, and never an error of the protocol.
func (s *server) handle(t *tool) mcp.ToolHandler {
	return func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		limit := t.limit
		if limit == 0 {
			limit = s.Timeout
		}
		ctx, cancel := s.context(ctx, limit)
		defer cancel()
		start := time.Now()
		r, err := s.runTool(s.withProgress(ctx, req), t, req.Params.Arguments)
		status := "ok"
		if err != nil {
			status = string(op.OutcomeOf(err).Code)
			s.failed(t.name, err)
		}
		s.Log.Info("tool", "name", t.name, "status", status, "ms", float64(time.Since(start).Microseconds())/1000)
		if err != nil {
			return failure(err), nil
		}
		return s.result(r)
	}
}

func (s *server) runTool(ctx context.Context, t *tool, raw json.RawMessage) (r *reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.recovered(t.name, p, debug.Stack())
		}
	}()
	if len(raw) > op.MaxInputBytes {
		return nil, errs.Invalid("", "the arguments have %d bytes; at most %d are taken", len(raw), op.MaxInputBytes)
	}
	return t.run(ctx, s, raw)
}

// progressEvery is how often a client is told how far a long operation is.
const progressEvery = 100 * time.Millisecond

// withProgress tells the client how far an operation is, if it asked for that.
func (s *server) withProgress(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	token := req.Params.GetProgressToken()
	if token == nil {
		return ctx
	}
	var last time.Time
	told := int64(-1)
	return op.WithProgress(ctx, func(done, total int64) {
		if done <= told || time.Since(last) < progressEvery && done != total {
			return // the protocol wants it to grow
		}
		told, last = done, time.Now()
		// A client that has gone cannot be told so.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(done), Total: float64(total),
		})
	})
}

// result cuts a reply to its budget and gives it in both forms.
func (s *server) result(r *reply) (*mcp.CallToolResult, error) {
	budget := r.budget
	if budget == 0 {
		budget = s.Budget
	}
	notes := r.notes
	if !r.whole {
		if said := cut(r.doc, r.lists, budget); said != "" {
			notes = append(notes, said)
		}
	}
	raw, err := encode(r.doc)
	if err != nil {
		return nil, err
	}
	words := string(raw)
	if r.say != nil {
		words = r.say(r.doc)
		if r.recalled && words != r.none {
			words = mark.Wrap(words)
		}
		words = strings.Join(append([]string{words}, notes...), "\n")
	}
	return &mcp.CallToolResult{
		IsError:           r.failed,
		Content:           []mcp.Content{&mcp.TextContent{Text: words}},
		StructuredContent: json.RawMessage(raw),
	}, nil
}

// failure is an error as a model reads it.
func failure(err error) *mcp.CallToolResult {
	f := op.FailureOf(err)
	message := f.Message
	if f.Field != "" {
		message = f.Field + ": " + message
	}
	code := string(f.Code)
	if f.Reason != "" {
		code = f.Reason
	}
	return &mcp.CallToolResult{
		IsError:           true,
		Content:           []mcp.Content{&mcp.TextContent{Text: code + ": " + message}},
		StructuredContent: map[string]any{"error": f},
	}
}

// renamed gives an error the names of a tool's own arguments, where the operation
// underneath has others.
func renamed(err error, fields map[string]string) error {
	e, ok := asError(err)
	if !ok {
		return err
	}
	c := *e
	if own, ok := fields[c.Field]; ok {
		c.Field = own
	} else {
		c.Field = strings.TrimPrefix(c.Field, "filter.")
	}
	return &c
}
