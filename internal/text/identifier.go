package text

import "unicode/utf8"

// word emits the word or identifier that begins at i, and returns how many
// words it counts for and where it ends.
func (a *Analyzer) word(i int) (n, end int) {
	if j := a.plain(i); j > 0 {
		return a.putWord(a.whole, kindWord), j
	}
	i = a.scan(i)
	suffix := a.suffix(i)
	end = i + len(suffix)
	switch {
	case len(a.parts) == 0:
		return 0, end
	case len(a.parts) == 1 && suffix == "":
		return a.putWord(a.part(0), kindWord), end
	}
	if a.query != nil {
		a.query.ident = a.query.ident[:0]
	}
	for k := range a.parts {
		n += a.putWord(a.part(k), kindPart)
	}
	a.whole = append(a.whole, suffix...)
	if utf8.RuneCount(a.whole) <= MaxTermRunes && !isStop(a.whole) {
		a.put(a.stemmed(a.whole), kindWhole)
		n = max(n, 1) // to-do is a word, though its parts are none
	}
	return n, end
}

// plain reads the ASCII word at i into whole if that is all there is: letters
// without a change of case, and nothing after them that could hold an
// identifier together. It returns where the word ends, or 0. Most words of
// English text are plain; scan would find the same.
func (a *Analyzer) plain(i int) (end int) {
	b := a.buf
	w := a.whole[:0]
	upper := 0
	j := i
	for ; j < len(b); j++ {
		c := b[j]
		if 'A' <= c && c <= 'Z' {
			upper++
			if upper != j-i+1 { // a capital after a small letter
				return 0
			}
			c += 'a' - 'A'
		} else if c < 'a' || c > 'z' {
			break
		}
		w = append(w, c)
	}
	a.whole = w
	if upper > 1 && upper < len(w) || len(w) == 0 || len(w) > MaxTermRunes {
		return 0
	}
	if j == len(b) {
		return j
	}
	switch c := b[j]; {
	case c == ' ', c == ',':
		return j
	case c >= utf8.RuneSelf, c == '+', c == '#', c == '_', isWordClass(asciiClass[c]):
		return 0
	case connectorAt(b, j) == 0:
		return j
	case j+1 < len(b) && (b[j+1] >= utf8.RuneSelf || isWordClass(asciiClass[b[j+1]]) || b[j+1] == ':'):
		return 0
	}
	return j
}

// A span is a part of an identifier: where it lies in Analyzer.whole.
type span struct{ start, end int }

func (a *Analyzer) part(k int) []byte {
	return a.whole[a.parts[k].start:a.parts[k].end]
}

// scan reads the word or identifier at i into whole and parts, and returns
// where it ends.
func (a *Analyzer) scan(i int) (end int) {
	b := a.buf
	a.whole, a.parts = a.whole[:0], a.parts[:0]
	apostrophe := false
	for {
		start, had := len(a.whole), len(a.parts)
		i = a.letters(i)
		if apostrophe {
			a.clitic(start, had)
		}
		size := connectorAt(b, i)
		if size == 0 || len(a.parts) >= maxParts || i+size >= len(b) {
			return i
		}
		if c, _ := classAt(b, i+size); !isWordClass(c) {
			return i
		}
		apostrophe = b[i] == '\'' || size == 3 && b[i+2] == 0x99
		if isDigitByte(b[i-1]) && isDigitByte(b[i+size]) {
			// Without it 1.25 and 12.5 would be one term.
			a.whole = append(a.whole, b[i:i+size]...)
		}
		i += size
	}
}

// connectorAt gives the size of the connector at b[i], 0 if there is none.
func connectorAt(b []byte, i int) int {
	if i >= len(b) {
		return 0
	}
	switch b[i] {
	case '_', '-', '.', '/', '\\', '@', '\'', '&', '+', '#':
		return 1
	case ':':
		if i+1 < len(b) && b[i+1] == ':' {
			return 2
		}
		return 1
	case 0xE2:
		// U+2019, the apostrophe of typeset text, and U+2010, the hyphen.
		if i+2 < len(b) && b[i+1] == 0x80 && (b[i+2] == 0x99 || b[i+2] == 0x90) {
			return 3
		}
	}
	return 0
}

func isDigitByte(c byte) bool { return '0' <= c && c <= '9' }

// suffix gives what makes C++ and C# more than C.
func (a *Analyzer) suffix(i int) string {
	b := a.buf[i:]
	switch {
	case len(b) >= 2 && b[0] == '+' && b[1] == '+' && (len(b) == 2 || b[2] != '+'):
		return "++"
	case len(b) >= 1 && b[0] == '#' && (len(b) == 1 || b[1] != '#'):
		return "#"
	}
	return ""
}

// clitic takes off what an apostrophe joined to a word without being one: the
// possessive and the shortened verbs; with n't the verb goes as well, for it is
// a stop word in all its forms. The piece after the apostrophe is
// whole[start:], whose parts begin at had.
func (a *Analyzer) clitic(start, had int) {
	switch string(a.whole[start:]) {
	case "s", "m", "re", "ve", "ll", "d":
	case "t":
		if had == 0 || start == 0 || a.whole[start-1] != 'n' {
			return
		}
		had--
		start = a.parts[had].start
	default:
		return
	}
	a.whole, a.parts = a.whole[:start], a.parts[:had]
}

// letters reads the run of letters, digits and marks at i into whole, folded,
// and its parts into parts, and returns where it ends. It is cut where a small
// letter meets a capital, before the last of several capitals that a small
// letter follows (XMLParser), and where letters meet digits.
func (a *Analyzer) letters(i int) (end int) {
	b := a.buf
	start := len(a.whole)
	a.cuts = a.cuts[:0]
	runes := 0
	prev := classOther
	capitals, last := 0, start // capitals in a row, and where the last began in whole
	for i < len(b) {
		c, size := classAt(b, i)
		if c == classMark || c == classIgnore {
			if r, _ := utf8.DecodeRune(b[i:]); c == classMark && runes < MaxTermRunes && !isDroppedMark(r) {
				a.whole = append(a.whole, b[i:i+size]...)
				runes++
			}
			i += size
			continue
		}
		if !isWordClass(c) {
			if prev == classDigit && thousands(b, i) {
				i++
				continue
			}
			break
		}
		if prev != classOther && runes < MaxTermRunes {
			switch {
			case (c == classDigit) != (prev == classDigit), c == classUpper && prev == classLetter:
				a.cut(len(a.whole))
			case c == classLetter && capitals > 1 && !a.plural(i, size):
				a.cut(last)
			}
		}
		if c == classUpper {
			capitals, last = capitals+1, len(a.whole)
		} else {
			capitals = 0
		}
		if runes < MaxTermRunes {
			if size == 1 {
				a.whole = append(a.whole, lowerASCII(b[i]))
				runes++
			} else {
				r, _ := utf8.DecodeRune(b[i:])
				at := len(a.whole)
				a.whole = appendTermRune(a.whole, r)
				runes += utf8.RuneCount(a.whole[at:])
			}
		}
		prev = c
		i += size
	}
	if runes >= MaxTermRunes || len(a.cuts) > maxCuts {
		a.cuts = a.cuts[:0]
	}
	for _, c := range a.cuts {
		a.parts = append(a.parts, span{start, c})
		start = c
	}
	a.parts = append(a.parts, span{start, len(a.whole)})
	return i
}

func (a *Analyzer) cut(at int) {
	if n := len(a.cuts); n <= maxCuts && (n == 0 || a.cuts[n-1] < at) {
		a.cuts = append(a.cuts, at)
	}
}

// plural reports whether the small letter at i is the s of APIs.
func (a *Analyzer) plural(i, size int) bool {
	if a.buf[i] != 's' {
		return false
	}
	if i+size == len(a.buf) {
		return true
	}
	c, _ := classAt(a.buf, i+size)
	return !isWordClass(c)
}

// thousands reports whether the comma at i separates thousands: 1,000 is 1000.
func thousands(b []byte, i int) bool {
	if b[i] != ',' || i+3 >= len(b) {
		return false
	}
	if !isDigitByte(b[i+1]) || !isDigitByte(b[i+2]) || !isDigitByte(b[i+3]) {
		return false
	}
	return i+4 == len(b) || !isDigitByte(b[i+4])
}
