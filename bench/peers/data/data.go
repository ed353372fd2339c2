// Package data makes what the comparison asks its products to hold and to find:
// the records and queries of the benchmark's generated corpus, vectors of their
// own for both, and the true nearest of each query. All of it is a function of a
// size and a seed. It is made once and kept in a folder.
package data

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/internal/text"
	"github.com/loci-memory/loci/internal/vec"
)

const (
	// form is the number of the form and content of sets; one of another form is made
	// again.
	form = 4
	// Neighbours is how many true nearest of a query are kept.
	Neighbours = 10
	// slack is by how much the cosine of a neighbour may be below that of the worst
	// true one: products sum in different orders.
	slack = 1e-6
)

// Sizes of a set beside its number of records.
const (
	QueriesPerClass = 360 // six rounds of 60
	VectorQueries   = 560 // 200 that tell the recall, six rounds of 60
	// Extra records follow those of a set's size: what is written after loading.
	Extra = 20_000
)

// A Filter asks for the records with one tag.
type Filter struct {
	Name string `json:"name"` // the share of the records: "none", "10 %", "1 %", "0.1 %"
	Tag  string `json:"tag"`  // empty: all records
}

// Filters are those of every set of the corpus, the widest first.
func Filters() []Filter {
	return []Filter{{"none", ""}, {"10 %", "ten-3"}, {"1 %", "hundred-07"}, {"0.1 %", "thousand-123"}}
}

// A Set is one set of data. Paths are absolute.
type Set struct {
	Form int    `json:"form"`
	Name string `json:"name,omitempty"` // of vectors that are not the generated ones
	Seed uint64 `json:"seed"`

	Count     int    `json:"count"`     // records to load
	Extra     int    `json:"extra"`     // records that follow them
	Dimension int    `json:"dimension"` // of all vectors, which have length 1
	Asks      int    `json:"asks"`      // vectors to ask
	Records   string `json:"-"`         // lines of protocol.Record
	Vectors   string `json:"-"`         // a row a record, float32
	Asked     string `json:"-"`         // a row a query, float32

	Classes []string                    `json:"classes,omitempty"`
	Texts   map[string][]protocol.Query `json:"texts,omitempty"` // by class
	Filters []Filter                    `json:"filters"`
	Truth   map[string][]Truth          `json:"truth"` // by filter; of each row of Asked
}

// Truth is the nearest of one query, best first: fewer than Neighbours where a
// filter lets fewer through.
type Truth struct {
	IDs   []uint32 `json:"ids"`
	Worst float32  `json:"worst"` // cosine of the last
}

// Corpus gives the set of count records of a seed, made in a folder below dir if it
// is not there. Log is told what takes long.
func Corpus(ctx context.Context, dir string, seed uint64, count int, log func(string)) (*Set, error) {
	return corpus(ctx, dir, seed, count, Extra, VectorQueries, log)
}

func corpus(ctx context.Context, dir string, seed uint64, count, extra, asks int, log func(string)) (*Set, error) {
	s := &Set{Form: form, Seed: seed, Count: count, Extra: extra, Dimension: dimension, Asks: asks, Filters: Filters()}
	folder := filepath.Join(dir, fmt.Sprintf("corpus-%d-%d", seed, count))
	return s.ensure(folder, func() error {
		log(fmt.Sprintf("making %d records and their vectors", count))
		c := bench.NewCorpus(seed, count)
		if err := s.writeRecords(c); err != nil {
			return err
		}
		s.Texts = map[string][]protocol.Query{}
		queries := c.Queries(QueriesPerClass)
		for _, class := range bench.Classes() {
			s.Classes = append(s.Classes, string(class))
			for _, q := range queries[class] {
				s.Texts[string(class)] = append(s.Texts[string(class)], protocol.Query{Text: q, Words: QueryWords(q)})
			}
		}
		g := newGenerator(seed)
		if err := g.write(s.Asked, asked, asks); err != nil {
			return err
		}
		if err := g.write(s.Vectors, recorded, count+extra); err != nil {
			return err
		}
		log(fmt.Sprintf("looking for the true nearest of %d queries", asks))
		return s.findTruth(ctx)
	})
}

// ensure reads the set of a folder or has it made there. A set is complete when
// its description is there, which is written last.
func (s *Set) ensure(folder string, fill func() error) (*Set, error) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return nil, err
	}
	s.Records = filepath.Join(folder, "records.jsonl")
	s.Vectors = filepath.Join(folder, "vectors.f32")
	s.Asked = filepath.Join(folder, "queries.f32")
	name := filepath.Join(folder, "set.json")
	switch content, err := os.ReadFile(name); {
	case err == nil:
		kept := Set{Records: s.Records, Vectors: s.Vectors, Asked: s.Asked}
		if err := json.Unmarshal(content, &kept); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if kept.Form == form {
			return &kept, nil
		}
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.RemoveAll(folder); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	if err := fill(); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	content, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(name+".new", content, 0o644); err != nil {
		return nil, err
	}
	return s, os.Rename(name+".new", name)
}

func (s *Set) writeRecords(c *bench.Corpus) error {
	return writeFile(s.Records, func(w *bufio.Writer) error {
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		id := 0
		for in := range c.Records(0, s.Count+s.Extra) {
			r := protocol.Record{ID: id, Text: in.Judgment, Tags: in.Tags}
			if id >= s.Count {
				r.Text = ownWord(id) + " " + r.Text
			}
			r.Words = Words(r.Text)
			if err := e.Encode(r); err != nil {
				return err
			}
			id++
		}
		return nil
	})
}

// ownWord gives a word that no other record has: one that no stemmer changes and
// no analyser parts.
func ownWord(id int) string {
	word := []byte("xq")
	for ; id > 0; id /= 10 {
		word = append(word, "bdfgkmprvz"[id%10])
	}
	return string(append(word, 'k'))
}

// Words gives the terms under which Loci's own index has a text: words in lower
// case without their inflection and without stop words, and for Chinese each
// character and each pair of neighbours. Engines that get them in place of the
// text, split at blanks, index and search what Loci does.
func Words(s string) string {
	var terms []string
	text.Analyze(s, func(term []byte) { terms = append(terms, string(term)) })
	return strings.Join(terms, " ")
}

// QueryWords gives the terms that Loci looks for when it is asked a text: as Words,
// but of the Chinese only the pairs where there are any.
func QueryWords(s string) string {
	var terms []string
	for _, g := range text.AnalyzeQuery(s).Groups {
		for _, term := range g.Alternatives[0] {
			if !slices.Contains(terms, term) {
				terms = append(terms, term)
			}
		}
	}
	return strings.Join(terms, " ")
}

// Carries says if a record of the corpus has a tag.
func (s *Set) Carries(corpus *bench.Corpus, id int, tag string) bool {
	return tag == "" || slices.Contains(corpus.Record(id).Tags, tag)
}

// Recall gives the share of a query's true nearest that ids holds, 0 to 1; 1 where
// the filter lets none through. A record as near as the last of them counts as
// one of them.
func (s *Set) Recall(filter string, query int, ids []int) (float64, error) {
	t := s.Truth[filter][query]
	if len(t.IDs) == 0 {
		return 1, nil
	}
	var found int
	var seen []int
	for _, id := range ids[:min(len(ids), Neighbours)] {
		if id < 0 || id >= s.Count || slices.Contains(seen, id) {
			continue
		}
		seen = append(seen, id)
		near := slices.Contains(t.IDs, uint32(id))
		if !near {
			cosine, err := s.cosine(query, id)
			if err != nil {
				return 0, err
			}
			near = cosine >= t.Worst-slack
		}
		if near {
			found++
		}
	}
	return float64(min(found, len(t.IDs))) / float64(len(t.IDs)), nil
}

func (s *Set) cosine(query, id int) (float32, error) {
	a, err := s.row(s.Asked, query)
	if err != nil {
		return 0, err
	}
	b, err := s.row(s.Vectors, id)
	if err != nil {
		return 0, err
	}
	return vec.Dot(a, b), nil
}

func (s *Set) row(name string, i int) ([]float32, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	b := make([]byte, 4*s.Dimension)
	if _, err := f.ReadAt(b, int64(i)*int64(len(b))); err != nil {
		return nil, err
	}
	return floats(nil, b), nil
}

// floats appends little-endian floats to dst.
func floats(dst []float32, b []byte) []float32 {
	for ; len(b) >= 4; b = b[4:] {
		dst = append(dst, math.Float32frombits(binary.LittleEndian.Uint32(b)))
	}
	return dst
}

func appendFloats(b []byte, v []float32) []byte {
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// writeFile has a file written through a buffer.
func writeFile(name string, write func(w *bufio.Writer) error) (err error) {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	w := bufio.NewWriterSize(f, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	return w.Flush()
}

// blockRows is how many rows are compared with the queries at a time: they stay in
// the second-level cache.
const blockRows = 1024

// findTruth compares every query with every record, each processor with its share
// of the queries.
func (s *Set) findTruth(ctx context.Context) error {
	content, err := os.ReadFile(s.Asked)
	if err != nil {
		return err
	}
	all := floats(nil, content)
	var queries [][]float32
	for q := range slices.Chunk(all, s.Dimension) {
		queries = append(queries, q)
	}
	tagged, err := s.tagged()
	if err != nil {
		return err
	}
	best := make([][]vec.TopK, len(s.Filters))
	for i := range best {
		best[i] = make([]vec.TopK, len(queries))
		for j := range best[i] {
			best[i][j].Reset(Neighbours)
		}
	}
	if err := s.compare(ctx, queries, tagged, best); err != nil {
		return err
	}
	s.Truth = map[string][]Truth{}
	for i, f := range s.Filters {
		truth := make([]Truth, len(queries))
		for j := range queries {
			truth[j].IDs = []uint32{}
			for _, h := range best[i][j].Sorted(nil) {
				truth[j].IDs = append(truth[j].IDs, h.Row)
				truth[j].Worst = h.Score
			}
		}
		s.Truth[f.Name] = truth
	}
	return nil
}

// compare reads the vectors block by block.
func (s *Set) compare(ctx context.Context, queries [][]float32, tagged [][]uint32, best [][]vec.TopK) error {
	f, err := os.Open(s.Vectors)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // only read
	const blocks = 16
	raw := make([]byte, min(blocks*blockRows, s.Count)*4*s.Dimension)
	var rows []float32
	next := make([]int, len(tagged)) // where the tagged rows of the block at hand begin
	for from := 0; from < s.Count; from += blocks * blockRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		to := min(from+blocks*blockRows, s.Count)
		part := raw[:(to-from)*4*s.Dimension]
		if _, err := f.ReadAt(part, int64(from)*int64(4*s.Dimension)); err != nil {
			return err
		}
		rows = floats(rows[:0], part)
		inside := make([][]uint32, len(tagged))
		for i, ids := range tagged {
			n, _ := slices.BinarySearch(ids, uint32(to))
			inside[i], next[i] = ids[next[i]:n], n
		}
		share(len(queries), func(a, b int) {
			s.compareBlock(queries, a, b, rows, from, to-from, inside, best)
		})
	}
	return nil
}

// compareBlock compares queries a to b with n rows, four queries at a time.
func (s *Set) compareBlock(queries [][]float32, a, b int, rows []float32, base, n int, tagged [][]uint32, best [][]vec.TopK) {
	outs := make([][]float32, 4)
	for i := range outs {
		outs[i] = make([]float32, n)
	}
	for ; a < b; a += 4 {
		group := queries[a:min(a+4, b)]
		for at := 0; at < n; at += blockRows {
			end := min(at+blockRows, n)
			windows := make([][]float32, len(group))
			for i := range windows {
				windows[i] = outs[i][at:end]
			}
			vec.ScanFloat32Batch(group, rows[at*s.Dimension:end*s.Dimension], s.Dimension, windows)
		}
		for i := range group {
			for k, f := range s.Filters {
				if f.Tag == "" {
					best[k][a+i].PushFloat32(outs[i], uint32(base))
					continue
				}
				for _, id := range tagged[k] {
					best[k][a+i].Push(id, outs[i][int(id)-base])
				}
			}
		}
	}
}

// tagged gives the records with each filter's tag, ascending.
func (s *Set) tagged() ([][]uint32, error) {
	out := make([][]uint32, len(s.Filters))
	if len(s.Filters) == 1 {
		return out, nil
	}
	f, err := os.Open(s.Records)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	d := json.NewDecoder(bufio.NewReaderSize(f, 1<<20))
	for range s.Count {
		var r protocol.Record
		if err := d.Decode(&r); err != nil {
			return nil, err
		}
		for i, filter := range s.Filters {
			if filter.Tag != "" && slices.Contains(r.Tags, filter.Tag) {
				out[i] = append(out[i], uint32(r.ID))
			}
		}
	}
	return out, nil
}

// share runs f over 0 to n in as many parts as there are processors; a part begins
// at a multiple of four.
func share(n int, f func(from, to int)) {
	parts := processors()
	size := (n/parts + 4) / 4 * 4
	var wg sync.WaitGroup
	for from := 0; from < n; from += size {
		wg.Go(func() { f(from, min(from+size, n)) })
	}
	wg.Wait()
}
