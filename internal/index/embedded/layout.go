package embedded

import (
	"encoding/binary"
	"math"

	"github.com/loci-memory/loci/internal/index"
)

// textForm is the form of a text segment's file (docs/format/text-index.md).
var textForm = fileForm{magic: "LOCISEG1", version: 2, sections: int(numSections), lazy: -1}

const (
	secPartitions section = iota
	secIDs                // int64 by document
	secLenAll             // length codes by document
	secLenText
	secLenName  // empty when no document has a name
	secLenPath  // likewise
	secScope    // uint32 by document
	secThread   // uint32 by document; 0: none
	secPosition // int64 by document, noPosition: none; empty when nobody has one
	secCreated  // int64 by document
	secTerms    // bytes of all terms, ascending
	secDict     // entries of the terms
	secHash     // open addressing: term number + 1
	secPostings
	secAttrKeys // bytes of all attribute keys, ascending
	secAttrDict // entries of the attributes
	secAttrDocs // document lists of the attributes
	secThreads  // entries: partition, thread, offset, count
	secThreadDocs
	secForwardOff // uint32 by document, and one more
	secForward    // term numbers of each document, as varint differences
	secExpires    // bounds of the documents that have one: time, document; by partition and time
	secValidFrom
	secValidTo
	numSections
)

// Classes of terms: the first byte of a term's key.
const (
	classAll  = 'a' // text, name and tags together
	className = 'n'
	classPath = 'p'
)

// Length columns. Field text has no postings of its own: it is class "a" less
// the extra part.
const (
	lenAll = iota
	lenText
	lenName
	lenPath
	numLens
)

const (
	dictEntrySize   = 20
	attrEntrySize   = 20
	threadEntrySize = 16
	partEntrySize   = 72
	noPosition      = math.MinInt64
)

// partKey names a partition.
type partKey struct {
	namespace int64
	kind      index.Kind
}

func (k partKey) less(o partKey) bool {
	if k.namespace != o.namespace {
		return k.namespace < o.namespace
	}
	return k.kind < o.kind
}

// fieldStats are the sums over a partition that BM25 needs, by length column:
// how many documents have the field, and the sum of their decoded lengths.
type fieldStats struct {
	docs [numLens]int64
	sum  [numLens]int64
}

func (s *fieldStats) add(o *fieldStats, sign int64) {
	for i := range s.docs {
		s.docs[i] += sign * o.docs[i]
		s.sum[i] += sign * o.sum[i]
	}
}

// statsOf are the stats of one document. Every document counts for "all" and
// "text", whether empty or not.
func statsOf(codes [numLens]uint8) (s fieldStats) {
	for i, c := range codes {
		if c > 0 || i <= lenText {
			s.docs[i] = 1
			s.sum[i] = int64(lenOf[c])
		}
	}
	return s
}

// partRange is a partition of a segment: its documents and their stats,
// deleted ones included.
type partRange struct {
	key    partKey
	lo, hi uint32
	stats  fieldStats
}

func appendPartRange(dst []byte, p *partRange) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint64(dst, uint64(p.key.namespace))
	dst = le.AppendUint32(dst, uint32(p.key.kind))
	dst = le.AppendUint32(dst, p.lo)
	dst = le.AppendUint32(dst, p.hi)
	dst = le.AppendUint32(dst, 0)
	for i := range numLens {
		dst = le.AppendUint32(dst, uint32(p.stats.docs[i]))
	}
	for i := range numLens {
		dst = le.AppendUint64(dst, uint64(p.stats.sum[i]))
	}
	return dst
}

func readPartRange(b []byte) (p partRange) {
	le := binary.LittleEndian
	p.key = partKey{int64(le.Uint64(b)), index.Kind(le.Uint32(b[8:]))}
	p.lo, p.hi = le.Uint32(b[12:]), le.Uint32(b[16:])
	for i := range numLens {
		p.stats.docs[i] = int64(le.Uint32(b[24+4*i:]))
		p.stats.sum[i] = int64(le.Uint64(b[40+8*i:]))
	}
	return p
}

// inlinePosting packs a list of one document into a dictionary entry.
func inlinePosting(p posting) uint64 {
	return uint64(p.doc) | uint64(p.tf)<<32 | uint64(p.extra)<<40
}

func unpackPosting(v uint64) posting {
	return posting{doc: uint32(v), tf: uint8(v >> 32), extra: uint8(v >> 40)}
}

// Attribute keys. The first byte is the sort of attribute; metadata values are
// in an order-preserving form, so that a comparison is a run of entries.
const (
	attrScope  = 's' // + scope, big-endian
	attrTag    = 't' // + tag, big-endian
	attrExists = 'e' // + metadata key
	attrValue  = 'm' // + length of key, key, type, value
)

func scopeKey(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, attrScope), id)
}

func tagKey(dst []byte, id uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, attrTag), id)
}

func existsKey(dst []byte, key string) []byte {
	return append(append(dst, attrExists), key...)
}

// valuePrefix begins every attribute key of metadata key `key` with a value of
// type t.
func valuePrefix(dst []byte, key string, t index.ValueType) []byte {
	dst = append(dst, attrValue)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(key)))
	dst = append(dst, key...)
	return append(dst, byte(t))
}

func valueKey(dst []byte, key string, v index.Value) []byte {
	dst = valuePrefix(dst, key, v.Type)
	switch v.Type {
	case index.TypeBool, index.TypeNumber:
		return binary.BigEndian.AppendUint64(dst, orderedFloat(v.Number))
	case index.TypeString:
		return append(dst, v.String...)
	default:
		return dst
	}
}

// orderedFloat maps a float to bits whose unsigned order is the floats' order;
// -0 equals 0.
func orderedFloat(f float64) uint64 {
	if f == 0 {
		f = 0
	}
	u := math.Float64bits(f)
	if u>>63 != 0 {
		return ^u
	}
	return u | 1<<63
}
