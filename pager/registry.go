package pager

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// registry holds the scopes of an open store that are in memory. All handles of
// a scope share one.
type registry struct {
	db      *loci.DB
	link    link.Store
	changes atomic.Uint64 // grows when pages were changed from outside

	mu       sync.Mutex
	scopes   map[scopeKey]*scope
	held     int                // bytes that they take, about
	uses     uint64             // logical time of use, for dropping scopes
	counters map[string]Counter // those that were ever given, by id
	policies map[string]Policy  // by namespace
}

// Scopes that nobody works on are kept in memory up to this many, and up to this
// many bytes of all scopes, which is some five of the largest there can be.
const (
	keptScopes = 256
	keptBytes  = 64 << 20
)

func registryOf(db *loci.DB) *registry {
	l := db.Link()
	return l.Extension("pager", func() link.Extension {
		return &registry{db: db, link: l, scopes: map[scopeKey]*scope{}, counters: map[string]Counter{}, policies: map[string]Policy{}}
	}).(*registry)
}

// Changed implements link.Extension.
func (r *registry) Changed() {
	r.changes.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.policies)
}

// Close implements link.Extension: it writes what the scopes counted.
func (r *registry) Close() error {
	r.mu.Lock()
	all := slices.Collect(maps.Values(r.scopes))
	r.mu.Unlock()
	var failed error
	for _, s := range all {
		failed = errors.Join(failed, s.flush(context.Background()))
	}
	return failed
}

// scope is a scope in memory. Whoever holds its turn may use the rest.
type scope struct {
	reg   *registry
	key   scopeKey
	turn  chan struct{} // holds a token while nobody works on the scope
	users int           // that hold it or wait, guarded by the registry's mu
	used  uint64        // guarded by the registry's mu
	held  int           // bytes it took when it was last released, guarded by the registry's mu
	sized fullness      // by epoch, what size worked out

	loaded  bool
	changes uint64              // the registry's when it was loaded or checked
	stored  *store.ContextScope // nil: not stored yet
	state   state
	window  window
	counter Counter // nil for bytes

	published []byte // the text published last, perhaps cut
	text      []byte // the window rendered, nil when it has to be
	stable    int
	// publishedEpoch is the epoch whose bytes are the published ones.
	publishedEpoch int64
	full           *fullness
	touches        map[int64]*touch // by record, not written yet
}

// touch is what reads and searches add to a page's statistics.
type touch struct {
	hits, tick, at int64
}

// maxTouches bounds the statistics that wait to be written.
const maxTouches = 10_000

// acquire waits for a scope's turn. release gives it back.
func (r *registry) acquire(ctx context.Context, key scopeKey, wait time.Duration) (s *scope, release func(), err error) {
	r.mu.Lock()
	s = r.scopes[key]
	if s == nil {
		s = &scope{reg: r, key: key, turn: make(chan struct{}, 1), touches: map[int64]*touch{}}
		s.turn <- struct{}{}
		r.scopes[key] = s
	}
	s.users++
	r.mu.Unlock()
	select {
	case <-s.turn:
	default:
		timer := time.NewTimer(wait)
		defer timer.Stop()
		select {
		case <-s.turn:
		case <-ctx.Done():
			r.leave(s)
			return nil, nil, ctx.Err()
		case <-timer.C:
			r.leave(s)
			return nil, nil, fail(ErrBusy, "", "another operation holds the scope for longer than %s: retry", wait)
		}
	}
	return s, func() { r.release(s) }, nil
}

// release gives a scope's turn back, and drops the scope that was idle for
// longest if there is no room for all of them.
func (r *registry) release(s *scope) {
	held := s.size()
	s.turn <- struct{}{}
	r.mu.Lock()
	r.held += held - s.held
	s.held = held
	s.users--
	r.uses++
	s.used = r.uses
	idle := r.idlest()
	r.mu.Unlock()
	if idle != nil {
		r.drop(idle)
	}
}

// leave counts out somebody who did not get the turn.
func (r *registry) leave(s *scope) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.users--
}

// size is about what the scope takes of memory, in bytes: its texts, and its
// pages with their lines.
func (s *scope) size() int {
	if s.sized.cost == 0 || s.sized.epoch != s.state.Epoch {
		s.sized = fullness{epoch: s.state.Epoch, cost: 1 << 10}
		for _, list := range [][]*resident{s.window.core, s.window.working} {
			for _, p := range list {
				s.sized.cost += len(p.line) + len(p.Content) + 512
			}
		}
	}
	return s.sized.cost + len(s.text) + len(s.published)
}

// idlest gives the scope to drop from memory, or nil while there is room. It is
// called with mu held.
func (r *registry) idlest() (found *scope) {
	if len(r.scopes) <= keptScopes && r.held <= keptBytes {
		return nil
	}
	for _, s := range r.scopes {
		if s.users == 0 && (found == nil || s.used < found.used) {
			found = s
		}
	}
	if found != nil {
		found.users++ // so that nobody else drops it
	}
	return found
}

// drop writes what a scope counted and forgets it, unless somebody has come for
// it meanwhile.
func (r *registry) drop(s *scope) {
	<-s.turn
	err := s.flush(context.Background())
	s.turn <- struct{}{}
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.users--; s.users == 0 && err == nil {
		delete(r.scopes, s.key)
		r.held -= s.held
	}
}

// know keeps a counter, so that other handles of the store find it by its id.
func (r *registry) know(c Counter) {
	if c == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counters[c.ID()] == nil {
		r.counters[c.ID()] = c
	}
}

func (r *registry) counter(id string) Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counters[id]
}
