package pager

import (
	"context"
	"fmt"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// StatusRequest asks what a scope is made of.
type StatusRequest struct {
	Limit *int    `json:"limit,omitempty"` // references: 1..1000, default 100
	After loci.ID `json:"after,omitempty"` // next_cursor of the answer before, for the references behind it
}

// StatusResult says what a scope is made of. Making it publishes nothing.
type StatusResult struct {
	Scope         Scope         `json:"scope"`
	Configuration Configuration `json:"configuration"`
	Backend       Backend       `json:"backend"`
	Counts        Composition   `json:"counts"`
	Pages         []Reference   `json:"pages"`                 // in the order in which they were made
	NextCursor    loci.ID       `json:"next_cursor,omitempty"` // there are more behind it
	Snapshot      Snapshot      `json:"snapshot"`              // without text; changed says that it differs from what was published last
	Policy        Policy        `json:"policy"`
	Fold          *FoldEstimate `json:"fold,omitempty"` // where there is something to fold and a provider to reckon with
	Warnings      []Warning     `json:"warnings"`
}

// Configuration is how a scope is measured.
type Configuration struct {
	Budget    int    `json:"budget"`
	Unit      Unit   `json:"unit"`
	Tokenizer string `json:"tokenizer,omitempty"`
	Stored    bool   `json:"stored"` // false before the first change: it is what the handle asks for
}

// Backend is what the scope lies in.
type Backend struct {
	Name          string `json:"name"` // "loci"
	SchemaVersion int    `json:"schema_version"`
	IndexUsable   bool   `json:"index_usable"` // the text index answers searches
	// PendingIndexUpdates are changes that searches do not see yet.
	PendingIndexUpdates int64 `json:"pending_index_updates"`
	// EmbedderSpaces are the vector spaces that have an embedder in this process.
	EmbedderSpaces []string `json:"embedder_spaces"`
}

// Warning is something that the user of a scope had better know.
type Warning struct {
	// Code is "core_over_half", "below_min_prefix", "stale_copies",
	// "outline_nearly_full" or "fold".
	Code    string `json:"code"`
	Message string `json:"message"`
	Value   int64  `json:"value"`           // the figure that it is about
	Limit   int64  `json:"limit,omitempty"` // what the figure is held against
}

// Status says what a scope is made of and how it is set up. It changes nothing.
func (cs *Store) Status(ctx context.Context, req StatusRequest) (*StatusResult, error) {
	const op = "status"
	limit, err := validLimit("limit", req.Limit, 100, 1, 1000)
	if err == nil && req.After < 0 {
		err = invalid("after", "must be the next_cursor of an answer before")
	}
	if err != nil {
		return nil, withOp(op, err)
	}
	health, err := cs.reg.db.Health(ctx)
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *StatusResult
	err = cs.with(ctx, op, func(s *scope) error {
		policy, err := s.policy(ctx)
		if err != nil {
			return err
		}
		out = &StatusResult{
			Scope:         cs.Scope(),
			Configuration: Configuration{Budget: s.state.Budget, Unit: s.state.Unit, Tokenizer: s.state.Tokenizer, Stored: s.stored != nil},
			Backend: Backend{Name: "loci", SchemaVersion: health.SchemaVersion, IndexUsable: health.IndexUsable,
				PendingIndexUpdates: health.PendingIndexUpdates, EmbedderSpaces: health.EmbedderSpaces},
			Pages: []Reference{}, Snapshot: *s.silentSnapshot(policy), Policy: policy, Fold: s.foldEstimate(&policy, s.reg.link.Now().UnixMicro()),
		}
		stale, err := s.statusPages(ctx, out, int64(req.After), limit)
		if err != nil {
			return err
		}
		out.Warnings = s.warnings(&policy, out.Fold, stale)
		return s.completeAll(ctx, out.Pages)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// statusPages counts the scope's pages and gives the references behind a record,
// and counts the stale copies in the window.
func (s *scope) statusPages(ctx context.Context, out *StatusResult, after int64, limit int) (staleCopies int64, err error) {
	for _, list := range []struct {
		pages []*resident
		share *TierShare
	}{{s.window.core, &out.Counts.Core}, {s.window.working, &out.Counts.Working}} {
		for i, r := range list.pages {
			list.share.RenderedBytes += int64(renderedBytes(r, i))
		}
	}
	if s.stored == nil {
		return 0, nil
	}
	err = s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		staleCopies = 0
		pages, bytes, err := tx.CountPages(s.stored.ID)
		if err != nil {
			return err
		}
		for tier, share := range [...]*TierShare{store.TierArchived: &out.Counts.Archive, store.TierWorking: &out.Counts.Working, store.TierCore: &out.Counts.Core} {
			share.Pages, share.Bytes = pages[tier], bytes[tier]
		}
		for _, list := range [][]*resident{s.window.core, s.window.working} {
			for _, r := range list {
				old, err := stale(tx, r.Page)
				if err != nil {
					return err
				}
				if old {
					staleCopies++
				}
			}
		}
		var ids []int64
		if err := tx.PageHeads(s.stored.ID, after, limit+1, func(h *store.PageHead) bool {
			ids = append(ids, h.ID)
			return true
		}); err != nil {
			return err
		}
		if len(ids) > limit {
			ids = ids[:limit]
			out.NextCursor = loci.ID(ids[limit-1])
		}
		for _, id := range ids {
			p, err := tx.Page(id)
			if err != nil {
				return err
			}
			if p == nil {
				continue // it cannot go within a snapshot of the truth
			}
			out.Pages = append(out.Pages, s.current(p))
		}
		return nil
	})
	return staleCopies, err
}

// silentSnapshot is what is in the window, without its text. Changed says
// whether that differs from what was published last.
func (s *scope) silentSnapshot(policy Policy) *Snapshot {
	snap := s.snapshot(policy, new(s.state.Generation))
	snap.Text = nil
	return snap
}

// coreCost is what core alone takes of the budget.
func (s *scope) coreCost() int { return meter{s.counter}.cost(&window{core: s.window.core}) }

// nearlyFullRows is the number of outline rows from which it is time to fold.
const nearlyFullRows = MaxOutlineRows - 4

// bytesPerToken is taken where a budget in bytes is held against a limit in
// tokens: 4.15 was measured for the prompts of coding agents.
const bytesPerToken = 4

// warnings says what had better be looked at; stale is the number of stale
// copies in the window.
func (s *scope) warnings(policy *Policy, fold *FoldEstimate, stale int64) []Warning {
	out := []Warning{}
	budget := s.state.Budget
	if core := s.coreCost(); 2*core > budget {
		out = append(out, Warning{"core_over_half", fmt.Sprintf("core takes %d of a budget of %d: little is left for working pages", core, budget), int64(core), int64(budget)})
	}
	if p, known := profileOf(policy.Provider); known {
		tokens, about := budget, ""
		if s.state.Unit == UnitBytes {
			tokens, about = budget/bytesPerToken, fmt.Sprintf("about, at %d bytes each, ", bytesPerToken)
		}
		if tokens < p.MinPrefixTokens {
			out = append(out, Warning{"below_min_prefix", fmt.Sprintf(
				"the budget is %s%d tokens, and %s caches nothing below %d: the window is cached only behind a stable prompt of the host's",
				about, tokens, p.ID, p.MinPrefixTokens), int64(tokens), int64(p.MinPrefixTokens)})
		}
	}
	if stale > 0 {
		out = append(out, Warning{"stale_copies", fmt.Sprintf("%d copies of records in the window are out of date: page_in takes the change", stale), stale, 0})
	}
	rows := 0
	for _, r := range s.window.core {
		if r.Outline {
			rows++
		}
	}
	full := rows >= nearlyFullRows
	if full {
		out = append(out, Warning{"outline_nearly_full", fmt.Sprintf("the outline has %d of %d rows: fold it", rows, MaxOutlineRows), int64(rows), MaxOutlineRows})
	}
	if fold != nil && (full || s.pressure(*policy).Level != "low") {
		message := fmt.Sprintf("folding now pays back after %d calls", fold.PaysBackAfter)
		if !fold.Warm {
			message = "the prompt cache is cold: folding now loses nothing"
		}
		out = append(out, Warning{"fold", message, fold.PaysBackAfter, 0})
	}
	return out
}
