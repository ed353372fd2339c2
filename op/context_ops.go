package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/pager"
)

// contextPageOps are the operations on pages.
func contextPageOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:    "context.write",
			Summary: "Make a page of a context, or replace a whole revision of one",
			Description: "Fields that are left out take their defaults; only tier and outline stay as they are. Replacing a page needs its expected_version. " +
				"A write that changes nothing makes no revision. The answer names the page and what was evicted to make room.",
			Texts:  []string{"content!", "title", "summary"},
			Covers: []string{"Store.Write"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.WriteRequest
		}) (*pager.WriteResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.WriteRequest, (*pager.Store).Write)
		}),
		Define(Spec{
			Name:    "context.ingest",
			Summary: "Cut a long text into pages of a context, all in the archive",
			Description: "The pages one after the other are the text, byte for byte; cuts are at paragraphs, lines, sentences, words or characters. " +
				"All pages are stored or none. The answer names them in the order of the text.",
			Texts:  []string{"content!", "title"},
			Covers: []string{"Store.Ingest"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.IngestRequest
		}) (*pager.IngestResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.IngestRequest, (*pager.Store).Ingest)
		}),
		Define(Spec{
			Name:        "context.read",
			Summary:     "Read a page of a context, its current revision or an earlier one",
			Description: "The window stays as it is.",
			Positional:  []string{"page_id"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Read"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.ReadRequest
		}) (*pager.ReadResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.ReadRequest, (*pager.Store).Read)
		}),
		Define(Spec{
			Name:        "context.history",
			Summary:     "List the revisions of a page of a context",
			Description: "Every one of them can be read by its version.",
			Positional:  []string{"page_id"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.History"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.HistoryRequest
		}) (*pager.HistoryResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.HistoryRequest, (*pager.Store).History)
		}),
		Define(Spec{
			Name:        "context.search",
			Summary:     "Find pages of a context, in every tier, by their current revisions",
			Description: "Gives references, tags and summaries, never a text. Linked pages come in at half the score of the page that links to them. With kinds, records of the knowledge base are found as well.",
			Positional:  []string{"query"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Search"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.SearchRequest
		}) (*pager.SearchResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.SearchRequest, (*pager.Store).Search)
		}),
		Define(Spec{
			Name:        "context.page_in",
			Summary:     "Bring a page into the window of a context, or pin it in core",
			Description: "A record of the knowledge base comes in as a copy, by kind:id, such as memory:12; paged in again it takes the change of its record.",
			Positional:  []string{"page_id"},
			Idempotent:  true,
			Covers:      []string{"Store.PageIn"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.PageInRequest
		}) (*pager.PageInResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.PageInRequest, (*pager.Store).PageIn)
		}),
		Define(Spec{
			Name:        "context.page_out",
			Summary:     "Put a page out of the window of a context into the archive",
			Description: "A page of core has to be unpinned first.",
			Positional:  []string{"page_id"},
			Idempotent:  true,
			Covers:      []string{"Store.PageOut"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.PageOutRequest
		}) (*pager.PageOutResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.PageOutRequest, (*pager.Store).PageOut)
		}),
		Define(Spec{
			Name:       "context.unpin",
			Summary:    "Move a page of a context from core to working, where it may be evicted",
			Positional: []string{"page_id"},
			Idempotent: true,
			Covers:     []string{"Store.Unpin"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.UnpinRequest
		}) (*pager.UnpinResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.UnpinRequest, (*pager.Store).Unpin)
		}),
		Define(Spec{
			Name:        "context.fold",
			Summary:     "Fold the oldest rows of a context's outline into one milestone",
			Description: "The folded rows go to the archive and can still be read and found. This rewrites the prefix from the oldest row on, so it waits while the provider's prompt cache is warm, unless force is true or the outline is full. With fewer than two rows to fold nothing changes.",
			Idempotent:  true,
			Covers:      []string{"Store.Fold"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.FoldRequest
		}) (*pager.FoldResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.FoldRequest, (*pager.Store).Fold)
		}),
		Define(Spec{
			Name:        "context.compact",
			Summary:     "Replace the content of a page of a context by a shorter summary of it",
			Description: "This makes a revision; the text before it is read by its version. The summary is the caller's and must be shorter in bytes. All else of the page stays.",
			Positional:  []string{"page_id"},
			Texts:       []string{"summary!"},
			Covers:      []string{"Store.Compact"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.CompactRequest
		}) (*pager.CompactResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.CompactRequest, (*pager.Store).Compact)
		}),
		Define(Spec{
			Name:        "context.organize",
			Summary:     "Link a page of a context with the pages that are most like it, both ways",
			Description: "By the cosine of their vectors, or of their words where there are none. Links are candidates and say nothing of facts. Pages that cannot take a link are skipped, with the reason.",
			Positional:  []string{"page_id"},
			Idempotent:  true,
			Covers:      []string{"Store.Organize"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.OrganizeRequest
		}) (*pager.OrganizeResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.OrganizeRequest, (*pager.Store).Organize)
		}),
		Define(Spec{
			Name:        "context.forget",
			Summary:     "Remove a page of a context for good, with every revision of it",
			Description: "It goes out of the links of all others too. The record that a copy was made of stays.",
			Positional:  []string{"page_id"},
			Destructive: true,
			Covers:      []string{"Store.Forget"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.ForgetRequest
		}) (*pager.ForgetResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.ForgetRequest, (*pager.Store).Forget)
		}),
	}
}

// contextWindowOps are the operations that give the window.
func contextWindowOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "context.recall",
			Summary:     "Find pages of a context and bring them into its window, as far as there is room",
			Description: "They come in by rank; one that does not fit is skipped, with the reason, and the rest go on. The answer holds the window with its text, which is published unless publish is false.",
			Positional:  []string{"query"},
			Covers:      []string{"Store.Recall"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.RecallRequest
		}) (*pager.RecallResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.RecallRequest, (*pager.Store).Recall)
		}),
		Define(Spec{
			Name:        "context.render",
			Summary:     "Render the window of a context as it stands",
			Description: "Publishes the text only where publish asks for it, so that people can look without moving the generation.",
			Idempotent:  true,
			Covers:      []string{"Store.Render"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.RenderRequest
		}) (*pager.Snapshot, error) {
			return changeContext(ctx, db, in.ContextChange, in.RenderRequest, (*pager.Store).Render)
		}),
		Define(Spec{
			Name:        "context.snapshot",
			Summary:     "Show what has changed in the window of a context since a generation",
			Description: "For every step of a model: unchanged since that generation, the answer holds figures and no text. Otherwise the text is published and given.",
			Idempotent:  true,
			Covers:      []string{"Store.Snapshot"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.SnapshotRequest
		}) (*pager.Snapshot, error) {
			return changeContext(ctx, db, in.ContextChange, in.SnapshotRequest, (*pager.Store).Snapshot)
		}),
		Define(Spec{
			Name:        "context.prefix",
			Summary:     "Render the window of a context in two parts, its stable prefix and its tail",
			Description: "A host sends them as two blocks with a cache breakpoint between. The answer says what the last change of the published text cost.",
			Idempotent:  true,
			Covers:      []string{"Store.Prefix"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.PrefixRequest
		}) (*pager.PrefixResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.PrefixRequest, (*pager.Store).Prefix)
		}),
	}
}

// contextStateOps are the operations on checkpoints.
func contextStateOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "context.checkpoint",
			Summary:     "Note the version and the place of every page of a context",
			Description: "Restore brings them back. The label is for people.",
			Covers:      []string{"Store.Checkpoint"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.CheckpointRequest
		}) (*pager.CheckpointResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.CheckpointRequest, (*pager.Store).Checkpoint)
		}),
		Define(Spec{
			Name:        "context.checkpoints",
			Summary:     "List the checkpoints of a context",
			Description: "Newest first. The answer's next_cursor, given as after, asks for older ones.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Checkpoints"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.CheckpointsRequest
		}) (*pager.CheckpointsResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.CheckpointsRequest, (*pager.Store).Checkpoints)
		}),
		Define(Spec{
			Name:        "context.restore",
			Summary:     "Bring the pages of a context back to what a checkpoint noted",
			Description: "All of it or nothing. Content that differs becomes a new revision, so that nothing is lost; pages made later go to the archive. Statistics stay.",
			Positional:  []string{"checkpoint_id"},
			Idempotent:  true,
			Covers:      []string{"Store.Restore"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.RestoreRequest
		}) (*pager.RestoreResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.RestoreRequest, (*pager.Store).Restore)
		}),
	}
}

// contextMeasureOps are the operations that count, advise and govern.
func contextMeasureOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "context.metrics",
			Summary:     "List the latest changes of the published text of a context and what they cost",
			Description: "Newest first. The bytes that were invalidated are those that a prompt cache has to be paid for again.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Metrics"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.MetricsRequest
		}) (*pager.MetricsResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.MetricsRequest, (*pager.Store).Metrics)
		}),
		Define(Spec{
			Name:        "context.dashboard",
			Summary:     "Gather what a person wants to see of a context",
			Description: "The window, what the pages are made of, the latest changes, the paging ledger and what was billed. Nothing is published.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Dashboard"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.DashboardRequest
		}) (*pager.Dashboard, error) {
			return inContext(ctx, db, in.ContextTarget, in.DashboardRequest, (*pager.Store).Dashboard)
		}),
		Define(Spec{
			Name:        "context.usage",
			Summary:     "List the model calls that a context was billed for, with its hit rate",
			Description: "Newest first. What was simulated is totalled apart.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Usage"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.UsageRequest
		}) (*pager.UsageResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.UsageRequest, (*pager.Store).Usage)
		}),
		Define(Spec{
			Name:    "context.record_usage",
			Summary: "Record what a model call was billed",
			Description: "Give the counters, which do not overlap: billed input is input_tokens + cache_read_tokens + cache_write_tokens. Or give provider and the usage object of its answer as it came. " +
				"The same source, turn and step again is not counted. The window and its generation stay as they are.",
			Covers: []string{"Store.RecordUsage"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.RecordUsageRequest
		}) (*pager.RecordUsageResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.RecordUsageRequest, (*pager.Store).RecordUsage)
		}),
		Define(Spec{
			Name:        "context.status",
			Summary:     "Show what a context is made of and how it is set up",
			Description: "The answer gives references in parts: its next_cursor, given as after, asks for the next ones. Nothing is published.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Status"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.StatusRequest
		}) (*pager.StatusResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.StatusRequest, (*pager.Store).Status)
		}),
		Define(Spec{
			Name:        "context.schedule",
			Summary:     "Rank the places where a task may run by what that would cost",
			Description: "score = queue_ms + (1 + congestion) * (compute_ms + transfer_ms), the smallest first. All figures are the caller's; nothing is measured, run or copied.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.Schedule"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.ScheduleRequest
		}) (*pager.ScheduleResult, error) {
			return inContext(ctx, db, in.ContextTarget, in.ScheduleRequest, (*pager.Store).Schedule)
		}),
		Define(Spec{
			Name:        "context.prepare_task",
			Summary:     "Bring the pages for a task into the window of a context, and rank the places where it may run",
			Description: "Chooses pages by relevance first, as recall does, and a place afterwards, by which of them it has. Executors that cannot be ranked are refused before anything is brought in. Nothing is run or copied.",
			Positional:  []string{"query"},
			Covers:      []string{"Store.PrepareTask"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.PrepareTaskRequest
		}) (*pager.PrepareTaskResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.PrepareTaskRequest, (*pager.Store).PrepareTask)
		}),
		Define(Spec{
			Name:        "context.replacement_policy",
			Summary:     "Show the replacement policy of a context and what it did last",
			Description: "It belongs to the namespace.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"Store.ReplacementPolicy"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextTarget
			pager.ReplacementPolicyRequest
		}) (*pager.Replacement, error) {
			return inContext(ctx, db, in.ContextTarget, in.ReplacementPolicyRequest, (*pager.Store).ReplacementPolicy)
		}),
		Define(Spec{
			Name:        "context.set_policy",
			Summary:     "Change the replacement policy of a namespace",
			Description: "What is left out stays. It is for the host and the user, not for a model.",
			Idempotent:  true,
			Covers:      []string{"Store.SetPolicy"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.SetPolicyRequest
		}) (*pager.SetPolicyResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.SetPolicyRequest, (*pager.Store).SetPolicy)
		}),
		Define(Spec{
			Name:        "context.policy_tick",
			Summary:     "Count a turn of the conversation and run the replacement policy when it is time",
			Description: "For the host, at each message of the user. It waits while the provider's prompt cache is warm, unless force is true or the window is nearly full.",
			Covers:      []string{"Store.PolicyTick"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			ContextChange
			pager.PolicyTickRequest
		}) (*pager.PolicyTickResult, error) {
			return changeContext(ctx, db, in.ContextChange, in.PolicyTickRequest, (*pager.Store).PolicyTick)
		}),
	}
}
