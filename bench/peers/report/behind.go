package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/bench/peers/result"
)

// A gap is a figure in which a peer is ahead of Loci by more than a tenth, over
// the lines of a task.
type gap struct {
	task, peer, metric string
	ahead, all         int     // lines
	times              float64 // by which the peer is ahead at the most
	where              string
	remark             string // why it is not the same work there
}

// label is what the reason for a gap begins with on the page.
func (g gap) label() string { return "**" + g.task + ", " + g.peer + "**" }

// gaps gives all of them. Peers whose work is not the same are among them, with
// what differs: that is a reason to be read and none to be left out.
func (v *view) gaps() []gap {
	var out []gap
	add := func(task, peer, metric, where string, times float64, aside string) {
		i := slices.IndexFunc(out, func(g gap) bool { return g.task == task && g.peer == peer && g.metric == metric })
		if i < 0 {
			i = len(out)
			out = append(out, gap{task: task, peer: peer, metric: metric})
		}
		g := &out[i]
		g.all++
		if times <= 1.1 {
			return
		}
		g.ahead++
		if times > g.times {
			g.times, g.where, g.remark = times, where, aside
		}
	}
	for _, k := range v.keys {
		for _, m := range comparedBy(k.task) {
			l := v.line(k, m)
			for _, p := range v.peers(nil) {
				f := l.against(p)
				if f == 0 {
					continue
				}
				add(k.task, p, m.name, place(k)+": "+l.metric.write(l.cells[p].value)+" against "+l.metric.write(l.cells[loci].value), 1/f, l.cells[p].aside)
			}
		}
	}
	for _, j := range v.judged {
		l := v.qualityLine(j, mainFigure)
		ours := l.cells[loci]
		for _, p := range v.peers(nil) {
			theirs := l.cells[p]
			if !ours.has || !theirs.has {
				continue
			}
			times := 1.0
			if theirs.value > ours.value+same { // of quality any difference counts
				times = max(1.1001, theirs.value/max(ours.value, 1e-9))
			}
			add("quality of "+j.path+" search", p, mainFigure, fmt.Sprintf("%s: %.4f against %.4f", j.set, theirs.value, ours.value), times, "")
		}
	}
	return slices.DeleteFunc(out, func(g gap) bool { return g.ahead == 0 })
}

// comparedBy gives the figures of a task in which being behind counts.
func comparedBy(task string) []metric {
	switch task {
	case result.TaskBatch, result.TaskGraph:
		return []metric{rate(), cpuTask()}
	case result.TaskMemory, result.TaskDisk:
		return []metric{size()}
	case result.TaskFinish, result.TaskTenants: // a part of building; Loci by itself
		return nil
	case result.TaskRead, result.TaskWrite:
		return []metric{p50(), cpuCall(), rate()}
	default:
		return []metric{p50(), cpuCall()}
	}
}

// place says which line a figure is of.
func place(k key) string {
	parts := []string{}
	for _, s := range []string{k.class, k.data} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	if k.filter != "none" {
		parts = append(parts, k.filter)
	}
	return strings.Join(append(parts, records(k.records)), ", ")
}

func behindBlock(v *view) string {
	all := v.gaps()
	if len(all) == 0 {
		return "Nowhere.\n"
	}
	var t table
	t.left = 7
	t.row([]string{"", "peer", "figure", "ahead in", "at the most", "where", "not the same work"})
	for _, g := range all {
		times := factor(g.times)
		if strings.HasPrefix(g.task, "quality") {
			times = ""
		}
		t.row([]string{g.task, g.peer, g.metric, fmt.Sprintf("%d of %d", g.ahead, g.all), times, g.where, g.remark})
	}
	return t.String()
}

// reasonsHeading is the part of the page in which the reasons are.
const reasonsHeading = "## Where a peer is ahead, and why\n"

// unexplained compares the gaps with the reasons on the page: those that have
// none, and reasons whose gap is gone. A reason is a point of the list under its
// heading and begins with the gap's label and a colon.
func (v *view) unexplained(page string) (missing, stale []string) {
	_, part, _ := strings.Cut(page, reasonsHeading)
	if i := strings.Index(part, "\n## "); i >= 0 {
		part = part[:i]
	}
	var given []string
	for l := range strings.Lines(part) {
		if label, _, ok := strings.Cut(l, ":"); ok && strings.HasPrefix(label, "- **") {
			given = append(given, strings.TrimPrefix(label, "- "))
		}
	}
	var wanted []string
	for _, g := range v.gaps() {
		if !slices.Contains(wanted, g.label()) {
			wanted = append(wanted, g.label())
		}
	}
	for _, l := range wanted {
		if !slices.Contains(given, l) {
			missing = append(missing, l)
		}
	}
	for _, l := range given {
		if !slices.Contains(wanted, l) {
			stale = append(stale, l)
		}
	}
	return missing, stale
}
