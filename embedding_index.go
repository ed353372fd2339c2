package loci

import (
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// vectorBytes is how much the vectors of a batch of records may take, as a rule.
const vectorBytes = 32 << 20

// batchOf is how many of at most most records are read at a time, so that their
// vectors in all spaces do not take too much memory.
func batchOf(tx *store.ReadTx, most int) (int, error) {
	spaces, err := tx.Spaces()
	size := 0
	for _, sp := range spaces {
		size += 4 * sp.Dimension
	}
	if size == 0 {
		return most, err
	}
	return min(most, max(1, vectorBytes/size)), err
}

// vectorsOf gives the vectors of records, of all spaces, as changes.
func vectorsOf(tx *store.ReadTx, docs []*index.Document) (changes []index.Change, err error) {
	spaces, err := tx.Spaces()
	if err != nil {
		return nil, err
	}
	for _, sp := range spaces {
		for _, d := range docs {
			values, ok, err := tx.UnitVector(sp.ID, d.ID)
			if err != nil {
				return nil, err
			}
			if ok && len(values) == sp.Dimension {
				changes = append(changes, index.Change{ID: d.ID, Namespace: d.Namespace, Kind: d.Kind, Vector: vectorChange(sp, d.Scope, values)})
			}
		}
	}
	return changes, nil
}

func vectorChange(sp *store.Space, scope int64, values []float32) *index.VectorChange {
	return &index.VectorChange{Space: sp.ID, Encoding: index.Encoding(sp.Encoding), Scope: scope, Values: values}
}

// vectorChangesOf gives the present state of every vector that the entries name,
// of records that are there, and the spaces that were deleted.
func vectorChangesOf(tx *store.ReadTx, entries []store.JournalEntry) (changes []index.Change, dropped []int64, err error) {
	type vector struct{ space, id int64 }
	var seen map[vector]bool
	var spaces map[int64]*store.Space
	for _, entry := range entries {
		key := vector{entry.Space, entry.ID}
		if entry.Space == 0 || seen[key] {
			continue
		}
		if seen == nil {
			seen, spaces = map[vector]bool{}, map[int64]*store.Space{}
			all, err := tx.Spaces()
			if err != nil {
				return nil, nil, err
			}
			for _, sp := range all {
				spaces[sp.ID] = sp
			}
		}
		seen[key] = true
		sp := spaces[entry.Space]
		if sp == nil {
			if entry.ID == 0 {
				dropped = append(dropped, entry.Space)
			}
			continue
		}
		_, scope, there, err := tx.Where(entry.ID)
		if err != nil {
			return nil, nil, err
		}
		if !there {
			continue // the record's own entry says so
		}
		values, ok, err := tx.UnitVector(sp.ID, entry.ID)
		if err != nil {
			return nil, nil, err
		}
		if !ok || len(values) != sp.Dimension {
			values = nil
		}
		changes = append(changes, index.Change{ID: entry.ID, Namespace: entry.Namespace, Kind: index.Kind(entry.Kind),
			Vector: vectorChange(sp, scope, values)})
	}
	return changes, dropped, nil
}
