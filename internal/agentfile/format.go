package agentfile

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/loci-memory/loci/internal/errs"
)

// endMagic is what a whole file ends with.
const endMagic = "LOCIAGTE"

// Sizes of the fixed parts, in bytes.
const (
	// A preface: magic, version u32, length of the header u32, CRC-32C of the
	// header u32, CRC-32C of the 20 bytes before u32. It has this form in every
	// version, so that a damaged version is not taken for a newer one.
	prefaceLen = 24
	// A block's head: section u8, 3 zero bytes, payload's length u32, number of
	// records u32, CRC-32C of the payload u32; then u32 the CRC-32C of the
	// preface's first 20 bytes and of the 16 bytes of every head up to this one.
	headLen    = 20
	headSummed = 16
	// A record stands behind its length.
	lengthLen = 4
	// The end's payload: seven numbers.
	totalsLen = 7 * 8
	// blockLen is the longest payload of more than one record.
	blockLen = 256 << 10
)

// The sections, in their order. The last is one block, with the totals.
const (
	sectionPoints = iota + 1
	sectionVersions
	sectionEdges
	sectionEnd
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// preface gives what stands before the header, and the sum that the first
// block goes on from.
func preface(header []byte) ([]byte, uint32) {
	le := binary.LittleEndian
	b := append(make([]byte, 0, prefaceLen), Magic...)
	b = le.AppendUint32(b, Version)
	b = le.AppendUint32(b, uint32(len(header)))
	b = le.AppendUint32(b, crc32.Checksum(header, castagnoli))
	sum := crc32.Checksum(b, castagnoli)
	return le.AppendUint32(b, sum), sum
}

// putHead fills in the head of a block, whose payload follows it in block, and
// gives the sum that the next block goes on from.
func putHead(block []byte, section byte, records uint32, sum uint32) uint32 {
	le := binary.LittleEndian
	head, payload := block[:headLen], block[headLen:]
	clear(head)
	head[0] = section
	le.PutUint32(head[4:], uint32(len(payload)))
	le.PutUint32(head[8:], records)
	le.PutUint32(head[12:], crc32.Checksum(payload, castagnoli))
	sum = crc32.Update(sum, castagnoli, head[:headSummed])
	le.PutUint32(head[headSummed:], sum)
	return sum
}

// totals are the numbers of the end block, in their order.
func (s *Summary) totals() [7]*int64 {
	return [7]*int64{&s.Facts, &s.Episodes, &s.Procedures, &s.Versions, &s.Edges, &s.Vectors, &s.Bytes}
}

// encodeHeader gives the JSON of a header that was checked.
func encodeHeader(h *Header) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(h); err != nil {
		return nil, err
	}
	out := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	if len(out) > MaxHeaderBytes {
		return nil, errors.New("the header is too long")
	}
	return out, nil
}

// decodeHeader reads a header's JSON field by field: the standard decoder would
// take a field in another case, one that comes twice and one that is unknown.
func decodeHeader(b []byte) (*Header, error) {
	if !utf8.Valid(b) || !json.Valid(b) {
		return nil, errors.New("the header is not valid JSON")
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.New("the header is not a JSON object")
	}
	h := new(Header)
	missing := map[string]any{
		"namespace": &h.Namespace, "scope": &h.Scope, "dimension": &h.Dimension, "space": &h.Space,
		"created_at_us": &h.CreatedAt, "clock_us": &h.Clock, "kinds": &h.Kinds, "settings": &h.Settings,
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		name, _ := key.(string)
		into, ok := missing[name]
		if !ok {
			return nil, errors.New("the header has a field that is unknown or comes twice")
		}
		delete(missing, name)
		if string(value) == "null" || json.Unmarshal(value, into) != nil {
			return nil, errors.New("the header's " + name + " is of the wrong form")
		}
	}
	delete(missing, "settings") // which may be
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		return nil, errors.New("the header has no " + name)
	}
	return h, nil
}

// unusable is the error about what stands at a byte of a file.
func unusable(at int64, format string, args ...any) error {
	return errs.New(errs.Validation, "agent snapshot, byte %d: %s", at, fmt.Sprintf(format, args...))
}
