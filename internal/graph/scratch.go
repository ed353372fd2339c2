package graph

import (
	"math"
	"sync"
)

// A scratch is the memory of one query. Queries take turns with it, so that
// they allocate hardly more than their answer.
type scratch struct {
	from, to marks
	low      []uint32 // as long as the graph has nodes; what it holds is old
	buf      []uint32
	queue    []uint32
	queue2   []uint32
	frames   []frame
}

func newPool() *sync.Pool { return &sync.Pool{New: func() any { return new(scratch) }} }

func (s *Snapshot) scratch() *scratch { return s.pool.Get().(*scratch) }

// release gives a scratch back. It is not deferred: after a panic in a
// caller's filter the marks are in disorder and the scratch is left to the
// garbage collector.
func (s *Snapshot) release(x *scratch) { s.pool.Put(x) }

// lows gives an array of n values, whatever they are.
func (x *scratch) lows(n int) []uint32 {
	if len(x.low) < n {
		x.low = make([]uint32, n+n/8)
	}
	return x.low[:n]
}

// marks holds a small number for each node. Starting over costs nothing: all
// values below epoch are from earlier queries and count as absent.
type marks struct {
	vals  []uint32
	epoch uint32
	top   uint32 // the highest number set in this epoch
}

// start forgets all marks and makes room for n nodes.
func (m *marks) start(n int) {
	if len(m.vals) < n {
		m.vals = make([]uint32, n+n/8)
		m.epoch, m.top = 0, 0
	}
	// Numbers stay below n+1, so the next epoch must not overflow with them.
	if uint64(m.epoch)+uint64(m.top)+uint64(n)+2 > math.MaxUint32 {
		clear(m.vals)
		m.epoch, m.top = 0, 0
	}
	m.epoch += m.top + 1
	m.top = 0
}

func (m *marks) has(n uint32) bool { return m.vals[n] >= m.epoch }

// get gives the number of a node that has one.
func (m *marks) get(n uint32) uint32 { return m.vals[n] - m.epoch }

// is says whether the node has exactly that number.
func (m *marks) is(n, val uint32) bool { return m.vals[n] == m.epoch+val }

func (m *marks) set(n, val uint32) {
	m.vals[n] = m.epoch + val
	m.top = max(m.top, val)
}
