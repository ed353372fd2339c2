package text

import "unicode"

// class says what a rune is to the analyser.
type class uint8

const (
	classOther  class = iota // separates
	classLetter              // a letter with case or of a script with blanks between words
	classUpper               // a capital letter
	classDigit               // any number character
	classCJK                 // a character of a script written without blanks
	classMark                // belongs to the character before it
	classIgnore              // invisible: passed over inside a word
)

// asciiClass is classOf for ASCII.
var asciiClass = func() (t [128]class) {
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = classLetter, classUpper
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = classDigit
	}
	return t
}()

// isWordClass holds for what a word is made of.
func isWordClass(c class) bool {
	return c == classLetter || c == classUpper || c == classDigit
}

// classOf gives the class of a rune of text in NFKC form.
func classOf(r rune) class {
	switch {
	case r < 0x80:
		return asciiClass[r]
	case 0x4E00 <= r && r < 0xA000, 0x3400 <= r && r < 0x4DC0, 0xAC00 <= r && r < 0xD7A4:
		return classCJK
	case 0x2000 <= r && r < 0x2070: // general punctuation
		if r == 0x200C || r == 0x200D || 0x2060 <= r && r <= 0x2064 {
			return classIgnore
		}
		return classOther
	case 0x3000 <= r && r < 0x3100:
		return classOfKana(r)
	}
	return classOfRest(r)
}

// classOfKana covers U+3000..U+30FF: CJK punctuation and kana.
func classOfKana(r rune) class {
	switch {
	case 0x3041 <= r && r < 0x3097, 0x309D <= r && r < 0x30A0, 0x30A1 <= r && r < 0x30FB, 0x30FC <= r:
		return classCJK
	case 0x3005 <= r && r < 0x3008, 0x3021 <= r && r < 0x302A, 0x3031 <= r && r < 0x3036, 0x3038 <= r && r < 0x303D:
		return classCJK
	case 0x302A <= r && r < 0x3030, r == 0x3099, r == 0x309A:
		return classMark
	}
	return classOther
}

// unspaced holds the other scripts written without blanks between words.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Bopomofo,
	unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

func classOfRest(r rune) class {
	switch {
	case unicode.IsLetter(r):
		switch {
		case r < 0x0E00:
		case unicode.In(r, unspaced...):
			return classCJK
		}
		if unicode.IsUpper(r) {
			return classUpper
		}
		return classLetter
	case unicode.IsNumber(r):
		return classDigit
	case unicode.IsMark(r):
		// Vowel signs of the unspaced scripts count as characters of their own.
		if 0x0E00 <= r && r < 0x1800 && unicode.In(r, unspaced...) {
			return classCJK
		}
		return classMark
	case unicode.Is(unicode.Cf, r):
		return classIgnore
	}
	return classOther
}

// isHan reports whether r is a Chinese character.
func isHan(r rune) bool {
	if 0x4E00 <= r && r < 0xA000 {
		return true
	}
	return r >= 0x3005 && unicode.Is(unicode.Han, r)
}

// inWord reports whether a rune belongs to a word of a script with blanks
// between words.
func inWord(r rune) bool {
	c := classOf(r)
	return isWordClass(c) || c == classMark
}
