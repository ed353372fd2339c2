// Package strictjson reads JSON along a schema that is made of a Go type, and
// refuses everything that the schema does not name: what comes in from outside
// is read here, whatever surface it comes through.
package strictjson

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/errs"
)

// Limits on an input.
const (
	MaxBytes = 64 << 20
	MaxDepth = 64
)

// Decode reads raw into v, refusing everything that schema does not name: an
// error says which field, what it holds and what would be right.
func Decode(schema *jsonschema.Schema, raw []byte, v any) error {
	if err := Check(schema, raw); err != nil {
		return err
	}
	if IsBlank(raw) {
		raw = []byte("{}")
	}
	if err := json.Unmarshal(raw, v); err != nil {
		// Only what the types themselves refuse gets here. The cause is left
		// out: it may quote the input.
		field := ""
		if te, ok := err.(*json.UnmarshalTypeError); ok {
			for part := range strings.SplitSeq(te.Field, ".") {
				if part != "" && part[0] >= 'A' && part[0] <= 'Z' {
					continue // an embedded Go type, which has no name in JSON
				}
				field = strings.TrimPrefix(field+"."+part, ".")
			}
		}
		return errs.Invalid(field, "has a value of the wrong form")
	}
	return nil
}

// Check walks raw along schema. The standard decoder would take a repeated key,
// a key in another case, text behind the value and broken UTF-8 without a word;
// and its messages name Go types.
func Check(schema *jsonschema.Schema, raw []byte) error {
	return checkAll(schema, raw, false)
}

// CheckPartial is Check for input whose outermost object may still lack fields.
func CheckPartial(schema *jsonschema.Schema, raw []byte) error { return checkAll(schema, raw, true) }

func checkAll(schema *jsonschema.Schema, raw []byte, partial bool) error {
	if len(raw) > MaxBytes {
		return errs.Invalid("", "the input has %d bytes; at most %d are taken", len(raw), MaxBytes)
	}
	if IsBlank(raw) {
		raw = []byte("{}")
	}
	if !utf8.Valid(raw) {
		return errs.Invalid("", "the input is not valid UTF-8")
	}
	c := checker{data: raw, partial: partial, free: &jsonschema.Schema{}}
	c.space()
	if err := c.value(schema, 0); err != nil {
		return err
	}
	c.space()
	if c.pos < len(c.data) {
		return c.syntax("ends after the object, but there is more text")
	}
	return nil
}

// IsBlank says whether raw holds nothing but JSON's blanks.
func IsBlank(raw []byte) bool {
	for _, b := range raw {
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return false
		}
	}
	return true
}

// checker is a JSON parser that keeps nothing: it knows the place in the text
// and the path to it.
type checker struct {
	data    []byte
	pos     int
	path    []string
	partial bool               // what the outermost object needs may still be missing
	free    *jsonschema.Schema // of a value that belongs to the caller
}

func (c *checker) field() string {
	var b strings.Builder
	for _, p := range c.path {
		if b.Len() > 0 && p[0] != '[' {
			b.WriteByte('.')
		}
		b.WriteString(p)
	}
	return b.String()
}

func (c *checker) invalid(format string, args ...any) error {
	return errs.Invalid(c.field(), format, args...)
}

func (c *checker) syntax(what string) error {
	return errs.Invalid(c.field(), "the input is not valid JSON: at byte %d it %s", c.pos+1, what)
}

func (c *checker) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

func (c *checker) peek() byte {
	if c.pos < len(c.data) {
		return c.data[c.pos]
	}
	return 0
}

func (c *checker) value(s *jsonschema.Schema, depth int) error {
	if depth > MaxDepth {
		return c.invalid("is nested deeper than %d levels", MaxDepth)
	}
	var got string
	switch b := c.peek(); {
	case b == '{':
		got = "object"
	case b == '[':
		got = "array"
	case b == '"':
		got = "string"
	case b == 't' || b == 'f':
		got = "boolean"
	case b == 'n':
		got = "null"
	case b == '-' || b >= '0' && b <= '9':
		got = "number"
	case c.pos >= len(c.data):
		return c.syntax("ends where a value should stand")
	default:
		return c.syntax("has no value")
	}
	if got == "string" && s.Type == "array" && s.Format == OneOrMore {
		s = s.Items
	}
	if s.Type != "" && got != s.Type && !(got == "number" && (s.Type == "integer" || isIDSchema(s))) {
		if got == "null" {
			return c.invalid("must be %s, not null; leave it out for the default", describe(s))
		}
		return c.invalid("must be %s, not %s", describe(s), withArticle(got))
	}
	switch got {
	case "object":
		return c.object(s, depth)
	case "array":
		return c.array(s, depth)
	case "string":
		v, err := c.str(isIDSchema(s) || len(s.Enum) > 0)
		if err != nil {
			return err
		}
		if isIDSchema(s) && !isID(s, v) {
			return c.invalid("must be %s", describe(s))
		}
		if len(s.Enum) > 0 && !slices.Contains(s.Enum, any(v)) {
			return c.invalid("must be %s", describe(s))
		}
		return nil
	case "number":
		return c.number(s)
	default:
		return c.literal(got)
	}
}

func (c *checker) object(s *jsonschema.Schema, depth int) error {
	c.pos++
	seen := map[string]bool{}
	c.space()
	for first := true; c.peek() != '}' || !first; first = false {
		if !first {
			if c.peek() != ',' {
				return c.syntax("has no comma or closing brace")
			}
			c.pos++
			c.space()
		}
		if c.peek() != '"' {
			return c.syntax("has no field name in double quotes")
		}
		key, err := c.str(true)
		if err != nil {
			return err
		}
		if seen[key] {
			return c.invalid("has the field %s twice", Quote(key))
		}
		seen[key] = true
		sub := c.free
		if p := s.Properties[key]; p != nil {
			sub = p
		} else if closed(s) {
			return c.unknown(key, s)
		} else if s.AdditionalProperties != nil {
			sub = s.AdditionalProperties
		}
		c.space()
		if c.peek() != ':' {
			return c.syntax("has no colon after a field name")
		}
		c.pos++
		c.space()
		c.path = append(c.path, shortKey(key))
		if err := c.value(sub, depth+1); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
		c.space()
		if c.peek() == '}' {
			break
		}
	}
	c.pos++
	for _, name := range s.Required {
		if c.partial && depth == 0 {
			break
		}
		if !seen[name] {
			c.path = append(c.path, name)
			return c.invalid("is missing; it must be %s", describe(s.Properties[name]))
		}
	}
	return nil
}

func (c *checker) array(s *jsonschema.Schema, depth int) error {
	c.pos++
	sub := s.Items
	if sub == nil {
		sub = c.free
	}
	c.space()
	if c.peek() == ']' {
		c.pos++
		return nil
	}
	for i := 0; ; i++ {
		c.path = append(c.path, "["+strconv.Itoa(i)+"]")
		if err := c.value(sub, depth+1); err != nil {
			return err
		}
		c.path = c.path[:len(c.path)-1]
		c.space()
		switch c.peek() {
		case ',':
			c.pos++
			c.space()
		case ']':
			c.pos++
			return nil
		default:
			return c.syntax("has no comma or closing bracket")
		}
	}
}

// str passes over a string and gives its value when it is wanted.
func (c *checker) str(want bool) (string, error) {
	start := c.pos
	c.pos++
	escaped := false
	for c.pos < len(c.data) {
		switch b := c.data[c.pos]; {
		case b == '"':
			c.pos++
			if !want {
				return "", nil
			}
			if !escaped {
				return string(c.data[start+1 : c.pos-1]), nil
			}
			var v string
			if err := json.Unmarshal(c.data[start:c.pos], &v); err != nil {
				return "", c.syntax("has a broken string")
			}
			return v, nil
		case b < 0x20:
			return "", c.syntax("has a control character in a string; write it as an escape")
		case b == '\\':
			escaped = true
			if err := c.escape(); err != nil {
				return "", err
			}
		default:
			c.pos++
		}
	}
	return "", c.syntax("ends inside a string")
}

// escape passes over one escape, or the two that make a surrogate pair.
func (c *checker) escape() error {
	c.pos++
	switch c.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		c.pos++
		return nil
	case 'u':
		u, ok := c.hex4()
		switch {
		case !ok:
			return c.syntax(`has a broken \u escape`)
		case u >= 0xDC00 && u < 0xE000:
			return c.syntax("has half of a surrogate pair")
		case u >= 0xD800 && u < 0xDC00:
			if c.peek() == '\\' && c.pos+1 < len(c.data) && c.data[c.pos+1] == 'u' {
				c.pos++
				if low, ok := c.hex4(); ok && low >= 0xDC00 && low < 0xE000 {
					return nil
				}
			}
			return c.syntax("has half of a surrogate pair")
		}
		return nil
	default:
		return c.syntax("has an unknown escape in a string")
	}
}

// hex4 reads the four digits behind the u that pos is at.
func (c *checker) hex4() (uint64, bool) {
	if c.pos+5 > len(c.data) {
		return 0, false
	}
	digits := string(c.data[c.pos+1 : c.pos+5])
	if strings.ContainsAny(digits, "+-_") {
		return 0, false
	}
	u, err := strconv.ParseUint(digits, 16, 16)
	if err != nil {
		return 0, false
	}
	c.pos += 5
	return u, true
}

func (c *checker) number(s *jsonschema.Schema) error {
	start := c.pos
	digits := func() bool {
		n := c.pos
		for b := c.peek(); b >= '0' && b <= '9'; b = c.peek() {
			c.pos++
		}
		return c.pos > n
	}
	if c.peek() == '-' {
		c.pos++
	}
	if c.peek() == '0' {
		c.pos++
	} else if !digits() {
		return c.syntax("has a broken number")
	}
	whole := true
	if c.peek() == '.' {
		whole = false
		c.pos++
		if !digits() {
			return c.syntax("has a broken number")
		}
	}
	if b := c.peek(); b == 'e' || b == 'E' {
		whole = false
		c.pos++
		if b := c.peek(); b == '+' || b == '-' {
			c.pos++
		}
		if !digits() {
			return c.syntax("has a broken number")
		}
	}
	lit := string(c.data[start:c.pos])
	switch {
	case isIDSchema(s):
		if !whole || !isID(s, lit) {
			return c.invalid("must be %s", describe(s))
		}
	case s.Type == "integer" && s.Format == UnsignedFormat:
		if _, err := strconv.ParseUint(lit, 10, 64); !whole || err != nil {
			return c.invalid("must be %s", describe(s))
		}
	case s.Type == "integer":
		n, err := strconv.ParseInt(lit, 10, 64)
		if !whole || err != nil {
			return c.invalid("must be %s of 64 bits, without fraction or exponent", describe(s))
		}
		if s.Minimum != nil && float64(n) < *s.Minimum {
			return c.invalid("must be at least %v", *s.Minimum)
		}
	case s.Type == "number":
		if f, err := strconv.ParseFloat(lit, 64); err != nil || math.IsInf(f, 0) {
			return c.invalid("must be a number in the range of a 64-bit float")
		}
	}
	return nil
}

func (c *checker) literal(kind string) error {
	words := []string{"true", "false"}
	if kind == "null" {
		words = []string{"null"}
	}
	rest := c.data[c.pos:]
	for _, w := range words {
		if len(rest) >= len(w) && string(rest[:len(w)]) == w {
			c.pos += len(w)
			return nil
		}
	}
	return c.syntax("has an unknown word")
}

func (c *checker) unknown(key string, s *jsonschema.Schema) error {
	names := s.PropertyOrder
	where := "there is no field " + Quote(key)
	if best := Closest(key, names); best != "" {
		return c.invalid("%s; did you mean %s?", where, best)
	}
	if len(names) == 0 {
		return c.invalid("%s; there are no fields here", where)
	}
	return c.invalid("%s; there are %s", where, strings.Join(names, ", "))
}

// isIDSchema says whether a schema is that of an id.
func isIDSchema(s *jsonschema.Schema) bool {
	return s.Type == "string" && (s.Format == IDFormat || s.Format == UnsignedFormat)
}

// isID says whether v is a whole number that an id of the schema can hold.
func isID(s *jsonschema.Schema, v string) bool {
	digits, bits := 19, 63
	if s.Format == UnsignedFormat {
		digits, bits = 20, 64
	}
	if len(v) == 0 || len(v) > digits || strings.ContainsAny(v, "+-_") {
		return false
	}
	_, err := strconv.ParseUint(v, 10, bits)
	return err == nil
}

// describe says in words what a schema takes.
func describe(s *jsonschema.Schema) string {
	switch {
	case s == nil || s.Type == "":
		return "a value"
	case isIDSchema(s) && s.Format == UnsignedFormat:
		return "an id: a whole number from 0 to 18446744073709551615, best as a decimal string"
	case isIDSchema(s):
		return "an id: a whole number from 0, best as a decimal string"
	case len(s.Enum) > 0:
		words := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			words[i], _ = w.(string)
		}
		return "one of " + strings.Join(words, ", ")
	case s.Type == "integer" && s.Format == UnsignedFormat:
		return "a whole number from 0 to 18446744073709551615"
	case s.Type == "integer":
		return "a whole number"
	case s.Type == "boolean":
		return "true or false"
	case s.Format == OneOrMore:
		return "a string or an array of strings"
	case s.Type == "array" && s.Items != nil && s.Items.Type == "string" && len(s.Items.Enum) == 0 && s.Items.Format == "":
		return "an array of strings"
	default:
		return withArticle(s.Type)
	}
}

func withArticle(kind string) string {
	switch kind {
	case "object", "array":
		return "an " + kind
	case "null":
		return kind
	default:
		return "a " + kind
	}
}

// Quote quotes a name that the caller sent, cut to a length that fits a
// message.
func Quote(s string) string { return strconv.Quote(shortKey(s)) }

func shortKey(s string) string {
	const most = 64
	if s == "" {
		return `""`
	}
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + "…"
}

// Closest finds the name among names that was probably meant by got, or "".
func Closest(got string, names []string) string {
	squash := strings.NewReplacer("_", "", "-", "", ".", "", " ", "")
	want := squash.Replace(strings.ToLower(shortKey(got)))
	best, bestDist := "", 3
	for _, n := range names {
		have := squash.Replace(strings.ToLower(n))
		d := editDistance(want, have)
		if d < bestDist && d*2 <= len(have) {
			best, bestDist = n, d
		}
	}
	return best
}

// editDistance counts the letters to insert, drop or replace.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diag+cost)
			diag, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}
