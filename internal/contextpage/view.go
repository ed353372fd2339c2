package contextpage

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/pager"
)

// view is what the template reads.
type view struct {
	Model       *pager.Dashboard
	Policy      string // for the content security of the page
	Title       string
	At          string
	Unit        phrase
	Empty       bool
	Style       template.HTML
	Script      template.HTML
	Data, Texts template.HTML
	Pressure    template.HTML
	Warnings    []template.HTML
	Simulated   template.HTML
	Bar         bar
	WorkingCost int
	Free        int
	Tiles       []tile
	Tiers       []tier
	Facts       []fact
}

// bar is the budget bar; its figures are percentages of its width.
type bar struct {
	Core, Working float64
	Marks         []mark
	Title, Desc   string
}

// mark is a place on the budget bar.
type mark struct {
	Pct    int
	Keys   []string // of the texts that name it
	Anchor string   // of the label, so that none is cut off at an end
}

// tile is a key figure.
type tile struct {
	Key   string
	Value string
	Note  template.HTML
}

type tier struct {
	Name  string
	Share pager.TierShare
	Pct   float64 // of all content
}

type fact struct {
	Key   string
	Value template.HTML
}

// writer collects texts; the first error stays.
type writer struct {
	words wording
	err   error
}

func (w *writer) html(key string, values ...any) template.HTML {
	out, err := w.words.both(key, values...)
	w.keep(err)
	return out
}

func (w *writer) phrase(key string, values ...any) phrase {
	out, err := w.words.phrase(key, values...)
	w.keep(err)
	return out
}

func (w *writer) keep(err error) {
	if w.err == nil {
		w.err = err
	}
}

func newView(m *pager.Dashboard) (*view, error) {
	all, err := words()
	if err != nil {
		return nil, err
	}
	w := &writer{words: all}
	now := &m.Now
	v := &view{
		Model: m, Title: strings.Join(m.Scope, " / ") + " · " + all["title"][0], At: instant(m.AtUS), Unit: w.phrase("unit." + string(now.Unit)),
		Empty:       len(m.Pages) == 0 && len(m.Renders) == 0 && m.PagesLeftOut == 0,
		WorkingCost: max(now.Cost-now.CoreCost, 0), Free: max(now.Budget-now.Cost, 0),
	}
	v.Pressure = w.pressure(now.Pressure)
	for i := range m.Warnings {
		v.Warnings = append(v.Warnings, w.warning(&m.Warnings[i]))
	}
	if n := m.Usage.Totals.Simulated.Calls; n > 0 {
		v.Simulated = w.html("usage.simulated", "n", number(n), "calls", number(n+m.Usage.Totals.Provider.Calls))
	}
	v.Bar = w.bar(m)
	v.Tiles = w.tiles(m)
	v.Tiers = tiers(&m.Composition)
	v.Facts = w.facts(&m.Replacement)
	return v, w.err
}

func (w *writer) pressure(level string) template.HTML {
	kind := map[string]string{"low": "good", "advisory": "warn", "high": "bad", "hard": "bad"}[level]
	return template.HTML(`<span class="badge ` + kind + `">` + string(w.html("pressure."+level)) + `</span>`)
}

// warning puts a warning into both languages. One that is new to this page is
// shown as it came.
func (w *writer) warning(warning *pager.Warning) template.HTML {
	key := "warning." + warning.Code
	if warning.Code == "fold" && warning.Value == 0 {
		key += ".cold"
	}
	if _, known := w.words[key]; !known {
		return template.HTML(`<span lang="en">` + escape(warning.Message) + `</span>`)
	}
	return w.html(key, "value", number(warning.Value), "limit", number(warning.Limit))
}

// advisory is the share of the budget from which a host does well to think of
// room.
const advisory = 70

func (w *writer) bar(m *pager.Dashboard) bar {
	now, policy := &m.Now, &m.Replacement.Policy
	b := bar{Title: w.words["budget"][0] + " / " + w.words["budget"][1]}
	if now.Budget > 0 {
		b.Core = percentOf(now.CoreCost, now.Budget)
		b.Working = min(percentOf(max(now.Cost-now.CoreCost, 0), now.Budget), 100-b.Core)
	}
	for _, at := range []struct {
		pct int
		key string
	}{{policy.TargetPct, "mark.target"}, {advisory, "mark.advisory"}, {policy.ThresholdPct, "mark.threshold"}, {policy.HardPct, "mark.hard"}} {
		i := slices.IndexFunc(b.Marks, func(k mark) bool { return k.Pct == at.pct })
		if i < 0 {
			i, b.Marks = len(b.Marks), append(b.Marks, mark{Pct: at.pct})
		}
		b.Marks[i].Keys = append(b.Marks[i].Keys, at.key)
	}
	slices.SortFunc(b.Marks, func(a, c mark) int { return a.Pct - c.Pct })
	var names [2][]string
	for i := range b.Marks {
		k := &b.Marks[i]
		k.Anchor = "middle"
		if k.Pct > 96 {
			k.Anchor = "end"
		}
		for _, key := range k.Keys {
			name := w.phrase(key)
			for j := range names {
				names[j] = append(names[j], fmt.Sprintf("%d%% %s", k.Pct, name[j]))
			}
		}
	}
	unit := w.phrase("unit." + string(now.Unit))
	var desc [2]string
	for j := range desc {
		p := w.phrase("budget.desc", "core", number(now.CoreCost), "working", number(max(now.Cost-now.CoreCost, 0)),
			"free", number(max(now.Budget-now.Cost, 0)), "budget", number(now.Budget), "unit", unit[j],
			"marks", strings.Join(names[j], [2]string{", ", "、"}[j]))
		desc[j] = p[j]
	}
	b.Desc = desc[0] + " " + desc[1]
	return b
}

func (w *writer) tiles(m *pager.Dashboard) []tile {
	now, total := &m.Now, &m.Totals
	published := w.html("note.published")
	switch {
	case now.Generation == 0:
		published = w.html("note.never")
	case now.Unpublished:
		published = w.html("note.unpublished")
	}
	out := []tile{
		{"figure.stable", number(now.StablePrefixBytes), w.html("note.of_text", "n", number(now.TextBytes))},
		{"figure.generation", number(now.Generation), published},
		{"figure.intact", rate(total.IntactShare), w.html("note.changes", "n", number(max(total.Renders-1, 0)))},
		{"figure.invalidated", number(total.InvalidatedBytes), w.html("note.bytes")},
		{"figure.rewritten", number(total.RewrittenBytes), w.html("note.bytes")},
		{"figure.evictions", number(total.Evictions), w.html("note.evicted")},
		{"figure.faults", number(total.Faults), w.html("note.faults")},
	}
	// What nobody billed never stands where a provider's figure would.
	usage := &m.Usage.Totals
	hits := tile{"figure.hits", rate(usage.Provider.HitRate), w.html("note.none")}
	if usage.Provider.Calls > 0 {
		hits.Note = w.html("note.calls", "n", number(usage.Provider.BilledInput), "calls", number(usage.Provider.Calls))
	}
	if usage.Simulated.Calls > 0 {
		hits.Note += ` <span class="badge simulated">` + w.html("note.simulated", "rate", rate(usage.Simulated.HitRate)) + `</span>`
	}
	return append(out, hits)
}

func tiers(c *pager.Composition) []tier {
	out := []tier{{Name: "core", Share: c.Core}, {Name: "working", Share: c.Working}, {Name: "archive", Share: c.Archive}}
	if all := c.Core.Bytes + c.Working.Bytes + c.Archive.Bytes; all > 0 {
		for i := range out {
			out[i].Pct = percentOf(out[i].Share.Bytes, all)
		}
	}
	return out
}

func (w *writer) facts(r *pager.Replacement) []fact {
	p, st := &r.Policy, &r.State
	provider := w.html("policy.provider.none")
	if p.Provider != "" {
		provider = w.html("policy.provider.value", "provider", p.Provider, "pct", p.HardPct)
	}
	last := w.html("policy.last.none")
	if run := st.Last; run != nil {
		last = w.html("policy.last.value", "time", instant(run.AtUS), "reason", w.phrase("reason."+run.Reason), "before", number(run.Before),
			"after", number(run.After), "target", number(run.Target), "evicted", number(run.Evicted))
		if !run.Reached {
			last += ` <span class="badge warn">` + w.html("policy.last.missed") + `</span>`
		}
	}
	return []fact{
		{"policy.mode", w.html("mode."+p.Mode, "n", p.EveryN, "pct", p.ThresholdPct)},
		{"policy.target", w.html("policy.target.value", "pct", p.TargetPct)},
		{"policy.strategy", w.html("strategy." + p.Strategy)},
		{"policy.keep", w.html("policy.keep.value", "n", p.KeepRecent)},
		{"policy.provider", provider},
		{"policy.turns", w.html("policy.turns.value", "turns", number(st.Turns), "runs", number(st.Runs))},
		{"policy.last", last},
	}
}

func swatch(name string) template.HTML {
	return template.HTML(`<svg class="dot" viewBox="0 0 12 12" aria-hidden="true"><rect class="fill-` + template.HTMLEscapeString(name) +
		`" width="12" height="12" rx="3"/></svg>`)
}

// instant writes a time for readers without a script, who are told the zone.
func instant(us int64) string { return time.UnixMicro(us).UTC().Format("2006-01-02 15:04:05 UTC") }

// percentOf is n over all in percent, to a tenth.
func percentOf[T int | int64](n, all T) float64 {
	return math.Round(1000*float64(n)/float64(all)) / 10
}

// share writes a part of one.
func share(x float64) string { return strconv.FormatFloat(math.Round(1000*x)/10, 'f', -1, 64) + "%" }

// rate writes a part of one that may not be known.
func rate(x *float64) string {
	if x == nil {
		return "–"
	}
	return share(*x)
}

// number writes a count with its thousands apart.
func number(v any) string {
	s := fmt.Sprint(v)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
