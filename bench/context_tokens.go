package bench

import (
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/pager"
)

// lineCounter counts the tokens of rendered texts and of their beginnings. The
// lines of such a text add up, see package tiktoken, and most of them come again
// and again, so that it remembers them.
type lineCounter struct {
	counter pager.Counter
	known   map[string]int
}

func newLineCounter(c pager.Counter) *lineCounter { return &lineCounter{c, map[string]int{}} }

func (l *lineCounter) count(text []byte) int {
	total := 0
	for _, line := range render.SplitLines(text) {
		n, ok := l.known[string(line)]
		if !ok {
			n = l.counter.Count(string(line))
			if line[len(line)-1] == '\n' { // what was cut off hardly comes again
				l.known[string(line)] = n
			}
		}
		total += n
	}
	return total
}
