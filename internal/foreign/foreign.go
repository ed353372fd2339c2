// Package foreign reads what other memories keep, and turns it into records to
// adopt. It never writes, and it lists what it leaves out.
package foreign

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/mark"
)

// Source names a kind of memory that can be read.
type Source string

// The sources.
const (
	MCPMemory   Source = "mcp-memory"   // the knowledge graph server's JSON lines
	Mem0        Source = "mem0"         // what get_all gives, as JSON
	BasicMemory Source = "basic-memory" // a folder of its Markdown
	PMemory     Source = "p-memory"     // its data directory, or store.sqlite3
	Markdown    Source = "markdown"     // a Markdown file, or a folder of them
	JSONL       Source = "jsonl"        // one JSON value a line
)

// Sources lists the sources in the order in which help shows them.
func Sources() []Source {
	return []Source{MCPMemory, Mem0, BasicMemory, PMemory, Markdown, JSONL}
}

// What is read is bounded, so that a wrong path ends in an error and not in the
// machine's memory.
const (
	MaxFileBytes   = 512 << 20 // a JSON file
	MaxFolderBytes = 512 << 20 // all Markdown of a folder
	MaxPageBytes   = 16 << 20  // one Markdown file
	MaxFiles       = 100_000   // of a folder
	MaxItems       = 2_000_000 // that become records
	maxLineBytes   = 16 << 20
	maxDepth       = 64 // folders in folders
)

// MaxLeftOut is how many pieces that are left out are listed; all are counted.
const MaxLeftOut = 200

// The keys of the metadata by which what was imported is known again.
const (
	KeyName  = "import_key"  // which piece of which source it was
	HashName = "import_hash" // of the text that it came with
)

// LeftOut is a piece of the source that becomes no record, and why.
type LeftOut struct {
	Where  string `json:"where"`           // file and line, or another place in it
	Kind   string `json:"kind"`            // what it would have been
	Field  string `json:"field,omitempty"` // what is wrong with it
	Reason string `json:"reason"`
}

// Plan is all that a source holds. Inputs without a namespace or a scope belong
// where the import is told to put them.
type Plan struct {
	File       string // base name of what was read
	Memories   []Memory
	Entities   []Entity
	Relations  []Relation
	Events     []Event
	Facts      []Point
	Episodes   []Point
	Notes      []Note
	Settings   []Setting
	Users      []string // whose memories they are, where the source says so; sorted
	Namespaces []string // that the source itself has; sorted
	Remarks    []string // what a reader of the receipt should know

	LeftOut      []LeftOut // the first MaxLeftOut
	LeftOutCount map[string]int64

	items int
	users map[string]bool
}

// Memory is a memory to adopt.
type Memory struct {
	Where string
	Key   string // names it for ever within its source
	User  string // whose it is; "" when the source says nothing
	Input loci.MemoryInput
}

// Entity is an entity to adopt.
type Entity struct {
	Where string
	Key   string // what relations and events of the plan call it
	Exact bool   // it is one of several of its name: its key alone makes it the same
	Input loci.EntityInput
}

// Relation is a relation to adopt, its ends given as keys of entities.
type Relation struct {
	Where           string
	Subject, Object string
	Input           loci.RelationInput
}

// Event is an event to adopt, its participants given as keys of entities.
type Event struct {
	Where        string
	Participants []string
	Input        loci.EventInput
}

// Point is a fact or an episode of an agent memory.
type Point struct {
	Where, Key       string
	Namespace, Scope *string
	Text             string
	Tags             []string
	Metadata         loci.Metadata
	At, From, To     *int64  // of an episode; validity of a fact
	Thread           *string // of an episode
	Position         *int64
}

// Note is a file that the source keeps as a note.
type Note struct {
	Where string
	Input loci.NoteFileInput
}

// Setting is a setting of the source: one of Rule, Words and Root.
type Setting struct {
	Where     string
	Namespace *string // nil: where the import goes
	Rule      *loci.PredicateRule
	Words     []string // that mean the same, the canonical one first
	Root      string   // folder of the notes
}

// newPlan begins a plan.
func newPlan(file string) *Plan {
	return &Plan{File: file, LeftOutCount: map[string]int64{}, users: map[string]bool{}}
}

// Leave lists a piece that becomes no record.
func (p *Plan) Leave(where, kind, field, format string, args ...any) {
	p.LeftOutCount[kind]++
	if len(p.LeftOut) < MaxLeftOut {
		p.LeftOut = append(p.LeftOut, LeftOut{where, kind, field, fmt.Sprintf(format, args...)})
	}
}

// count bounds the plan.
func (p *Plan) count() error {
	if p.items++; p.items > MaxItems {
		return errs.Invalid("path", "holds more than %d records: import it in parts", MaxItems)
	}
	return nil
}

// finish sorts what was gathered on the way.
func (p *Plan) finish() *Plan {
	for user := range p.users {
		p.Users = append(p.Users, user)
	}
	slices.Sort(p.Users)
	slices.Sort(p.Namespaces)
	p.Namespaces = slices.Compact(p.Namespaces)
	return p
}

// text is a text without what a memory itself had put before a model. It says
// false, and lists the piece, when nothing is left or the bytes are no text.
func (p *Plan) text(where, kind, field, s string) (string, bool) {
	if !utf8.ValidString(s) {
		p.Leave(where, kind, field, "is not valid UTF-8")
		return "", false
	}
	out := strings.TrimSpace(mark.Strip(s))
	switch {
	case out != "":
		return out, true
	case strings.TrimSpace(s) == "":
		p.Leave(where, kind, field, "is empty")
	default:
		p.Leave(where, kind, field, "is nothing but a marked block that a memory had put before the model")
	}
	return "", false
}

// clean is a lesser text of a record, such as a reason, without marked blocks.
func clean(s string) string { return strings.TrimSpace(mark.Strip(s)) }

// evidence says where a record comes from. line and lines are 0 where the source
// has none.
func evidence(source Source, file string, line, lines int, quote string) []loci.Evidence {
	e := loci.Evidence{Source: string(source) + ":" + file, Quote: quote}
	if line > 0 {
		e.Offset, e.Limit = new(int64(line)), new(int64(max(lines, 1)))
	}
	return []loci.Evidence{e}
}

// pair is a member of an object, in its order.
type pair struct {
	key   string
	value any
}

// object makes metadata of members, those with nothing in them left out.
func object(members ...pair) loci.Metadata {
	var b strings.Builder
	b.WriteByte('{')
	for _, m := range members {
		switch v := m.value.(type) {
		case nil:
			continue
		case string:
			if v == "" {
				continue
			}
		case json.RawMessage:
			if len(v) == 0 || string(v) == "null" {
				continue
			}
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(compact(m.key))
		b.WriteByte(':')
		b.Write(compact(m.value))
	}
	b.WriteByte('}')
	if b.Len() == 2 {
		return nil
	}
	return loci.Metadata(b.String())
}

// compact is a string, or JSON that was read, as JSON without blanks and without
// the escapes that only a web page needs.
func compact(v any) []byte {
	var b bytes.Buffer
	if raw, ok := v.(json.RawMessage); ok && json.Compact(&b, raw) == nil {
		return b.Bytes()
	}
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return []byte("null") // strings, numbers and lists of them always have a form
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// Hash is a short name of texts.
func Hash(texts ...string) string {
	h := sha256.New()
	for _, s := range texts {
		fmt.Fprintf(h, "%d:", len(s))
		h.Write([]byte(s))
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// label makes a word of s that may stand as a type, a predicate or a thread:
// blanks and control characters brought to single spaces, and cut to what is
// allowed. "" when nothing is left.
func label(s string, limit int) string {
	s = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(s, ""), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	for len(s) > limit {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return strings.TrimSpace(s)
}

// moment reads a time: RFC 3339, or the like without a zone, which is taken for
// UTC, or a date.
func moment(s string) (int64, bool) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999",
		"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
	} {
		if t, err := time.Parse(layout, strings.TrimSpace(s)); err == nil {
			return t.UnixMicro(), true
		}
	}
	return 0, false
}

// sortedKeys are the keys of a map in order, so that a receipt is the same each
// time.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K {
	keys := make([]K, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// tags brings tags into a form that is taken. A few are left free for those that an
// import adds.
func (p *Plan) tags(where, kind string, tags []string) []string {
	var out []string
	for _, t := range tags {
		if t = label(t, loci.MaxTagBytes); t != "" && !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	if len(out) > loci.MaxTags-8 {
		p.Leave(where, kind+" tag", "tags", "has %d tags, of which the first %d are taken", len(out), loci.MaxTags-8)
		out = out[:loci.MaxTags-8]
	}
	return out
}
