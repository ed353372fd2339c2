package embedded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"sync/atomic"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errDamaged marks a file that is not what was written.
var errDamaged = errors.New("damaged index file")

// A section file, all integers little-endian (docs/format/text-index.md):
//
//	magic, version
//	sections, each at a multiple of 8
//	table: number of sections; offset, length, CRC-32C of each
//	trailer: offset of the table, CRC-32C of table, file length, magic
const (
	segHeaderSize = 16
	trailerSize   = 32
	sectionEntry  = 24
)

// section is the number of a section; each sort of file has its own.
type section int

// fileForm tells one sort of section file from another.
type fileForm struct {
	magic    string // 8 bytes
	version  uint32
	sections int
	// lazy is the section whose checksum whoever reads it verifies, and whose
	// place in the table is 0; -1: none.
	lazy section
}

func (f *fileForm) tableSize() int { return 8 + f.sections*sectionEntry }

// mappedFile is an open, mapped section file. It is immutable and lives until
// the last snapshot that holds it is closed.
type mappedFile struct {
	name string
	file ReadFile
	size int64
	refs atomic.Int64
	drop atomic.Bool // remove the file when the last reference goes
}

func (m *mappedFile) acquire() { m.refs.Add(1) }

// release gives a reference back; the last one unmaps the file and, when it was
// replaced by a merge, removes it.
func (m *mappedFile) release(fs FS) error {
	if m.refs.Add(-1) != 0 {
		return nil
	}
	err := m.file.Close()
	if m.drop.Load() {
		if rerr := fs.Remove(m.name); err == nil {
			err = rerr
		}
	}
	return err
}

// openSections opens a file and verifies its length and checksums, then maps
// it; what it gives holds one reference.
func openSections(fs FS, name string, form fileForm) (m *mappedFile, sec [][]byte, err error) {
	f, err := fs.Open(name)
	if err != nil {
		return nil, nil, err
	}
	if sec, err = readSections(f, form); err != nil {
		f.Close()
		return nil, nil, fmt.Errorf("index file %s: %w", name, err)
	}
	m = &mappedFile{name: name, file: f, size: f.Size()}
	m.refs.Store(1)
	return m, sec, nil
}

func readSections(f ReadFile, form fileForm) ([][]byte, error) {
	size := f.Size()
	if size < segHeaderSize+trailerSize {
		return nil, fmt.Errorf("%w: %d bytes are too few", errDamaged, size)
	}
	var tr [trailerSize]byte
	if _, err := f.ReadAt(tr[:], size-trailerSize); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if string(tr[24:]) != form.magic || int64(le.Uint64(tr[16:])) != size {
		return nil, fmt.Errorf("%w: no trailer, or of another length", errDamaged)
	}
	var head [segHeaderSize]byte
	if _, err := f.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	// Before the table, whose length is another in another version.
	if string(head[:8]) != form.magic || le.Uint32(head[8:]) != form.version {
		return nil, fmt.Errorf("%w: header, or another version", errDamaged)
	}
	tableOff := int64(le.Uint64(tr[:]))
	tableLen := size - trailerSize - tableOff
	if tableOff < segHeaderSize || tableLen != int64(form.tableSize()) {
		return nil, fmt.Errorf("%w: section table out of place", errDamaged)
	}
	table := make([]byte, tableLen)
	if _, err := f.ReadAt(table, tableOff); err != nil {
		return nil, err
	}
	if crc32.Checksum(table, castagnoli) != le.Uint32(tr[8:]) || le.Uint64(table) != uint64(form.sections) {
		return nil, fmt.Errorf("%w: section table", errDamaged)
	}
	if err := verifySections(f, form, table, tableOff); err != nil {
		return nil, err
	}
	data, err := f.Map()
	if err != nil {
		return nil, err
	}
	if int64(len(data)) != size {
		return nil, fmt.Errorf("%w: file changed while it was opened", errDamaged)
	}
	sec := make([][]byte, form.sections)
	for i := range sec {
		e := table[8+sectionEntry*i:]
		off, n := le.Uint64(e), le.Uint64(e[8:])
		sec[i] = data[off : off+n : off+n]
	}
	return sec, nil
}

// verifySections reads every section through the file, not the mapping, so that
// verifying does not make its pages resident.
func verifySections(f ReadFile, form fileForm, table []byte, end int64) error {
	buf := crcBuffers.Get().(*[]byte)
	defer crcBuffers.Put(buf)
	le := binary.LittleEndian
	for i := range form.sections {
		e := table[8+sectionEntry*i:]
		off, n, want := le.Uint64(e), le.Uint64(e[8:]), le.Uint32(e[16:])
		if off > uint64(end) || n > uint64(end)-off {
			return fmt.Errorf("%w: section %d out of the file", errDamaged, i)
		}
		if section(i) == form.lazy {
			continue
		}
		crc := uint32(0)
		for n > 0 {
			p := (*buf)[:min(n, uint64(len(*buf)))]
			if _, err := f.ReadAt(p, int64(off)); err != nil {
				return err
			}
			crc = crc32.Update(crc, castagnoli, p)
			off += uint64(len(p))
			n -= uint64(len(p))
		}
		if crc != want {
			return fmt.Errorf("%w: checksum of section %d", errDamaged, i)
		}
	}
	return nil
}

var crcBuffers = sync.Pool{New: func() any { b := make([]byte, 1<<20); return &b }}

// sectionWriter writes a file's sections one after the other.
type sectionWriter struct {
	form  fileForm
	w     *bufio.Writer
	off   uint64
	table []sectionSpan
	cur   section
}

type sectionSpan struct {
	off, n uint64
	crc    uint32
}

// writeSections writes and syncs a section file under a temporary name and
// renames it to name. The directory is not yet synced.
func writeSections(fs FS, name string, form fileForm, content func(w *sectionWriter) error) (err error) {
	tmp := name + ".tmp"
	f, err := fs.Create(tmp)
	if err != nil {
		return err
	}
	open := true
	defer func() {
		if open {
			f.Close()
		}
		if err != nil {
			// Best effort: what stays is swept at the next open.
			_ = fs.Remove(tmp)
		}
	}()
	w := &sectionWriter{form: form, w: bufio.NewWriterSize(f, 1<<18), table: make([]sectionSpan, form.sections)}
	if err := w.file(content); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := w.w.Flush(); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	open = false
	if err := f.Close(); err != nil {
		return err
	}
	return fs.Rename(tmp, name)
}

func (w *sectionWriter) file(content func(w *sectionWriter) error) error {
	le := binary.LittleEndian
	head := le.AppendUint32([]byte(w.form.magic), w.form.version)
	head = append(head, 0, 0, 0, 0)
	if _, err := w.w.Write(head); err != nil {
		return err
	}
	w.off = segHeaderSize
	if err := content(w); err != nil {
		return err
	}
	if err := w.pad(8); err != nil {
		return err
	}
	table := le.AppendUint64(nil, uint64(len(w.table)))
	for _, t := range w.table {
		table = le.AppendUint64(table, t.off)
		table = le.AppendUint64(table, t.n)
		table = le.AppendUint32(table, t.crc)
		table = le.AppendUint32(table, 0)
	}
	trailer := le.AppendUint64(nil, w.off)
	trailer = le.AppendUint32(trailer, crc32.Checksum(table, castagnoli))
	trailer = le.AppendUint32(trailer, 0)
	trailer = le.AppendUint64(trailer, w.off+uint64(len(table))+trailerSize)
	trailer = append(trailer, w.form.magic...)
	if _, err := w.w.Write(table); err != nil {
		return err
	}
	_, err := w.w.Write(trailer)
	return err
}

func alignUp(n uint64) uint64 { return (n + 7) &^ 7 }

func (w *sectionWriter) begin(s section) error { return w.beginAt(s, 8) }

// beginAt begins a section at a multiple of align, a power of two from 8 on.
func (w *sectionWriter) beginAt(s section, align uint64) error {
	if err := w.pad(align); err != nil {
		return err
	}
	w.cur = s
	w.table[s].off = w.off
	return nil
}

// pad brings the offset to a multiple of align, up to 64.
func (w *sectionWriter) pad(align uint64) error {
	var zero [64]byte
	n := -w.off & (align - 1)
	w.off += n
	_, err := w.w.Write(zero[:n])
	return err
}

func (w *sectionWriter) write(p []byte) error {
	t := &w.table[w.cur]
	if w.cur != w.form.lazy {
		t.crc = crc32.Update(t.crc, castagnoli, p)
	}
	t.n += uint64(len(p))
	w.off += uint64(len(p))
	_, err := w.w.Write(p)
	return err
}

func (w *sectionWriter) all(s section, p []byte) error {
	if err := w.begin(s); err != nil {
		return err
	}
	return w.write(p)
}
