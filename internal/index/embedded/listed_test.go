package embedded

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/loci-memory/loci/internal/index"
)

// rarely is a tag so rare that the documents that have it are listed.
const rarely = 29

// TestListed holds that a filter that leaves few documents finds what the model
// does: among frequent and rare words, deleted documents, and hits of earlier
// rounds.
func TestListed(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			w := world{rand.New(rand.NewPCG(seed, 11))}
			opts := Options{Analyze: words, Version: 1, StoreID: "s", TailDocs: 5000, OnError: func(err error) { t.Error(err) }}
			ix, err := Open(DirFS(t.TempDir()), opts)
			if err != nil {
				t.Fatal(err)
			}
			defer ix.Close()
			m := model{}
			var changes []index.Change
			for id := int64(1); id <= 1500; id++ {
				d := w.doc(id)
				d.Namespace, d.Kind, d.Life = 1, 1, index.Life{}
				if w.IntN(60) == 0 {
					d.Tags = append(d.Tags, rarely)
				}
				m[id] = d
				changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1, Doc: ix.Prepare(d)})
			}
			ix.Stage(1, changes)
			ix.Publish()
			if err := ix.Flush(); err != nil {
				t.Fatal(err)
			}
			changes = nil
			for id, d := range m {
				if w.IntN(20) == 0 || slices.Contains(d.Tags, rarely) && w.IntN(4) == 0 {
					delete(m, id)
					changes = append(changes, index.Change{ID: id, Namespace: 1, Kind: 1})
				}
			}
			ix.Stage(2, changes)
			ix.Publish()
			v, ok := ix.View(2)
			if !ok {
				t.Fatal("no view of the last revision")
			}
			defer v.Close()
			for range 30 {
				q := w.query()
				f := index.Filter{Namespace: 1, Kinds: []index.Kind{1}, Scopes: []int64{10, 11, 12}, Tags: []int64{rarely}}
				compareSearch(t, v, m, q, f, []int{1, 2, 5, 10, 200}[w.IntN(5)])
			}
		})
	}
}

// TestFind holds that looking single documents up gives what walking gives, in any
// order, in lists of every width and in parts of lists.
func TestFind(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, gap := range []int{1, 2, 9, 700, 90_000} {
		for _, n := range []int{1, 2, 127, 128, 129, 1000} {
			var list []posting
			at := map[uint32]posting{}
			doc := uint32(rng.IntN(50))
			for range n {
				p := posting{doc: doc, tf: uint8(1 + rng.IntN(9))}
				if rng.IntN(3) == 0 {
					p.extra = p.tf - 1
				}
				list, at[doc] = append(list, p), p
				doc += 1 + uint32(rng.IntN(gap))
			}
			lens := make([]uint8, doc+1)
			data := appendPostings(nil, list, lens)
			blocks := (n + blockSize - 1) / blockSize
			whole := plist{df: uint32(n), nblk: blocks, b1: blocks, hi: doc, data: data, nonEmpty: true}
			part := whole
			part.lo, part.hi = list[n/3].doc, list[n-1-n/4].doc+1
			tail := whole
			tail.data, tail.posts = nil, list
			for name, l := range map[string]plist{"whole": whole, "part": part, "tail": tail} {
				var c cursor
				c.reset(l)
				for range 500 {
					ask := uint32(rng.IntN(int(doc) + 2))
					if rng.IntN(2) == 0 {
						ask = list[rng.IntN(n)].doc
					}
					tf, extra, ok := c.find(ask)
					want, there := at[ask]
					there = there && ask >= l.lo && ask < l.hi
					if ok != there || ok && (tf != want.tf || extra != want.extra) {
						t.Fatalf("%s, gaps to %d, %d documents: %d is %v %d %d, want %v %+v", name, gap, n, ask, ok, tf, extra, there, want)
					}
					if rng.IntN(8) == 0 && ask >= l.lo {
						if d := c.seek(ask); (d == ask) != there {
							t.Fatalf("%s: seek went to %d for %d", name, d, ask)
						}
					}
				}
			}
		}
	}
}
