// Package modelfile reads and writes model files: named runs of bytes behind a
// checked directory, laid out so that they can be used where they lie, in the
// executable's read-only data or in a mapped file. docs/format/model.md
// specifies the bytes.
package modelfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
	"unsafe"
)

// What every model file begins with.
const (
	Magic   = "LOCIMODL"
	Version = 1
)

// Sizes of the fixed parts, in bytes.
const (
	headerLen = 32
	entryLen  = 48
	nameLen   = 24
	// Align is what a section's offset is a multiple of, counted from the start
	// of the file. Where the file itself lies in memory is not known.
	Align = 64
	// MaxSections is the largest number of sections of a file.
	MaxSections = 1024
)

// ErrFormat is wrapped by every error about a file's content.
var ErrFormat = errors.New("not a usable model file")

// A Section is a named run of bytes.
type Section struct {
	Name string // 1 to 24 bytes of printable ASCII, unique in its file
	Data string
}

// A File is an open model file. It is safe for concurrent use.
type File struct {
	sections []Section
	sums     []uint32
}

// Open reads the directory of a model file and checks all that can be checked
// without reading the sections: see Verify for those. The sections are parts of
// data, which must stay unchanged for as long as they are in use. Errors wrap
// ErrFormat.
//
// The data is a string because nobody may write it: it may lie in the
// executable's read-only part, or in pages shared with other processes.
func Open(data string) (*File, error) {
	if len(data) < headerLen || data[:8] != Magic {
		return nil, fmt.Errorf("%w: no model file begins like this", ErrFormat)
	}
	le, head := binary.LittleEndian, []byte(data[:headerLen])
	if sum(data[:28]) != le.Uint32(head[28:]) {
		return nil, fmt.Errorf("%w: the header is damaged", ErrFormat)
	}
	if v := le.Uint32(head[8:]); v != Version {
		return nil, fmt.Errorf("%w: version %d, and this program reads version %d", ErrFormat, v, Version)
	}
	count, total := le.Uint32(head[12:]), le.Uint64(head[16:])
	if total != uint64(len(data)) {
		return nil, fmt.Errorf("%w: %d bytes long, and its header says %d", ErrFormat, len(data), total)
	}
	if count > MaxSections || headerLen+uint64(count)*entryLen > total {
		return nil, fmt.Errorf("%w: %d sections do not fit", ErrFormat, count)
	}
	dir := []byte(data[headerLen : headerLen+int(count)*entryLen])
	if crc32.Checksum(dir, castagnoli()) != le.Uint32(head[24:]) {
		return nil, fmt.Errorf("%w: the directory is damaged", ErrFormat)
	}
	f := &File{sections: make([]Section, count), sums: make([]uint32, count)}
	end := uint64(headerLen + len(dir))
	for i := range f.sections {
		entry := dir[i*entryLen : (i+1)*entryLen]
		name, err := readName(entry[:nameLen])
		if err != nil {
			return nil, err
		}
		if _, twice := f.Section(name); twice {
			return nil, fmt.Errorf("%w: two sections are called %s", ErrFormat, name)
		}
		offset, length := le.Uint64(entry[24:]), le.Uint64(entry[32:])
		if offset != aligned(end) || offset > total || length > total-offset || le.Uint32(entry[44:]) != 0 {
			return nil, fmt.Errorf("%w: section %s lies where it cannot", ErrFormat, name)
		}
		if strings.Trim(data[end:offset], "\x00") != "" {
			return nil, fmt.Errorf("%w: something lies before section %s", ErrFormat, name)
		}
		end = offset + length
		f.sections[i] = Section{Name: name, Data: data[offset:end]}
		f.sums[i] = le.Uint32(entry[40:])
	}
	if end != total {
		return nil, fmt.Errorf("%w: %d bytes lie behind the last section", ErrFormat, total-end)
	}
	return f, nil
}

// Section gives a section's bytes and whether the file has it.
func (f *File) Section(name string) (string, bool) {
	for _, s := range f.sections {
		if s.Name == name && name != "" {
			return s.Data, true
		}
	}
	return "", false
}

// Sections gives all sections in the order of the file.
func (f *File) Sections() []Section { return append([]Section(nil), f.sections...) }

// Need gives the sections with these names, in their order, or an error that
// wraps ErrFormat and says which is not there.
func (f *File) Need(names ...string) ([]string, error) {
	out := make([]string, len(names))
	for i, name := range names {
		data, ok := f.Section(name)
		if !ok {
			return nil, fmt.Errorf("%w: section %s is missing", ErrFormat, name)
		}
		out[i] = data
	}
	return out, nil
}

// Verify reads every section and compares it with its checksum. Open does not,
// since that would read a whole model in for one row of its table: a file that
// came over a wire or from a disk deserves it once, one inside the executable
// is as good as the executable.
func (f *File) Verify() error {
	for i, s := range f.sections {
		if sum(s.Data) != f.sums[i] {
			return fmt.Errorf("%w: section %s is damaged", ErrFormat, s.Name)
		}
	}
	return nil
}

// Write writes a model file. The same sections give the same bytes. Sections
// that Open would refuse are an error that wraps ErrFormat.
func Write(w io.Writer, sections []Section) error {
	if len(sections) > MaxSections {
		return fmt.Errorf("%w: %d sections are more than %d", ErrFormat, len(sections), MaxSections)
	}
	le := binary.LittleEndian
	dir := make([]byte, len(sections)*entryLen)
	offsets := make([]uint64, len(sections))
	seen := make(map[string]bool, len(sections))
	end := uint64(headerLen + len(dir))
	for i, s := range sections {
		entry := dir[i*entryLen:]
		copy(entry[:nameLen], s.Name)
		if name, err := readName(entry[:nameLen]); err != nil || name != s.Name || seen[s.Name] {
			return fmt.Errorf("%w: %q cannot be a section's name, or is one already", ErrFormat, s.Name)
		}
		seen[s.Name] = true
		offsets[i] = aligned(end)
		end = offsets[i] + uint64(len(s.Data))
		le.PutUint64(entry[24:], offsets[i])
		le.PutUint64(entry[32:], uint64(len(s.Data)))
		le.PutUint32(entry[40:], sum(s.Data))
	}
	head := append(make([]byte, 0, headerLen+len(dir)), Magic...)
	head = le.AppendUint32(head, Version)
	head = le.AppendUint32(head, uint32(len(sections)))
	head = le.AppendUint64(head, end)
	head = le.AppendUint32(head, crc32.Checksum(dir, castagnoli()))
	head = le.AppendUint32(head, crc32.Checksum(head, castagnoli()))
	head = append(head, dir...)
	if _, err := w.Write(head); err != nil {
		return err
	}
	at := uint64(len(head))
	for i, s := range sections {
		if _, err := w.Write(make([]byte, offsets[i]-at)); err != nil {
			return err
		}
		if _, err := io.WriteString(w, s.Data); err != nil {
			return err
		}
		at = offsets[i] + uint64(len(s.Data))
	}
	return nil
}

// readName takes the zeros off a name and checks what is left.
func readName(b []byte) (string, error) {
	n := 0
	for n < len(b) && b[n] > ' ' && b[n] < 0x7f {
		n++
	}
	for _, rest := range b[n:] {
		if rest != 0 {
			return "", fmt.Errorf("%w: a section's name is not printable ASCII", ErrFormat)
		}
	}
	if n == 0 {
		return "", fmt.Errorf("%w: a section has no name", ErrFormat)
	}
	return string(b[:n]), nil
}

// aligned is the first offset for a section at or behind end.
func aligned(end uint64) uint64 { return (end + Align - 1) / Align * Align }

// sum is the checksum of s, which is read where it lies.
func sum(s string) uint32 {
	return crc32.Checksum(unsafe.Slice(unsafe.StringData(s), len(s)), castagnoli())
}

// castagnoli is the table of CRC-32C; the package crc32 makes it only once.
func castagnoli() *crc32.Table { return crc32.MakeTable(crc32.Castagnoli) }
