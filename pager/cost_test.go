package pager

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/loci-memory/loci/internal/store"
)

// wordsCounter counts words, and how often it was asked.
type wordsCounter struct{ asked *int }

func (wordsCounter) ID() string { return "test:words" }

func (w wordsCounter) Count(text string) int {
	*w.asked++
	return len(strings.Fields(text))
}

// windowWith makes a window of pages with contents of the given sizes in words.
func windowWith(r *rand.Rand, core, working int) *window {
	w := &window{}
	page := func(id string) *resident {
		return newResident(&store.Page{PageID: id, PageRevision: store.PageRevision{Version: 1, Content: strings.Repeat("some words ", 1+r.IntN(80))}})
	}
	for i := range core {
		w.core = append(w.core, page(fmt.Sprintf("c%d", i)))
	}
	for i := range working {
		w.working = append(w.working, page(fmt.Sprintf("w%d", i)))
	}
	return w
}

// The guess and the search around it find what trying one page after another
// finds, and what the window costs then.
func TestShortestEviction(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	asked := 0
	for _, m := range []meter{{}, {wordsCounter{&asked}}} {
		for range 500 {
			w := windowWith(r, r.IntN(3), r.IntN(30))
			order := make([]*resident, 0, len(w.working))
			for _, i := range r.Perm(len(w.working)) {
				if r.IntN(10) > 0 { // some are kept
					order = append(order, w.working[i])
				}
			}
			cost := m.cost(w)
			limit := 1 + r.IntN(cost+10)
			n, left := m.shortestEviction(w, order, cost, limit)

			want, rest := 0, window{core: w.core, working: append([]*resident(nil), w.working...)}
			for m.cost(&rest) > limit && want < len(order) {
				for i, p := range rest.working {
					if p == order[want] {
						rest.working = append(rest.working[:i], rest.working[i+1:]...)
						break
					}
				}
				want++
			}
			if reached := m.cost(&rest); reached > limit {
				if n <= len(order) {
					t.Fatalf("%d of %d pages are to go, and without all of them the window costs %d, over %d", n, len(order), reached, limit)
				}
			} else if n != want || left != reached {
				t.Fatalf("%d pages are to go and leave %d; %d are enough and leave %d", n, left, want, reached)
			}
		}
	}
}

// A counter that has to count the whole text is asked a few times only.
func TestEvictionCountsSeldom(t *testing.T) {
	asked := 0
	m := meter{wordsCounter{&asked}}
	w := windowWith(rand.New(rand.NewPCG(3, 4)), 10, 200)
	cost := m.cost(w)
	asked = 0
	if n, _ := m.shortestEviction(w, w.working, cost, cost*9/10); n < 5 || n > 50 || asked > 6 {
		t.Errorf("%d pages go after %d counts", n, asked)
	}
}
