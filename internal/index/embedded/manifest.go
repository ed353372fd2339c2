package embedded

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"sort"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	manifestName    = "MANIFEST"
	manifestVersion = 1
	deletesMagic    = "LOCIDEL1"
)

// manifest names the files that make up the index and what they cover. The file
// is replaced atomically: a checksum, a line break, JSON.
type manifest struct {
	Version  int               `json:"version"`
	StoreID  string            `json:"store"`
	Analyzer int               `json:"analyzer"`
	Revision int64             `json:"revision"` // the journal is needed from here on
	Complete bool              `json:"complete"`
	Cursor   int64             `json:"cursor,omitempty"` // of a rebuild
	Next     int               `json:"next"`             // number of the next file
	Segments []manifestSegment `json:"segments"`
}

type manifestSegment struct {
	Name    string `json:"name"`
	Deletes string `json:"deletes,omitempty"` // file of deleted documents
}

// persistedDeletes is the last state of a segment's deletes that is on disk.
type persistedDeletes struct {
	set  *deleteSet
	file string
}

func encodeManifest(m *manifest) ([]byte, error) {
	body, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return append(fmt.Appendf(nil, "%08x\n", crc32.Checksum(body, castagnoli)), body...), nil
}

func decodeManifest(data []byte) (m manifest, err error) {
	sum, body, ok := bytes.Cut(data, []byte("\n"))
	if !ok || string(sum) != fmt.Sprintf("%08x", crc32.Checksum(body, castagnoli)) {
		return m, fmt.Errorf("%w: manifest checksum", errDamaged)
	}
	if err := json.Unmarshal(body, &m); err != nil {
		return m, fmt.Errorf("%w: manifest: %w", errDamaged, err)
	}
	for _, s := range m.Segments {
		if !plainName(s.Name) || s.Deletes != "" && !plainName(s.Deletes) {
			return m, fmt.Errorf("%w: manifest names a file out of place", errDamaged)
		}
	}
	return m, nil
}

func plainName(s string) bool { return strings.HasPrefix(s, "seg-") && !strings.ContainsAny(s, `/\:`) }

// load opens what the manifest names and removes files that it does not.
func (ix *Index) load() error {
	names, err := ix.fs.ReadDir()
	if err != nil {
		return err
	}
	ix.manifest = manifest{Version: manifestVersion, StoreID: ix.opts.StoreID, Analyzer: ix.opts.Version, Complete: ix.built}
	if ix.opts.Building {
		ix.manifest.Revision = ix.opts.BaseRevision
	}
	data, err := ix.fs.ReadFile(manifestName)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, "seg-") && !strings.HasSuffix(n, ".tmp") }) {
			// Possible after a crash before the first checkpoint: nothing is
			// lost, the journal still has it all.
			break
		}
	case err != nil:
		return err
	default:
		m, err := decodeManifest(data)
		if err != nil {
			return fmt.Errorf("%w: %w", ErrUnusable, err)
		}
		if m.Version != manifestVersion || m.StoreID != ix.opts.StoreID || m.Analyzer != ix.opts.Version {
			return fmt.Errorf("%w: written for another store or by another version", ErrUnusable)
		}
		if m.Complete == ix.opts.Building {
			return fmt.Errorf("%w: not in the state asked for", ErrUnusable)
		}
		ix.manifest = m
		ix.nextSeg = m.Next
	}
	keep := map[string]bool{manifestName: true}
	for _, ms := range ix.manifest.Segments {
		keep[ms.Name], keep[ms.Deletes] = true, true
		s, err := openSegment(ix.fs, ms.Name)
		if err != nil {
			return unusable(err)
		}
		v := segView{s, newDeleteSet(s.numDocs)}
		ix.segs = append(ix.segs, v)
		if ms.Deletes != "" {
			if err := ix.loadDeletes(&ix.segs[len(ix.segs)-1], ms.Deletes); err != nil {
				return unusable(err)
			}
		}
		v = ix.segs[len(ix.segs)-1]
		ix.persisted[s] = persistedDeletes{v.del, ms.Deletes}
	}
	for _, n := range names {
		if !keep[n] && (strings.HasPrefix(n, "seg-") || strings.HasSuffix(n, ".tmp")) {
			if err := ix.fs.Remove(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// unusable tells damage and missing files, which a rebuild mends, from other
// I/O errors, which it does not.
func unusable(err error) error {
	if errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrUnusable, err)
	}
	return err
}

// checkpoint writes the manifest of the current state, and with it the deletes
// that are not yet on disk.
func (ix *Index) checkpoint() error {
	ix.checkpointMu.Lock()
	defer ix.checkpointMu.Unlock()
	ix.write.Lock()
	m := ix.manifest
	t := ix.tails[0]
	m.Revision, m.Cursor, m.Complete = ix.cur.rev, ix.cursor, t.whole
	if len(ix.tails) > 1 || t.docs > 0 {
		m.Revision, m.Cursor = t.startRev, t.startCursor
	}
	ix.mu.Lock()
	snap := ix.cur
	snap.refs++
	ix.mu.Unlock()
	m.Next = ix.nextSeg
	obsolete := ix.obsolete
	ix.obsolete = nil
	ix.write.Unlock()
	defer ix.releaseSnapshot(snap)

	m.Segments = nil
	var oldFiles []string
	persisted := map[*segment]persistedDeletes{}
	for _, v := range snap.segs {
		p := ix.persisted[v.segment]
		if v.del.count > 0 && p.set != v.del {
			ix.nextDel++
			name := fmt.Sprintf("%s.del-%d-%d", v.name, snap.rev, ix.nextDel)
			if err := ix.writeFile(name, encodeDeletes(v, snap.rev)); err != nil {
				return ix.putBack(obsolete, err)
			}
			if p.file != "" {
				oldFiles = append(oldFiles, p.file)
			}
			p = persistedDeletes{v.del, name}
		}
		persisted[v.segment] = p
		m.Segments = append(m.Segments, manifestSegment{Name: v.name, Deletes: p.file})
	}
	data, err := encodeManifest(&m)
	if err != nil {
		return ix.putBack(obsolete, err)
	}
	if err := ix.writeFile(manifestName, data); err != nil {
		return ix.putBack(obsolete, err)
	}
	if err := ix.fs.SyncDir(); err != nil {
		return ix.putBack(obsolete, err)
	}
	for s, p := range ix.persisted {
		if _, ok := persisted[s]; !ok && p.file != "" {
			oldFiles = append(oldFiles, p.file)
		}
	}
	ix.persisted = persisted
	moved := m.Revision > ix.manifest.Revision
	ix.manifest = m
	ix.checkpointed.Store(m.Revision)
	for _, s := range obsolete {
		s.drop.Store(true)
		if err := s.release(ix.fs); err != nil {
			ix.opts.OnError(err)
		}
	}
	for _, f := range oldFiles {
		if err := ix.fs.Remove(f); err != nil {
			ix.opts.OnError(err) // swept at the next open
		}
	}
	if moved {
		ix.opts.OnCheckpoint(m.Revision)
	}
	return nil
}

// putBack keeps segments that could not be let go of for the next checkpoint.
func (ix *Index) putBack(obsolete []*segment, err error) error {
	ix.write.Lock()
	ix.obsolete = append(obsolete, ix.obsolete...)
	ix.write.Unlock()
	return err
}

// writeFile writes and syncs a small file under a temporary name and renames
// it.
func (ix *Index) writeFile(name string, data []byte) error {
	tmp := name + ".tmp"
	f, err := ix.fs.Create(tmp)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = ix.fs.Rename(tmp, name)
	}
	if err != nil {
		// Best effort: what stays is swept at the next open.
		_ = ix.fs.Remove(tmp)
	}
	return err
}

// A deletes file: magic; number of documents u32; length of the bitmap u32 and
// the bitmap (roaring); number of partitions u32 and for each its number and
// stats; number of counters u64 and for each partition u32, term u32, count u32;
// CRC-32C of all of it.
func encodeDeletes(v segView, rev int64) []byte {
	le := binary.LittleEndian
	bm := roaring.New()
	v.del.each(nil, bm.Add)
	bm.RunOptimize()
	bits, err := bm.ToBytes()
	if err != nil {
		panic(err) // writes to memory only
	}
	out := le.AppendUint32([]byte(deletesMagic), v.numDocs)
	out = le.AppendUint32(out, uint32(len(bits)))
	out = append(out, bits...)
	c := &v.deletes
	c.mu.RLock()
	defer c.mu.RUnlock()
	out = le.AppendUint32(out, uint32(len(c.stats)))
	for part, h := range c.stats {
		st := h.at(rev)
		out = le.AppendUint32(out, part)
		for i := range numLens {
			out = le.AppendUint64(out, uint64(st.docs[i]))
			out = le.AppendUint64(out, uint64(st.sum[i]))
		}
	}
	at := len(out)
	out = le.AppendUint64(out, 0)
	n := uint64(0)
	for k, h := range c.terms {
		if sum := h.at(rev); sum > 0 {
			out = le.AppendUint64(out, k)
			out = le.AppendUint32(out, uint32(sum))
			n++
		}
	}
	le.PutUint64(out[at:], n)
	return le.AppendUint32(out, crc32.Checksum(out, castagnoli))
}

func (ix *Index) loadDeletes(v *segView, name string) error {
	data, err := ix.fs.ReadFile(name)
	if err != nil {
		return err
	}
	if err := decodeDeletes(v, data); err != nil {
		return fmt.Errorf("deletes %s: %w", name, err)
	}
	return nil
}

func decodeDeletes(v *segView, data []byte) error {
	le := binary.LittleEndian
	if len(data) < 20 || string(data[:8]) != deletesMagic ||
		crc32.Checksum(data[:len(data)-4], castagnoli) != le.Uint32(data[len(data)-4:]) {
		return fmt.Errorf("%w: checksum", errDamaged)
	}
	short := fmt.Errorf("%w: too short", errDamaged)
	data = data[8 : len(data)-4]
	numDocs, bitsLen := le.Uint32(data), le.Uint32(data[4:])
	data = data[8:]
	if numDocs != v.numDocs || uint64(bitsLen)+4 > uint64(len(data)) {
		return short
	}
	bm := roaring.New()
	if err := bm.UnmarshalBinary(data[:bitsLen]); err != nil {
		return fmt.Errorf("%w: %w", errDamaged, err)
	}
	data = data[bitsLen:]
	if !bm.IsEmpty() && bm.Maximum() >= numDocs {
		return fmt.Errorf("%w: document out of range", errDamaged)
	}
	v.del = v.del.clone()
	for it := bm.Iterator(); it.HasNext(); {
		v.del.add(it.Next())
	}
	v.del.owned = nil
	c := &v.deletes
	c.terms = map[uint64]history{}
	c.stats = map[uint32]statsHistory{}
	parts := le.Uint32(data)
	data = data[4:]
	const statsSize = 4 + 16*numLens
	if uint64(parts)*statsSize+8 > uint64(len(data)) {
		return short
	}
	for range parts {
		var st fieldStats
		for i := range numLens {
			st.docs[i] = int64(le.Uint64(data[4+16*i:]))
			st.sum[i] = int64(le.Uint64(data[12+16*i:]))
		}
		c.stats[le.Uint32(data)] = statsHistory{{0, st}}
		data = data[statsSize:]
	}
	n := le.Uint64(data)
	data = data[8:]
	if n > uint64(len(data)) || n*12 != uint64(len(data)) {
		return short
	}
	c.terms = make(map[uint64]history, n)
	stamps := make([]stamp, n)
	for i := range stamps {
		stamps[i].sum = int64(le.Uint32(data[8:]))
		c.terms[le.Uint64(data)] = stamps[i : i+1 : i+1]
		data = data[12:]
	}
	return nil
}

// segmentData gives a frozen tail's documents that are live at rev, in segment
// order, and where each comes from.
func (t *tail) segmentData(rev int64) (*segmentData, []tailLoc) {
	parts := make([]*tailPart, 0, len(t.parts))
	for _, p := range t.parts {
		parts = append(parts, p)
	}
	sort.Slice(parts, func(i, j int) bool { return parts[i].key.less(parts[j].key) })
	d := &segmentData{}
	var locs []tailLoc
	renumber := make([][]uint32, len(parts)) // tail document -> segment document
	for pi, p := range parts {
		lo := uint32(len(locs))
		for doc := range uint32(len(p.ids)) {
			if del := p.stamp(doc).Load(); del == 0 || del > rev {
				locs = append(locs, tailLoc{p, doc})
			}
		}
		mine := locs[lo:]
		if !p.sorted {
			sort.Slice(mine, func(i, j int) bool { return p.ids[mine[i].doc] < p.ids[mine[j].doc] })
		}
		if len(mine) > 0 {
			d.parts = append(d.parts, partRange{key: p.key, lo: lo, hi: uint32(len(locs))})
		}
		to := make([]uint32, len(p.ids))
		for i := range to {
			to[i] = none
		}
		for i, l := range mine {
			to[l.doc] = lo + uint32(i)
		}
		renumber[pi] = to
	}
	n := len(locs)
	d.ids, d.scope, d.thread = make([]int64, n), make([]uint32, n), make([]uint32, n)
	d.position, d.created = make([]int64, n), make([]int64, n)
	for i := range d.lens {
		d.lens[i] = make([]uint8, n)
	}
	for i, l := range locs {
		p := l.part
		d.ids[i], d.scope[i], d.thread[i] = p.ids[l.doc], p.scope[l.doc], p.thread[l.doc]
		d.position[i], d.created[i] = p.position[l.doc], p.created[l.doc]
		for k := range d.lens {
			d.lens[k][i] = p.lens[k][l.doc]
		}
	}
	// Every document's terms, renumbered by tailTerms.
	ends := make([]uint32, n+1)
	for i, l := range locs {
		ends[i+1] = ends[i] + uint32(len(l.part.termsOf(l.doc)))
	}
	forward := forwardLists{nums: make([]uint32, ends[n]), next: ends[:n:n]}
	starts := append([]uint32(nil), ends...)
	d.terms = tailTerms(parts, renumber, &forward)
	d.attrs = tailAttrs(locs)
	d.forward = func(doc uint32, dst []uint32) []uint32 {
		return append(dst, forward.nums[starts[doc]:starts[doc+1]]...)
	}
	return d, locs
}

// forwardLists collects the terms of documents as they come.
type forwardLists struct {
	nums []uint32
	next []uint32 // by document: where its next term goes
}
