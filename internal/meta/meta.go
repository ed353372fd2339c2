// Package meta reads the JSON objects that belong to callers, metadata and the
// like: more strictly than encoding/json does, and without losing a byte of what
// they hold. It compares them by value.
package meta

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/index"
)

// MaxDepth bounds how deeply an object may nest.
const MaxDepth = 64

// Equal says whether two objects hold the same: the order of keys does not
// matter, and numbers are compared by value. Text that is not a JSON object equals
// nothing.
func Equal(a, b []byte) bool {
	x, errX := Scan(a)
	y, errY := Scan(b)
	return errX == nil && errY == nil && equalMembers(x, y)
}

// Merge is an object with the members of a newer one: known keys keep their place
// and take the newer value, new ones follow in their order. With drop a newer null
// takes its key away instead. Both must be valid, else an error says why.
func Merge(m, newer []byte, drop bool) ([]byte, error) {
	if len(newer) == 0 || len(m) == 0 && !drop {
		return append(m[:len(m):len(m)], newer...), nil
	}
	old, err := Scan(m)
	if err != nil {
		return nil, err
	}
	add, err := Scan(newer)
	if err != nil {
		return nil, err
	}
	byKey := make(map[string]int, len(add))
	for i := range add {
		byKey[add[i].Key] = i
	}
	var members []Member
	for _, member := range old {
		if i, ok := byKey[member.Key]; ok {
			member.Value = add[i].Value
			delete(byKey, member.Key)
		}
		members = append(members, member)
	}
	for _, member := range add {
		if _, ok := byKey[member.Key]; ok {
			members = append(members, member)
		}
	}
	if drop {
		null := map[string]bool{}
		for _, member := range add {
			null[member.Key] = string(member.Value) == "null"
		}
		members = slices.DeleteFunc(members, func(m Member) bool { return null[m.Key] })
	}
	return Join(members), nil
}

// Join is the object of members; nil for none.
func Join(members []Member) []byte {
	if len(members) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.WriteByte('{')
	for i, member := range members {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(member.RawKey)
		b.WriteByte(':')
		b.Write(member.Value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// Attributes gives an object's members as the index takes them.
func Attributes(members []Member) []index.Attribute {
	out := make([]index.Attribute, len(members))
	for i, member := range members {
		out[i] = index.Attribute{Key: member.Key, Value: Scalar(member.Value)}
	}
	return out
}

// Scalar reads a valid JSON value as the index takes it.
func Scalar(raw []byte) index.Value {
	switch raw[0] {
	case 'n':
		return index.Value{Type: index.TypeNull}
	case 't':
		return index.Value{Type: index.TypeBool, Number: 1}
	case 'f':
		return index.Value{Type: index.TypeBool}
	case '"':
		s, _ := decodeString(raw)
		return index.Value{Type: index.TypeString, String: s}
	case '{', '[':
		return index.Value{Type: index.TypeOther}
	}
	f, _ := strconv.ParseFloat(string(raw), 64) // beyond the range it is infinite
	return index.Value{Type: index.TypeNumber, Number: f}
}

// Member is a member of a JSON object, in the object's own text.
type Member struct {
	Key    string // decoded
	RawKey []byte // with its quotes
	Value  []byte
}

// Scan checks that m is one JSON object, strictly: valid UTF-8, no key
// twice, no lone surrogates, bounded depth. encoding/json is laxer on each.
func Scan(m []byte) ([]Member, error) { return ScanDeeper(m, 0) }

// ScanDeeper is Scan for an object that may nest so much deeper than MaxDepth.
func ScanDeeper(m []byte, by int) ([]Member, error) {
	if len(m) == 0 {
		return nil, nil
	}
	if !utf8.Valid(m) {
		return nil, fmt.Errorf("is not valid UTF-8")
	}
	s := scanner{text: m}
	s.space()
	if s.peek() != '{' {
		return nil, fmt.Errorf("must be a JSON object")
	}
	members, err := s.object(1 - by)
	if err != nil {
		return nil, err
	}
	s.space()
	if s.at != len(s.text) {
		return nil, s.wrong()
	}
	return members, nil
}

type scanner struct {
	text []byte
	at   int
}

func (s *scanner) wrong() error {
	return fmt.Errorf("must be a JSON object, it breaks at byte %d", s.at)
}

func (s *scanner) space() {
	for s.at < len(s.text) {
		switch s.text[s.at] {
		case ' ', '\t', '\n', '\r':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// object scans the object that begins here.
func (s *scanner) object(depth int) ([]Member, error) {
	if depth > MaxDepth {
		return nil, fmt.Errorf("nests deeper than %d", MaxDepth)
	}
	s.at++
	s.space()
	if s.peek() == '}' {
		s.at++
		return nil, nil
	}
	var members []Member
	var seen map[string]bool // for objects too large to compare pair by pair
	for {
		start := s.at
		if err := s.str(); err != nil {
			return nil, err
		}
		member := Member{RawKey: s.text[start:s.at]}
		var ok bool
		if member.Key, ok = decodeString(member.RawKey); !ok {
			return nil, fmt.Errorf("holds half a surrogate pair in a key")
		}
		if seen == nil && len(members) == 16 {
			seen = make(map[string]bool)
			for _, other := range members {
				seen[other.Key] = true
			}
		}
		twice := seen[member.Key]
		if seen == nil {
			for i := range members {
				twice = twice || members[i].Key == member.Key
			}
		} else {
			seen[member.Key] = true
		}
		if twice {
			return nil, fmt.Errorf("has a key twice, at byte %d", start)
		}
		s.space()
		if s.peek() != ':' {
			return nil, s.wrong()
		}
		s.at++
		s.space()
		start = s.at
		if err := s.value(depth); err != nil {
			return nil, err
		}
		member.Value = s.text[start:s.at]
		members = append(members, member)
		s.space()
		switch s.peek() {
		case ',':
			s.at++
			s.space()
		case '}':
			s.at++
			return members, nil
		default:
			return nil, s.wrong()
		}
	}
}

func (s *scanner) array(depth int) error {
	if depth > MaxDepth {
		return fmt.Errorf("nests deeper than %d", MaxDepth)
	}
	s.at++
	s.space()
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		if err := s.value(depth); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.at++
			s.space()
		case ']':
			s.at++
			return nil
		default:
			return s.wrong()
		}
	}
}

func (s *scanner) value(depth int) error {
	switch c := s.peek(); c {
	case '{':
		_, err := s.object(depth + 1)
		return err
	case '[':
		return s.array(depth + 1)
	case '"':
		start := s.at
		if err := s.str(); err != nil {
			return err
		}
		if bytes.IndexByte(s.text[start:s.at], '\\') >= 0 {
			if _, ok := decodeString(s.text[start:s.at]); !ok {
				return fmt.Errorf("holds half a surrogate pair at byte %d", start)
			}
		}
		return nil
	case 't':
		return s.word("true")
	case 'f':
		return s.word("false")
	case 'n':
		return s.word("null")
	default:
		return s.number()
	}
}

func (s *scanner) word(w string) error {
	if !bytes.HasPrefix(s.text[s.at:], []byte(w)) {
		return s.wrong()
	}
	s.at += len(w)
	return nil
}

func (s *scanner) digits() bool {
	start := s.at
	for c := s.peek(); c >= '0' && c <= '9'; c = s.peek() {
		s.at++
	}
	return s.at > start
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.at++
	}
	if s.peek() == '0' {
		s.at++
	} else if !s.digits() {
		return s.wrong()
	}
	if s.peek() == '.' {
		s.at++
		if !s.digits() {
			return s.wrong()
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if !s.digits() {
			return s.wrong()
		}
	}
	return nil
}

// str scans the string that begins here.
func (s *scanner) str() error {
	if s.peek() != '"' {
		return s.wrong()
	}
	s.at++
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return nil
		case c < 0x20:
			return s.wrong()
		case c == '\\':
			s.at++
			switch s.peek() {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
				s.at++
			case 'u':
				if _, ok := hex4(s.text[s.at+1:]); !ok {
					return s.wrong()
				}
				s.at += 5
			default:
				return s.wrong()
			}
		default:
			s.at++
		}
	}
	return s.wrong()
}

func hex4(text []byte) (rune, bool) {
	if len(text) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(text[:4]), 16, 16)
	if err != nil || text[0] == '+' {
		return 0, false
	}
	return rune(n), true
}

// decodeString decodes a JSON string with its quotes; false when it holds a
// surrogate without its other half.
func decodeString(raw []byte) (string, bool) {
	raw = raw[1 : len(raw)-1]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw), true
	}
	var b strings.Builder
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			b.WriteByte(raw[i])
			continue
		}
		i++
		switch raw[i] {
		case 'b':
			b.WriteByte('\b')
		case 'f':
			b.WriteByte('\f')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 't':
			b.WriteByte('\t')
		case 'u':
			r, _ := hex4(raw[i+1:])
			i += 4
			if utf16.IsSurrogate(r) {
				if len(raw)-i-1 < 6 || raw[i+1] != '\\' || raw[i+2] != 'u' {
					return "", false
				}
				low, _ := hex4(raw[i+3:])
				if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
					return "", false
				}
				i += 6
			}
			b.WriteRune(r)
		default:
			b.WriteByte(raw[i])
		}
	}
	return b.String(), true
}

func equalMembers(a, b []Member) bool {
	if len(a) != len(b) {
		return false
	}
	values := make(map[string][]byte, len(b))
	for _, member := range b {
		values[member.Key] = member.Value
	}
	for _, member := range a {
		other, ok := values[member.Key]
		if !ok || !EqualValues(member.Value, other) {
			return false
		}
	}
	return true
}

// EqualValues compares two valid JSON values.
func EqualValues(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	kind := func(c byte) byte {
		if c == '-' || c >= '0' && c <= '9' {
			return '0'
		}
		return c
	}
	if kind(a[0]) != kind(b[0]) {
		return false
	}
	switch kind(a[0]) {
	case '0':
		return canonicalNumber(a) == canonicalNumber(b)
	case '"':
		x, _ := decodeString(a)
		y, _ := decodeString(b)
		return x == y
	case '{':
		x, errX := Scan(a)
		y, errY := Scan(b)
		return errX == nil && errY == nil && equalMembers(x, y)
	case '[':
		x, y := elements(a), elements(b)
		if len(x) != len(y) {
			return false
		}
		for i := range x {
			if !EqualValues(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return false
}

// elements splits a valid JSON array.
func elements(raw []byte) [][]byte {
	s := scanner{text: raw, at: 1}
	var out [][]byte
	for {
		s.space()
		if c := s.peek(); c == ']' || c == 0 {
			return out
		}
		start := s.at
		if s.value(0) != nil {
			return out
		}
		out = append(out, raw[start:s.at])
		s.space()
		if s.peek() == ',' {
			s.at++
		}
	}
}

// canonicalNumber gives equal texts for equal numbers, exactly, whatever their
// size: the sign, the digits without outer zeros, and the exponent.
func canonicalNumber(raw []byte) string {
	text := string(raw)
	sign := ""
	if text[0] == '-' {
		sign, text = "-", text[1:]
	}
	mantissa, exponentText, _ := strings.Cut(strings.ToLower(text), "e")
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	if digits == "" {
		return "0"
	}
	exponent, err := strconv.ParseInt(cmp.Or(exponentText, "0"), 10, 64)
	if err != nil {
		return sign + text // an exponent beyond any use: equal only to itself
	}
	exponent -= int64(len(fraction))
	trimmed := strings.TrimRight(digits, "0")
	exponent += int64(len(digits) - len(trimmed))
	return sign + trimmed + "e" + strconv.FormatInt(exponent, 10)
}
