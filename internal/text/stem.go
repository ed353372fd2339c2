package text

// stem takes the inflection off an English word in place and returns what is
// left, which may be a byte longer than was left after cutting ("hoping":
// "hope") but never longer than the word. The word must be of the letters
// a to z. It is M. F. Porter's second English stemmer
// (https://snowballstem.org/algorithms/english/stemmer.html); regions R1 and R2
// and the step numbers are his.
func stem(w []byte) []byte {
	if len(w) <= 2 {
		return w
	}
	if to, ok := exception(w); ok {
		return append(w[:0], to...)
	}
	markY(w)
	s := stemmer{w: w}
	s.regions()
	s.step1a()
	if !s.invariant() {
		s.step1b()
		s.step1c()
		s.step2()
		s.step3()
		s.step4()
		s.step5()
	}
	for i, c := range s.w {
		if c == 'Y' {
			s.w[i] = 'y'
		}
	}
	return s.w
}

// stemmer is a word on its way; r1 and r2 are where its regions begin.
type stemmer struct {
	w      []byte
	r1, r2 int
}

// exception gives the stems of words that the rules would get wrong.
func exception(w []byte) (string, bool) {
	if len(w) < 3 || len(w) > 6 {
		return "", false
	}
	switch string(w) {
	case "skis":
		return "ski", true
	case "skies":
		return "sky", true
	case "dying":
		return "die", true
	case "lying":
		return "lie", true
	case "tying":
		return "tie", true
	case "idly":
		return "idl", true
	case "gently":
		return "gentl", true
	case "ugly":
		return "ugli", true
	case "early":
		return "earli", true
	case "only":
		return "onli", true
	case "singly":
		return "singl", true
	case "sky":
		return "sky", true
	case "news":
		return "news", true
	case "howe":
		return "howe", true
	case "atlas":
		return "atlas", true
	case "cosmos":
		return "cosmos", true
	case "bias":
		return "bias", true
	case "andes":
		return "andes", true
	}
	return "", false
}

// invariant holds for words that are finished after step 1a.
func (s *stemmer) invariant() bool {
	if len(s.w) < 6 || len(s.w) > 7 {
		return false
	}
	switch string(s.w) {
	case "inning", "outing", "canning", "herring", "earring", "proceed", "exceed", "succeed":
		return true
	}
	return false
}

// markY makes a y that is a consonant, at the start or after a vowel, a Y.
func markY(w []byte) {
	if w[0] == 'y' {
		w[0] = 'Y'
	}
	for i := 1; i < len(w); i++ {
		if w[i] == 'y' && isVowel(w[i-1]) {
			w[i] = 'Y'
		}
	}
}

func isVowel(c byte) bool {
	switch c {
	case 'a', 'e', 'i', 'o', 'u', 'y':
		return true
	}
	return false
}

func (s *stemmer) regions() {
	from := 0
	switch w := s.w; {
	case len(w) >= 5 && (string(w[:5]) == "gener" || string(w[:5]) == "arsen"):
		from = 5
	case len(w) >= 6 && string(w[:6]) == "commun":
		from = 6
	}
	s.r1 = from
	if from == 0 {
		s.r1 = s.region(0)
	}
	s.r2 = s.region(s.r1)
}

// region is the position after the first consonant that follows a vowel, both
// at or after from.
func (s *stemmer) region(from int) int {
	i := from
	for i < len(s.w) && !isVowel(s.w[i]) {
		i++
	}
	for i < len(s.w) && isVowel(s.w[i]) {
		i++
	}
	return min(i+1, len(s.w))
}

func (s *stemmer) has(suffix string) bool {
	n := len(s.w) - len(suffix)
	return n >= 0 && string(s.w[n:]) == suffix
}

// inR1 and inR2 report whether a suffix of n letters lies in the region.
func (s *stemmer) inR1(n int) bool { return len(s.w)-n >= s.r1 }
func (s *stemmer) inR2(n int) bool { return len(s.w)-n >= s.r2 }

// swap puts to in place of the last n letters.
func (s *stemmer) swap(n int, to string) {
	s.w = append(s.w[:len(s.w)-n], to...)
}

// vowelBefore reports whether there is a vowel before the last n letters.
func (s *stemmer) vowelBefore(n int) bool {
	for _, c := range s.w[:max(len(s.w)-n, 0)] {
		if isVowel(c) {
			return true
		}
	}
	return false
}

// shortBefore reports whether what stands before the last n letters ends in a
// short syllable.
func (s *stemmer) shortBefore(n int) bool {
	w := s.w[:len(s.w)-n]
	k := len(w)
	switch {
	case k == 2:
		return isVowel(w[0]) && !isVowel(w[1])
	case k > 2:
		c := w[k-1]
		return !isVowel(w[k-3]) && isVowel(w[k-2]) && !isVowel(c) && c != 'w' && c != 'x' && c != 'Y'
	}
	return false
}

func (s *stemmer) step1a() {
	if c := s.w[len(s.w)-1]; c != 's' && c != 'd' {
		return
	}
	switch {
	case s.has("sses"):
		s.swap(2, "")
	case s.has("ied"), s.has("ies"):
		if len(s.w) > 4 {
			s.swap(2, "")
		} else {
			s.swap(1, "")
		}
	case s.has("us"), s.has("ss"):
	case s.has("s"):
		if s.vowelBefore(2) {
			s.swap(1, "")
		}
	}
}

func (s *stemmer) step1b() {
	switch s.w[len(s.w)-1] {
	case 'd', 'g', 'y':
	default:
		return
	}
	n := 0
	switch {
	case s.has("eedly"):
		n = -5
	case s.has("ingly"):
		n = 5
	case s.has("edly"):
		n = 4
	case s.has("eed"):
		n = -3
	case s.has("ing"):
		n = 3
	case s.has("ed"):
		n = 2
	}
	switch {
	case n == 0:
		return
	case n < 0:
		if s.inR1(-n) {
			s.swap(-n, "ee")
		}
		return
	case !s.vowelBefore(n):
		return
	}
	s.swap(n, "")
	k := len(s.w)
	switch {
	case s.has("at"), s.has("bl"), s.has("iz"):
		s.w = append(s.w, 'e')
	case k >= 2 && s.w[k-1] == s.w[k-2] && isDouble(s.w[k-1]):
		s.w = s.w[:k-1]
	case s.r1 >= k && s.shortBefore(0):
		s.w = append(s.w, 'e')
	}
}

func isDouble(c byte) bool {
	switch c {
	case 'b', 'd', 'f', 'g', 'm', 'n', 'p', 'r', 't':
		return true
	}
	return false
}

func (s *stemmer) step1c() {
	k := len(s.w)
	if k > 2 && (s.w[k-1] == 'y' || s.w[k-1] == 'Y') && !isVowel(s.w[k-2]) {
		s.w[k-1] = 'i'
	}
}

// A rule says what becomes of a suffix. Of several that fit, the longest
// counts, so it stands first.
type rule struct{ suffix, to string }

// The rules of steps 2 to 4 by the last two letters of their suffixes.
var (
	rules2al = []rule{{"ational", "ate"}, {"tional", "tion"}}
	rules2ss = []rule{{"fulness", "ful"}, {"iveness", "ive"}, {"ousness", "ous"}}
	rules2on = []rule{{"ization", "ize"}, {"ation", "ate"}}
	rules2ti = []rule{{"biliti", "ble"}, {"aliti", "al"}, {"iviti", "ive"}}
	rules2li = []rule{{"lessli", "less"}, {"entli", "ent"}, {"fulli", "ful"}, {"ousli", "ous"}, {"abli", "able"},
		{"alli", "al"}, {"bli", "ble"}, {"li", ""}}
	rules2sm = []rule{{"alism", "al"}}
	rules2ci = []rule{{"anci", "ance"}, {"enci", "ence"}}
	rules2or = []rule{{"ator", "ate"}}
	rules2er = []rule{{"izer", "ize"}}
	rules2gi = []rule{{"ogi", "og"}}

	rules3al = []rule{{"ational", "ate"}, {"tional", "tion"}, {"ical", "ic"}}
	rules3ze = []rule{{"alize", "al"}}
	rules3ve = []rule{{"ative", ""}}
	rules3te = []rule{{"icate", "ic"}}
	rules3ti = []rule{{"iciti", "ic"}}
	rules3ss = []rule{{"ness", ""}}
	rules3ul = []rule{{"ful", ""}}

	rules4nt = []rule{{"ement", ""}, {"ment", ""}, {"ant", ""}, {"ent", ""}}
	rules4le = []rule{{"able", ""}, {"ible", ""}}
	rules4ce = []rule{{"ance", ""}, {"ence", ""}}
	rules4te = []rule{{"ate", ""}}
	rules4on = []rule{{"ion", ""}}
	rules4sm = []rule{{"ism", ""}}
	rules4ti = []rule{{"iti", ""}}
	rules4ve = []rule{{"ive", ""}}
	rules4ze = []rule{{"ize", ""}}
	rules4us = []rule{{"ous", ""}}
	rules4al = []rule{{"al", ""}}
	rules4er = []rule{{"er", ""}}
	rules4ic = []rule{{"ic", ""}}
)

// find gives the first of the rules whose suffix the word has.
func (s *stemmer) find(rules []rule) (r rule, ok bool) {
	for _, r := range rules {
		if s.has(r.suffix) {
			return r, true
		}
	}
	return rule{}, false
}

// ending gives the last two letters as a number, 0 when they do not both lie
// at or after from.
func (s *stemmer) ending(from int) int {
	k := len(s.w)
	if k-2 < from || k < 2 {
		return 0
	}
	return int(s.w[k-2])<<8 | int(s.w[k-1])
}

func (s *stemmer) step2() {
	var rules []rule
	switch s.ending(s.r1) {
	case 'a'<<8 | 'l':
		rules = rules2al
	case 's'<<8 | 's':
		rules = rules2ss
	case 'o'<<8 | 'n':
		rules = rules2on
	case 't'<<8 | 'i':
		rules = rules2ti
	case 'l'<<8 | 'i':
		rules = rules2li
	case 's'<<8 | 'm':
		rules = rules2sm
	case 'c'<<8 | 'i':
		rules = rules2ci
	case 'o'<<8 | 'r':
		rules = rules2or
	case 'e'<<8 | 'r':
		rules = rules2er
	case 'g'<<8 | 'i':
		rules = rules2gi
	}
	r, ok := s.find(rules)
	n := len(r.suffix)
	if !ok || !s.inR1(n) {
		return
	}
	switch r.suffix {
	case "ogi":
		if k := len(s.w) - n; k == 0 || s.w[k-1] != 'l' {
			return
		}
	case "li":
		if k := len(s.w) - n; k == 0 || !isLiEnding(s.w[k-1]) {
			return
		}
	}
	s.swap(n, r.to)
}

func isLiEnding(c byte) bool {
	switch c {
	case 'c', 'd', 'e', 'g', 'h', 'k', 'm', 'n', 'r', 't':
		return true
	}
	return false
}

func (s *stemmer) step3() {
	var rules []rule
	switch s.ending(s.r1) {
	case 'a'<<8 | 'l':
		rules = rules3al
	case 'z'<<8 | 'e':
		rules = rules3ze
	case 'v'<<8 | 'e':
		rules = rules3ve
	case 't'<<8 | 'e':
		rules = rules3te
	case 't'<<8 | 'i':
		rules = rules3ti
	case 's'<<8 | 's':
		rules = rules3ss
	case 'u'<<8 | 'l':
		rules = rules3ul
	}
	r, ok := s.find(rules)
	if n := len(r.suffix); ok && s.inR1(n) && (r.suffix != "ative" || s.inR2(n)) {
		s.swap(n, r.to)
	}
}

func (s *stemmer) step4() {
	var rules []rule
	switch s.ending(s.r2) {
	case 'n'<<8 | 't':
		rules = rules4nt
	case 'l'<<8 | 'e':
		rules = rules4le
	case 'c'<<8 | 'e':
		rules = rules4ce
	case 't'<<8 | 'e':
		rules = rules4te
	case 'o'<<8 | 'n':
		rules = rules4on
	case 's'<<8 | 'm':
		rules = rules4sm
	case 't'<<8 | 'i':
		rules = rules4ti
	case 'v'<<8 | 'e':
		rules = rules4ve
	case 'z'<<8 | 'e':
		rules = rules4ze
	case 'u'<<8 | 's':
		rules = rules4us
	case 'a'<<8 | 'l':
		rules = rules4al
	case 'e'<<8 | 'r':
		rules = rules4er
	case 'i'<<8 | 'c':
		rules = rules4ic
	}
	r, ok := s.find(rules)
	n := len(r.suffix)
	if !ok || !s.inR2(n) {
		return
	}
	if r.suffix == "ion" {
		if k := len(s.w) - n; k == 0 || s.w[k-1] != 's' && s.w[k-1] != 't' {
			return
		}
	}
	s.swap(n, "")
}

func (s *stemmer) step5() {
	k := len(s.w)
	switch s.w[k-1] {
	case 'e':
		if s.inR2(1) || s.inR1(1) && !s.shortBefore(1) {
			s.w = s.w[:k-1]
		}
	case 'l':
		if s.inR2(1) && k > 1 && s.w[k-2] == 'l' {
			s.w = s.w[:k-1]
		}
	}
}
