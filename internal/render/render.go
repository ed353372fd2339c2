package render

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// The parts of a text around its items. A change to any of them, or to what
// AppendItem writes, invalidates every provider's cache and every published sum.
const (
	head   = `{"vc":1,"core":[`
	middle = `],"working":[`
	tail   = "\n]}"
)

// The size of a text without items, and of its stable prefix, in bytes.
const (
	EmptySize   = EmptyStable + len(middle) + len(tail)
	EmptyStable = len(head) + len("\n")
)

// Item is what a text shows of a page. The strings are UTF-8; AppendString says
// what becomes of other bytes.
type Item struct {
	ID string
	// Version is the page's revision, and for an index row the one at which the
	// row last changed.
	Version int64
	// Index says that the page stands as a row of the outline: AppendItem then
	// writes Seq and Summary instead of Tags and Content.
	Index   bool
	Seq     int64
	Title   string
	Tags    []string // written in the order given
	Content string
	Summary string
}

// AppendItem appends the JSON object of it to dst, without the comma before and
// the newline behind it. It holds no newline itself.
func AppendItem(dst []byte, it *Item) []byte {
	dst = append(dst, `{"id":`...)
	dst = AppendString(dst, it.ID)
	dst = append(dst, `,"version":`...)
	dst = strconv.AppendInt(dst, it.Version, 10)
	if it.Index {
		dst = append(dst, `,"mode":"index","seq":`...)
		dst = strconv.AppendInt(dst, it.Seq, 10)
		dst = append(dst, `,"title":`...)
		dst = AppendString(dst, it.Title)
		dst = append(dst, `,"summary":`...)
		dst = AppendString(dst, it.Summary)
		return append(dst, '}')
	}
	dst = append(dst, `,"mode":"full","title":`...)
	dst = AppendString(dst, it.Title)
	dst = append(dst, `,"tags":[`...)
	for i, tag := range it.Tags {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendString(dst, tag)
	}
	dst = append(dst, `],"content":`...)
	dst = AppendString(dst, it.Content)
	return append(dst, '}')
}

// AppendString appends s to dst as a JSON string with its quotes. Escaped are the
// quote, the backslash and U+0000 to U+001F, and nothing else: \n \r \t \b \f in
// short, the other control characters as \u00xx in lower-case hex. A run of bytes
// that are no UTF-8 becomes one U+FFFD, so that the text stays valid JSON; whoever
// stores a page refuses such bytes, since they would not be read back.
func AppendString(dst []byte, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	from := 0
	for i := range len(s) {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		}
	}
	dst = append(dst, s[from:]...)
	return append(dst, '"')
}

// Append gives the whole text of the items in core and in working, each made by
// AppendItem, in the order given. The text's first stable bytes are its prefix,
// the others its tail.
func Append(dst []byte, core, working [][]byte) (text []byte, stable int) {
	start := len(dst)
	dst = append(dst, head...)
	dst = appendLines(dst, core)
	dst = append(dst, '\n')
	stable = len(dst) - start
	dst = append(dst, middle...)
	dst = appendLines(dst, working)
	return append(dst, tail...), stable
}

func appendLines(dst []byte, items [][]byte) []byte {
	for i, it := range items {
		dst = append(dst, '\n')
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, it...)
	}
	return dst
}

// Tally says how much items take: how many there are, and their length in bytes
// as AppendItem makes them. It lets a caller who adds and removes items know the
// size of the text without making it. The zero value stands for none.
type Tally struct {
	Items, Bytes int
}

// Add counts in an item of size bytes.
func (t *Tally) Add(size int) { t.Items, t.Bytes = t.Items+1, t.Bytes+size }

// Remove takes away an item of size bytes that Add counted.
func (t *Tally) Remove(size int) { t.Items, t.Bytes = t.Items-1, t.Bytes-size }

// lines is what the items take with the newline before each and the comma
// between two.
func (t Tally) lines() int {
	if t.Items == 0 {
		return 0
	}
	return t.Bytes + 2*t.Items - 1
}

// Size gives the length in bytes of the text that Append would make, and of its
// stable prefix.
func Size(core, working [][]byte) (total, stable int) {
	return SizeOf(tally(core), tally(working))
}

// SizeOf is Size for items that were counted before.
func SizeOf(core, working Tally) (total, stable int) {
	return EmptySize + core.lines() + working.lines(), EmptyStable + core.lines()
}

func tally(items [][]byte) (t Tally) {
	for _, it := range items {
		t.Add(len(it))
	}
	return t
}
