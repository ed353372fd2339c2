// Package fakeembed is an embedding model for tests: a bag of words, hashed, that
// gives the same vectors everywhere and fails in every way it is told to.
package fakeembed

import (
	"context"
	"errors"
	"hash/fnv"
	"math"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/loci-memory/loci/embed"
)

// Fault is a way to fail.
type Fault uint8

// The faults.
const (
	None           Fault = iota
	Fails                // an error that says nothing
	Hangs                // waits for the context's end
	HangsForGood         // does not look at the context; ends with Release
	NaN                  // one number of the last vector is none
	Zeros                // the last vector is zero
	TooFew               // one vector too few
	TooMany              // one vector too many
	WrongDimension       // vectors are one number too long
	TooLarge             // refuses more texts than Most
	RateLimited          // asks to come back later
	Refuses              // refuses a call with a text that holds RefusedWord
	Panics
)

// RefusedWord is what a text holds that Refuses never takes.
const RefusedWord = "unspeakable"

// ErrBroken is the error of Fails.
var ErrBroken = errors.New("fakeembed: told to fail")

// Call is what one call was given.
type Call struct {
	Texts   []string
	Purpose embed.Purpose
}

// Embedder is the model. It is safe for concurrent use. See New.
type Embedder struct {
	// RetryAfter is what RateLimited asks for, 0: it does not say. Most is what
	// TooLarge still takes, Drift turns every vector, as another model would.
	// Set them before the first call.
	RetryAfter time.Duration
	Most       int
	Drift      uint64

	dimension int
	same      map[string]string
	release   chan struct{}

	mu    sync.Mutex
	fault Fault
	left  int // calls that the fault is for; below 0: all
	calls []Call
	once  sync.Once
}

// New gives a model of a dimension that does not fail.
func New(dimension int) *Embedder {
	return &Embedder{dimension: dimension, same: map[string]string{}, release: make(chan struct{}), left: -1}
}

// Alike makes words mean the same as the first of them. Call it before the first
// call of Embed.
func (e *Embedder) Alike(words ...string) *Embedder {
	for _, w := range words[1:] {
		e.same[w] = words[0]
	}
	return e
}

// Fail makes every call from now on fail in a way; None ends it.
func (e *Embedder) Fail(f Fault) { e.FailTimes(f, -1) }

// FailTimes makes the next n calls fail in a way.
func (e *Embedder) FailTimes(f Fault, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.fault, e.left = f, n
}

// Release ends the calls that hang for good.
func (e *Embedder) Release() { e.once.Do(func() { close(e.release) }) }

// Calls are the calls so far, failed ones included.
func (e *Embedder) Calls() []Call {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.calls)
}

// Forget empties Calls.
func (e *Embedder) Forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = nil
}

// record keeps a call and gives the fault that it is to have.
func (e *Embedder) record(texts []string, purpose embed.Purpose) Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls = append(e.calls, Call{slices.Clone(texts), purpose})
	if e.left == 0 {
		return None
	}
	if e.left > 0 {
		e.left--
	}
	return e.fault
}

// Embed implements embed.Embedder. The purpose makes no difference.
func (e *Embedder) Embed(ctx context.Context, texts []string, purpose embed.Purpose) ([][]float32, error) {
	fault := e.record(texts, purpose)
	switch fault {
	case Fails:
		return nil, ErrBroken
	case Hangs:
		<-ctx.Done()
		return nil, ctx.Err()
	case HangsForGood:
		<-e.release
		return nil, ErrBroken
	case RateLimited:
		return nil, &embed.RetryAfterError{After: e.RetryAfter, Err: ErrBroken}
	case TooLarge:
		if len(texts) > e.Most {
			return nil, embed.ErrTooLarge
		}
	case Refuses:
		if slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, RefusedWord) }) {
			return nil, embed.ErrRefused
		}
	case Panics:
		panic("fakeembed: told to panic")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([][]float32, len(texts))
	for i, s := range texts {
		out[i] = e.Vector(s)
	}
	if len(out) == 0 {
		return out, nil
	}
	last := out[len(out)-1]
	switch fault {
	case NaN:
		last[0] = float32(math.NaN())
	case Zeros:
		clear(last)
	case TooFew:
		out = out[:len(out)-1]
	case TooMany:
		out = append(out, e.Vector("more"))
	case WrongDimension:
		for i := range out {
			out[i] = append(out[i], 1)
		}
	}
	return out, nil
}

// Vector is what Embed gives for a text: the sum of its words' directions. A text
// without words has a direction of its own. It is not of unit length.
func (e *Embedder) Vector(s string) []float32 {
	v := make([]float32, e.dimension)
	some := false
	for _, w := range words(s) {
		if first, ok := e.same[w]; ok {
			w = first
		}
		e.add(v, w)
		some = true
	}
	if !some {
		e.add(v, "")
	}
	if slices.IndexFunc(v, func(x float32) bool { return x != 0 }) < 0 {
		v[0] = 1 // opposite words: only in very small dimensions
	}
	return v
}

// add adds a word's direction, which is nearly orthogonal to any other's.
func (e *Embedder) add(v []float32, word string) {
	h := fnv.New64a()
	h.Write([]byte(word))
	x := h.Sum64() ^ e.Drift
	for i := range v {
		// One step of SplitMix64 (Steele, Lea and Flood, 2014).
		x += 0x9e3779b97f4a7c15
		z := (x ^ x>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		v[i] += float32(int64(z^z>>31)>>11) / (1 << 52)
	}
}

// words are the runs of letters and digits of a text in small letters; a Chinese
// character is a word of its own.
func words(s string) (out []string) {
	var run []rune
	end := func() {
		if len(run) > 0 {
			out = append(out, string(run))
			run = run[:0]
		}
	}
	for _, r := range strings.ToLower(s) {
		switch {
		case unicode.Is(unicode.Han, r):
			end()
			out = append(out, string(r))
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			run = append(run, r)
		default:
			end()
		}
	}
	end()
	return out
}
