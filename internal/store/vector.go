package store

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// A Space is one model's vectors. But for its probe it never changes.
type Space struct {
	ID          int64 // 1 and up, never used again
	Name        string
	Model       string
	Dimension   int
	TextVersion int
	Encoding    uint8     // as the index numbers them
	Probe       []float32 // what the model made of a fixed text; nil: not known yet
}

// Same says whether two spaces are defined alike.
func (sp *Space) Same(o *Space) bool {
	return sp.Name == o.Name && sp.Model == o.Model && sp.Dimension == o.Dimension && sp.TextVersion == o.TextVersion &&
		sp.Encoding == o.Encoding
}

// Tier is a group of kinds as a number. The numbers are stored, so they never
// change. 0 stands for the switch over all of them.
type Tier uint8

// The tiers.
const (
	TierMaster Tier = 0
	TierMemory Tier = 1
	TierGraph  Tier = 2
	TierNotes  Tier = 3
	TierPages  Tier = 4
	TierAgent  Tier = 5

	tierLimit = 6
)

// TierOf is the tier of a kind; TierMaster for one that gets no vectors.
func TierOf(k Kind) Tier {
	switch k {
	case KindMemory:
		return TierMemory
	case KindEntity, KindRelation, KindEvent:
		return TierGraph
	case KindChunk:
		return TierNotes
	case KindPage:
		return TierPages
	case KindFact, KindEpisode, KindProcedure:
		return TierAgent
	}
	return TierMaster
}

// recordBits is the part of a vector's key that names the record.
const recordBits = 44

func vectorKey(space, record int64) int64 { return space<<recordBits | record }

// limits of what a key has room for.
const (
	maxSpaceID  = 1<<(63-recordBits) - 1
	maxVectorID = 1<<recordBits - 1
)

// Spaces gives the spaces by name.
func (s *session) Spaces() ([]*Space, error) {
	st, err := s.stmt(sqlSpaces)
	if err != nil {
		return nil, err
	}
	defer st.reset()
	var out []*Space
	for {
		found, err := st.step()
		if err != nil || !found {
			return out, err
		}
		out = append(out, readSpace(st))
	}
}

// Space gives the space of a name; nil when there is none.
func (s *session) Space(name string) (*Space, error) {
	st, err := s.stmt(sqlSpace)
	if err != nil {
		return nil, err
	}
	defer st.reset()
	st.bindText(1, name)
	if found, err := st.step(); err != nil || !found {
		return nil, err
	}
	return readSpace(st), nil
}

func readSpace(st stmt) *Space {
	sp := &Space{
		ID: st.columnInt(0), Name: st.columnText(1), Model: st.columnText(2), Dimension: int(st.columnInt(3)),
		TextVersion: int(st.columnInt(4)), Encoding: uint8(st.columnInt(5)),
	}
	if !st.columnNull(6) {
		sp.Probe = appendFloats(nil, st.columnRaw(6))
	}
	return sp
}

// Vector gives a record's vector in a space, as it was given, appended to
// dst[:0], and its norm; false when there is none.
func (s *session) Vector(space, record int64, dst []float32) (v []float32, norm float64, ok bool, err error) {
	v = dst[:0]
	st, err := s.stmt(sqlVector)
	if err != nil {
		return v, 0, false, err
	}
	st.bindInt(1, vectorKey(space, record))
	found, err := st.step()
	if found && err == nil {
		raw := st.columnRaw(0)
		if len(raw)%4 != 0 {
			err = errs.New(errs.Storage, "the database is damaged: the vector of record %d cannot be read", record)
		}
		v, norm, ok = appendFloats(v, raw), st.columnFloat(1), err == nil
	}
	st.reset()
	return v, norm, ok, err
}

// UnitVector is Vector scaled to length 1. A vector that cannot be, which only
// damage makes, counts as none.
func (s *session) UnitVector(space, record int64) ([]float32, bool, error) {
	v, norm, ok, err := s.Vector(space, record, nil)
	if err != nil || !ok || !(norm > 0) || math.IsInf(norm, 0) {
		return nil, false, err
	}
	return scaled(v, v, norm), true, nil
}

// VectorText is the fingerprint of the text that a record's vector in a space
// was made of; false when there is no vector.
func (s *session) VectorText(space, record int64) (fingerprint uint64, ok bool, err error) {
	found, err := s.ids(sqlVectorText, vectorKey(space, record))
	if err != nil || len(found) == 0 {
		return 0, false, err
	}
	return uint64(found[0]), true, nil
}

// A VectorSwitches is what is set of a namespace's tiers: by Tier, nil where
// nothing is.
type VectorSwitches [tierLimit]*bool

// VectorSwitches gives what is set of a namespace.
func (s *session) VectorSwitches(namespace int64) (out VectorSwitches, err error) {
	err = s.each(sqlSwitches, []int64{namespace}, func(st stmt) bool {
		if t := st.columnInt(0); t >= 0 && t < tierLimit {
			out[t] = new(st.columnInt(1) != 0)
		}
		return true
	})
	return out, err
}

// VectorReady says whether a tier of a namespace is marked: nothing was missing
// in a space, and nothing was written since.
func (s *session) VectorReady(namespace int64, t Tier, space int64) (bool, error) {
	found, err := s.ids(sqlReady, namespace, int64(t), space)
	return len(found) > 0, err
}

// DefaultSpace is the number of the space that a namespace's searches use; 0
// when none is set.
func (s *session) DefaultSpace(namespace int64) (int64, error) {
	found, err := s.ids(sqlDefaultSpace, namespace)
	if err != nil || len(found) == 0 {
		return 0, err
	}
	return found[0], nil
}

// Namespaces gives the dictionary ids of the namespaces that have records,
// ascending.
func (s *session) Namespaces() (out []int64, err error) {
	for last := int64(0); ; {
		found, err := s.ids(sqlNamespaceAfter, last)
		if err != nil || len(found) == 0 {
			return out, err
		}
		last = found[0]
		out = append(out, last)
	}
}

// appendFloats decodes little-endian numbers.
func appendFloats(dst []float32, raw []byte) []float32 {
	at, n := len(dst), len(raw)/4
	dst = slices.Grow(dst, n)[:at+n]
	for i := range dst[at:] {
		dst[at+i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return dst
}

func encodeFloats(v []float32) []byte {
	buf := make([]byte, 0, 4*len(v))
	for _, x := range v {
		buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(x))
	}
	return buf
}

// normOf is the length of a vector.
func normOf(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// scaled writes v / norm to dst, which may be v.
func scaled(dst, v []float32, norm float64) []float32 {
	for i, x := range v {
		dst[i] = float32(float64(x) / norm)
	}
	return dst
}

// Where says in which namespace and scope a record lies, by their dictionary
// ids; false when it is gone.
func (s *session) Where(id int64) (namespace, scope int64, ok bool, err error) {
	err = s.each(sqlRecordPlace, []int64{id}, func(st stmt) bool {
		namespace, scope, ok = st.columnInt(1), st.columnInt(2), true
		return false
	})
	return namespace, scope, ok, err
}
