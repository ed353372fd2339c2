package secretscan

import "strings"

const (
	rulePassword = "password"
	ruleSecret   = "secret"
)

// word is a word that says that a secret follows.
type word struct {
	text     string
	password bool // which people make up, and so are shorter and less random
}

// words are in lower case; case does not matter where they are looked for.
func words() []word {
	return []word{
		{"password", true}, {"passwd", true}, {"passphrase", true}, {"pwd", true}, {"passcode", true}, {"passwort", true}, {"密码", true}, {"口令", true},
		// A pass alone may be that of a filter or over a mountain.
		{"db_pass", true}, {"database_pass", true}, {"mysql_pass", true}, {"postgres_pass", true}, {"pg_pass", true}, {"redis_pass", true},
		{"smtp_pass", true}, {"mail_pass", true}, {"email_pass", true}, {"ftp_pass", true}, {"ssh_pass", true}, {"http_pass", true},
		{"auth_pass", true}, {"user_pass", true}, {"root_pass", true}, {"admin_pass", true},
		{"secret", false}, {"token", false}, {"credential", false}, {"密钥", false}, {"秘钥", false}, {"令牌", false},
		{"api_key", false}, {"api-key", false}, {"apikey", false}, {"api key", false}, {"app_key", false}, {"appkey", false},
		{"access_key", false}, {"access-key", false}, {"accesskey", false}, {"access key", false}, {"auth_key", false}, {"authkey", false},
		{"private_key", false}, {"privatekey", false}, {"signing_key", false}, {"encryption_key", false}, {"accountkey", false},
		{"subscription-key", false}, {"master_key", false},
	}
}

// maxSuffix bounds the bytes of an identifier after a word.
const maxSuffix = 32

// assignment looks for the value that a word at i says is a secret.
func (c *scanner) assignment(t *triggerTable, w *word, i int) (Hit, bool) {
	if !hasPrefixFold(c.s[i:], w.text) {
		return Hit{}, false
	}
	at := i + len(w.text)
	suffix := at
	for at < len(c.s) && at-suffix < maxSuffix && word64.has(c.s[at]) {
		at++
	}
	if !ofName(c.s[suffix:at], w.password) {
		return Hit{}, false
	}
	at, prose, ok := c.separator(at, w.password, c.option(i))
	if !ok || at >= len(c.s) {
		return Hit{}, false
	}
	start := skipQuotes(c.s, at)
	quoted := start > at
	end := c.value(start, quoted)
	v := c.s[start:min(end, start+looked)]
	if v == "" || !quoted && code(v) || prose && strings.ContainsAny(v, "-_/.") {
		return Hit{}, false
	}
	for k := range t.keys[v[0]] { // which knows better what it is
		if h, ok := c.key(&t.keys[v[0]][k], start); ok {
			return h, true
		}
	}
	if w.password && (madeUp(v) || random(v)) {
		return Hit{start, end, rulePassword}, true
	}
	return Hit{start, end, ruleSecret}, !w.password && random(v)
}

// ofName says that what follows a word ends a name for the secret itself: not
// another word, such as secretary, nor a name of something about the secret.
func ofName(suffix string, password bool) bool {
	if suffix == "" || suffix == "s" && !password {
		return true
	}
	if b := suffix[0]; b >= 'a' && b <= 'z' {
		return false
	}
	return !harmless(strings.ToLower(suffix))
}

// harmless says that a name that begins like that of a secret is that of
// something about it.
func harmless(suffix string) bool {
	suffix = strings.Trim(suffix, "_-")
	for _, end := range []string{"id", "ids", "name", "count", "type", "url", "uri", "path", "file", "length", "limit", "expiry", "expires", "policy", "version"} {
		if suffix == end || strings.HasSuffix(suffix, "_"+end) || strings.HasSuffix(suffix, "-"+end) {
			return true
		}
	}
	return false
}

// option says that the word at i is the name of an option of a command line, after
// whose name a blank is enough.
func (c *scanner) option(i int) bool {
	for from := i; i > 0 && from-i < maxSuffix; i-- {
		if b := c.s[i-1]; b == '-' && i > 1 && c.s[i-2] == '-' {
			return i == 2 || c.s[i-3] <= ' '
		} else if !word64.has(b) {
			return false
		}
	}
	return false
}

// separator skips what stands between a name and its value; prose says that it
// is a verb. A verb is enough where verbs is true, a blank where option is.
func (c *scanner) separator(i int, verbs, option bool) (at int, prose, ok bool) {
	i = skipQuotes(c.s, i)
	if i < len(c.s) && c.s[i] == ']' { // config["password"]
		i++
	}
	i = skipBlanks(c.s, skipStars(c.s, i))
	for _, sep := range []string{":=", "=>", "==", "=", ":", "：", "＝"} {
		if strings.HasPrefix(c.s[i:], sep) {
			return skipBlanks(c.s, skipStars(c.s, i+len(sep))), false, true
		}
	}
	if option && c.s[i-1] == ' ' {
		return i, false, true
	}
	if !verbs {
		return 0, false, false
	}
	for _, verb := range []string{"is ", "was ", "是", "为", "改为", "改成"} {
		if hasPrefixFold(c.s[i:], verb) {
			i = skipBlanks(c.s, i+len(verb))
			for _, colon := range []string{":", "："} {
				if strings.HasPrefix(c.s[i:], colon) {
					i = skipBlanks(c.s, i+len(colon))
				}
			}
			return i, true, true
		}
	}
	return 0, false, false
}

// skipStars skips the marks of bold text.
func skipStars(s string, i int) int {
	if strings.HasPrefix(s[i:], "**") {
		return i + 2
	}
	return i
}

// value gives the end of a value. Text of other scripts is not part of it. As
// with runs, what was looked at once is remembered.
func (c *scanner) value(i int, quoted bool) int {
	known := &c.values[0]
	if quoted {
		known = &c.values[1]
	}
	if i < known.start || i >= known.end {
		end := i
		for end < len(c.s) && !c.valueEnds(end, quoted) {
			end++
		}
		*known = span{i, end}
	}
	end := known.end
	for !quoted && end > i && strings.IndexByte(".,;:?", c.s[end-1]) >= 0 { // those of the sentence
		end--
	}
	return end
}

// valueEnds says that a byte is not part of a value.
func (c *scanner) valueEnds(i int, quoted bool) bool {
	switch b := c.s[i]; {
	case b <= ' ', b >= 0x7f, strings.IndexByte("\"'`<>\\", b) >= 0:
		return true
	case quoted:
		return false
	case b == ',' || b == ';' || b == '&':
		return c.endsValue(i + 1)
	default:
		return strings.IndexByte(")]}|", b) >= 0
	}
}

// endsValue says that what follows a comma or the like is another thing.
func (c *scanner) endsValue(i int) bool {
	from := i
	for i < len(c.s) && i-from < maxSuffix && word64.has(c.s[i]) {
		i++
	}
	return i >= len(c.s) || c.s[i] <= ' ' || strings.IndexByte("=:\"'", c.s[i]) >= 0
}

// placeholder says that a value only stands for one.
func placeholder(v string) bool {
	for _, p := range []string{"[redacted", "${", "$(", "{", "<", "%(", "%{", "***", "...", "os.", "env.", "process.", "self.", "this.", "args."} {
		if strings.HasPrefix(v, p) {
			return true
		}
	}
	if len(v) > 1 && v[0] == '$' && !strings.ContainsFunc(v[1:], func(r rune) bool { return r > 0x7f || !underscore.has(byte(r)) }) &&
		(!hasDigit(v) || strings.Contains(v, "_") || strings.ToUpper(v) == v) {
		return true // a variable
	}
	low := strings.ToLower(v)
	return strings.HasPrefix(low, "xxx") || strings.HasPrefix(low, "your") || strings.HasPrefix(low, "my_") || strings.HasPrefix(low, "example")
}

// code says that a value is a piece of a program, an address or a path.
func code(v string) bool { return strings.ContainsAny(v, "([{") || address(v) }

func address(v string) bool {
	return strings.Contains(v, "://") || strings.HasPrefix(v, "/") || strings.HasPrefix(v, "./") || strings.HasPrefix(v, "~/")
}

// madeUp says that a value looks like a password: not a word alone.
func madeUp(v string) bool {
	if len(v) < 6 || len(v) > 128 || placeholder(v) || address(v) {
		return false
	}
	letters, digits, signs := 0, 0, 0
	for i := range len(v) {
		switch {
		case isDigit(v[i]):
			digits++
		case isAlnum(v[i]):
			letters++
		case strings.IndexByte("-_./:=", v[i]) < 0:
			signs++
		}
	}
	if letters == 0 && signs == 0 {
		return digits == len(v) && len(v) <= 16
	}
	if distinct(v) < 5 {
		return false
	}
	return digits > 0 && letters > 0 || signs > 0 && letters+digits > 0 && len(v) >= 8
}

// random says that a value looks like the work of a machine.
func random(v string) bool {
	if len(v) < 16 || placeholder(v) || address(v) {
		return false
	}
	if uuid(v) {
		return true
	}
	return randomPart(v)
}

// randomPart looks for a part of a value that letters and digits change places
// in, as they do not in names.
func randomPart(v string) bool {
	from := 0
	for i := 0; i <= len(v); i++ {
		if i < len(v) && strings.IndexByte("-_.:", v[i]) < 0 {
			continue
		}
		if part := v[from:i]; len(part) >= 12 && hasDigit(part) && distinct(part) >= 8 && changes(part) >= 4 {
			return true
		}
		from = i + 1
	}
	return false
}

// changes counts how often small letters, capital letters and digits follow each
// other in a text.
func changes(s string) (n int) {
	kind := func(b byte) int {
		switch {
		case isDigit(b):
			return 1
		case b >= 'a' && b <= 'z':
			return 2
		case b >= 'A' && b <= 'Z':
			return 3
		}
		return 0
	}
	last := 0
	for i := range len(s) {
		if k := kind(s[i]); k != 0 {
			if last != 0 && k != last {
				n++
			}
			last = k
		}
	}
	return n
}

// uuid says that a text has the form of one.
func uuid(v string) bool {
	if len(v) != 36 {
		return false
	}
	for i := range len(v) {
		if dash := i == 8 || i == 13 || i == 18 || i == 23; dash != (v[i] == '-') || !dash && !hexadecimal.has(lower(v[i])) {
			return false
		}
	}
	return true
}

// Named says what a value is that stands under a name, as in an object or a map:
// the rule, or "" when it is no secret.
func Named(name, value string) string {
	low := strings.ToLower(name)
	if len(low) != len(name) {
		return "" // letters whose case changes their length
	}
	for _, w := range words() {
		at := strings.LastIndex(low, w.text)
		if at < 0 || !ofName(name[at+len(w.text):], w.password) {
			continue
		}
		switch {
		case w.password && (madeUp(value) || random(value)):
			return rulePassword
		case !strings.ContainsAny(value, " \t\n") && random(value):
			return ruleSecret
		}
	}
	return ""
}
