package note

import (
	"bytes"
	"encoding/binary"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/loci-memory/loci/internal/errs"
)

// The encodings that Decode knows.
const (
	UTF8    = "utf-8"
	UTF16LE = "utf-16le"
	UTF16BE = "utf-16be"
	GBK     = "gbk"
	GB18030 = "gb18030"
)

// Decode reads a text file and says how it was encoded. A byte order mark is
// obeyed and dropped. Without one, valid UTF-8 is UTF-8; UTF-16 is recognised
// by its zero bytes, and GBK with its extension GB18030 if every byte fits and
// the result looks like Chinese. Anything else is refused, and so is what
// decodes but is no text: a wrong guess would be stored as if it were right.
func Decode(data []byte) (text, encoding string, err error) {
	switch {
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		text, encoding = string(data[3:]), UTF8
		if !utf8.ValidString(text) {
			return "", "", notText("has the byte order mark of UTF-8, but is not UTF-8")
		}
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		encoding = UTF16LE
		if text, err = decodeMarked(data[2:], binary.LittleEndian); err != nil {
			return "", "", err
		}
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		encoding = UTF16BE
		if text, err = decodeMarked(data[2:], binary.BigEndian); err != nil {
			return "", "", err
		}
	case bytes.IndexByte(data, 0) >= 0:
		if text, encoding = guessUTF16(data); encoding == "" {
			return "", "", notText("is a binary file")
		}
	case utf8.Valid(data):
		text, encoding = string(data), UTF8
	default:
		if text, encoding = guessGBK(data); encoding == "" {
			return "", "", notText("is neither UTF-8 nor UTF-16 nor GBK")
		}
	}
	if isBinary(text) {
		return "", "", notText("is a binary file")
	}
	return text, encoding, nil
}

func notText(why string) error {
	return errs.Invalid("content", "%s; notes are text in one of these encodings: UTF-8, UTF-16, GBK, GB18030", why)
}

// isBinary is true for a zero character and for many control characters. Some
// text has a few: form feeds, escape sequences of terminals.
func isBinary(s string) bool {
	controls := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c == 0:
			return true
		case c < ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f':
			controls++
		}
	}
	return controls > 4+len(s)/100
}

func decodeMarked(data []byte, order binary.ByteOrder) (string, error) {
	text, ok := decodeUTF16(data, order)
	if !ok {
		return "", notText("has the byte order mark of UTF-16, but is not UTF-16")
	}
	return text, nil
}

// decodeUTF16 fails on half a character: an odd byte, a lone surrogate.
func decodeUTF16(data []byte, order binary.ByteOrder) (string, bool) {
	if len(data)%2 != 0 {
		return "", false
	}
	var b strings.Builder
	b.Grow(len(data))
	for i := 0; i < len(data); i += 2 {
		r := rune(order.Uint16(data[i:]))
		if utf16.IsSurrogate(r) {
			if i += 2; i >= len(data) {
				return "", false
			}
			if r = utf16.DecodeRune(r, rune(order.Uint16(data[i:]))); r == utf8.RuneError {
				return "", false
			}
		}
		b.WriteRune(r)
	}
	return b.String(), true
}

// guessUTF16 takes data with zero bytes for UTF-16 if one byte order gives
// nothing but assigned characters and more ASCII than the other. Read in the
// wrong order, blanks, digits and letters become characters that are rare or
// do not exist.
func guessUTF16(data []byte) (text, encoding string) {
	le, okLE := decodeUTF16(data, binary.LittleEndian)
	be, okBE := decodeUTF16(data, binary.BigEndian)
	asciiLE, asciiBE := -1, -1
	if okLE && isPrintable(le) {
		asciiLE = countASCII(le)
	}
	if okBE && isPrintable(be) {
		asciiBE = countASCII(be)
	}
	switch {
	case asciiLE > 0 && asciiLE > 4*asciiBE:
		return le, UTF16LE
	case asciiBE > 0 && asciiBE > 4*asciiLE:
		return be, UTF16BE
	}
	return "", ""
}

func countASCII(s string) int {
	n := 0
	for i := range len(s) {
		if s[i] < utf8.RuneSelf {
			n++
		}
	}
	return n
}

// isPrintable is true for text without zero characters, code points that are
// not assigned or for private use, and with hardly a control character.
func isPrintable(s string) bool {
	controls := 0
	for _, r := range s {
		switch {
		case r == '\t' || r == '\n' || r == '\r' || r == '\f':
		case r == 0 || r == utf8.RuneError:
			return false
		case r < ' ' || r == 0x7f:
			controls++
		case r < utf8.RuneSelf || isIdeograph(r):
		case !unicode.In(r, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S, unicode.Zs, unicode.Cf):
			return false
		}
	}
	return 200*controls <= len(s)
}

// guessGBK takes data for GBK if all of it decodes, and half of the pairs of
// bytes are among the most common: GB 2312 has sorted its characters by use,
// so other encodings, whose bytes fit as well, give mostly rare ones.
func guessGBK(data []byte) (text, encoding string) {
	if isDamagedUTF8(data) {
		return "", ""
	}
	pairs, common, kana, frequent, quads := 0, 0, 0, 0, 0
	for i := 0; i < len(data); i++ {
		c := data[i]
		if c < utf8.RuneSelf {
			continue
		}
		if i+3 < len(data) && '0' <= data[i+1] && data[i+1] <= '9' {
			quads++
			i += 3
			continue
		}
		if i++; i >= len(data) {
			return "", ""
		}
		pairs++
		if d := data[i]; d >= 0xA1 {
			switch {
			case c == 0xA4 || c == 0xA5:
				kana++
			case 0xB0 <= c && c <= 0xD7 || 0xA1 <= c && c <= 0xA3:
				common++
			}
			if mostFrequent[uint16(c)<<8|uint16(d)] {
				frequent++
			}
		}
	}
	if 2*common < pairs || 5*kana > pairs || quads > pairs {
		return "", ""
	}
	// The same bytes may be common in Korean. In Chinese of some length a
	// quarter is made of a few dozen characters.
	if pairs >= 200 && 50*frequent < pairs {
		return "", ""
	}
	out, err := simplifiedchinese.GB18030.NewDecoder().Bytes(data)
	if err != nil || !isPrintable(string(out)) {
		return "", ""
	}
	if quads > 0 {
		return string(out), GB18030
	}
	return string(out), GBK
}

// isDamagedUTF8 is true if most of what is not ASCII are characters of three
// bytes, as in Chinese UTF-8 with a few broken ones.
func isDamagedUTF8(data []byte) bool {
	good, high := 0, 0
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if data[0] >= utf8.RuneSelf {
			high += size
			if r != utf8.RuneError && size > 2 {
				good += size
			}
		}
		data = data[size:]
	}
	return 2*good > high
}

// mostFrequent are the GBK codes of the most frequent characters and marks.
var mostFrequent = frequentTable()

func frequentTable() map[uint16]bool {
	const chars = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面而方后多定行学法所民得经，。、：；（）"
	m := make(map[uint16]bool)
	enc, err := simplifiedchinese.GBK.NewEncoder().String(chars)
	for i := 0; err == nil && i+1 < len(enc); i += 2 {
		m[uint16(enc[i])<<8|uint16(enc[i+1])] = true
	}
	return m
}
