package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// vecSeeds are real files of a small index with vectors, those with a prefix.
func vecSeeds(f *testing.F, prefix string) (out [][]byte) {
	fs := newFaultFS()
	w := fixedWorld()
	ix, err := Open(fs, Options{Analyze: words, Version: 1, StoreID: "s", MinLists: 10, ScanRows: 5, ProbeRows: 1})
	if err != nil {
		f.Fatal(err)
	}
	h := newVecHistory()
	for range 12 {
		h.step(ix, w, 40)
	}
	if err := errors.Join(ix.Flush(), ix.mergeAll()); err != nil {
		f.Fatal(err)
	}
	for range 4 {
		h.step(ix, w, 40)
	}
	if err := errors.Join(ix.Flush(), ix.Close()); err != nil {
		f.Fatal(err)
	}
	for name, file := range fs.files {
		if strings.HasPrefix(name, "vec-") && strings.HasPrefix(string(file.data), prefix) {
			out = append(out, file.data)
		}
	}
	if len(out) == 0 {
		f.Fatalf("no file begins with %s", prefix)
	}
	return out
}

// resealVectors is reseal for vector segments, whose codes have checksums of
// their own.
func resealVectors(data []byte) []byte {
	data = reseal(data, vecForm)
	le := binary.LittleEndian
	n := uint64(len(data))
	if n < segHeaderSize+trailerSize+uint64(vecForm.tableSize()) {
		return data
	}
	off := le.Uint64(data[n-trailerSize:])
	if off > n-uint64(vecForm.tableSize()) {
		return data
	}
	span := func(s section) []byte {
		e := data[off+8+uint64(sectionEntry*int(s)):]
		from, size := le.Uint64(e), le.Uint64(e[8:])
		if from > n || size > n-from {
			return nil
		}
		return data[from : from+size]
	}
	codes, sums := span(vsCodes), span(vsBlockSums)
	for len(codes) > 0 && len(sums) >= 4 {
		k := min(len(codes), blockBytes)
		le.PutUint32(sums, crc32.Checksum(codes[:k], castagnoli))
		codes, sums = codes[k:], sums[4:]
	}
	return reseal(data, vecForm)
}

// FuzzVectorSegment opens changed vector segments whose checksums were made right
// again, searches and merges them: an error is fine, a crash or a hang is not.
func FuzzVectorSegment(f *testing.F) {
	for _, data := range vecSeeds(f, vecForm.magic) {
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = resealVectors(bytes.Clone(data))
		}
		fs := newFaultFS()
		fs.files["vec-00000001"] = &memFile{data: data}
		s, err := openVecSegment(fs, "vec-00000001")
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatalf("%v", err)
			}
			return
		}
		ix, err := Open(fs, Options{Analyze: words, Version: 1, StoreID: "s", MinLists: 10, ScanRows: 5, ProbeRows: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer ix.Abandon()
		w := fixedWorld()
		h := newStory()
		h.run(ix, w, 3)
		v, _ := ix.View(ix.Revision())
		defer v.Close()
		seg := vecSegView{s, newDeleteSet(s.rows)}
		v.(*view).snapshot = &snapshot{ix: ix, rev: v.Revision(), segs: v.(*view).segs, tails: v.(*view).tails, vecSegs: []vecSegView{seg}, refs: 2}
		for _, p := range s.parts[:min(len(s.parts), 8)] {
			if p.form.dim > 100 {
				continue
			}
			flt := index.Filter{Namespace: p.key.namespace, Kinds: []index.Kind{p.key.kind}, Scopes: []int64{10, 11, 12}}
			for _, q := range []index.VectorQuery{
				{Space: p.key.space, Values: w.vector(p.form.dim), Limit: 5},
				{Space: p.key.space, Values: w.vector(p.form.dim), Limit: 50, Exact: true},
				{Space: p.key.space, Values: w.vector(p.form.dim), Limit: 5, IDs: []int64{1, 5, 9}},
			} {
				if _, err := v.Nearest(q, flt); err != nil && !errors.Is(err, errDamaged) {
					t.Fatal(err)
				}
			}
			v.CountVectors(p.key.space, p.key.namespace, p.key.kind)
			v.Missing(p.key.space, p.key.namespace, p.key.kind, 10, nil)
		}
		m := &vecMerging{ix: ix, in: []vecSegView{seg}, late: []map[uint32]bool{{}}, place: [][]uint32{make([]uint32, s.rows)}}
		if err := m.gather(nil); err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
	})
}

// FuzzVectorDeletes decodes changed files of deleted rows.
func FuzzVectorDeletes(f *testing.F) {
	for _, data := range vecSeeds(f, vecDeletesMagic) {
		f.Add(data, binary.LittleEndian.Uint32(data[8:]))
	}
	f.Fuzz(func(t *testing.T, data []byte, rows uint32) {
		rows %= 1 << 16
		if len(data) >= 4 {
			data = bytes.Clone(data)
			binary.LittleEndian.PutUint32(data[len(data)-4:], crc32.Checksum(data[:len(data)-4], castagnoli))
		}
		s := &vecSegment{rows: rows, parts: []vecPart{{n: rows}}, gone: make([]history, 1)}
		v := vecSegView{s, newDeleteSet(rows)}
		if err := decodeVecDeletes(&v, data); err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
		if v.del.count > rows || s.goneAt(0, 1) != int64(v.del.count) {
			t.Fatalf("%d of %d rows deleted, %d counted", v.del.count, rows, s.goneAt(0, 1))
		}
	})
}
