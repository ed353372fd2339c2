package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci/bench/peers/result"
)

// A metric is one figure of a row.
type metric struct {
	name  string
	value func(r *result.Row) float64 // 0: the row has none
	write func(v float64) string
	more  bool // the more, the better
}

func p50() metric {
	return metric{name: "p50", value: func(r *result.Row) float64 { return r.P50 }, write: micros}
}
func p95() metric {
	return metric{name: "p95", value: func(r *result.Row) float64 { return r.P95 }, write: micros}
}
func p99() metric {
	return metric{name: "p99", value: func(r *result.Row) float64 { return r.P99 }, write: micros}
}
func cpuCall() metric {
	return metric{name: "CPU a call", value: func(r *result.Row) float64 { return r.CPU }, write: micros}
}
func rate() metric {
	return metric{name: "a second", value: func(r *result.Row) float64 { return r.Rate }, write: count, more: true}
}
func wallTask() metric {
	return metric{name: "wall", value: func(r *result.Row) float64 { return 1e6 * r.Seconds }, write: micros}
}
func cpuTask() metric {
	return metric{name: "CPU", value: func(r *result.Row) float64 { return 1e6 * r.CPUSecs }, write: micros}
}
func size() metric {
	return metric{name: "bytes", value: func(r *result.Row) float64 { return float64(r.Bytes) }, write: megabytes}
}

// micros writes microseconds with a unit that suits them.
func micros(us float64) string {
	switch {
	case us == 0:
		return "0"
	case us < 10:
		return fmt.Sprintf("%.1f us", us)
	case us < 1000:
		return fmt.Sprintf("%.0f us", us)
	case us < 100_000:
		return fmt.Sprintf("%.2f ms", us/1e3)
	case us < 1e6:
		return fmt.Sprintf("%.0f ms", us/1e3)
	case us < 1e8:
		return fmt.Sprintf("%.1f s", us/1e6)
	default:
		return count(us/1e6) + " s"
	}
}

func megabytes(b float64) string {
	if b < 1e7 {
		return fmt.Sprintf("%.1f MB", b/1e6)
	}
	return count(b/1e6) + " MB"
}

// count writes a number with its thousands parted.
func count(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// factor writes how many times one figure is another.
func factor(f float64) string {
	switch {
	case f < 0.095:
		return fmt.Sprintf("x%.2g", f)
	case f < 1.095:
		return fmt.Sprintf("x%.2f", f)
	case f < 9.95:
		return fmt.Sprintf("x%.1f", f)
	default:
		return "x" + count(math.Round(f))
	}
}

// A cell is a product's figure in a line, or why there is none.
type cell struct {
	value   float64
	has     bool   // a figure at all
	missing string // why not; empty where the line was not asked of the product
	aside   string // why it is not the same work as the others
	note    string // what else the run says of it
}

// A line is what the products are compared in.
type line struct {
	key    key
	labels []string
	metric metric
	// plain leaves out what Loci's figure is to be compared with, for figures that
	// only explain another.
	plain bool
	cells map[string]cell
}

// A grid is a table in the making.
type grid struct {
	heads []string // of the labels
	lines []line
}

// line gives a line of the table for one key and one metric.
func (v *view) line(k key, m metric, labels ...string) line {
	l := line{key: k, labels: labels, metric: m, cells: map[string]cell{}}
	for product, r := range v.rows[k] {
		if r.Missing != "" {
			l.cells[product] = cell{missing: r.Missing}
			continue
		}
		value := m.value(r)
		// A product for which nothing is left to finish has done it in no time.
		has := value > 0 || k.task == result.TaskFinish
		l.cells[product] = cell{value: value, has: has, aside: v.aside(r), note: r.Note}
	}
	return l
}

// best gives the best figure of the line among those that are the same work; ok
// says that there is one.
func (l line) best() (best float64, ok bool) {
	for _, c := range l.cells {
		if c.has && c.aside == "" && (!ok || l.better(c.value, best)) {
			best, ok = c.value, true
		}
	}
	return best, ok
}

func (l line) better(a, b float64) bool {
	if l.metric.more {
		return a > b
	}
	return a < b
}

// contested says that more than one product has a figure in the line: to be the best
// of one is nothing.
func (l line) contested() bool {
	n := 0
	for _, c := range l.cells {
		if c.has {
			n++
		}
	}
	return n > 1
}

// against says how many times worse than Loci's a figure is: above 1 Loci is
// ahead. It is 0 where one of them is missing.
func (l line) against(product string) float64 {
	ours, theirs := l.cells[loci], l.cells[product]
	switch {
	case !ours.has || !theirs.has:
		return 0
	case l.metric.more:
		return ours.value / theirs.value
	default:
		return theirs.value / ours.value
	}
}

// write gives a product's cell as the table has it.
func (l line) write(product string, notes *footnotes) string {
	c := l.cells[product]
	if !c.has {
		return "-" + notes.mark(c.missing)
	}
	s := l.metric.write(c.value)
	best, _ := l.best()
	switch {
	case l.plain:
		return s
	case c.aside != "":
		s = "*" + s + "*"
	case c.value == best && l.contested():
		s = "**" + s + "**"
	}
	if f := l.against(product); f > 0 && product != loci {
		s += " " + factor(f)
	}
	return s + notes.mark(c.note)
}

// columns gives the products that have a figure in any of the lines.
func (g grid) columns(v *view) []string {
	var out []string
	for _, p := range v.products {
		if slices.ContainsFunc(g.lines, func(l line) bool { return l.cells[p.Name].has }) {
			out = append(out, p.Name)
		}
	}
	return out
}

// wide writes the grid with a line a row and a product a column.
func (g grid) wide(v *view) string {
	products := g.columns(v)
	if len(products) == 0 {
		return ""
	}
	var t table
	t.row(append(slices.Clone(g.heads), products...))
	t.left = len(g.heads)
	var notes footnotes
	var last []string
	for _, l := range g.lines {
		row := slices.Clone(l.labels)
		if last != nil && len(row) > 1 && row[0] == last[0] {
			row[0] = ""
		}
		last = l.labels
		for _, p := range products {
			row = append(row, l.write(p, &notes))
		}
		t.row(row)
	}
	return t.String() + notes.String() + g.absent(v, products)
}

// tall writes the grid with a product a row and a line a column. Facts of the
// products may stand before the lines.
func (g grid) tall(v *view, facts ...fact) string {
	products := g.columns(v)
	if len(products) == 0 {
		return ""
	}
	var t table
	head := []string{""}
	for _, f := range facts {
		head = append(head, f.name)
	}
	t.left = len(head)
	for _, l := range g.lines {
		head = append(head, strings.Join(l.labels, ", "))
	}
	t.row(head)
	var notes footnotes
	for _, p := range products {
		row := []string{p}
		for _, f := range facts {
			row = append(row, f.of(v.product(p)))
		}
		for _, l := range g.lines {
			row = append(row, l.write(p, &notes))
		}
		t.row(row)
	}
	return t.String() + notes.String() + g.absent(v, products)
}

// A fact is what a table says of a product beside its figures.
type fact struct {
	name string
	of   func(p *result.Product) string
}

func durability() fact {
	return fact{"a returned write is", func(p *result.Product) string { return p.Durable }}
}

// absent says which products are not in the table and why.
func (g grid) absent(v *view, shown []string) string {
	var reasons []string
	names := map[string][]string{}
	for _, p := range v.products {
		if slices.Contains(shown, p.Name) || p.Version == "" { // who took no part is told of once
			continue
		}
		why := ""
		for _, l := range g.lines {
			if c := l.cells[p.Name]; c.missing != "" {
				why = c.missing
				break
			}
		}
		if why == "" {
			why = v.lacks(&p, g.lines[0].key)
		}
		if names[why] == nil {
			reasons = append(reasons, why)
		}
		names[why] = append(names[why], p.Name)
	}
	if len(reasons) == 0 {
		return ""
	}
	out := make([]string, len(reasons))
	for i, why := range reasons {
		out[i] = strings.Join(names[why], ", ") + " (" + plain(why) + ")"
	}
	return "\nNot in this table: " + strings.Join(out, "; ") + ".\n"
}

// footnotes are the reasons why cells of a table are empty, and what is to be known
// of others.
type footnotes struct{ texts []string }

// mark gives the mark of a note, "" where there is nothing to say.
func (f *footnotes) mark(note string) string {
	if note == "" {
		return ""
	}
	text := plain(note)
	i := slices.Index(f.texts, text)
	if i < 0 {
		i = len(f.texts)
		f.texts = append(f.texts, text)
	}
	return fmt.Sprintf(" <sup>%d</sup>", i+1)
}

func (f *footnotes) String() string {
	if len(f.texts) == 0 {
		return ""
	}
	var b strings.Builder
	for i, text := range f.texts {
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "<sup>%d</sup> %s", i+1, strings.TrimSuffix(text, "."))
	}
	b.WriteString(".\n")
	if len(f.texts) > 6 {
		return folded("Notes", b.String())
	}
	return "\n" + b.String()
}

// longest is how much of a reason the page shows; the results hold all of it.
const longest = 140

// plain makes a text of others fit into a line of Markdown.
func plain(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > longest {
		s = string(r[:longest]) + "..."
	}
	return strings.NewReplacer("|", `\|`, "<", "&lt;", ">", "&gt;", "*", `\*`, "_", `\_`, "`", "'", "[", `\[`).Replace(s)
}

// A table is one of Markdown; the first row is its head.
type table struct {
	rows [][]string
	left int // columns that are set to the left; the others to the right
}

func (t *table) row(cells []string) { t.rows = append(t.rows, cells) }

func (t *table) String() string {
	var b strings.Builder
	for i, row := range t.rows {
		b.WriteString("|")
		for _, c := range row {
			b.WriteString(" " + c + " |")
		}
		b.WriteString("\n")
		if i == 0 {
			b.WriteString("|")
			for j := range row {
				if j < t.left {
					b.WriteString("---|")
				} else {
					b.WriteString("---:|")
				}
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// folded hides a part of the page behind its title.
func folded(title, body string) string {
	if body == "" {
		return ""
	}
	return "\n<details><summary>" + title + "</summary>\n\n" + strings.Trim(body, "\n") + "\n\n</details>\n"
}

// titled puts a heading of its own above a part.
func titled(title, body string) string {
	if body == "" {
		return ""
	}
	return "\n**" + title + "**\n\n" + strings.TrimLeft(body, "\n")
}
