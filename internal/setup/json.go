package setup

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// jsonFile is a JSON file of a client, perhaps with comments, while it is edited.
// Edits touch the bytes of what they are about and no others.
type jsonFile struct {
	bom   bool
	src   []byte
	root  hujson.Value
	fresh bool // it was not there, or held nothing but blanks
	bare  bool // all that was in it was setup's
}

const bom = "\xef\xbb\xbf"

// parseJSON reads a file. exists is false for one that is not there.
func parseJSON(raw []byte, exists bool) (*jsonFile, error) {
	f := &jsonFile{src: raw}
	if rest, ok := bytes.CutPrefix(raw, []byte(bom)); ok {
		f.bom, f.src = true, rest
	}
	if !utf8.Valid(f.src) {
		return nil, errors.New("it is not UTF-8")
	}
	if len(bytes.TrimSpace(f.src)) == 0 {
		suffix := string(f.src)
		if !exists {
			suffix = "\n"
		}
		f.fresh, f.src = true, []byte("{\n}"+suffix)
	}
	if err := f.parse(); err != nil {
		return nil, err
	}
	if _, ok := f.root.Value.(*hujson.Object); !ok {
		return nil, errors.New("it holds no JSON object")
	}
	return f, nil
}

func (f *jsonFile) parse() error {
	root, err := hujson.Parse(f.src)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "hujson: "))
	}
	f.root = root
	return nil
}

// bytes is the file as it is now; nil when nothing is left of one that setup made.
func (f *jsonFile) bytes() []byte {
	out := f.src
	if rest, ok := bytes.CutPrefix(out, []byte("{\n}")); ok && len(bytes.TrimSpace(rest)) == 0 && f.bare {
		if string(rest) == "\n" {
			return nil
		}
		out = rest
	}
	if f.bom {
		out = append([]byte(bom), out...)
	}
	return out
}

func (f *jsonFile) newline() string {
	if bytes.Contains(f.src, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

// item is a member of an object or an element of an array.
type item struct {
	name       string
	start, end int // with the name
	value      *hujson.Value
	afterComma int // behind its comma; 0 without one
}

// items takes a container apart. closing is where its last bracket stands.
func items(v *hujson.Value) (list []item, closing int, ok bool) {
	add := func(name string, start int, value *hujson.Value, last bool) {
		it := item{name: name, start: start, end: value.EndOffset, value: value}
		if !last || value.AfterExtra != nil {
			it.afterComma = value.EndOffset + len(value.AfterExtra) + 1
		}
		list = append(list, it)
	}
	switch c := v.Value.(type) {
	case *hujson.Object:
		for i := range c.Members {
			m := &c.Members[i]
			name, _ := m.Name.Value.(hujson.Literal)
			add(name.String(), m.Name.StartOffset, &m.Value, i == len(c.Members)-1)
		}
	case *hujson.Array:
		for i := range c.Elements {
			add("", c.Elements[i].StartOffset, &c.Elements[i], i == len(c.Elements)-1)
		}
	default:
		return nil, 0, false
	}
	return list, v.EndOffset - 1, true
}

// member finds an object's member. Two of one name are an error: clients differ in
// which one counts.
func member(v *hujson.Value, name string) (*item, error) {
	if _, ok := v.Value.(*hujson.Object); !ok {
		return nil, nil
	}
	list, _, _ := items(v)
	var found *item
	for i := range list {
		if list[i].name != name {
			continue
		}
		if found != nil {
			return nil, fmt.Errorf("it holds %q twice", name)
		}
		found = &list[i]
	}
	return found, nil
}

// insert puts an item at the end of the container v. Below it stand containers that
// are made for it: made are their names. They go with their last item, which is
// known from the blank before it; a container of the user's, if it is empty, gets
// none.
func (f *jsonFile) insert(v *hujson.Value, made []string, name string, value any) error {
	list, closing, _ := items(v)
	nl := f.newline()
	unit := f.unit()
	at := closing
	for at > v.StartOffset+1 && isBlank(f.src[at-1]) {
		at--
	}
	indent, lines := f.lineIndent(v.StartOffset)+unit, f.fresh || at > v.StartOffset+1 // or a comment is in it
	if len(list) > 0 {
		last := list[len(list)-1]
		indent, lines = f.ownLine(list[0].start)
		// A comment may go on to the end of its line.
		lines = lines || at > max(last.end, last.afterComma)
	}
	text, err := f.render(made, name, value, lines, indent)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	comma := ""
	switch {
	case len(list) == 0:
		out.Write(f.src[:at])
	case list[len(list)-1].afterComma > 0:
		comma = ","
		out.Write(f.src[:at])
	default:
		end := list[len(list)-1].end
		out.Write(f.src[:end])
		out.WriteByte(',')
		out.Write(f.src[end:at])
	}
	switch {
	case lines:
		out.WriteString(nl + indent)
	case len(list) > 0:
		out.WriteByte(' ')
	}
	out.WriteString(text + comma)
	out.Write(f.src[at:])
	f.src = out.Bytes()
	return f.parse()
}

// remove takes an item out of a container, and says whether it was the last one of
// a container that setup made.
func (f *jsonFile) remove(list []item, i int) (emptied bool, err error) {
	it := list[i]
	from := it.start
	for from > 0 && isBlank(f.src[from-1]) {
		from--
	}
	to := it.end
	head := f.src[:from]
	switch {
	case it.afterComma > 0:
		to = it.afterComma
	case i > 0:
		comma := list[i-1].afterComma - 1
		head = append(append([]byte{}, f.src[:comma]...), f.src[comma+1:from]...)
	}
	// A container with a comment in it is the user's.
	emptied = len(list) == 1 && from < it.start && (f.src[from-1] == '{' || f.src[from-1] == '[')
	f.src = append(append([]byte{}, head...), f.src[to:]...)
	return emptied, f.parse()
}

// replace puts another value in the place of one.
func (f *jsonFile) replace(v *hujson.Value, value any) error {
	lines := bytes.Contains(f.src[v.StartOffset:v.EndOffset], []byte("\n"))
	text, err := f.render(nil, "", value, lines, f.lineIndent(v.StartOffset))
	if err != nil {
		return err
	}
	f.src = bytes.Join([][]byte{f.src[:v.StartOffset], []byte(text), f.src[v.EndOffset:]}, nil)
	return f.parse()
}

// render writes an item in the containers that are made for it, over several lines
// or on one.
func (f *jsonFile) render(made []string, name string, value any, lines bool, indent string) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if len(made) > 0 && lines {
		value, name = nested(made[1:], name, value), made[0]
		made = nil
	}
	if lines {
		enc.SetIndent(indent, f.unit())
	}
	if err := enc.Encode(value); err != nil {
		return "", err
	}
	text := strings.ReplaceAll(strings.TrimRight(b.String(), "\n"), "\n", f.newline())
	if name != "" {
		text = quote(name) + ": " + text
	}
	open, shut := "{ ", "}"
	if name == "" {
		open, shut = "[ ", "]"
	}
	for i := len(made) - 1; i >= 0; i-- {
		text = quote(made[i]) + ": " + open + text + shut
		open, shut = "{ ", "}"
	}
	return text, nil
}

// quote is a name as JSON has it.
func quote(s string) string {
	raw, _ := json.Marshal(s) // a string always has a form
	return string(raw)
}

func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// lineIndent is the blanks that the line of an offset begins with.
func (f *jsonFile) lineIndent(at int) string {
	begin := bytes.LastIndexByte(f.src[:at], '\n') + 1
	end := begin
	for end < len(f.src) && (f.src[end] == ' ' || f.src[end] == '\t') {
		end++
	}
	return string(f.src[begin:end])
}

// ownLine says whether an item begins its line, and how far that is indented.
func (f *jsonFile) ownLine(at int) (string, bool) {
	indent := f.lineIndent(at)
	begin := bytes.LastIndexByte(f.src[:at], '\n') + 1
	return indent, begin > 0 && begin+len(indent) == at
}

// unit is what the file indents by.
func (f *jsonFile) unit() string {
	if list, _, ok := items(&f.root); ok && len(list) > 0 {
		if indent, own := f.ownLine(list[0].start); own && indent != "" {
			return indent
		}
	}
	return "  "
}

// standard decodes a value that may have comments.
func standard(v *hujson.Value) (any, error) {
	c := v.Clone()
	c.Standardize()
	var out any
	err := json.Unmarshal(c.Pack(), &out)
	return out, err
}

// same says whether a value of the file is value.
func same(v *hujson.Value, value any) bool {
	have, err := standard(v)
	if err != nil {
		return false
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return false
	}
	var want any
	return json.Unmarshal(raw, &want) == nil && reflect.DeepEqual(have, want)
}

// put adds an item to the object or array at path, which is made if it is not
// there. An item of an array has no name.
func (f *jsonFile) put(path []string, name string, value any) error {
	v := &f.root
	for i, step := range path {
		it, err := member(v, step)
		if err != nil {
			return err
		}
		if it == nil {
			return f.insert(v, path[i:], name, value)
		}
		v = it.value
		_, object := v.Value.(*hujson.Object)
		_, array := v.Value.(*hujson.Array)
		if last := i == len(path)-1; !object && (!last || name != "" || !array) {
			return fmt.Errorf("%q is of another form than its client wants", strings.Join(path[:i+1], "."))
		}
	}
	return f.insert(v, nil, name, value)
}

// nested wraps value into objects, and into an array where it has no name.
func nested(path []string, name string, value any) any {
	var out any = map[string]any{name: value}
	if name == "" {
		out = []any{value}
	}
	for i := len(path) - 1; i >= 0; i-- {
		out = map[string]any{path[i]: out}
	}
	return out
}

// at finds the value at a path, nil when it is not there.
func (f *jsonFile) at(path ...string) (*hujson.Value, error) {
	v := &f.root
	for _, step := range path {
		it, err := member(v, step)
		if err != nil || it == nil {
			return nil, err
		}
		v = it.value
	}
	return v, nil
}

// take removes the items of the container at path that mine says are setup's own,
// and then the containers that it made and that are empty.
func (f *jsonFile) take(path []string, mine func(name string, v *hujson.Value) bool) (removed bool, err error) {
	for {
		v, err := f.at(path...)
		if err != nil || v == nil {
			return removed, err
		}
		list, _, ok := items(v)
		if !ok {
			return removed, nil
		}
		i := len(list) - 1 // what came last goes first
		for i >= 0 && !mine(list[i].name, list[i].value) {
			i--
		}
		if i < 0 {
			return removed, nil
		}
		emptied, err := f.remove(list, i)
		if err != nil {
			return removed, err
		}
		removed = true
		for at := path; emptied && len(at) > 0; at = at[:len(at)-1] {
			parent, err := f.at(at[:len(at)-1]...)
			if err != nil || parent == nil {
				return removed, err
			}
			list, _, _ := items(parent)
			for i := range list {
				if list[i].name == at[len(at)-1] {
					if emptied, err = f.remove(list, i); err != nil {
						return removed, err
					}
					break
				}
			}
			if len(at) == 1 {
				f.bare = emptied
				break
			}
		}
	}
}
