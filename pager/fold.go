package pager

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

const (
	minFoldKeep, maxFoldKeep = 1, 30
	// MaxFoldWordBytes bounds the word that begins a milestone's title.
	MaxFoldWordBytes = 64
	defaultFoldWord  = "milestone"
	// foldPrefix begins the thread of a milestone's record; the range of places
	// that it stands for follows, such as "fold:3-6". No operation lets a caller
	// set it, and it stays when the page is edited.
	foldPrefix = "fold:"
)

// FoldRequest folds the oldest rows of the outline into one.
type FoldRequest struct {
	Keep *int `json:"keep,omitempty"` // newest rows that stay: 1..30, default 12
	// Word begins the title of the milestone, at most 64 bytes. Default "milestone".
	Word string `json:"word,omitempty"`
	// Force folds even while the provider's prompt cache is warm. The user's alone.
	Force bool `json:"force,omitempty"`
}

// FoldResult says what was folded.
type FoldResult struct {
	Changed   bool        `json:"changed"`
	Deferred  bool        `json:"deferred,omitempty"` // it waits while the provider's cache is warm
	Reason    string      `json:"reason,omitempty"`   // why nothing was folded
	Milestone *Reference  `json:"milestone,omitempty"`
	Folded    []Reference `json:"folded"` // oldest first; they are in the archive now
	Rows      int         `json:"rows"`   // of the outline, afterwards
	Evicted   []Reference `json:"evicted"`
	// Redacted is what was taken out of the request, see loci.WithRedaction.
	Redacted []loci.Redacted `json:"redacted,omitempty"`
}

// Fold puts the oldest rows of the outline into the archive, all but those to
// keep, and one row in their place that names them: a milestone, whose title has
// the range of their places, whose summary has their titles, and whose body and
// links name each of them. With fewer than two rows to fold nothing changes. It
// rewrites the prefix from the oldest row on. While the prompt cache of the
// policy's provider is warm it waits, unless the outline is full.
func (cs *Store) Fold(ctx context.Context, req FoldRequest) (*FoldResult, error) {
	const op = "fold"
	redactor := cs.reg.link.Redactor(ctx)
	req.Word = redactor.Text(req.Word)
	keep, err := req.check()
	if err != nil {
		return nil, withOp(op, err)
	}
	var out *FoldResult
	var made string
	err = cs.mutate(ctx, op, func(c *change) error {
		out, made = &FoldResult{Folded: []Reference{}, Evicted: []Reference{}, Redacted: redactedBy(redactor)}, ""
		rows := outlineRows(c.window.core)
		out.Rows = len(rows)
		n := len(rows) - keep
		if n < 2 {
			out.Reason = fmt.Sprintf("the outline has %d rows and %d are kept: at least two more are folded", len(rows), keep)
			return nil
		}
		if !req.Force && len(rows) < MaxOutlineRows {
			if out.Deferred, out.Reason = c.waits(); out.Deferred {
				return nil
			}
		}
		m, err := c.fold(rows[:n], req.Word)
		if err != nil {
			return err
		}
		out.Changed, out.Rows, made = true, keep+1, m.PageID
		for _, r := range rows[:n] {
			out.Folded = append(out.Folded, c.scope.reference(c.pages[r.PageID]))
		}
		return nil
	}, func(c *change) error {
		if !out.Changed {
			return nil
		}
		m := c.scope.reference(c.pages[made])
		out.Milestone = &m
		out.Evicted = append(out.Evicted, c.evicted...)
		if err := c.scope.completeAll(ctx, out.Folded); err != nil {
			return err
		}
		return c.scope.complete(ctx, out.Milestone)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// check looks at what needs no scope.
func (r *FoldRequest) check() (keep int, err error) {
	if err := validText("word", r.Word, MaxFoldWordBytes); err != nil {
		return 0, err
	}
	if r.Word != "" && strings.TrimSpace(r.Word) == "" {
		return 0, invalid("word", "must not be blank: leave it out for %q", defaultFoldWord)
	}
	return validLimit("keep", r.Keep, foldKeep, minFoldKeep, maxFoldKeep)
}

// outlineRows gives the outline's rows among core pages, in their order.
func outlineRows(core []*resident) (rows []*resident) {
	for _, r := range core {
		if r.Outline {
			rows = append(rows, r)
		}
	}
	return rows
}

// fold folds rows, at least two and in their order, into a milestone.
func (c *change) fold(rows []*resident, word string) (*resident, error) {
	id, err := c.freshPageID()
	if err != nil {
		return nil, err
	}
	p := milestone(rows, word)
	p.PageID = id
	for _, r := range rows {
		n := c.edit(r)
		if err := c.setOutline(n, false); err != nil {
			return nil, err
		}
		c.move(n, store.TierArchived, "fold")
	}
	m := c.touch(c.create(p))
	m.Seq = rows[0].Seq
	if err := c.setOutline(m, true); err != nil {
		return nil, err
	}
	return c.move(m, store.TierCore, "fold"), nil
}

// milestone makes the page that stands for rows, but for its id and place.
func milestone(rows []*resident, word string) *store.Page {
	p := &store.Page{PageRevision: store.PageRevision{Importance: defaultImportance}}
	first, last := rows[0].Seq, rows[0].Seq
	var titles []string
	var body strings.Builder
	for _, r := range rows {
		from, to := r.span()
		first, last = min(first, from), max(last, to)
		titles = append(titles, r.Title)
		fmt.Fprintf(&body, "%s@%d %s: %s\n", r.PageID, r.Version, oneLine(r.Title), oneLine(r.Summary))
		p.Links = append(p.Links, r.ID)
	}
	p.Thread = fmt.Sprintf("%s%d-%d", foldPrefix, first, last)
	p.Title = fmt.Sprintf("%s %d–%d", cmp.Or(word, defaultFoldWord), first, last)
	p.Summary = cutAt(strings.Join(titles, " · "), MaxOutlineSummaryBytes)
	p.Content = body.String()
	return p
}

// span gives the places that a row stands for: its own, or those that were
// folded into it, and its own.
func (r *resident) span() (first, last int64) {
	if text, ok := strings.CutPrefix(r.Thread, foldPrefix); ok {
		if n, err := fmt.Sscanf(text, "%d-%d", &first, &last); n == 2 && err == nil && first <= last {
			return min(first, r.Seq), max(last, r.Seq)
		}
	}
	return r.Seq, r.Seq
}

// oneLine is a text with every run of blanks and line breaks as one blank.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
