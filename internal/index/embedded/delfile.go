package embedded

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/RoaringBitmap/roaring/v2"
)

// deletesMagic and vecDeletesMagic begin the files of what is deleted in a text
// and in a vector segment.
const (
	deletesMagic    = "LOCIDEL1"
	vecDeletesMagic = "LOCIVDL1"
)

// A deletes file: magic; number of documents u32; length of the bitmap u32 and
// the bitmap (roaring); number of partitions u32 and for each its number and
// stats; number of counters u64 and for each partition u32, term u32, count u32;
// CRC-32C of all of it.
func encodeDeletes(v segView, rev int64) []byte {
	le := binary.LittleEndian
	out := appendBitmap([]byte(deletesMagic), v.numDocs, v.del)
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

func decodeDeletes(v *segView, data []byte) error {
	le := binary.LittleEndian
	del, data, err := readBitmap(data, deletesMagic, v.numDocs)
	if err != nil {
		return err
	}
	short := fmt.Errorf("%w: too short", errDamaged)
	if len(data) < 4 {
		return short
	}
	v.del = del
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

// appendBitmap appends what a deletes file of n documents or rows begins with.
func appendBitmap(dst []byte, n uint32, del *deleteSet) []byte {
	bm := roaring.New()
	del.each(nil, bm.Add)
	bm.RunOptimize()
	bits, err := bm.ToBytes()
	if err != nil {
		panic(err) // writes to memory only
	}
	dst = binary.LittleEndian.AppendUint32(dst, n)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(bits)))
	return append(dst, bits...)
}

// readBitmap verifies a deletes file's checksum and gives its bitmap and what
// follows it.
func readBitmap(data []byte, magic string, n uint32) (del *deleteSet, rest []byte, err error) {
	le := binary.LittleEndian
	if len(data) < 20 || string(data[:8]) != magic ||
		crc32.Checksum(data[:len(data)-4], castagnoli) != le.Uint32(data[len(data)-4:]) {
		return nil, nil, fmt.Errorf("%w: checksum", errDamaged)
	}
	data = data[8 : len(data)-4]
	have, size := le.Uint32(data), le.Uint32(data[4:])
	data = data[8:]
	if have != n || uint64(size) > uint64(len(data)) {
		return nil, nil, fmt.Errorf("%w: too short", errDamaged)
	}
	bm := roaring.New()
	if err := bm.UnmarshalBinary(data[:size]); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	// Its largest one is only that of a bitmap whose runs are in order.
	if err := bm.Validate(); err != nil {
		return nil, nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if !bm.IsEmpty() && bm.Maximum() >= n {
		return nil, nil, fmt.Errorf("%w: a deleted one out of range", errDamaged)
	}
	del = newDeleteSet(n).clone()
	for it := bm.Iterator(); it.HasNext(); {
		del.add(it.Next())
	}
	del.owned = nil
	return del, data[size:], nil
}

// encodeVecDeletes gives the file of what was deleted in a vector segment by
// rev, and whether that is all that is deleted.
func encodeVecDeletes(v vecSegView, rev int64) (data []byte, whole bool) {
	del := v.del
	late := v.lateDeletes(rev)
	if len(late) > 0 {
		skip := make(map[uint32]bool, len(late))
		for _, d := range late {
			skip[d.row] = true
		}
		del = newDeleteSet(v.rows).clone()
		v.del.each(nil, func(row uint32) {
			if !skip[row] {
				del.add(row)
			}
		})
	}
	out := appendBitmap([]byte(vecDeletesMagic), v.rows, del)
	return binary.LittleEndian.AppendUint32(out, crc32.Checksum(out, castagnoli)), del.count == v.del.count
}

func decodeVecDeletes(v *vecSegView, data []byte) error {
	del, rest, err := readBitmap(data, vecDeletesMagic, v.rows)
	if err != nil {
		return err
	}
	if len(rest) != 0 {
		return fmt.Errorf("%w: too long", errDamaged)
	}
	v.del = del
	del.each(nil, func(row uint32) {
		part := v.partOf(row)
		v.gone[part] = v.gone[part].add(0, 1, 0)
	})
	return nil
}
