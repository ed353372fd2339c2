package store

import (
	"sync"
	"sync/atomic"
)

// sharedLimit bounds each of the two generations of the kept records, in bytes.
const sharedLimit = 4 << 20

// sharedSlots is how many groups of ids have a time of their last change of their
// own. A power of two.
const sharedSlots = 256

// sharedRecords keeps memories as they were read, for searches: the same ones are
// found again and again, and what costs most of reading one is to find its rows. It
// is bounded like the dictionary's cache, by bytes.
//
// What is kept holds for every snapshot from the record's last change on. So a
// change takes the record out before its commit, and from then on snapshots below
// the revision that the change makes neither take from the ids around it nor put
// anything there: they would find or leave what is not theirs.
type sharedRecords struct {
	changed [sharedSlots]atomic.Int64 // revision of the last change, by slot

	mu         sync.RWMutex
	young, old map[int64]*Memory
	bytes      int // of young
	limit      int
}

func newSharedRecords() *sharedRecords {
	return &sharedRecords{young: map[int64]*Memory{}, limit: sharedLimit}
}

func (c *sharedRecords) slot(id int64) *atomic.Int64 { return &c.changed[id&(sharedSlots-1)] }

// memory gives a kept memory as the snapshot of a revision has it; nil when it is
// not known. The time of the last change is read after the memory: what is younger
// than the snapshot was put there after that time was set.
func (c *sharedRecords) memory(id, revision int64) *Memory {
	c.mu.RLock()
	m := c.young[id]
	aged := m == nil
	if aged {
		m = c.old[id]
	}
	changed := c.slot(id).Load()
	c.mu.RUnlock()
	if changed > revision {
		return nil
	}
	if m != nil && aged {
		c.add(m, revision)
	}
	return m
}

// add keeps a memory that was read in the snapshot of a revision. Nobody may change
// it any more.
func (c *sharedRecords) add(m *Memory, revision int64) {
	size := sizeOf(m)
	if size > c.limit/64 { // a few large ones would drive all others out
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.slot(m.ID).Load() > revision {
		return
	}
	if c.bytes+size > c.limit {
		c.old, c.young, c.bytes = c.young, make(map[int64]*Memory), 0
	}
	if c.young[m.ID] == nil {
		c.bytes += size
	}
	c.young[m.ID] = m
}

// change forgets records that are about to be committed in another state, are about
// to come, or to go. revision is the one that the commit makes.
func (c *sharedRecords) change(ids []int64, revision int64) {
	if len(ids) == 0 {
		return
	}
	for _, id := range ids {
		c.slot(id).Store(revision)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.young)+len(c.old) == 0 {
		return
	}
	for _, id := range ids {
		if m := c.young[id]; m != nil {
			c.bytes -= sizeOf(m)
			delete(c.young, id)
		}
		delete(c.old, id)
	}
}

// sizeOf is about what a memory takes in memory.
func sizeOf(m *Memory) int {
	const fixed = 512 // the structure, its place in the map, small slices
	n := fixed + len(m.Judgment) + len(m.Reasoning) + len(m.Metadata) + 24*len(m.Tags)
	for i := range m.Evidence {
		e := &m.Evidence[i]
		n += 160 + len(e.Source) + len(e.SourceRevision) + len(e.Quote) + len(e.Metadata)
	}
	return n
}

// SharedRecord is RecordOf for readers that change nothing of what they get: others
// have it too.
func (tx *ReadTx) SharedRecord(kind Kind, id int64) (Stored, error) {
	if kind != KindMemory {
		return tx.RecordOf(kind, id)
	}
	if m := tx.shared.memory(id, tx.revision); m != nil {
		return m, nil
	}
	m, err := tx.Memory(id)
	if m == nil || err != nil {
		return nil, err
	}
	tx.shared.add(m, tx.revision)
	return m, nil
}
