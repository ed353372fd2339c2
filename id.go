package loci

import (
	"strconv"

	"github.com/loci-memory/loci/internal/errs"
)

// MarshalJSON gives the id as a decimal string.
func (id ID) MarshalJSON() ([]byte, error) {
	return strconv.AppendQuote(nil, strconv.FormatInt(int64(id), 10)), nil
}

// UnmarshalJSON takes a decimal string or a whole number; both are exact up to
// 63 bits.
func (id *ID) UnmarshalJSON(data []byte) error {
	text := string(data)
	if text == "null" {
		return nil
	}
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || text[0] == '+' {
		return errs.Invalid("id", "must be a whole number, or one as a decimal string")
	}
	*id = ID(n)
	return nil
}
