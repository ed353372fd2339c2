package report

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/bench"
	"github.com/loci-memory/loci/bench/peers/result"
)

// Names of the products that a target speaks of.
const (
	loci      = "loci"
	hnswlib   = "hnswlib"
	usearch   = "usearch"
	tantivy   = "tantivy"
	pMemory   = "p-memory"
	sqliteVec = "sqlite-vec + FTS5"
)

// enough is the recall from which approximate searches are compared.
const enough = 0.99

// A key is what a row says besides its product: a line of a table.
type key struct {
	task, class, filter, data string
	records                   int
}

// A judged names a line of the tables of quality.
type judged struct{ set, path string }

type run struct {
	name string // of its file
	result.File
}

// A view is the results of all runs in an order to look things up in.
type view struct {
	runs     []run
	products []result.Product // Loci first, the others as the runs have them
	rows     map[key]map[string]*result.Row
	keys     []key // in the order of tables
	origin   map[key]int
	quality  map[judged]map[string]*result.Quality
	judged   []judged // in the order of the runs
}

// newView reads files of results, by name, and refuses what a page could not show
// truly.
func newView(results map[string][]byte) (*view, error) {
	v := &view{
		rows:    map[key]map[string]*result.Row{},
		origin:  map[key]int{},
		quality: map[judged]map[string]*result.Quality{},
	}
	from := map[judged]int{}
	for i, name := range slices.Sorted(maps.Keys(results)) {
		r := run{name: name}
		d := json.NewDecoder(bytes.NewReader(results[name]))
		d.DisallowUnknownFields()
		if err := d.Decode(&r.File); err != nil {
			return nil, fmt.Errorf("report: %s: %w", name, err)
		}
		v.runs = append(v.runs, r)
		if err := v.addProducts(r); err != nil {
			return nil, err
		}
		for j := range r.Rows {
			if err := v.addRow(i, &r.Rows[j]); err != nil {
				return nil, fmt.Errorf("report: %s: row %d: %w", name, j, err)
			}
		}
		for j := range r.Quality {
			if err := v.addQuality(i, &r.Quality[j], from); err != nil {
				return nil, fmt.Errorf("report: %s: quality %d: %w", name, j, err)
			}
		}
	}
	v.arrange()
	return v, nil
}

func (v *view) addProducts(r run) error {
	for _, p := range r.Products {
		p.Name = canonical(p.Name)
		old := v.product(p.Name)
		switch {
		case p.Name == "":
			return fmt.Errorf("report: %s: a product without a name", r.name)
		case old == nil:
			v.products = append(v.products, p)
		case p.Version == "": // it took no part in this run, which its rows tell
		case old.Version == "":
			*old = p
		// Loci's version is its commit, which the table of runs tells.
		case old.Version != p.Version && p.Name != loci:
			return fmt.Errorf("report: %s: %s is version %s, and %s in another run", r.name, p.Name, p.Version, old.Version)
		case p.Settings != old.Settings && !strings.Contains(old.Settings, p.Settings):
			old.Settings += "; in " + r.name + ": " + p.Settings
		}
	}
	return nil
}

// canonical gives a product's name as this package has it.
func canonical(name string) string {
	for _, known := range []string{loci, hnswlib, usearch, tantivy, pMemory, sqliteVec} {
		if strings.EqualFold(name, known) {
			return known
		}
	}
	return name
}

func (v *view) product(name string) *result.Product {
	for i := range v.products {
		if v.products[i].Name == name {
			return &v.products[i]
		}
	}
	return nil
}

func (v *view) addRow(run int, r *result.Row) error {
	r.Product = canonical(r.Product)
	r.Filter = cmp.Or(r.Filter, "none")
	if v.product(r.Product) == nil {
		return fmt.Errorf("%q is not among the run's products", r.Product)
	}
	if !slices.Contains(tasks(), r.Task) {
		return fmt.Errorf("no table shows the task %q", r.Task)
	}
	if !slices.Contains(filters(), r.Filter) {
		return fmt.Errorf("no table shows the filter %q", r.Filter)
	}
	if r.Missing == "" && r.Task != result.TaskFinish && r.P50 == 0 && r.Rate == 0 && r.Seconds == 0 && r.CPUSecs == 0 && r.Bytes == 0 {
		return fmt.Errorf("%s of %s has neither a figure nor a reason why there is none", r.Task, r.Product)
	}
	k := key{r.Task, r.Class, r.Filter, r.Data, r.Records}
	if v.rows[k] == nil {
		v.rows[k], v.origin[k] = map[string]*result.Row{}, run
		v.keys = append(v.keys, k)
	}
	if _, ok := v.rows[k][r.Product]; ok {
		return fmt.Errorf("%s of %s is there twice: %+v", r.Task, r.Product, k)
	}
	if v.origin[k] != run {
		return fmt.Errorf("%s of %s stands beside figures of another run, %s: they were not measured side by side", r.Task, r.Product, v.runs[v.origin[k]].name)
	}
	v.rows[k][r.Product] = r
	return nil
}

func (v *view) addQuality(run int, q *result.Quality, from map[judged]int) error {
	q.Product = canonical(q.Product)
	if v.product(q.Product) == nil {
		return fmt.Errorf("%q is not among the run's products", q.Product)
	}
	if !slices.Contains(paths(), q.Path) {
		return fmt.Errorf("no table shows the path %q", q.Path)
	}
	if _, ok := q.Figures[mainFigure]; !ok && q.Missing == "" {
		return fmt.Errorf("%s of %s has neither %s nor a reason why not", q.Set, q.Product, mainFigure)
	}
	k := judged{q.Set, q.Path}
	if v.quality[k] == nil {
		v.quality[k], from[k] = map[string]*result.Quality{}, run
		v.judged = append(v.judged, k)
	}
	if _, ok := v.quality[k][q.Product]; ok || from[k] != run {
		return fmt.Errorf("%s of %s, %s, is in two places", q.Set, q.Product, q.Path)
	}
	v.quality[k][q.Product] = q
	return nil
}

// arrange puts products and lines into the order of tables.
func (v *view) arrange() {
	slices.SortStableFunc(v.products, func(a, b result.Product) int {
		return cmp.Compare(rank(a.Name == loci), rank(b.Name == loci))
	})
	class := map[string]int{}
	for _, c := range bench.Classes() {
		class[string(c)] = len(class)
	}
	for _, k := range v.keys { // others as they come
		if _, ok := class[k.class]; !ok {
			class[k.class] = len(class)
		}
	}
	task, filter := tasks(), filters()
	slices.SortStableFunc(v.keys, func(a, b key) int {
		return cmp.Or(
			cmp.Compare(slices.Index(task, a.task), slices.Index(task, b.task)),
			cmp.Compare(a.data, b.data),
			cmp.Compare(a.records, b.records),
			cmp.Compare(class[a.class], class[b.class]),
			cmp.Compare(slices.Index(filter, a.filter), slices.Index(filter, b.filter)))
	})
}

func rank(first bool) int {
	if first {
		return 0
	}
	return 1
}

// tasks gives every task in the order of the page.
func tasks() []string {
	return []string{
		result.TaskSingle, result.TaskVisible, result.TaskBatch, result.TaskFinish, result.TaskUpdate, result.TaskDelete,
		result.TaskText, result.TaskVector, result.TaskHybrid, result.TaskOpen, result.TaskMemory, result.TaskDisk,
		result.TaskGraph, result.TaskNear, result.TaskPath, result.TaskRead, result.TaskWrite, result.TaskTenants,
	}
}

// filters gives every filter, the widest first.
func filters() []string { return []string{"none", "10 %", "1 %", "0.1 %"} }

// lacks says why a product has nothing to show in a line: in plain words what it
// has none of, else that it was not asked.
func (v *view) lacks(p *result.Product, k key) string {
	text := k.task == result.TaskText || k.data == result.DataTexts
	vector := k.task == result.TaskVector || k.data == result.DataVectors
	both := k.data == "" && slices.Contains([]string{
		result.TaskSingle, result.TaskVisible, result.TaskBatch, result.TaskFinish, result.TaskUpdate, result.TaskDelete,
		result.TaskOpen, result.TaskMemory, result.TaskDisk, result.TaskRead, result.TaskWrite,
	}, k.task)
	graph := slices.Contains([]string{result.TaskGraph, result.TaskNear, result.TaskPath}, k.task)
	switch {
	case (text || both) && !p.Text:
		return "no ranked search in text of its own"
	case (vector || both) && !p.Vector:
		return "no vectors"
	case k.task == result.TaskHybrid && !p.Hybrid:
		return "no search of its own in text and vectors at once"
	case graph && !p.Graph:
		return "no graph"
	default:
		return "not asked"
	}
}

// paths gives the ways to search of which the quality is judged.
func paths() []string { return []string{"text", "vector", "hybrid"} }

// find gives the lines of tasks that satisfy a condition; nil: all.
func (v *view) find(ok func(k key) bool, tasks ...string) []key {
	var out []key
	for _, k := range v.keys {
		if slices.Contains(tasks, k.task) && (ok == nil || ok(k)) {
			out = append(out, k)
		}
	}
	return out
}

// row gives a product's row of a line if it has figures, else nil.
func (v *view) row(k key, product string) *result.Row {
	if r := v.rows[k][product]; r != nil && r.Missing == "" {
		return r
	}
	return nil
}

// sizes gives the numbers of records of lines, ascending.
func sizes(keys []key) []int {
	var out []int
	for _, k := range keys {
		out = append(out, k.records)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// usual is the size that is shown first, where it was run.
const usual = 100_000

// mainSize gives the size to show first: the usual one, else the largest.
func mainSize(sizes []int) int {
	if slices.Contains(sizes, usual) {
		return usual
	}
	if len(sizes) == 0 {
		return 0
	}
	return sizes[len(sizes)-1]
}

// peers gives the names of all products but Loci that satisfy a condition; nil:
// all.
func (v *view) peers(ok func(p result.Product) bool) []string {
	var out []string
	for _, p := range v.products {
		if p.Name != loci && (ok == nil || ok(p)) {
			out = append(out, p.Name)
		}
	}
	return out
}

// aside says why a row is not the same work as the others of its line, "" when it
// is: a write that is not on the disk when it returned, vectors below the recall,
// wrong answers.
func (v *view) aside(r *result.Row) string {
	switch r.Task {
	case result.TaskSingle, result.TaskVisible, result.TaskBatch, result.TaskUpdate, result.TaskDelete, result.TaskWrite, result.TaskGraph:
		if p := v.product(r.Product); p.Durable != "synced" {
			return p.Durable
		}
	case result.TaskVector:
		if r.Recall < enough {
			return fmt.Sprintf("recall %.3f", r.Recall)
		}
	case result.TaskNear, result.TaskPath:
		if r.Agreement > 0 && r.Agreement < 1 {
			return fmt.Sprintf("%.1f %% of the answers right", 100*r.Agreement)
		}
	}
	return ""
}
