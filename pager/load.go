package pager

import (
	"cmp"
	"context"
	"slices"

	"github.com/loci-memory/loci/internal/store"
)

// load reads the scope from the truth, unless what is in memory still holds.
// What was counted and not written is kept.
func (s *scope) load(ctx context.Context) error {
	changes := s.reg.changes.Load() // before reading, so that a later change is seen
	if s.loaded && s.changes == changes {
		return nil
	}
	return s.reg.link.Read(ctx, func(tx *store.ReadTx) error {
		stored, err := tx.ContextOf(s.key.namespace, s.key.scope)
		if err != nil {
			return err
		}
		if s.loaded && (stored == nil) == (s.stored == nil) && (stored == nil || stored.Version == s.stored.Version) {
			s.changes = changes
			return nil
		}
		return s.read(tx, stored, changes)
	})
}

// read takes over what is stored.
func (s *scope) read(tx *store.ReadTx, stored *store.ContextScope, changes uint64) error {
	s.loaded = false
	st, w := newState(), window{}
	var published []byte
	if stored != nil {
		var err error
		if st, err = decodeState(stored.State); err != nil {
			return err
		}
		pages, err := tx.ResidentPages(stored.ID)
		if err != nil {
			return err
		}
		w = windowOf(pages)
		if err := st.fits(&w); err != nil {
			return err
		}
		if published, _, err = tx.PublishedText(stored.ID); err != nil {
			return err
		}
		st.catchUp(stored.Version, len(published))
	}
	if s.stored != nil && s.state.Tick > st.Tick {
		st.Tick = s.state.Tick // of touches that are not written yet
	}
	s.stored, s.state, s.window, s.published = stored, st, w, published
	s.text, s.publishedEpoch = nil, st.Published.Epoch
	s.changes, s.loaded = changes, true
	return nil
}

// opErase names what removed pages from outside: the deletion of the records
// that they were copies of.
const opErase = "erase"

// catchUp takes in that pages were removed from outside since the state was
// written: the window may have other bytes than those that were published, of
// which left are left.
func (st *state) catchUp(version int64, left int) {
	if version <= st.Written {
		return
	}
	st.Epoch += version - st.Written
	if left < st.Published.Size {
		st.Pending = append(st.Pending, Operation{Name: opErase})
	}
}

// windowOf sorts pages into their places. Those that are in no tier that is
// rendered are left out.
func windowOf(pages []*store.Page) (w window) {
	for _, p := range pages {
		switch p.Tier {
		case store.TierCore:
			w.core = append(w.core, newResident(p))
		case store.TierWorking:
			w.working = append(w.working, newResident(p))
		}
	}
	w.sort()
	return w
}

// sort puts every page in its place: core by seq, working by admission.
func (w *window) sort() {
	slices.SortFunc(w.core, func(a, b *resident) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID))
	})
	slices.SortFunc(w.working, func(a, b *resident) int {
		return cmp.Or(cmp.Compare(a.Admission, b.Admission), cmp.Compare(a.ID, b.ID))
	})
}

// configure checks what a handle asks for against what is in force and finds the
// counter.
func (s *scope) configure(cfg *Config) error {
	now := s.state.measure
	if s.stored == nil { // what another handle asked for was never stored
		now = newState().measure
	}
	want := cfg.wanted(now)
	if want != now && s.stored != nil {
		return fail(ErrConfigMismatch, "budget", "the scope is measured as %s, not as %s: open it so, or ask to reconfigure it",
			s.state.measure, want).with("stored", s.state.measure).with("given", want)
	}
	s.state.measure = want
	return s.findCounter(cfg)
}

// findCounter finds the counter of the measure in force.
func (s *scope) findCounter(cfg *Config) error {
	if s.state.Unit != UnitTokens {
		s.counter = nil
		return nil
	}
	id := s.state.Tokenizer
	if s.counter != nil && s.counter.ID() == id {
		return nil
	}
	counter := cfg.Counter
	if counter == nil || counter.ID() != id {
		counter = s.reg.counter(id)
	}
	if counter == nil && cfg.Tokenizers != nil {
		found, err := cfg.Tokenizers(id)
		if err != nil {
			return &Error{Code: ErrConfigMismatch, Field: "tokenizer", Message: "the scope is counted in tokens of " + id + ", which is not at hand", Err: err}
		}
		counter = found
	}
	if counter == nil {
		return fail(ErrConfigMismatch, "tokenizer", "the scope is counted in tokens of %s: give that counter", id).with("stored", s.state.measure)
	}
	s.reg.know(counter)
	s.counter = counter
	return nil
}
