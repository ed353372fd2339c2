package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// TestHiddenRecords hides none, few, many and all records for their life, over
// ids near to each other and far apart, in segments and in tails: what the filter
// becomes takes another form each time.
func TestHiddenRecords(t *testing.T) {
	for _, gap := range []int64{1, 3, 1000} {
		for _, share := range []int{1000, 100, 3, 1} {
			t.Run(fmt.Sprintf("gap=%d,share=%d", gap, share), func(t *testing.T) {
				t.Parallel()
				hiddenRecords(t, gap, share)
			})
		}
	}
}

func hiddenRecords(t *testing.T, gap int64, share int) {
	w := world{rand.New(rand.NewPCG(uint64(gap), uint64(share)))}
	var ids []int64
	for i := range int64(1500) {
		ids = append(ids, 1+gap*i)
	}
	doc := func(id int64) *index.Document {
		d := w.doc(id)
		d.Namespace, d.Kind, d.Life = 1, 1, index.Life{}
		if w.IntN(share) == 0 {
			d.Life = w.life()
		}
		return d
	}
	ix, m := filled(t, Options{MinLists: 50, ScanRows: 300, ProbeRows: 1}, ids, doc, func(int64) []float32 { return w.vector(24) })
	check := func(revision int64) {
		t.Helper()
		v, _ := ix.View(revision)
		defer v.Close()
		for range 60 {
			f := w.filter()
			f.Namespace, f.Kinds = 1, []index.Kind{1}
			if w.IntN(2) == 0 { // nothing but lives, and perhaps scopes
				f = index.Filter{Namespace: 1, Kinds: f.Kinds, Scopes: f.Scopes, Now: f.Now, HasValid: f.HasValid, ValidAt: f.ValidAt}
			}
			q := index.VectorQuery{Space: 1, Values: w.vector(24), Limit: 1 + w.IntN(30), Exact: w.IntN(2) == 0}
			if w.IntN(3) == 0 {
				for _, id := range ids {
					if w.IntN(30) == 0 {
						q.IDs = append(q.IDs, id)
					}
				}
			}
			compareNearest(t, v, m, q, f)
			compareCount(t, v, m.docs, f)
			if w.IntN(15) == 0 {
				compareSearch(t, v, m.docs, w.query(), f, 1+w.IntN(20))
			}
		}
	}
	check(1)
	// Some are replaced, some deleted, and others come, all of them in the tail.
	var changes []index.Change
	for i, id := range ids {
		switch w.IntN(12) {
		case 0:
			m.remove(id)
			changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1})
		case 1:
			m.docs[id] = doc(id)
			changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(m.docs[id])})
		case 2:
			id := id + gap*int64(len(ids))
			m.docs[id], m.vectors[1][id] = doc(id), w.vector(24)
			changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(m.docs[id])},
				index.Change{ID: id, Namespace: 1, Kind: 1, Vector: &index.VectorChange{Space: 1, Encoding: index.EncodingSQ8, Scope: m.docs[id].Scope, Values: m.vectors[1][id]}})
			ids[i] = id
		}
	}
	slices.Sort(ids)
	ix.Stage(2, changes)
	ix.Publish()
	check(2)
	if err := ix.Flush(); err != nil {
		t.Fatal(err)
	}
	check(2)
	if err := ix.mergeAll(); err != nil {
		t.Fatal(err)
	}
	check(2)
}

// TestHidingMovesOn asks for one time after another, forwards and back, so that a
// partition has to find what is hidden anew.
func TestHidingMovesOn(t *testing.T) {
	w := fixedWorld()
	var ids []int64
	for id := range int64(3000) {
		ids = append(ids, id+1)
	}
	// All valid for some time: more are hidden than there are words of bits.
	ix, m := filled(t, Options{}, ids, func(id int64) *index.Document {
		d := w.doc(id)
		d.Namespace, d.Kind = 1, 1
		d.Life = index.Life{Expires: 1 + id%500, ValidFrom: 1 + id%300, ValidTo: 101 + id%300}
		return d
	}, func(int64) []float32 { return w.vector(24) })
	v, _ := ix.View(1)
	defer v.Close()
	for range 100 {
		f := index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{10, 11}, Now: int64(w.IntN(600)), HasValid: w.IntN(2) == 0, ValidAt: int64(w.IntN(400))}
		for range 2 {
			compareCount(t, v, m.docs, f)
			compareNearest(t, v, m, index.VectorQuery{Space: 1, Values: w.vector(24), Limit: 5}, f)
			if w.IntN(10) == 0 {
				compareSearch(t, v, m.docs, w.query(), f, 10)
			}
			f.Scopes = append(f.Scopes, 12)
		}
	}
	if v.(*view).segs[0].lives[0].last.Load() == nil {
		t.Error("no filter hid enough to be remembered: the test proves nothing")
	}
}

const livesName = "seg-00000001"

// livesFile is a segment file of two namespaces with three documents each, all of
// which have all bounds.
func livesFile(tb testing.TB) []byte {
	fs := newFaultFS()
	ix, err := Open(fs, Options{Analyze: words, Version: 1, StoreID: "s"})
	if err != nil {
		tb.Fatal(err)
	}
	var changes []index.Change
	for id := range int64(6) {
		d := &index.Document{ID: id + 1, Namespace: 1 + id/3, Kind: 1, Scope: 10, Life: index.Life{Expires: 5 + id%2, ValidFrom: 3, ValidTo: 9}}
		changes = append(changes, index.Change{ID: d.ID, Namespace: d.Namespace, Kind: 1, Doc: ix.Prepare(d)})
	}
	ix.Stage(1, changes)
	ix.Publish()
	if err := errors.Join(ix.Flush(), ix.Close()); err != nil {
		tb.Fatal(err)
	}
	return fs.files[livesName].data
}

// FuzzLives puts any bytes in the place of a segment's bounds. What opens hides
// what the bytes say, entry by entry.
func FuzzLives(f *testing.F) {
	fs := newFaultFS()
	fs.files[livesName] = &memFile{data: livesFile(f)}
	_, sec, err := openSections(fs, livesName, textForm)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sec[secExpires], sec[secValidFrom], sec[secValidTo], int64(5), true, int64(4))
	f.Add([]byte{}, sec[secValidFrom][:3*boundEntrySize], sec[secValidTo][3*boundEntrySize:], int64(0), true, int64(9))
	f.Fuzz(func(t *testing.T, expires, from, to []byte, now int64, hasValid bool, at int64) {
		fs := newFaultFS()
		bounds := [numBounds][]byte{expires, from, to}
		err := writeSections(fs, livesName, textForm, func(w *sectionWriter) error {
			for i, content := range sec {
				if i >= int(secExpires) {
					content = bounds[i-int(secExpires)]
				}
				if err := w.all(section(i), content); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		s, err := openSegment(fs, livesName)
		if err != nil {
			if !errors.Is(err, errDamaged) {
				t.Fatal(err)
			}
			return
		}
		hidden := map[uint32]bool{}
		for i, b := range bounds {
			for ; len(b) > 0; b = b[boundEntrySize:] {
				time, doc := int64(binary.LittleEndian.Uint64(b)), binary.LittleEndian.Uint32(b[8:])
				var l index.Life
				*[numBounds]*int64{&l.Expires, &l.ValidFrom, &l.ValidTo}[i] = time
				hidden[doc] = hidden[doc] || !l.Shows(now, at, hasValid)
			}
		}
		ix := &Index{fs: fs, opts: Options{OnError: func(error) {}}}
		v := &view{snapshot: &snapshot{ix: ix, rev: 1, segs: []segView{{s, newDeleteSet(s.numDocs)}}, refs: 2}}
		for _, p := range s.parts {
			want := int64(0)
			for doc := p.lo; doc < p.hi; doc++ {
				if !hidden[doc] {
					want++
				}
			}
			got, err := v.Count(index.Filter{Namespace: p.key.namespace, Kinds: []index.Kind{p.key.kind}, Scopes: []int64{10}, Now: now, HasValid: hasValid, ValidAt: at})
			if err != nil || got != want {
				t.Fatalf("%d of partition %v are seen, %v, want %d", got, p.key, err, want)
			}
		}
	})
}

// TestLifeInFiles opens segment files whose bounds are not in order, or name
// documents of another partition or of none.
func TestLifeInFiles(t *testing.T) {
	whole := livesFile(t)
	open := func(data []byte) error {
		f := newFaultFS()
		f.files[livesName] = &memFile{data: data}
		s, err := openSegment(f, livesName)
		if err == nil {
			return s.release(f)
		}
		return err
	}
	if err := open(whole); err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	entry := func(i int, change func(time, doc []byte)) func(b []byte) {
		return func(b []byte) { b = b[i*boundEntrySize:]; change(b[:8], b[8:12]) }
	}
	for what, change := range map[string]func(b []byte){
		"out of order":                 entry(0, func(time, _ []byte) { le.PutUint64(time, 100) }),
		"no time":                      entry(0, func(time, _ []byte) { le.PutUint64(time, 0) }),
		"a document of another":        entry(0, func(_, doc []byte) { le.PutUint32(doc, 4) }),
		"a document of one before":     entry(4, func(_, doc []byte) { le.PutUint32(doc, 0) }),
		"no document":                  entry(5, func(_, doc []byte) { le.PutUint32(doc, 6) }),
		"the greatest number":          entry(5, func(_, doc []byte) { le.PutUint32(doc, none) }),
		"one document twice, one time": entry(1, func(time, doc []byte) { le.PutUint64(time, 5); le.PutUint32(doc, 0) }),
	} {
		for bound := range numBounds {
			data := bytes.Clone(whole)
			table := data[le.Uint64(data[len(data)-trailerSize:]):]
			e := table[8+sectionEntry*int(secExpires+section(bound)):]
			b := data[le.Uint64(e):][:le.Uint64(e[8:])]
			if len(b) != 6*boundEntrySize {
				t.Fatalf("%d bytes of bounds", len(b))
			}
			if bound == boundExpires || !strings.HasPrefix(what, "one document") {
				change(b)
				if err := open(reseal(data, textForm)); !errors.Is(err, errDamaged) {
					t.Errorf("bound %d, %s: %v", bound, what, err)
				}
			}
			// Entries that are cut off, or whole ones too many.
			for _, size := range []uint64{6*boundEntrySize - 1, 7 * boundEntrySize} {
				data := bytes.Clone(whole)
				le.PutUint64(data[le.Uint64(data[len(data)-trailerSize:]):][8+sectionEntry*int(secExpires+section(bound))+8:], size)
				if err := open(reseal(data, textForm)); !errors.Is(err, errDamaged) {
					t.Errorf("bound %d, %d bytes: %v", bound, size, err)
				}
			}
		}
	}
}

// TestOlderSegments holds that an index with a segment file of the version before
// lives is one that is set aside, and says why.
func TestOlderSegments(t *testing.T) {
	dir := t.TempDir()
	h := buildSegments(t, dir)
	fs := DirFS(dir)
	older := fileForm{magic: textForm.magic, version: 1, sections: int(secExpires), lazy: -1}
	files, err := filepath.Glob(filepath.Join(dir, "seg-????????"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	m, sec, err := openSections(fs, filepath.Base(files[0]), textForm)
	if err != nil {
		t.Fatal(err)
	}
	err = writeSections(fs, filepath.Base(files[0]), older, func(w *sectionWriter) error {
		for i, content := range sec[:secExpires] {
			if err := w.all(section(i), content); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, m.release(fs)); err != nil {
		t.Fatal(err)
	}
	opts := Options{Analyze: words, Version: 1, StoreID: "s"}
	if _, err := Open(fs, opts); !errors.Is(err, ErrUnusable) || !strings.Contains(err.Error(), "another version") {
		t.Fatalf("an older segment: %v", err)
	}
	// The next generation has it all again, from the truth.
	opts.Building = true
	ix, err := Open(DirFS(t.TempDir()), opts)
	if err != nil {
		t.Fatal(err)
	}
	defer ix.Close()
	h.replay(ix)
	ix.SetComplete()
	w := fixedWorld()
	for range 50 {
		checkSearch(t, ix, h.m, w)
	}
}
