package pager

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci"
)

// Store is a handle on one scope. It may be shared between goroutines and needs
// no closing; closing the loci.DB ends it.
type Store struct {
	reg   *registry
	key   scopeKey
	scope Scope
	cfg   Config
	wait  time.Duration
}

// Open gives a handle on a scope of an open store. Nothing is stored for a scope
// until something changes in it, unless it is to be reconfigured.
func Open(ctx context.Context, db *loci.DB, cfg Config) (*Store, error) {
	const op = "open"
	key, err := cfg.Scope.key()
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		return nil, withOp(op, err)
	}
	cs := &Store{reg: registryOf(db), key: key, scope: append(Scope(nil), cfg.Scope...), cfg: cfg, wait: cfg.Wait}
	if cs.wait == 0 {
		cs.wait = defaultWait
	}
	cs.reg.know(cfg.Counter)
	if cfg.Reconfigure {
		err = cs.reconfigure(ctx)
	} else {
		err = cs.with(ctx, op, func(*scope) error { return nil })
	}
	if err != nil {
		return nil, err
	}
	return cs, nil
}

// Scope is the scope that the handle is on.
func (cs *Store) Scope() Scope { return append(Scope(nil), cs.scope...) }

// with runs fn with the scope's turn, as it is stored now. fn reads.
func (cs *Store) with(ctx context.Context, op string, fn func(*scope) error) error {
	return withOp(op, cs.take(ctx, op, cs.reg.link.MayRead, func(s *scope) error {
		if err := s.load(ctx); err != nil {
			return err
		}
		if err := s.configure(&cs.cfg); err != nil {
			return err
		}
		return fn(s)
	}))
}

// take runs fn with the scope's turn.
func (cs *Store) take(ctx context.Context, op string, may permission, fn func(*scope) error) error {
	leave, err := cs.enter(ctx, op, may)
	if err != nil {
		return err
	}
	defer leave()
	s, release, err := cs.reg.acquire(ctx, cs.key, cs.wait)
	if err != nil {
		return err
	}
	defer release()
	return fn(s)
}

// permission is one of link.Store's MayRead and MayWrite.
type permission func(ctx context.Context, field, namespace, scope string) error

// enter counts a call in, if ctx's access allows it.
func (cs *Store) enter(ctx context.Context, op string, may permission) (leave func(), err error) {
	if leave, err = cs.reg.link.Enter("context." + op); err != nil {
		return nil, err
	}
	if err := may(ctx, "", cs.key.namespace, cs.key.scope); err != nil {
		leave()
		return nil, err
	}
	return leave, nil
}

// errMoved says that the scope was changed from outside since it was loaded.
var errMoved = errors.New("the scope was changed from outside")

// maxAttempts bounds how often an operation starts anew because of that.
const maxAttempts = 20

// mutate runs an operation that changes the scope: all of it or nothing. fn
// collects changes and may be run again, so it must set its results anew each
// time. then, if not nil, runs once they are written, before anybody else has
// the scope's turn.
func (cs *Store) mutate(ctx context.Context, op string, fn, then func(*change) error) error {
	return withOp(op, cs.take(ctx, op, cs.reg.link.MayWrite, func(s *scope) error {
		for range maxAttempts {
			if err := s.load(ctx); err != nil {
				return err
			}
			if err := s.configure(&cs.cfg); err != nil {
				return err
			}
			c, err := s.begin(ctx, op)
			if err != nil {
				return err
			}
			if err := fn(c); err != nil {
				return err
			}
			err = c.commit(ctx, cs.wait)
			if err == nil && then != nil {
				return unanswered(c, then(c))
			}
			if !errors.Is(err, errMoved) {
				return err
			}
			s.loaded = false
		}
		return fail(ErrBusy, "", "the scope keeps changing from outside: retry")
	}))
}

// unanswered says of an error behind a commit that it is the answer that failed.
func unanswered(c *change, err error) error {
	if err == nil || !c.written {
		return err
	}
	return &Error{Code: ErrInternal, Message: "the change is stored, but its answer could not be made: do not repeat it, look at the status", Err: err}
}

// reconfigure stores the handle's measure in the place of the one in force.
func (cs *Store) reconfigure(ctx context.Context) error {
	cfg := cs.cfg
	cfg.Reconfigure = false
	err := cs.take(ctx, "reconfigure", cs.reg.link.MayWrite, func(s *scope) error {
		for range maxAttempts {
			if err := s.load(ctx); err != nil {
				return err
			}
			c, err := s.begin(ctx, "reconfigure")
			if err != nil {
				return err
			}
			if err := c.remeasure(&cfg); err != nil {
				return err
			}
			err = c.commit(ctx, cs.wait)
			if !errors.Is(err, errMoved) {
				return err
			}
			s.loaded = false
		}
		return fail(ErrBusy, "", "the scope keeps changing from outside: retry")
	})
	return withOp("reconfigure", err)
}
