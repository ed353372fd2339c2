package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/bench/peers/worker"
)

const lociName = "loci"

// What can be asked of a run by name.
const (
	doBatch   = "batch"
	doSingle  = "single"
	doVisible = "visible"
	doText    = "text"
	doVector  = "vector"
	doHybrid  = "hybrid"
	doUpdate  = "update"
	doDelete  = "delete"
	doOpen    = "open"
	doMemory  = "memory"
	doDisk    = "disk"
	doMixed   = "mixed"
	doGraph   = "graph"
)

func allTasks() []string {
	return []string{doBatch, doSingle, doVisible, doText, doVector, doHybrid, doUpdate, doDelete, doOpen, doMemory, doDisk, doMixed, doGraph}
}

// largeTasks are those that a run of a large size does where none are named: what
// shows how cost grows.
func largeTasks() []string {
	return []string{doBatch, doText, doVector, doHybrid, doOpen, doMemory, doDisk}
}

const large = 1_000_000

type options struct {
	sizes    []int
	products []string
	tasks    []string
	holds    []string
	seed     uint64
	out      string
	work     string
	env      string
	python   string
	shared   string
	rounds   int
	limit    time.Duration
	mixed    time.Duration
}

func runCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "run",
		Short: "Run the comparison and keep what it measured in a file",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return run(cmd.Context(), o, repeatable(cmd.Flags()), cmd.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.IntSliceVar(&o.sizes, "sizes", []int{10_000, 100_000}, "numbers of records")
	f.StringSliceVar(&o.products, "products", nil, "which take part (default: all)")
	f.StringSliceVar(&o.tasks, "tasks", nil, "what to measure: "+strings.Join(allTasks(), ", ")+" (default: all; from a million records on: "+strings.Join(largeTasks(), ", ")+")")
	f.StringSliceVar(&o.holds, "holds", []string{holdsTexts, holdsVectors, holdsBoth}, "what the stores hold, one after the other")
	f.Uint64Var(&o.seed, "seed", 1, "of the data")
	f.StringVar(&o.out, "out", "peers.json", "file of the results")
	f.StringVar(&o.work, "work", "", "folder of the data and of the products' files (default: loci-peers/work in the user's cache)")
	f.StringVar(&o.env, "env", "", "folder of the Python environment, made if it is not there (default: loci-peers/env in the user's cache)")
	f.StringVar(&o.python, "python", "", "Python interpreter that has the peers, instead of the environment")
	f.StringVar(&o.shared, "shared", "", "folder with ann/glove and ann/mnist: real vectors to search in as well (default: none)")
	f.IntVar(&o.rounds, "rounds", 5, "rounds that count, after one that does not")
	f.DurationVar(&o.limit, "limit", 15*time.Minute, "for a product to load one set of records, and to answer one request")
	f.DurationVar(&o.mixed, "mixed", 10*time.Second, "how long readers and a writer work side by side")
	return c
}

// repeatable gives the command that repeats a run elsewhere: without the folders
// of this machine.
func repeatable(f *pflag.FlagSet) string {
	command := "go run . run"
	f.Visit(func(flag *pflag.Flag) {
		if slices.Contains([]string{"out", "work", "env", "python", "shared"}, flag.Name) {
			return
		}
		value := flag.Value.String()
		if s, ok := flag.Value.(pflag.SliceValue); ok {
			value = strings.Join(s.GetSlice(), ",")
		}
		command += " --" + flag.Name + " " + value
	})
	return command
}

func (o *options) check() error {
	var faults []error
	for _, n := range o.sizes {
		if n < 1000 {
			faults = append(faults, fmt.Errorf("a size of %d is too small for the filters; take 1000 or more", n))
		}
	}
	for _, t := range o.tasks {
		if !slices.Contains(allTasks(), t) {
			faults = append(faults, fmt.Errorf("no task %q", t))
		}
	}
	for _, h := range o.holds {
		if !slices.Contains([]string{holdsTexts, holdsVectors, holdsBoth}, h) {
			faults = append(faults, fmt.Errorf("stores hold %s, %s or %s, not %q", holdsTexts, holdsVectors, holdsBoth, h))
		}
	}
	if o.rounds < 1 || o.limit <= 0 || o.mixed <= 0 {
		faults = append(faults, errors.New("rounds, limit and mixed are positive"))
	}
	return errors.Join(faults...)
}

// A runner is a run of the comparison.
type runner struct {
	options
	begun    time.Time
	progress io.Writer
	file     result.File
	scratch  string // folder of this run alone
	data     string // folder of the sets
	products []*product
}

// A product is one that takes part, or was to.
type product struct {
	id      string
	command []string
	hello   protocol.Hello
	gone    string // why it takes no part
}

func run(ctx context.Context, o options, command string, progress io.Writer) (err error) {
	if err := o.check(); err != nil {
		return err
	}
	r := &runner{options: o, begun: time.Now(), progress: progress}
	if r.work == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no folder to work in; name one with --work: %w", err)
		}
		r.work = filepath.Join(cache, "loci-peers", "work")
	}
	if r.work, err = filepath.Abs(r.work); err != nil {
		return err
	}
	r.data = filepath.Join(r.work, "data")
	if err := os.MkdirAll(r.data, 0o755); err != nil {
		return err
	}
	if r.scratch, err = os.MkdirTemp(r.work, "run-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.scratch)) }()
	if err := r.findProducts(ctx); err != nil {
		return err
	}
	r.file.Machine = machine(ctx, r.python)
	r.file.Commit = commit(ctx)
	r.file.Date = time.Now().UTC().Format(time.DateOnly)
	r.file.Command = command
	r.file.Seed = o.seed
	r.greet(ctx)
	if err := r.measure(ctx); err != nil {
		return err
	}
	r.say("results are in %s", r.out)
	return nil
}

// findProducts says how the worker of each product is started.
func (r *runner) findProducts(ctx context.Context) error {
	peers, err := peerNames()
	if err != nil {
		return err
	}
	known := append([]string{lociName}, peers...)
	if len(r.options.products) == 0 {
		r.options.products = known
	}
	script, err := unpack(r.scratch)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, id := range r.options.products {
		p := &product{id: id, command: []string{self, "worker", lociName}}
		switch {
		case !slices.Contains(known, id):
			return fmt.Errorf("no product %q; there are %s", id, strings.Join(known, ", "))
		case id != lociName:
			if r.python == "" {
				env, err := environment(r.env)
				if err != nil {
					return err
				}
				if r.python, err = prepare(ctx, env, r.progress); err != nil {
					return err
				}
			}
			p.command = []string{r.python, script, id}
		}
		r.products = append(r.products, p)
	}
	return nil
}

// quietPeers keeps products from calling home, which would cost them time and is
// nothing that a run should do.
func quietPeers() []string {
	return []string{"ANONYMIZED_TELEMETRY=False", "MEM0_TELEMETRY=False", "HF_HUB_OFFLINE=1", "DO_NOT_TRACK=1"}
}

func (r *runner) start(ctx context.Context, p *product) (*worker.Worker, error) {
	return worker.Start(ctx, p.id, quietPeers(), p.command...)
}

// greet asks every product what it is. One that cannot say takes no part.
func (r *runner) greet(ctx context.Context) {
	for _, p := range r.products {
		if err := r.ask(ctx, p); err != nil {
			p.gone = reason(err)
			p.hello.Name = p.id
			r.say("%s takes no part: %v", p.id, err)
		}
		h := p.hello
		out := result.Product{
			Name: h.Name, Version: h.Version, Settings: h.Settings, Durable: h.Durable,
			Text: h.Text, Vector: h.Vector, Hybrid: h.Hybrid, Filter: h.Filter, Graph: h.Graph, Missing: h.Missing,
		}
		if p.gone != "" {
			out.Missing = []string{p.gone}
		}
		r.file.Products = append(r.file.Products, out)
	}
}

func (r *runner) ask(ctx context.Context, p *product) error {
	w, err := r.start(ctx, p)
	if err != nil {
		return err
	}
	defer w.Kill()
	limited, cancel := r.limited(ctx)
	defer cancel()
	p.hello, err = worker.Call[protocol.Hello](limited, w, protocol.OpHello, nil)
	return err
}

var errLimit = errors.New("it took longer than the run's limit")

// limited bounds a request.
func (r *runner) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, r.limit, errLimit)
}

// measure does all the work, size by size, and keeps what there is after each part.
func (r *runner) measure(ctx context.Context) error {
	for _, n := range r.sizes {
		if err := r.measureSize(ctx, n); err != nil {
			return err
		}
	}
	if r.wants(doVector, 0) && slices.Contains(r.holds, holdsVectors) {
		if err := r.measureReal(ctx); err != nil {
			return err
		}
	}
	if r.wants(doGraph, 0) {
		if err := r.measureGraph(ctx); err != nil {
			return err
		}
	}
	return r.keep()
}

// wants says if a task is to be done at a size.
func (r *runner) wants(task string, size int) bool {
	switch {
	case len(r.tasks) > 0:
		return slices.Contains(r.tasks, task)
	case size >= large:
		return slices.Contains(largeTasks(), task)
	}
	return true
}

// keep writes the file of results.
func (r *runner) keep() error {
	content, err := json.MarshalIndent(r.file, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(r.out+".new", append(content, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(r.out+".new", r.out)
}

// say tells what is being done, and when in the run.
func (r *runner) say(format string, args ...any) {
	fmt.Fprintf(r.progress, "%8s  %s\n", time.Since(r.begun).Round(time.Second), fmt.Sprintf(format, args...))
}

// reason gives an error as the tables tell it: on one line, not too long.
func reason(err error) string {
	var u *worker.Unsupported
	if errors.As(err, &u) {
		return u.Why
	}
	text := strings.Join(strings.Fields(err.Error()), " ")
	if runes := []rune(text); len(runes) > 300 {
		text = string(runes[:150]) + " ... " + string(runes[len(runes)-145:])
	}
	return text
}
