package loci

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/secretscan"
	"github.com/loci-memory/loci/internal/store"
)

// Link is how the packages of this module that keep records of their own, such
// as pager, reach the store. It is of no use outside the module.
func (db *DB) Link() link.Store { return engineLink{db.eng} }

// engineLink implements link.Store.
type engineLink struct{ e *engine }

// Enter implements link.Store.
func (l engineLink) Enter(op string) (func(), error) {
	if err := l.e.enter(op); err != nil {
		return nil, err
	}
	return l.e.gate.leave, nil
}

// Announce implements link.Store.
func (l engineLink) Announce(e *store.Endpoint) error { return l.e.lock.Announce(e) }

// MayRead implements link.Store.
func (l engineLink) MayRead(ctx context.Context, field, namespace, scope string) error {
	return mayRead(ctx, field, namespace, scope)
}

// MayWrite implements link.Store.
func (l engineLink) MayWrite(ctx context.Context, field, namespace, scope string) error {
	return mayWrite(ctx, field, namespace, scope)
}

// MayReadAll implements link.Store.
func (l engineLink) MayReadAll(ctx context.Context, namespace string) error {
	return mayReadAll(ctx, namespace)
}

// MayWriteAll implements link.Store.
func (l engineLink) MayWriteAll(ctx context.Context, namespace string) error {
	return mayWriteAll(ctx, namespace)
}

// Now implements link.Store.
func (l engineLink) Now() time.Time { return l.e.clock() }

// Read implements link.Store.
func (l engineLink) Read(ctx context.Context, fn func(*store.ReadTx) error) error {
	return l.e.read(ctx, fn)
}

// Write implements link.Store.
func (l engineLink) Write(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	return l.e.write(ctx, fn)
}

// Redactor implements link.Store.
func (l engineLink) Redactor(ctx context.Context) *secretscan.Redactor { return l.e.redactor(ctx) }

// PreparePage implements link.Store.
func (l engineLink) PreparePage(p *store.Page) *index.Prepared { return l.e.prepare(pageText(p)) }

// StagePage implements link.Store.
func (l engineLink) StagePage(tx *store.WriteTx, p *store.Page, prepared *index.Prepared) error {
	settleDocument(prepared, &p.Record)
	return l.e.stage(tx, &p.Record, prepared)
}

// Extension implements link.Store.
func (l engineLink) Extension(key string, make func() link.Extension) link.Extension {
	return l.e.extensions.get(key, make)
}

// extensions are what other packages keep for the life of the engine.
type extensions struct {
	mu   sync.Mutex
	made map[string]link.Extension
}

func (x *extensions) get(key string, make func() link.Extension) link.Extension {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.made == nil {
		x.made = map[string]link.Extension{}
	}
	e, ok := x.made[key]
	if !ok {
		e = make()
		x.made[key] = e
	}
	return e
}

// each calls fn with every extension there is. fn may write, and so make the
// writer's goroutine come here as well.
func (x *extensions) each(fn func(link.Extension)) {
	x.mu.Lock()
	all := slices.Collect(maps.Values(x.made))
	x.mu.Unlock()
	for _, e := range all {
		fn(e)
	}
}
