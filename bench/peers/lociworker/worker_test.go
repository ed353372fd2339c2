package lociworker

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

const (
	testRecords   = 500
	testExtra     = 100 // that are written later
	testDimension = 24
	testQueries   = 20
)

// data are made-up records, each with a word of its own, and vectors.
type data struct {
	dir              string
	records          []protocol.Record
	vectors, queries [][]float32
}

func (d *data) recordFile() string { return filepath.Join(d.dir, "records.jsonl") }
func (d *data) vectorFile() string { return filepath.Join(d.dir, "vectors.f32") }
func (d *data) queryFile() string  { return filepath.Join(d.dir, "queries.f32") }

func (d *data) load(from, to, batch int) protocol.Load {
	return protocol.Load{Records: d.recordFile(), Vectors: d.vectorFile(), From: from, To: to, Batch: batch}
}

// own is a record's own word, of letters alone so that it is one.
func own(i int) string {
	return "zq" + strings.Map(func(r rune) rune { return r - '0' + 'a' }, strconv.Itoa(1000+i)) + "x"
}

func makeData(t *testing.T) *data {
	t.Helper()
	d := &data{dir: t.TempDir()}
	r := rand.New(rand.NewPCG(7, 11))
	var lines strings.Builder
	for i := range testRecords + testExtra {
		text := fmt.Sprintf("%s: the Keeper wrote in the log, 北京的灯塔 on day %d.", own(i), i%50)
		d.records = append(d.records, protocol.Record{ID: i, Text: text,
			Words: strings.ToLower(fmt.Sprintf("%s the keeper wrote in the log 北京 的 灯塔 on day %d", own(i), i%50)),
			Tags:  []string{fmt.Sprintf("ten-%d", i%10), fmt.Sprintf("fifty-%d", i%50)}})
		line, err := json.Marshal(d.records[i])
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(line)
		lines.WriteByte('\n')
	}
	d.vectors = randomRows(r, len(d.records))
	d.queries = randomRows(r, testQueries)
	for path, content := range map[string][]byte{
		d.recordFile(): []byte(lines.String()), d.vectorFile(): littleEndian(d.vectors), d.queryFile(): littleEndian(d.queries),
	} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func randomRows(r *rand.Rand, n int) [][]float32 {
	out := make([][]float32, n)
	for i := range out {
		for range testDimension {
			out[i] = append(out[i], float32(r.NormFloat64()))
		}
	}
	return out
}

func littleEndian(rows [][]float32) (out []byte) {
	for _, x := range slices.Concat(rows...) {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}

// nearest compares a query with every record that is to be seen.
func (d *data) nearest(q []float32, k int, sees func(i int) bool) []int {
	cosine := func(v []float32) float64 {
		var dot, norm float64
		for j, x := range v {
			dot += float64(x) * float64(q[j])
			norm += float64(x) * float64(x)
		}
		return dot / math.Sqrt(norm)
	}
	var ids []int
	for i := range d.records {
		if sees(i) {
			ids = append(ids, i)
		}
	}
	slices.SortFunc(ids, func(a, b int) int { return cmp.Compare(cosine(d.vectors[b]), cosine(d.vectors[a])) })
	return ids[:min(k, len(ids))]
}

// asker talks to a worker as the driver does.
type asker struct {
	t       *testing.T
	to      *io.PipeWriter
	answers *bufio.Scanner
	ended   chan error
}

func startWorker(t *testing.T) *asker {
	t.Helper()
	in, to := io.Pipe()
	from, out := io.Pipe()
	a := &asker{t: t, to: to, answers: bufio.NewScanner(from), ended: make(chan error, 1)}
	a.answers.Buffer(nil, 1<<24)
	go func() {
		err := Main(t.Context(), in, out)
		out.CloseWithError(io.EOF)
		in.CloseWithError(io.ErrClosedPipe)
		a.ended <- err
	}()
	t.Cleanup(func() {
		if err := to.Close(); err != nil {
			t.Error(err)
		}
		if err := <-a.ended; err != nil {
			t.Errorf("the worker ended with %v", err)
		}
	})
	return a
}

// reply asks and gives what came back.
func reply[T any](a *asker, op string, args any) protocol.Reply[T] {
	a.t.Helper()
	line, err := json.Marshal(protocol.Request{Op: op, Args: args})
	if err != nil {
		a.t.Fatal(err)
	}
	if _, err := a.to.Write(append(line, '\n')); err != nil {
		a.t.Fatal(err)
	}
	if !a.answers.Scan() {
		a.t.Fatalf("%s: no answer: %v", op, a.answers.Err())
	}
	var r protocol.Reply[T]
	if err := json.Unmarshal(a.answers.Bytes(), &r); err != nil {
		a.t.Fatalf("%s: %v in %s", op, err, a.answers.Bytes())
	}
	set := 0
	for _, is := range []bool{r.OK != nil, r.Error != "", r.Unsupported != ""} {
		if is {
			set++
		}
	}
	if set != 1 {
		a.t.Fatalf("%s: %d fields are set in %s", op, set, a.answers.Bytes())
	}
	return r
}

// ask is reply for what must go well.
func ask[T any](a *asker, op string, args any) T {
	a.t.Helper()
	r := reply[T](a, op, args)
	if r.OK == nil {
		a.t.Fatalf("%s: %s%s", op, r.Error, r.Unsupported)
	}
	return *r.OK
}

// costs checks what a request says it took.
func costs(t *testing.T, c protocol.Cost, calls int) {
	t.Helper()
	var sum float64
	for _, x := range c.Times {
		if x <= 0 {
			t.Errorf("a call took %v seconds", x)
		}
		sum += x
	}
	if len(c.Times) != calls || math.Abs(sum-c.Wall) > 1e-9 || c.CPU < 0 || calls > 100 && c.CPU == 0 {
		t.Errorf("%d calls with %v of %v seconds, %v of processor, want %d calls", len(c.Times), sum, c.Wall, c.CPU, calls)
	}
}

// TestRecords has the worker do everything there is to do with records, in each of
// the ways in which a store may be opened.
func TestRecords(t *testing.T) {
	d := makeData(t)
	for _, c := range []struct {
		name string
		open protocol.Open
	}{
		{"texts and vectors", protocol.Open{Analysis: "own", Texts: true, Vectors: true}},
		{"texts whose words are parted, and vectors", protocol.Open{Analysis: "words", Texts: true, Vectors: true}},
		{"texts", protocol.Open{Analysis: "own", Texts: true}},
		{"texts whose words are parted", protocol.Open{Analysis: "words", Texts: true}},
		{"vectors", protocol.Open{Analysis: "own", Vectors: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.open.Dir, c.open.Capacity = t.TempDir(), len(d.records)
			if c.open.Vectors {
				c.open.Dimension = testDimension
			}
			(&recordsTest{t: t, d: d, open: c.open}).run()
		})
	}
}

type recordsTest struct {
	t    *testing.T
	d    *data
	open protocol.Open
	a    *asker
	gone map[int]bool
	last int // the first record that is not there yet
}

func (r *recordsTest) load(from, to, batch int) protocol.Load {
	l := r.d.load(from, to, batch)
	if !r.open.Vectors {
		l.Vectors = ""
	}
	return l
}

func (r *recordsTest) sees(tag string) func(int) bool {
	return func(i int) bool {
		return i < r.last && !r.gone[i] && (tag == "" || slices.Contains(r.d.records[i].Tags, tag))
	}
}

func (r *recordsTest) run() {
	t := r.t
	r.start()
	r.gone, r.last = map[int]bool{}, testRecords
	costs(t, ask[protocol.Cost](r.a, protocol.OpLoad, r.load(0, 450, 100)), 5)
	costs(t, ask[protocol.Cost](r.a, protocol.OpLoad, r.load(450, testRecords, 1)), 50)
	if c := ask[protocol.Cost](r.a, protocol.OpFinish, nil); len(c.Times) > 1 || (len(c.Times) == 0) != (c.CPU == 0) {
		t.Errorf("what came after loading took %+v", c)
	}
	r.searches()

	costs(t, ask[protocol.Cost](r.a, protocol.OpSingle, r.load(r.last, r.last+20, 7)), 20)
	costs(t, ask[protocol.Cost](r.a, protocol.OpVisible, protocol.Visible{Load: r.load(r.last+20, r.last+40, 0), Effort: effortDefault}), 20)
	r.last += 40
	r.searches()

	r.mixed()
	r.searches()

	costs(t, ask[protocol.Cost](r.a, protocol.OpUpdate, r.load(10, 20, 0)), 10)
	if r.open.Texts {
		found := r.find(protocol.KindText, 20, []protocol.Query{{Text: "changed", Words: "changed"}})[0]
		slices.Sort(found)
		if want := []int{10, 11, 12, 13, 14, 15, 16, 17, 18, 19}; !slices.Equal(found, want) {
			t.Errorf("changed records are %v, want %v", found, want)
		}
	}
	costs(t, ask[protocol.Cost](r.a, protocol.OpDelete, r.load(15, 45, 0)), 30)
	for i := 15; i < 45; i++ {
		r.gone[i] = true
	}
	if again := reply[protocol.Cost](r.a, protocol.OpDelete, r.load(15, 16, 0)); again.Error == "" {
		t.Error("a record could be deleted twice")
	}
	r.searches()

	memory := ask[protocol.Memory](r.a, protocol.OpMemory, nil)
	if memory.Idle <= 0 || memory.Anonymous <= 0 || memory.Resident < memory.Anonymous {
		t.Errorf("memory %+v", memory)
	}
	costs(t, ask[protocol.Cost](r.a, protocol.OpClose, nil), 1)
	r.start()
	r.searches()
	costs(t, ask[protocol.Cost](r.a, protocol.OpClose, nil), 1)
}

func (r *recordsTest) start() {
	r.t.Helper()
	r.a = startWorker(r.t)
	costs(r.t, ask[protocol.Cost](r.a, protocol.OpOpen, r.open), 1)
}

// mixed writes while it reads, and learns from what can be found how much of it was
// written.
func (r *recordsTest) mixed() {
	kind, q := protocol.KindText, protocol.Query{Text: "keeper", Words: "keeper"}
	if !r.open.Texts {
		kind, q = protocol.KindVector, protocol.Query{Vector: new(0)}
	}
	got := ask[protocol.MixedCost](r.a, protocol.OpMixed, protocol.Mixed{Write: r.load(r.last, len(r.d.records), 0),
		Read: r.search(kind, 10, []protocol.Query{q, q, q}), Readers: 2, Seconds: 0.1})
	if len(got.Reads.Times) == 0 || len(got.Writes.Times) == 0 || got.Reads.Wall != 0.1 || got.Reads.CPU != got.Writes.CPU {
		r.t.Errorf("mixed: %d reads, %d writes, %v seconds", len(got.Reads.Times), len(got.Writes.Times), got.Reads.Wall)
	}
	r.last += len(got.Writes.Times)
}

func (r *recordsTest) search(kind string, k int, queries []protocol.Query) protocol.Search {
	return protocol.Search{Kind: kind, Vectors: r.d.queryFile(), Queries: queries, K: k}
}

func (r *recordsTest) find(kind string, k int, queries []protocol.Query) [][]int {
	r.t.Helper()
	s := r.search(kind, k, queries)
	found := ask[protocol.Found](r.a, protocol.OpSearch, s)
	costs(r.t, found.Cost, len(queries))
	if kind == protocol.KindVector {
		s.Effort = effortExact
		if exact := ask[protocol.Found](r.a, protocol.OpSearch, s); !slices.EqualFunc(exact.IDs, found.IDs, slices.Equal[[]int]) {
			r.t.Errorf("exact vectors are %v, not %v", exact.IDs, found.IDs) // so few are all compared anyway
		}
	}
	return found.IDs
}

// searches checks the searches that the store has, and that it says of others that it
// has none.
func (r *recordsTest) searches() {
	t := r.t
	t.Helper()
	for _, tag := range []string{"", "ten-3", "fifty-7", "nothing"} {
		if r.open.Vectors {
			var queries []protocol.Query
			for i := range r.d.queries {
				queries = append(queries, protocol.Query{Vector: &i, Tag: tag})
			}
			for i, got := range r.find(protocol.KindVector, 10, queries) {
				if want := r.d.nearest(r.d.queries[i], 10, r.sees(tag)); !slices.Equal(got, want) {
					t.Fatalf("nearest to %d under %q are %v, want %v", i, tag, got, want)
				}
			}
		}
		if r.open.Texts {
			r.texts(protocol.KindText, tag)
		}
		if r.open.Texts && r.open.Vectors {
			r.texts(protocol.KindHybrid, tag)
			r.hybrid(tag)
		}
	}
	for kind, has := range map[string]bool{protocol.KindText: r.open.Texts, protocol.KindVector: r.open.Vectors, protocol.KindHybrid: r.open.Texts && r.open.Vectors} {
		q := protocol.Search{Kind: kind, Queries: []protocol.Query{{Text: "keeper", Words: "keeper"}}, K: 10}
		if got := reply[protocol.Found](r.a, protocol.OpSearch, q); !has && got.Unsupported == "" {
			t.Errorf("%s: %+v, want that there is no such search", kind, got)
		}
	}
}

// texts looks for records by their own words.
func (r *recordsTest) texts(kind, tag string) {
	r.t.Helper()
	var queries []protocol.Query
	for i := 0; i < len(r.d.records); i += 7 {
		word := strings.ToUpper(own(i)) + "?"
		queries = append(queries, protocol.Query{Text: word, Words: own(i), Vector: new(i % testQueries), Tag: tag})
	}
	for n, got := range r.find(kind, 10, queries) {
		i := 7 * n
		if r.sees(tag)(i) != slices.Contains(got, i) {
			r.t.Fatalf("%s: record %d under %q among %v: want %v", kind, i, tag, got, r.sees(tag)(i))
		}
		for _, id := range got {
			if !r.sees(tag)(id) {
				r.t.Fatalf("%s: record %d is found under %q", kind, id, tag)
			}
		}
	}
}

// hybrid looks for records by a word that none of them holds, which leaves what lies
// nearest.
func (r *recordsTest) hybrid(tag string) {
	r.t.Helper()
	var queries []protocol.Query
	for i := range r.d.queries {
		queries = append(queries, protocol.Query{Text: "zeppelin", Words: "zeppelin", Vector: &i, Tag: tag})
	}
	for i, got := range r.find(protocol.KindHybrid, 10, queries) {
		if want := r.d.nearest(r.d.queries[i], 10, r.sees(tag)); !slices.Equal(got, want) {
			r.t.Fatalf("hybrid: nearest to %d under %q are %v, want %v", i, tag, got, want)
		}
	}
}

func TestHello(t *testing.T) {
	h := ask[protocol.Hello](startWorker(t), protocol.OpHello, nil)
	if h.Name != "loci" || h.Version == "" || h.Settings == "" || h.Durable != "synced" ||
		!h.Text || !h.Vector || !h.Hybrid || !h.Filter || !h.Update || !h.Delete || !h.Graph {
		t.Errorf("hello is %+v", h)
	}
}

func TestGraph(t *testing.T) {
	a := startWorker(t)
	triples := filepath.Join(t.TempDir(), "triples.tsv")
	// A line of stations, entered in both directions, and one apart.
	lines := "north\tleads to\tmill\nbridge\tcomes after\tmill\nbridge\tleads to\tharbour\nharbour\tleads to\tsouth\nisle\tfaces\trock\n"
	if err := os.WriteFile(triples, []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	ask[protocol.Cost](a, protocol.OpOpen, protocol.Open{Dir: t.TempDir(), Analysis: "own", Texts: true})
	for range 2 { // a second time adds nothing
		costs(t, ask[protocol.Cost](a, protocol.OpGraph, protocol.Graph{Triples: triples}), 1)
	}
	near := ask[protocol.Names](a, protocol.OpNear, protocol.Near{Entities: []string{"mill", "isle"}, Depth: 2, Limit: 10})
	costs(t, near.Cost, 2)
	for _, names := range near.Names {
		slices.Sort(names)
	}
	if want := [][]string{{"bridge", "harbour", "north"}, {"rock"}}; !slices.EqualFunc(near.Names, want, slices.Equal[[]string]) {
		t.Errorf("near: %v, want %v", near.Names, want)
	}
	one := ask[protocol.Names](a, protocol.OpNear, protocol.Near{Entities: []string{"mill"}, Depth: 1, Limit: 1})
	if len(one.Names) != 1 || len(one.Names[0]) != 1 {
		t.Errorf("one neighbour was wanted, not %v", one.Names)
	}
	path := ask[protocol.Names](a, protocol.OpPath, protocol.Path{Pairs: [][2]string{{"south", "north"}, {"isle", "north"}}})
	costs(t, path.Cost, 2)
	if want := [][]string{{"south", "harbour", "bridge", "mill", "north"}, {}}; !slices.EqualFunc(path.Names, want, slices.Equal[[]string]) {
		t.Errorf("paths: %v, want %v", path.Names, want)
	}
	if r := reply[protocol.Names](a, protocol.OpNear, protocol.Near{Entities: []string{"nowhere"}, Depth: 1, Limit: 1}); r.Error == "" {
		t.Error("an entity that is not there has a neighbourhood")
	}
}

// TestRefusals asks for what cannot be done. The worker says so and goes on.
func TestRefusals(t *testing.T) {
	d := makeData(t)
	a := startWorker(t)
	dir := t.TempDir()
	refused := func(op string, args any) {
		t.Helper()
		if r := reply[json.RawMessage](a, op, args); r.Error == "" {
			t.Errorf("%s of %+v was not refused: %+v", op, args, r)
		}
	}
	refused("", nil)
	refused(protocol.OpLoad, d.load(0, 10, 10))
	refused(protocol.OpOpen, "a folder")
	refused(protocol.OpOpen, protocol.Open{Dir: dir, Analysis: "own"})
	refused(protocol.OpOpen, protocol.Open{Dir: dir, Analysis: "fine", Texts: true})
	refused(protocol.OpOpen, protocol.Open{Dir: dir, Analysis: "own", Vectors: true})
	both := protocol.Open{Dir: dir, Dimension: testDimension, Analysis: "own", Texts: true, Vectors: true}
	ask[protocol.Cost](a, protocol.OpOpen, both)
	refused(protocol.OpOpen, both)
	refused("dance", nil)
	refused(protocol.OpLoad, d.load(0, 10, 0))
	refused(protocol.OpLoad, d.load(0, len(d.records)+1, 1000))
	refused(protocol.OpLoad, protocol.Load{Records: d.vectorFile(), To: 1, Batch: 1})
	refused(protocol.OpLoad, protocol.Load{Records: filepath.Join(dir, "none"), To: 1, Batch: 1})
	refused(protocol.OpLoad, protocol.Load{Records: d.recordFile(), To: 1, Batch: 1}) // a fact needs its vector
	for _, s := range []protocol.Search{
		{Kind: "smell", Queries: []protocol.Query{{Text: "x"}}, K: 10},
		{Kind: protocol.KindText, Queries: []protocol.Query{{Text: " "}}, K: 10},
		{Kind: protocol.KindVector, Queries: []protocol.Query{{Text: "x"}}, K: 10},
		{Kind: protocol.KindVector, Vectors: d.queryFile(), Queries: []protocol.Query{{Vector: new(testQueries)}}, K: 10},
		{Kind: protocol.KindText, Queries: []protocol.Query{{Text: "x"}}},
	} {
		refused(protocol.OpSearch, s)
	}
	refused(protocol.OpMixed, protocol.Mixed{Readers: 1, Seconds: 0.01})
	refused(protocol.OpGraph, protocol.Graph{Triples: d.recordFile()})
	refused(protocol.OpUpdate, d.load(len(d.records), len(d.records)+1, 1))

	costs(t, ask[protocol.Cost](a, protocol.OpLoad, d.load(0, 10, 10)), 1)
	if found := ask[protocol.Found](a, protocol.OpSearch, protocol.Search{Kind: protocol.KindText,
		Queries: []protocol.Query{{Text: own(3)}}, K: 10}); len(found.IDs) != 1 || !slices.Equal(found.IDs[0], []int{3}) {
		t.Errorf("after all that was refused, record 3 is not what is found: %v", found.IDs)
	}
}

// TestEndOfRequests closes the store of a driver that goes away.
func TestEndOfRequests(t *testing.T) {
	open, err := json.Marshal(protocol.Request{Op: protocol.OpOpen, Args: protocol.Open{Dir: t.TempDir(), Analysis: "own", Texts: true}})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second would find the first one's lock
		var out strings.Builder
		if err := Main(t.Context(), strings.NewReader(string(open)), &out); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(out.String(), `{"ok":`) {
			t.Fatalf("the answer is %s", out.String())
		}
	}
}
