package text

import (
	"unicode"
	"unicode/utf8"
)

// appendFold appends the full case folding of r. It is golang.org/x/text's
// cases.Fold for every code point, without its buffers, except that Cherokee
// is mapped one way: small letters become capital ones, as Unicode's
// CaseFolding.txt has it, where cases.Fold would swap the two for ever.
func appendFold(dst []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		if 'A' <= r && r <= 'Z' {
			r += 'a' - 'A'
		}
		return append(dst, byte(r))
	}
	if isCaseless(r) {
		return utf8.AppendRune(dst, r)
	}
	if s, ok := specialFolds[r]; ok {
		return append(dst, s...)
	}
	switch {
	case 0xAB70 <= r && r <= 0xABBF: // Cherokee small letters
		r -= 0xAB70 - 0x13A0
	case 0x13F8 <= r && r <= 0x13FD:
		r -= 8
	case 0x13A0 <= r && r <= 0x13F5:
	case 0x1F80 <= r && r <= 0x1FAF: // Greek with a iota below, capital or not
		return append(utf8.AppendRune(dst, foldIota(r)), "ι"...)
	default:
		r = unicode.ToLower(r)
	}
	return utf8.AppendRune(dst, r)
}

// foldIota gives the base letter of U+1F80..U+1FAF: rows of eight small and
// eight capital letters over alpha, eta and omega.
func foldIota(r rune) rune {
	row := [...]rune{0x1F00, 0x1F20, 0x1F60}[(r-0x1F80)/16]
	return row + (r-0x1F80)%8
}

// isCaseless is true for the bulk of the letters that have no case.
func isCaseless(r rune) bool {
	return 0x2E80 <= r && r < 0xA640 || 0xAC00 <= r && r < 0xFB00 || 0x20000 <= r && r < 0x40000
}

// specialFolds holds the code points whose folding is not their lower case.
var specialFolds = map[rune]string{
	0x00B5: "μ",
	0x00DF: "ss",
	0x0130: "i\u0307",
	0x0149: "ʼn",
	0x017F: "s",
	0x01F0: "j\u030C",
	0x0345: "ι",
	0x0390: "ι\u0308\u0301",
	0x03B0: "υ\u0308\u0301",
	0x03C2: "σ",
	0x03D0: "β",
	0x03D1: "θ",
	0x03D5: "φ",
	0x03D6: "π",
	0x03F0: "κ",
	0x03F1: "ρ",
	0x03F5: "ε",
	0x0587: "եւ",
	0x1C80: "в",
	0x1C81: "д",
	0x1C82: "о",
	0x1C83: "с",
	0x1C84: "т",
	0x1C85: "т",
	0x1C86: "ъ",
	0x1C87: "ѣ",
	0x1C88: "ꙋ",
	0x1E96: "h\u0331",
	0x1E97: "t\u0308",
	0x1E98: "w\u030A",
	0x1E99: "y\u030A",
	0x1E9A: "aʾ",
	0x1E9B: "ṡ",
	0x1E9E: "ss",
	0x1F50: "υ\u0313",
	0x1F52: "υ\u0313\u0300",
	0x1F54: "υ\u0313\u0301",
	0x1F56: "υ\u0313\u0342",
	0x1FB2: "ὰι",
	0x1FB3: "αι",
	0x1FB4: "άι",
	0x1FB6: "α\u0342",
	0x1FB7: "α\u0342ι",
	0x1FBC: "αι",
	0x1FBE: "ι",
	0x1FC2: "ὴι",
	0x1FC3: "ηι",
	0x1FC4: "ήι",
	0x1FC6: "η\u0342",
	0x1FC7: "η\u0342ι",
	0x1FCC: "ηι",
	0x1FD2: "ι\u0308\u0300",
	0x1FD3: "ι\u0308\u0301",
	0x1FD6: "ι\u0342",
	0x1FD7: "ι\u0308\u0342",
	0x1FE2: "υ\u0308\u0300",
	0x1FE3: "υ\u0308\u0301",
	0x1FE4: "ρ\u0313",
	0x1FE6: "υ\u0342",
	0x1FE7: "υ\u0308\u0342",
	0x1FF2: "ὼι",
	0x1FF3: "ωι",
	0x1FF4: "ώι",
	0x1FF6: "ω\u0342",
	0x1FF7: "ω\u0342ι",
	0x1FFC: "ωι",
	0xFB00: "ff",
	0xFB01: "fi",
	0xFB02: "fl",
	0xFB03: "ffi",
	0xFB04: "ffl",
	0xFB05: "st",
	0xFB06: "st",
	0xFB13: "մն",
	0xFB14: "մե",
	0xFB15: "մի",
	0xFB16: "վն",
	0xFB17: "մխ",
}
