package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/loci-memory/loci/bench/peers/result"
)

// Verdicts.
const (
	met         = "met"
	missed      = "**missed**"
	notMeasured = "not measured"
)

// A verdict is what the results say of a target.
type verdict struct {
	records int // 0: it is of no size
	status  string
	figures string
}

// A target is something that Loci is to reach beside its peers, as it was set
// before the runs.
type target struct {
	text  string
	judge func(v *view) []verdict
}

// targets gives all of them. What each says in words is what its judge computes.
func targets() []target {
	all := func(key) bool { return true }
	open := func(k key) bool { return k.filter == "none" }
	filtered := func(k key) bool { return k.filter != "none" }
	return []target{
		{"Text: p50 at least 3 times better than every engine on FTS5, in every class", func(v *view) []verdict {
			return v.perSize(open, p50(), []string{sqliteVec, pMemory}, 3, result.TaskText)
		}},
		{"Text: p50 at most 1.5 times tantivy's in the class in which tantivy is best against Loci", func(v *view) []verdict {
			return v.perSize(open, p50(), []string{tantivy}, 1/1.5, result.TaskText)
		}},
		{"Text: p50 ahead of tantivy in most classes", aheadInMost},
		{"Vectors at recall 0.99: p50 at 100,000 at most 1.1 times that of hnswlib and of usearch", func(v *view) []verdict {
			return v.atSize(100_000, open, p50(), []string{hnswlib, usearch}, 1/1.1, result.TaskVector)
		}},
		{"Vectors at recall 0.99: p50 at 1,000,000 at most twice that of hnswlib and of usearch", func(v *view) []verdict {
			return v.atSize(1_000_000, open, p50(), []string{hnswlib, usearch}, 0.5, result.TaskVector)
		}},
		{"Vectors at recall 0.99: p50 ahead of hnswlib and usearch under every filter", func(v *view) []verdict {
			return v.perSize(filtered, p50(), []string{hnswlib, usearch}, 1, result.TaskVector)
		}},
		{"Vectors: index built with less CPU than hnswlib and usearch take", aheadInBuilding},
		{"Hybrid: p50 ahead of every peer that is durable, filterable and hybrid, without a filter and under each", func(v *view) []verdict {
			return v.perSize(all, p50(), v.whole(), 1, result.TaskHybrid)
		}},
		{"Search under a filter, by text, vectors and both: p50 ahead of these peers", func(v *view) []verdict {
			return v.perSize(filtered, p50(), v.whole(), 1, result.TaskText, result.TaskVector, result.TaskHybrid)
		}},
		{"Write to searchable: p50 ahead of these peers, those that do not sync among them", func(v *view) []verdict {
			return v.perSize(all, p50(), v.whole(), 1, result.TaskVisible)
		}},
		{"A single durable write: p50 ahead of these peers as far as they sync", func(v *view) []verdict {
			return v.perSize(all, p50(), v.whole(), 1, result.TaskSingle)
		}},
		{"Quality: hybrid search ahead of these peers on every set", func(v *view) []verdict {
			return v.qualityVerdict(v.whole(), []string{"hybrid"}, above0)
		}},
		{"Quality: not below any peer on any set with the same embeddings, by vectors and hybrid (0.001 counts as equal)", func(v *view) []verdict {
			return v.qualityVerdict(v.peers(nil), []string{"vector", "hybrid"}, notBelow)
		}},
		{"Quality: not below any peer on any set by text (likewise)", func(v *view) []verdict {
			return v.qualityVerdict(v.peers(nil), []string{"text"}, notBelow)
		}},
		{"Quality: above p-memory's own text search on every set", func(v *view) []verdict {
			return v.qualityVerdict([]string{pMemory}, []string{"text"}, above0)
		}},
		{"Open to first answer at 100,000: p50 at most 25 ms", opensSoon},
		{"Growth from 100,000 to 1,000,000: CPU of text search at most 10 times, in every class", func(v *view) []verdict {
			return v.growsAtMost(10, result.TaskText)
		}},
		{"Growth from 100,000 to 1,000,000: CPU of vector search at most 6 times, under every filter", func(v *view) []verdict {
			return v.growsAtMost(6, result.TaskVector)
		}},
	}
}

func verdictsBlock(v *view) string {
	var t table
	t.left = 4
	t.row([]string{"target", "records", "", "figures"})
	for _, target := range targets() {
		list := target.judge(v)
		if len(list) == 0 {
			list = []verdict{{status: notMeasured}}
		}
		for i, one := range list {
			text, n := target.text, ""
			if i > 0 {
				text = ""
			}
			if one.records > 0 {
				n = count(float64(one.records))
			}
			t.row([]string{text, n, one.status, one.figures})
		}
	}
	return t.String()
}

// whole gives the peers that keep what was written, filter and search hybrid: the
// ones that do what Loci does. Those that write without a sync are among them.
func (v *view) whole() []string {
	return v.peers(func(p result.Product) bool {
		return (p.Durable == "synced" || p.Durable == "written") && p.Filter && p.Hybrid
	})
}

// A duel is one figure of Loci and one of a peer.
type duel struct {
	k      key
	peer   string
	times  float64 // how many times worse the peer's is; above 1 Loci is ahead
	ours   string
	theirs string
}

func (d duel) String() string {
	return fmt.Sprintf("%s: %s against %s of %s, %s", spot(d.k), d.ours, d.theirs, d.peer, factor(d.times))
}

// spot names a line within its size.
func spot(k key) string {
	s := k.task
	for _, part := range []string{k.class, k.filter} {
		if part != "" && part != "none" {
			s += "; " + part
		}
	}
	return s
}

// duels compares Loci with peers in lines. A peer without the figure, or with one
// that is not the same work, is not compared; a figure that Loci lacks or that is
// not the same work, where a peer has one, counts as lost and has no factor.
func duels(lines []line, keys []key, peers []string) []duel {
	var out []duel
	for i, l := range lines {
		ours := l.cells[loci]
		for _, p := range peers {
			theirs := l.cells[p]
			if !theirs.has || theirs.aside != "" {
				continue
			}
			d := duel{k: keys[i], peer: p, theirs: l.metric.write(theirs.value)}
			switch {
			case !ours.has:
				d.ours = "nothing"
			case ours.aside != "":
				d.ours = l.metric.write(ours.value) + " (" + ours.aside + ")"
			default:
				d.ours, d.times = l.metric.write(ours.value), l.against(p)
			}
			out = append(out, d)
		}
	}
	slices.SortStableFunc(out, func(a, b duel) int {
		switch {
		case a.times < b.times:
			return -1
		case a.times > b.times:
			return 1
		}
		return 0
	})
	return out
}

// perSize judges lines of the corpus, each size apart: Loci is to be at least so
// many times better than each of the peers in every line; for 1, strictly better.
func (v *view) perSize(ok func(key) bool, m metric, peers []string, times float64, tasks ...string) []verdict {
	var out []verdict
	for _, n := range sizes(v.find(nil, tasks...)) {
		out = append(out, v.atSize(n, ok, m, peers, times, tasks...)...)
	}
	return out
}

// atSize is perSize for one size.
func (v *view) atSize(n int, ok func(key) bool, m metric, peers []string, times float64, tasks ...string) []verdict {
	keys := v.find(func(k key) bool { return k.records == n && k.data == "" && ok(k) }, tasks...)
	lines := make([]line, len(keys))
	for i, k := range keys {
		lines[i] = v.line(k, m)
		if k.task == result.TaskVisible {
			lines[i].withWritten()
		}
	}
	return judge(n, duels(lines, keys, peers), times)
}

// withWritten counts peers that write without a sync as doing the same work, which
// is the harder comparison for Loci.
func (l line) withWritten() {
	for product, c := range l.cells {
		if c.aside == "written" {
			c.aside = ""
			l.cells[product] = c
		}
	}
}

// judge gives the verdict of duels, the hardest of which come first.
func judge(n int, all []duel, times float64) []verdict {
	if len(all) == 0 {
		return nil
	}
	var lost []duel
	for _, d := range all {
		if d.times < times || times == 1 && d.times == 1 {
			lost = append(lost, d)
		}
	}
	if len(lost) == 0 {
		return []verdict{{n, met, fmt.Sprintf("in %d of %d; the closest: %s", len(all), len(all), all[0])}}
	}
	shown := make([]string, 0, 3)
	for _, d := range lost[:min(3, len(lost))] {
		shown = append(shown, d.String())
	}
	return []verdict{{n, missed, fmt.Sprintf("reached in %d of %d; the farthest off: %s", len(all)-len(lost), len(all), strings.Join(shown, "; "))}}
}

func aheadInMost(v *view) []verdict {
	var out []verdict
	keys := v.find(func(k key) bool { return k.data == "" && k.filter == "none" }, result.TaskText)
	for _, n := range sizes(keys) {
		ahead, all := 0, 0
		for _, k := range keys {
			if k.records != n {
				continue
			}
			for _, d := range duels([]line{v.line(k, p50())}, []key{k}, []string{tantivy}) {
				all++
				if d.times > 1 {
					ahead++
				}
			}
		}
		if all == 0 {
			continue
		}
		status := missed
		if 2*ahead > all {
			status = met
		}
		out = append(out, verdict{n, status, fmt.Sprintf("in %d of %d", ahead, all)})
	}
	return out
}

func aheadInBuilding(v *view) []verdict {
	var out []verdict
	keys := v.find(func(k key) bool { return k.data == result.DataVectors }, result.TaskBatch)
	for _, n := range sizes(keys) {
		var lines []line
		var of []key
		for _, k := range keys {
			if k.records == n {
				lines, of = append(lines, v.build(k, cpuTask())), append(of, k)
			}
		}
		out = append(out, judge(n, duels(lines, of, []string{hnswlib, usearch}), 1)...)
	}
	return out
}

func opensSoon(v *view) []verdict {
	const limit = 25_000 // microseconds
	var out []verdict
	for _, k := range v.find(func(k key) bool { return k.records == 100_000 && k.data == "" && k.class == "" }, result.TaskOpen) {
		switch r := v.rows[k][loci]; {
		case r == nil:
		case r.Missing != "":
			out = append(out, verdict{k.records, missed, plain(r.Missing)})
		case r.P50 <= limit:
			out = append(out, verdict{k.records, met, micros(r.P50)})
		default:
			out = append(out, verdict{k.records, missed, micros(r.P50)})
		}
	}
	return out
}

func (v *view) growsAtMost(times float64, task string) []verdict {
	const from, to = 100_000, 1_000_000
	worst, all, over := 0.0, 0, 0
	var where key
	for _, k := range v.find(func(k key) bool { return k.records == to && k.data == "" }, task) {
		cpu, _ := v.growth(k, from, loci)
		if r := v.rows[k][loci]; r != nil && r.Missing != "" {
			cpu = math.Inf(1) // it could not do at all what it was to do
		}
		if cpu == 0 {
			continue
		}
		all++
		if cpu > times {
			over++
		}
		if cpu > worst {
			worst, where = cpu, k
		}
	}
	if all == 0 {
		return nil
	}
	status := met
	if over > 0 {
		status = missed
	}
	return []verdict{{to, status, fmt.Sprintf("in %d of %d; the most: %s (%s)", all-over, all, factor(worst), spot(where))}}
}

func above0(ours, theirs float64) bool   { return ours > theirs }
func notBelow(ours, theirs float64) bool { return ours > theirs-same }

// qualityVerdict judges every set of paths against peers.
func (v *view) qualityVerdict(peers, paths []string, ok func(ours, theirs float64) bool) []verdict {
	all, kept := 0, 0
	var lost []string
	least, closest := 0.0, ""
	for _, j := range v.judged {
		if !slices.Contains(paths, j.path) {
			continue
		}
		l := v.qualityLine(j, mainFigure)
		ours := l.cells[loci]
		for _, p := range peers {
			theirs := l.cells[p]
			if !theirs.has {
				continue
			}
			all++
			text := fmt.Sprintf("%s, %s: %.4f against %.4f of %s", j.set, j.path, ours.value, theirs.value, p)
			if !ours.has {
				text = fmt.Sprintf("%s, %s: nothing against %.4f of %s", j.set, j.path, theirs.value, p)
			}
			if !ours.has || !ok(ours.value, theirs.value) {
				lost = append(lost, text)
				continue
			}
			kept++
			if d := ours.value - theirs.value; closest == "" || d < least {
				least, closest = d, text
			}
		}
	}
	switch {
	case all == 0:
		return nil
	case len(lost) > 0:
		return []verdict{{0, missed, fmt.Sprintf("reached in %d of %d; not: %s", kept, all, strings.Join(lost, "; "))}}
	default:
		return []verdict{{0, met, fmt.Sprintf("in %d of %d; the closest: %s", all, all, closest)}}
	}
}
