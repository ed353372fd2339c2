package graph

import (
	"encoding/binary"
	"slices"
)

// A label is all that a filter or a rule can ask about a node or an edge,
// except its id and time. Records share few labels, so a view judges each
// label once and an edge by one look at the verdict.
type label struct {
	node  bool
	pred  int64 // 0 for nodes
	scope int64
	tags  []int64 // ascending, distinct
}

// gone is the label of nodes that are not there: deleted ones and those that
// only a relation speaks of. No view shows it.
const gone uint32 = 0

type labelKey struct {
	node        bool
	pred, scope int64
	tags        string
}

// An interner numbers labels. The list only grows, so snapshots hold a prefix
// of it while the writer goes on.
type interner struct {
	list []label
	ids  map[labelKey]uint32
	buf  []byte
}

func newInterner() *interner {
	return &interner{list: make([]label, 1), ids: map[labelKey]uint32{}}
}

func (in *interner) node(n *Node) uint32 { return in.intern(true, 0, n.Scope, n.Tags) }

func (in *interner) edge(e *Edge) uint32 { return in.intern(false, e.Predicate, e.Scope, e.Tags) }

func (in *interner) intern(node bool, pred, scope int64, tags []int64) uint32 {
	if !ascending(tags) {
		tags = slices.Clone(tags)
		slices.Sort(tags)
		tags = slices.Compact(tags)
	}
	in.buf = in.buf[:0]
	for _, t := range tags {
		in.buf = binary.LittleEndian.AppendUint64(in.buf, uint64(t))
	}
	// The conversion in the index expression does not allocate.
	if l, ok := in.ids[labelKey{node, pred, scope, string(in.buf)}]; ok {
		return l
	}
	l := uint32(len(in.list))
	in.list = append(in.list, label{node, pred, scope, slices.Clone(tags)})
	in.ids[labelKey{node, pred, scope, string(in.buf)}] = l
	return l
}

// ascending says whether the values rise strictly.
func ascending(s []int64) bool {
	for i := 1; i < len(s); i++ {
		if s[i] <= s[i-1] {
			return false
		}
	}
	return true
}

// covers says whether every one of want, ascending, is in have, ascending.
func covers(have, want []int64) bool {
	for _, w := range want {
		for len(have) > 0 && have[0] < w {
			have = have[1:]
		}
		if len(have) == 0 || have[0] != w {
			return false
		}
	}
	return true
}
