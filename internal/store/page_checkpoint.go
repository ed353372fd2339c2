package store

import (
	"encoding/binary"
	"math"

	"github.com/loci-memory/loci/internal/errs"
)

// A checkpoint's pages stand one after the other, each as numbers in unsigned
// LEB128: how far its id lies above that of the page before it, its version, a
// byte of what it is, and then its places and the version of its row, those that
// are not 0.
const (
	checkpointTier      = 3 // the bits of the tier
	checkpointOutline   = 1 << 2
	checkpointSeq       = 1 << 3
	checkpointAdmission = 1 << 4
	checkpointRow       = 1 << 5
	checkpointBits      = 1<<6 - 1
)

// encodeCheckpoint gives the stored form of a checkpoint's pages; nil for none.
func encodeCheckpoint(pages []CheckpointPage) ([]byte, error) {
	var buf []byte
	last := int64(0)
	for i := range pages {
		p := &pages[i]
		if p.ID <= last || min(p.Version, p.Seq, p.Admission, p.RowVersion) < 0 || p.Tier > TierCore {
			return nil, errs.Invalid("pages", "have a page %d that cannot be kept: ids must ascend, numbers not be below 0", p.ID)
		}
		bits := uint64(p.Tier)
		if p.Outline {
			bits |= checkpointOutline
		}
		if p.Seq != 0 {
			bits |= checkpointSeq
		}
		if p.Admission != 0 {
			bits |= checkpointAdmission
		}
		if p.RowVersion != 0 {
			bits |= checkpointRow
		}
		buf = binary.AppendUvarint(buf, uint64(p.ID-last))
		buf = binary.AppendUvarint(buf, uint64(p.Version))
		buf = binary.AppendUvarint(buf, bits)
		for _, place := range []int64{p.Seq, p.Admission, p.RowVersion} {
			if place != 0 {
				buf = binary.AppendUvarint(buf, uint64(place))
			}
		}
		last = p.ID
	}
	return buf, nil
}

// decodeCheckpoint reads what encodeCheckpoint made; anything else is
// errs.Storage. What it gives is never more than a page for three bytes.
func decodeCheckpoint(buf []byte) ([]CheckpointPage, error) {
	var out []CheckpointPage
	damaged := false
	next := func() int64 {
		v, n := binary.Uvarint(buf)
		// A number is read in its one shortest form.
		if n <= 0 || v > math.MaxInt64 || n > 1 && buf[n-1] == 0 {
			damaged = true
			return 0
		}
		buf = buf[n:]
		return int64(v)
	}
	last := int64(0)
	for len(buf) > 0 && !damaged {
		above := next()
		p := CheckpointPage{Version: next()}
		bits := next()
		if bits&checkpointSeq != 0 {
			p.Seq = next()
			damaged = damaged || p.Seq == 0
		}
		if bits&checkpointAdmission != 0 {
			p.Admission = next()
			damaged = damaged || p.Admission == 0
		}
		if bits&checkpointRow != 0 {
			p.RowVersion = next()
			damaged = damaged || p.RowVersion == 0
		}
		p.Tier, p.Outline = PageTier(bits&checkpointTier), bits&checkpointOutline != 0
		if above == 0 || above > math.MaxInt64-last || bits > checkpointBits || p.Tier > TierCore {
			damaged = true
		}
		last += above
		p.ID = last
		out = append(out, p)
	}
	if damaged {
		return nil, errs.New(errs.Storage, "the database is damaged: the pages of a checkpoint cannot be read")
	}
	return out, nil
}
