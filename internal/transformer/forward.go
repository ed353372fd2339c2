package transformer

import "math"

// queryRows is the number of a text's tokens whose attention is worked out at a
// time: it keeps their scores in the processor's cache.
const queryRows = 32

// scratch is the memory of one pass. Rows are rounded up to whole tiles; what
// the additional rows hold is never read into a result.
type scratch struct {
	x     []float32 // tokens x Hidden: what flows from layer to layer
	y     []float32 // tokens x Hidden: what a part of a layer adds to it
	qkv   []float32 // tokens x 3*Hidden, and a tile more, as texts start anywhere
	mid   []float32 // tokens x Intermediate
	acts  []byte    // tokens x blocks: the input of a matrix, quantised
	keys  []float32 // head width x tokens of a text, rounded up: keys, transposed
	share []float32 // queryRows x tokens of a text, rounded up: attention
	head  []float32 // queryRows x head width: what attention gives
}

// resize makes room for tokens in all, and for tiles of tile rows of a product.
func (s *scratch) resize(c Config, tokens, tile int) {
	rows := roundUp(tokens, tile)
	text := roundUp(min(tokens, c.MaxPositions), tileCols)
	head := c.Hidden / c.Heads
	fit(&s.x, rows*c.Hidden)
	fit(&s.y, rows*c.Hidden)
	fit(&s.qkv, (rows+tileRows)*3*c.Hidden)
	fit(&s.mid, rows*c.Intermediate)
	fit(&s.acts, rows*max(c.Hidden, c.Intermediate)/BlockLen*actBytes)
	fit(&s.keys, head*text)
	fit(&s.share, queryRows*text)
	fit(&s.head, queryRows*head)
}

// fit makes s n long, keeping its memory if that is enough.
func fit[T any](s *[]T, n int) {
	if cap(*s) < n {
		*s = make([]T, n)
	}
	*s = (*s)[:n]
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// run takes texts through all layers and leaves the tokens' vectors in s.x.
func (m *Model) run(s *scratch, texts [][]int32) {
	c := m.w.Config
	share := 1 / float32(c.Hidden)
	tokens := 0
	for _, ids := range texts {
		for i, id := range ids {
			row := s.x[tokens*c.Hidden:][:c.Hidden]
			m.w.Words.Row(row, int(id))
			m.k.norm(row, m.w.Positions[i*c.Hidden:][:c.Hidden], m.w.EmbedGain, m.w.EmbedBias, share, c.Epsilon)
			tokens++
		}
	}
	clear(s.x[tokens*c.Hidden:])
	for i := range m.w.Layers {
		l := &m.w.Layers[i]
		m.product(s, s.qkv, s.x, l.QKV, l.QKVBias)
		first := 0
		for _, ids := range texts {
			m.attend(s, first, len(ids))
			first += len(ids)
		}
		clear(s.y[tokens*c.Hidden:])
		m.product(s, s.qkv[:len(s.y)], s.y, l.Out, l.OutBias)
		m.addNorm(s.x, s.qkv, l.AttnGain, l.AttnBias, tokens)

		m.product(s, s.mid, s.x, l.Up, l.UpBias)
		m.k.gelu(s.mid)
		m.product(s, s.y, s.mid, l.Down, l.DownBias)
		m.addNorm(s.x, s.y, l.FFNGain, l.FFNBias, tokens)
	}
}

// addNorm adds y to the tokens of x and normalises the sums.
func (m *Model) addNorm(x, y, gain, bias []float32, tokens int) {
	width := m.w.Hidden
	for t := range tokens {
		m.k.norm(x[t*width:][:width], y[t*width:][:width], gain, bias, 1/float32(width), m.w.Epsilon)
	}
}

// product multiplies the rows of src, whole tiles of them, by a matrix and adds
// bias.
func (m *Model) product(s *scratch, dst, src []float32, w Matrix, bias []float32) {
	blocks := w.cols / BlockLen
	stride := blocks * actBytes
	rows := len(src) / w.cols
	for r := range rows {
		m.k.quantize(s.acts[r*stride:][:stride], src[r*w.cols:][:w.cols])
		copy(dst[r*w.rows:][:w.rows], bias)
	}
	panelBytes := blocks * packBytes
	for p := range w.rows / panelRows {
		panel := w.packed[p*panelBytes:][:panelBytes]
		for r := 0; r < rows; r += m.k.dotRows {
			m.k.dotTile(dst[r*w.rows+p*panelRows:], w.rows, s.acts[r*stride:], stride, panel, blocks)
		}
	}
}

// attend works out the attention of the text of n tokens that starts at token
// first, from s.qkv to s.y.
func (m *Model) attend(s *scratch, first, n int) {
	c := m.w.Config
	head, width := c.Hidden/c.Heads, 3*c.Hidden
	padded := roundUp(n, tileCols)
	softened := roundUp(n, 8)
	scale := 1 / float32(math.Sqrt(float64(head)))
	qkv := s.qkv[first*width:]
	for h := range c.Heads {
		queries, keys, values := qkv[h*head:], qkv[c.Hidden+h*head:], qkv[2*c.Hidden+h*head:]
		for t := range n {
			for e, v := range keys[t*width:][:head] {
				s.keys[e*padded+t] = v
			}
		}
		for e := range head {
			clear(s.keys[e*padded+n : (e+1)*padded])
		}
		for from := 0; from < n; from += queryRows {
			rows := min(queryRows, n-from)
			for r := 0; r < rows; r += tileRows {
				for t := 0; t < padded; t += tileCols {
					m.k.mixTile(s.share[r*padded+t:], padded, queries[(from+r)*width:], width, s.keys[t:], padded, head)
				}
			}
			for r := range rows {
				row := s.share[r*padded:][:softened]
				for t := n; t < softened; t++ {
					row[t] = -math.MaxFloat32
				}
				m.k.softmax(row, scale)
			}
			for r := 0; r < rows; r += tileRows {
				for e := 0; e < head; e += tileCols {
					m.k.mixTile(s.head[r*head+e:], head, s.share[r*padded:], padded, values[e:], width, n)
				}
			}
			for r := range rows {
				copy(s.y[(first+from+r)*c.Hidden+h*head:][:head], s.head[r*head:][:head])
			}
		}
	}
}
