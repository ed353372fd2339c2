// Package secretscan finds what looks like a secret in a text: keys and tokens
// of well-known services, private keys, passwords, card numbers. It would rather
// miss a secret that nothing tells from a word than take words for secrets.
//
// A text is read once, from its beginning to its end: the time it takes grows
// with its length alone, whatever is in it.
package secretscan

import (
	"slices"
	"strings"
	"sync"
)

// Hit is one secret in a text: its bytes from Start to before End.
type Hit struct {
	Start, End int
	Rule       string // what it looks like, such as "github-token"
}

// Find gives the secrets of a text in its order. They do not overlap.
func Find(text string) []Hit {
	var hits []Hit
	sc := scanner{s: text}
	t := triggers()
	for i := 0; i < len(text); {
		next := i + 1
		if t.tells(text, i) || sc.keyID > 0 {
			if h, ok := sc.at(t, i); ok {
				hits = append(hits, h)
				sc.done, next = h.End, h.End
			}
		}
		i = next
	}
	return hits
}

// Rules lists the names of all rules, sorted.
func Rules() []string {
	names := []string{ruleCard, rulePassword, ruleSecret, ruleAWSSecret}
	for _, k := range keyRules() {
		names = append(names, k.name)
	}
	for _, s := range shapes() {
		names = append(names, s.name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// triggerTable says what to try where a byte stands.
type triggerTable struct {
	second [256][256]bool // of the first two bytes of each trigger
	keys   [256][]keyRule
	forms  [256][]shape
	words  [256][]word
}

// tells says that there may be a trigger at i, which is seldom so.
func (t *triggerTable) tells(s string, i int) bool {
	return i+1 < len(s) && t.second[s[i]][s[i+1]]
}

// expect takes up the first two bytes of a trigger, in any case.
func (t *triggerTable) expect(trigger string) {
	for _, a := range []byte{lower(trigger[0]), upper(trigger[0])} {
		for _, b := range []byte{lower(trigger[1]), upper(trigger[1])} {
			t.second[a][b] = true
		}
	}
}

// triggers is the table of all rules. It is made once and never changes.
func triggers() *triggerTable { return madeTriggers() }

var madeTriggers = sync.OnceValue(func() *triggerTable {
	t := &triggerTable{}
	for _, k := range keyRules() {
		t.expect(k.prefix)
		t.keys[k.prefix[0]] = append(t.keys[k.prefix[0]], k)
	}
	for _, s := range shapes() {
		t.expect(s.trigger)
		for _, b := range []byte{lower(s.trigger[0]), upper(s.trigger[0])} {
			if !slices.ContainsFunc(t.forms[b], func(o shape) bool { return o.name == s.name && o.trigger == s.trigger }) {
				t.forms[b] = append(t.forms[b], s)
			}
		}
	}
	for _, w := range words() {
		t.expect(w.text)
		for _, b := range []byte{w.text[0], upper(w.text[0])} {
			if !slices.Contains(t.words[b], w) {
				t.words[b] = append(t.words[b], w)
			}
		}
	}
	for a := byte('0'); a <= '9'; a++ {
		for b := byte('0'); b <= '9'; b++ {
			t.second[a][b] = true
		}
	}
	return t
})

// scanner goes through one text.
type scanner struct {
	s    string
	done int // up to here everything is decided
	runs [classes]span
	// values are the last bare and the last quoted value.
	values [2]span
	// ahead is where landmarks stand.
	ahead [landmarks]span
	// keyID is where the last id of an AWS key ended: its secret stands near it.
	keyID int
}

type span struct{ start, end int }

// at looks for a secret that begins, or gives itself away, at i.
func (c *scanner) at(t *triggerTable, i int) (Hit, bool) {
	b := c.s[i]
	for k := range t.keys[b] {
		if h, ok := c.key(&t.keys[b][k], i); ok {
			return h, true
		}
	}
	for k := range t.forms[b] {
		f := &t.forms[b][k]
		if !hasPrefixFold(c.s[i:], f.trigger) {
			continue
		}
		if start, end, ok := f.find(c, i); ok && start >= c.done && start < end {
			return Hit{start, end, f.name}, true
		}
	}
	if c.keyID > 0 {
		if h, ok := c.awsSecret(i); ok {
			return h, true
		}
	}
	for k := range t.words[b] {
		if h, ok := c.assignment(t, &t.words[b][k], i); ok && h.Start >= c.done {
			return h, true
		}
	}
	if isDigit(b) {
		return c.card(i)
	}
	return Hit{}, false
}

// class is a set of bytes that tokens are made of.
type class int

const (
	alnum       class = iota // letters and digits
	hexadecimal              // 0-9 a-f
	upperDigit               // A-Z 0-9
	word64                   // letters, digits, - and _: base64url
	dotted                   // word64 and the full stop
	underscore               // letters, digits and _
	base64                   // letters, digits, + / and =
	classes     = iota
)

func (k class) has(b byte) bool {
	switch k {
	case hexadecimal:
		return isDigit(b) || b >= 'a' && b <= 'f'
	case upperDigit:
		return isDigit(b) || b >= 'A' && b <= 'Z'
	case word64:
		return isAlnum(b) || b == '-' || b == '_'
	case dotted:
		return isAlnum(b) || b == '-' || b == '_' || b == '.'
	case underscore:
		return isAlnum(b) || b == '_'
	case base64:
		return isAlnum(b) || b == '+' || b == '/' || b == '='
	}
	return isAlnum(b)
}

// run gives the end of the run of a class's bytes from i on. What was looked at
// once is remembered, so that a text that is one run is not read again for each
// of its bytes.
func (c *scanner) run(k class, i int) int {
	known := &c.runs[k]
	if i >= known.start && i < known.end {
		return known.end
	}
	end := i
	for end < len(c.s) && k.has(c.s[end]) {
		end++
	}
	*known = span{i, end}
	return end
}

// begins says that no letter or digit goes before i. Letters of other scripts do
// not count: Chinese writes no blank before a key.
func (c *scanner) begins(i int) bool { return i == 0 || !isAlnum(c.s[i-1]) }

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

func isAlnum(b byte) bool { return isDigit(b) || b|0x20 >= 'a' && b|0x20 <= 'z' }

func lower(b byte) byte {
	if b >= 'A' && b <= 'Z' {
		return b + 'a' - 'A'
	}
	return b
}

func upper(b byte) byte {
	if b >= 'a' && b <= 'z' {
		return b - ('a' - 'A')
	}
	return b
}

// hasPrefixFold is strings.HasPrefix without regard to the case of ASCII letters.
func hasPrefixFold(s, prefix string) bool {
	if len(s) < len(prefix) {
		return false
	}
	for i := range len(prefix) {
		if lower(s[i]) != lower(prefix[i]) {
			return false
		}
	}
	return true
}

// before is the text before i, at most n bytes of it, in lower case.
func (c *scanner) before(i, n int) string { return strings.ToLower(c.s[max(0, i-n):i]) }
