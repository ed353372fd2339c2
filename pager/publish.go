package pager

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/internal/render"
	"github.com/loci-memory/loci/internal/store"
)

// preparePublication renders the window, if it is to be published, and notes
// what that changes.
func (c *change) preparePublication() error {
	if !c.publish {
		return nil
	}
	c.text, c.stable = c.rendered()
	was := c.scope.state.Published
	sum := render.Sum(c.text)
	c.state.Published.Epoch = c.state.Epoch
	if sum == was.SHA {
		// The same bytes again: what was done since has been undone. A page that was
		// removed for good and came back had cut them. When neither is so, nobody has
		// to know before the next change which epoch had these bytes.
		c.mended = len(c.scope.published) < was.Size
		if !c.mended && len(c.state.Pending) == 0 {
			c.state.Published.Epoch = was.Epoch
		}
		c.state.Pending = nil
		return nil
	}
	c.state.Generation++
	e := &RenderEvent{AtUS: c.now, Generation: c.state.Generation, TextBytes: len(c.text), StablePrefixBytes: c.stable,
		Operations: append([]Operation{}, c.state.Pending...)}
	if was.SHA == "" {
		e.First, e.PrefixIntact = true, true
	} else {
		d := render.Compare(c.scope.published, was.Size, was.Stable, c.text)
		e.CommonBytes, e.InvalidatedBytes, e.RewrittenBytes, e.PrefixIntact = d.Common, d.Invalidated, d.Rewritten, d.Intact
	}
	c.event = e
	c.state.Totals.published(e)
	c.state.Pending = nil
	c.state.Published = publishedState{SHA: sum, CoreSHA: render.Sum(c.text[:c.stable]), Size: len(c.text), Stable: c.stable,
		Epoch: c.state.Epoch, AtUS: c.now}
	return c.appendLog(store.LogRender, "", e)
}

// rendered is the window's text after the change.
func (c *change) rendered() (text []byte, stable int) {
	if !c.moved && c.scope.text != nil {
		return c.scope.text, c.scope.stable
	}
	return c.window.text()
}

// adopt makes a change that was committed the scope's state; stored is nil when
// there was nothing to write.
func (s *scope) adopt(c *change, stored *store.ContextScope) {
	if stored != nil {
		c.written = true
		s.touchesWritten(&c.window, c.merged)
		s.stored = stored
	}
	if c.moved {
		s.text = nil
	}
	for id := range c.removed {
		if at := render.Find(s.published, id); at >= 0 {
			s.published = s.published[:at]
		}
	}
	s.state, s.window, s.counter = c.state, c.window, c.meter.counter
	if c.cost > 0 {
		s.full = &fullness{s.state.Epoch, s.state.measure, c.cost}
	}
	if c.publish {
		s.text, s.stable, s.publishedEpoch = c.text, c.stable, c.state.Epoch
		if c.event != nil || c.mended {
			s.published = c.text
		}
	}
}

// render renders the window of a scope.
func (s *scope) render() (text []byte, stable int) {
	if s.text == nil {
		s.text, s.stable = s.window.text()
	}
	return s.text, s.stable
}

// flush writes the statistics that wait.
func (s *scope) flush(ctx context.Context) error {
	if len(s.touches) == 0 || s.stored == nil {
		return nil
	}
	var stored *store.ContextScope
	_, err := s.reg.link.Write(ctx, func(tx *store.WriteTx) error {
		now, err := tx.ContextByID(s.stored.ID)
		if err != nil || now == nil {
			return err
		}
		for id, t := range s.touches {
			if err := tx.TouchPage(id, t.hits, t.tick, t.at); err != nil {
				return err
			}
		}
		if now.Version != s.stored.Version {
			return nil // what was changed from outside stays; the clock of touches catches up
		}
		now.Version++
		state := s.state
		state.Written = now.Version
		if now.State, err = json.Marshal(state); err != nil {
			return err
		}
		stored = now
		return tx.UpdateContext(now)
	})
	if err != nil {
		return err
	}
	s.touchesWritten(&s.window, nil)
	if stored != nil {
		s.stored, s.state.Written = stored, stored.Version
	} else {
		s.loaded = false
	}
	return nil
}

// touchesWritten forgets the statistics that waited, once they are written: the
// pages of the window get them, but for those that have them already.
func (s *scope) touchesWritten(w *window, merged map[int64]bool) {
	for _, list := range [][]*resident{w.core, w.working} {
		for i, r := range list {
			t := s.touches[r.ID]
			if t == nil || merged[r.ID] {
				continue
			}
			page := *r.Page
			page.Hits += t.hits
			page.Touched, page.TouchedAt = max(page.Touched, t.tick), max(page.TouchedAt, t.at)
			list[i] = &resident{Page: &page, line: r.line, first: r.first, next: r.next}
		}
	}
	clear(s.touches)
}

// count notes a use of a page that changes nothing else.
func (s *scope) count(id, tick, at int64) {
	t := s.touches[id]
	if t == nil {
		t = &touch{}
		s.touches[id] = t
	}
	t.hits++
	t.tick, t.at = max(t.tick, tick), max(t.at, at)
}
