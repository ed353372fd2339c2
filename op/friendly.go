package op

import (
	"context"

	"github.com/loci-memory/loci"
)

// Remember is one thing to keep in mind.
type Remember struct {
	Text      string        `json:"text"`                // what to remember, as a sentence that stands on its own
	Reasoning string        `json:"reasoning,omitempty"` // why it holds
	Type      *string       `json:"type,omitempty"`      // knowledge (default), skill, emotion, event, task, graph, or a word of your own
	Tags      []string      `json:"tags,omitempty"`      // words to find it by
	Namespace *string       `json:"namespace,omitempty"` // default "default"
	Scope     *string       `json:"scope,omitempty"`     // default "public"
	Thread    *string       `json:"thread,omitempty"`    // the conversation or log it stands in
	Position  *int64        `json:"position,omitempty"`  // place in the thread; needs thread
	Metadata  loci.Metadata `json:"metadata,omitempty"`  // an object of your own
}

// Remembered is what was kept.
type Remembered struct {
	ID        loci.ID  `json:"id"`
	Text      string   `json:"text"`
	Type      string   `json:"type"`
	Tags      []string `json:"tags"`
	Namespace string   `json:"namespace"`
	Scope     string   `json:"scope"`
	Revision  int64    `json:"revision"` // the store's revision after the write
	// Redacted is what was taken out because it looked like a secret.
	Redacted []loci.Redacted `json:"redacted,omitempty"`
}

// Recall asks for memories.
type Recall struct {
	Query     string   `json:"query"`               // what you want to know, in plain words
	Limit     *int     `json:"limit,omitempty"`     // 1..10000, default 10
	Namespace *string  `json:"namespace,omitempty"` // default "default"
	Scopes    []string `json:"scopes,omitempty"`    // default ["public"]
	Tags      []string `json:"tags,omitempty"`      // all of them
	Thread    *string  `json:"thread,omitempty"`    // only this thread
}

// Recalled is the answer to Recall, best first.
type Recalled struct {
	Hits     []RecalledHit  `json:"hits"`
	Degraded []loci.Degrade `json:"degraded"` // why the search had to do with less; empty when it had not
	// VectorMissing counts the memories that only their text could find.
	VectorMissing []loci.VectorMissing `json:"vector_missing"`
}

// RecalledHit is one memory in short.
type RecalledHit struct {
	ID          loci.ID  `json:"id"`
	Score       float64  `json:"score"`
	Text        string   `json:"text"`
	Reasoning   string   `json:"reasoning,omitempty"`
	Type        string   `json:"type"`
	Tags        []string `json:"tags"`
	CreatedAtUS int64    `json:"created_at_us"` // UTC microseconds since 1970
	Thread      string   `json:"thread,omitempty"`
	Position    *int64   `json:"position,omitempty"`
}

func friendlyOps() []*Operation {
	return []*Operation{
		Define(Spec{
			Name:        "remember",
			Summary:     "Keep something in mind",
			Description: "What is known already is merged instead of kept twice: the same text, up to case, width and blanks, in the same namespace and scope.",
			Positional:  []string{"text"},
			Idempotent:  true,
			Texts:       []string{"text!", "reasoning"},
			Covers:      []string{"MemoryStore.UpsertByJudgment"},
		}, remember),
		Define(Spec{
			Name:        "recall",
			Summary:     "Find what was remembered about something",
			Description: "Gives memories in short, best first. Use search for every knob and every kind of record.",
			Positional:  []string{"query"},
			ReadOnly:    true, Idempotent: true,
			Covers: []string{"DB.Search"},
		}, recall),
	}
}

func remember(ctx context.Context, db *loci.DB, in Remember) (Remembered, error) {
	r, err := db.Memories().UpsertByJudgment(ctx, loci.MemoryInput{
		RecordInput: loci.RecordInput{
			Namespace: in.Namespace, Scope: in.Scope, Tags: in.Tags,
			Thread: in.Thread, Position: in.Position, Metadata: in.Metadata,
		},
		MemoryType: in.Type, Judgment: in.Text, Reasoning: in.Reasoning,
	})
	if err != nil {
		return Remembered{}, retitle(err, "remember", map[string]string{"judgment": "text", "memory_type": "type"})
	}
	m := r.Value
	return Remembered{
		ID: m.ID, Text: m.Judgment, Type: m.MemoryType, Tags: orEmpty(m.Tags),
		Namespace: m.Namespace, Scope: m.Scope, Revision: r.Revision, Redacted: r.Redacted,
	}, nil
}

func recall(ctx context.Context, db *loci.DB, in Recall) (Recalled, error) {
	res, err := db.Search(ctx, loci.SearchRequest{
		Query: in.Query, Limit: in.Limit, Kinds: []loci.Kind{loci.KindMemory},
		Filter: loci.ReadFilter{Namespace: in.Namespace, Scopes: in.Scopes, Tags: in.Tags, Thread: in.Thread},
	})
	if err != nil {
		return Recalled{}, retitle(err, "recall", map[string]string{
			"filter.namespace": "namespace", "filter.scopes": "scopes", "filter.tags": "tags", "filter.thread": "thread",
		})
	}
	out := Recalled{Hits: []RecalledHit{}, Degraded: orEmpty(res.Diagnostics.Degraded), VectorMissing: orEmpty(res.Diagnostics.VectorMissing)}
	for _, h := range res.Hits {
		m, ok := h.Record.(*loci.Memory)
		if !ok || m == nil {
			continue
		}
		out.Hits = append(out.Hits, RecalledHit{
			ID: m.ID, Score: h.Score, Text: m.Judgment, Reasoning: m.Reasoning, Type: m.MemoryType,
			Tags: orEmpty(m.Tags), CreatedAtUS: m.CreatedAtUS, Thread: m.Thread, Position: m.Position,
		})
	}
	return out, nil
}

// orEmpty keeps null out of the JSON.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
