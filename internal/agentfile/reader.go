package agentfile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"slices"

	"github.com/loci-memory/loci/internal/errs"
)

// A Reader reads one snapshot and checks all of it on the way. It gives records
// before it knows the rest of the file: only the end says that the file is whole
// (see Check). A Reader is for one goroutine.
type Reader struct {
	r       io.Reader
	header  *Header
	rules   *rules
	sum     uint32 // the chain's, up to the last block
	at      int64  // bytes read so far
	section byte
	left    uint32 // records of the block that were not given yet
	block   []byte // payload of the block
	next    int    // where in block the next record begins
	err     error
}

// NewReader reads the header. A file of a newer version is a schema_version
// error, one that is damaged or no snapshot a validation error that says what is
// wrong at which byte. What the reader below fails with is an io error, unless
// it has a code.
func NewReader(r io.Reader) (*Reader, error) {
	f := &Reader{r: r, section: sectionPoints}
	start, err := f.read(prefaceLen, "the first bytes")
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if string(start[:8]) != Magic {
		return nil, unusable(0, "this is no agent snapshot: it does not begin with %s", Magic)
	}
	f.sum = crc32.Checksum(start[:20], castagnoli)
	version, length, sum := le.Uint32(start[8:]), le.Uint32(start[12:]), le.Uint32(start[16:])
	switch {
	case le.Uint32(start[20:]) != f.sum:
		return nil, unusable(0, "the first bytes are damaged: they do not have their checksum")
	case version > Version:
		return nil, errs.New(errs.SchemaVersion, "agent snapshot: it has version %d, made by a newer program; this one reads up to %d", version, Version)
	case version != Version:
		return nil, unusable(8, "there is no version %d", version)
	case length > MaxHeaderBytes:
		return nil, unusable(12, "the header has %d bytes, more than %d", length, MaxHeaderBytes)
	}
	b, err := f.read(int(length), "the header")
	if err != nil {
		return nil, err
	}
	if crc32.Checksum(b, castagnoli) != sum {
		return nil, unusable(prefaceLen, "the header is damaged: it does not have its checksum")
	}
	if f.header, err = decodeHeader(b); err != nil {
		return nil, unusable(prefaceLen, "%s", err)
	}
	if f.rules, err = newRules(f.header); err != nil {
		return nil, unusable(prefaceLen, "%s", err)
	}
	return f, nil
}

// Header gives the header, which is not to be changed.
func (f *Reader) Header() *Header { return f.header }

// Summary says what was given so far; after io.EOF, what the file holds.
func (f *Reader) Summary() Summary {
	sum := f.rules.sum
	sum.Bytes = f.at
	return sum
}

// Next gives the next record, a *Point, a *PointVersion or an *Edge, which is
// the caller's to keep. io.EOF comes behind the last one and means that the file
// is whole and that nothing follows it. Errors are those of NewReader; each
// further call gives the same one.
func (f *Reader) Next() (any, error) {
	if f.err != nil {
		return nil, f.err
	}
	record, err := f.record()
	if err != nil {
		f.err, f.block = err, nil
		return nil, err
	}
	return record, nil
}

func (f *Reader) record() (any, error) {
	if f.left == 0 {
		if err := f.nextBlock(); err != nil {
			return nil, err
		}
	}
	f.left--
	at := f.at - int64(len(f.block)-f.next)
	rest := f.block[f.next:]
	if len(rest) < lengthLen {
		return nil, unusable(at, "the block ends before its last record")
	}
	n := binary.LittleEndian.Uint32(rest)
	rest = rest[lengthLen:]
	if uint64(n) > uint64(len(rest)) {
		return nil, unusable(at, "a record of %d bytes does not fit in its block", n)
	}
	if n > MaxRecordBytes {
		return nil, unusable(at, "a record takes %d bytes, more than %d", n, MaxRecordBytes)
	}
	f.next += lengthLen + int(n)
	if f.left == 0 && f.next < len(f.block) {
		return nil, unusable(at+lengthLen+int64(n), "the block goes on behind its last record")
	}
	c := cursor{b: rest[:n]}
	record, err := f.decode(&c)
	if c.fail != "" {
		return nil, unusable(at+lengthLen+int64(c.at), "%s", c.fail)
	}
	if err != nil {
		return nil, unusable(at, "%s", err)
	}
	return record, nil
}

// decode gives what the record is; the cursor says whether it could be read.
func (f *Reader) decode(c *cursor) (record any, err error) {
	switch f.section {
	case sectionPoints:
		p := c.point(f.header.Dimension)
		if c.fail == "" {
			err = f.rules.point(p)
		}
		return p, err
	case sectionVersions:
		v := c.version()
		if c.fail == "" {
			err = f.rules.version(v)
		}
		return v, err
	default:
		e := c.edge()
		if c.fail == "" {
			err = f.rules.edge(e)
		}
		return e, err
	}
}

// nextBlock reads a block of records, or the end: then the error is io.EOF if all
// is well.
func (f *Reader) nextBlock() error {
	at := f.at
	head, err := f.read(headLen, "the head of a block")
	if err != nil {
		return err
	}
	le := binary.LittleEndian
	f.sum = crc32.Update(f.sum, castagnoli, head[:headSummed])
	section, length, records, sum := head[0], le.Uint32(head[4:]), le.Uint32(head[8:]), le.Uint32(head[12:])
	switch {
	case le.Uint32(head[headSummed:]) != f.sum:
		return unusable(at, "the head of a block is damaged or not in its place: it does not have its checksum")
	case section < f.section || section > sectionEnd || head[1]|head[2]|head[3] != 0:
		return unusable(at, "a block of section %d behind one of section %d", section, f.section)
	case section == sectionEnd && (records != 0 || length != totalsLen):
		return unusable(at, "the end has %d records and %d bytes", records, length)
	case section != sectionEnd && records == 0:
		return unusable(at, "a block without records")
	case length > blockLen && (records > 1 || length > lengthLen+MaxRecordBytes):
		return unusable(at, "a block of %d records takes %d bytes", records, length)
	}
	if f.block, err = f.read(int(length), "a block"); err != nil {
		return err
	}
	if crc32.Checksum(f.block, castagnoli) != sum {
		return unusable(at+headLen, "a block is damaged: it does not have its checksum")
	}
	f.section, f.left, f.next = section, records, 0
	if section == sectionEnd {
		return f.end()
	}
	return nil
}

// end compares the totals with what was read and sees to it that nothing
// follows.
func (f *Reader) end() error {
	at := f.at - totalsLen
	total := f.rules.sum
	total.Bytes = f.at + int64(len(endMagic))
	for i, n := range total.totals() {
		if stored := binary.LittleEndian.Uint64(f.block[8*i:]); stored != uint64(*n) {
			return unusable(at+8*int64(i), "the end counts %d where there are %d", stored, *n)
		}
	}
	magic, err := f.read(len(endMagic), "the last bytes")
	if err != nil {
		return err
	}
	if string(magic) != endMagic {
		return unusable(f.at-int64(len(endMagic)), "the file does not end with %s", endMagic)
	}
	for empty := 0; ; empty++ {
		switch n, err := f.r.Read(magic[:1]); {
		case n > 0:
			return unusable(f.at, "the file goes on behind its end")
		case errors.Is(err, io.EOF):
			return io.EOF
		case err == nil && empty < 100:
		case err == nil:
			return errs.Wrap(errs.IO, io.ErrNoProgress, "agent snapshot, byte %d", f.at)
		default:
			return errs.Wrap(errs.IO, err, "agent snapshot, byte %d", f.at)
		}
	}
}

// read gives the next n bytes, in the memory of the block before. It makes room
// for what has come, not for what a length claims.
func (f *Reader) read(n int, what string) ([]byte, error) {
	b := f.block[:0]
	if cap(b) > 4*blockLen && n <= blockLen {
		b = nil // a large record is not held for the rest of the file
	}
	for len(b) < n {
		more := min(n-len(b), max(len(b), blockLen))
		b = slices.Grow(b, more)
		got, err := io.ReadFull(f.r, b[len(b):len(b)+more])
		f.at += int64(got)
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil, unusable(f.at, "the file ends in the middle of %s", what)
		case err != nil:
			return nil, errs.Wrap(errs.IO, err, "agent snapshot, byte %d", f.at)
		}
		b = b[:len(b)+got]
	}
	return b, nil
}

// Check reads a whole file and gives its header and what it holds. Errors are
// those of a Reader, of which Check is the use before anything is replaced.
func Check(r io.Reader) (*Header, *Summary, error) {
	f, err := NewReader(r)
	if err != nil {
		return nil, nil, err
	}
	for {
		_, err := f.Next()
		if errors.Is(err, io.EOF) {
			sum := f.Summary()
			return f.header, &sum, nil
		}
		if err != nil {
			return nil, nil, err
		}
	}
}
