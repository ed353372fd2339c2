package foreign

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/loci-memory/loci"
)

// mcpLine is a line of the knowledge graph server's file.
type mcpLine struct {
	Type string `json:"type"`

	Name         string   `json:"name"`
	EntityType   string   `json:"entityType"`
	Observations []string `json:"observations"`

	From         string `json:"from"`
	To           string `json:"to"`
	RelationType string `json:"relationType"`
}

// ReadMCPMemory reads the file of the official memory server. Entities and
// relations become what they are. An observation becomes a memory, which search
// finds; it begins with its entity's name, since "Graduated in 2019" alone says
// nothing, and carries that name as a tag, which ties the two together.
func ReadMCPMemory(file string, r io.Reader) (*Plan, error) {
	p := newPlan(file)
	at := func(line int) string { return fmt.Sprintf("%s:%d", file, line) }
	g := newGraph(p, MCPMemory)
	err := eachLine(p, r, at, func(n int, text []byte) error {
		var l mcpLine
		if err := json.Unmarshal(text, &l); err != nil {
			p.Leave(at(n), "line", "", "%s", syntax(err))
			return nil
		}
		switch l.Type {
		case "entity":
			return g.mcpEntity(at(n), n, &l)
		case "relation":
			g.relate(at(n), n, l.From, l.RelationType, l.To, "")
			return p.count()
		default:
			p.Leave(at(n), "line", "type", "is neither entity nor relation")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	g.finish()
	return p.finish(), nil
}

func (g *graphPlan) mcpEntity(where string, line int, l *mcpLine) error {
	if !g.entity(where, line, l.Name, l.EntityType, loci.EntityInput{}) {
		if n := int64(len(l.Observations)); n > 0 {
			g.p.Leave(where, "memory", "observations", "%d observations are of an entity that is left out", n)
			g.p.LeftOutCount["memory"] += n - 1
		}
		return nil
	}
	for i, o := range l.Observations {
		field := fmt.Sprintf("observations[%d]", i)
		text, ok := g.p.text(where, "memory", field, o)
		if !ok {
			continue
		}
		g.observe(where, line, l.Name, text, loci.MemoryInput{})
		if err := g.p.count(); err != nil {
			return err
		}
	}
	return g.p.count()
}

// graphPlan gathers a graph whose entities are known by their names.
type graphPlan struct {
	p        *Plan
	source   Source
	kinds    map[string]string // type of an entity, by name
	referred map[string]string // where a name that is no entity yet is referred to
	order    []string
	fallback string // type of an entity that is only referred to

	place            string  // tells the names of several places apart
	namespace, scope *string // of all of it; nil: where the import goes
}

func newGraph(p *Plan, source Source) *graphPlan {
	return &graphPlan{p: p, source: source, kinds: map[string]string{}, referred: map[string]string{}, fallback: loci.DefaultEntityType}
}

// entity adds an entity, and says whether it could be one. One that comes twice
// is adopted twice, which unites the two.
func (g *graphPlan) entity(where string, line int, name, kind string, in loci.EntityInput) bool {
	clean, ok := g.p.text(where, "entity", "name", name)
	if !ok {
		return false
	}
	if clean = label(clean, loci.MaxNameBytes); clean == "" {
		g.p.Leave(where, "entity", "name", "is empty")
		return false
	}
	if kind = label(kind, loci.MaxLabelBytes); kind == "" {
		kind = loci.DefaultEntityType
	}
	if before, twice := g.kinds[name]; twice {
		kind = before
	}
	g.kinds[name] = kind
	in.Name, in.EntityType, in.Match = clean, &kind, loci.MatchByName
	if clean != name && label(name, loci.MaxNameBytes) != clean {
		in.Aliases = append(in.Aliases, label(name, loci.MaxNameBytes))
	}
	in.Evidence = evidence(g.source, g.p.File, line, 1, "")
	if in.Namespace == nil {
		in.Namespace = g.namespace
	}
	if in.Scope == nil {
		in.Scope = g.scope
	}
	g.p.Entities = append(g.p.Entities, Entity{Where: where, Key: g.key(name), Input: in})
	return true
}

// key is what the plan calls the entity of a name.
func (g *graphPlan) key(name string) string { return g.place + name }

// refer notes that a name must be an entity in the end.
func (g *graphPlan) refer(where, name string) {
	if _, known := g.referred[name]; !known {
		g.referred[name] = where
		g.order = append(g.order, name)
	}
}

// observe adds what is known about an entity.
func (g *graphPlan) observe(where string, line int, name, text string, in loci.MemoryInput) {
	in.Judgment = label(name, loci.MaxNameBytes) + ": " + text
	in.Tags = g.p.tags(where, "memory", append([]string{name}, in.Tags...))
	in.Evidence = evidence(g.source, g.p.File, line, 1, text)
	g.p.Memories = append(g.p.Memories, Memory{
		Where: where, Key: string(g.source) + ":" + Hash(name, text), Input: in,
	})
}

// relate adds a relation between two names.
func (g *graphPlan) relate(where string, line int, from, predicate, to, reason string) {
	for _, end := range []struct{ field, name string }{{"from", from}, {"to", to}} {
		if label(end.name, loci.MaxNameBytes) == "" {
			g.p.Leave(where, "relation", end.field, "is empty")
			return
		}
	}
	if predicate = label(predicate, loci.MaxLabelBytes); predicate == "" {
		g.p.Leave(where, "relation", "type", "is empty")
		return
	}
	g.refer(where, from)
	g.refer(where, to)
	g.p.Relations = append(g.p.Relations, Relation{Where: where, Subject: g.key(from), Object: g.key(to), Input: loci.RelationInput{
		RecordInput: loci.RecordInput{Evidence: evidence(g.source, g.p.File, line, 1, "")},
		Predicate:   predicate, Reason: reason,
	}})
}

// finish makes entities of the names that relations lead to and that nothing
// describes, so that no relation is lost.
func (g *graphPlan) finish() {
	made := 0
	for _, name := range g.order {
		if _, known := g.kinds[name]; known {
			continue
		}
		if g.entity(g.referred[name], 0, name, g.fallback, loci.EntityInput{}) {
			made++
		}
	}
	switch {
	case made == 1:
		g.p.Remarks = append(g.p.Remarks, "1 entity is only referred to: it is made with nothing but its name")
	case made > 1:
		g.p.Remarks = append(g.p.Remarks, fmt.Sprintf("%d entities are only referred to: they are made with nothing but their names", made))
	}
}
