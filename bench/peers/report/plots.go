package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci/bench/peers/result"
)

// A plot is a drawing beside the page; draw gives nothing when nothing of it was
// measured.
type plot struct {
	name  string
	title string
	draw  func(v *view) string
}

func plots() []plot {
	return []plot{
		{"text", "Text search, p50 by class of query", textPlot},
		{"vectors", "Vector search at recall 0.99, p50 by filter", vectorsPlot},
		{"hybrid", "Hybrid search, p50 by filter", hybridPlot},
		{"writes", "Writing, p50", writesPlot},
		{"memory", "Memory and disk", memoryPlot},
		{"growth", "p50 as the records grow", growthPlot},
		{"quality", "Quality by set", qualityPlot},
	}
}

const plotWidth = 920

// mark gives the look of a product, the same on every page; others than the known
// ones follow in their order.
func (v *view) mark(name string) mark {
	known := []string{loci, pMemory, "chromadb", "lancedb", sqliteVec, tantivy, "qdrant-client (local)", hnswlib, usearch, "faiss", "mem0ai"}
	if i := slices.Index(known, name); i >= 0 {
		return marks(i)
	}
	return marks(len(known) + slices.IndexFunc(v.products, func(p result.Product) bool { return p.Name == name }))
}

// A band is a row of a plot of dots.
type band struct {
	label string
	line  line
}

// dots draws bands of one metric along one axis, a mark for each product.
func (v *view) dots(title, about string, bands []band, axis func(low, high, from, to float64) scale, label func(float64) string) string {
	var g grid
	low, high := math.Inf(1), 0.0
	for _, b := range bands {
		g.lines = append(g.lines, b.line)
		for _, c := range b.line.cells {
			if c.has && c.value > 0 {
				low, high = min(low, c.value), max(high, c.value)
			}
		}
	}
	products := g.columns(v)
	if len(products) == 0 || high == 0 {
		return ""
	}
	const left, right, top = 260.0, 30.0, 38.0
	row := max(22, 6+5*float64(len(products)))
	c := &canvas{width: plotWidth}
	c.text(8, 22, "title", title)
	begin := top + c.legend(12, top+14, plotWidth-24, products, v.mark) + 12
	end := begin + row*float64(len(bands))
	s := axis(low*0.92, high*1.08, left, plotWidth-right)
	for _, t := range s.ticks() {
		x := s.at(t)
		c.line(x, begin, x, end, "grid")
		c.text(x, end+18, "small middle", label(t))
	}
	for i, b := range bands {
		y := begin + row*float64(i)
		c.line(12, y, plotWidth-right, y, "grid")
		c.text(left-12, y+row/2+4.5, "end", b.label)
		// Each product has a height of its own in the band, so that none hides another;
		// Loci is drawn last and larger.
		for j := len(products) - 1; j >= 0; j-- {
			cell := b.line.cells[products[j]]
			if !cell.has || cell.value <= 0 {
				continue
			}
			r := 4.5
			if products[j] == loci {
				r = 6
			}
			at := y + row/2
			if n := len(products); n > 1 {
				at = y + 7 + (row-14)*float64(j)/float64(n-1)
			}
			c.draw(v.mark(products[j]), s.at(cell.value), at, r, cell.aside != "")
		}
	}
	c.line(12, end, plotWidth-right, end, "axis")
	c.text(plotWidth-right, end+38, "small end", about)
	c.height = end + 50
	return c.String(title, about)
}

// bandsOf makes a band of every line at the size that is shown first.
func (v *view) bandsOf(m metric, name func(k key) string, ok func(k key) bool, tasks ...string) ([]band, int) {
	keys := v.find(ok, tasks...)
	n := mainSize(sizes(keys))
	var out []band
	for _, k := range keys {
		if k.records == n {
			out = append(out, band{name(k), v.line(k, m)})
		}
	}
	return out, n
}

func textPlot(v *view) string {
	bands, n := v.bandsOf(p50(), func(k key) string { return k.class }, func(k key) bool { return k.filter == "none" && k.data == "" }, result.TaskText)
	return v.dots("Text search, p50 by class of query, "+records(n), "logarithmic; left is better", bands, logScale, tick)
}

func byFilter(k key) string {
	name := "no filter"
	if k.filter != "none" {
		name = "filter of " + k.filter
	}
	return called(key{class: k.class}, name)
}

func vectorsPlot(v *view) string {
	bands, n := v.bandsOf(p50(), byFilter, func(k key) bool { return k.data == "" }, result.TaskVector)
	return v.dots("Vector search at recall 0.99, p50 by filter, "+records(n), "logarithmic; left is better; hollow: recall below 0.99", bands, logScale, tick)
}

func hybridPlot(v *view) string {
	bands, n := v.bandsOf(p50(), byFilter, func(k key) bool { return k.data == "" }, result.TaskHybrid)
	return v.dots("Hybrid search, p50 by filter, "+records(n), "logarithmic; left is better", bands, logScale, tick)
}

func writesPlot(v *view) string {
	bands, n := v.bandsOf(p50(), func(k key) string { return called(k, k.task) }, nil,
		result.TaskSingle, result.TaskVisible, result.TaskUpdate, result.TaskDelete)
	return v.dots("Writing, p50, "+records(n), "logarithmic; left is better; hollow: a returned write is not synced", bands, logScale, tick)
}

// memoryPlot draws bars side by side: of memory in two parts, and of disk, for each
// kind of store.
func memoryPlot(v *view) string {
	keys := v.find(nil, result.TaskMemory, result.TaskDisk)
	n := mainSize(sizes(keys))
	const half, left, right = plotWidth / 2.0, 150.0, 78.0
	c := &canvas{width: plotWidth}
	y := 52.0
	for _, data := range datasets(keys) {
		bottom := y
		for i, task := range []string{result.TaskMemory, result.TaskDisk} {
			for _, k := range keys {
				if k.records == n && k.data == data && k.task == task {
					bottom = max(bottom, v.bars(c, k, half*float64(i), y, half-right, left))
				}
			}
		}
		if bottom > y {
			y = bottom + 26
		}
	}
	if y == 52 {
		return ""
	}
	title := "Memory and disk, " + records(n)
	c.text(8, 22, "title", title)
	c.height = y - 10
	return c.String(title, "bars, shorter is better")
}

// bars draws a product a bar below a heading, and gives where they end; a line
// without figures takes no room.
func (v *view) bars(c *canvas, k key, x, y, right, left float64) float64 {
	high := 0.0
	for _, r := range v.rows[k] {
		high = max(high, float64(r.Bytes))
	}
	if high == 0 {
		return y
	}
	heading := map[string]string{result.TaskMemory: "Resident (pale: before opening)", result.TaskDisk: "Disk"}[k.task]
	c.text(x+12, y, "strong", called(k, heading))
	s := scale{low: 0, high: high, from: x + left, to: x + right}
	y += 10
	for _, p := range v.products {
		r := v.row(k, p.Name)
		if r == nil {
			continue
		}
		m, class := v.mark(p.Name), "end"
		if p.Name == loci {
			class = "end strong"
		}
		c.text(x+left-10, y+13, class, p.Name)
		idle, all := s.at(float64(min(r.Idle, r.Bytes))), s.at(float64(r.Bytes))
		if r.Idle > 0 {
			c.bar(x+left, y+2, idle-x-left, 14, m.colour, 0.35)
		}
		c.bar(idle, y+2, max(1, all-idle), 14, m.colour, 1)
		c.text(all+8, y+13, "small", megabytes(float64(r.Bytes)))
		y += 21
	}
	return y
}

// growthPlot draws a small panel for every class with the products' curves.
func growthPlot(v *view) string {
	type panel struct {
		title string
		of    key // of any size
	}
	var panels []panel
	keys := v.find(func(k key) bool {
		return k.data == "" && (k.filter == "none" || k.filter == "1 %" && k.task == result.TaskVector)
	}, result.TaskText, result.TaskVector, result.TaskHybrid)
	all := sizes(keys)
	if len(all) < 2 {
		return ""
	}
	low, high := math.Inf(1), 0.0
	var products []string
	for _, k := range keys {
		k.records = 0
		title := k.class
		if k.task != result.TaskText {
			title = strings.TrimSuffix(called(k, k.task)+", "+k.filter, ", none")
		}
		if !slices.ContainsFunc(panels, func(p panel) bool { return p.of == k }) {
			panels = append(panels, panel{title, k})
		}
	}
	for _, k := range keys {
		for _, p := range v.products {
			if r := v.row(k, p.Name); r != nil && r.P50 > 0 {
				low, high = min(low, r.P50), max(high, r.P50)
				if !slices.Contains(products, p.Name) {
					products = append(products, p.Name)
				}
			}
		}
	}
	if high == 0 {
		return ""
	}
	slices.SortFunc(products, func(a, b string) int {
		at := func(name string) int {
			return slices.IndexFunc(v.products, func(p result.Product) bool { return p.Name == name })
		}
		return at(a) - at(b)
	})
	title := "p50 as the records grow, " + count(float64(all[0])) + " to " + count(float64(all[len(all)-1]))
	c := &canvas{width: plotWidth}
	c.text(8, 22, "title", title)
	top := 38 + c.legend(12, 52, plotWidth-24, products, v.mark) + 16
	const columns, wide, tall = 3, plotWidth / 3.0, 190.0
	for i, p := range panels {
		x0, y0 := wide*float64(i%columns)+62, top+tall*float64(i/columns)
		xs := scale{low: float64(all[0]), high: float64(all[len(all)-1]), from: x0 + 8, to: x0 + wide - 82, log: true}
		ys := logScale(low*0.92, high*1.08, y0+tall-48, y0+16)
		c.text(x0, y0+6, "strong", p.title)
		for _, t := range ys.ticks() {
			c.line(x0, ys.at(t), x0+wide-74, ys.at(t), "grid")
			c.text(x0-6, ys.at(t)+4, "small end", tick(t))
		}
		for _, n := range all {
			c.text(xs.at(float64(n)), y0+tall-32, "small middle", short(n))
		}
		for j := range products { // Loci first: its broad curve shows below those that run along it
			var points [][2]float64
			var aside []bool
			for _, n := range all {
				k := p.of
				k.records = n
				if r := v.row(k, products[j]); r != nil && r.P50 > 0 {
					points = append(points, [2]float64{xs.at(float64(n)), ys.at(r.P50)})
					aside = append(aside, v.aside(r) != "")
				}
			}
			m, width, r := v.mark(products[j]), 1.6, 3.0
			if products[j] == loci {
				width, r = 4, 4.6
			}
			if len(points) > 1 {
				c.curve(m, points, width)
			}
			for i, at := range points {
				c.draw(m, at[0], at[1], r, aside[i])
			}
		}
	}
	c.height = top + tall*math.Ceil(float64(len(panels))/columns)
	return c.String(title, "both axes logarithmic; lower is better; hollow: recall below 0.99")
}

// short writes a number of records where there is little room.
func short(n int) string {
	switch {
	case n >= 1_000_000 && n%100_000 == 0:
		return fmt.Sprintf("%gM", float64(n)/1e6)
	case n >= 1000 && n%100 == 0:
		return fmt.Sprintf("%gk", float64(n)/1e3)
	default:
		return fmt.Sprint(n)
	}
}

func qualityPlot(v *view) string {
	var bands []band
	for _, path := range paths() {
		for _, j := range v.judged {
			if j.path == path {
				bands = append(bands, band{j.set + ", " + path, v.qualityLine(j, mainFigure)})
			}
		}
	}
	linear := func(low, high, from, to float64) scale {
		return scale{low: math.Floor(low*10) / 10, high: 1, from: from, to: to}
	}
	return v.dots("Quality by set and way to search, "+mainFigure, "right is better", bands, linear, func(f float64) string { return fmt.Sprintf("%.1f", f) })
}
