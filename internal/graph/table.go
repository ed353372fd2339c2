package graph

const (
	pageBits = 9
	pageMask = 1<<pageBits - 1
)

// A page is a piece of a table. gen names the batch of changes that made it:
// the same batch may write to it again, any other copies it first.
type page struct {
	gen  uint64
	vals [1 << pageBits]uint32
}

// A table is a persistent array: zero where nothing was set, and never changed
// while somebody can read it. A batch of changes copies the list of pages once
// and each page that it touches once, so a write costs a few kilobytes however
// large the graph is. The zero table is empty.
type table struct {
	pages []*page
}

func (t *table) at(i uint32) uint32 {
	p := i >> pageBits
	if int(p) >= len(t.pages) || t.pages[p] == nil {
		return 0
	}
	return t.pages[p].vals[i&pageMask]
}

// bit reads a table as a set of bits.
func (t *table) bit(i uint32) bool { return t.at(i>>5)>>(i&31)&1 != 0 }

// An editor makes the next version of a table.
type editor struct {
	table
	gen   uint64
	owned bool // the list of pages is a copy
}

func (e *editor) set(i, val uint32) {
	p := int(i >> pageBits)
	if !e.owned {
		e.pages = append(make([]*page, 0, max(len(e.pages), p+1)), e.pages...)
		e.owned = true
	}
	for p >= len(e.pages) {
		e.pages = append(e.pages, nil)
	}
	pg := e.pages[p]
	if pg == nil {
		pg = &page{gen: e.gen}
		e.pages[p] = pg
	} else if pg.gen != e.gen {
		pg = &page{gen: e.gen, vals: pg.vals}
		e.pages[p] = pg
	}
	pg.vals[i&pageMask] = val
}

func (e *editor) setBit(i uint32) { e.set(i>>5, e.at(i>>5)|1<<(i&31)) }

func (t *table) bytes() int {
	n := 8 * len(t.pages)
	for _, p := range t.pages {
		if p != nil {
			n += 8 + 4<<pageBits
		}
	}
	return n
}
