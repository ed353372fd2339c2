package secretscan

import "strings"

// shape is a secret that a piece of text inside it or before it gives away.
type shape struct {
	name    string
	trigger string
	// find gives the bytes of the secret whose trigger stands at i.
	find func(c *scanner, i int) (start, end int, ok bool)
}

func shapes() []shape {
	return []shape{
		{"private-key", "-----BEGIN ", pemBlock},
		{"private-key", "PuTTY-User-Key-File-", puttyKey},
		{"jwt", "eyJ", jwt},
		{"bearer-token", "bearer ", bearer},
		{"authorization-header", "authorization", authorization},
		{"url-password", "://", urlPassword},
		{"password", " -u ", userOption},
		{"password", " --user ", userOption},
		{"telegram-token", ":AA", telegram},
		{"terraform-token", ".atlasv1.", terraform},
		{"slack-webhook", "hooks.slack.com/", slackWebhook},
		{"discord-webhook", "discord.com/api/webhooks/", discordWebhook},
		{"discord-webhook", "discordapp.com/api/webhooks/", discordWebhook},
	}
}

// Bounds of what is looked for beyond a trigger, so that a text full of triggers
// is still read in linear time.
const (
	maxPEMLabel = 64
	maxPEM      = 32 << 10
	maxUserInfo = 512
)

// pemBlock takes a private key in PEM from its first dash to its last. One whose
// end is missing goes as far as its lines look like one.
func pemBlock(c *scanner, i int) (start, end int, ok bool) {
	const dashes = "-----"
	from := i + len("-----BEGIN ")
	head := c.s[from:min(len(c.s), from+maxPEMLabel)]
	n := strings.Index(head, dashes)
	if n < 0 || !strings.Contains(head[:n], "PRIVATE KEY") {
		return 0, 0, false
	}
	label, body := head[:n], from+n+len(dashes)
	if at := c.next(endPEM, body); at-body <= maxPEM && strings.HasPrefix(c.s[at:], dashes+"END "+label+dashes) {
		return i, at + len(dashes+"END "+label+dashes), true
	}
	return i, c.keyLines(body), true
}

// keyLines gives the end of what looks like lines of a key.
func (c *scanner) keyLines(i int) int {
	end := i
	for i < len(c.s) && (base64.has(c.s[i]) || strings.IndexByte("\r\n\t \\:,-.", c.s[i]) >= 0) {
		word := i
		for i < len(c.s) && base64.has(c.s[i]) {
			i++
		}
		if i-word >= 16 || i > word && i-end <= 4 {
			end = i
		}
		if i-end > 80 {
			break // words, not a key
		}
		for i < len(c.s) && strings.IndexByte("\r\n\t \\:,-.", c.s[i]) >= 0 {
			i++
		}
	}
	return end
}

// puttyKey takes the private lines of PuTTY's form of a key and what follows
// them.
func puttyKey(c *scanner, i int) (start, end int, ok bool) {
	lines := c.next(puttyLines, i)
	if lines-i > maxPEM || lines == len(c.s) {
		return 0, 0, false
	}
	if mac := c.next(puttyMAC, lines); mac-lines <= maxPEM && mac < len(c.s) {
		return i, c.run(alnum, skipBlanks(c.s, mac+len("Private-MAC:"))), true
	}
	return i, c.keyLines(lines + len("Private-Lines:")), true
}

// userOption takes the password of -u NAME:PASSWORD, as curl has it. A short one
// may be a group of users, which other programs have there.
func userOption(c *scanner, i int) (start, end int, ok bool) {
	from := i + strings.IndexByte(c.s[i+1:], ' ') + 2
	from = skipQuotes(c.s, from)
	name := c.run(dotted, from)
	if name == from || name >= len(c.s) || c.s[name] != ':' {
		return 0, 0, false
	}
	start = name + 1
	end = c.value(start, false)
	return start, end, end-start >= 8 && madeUp(c.s[start:min(end, start+looked)])
}

// landmark is a piece of text that is looked for ahead.
type landmark int

const (
	endPEM landmark = iota
	puttyLines
	puttyMAC
	landmarks = iota
)

func (l landmark) text() string {
	switch l {
	case puttyLines:
		return "Private-Lines:"
	case puttyMAC:
		return "Private-MAC:"
	}
	return "-----END "
}

// next gives where a landmark stands from i on, the text's length when it does
// not. What was found is remembered until it is passed, so that a text full of
// beginnings without an end is not read again for each.
func (c *scanner) next(l landmark, i int) int {
	known := &c.ahead[l]
	if known.end > 0 && i >= known.start && i <= known.end {
		return known.end
	}
	at := strings.Index(c.s[i:], l.text())
	if at < 0 {
		at = len(c.s) - i
	}
	*known = span{i, i + at}
	return i + at
}

// jwt takes a token of three parts, or of five when it is encrypted. The first
// begins with what {" becomes in base64.
func jwt(c *scanner, i int) (start, end int, ok bool) {
	if !strings.HasPrefix(c.s[i:], "eyJ") || i > 0 && dotted.has(c.s[i-1]) {
		return 0, 0, false
	}
	end = c.run(dotted, i)
	for end > i && c.s[end-1] == '.' {
		end--
	}
	header, rest, _ := strings.Cut(c.s[i:end], ".")
	payload, signature, ok := strings.Cut(rest, ".")
	dots := strings.Count(signature, ".")
	return i, end, ok && len(header) >= 12 && len(payload)+len(signature) >= 20 && signature != "" && (dots == 0 || dots == 2)
}

// bearer takes what follows the word, if it is no word itself.
func bearer(c *scanner, i int) (start, end int, ok bool) {
	if !c.begins(i) {
		return 0, 0, false
	}
	from := skipBlanks(c.s, i+len("bearer "))
	end = c.credential(from)
	token := c.s[from:min(end, from+looked)]
	return from, end, len(token) >= 16 && mixed(token) && !placeholder(token)
}

// authorization takes the credentials of a header.
func authorization(c *scanner, i int) (start, end int, ok bool) {
	at := skipBlanks(c.s, skipQuotes(c.s, i+len("authorization")))
	if at >= len(c.s) || c.s[at] != ':' && c.s[at] != '=' {
		return 0, 0, false
	}
	at = skipQuotes(c.s, skipBlanks(c.s, at+1))
	for _, scheme := range []string{"bearer ", "basic ", "token ", "apikey ", "digest "} {
		if !hasPrefixFold(c.s[at:], scheme) {
			continue
		}
		from := skipBlanks(c.s, at+len(scheme))
		end = c.credential(from)
		token := c.s[from:min(end, from+looked)]
		return from, end, len(token) >= 8 && distinct(token) >= 6 && !placeholder(token) && (hasDigit(token) || strings.HasSuffix(token, "="))
	}
	return 0, 0, false
}

// credential gives the end of a token in a header.
func (c *scanner) credential(i int) int {
	for {
		end := max(c.run(dotted, i), c.run(base64, i))
		if end == i {
			break
		}
		i = end
	}
	for i > 0 && c.s[i-1] == '.' {
		i--
	}
	return i
}

// urlPassword takes the password of scheme://user:password@host.
func urlPassword(c *scanner, i int) (start, end int, ok bool) {
	if i == 0 || !isAlnum(c.s[i-1]) {
		return 0, 0, false
	}
	from := i + len("://")
	colon := -1
	last := min(len(c.s), from+maxUserInfo)
	for at := from; at < last; at++ {
		switch b := c.s[at]; {
		case b == ':' && colon < 0:
			colon = at
		case b == '@':
			// A password may hold an @ itself: the last one before the host counts.
			for next := at + 1; next < last && c.s[next] > ' ' && strings.IndexByte("/?#\"'`<>\\", c.s[next]) < 0 && c.s[next] < 0x80; next++ {
				if c.s[next] == '@' {
					at = next
				}
			}
			if colon < 0 || colon+1 == at || placeholder(c.s[colon+1:at]) {
				return 0, 0, false
			}
			return colon + 1, at, true
		case b <= ' ' || strings.IndexByte("/?#\"'`<>\\", b) >= 0:
			return 0, 0, false
		}
	}
	return 0, 0, false
}

// telegram takes a bot's number, a colon and 35 bytes.
func telegram(c *scanner, i int) (start, end int, ok bool) {
	start = i
	for start > c.done && i-start <= 11 && isDigit(c.s[start-1]) {
		start--
	}
	from := i + 1
	end = c.run(word64, from)
	return start, end, c.s[i:from+2] == ":AA" && i-start >= 8 && i-start <= 10 && end-from == 35 && varied(c.s[from:end])
}

// terraform takes 14 bytes, a mark and 60 or more.
func terraform(c *scanner, i int) (start, end int, ok bool) {
	start = i
	for start > c.done && i-start <= 15 && isAlnum(c.s[start-1]) {
		start--
	}
	from := i + len(".atlasv1.")
	end = c.run(word64, from)
	return start, end, i-start == 14 && end-from >= 60
}

// slackWebhook takes the path of an address that anybody may post to.
func slackWebhook(c *scanner, i int) (start, end int, ok bool) {
	from := i + len("hooks.slack.com/")
	end = c.run(base64, from)
	path := c.s[from:min(end, from+looked)]
	known := strings.HasPrefix(path, "services/T") || strings.HasPrefix(path, "workflows/T") || strings.HasPrefix(path, "triggers/")
	return from, end, known && len(path) >= 40 && hasDigit(path)
}

// discordWebhook takes number and token of an address that anybody may post to.
func discordWebhook(c *scanner, i int) (start, end int, ok bool) {
	from := i + strings.Index(c.s[i:], "webhooks/") + len("webhooks/")
	at := from
	for at < len(c.s) && at-from <= 24 && isDigit(c.s[at]) {
		at++
	}
	if at == from || at >= len(c.s) || c.s[at] != '/' {
		return 0, 0, false
	}
	end = c.run(word64, at+1)
	return from, end, end-at >= 40
}

func skipBlanks(s string, i int) int {
	for n := 0; n < 8 && i < len(s) && (s[i] == ' ' || s[i] == '\t'); n++ {
		i++
	}
	return i
}

// skipQuotes skips at most one quotation mark, which may be escaped.
func skipQuotes(s string, i int) int {
	for n := 0; n < 3 && i < len(s) && s[i] == '\\'; n++ {
		i++
	}
	if i < len(s) && strings.IndexByte("\"'`", s[i]) >= 0 {
		return i + 1
	}
	return i
}
