package foreign

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
)

// jsonItem is a line of JSONL. Which fields a kind takes is said in
// docs/guides/import.md, and held by jsonFields.
type jsonItem struct {
	Kind      string        `json:"kind"`
	ID        string        `json:"id"`
	Text      string        `json:"text"`
	Reasoning string        `json:"reasoning"`
	Type      string        `json:"type"`
	Tags      []string      `json:"tags"`
	Namespace *string       `json:"namespace"`
	Scope     *string       `json:"scope"`
	Thread    *string       `json:"thread"`
	Position  *int64        `json:"position"`
	Metadata  loci.Metadata `json:"metadata"`
	CreatedAt *jsonTime     `json:"created_at"`
	UpdatedAt *jsonTime     `json:"updated_at"`
	Pinned    bool          `json:"pinned"`
	Strength  *float64      `json:"strength"`

	Name       string              `json:"name"`
	Aliases    []string            `json:"aliases"`
	Attributes map[string][]string `json:"attributes"`
	Summary    string              `json:"summary"`

	Subject    string   `json:"subject"`
	Predicate  string   `json:"predicate"`
	Object     string   `json:"object"`
	Confidence *float64 `json:"confidence"`
	Reason     string   `json:"reason"`

	Participants []string `json:"participants"`

	At        *jsonTime `json:"at"`
	ValidFrom *jsonTime `json:"valid_from"`
	ValidTo   *jsonTime `json:"valid_to"`
}

// jsonTime is a time as text, or as UTC microseconds.
type jsonTime int64

// UnmarshalJSON takes either form.
func (t *jsonTime) UnmarshalJSON(raw []byte) error {
	var us int64
	if err := json.Unmarshal(raw, &us); err == nil {
		*t = jsonTime(us)
		return nil
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		return fmt.Errorf("a time is text such as 2026-01-02T15:04:05Z, or UTC microseconds")
	}
	us, ok := moment(s)
	if !ok {
		return fmt.Errorf("a time is text such as 2026-01-02T15:04:05Z, or UTC microseconds")
	}
	*t = jsonTime(us)
	return nil
}

func (t *jsonTime) micros() *int64 {
	if t == nil {
		return nil
	}
	return new(int64(*t))
}

// jsonFields are the fields that a kind takes beside those that all take.
func jsonFields(kind string) (own []string, known bool) {
	switch kind {
	case "memory":
		return []string{"text", "reasoning", "type", "thread", "position", "updated_at", "pinned", "strength"}, true
	case "entity":
		return []string{"name", "type", "aliases", "attributes", "summary", "updated_at"}, true
	case "relation":
		return []string{"subject", "predicate", "object", "confidence", "reason", "updated_at"}, true
	case "event":
		return []string{"name", "summary", "participants", "confidence", "reason", "updated_at"}, true
	case "episode":
		return []string{"text", "at", "thread", "position"}, true
	case "fact":
		return []string{"text", "valid_from", "valid_to"}, true
	}
	return nil, false
}

// ReadJSONL reads one JSON value a line: a string, which is a memory, or an
// object whose kind is memory (the default), entity, relation, event, episode or
// fact. A field that the kind does not take is a mistake, and the line is listed.
func ReadJSONL(file string, r io.Reader) (*Plan, error) {
	p := newPlan(file)
	at := func(line int) string { return fmt.Sprintf("%s:%d", file, line) }
	graphs := map[string]*graphPlan{}
	var order []string
	graph := func(it *jsonItem) *graphPlan {
		place := fmt.Sprintf("%q %q", valueOr(it.Namespace), valueOr(it.Scope))
		if graphs[place] == nil {
			graphs[place] = newGraph(p, JSONL)
			graphs[place].place = place
			graphs[place].namespace, graphs[place].scope = it.Namespace, it.Scope
			order = append(order, place)
		}
		return graphs[place]
	}
	err := eachLine(p, r, at, func(n int, text []byte) error {
		it, ok := p.jsonItem(at(n), text)
		if !ok {
			return nil
		}
		p.json(at(n), n, it, graph)
		return p.count()
	})
	if err != nil {
		return nil, err
	}
	for _, place := range order {
		graphs[place].finish()
	}
	return p.finish(), nil
}

func valueOr(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// jsonItem reads a line, and holds it to the fields of its kind.
func (p *Plan) jsonItem(where string, text []byte) (*jsonItem, bool) {
	it := &jsonItem{}
	if text[0] == '"' {
		if err := json.Unmarshal(text, &it.Text); err != nil {
			p.Leave(where, "line", "", "%s", syntax(err))
			return nil, false
		}
		it.Kind = "memory"
		return it, true
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		p.Leave(where, "line", "", "%s", syntax(err))
		return nil, false
	}
	it.Kind = "memory"
	if raw, ok := members["kind"]; ok {
		if err := json.Unmarshal(raw, &it.Kind); err != nil {
			p.Leave(where, "line", "kind", "%s", syntax(err))
			return nil, false
		}
	}
	own, known := jsonFields(it.Kind)
	if !known {
		p.Leave(where, "line", "kind", "is none of memory, entity, relation, event, episode and fact")
		return nil, false
	}
	own = append(own, "kind", "id", "tags", "namespace", "scope", "metadata", "created_at")
	for _, name := range sortedKeys(members) {
		if !slices.Contains(own, name) {
			p.Leave(where, it.Kind, name, "is no field of a line of kind %s; there are %s; put what is your own into metadata", it.Kind, strings.Join(own, ", "))
			return nil, false
		}
	}
	if err := json.Unmarshal(text, it); err != nil {
		p.Leave(where, it.Kind, "", "%s", syntax(err))
		return nil, false
	}
	if it.Kind == "" {
		it.Kind = "memory"
	}
	return it, true
}

// json adds what a line says.
func (p *Plan) json(where string, line int, it *jsonItem, graph func(*jsonItem) *graphPlan) {
	record := loci.RecordInput{
		Namespace: it.Namespace, Scope: it.Scope, Tags: p.tags(where, it.Kind, it.Tags), Metadata: it.Metadata,
		CreatedAtUS: it.CreatedAt.micros(), UpdatedAtUS: it.UpdatedAt.micros(), Thread: it.Thread, Position: it.Position,
		Evidence: evidence(JSONL, p.File, line, 1, ""),
	}
	switch it.Kind {
	case "memory":
		text, ok := p.text(where, "memory", "text", it.Text)
		if !ok {
			return
		}
		in := loci.MemoryInput{RecordInput: record, Judgment: text, Reasoning: clean(it.Reasoning)}
		if it.Type != "" {
			in.MemoryType = &it.Type
		}
		if it.Pinned || it.Strength != nil {
			in.State = &loci.MemoryState{Pinned: it.Pinned, Strength: 1}
			if it.Strength != nil {
				in.State.Strength = *it.Strength
			}
		}
		p.Memories = append(p.Memories, Memory{Where: where, Key: it.key(text), Input: in})
	case "episode", "fact":
		text, ok := p.text(where, it.Kind, "text", it.Text)
		if !ok {
			return
		}
		point := Point{
			Where: where, Key: it.key(text), Namespace: it.Namespace, Scope: it.Scope, Text: text, Tags: record.Tags,
			Metadata: it.Metadata, At: it.At.micros(), From: it.ValidFrom.micros(), To: it.ValidTo.micros(),
			Thread: it.Thread, Position: it.Position,
		}
		if it.Kind == "fact" {
			p.Facts = append(p.Facts, point)
			return
		}
		if point.At == nil {
			point.At = it.CreatedAt.micros()
		}
		p.Episodes = append(p.Episodes, point)
	case "entity":
		g := graph(it)
		in := loci.EntityInput{RecordInput: record, Aliases: it.Aliases, Attributes: it.Attributes, Summary: clean(it.Summary)}
		g.entity(where, line, it.Name, it.Type, in)
	case "relation":
		g := graph(it)
		before := len(p.Relations)
		g.relate(where, line, it.Subject, it.Predicate, it.Object, clean(it.Reason))
		if len(p.Relations) > before {
			last := &p.Relations[before].Input
			last.RecordInput, last.Confidence = record, it.Confidence
		}
	case "event":
		g := graph(it)
		v := Event{Where: where, Input: loci.EventInput{
			RecordInput: record, Name: it.Name, Summary: clean(it.Summary), Confidence: it.Confidence, Reason: clean(it.Reason),
		}}
		for i, name := range it.Participants {
			if label(name, loci.MaxNameBytes) == "" {
				p.Leave(where, "event", fmt.Sprintf("participants[%d]", i), "is empty")
				return
			}
			g.refer(where, name)
			v.Participants = append(v.Participants, g.key(name))
		}
		p.Events = append(p.Events, v)
	}
}

// key is by what a line is known again: its id, or what it says.
func (it *jsonItem) key(text string) string {
	if it.ID != "" {
		return string(JSONL) + ":" + it.Kind + ":" + it.ID
	}
	return string(JSONL) + ":" + it.Kind + "#" + Hash(text, valueOr(it.Thread))
}
