package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// mainFigure is what quality is compared by.
const mainFigure = "nDCG@10"

// same is how far two figures of quality may differ and count as equal: what the
// order of hits with one score decides.
const same = 0.001

// qualityLine gives a line of a table of quality.
func (v *view) qualityLine(j judged, figure string, labels ...string) line {
	m := metric{name: figure, write: func(v float64) string { return fmt.Sprintf("%.4f", v) }, more: true}
	// As a search of its kind it tells who cannot take part.
	l := line{key: key{task: j.path}, labels: labels, metric: m, cells: map[string]cell{}}
	for product, q := range v.quality[j] {
		c := cell{missing: q.Missing, note: q.Note}
		if q.Missing == "" {
			c.value, c.has = q.Figures[figure]
		}
		l.cells[product] = c
	}
	return l
}

// pathTitle says what a way to search is called on the page.
func pathTitle(path string) string {
	return map[string]string{"text": "Text", "vector": "Vectors, the same embeddings for all", "hybrid": "Hybrid, the same embeddings for all"}[path]
}

func qualityBlock(v *view) string {
	var b strings.Builder
	for _, path := range paths() {
		g := grid{heads: []string{"set", "queries"}}
		var rest strings.Builder
		for _, figure := range v.figures() {
			other := grid{heads: []string{"set", "queries"}}
			for _, j := range v.judged {
				if j.path != path {
					continue
				}
				l := v.qualityLine(j, figure, j.set, v.queries(j))
				if figure == mainFigure {
					g.lines = append(g.lines, l)
				} else {
					other.lines = append(other.lines, l)
				}
			}
			if figure != mainFigure {
				rest.WriteString(titled(figure, other.quality(v)))
			}
		}
		b.WriteString(titled(pathTitle(path)+": "+mainFigure, g.quality(v)))
		b.WriteString(folded("Other measures", rest.String()))
	}
	return b.String()
}

// quality writes a grid of quality: a difference says more than a factor there.
func (g grid) quality(v *view) string {
	products := g.columns(v)
	if len(products) == 0 {
		return ""
	}
	var t table
	t.left = len(g.heads)
	t.row(append(slices.Clone(g.heads), products...))
	var notes footnotes
	for _, l := range g.lines {
		row := slices.Clone(l.labels)
		for _, p := range products {
			c := l.cells[p]
			if !c.has {
				row = append(row, "-"+notes.mark(c.missing))
				continue
			}
			s := l.metric.write(c.value)
			if best, _ := l.best(); best-c.value < same {
				s = "**" + s + "**"
			}
			if ours := l.cells[loci]; p != loci && ours.has {
				s += fmt.Sprintf(" (%+.3f)", c.value-ours.value)
			}
			row = append(row, s+notes.mark(c.note))
		}
		t.row(row)
	}
	return t.String() + notes.String() + g.absent(v, products)
}

// figures gives the measures of quality, the main one first.
func (v *view) figures() []string {
	all := map[string]bool{}
	for _, products := range v.quality {
		for _, q := range products {
			for name := range q.Figures {
				all[name] = true
			}
		}
	}
	delete(all, mainFigure)
	return append([]string{mainFigure}, slices.Sorted(maps.Keys(all))...)
}

// queries gives how many queries a set has; they are the same for all.
func (v *view) queries(j judged) string {
	most := 0
	for _, q := range v.quality[j] {
		most = max(most, q.Queries)
	}
	return count(float64(most))
}
