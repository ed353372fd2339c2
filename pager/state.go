package pager

import (
	"encoding/json"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/internal/store"
)

// state is what is stored about a scope besides its pages.
type state struct {
	measure
	Tick       int64 `json:"tick"`             // logical time of touches
	Epoch      int64 `json:"residency_epoch"`  // of changes that may change the bytes
	Generation int64 `json:"generation"`       // of published bytes
	Turn       int64 `json:"turn"`             // of the conversation
	Ticked     bool  `json:"ticked,omitempty"` // policy_tick counts the turns; until then recalls do

	// Written is the scope's version that this state was written with. Each one
	// beyond it is a page that was removed from outside.
	Written int64 `json:"written"`

	NextSeq       int64 `json:"next_seq"`
	NextAdmission int64 `json:"next_admission"`
	NextPage      int64 `json:"next_page"` // number in the next page id that the store gives

	Published publishedState `json:"published,omitzero"`
	Pending   []Operation    `json:"pending,omitempty"` // since the last publication
	Policy    policyState    `json:"policy,omitzero"`
	Usage     usageState     `json:"usage,omitzero"`
	Totals    totalsState    `json:"totals,omitzero"`
}

// publishedState describes the bytes that were published last.
type publishedState struct {
	SHA     string `json:"sha,omitempty"` // "" before the first
	CoreSHA string `json:"core_sha,omitempty"`
	Size    int    `json:"size,omitempty"`
	Stable  int    `json:"stable,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"`
	AtUS    int64  `json:"at_us,omitempty"`
}

// newState is the state of a scope that was never used.
func newState() state {
	return state{measure: measure{Budget: DefaultBudget, Unit: UnitBytes}, NextSeq: 1, NextAdmission: 1, NextPage: 1}
}

func decodeState(raw []byte) (state, error) {
	st := newState()
	if err := json.Unmarshal(raw, &st); err != nil {
		return st, errs.Wrap(errs.Storage, err, "the database is damaged: the state of a context scope cannot be read")
	}
	return st, st.check()
}

// check says what is wrong with a state that was read. An import takes states as
// they come.
func (st *state) check() error {
	for _, f := range []struct {
		name  string
		value int64
		least int64
	}{
		{"tick", st.Tick, 0}, {"residency_epoch", st.Epoch, 0}, {"generation", st.Generation, 0}, {"turn", st.Turn, 0}, {"written", st.Written, 0},
		{"next_seq", st.NextSeq, 1}, {"next_admission", st.NextAdmission, 1}, {"next_page", st.NextPage, 1},
		{"published.size", int64(st.Published.Size), 0}, {"published.stable", int64(st.Published.Stable), 0}, {"budget", int64(st.Budget), MinBudget},
	} {
		if f.value < f.least {
			return damagedState(f.name)
		}
	}
	switch {
	case st.Budget > MaxBudget:
		return damagedState("budget")
	case st.Unit != UnitBytes && st.Unit != UnitTokens:
		return damagedState("unit")
	case (st.Unit == UnitTokens) != (st.Tokenizer != ""):
		return damagedState("tokenizer")
	case st.Published.Stable > st.Published.Size:
		return damagedState("published.stable")
	}
	return nil
}

// fits says whether the numbers for new places lie above those that are taken.
func (st *state) fits(w *window) error {
	for _, r := range w.core {
		if r.Seq >= st.NextSeq {
			return damagedState("next_seq")
		}
	}
	for _, r := range w.working {
		if r.Admission >= st.NextAdmission {
			return damagedState("next_admission")
		}
	}
	return nil
}

// damagedState is the error of a state whose field cannot be.
func damagedState(field string) error {
	return errs.New(errs.Storage, "the database is damaged: %s in the state of a context scope cannot be: restore a backup, or correct the file that was imported", field)
}

// maxPending bounds the operations that are kept for the next publication; the
// newest are kept.
const maxPending = 64

// resident is a page in the window, or one that an operation works on. A page
// in use is never changed: an operation makes a copy of it.
type resident struct {
	*store.Page
	line []byte // as it is rendered
	// tokens of its line as the first of its list and behind a comma; 0: not
	// counted yet. They depend on the scope's counter only.
	first, next int
}

func newResident(p *store.Page) *resident {
	return &resident{Page: p, line: render.AppendItem(nil, itemOf(p))}
}

// itemOf is a page as it is rendered.
func itemOf(p *store.Page) *render.Item {
	it := &render.Item{ID: p.PageID, Version: p.Version, Title: p.Title}
	if p.Outline {
		it.Index, it.Version, it.Seq, it.Summary = true, p.RowVersion, p.Seq, p.Summary
	} else {
		it.Tags, it.Content = p.PageRevision.Tags, p.Content
	}
	return it
}

// window is what stands in the context window.
type window struct {
	core    []*resident // by seq
	working []*resident // by admission
}

func (w *window) lines() (core, working [][]byte) {
	core, working = make([][]byte, len(w.core)), make([][]byte, len(w.working))
	for i, r := range w.core {
		core[i] = r.line
	}
	for i, r := range w.working {
		working[i] = r.line
	}
	return core, working
}

// text renders the window.
func (w *window) text() (text []byte, stable int) {
	core, working := w.lines()
	size, _ := render.Size(core, working)
	return render.Append(make([]byte, 0, size), core, working)
}

// find gives the resident with a page id, or nil.
func (w *window) find(pageID string) *resident {
	for _, list := range [][]*resident{w.core, w.working} {
		for _, r := range list {
			if r.PageID == pageID {
				return r
			}
		}
	}
	return nil
}

// tierNames are the tiers as callers know them.
var tierNames = [...]Tier{store.TierArchived: Archive, store.TierWorking: Working, store.TierCore: Core}

// tierNumber gives a tier as it is stored.
func tierNumber(t Tier) (store.PageTier, bool) {
	for n, name := range tierNames {
		if name == t {
			return store.PageTier(n), true
		}
	}
	return 0, false
}
