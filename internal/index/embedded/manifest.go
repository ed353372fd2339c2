package embedded

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"slices"
	"sort"
	"strconv"
	"strings"
)

const (
	manifestName    = "MANIFEST"
	manifestVersion = 2
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
	Vectors  []manifestSegment `json:"vectors,omitempty"`
	Dropped  []int64           `json:"dropped,omitempty"` // spaces whose vectors the files may still hold
}

type manifestSegment struct {
	Name    string `json:"name"`
	Deletes string `json:"deletes,omitempty"` // file of what is deleted in it
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
	for _, s := range slices.Concat(m.Segments, m.Vectors) {
		if !plainName(s.Name) || s.Deletes != "" && !plainName(s.Deletes) {
			return m, fmt.Errorf("%w: manifest names a file out of place", errDamaged)
		}
	}
	return m, nil
}

// indexFile says whether a name is of those that the index gives its files.
func indexFile(s string) bool { return strings.HasPrefix(s, "seg-") || strings.HasPrefix(s, "vec-") }

func plainName(s string) bool { return indexFile(s) && !strings.ContainsAny(s, `/\:`) }

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
		if slices.ContainsFunc(names, func(n string) bool { return indexFile(n) && !strings.HasSuffix(n, ".tmp") }) {
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
		if err := ix.loadSegment(ms); err != nil {
			return unusable(err)
		}
	}
	for _, ms := range ix.manifest.Vectors {
		keep[ms.Name], keep[ms.Deletes] = true, true
		if err := ix.loadVecSegment(ms); err != nil {
			return unusable(err)
		}
	}
	ix.dropped = ix.manifest.Dropped
	for _, ms := range slices.Concat(ix.manifest.Segments, ix.manifest.Vectors) {
		// No file may get the name of one that it replaces.
		if n, err := strconv.Atoi(ms.Deletes[strings.LastIndexByte(ms.Deletes, '-')+1:]); err == nil {
			ix.nextDel = max(ix.nextDel, n)
		}
	}
	for _, n := range names {
		if !keep[n] && (indexFile(n) || strings.HasSuffix(n, ".tmp")) {
			if err := ix.fs.Remove(n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (ix *Index) loadSegment(ms manifestSegment) error {
	s, err := openSegment(ix.fs, ms.Name)
	if err != nil {
		return err
	}
	ix.segs = append(ix.segs, segView{s, newDeleteSet(s.numDocs)})
	v := &ix.segs[len(ix.segs)-1]
	if ms.Deletes != "" {
		data, err := ix.fs.ReadFile(ms.Deletes)
		if err != nil {
			return err
		}
		if err := decodeDeletes(v, data); err != nil {
			return fmt.Errorf("deletes %s: %w", ms.Deletes, err)
		}
	}
	ix.persisted[s.mappedFile] = persistedDeletes{v.del, ms.Deletes}
	return nil
}

func (ix *Index) loadVecSegment(ms manifestSegment) error {
	s, err := openVecSegment(ix.fs, ms.Name)
	if err != nil {
		return err
	}
	ix.vecSegs = append(ix.vecSegs, vecSegView{s, newDeleteSet(s.rows)})
	v := &ix.vecSegs[len(ix.vecSegs)-1]
	if ms.Deletes != "" {
		data, err := ix.fs.ReadFile(ms.Deletes)
		if err != nil {
			return err
		}
		if err := decodeVecDeletes(v, data); err != nil {
			return fmt.Errorf("deletes %s: %w", ms.Deletes, err)
		}
	}
	ix.persisted[s.mappedFile] = persistedDeletes{v.del, ms.Deletes}
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
func (ix *Index) checkpoint() (err error) {
	ix.checkpointMu.Lock()
	defer ix.checkpointMu.Unlock()
	ix.write.Lock()
	m := ix.manifest
	t := ix.tails[0]
	m.Revision, m.Cursor, m.Complete = ix.cur.rev, ix.cursor, t.whole
	if len(ix.tails) > 1 || !t.empty() {
		m.Revision, m.Cursor = t.startRev, t.startCursor
	}
	ix.mu.Lock()
	snap := ix.cur
	snap.refs++
	ix.mu.Unlock()
	m.Next = ix.nextSeg
	obsolete := ix.obsolete
	ix.obsolete = nil
	forgetting := ix.forgetting
	ix.forgetting = false
	ix.write.Unlock()
	defer ix.releaseSnapshot(snap)
	defer func() {
		if err != nil {
			ix.putBack(obsolete, forgetting)
		}
	}()

	w := deletesWriter{ix: ix, rev: snap.rev, persisted: map[*mappedFile]persistedDeletes{}}
	m.Segments, m.Vectors, m.Dropped = nil, nil, nil
	for _, v := range snap.segs {
		ms, err := w.segment(v.mappedFile, v.del, func() ([]byte, bool) { return encodeDeletes(v, snap.rev), true })
		if err != nil {
			return err
		}
		m.Segments = append(m.Segments, ms)
	}
	for _, v := range snap.vecSegs {
		ms, err := w.segment(v.mappedFile, v.del, func() ([]byte, bool) { return encodeVecDeletes(v, m.Revision) })
		if err != nil {
			return err
		}
		m.Vectors = append(m.Vectors, ms)
		for _, space := range v.spaces {
			if slices.Contains(snap.dropped, space) && !slices.Contains(m.Dropped, space) {
				m.Dropped = append(m.Dropped, space)
			}
		}
	}
	data, err := encodeManifest(&m)
	if err != nil {
		return err
	}
	if err := ix.writeFile(manifestName, data); err != nil {
		return err
	}
	if err := ix.fs.SyncDir(); err != nil {
		return err
	}
	oldFiles := w.old
	for s, p := range ix.persisted {
		if _, ok := w.persisted[s]; !ok && p.file != "" {
			oldFiles = append(oldFiles, p.file)
		}
	}
	ix.persisted = w.persisted
	for _, v := range snap.vecSegs {
		v.covered(m.Revision)
	}
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

// deletesWriter writes what was deleted since the last checkpoint.
type deletesWriter struct {
	ix        *Index
	rev       int64
	persisted map[*mappedFile]persistedDeletes
	old       []string // files that the new ones replace
}

// segment gives a segment's entry in the manifest, after its deletes were
// written if they changed.
func (w *deletesWriter) segment(f *mappedFile, del *deleteSet, encode func() (data []byte, whole bool)) (ms manifestSegment, err error) {
	ix := w.ix
	p := ix.persisted[f]
	if del.count > 0 && p.set != del {
		ix.nextDel++
		name := fmt.Sprintf("%s.del-%d-%d", f.name, w.rev, ix.nextDel)
		data, whole := encode()
		if err := ix.writeFile(name, data); err != nil {
			return ms, err
		}
		if p.file != "" {
			w.old = append(w.old, p.file)
		}
		p = persistedDeletes{del, name}
		if !whole {
			p.set = nil // the next checkpoint has more to say
		}
	}
	w.persisted[f] = p
	return manifestSegment{Name: f.name, Deletes: p.file}, nil
}

// putBack keeps what a failed checkpoint leaves to do for the next one.
func (ix *Index) putBack(obsolete []*mappedFile, forgetting bool) {
	ix.write.Lock()
	defer ix.write.Unlock()
	ix.obsolete = append(obsolete, ix.obsolete...)
	ix.forgetting = ix.forgetting || forgetting
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
		life := p.lives.at(l.doc)
		d.addLife(&life, uint32(i))
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
