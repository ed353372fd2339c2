package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
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
	embedder        string
	depth           int
	neighbourWeight float64
	threadWeight    float64
	graphWeight     float64
	tune            bool
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
With --tune the weights of neighbours and threads are chosen on all
conversations but one and reported on that one, for each in turn.
With --graph-weight a set's triples.tsv (subject, relation, object, separated by
tabs) becomes a graph, documents are tagged with their titles, and what the graph
relates to the best text hits joins the ranking.`,
		Example: `  loci eval data/scifact --run scifact.run
  loci eval data --task xquad:zh
  loci eval data/locomo --neighbour-weight 0.5 --thread-weight 0.5
  loci eval data/locomo --task sessions`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, cancel := a.WithTimeout(cmd.Context())
			defer cancel()
			return runEval(ctx, a, args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.task, "task", "", "the `set` or its variant: "+strings.Join(eval.Tasks(), ", ")+", all")
	f.StringVar(&o.run, "run", "", "write what was found to this `file`: query, document, score, separated by tabs")
	f.StringVar(&o.embedder, "embedder", "none", "embedding model; there is none yet")
	f.IntVar(&o.depth, "depth", 100, "how many results to ask for")
	f.Float64Var(&o.neighbourWeight, "neighbour-weight", 0, "share of the better neighbour's score")
	f.Float64Var(&o.threadWeight, "thread-weight", 0, "share of the thread's own score")
	f.Float64Var(&o.graphWeight, "graph-weight", 0, "weight of the path through the graph of the set's triples")
	f.BoolVar(&o.tune, "tune", false, "choose the two weights, leaving one conversation out")
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
	switch task {
	case "":
		return "", nil, &loci.Error{Code: loci.ErrValidation, Field: "task", Message: "is needed: " + dir + " is not the folder of one set"}
	case "all":
		for _, t := range eval.Tasks() {
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

// evalResult is the report of one task.
type evalResult struct {
	eval.Report
	Unit            eval.Unit `json:"unit"`
	Documents       int       `json:"documents"`
	NeighbourWeight float64   `json:"neighbour_weight"`
	ThreadWeight    float64   `json:"thread_weight"`
	GraphWeight     float64   `json:"graph_weight,omitempty"`
	MSPerQuery      float64   `json:"ms_per_query"`
	Tuned           *tuned    `json:"tuned,omitempty"`
}

// tuned reports weights chosen without the conversation they are rated on.
type tuned struct {
	Measure string  `json:"measure"`
	HeldOut float64 `json:"held_out"` // mean over all questions
	Folds   []fold  `json:"folds"`
}

type fold struct {
	Name            string  `json:"name"`
	NeighbourWeight float64 `json:"neighbour_weight"`
	ThreadWeight    float64 `json:"thread_weight"`
	Value           float64 `json:"value"`
}

func runEval(ctx context.Context, a *cli.App, dir string, o evalOptions) (err error) {
	if o.embedder != "none" {
		return &loci.Error{Code: loci.ErrValidation, Field: "embedder", Message: "must be none: this version has no embedder"}
	}
	if o.depth < 1 || o.depth > loci.MaxPage {
		return &loci.Error{Code: loci.ErrValidation, Field: "depth", Message: fmt.Sprintf("must be from 1 to %d", loci.MaxPage)}
	}
	root, tasks, err := evalTasks(dir, o.task)
	if err != nil {
		return err
	}
	var out io.Writer
	if o.run != "" {
		if len(tasks) > 1 {
			return &loci.Error{Code: loci.ErrValidation, Field: "run", Message: "takes one task at a time"}
		}
		f, err := os.Create(o.run)
		if err != nil {
			return &loci.Error{Code: loci.ErrIO, Field: "run", Message: "the file cannot be written", Err: err}
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		out = f
	}
	var results []evalResult
	for _, task := range tasks {
		r, err := evalTask(ctx, a, root, task, o, out)
		if err != nil {
			return err
		}
		if !a.JSON() {
			if err := r.write(a.Stdout()); err != nil {
				return err
			}
		}
		results = append(results, r)
	}
	if a.JSON() {
		return a.WriteJSON(results)
	}
	return nil
}

func (r *evalResult) write(w io.Writer) error {
	fmt.Fprintf(w, "%s: %d documents, weights %.2f and %.2f, %.2f ms a query\n", r.Task, r.Documents, r.NeighbourWeight, r.ThreadWeight, r.MSPerQuery)
	if err := r.Report.Write(w); err != nil {
		return err
	}
	if r.Tuned != nil {
		fmt.Fprintf(w, "tuned, each conversation by the others: %s %.4f\n", r.Tuned.Measure, r.Tuned.HeldOut)
		for _, f := range r.Tuned.Folds {
			fmt.Fprintf(w, "  %-12s %.4f with %.2f and %.2f\n", f.Name, f.Value, f.NeighbourWeight, f.ThreadWeight)
		}
	}
	_, err := fmt.Fprintln(w)
	return err
}

func evalTask(ctx context.Context, a *cli.App, root, task string, o evalOptions, out io.Writer) (r evalResult, err error) {
	set, err := eval.Load(root, task)
	if err != nil {
		return r, &loci.Error{Code: loci.ErrValidation, Field: "task", Message: "cannot be loaded", Err: err}
	}
	dir, err := os.MkdirTemp("", "loci-eval-")
	if err != nil {
		return r, &loci.Error{Code: loci.ErrIO, Message: "no temporary folder", Err: err}
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := loci.Open(ctx, dir, nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	var graph *loci.GraphBatch
	if o.graphWeight > 0 {
		if graph, err = readTriples(root, task); err != nil {
			return r, err
		}
	}
	if err := loadSet(ctx, a, db, set, graph != nil); err != nil {
		return r, err
	}
	if graph != nil {
		if _, err := db.Graph().ApplyBatch(ctx, *graph); err != nil {
			return r, err
		}
	}
	search := func(w weights) eval.SearchFunc { return searchSet(db, set, w) }
	w := weights{o.neighbourWeight, o.threadWeight, o.graphWeight}
	began := time.Now()
	run, err := eval.Search(ctx, set, o.depth, search(w))
	if err != nil {
		return r, err
	}
	took := time.Since(began)
	if out != nil {
		if err := eval.WriteRun(out, run); err != nil {
			return r, &loci.Error{Code: loci.ErrIO, Field: "run", Message: "the file cannot be written", Err: err}
		}
	}
	r = evalResult{Report: eval.Evaluate(set, run), Unit: set.Unit, Documents: len(set.Docs), NeighbourWeight: w.neighbour, ThreadWeight: w.thread, GraphWeight: w.graph,
		MSPerQuery: took.Seconds() * 1000 / float64(max(len(set.Judged()), 1))}
	if o.tune {
		if r.Tuned, err = tuneWeights(ctx, set, o.depth, search); err != nil {
			return r, err
		}
	}
	return r, nil
}

// weights are the shares of a hit's neighbours and of its thread, and the weight
// of the graph's path.
type weights struct{ neighbour, thread, graph float64 }

const loadBatch = 1000

// loadSet stores a set's documents as memories that know their document's id.
func loadSet(ctx context.Context, a *cli.App, db *loci.DB, set *eval.Set, tagged bool) error {
	p := a.Progress("Loading " + set.Task)
	defer p.Close()
	for from := 0; from < len(set.Docs); from += loadBatch {
		docs := set.Docs[from:min(from+loadBatch, len(set.Docs))]
		batch := make([]loci.MemoryInput, len(docs))
		for i, d := range docs {
			in := &batch[i]
			in.Judgment = d.Content()
			if d.Scope != "" {
				in.Scope = &d.Scope
			}
			if d.Thread != "" {
				in.Thread, in.Position = &d.Thread, &d.Position
			}
			if tagged && d.Title != "" {
				in.Tags = entityNames(d.Title)
			}
			id, err := json.Marshal(map[string]string{"doc": d.ID})
			if err != nil {
				return err
			}
			in.Metadata = id
		}
		if _, err := db.Memories().UpsertMany(ctx, batch); err != nil {
			return err
		}
		p.Update(int64(from+len(docs)), int64(len(set.Docs)))
	}
	return nil
}

// entityNames are a title and, without what stands in brackets at its end, its
// plain name.
func entityNames(title string) []string {
	names := []string{title}
	if i := strings.LastIndex(title, "("); i > 0 && strings.HasSuffix(title, ")") {
		if plain := strings.TrimSpace(title[:i]); plain != "" {
			names = append(names, plain)
		}
	}
	return names
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

// searchSet answers a set's queries from the store.
func searchSet(db *loci.DB, set *eval.Set, w weights) eval.SearchFunc {
	return func(ctx context.Context, q eval.Query, k int) ([]eval.Scored, error) {
		req := loci.SearchRequest{Query: q.Text, Limit: &k, Kinds: []loci.Kind{loci.KindMemory}, NeighbourWeight: w.neighbour, ThreadWeight: w.thread, GraphWeight: w.graph}
		if q.Scope != "" {
			req.Filter.Scopes = []string{q.Scope}
		}
		if set.Unit == eval.UnitThread {
			req.GroupBy = loci.GroupThread
		}
		res, err := db.Search(ctx, req)
		if err != nil {
			return nil, err
		}
		found := make([]eval.Scored, len(res.Hits))
		for i, h := range res.Hits {
			m := h.Record.(*loci.Memory)
			id := m.Thread
			if set.Unit != eval.UnitThread {
				var meta struct{ Doc string }
				if err := json.Unmarshal(m.Metadata, &meta); err != nil {
					return nil, err
				}
				id = meta.Doc
			}
			found[i] = eval.Scored{ID: id, Score: h.Score}
		}
		return found, nil
	}
}

// tuneWeights chooses the weights by recall at 10, leaving one scope out.
func tuneWeights(ctx context.Context, set *eval.Set, depth int, search func(weights) eval.SearchFunc) (*tuned, error) {
	var grid []weights
	for _, n := range []float64{0, 0.25, 0.5, 0.75, 1} {
		for _, t := range []float64{0, 0.25, 0.5, 0.75, 1} {
			grid = append(grid, weights{n, t, 0})
		}
	}
	var folds []string
	for _, q := range set.Judged() {
		folds = append(folds, q.Scope)
	}
	t, err := eval.LeaveOneOut(grid, folds, func(w weights) ([]float64, error) {
		run, err := eval.Search(ctx, set, depth, search(w))
		if err != nil {
			return nil, err
		}
		return eval.PerQuery(set, run, eval.RecallAt(10)), nil
	})
	if err != nil {
		return nil, err
	}
	out := &tuned{Measure: "R@10", HeldOut: t.HeldOut}
	for _, f := range t.Folds {
		out.Folds = append(out.Folds, fold{f.Name, f.Chosen.neighbour, f.Chosen.thread, f.Value})
	}
	return out, nil
}
