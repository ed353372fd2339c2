package index

import "cmp"

// Compare orders two values of one type: false before true, numbers by value,
// strings by bytes. ok is false when the types differ or have no order.
func Compare(a, b Value) (order int, ok bool) {
	if a.Type != b.Type {
		return 0, false
	}
	switch a.Type {
	case TypeNull:
		return 0, true
	case TypeBool, TypeNumber:
		return cmp.Compare(a.Number, b.Number), true
	case TypeString:
		return cmp.Compare(a.String, b.String), true
	default:
		return 0, false
	}
}

// Match says whether attributes satisfy a condition. It is what every index and
// every scan means by a metadata condition: types never mix, and a key that is
// not there satisfies OpMissing only.
func Match(c Condition, attrs []Attribute) bool {
	var v *Value
	for i := range attrs {
		if attrs[i].Key == c.Key {
			v = &attrs[i].Value
			break
		}
	}
	if v == nil {
		return c.Op == OpMissing
	}
	switch c.Op {
	case OpExists:
		return true
	case OpMissing:
		return false
	case OpIn:
		for _, w := range c.Values {
			if o, ok := Compare(*v, w); ok && o == 0 {
				return true
			}
		}
		return false
	}
	o, ok := Compare(*v, c.Values[0])
	switch c.Op {
	case OpEq:
		return ok && o == 0
	case OpNe:
		return !ok || o != 0
	case OpLt:
		return ok && o < 0
	case OpLe:
		return ok && o <= 0
	case OpGt:
		return ok && o > 0
	default:
		return ok && o >= 0
	}
}
