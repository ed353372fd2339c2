package mcpserver

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
)

// judgment is one thing to remember among several.
type judgment struct {
	Text      string   `json:"text"`
	Reasoning string   `json:"reasoning,omitempty"`
	Type      *string  `json:"type,omitempty"`
	Tags      []string `json:"tags,omitempty"`
}

// intakeTriple is a triple as intake takes it: one type that is left out is not an
// empty one.
type intakeTriple struct {
	Subject     string  `json:"subject"`
	SubjectType *string `json:"subject_type,omitempty"`
	Predicate   string  `json:"predicate"`
	Object      string  `json:"object"`
	ObjectType  *string `json:"object_type,omitempty"`
	Reason      string  `json:"reason,omitempty"`
}

// maxIntake bounds one call of intake.
const maxIntake = 1000

func intakeTool() *tool {
	return define(tool{
		name: "intake", title: "Take in",
		doc: "Store many judgments and triples at once, such as what you drew from a conversation or a document. Each is checked by itself and " +
			"merged with what is known; the answer says which were rejected and why. For one thing use remember.",
		input: object(
			property{"judgments", list("", object(
				property{"text", text("one statement that stands on its own"), true},
				property{"reasoning", text(""), false},
				property{"type", text("as in remember"), false},
				property{"tags", list("", text("")), false},
			)), false},
			property{"triples", list("as in relate", object(
				property{"subject", text(""), true},
				property{"predicate", text(""), true},
				property{"object", text(""), true},
				property{"subject_type", text(""), false},
				property{"object_type", text(""), false},
				property{"reason", text(""), false},
			)), false},
			property{"source", text("what all of it was taken from"), false},
			property{"dry_run", yesNo("check only"), false},
		),
		rows: []string{intakeRow}, home: true,
	}, func(ctx context.Context, s *server, in struct {
		common
		Judgments []judgment     `json:"judgments"`
		Triples   []intakeTriple `json:"triples"`
		Source    string         `json:"source"`
		DryRun    bool           `json:"dry_run"`
	}) (*reply, error) {
		if n := len(in.Judgments) + len(in.Triples); n == 0 || n > maxIntake {
			return nil, errs.Invalid("judgments", "and triples together must be from 1 to %d", maxIntake)
		}
		h := s.home(ctx, in.Namespace)
		args := map[string]any{"namespace": h.namespace, "scope": h.scopes[0], "dry_run": in.DryRun}
		if len(in.Judgments) > 0 {
			args["judgments"] = in.Judgments
		}
		if len(in.Triples) > 0 {
			args["triples"] = in.Triples
		}
		if in.Source != "" {
			args["source"] = in.Source
		}
		doc, err := s.call(ctx, intakeRow, args)
		if err != nil {
			return nil, err
		}
		v := obj(doc, "value")
		v["redacted"] = doc["redacted"]
		if v["redacted"] == nil {
			delete(v, "redacted")
		}
		return &reply{doc: v, lists: []string{"rejected", "stored"}, notes: redactions(doc), say: func(doc document) string {
			head := "Taken in"
			if in.DryRun {
				head = "Nothing was written; it would be taken in"
			}
			out := []string{fmt.Sprintf("%s: %v new, %v merged with what is known, %v new things in the graph.", head, doc["created"], doc["merged"], doc["entities"])}
			for _, r := range items(doc, "rejected") {
				field := str(r, "field")
				if field != "" {
					field = " " + field
				}
				out = append(out, fmt.Sprintf("Rejected: %s[%v]%s: %s", str(r, "list"), r["index"], field, str(r, "reason")))
			}
			return strings.Join(out, "\n")
		}}, nil
	})
}
