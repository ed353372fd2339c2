package loci

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/internal/valid"
)

// vectorLine is a record's vector in a space. It follows the line of the record.
type vectorLine struct {
	Vector      ID     `json:"vector"` // the record's id
	Space       string `json:"space"`
	Fingerprint string `json:"fingerprint"` // of the text it was made of, hexadecimal
	Value       []byte `json:"value"`       // float32, little end first
}

// spaceLines are the spaces of the whole store.
func spaceLines(tx *store.ReadTx) (lines []settingLine, err error) {
	spaces, err := tx.Spaces()
	for _, sp := range spaces {
		public := spaceOf(sp)
		lines = append(lines, settingLine{
			Setting: settingSpace, Space: sp.Name, Model: sp.Model, Dimension: sp.Dimension, TextVersion: sp.TextVersion,
			Encoding: public.Encoding, Probe: packFloats(sp.Probe),
		})
	}
	return lines, err
}

// switchLines are the switches that a namespace has set.
func switchLines(tx *store.ReadTx, namespace string) (lines []settingLine, err error) {
	id, _, err := tx.StringID(namespace)
	if err != nil {
		return nil, err
	}
	set, err := tx.VectorSwitches(id)
	for _, t := range append([]Tier{""}, tiers...) {
		if enabled := set[t.number()]; enabled != nil {
			lines = append(lines, settingLine{Setting: settingVectorization, Namespace: namespace, Tier: t, Enabled: enabled})
		}
	}
	return lines, err
}

// defaultSpaceLines are a namespace's default space.
func defaultSpaceLines(tx *store.ReadTx, namespace string) ([]settingLine, error) {
	sp, err := defaultSpace(tx, namespace)
	if err != nil || sp == nil {
		return nil, err
	}
	return []settingLine{{Setting: settingDefaultSpace, Namespace: namespace, Space: sp.Name}}, nil
}

// vectors writes the vectors of a record; of one that is to have none, those that the
// caller gave.
func (x *exporter) vectors(tx *store.ReadTx, r *store.Record) error {
	if x.opts.NoVectors && !r.Kind.IsPoint() {
		return nil
	}
	for _, sp := range x.spaces {
		values, _, ok, err := tx.Vector(sp.ID, r.ID, x.values)
		x.values = values
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		made, _, err := tx.VectorText(sp.ID, r.ID)
		if err != nil {
			return err
		}
		if x.opts.NoVectors && made != store.TextOfCaller {
			continue
		}
		x.report.Vectors++
		if err := x.put(vectorLine{ID(r.ID), sp.Name, hexadecimal(made), packFloats(values)}); err != nil {
			return err
		}
	}
	return nil
}

// check validates what can be told of a vector by itself.
func (l *vectorLine) check() error {
	if l.Vector < 1 {
		return errs.Invalid("vector", "must be a record's id")
	}
	if err := valid.Label("space", l.Space, MaxNamespaceBytes); err != nil {
		return err
	}
	if _, ok := fromHexadecimal(l.Fingerprint); !ok {
		return errs.Invalid("fingerprint", "must be 16 hexadecimal digits")
	}
	values, ok := unpackFloats(l.Value)
	if !ok {
		return errs.Invalid("value", "must be numbers of four bytes")
	}
	if norm := length(values); !(norm > 0) || math.IsInf(norm, 0) {
		return errs.Invalid("value", "must be finite and not zero")
	}
	return nil
}

// checkSpace validates a setting that is a space.
func (s *settingLine) checkSpace() error {
	space := EmbeddingSpace{ID: s.Space, Model: s.Model, Dimension: s.Dimension, TextVersion: s.TextVersion, Encoding: s.Encoding}
	if _, err := space.check(); err != nil {
		if e, ok := err.(*errs.Error); ok && e.Field == "id" {
			return errs.Invalid("space", "%s", e.Message)
		}
		return err
	}
	if probe, ok := unpackFloats(s.Probe); !ok || len(probe) > 0 && (len(probe) != s.Dimension || !(length(probe) > 0) || math.IsInf(length(probe), 0)) {
		return errs.Invalid("probe", "must be a vector of the space")
	}
	return nil
}

// importVectors takes the vectors of an import along.
type importVectors struct {
	dimensions map[string]int          // of the file's spaces
	spaces     map[string]*store.Space // to write to; nil: the store has another of this name
	record     store.Stored            // whose vectors may follow
	seen       []string                // spaces in which it has one

	// Of the second reading: whether the record's text needs records that come
	// later, else what it is the fingerprint of, once that is known.
	ahead bool
	text  *uint64
	later []laterVector
}

// laterVector is a vector that is looked at again when all records are there.
type laterVector struct {
	space *store.Space
	kind  store.Kind
	id    int64
	made  uint64
}

// meet checks a vector's line against the lines before it.
func (v *importVectors) meet(l *vectorLine) error {
	dimension, ok := v.dimensions[l.Space]
	switch {
	case v.record == nil || v.record.Head().ID != int64(l.Vector):
		return errs.Invalid("vector", "must follow the line of its record")
	case store.TierOf(v.record.Head().Kind) == store.TierMaster:
		return errs.Invalid("vector", "is of a record of a kind that has none")
	case !ok:
		return errs.Invalid("space", "is none that a setting of this file names")
	case len(l.Value) != 4*dimension:
		return errs.Invalid("value", "has %d numbers, the space has %d dimensions", len(l.Value)/4, dimension)
	case slices.Contains(v.seen, l.Space):
		return errs.Invalid("space", "is that of another vector of the record")
	}
	v.seen = append(v.seen, l.Space)
	return nil
}

// follow says which record the next vectors are of, and whether its text needs
// records that come later.
func (v *importVectors) follow(r store.Stored, ahead bool) {
	v.record, v.seen, v.ahead, v.text = r, v.seen[:0], ahead, nil
}

// write writes the vector of the record that was written last; false when the
// store has another space of this name, or when the vector was made of another
// text than the record's: whoever edits a file edits texts and not fingerprints.
// Those that callers gave to points were made of none.
func (v *importVectors) write(tx *store.WriteTx, l *vectorLine) (bool, error) {
	sp := v.spaces[l.Space]
	if sp == nil {
		return false, nil
	}
	values, _ := unpackFloats(l.Value)
	made, _ := fromHexadecimal(l.Fingerprint)
	r := v.record.Head()
	switch {
	case made == store.TextOfCaller && r.Kind.IsPoint():
	case v.ahead:
		v.later = append(v.later, laterVector{sp, r.Kind, r.ID, made})
	case v.text == nil:
		_, text, err := textOf(tx, r.Kind, r.ID)
		if err != nil {
			return false, err
		}
		v.text = new(fingerprintOf(text))
		fallthrough
	default:
		if *v.text != made {
			return false, nil
		}
	}
	return true, tx.PutVector(sp, r, made, values)
}

// settle takes back the vectors of other texts among those that could not be told
// before, and counts them.
func (v *importVectors) settle(tx *store.WriteTx) (n int64, err error) {
	for _, l := range v.later {
		r, text, err := textOf(tx, l.kind, l.id)
		if err != nil {
			return n, err
		}
		if fingerprintOf(text) == l.made {
			continue
		}
		if err := tx.DropVector(l.space.ID, r); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// space adds a space that is not there; true when the store has another of this
// name, or one that another model fills.
func (v *importVectors) space(tx *store.WriteTx, s settingLine) (kept bool, err error) {
	space := EmbeddingSpace{ID: s.Space, Model: s.Model, Dimension: s.Dimension, TextVersion: s.TextVersion, Encoding: s.Encoding}
	wanted, err := space.check()
	if err != nil {
		return false, err
	}
	probe, _ := unpackFloats(s.Probe)
	there, err := tx.Space(s.Space)
	switch {
	case err != nil:
		return false, err
	case there == nil:
		if err := tx.AddSpace(wanted); err != nil {
			return false, err
		}
		there = wanted
	case !there.Same(wanted), there.Probe != nil && len(probe) > 0 && cosine(there.Probe, probe) < sameModel:
		return true, nil
	}
	if there.Probe == nil && len(probe) > 0 {
		if err := tx.SetProbe(there.ID, probe); err != nil {
			return false, err
		}
	}
	v.spaces[s.Space] = there
	return false, nil
}

// importSwitch sets a switch that is not set; true when it is set otherwise.
func importSwitch(tx *store.WriteTx, namespace int64, s settingLine) (kept bool, err error) {
	set, err := tx.VectorSwitches(namespace)
	if err != nil {
		return false, err
	}
	if there := set[s.Tier.number()]; there != nil {
		return *there != *s.Enabled, nil
	}
	return false, tx.SetVectorSwitch(s.Namespace, s.Tier.number(), *s.Enabled)
}

// importDefaultSpace sets a default that is not set; true when it is another, or
// when its space is not there.
func (v *importVectors) importDefaultSpace(tx *store.WriteTx, s settingLine) (kept bool, err error) {
	there, err := defaultSpace(tx, s.Namespace)
	if err != nil || there != nil {
		return there != nil && there.Name != s.Space, err
	}
	if v.spaces[s.Space] == nil {
		return true, nil
	}
	return false, setDefaultSpace(tx, s.Namespace, s.Space)
}

// packFloats is a vector as bytes, nil for none.
func packFloats(v []float32) []byte {
	if len(v) == 0 {
		return nil
	}
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// unpackFloats reads what packFloats wrote; false when it is no whole number of
// numbers.
func unpackFloats(raw []byte) ([]float32, bool) {
	if len(raw)%4 != 0 || len(raw) > 4*MaxDimension {
		return nil, false
	}
	out := make([]float32, 0, len(raw)/4)
	for ; len(raw) > 0; raw = raw[4:] {
		out = append(out, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	}
	return out, true
}

// hexadecimal is a fingerprint as text.
func hexadecimal(n uint64) string { return fmt.Sprintf("%016x", n) }

func fromHexadecimal(s string) (uint64, bool) {
	n, err := strconv.ParseUint(s, 16, 64)
	return n, err == nil && hexadecimal(n) == s
}
