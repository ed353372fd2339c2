package op

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/internal/errs"
)

// maxCapture bounds the messages of one call, which are one document in memory.
const maxCapture = 10_000

// CaptureRequest is a piece of a conversation.
type CaptureRequest struct {
	Thread   string            `json:"thread"`   // the conversation
	Messages []CapturedMessage `json:"messages"` // at most 10000, in their order
	// TTLSeconds is how long what is recorded lives from then on, 1 and up; left out:
	// for ever, or, of what is there already, as before.
	TTLSeconds *uint64 `json:"ttl_seconds,omitempty"`
	DryRun     bool    `json:"dry_run,omitempty"` // report only
}

// CapturedMessage is what someone said.
type CapturedMessage struct {
	ID   string `json:"id"`              // by which it is known when it comes again
	Role string `json:"role"`            // user, assistant or another word
	Text string `json:"text"`            // at most 1 MiB; a longer one is cut
	AtUS *int64 `json:"at_us,omitempty"` // when it was said, UTC microseconds; default that of the message before, or now
}

// jsonl is the messages as a file of conversations has them.
func (r *CaptureRequest) jsonl() ([]byte, error) {
	if r.Thread == "" {
		return nil, errs.Invalid("thread", "is required")
	}
	if len(r.Messages) > maxCapture {
		return nil, errs.Invalid("messages", "must be at most %d", maxCapture)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.ID == "" {
			return nil, errs.Invalid("messages", "number %d has no id: without one it could not be told from one that says the same", i)
		}
		at := ""
		if m.AtUS != nil { // a number's unit would be told from its size
			at = time.UnixMicro(*m.AtUS).UTC().Format(time.RFC3339Nano)
		}
		err := enc.Encode(struct {
			ID        string `json:"id"`
			Role      string `json:"role"`
			Content   string `json:"content"`
			Timestamp string `json:"timestamp,omitempty"`
		}{m.ID, m.Role, m.Text, at})
		if err != nil {
			return nil, errs.Invalid("messages", "number %d has no JSON form", i)
		}
	}
	return b.Bytes(), nil
}

// captureOps are the operations by which a conversation is kept while it goes on.
func captureOps() []*Operation {
	episodes := (*agent.AgentMemory).Episodic
	return []*Operation{
		Define(Spec{
			Name:    "episodes.capture",
			Summary: "Keep messages of a conversation that goes on, each as an episode",
			Description: "A message is known again by its id and the thread, so what was captured may be sent again. Marked blocks, which a memory gave itself, are taken out, and a message that is nothing else is counted in left_out. " +
				"Vectors are made in the background. The memory is made if it is not there.",
			Idempotent: true,
			Covers:     []string{"EpisodicMemory.ImportFrom"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentMake
			CaptureRequest
		}) (*loci.Receipt[agent.ImportReport], error) {
			lines, err := in.jsonl()
			if err != nil {
				return nil, err
			}
			m, err := in.open(ctx, db, nil)
			if err != nil {
				return nil, err
			}
			return episodes(m).ImportFrom(ctx, bytes.NewReader(lines), agent.ImportRequest{
				Format: agent.ImportJSONL, Thread: &in.Thread, TTLSeconds: in.TTLSeconds, CutLong: true, DryRun: in.DryRun,
			})
		}),
		Define(Spec{
			Name:        "episodes.last",
			Summary:     "Read the episode at the end of a thread",
			Description: "Whoever captures a conversation goes on behind it: its metadata has the message_id. The point is null where there is none.",
			Positional:  []string{"thread"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"EpisodicMemory.Last"},
		}, func(ctx context.Context, db *loci.DB, in struct {
			AgentTarget
			agent.ThreadRequest
		}) (*agent.Found[loci.Episode], error) {
			return inMemory(ctx, db, in.AgentTarget, nil, episodes, in.ThreadRequest, (*agent.EpisodicMemory).Last)
		}),
	}
}
