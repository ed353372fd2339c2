package store

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2/roaring64"
)

// dictLimit bounds each of the two generations of the dictionary cache.
const dictLimit = 16384

// dict caches the strings table both ways. It keeps two generations: when the
// young one is full it becomes the old one, whose entries move back when used.
// So it is bounded, and what is in use stays.
type dict struct {
	mu                 sync.RWMutex
	ids, oldIDs        map[string]int64
	texts, oldTexts    map[int64]string
	generationCapacity int
	gone               *roaring64.Bitmap // ids of strings that were removed; nil: none
}

func newDict() *dict {
	return &dict{ids: map[string]int64{}, texts: map[int64]string{}, generationCapacity: dictLimit}
}

func (d *dict) id(text string) (int64, bool) {
	d.mu.RLock()
	id, ok := d.ids[text]
	if !ok {
		id, ok = d.oldIDs[text]
		d.mu.RUnlock()
		if ok {
			d.add(id, text)
		}
		return id, ok
	}
	d.mu.RUnlock()
	return id, true
}

func (d *dict) text(id int64) (string, bool) {
	d.mu.RLock()
	text, ok := d.texts[id]
	if !ok {
		text, ok = d.oldTexts[id]
		d.mu.RUnlock()
		if ok {
			d.add(id, text)
		}
		return text, ok
	}
	d.mu.RUnlock()
	return text, true
}

// add takes an entry that is committed.
func (d *dict) add(id int64, text string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone != nil && d.gone.Contains(uint64(id)) {
		return // read from a snapshot that still has it
	}
	if len(d.ids) >= d.generationCapacity {
		d.oldIDs, d.oldTexts = d.ids, d.texts
		d.ids, d.texts = make(map[string]int64), make(map[int64]string)
	}
	d.ids[text], d.texts[id] = id, text
}
