package chatlog

import (
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/internal/errs"
)

// gptConversation is a conversation of an export of ChatGPT: a tree of messages,
// because every edit and every new answer begins a branch.
type gptConversation struct {
	title, conversationID, id, current, createTime value

	mapped bool // there was a mapping
	nodes  []gptNode
	byName map[string]int
}

type gptNode struct {
	name     string      // under which it stands in the mapping
	ID       value       `json:"id"`
	Message  *gptMessage `json:"message"`
	Parent   value       `json:"parent"`
	Children []value     `json:"children"`
}

type gptMessage struct {
	ID     value `json:"id"`
	Author struct {
		Role value `json:"role"`
		Name value `json:"name"`
	} `json:"author"`
	CreateTime value      `json:"create_time"`
	Content    gptContent `json:"content"`
	Recipient  value      `json:"recipient"`
	Metadata   struct {
		Hidden      truth    `json:"is_visually_hidden_from_conversation"`
		Attachments gptFiles `json:"attachments"`
	} `json:"metadata"`
}

type gptContent struct {
	Type  value   `json:"content_type"`
	Parts content `json:"parts"`
	Text  value   `json:"text"`
}

// gptFiles counts the files that were given with a message. Images are not among
// them: they are parts as well.
type gptFiles int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *gptFiles) UnmarshalJSON(b []byte) error {
	*n = 0
	if b[0] != '[' {
		return nil
	}
	var list []gptFile
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	for _, f := range list {
		if !f.image {
			*n++
		}
	}
	return nil
}

type gptFile struct{ image bool }

// UnmarshalJSON implements json.Unmarshaler.
func (f *gptFile) UnmarshalJSON(b []byte) error {
	f.image = false
	if b[0] != '{' {
		return nil
	}
	var in struct {
		Type value `json:"mime_type"`
	}
	err := json.Unmarshal(b, &in)
	f.image = strings.HasPrefix(in.Type.text, "image/")
	return err
}

func (c *gptConversation) looksRight() bool { return c.mapped }

func (c *gptConversation) field(w *walker, name string) error {
	switch name {
	case "title":
		return w.decode(&c.title)
	case "conversation_id":
		return w.decode(&c.conversationID)
	case "id":
		return w.decode(&c.id)
	case "current_node":
		return w.decode(&c.current)
	case "create_time":
		return w.decode(&c.createTime)
	case "mapping":
		return c.mapping(w)
	}
	return w.pass()
}

func (c *gptConversation) mapping(w *walker) error {
	if err := w.enters('{', "mapping"); err != nil {
		return err
	}
	c.mapped = true
	if c.byName == nil {
		c.byName = map[string]int{}
	}
	for w.dec.More() {
		name, err := w.name()
		if err != nil {
			return err
		}
		n := gptNode{name: cleaned(name)}
		if err := w.decode(&n); err != nil {
			return err
		}
		if at, ok := c.byName[n.name]; ok {
			c.nodes[at] = n
			continue
		}
		c.byName[n.name] = len(c.nodes)
		c.nodes = append(c.nodes, n)
	}
	return w.leaves()
}

// branch gives the nodes that the user saw last, in order: from the current one
// upwards, or without it downwards by the last child at each fork.
func (c *gptConversation) branch() []int {
	var path []int
	seen := make([]bool, len(c.nodes))
	at, ok := c.find(c.current)
	if ok {
		for ok && !seen[at] {
			seen[at] = true
			path = append(path, at)
			at, ok = c.find(c.nodes[at].Parent)
		}
		for i, j := 0, len(path)-1; i < j; i, j = i+1, j-1 {
			path[i], path[j] = path[j], path[i]
		}
		return path
	}
	if len(c.nodes) == 0 {
		return nil
	}
	for at = c.root(); at >= 0; {
		seen[at] = true
		path = append(path, at)
		next := -1
		for _, child := range c.nodes[at].Children {
			if i, ok := c.find(child); ok && !seen[i] {
				next = i
			}
		}
		at = next
	}
	return path
}

// find looks for a node. The empty name stands for none.
func (c *gptConversation) find(name value) (int, bool) {
	i, ok := c.byName[name.text]
	return i, ok && name.text != ""
}

// root is where a conversation without a current node begins: the first node
// without a parent, or else the first whose parent is not there, or the first.
func (c *gptConversation) root() int {
	orphan := 0
	for i := len(c.nodes) - 1; i >= 0; i-- {
		if _, ok := c.find(c.nodes[i].Parent); !ok {
			orphan = i
		}
	}
	for i := range c.nodes {
		if c.nodes[i].Parent.text == "" {
			return i
		}
	}
	return orphan
}

func (c *gptConversation) finish(r *reader) error {
	if !c.mapped {
		return errs.Invalid("", "it has no mapping, so it is no conversation of ChatGPT")
	}
	path := c.branch()
	onPath := make([]bool, len(c.nodes))
	for _, i := range path {
		onPath[i] = true
	}
	for i := range c.nodes {
		if !onPath[i] && c.nodes[i].Message != nil {
			r.leaveOut(Branch)
		}
	}
	thread := firstText(c.conversationID, c.id)
	if thread.text == "" {
		thread.text = c.nameless(path)
	}
	if err := r.enter(thread.text); err != nil {
		return err
	}
	begun := r.exportTime(c.createTime)
	found := c.title.damage
	found.add(thread.damage)
	for _, i := range path {
		n := &c.nodes[i]
		if n.Message == nil {
			continue
		}
		text, why := n.Message.look()
		if why != "" {
			r.leaveOut(why)
			continue
		}
		id := firstText(n.Message.ID, n.ID, value{text: n.name})
		role := firstText(n.Message.Author.Role, value{text: "unknown"})
		m := Message{
			Thread: thread.text, Title: c.title.text, ID: id.text,
			Role: role.text, Author: n.Message.Author.Name.text, At: r.exportTime(n.Message.CreateTime),
		}
		if m.At == 0 {
			m.At = begun
		}
		found.add(id.damage)
		found.add(role.damage)
		found.add(n.Message.Author.Name.damage)
		if err := r.message(m, text, found); err != nil {
			return err
		}
		found = damage{}
	}
	return nil
}

// nameless is an id for a conversation that has none: its beginning stays as it
// is in the next export.
func (c *gptConversation) nameless(path []int) string {
	for _, i := range path {
		if m := c.nodes[i].Message; m != nil {
			id := firstText(m.ID, c.nodes[i].ID, value{text: c.nodes[i].name})
			return nameless(c.createTime.text, id.text, m.Content.Parts.text())
		}
	}
	return nameless(c.createTime.text)
}

// look says what of a message there is to read, or why it is left out before
// anyone looks into it.
func (m *gptMessage) look() (*content, Reason) {
	if m.Metadata.Hidden {
		return nil, Hidden
	}
	c := &m.Content.Parts
	switch m.Content.Type.text {
	case "user_editable_context", "model_editable_context":
		return nil, Hidden
	case "thoughts", "reasoning_recap":
		c = &content{}
		c.count(PartThinking, 1)
	case "", "text", "multimodal_text":
	case "code", "execution_output":
		if m.Content.Text.kind == aString {
			c.setText(m.Content.Text)
		}
	default: // pages that were looked at, errors of the system and the like
		c = &content{}
		c.count(PartOther, 1)
	}
	c.count(PartFile, int64(m.Metadata.Attachments))
	switch m.Recipient.text {
	case "", "all", "assistant":
	default: // a tool: what it is asked for is not for people
		c.setText(value{})
		c.count(PartToolCall, 1)
	}
	return c, ""
}
