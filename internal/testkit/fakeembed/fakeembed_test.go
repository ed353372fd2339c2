package fakeembed

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed"
)

func cosine(a, b []float32) float64 {
	var dot, x, y float64
	for i := range a {
		dot += float64(a[i]) * float64(b[i])
		x += float64(a[i]) * float64(a[i])
		y += float64(b[i]) * float64(b[i])
	}
	return dot / math.Sqrt(x*y)
}

func TestVectors(t *testing.T) {
	e := New(256).Alike("car", "automobile")
	if got := cosine(e.Vector("a fast Car"), e.Vector("an AUTOMOBILE")); got < 0.2 {
		t.Errorf("words that are alike: %v", got)
	}
	if got := cosine(e.Vector("car"), e.Vector("automobile!")); got < 0.9999 {
		t.Errorf("the same word: %v", got)
	}
	if got := cosine(e.Vector("灯塔"), e.Vector("harbor")); math.Abs(got) > 0.3 {
		t.Errorf("other words: %v", got)
	}
	if got := cosine(e.Vector("灯塔"), e.Vector("塔楼")); got < 0.3 {
		t.Errorf("a shared character: %v", got)
	}
	if e.Vector("!?")[0] == 0 {
		t.Error("a text without words has no vector")
	}
	other := New(256)
	other.Drift = 1
	if got := cosine(e.Vector("car"), other.Vector("car")); math.Abs(got) > 0.3 {
		t.Errorf("another model: %v", got)
	}
}

func TestFaults(t *testing.T) {
	e := New(3)
	e.Most, e.RetryAfter = 1, time.Second
	defer e.Release()
	texts := []string{"one", "an unspeakable one"}
	var after *embed.RetryAfterError
	for fault, check := range map[Fault]func(v [][]float32, err error) bool{
		None:        func(v [][]float32, err error) bool { return err == nil && len(v) == 2 && len(v[1]) == 3 },
		Fails:       func(_ [][]float32, err error) bool { return errors.Is(err, ErrBroken) },
		TooLarge:    func(_ [][]float32, err error) bool { return errors.Is(err, embed.ErrTooLarge) },
		Refuses:     func(_ [][]float32, err error) bool { return errors.Is(err, embed.ErrRefused) },
		RateLimited: func(_ [][]float32, err error) bool { return errors.As(err, &after) && after.After == time.Second },
		NaN:         func(v [][]float32, err error) bool { return err == nil && v[1][0] != v[1][0] },
		Zeros: func(v [][]float32, err error) bool {
			return err == nil && slices.Equal(v[1], []float32{0, 0, 0}) && v[0][0] != 0
		},
		TooFew:         func(v [][]float32, err error) bool { return err == nil && len(v) == 1 },
		TooMany:        func(v [][]float32, err error) bool { return err == nil && len(v) == 3 },
		WrongDimension: func(v [][]float32, err error) bool { return err == nil && len(v[0]) == 4 },
	} {
		e.FailTimes(fault, 1)
		if v, err := e.Embed(t.Context(), texts, embed.Passage); !check(v, err) {
			t.Errorf("fault %d: %v, %v", fault, v, err)
		}
		if v, err := e.Embed(t.Context(), texts, embed.Query); err != nil || len(v) != 2 {
			t.Errorf("after fault %d: %v, %v", fault, v, err)
		}
	}
	e.Fail(Hangs)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, texts, embed.Query); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	e.Fail(Panics)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = e.Embed(t.Context(), texts, embed.Query)
	}()
	if calls := e.Calls(); len(calls) != 22 || calls[1].Purpose != embed.Query || len(calls[0].Texts) != 2 {
		t.Errorf("%d calls", len(calls))
	}
	e.Forget()
	if len(e.Calls()) != 0 {
		t.Error("calls after Forget")
	}
}
