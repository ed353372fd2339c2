package loci

import (
	"bytes"
	"encoding/json"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/meta"
)

// MaxMetadataDepth bounds how deeply metadata may nest.
const MaxMetadataDepth = meta.MaxDepth

// MarshalJSON gives the object as it is; nil is the empty object.
func (m Metadata) MarshalJSON() ([]byte, error) {
	if len(m) == 0 {
		return []byte("{}"), nil
	}
	return m, nil
}

// UnmarshalJSON takes any JSON value; whether it is an object is checked by
// the operation that it is given to. Null is nil.
func (m *Metadata) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*m = nil
		return nil
	}
	*m = append(Metadata(nil), data...)
	return nil
}

// String gives the JSON text.
func (m Metadata) String() string {
	if len(m) == 0 {
		return "{}"
	}
	return string(m)
}

// Get gives the value of a top-level key, or nil.
func (m Metadata) Get(key string) json.RawMessage {
	members, err := meta.Scan(m)
	if err != nil {
		return nil
	}
	for _, member := range members {
		if member.Key == key {
			return json.RawMessage(member.Value)
		}
	}
	return nil
}

// Equal says whether two objects hold the same: the order of keys does not
// matter, and numbers are compared by value. Text that is not a JSON object
// equals nothing.
func (m Metadata) Equal(other Metadata) bool {
	return meta.Equal(m, other)
}

// merge is m with the members of newer: known keys keep their place and take
// the newer value, new ones follow in their order. Both must be valid.
func (m Metadata) merge(newer Metadata) (Metadata, error) {
	return meta.Merge(m, newer, false)
}

// validMetadata checks m and gives it as it is stored, the empty object as
// nil, with its top-level members as the index takes them.
func validMetadata(field string, m Metadata) (Metadata, []index.Attribute, error) {
	m = Metadata(bytes.TrimSpace(m))
	if len(m) == 0 {
		return nil, nil, nil
	}
	if len(m) > MaxMetadataBytes {
		return nil, nil, errs.Invalid(field, "is %d bytes long, at most %d are allowed", len(m), MaxMetadataBytes)
	}
	members, err := meta.Scan(m)
	if err != nil {
		return nil, nil, errs.Invalid(field, "%s", err)
	}
	if len(members) == 0 {
		return nil, nil, nil
	}
	return m, meta.Attributes(members), nil
}
