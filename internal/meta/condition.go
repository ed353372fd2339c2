package meta

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
)

const (
	maxConditions = 256
	maxKeyBytes   = 1 << 20
)

// Condition is one test of a top-level key, as a caller gives it.
type Condition struct {
	Key   string
	Op    string // eq, ne, lt, le, gt, ge, in or exists
	Value []byte // a JSON scalar; an array of them for in
}

func operatorOf(name string) (index.Operator, bool) {
	switch name {
	case "eq":
		return index.OpEq, true
	case "ne":
		return index.OpNe, true
	case "lt":
		return index.OpLt, true
	case "le":
		return index.OpLe, true
	case "gt":
		return index.OpGt, true
	case "ge":
		return index.OpGe, true
	case "in":
		return index.OpIn, true
	case "exists":
		return index.OpExists, true
	}
	return 0, false
}

// Conditions validates conditions and gives them as the index takes them. field is
// where they stand, for errors.
func Conditions(field string, conditions []Condition) ([]index.Condition, error) {
	if len(conditions) > maxConditions {
		return nil, errs.Invalid(field, "has %d entries, at most %d are allowed", len(conditions), maxConditions)
	}
	var out []index.Condition
	for i, c := range conditions {
		at := fmt.Sprintf("%s[%d]", field, i)
		op, ok := operatorOf(c.Op)
		if !ok {
			return nil, errs.Invalid(at+".op", "must be eq, ne, lt, le, gt, ge, in or exists")
		}
		if len(c.Key) > maxKeyBytes || !utf8.ValidString(c.Key) {
			return nil, errs.Invalid(at+".key", "must be valid UTF-8 and at most %d bytes long", maxKeyBytes)
		}
		converted := index.Condition{Key: c.Key, Op: op}
		raw := bytes.TrimSpace(c.Value)
		if len(raw) == 0 && op != index.OpExists {
			return nil, errs.Invalid(at+".value", "is required")
		}
		if len(raw) > 0 {
			if err := checkValue(raw); err != nil {
				return nil, errs.Invalid(at+".value", "%s", err)
			}
		}
		switch op {
		case index.OpExists:
			switch string(raw) {
			case "", "true":
			case "false":
				converted.Op = index.OpMissing
			default:
				return nil, errs.Invalid(at+".value", "must be true or false")
			}
		case index.OpIn:
			if raw[0] != '[' {
				return nil, errs.Invalid(at+".value", "must be an array of scalars")
			}
			for _, element := range elements(raw) {
				v := Scalar(element)
				if v.Type == index.TypeOther {
					return nil, errs.Invalid(at+".value", "must be an array of scalars")
				}
				converted.Values = append(converted.Values, v)
			}
		default:
			v := Scalar(raw)
			if v.Type == index.TypeOther {
				return nil, errs.Invalid(at+".value", "must be a string, a number, true, false or null")
			}
			if op != index.OpEq && op != index.OpNe && v.Type != index.TypeNumber && v.Type != index.TypeString {
				return nil, errs.Invalid(at+".value", "must be a number or a string: nothing else has an order")
			}
			converted.Values = []index.Value{v}
		}
		out = append(out, converted)
	}
	return out, nil
}

// checkValue checks one JSON value as strictly as an object is checked.
func checkValue(raw []byte) error {
	wrapped := make([]byte, 0, len(raw)+6)
	wrapped = append(append(append(wrapped, `{"v":`...), raw...), '}')
	members, err := Scan(wrapped)
	if err != nil || len(members) != 1 || len(members[0].Value) != len(raw) {
		return fmt.Errorf("is not a JSON value")
	}
	return nil
}
