package embedded

import (
	"encoding/binary"
	"hash/crc32"
	"math"
)

// vecRows is a partition on its way into a file, in the order of its rows.
type vecRows struct {
	key    vecKey
	form   rowForm
	ids    []int64
	scopes []uint32
	scales []float32
	// row gives the codes of row i; the slice is the source's.
	row func(i int) ([]byte, error)
	// fine gives likewise what they leave of the vector.
	fine  func(i int) ([]byte, error)
	lists *vecLists // nil: none, and the rows are sorted by id
}

// vecLists divide a partition's rows among centroids. Each list is a run of
// rows, sorted by id.
type vecLists struct {
	ends      []uint32 // by list
	sorted    []uint32 // the rows by ascending id
	weights   []float32
	centroids []int8
	trained   uint32
}

// writeVecSegment writes and syncs a vector segment's file under a temporary
// name and renames it to name. The directory is not yet synced.
func writeVecSegment(fs FS, name string, parts []vecRows) error {
	return writeSections(fs, name, vecForm, func(w *sectionWriter) error { return writeVectors(w, parts) })
}

func writeVectors(w *sectionWriter, parts []vecRows) error {
	var dir []byte
	for i := range parts {
		p := &parts[i]
		l := p.lists
		if l == nil {
			l = &vecLists{}
		}
		dir = appendVecEntry(dir, p.key, p.form, uint32(len(p.ids)), uint32(len(l.ends)), l.trained)
	}
	if err := w.all(vsDirectory, dir); err != nil {
		return err
	}
	le := binary.LittleEndian
	// column writes one section, partition by partition.
	var buf []byte
	column := func(s section, write func(p *vecRows) error) error {
		if err := w.begin(s); err != nil {
			return err
		}
		for i := range parts {
			if err := write(&parts[i]); err != nil {
				return err
			}
		}
		return nil
	}
	uint32s := func(col []uint32) error {
		buf = buf[:0]
		for _, v := range col {
			buf = le.AppendUint32(buf, v)
		}
		return w.write(buf)
	}
	float32s := func(col []float32) error {
		buf = buf[:0]
		for _, v := range col {
			buf = le.AppendUint32(buf, math.Float32bits(v))
		}
		return w.write(buf)
	}
	listed := func(write func(p *vecRows) error) func(p *vecRows) error {
		return func(p *vecRows) error {
			if p.lists == nil {
				return nil
			}
			return write(p)
		}
	}
	for _, c := range []struct {
		s     section
		write func(p *vecRows) error
	}{
		{vsIDs, func(p *vecRows) error {
			buf = buf[:0]
			for _, id := range p.ids {
				buf = le.AppendUint64(buf, uint64(id))
			}
			return w.write(buf)
		}},
		{vsScopes, func(p *vecRows) error { return uint32s(p.scopes) }},
		{vsScales, func(p *vecRows) error { return float32s(p.scales) }},
		{vsSortedIDs, listed(func(p *vecRows) error {
			buf = buf[:0]
			for _, row := range p.lists.sorted {
				buf = le.AppendUint64(buf, uint64(p.ids[row]))
			}
			return w.write(buf)
		})},
		{vsSortedRows, listed(func(p *vecRows) error { return uint32s(p.lists.sorted) })},
		{vsListEnds, listed(func(p *vecRows) error { return uint32s(p.lists.ends) })},
		{vsCentroidScales, listed(func(p *vecRows) error { return float32s(p.lists.weights) })},
		{vsCentroids, listed(func(p *vecRows) error { return w.write(bytesOf(p.lists.centroids)) })},
	} {
		if err := column(c.s, c.write); err != nil {
			return err
		}
	}
	return writeCodes(w, parts)
}

// writeCodes writes the rows themselves and the checksums of their blocks.
func writeCodes(w *sectionWriter, parts []vecRows) error {
	if err := w.beginAt(vsCodes, 64); err != nil {
		return err
	}
	var sums []uint32
	crc, room := uint32(0), blockBytes
	for i := range parts {
		p := &parts[i]
		for _, give := range []func(i int) ([]byte, error){p.row, p.fine} {
			for k := range p.ids {
				row, err := give(k)
				if err != nil {
					return err
				}
				if err := w.write(row); err != nil {
					return err
				}
				for len(row) > 0 {
					n := min(room, len(row))
					crc = crc32.Update(crc, castagnoli, row[:n])
					row, room = row[n:], room-n
					if room == 0 {
						sums = append(sums, crc)
						crc, room = 0, blockBytes
					}
				}
			}
		}
	}
	if room < blockBytes {
		sums = append(sums, crc)
	}
	return w.uint32s(vsBlockSums, sums)
}
