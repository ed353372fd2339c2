package op

import (
	"context"

	"github.com/loci-memory/loci"
)

// OnePredicate names the predicate of a rule.
type OnePredicate struct {
	Predicate string `json:"predicate"`           // case and width do not matter
	Namespace string `json:"namespace,omitempty"` // left out: the rule for the whole store
}

// RulesQuery asks for rules.
type RulesQuery struct {
	Namespace string `json:"namespace,omitempty"` // the rules that hold there; left out: those for the whole store
}

// RuleList are rules, those for the whole store first, each by predicate.
type RuleList struct {
	Rules []loci.PredicateRule `json:"rules"`
}

// EquivalentsWrite are groups of words that mean the same.
type EquivalentsWrite struct {
	Namespace *string    `json:"namespace,omitempty"` // default "default"
	Groups    [][]string `json:"groups"`              // the first word of a group is its canonical one
}

// EquivalentsQuery asks for the groups of a namespace.
type EquivalentsQuery struct {
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// EquivalentsDelete says which words are to go.
type EquivalentsDelete struct {
	Namespace *string  `json:"namespace,omitempty"` // default "default"
	Words     []string `json:"words,omitempty"`     // left out: all words of the namespace
}

// EquivalentsList are groups of words, sorted by their first words.
type EquivalentsList struct {
	Groups []loci.PredicateGroup `json:"groups"`
}

// ExpandWords asks what a query is expanded by.
type ExpandWords struct {
	Text      string  `json:"text"`                // the query
	Namespace *string `json:"namespace,omitempty"` // default "default"
}

// ExpandedWords are the words of the groups of which one occurs in the text.
type ExpandedWords struct {
	Words []string `json:"words"` // at most 64
}

func namespaceOr(namespace *string) string {
	if namespace == nil {
		return loci.DefaultNamespace
	}
	return *namespace
}

func predicateOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "graph.set_predicate_rule",
			Summary:     "Say what a predicate implies the other way round",
			Description: "A symmetric predicate holds both ways; one with an inverse implies that one backwards. Rules add edges when the graph is walked and never records. A rule that is set again is replaced; a namespace's own stands before one for the whole store.",
			Idempotent:  true,
			Positional:  []string{"predicate"},
			Covers:      []string{"GraphStore.SetPredicateRule"},
		}, func(ctx context.Context, db *loci.DB, in loci.PredicateRule) (*loci.Receipt[loci.PredicateRule], error) {
			return db.Graph().SetPredicateRule(ctx, in)
		}),
		Define(Spec{
			Name:        "graph.delete_predicate_rule",
			Summary:     "Delete the rule of a predicate",
			Description: "The value is false when there was none. What is built in, sys:same_as, stays.",
			Idempotent:  true, Destructive: true,
			Positional: []string{"predicate"},
			Covers:     []string{"GraphStore.DeletePredicateRule"},
		}, func(ctx context.Context, db *loci.DB, in OnePredicate) (*loci.Receipt[bool], error) {
			return db.Graph().DeletePredicateRule(ctx, in.Namespace, in.Predicate)
		}),
		Define(Spec{
			Name:     "graph.predicate_rules",
			Summary:  "List the predicate rules that hold in a namespace",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"GraphStore.PredicateRules"},
		}, func(ctx context.Context, db *loci.DB, in RulesQuery) (*RuleList, error) {
			rules, err := db.Graph().PredicateRules(ctx, in.Namespace)
			return &RuleList{rules}, err
		}),
		Define(Spec{
			Name:        "graph.set_predicate_equivalents",
			Summary:     "Register groups of words that mean the same",
			Description: "Searches of the namespace find a word by its equivalents. A word that is registered again moves to the new group. The value is the number of words.",
			Idempotent:  true,
			Covers:      []string{"GraphStore.SetPredicateEquivalents"},
		}, func(ctx context.Context, db *loci.DB, in EquivalentsWrite) (*loci.Receipt[int], error) {
			return db.Graph().SetPredicateEquivalents(ctx, namespaceOr(in.Namespace), in.Groups)
		}),
		Define(Spec{
			Name:     "graph.predicate_equivalents",
			Summary:  "List the groups of words that mean the same",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"GraphStore.PredicateEquivalents"},
		}, func(ctx context.Context, db *loci.DB, in EquivalentsQuery) (*EquivalentsList, error) {
			groups, err := db.Graph().PredicateEquivalents(ctx, namespaceOr(in.Namespace))
			return &EquivalentsList{groups}, err
		}),
		Define(Spec{
			Name:        "graph.delete_predicate_equivalents",
			Summary:     "Delete words from the groups of words that mean the same",
			Description: "Without words, all of the namespace. The value is the number of words that were there.",
			Idempotent:  true, Destructive: true,
			Covers: []string{"GraphStore.DeletePredicateEquivalents"},
		}, func(ctx context.Context, db *loci.DB, in EquivalentsDelete) (*loci.Receipt[int], error) {
			return db.Graph().DeletePredicateEquivalents(ctx, namespaceOr(in.Namespace), in.Words)
		}),
		Define(Spec{
			Name:        "graph.expand_query",
			Summary:     "Show the words that a query is expanded by",
			Description: "All words of the groups of which one occurs in the text.",
			ReadOnly:    true, Idempotent: true,
			Positional: []string{"text"},
			Covers:     []string{"GraphStore.ExpandQuery"},
		}, func(ctx context.Context, db *loci.DB, in ExpandWords) (*ExpandedWords, error) {
			words, err := db.Graph().ExpandQuery(ctx, namespaceOr(in.Namespace), in.Text)
			return &ExpandedWords{words}, err
		}),
	}
}
