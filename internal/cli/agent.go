package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

// agentHelp is the help of a group of operations on agent memory.
func agentHelp(group string) (short, long string) {
	const where = `

--namespace and --scope say which memory it is; the defaults are one of their own.
A memory is made by what is stored in it first. Ids are numbers of your own, from 0
to 18446744073709551615. Vectors are your own too, or are left to the embedder.`
	switch group {
	case "facts":
		return "Operations on what an agent knows", `Keeps what an agent knows: facts, which may hold for a time, expire, be related,
and take the place of others. Earlier versions are kept.

  loci facts store --id 7 "The ferry leaves at nine."
  loci facts query-text "when does the ferry leave"
  loci facts relate 7 concerns 8` + where
	case "episodes":
		return "Operations on what happened to an agent", `Keeps what happened, and when: episodes, of one's own or of the conversations that
another program exported.

  loci episodes record --id 1 "The lamp went out." --at-us 1767323045000000
  loci episodes recent --limit 5
  loci episodes import conversations.json --format chatgpt` + where
	case "procedures":
		return "Operations on what an agent can do", `Keeps ways to do something, and how well they served.

  loci procedures learn --id 3 "Light the lamp" --steps "Trim the wick." --steps "Light it."
  loci procedures recall "lamp" --min-confidence 0.4
  loci procedures reinforce 3 --success` + where
	}
	return "Operations on an agent's memory as a whole", `Facts, episodes and procedures of a namespace and scope are one memory, with one
dimension and one policy. It is copied to snapshots and comes back from them as a
whole.

  loci agent set-policy --consolidate-after-seconds 2592000
  loci agent auto-expire
  loci agent snapshot` + where
}

// isAgent says whether an operation is one on agent memory.
func isAgent(o *op.Operation) bool {
	group, _, _ := strings.Cut(o.Name, ".")
	return isAgentGroup(group)
}

func isAgentGroup(group string) bool {
	switch group {
	case "facts", "episodes", "procedures", "agent":
		return true
	}
	return false
}

// fillAgent puts the namespace and scope in force into the input of an operation on
// agent memory. They say which memory is meant, also where an id is given.
func (d domain) fillAgent(m map[string]json.RawMessage) error {
	if d.namespace != nil {
		put(m, "namespace", *d.namespace, d.namespaceIsTyped)
	}
	if d.scopes == nil {
		return nil
	}
	if len(d.scopes) != 1 {
		return usageError{errors.New("a memory has one scope; give --scope once"), ""}
	}
	put(m, "scope", d.scopes[0], d.scopesAreTyped)
	return nil
}

// modelUse is what an operation on agent memory has to do with the embedder.
type modelUse int

const (
	modelUnused modelUse = iota
	modelShows           // it tells whether the memory has one
	modelReads           // a query has to do with its words without one
	modelHelps           // what is stored has no vector without one
	modelNeeded          // nothing can be stored without one
	modelPlaces          // a memory that this makes would lie in the wrong space without one
)

// agentModel says what an operation has to do with the embedder, by its input: what
// brings its vectors needs none.
func agentModel(name string, raw json.RawMessage) modelUse {
	type item struct {
		Embedding json.RawMessage `json:"embedding"`
	}
	var in struct {
		item
		Text     string                     `json:"text"`
		Updates  map[string]json.RawMessage `json:"updates"`
		Facts    []item                     `json:"facts"`
		Episodes []item                     `json:"episodes"`
	}
	if name == "import_from" { // facts and episodes may be among the lines
		return modelHelps
	}
	group, call, _ := strings.Cut(name, ".")
	if !isAgentGroup(group) || json.Unmarshal(raw, &in) != nil { // the operation refuses it
		return modelUnused
	}
	lacks := func(items ...item) bool {
		for _, v := range items {
			if v.Embedding == nil {
				return true
			}
		}
		return false
	}
	when := func(yes bool, use modelUse) modelUse {
		if yes {
			return use
		}
		return modelUnused
	}
	switch call {
	case "query_text", "recall_similar", "recall":
		return when(in.Text != "", modelReads)
	case "store", "store_unique":
		return when(lacks(in.item), modelNeeded)
	case "store_batch":
		return when(lacks(in.Facts...), modelNeeded)
	case "record", "learn":
		return when(lacks(in.item), modelHelps)
	case "record_batch":
		return when(lacks(in.Episodes...), modelHelps)
	case "update_metadata":
		return when(group == "facts" && in.Updates["content"] != nil, modelHelps)
	case "import", "capture":
		return modelHelps
	case "status":
		return modelShows
	case "open", "set_policy":
		return modelPlaces
	case "deserialize": // where the file's space is another, the vectors that a model made are made anew
		return modelNeeded
	case "restore":
		return modelPlaces
	}
	return modelUnused
}

// bindAgent binds the embedder for an operation on agent memory, where it makes or
// made the memory's vectors, or a memory that is new would take it.
func (h *holding) bindAgent(ctx context.Context, m *Model, use modelUse, raw json.RawMessage) error {
	var in op.AgentMake
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &in); err != nil {
			return nil // the operation refuses it
		}
	}
	known, err := agent.OpenExisting(ctx, h.db, agent.Config{
		Namespace: valueOr(in.Namespace, ""), Scope: valueOr(in.Scope, ""),
	})
	switch {
	case errors.Is(err, loci.ErrNotFound):
		if use == modelReads || use == modelShows || in.Space != "" && in.Space != m.ID {
			return nil
		}
		if in.Dimension != 0 && m.Dimension != 0 && in.Dimension != m.Dimension {
			return nil // the memory cannot be of the model's space
		}
	case err != nil:
		return err
	case known.Space() != m.ID, use == modelPlaces:
		return nil
	}
	err = h.bind(ctx, m, searchPatience)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return errs.Wrap(errs.Canceled, ctx.Err(), "stopped before the embedder answered")
	case use == modelNeeded, use == modelPlaces:
		return err
	case use == modelShows:
		h.note(ctx, "The memory is without its embedder: %s", h.a.failure(err).Message)
	case use == modelReads:
		h.note(ctx, "Searched without vectors: %s", h.a.failure(err).Message)
	default:
		h.note(ctx, "It has no vector, so its words alone find it: %s", h.a.failure(err).Message)
	}
	return nil
}

// agentPending says whether an operation on agent memory left vectors to be made.
func agentPending(o *op.Operation, out json.RawMessage) bool {
	if !isAgent(o) || o.ReadOnly {
		return false
	}
	var r struct {
		Value struct {
			Vector  agent.VectorState `json:"vector"`
			Pending int64             `json:"pending"`
		} `json:"value"`
	}
	// A value of another form has no vectors.
	return json.Unmarshal(out, &r) == nil && (r.Value.Vector == agent.VectorPending || r.Value.Pending > 0)
}
