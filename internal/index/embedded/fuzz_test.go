package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// segmentSeeds are real segment files.
func segmentSeeds(f *testing.F) (out [][]byte) {
	dir := f.TempDir()
	ix, err := Open(DirFS(dir), Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 20})
	if err != nil {
		f.Fatal(err)
	}
	h := newStory()
	h.run(ix, fixedWorld(), 2)
	if err := ix.Flush(); err != nil {
		f.Fatal(err)
	}
	if err := ix.Close(); err != nil {
		f.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "seg-*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		out = append(out, data)
	}
	return out
}

// reseal makes a file's checksums right again, so that damage reaches what lies
// behind them.
func reseal(data []byte, form fileForm) []byte {
	le := binary.LittleEndian
	n := uint64(len(data))
	if n < segHeaderSize+trailerSize {
		return data
	}
	tr := data[n-trailerSize:]
	off := le.Uint64(tr)
	tableLen := uint64(form.tableSize())
	if off > n || n-trailerSize-min(off, n-trailerSize) != tableLen {
		return data
	}
	table := data[off : off+tableLen]
	for i := range form.sections {
		e := table[8+sectionEntry*i:]
		from, size := le.Uint64(e), le.Uint64(e[8:])
		if from <= n && size <= n-from && section(i) != form.lazy {
			le.PutUint32(e[16:], crc32.Checksum(data[from:from+size], castagnoli))
		}
	}
	le.PutUint32(tr[8:], crc32.Checksum(table, castagnoli))
	return data
}

// FuzzSegment opens changed segment files whose checksums were made right again
// and searches them: an error is fine, a crash or a hang is not.
func FuzzSegment(f *testing.F) {
	for _, data := range segmentSeeds(f) {
		f.Add(data, true)
		f.Add(data, false)
	}
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal {
			data = reseal(bytes.Clone(data), textForm)
		}
		fs := newFaultFS()
		fs.files["seg-00000001"] = &memFile{data: data}
		s, err := openSegment(fs, "seg-00000001")
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatalf("%v", err)
			}
			return
		}
		ix := &Index{fs: fs, opts: Options{OnError: func(error) {}}}
		v := &view{snapshot: &snapshot{ix: ix, rev: 1, segs: []segView{{s, newDeleteSet(s.numDocs)}}, refs: 2}}
		w := fixedWorld()
		for range 5 {
			q, flt := w.query(), w.filter()
			if _, err := v.Search(q, flt, index.Options{Limit: 5, Total: true, NeighbourWeight: 0.5, ThreadWeight: 0.5}); err != nil && !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
			if _, err := v.Count(flt); err != nil && !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
		}
		// What opens can be merged, whatever it holds.
		_ = newMerge(v.segs)
	})
}

// FuzzManifest decodes changed manifests.
func FuzzManifest(f *testing.F) {
	data, err := encodeManifest(&manifest{Version: manifestVersion, StoreID: "s", Segments: []manifestSegment{{Name: "seg-00000001", Deletes: "seg-00000001.del-1-1"}},
		Vectors: []manifestSegment{{Name: "vec-00000002"}}, Dropped: []int64{3}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(nil))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeManifest(data)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
			return
		}
		again, err := encodeManifest(&m)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := decodeManifest(again); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
	})
}

// FuzzDeletes decodes changed files of deleted documents.
func FuzzDeletes(f *testing.F) {
	for _, data := range segmentSeeds(f) {
		if string(data[:min(8, len(data))]) == deletesMagic {
			f.Add(data, uint32(20))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, docs uint32) {
		docs %= 1 << 16
		if len(data) >= 4 {
			data = bytes.Clone(data)
			binary.LittleEndian.PutUint32(data[len(data)-4:], crc32.Checksum(data[:len(data)-4], castagnoli))
		}
		v := segView{&segment{numDocs: docs}, newDeleteSet(docs)}
		if err := decodeDeletes(&v, data); err != nil && !errors.Is(err, errDamaged) {
			t.Fatal(err)
		}
	})
}
