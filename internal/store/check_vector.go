package store

import (
	"fmt"
	"math"
)

// checkVectors looks at every vector: its space, its record, its size and its
// numbers. Vectors of a space that is going are nobody's concern.
func (tx *ReadTx) checkVectors() (findings []string, err error) {
	type kept struct {
		dimension int
		going     bool
	}
	spaces := map[int64]kept{}
	err = tx.each("SELECT id, dimension, name IS NULL FROM spaces", func(st stmt) error {
		spaces[st.columnInt(0)] = kept{int(st.columnInt(1)), st.columnInt(2) != 0}
		return nil
	})
	if err != nil {
		return nil, err
	}
	record, err := tx.once("SELECT kind FROM records WHERE id = $1")
	if err != nil {
		return nil, err
	}
	defer record.close()
	var values []float32
	err = tx.each("SELECT vector_key, norm, value FROM vectors ORDER BY vector_key", func(st stmt) error {
		if len(findings) >= maxFindings {
			return nil
		}
		key := st.columnInt(0)
		space, id := key>>recordBits, key&maxVectorID
		find := func(what string) {
			findings = append(findings, fmt.Sprintf("the vector of record %d in space %d %s", id, space, what))
		}
		sp, ok := spaces[space]
		if sp.going {
			return nil
		}
		if !ok {
			find("has no such space")
			return nil
		}
		record.bindInt(1, id)
		found, err := record.step()
		kind := Kind(0)
		if found {
			kind = Kind(record.columnInt(0))
		}
		record.reset()
		if err != nil {
			return err
		}
		raw, norm := st.columnRaw(2), st.columnFloat(1)
		values = appendFloats(values[:0], raw)
		switch {
		case TierOf(kind) == TierMaster:
			find("has no record")
		case len(raw) != 4*sp.dimension:
			find("has another size than its space says")
		case !(norm > 0) || math.IsInf(norm, 0) || !(math.Abs(normOf(values)-norm) <= 1e-6*norm):
			find("has another length than it says")
		}
		return nil
	})
	return findings, err
}
