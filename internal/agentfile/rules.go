package agentfile

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"
)

// kinds are the kinds in their order; a kind's place is its number in here.
var kinds = [...]string{KindFact, KindEpisode, KindProcedure}

// kindOf gives a kind's place, or -1.
func kindOf(name string) int {
	switch name { // not a search: this runs for every record
	case KindFact:
		return 0
	case KindEpisode:
		return 1
	case KindProcedure:
		return 2
	}
	return -1
}

// A place is a point's place in the order of a file.
type place struct {
	kind int
	key  uint64
}

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.kind, q.kind), cmp.Compare(p.key, q.key))
}

func (p place) String() string { return fmt.Sprintf("%s %d", kinds[p.kind], p.key) }

// rules are what a file must obey. They see its records in the order of the
// file and remember what the next ones are held against: of all points, the
// keys, which is 8 bytes each.
type rules struct {
	dimension int
	holds     [len(kinds)]bool
	keys      [len(kinds)][]uint64 // ascending
	sum       Summary

	lastPoint   place // the three mean something once the summary counts one
	lastVersion PointVersion
	lastEdge    Edge
}

// newRules checks a header.
func newRules(h *Header) (*rules, error) {
	r := &rules{dimension: h.Dimension}
	for _, f := range []struct{ name, text string }{{"namespace", h.Namespace}, {"scope", h.Scope}, {"space", h.Space}} {
		if !utf8.ValidString(f.text) {
			return nil, fmt.Errorf("the header's %s is not UTF-8", f.name)
		}
	}
	if h.Dimension < 0 || h.Dimension > MaxDimension {
		return nil, fmt.Errorf("the header's dimension %d is not in 0 to %d", h.Dimension, MaxDimension)
	}
	last := -1
	for _, name := range h.Kinds {
		kind := kindOf(name)
		if kind <= last {
			return nil, errors.New("the header's kinds are not fact, episode, procedure or some of them in this order")
		}
		r.holds[kind], last = true, kind
	}
	if last < 0 {
		return nil, errors.New("the header names no kind")
	}
	return r, object("the header's settings", h.Settings)
}

// point checks the next point.
func (r *rules) point(p *Point) error {
	at, err := r.place(p.Kind, p.Key)
	if err != nil {
		return err
	}
	if r.sum.Points() > 0 && r.lastPoint.compare(at) >= 0 {
		return fmt.Errorf("%v comes behind %v: points ascend by kind and key", at, r.lastPoint)
	}
	if err := r.pointValues(p); err != nil {
		return fmt.Errorf("%v: %w", at, err)
	}
	r.lastPoint = at
	r.keys[at.kind] = append(r.keys[at.kind], at.key)
	*[...]*int64{&r.sum.Facts, &r.sum.Episodes, &r.sum.Procedures}[at.kind]++
	if len(p.Vector) > 0 {
		r.sum.Vectors++
	}
	return nil
}

func (r *rules) pointValues(p *Point) error {
	if len(p.Tags) > MaxTags {
		return fmt.Errorf("it has %d tags, more than %d", len(p.Tags), MaxTags)
	}
	for _, tag := range p.Tags {
		if tag == "" || !utf8.ValidString(tag) {
			return errors.New("a tag is empty or not UTF-8")
		}
	}
	switch {
	case !(p.Confidence >= 0 && p.Confidence <= 1):
		return fmt.Errorf("the confidence %v is not in 0 to 1", p.Confidence)
	case p.Successes < 0 || p.Successes > p.Uses:
		return fmt.Errorf("%d successes of %d uses", p.Successes, p.Uses)
	case p.Version < 1:
		return fmt.Errorf("the version %d is below 1", p.Version)
	case len(p.Vector) == 0 && p.VectorText != 0:
		return errors.New("it has a vector's fingerprint without a vector")
	case len(p.Vector) > 0 && len(p.Vector) != r.dimension:
		return fmt.Errorf("the vector has %d numbers, the header says %d", len(p.Vector), r.dimension)
	}
	return cmp.Or(text("title", p.Title), text("content", p.Content), text("thread", p.Thread), container("data", p.Data),
		object("metadata", p.Metadata), container("evidence", p.Evidence), usable(p.Vector))
}

// version checks the next version.
func (r *rules) version(v *PointVersion) error {
	at, err := r.place(v.Kind, v.Key)
	if err != nil {
		return err
	}
	if r.sum.Versions > 0 {
		last := &r.lastVersion
		before := place{kindOf(last.Kind), last.Key}
		if cmp.Or(before.compare(at), cmp.Compare(last.Version, v.Version)) >= 0 {
			return fmt.Errorf("version %d of %v comes behind version %d of %v: versions ascend by kind, key and version",
				v.Version, at, last.Version, before)
		}
	}
	if !r.has(at) {
		return fmt.Errorf("version %d of %v: there is no such point", v.Version, at)
	}
	if v.Version < 1 {
		return fmt.Errorf("%v: the version %d is below 1", at, v.Version)
	}
	if err := cmp.Or(text("title", v.Title), text("content", v.Content), container("data", v.Data),
		object("metadata", v.Metadata)); err != nil {
		return fmt.Errorf("version %d of %v: %w", v.Version, at, err)
	}
	r.lastVersion = PointVersion{Kind: v.Kind, Key: v.Key, Version: v.Version}
	r.sum.Versions++
	return nil
}

// edge checks the next edge.
func (r *rules) edge(e *Edge) error {
	from, to := place{kindOf(e.FromKind), e.From}, place{kindOf(e.ToKind), e.To}
	if from.kind < 0 || to.kind < 0 {
		return errors.New("a relation between points of a kind that there is not")
	}
	if r.sum.Edges > 0 {
		last := &r.lastEdge
		lastFrom, lastTo := place{kindOf(last.FromKind), last.From}, place{kindOf(last.ToKind), last.To}
		if cmp.Or(lastFrom.compare(from), cmp.Compare(last.Type, e.Type), lastTo.compare(to)) >= 0 {
			return fmt.Errorf("the relation from %v to %v comes behind the one from %v to %v: relations ascend by from, type and to",
				from, to, lastFrom, lastTo)
		}
	}
	if err := r.edgeValues(e, from, to); err != nil {
		return fmt.Errorf("the relation from %v to %v: %w", from, to, err)
	}
	r.lastEdge = Edge{FromKind: e.FromKind, From: e.From, Type: e.Type, ToKind: e.ToKind, To: e.To}
	r.sum.Edges++
	return nil
}

func (r *rules) edgeValues(e *Edge, from, to place) error {
	if !r.holds[from.kind] && !r.holds[to.kind] {
		return errors.New("the file holds neither kind")
	}
	for _, end := range [...]place{from, to} {
		if r.holds[end.kind] && !r.has(end) {
			return fmt.Errorf("there is no %v", end)
		}
	}
	if e.Type == "" {
		return errors.New("it has no type")
	}
	return cmp.Or(text("type", e.Type), object("properties", e.Properties))
}

// place gives the place of a point of a kind that the file holds.
func (r *rules) place(kind string, key uint64) (place, error) {
	k := kindOf(kind)
	if k < 0 {
		return place{}, errors.New("a point of a kind that there is not")
	}
	if !r.holds[k] {
		return place{}, fmt.Errorf("%s %d: the header does not name this kind", kind, key)
	}
	return place{k, key}, nil
}

// has says whether a point was seen.
func (r *rules) has(p place) bool {
	_, ok := slices.BinarySearch(r.keys[p.kind], p.key)
	return ok
}

// usable says what is wrong with a vector. It looks at the bits, since it runs
// over every number of a file.
func usable(vector []float32) error {
	if len(vector) == 0 {
		return nil
	}
	const exponent, sign = 0x7f800000, 1 << 31
	some := uint32(0)
	for _, x := range vector {
		bits := math.Float32bits(x)
		if bits&exponent == exponent {
			return errors.New("the vector has a number that is not finite")
		}
		some |= bits &^ sign
	}
	if some == 0 {
		return errors.New("the vector is all zeros")
	}
	return nil
}

// text says what is wrong with a text.
func text(name, s string) error {
	if !utf8.ValidString(s) {
		return fmt.Errorf("%s is not UTF-8", name)
	}
	return nil
}

// object says what is wrong with what should be a JSON object or nothing.
func object(name string, raw json.RawMessage) error {
	if len(raw) > 0 && (firstOf(raw) != '{' || !valid(raw)) {
		return fmt.Errorf("%s is not a JSON object", name)
	}
	return nil
}

// container is object for what may be an array too.
func container(name string, raw json.RawMessage) error {
	if len(raw) > 0 && (firstOf(raw) != '{' && firstOf(raw) != '[' || !valid(raw)) {
		return fmt.Errorf("%s is not a JSON object or array", name)
	}
	return nil
}

// firstOf is the first byte that is no blank, which tells what a JSON text is.
func firstOf(raw []byte) byte {
	for _, b := range raw {
		if b != ' ' && b != '\t' && b != '\n' && b != '\r' {
			return b
		}
	}
	return 0
}

func valid(raw []byte) bool { return utf8.Valid(raw) && json.Valid(raw) }
