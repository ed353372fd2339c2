package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/bench/peers/result"
)

// records writes a number of records.
func records(n int) string { return count(float64(n)) + " records" }

// bySize makes a part for every size: the usual one open, the others folded.
func bySize(keys []key, part func(keys []key) string) string {
	of := func(n int) []key {
		return slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return k.records != n })
	}
	all := sizes(keys)
	first := mainSize(all)
	var b strings.Builder
	if first > 0 {
		b.WriteString(titled(records(first), part(of(first))))
	}
	for _, n := range all {
		if n != first {
			b.WriteString(folded(records(n), part(of(n))))
		}
	}
	return b.String()
}

// called says what a line is where a class or data are of their own.
func called(k key, name string) string {
	for _, s := range []string{k.class, k.data} {
		if s != "" {
			name += ", " + s
		}
	}
	return name
}

func productsBlock(v *view) string {
	yes := func(ok bool) string {
		if ok {
			return "yes"
		}
		return "-"
	}
	var t table
	t.left = 9
	t.row([]string{"", "version", "what it is", "a returned write is", "text", "vectors", "hybrid", "filter", "graph"})
	for _, p := range v.products {
		version := plain(p.Version)
		if p.Name == loci {
			version = "the run's commit"
		}
		t.row([]string{p.Name, version, kinds()[p.Name], p.Durable, yes(p.Text), yes(p.Vector), yes(p.Hybrid), yes(p.Filter), yes(p.Graph)})
	}
	return t.String()
}

// kinds says in a word what the known products are.
func kinds() map[string]string {
	return map[string]string{
		loci:                    "memory for agents, embedded or served; Go",
		pMemory:                 "memory for agents, embedded; Python",
		"chromadb":              "vector database, embedded; Rust below Python",
		"lancedb":               "columnar vector database, embedded; Rust below Python",
		sqliteVec:               "SQLite with its full text and a vector extension; C",
		tantivy:                 "full-text library; Rust below Python",
		"qdrant-client (local)": "the client's local mode for tests and small data; Python",
		hnswlib:                 "library of a vector graph; C++",
		usearch:                 "library of a vector graph; C++",
		"faiss":                 "library of vector indexes; C++",
		"mem0ai":                "memory for agents above a vector store; Python",
	}
}

func settingsBlock(v *view) string {
	var b strings.Builder
	for _, p := range v.products {
		if p.Version == "" {
			fmt.Fprintf(&b, "- **%s** took no part: %s.\n", p.Name, plain(strings.Join(p.Missing, "; ")))
			continue
		}
		fmt.Fprintf(&b, "- **%s**: %s", p.Name, strings.TrimSuffix(prose(p.Settings), "."))
		if len(p.Missing) > 0 {
			missing := make([]string, len(p.Missing))
			for i, m := range p.Missing {
				missing[i] = prose(m)
			}
			fmt.Fprintf(&b, ". It lacks: %s", strings.Join(missing, "; "))
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// prose is plain without its limit.
func prose(s string) string {
	var b strings.Builder
	for i, word := range strings.Fields(s) {
		if i > 0 {
			b.WriteString(" ")
		}
		b.WriteString(plain(word))
	}
	return b.String()
}

func runsBlock(v *view) string {
	var b strings.Builder
	for _, r := range v.runs {
		m := r.Machine
		fmt.Fprintf(&b, "- [%s](%s/%s): %s, commit %s, seed %d; %s, %d cores, %.0f GiB, %s; %s, Python %s. `%s`\n",
			r.name, partsDir, r.name, r.Date, cmp.Or(plain(r.Commit), "unknown"), r.Seed, plain(m.Processor), m.Cores, float64(m.Memory)/(1<<30),
			plain(m.System), m.Go, m.Python, strings.ReplaceAll(r.Command, "`", "'"))
	}
	return b.String()
}

func writingBlock(v *view) string {
	keys := v.find(nil, result.TaskSingle, result.TaskVisible, result.TaskBatch, result.TaskFinish, result.TaskUpdate, result.TaskDelete)
	return bySize(keys, byStore(func(keys []key) string {
		var main, more grid
		for _, k := range keys {
			named := func(name string) string { return called(key{class: k.class}, name) }
			switch k.task {
			case result.TaskBatch:
				main.lines = append(main.lines, v.line(k, rate(), named("batches, records a second")))
				more.lines = append(more.lines, v.line(k, wallTask(), named("batches, wall")), v.line(k, cpuTask(), named("batches, CPU")))
			case result.TaskFinish:
				// What is left for this step is the product's choice: it is compared with
				// nothing by itself.
				wall, cpu := v.line(k, wallTask(), named("finishing, wall")), v.line(k, cpuTask(), named("finishing, CPU"))
				wall.plain, cpu.plain = true, true
				more.lines = append(more.lines, wall, cpu)
			default:
				name := named(k.task)
				main.lines = append(main.lines, v.line(k, p50(), name+" p50"))
				more.lines = append(more.lines, v.line(k, p95(), name+" p95"), v.line(k, p99(), name+" p99"), v.line(k, cpuCall(), name+" CPU"))
			}
		}
		return main.tall(v, durability()) + folded("p95, p99, CPU; loading in all, and what the guides do after it", more.transposed(v))
	}))
}

// byStore makes a part for each kind of store: with texts and vectors, with one of
// them alone. Those are never compared with one another.
func byStore(part func(keys []key) string) func(keys []key) string {
	return func(keys []key) string {
		var b strings.Builder
		for _, data := range datasets(keys) {
			title := "Stores of " + plain(data)
			if data == "" {
				title = "Stores of texts and vectors"
			}
			b.WriteString(titled(title, part(slices.DeleteFunc(slices.Clone(keys), func(k key) bool { return k.data != data }))))
		}
		return b.String()
	}
}

// transposed is wide for lines that have one label.
func (g grid) transposed(v *view) string {
	g.heads = []string{""}
	return g.wide(v)
}

func textBlock(v *view) string {
	keys := v.find(nil, result.TaskText)
	return bySize(keys, func(keys []key) string {
		return v.searches(keys, func(k key) []string { return []string{called(k, ""), k.filter} }, []string{"class", "filter"})
	})
}

func hybridBlock(v *view) string {
	keys := v.find(nil, result.TaskHybrid)
	return bySize(keys, func(keys []key) string {
		return v.searches(keys, func(k key) []string { return []string{called(k, "hybrid"), k.filter} }, []string{"", "filter"})
	})
}

// searches writes the p50 of lines, and folded all else that was measured.
func (v *view) searches(keys []key, labels func(k key) []string, heads []string) string {
	main := grid{heads: heads}
	for _, k := range keys {
		l := labels(k)
		l[0] = strings.TrimPrefix(l[0], ", ")
		main.lines = append(main.lines, v.line(k, p50(), l...))
	}
	return main.wide(v) + folded("p95 / p99 / CPU a call / calls", v.tails(keys, main, labels))
}

// tails writes the other figures of the lines of a grid, all in one cell.
func (v *view) tails(keys []key, g grid, labels func(k key) []string) string {
	products := g.columns(v)
	var t table
	t.left = len(g.heads)
	t.row(append(slices.Clone(g.heads), products...))
	for _, k := range keys {
		row := labels(k)
		row[0] = strings.TrimPrefix(row[0], ", ")
		for _, p := range products {
			s := "-"
			if r := v.row(k, p); r != nil {
				s = micros(r.P95) + " / " + micros(r.P99) + " / " + micros(r.CPU) + " / " + fmt.Sprint(r.Samples)
			}
			row = append(row, s)
		}
		t.row(row)
	}
	return t.String()
}

func vectorsBlock(v *view) string {
	var b strings.Builder
	for _, data := range datasets(v.find(nil, result.TaskVector)) {
		keys := v.find(func(k key) bool { return k.data == data }, result.TaskVector)
		if data == "" {
			b.WriteString(bySize(keys, v.vectors))
			continue
		}
		b.WriteString(folded("Other vectors: "+plain(data), bySize(keys, v.vectors)))
	}
	return b.String()
}

func datasets(keys []key) []string {
	var out []string
	for _, k := range keys {
		out = append(out, k.data)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// vectors writes the tables of searches by vectors of one size.
func (v *view) vectors(keys []key) string {
	var main, cpu, build grid
	for _, k := range keys {
		name := k.filter
		if k.filter == "none" {
			name = "no filter"
		}
		main.lines = append(main.lines, v.line(k, p50(), called(key{class: k.class}, name)))
		cpu.lines = append(cpu.lines, v.line(k, cpuCall(), called(key{class: k.class}, name)))
	}
	data := cmp.Or(keys[0].data, result.DataVectors)
	builds := v.find(func(k key) bool { return k.records == keys[0].records && k.data == data }, result.TaskBatch)
	for _, k := range builds {
		build.lines = append(build.lines, v.build(k, wallTask(), called(key{class: k.class}, "wall")), v.build(k, cpuTask(), called(key{class: k.class}, "CPU")))
	}
	return main.tall(v) + folded("What was reached: recall at effort, p95, p99", v.reached(keys, main)) + folded("CPU a call", cpu.tall(v)) +
		folded("Building: from the first vector to an index that is finished", build.tall(v))
}

// build is loading and what follows it, of one size and class.
func (v *view) build(k key, m metric, labels ...string) line {
	l := v.line(k, m, labels...)
	finish := k
	finish.task = result.TaskFinish
	for product, c := range l.cells {
		if p := v.product(product); !p.Vector {
			delete(l.cells, product)
			continue
		}
		if r := v.row(finish, product); r != nil && c.has {
			c.value += m.value(r)
		}
		c.aside = "" // an index is built alike, whatever a crash would leave of it
		l.cells[product] = c
	}
	return l
}

// reached writes the recall of searches, and the effort that it took.
func (v *view) reached(keys []key, g grid) string {
	var t table
	t.left = 1
	head := []string{""}
	for _, l := range g.lines {
		head = append(head, l.labels[0])
	}
	t.row(head)
	for _, p := range g.columns(v) {
		row := []string{p}
		for _, k := range keys {
			r := v.row(k, p)
			if r == nil {
				row = append(row, "-")
				continue
			}
			s := fmt.Sprintf("%.4f", r.Recall)
			if r.Effort > 0 {
				s += fmt.Sprintf(" at %d", r.Effort)
			}
			row = append(row, s+"; "+micros(r.P95)+"; "+micros(r.P99))
		}
		t.row(row)
	}
	return t.String()
}

func openBlock(v *view) string {
	return bySize(v.find(nil, result.TaskOpen), byStore(func(keys []key) string {
		var g grid
		for _, k := range keys {
			g.lines = append(g.lines, v.line(k, p50(), called(key{class: k.class}, "open to first answer")))
		}
		return g.tall(v)
	}))
}

func memoryBlock(v *view) string {
	return bySize(v.find(nil, result.TaskMemory, result.TaskDisk), byStore(func(keys []key) string {
		var g grid
		for _, k := range keys {
			named := func(name string) string { return called(key{class: k.class}, name) }
			if k.task == result.TaskDisk {
				g.lines = append(g.lines, v.line(k, size(), named("disk")))
				continue
			}
			explain := func(m metric, name string) line {
				l := v.line(k, m, named(name))
				l.plain = true
				return l
			}
			g.lines = append(g.lines,
				v.line(k, size(), named("resident")),
				explain(idle(), "of it before opening"),
				v.line(k, above(), named("above that")),
				explain(anonymous(), "resident, of its own"),
				explain(mapped(), "resident, pages of files"))
		}
		return g.tall(v)
	}))
}

func idle() metric {
	return metric{name: "idle", value: func(r *result.Row) float64 { return float64(r.Idle) }, write: megabytes}
}
func above() metric {
	return metric{name: "above idle", value: func(r *result.Row) float64 { return float64(max(0, r.Bytes-r.Idle)) }, write: megabytes}
}
func anonymous() metric {
	return metric{name: "anonymous", value: func(r *result.Row) float64 { return float64(r.Anonymous) }, write: megabytes}
}
func mapped() metric {
	return metric{name: "mapped", value: func(r *result.Row) float64 { return float64(max(0, r.Bytes-r.Anonymous)) }, write: megabytes}
}

func growthBlock(v *view) string {
	keys := v.find(func(k key) bool { return k.data == "" }, result.TaskText, result.TaskVector, result.TaskHybrid)
	all := sizes(keys)
	var b strings.Builder
	for i := len(all) - 1; i > 0; i-- {
		from, to := all[i-1], all[i]
		var t table
		t.left = 2
		products := v.growing(keys, from, to)
		t.row(append([]string{"", "filter"}, products...))
		for _, k := range keys {
			if k.records != to {
				continue
			}
			row := []string{called(k, k.task), k.filter}
			any := false
			for _, p := range products {
				cpu, wall := v.growth(k, from, p)
				if cpu == 0 && wall == 0 {
					row = append(row, "-")
					continue
				}
				any = true
				row = append(row, factor(cpu)+" / "+factor(wall))
			}
			if any {
				t.row(row)
			}
		}
		if len(t.rows) == 1 {
			continue
		}
		title := fmt.Sprintf("%s to %s: CPU / p50", count(float64(from)), records(to))
		if i == len(all)-1 {
			b.WriteString(titled(title, t.String()))
		} else {
			b.WriteString(folded(title, t.String()))
		}
	}
	return b.String()
}

// growing gives the products that were measured at both sizes.
func (v *view) growing(keys []key, from, to int) []string {
	var out []string
	for _, p := range v.products {
		if slices.ContainsFunc(keys, func(k key) bool {
			_, wall := v.growth(k, from, p.Name)
			return k.records == to && wall > 0
		}) {
			out = append(out, p.Name)
		}
	}
	return out
}

// growth gives how many times the CPU time and the p50 of a line grew since a
// smaller size, 0 where that was not measured.
func (v *view) growth(k key, from int, product string) (cpu, wall float64) {
	small := k
	small.records = from
	a, b := v.row(small, product), v.row(k, product)
	if a == nil || b == nil {
		return 0, 0
	}
	if a.CPU > 0 {
		cpu = b.CPU / a.CPU
	}
	if a.P50 > 0 {
		wall = b.P50 / a.P50
	}
	return cpu, wall
}

func graphBlock(v *view) string {
	return bySize(v.find(nil, result.TaskGraph, result.TaskNear, result.TaskPath), func(keys []key) string {
		var main, load grid
		var asked []key
		for _, k := range keys {
			if k.task == result.TaskGraph {
				load.lines = append(load.lines, v.line(k, rate(), called(k, "relations loaded a second")), v.line(k, cpuTask(), called(k, "CPU of loading")))
				continue
			}
			main.lines, asked = append(main.lines, v.line(k, p50(), called(k, k.task))), append(asked, k)
		}
		main.heads = []string{""}
		return main.wide(v) + folded("p95 / p99 / CPU a call / calls", v.tails(asked, main, func(k key) []string { return []string{called(k, k.task)} })) +
			folded("Loading", load.tall(v, durability()))
	})
}

func concurrentBlock(v *view) string {
	return bySize(v.find(nil, result.TaskRead, result.TaskWrite), byStore(func(keys []key) string {
		var main, more grid
		for _, k := range keys {
			name := called(key{class: k.class}, k.task)
			main.lines = append(main.lines, v.line(k, p50(), name+" p50"), v.line(k, rate(), name+", a second"))
			more.lines = append(more.lines, v.line(k, p95(), name+" p95"), v.line(k, p99(), name+" p99"), v.line(k, cpuCall(), name+" CPU"))
		}
		return main.tall(v, durability()) + folded("p95, p99, CPU", more.transposed(v))
	}))
}

func tenantsBlock(v *view) string {
	keys := v.find(nil, result.TaskTenants)
	var t table
	t.left = 2
	t.row([]string{"", "", "records", "p50", "p95", "p99", "CPU a call", "in all", "CPU in all", "bytes", "note"})
	or := func(v float64, write func(float64) string) string {
		if v == 0 {
			return ""
		}
		return write(v)
	}
	for _, k := range keys {
		for _, p := range v.products {
			if r := v.row(k, p.Name); r != nil {
				t.row([]string{p.Name, called(key{data: k.data}, k.class), count(float64(k.records)), or(r.P50, micros), or(r.P95, micros), or(r.P99, micros),
					or(r.CPU, micros), or(1e6*r.Seconds, micros), or(1e6*r.CPUSecs, micros), or(float64(r.Bytes), megabytes), plain(r.Note)})
			}
		}
	}
	if len(t.rows) == 1 {
		return ""
	}
	return t.String()
}
