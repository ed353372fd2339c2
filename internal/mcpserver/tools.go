package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

// tools are what the server offers.
func (s *server) tools() []*tool {
	if s.AllTools {
		var all []*tool
		for _, o := range op.Default().All() {
			all = append(all, s.operationTool(o))
		}
		return all
	}
	return []*tool{
		rememberTool(), recallTool(), searchTool(), recentTool(), feedbackTool(), forgetTool(),
		relateTool(), intakeTool(), exploreTool(), notesTool(), statusTool(), vctxTool(),
	}
}

// operationTool is an operation as it stands: its arguments, and its answer uncut.
func (s *server) operationTool(o *op.Operation) *tool {
	t := &tool{
		name: strings.ReplaceAll(o.Name, ".", "_"), title: o.Summary, doc: o.Summary + ".", input: o.InputSchema(), rows: []string{o.Name},
		run: func(ctx context.Context, s *server, raw json.RawMessage) (*reply, error) {
			out, err := s.Caller.Call(ctx, o.Name, raw)
			if err != nil {
				return nil, err
			}
			doc, err := decode(out)
			return &reply{doc: doc, whole: true}, err
		},
	}
	if o.Description != "" {
		t.doc += " " + o.Description
	}
	if o.LongRunning {
		t.limit = s.LongTimeout
	}
	return t
}

// budget reads max_tokens.
func (c common) budget() (int, error) {
	if c.MaxTokens == nil {
		return 0, nil
	}
	if *c.MaxTokens < minBudget || *c.MaxTokens > maxBudget {
		return 0, errs.Invalid("max_tokens", "must be from %d to %d", minBudget, maxBudget)
	}
	return *c.MaxTokens, nil
}

func maxTokens() property {
	return property{name: "max_tokens", schema: number("about how long the answer may be")}
}

// LintTools says what in the tools that models are offered some client would refuse;
// nil when every client that is known takes all of them.
func LintTools() error {
	s := &server{Config: Config{AnyNamespace: true}}
	return s.lint()
}

func (s *server) lint() error {
	var found []error
	for _, t := range s.tools() {
		if err := LintTool(t.name, shown(t.input)); err != nil {
			found = append(found, err)
		}
	}
	return errors.Join(found...)
}
