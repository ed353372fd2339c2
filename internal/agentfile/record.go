package agentfile

import (
	"encoding/binary"
	"encoding/json"
	"math"
)

// Bits of the flags that a point and a version have: what follows that may be
// absent.
const (
	hasPosition = 1 << iota
	hasExpiresAt
	hasValidFrom
	hasValidTo
	hasHappenedAt
	hasLastUsed
	hasConfidence
	hasVector
)

// firstKind is the number of the first kind; it and those behind it are the
// numbers that the truth knows the kinds by.
const firstKind = 8

func appendTime(b []byte, t int64) []byte { return binary.LittleEndian.AppendUint64(b, uint64(t)) }

func appendText[T ~string | ~[]byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendTimes appends those that are there and tells them in the flags at b[at].
func appendTimes(b []byte, at int, times ...optional) []byte {
	for _, o := range times {
		if *o.value != nil {
			b[at] |= o.flag
			b = appendTime(b, **o.value)
		}
	}
	return b
}

// An optional is a number that may be absent, and the flag that says so.
type optional struct {
	value **int64
	flag  byte
}

// optionals are a point's, in the order of the record.
func (p *Point) optionals() [6]optional {
	return [6]optional{
		{&p.Position, hasPosition}, {&p.ExpiresAt, hasExpiresAt}, {&p.ValidFrom, hasValidFrom}, {&p.ValidTo, hasValidTo},
		{&p.HappenedAt, hasHappenedAt}, {&p.LastUsed, hasLastUsed},
	}
}

// optionals are a version's, in the order of the record.
func (v *PointVersion) optionals() [2]optional {
	return [2]optional{{&v.ValidFrom, hasValidFrom}, {&v.ValidTo, hasValidTo}}
}

// appendPoint appends a point that the rules have taken.
func appendPoint(b []byte, p *Point) []byte {
	le := binary.LittleEndian
	b = append(b, byte(firstKind+kindOf(p.Kind)), 0)
	flags := len(b) - 1
	b = binary.AppendUvarint(b, p.Key)
	b = appendTime(b, p.Created)
	b = appendTime(b, p.Updated)
	b = appendTime(b, p.Recorded)
	optionals := p.optionals()
	b = appendTimes(b, flags, optionals[:]...)
	if bits := math.Float64bits(p.Confidence); bits != 0 {
		b[flags] |= hasConfidence
		b = le.AppendUint64(b, bits)
	}
	b = binary.AppendUvarint(b, uint64(p.Uses))
	b = binary.AppendUvarint(b, uint64(p.Successes))
	b = binary.AppendUvarint(b, uint64(p.Version))
	b = appendText(b, p.Title)
	b = appendText(b, p.Content)
	b = appendText(b, p.Thread)
	b = binary.AppendUvarint(b, uint64(len(p.Tags)))
	for _, tag := range p.Tags {
		b = appendText(b, tag)
	}
	b = appendText(b, p.Data)
	b = appendText(b, p.Metadata)
	b = appendText(b, p.Evidence)
	if len(p.Vector) == 0 {
		return b
	}
	b[flags] |= hasVector
	b = le.AppendUint64(b, p.VectorText)
	at := len(b)
	b = append(b, make([]byte, 4*len(p.Vector))...)
	for i, x := range p.Vector {
		le.PutUint32(b[at+4*i:], math.Float32bits(x))
	}
	return b
}

// appendVersion appends a version that the rules have taken.
func appendVersion(b []byte, v *PointVersion) []byte {
	b = append(b, byte(firstKind+kindOf(v.Kind)), 0)
	flags := len(b) - 1
	b = binary.AppendUvarint(b, v.Key)
	b = binary.AppendUvarint(b, uint64(v.Version))
	b = appendTime(b, v.RecordedAt)
	b = appendTime(b, v.RecordedTo)
	optionals := v.optionals()
	b = appendTimes(b, flags, optionals[:]...)
	b = appendText(b, v.Title)
	b = appendText(b, v.Content)
	b = appendText(b, v.Data)
	return appendText(b, v.Metadata)
}

// appendEdge appends an edge that the rules have taken.
func appendEdge(b []byte, e *Edge) []byte {
	b = append(b, byte(firstKind+kindOf(e.FromKind)), byte(firstKind+kindOf(e.ToKind)))
	b = binary.AppendUvarint(b, e.From)
	b = binary.AppendUvarint(b, e.To)
	b = binary.LittleEndian.AppendUint64(b, e.ID)
	b = appendTime(b, e.CreatedAt)
	b = appendText(b, e.Type)
	return appendText(b, e.Properties)
}

// A cursor reads a record. What it gives after a failure means nothing.
type cursor struct {
	b    []byte
	at   int
	fail string // what is wrong, at byte at; the first thing only
}

// A span is where a text lies in a record.
type span struct{ from, to int }

func (c *cursor) bad(what string) {
	if c.fail == "" {
		c.fail = what
	}
}

// take gives the next n bytes, or nil.
func (c *cursor) take(n uint64) []byte {
	if c.fail != "" || n > uint64(len(c.b)-c.at) {
		c.bad("the record is too short")
		return nil
	}
	c.at += int(n)
	return c.b[c.at-int(n) : c.at : c.at]
}

func (c *cursor) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (c *cursor) uint64() uint64 {
	if b := c.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (c *cursor) time() int64 { return int64(c.uint64()) }

// uvarint reads a number, which has one form only: the shortest.
func (c *cursor) uvarint() uint64 {
	if c.fail != "" {
		return 0
	}
	v, n := binary.Uvarint(c.b[c.at:])
	switch {
	case n == 0:
		c.bad("the record is too short")
		return 0
	case n < 0 || n > 1 && c.b[c.at+n-1] == 0:
		c.bad("a number is not in its shortest form")
		return 0
	}
	c.at += n
	return v
}

// count reads a number that an int64 holds.
func (c *cursor) count() int64 {
	v := c.uvarint()
	if v > math.MaxInt64 {
		c.bad("a number is too large")
		return 0
	}
	return int64(v)
}

func (c *cursor) kind() string {
	k := c.byte() - firstKind
	if int(k) >= len(kinds) {
		c.bad("there is no such kind")
		return ""
	}
	return kinds[k]
}

// text gives the place of the next text.
func (c *cursor) text() span {
	n := c.uvarint()
	c.take(n)
	if c.fail != "" {
		return span{}
	}
	return span{c.at - int(n), c.at}
}

// times reads those that the flags tell, into the places where values has room
// for them.
func (c *cursor) times(flags byte, values []int64, times ...optional) {
	for i, o := range times {
		if flags&o.flag != 0 {
			values[i] = c.time()
			*o.value = &values[i]
		}
	}
}

// texts is a copy of the texts from a byte of the record on. They share one
// piece of memory, since they are read and dropped together.
type texts struct {
	all  string
	from int
}

func (c *cursor) textsFrom(at int) texts { return texts{string(c.b[at:c.at]), at} }

func (t texts) cut(s span) string {
	if s.from == s.to {
		return ""
	}
	return t.all[s.from-t.from : s.to-t.from]
}

// raws gives copies of JSON texts, in one piece of memory. Appending to one
// does not touch the next.
func (c *cursor) raws(into []*json.RawMessage, spans []span) {
	n := 0
	for _, s := range spans {
		n += s.to - s.from
	}
	if n == 0 {
		return
	}
	all := make([]byte, 0, n)
	for i, s := range spans {
		if s.from == s.to {
			continue
		}
		at := len(all)
		all = append(all, c.b[s.from:s.to]...)
		*into[i] = all[at:len(all):len(all)]
	}
}

// end says that nothing follows.
func (c *cursor) end() {
	if c.fail == "" && c.at < len(c.b) {
		c.bad("the record is too long")
	}
}

// point reads a point whose vector, if any, has dimension numbers.
func (c *cursor) point(dimension int) *Point {
	room := new(struct {
		Point
		values [6]int64
	})
	p := &room.Point
	p.Kind = c.kind()
	flags := c.byte()
	p.Key = c.uvarint()
	p.Created, p.Updated, p.Recorded = c.time(), c.time(), c.time()
	optionals := p.optionals()
	c.times(flags, room.values[:], optionals[:]...)
	if flags&hasConfidence != 0 {
		bits := c.uint64()
		if bits == 0 {
			c.bad("a confidence of 0 is left out")
		}
		p.Confidence = math.Float64frombits(bits)
	}
	p.Uses, p.Successes, p.Version = c.count(), c.count(), c.count()
	from := c.at
	title, content, thread := c.text(), c.text(), c.text()
	tags := c.tags()
	again := *c
	for range tags {
		c.text()
	}
	if c.fail != "" {
		return p
	}
	all := c.textsFrom(from)
	p.Title, p.Content, p.Thread = all.cut(title), all.cut(content), all.cut(thread)
	if tags > 0 {
		p.Tags = make([]string, tags)
		for i := range p.Tags {
			p.Tags[i] = all.cut(again.text())
		}
	}
	spans := [...]span{c.text(), c.text(), c.text()}
	c.raws([]*json.RawMessage{&p.Data, &p.Metadata, &p.Evidence}, spans[:])
	if flags&hasVector != 0 {
		p.VectorText = c.uint64()
		p.Vector = c.vector(dimension)
	}
	c.end()
	return p
}

// tags gives the number of a point's tags. There are no empty ones, so what they
// take is in proportion to the record.
func (c *cursor) tags() int {
	n := c.uvarint()
	if n > MaxTags || n > uint64(len(c.b)-c.at)/2 {
		c.bad("there are too many tags")
		return 0
	}
	return int(n)
}

func (c *cursor) vector(dimension int) []float32 {
	if dimension == 0 {
		c.bad("a vector in a file without vectors")
	}
	b := c.take(4 * uint64(dimension))
	if b == nil {
		return nil
	}
	out := make([]float32, dimension)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// version reads a version.
func (c *cursor) version() *PointVersion {
	room := new(struct {
		PointVersion
		values [2]int64
	})
	v := &room.PointVersion
	v.Kind = c.kind()
	flags := c.byte()
	if flags&^(hasValidFrom|hasValidTo) != 0 {
		c.bad("a version has other flags than a validity's")
	}
	v.Key = c.uvarint()
	v.Version = c.count()
	v.RecordedAt, v.RecordedTo = c.time(), c.time()
	optionals := v.optionals()
	c.times(flags, room.values[:], optionals[:]...)
	from := c.at
	title, content := c.text(), c.text()
	if c.fail != "" {
		return v
	}
	all := c.textsFrom(from)
	v.Title, v.Content = all.cut(title), all.cut(content)
	spans := [...]span{c.text(), c.text()}
	c.raws([]*json.RawMessage{&v.Data, &v.Metadata}, spans[:])
	c.end()
	return v
}

// edge reads an edge.
func (c *cursor) edge() *Edge {
	e := &Edge{FromKind: c.kind(), ToKind: c.kind(), From: c.uvarint(), To: c.uvarint(), ID: c.uint64(), CreatedAt: c.time()}
	from := c.at
	t := c.text()
	if c.fail != "" {
		return e
	}
	e.Type = c.textsFrom(from).cut(t)
	spans := [...]span{c.text()}
	c.raws([]*json.RawMessage{&e.Properties}, spans[:])
	c.end()
	return e
}
