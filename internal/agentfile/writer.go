package agentfile

import (
	"encoding/binary"
	"io"

	"github.com/loci-memory/loci/internal/errs"
)

// A Writer writes one snapshot: its points, then their earlier versions, then
// the relations, each in the order that the format asks for. An error ends it,
// and what was written is no snapshot. A Writer is for one goroutine.
type Writer struct {
	w       io.Writer
	rules   *rules
	sum     uint32 // the chain's, up to the last block
	section byte
	records uint32 // in the block
	block   []byte // head and payload of the block that is being filled
	err     error
}

// NewWriter writes the header. A header that breaks the format's rules is a
// validation error.
func NewWriter(w io.Writer, h *Header) (*Writer, error) {
	r, err := newRules(h)
	if err != nil {
		return nil, refused(err)
	}
	header, err := encodeHeader(h)
	if err != nil {
		return nil, refused(err)
	}
	start, sum := preface(header)
	f := &Writer{w: w, rules: r, sum: sum, section: sectionPoints, block: make([]byte, headLen, headLen+blockLen+blockLen/4)}
	if err := f.write(append(start, header...)); err != nil {
		return nil, err
	}
	return f, nil
}

// Point writes the next point. One that breaks the format's rules is a
// validation error. The point may be used again afterwards.
func (f *Writer) Point(p *Point) error {
	if err := f.enter(sectionPoints, "a point"); err != nil {
		return err
	}
	if err := f.rules.point(p); err != nil {
		return f.broken(refused(err))
	}
	return f.add(func(b []byte) []byte { return appendPoint(b, p) })
}

// Version writes the next earlier version. One that breaks the format's rules
// is a validation error.
func (f *Writer) Version(v *PointVersion) error {
	if err := f.enter(sectionVersions, "a version"); err != nil {
		return err
	}
	if err := f.rules.version(v); err != nil {
		return f.broken(refused(err))
	}
	return f.add(func(b []byte) []byte { return appendVersion(b, v) })
}

// Edge writes the next relation. One that breaks the format's rules is a
// validation error.
func (f *Writer) Edge(e *Edge) error {
	if err := f.enter(sectionEdges, "a relation"); err != nil {
		return err
	}
	if err := f.rules.edge(e); err != nil {
		return f.broken(refused(err))
	}
	return f.add(func(b []byte) []byte { return appendEdge(b, e) })
}

// Close writes what is left and the end, and says what the file holds. It does
// not close the writer below. A Writer is closed once.
func (f *Writer) Close() (Summary, error) {
	if err := f.enter(sectionEnd, "an end"); err != nil {
		return Summary{}, err
	}
	total := f.rules.sum
	total.Bytes += headLen + totalsLen + int64(len(endMagic))
	for _, n := range total.totals() {
		f.block = binary.LittleEndian.AppendUint64(f.block, uint64(*n))
	}
	putHead(f.block, sectionEnd, 0, f.sum)
	if err := f.write(append(f.block, endMagic...)); err != nil {
		return Summary{}, err
	}
	f.err, f.block = errs.New(errs.Closed, "the agent snapshot is written"), nil
	return total, nil
}

// enter makes section the one that is written to. Sections do not come back.
func (f *Writer) enter(section byte, what string) error {
	if f.err != nil {
		return f.err
	}
	if section < f.section {
		return f.broken(errs.New(errs.Validation, "agent snapshot: %s comes too late: points are first, then versions, then relations", what))
	}
	if section > f.section {
		if err := f.flush(len(f.block)); err != nil {
			return err
		}
		f.section = section
	}
	return nil
}

// add appends a record to the block. A record that the block has no room for
// begins the next.
func (f *Writer) add(record func([]byte) []byte) error {
	start := len(f.block)
	f.block = record(append(f.block, make([]byte, lengthLen)...))
	n := len(f.block) - start - lengthLen
	if n > MaxRecordBytes {
		return f.broken(errs.New(errs.Validation, "agent snapshot: a record takes %d bytes, more than %d", n, MaxRecordBytes))
	}
	binary.LittleEndian.PutUint32(f.block[start:], uint32(n))
	if f.records > 0 && len(f.block)-headLen > blockLen {
		if err := f.flush(start); err != nil {
			return err
		}
	}
	f.records++
	return nil
}

// flush writes the block up to its byte end, if it has records. What lies
// behind becomes the beginning of the next block.
func (f *Writer) flush(end int) error {
	if f.records == 0 {
		return nil
	}
	f.sum = putHead(f.block[:end], f.section, f.records, f.sum)
	if err := f.write(f.block[:end]); err != nil {
		return err
	}
	rest := f.block[end:]
	if len(rest) <= blockLen && cap(f.block) > 4*blockLen {
		f.block = make([]byte, headLen, headLen+blockLen+blockLen/4) // a large record is not held for the rest of the file
	}
	f.block, f.records = append(f.block[:headLen], rest...), 0
	return nil
}

// write writes b below.
func (f *Writer) write(b []byte) error {
	n, err := f.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return f.broken(errs.Wrap(errs.IO, err, "agent snapshot, byte %d", f.rules.sum.Bytes+int64(n)))
	}
	f.rules.sum.Bytes += int64(n)
	return nil
}

// broken makes err the last word of the Writer.
func (f *Writer) broken(err error) error {
	f.err = err
	return err
}

// refused is the error about what a Writer was given.
func refused(err error) error { return errs.New(errs.Validation, "agent snapshot: %s", err) }
