package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/mark"
)

// What a prompt must have in common with a memory to bring it up. Measured with the
// built-in model: small talk comes to a cosine of 0.42 with a greeting that somebody
// kept, questions share a word and come to 0.36 and more, or share none and come to
// 0.47 and more across languages.
const (
	sharedWordScore = 0.33
	fewestLetters   = 4 // of a prompt that is looked up
)

// hookHit is a hit of a search, as far as a hook looks.
type hookHit struct {
	Kind   string `json:"kind"`
	Record struct {
		Judgment    string `json:"judgment"`
		Reasoning   string `json:"reasoning"`
		Content     string `json:"content"`
		Description string `json:"description"`
		Thread      string `json:"thread"`
	} `json:"record"`
	Explain struct {
		TextRank    int     `json:"text_rank"`
		Round       string  `json:"round"`
		VectorRank  int     `json:"vector_rank"`
		VectorScore float64 `json:"vector_score"`
		Terms       []any   `json:"terms"`
	} `json:"explain"`
}

// near says whether a hit is about what was asked.
func (hit *hookHit) near(minScore float64, vectors bool) bool {
	e := &hit.Explain
	words := e.TextRank > 0 && e.Round != "any_character"
	if !vectors { // only words speak for it: all of the prompt's, or several
		return words && (e.Round == "every_term" || len(e.Terms) > 1)
	}
	return e.VectorScore >= minScore || words && e.VectorScore >= sharedWordScore
}

func (hit *hookHit) text() string {
	r := &hit.Record
	for _, text := range []string{r.Judgment, r.Content, r.Description} {
		if text != "" {
			if r.Reasoning != "" {
				text += " (" + r.Reasoning + ")"
			}
			return strings.Join(strings.Fields(text), " ")
		}
	}
	return ""
}

// maxQuery is how much of a prompt is looked up, in bytes: the beginning says what
// it is about.
const maxQuery = 4 << 10

// find gives lines of what is remembered about a text, best first, within a budget
// of tokens.
func (h *hooking) find(ctx context.Context, text string, budget int) ([]string, error) {
	text = strings.TrimSpace(mark.Strip(text))
	if len(text) > maxQuery {
		text = strings.ToValidUTF8(text[:maxQuery], "")
	}
	if len(text) < fewestLetters {
		return nil, nil
	}
	var found struct {
		Hits []hookHit `json:"hits"`
	}
	err := h.call(ctx, "search", map[string]any{
		"query": text, "limit": 12, "explain": true, "kinds": []string{"memory", "fact", "episode"},
		"filter": map[string]any{"namespace": h.namespace, "scopes": []string{h.scope}},
	}, &found)
	if err != nil {
		return nil, err
	}
	vectors := false
	for i := range found.Hits {
		vectors = vectors || found.Hits[i].Explain.VectorRank > 0
	}
	var lines []string
	asked := strings.ToLower(strings.Join(strings.Fields(text), " "))
	for i := range found.Hits {
		hit := &found.Hits[i]
		// The session knows by itself what was said in it.
		if !hit.near(h.flags.minScore, vectors) || h.in.Session != "" && hit.Record.Thread == threadOf(h.in.Session) {
			continue
		}
		line := "- " + hit.text()
		if line == "- " || hit.Kind == "episode" && strings.Contains(asked, strings.ToLower(hit.text())) {
			continue // the same words again tell nothing
		}
		cost := tokenCost(line) + 1
		if cost > budget {
			continue
		}
		budget -= cost
		lines = append(lines, line)
	}
	return lines, nil
}

// prompt gives what is remembered of a prompt.
func (h *hooking) prompt(ctx context.Context) error {
	lines, err := h.find(ctx, h.in.Prompt, h.flags.budget-tokenCost(mark.Wrap("x")))
	if err == nil && len(lines) > 0 {
		err = h.give("UserPromptSubmit", mark.Wrap("From memory, perhaps of use here:\n"+strings.Join(lines, "\n")))
	}
	if err == nil && h.flags.client == "codex" {
		err = h.keepPrompt(ctx)
	}
	return err
}

// sessionStart gives the project's context window and what was last worked on.
func (h *hooking) sessionStart(ctx context.Context) error {
	budget := h.flags.budget - tokenCost(mark.Wrap("x"))
	var parts []string
	window, err := h.window(ctx)
	if err != nil {
		return err
	}
	if window != "" && tokenCost(window) <= budget {
		budget -= tokenCost(window)
		parts = append(parts, window)
	}
	var recent struct {
		Items []struct {
			Description string         `json:"description"`
			Metadata    map[string]any `json:"metadata"`
			Thread      string         `json:"thread"`
		} `json:"items"`
	}
	if err := h.call(ctx, "episodes.recent", map[string]any{"namespace": h.namespace, "scope": h.scope, "limit": 20}, &recent); err != nil {
		return err
	}
	var asked []string
	for _, e := range recent.Items {
		if role, _ := e.Metadata["role"].(string); role != "user" || len(asked) == 3 {
			continue
		}
		line := strings.Join(strings.Fields(e.Description), " ")
		if runes := []rune(line); len(runes) > 200 {
			line = string(runes[:200]) + "…"
		}
		asked = append(asked, "- "+line)
	}
	if text := "Last asked here, the latest first:\n" + strings.Join(asked, "\n"); len(asked) > 0 && tokenCost(text) <= budget {
		budget -= tokenCost(text)
		parts = append(parts, text)
		lines, err := h.find(ctx, strings.Join(asked, "\n"), budget)
		if err != nil {
			return err
		}
		if len(lines) > 0 {
			parts = append(parts, "Remembered of that:\n"+strings.Join(lines, "\n"))
		}
	}
	if len(parts) == 0 {
		return nil
	}
	head := fmt.Sprintf("Memory of %s.", h.namespace)
	return h.give("SessionStart", mark.Wrap(head+"\n\n"+strings.Join(parts, "\n\n")))
}

// window is the rendered context of the project, "" where there is none. A window
// without pages is not rendered, which would make one.
func (h *hooking) window(ctx context.Context) (string, error) {
	var status struct {
		Pages []json.RawMessage `json:"pages"`
	}
	err := h.call(ctx, "context.status", map[string]any{"scope": []string{h.namespace}, "limit": 1}, &status)
	if loci.CodeOf(err) == errs.NotFound {
		return "", nil
	}
	if err != nil || len(status.Pages) == 0 {
		return "", err
	}
	var shot struct {
		Text *string `json:"text"`
	}
	if err := h.call(ctx, "context.render", map[string]any{"scope": []string{h.namespace}}, &shot); err != nil || shot.Text == nil {
		return "", err
	}
	var in struct {
		Core    []json.RawMessage `json:"core"`
		Working []json.RawMessage `json:"working"`
	}
	if json.Unmarshal([]byte(*shot.Text), &in) == nil && len(in.Core)+len(in.Working) == 0 {
		return "", nil // all its pages lie in the archive
	}
	return strings.TrimSpace(*shot.Text), nil
}
