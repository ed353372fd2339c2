package mcpserver

import (
	"context"
	"errors"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/mark"
	"github.com/loci-memory/loci/op"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The addresses of resources: loci://NAMESPACE/KIND/ID is a record, and
// loci://context/NAMESPACE/... the window of a context as it stands. Each part is
// percent-encoded. Records of a namespace that is called "context" have no address.
const (
	scheme      = "loci://"
	contextHost = "context"
)

func contextURI(scope []string) string {
	uri := scheme + contextHost
	for _, part := range scope {
		uri += "/" + url.PathEscape(part)
	}
	return uri
}

// addResources lists the one window that the server is bound to; the rest is found
// by address, since a memory holds too much to be listed.
func (s *server) addResources() {
	s.mcp.AddResource(&mcp.Resource{
		URI: contextURI(s.home(context.Background(), nil).context), Name: "context", Title: "Context window",
		Description: "The pages that are in this agent's window now, as a model reads them.", MIMEType: "text/plain",
	}, s.read)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: scheme + contextHost + "/{+scope}", Name: "context", Title: "Context window of a scope",
		Description: "The window of loci://context/NAMESPACE or of a session below it.", MIMEType: "text/plain",
	}, s.read)
	s.mcp.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: scheme + "{namespace}/{kind}/{id}", Name: "record", Title: "Record",
		Description: "One record, whole: kind is memory, entity, relation, event, note, chunk, fact, episode or procedure.",
		MIMEType:    "application/json",
	}, s.read)
}

// read gives a resource.
func (s *server) read(ctx context.Context, req *mcp.ReadResourceRequest) (_ *mcp.ReadResourceResult, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.recovered("resource", p, debug.Stack())
		}
		err = protocolError(err, req.Params.URI)
	}()
	ctx, cancel := s.context(ctx, s.Timeout)
	defer cancel()
	parts, err := parseURI(req.Params.URI)
	if err != nil {
		return nil, err
	}
	contents := &mcp.ResourceContents{URI: req.Params.URI}
	if parts[0] == contextHost {
		contents.MIMEType = "text/plain"
		contents.Text, err = s.rendered(ctx, parts[1:])
	} else {
		contents.MIMEType = "application/json"
		contents.Text, err = s.record(ctx, parts)
	}
	if err != nil {
		s.failed("resource", err)
		return nil, err
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

// parseURI takes an address apart. What is no address is not there.
func parseURI(uri string) ([]string, error) {
	missing := errs.New(errs.NotFound, "there is no such resource")
	rest, ok := strings.CutPrefix(uri, scheme)
	if !ok {
		return nil, missing
	}
	parts := strings.Split(rest, "/")
	for i, p := range parts {
		plain, err := url.PathUnescape(p)
		if err != nil || plain == "" {
			return nil, missing
		}
		parts[i] = plain
	}
	if len(parts) < 2 || parts[0] != contextHost && len(parts) != 3 {
		return nil, missing
	}
	return parts, nil
}

// rendered is the window of a context, marked as what it is.
func (s *server) rendered(ctx context.Context, scope []string) (string, error) {
	doc, err := s.call(ctx, "context.render", map[string]any{"scope": scope})
	if err != nil {
		return "", err
	}
	return mark.Wrap(str(doc, "text")), nil
}

func (s *server) record(ctx context.Context, parts []string) (string, error) {
	namespace, kind, id := parts[0], parts[1], parts[2]
	h := s.home(ctx, nil)
	filter := map[string]any{"namespace": namespace, "scopes": h.scopes}
	var row string
	args := map[string]any{"id": id, "filter": filter}
	switch kind {
	case "memory":
		row = "memories.get"
	case "entity", "relation", "event":
		row = "graph.get"
		args["kind"] = kind
	case "note":
		row = "notes.get"
	case "chunk":
		row = "notes.get_chunk"
	case "fact", "episode", "procedure":
		row = kind + "s.get"
		args = map[string]any{"id": id, "namespace": namespace, "scope": h.scopes[0]}
	default:
		return "", errs.New(errs.NotFound, "there is no such resource")
	}
	doc, err := s.call(ctx, row, args)
	if err != nil {
		return "", err
	}
	switch row {
	case "graph.get":
		doc = obj(doc, "record")
	case "facts.get", "episodes.get", "procedures.get":
		if doc = obj(doc, "point"); doc == nil {
			return "", errs.New(errs.NotFound, "there is no such resource")
		}
	}
	raw, err := encode(doc)
	return string(raw), err
}

// protocolError is an error as the protocol has it for resources and prompts. What
// may not be read is as if it were not there.
func protocolError(err error, uri string) error {
	if err == nil {
		return nil
	}
	f := op.FailureOf(err)
	if uri != "" && (slices.Contains([]errs.Code{errs.NotFound, errs.Forbidden, errs.Validation}, f.Code)) {
		return mcp.ResourceNotFoundError(uri)
	}
	if already, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return already
	}
	code := int64(jsonrpc.CodeInternalError)
	if f.Code == errs.Validation {
		code = jsonrpc.CodeInvalidParams
	}
	message := string(f.Code) + ": " + f.Message
	if f.Field != "" {
		message = string(f.Code) + ": " + f.Field + ": " + f.Message
	}
	return &jsonrpc.Error{Code: code, Message: message}
}
