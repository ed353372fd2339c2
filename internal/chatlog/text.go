package chatlog

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// replacement stands where something is no character.
const replacement = string(utf8.RuneError)

// kind is what a JSON value is, as far as it matters here.
type kind byte

const (
	absent kind = iota // not there, or null
	aNull              // only of a content: null
	aString
	aNumber
	other
)

// value is a JSON value of which only a string or a number is wanted. It never
// fails to decode, so that each format can say itself what is an error.
type value struct {
	kind   kind
	text   string // of a string; of a number as it is written
	damage damage
}

// damage counts what is no character in a text.
type damage struct{ replaced, nuls int64 }

func (d *damage) add(more damage) {
	d.replaced += more.replaced
	d.nuls += more.nuls
}

// UnmarshalJSON implements json.Unmarshaler.
func (v *value) UnmarshalJSON(b []byte) error {
	*v = value{}
	switch c := b[0]; {
	case c == '"':
		v.kind = aString
		v.text, v.damage = unquote(b)
	case c == '-' || '0' <= c && c <= '9':
		v.kind, v.text = aNumber, string(b)
	case c != 'n':
		v.kind = other
	}
	return nil
}

// unquote gives the text of a JSON string, which is known to be well formed.
// encoding/json would replace what is no character without a word.
func unquote(b []byte) (string, damage) {
	b = b[1 : len(b)-1]
	plain := utf8.Valid(b)
	for i := 0; plain && i < len(b); i++ {
		plain = b[i] != '\\' && b[i] != 0
	}
	if plain {
		return string(b), damage{}
	}
	var d damage
	var out strings.Builder
	out.Grow(len(b))
	for len(b) > 0 {
		if b[0] != '\\' {
			r, size := utf8.DecodeRune(b)
			switch {
			case r == utf8.RuneError && size == 1:
				d.replaced++
			case r == 0:
				d.nuls++
				r = utf8.RuneError
			}
			out.WriteRune(r)
			b = b[size:]
			continue
		}
		if b[1] != 'u' {
			out.WriteByte(escaped(b[1]))
			b = b[2:]
			continue
		}
		r := hexRune(b)
		b = b[6:]
		if utf16.IsSurrogate(r) {
			r = utf16.DecodeRune(r, hexRune(b))
			if r == utf8.RuneError {
				d.replaced++
			} else {
				b = b[6:]
			}
		}
		if r == 0 {
			d.nuls++
			r = utf8.RuneError
		}
		out.WriteRune(r)
	}
	return out.String(), d
}

// escaped is the character that a backslash and c stand for.
func escaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hexRune reads \uXXXX at the beginning of b, and gives -1 if something else is there.
func hexRune(b []byte) rune {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}

// cleaned does to a text what unquote does.
func cleaned(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, replacement), "\x00", replacement)
}

// cut gives at most n bytes of s, up to the end of a rune.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
