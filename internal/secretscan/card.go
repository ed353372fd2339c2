package secretscan

import (
	"slices"
	"strconv"
	"strings"
)

const (
	ruleCard      = "card-number"
	maxCardDigits = 19
)

// card looks for a payment card's number: digits of an issuer's range and length
// with a right check digit, written in one or in the groups of a card.
func (c *scanner) card(i int) (Hit, bool) {
	if i > 0 && (isAlnum(c.s[i-1]) || strings.IndexByte("_.-/#@+", c.s[i-1]) >= 0) {
		return Hit{}, false
	}
	digits, groups, end := c.digits(i)
	if long, last, ok := c.longer(digits, groups, end); ok && luhn(long) {
		digits, end = long, last
	}
	if len(digits) < 13 || len(digits) > maxCardDigits {
		return Hit{}, false
	}
	if end < len(c.s) && (isAlnum(c.s[end]) || c.s[end] == '_' || c.s[end] == '-' ||
		strings.IndexByte(".,/", c.s[end]) >= 0 && end+1 < len(c.s) && isDigit(c.s[end+1])) {
		return Hit{}, false
	}
	sure, perhaps := issued(digits)
	if !perhaps || !luhn(digits) || distinct(digits) < 2 {
		return Hit{}, false
	}
	if len(groups) > 1 {
		return Hit{i, end, ruleCard}, cardGroups(groups) && !c.inTable(i, end)
	}
	near := c.before(i, 32)
	isCard := containsAny(near, "card", "visa", "mastercard", "amex", "pan", "卡")
	return Hit{i, end, ruleCard}, isCard || sure && !containsAny(near, "id", "num", "no.", "time", "order", "code", "serial", "track",
		"phone", "imei", "isbn", "单号", "编号", "订单", "身份证", "电话", "序列")
}

// digits collects the digits from i on, and the lengths of their groups, which
// one kind of separator parts.
func (c *scanner) digits(i int) (digits string, groups []int, end int) {
	var out [maxCardDigits + 1]byte
	n, group := 0, 0
	var sep byte
	for end = i; end < len(c.s); {
		b := c.s[end]
		switch {
		case isDigit(b):
			if n == len(out) {
				return string(out[:n]), nil, end
			}
			out[n] = b
			n, group, end = n+1, group+1, end+1
			continue
		case (b == ' ' || b == '-') && (sep == 0 || sep == b) && (group == 4 || group == 6) && end+1 < len(c.s) && isDigit(c.s[end+1]) &&
			!cardGroups(append(groups, group)):
			sep = b
			groups, group = append(groups, group), 0
			end++
			continue
		}
		break
	}
	return string(out[:n]), append(groups, group), end
}

// longer takes a group of three after four groups of four: numbers of 19 digits
// are written so.
func (c *scanner) longer(digits string, groups []int, end int) (long string, last int, ok bool) {
	last = end + 4
	if len(digits) != 16 || len(groups) != 4 || last > len(c.s) || c.s[end] != c.s[end-5] {
		return "", 0, false
	}
	for _, b := range []byte(c.s[end+1 : last]) {
		if !isDigit(b) {
			return "", 0, false
		}
	}
	return digits + c.s[end+1:last], last, last == len(c.s) || !isAlnum(c.s[last])
}

// cardGroups says that digits are grouped as on a card.
func cardGroups(groups []int) bool {
	return slices.Equal(groups, []int{4, 4, 4, 4}) || slices.Equal(groups, []int{4, 6, 5}) || slices.Equal(groups, []int{4, 6, 4}) ||
		slices.Equal(groups, []int{6, 13})
}

// inTable says that another group of four stands before or after: numbers in
// columns look like cards now and then.
func (c *scanner) inTable(start, end int) bool {
	four := func(from, to int) bool {
		if from < 0 || to > len(c.s) {
			return false
		}
		for _, b := range []byte(c.s[from:to]) {
			if !isDigit(b) {
				return false
			}
		}
		return true
	}
	return start > 0 && c.s[start-1] == ' ' && four(start-5, start-1) || end < len(c.s) && c.s[end] == ' ' && four(end+1, end+5)
}

// issued says whether an issuer has numbers of this beginning and length. Those
// that are sure need no word beside them.
func issued(d string) (sure, perhaps bool) {
	head := func(n int) int {
		v, _ := strconv.Atoi(d[:n]) // digits, and few of them
		return v
	}
	n, two, three, four := len(d), head(2), head(3), head(4)
	switch {
	case d[0] == '4': // Visa
		return n == 16, n == 13 || n == 16 || n == 19
	case two >= 51 && two <= 55, four >= 2221 && four <= 2720: // Mastercard
		return n == 16, n == 16
	case two == 34 || two == 37: // American Express
		return n == 15, n == 15
	case four == 6011, three >= 644 && three <= 649, two == 65: // Discover
		return n == 16, n >= 16
	case three >= 300 && three <= 305, two == 36 || two == 38 || two == 39: // Diners Club
		return false, n == 14 || n == 16
	case four >= 3528 && four <= 3589: // JCB
		return n == 16, n >= 16
	case two == 62: // UnionPay
		return n == 16 || n == 19, n >= 16
	case four >= 2200 && four <= 2204: // Mir
		return n == 16, n >= 16
	case two == 50, two >= 56 && two <= 58, two == 67 || two == 63: // Maestro
		return false, true
	}
	return false, false
}

// luhn checks the check digit.
func luhn(digits string) bool {
	sum := 0
	for i := range len(digits) {
		d := int(digits[len(digits)-1-i] - '0')
		if i%2 == 1 {
			if d *= 2; d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

func containsAny(s string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}
