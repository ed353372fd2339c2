package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode/utf8"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// mem0Memory is a memory as mem0 gives it. What has no field here is kept in the
// metadata.
type mem0Memory struct {
	ID         json.RawMessage `json:"id"`
	Memory     string          `json:"memory"`
	Text       string          `json:"text"` // what some releases call it
	UserID     string          `json:"user_id"`
	AgentID    string          `json:"agent_id"`
	RunID      string          `json:"run_id"`
	Metadata   json.RawMessage `json:"metadata"`
	Categories []string        `json:"categories"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
}

// mem0Relation is a relation of its graph, under either name of its end.
type mem0Relation struct {
	Source       string `json:"source"`
	Relationship string `json:"relationship"`
	Target       string `json:"target"`
	Destination  string `json:"destination"`
}

// ReadMem0 reads what mem0's get_all gives: an object with results and perhaps
// relations, or a plain list of memories.
func ReadMem0(file string, r io.Reader) (*Plan, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxFileBytes+1))
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "the file could not be read")
	}
	if len(raw) > MaxFileBytes {
		return nil, errs.Invalid("path", "has more than %d bytes: import it in parts", MaxFileBytes)
	}
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\xef\xbb\xbf")))
	var export struct {
		Results   []json.RawMessage `json:"results"`
		Memories  []json.RawMessage `json:"memories"`
		Relations []json.RawMessage `json:"relations"`
	}
	if len(raw) > 0 && raw[0] == '[' {
		err = json.Unmarshal(raw, &export.Results)
	} else {
		err = json.Unmarshal(raw, &export)
	}
	if err != nil {
		return nil, errs.Invalid("path", "%s%s", syntax(err), place(raw, err))
	}
	if export.Results == nil && export.Memories == nil && export.Relations == nil {
		return nil, errs.Invalid("path", "has neither results nor relations: it is no export of mem0")
	}
	p := newPlan(file)
	list := "results"
	if export.Results == nil {
		list, export.Results = "memories", export.Memories
	}
	for i, item := range export.Results {
		if err := p.mem0Memory(fmt.Sprintf("%s:%s[%d]", file, list, i), item); err != nil {
			return nil, err
		}
	}
	g := newGraph(p, Mem0)
	for i, item := range export.Relations {
		where := fmt.Sprintf("%s:relations[%d]", file, i)
		var l mem0Relation
		if !utf8.Valid(item) {
			p.Leave(where, "relation", "", "is not valid UTF-8")
			continue
		}
		if err := json.Unmarshal(item, &l); err != nil {
			p.Leave(where, "relation", "", "%s", syntax(err))
			continue
		}
		if l.Target == "" {
			l.Target = l.Destination
		}
		g.relate(where, 0, l.Source, l.Relationship, l.Target, "")
		if err := p.count(); err != nil {
			return nil, err
		}
	}
	g.finish()
	// Names are all that mem0 gives of its entities.
	p.Remarks = nil
	return p.finish(), nil
}

// place says in which line of raw a mistake of form is.
func place(raw []byte, err error) string {
	e, ok := errors.AsType[*json.SyntaxError](err)
	if !ok || e.Offset < 0 || e.Offset > int64(len(raw)) {
		return ""
	}
	return fmt.Sprintf(" (line %d)", 1+bytes.Count(raw[:e.Offset], []byte("\n")))
}

func (p *Plan) mem0Memory(where string, item json.RawMessage) error {
	var m mem0Memory
	if !utf8.Valid(item) {
		p.Leave(where, "memory", "", "is not valid UTF-8")
		return nil
	}
	if err := json.Unmarshal(item, &m); err != nil {
		p.Leave(where, "memory", "", "%s", syntax(err))
		return nil
	}
	field := "memory"
	if m.Memory == "" && m.Text != "" {
		m.Memory, field = m.Text, "text"
	}
	text, ok := p.text(where, "memory", field, m.Memory)
	if !ok {
		return nil
	}
	in := loci.MemoryInput{Judgment: text}
	for _, t := range []struct {
		field, value string
		to           **int64
	}{{"created_at", m.CreatedAt, &in.CreatedAtUS}, {"updated_at", m.UpdatedAt, &in.UpdatedAtUS}} {
		if t.value == "" {
			continue
		}
		us, ok := moment(t.value)
		if !ok || us < 0 {
			p.Leave(where, "time", t.field, "is no time that can be read; the memory is taken without it")
			continue
		}
		*t.to = &us
	}
	if in.CreatedAtUS != nil && in.UpdatedAtUS != nil && *in.UpdatedAtUS < *in.CreatedAtUS {
		in.UpdatedAtUS = nil
	}
	in.Tags = slices.Clone(m.Categories)
	if m.AgentID != "" {
		in.Tags = append(in.Tags, "agent:"+m.AgentID)
	}
	in.Tags = p.tags(where, "memory", in.Tags)
	if thread := label(m.RunID, loci.MaxLabelBytes); thread != "" {
		in.Thread = &thread
	}
	id := string(bytes.Trim(m.ID, `"`))
	if id == "" || id == "null" {
		id = Hash(m.UserID, text)
	}
	in.Evidence = evidence(Mem0, p.File, 0, 0, "")
	in.Metadata = p.mem0Metadata(where, item, &m)
	if m.UserID != "" {
		p.users[m.UserID] = true
	}
	p.Memories = append(p.Memories, Memory{Where: where, Key: string(Mem0) + ":" + id, User: m.UserID, Input: in})
	return p.count()
}

// mem0Metadata is the memory's own metadata, and beside it what else mem0 says.
func (p *Plan) mem0Metadata(where string, item json.RawMessage, m *mem0Memory) loci.Metadata {
	var members []pair
	var own map[string]json.RawMessage
	if len(m.Metadata) > 0 && string(m.Metadata) != "null" {
		if err := json.Unmarshal(m.Metadata, &own); err != nil {
			p.Leave(where, "metadata", "metadata", "is no object; the memory is taken without it")
		}
	}
	for _, key := range sortedKeys(own) {
		members = append(members, pair{key, own[key]})
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(item, &all); err != nil {
		return object(members...) // it was read as an object before
	}
	var rest []pair
	for _, key := range sortedKeys(all) {
		switch key {
		case "memory", "text", "metadata", "categories", "created_at", "updated_at", "run_id":
		default:
			rest = append(rest, pair{key, all[key]})
		}
	}
	if extra := object(rest...); extra != nil && own["mem0"] == nil {
		members = append(members, pair{"mem0", json.RawMessage(extra)})
	}
	return object(members...)
}
