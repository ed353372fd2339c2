package loci

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/index"
	"github.com/loci-memory/loci/internal/rank"
	"github.com/loci-memory/loci/internal/store"
)

const (
	defaultMaxBatch = 32
	maxMaxBatch     = 10000

	// queryTimeout is how long a search waits for its query's vector. A call of any
	// kind has callTimeout, and textTimeout for each of its texts.
	queryTimeout = 10 * time.Second
	callTimeout  = time.Minute
	textTimeout  = 2 * time.Second
	// callGrace is how long a call may go on after its context ended. One that
	// takes longer is left to itself; of these there may be maxHanging, then no
	// call is made until some have come back.
	callGrace  = 500 * time.Millisecond
	maxHanging = 16

	// A call that is told to come later is made limitedTries times, with waits
	// that double, or that the model asked for, but none above limitedWait.
	limitedTries = 4
	firstLimited = 200 * time.Millisecond
	limitedWait  = time.Minute
	// longestRest bounds how long the background leaves a model alone that asks
	// for more.
	longestRest = time.Hour
)

// embedders are the models that are bound to spaces while the engine is open.
type embedders struct {
	// admin is held while a binding or a space comes or goes.
	admin sync.Mutex

	mu    sync.RWMutex
	bound map[string]*boundEmbedder // by space
	turns map[int64]*syncTurn       // by space's number

	count  atomic.Int32 // of bound
	worker embedWorker
}

// boundEmbedder is a model bound to a space. It may be used after it was
// unbound.
type boundEmbedder struct {
	space    store.Space
	embedder embed.Embedder
	// tokens is how much of a text the model is given; 0: all of it.
	tokens int
	// weight and fusion are the defaults of searches; nil and "" for none.
	weight *float64
	fusion Fusion

	// searching counts what the background gives way to, such as a query that is
	// embedded.
	searching *atomic.Int64

	batch   atomic.Int64 // texts of a call, less after one was too large
	hanging atomic.Int64 // calls that were left to themselves
	rest    atomic.Int64 // until when the model asked to be left alone, in Unix nanoseconds

	mu      sync.Mutex
	left    map[int64]leftText // records whose text is not embedded, for good
	leftIn  map[syncPart]int64 // how many these are
	due     map[int64]struct{} // namespaces that the background has to look at
	dueEach bool               // all of them

	failures int       // of the background's syncs in a row; the worker's own
	retryAt  time.Time // not before
}

// leftText is a text that stays without a vector until it changes.
type leftText struct {
	syncPart
	blank bool // there is nothing to embed; else the model refuses it
}

// syncTurn is what the syncs of a space take turns by.
type syncTurn struct {
	taken  chan struct{} // holds one while a sync runs
	wanted atomic.Int32  // callers that wait, to whom the background gives way
}

// embedderOf gives the model that is bound to a space; nil when none is.
func (e *engine) embedderOf(space string) *boundEmbedder {
	e.embedders.mu.RLock()
	defer e.embedders.mu.RUnlock()
	return e.embedders.bound[space]
}

// names gives the spaces that have an embedder, sorted.
func (x *embedders) names() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return slices.Sorted(maps.Keys(x.bound))
}

// set binds, or unbinds with nil, and says whether an embedder was bound.
func (x *embedders) set(space string, b *boundEmbedder) (had bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_, had = x.bound[space]
	if b == nil {
		delete(x.bound, space)
	} else {
		if x.bound == nil {
			x.bound = map[string]*boundEmbedder{}
		}
		x.bound[space] = b
	}
	x.count.Store(int32(len(x.bound)))
	return had
}

// turn is what the syncs of a space take turns by.
func (x *embedders) turn(space int64) *syncTurn {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.turns == nil {
		x.turns = map[int64]*syncTurn{}
	}
	if x.turns[space] == nil {
		x.turns[space] = &syncTurn{taken: make(chan struct{}, 1)}
	}
	return x.turns[space]
}

// retake is told of records that are written, before anybody sees them in the
// index: their texts may be others now.
func (x *embedders) retake(records []writtenRecord) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, b := range x.bound {
		b.mu.Lock()
		for _, r := range records {
			b.forget(r.id)
		}
		b.mu.Unlock()
	}
}

// makeDue is told of records that were written, as soon as the index has them:
// the background has to look at their namespaces.
func (x *embedders) makeDue(records []writtenRecord) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, b := range x.bound {
		b.mu.Lock()
		for _, r := range records {
			if b.dueEach {
				break
			}
			b.due[r.namespace] = struct{}{}
		}
		b.mu.Unlock()
	}
}

func (b *boundEmbedder) leave(id int64, t leftText) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(id)
	b.left[id] = t
	b.leftIn[t.syncPart]++
}

func (b *boundEmbedder) retake(id int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.forget(id)
}

// forget is retake for whoever holds mu.
func (b *boundEmbedder) forget(id int64) {
	t, ok := b.left[id]
	if !ok {
		return
	}
	delete(b.left, id)
	if b.leftIn[t.syncPart]--; b.leftIn[t.syncPart] == 0 {
		delete(b.leftIn, t.syncPart)
	}
}

// leftOf counts the records of a kind of a namespace that stay without a vector
// in a space until their text changes: the space's model refuses it, or there is
// none. Only a sync finds out, so it is none before.
func (e *engine) leftOf(space *store.Space, namespace int64, kind index.Kind) int64 {
	b := e.embedderOf(space.Name)
	if b == nil || b.space.ID != space.ID {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leftIn[syncPart{namespace, kind}]
}

func (b *boundEmbedder) isLeft(id int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.left[id]
	return ok
}

// refusedIn counts the refused texts of a namespace, 0 for all.
func (b *boundEmbedder) refusedIn(namespace int64) (n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, t := range b.left {
		if !t.blank && (namespace == 0 || t.namespace == namespace) {
			n++
		}
	}
	return n
}

// cut is what the model is given of a text, and whether it reads less than all
// of it.
func (b *boundEmbedder) cut(text string, p embed.Purpose) (kept string, cut bool) {
	if b.tokens > 0 {
		text, cut = rank.CutTokens(text, b.tokens)
	}
	if l, ok := b.embedder.(embed.Limiter); ok {
		shorter, more := b.limit(l, text, p)
		return shorter, cut || more
	}
	return text, cut
}

// limit asks the model. One that fails at it is given the text as it is.
func (b *boundEmbedder) limit(l embed.Limiter, text string, p embed.Purpose) (kept string, cut bool) {
	defer func() {
		if recover() != nil {
			kept, cut = text, false
		}
	}()
	if kept, cut = l.Limit(text, p); !strings.HasPrefix(text, kept) || kept == "" {
		return text, cut
	}
	return kept, cut
}

// embed gives the unit vectors of texts, in their order. Whatever goes wrong
// with one of them is an error.
func (b *boundEmbedder) embed(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if p == embed.Query {
		b.searching.Add(1)
		defer b.searching.Add(-1)
		limited, cancel := context.WithTimeout(ctx, queryTimeout)
		defer cancel()
		ctx = limited
	}
	given := make([]string, len(texts))
	for i, text := range texts {
		given[i], _ = b.cut(text, p)
	}
	out := make([][]float32, len(texts))
	err := b.embedEach(ctx, given, p, func(at int, vectors [][]float32) error {
		for i, v := range vectors {
			out[at+i] = unit(v)
		}
		return nil
	}, func(int) error { return embed.ErrRefused })
	if err != nil {
		return nil, err
	}
	return out, nil
}

// unit is v at length 1. v is finite and not zero.
func unit(v []float32) []float32 {
	norm := length(v)
	out := make([]float32, len(v))
	for i, x := range v {
		out[i] = float32(float64(x) / norm)
	}
	return out
}

func length(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(x) * float64(x)
	}
	return math.Sqrt(sum)
}

// embedEach embeds texts call by call, and tells got of each call's vectors with
// the place of the first, and refused of each text that the model will never
// take. It ends at the first error, also of these two. A call that is too large
// is made again with half of the texts, which is remembered unless a single text
// was to blame.
func (b *boundEmbedder) embedEach(ctx context.Context, texts []string, p embed.Purpose, got func(at int, vectors [][]float32) error, refused func(at int) error) error {
	before := int64(0) // the batch before a call was too large; 0: none was
	until := 0         // where the texts of that call end
	for at := 0; at < len(texts); {
		n := min(int(b.batch.Load()), len(texts)-at)
		vectors, err := b.patient(ctx, texts[at:at+n], p)
		switch {
		case err == nil:
			if at+n >= until {
				before = 0 // no single text was to blame
			}
			err = got(at, vectors)
		case errors.Is(err, embed.ErrTooLarge) && n > 1:
			if before == 0 {
				before, until = b.batch.Load(), at+n
			}
			b.batch.Store(int64(n / 2))
			continue
		case errors.Is(err, embed.ErrTooLarge):
			if before > 0 {
				b.batch.Store(before)
				before = 0
			}
			err = refused(at)
		case errors.Is(err, embed.ErrRefused):
			if err = b.stillWorks(ctx, p, err); err == nil {
				err = b.single(ctx, texts, at, at+n, p, got, refused)
			}
		}
		if err != nil {
			return err
		}
		at += n
	}
	return nil
}

// stillWorks asks a model that refused passages for the probe, which it took when
// it was bound. One that refuses this too refuses everything by now, be it for a
// key or a setting, and no text is to blame. It gives the error then.
func (b *boundEmbedder) stillWorks(ctx context.Context, p embed.Purpose, refusal error) error {
	if p != embed.Passage {
		return nil
	}
	_, err := b.patient(ctx, probes[:1], p)
	if errors.Is(err, embed.ErrRefused) {
		return refusal
	}
	return err
}

// single finds the texts that the model refuses in a call that it refused.
func (b *boundEmbedder) single(ctx context.Context, texts []string, from, to int, p embed.Purpose, got func(int, [][]float32) error, refused func(int) error) error {
	if to-from == 1 {
		return refused(from)
	}
	middle := (from + to) / 2
	for _, half := range [][2]int{{from, middle}, {middle, to}} {
		vectors, err := b.patient(ctx, texts[half[0]:half[1]], p)
		switch {
		case err == nil:
			err = got(half[0], vectors)
		case errors.Is(err, embed.ErrRefused), errors.Is(err, embed.ErrTooLarge):
			err = b.single(ctx, texts, half[0], half[1], p, got, refused)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patient makes a call, again when the model asks to be left alone for a while.
func (b *boundEmbedder) patient(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	for try := 1; ; try++ {
		vectors, err := b.call(ctx, texts, p)
		if try == limitedTries || !errors.Is(err, embed.ErrRateLimited) {
			return vectors, err
		}
		wait := firstLimited << (try - 1)
		if asked, ok := errors.AsType[*embed.RetryAfterError](err); ok && asked.After > 0 {
			wait = asked.After
		}
		if wait > limitedWait {
			b.rest.Store(time.Now().Add(min(wait, longestRest)).UnixNano())
		}
		if deadline, ok := ctx.Deadline(); wait > limitedWait || ok && time.Until(deadline) < wait {
			return nil, err
		}
		if !sleep(ctx, wait) {
			return nil, ctx.Err()
		}
	}
}

// sleep waits; false when ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

type embedAnswer struct {
	vectors [][]float32
	err     error
}

// call runs the model once and checks what it gives. It comes back soon after
// ctx ended, whatever the model does.
func (b *boundEmbedder) call(ctx context.Context, texts []string, p embed.Purpose) ([][]float32, error) {
	if b.hanging.Load() >= maxHanging {
		return nil, fmt.Errorf("%d calls of the embedder hang", maxHanging)
	}
	timeout := callTimeout + time.Duration(len(texts))*textTimeout
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	const running, ended, abandoned = 0, 1, 2
	var state atomic.Int32
	answer := make(chan embedAnswer, 1)
	go func() {
		var a embedAnswer
		defer func() {
			if recover() != nil {
				a = embedAnswer{nil, errors.New("the embedder panicked")} // what it said may hold a text
			}
			answer <- a
			if !state.CompareAndSwap(running, ended) {
				b.hanging.Add(-1)
			}
		}()
		a.vectors, a.err = b.embedder.Embed(limited, slices.Clone(texts), p)
	}()
	var a embedAnswer
	select {
	case a = <-answer:
	case <-limited.Done():
		grace := time.NewTimer(callGrace)
		defer grace.Stop()
		select {
		case a = <-answer:
		case <-grace.C:
			b.hanging.Add(1)
			if !state.CompareAndSwap(running, abandoned) {
				b.hanging.Add(-1)
			}
			a.err = limited.Err()
		}
	}
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return nil, fmt.Errorf("the embedder did not answer within %v", timeout)
	case a.err != nil:
		return nil, a.err
	}
	return a.vectors, checkVectors(a.vectors, texts, b.space.Dimension)
}

// checkVectors looks at what a model gave for texts.
func checkVectors(vectors [][]float32, texts []string, dimension int) error {
	if len(vectors) != len(texts) {
		return errs.New(errs.InvalidVector, "the embedder gave %d vectors for %d texts", len(vectors), len(texts))
	}
	for i, v := range vectors {
		if len(v) != dimension {
			return errs.New(errs.InvalidVector, "the embedder gave a vector of %d dimensions, the space has %d", len(v), dimension)
		}
		// A cache may give one slice for texts that are alike. The probes are not.
		if i > 0 && &v[0] == &vectors[i-1][0] && slices.Equal(texts, probes[:]) {
			return errs.New(errs.InvalidVector, "the embedder gave one slice as the vector of two texts that are not alike")
		}
		switch norm := length(v); {
		case math.IsNaN(norm) || math.IsInf(norm, 0):
			return errs.New(errs.InvalidVector, "the embedder gave a vector that is not finite")
		case norm == 0:
			return errs.New(errs.InvalidVector, "the embedder gave a vector of zeros")
		}
	}
	return nil
}
