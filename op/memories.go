package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// MemoryWrite is a memory to write. It differs from loci.MemoryInput in that
// every part of the state may be left out.
type MemoryWrite struct {
	loci.MemoryInput
	State *StateWrite `json:"state,omitempty"` // lifecycle state; left out, the stored one is kept
}

// StateWrite is a lifecycle state to write as a whole.
type StateWrite struct {
	Pinned           bool     `json:"pinned,omitempty"`       // never decays nor is penalised
	Strength         *float64 `json:"strength,omitempty"`     // default 1
	UsefulCount      int64    `json:"useful_count,omitempty"` // default 0
	UsefulScore      float64  `json:"useful_score,omitempty"` // default 0
	LastRecalledAtUS *int64   `json:"last_recalled_at_us,omitempty"`
	LastDecayAtUS    *int64   `json:"last_decay_at_us,omitempty"`
}

func (w MemoryWrite) input() loci.MemoryInput {
	in := w.MemoryInput
	in.State = nil
	if s := w.State; s != nil {
		in.State = &loci.MemoryState{
			Pinned: s.Pinned, Strength: 1,
			UsefulCount: s.UsefulCount, UsefulScore: s.UsefulScore,
			LastRecalledAtUS: s.LastRecalledAtUS, LastDecayAtUS: s.LastDecayAtUS,
		}
		if s.Strength != nil {
			in.State.Strength = *s.Strength
		}
	}
	return in
}

// MemoriesWrite is a batch of memories.
type MemoriesWrite struct {
	Memories []MemoryWrite `json:"memories"` // all are written or none; at most 10000
}

// OneRecord names a record and the filter it must be under.
type OneRecord struct {
	ID     loci.ID         `json:"id"` // the record's id
	Filter loci.ReadFilter `json:"filter,omitzero"`
}

// DeleteMany asks for a deletion by filter. What is to go must be said in full,
// so that a forgotten field never empties a store.
type DeleteMany struct {
	Filter loci.ReadFilter `json:"filter,omitzero"`   // what to delete; needs namespace and scopes unless all is true
	All    bool            `json:"all,omitempty"`     // take the filter's defaults for what it leaves out
	DryRun bool            `json:"dry_run,omitempty"` // count only
}

func (d DeleteMany) validate() error {
	if d.All {
		return nil
	}
	const how = "name it, or say all: true to take the default"
	if d.Filter.Namespace == nil {
		return errs.Invalid("filter.namespace", "is needed for a deletion by filter; %s", how)
	}
	if d.Filter.Scopes == nil {
		return errs.Invalid("filter.scopes", "is needed for a deletion by filter; %s", how)
	}
	return nil
}

func memoryOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "memories.upsert",
			Summary:     "Create a memory, or replace the one with this id",
			Description: "Without an id a memory is created. With one, that memory is replaced: text, reasoning, tags, evidence and metadata become what the input says, while namespace, scope and state are kept where the input leaves them out.",
			Texts:       []string{"judgment!", "reasoning", "evidence[].quote"},
			Covers:      []string{"MemoryStore.Upsert"},
		}, func(ctx context.Context, db *loci.DB, in MemoryWrite) (*loci.Receipt[loci.Memory], error) {
			return db.Memories().Upsert(ctx, in.input())
		}),
		Define(Spec{
			Name:        "memories.upsert_many",
			Summary:     "Create or replace several memories in one transaction",
			Description: "Either every memory is written or none is.",
			Texts:       []string{"memories[].judgment!", "memories[].reasoning", "memories[].evidence[].quote"},
			Covers:      []string{"MemoryStore.UpsertMany"},
		}, func(ctx context.Context, db *loci.DB, in MemoriesWrite) (*loci.Receipt[[]loci.Memory], error) {
			ins := make([]loci.MemoryInput, len(in.Memories))
			for i, m := range in.Memories {
				ins[i] = m.input()
			}
			return db.Memories().UpsertMany(ctx, ins)
		}),
		Define(Spec{
			Name:        "memories.upsert_by_judgment",
			Summary:     "Create a memory unless the same judgment is known, then merge",
			Description: "Judgments are the same when they differ only in case, width and blanks, within one namespace and scope. Tags and evidence are united, metadata merged with the new keys winning, type and reasoning replaced when given.",
			Idempotent:  true,
			Texts:       []string{"judgment!", "reasoning", "evidence[].quote"},
			Covers:      []string{"MemoryStore.UpsertByJudgment"},
		}, func(ctx context.Context, db *loci.DB, in MemoryWrite) (*loci.Receipt[loci.Memory], error) {
			return db.Memories().UpsertByJudgment(ctx, in.input())
		}),
		Define(Spec{
			Name:       "memories.get",
			Summary:    "Read one memory by id",
			Positional: []string{"id"},
			ReadOnly:   true, Idempotent: true,
			Covers: []string{"MemoryStore.Get"},
		}, func(ctx context.Context, db *loci.DB, in OneRecord) (*loci.Memory, error) {
			return db.Memories().Get(ctx, in.ID, in.Filter)
		}),
		Define(Spec{
			Name:        "memories.list",
			Summary:     "List memories by ascending id, page by page",
			Description: "The answer's next_cursor, given as after, asks for the next page; without one this was the last.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"MemoryStore.List"},
		}, func(ctx context.Context, db *loci.DB, in loci.PageRequest) (*loci.Page[loci.Memory], error) {
			return db.Memories().List(ctx, in)
		}),
		Define(Spec{
			Name:        "memories.delete",
			Summary:     "Delete one memory by id",
			Description: "The value is false when there was none under the filter.",
			Positional:  []string{"id"},
			Idempotent:  true, Destructive: true,
			Covers: []string{"MemoryStore.Delete"},
		}, func(ctx context.Context, db *loci.DB, in OneRecord) (*loci.Receipt[bool], error) {
			return db.Memories().Delete(ctx, in.ID, in.Filter)
		}),
		Define(Spec{
			Name:        "memories.delete_by_filter",
			Summary:     "Delete every memory that a filter covers",
			Description: "The filter must name its namespace and its scopes, or all must be true, which takes the defaults. With dry_run nothing is deleted and the value is the number that would be.",
			Idempotent:  true, Destructive: true,
			Covers: []string{"MemoryStore.DeleteByFilter"},
		}, func(ctx context.Context, db *loci.DB, in DeleteMany) (*loci.Receipt[int64], error) {
			return db.Memories().DeleteByFilter(ctx, loci.DeleteRequest{Filter: in.Filter, DryRun: in.DryRun})
		}),
		Define(Spec{
			Name:        "memories.feedback",
			Summary:     "Report which of the recalled memories were useful",
			Description: "Useful memories grow stronger; proven ones that were recalled in vain grow weaker, unless pinned.",
			Covers:      []string{"MemoryStore.Feedback"},
		}, func(ctx context.Context, db *loci.DB, in loci.FeedbackRequest) (*loci.Receipt[loci.FeedbackReport], error) {
			return db.Memories().Feedback(ctx, in)
		}),
		Define(Spec{
			Name:        "memories.decay",
			Summary:     "Weaken memories that were not recalled for a while",
			Description: "Nothing is deleted: the answer lists what has lost all its strength. A second pass at the same instant changes nothing.",
			Idempotent:  true,
			Covers:      []string{"MemoryStore.Decay"},
		}, func(ctx context.Context, db *loci.DB, in loci.DecayRequest) (*loci.Receipt[loci.DecayReport], error) {
			return db.Memories().Decay(ctx, in)
		}),
	}
}
