package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
)

// SurfacesPart is a part of a run over the surfaces.
type SurfacesPart string

// The parts, in the order in which they run.
const (
	PartMCP     SurfacesPart = "mcp"     // a server on standard input and output from its start to its end
	PartCalls   SurfacesPart = "calls"   // one search through the library, a socket and HTTP
	PartLoad    SurfacesPart = "load"    // many HTTP clients at once
	PartWriters SurfacesPart = "writers" // two processes that write to one memory
)

// SurfacesParts gives every part in order.
func SurfacesParts() []SurfacesPart {
	return []SurfacesPart{PartMCP, PartCalls, PartLoad, PartWriters}
}

// SurfacesOptions tune RunSurfaces. Program, Bind and HTTP must be there.
type SurfacesOptions struct {
	Records int    // default 100,000
	Seed    uint64 // default 1
	Parts   []SurfacesPart
	// Dir is the store's folder, which is left there for the next run; empty: a
	// temporary one.
	Dir     string
	Starts  int           // of the part mcp, default 10
	Calls   int           // of each kind in the part calls, default 600
	Clients int           // of the part load, default 32
	Load    time.Duration // how long the part load goes on, default 60 s
	Writes  int           // of each process in the part writers, default 10,000

	// Program is the command line of this program without arguments.
	Program []string
	// Bind binds the embedder in force to a store and gives its space.
	Bind func(ctx context.Context, db *loci.DB) (space string, err error)
	// HTTP serves operations on a loopback address until stop is called.
	HTTP func(ctx context.Context, caller op.Caller) (url string, stop func() error, err error)

	Out      io.Writer // takes a line for each thing that is done; nil means silence
	Progress func(done, total int)
}

// SurfaceAsk is what a child process of the part calls is told to do: N calls
// through one way in.
type SurfaceAsk struct {
	Way   string `json:"way"` // "attached", "http", "snapshot" (attached)
	First int    `json:"first"`
	N     int    `json:"n"`
}

type surfacesRun struct {
	SurfacesOptions
	ctx    context.Context
	report *SurfacesReport
}

// RunSurfaces measures what the surfaces add to the library, with the embedder
// on: starting an MCP server, one search through each way in, many clients at
// once, two processes that write.
func RunSurfaces(ctx context.Context, o SurfacesOptions) (_ *SurfacesReport, err error) {
	o.defaults()
	for _, p := range o.Parts {
		if !slices.Contains(SurfacesParts(), p) {
			return nil, fmt.Errorf("bench: no part %q; there are %v", p, SurfacesParts())
		}
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "loci-bench-surfaces-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(o.Dir)) }()
	}
	r := &surfacesRun{SurfacesOptions: o, ctx: ctx, report: &SurfacesReport{Machine: thisMachine(), Seed: o.Seed, Records: o.Records}}
	if err := r.load(); err != nil {
		return nil, fmt.Errorf("bench: loading: %w", err)
	}
	for _, part := range []struct {
		name SurfacesPart
		run  func() error
	}{{PartMCP, r.mcp}, {PartCalls, r.calls}, {PartLoad, r.underLoad}, {PartWriters, r.writers}} {
		if !slices.Contains(o.Parts, part.name) {
			continue
		}
		r.say("measuring: %s", part.name)
		if err := part.run(); err != nil {
			return nil, fmt.Errorf("bench: %s: %w", part.name, err)
		}
	}
	return r.report, nil
}

func (o *SurfacesOptions) defaults() {
	set := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	set(&o.Records, 100_000)
	set(&o.Starts, 10)
	set(&o.Calls, 600)
	set(&o.Clients, 32)
	set(&o.Writes, 10_000)
	if o.Load == 0 {
		o.Load = time.Minute
	}
	if o.Seed == 0 {
		o.Seed = 1
	}
	if len(o.Parts) == 0 {
		o.Parts = SurfacesParts()
	}
}

func (r *surfacesRun) say(format string, args ...any) {
	if r.Out != nil {
		fmt.Fprintf(r.Out, format+"\n", args...)
	}
}

// load fills the store with records and their vectors, unless an earlier run has.
func (r *surfacesRun) load() (err error) {
	db, err := loci.Open(r.ctx, r.Dir, &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	health, err := db.Health(r.ctx)
	if err != nil {
		return err
	}
	if have := int(health.RecordCount); have >= r.Records {
		r.report.Records = have
		return nil
	}
	r.say("loading %d records", r.Records)
	corpus := NewCorpus(r.Seed, r.Records)
	batch := make([]loci.MemoryInput, 0, batchSize)
	for in := range corpus.Records(int(health.RecordCount), r.Records) {
		if batch = append(batch, in); len(batch) == batchSize {
			if _, err := db.Memories().UpsertMany(r.ctx, batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	if len(batch) > 0 {
		if _, err := db.Memories().UpsertMany(r.ctx, batch); err != nil {
			return err
		}
	}
	r.say("making their vectors")
	space, err := r.Bind(r.ctx, db)
	if err != nil {
		return err
	}
	_, err = db.Embeddings().Sync(r.ctx, space, loci.EmbeddingSyncOptions{Progress: func(done, total int64) {
		if r.Progress != nil {
			r.Progress(int(done), int(total))
		}
	}})
	return err
}

// queries are questions for the corpus, of every class in turn.
func (r *surfacesRun) queries(n int) []string {
	all := NewCorpus(r.Seed, r.report.Records).Queries(n)
	var out []string
	for i := range n {
		for _, class := range Classes() {
			if q := all[class][i]; q != "" { // a small corpus has no words of some classes
				out = append(out, q)
			}
		}
	}
	return out[:n]
}

// recallInput is the input of a recall as a client would send it.
func recallInput(query string) []byte {
	raw, err := json.Marshal(map[string]any{"query": query, "limit": 10})
	if err != nil { // a string and a number: it cannot be
		panic("bench: " + err.Error())
	}
	return raw
}

// snapshotInput asks a context for what has changed since a generation.
func snapshotInput(since int64) []byte {
	return fmt.Appendf(nil, `{"scope":["bench","surfaces"],"since":%d}`, since)
}

// calls measures one recall through the library, the table, the socket of an
// attached process and HTTP, in turn, so that all meet the same machine.
func (r *surfacesRun) calls() (err error) {
	db, err := loci.Open(r.ctx, r.Dir, &loci.Options{WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := r.Bind(r.ctx, db); err != nil {
		return err
	}
	server, err := local.Serve(db, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	url, stop, err := r.HTTP(r.ctx, op.Local(db))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := r.fillContext(db); err != nil {
		return err
	}
	child, err := r.startChild(url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, child.end()) }()

	const round = 50
	queries := r.queries(r.Calls)
	samples := map[string][]time.Duration{}
	ways := []string{"library", "table", "attached", "http", "snapshot"}
	for from := 0; from < r.Calls; from += round {
		n := min(round, r.Calls-from)
		// Nobody pays for pages that are not in memory yet, and each is first in turn.
		if _, err := timeEach(n, func(i int) error {
			_, err := op.Local(db).Call(r.ctx, "recall", recallInput(queries[from+i]))
			return err
		}); err != nil {
			return err
		}
		for k := range ways {
			way := ways[(from/round+k)%len(ways)]
			var took []time.Duration
			var err error
			switch way {
			case "library":
				took, err = timeEach(n, func(i int) error {
					_, err := db.Search(r.ctx, loci.SearchRequest{Query: queries[from+i], Limit: new(10), Kinds: []loci.Kind{loci.KindMemory}})
					return err
				})
			case "table":
				took, err = timeEach(n, func(i int) error {
					_, err := op.Local(db).Call(r.ctx, "recall", recallInput(queries[from+i]))
					return err
				})
			default:
				took, err = child.ask(SurfaceAsk{way, from, n})
			}
			if err != nil {
				return fmt.Errorf("%s: %w", way, err)
			}
			samples[way] = append(samples[way], took...)
		}
	}
	r.report.Calls = &CallsReport{
		Library: newLatency(samples["library"]), Table: newLatency(samples["table"]), Attached: newLatency(samples["attached"]),
		HTTP: newLatency(samples["http"]), Snapshot: newLatency(samples["snapshot"]),
	}
	return nil
}

func timeEach(n int, f func(i int) error) ([]time.Duration, error) {
	out := make([]time.Duration, n)
	for i := range out {
		begin := time.Now()
		if err := f(i); err != nil {
			return nil, err
		}
		out[i] = time.Since(begin)
	}
	return out, nil
}

// fillContext has a window worth a snapshot and publishes it.
func (r *surfacesRun) fillContext(db *loci.DB) error {
	corpus := NewCorpus(r.Seed, 64)
	for i := range 20 {
		raw, err := json.Marshal(map[string]any{"scope": []string{"bench", "surfaces"}, "tier": "working", "content": corpus.Record(i).Judgment})
		if err != nil {
			return err
		}
		if _, err := op.Local(db).Call(r.ctx, "context.write", raw); err != nil {
			return err
		}
	}
	return nil
}

// SurfacesChild is the other process of the part calls: it answers lines of
// SurfaceAsk with lines of microseconds, until in ends. dir is the data directory
// of the process that holds it, url its HTTP server.
func SurfacesChild(ctx context.Context, dir, url string, seed uint64, records, calls int, in io.Reader, out io.Writer) (err error) {
	r := &surfacesRun{SurfacesOptions: SurfacesOptions{Seed: seed}, report: &SurfacesReport{Records: records}}
	queries := r.queries(calls)
	memory, err := local.Dial(ctx, dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, memory.Close()) }()
	client := newPoster(url, 1)
	lines, answers := json.NewDecoder(bufio.NewReader(in)), json.NewEncoder(out)
	since := int64(0)
	for {
		var ask SurfaceAsk
		if err := lines.Decode(&ask); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		took, err := timeEach(ask.N, func(i int) error {
			switch ask.Way {
			case "attached":
				_, err := memory.Call(ctx, "recall", recallInput(queries[ask.First+i]))
				return err
			case "http":
				return client.post(ctx, "recall", recallInput(queries[ask.First+i]), nil)
			case "snapshot":
				raw, err := memory.Call(ctx, "context.snapshot", snapshotInput(since))
				if err == nil {
					var s struct{ Generation int64 }
					err = json.Unmarshal(raw, &s)
					since = s.Generation
				}
				return err
			}
			return fmt.Errorf("bench: no way %q", ask.Way)
		})
		if err != nil {
			return err
		}
		us := make([]float64, len(took))
		for i, d := range took {
			us[i] = microseconds(d)
		}
		if err := answers.Encode(us); err != nil {
			return err
		}
	}
}

// child is a process that calls from outside.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
}

func (r *surfacesRun) startChild(url string) (*child, error) {
	cmd := r.program("bench", "surfaces-child", r.Dir, url, fmt.Sprint(r.Seed), fmt.Sprint(r.report.Records), fmt.Sprint(r.Calls))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &child{cmd, in, json.NewDecoder(bufio.NewReader(out))}, cmd.Start()
}

func (c *child) ask(a SurfaceAsk) ([]time.Duration, error) {
	if err := json.NewEncoder(c.in).Encode(a); err != nil {
		return nil, err
	}
	var us []float64
	if err := c.out.Decode(&us); err != nil {
		return nil, err
	}
	out := make([]time.Duration, len(us))
	for i, v := range us {
		out[i] = time.Duration(v * float64(time.Microsecond))
	}
	return out, nil
}

func (c *child) end() error { return errors.Join(c.in.Close(), c.cmd.Wait()) }

// program makes a child of this program. What it says goes to this process's
// standard error.
func (r *surfacesRun) program(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(r.ctx, r.Program[0], append(slices.Clone(r.Program[1:]), args...)...)
	cmd.Stderr = os.Stderr
	return cmd
}
