package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/eval"
	"github.com/loci-memory/loci/internal/cli"
	"github.com/spf13/cobra"
)

// evalOptions are the flags of loci eval.
type evalOptions struct {
	task            string
	run             string
	paths           []string
	cache           string
	fusion          string
	vectorWeight    float64
	depth           int
	neighbourWeight float64
	threadWeight    float64
	graphWeight     float64
	tune            bool
	as              string
}

// evalCommand measures retrieval on judged data.
func evalCommand(a *cli.App) *cobra.Command {
	var o evalOptions
	cmd := &cobra.Command{
		Use:   "eval DIRECTORY",
		Short: "Measure retrieval on judged data",
		Long: `Loads a set of documents into a store of its own, asks its questions, writes
what was found to a run file and reports recall, hits, MRR and nDCG.

DIRECTORY is the folder of one set (docs.jsonl, queries.jsonl, qrels.tsv and
perhaps groups.tsv), with --task for a variant of it, or a folder of such
folders, with --task for the set. "--task all" measures every task it knows.
Each path is measured: the text alone, the vectors alone, and both; with
--embedder none there is the text alone.
With --as the documents are stored as episodes or facts of agent memories, one for
each scope, instead of memories. Then there is one path more: "call" is the agent
memory's own call by text, episodes.recall_similar or facts.query_text, which takes
no weights and so compares with "hybrid", or with "text" where there is no model.
With --tune weights are chosen on all conversations but one and reported on that
one, for each in turn; in a set without conversations they are chosen on one half
and reported on the other, both ways. It is the weight of the vectors that is
chosen, and with --embedder none those of neighbours and threads.
"--task sts" measures an embedder alone: the rank correlation of its cosines with
what people said of pairs of sentences.
With --graph-weight a set's triples.tsv (subject, relation, object, separated by
tabs) becomes a graph, documents are tagged with their titles, and what the graph
relates to the best text hits joins the ranking.`,
		Example: `  loci eval data/scifact --run scifact.run
  loci eval data --task xquad:zh
  loci eval data/locomo --neighbour-weight 0.5 --thread-weight 0.5
  loci eval data/locomo --task sessions
  loci eval data/locomo --task observations --as facts
  loci eval data --task all --cache ~/.cache/loci-eval
  loci eval data --task sts`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			return runEval(ctx, a, args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.task, "task", "", "the `set` or its variant: "+strings.Join(eval.Tasks(), ", ")+", sts, all")
	f.StringVar(&o.run, "run", "", "write what was found to this `file`: query, document, score, separated by tabs")
	f.StringSliceVar(&o.paths, "paths", nil, "what to measure: text, vector, hybrid, call (default all that there are)")
	f.StringVar(&o.as, "as", asMemories, "what documents are stored as: memories, episodes, facts")
	f.StringVar(&o.cache, "cache", "", "keep what is embedded in this `directory` for the next run")
	f.Float64Var(&o.vectorWeight, "vector-weight", 0, "weight of the vectors against a text's 1 (default the embedder's)")
	f.StringVar(&o.fusion, "fusion", "", "how the two become one: score or rrf (default the embedder's)")
	f.IntVar(&o.depth, "depth", 100, "how many results to ask for")
	f.Float64Var(&o.neighbourWeight, "neighbour-weight", 0, "share of the better neighbour's score")
	f.Float64Var(&o.threadWeight, "thread-weight", 0, "share of the thread's own score")
	f.Float64Var(&o.graphWeight, "graph-weight", 0, "weight of the path through the graph of the set's triples")
	f.BoolVar(&o.tune, "tune", false, "choose weights on one part of the questions and report them on another")
	return cmd
}

// evalTasks gives the root folder and the tasks in it that are meant.
func evalTasks(dir, task string) (root string, tasks []string, err error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return "", nil, err
	}
	if single, err := filepath.Glob(filepath.Join(abs, "docs*.jsonl")); err == nil && len(single) > 0 {
		set := filepath.Base(abs)
		switch {
		case task == "":
			return filepath.Dir(abs), []string{set}, nil
		case task == set || strings.HasPrefix(task, set+":"):
			return filepath.Dir(abs), []string{task}, nil
		case task != "all":
			return filepath.Dir(abs), []string{set + ":" + task}, nil
		}
		for _, t := range eval.Tasks() {
			if t == set || strings.HasPrefix(t, set+":") {
				tasks = append(tasks, t)
			}
		}
		return filepath.Dir(abs), tasks, nil
	}
	if pairs, err := filepath.Glob(filepath.Join(abs, "*_test.tsv")); err == nil && len(pairs) > 0 && (task == "" || task == taskPairs) {
		return filepath.Dir(abs), []string{filepath.Base(abs)}, nil
	}
	switch task {
	case "":
		return "", nil, &loci.Error{Code: loci.ErrValidation, Field: "task", Message: "is needed: " + dir + " is not the folder of one set"}
	case "all":
		for _, t := range append(eval.Tasks(), taskPairs) {
			set, _, _ := strings.Cut(t, ":")
			if _, err := os.Stat(filepath.Join(abs, set)); err == nil {
				tasks = append(tasks, t)
			}
		}
		if len(tasks) == 0 {
			return "", nil, &loci.Error{Code: loci.ErrValidation, Field: "directory", Message: "holds none of the known sets"}
		}
		return abs, tasks, nil
	default:
		return abs, []string{task}, nil
	}
}

// evalResult is the report of one path of one task.
type evalResult struct {
	eval.Report
	Path            string        `json:"path"`
	As              string        `json:"as,omitempty"`
	Embedder        string        `json:"embedder"`
	Unit            eval.Unit     `json:"unit"`
	Documents       int           `json:"documents"`
	NeighbourWeight float64       `json:"neighbour_weight"`
	ThreadWeight    float64       `json:"thread_weight"`
	GraphWeight     float64       `json:"graph_weight,omitempty"`
	VectorWeight    float64       `json:"vector_weight,omitempty"` // 0: the embedder's
	Fusion          string        `json:"fusion,omitempty"`        // "": the embedder's
	MSPerQuery      float64       `json:"ms_per_query"`            // without the query's embedding
	Tuned           *tuned        `json:"tuned,omitempty"`
	Pairs           []pairsResult `json:"pairs,omitempty"`
}

// The paths.
const (
	pathText   = "text"
	pathVector = "vector"
	pathHybrid = "hybrid"
	pathCall   = "call" // the agent memory's own
)

// evaluation is one run of the command.
type evaluation struct {
	evalOptions
	app   *cli.App
	model *cli.Model  // nil for none
	cache *eval.Cache // before the model
	out   io.Writer   // of the run file; nil for none
}

func invalid(field, message string) error {
	return &loci.Error{Code: loci.ErrValidation, Field: field, Message: message}
}

func runEval(ctx context.Context, a *cli.App, dir string, o evalOptions) (err error) {
	if o.depth < 1 || o.depth > loci.MaxPage {
		return invalid("depth", fmt.Sprintf("must be from 1 to %d", loci.MaxPage))
	}
	if err := o.checkAs(); err != nil {
		return err
	}
	root, tasks, err := evalTasks(dir, o.task)
	if err != nil {
		return err
	}
	e := &evaluation{evalOptions: o, app: a}
	if e.model, err = a.OpenModel(); err != nil {
		return err
	}
	known := []string{pathText}
	if e.model != nil {
		known = append(known, pathVector, pathHybrid)
		size, err := e.model.Size(ctx)
		if err != nil {
			return err
		}
		if e.cache, err = eval.NewCache(e.model.Embedder, e.model.ID, size, o.cache); err != nil {
			return &loci.Error{Code: loci.ErrIO, Field: "cache", Message: "cannot be used", Err: err}
		}
		plain := e.model
		defer func() { err = errors.Join(err, e.cache.Close(), plain.Close()) }()
		cached := *plain
		cached.Embedder = e.cache
		e.model = &cached
	}
	if o.as != asMemories {
		known = append(known, pathCall)
	}
	if len(e.paths) == 0 {
		e.paths = known
	}
	for _, p := range e.paths {
		if !slices.Contains(known, p) {
			return invalid("paths", fmt.Sprintf("must be of %s with embedder %s and documents as %s", strings.Join(known, ", "), a.Embedder(), o.as))
		}
	}
	if o.run != "" {
		if len(tasks) > 1 || len(e.paths) > 1 {
			return invalid("run", "takes one task and one path at a time")
		}
		f, err := os.Create(o.run)
		if err != nil {
			return &loci.Error{Code: loci.ErrIO, Field: "run", Message: "the file cannot be written", Err: err}
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		e.out = f
	}
	if !a.JSON() {
		fmt.Fprintf(a.Stdout(), "embedder: %s\n\n", a.Embedder())
	}
	results := []evalResult{}
	show := func(r evalResult) error {
		results = append(results, r)
		if a.JSON() {
			return nil
		}
		return r.write(a.Stdout())
	}
	for _, task := range tasks {
		if isPairs(root, task) {
			if e.model == nil && len(tasks) > 1 {
				continue // there is nothing to measure
			}
			err = e.pairs(ctx, root, task, show)
		} else {
			err = e.task(ctx, root, task, show)
		}
		if err != nil {
			return err
		}
	}
	if a.JSON() {
		return a.WriteJSON(results)
	}
	return nil
}

func (r *evalResult) write(w io.Writer) error {
	for _, p := range r.Pairs {
		fmt.Fprintf(w, "%s %s: %d pairs, Spearman %.4f\n", r.Task, p.File, p.Pairs, p.Spearman)
	}
	if r.Pairs == nil {
		stored := "documents"
		if r.As != asMemories {
			stored += " as " + r.As
		}
		fmt.Fprintf(w, "%s, %s: %d %s, weights %.2f and %.2f, %.2f ms a query\n", r.Task, r.Path, r.Documents, stored, r.NeighbourWeight, r.ThreadWeight, r.MSPerQuery)
		if err := r.Report.Write(w); err != nil {
			return err
		}
	}
	if r.Tuned != nil {
		fmt.Fprintf(w, "tuned, each part by the others: %s %.4f\n", r.Tuned.Measure, r.Tuned.HeldOut)
		for _, f := range r.Tuned.Folds {
			fmt.Fprintf(w, "  %-12s %.4f with %s\n", f.Name, f.Value, f.weights)
		}
		fmt.Fprintf(w, "  best of all, having seen every answer: %.4f with %s\n", r.Tuned.Best.Value, r.Tuned.Best.weights)
	}
	_, err := fmt.Fprintln(w)
	return err
}

// task measures every path of a set.
func (e *evaluation) task(ctx context.Context, root, task string, show func(evalResult) error) (err error) {
	set, err := eval.Load(root, task)
	if err != nil {
		return &loci.Error{Code: loci.ErrValidation, Field: "task", Message: "cannot be loaded", Err: err}
	}
	dir, err := os.MkdirTemp("", "loci-eval-")
	if err != nil {
		return &loci.Error{Code: loci.ErrIO, Message: "no temporary folder", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := loci.Open(ctx, dir, &loci.Options{NoBackgroundEmbedding: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var graph *loci.GraphBatch
	if e.graphWeight > 0 {
		if graph, err = readTriples(root, task); err != nil {
			return err
		}
	}
	if e.model != nil {
		// It comes first: an agent memory belongs to the space that it finds.
		if err := e.model.Bind(ctx, db); err != nil {
			return err
		}
	}
	store := &evalStore{db: db, set: set, as: e.as, words: e.model == nil}
	if err := store.load(ctx, e.app, graph != nil); err != nil {
		return err
	}
	if graph != nil {
		if _, err := db.Graph().ApplyBatch(ctx, *graph); err != nil {
			return err
		}
	}
	if err := e.embed(ctx, db, set); err != nil {
		return err
	}
	for _, path := range e.paths {
		if path == pathCall && set.Unit == eval.UnitThread {
			if len(e.paths) == 1 {
				return invalid("paths", "must not be call alone where threads are ranked: it ranks none")
			}
			continue
		}
		r, err := e.path(ctx, store, path)
		if err == nil {
			err = show(r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// path measures one path.
func (e *evaluation) path(ctx context.Context, store *evalStore, path string) (r evalResult, err error) {
	set := store.set
	search := func(w weights) eval.SearchFunc { return store.search(path, w) }
	w := weights{neighbour: e.neighbourWeight, thread: e.threadWeight, graph: e.graphWeight}
	switch path {
	case pathHybrid:
		w.vector, w.fusion = e.vectorWeight, loci.Fusion(e.fusion)
	case pathCall:
		w = weights{}
	}
	began := time.Now()
	run, err := eval.Search(ctx, set, e.depth, search(w))
	if err != nil {
		return r, err
	}
	took := time.Since(began)
	if e.out != nil {
		if err := eval.WriteRun(e.out, run); err != nil {
			return r, &loci.Error{Code: loci.ErrIO, Field: "run", Message: "the file cannot be written", Err: err}
		}
	}
	r = evalResult{Report: eval.Evaluate(set, run), Path: path, As: store.as, Embedder: e.app.Embedder(), Unit: set.Unit, Documents: len(set.Docs),
		NeighbourWeight: w.neighbour, ThreadWeight: w.thread, GraphWeight: w.graph, VectorWeight: w.vector, Fusion: string(w.fusion),
		MSPerQuery: took.Seconds() * 1000 / float64(max(len(set.Judged()), 1))}
	if e.tune && (path == pathHybrid || path == pathText && e.model == nil) {
		r.Tuned, err = tuneWeights(ctx, set, e.depth, w, path == pathHybrid, search)
	}
	return r, err
}

// readTriples makes a graph of the set's triples; nil for a set without any.
func readTriples(root, task string) (*loci.GraphBatch, error) {
	set, _, _ := strings.Cut(task, ":")
	data, err := os.ReadFile(filepath.Join(root, set, "triples.tsv"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &loci.Error{Code: loci.ErrIO, Field: "triples.tsv", Message: "cannot be read", Err: err}
	}
	batch := &loci.GraphBatch{}
	known := map[string]bool{}
	entity := func(name string) loci.EntityRef {
		ref := strings.ToLower(name)
		if !known[ref] {
			known[ref] = true
			batch.Entities = append(batch.Entities, loci.EntityInput{Ref: ref, Name: name, Aliases: entityNames(name)})
		}
		return loci.EntityRef{Ref: ref}
	}
	for n, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
		f := strings.Split(line, "\t")
		if len(f) != 3 {
			return nil, &loci.Error{Code: loci.ErrValidation, Field: "triples.tsv", Message: fmt.Sprintf("line %d has %d fields, not 3", n+1, len(f))}
		}
		for i := range f {
			f[i] = strings.TrimSpace(f[i])
		}
		batch.Relations = append(batch.Relations, loci.RelationInput{Subject: entity(f[0]), Predicate: f[1], Object: entity(f[2])})
	}
	return batch, nil
}
