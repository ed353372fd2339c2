package op

import (
	"github.com/google/jsonschema-go/jsonschema"
	"github.com/loci-memory/loci/internal/strictjson"
)

// Limits on an operation's input, whatever surface it comes from.
const (
	MaxInputBytes = strictjson.MaxBytes
	MaxInputDepth = strictjson.MaxDepth
)

// DecodeStrict reads raw into a T as an operation's input is read, for the
// other JSON that a surface takes, such as a configuration file.
func DecodeStrict[T any](raw []byte) (T, error) {
	var v T
	s, err := inferSchema[T]()
	if err != nil {
		return v, err
	}
	return v, strictjson.Decode(s, raw, &v)
}

// decode reads raw into v, refusing everything that schema does not name.
func decode(schema *jsonschema.Schema, raw []byte, v any) error {
	return strictjson.Decode(schema, raw, v)
}

// Closest finds the name among names that was probably meant by got, or "".
func Closest(got string, names []string) string { return strictjson.Closest(got, names) }
