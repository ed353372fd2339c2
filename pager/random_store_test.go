package pager

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci"
	"pgregory.net/rapid"
)

// look calls what only looks: nothing at all changes.
func (p *player) look() {
	ctx := context.Background()
	looks := map[string]func() error{
		"status":             func() error { _, err := p.cs.Status(ctx, StatusRequest{}); return err },
		"metrics":            func() error { _, err := p.cs.Metrics(ctx, MetricsRequest{}); return err },
		"dashboard":          func() error { _, err := p.cs.Dashboard(ctx, DashboardRequest{}); return err },
		"usage":              func() error { _, err := p.cs.Usage(ctx, UsageRequest{}); return err },
		"checkpoints":        func() error { _, err := p.cs.Checkpoints(ctx, CheckpointsRequest{}); return err },
		"replacement_policy": func() error { _, err := p.cs.ReplacementPolicy(ctx, ReplacementPolicyRequest{}); return err },
		"quiet snapshot":     func() error { _, err := p.cs.Snapshot(ctx, SnapshotRequest{Publish: new(false)}); return err },
	}
	names := make([]string, 0, len(looks))
	for name := range looks {
		names = append(names, name)
	}
	slices.Sort(names)
	which := p.pick(names, "which")
	before := p.dump()
	p.try(which, "", looks[which], func(*model) Code { return "" })
	if p.dump() != before {
		p.t.Fatalf("%s changed something", which)
	}
}

func (p *player) recordUsage() {
	before, err := p.cs.Render(context.Background(), RenderRequest{})
	if err != nil {
		p.t.Fatalf("%v", err)
	}
	req := RecordUsageRequest{InputTokens: rapid.Int64Range(-1, 5).Draw(p.rt, "input"), CacheReadTokens: 3, Turn: new(rapid.Int64Range(0, 2).Draw(p.rt, "turn"))}
	p.try("record_usage", "", func() error {
		_, err := p.cs.RecordUsage(context.Background(), req)
		return err
	}, func(*model) Code {
		if req.InputTokens < 0 {
			return ErrInvalidArgument
		}
		return ""
	})
	after, err := p.cs.Render(context.Background(), RenderRequest{})
	if err != nil || after.SHA != before.SHA || after.Epoch != before.Epoch || after.Generation != before.Generation {
		p.t.Fatalf("record_usage moved %+v to %+v, %v", before, after, err)
	}
}

func (p *player) compact() {
	req := CompactRequest{PageID: p.pageID(), Summary: p.pick([]string{"short", "x", "rather long, so that it is not always shorter"}, "summary"),
		ExpectedVersion: new(int64(1))}
	if at := p.m.pages[req.PageID]; at != nil && !p.odds(5, "other version") {
		*req.ExpectedVersion = at.current().version
	}
	p.try("compact", req.PageID, func() error {
		_, err := p.cs.Compact(context.Background(), req)
		return err
	}, func(m *model) Code {
		at := m.pages[req.PageID]
		switch {
		case at == nil:
			return ErrNotFound
		case at.copyOf != "":
			return ErrInvalidArgument
		case at.current().version != *req.ExpectedVersion:
			return ErrVersionConflict
		case len(req.Summary) >= len(at.current().content):
			return ErrNotShorter
		}
		r := *at.current()
		r.content, r.operation = req.Summary, "compact"
		at.revise(r)
		m.tick++
		at.touched = m.tick
		_, code := m.settle(map[string]bool{at.id: true})
		return code
	})
}

func (p *player) ingest() {
	req := IngestRequest{Content: strings.Repeat(p.content()+"\n\n", rapid.IntRange(1, 3).Draw(p.rt, "paragraphs")), Title: p.pick(someTitles, "title"),
		PageBytes: new(rapid.IntRange(32, 100).Draw(p.rt, "page bytes"))}
	var res *IngestResult
	p.try("ingest", "", func() (err error) {
		res, err = p.cs.Ingest(context.Background(), req)
		return err
	}, func(m *model) Code {
		if res == nil {
			return ""
		}
		whole := ""
		for i, ref := range res.Pages {
			got := p.stored(ref.PageID)
			if m.pages[ref.PageID] != nil || ref.Ordinal != int64(i) || len(got.content) > *req.PageBytes || !utf8.ValidString(got.content) {
				p.t.Fatalf("page %d of an ingest is %+v: %q", i, ref, got.content)
			}
			whole += got.content
			m.add(ref.PageID, modelRevision{version: 1, operation: "ingest", title: req.Title, content: got.content, importance: 0.5})
		}
		if whole != req.Content {
			p.t.Fatalf("the pages of an ingest make %q of %q", whole, req.Content)
		}
		return ""
	})
}

// stored gives a page's current revision as it is stored.
func (w *world) stored(pageID string) (found modelRevision) {
	w.t.Helper()
	w.inside(func(s *scope) {
		pages, err := readPages(s)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		for _, at := range pages {
			if at.page.PageID == pageID {
				found = at.revisions[len(at.revisions)-1]
			}
		}
	})
	return found
}

func (p *player) fold() {
	keep := rapid.IntRange(1, 3).Draw(p.rt, "keep")
	word := p.pick([]string{"", "里程碑"}, "word")
	var res *FoldResult
	changed := false
	var evicted []string
	ok := p.try("fold", "", func() (err error) {
		res, err = p.cs.Fold(context.Background(), FoldRequest{Keep: &keep, Word: word})
		return err
	}, func(m *model) (code Code) {
		id := ""
		if res != nil && res.Milestone != nil {
			id = res.Milestone.PageID
		}
		changed, evicted, code = m.fold(id, keep, word, func(id string) string { return p.stored(id).content })
		return code
	})
	if ok && (res.Changed != changed || res.Rows != p.m.rows() || changed && !slices.Equal(pageIDs(res.Evicted), evicted)) {
		p.t.Fatalf("fold answers %+v; in the model changed %v, rows %d, evicted %v", res, changed, p.m.rows(), evicted)
	}
}

// fold is what a fold should do; body gives the milestone's content.
func (m *model) fold(id string, keep int, word string, body func(string) string) (changed bool, evicted []string, code Code) {
	var rows []*modelPage
	for _, o := range m.in(Core) {
		if o.outline {
			rows = append(rows, o)
		}
	}
	if len(rows)-keep < 2 {
		return false, nil, ""
	}
	rows = rows[:len(rows)-keep]
	seq, from, to := rows[0].seq, rows[0].seq, rows[0].seq
	var titles, links []string
	for _, o := range rows {
		from, to = min(from, o.seq), max(to, o.seq)
		if o.folded != [2]int64{} {
			from, to = min(from, o.folded[0]), max(to, o.folded[1])
		}
		titles, links = append(titles, o.current().title), append(links, o.id)
		o.outline, o.row = false, 0
		m.move(o, Archive)
	}
	if word == "" {
		word = "milestone"
	}
	summary := strings.Join(titles, " · ")
	for len(summary) > 240 || !utf8.ValidString(summary) {
		summary = summary[:len(summary)-1]
	}
	r := modelRevision{version: 1, operation: "fold", title: fmt.Sprintf("%s %d–%d", word, from, to), summary: summary, importance: 0.5, links: links}
	if id != "" { // otherwise it failed
		r.content = body(id)
		for _, o := range rows {
			if !strings.Contains(r.content, fmt.Sprintf("%s@%d", o.id, o.current().version)) {
				return false, nil, ErrInternal
			}
		}
	} else {
		id = "\x00failed"
	}
	at := m.add(id, r)
	m.tick++
	at.touched, at.outline, at.row, at.seq, at.folded = m.tick, true, 1, seq, [2]int64{from, to}
	m.move(at, Core)
	evicted, code = m.settle(map[string]bool{id: true})
	return true, evicted, code
}

func (p *player) checkpoint() {
	var res *CheckpointResult
	p.try("checkpoint", "", func() (err error) {
		res, err = p.cs.Checkpoint(context.Background(), CheckpointRequest{Label: "here"})
		return err
	}, func(m *model) Code {
		if res == nil {
			return ""
		}
		at := modelCheckpoint{id: res.Checkpoint.CheckpointID, pages: map[string]modelPage{}}
		for id, o := range m.pages {
			at.pages[id] = *o
		}
		m.checkpoints = append(m.checkpoints, at)
		return ""
	})
	if p.bool("restore at once") {
		p.doRestore(res.Checkpoint.CheckpointID, true)
	}
}

func (p *player) restore() {
	id := loci.ID(1_000_000)
	if len(p.m.checkpoints) > 0 && !p.odds(8, "unknown") {
		id = rapid.SampledFrom(p.m.checkpoints).Draw(p.rt, "checkpoint").id
	}
	p.doRestore(id, false)
}

func (p *player) doRestore(id loci.ID, fresh bool) {
	before, _ := p.m.text()
	var res *RestoreResult
	var evicted []string
	ok := p.try("restore", "", func() (err error) {
		res, err = p.cs.Restore(context.Background(), RestoreRequest{CheckpointID: id})
		return err
	}, func(m *model) (code Code) {
		evicted, code = m.restore(p.world, id)
		return code
	})
	if !ok {
		if fresh {
			p.t.Fatalf("a restore right after the checkpoint failed")
		}
		return
	}
	if got := pageIDs(res.Evicted); !slices.Equal(got, evicted) {
		p.t.Fatalf("restore evicted %v, the model %v", got, evicted)
	}
	if after, _ := p.m.text(); fresh && (res.Changed || after != before) {
		p.t.Fatalf("a restore right after the checkpoint changed %+v", res)
	}
}

// restore is what a restore should do.
func (m *model) restore(w *world, id loci.ID) (evicted []string, code Code) {
	i := slices.IndexFunc(m.checkpoints, func(c modelCheckpoint) bool { return c.id == id })
	if i < 0 {
		return nil, ErrNotFound
	}
	for pageID, at := range m.pages {
		then, there := m.checkpoints[i].pages[pageID]
		if !there || then.made != at.made {
			if at.tier != Archive {
				m.put(at, &modelPage{tier: Archive})
			}
			continue
		}
		was := *then.current()
		// What was removed for good since is in no revision any more.
		was.links = slices.DeleteFunc(slices.Clone(was.links), func(link string) bool { return !m.has(link, m.checkpoints[i].pages[link].made) })
		if at.copyOf == "" && at.current().version != was.version && !sameModelRevision(at.current(), &was) {
			was.operation = "restore"
			at.revise(was)
		}
		m.put(at, &then)
	}
	return m.settle(nil)
}

func (m *model) has(id string, made int64) bool {
	at := m.pages[id]
	return at != nil && (made == 0 || at.made == made)
}

// put puts a page where another says.
func (m *model) put(at, to *modelPage) {
	if at.tier == to.tier && at.outline == to.outline && at.seq == to.seq && at.place == to.place {
		return
	}
	at.tier, at.seq, at.place = to.tier, to.seq, to.place
	if at.outline != to.outline {
		if at.outline, at.row = to.outline, 0; at.outline {
			at.row = max(at.rowVersion(), to.row)
		}
	}
	if at.tier != Core {
		at.pin = ""
	}
	if at.tier != Archive {
		at.evicted = -1
	}
}

// rowVersion is the version at which title or summary were changed last.
func (p *modelPage) rowVersion() int64 {
	i := len(p.revisions) - 1
	for i > 0 && p.revisions[i-1].title == p.revisions[i].title && p.revisions[i-1].summary == p.revisions[i].summary {
		i--
	}
	return p.revisions[i].version
}

func (p *player) setPolicy() {
	strategy := p.pick([]string{"value", "lru"}, "strategy")
	mode := p.pick([]string{"manual", "turns", "threshold", "either", "never"}, "mode")
	req := SetPolicyRequest{Strategy: &strategy, Mode: &mode, EveryN: new(rapid.IntRange(1, 3).Draw(p.rt, "every")),
		ThresholdPct: new(rapid.IntRange(40, 90).Draw(p.rt, "threshold")), TargetPct: new(rapid.IntRange(10, 39).Draw(p.rt, "target")),
		KeepRecent: new(rapid.IntRange(0, 2).Draw(p.rt, "recent"))}
	p.try("set_policy", "", func() error {
		_, err := p.cs.SetPolicy(context.Background(), req)
		return err
	}, func(m *model) Code {
		if mode == "never" {
			return ErrInvalidArgument
		}
		m.lru = strategy == "lru"
		m.policy = modelPolicy{mode, int64(*req.EveryN), *req.ThresholdPct, *req.TargetPct, *req.KeepRecent}
		return ""
	})
}

func (p *player) policyTick() {
	req := PolicyTickRequest{Force: p.odds(4, "force")}
	if p.bool("has turn") {
		req.TurnID = new(rapid.Int64Range(0, 10).Draw(p.rt, "turn"))
	}
	var res *PolicyTickResult
	var evicted []string
	triggered := false
	ok := p.try("policy_tick", "", func() (err error) {
		res, err = p.cs.PolicyTick(context.Background(), req)
		return err
	}, func(m *model) Code {
		triggered, evicted = m.policyTick(&req)
		return ""
	})
	if ok && (res.Triggered != triggered || !slices.Equal(pageIDs(res.Evicted), evicted) || res.After != p.m.cost()) {
		p.t.Fatalf("policy_tick answers %+v, in the model triggered %v, evicted %v", res, triggered, evicted)
	}
}

// policyTick is what a tick of the policy should do.
func (m *model) policyTick(req *PolicyTickRequest) (triggered bool, evicted []string) {
	counted := req.TurnID == nil && !req.Force
	if req.TurnID != nil && *req.TurnID > m.lastTurn {
		counted, m.lastTurn = true, *req.TurnID
	}
	if counted {
		m.ticked = true
		m.turn++
		m.turns++
	}
	pct := 100 * m.cost()
	byTurns := m.turns-m.turnsAtRun >= m.policy.everyN && (m.policy.mode == "turns" || m.policy.mode == "either")
	byCost := pct >= m.policy.threshold*m.budget && (m.policy.mode == "threshold" || m.policy.mode == "either")
	if !req.Force && !(counted && (byTurns || byCost)) {
		return false, nil
	}
	recent := m.in(Working)
	slices.SortFunc(recent, func(a, b *modelPage) int {
		if a.touched != b.touched {
			return int(b.touched - a.touched)
		}
		return int(b.place - a.place)
	})
	keep := map[string]bool{}
	for _, o := range recent[:min(m.policy.keep, len(recent))] {
		keep[o.id] = true
	}
	evicted, _ = m.evictTo(m.policy.target*m.budget/100, keep)
	m.turnsAtRun = m.turns
	return true, evicted
}
