package op

import (
	"context"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// episodeOps are the operations that only episodes have.
func episodeOps() []*Operation {
	episodes := (*agent.AgentMemory).Episodic
	return []*Operation{
		Define(Spec{
			Name:    "episodes.record",
			Summary: "Record something that happened under an id of your own",
			Description: "What is there under the id is replaced, but for its relations, and kept in its history. With ttl_seconds 0 all is checked, and what is there is removed. " +
				"Without an embedding the embedder of the memory's space makes one; without one the episode is found by words alone. The memory is made if it is not there.",
			Positional: []string{"description"},
			Texts:      []string{"description!"},
			Covers:     []string{"EpisodicMemory.Record"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.EpisodeInput
		}) (*loci.Receipt[agent.Stored], error) {
			return makeMemory(ctx, db, in.AgentMake, in.Embedding, episodes, in.EpisodeInput, (*agent.EpisodicMemory).Record)
		}),
		Define(Spec{
			Name:        "episodes.record_batch",
			Summary:     "Record many episodes in one transaction",
			Description: "All are recorded or none. Of those of one id the last one counts, and all are checked. The memory is made if it is not there.",
			Texts:       []string{"episodes[].description!"},
			Covers:      []string{"EpisodicMemory.RecordBatch"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.EpisodeBatch
		}) (*loci.Receipt[agent.BatchResult], error) {
			if len(in.Episodes) == 0 {
				return nothingIn[agent.BatchResult](ctx, db, in.AgentTarget)
			}
			embedding := firstEmbedding(in.Episodes, func(e *agent.EpisodeInput) []float32 { return e.Embedding })
			return makeMemory(ctx, db, in.AgentMake, embedding, episodes, in.EpisodeBatch, (*agent.EpisodicMemory).RecordBatch)
		}),
		Define(Spec{
			Name:    "episodes.import",
			Summary: "Bring in a file of conversations, each message as an episode",
			Description: "Formats: jsonl, chatgpt and claude (conversations.json of their exports), and claude-code (a session file of Claude Code); left out, it is found out. A message is known again, so the same file changes nothing and a newer export adds what is new. " +
				"The file is written in many transactions: what fails on the way leaves what was done, and the file brought in again completes it. Vectors are made in the background. The memory is made if it is not there." + absolutePaths,
			Positional: []string{"path"},
			LocalPaths: []string{"path"},
			Idempotent: true, LongRunning: true,
			Admin:  true,
			Covers: []string{"EpisodicMemory.Import"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			agent.ImportRequest
		}) (*loci.Receipt[agent.ImportReport], error) {
			in.Progress = ProgressFrom(ctx)
			return makeMemory(ctx, db, in.AgentMake, nil, episodes, in.ImportRequest, (*agent.EpisodicMemory).Import)
		}),
		Define(Spec{
			Name:        "episodes.get",
			Summary:     "Read a live episode by id",
			Description: whatGet,
			Positional:  []string{"id"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EpisodicMemory.Get", "EpisodicMemory.GetMetadata"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.GetRequest
		}) (*agent.Found[loci.Episode], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, episodes, in.GetRequest, (*agent.EpisodicMemory).Get)
		}),
		Define(Spec{
			Name:        "episodes.list",
			Summary:     "List live episodes by ascending id, page by page",
			Description: pagedBy,
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EpisodicMemory.List"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.ListRequest
		}) (*agent.Page[loci.Episode], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, episodes, in.ListRequest, (*agent.EpisodicMemory).List)
		}),
		Define(Spec{
			Name:        "episodes.recent",
			Summary:     "List what happened last, the latest first",
			Description: "Strictly after since_us, if that is given.",
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EpisodicMemory.Recent"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.RecentRequest
		}) (*agent.Episodes, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, episodes, in.RecentRequest, (*agent.EpisodicMemory).Recent)
		}),
		Define(Spec{
			Name:     "episodes.older_than",
			Summary:  "List what happened before a time, the earliest first",
			ReadOnly: true, Idempotent: true,
			Covers: []string{"EpisodicMemory.OlderThan"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.OlderThanRequest
		}) (*agent.Episodes, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, episodes, in.OlderThanRequest, (*agent.EpisodicMemory).OlderThan)
		}),
		Define(Spec{
			Name:        "episodes.between",
			Summary:     "List what happened from a time on and before another, the earliest first",
			Description: pagedBy,
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EpisodicMemory.Between"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.BetweenRequest
		}) (*agent.Episodes, error) {
			return inMemory(ctx, db, in.AgentTarget, nil, episodes, in.BetweenRequest, (*agent.EpisodicMemory).Between)
		}),
		Define(Spec{
			Name:        "episodes.recall_similar",
			Summary:     "Find the episodes that are most like a text or a vector",
			Description: "Give one of the two. By vector scores are cosines and the answer is exact, unless approximate is true; by text it is what a search gives.",
			Positional:  []string{"text"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EpisodicMemory.RecallSimilar"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.RecallRequest
		}) (*agent.EpisodeHits, error) {
			return inMemory(ctx, db, in.AgentTarget, in.Embedding, episodes, in.RecallRequest, (*agent.EpisodicMemory).RecallSimilar)
		}),
	}
}
