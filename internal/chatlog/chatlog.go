package chatlog

import (
	"bytes"
	"encoding/binary"
	"io"

	"github.com/cespare/xxhash/v2"

	"github.com/loci-memory/loci/internal/errs"
)

// Message is one message of a conversation. Its strings are valid UTF-8 and hold
// no NUL character.
type Message struct {
	// Thread is the id of the conversation, at most 512 bytes. Where the export
	// gives none it is derived from what stays the same in the next export.
	Thread string
	Title  string // of the conversation, at most 512 bytes, "" when unknown
	// Position is 0 for the first message of the thread that is handed on, and
	// one more for each one after it.
	Position int64
	ID       string // the message's own id in the export, at most 512 bytes, "" when it has none
	// Repeat tells messages apart that have the same ID in the same thread: 0 for
	// the first of them, then 1, 2 and so on.
	Repeat int64
	Role   string // user, assistant, system, tool, or what the export says; at most 512 bytes
	Author string // name of a speaker or of a tool, at most 512 bytes, "" when the export has none
	At     int64  // UTC microseconds; 0 unknown
	Text   string // never blank, and without marked blocks
}

// Format names how a file is written. The empty one is found out by Read.
type Format string

// The formats.
const (
	JSONL   Format = "jsonl"   // one JSON object a line: a message, or a conversation in its "messages"
	ChatGPT Format = "chatgpt" // conversations.json of an export of ChatGPT
	Claude  Format = "claude"  // conversations.json of an export of Claude
	// ClaudeCode is a session file of Claude Code: a line for each message, among
	// lines that are none.
	ClaudeCode Format = "claude-code"
)

// Limits bounds what Read takes. A zero stands for the default, a negative number
// is refused.
type Limits struct {
	// Thread is the conversation of JSONL lines that name none. Default "default".
	Thread string
	// MaxMessageBytes is how long a text may be. A longer one is an error, or is cut
	// with CutLong. Default 1 MiB.
	MaxMessageBytes int
	// CutLong cuts texts that are too long, at a rune's boundary, and counts them.
	CutLong bool
	// MaxConversationBytes is how much of an export's JSON one conversation may
	// take. Default 256 MiB.
	MaxConversationBytes int64
	// MaxLineBytes is how long a line of JSONL may be. Default 64 MiB.
	MaxLineBytes int
	// MaxThreads is how many conversations a file may have. Default 1,000,000.
	MaxThreads int
	// MaxMessages is how many messages are handed on at most. Default 5,000,000.
	MaxMessages int64
}

// Reason says why a message was left out.
type Reason string

// The reasons.
const (
	Empty       Reason = "empty"       // it has no text, or a blank one, and nothing else either
	Hidden      Reason = "hidden"      // the program did not show it, or it is the user's standing instructions
	Placeholder Reason = "placeholder" // a system message without text, as stands at the beginning of many conversations
	Branch      Reason = "branch"      // it lies on a branch that was left when a message was edited or an answer made anew
	ToolCall    Reason = "tool_call"   // a call of a tool, or its result, without text for people
	Thinking    Reason = "thinking"    // what a model thought before it answered
	Recalled    Reason = "recalled"    // it is all marked blocks: what a memory gave, and has already
	NotText     Reason = "not_text"    // it is all images, sound, files or another content that has no text
)

// Part is a kind of content that is never handed on, whether its message is or not.
type Part string

// The parts.
const (
	PartImage      Part = "image"
	PartAudio      Part = "audio" // sound and video; what was said is text where the export has it
	PartFile       Part = "file"  // attachments, with what was extracted from them
	PartToolCall   Part = "tool_call"
	PartToolResult Part = "tool_result"
	PartThinking   Part = "thinking"
	PartOther      Part = "other"
)

// Report says what was read and what was not handed on.
type Report struct {
	Format       Format // that was read
	Threads      int64  // conversations with a message that was handed on
	EmptyThreads int64  // conversations without any
	Messages     int64  // messages handed on
	TextBytes    int64  // bytes of their texts
	// LeftOut counts the messages that were not handed on. With Messages it adds up
	// to the messages of the input.
	LeftOut map[Reason]int64
	// Parts counts what is not text in the messages that were looked into, those of
	// LeftOut as well except hidden ones and those of other branches.
	Parts       map[Part]int64
	CutTexts    int64 // texts that were cut to Limits.MaxMessageBytes
	CutNames    int64 // titles and authors that were cut to 512 bytes
	Replaced    int64 // bytes and surrogates that are no character, each now U+FFFD
	NULs        int64 // NUL characters, each now U+FFFD
	UnreadTimes int64 // times of an export that could not be read
	RepeatedIDs int64 // messages whose Repeat is not 0
}

// Read reads conversations from r and calls fn for each message, in the order of
// the file; the messages of one conversation of an export come together. The format
// "" is found out.
//
// An error of fn ends the reading and is returned as it is. What is wrong with the
// input is a validation error that names the line or the conversation, counted
// from 1, and never repeats its text; a reader that fails gives an io error. The
// report holds what was counted until then.
func Read(r io.Reader, format Format, limits Limits, fn func(Message) error) (Report, error) {
	rd := &reader{
		fn:      fn,
		report:  Report{LeftOut: map[Reason]int64{}, Parts: map[Part]int64{}},
		threads: map[[16]byte]int64{},
		keys:    map[uint64]struct{}{},
		repeats: map[uint64]int64{},
	}
	var err error
	if rd.limits, err = limits.complete(); err != nil {
		return rd.report, err
	}
	src := &source{r: r}
	head, err := src.begin(&format)
	if err != nil {
		return rd.report, err
	}
	src.r = io.MultiReader(bytes.NewReader(head), r)
	rd.report.Format = format
	switch format {
	case JSONL:
		err = rd.jsonl(src)
	case ChatGPT:
		err = rd.export(src, func() conversation { return &gptConversation{} })
	case Claude:
		err = rd.export(src, func() conversation { return &claudeConversation{} })
	case ClaudeCode:
		err = rd.claudeCode(src)
	}
	rd.report.EmptyThreads = int64(len(rd.threads)) - rd.report.Threads
	return rd.report, err
}

// Detect finds out the format of what r gives, unless it is said already. What r gives
// is then read from rest.
func Detect(r io.Reader, format Format) (found Format, rest io.Reader, err error) {
	head, err := (&source{r: r}).begin(&format)
	if err != nil {
		return "", nil, err
	}
	return format, io.MultiReader(bytes.NewReader(head), r), nil
}

// complete puts defaults where nothing is said.
func (l Limits) complete() (Limits, error) {
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"max_message_bytes", int64(l.MaxMessageBytes)}, {"max_conversation_bytes", l.MaxConversationBytes},
		{"max_line_bytes", int64(l.MaxLineBytes)}, {"max_threads", int64(l.MaxThreads)}, {"max_messages", l.MaxMessages},
	} {
		if n.value < 0 {
			return l, errs.Invalid(n.name, "must not be negative")
		}
	}
	if len(l.Thread) > maxName {
		return l, errs.Invalid("thread", "must have %d bytes at most", maxName)
	}
	if l.Thread = cleaned(l.Thread); l.Thread == "" {
		l.Thread = "default"
	}
	l.MaxMessageBytes = or(l.MaxMessageBytes, 1<<20)
	l.MaxConversationBytes = or(l.MaxConversationBytes, 256<<20)
	l.MaxLineBytes = or(l.MaxLineBytes, 64<<20)
	l.MaxThreads = or(l.MaxThreads, 1_000_000)
	l.MaxMessages = or(l.MaxMessages, 5_000_000)
	return l, nil
}

func or[T int | int64](n, otherwise T) T {
	if n == 0 {
		return otherwise
	}
	return n
}

// The first field of what is hashed, so that the two identities never meet.
const (
	keyOfID       = 1
	keyOfPosition = 2
)

// Key is a number that stands for a message wherever and however often it is read:
// from its thread, ID and Repeat, and if it has no ID from its thread, Position,
// Role and Text. It is never 0. It is frozen: a store that has imported a
// conversation knows its messages by it.
//
// The thread is an argument for callers that store conversations under other
// names; m.Thread is not looked at.
func Key(thread string, m *Message) uint64 {
	buf := make([]byte, 0, 256)
	if m.ID != "" {
		buf = appendField(append(buf, keyOfID), thread)
		buf = appendField(buf, m.ID)
		buf = binary.LittleEndian.AppendUint64(buf, uint64(m.Repeat))
	} else {
		buf = appendField(append(buf, keyOfPosition), thread)
		buf = binary.LittleEndian.AppendUint64(buf, uint64(m.Position))
		buf = appendField(buf, m.Role)
		buf = appendField(buf, m.Text)
	}
	return max(xxhash.Sum64(buf), 1)
}

// appendField appends a string behind its length.
func appendField(buf []byte, s string) []byte {
	return append(binary.LittleEndian.AppendUint64(buf, uint64(len(s))), s...)
}
