package pager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/internal/store"
)

// lineTokens is a counter whose counts add up line by line.
type lineTokens struct{}

func (lineTokens) ID() string     { return "test:lines" }
func (lineTokens) Additive() bool { return true }
func (lineTokens) Count(text string) (n int) {
	for line := range strings.SplitAfterSeq(text, "\n") {
		n += (len(line) + 3) / 4
	}
	return n
}

// textTokens is a counter whose counts do not add up.
type textTokens struct{}

func (textTokens) ID() string { return "test:text" }
func (textTokens) Count(text string) int {
	seen := map[rune]bool{}
	for _, c := range text {
		seen[c] = true
	}
	return (len(text)+6)/7 + len(seen)
}

var testCounters = map[string]Counter{"": nil, lineTokens{}.ID(): lineTokens{}, textTokens{}.ID(): textTokens{}}

func findTestCounter(id string) (Counter, error) {
	if c := testCounters[id]; c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("no counter %s", id)
}

// failing is what a test fails with: rapid's T, or testing's.
type failing interface {
	Helper()
	Fatalf(format string, args ...any)
}

// world is a scope of an open store beside the model of it.
type world struct {
	t     failing
	dir   string
	clock *testClock
	db    *loci.DB
	cs    *Store
	scope Scope
	m     *model
	seen  map[int64]string // what a host has: published texts by generation
	epoch int64
}

func newWorld(t failing, dir string, cfg Config) *world {
	w := &world{t: t, dir: dir, clock: &testClock{time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)}, scope: cfg.Scope, seen: map[int64]string{}}
	count := func(text string) int { return len(text) }
	if cfg.Counter != nil {
		count = cfg.Counter.Count
	}
	w.m = newModel(*cfg.Budget, count)
	w.open(cfg)
	return w
}

func (w *world) open(cfg Config) {
	w.t.Helper()
	db, err := loci.Open(context.Background(), w.dir, &loci.Options{Clock: w.clock.now, WaitForIndex: true, NoBackgroundEmbedding: true})
	if err != nil {
		w.t.Fatalf("open: %v", err)
	}
	w.db = db
	cfg.Tokenizers = findTestCounter
	if w.cs, err = Open(context.Background(), db, cfg); err != nil {
		w.t.Fatalf("open the scope: %v", err)
	}
}

func (w *world) close() {
	w.t.Helper()
	h, err := w.db.DeepHealth(context.Background())
	if err != nil || h.Integrity != "ok" || h.ForeignKeyErrors != 0 || !h.IndexUsable || h.IndexedDocuments != h.RecordCount {
		w.t.Fatalf("the store is not sound: %+v, %v", h, err)
	}
	if err := w.db.Close(); err != nil {
		w.t.Fatalf("close: %v", err)
	}
}

// codeOf is the pager code of an error, "" for none and "?" for another error.
func codeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return "?"
}

// inside runs fn with the scope's turn.
func (w *world) inside(fn func(*scope)) {
	w.t.Helper()
	if err := w.cs.with(context.Background(), "test", func(s *scope) error { fn(s); return nil }); err != nil {
		w.t.Fatalf("with: %v", err)
	}
}

// dump is all that there is of the context store: every scope, what is stored of
// it and what is in memory.
func (w *world) dump() string {
	w.t.Helper()
	w.inside(func(*scope) {})
	var out strings.Builder
	say := func(what string, v any) {
		raw, err := json.Marshal(v)
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		fmt.Fprintf(&out, "%s %s\n", what, raw)
	}
	reg := w.cs.reg
	if err := dumpStored(reg.link.Read, say); err != nil {
		w.t.Fatalf("dump: %v", err)
	}
	if reg.scopes[w.cs.key] != nil {
		w.inside(func(s *scope) {
			say("state", s.state)
			touches := map[int64][3]int64{}
			for id, t := range s.touches {
				touches[id] = [3]int64{t.hits, t.tick, t.at}
			}
			say("touches", touches)
			text, stable := s.window.text()
			say("window", []any{string(text), stable, s.published, s.publishedEpoch})
		})
	}
	return out.String()
}

// dumpStored says all that is stored of the context store.
func dumpStored(read func(context.Context, func(*store.ReadTx) error) error, say func(string, any)) error {
	return read(context.Background(), func(tx *store.ReadTx) error {
		scopes, err := tx.Contexts("")
		if err != nil {
			return err
		}
		for _, c := range scopes {
			say("scope", []any{c.ID, c.Namespace, c.Scope, c.Version, json.RawMessage(c.State)})
			policy, err := tx.Policy(c.Namespace)
			say("policy", json.RawMessage(append([]byte("0"), policy...)[min(1, len(policy)):]))
			text, ok, errText := tx.PublishedText(c.ID)
			say("published", []any{string(text), ok})
			var ids []int64
			errHeads := tx.PageHeads(c.ID, 0, 0, func(h *store.PageHead) bool { ids = append(ids, h.ID); return true })
			if err := errors.Join(err, errText, errHeads); err != nil {
				return err
			}
			for _, id := range ids {
				p, err := tx.Page(id)
				if err != nil {
					return err
				}
				say("page", p)
				history, err := tx.PageHistory(id)
				if err != nil {
					return err
				}
				for _, h := range history {
					r, err := tx.PageVersion(id, h.Version)
					if err != nil {
						return err
					}
					say("revision", []any{id, h, r})
				}
			}
			for _, typ := range []store.LogType{store.LogRender, store.LogResidency, store.LogUsage} {
				entries, err := tx.LogTail(c.ID, typ, 1<<20)
				if err != nil {
					return err
				}
				say("log", entries)
			}
			checkpoints, err := tx.Checkpoints(c.ID)
			if err != nil {
				return err
			}
			for _, at := range checkpoints {
				full, err := tx.Checkpoint(c.ID, at.ID)
				if err != nil {
					return err
				}
				say("checkpoint", full)
			}
		}
		return nil
	})
}

// try runs an operation on the store, which gives its error, and then on a copy
// of the model. Both must come to the same; what failed must have changed
// nothing.
func (w *world) try(op, pageID string, call func() error, apply func(m *model) Code) bool {
	w.t.Helper()
	before := w.dump()
	err := call()
	next := w.m.clone()
	want := apply(next)
	if got := codeOf(err); got != want {
		w.t.Fatalf("%s %q fails with %q (%v), the model with %q", op, pageID, got, err, want)
	}
	if want != "" {
		if d := cmp.Diff(strings.Split(before, "\n"), strings.Split(w.dump(), "\n")); d != "" {
			w.t.Fatalf("%s failed and changed something: %s", op, d)
		}
		return false
	}
	next.broke(w.m, op, pageID)
	was := w.m
	w.m = next
	w.check(op, was)
	return true
}

// check compares all of the scope with the model and looks at what must always
// hold.
func (w *world) check(op string, was *model) {
	w.t.Helper()
	ctx := context.Background()
	snap, err := w.cs.Render(ctx, RenderRequest{})
	if err != nil {
		w.t.Fatalf("render after %s: %v", op, err)
	}
	text, stable := w.m.text()
	if *snap.Text != text || snap.StablePrefixBytes != stable || snap.TextBytes != len(text) {
		w.t.Fatalf("after %s the window is not the model's: %s", op, cmp.Diff(strings.Split(text, "\n"), strings.Split(*snap.Text, "\n")))
	}
	if snap.SHA != render.Sum([]byte(text)) || snap.CoreSHA != render.Sum([]byte(text[:stable])) {
		w.t.Fatalf("after %s the sums are not those of the text: %+v", op, snap)
	}
	if cost := w.m.count(text); snap.Pressure.Cost != cost || snap.Pressure.Budget != w.m.budget || cost > w.m.budget {
		w.t.Fatalf("after %s the cost is %d, by the text %d, of %d and the model's %d", op, snap.Pressure.Cost, cost, snap.Pressure.Budget, w.m.budget)
	}
	if snap.Generation != w.m.generation {
		w.t.Fatalf("after %s the generation is %d, the model's %d", op, snap.Generation, w.m.generation)
	}
	oldText, oldStable := was.text()
	if snap.Epoch < w.epoch || oldText != text && snap.Epoch == w.epoch {
		w.t.Fatalf("after %s the epoch is %d, before it %d; the text changed: %v", op, snap.Epoch, w.epoch, oldText != text)
	}
	w.epoch = snap.Epoch
	if sameCore(was, w.m) && !strings.HasPrefix(text, oldText[:oldStable]) {
		w.t.Fatalf("%s changed working only, and the prefix:\n%s\n%s", op, oldText, text)
	}
	w.checkPrefix(text)
	w.checkPages(op)
}

func sameCore(a, b *model) bool {
	x, _ := modelRender(a.in(Core), nil)
	y, _ := modelRender(b.in(Core), nil)
	return x == y
}

func (w *world) checkPrefix(text string) {
	w.t.Helper()
	parts, err := w.cs.Prefix(context.Background(), PrefixRequest{Publish: new(false)})
	if err != nil {
		w.t.Fatalf("prefix: %v", err)
	}
	if parts.Prefix+parts.Tail != text || len(parts.Prefix) != parts.StablePrefixBytes || parts.Generation != w.m.generation {
		w.t.Fatalf("prefix and tail are not the text: %+v", parts)
	}
}

// checkPages compares every page, as it is stored and as it is in memory.
func (w *world) checkPages(op string) {
	w.t.Helper()
	w.inside(func(s *scope) {
		found := map[string]bool{}
		lastSeq, rows := int64(0), 0
		for _, r := range s.window.core {
			if r.Seq <= lastSeq {
				w.t.Fatalf("after %s seq %d follows %d", op, r.Seq, lastSeq)
			}
			lastSeq = r.Seq
			if r.Outline {
				rows++
			}
		}
		if rows > MaxOutlineRows {
			w.t.Fatalf("after %s there are %d rows", op, rows)
		}
		if s.state.Tick != w.m.tick {
			w.t.Fatalf("after %s the tick is %d, the model's %d", op, s.state.Tick, w.m.tick)
		}
		if s.stored == nil {
			return
		}
		stored, err := readPages(s)
		if err != nil {
			w.t.Fatalf("read: %v", err)
		}
		for _, at := range stored {
			p := at.page
			found[p.PageID] = true
			if r := s.window.find(p.PageID); (r != nil) != (p.Tier != store.TierArchived) {
				w.t.Fatalf("after %s, %s is in tier %d and in memory: %v", op, p.PageID, p.Tier, r != nil)
			} else if r != nil {
				if d := cmp.Diff(p, r.Page, cmpopts.IgnoreUnexported(store.Record{}), cmpopts.EquateEmpty()); d != "" {
					w.t.Fatalf("after %s, %s is in memory as it is not stored: %s", op, p.PageID, d)
				}
			}
			if t := s.touches[p.ID]; t != nil {
				p.Hits, p.Touched = p.Hits+t.hits, max(p.Touched, t.tick)
			}
			w.checkPage(op, p, at.revisions)
		}
		for id := range w.m.pages {
			if !found[id] {
				w.t.Fatalf("after %s, %s is not there", op, id)
			}
		}
	})
}

// storedPage is a page as it is stored, with all of its revisions.
type storedPage struct {
	page      *store.Page
	revisions []modelRevision
}

// readPages reads all pages of a scope.
func readPages(s *scope) (out []storedPage, err error) {
	err = s.reg.link.Read(context.Background(), func(tx *store.ReadTx) error {
		names := map[int64]string{}
		var ids []int64
		if err := tx.PageHeads(s.stored.ID, 0, 0, func(h *store.PageHead) bool {
			ids, names[h.ID] = append(ids, h.ID), h.PageID
			return true
		}); err != nil {
			return err
		}
		for _, id := range ids {
			p, err := tx.Page(id)
			if err != nil {
				return err
			}
			history, err := tx.PageHistory(id)
			if err != nil {
				return err
			}
			at := storedPage{page: p}
			for _, h := range history {
				r, err := tx.PageVersion(id, h.Version)
				if err != nil {
					return err
				}
				at.revisions = append(at.revisions, modelRevisionOf(r, names))
			}
			out = append(out, at)
		}
		return nil
	})
	return out, err
}

func modelRevisionOf(r *store.PageRevision, names map[int64]string) modelRevision {
	out := modelRevision{version: r.Version, operation: r.Operation, title: r.Title, summary: r.Summary, content: r.Content, source: r.Source,
		tags: slices.Clone(r.Tags), importance: r.Importance}
	for _, id := range r.Links {
		out.links = append(out.links, names[id])
	}
	return out
}

func (w *world) checkPage(op string, p *store.Page, revisions []modelRevision) {
	w.t.Helper()
	want := w.m.pages[p.PageID]
	if want == nil {
		w.t.Fatalf("after %s there is a page %s", op, p.PageID)
		return
	}
	if len(want.revisions) != len(revisions) {
		w.t.Fatalf("after %s, %s has %d revisions, the model's %d", op, p.PageID, len(revisions), len(want.revisions))
	}
	for i, r := range revisions {
		m := want.revisions[i]
		if r.version != m.version || !sameModelRevision(&r, &m) || m.operation != "" && r.operation != m.operation {
			w.t.Fatalf("after %s, revision %d of %s is %+v, the model's %+v", op, i+1, p.PageID, r, m)
		}
		if want.copyOf == "" && r.version != int64(i+1) {
			w.t.Fatalf("after %s, revision %d of %s has version %d", op, i+1, p.PageID, r.version)
		}
	}
	got := modelPage{id: p.PageID, tier: tierNames[p.Tier], outline: p.Outline, seq: p.Seq, place: p.Admission, row: p.RowVersion, pin: p.PinReason,
		touched: p.Touched, hits: p.Hits, evicted: p.EvictedTurn, protected: p.ProtectedTo}
	m := modelPage{id: want.id, tier: want.tier, outline: want.outline, seq: want.seq, place: want.place, row: want.row, pin: want.pin,
		touched: want.touched, hits: want.hits, evicted: want.evicted, protected: want.protected}
	if d := cmp.Diff(m, got, cmp.AllowUnexported(modelPage{})); d != "" {
		w.t.Fatalf("after %s: %s", op, d)
	}
}

// published checks what a publication answered and what it logged.
func (w *world) published(op string, snap *Snapshot, e *RenderEvent, causes []Operation) {
	w.t.Helper()
	text, _ := w.m.text()
	if snap.Generation != w.m.generation {
		w.t.Fatalf("%s answers generation %d, the model's is %d", op, snap.Generation, w.m.generation)
	}
	if was, ok := w.seen[snap.Generation]; ok && was != text {
		w.t.Fatalf("%s: generation %d stood for other bytes", op, snap.Generation)
	}
	w.seen[snap.Generation] = text
	if snap.Text != nil && *snap.Text != text {
		w.t.Fatalf("%s gives another text", op)
	}
	if e == nil {
		return
	}
	w.inside(func(s *scope) {
		events, err := s.renderEvents(context.Background(), 1)
		if err != nil || len(events) != 1 {
			w.t.Fatalf("%s: %v %v", op, events, err)
		}
		got := events[0]
		got.AtUS, got.Operations = 0, nil
		if d := cmp.Diff(*e, got); d != "" {
			w.t.Fatalf("%s: the event is not the model's: %s", op, d)
		}
		named := events[0].Operations
		if !e.PrefixIntact && len(causes) == 0 {
			w.t.Fatalf("%s: the prefix broke and nothing did it", op)
		}
		for _, c := range causes {
			has := slices.ContainsFunc(named, func(o Operation) bool { return o.Name == c.Name && (c.PageID == "" || o.PageID == c.PageID) })
			if !has && len(named) < maxPending && !(c.Name == opErase && e.PrefixIntact) {
				w.t.Fatalf("%s: the event does not name %v, it names %v", op, c, named)
			}
		}
	})
}
