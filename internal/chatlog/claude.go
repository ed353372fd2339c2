package chatlog

import (
	"strings"

	"github.com/loci-memory/loci/internal/errs"
)

// claudeConversation is a conversation of an export of Claude. Its messages stand
// in the order in which they were written, those of branches that were left among
// them.
type claudeConversation struct {
	name, uuid, createdAt, leaf value

	listed   bool // there were chat_messages
	messages []claudeMessage
}

type claudeMessage struct {
	UUID        value   `json:"uuid"`
	Parent      value   `json:"parent_message_uuid"`
	Sender      value   `json:"sender"`
	CreatedAt   value   `json:"created_at"`
	Content     content `json:"content"`
	Text        value   `json:"text"`
	Attachments counter `json:"attachments"`
	Files       counter `json:"files"`
}

func (c *claudeConversation) looksRight() bool { return c.listed }

func (c *claudeConversation) field(w *walker, name string) error {
	switch name {
	case "name":
		return w.decode(&c.name)
	case "uuid":
		return w.decode(&c.uuid)
	case "created_at":
		return w.decode(&c.createdAt)
	case "current_leaf_message_uuid":
		return w.decode(&c.leaf)
	case "chat_messages":
		if err := w.enters('[', "chat_messages"); err != nil {
			return err
		}
		c.listed = true
		for w.dec.More() {
			var m claudeMessage
			if err := w.decode(&m); err != nil {
				return err
			}
			c.messages = append(c.messages, m)
		}
		return w.leaves()
	}
	return w.pass()
}

// onBranch says which messages the user saw last: those from the current leaf
// upwards, or without one from the last message. Where the links between messages
// do not make a tree nothing is left out.
func (c *claudeConversation) onBranch() []bool {
	all := make([]bool, len(c.messages))
	byID := make(map[string]int, len(c.messages))
	tree, origin := true, ""
	for i := range c.messages {
		all[i] = true
		m := &c.messages[i]
		if _, again := byID[m.UUID.text]; again || m.UUID.text == "" || m.Parent.text == "" {
			tree = false
		}
		// Above the first message is the id of none. Another id that is not there, or
		// comes later, is a link that is broken.
		if _, ok := byID[m.Parent.text]; !ok {
			if origin != "" && m.Parent.text != origin {
				tree = false
			}
			origin = m.Parent.text
		}
		byID[m.UUID.text] = i
	}
	if _, ok := byID[origin]; !tree || ok || len(all) == 0 {
		return all
	}
	at, ok := byID[c.leaf.text]
	if !ok {
		at = len(all) - 1
	}
	path := make([]bool, len(all))
	for ok := true; ok; at, ok = byID[c.messages[at].Parent.text] {
		path[at] = true // parents come before their children, so this ends
	}
	return path
}

func (c *claudeConversation) finish(r *reader) error {
	if !c.listed {
		return errs.Invalid("", "it has no chat_messages, so it is no conversation of Claude")
	}
	thread := c.uuid
	if thread.text == "" {
		// Its beginning stays as it is in the next export.
		parts := []string{c.createdAt.text}
		if len(c.messages) > 0 {
			m := &c.messages[0]
			parts = append(parts, m.UUID.text, m.Text.text, m.Content.text())
		}
		thread.text = nameless(parts...)
	}
	if err := r.enter(thread.text); err != nil {
		return err
	}
	begun := r.exportTime(c.createdAt)
	found := c.name.damage
	found.add(thread.damage)
	for i, shown := range c.onBranch() {
		if !shown {
			r.leaveOut(Branch)
			continue
		}
		in := &c.messages[i]
		m := Message{
			Thread: thread.text, Title: c.name.text, ID: in.UUID.text,
			Role: firstText(in.Sender, value{text: "unknown"}).text, At: r.exportTime(in.CreatedAt),
		}
		if m.Role == "human" {
			m.Role = "user"
		}
		if m.At == 0 {
			m.At = begun
		}
		found.add(in.UUID.damage)
		found.add(in.Sender.damage)
		if err := r.message(m, in.look(), found); err != nil {
			return err
		}
		found = damage{}
	}
	return nil
}

// look says what of a message there is to read. Beside parts other than text,
// the message's own text says in words that they cannot be shown, so it is only
// taken where there are none.
func (m *claudeMessage) look() *content {
	c := &m.Content
	if c.blank() && len(c.parts) == 0 && m.Text.kind == aString && strings.TrimSpace(m.Text.text) != "" {
		c.setText(m.Text)
	}
	c.count(PartFile, int64(m.Attachments)+int64(m.Files))
	return c
}
