package chatlog

import (
	"encoding/json"
	"strings"
)

// content is what a message says: a string, or parts of which some are text.
type content struct {
	kind   kind // absent, aNull, aString, which stands for parts as well, or other
	texts  []string
	damage damage
	parts  map[Part]int64
}

// UnmarshalJSON implements json.Unmarshaler. Like that of value it never fails.
func (c *content) UnmarshalJSON(b []byte) error {
	*c = content{kind: aString}
	switch b[0] {
	case 'n':
		c.kind = aNull
	case '"', '{':
		var p part
		if err := json.Unmarshal(b, &p); err != nil {
			return err
		}
		c.take(&p)
	case '[':
		var list []part
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		for i := range list {
			c.take(&list[i])
		}
	default:
		c.kind = other
	}
	return nil
}

func (c *content) take(p *part) {
	if p.not != "" {
		c.count(p.not, 1)
		return
	}
	if p.text.text != "" {
		c.texts = append(c.texts, p.text.text)
		c.damage.add(p.text.damage)
	}
}

// count counts what is not text.
func (c *content) count(p Part, n int64) {
	if n == 0 {
		return
	}
	if c.parts == nil {
		c.parts = map[Part]int64{}
	}
	c.parts[p] += n
}

// setText makes v all of the text.
func (c *content) setText(v value) {
	c.texts, c.damage = nil, v.damage
	if v.text != "" {
		c.texts = []string{v.text}
	}
}

// text is what there is to read, a line's end between parts.
func (c *content) text() string { return strings.Join(c.texts, "\n") }

// blank says that there is nothing to read.
func (c *content) blank() bool {
	for _, t := range c.texts {
		if strings.TrimSpace(t) != "" {
			return false
		}
	}
	return true
}

// why says why a message with nothing to read is left out.
func (c *content) why(role string) Reason {
	switch {
	case c.parts[PartToolCall]+c.parts[PartToolResult] > 0:
		return ToolCall
	case c.parts[PartImage]+c.parts[PartAudio]+c.parts[PartFile]+c.parts[PartOther] > 0:
		return NotText
	case c.parts[PartThinking] > 0:
		return Thinking
	case role == "system":
		return Placeholder
	}
	return Empty
}

// part is one part of a content: text, or something else.
type part struct {
	text value
	not  Part // "" for text
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *part) UnmarshalJSON(b []byte) error {
	*p = part{}
	switch b[0] {
	case 'n': // nothing is left out of nothing
	case '"':
		return p.text.UnmarshalJSON(b)
	case '{':
		var in struct {
			Type        value `json:"type"`
			ContentType value `json:"content_type"`
			Text        value `json:"text"`
		}
		if err := json.Unmarshal(b, &in); err != nil {
			return err
		}
		name := in.Type.text
		if in.Type.kind == absent {
			name = in.ContentType.text
		}
		if name != "" || in.Text.kind != aString {
			if p.not = partOf(name); p.not != "" {
				return nil
			}
		}
		if p.text = in.Text; in.Text.kind != aString && in.Text.kind != absent {
			p.text, p.not = value{}, PartOther
		}
	default:
		p.not = PartOther
	}
	return nil
}

// partOf says what a part of the named type is, "" for text. The names are those
// of the exports and of the chat interfaces that logs are written from.
func partOf(name string) Part {
	switch name {
	case "text", "input_text", "output_text", "audio_transcription":
		return ""
	case "image", "image_url", "input_image", "image_file", "image_asset_pointer":
		return PartImage
	case "audio", "input_audio", "output_audio", "audio_asset_pointer", "real_time_user_audio_video_asset_pointer",
		"video", "video_url", "video_container_asset_pointer":
		return PartAudio
	case "file", "input_file", "document", "container_upload":
		return PartFile
	case "tool_use", "tool_call", "function_call", "server_tool_use", "mcp_tool_use":
		return PartToolCall
	case "tool_result", "function_call_output", "web_search_tool_result", "mcp_tool_result":
		return PartToolResult
	case "thinking", "redacted_thinking", "reasoning":
		return PartThinking
	}
	return PartOther
}

// counter counts the elements of an array; anything else that is there is one.
type counter int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *counter) UnmarshalJSON(b []byte) error {
	*n = 1
	switch b[0] {
	case 'n':
		*n = 0
	case '[':
		var list []skipped
		if err := json.Unmarshal(b, &list); err != nil {
			return err
		}
		*n = counter(len(list))
	}
	return nil
}

// skipped is a value that nobody looks at.
type skipped struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*skipped) UnmarshalJSON([]byte) error { return nil }

// truth is true for true and false for everything else.
type truth bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *truth) UnmarshalJSON(b []byte) error {
	*f = truth(string(b) == "true")
	return nil
}
