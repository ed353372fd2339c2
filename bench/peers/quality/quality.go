// Package quality measures what products find: the same judged sets and questions
// through each product's own search, and one scorer for all.
package quality

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/bench/peers/protocol"
	"github.com/loci-memory/loci/bench/peers/result"
	"github.com/loci-memory/loci/bench/peers/worker"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/eval"
)

// depth is how many hits a question asks for, of every product: what some of them
// fuse, and threads that are told from their best hit, need more than the ten that
// count.
const depth = 100

// batch is how many records are loaded in one call.
const batch = 1000

// A Product is how the process of a product is started.
type Product struct {
	Name    string   // for errors; rows bear the name that the product gives itself
	Env     []string // KEY=value, beside the environment
	Command []string

	effort int   // the greatest of its search by vectors
	gone   error // why it takes no part
}

// Options say what to measure.
type Options struct {
	Products []Product
	Sets     string   // the folder of the judged sets
	Tasks    []string // as eval.Load knows them
	Paths    []string // protocol.KindText, KindVector, KindHybrid, in the order of rows
	// Embedder makes the vectors that all products get. It is not asked for any when
	// text is the only path.
	Embedder  embed.Embedder
	Dimension int
	// Dir is a folder for what lasts no longer than a task.
	Dir string
	// Patience is how long a product may take for one task; 0: an hour.
	Patience time.Duration
	Log      func(string)
	// Keep takes what there is after every task; nil: nobody does.
	Keep func([]result.Product, []result.Quality) error
}

// vectors says if a path needs some.
func (o *Options) vectors() bool {
	return slices.ContainsFunc(o.Paths, func(path string) bool { return path != protocol.KindText })
}

// Run measures every task with every product, the products in turns. What a product
// does not have, or failed at, is a row that says so. The error tells of failures
// again, after all that could be measured was; the results are valid beside it.
func Run(ctx context.Context, o Options) (able []result.Product, rows []result.Quality, failures error) {
	if o.Patience == 0 {
		o.Patience = time.Hour
	}
	o.Products = slices.Clone(o.Products)
	able = make([]result.Product, len(o.Products))
	for i, p := range o.Products {
		hello, err := ask(ctx, p)
		if err != nil {
			// It takes no part, and the tables tell why.
			o.Log("failed: " + err.Error())
			failures = errors.Join(failures, err)
			o.Products[i].gone = err
			able[i] = result.Product{Name: p.Name, Missing: []string{"it did not start: " + brief(err)}}
			continue
		}
		able[i] = result.Product{
			Name: hello.Name, Version: hello.Version, Settings: hello.Settings, Durable: hello.Durable, Text: hello.Text,
			Vector: hello.Vector, Hybrid: hello.Hybrid, Filter: hello.Filter, Graph: hello.Graph, Missing: hello.Missing,
		}
		o.Products[i].effort = slices.Max(append(hello.Effort, 0))
	}
	for _, name := range o.Tasks {
		t, err := prepare(ctx, &o, name)
		if err != nil {
			return able, rows, errors.Join(failures, err)
		}
		for i, p := range o.Products {
			began := time.Now()
			judged, err := t.product(ctx, &o, p, &able[i])
			if ctx.Err() != nil {
				return able, rows, errors.Join(failures, context.Cause(ctx))
			}
			if err != nil {
				o.Log("failed: " + err.Error())
				failures = errors.Join(failures, err)
			}
			rows = append(rows, judged...)
			o.Log(fmt.Sprintf("%s, %s: %.1f s", name, able[i].Name, time.Since(began).Seconds()))
		}
		if err := os.RemoveAll(t.dir); err != nil {
			return able, rows, errors.Join(failures, err)
		}
		if o.Keep != nil {
			if err := o.Keep(able, rows); err != nil {
				return able, rows, errors.Join(failures, err)
			}
		}
	}
	return able, rows, failures
}

// brief gives an error as the tables tell it: on one line, not too long.
func brief(err error) string {
	text := []rune(strings.Join(strings.Fields(err.Error()), " "))
	if len(text) > 300 {
		return string(text[:150]) + " ... " + string(text[len(text)-145:])
	}
	return string(text)
}

// ask starts a product to hear what it is.
func ask(ctx context.Context, p Product) (protocol.Hello, error) {
	w, err := worker.Start(ctx, p.Name, p.Env, p.Command...)
	if err != nil {
		return protocol.Hello{}, err
	}
	defer w.Kill()
	return worker.Call[protocol.Hello](ctx, w, protocol.OpHello, nil)
}

// A task is a set that is ready to be asked.
type task struct {
	set       *eval.Set
	judged    []eval.Query
	dir       string
	dimension int    // of the vectors; 0: there are none
	asked     string // the file of the questions' vectors
	all       part
	scopes    []part // the same for each scope, where questions have one; else none
}

// A part is records that are loaded together and the questions that are asked of
// them.
type part struct {
	scope     string
	records   string // their file
	vectors   string
	docs      []int // of each record, its place in the set
	questions []int // places in judged
}

// prepare reads a set and writes what workers read of it.
func prepare(ctx context.Context, o *Options, name string) (*task, error) {
	set, err := eval.Load(o.Sets, name)
	if err != nil {
		return nil, err
	}
	t := &task{set: set, judged: set.Judged()}
	if t.dir, err = os.MkdirTemp(o.Dir, "quality-"); err != nil {
		return nil, err
	}
	texts := make([]string, len(set.Docs))
	for i := range set.Docs {
		texts[i] = set.Docs[i].Content()
	}
	o.Log(fmt.Sprintf("%s: %d records, %d questions", name, len(texts), len(t.judged)))
	t.divide()
	var vectors [][]float32
	if o.vectors() {
		if vectors, err = t.embed(ctx, o, texts); err != nil {
			return nil, err
		}
	}
	for i, p := range t.parts() {
		if err := p.write(t, i, texts, vectors); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// embed makes the vectors of texts, and those of the questions, which it keeps in a
// file.
func (t *task) embed(ctx context.Context, o *Options, texts []string) ([][]float32, error) {
	vectors, err := embedAll(ctx, o, texts, embed.Passage)
	if err != nil {
		return nil, err
	}
	questions := make([]string, len(t.judged))
	for i, q := range t.judged {
		questions[i] = q.Text
	}
	asked, err := embedAll(ctx, o, questions, embed.Query)
	if err != nil {
		return nil, err
	}
	t.asked, t.dimension = filepath.Join(t.dir, "asked.f32"), o.Dimension
	return vectors, writeVectors(t.asked, asked)
}

// divide says which records and questions belong together.
func (t *task) divide() {
	at := map[string]int{}
	for i := range t.set.Docs {
		t.all.docs = append(t.all.docs, i)
		scope := t.set.Docs[i].Scope
		n, ok := at[scope]
		if !ok {
			n = len(t.scopes)
			at[scope] = n
			t.scopes = append(t.scopes, part{scope: scope})
		}
		t.scopes[n].docs = append(t.scopes[n].docs, i)
	}
	scoped := false
	for i, q := range t.judged {
		t.all.questions = append(t.all.questions, i)
		if q.Scope == "" {
			continue
		}
		scoped = true
		if n, ok := at[q.Scope]; ok {
			t.scopes[n].questions = append(t.scopes[n].questions, i)
		}
	}
	if !scoped {
		t.scopes = nil
	}
}

// product measures one product. Rows come for all paths, whatever happened.
func (t *task) product(ctx context.Context, o *Options, p Product, able *result.Product) ([]result.Quality, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.Patience, fmt.Errorf("it took longer than %v", o.Patience))
	defer cancel()
	found := map[string]*answer{}
	for _, path := range o.Paths {
		found[path] = &answer{ids: make([][]int, len(t.judged))}
		if p.gone == nil {
			found[path].missing = lacks(able, path)
		}
	}
	unanswered := p.gone
	if unanswered == nil {
		unanswered = t.answers(ctx, p, able, o.Paths, found)
	}
	failed := unanswered
	var rows []result.Quality
	for _, path := range o.Paths {
		a := found[path]
		row := result.Quality{Set: t.set.Task, Path: path, Product: able.Name, Queries: len(t.judged), Missing: a.missing, Note: a.note}
		switch {
		case a.missing != "":
		case unanswered != nil:
			row.Missing = "it failed: " + brief(unanswered)
		default:
			figures, err := t.score(ctx, a.ids)
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("%s: %s: %w", p.Name, path, err))
				row.Missing = "it failed: " + brief(err)
			}
			row.Figures = figures
		}
		rows = append(rows, row)
	}
	if failed == nil || p.gone != nil {
		return rows, nil // that it is gone has been said
	}
	return rows, fmt.Errorf("%s: %w", t.set.Task, failed)
}

// An answer is what a product found by one path.
type answer struct {
	ids     [][]int // of each question that is judged: places in the set, best first
	missing string  // why there is none
	note    string
}

// lacks says what a path needs that a product does not have, empty for nothing.
func lacks(p *result.Product, path string) string {
	switch {
	case path == protocol.KindText && !p.Text:
		return "it has no ranked full text"
	case path == protocol.KindVector && !p.Vector:
		return "it has no vectors"
	case path == protocol.KindHybrid && !p.Hybrid:
		return "it does not join texts and vectors"
	}
	return ""
}

// answers has a product answer everything by the paths that it has: in one store, or
// in one for each scope where it has no filter.
func (t *task) answers(ctx context.Context, p Product, able *result.Product, paths []string, found map[string]*answer) error {
	parts := []part{t.all}
	if len(t.scopes) > 0 && !able.Filter {
		parts = t.scopes
		for _, a := range found {
			a.note = "it has no filter: one store for each scope"
		}
	}
	asked := slices.ContainsFunc(paths, func(path string) bool { return found[path].missing == "" })
	for i := range parts {
		if !asked || len(parts[i].questions) == 0 {
			continue
		}
		if err := t.answerPart(ctx, p, able, &parts[i], paths, found); err != nil {
			return err
		}
	}
	return nil
}

// answerPart has a product load a part and answer its questions.
func (t *task) answerPart(ctx context.Context, p Product, able *result.Product, part *part, paths []string, found map[string]*answer) (err error) {
	dir, err := os.MkdirTemp(t.dir, "store-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := worker.Start(ctx, p.Name, p.Env, p.Command...)
	if err != nil {
		return err
	}
	defer w.Kill()
	open := protocol.Open{Dir: dir, Dimension: t.dimension, Analysis: "own", Texts: able.Text, Vectors: able.Vector && t.dimension > 0, Capacity: len(part.docs)}
	if _, err := worker.Call[protocol.Cost](ctx, w, protocol.OpOpen, open); err != nil {
		return err
	}
	load := protocol.Load{Records: part.records, To: len(part.docs), Batch: batch}
	if open.Vectors {
		load.Vectors = part.vectors
	}
	if _, err := worker.Call[protocol.Cost](ctx, w, protocol.OpLoad, load); err != nil {
		return err
	}
	if _, err := worker.Call[protocol.Cost](ctx, w, protocol.OpFinish, nil); err != nil {
		return err
	}
	for _, path := range paths {
		a := found[path]
		if a.missing != "" {
			continue
		}
		got, err := worker.Call[protocol.Found](ctx, w, protocol.OpSearch, t.search(path, p, able, part))
		if lack, ok := errors.AsType[*worker.Unsupported](err); ok {
			a.missing = lack.Why
			continue
		}
		if err != nil {
			return err
		}
		if err := part.place(a, got.IDs); err != nil {
			return fmt.Errorf("%s: %s: %w", p.Name, path, err)
		}
	}
	_, err = w.Close(ctx)
	return err
}

// search makes the request for a part's questions. Where a product's search by
// vectors is approximate, it makes its greatest effort: speed is measured elsewhere.
func (t *task) search(path string, p Product, able *result.Product, part *part) protocol.Search {
	s := protocol.Search{Kind: path, K: min(depth, len(part.docs)), Effort: p.effort}
	if path != protocol.KindText {
		s.Vectors = t.asked
	}
	for _, i := range part.questions {
		q := protocol.Query{}
		if path != protocol.KindVector {
			q.Text = t.judged[i].Text
		}
		if path != protocol.KindText {
			q.Vector = &i
		}
		if able.Filter {
			q.Tag = t.judged[i].Scope
		}
		s.Queries = append(s.Queries, q)
	}
	return s
}

// place keeps what was found in a part, and refuses what cannot be an answer.
func (p *part) place(a *answer, found [][]int) error {
	if len(found) != len(p.questions) {
		return fmt.Errorf("%d answers to %d questions", len(found), len(p.questions))
	}
	for n, ids := range found {
		if len(ids) > depth {
			return fmt.Errorf("%d hits where at most %d were asked for", len(ids), depth)
		}
		for _, id := range ids {
			if id < 0 || id >= len(p.docs) {
				return fmt.Errorf("it found a record %d, and there are %d", id, len(p.docs))
			}
			a.ids[p.questions[n]] = append(a.ids[p.questions[n]], p.docs[id])
		}
	}
	return nil
}

// score rates what was found for all questions.
func (t *task) score(ctx context.Context, ids [][]int) (map[string]float64, error) {
	byQuery := make(map[string][]int, len(ids))
	for i, q := range t.judged {
		byQuery[q.ID] = ids[i]
	}
	// A thread stands where the best of its records does.
	search := func(_ context.Context, q eval.Query, k int) ([]eval.Scored, error) {
		var out []eval.Scored
		seen := map[string]bool{}
		for n, at := range byQuery[q.ID] {
			d := &t.set.Docs[at]
			if q.Scope != "" && d.Scope != q.Scope {
				return nil, fmt.Errorf("it found %q, which is not of scope %q", d.ID, q.Scope)
			}
			id := d.ID
			if t.set.Unit == eval.UnitThread {
				id = d.Thread
			}
			if !seen[id] {
				seen[id] = true
				out = append(out, eval.Scored{ID: id, Score: float64(k - n)})
			}
		}
		return out, nil
	}
	run, err := eval.Search(ctx, t.set, depth, search)
	if err != nil {
		return nil, err
	}
	f := eval.Evaluate(t.set, run, 5, 10).Overall
	return map[string]float64{"nDCG@10": f.NDCG10, "MRR@10": f.MRR10, "R@5": f.At[0].Recall, "R@10": f.At[1].Recall}, nil
}
