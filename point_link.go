package loci

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/link"
	"github.com/loci-memory/loci/internal/store"
)

// WriteMany implements link.Store.
func (l engineLink) WriteMany(ctx context.Context, fn func(*store.WriteTx) error) (int64, error) {
	return l.e.writeMany(ctx, fn)
}

// Pair implements link.Store.
func (l engineLink) Pair(ctx context.Context, fn func(*store.ReadTx, index.View) error) error {
	return l.e.readKeptPair(ctx, fn)
}

// UntilClosing implements link.Store.
func (l engineLink) UntilClosing(ctx context.Context) (context.Context, context.CancelFunc) {
	return l.e.untilClosing(ctx)
}

// IndexFailed implements link.Store.
func (l engineLink) IndexFailed() {
	if h := l.e.index.Load(); h != nil {
		l.e.indexBroke(h)
	}
}

// Directory implements link.Store.
func (l engineLink) Directory() string { return l.e.dir }

// Clock implements link.Store.
func (l engineLink) Clock() int64 { return l.e.lifeNow() }

// Point implements link.Store.
func (l engineLink) Point(p *store.Point) any { return pointOf(p) }

// PreparePoint implements link.Store.
func (l engineLink) PreparePoint(p *store.Point, attributes []index.Attribute) *index.Prepared {
	return l.e.prepare(pointText(p, attributes))
}

// StagePoint implements link.Store.
func (l engineLink) StagePoint(tx *store.WriteTx, p *store.Point, prepared *index.Prepared) error {
	settleDocument(prepared, &p.Record)
	return l.e.stage(tx, &p.Record, prepared)
}

// EmbedPoints implements link.Store.
func (l engineLink) EmbedPoints(ctx context.Context, space string, points []*index.Prepared) ([][]float32, []uint64, error) {
	b := l.e.embedderOf(space)
	if b == nil {
		return nil, nil, errs.Invalid("embedding", "is required: no embedder is registered for the space %q", space)
	}
	ctx, stop := l.e.untilClosing(ctx)
	defer stop()
	vectors, fingerprints := make([][]float32, len(points)), make([]uint64, len(points))
	var texts []string
	var at []int
	for i, p := range points {
		text := embeddedText(p.Document)
		fingerprints[i] = fingerprintOf(text)
		if strings.TrimSpace(text) != "" {
			texts, at = append(texts, text), append(at, i)
		}
	}
	made, err := b.embed(ctx, texts, embed.Passage)
	if err != nil {
		return nil, nil, err
	}
	for i, v := range made {
		vectors[at[i]] = v
	}
	return vectors, fingerprints, nil
}

// HasEmbedder implements link.Store.
func (l engineLink) HasEmbedder(space string) bool { return l.e.embedderOf(space) != nil }

// MakesVectors implements link.Store.
func (l engineLink) MakesVectors(tx link.SwitchReader, space, namespace string) (bool, error) {
	if !l.HasEmbedder(space) {
		return false, nil
	}
	on, err := readSwitches(tx, namespace)
	return err == nil && on.takes(TierAgent), err
}

// SearchSpace implements link.Store.
func (l engineLink) SearchSpace(ctx context.Context, namespace string) (sp *store.Space, err error) {
	err = l.e.read(ctx, func(tx *store.ReadTx) (err error) {
		sp, err = l.e.searchSpace(tx, namespace, "")
		return err
	})
	return sp, err
}

// Sweep implements link.Store.
func (l engineLink) Sweep(ctx context.Context) (int64, error) { return l.e.sweep(unrestricted(ctx)) }

// SweepSoon implements link.Store.
func (l engineLink) SweepSoon() { l.e.sweeps.soon() }

// Backlog implements link.Store.
func (l engineLink) Backlog() int64 {
	if ix := l.e.usableIndex(); ix != nil {
		return ix.Stats().TailDocs
	}
	return 0
}

// FlushIndex implements link.Store.
func (l engineLink) FlushIndex() error {
	if ix := l.e.usableIndex(); ix != nil {
		return errs.Wrap(errs.Index, ix.Flush(), "the index could not be written out")
	}
	return nil
}

// Staging implements link.Store.
func (l engineLink) Staging(place int64, on bool) { l.e.sweeps.stagePlace(place, on) }
