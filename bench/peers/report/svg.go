package report

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// A canvas is a drawing in the making. Its colours are ones that can be read on a
// white and on a dark page; the viewer's preference makes them better still.
type canvas struct {
	width, height float64
	b             strings.Builder
}

// style is that of all plots. An image on a page can use no font but the reader's.
const style = `<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Helvetica,Arial,sans-serif;font-size:13px;fill:#6e7781}
.title{font-size:16px;font-weight:600}
.small{font-size:11px}
.strong{font-weight:600}
.end{text-anchor:end}
.middle{text-anchor:middle}
.grid{stroke:#8b949e;stroke-opacity:.28;stroke-width:1}
.axis{stroke:#8b949e;stroke-opacity:.7;stroke-width:1}
@media (prefers-color-scheme:light){text{fill:#3d444d}}
@media (prefers-color-scheme:dark){text{fill:#b7bfc8}}
</style>
`

func (c *canvas) String(title, about string) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img"><title>%s</title><desc>%s</desc>
`, c.width, c.height, c.width, c.height, html.EscapeString(title), html.EscapeString(about)) + style + c.b.String() + "</svg>\n"
}

func (c *canvas) text(x, y float64, class, s string) {
	fmt.Fprintf(&c.b, `<text x="%.1f" y="%.1f" class="%s">%s</text>`+"\n", x, y, class, html.EscapeString(s))
}

func (c *canvas) line(x1, y1, x2, y2 float64, class string) {
	fmt.Fprintf(&c.b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" class="%s"/>`+"\n", x1, y1, x2, y2, class)
}

func (c *canvas) bar(x, y, w, h float64, colour string, opacity float64) {
	fmt.Fprintf(&c.b, `<rect x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2" fill="%s" fill-opacity="%.2f"/>`+"\n", x, y, w, h, colour, opacity)
}

// A mark is how a product is drawn, in every plot alike: by a colour and, for
// those who do not tell the colours apart, a form.
type mark struct {
	colour string
	form   int
}

// marks gives the look of the products in their order, Loci the first.
func marks(i int) mark {
	colours := []string{
		"#e5484d", // Loci
		"#3e7bfa", "#1a9c5b", "#a259e6", "#d08700", "#0c98b0", "#d6409f", "#7a8794", "#6f9a1d", "#6e6ade", "#b5651d",
	}
	return mark{colours[i%len(colours)], i % 5}
}

// draw puts a mark at a place; a hollow one stands for what is not the same work.
func (c *canvas) draw(m mark, x, y, r float64, hollow bool) {
	paint := fmt.Sprintf(`fill="%s" stroke="%s" stroke-width="1.8"`, m.colour, m.colour)
	if hollow {
		paint = fmt.Sprintf(`fill="none" stroke="%s" stroke-width="1.8"`, m.colour)
	}
	corners := func(points ...float64) {
		var p strings.Builder
		for i := 0; i < len(points); i += 2 {
			fmt.Fprintf(&p, "%.1f,%.1f ", x+r*points[i], y+r*points[i+1])
		}
		fmt.Fprintf(&c.b, `<polygon points="%s" %s/>`+"\n", strings.TrimSpace(p.String()), paint)
	}
	switch m.form {
	case 0:
		fmt.Fprintf(&c.b, `<circle cx="%.1f" cy="%.1f" r="%.1f" %s/>`+"\n", x, y, r, paint)
	case 1:
		corners(-0.85, -0.85, 0.85, -0.85, 0.85, 0.85, -0.85, 0.85)
	case 2:
		corners(0, -1.1, 1, 0.8, -1, 0.8)
	case 3:
		corners(0, -1.2, 1.2, 0, 0, 1.2, -1.2, 0)
	default:
		corners(0, 1.1, 1, -0.8, -1, -0.8)
	}
}

func (c *canvas) curve(m mark, points [][2]float64, width float64) {
	var p strings.Builder
	for _, at := range points {
		fmt.Fprintf(&p, "%.1f,%.1f ", at[0], at[1])
	}
	fmt.Fprintf(&c.b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="%.1f" stroke-linejoin="round"/>`+"\n", strings.TrimSpace(p.String()), m.colour, width)
}

// legend names marks from left to right and from line to line, and gives how high
// it is.
func (c *canvas) legend(x, y, width float64, names []string, of func(name string) mark) float64 {
	at, top := x, y
	for _, name := range names {
		w := 34 + 7.8*float64(len(name))
		if at > x && at+w > x+width {
			at, y = x, y+20
		}
		class := ""
		if name == loci {
			class = "strong"
		}
		c.draw(of(name), at+6, y-4.5, 4.5, false)
		c.text(at+17, y, class, name)
		at += w
	}
	return y - top + 20
}

// A scale puts values onto a stretch of the drawing.
type scale struct {
	low, high float64 // values
	from, to  float64 // places
	log       bool
}

func (s scale) at(v float64) float64 {
	low, high := s.low, s.high
	if s.log {
		v, low, high = math.Log10(v), math.Log10(low), math.Log10(high)
	}
	return s.from + (s.to-s.from)*(v-low)/(high-low)
}

// logScale spans values from a power of ten or three times that to another.
func logScale(low, high, from, to float64) scale {
	s := scale{low: steps(low, true), high: steps(high, false), from: from, to: to, log: true}
	if s.low == s.high {
		s.high *= 10
	}
	return s
}

// steps gives the nearest of 1, 3, 10, 30 ... below or above a value.
func steps(v float64, below bool) float64 {
	e := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{10, 3, 1} {
		if below && e*f <= v {
			return e * f
		}
	}
	for _, f := range []float64{1, 3, 10} {
		if !below && e*f >= v {
			return e * f
		}
	}
	return e
}

// ticks gives the values that an axis names.
func (s scale) ticks() []float64 {
	var out []float64
	if s.log {
		parts := []float64{1}
		if s.high/s.low < 60 { // powers of ten alone would be too few
			parts = []float64{1, 2, 5}
		}
		for e := math.Floor(math.Log10(s.low)); e <= math.Log10(s.high)+1e-9; e++ {
			for _, part := range parts {
				if v := part * math.Pow(10, e); v >= s.low*(1-1e-9) && v <= s.high*(1+1e-9) {
					out = append(out, v)
				}
			}
		}
		return out
	}
	step := math.Pow(10, math.Floor(math.Log10(s.high-s.low)))
	switch n := (s.high - s.low) / step; {
	case n < 2:
		step /= 5
	case n < 5:
		step /= 2
	}
	for i := math.Ceil(s.low/step - 1e-9); i*step <= s.high*(1+1e-9); i++ {
		out = append(out, i*step)
	}
	return out
}

// tick writes microseconds at an axis.
func tick(us float64) string {
	switch {
	case us < 1000:
		return fmt.Sprintf("%.3g us", us)
	case us < 1e6:
		return fmt.Sprintf("%.3g ms", us/1e3)
	default:
		return fmt.Sprintf("%.4g s", us/1e6)
	}
}
