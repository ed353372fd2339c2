package pager

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/store"
)

// change is an operation at work on a scope. It collects what is to be written;
// commit writes all of it in one transaction, and until then the scope is as it
// was.
type change struct {
	ctx    context.Context
	scope  *scope
	op     string
	now    int64 // UTC microseconds
	policy Policy
	meter  meter

	state  state
	window window

	pages    map[string]*resident // pages that were loaded, made or edited, by page id
	made     map[*store.Page]bool // are new or have a new revision
	edited   map[*store.Page]bool // have another place or other statistics
	removed  map[string]bool
	touched  map[string]bool // by page id; never evicted by this operation
	merged   map[int64]bool  // records whose waiting touches stand in a copy
	noted    map[string]bool // pages that ops names
	ticked   bool
	ops      []Operation
	ledger   []Movement
	evicted  []Reference
	steps    []func(*store.WriteTx) error
	logs     []logged
	measured bool // the measure was changed
	written  bool // it is committed
	publish  bool // the window's bytes are to be published
	refit    bool // the budget is to be kept though nothing has changed
	event    *RenderEvent
	mended   bool   // the published bytes are the same, and what is kept of them was cut
	text     []byte // with publish: the bytes
	stable   int
	moved    bool // the window's bytes may be others than before
	cost     int  // of the window, 0 when it was not measured
}

type logged struct {
	typ   store.LogType
	entry store.LogEntry
}

// begin begins an operation. The scope must be loaded.
func (s *scope) begin(ctx context.Context, op string) (*change, error) {
	policy, err := s.policy(ctx)
	if err != nil {
		return nil, err
	}
	c := &change{
		ctx: ctx, scope: s, op: op, now: s.reg.link.Now().UnixMicro(), policy: policy, meter: meter{s.counter},
		state: s.state, window: window{slices.Clone(s.window.core), slices.Clone(s.window.working)},
		pages: map[string]*resident{}, made: map[*store.Page]bool{}, edited: map[*store.Page]bool{}, removed: map[string]bool{},
		touched: map[string]bool{}, merged: map[int64]bool{}, noted: map[string]bool{},
	}
	c.state.Pending = slices.Clone(s.state.Pending)
	return c, nil
}

// tick is the logical time of this operation's touches.
func (c *change) tick() int64 {
	if !c.ticked {
		c.ticked = true
		c.state.Tick++
	}
	return c.state.Tick
}

// lookup gives a page of the scope, or nil.
func (c *change) lookup(pageID string) (*resident, error) {
	if c.removed[pageID] {
		return nil, nil
	}
	if r := c.pages[pageID]; r != nil {
		return r, nil
	}
	r := c.window.find(pageID)
	if r == nil {
		var err error
		if r, err = c.scope.readPage(c.ctx, pageID); r == nil || err != nil {
			return nil, err
		}
	}
	c.pages[pageID] = r
	return r, nil
}

// page gives a page of the scope, or ErrNotFound.
func (c *change) page(pageID string) (*resident, error) {
	r, err := c.lookup(pageID)
	if err == nil && r == nil {
		err = noPage("page_id")
	}
	return r, err
}

func noPage(field string) *Error {
	return fail(ErrNotFound, field, "there is no such page in the scope")
}

// readPage reads a page from the truth, nil when there is none.
func (s *scope) readPage(ctx context.Context, pageID string) (r *resident, err error) {
	if s.stored == nil {
		return nil, nil
	}
	err = s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		p, err := tx.PageByID(s.stored.ID, pageID)
		if p != nil {
			r = newResident(p)
		}
		return err
	})
	return r, err
}

// edit gives a copy of a page that may be changed and stands in its place from
// now on. The caller calls redraw if the change is rendered.
func (c *change) edit(r *resident) *resident {
	if now := c.pages[r.PageID]; now != nil && (c.edited[now.Page] || c.made[now.Page]) {
		return now // also for a caller who still holds the page as it was
	}
	page := *r.Page
	page.Record.Tags, page.PageRevision.Tags = slices.Clone(page.Record.Tags), slices.Clone(page.PageRevision.Tags)
	if t := c.scope.touches[page.ID]; t != nil && page.ID != 0 {
		page.Hits += t.hits
		page.Touched, page.TouchedAt = max(page.Touched, t.tick), max(page.TouchedAt, t.at)
		c.merged[page.ID] = true
	}
	n := &resident{Page: &page, line: r.line, first: r.first, next: r.next}
	c.edited[n.Page] = true
	c.pages[n.PageID] = n
	for _, list := range [][]*resident{c.window.core, c.window.working} {
		if i := slices.Index(list, r); i >= 0 {
			list[i] = n
		}
	}
	return n
}

// redraw renders a page's line anew.
func (r *resident) redraw() {
	r.line, r.first, r.next = newResident(r.Page).line, 0, 0
}

// create adds a page of a fresh page id to the archive. Its revision must be
// filled in; move puts it elsewhere.
func (c *change) create(p *store.Page) *resident {
	c.settleNew(p)
	r := newResident(p)
	c.pages[p.PageID] = r
	c.made[p] = true
	c.step(p, func(tx *store.WriteTx, prepared *index.Prepared) error {
		p.Context = c.scope.stored.ID
		if err := tx.AddPage(p); err != nil {
			return err
		}
		return c.scope.reg.link.StagePage(tx, p, prepared)
	})
	c.note(p.PageID)
	return r
}

// settleNew fills in what every new page has.
func (c *change) settleNew(p *store.Page) {
	p.Kind, p.Namespace, p.Scope = store.KindPage, c.scope.key.namespace, c.scope.key.scope
	p.Created, p.Updated, p.At = c.now, c.now, c.now
	p.Record.Tags, p.Operation, p.EvictedTurn = p.PageRevision.Tags, c.op, -1
	if p.Version == 0 {
		p.Version = 1
	}
}

// revise gives a page a new revision: fill changes the copy's revision, whose
// version is already the next one.
func (c *change) revise(r *resident, fill func(*store.PageRevision)) *resident {
	n := c.edit(r)
	p := n.Page
	if c.made[p] {
		fill(&p.PageRevision)
		p.Record.Tags = p.PageRevision.Tags
		n.redraw()
		return n
	}
	before := *p
	old := &before
	row := [2]string{p.Title, p.Summary}
	p.PageRevision = store.PageRevision{
		Version: p.Version + 1, At: c.now, Operation: c.op, Title: p.Title, Summary: p.Summary, Content: p.Content,
		Tags: p.PageRevision.Tags, Importance: p.Importance, Source: p.Source, Links: p.Links,
	}
	fill(&p.PageRevision)
	p.Record.Tags, p.Updated = p.PageRevision.Tags, c.now
	if p.Outline && row != [2]string{p.Title, p.Summary} {
		p.RowVersion = p.Version
	}
	c.made[p] = true
	c.step(p, func(tx *store.WriteTx, prepared *index.Prepared) error {
		if err := tx.AddPageRevision(old, p); err != nil {
			return err
		}
		return c.scope.reg.link.StagePage(tx, p, prepared)
	})
	n.redraw()
	c.note(p.PageID)
	return n
}

// step adds a write that stages a page. The page is analysed outside the
// transaction, in its last state.
func (c *change) step(p *store.Page, write func(*store.WriteTx, *index.Prepared) error) {
	var prepared *index.Prepared
	c.steps = append(c.steps, func(tx *store.WriteTx) error {
		if tx == nil { // before the transaction
			prepared = c.scope.reg.link.PreparePage(p)
			return nil
		}
		return write(tx, prepared)
	})
}

// then adds a write to the transaction. It runs after the pages made before are
// written, and must only write.
func (c *change) then(write func(*store.WriteTx) error) {
	c.steps = append(c.steps, func(tx *store.WriteTx) error {
		if tx == nil {
			return nil
		}
		return write(tx)
	})
}

// remove removes a page for good.
func (c *change) remove(r *resident) {
	page := r.Page
	c.take(r)
	delete(c.edited, r.Page)
	c.removed[page.PageID] = true
	delete(c.pages, page.PageID)
	c.ledger = append(c.ledger, Movement{AtUS: c.now, Operation: c.op, PageID: page.PageID, From: string(tierNames[page.Tier]), To: "none",
		Reason: "removed for good", Bytes: len(page.Content)})
	c.then(func(tx *store.WriteTx) error {
		now, err := tx.Page(page.ID)
		if err != nil || now == nil {
			return err
		}
		return tx.RemovePage(now)
	})
	c.note(page.PageID)
}

// take takes a page out of the window's lists.
func (c *change) take(r *resident) {
	same := func(o *resident) bool { return o.PageID == r.PageID }
	c.window.core = slices.DeleteFunc(c.window.core, same)
	c.window.working = slices.DeleteFunc(c.window.working, same)
}

// move puts a page into a tier: at its end, in core and working. In core it
// keeps a seq that was set before.
func (c *change) move(r *resident, to store.PageTier, reason string) *resident {
	fresh := c.made[r.Page] && r.ID == 0 && r.Tier == store.TierArchived && !c.edited[r.Page]
	if r.Tier == to && !fresh {
		return r
	}
	n := c.edit(r)
	from := string(tierNames[n.Tier])
	if fresh {
		from = "none"
	}
	m := Movement{AtUS: c.now, Operation: c.op, PageID: n.PageID, From: from, To: string(tierNames[to]), Reason: reason, Bytes: len(n.Content)}
	if n.Tier == store.TierArchived && to != store.TierArchived && n.EvictedTurn >= 0 {
		if c.state.Turn-n.EvictedTurn < faultTurns {
			m.Fault = true
			n.Faults++
			n.ProtectedTo = c.state.Turn + protectedTurns
		}
		n.EvictedTurn = -1
	}
	c.take(n)
	n.Tier, n.Admission = to, 0
	switch to {
	case store.TierCore:
		if n.Seq == 0 {
			n.Seq = c.state.NextSeq
			c.state.NextSeq++
			n.redraw()
		}
		c.window.core = append(c.window.core, n)
	case store.TierWorking:
		n.Seq, n.Admission = 0, c.state.NextAdmission
		c.state.NextAdmission++
		c.window.working = append(c.window.working, n)
	default:
		n.Seq = 0
	}
	if to != store.TierCore {
		n.PinReason = ""
	}
	c.window.sort()
	c.edited[n.Page] = true
	c.ledger = append(c.ledger, m)
	c.note(n.PageID)
	return n
}

const (
	// A page that comes back within faultTurns of its eviction is a fault, and is
	// evicted last for protectedTurns.
	faultTurns     = 3
	protectedTurns = 2
)

// touch makes a page the one that was used last and keeps it from being evicted
// by this operation.
func (c *change) touch(r *resident) *resident {
	n := c.edit(r)
	n.Touched, n.TouchedAt = c.tick(), c.now
	c.touched[n.PageID] = true
	return n
}

// hit is touch for a page that was asked for, which counts.
func (c *change) hit(r *resident) *resident {
	n := c.touch(r)
	n.Hits++
	return n
}

// note says that the operation changed a page, for the next publication.
func (c *change) note(pageID string) {
	if !c.noted[pageID] {
		c.noted[pageID] = true
		c.ops = append(c.ops, Operation{c.op, pageID})
	}
}

// visible gives the operations on pages whose lines in the window changed, or
// the operation alone when only their order did.
func (c *change) visible() []Operation {
	before := map[string]*resident{}
	for _, list := range [][]*resident{c.scope.window.core, c.scope.window.working} {
		for _, r := range list {
			before[r.PageID] = r
		}
	}
	differs := map[string]bool{}
	for _, list := range [][]*resident{c.window.core, c.window.working} {
		for _, r := range list {
			was := before[r.PageID]
			if was == nil || was.Tier != r.Tier || !bytes.Equal(was.line, r.line) {
				differs[r.PageID] = true
			}
			delete(before, r.PageID)
		}
	}
	for id := range before {
		differs[id] = true
	}
	var out []Operation
	for _, o := range c.ops {
		if differs[o.PageID] {
			out = append(out, o)
		}
	}
	if out == nil {
		return []Operation{{Name: c.op}}
	}
	return out
}

// appendLog adds an entry to the scope's log. body must have a JSON form.
func (c *change) appendLog(typ store.LogType, key string, body any) error {
	raw, err := json.Marshal(body)
	if err != nil {
		return err
	}
	c.logs = append(c.logs, logged{typ, store.LogEntry{At: c.now, Key: key, Body: raw}})
	return nil
}

// remeasure changes the measure to what a config asks for.
func (c *change) remeasure(cfg *Config) error {
	now := c.state.measure
	if c.scope.stored == nil {
		now = newState().measure
	}
	want := cfg.wanted(now)
	probe := scope{reg: c.scope.reg, state: state{measure: want}}
	if err := probe.findCounter(cfg); err != nil {
		return err
	}
	c.measured = c.scope.stored == nil || want != c.scope.state.measure
	c.state.measure, c.meter = want, meter{probe.counter}
	for _, list := range [][]*resident{c.window.core, c.window.working} {
		for i, r := range list { // their token counts were another counter's
			list[i] = &resident{Page: r.Page, line: r.line}
			c.pages[r.PageID] = list[i]
		}
	}
	return nil
}

// settle makes the window keep its budget, and says whether its bytes may have
// changed.
func (c *change) settle() error {
	c.moved = c.differs()
	if !c.moved && !c.measured && (!c.refit && !c.publish || c.scope.fits()) {
		return nil
	}
	if c.cost = c.meter.cost(&c.window); c.cost > c.state.Budget {
		if err := c.makeRoom(); err != nil {
			return err
		}
	}
	if c.moved = c.differs(); c.moved {
		c.state.Epoch++
	}
	return nil
}

// makeRoom evicts working pages from a window that costs too much.
func (c *change) makeRoom() error {
	if left, ok := c.evictWithin(c.cost, c.state.Budget, "budget", nil); ok {
		c.cost = left
		return nil
	}
	if core := c.meter.cost(&window{core: c.window.core}); core > c.state.Budget {
		return fail(ErrCoreOverBudget, "", "core alone would take %d of a budget of %d: unpin pages, shorten them, or raise the budget",
			core, c.state.Budget).with("core", core).with("budget", c.state.Budget)
	}
	return fail(ErrBudgetExceeded, "", "the window would take %d of a budget of %d with nothing left to evict: shorten the page, or ingest it and let recall choose",
		c.cost, c.state.Budget).with("cost", c.cost).with("budget", c.state.Budget)
}

// differs says whether the window's lines are others than before.
func (c *change) differs() bool {
	return !sameLines(c.window.core, c.scope.window.core) || !sameLines(c.window.working, c.scope.window.working)
}

func sameLines(a, b []*resident) bool {
	return slices.EqualFunc(a, b, func(x, y *resident) bool { return x == y || bytes.Equal(x.line, y.line) })
}

// evictTo evicts working pages, in the policy's order, until the window costs at
// most limit; false when that cannot be reached, and then nothing is evicted.
// Pages that the operation touched or that keep names stay.
func (c *change) evictTo(limit int, reason string, keep func(*resident) bool) bool {
	_, ok := c.evictWithin(c.meter.cost(&c.window), limit, reason, keep)
	return ok
}

// evictWithin is evictTo for a window whose cost is known. It gives what the
// window costs afterwards.
func (c *change) evictWithin(cost, limit int, reason string, keep func(*resident) bool) (left int, ok bool) {
	var order []*resident
	for _, r := range c.window.working {
		if !c.touched[r.PageID] && (keep == nil || !keep(r)) {
			order = append(order, r)
		}
	}
	order = c.evictionOrder(order)
	n, left := c.meter.shortestEviction(&c.window, order, cost, limit)
	if n > len(order) {
		return cost, false
	}
	c.evict(order[:n], reason)
	return left, true
}

// evict puts pages out of the window.
func (c *change) evict(pages []*resident, reason string) {
	for _, r := range pages {
		n := c.move(r, store.TierArchived, reason)
		n.EvictedTurn = c.state.Turn
		c.evicted = append(c.evicted, c.scope.reference(n))
	}
}

// evictionOrder sorts pages as they are evicted, counting touches that are not
// written yet.
func (c *change) evictionOrder(pages []*resident) []*resident {
	out := make([]*resident, len(pages))
	for i, r := range pages {
		out[i] = c.counted(r)
	}
	evictionOrder(out, c.policy.Strategy, c.state.Tick, c.state.Turn)
	return out
}

// counted is a page with the touches that are not written yet.
func (c *change) counted(r *resident) *resident {
	if c.edited[r.Page] || c.made[r.Page] || c.scope.touches[r.ID] == nil {
		return r
	}
	return c.edit(r)
}

// empty says whether there is nothing to write.
func (c *change) empty() bool {
	return len(c.steps) == 0 && len(c.edited) == 0 && len(c.logs) == 0 && len(c.ledger) == 0 && !c.measured &&
		c.event == nil && !c.mended && c.same()
}

// same says whether the state is as it was, but for the clock of touches, which
// is written along with the next change.
func (c *change) same() bool {
	was, now := c.scope.state, c.state
	was.Tick, now.Tick = 0, 0
	a, errA := json.Marshal(was)
	b, errB := json.Marshal(now)
	return errA == nil && errB == nil && bytes.Equal(a, b)
}

// commit writes the change. errMoved means that the scope was changed from
// outside meanwhile.
func (c *change) commit(ctx context.Context, wait time.Duration) error {
	if err := c.settle(); err != nil {
		return err
	}
	if c.moved {
		c.state.Pending = append(c.state.Pending, c.visible()...)
		if extra := len(c.state.Pending) - maxPending; extra > 0 {
			c.state.Pending = c.state.Pending[extra:]
		}
	}
	if err := c.preparePublication(); err != nil {
		return err
	}
	if c.empty() {
		c.scope.adopt(c, nil)
		return nil
	}
	c.state.Totals.moved(c.ledger, len(c.evicted))
	for i := range c.ledger {
		if err := c.appendLog(store.LogResidency, "", c.ledger[i]); err != nil {
			return err
		}
	}
	for _, step := range c.steps {
		if err := step(nil); err != nil {
			return err
		}
	}
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	var now *store.ContextScope
	_, err := c.scope.reg.link.Write(waiting, func(tx *store.WriteTx) (err error) {
		now, err = c.write(tx)
		return err
	})
	if err != nil {
		return busyWriting(ctx, wait, err)
	}
	c.scope.adopt(c, now)
	return nil
}

// busyWriting is the error of a write that was to wait no longer than wait:
// ErrBusy where that was too short, and else as it is.
func busyWriting(ctx context.Context, wait time.Duration, err error) error {
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return &Error{Code: ErrBusy, Message: fmt.Sprintf("the store was busy writing for longer than %s: retry", wait), Err: err}
	}
	return err
}

// keptLog is how many entries of a type the log of a scope keeps at least.
const keptLog = 10_000

// write runs in the transaction.
func (c *change) write(tx *store.WriteTx) (*store.ContextScope, error) {
	s := c.scope
	now, err := tx.ContextOf(s.key.namespace, s.key.scope)
	if err != nil {
		return nil, err
	}
	switch {
	case (now == nil) != (s.stored == nil), now != nil && (now.ID != s.stored.ID || now.Version != s.stored.Version):
		return nil, errMoved
	case now == nil:
		now = &store.ContextScope{Namespace: s.key.namespace, Scope: s.key.scope, Version: 1, State: []byte("{}")}
		if err := tx.AddContext(now); err != nil {
			return nil, err
		}
		s.stored = now // create's steps need its id; adopt or the next load settles it
		defer func() { s.stored = nil }()
	}
	for _, step := range c.steps {
		if err := step(tx); err != nil {
			return nil, err
		}
	}
	for p := range c.edited {
		if !c.made[p] {
			if err := tx.SetPageState(p.ID, stateOf(p)); err != nil {
				return nil, err
			}
		}
	}
	for id, t := range s.touches {
		if c.merged[id] {
			continue
		}
		if err := tx.TouchPage(id, t.hits, t.tick, t.at); err != nil {
			return nil, err
		}
	}
	return c.writeRest(tx, now.ID)
}

// stateOf is a page's residency as it is stored.
func stateOf(p *store.Page) *store.PageState {
	return &store.PageState{
		Tier: p.Tier, Outline: p.Outline, Seq: p.Seq, Admission: p.Admission, RowVersion: p.RowVersion, PinReason: p.PinReason,
		Hits: p.Hits, Touched: p.Touched, TouchedAt: p.TouchedAt, EvictedTurn: p.EvictedTurn, ProtectedTo: p.ProtectedTo,
		Faults: p.Faults,
	}
}

// writeRest writes logs, published bytes and the state.
func (c *change) writeRest(tx *store.WriteTx, id int64) (*store.ContextScope, error) {
	full := map[store.LogType]bool{}
	for i := range c.logs {
		l := &c.logs[i]
		if err := tx.AppendLog(id, l.typ, &l.entry); err != nil {
			return nil, err
		}
		// Usage is kept: what was billed must not be counted twice.
		if l.typ != store.LogUsage && l.entry.Number%1000 == 0 {
			full[l.typ] = true
		}
	}
	for typ := range full {
		if err := tx.TrimLog(id, typ, keptLog); err != nil {
			return nil, err
		}
	}
	if c.event != nil || c.mended {
		if err := tx.PutPublished(id, c.text); err != nil {
			return nil, err
		}
	}
	now, err := tx.ContextByID(id)
	if err != nil {
		return nil, err
	}
	if now == nil {
		return nil, errs.New(errs.Storage, "the context scope vanished while it was written")
	}
	now.Version++
	c.state.Written = now.Version
	if now.State, err = json.Marshal(c.state); err != nil {
		return nil, err
	}
	return now, tx.UpdateContext(now)
}
