package agent_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/agent"
)

// What a handle may do is up to the caller that uses it, not to the one that opened it.
func TestAccess(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	m, err := agent.Open(t.Context(), db, agent.Config{Namespace: "b", Scope: "x", Dimension: 2})
	if err != nil {
		t.Fatal(err)
	}
	vector := []float32{1, 0}
	if err := m.Semantic().Store(t.Context(), 1, "The lamp is lit.", vector); err != nil {
		t.Fatal(err)
	}
	grants := func(write bool, scope string) *loci.Access {
		return &loci.Access{Grants: []loci.Grant{{Namespace: "b", Scopes: []string{scope}, Write: write}}}
	}
	for _, c := range []struct {
		access        *loci.Access
		reads, writes bool
	}{
		{nil, true, true},
		{&loci.Access{Admin: true}, false, false},
		{grants(true, "y"), false, false},
		{grants(false, "x"), true, false},
		{grants(true, "x"), true, true},
	} {
		ctx := loci.WithAccess(t.Context(), c.access)
		only := func(_ any, err error) error { return err }
		for name, call := range map[string]struct {
			err error
			may bool
		}{
			"open":        {only(agent.Open(ctx, db, agent.Config{Namespace: "b", Scope: "x"})), c.reads},
			"get":         {only(m.Semantic().Get(ctx, agent.GetRequest{ID: 1})), c.reads},
			"count":       {only(m.Semantic().Count(ctx)), c.reads},
			"query":       {only(m.Semantic().Query(ctx, vector, 1)), c.reads},
			"text":        {only(m.Semantic().QueryText(ctx, agent.TextRequest{Text: "lamp"})), c.reads},
			"status":      {only(m.Status(ctx)), c.reads},
			"snapshots":   {only(m.Snapshots(ctx)), c.reads},
			"serialize":   {only(m.Semantic().Serialize(ctx, new(strings.Builder))), c.reads},
			"store":       {m.Semantic().Store(ctx, 1, "The lamp is lit.", vector), c.writes},
			"policy":      {only(m.SetPolicy(ctx, agent.Policy{})), c.writes},
			"auto expire": {only(m.AutoExpire(ctx)), c.writes},
			"snapshot":    {only(m.Snapshot(ctx)), c.writes},
			"restore":     {only(m.RestoreLatest(ctx)), c.writes},
			"clear":       {only(m.Episodic().Clear(ctx)), c.writes},
		} {
			if call.may != (call.err == nil) || !call.may && !errors.Is(call.err, loci.ErrForbidden) {
				t.Errorf("%s with %+v: %v", name, c.access, call.err)
			}
		}
	}
}

// A caller may make a memory where it may write, with the space that it needs, though
// spaces are an admin's; and nothing elsewhere.
func TestAccessToNewMemory(t *testing.T) {
	db, err := loci.Open(t.Context(), t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, c := range []struct {
		write           bool
		namespace, code string
	}{{true, "b", ""}, {false, "b", "forbidden"}, {true, "a", "forbidden"}} {
		ctx := loci.WithAccess(t.Context(), &loci.Access{Grants: []loci.Grant{{Namespace: "b", Scopes: []string{loci.Every}, Write: c.write}}})
		scope := "memory-" + c.code
		if _, err := agent.Open(ctx, db, agent.Config{Namespace: c.namespace, Scope: scope, Dimension: 3}); string(loci.CodeOf(err)) != c.code {
			t.Errorf("open %+v: %v", c, err)
		}
		lazy, err := agent.OpenLazy(t.Context(), db, agent.Config{Namespace: c.namespace, Scope: scope + " late", Dimension: 4})
		if err != nil {
			t.Fatal(err)
		}
		if err := lazy.Semantic().Store(ctx, 1, "The lamp is lit.", []float32{1, 0, 0, 0}); string(loci.CodeOf(err)) != c.code {
			t.Errorf("store %+v: %v", c, err)
		}
	}
}

// The sweep that a caller sets going is the store's own work, and meets what others
// have left to expire.
func TestSweepHasNoAccess(t *testing.T) {
	var now atomic.Int64 // microseconds
	now.Store(1)
	db, err := loci.Open(t.Context(), t.TempDir(), &loci.Options{Clock: func() time.Time { return time.UnixMicro(now.Load()) }, NoBackgroundSweep: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	memory := map[string]*agent.AgentMemory{}
	for _, namespace := range []string{"a", "b"} {
		m, err := agent.Open(t.Context(), db, agent.Config{Namespace: namespace, Dimension: 2})
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Semantic().StoreWithTTL(t.Context(), 1, "The lamp is lit.", []float32{1, 0}, 1); err != nil {
			t.Fatal(err)
		}
		memory[namespace] = m
	}
	now.Add(time.Minute.Microseconds())
	ctx := loci.WithAccess(t.Context(), &loci.Access{Grants: []loci.Grant{{Namespace: "b", Scopes: []string{loci.Every}, Write: true}}})
	swept, err := memory["b"].AutoExpire(ctx)
	if err != nil || swept.Swept != 1 {
		t.Errorf("%+v, %v", swept, err)
	}
	h, err := db.Health(t.Context())
	if err != nil || h.RecordCount != 0 {
		t.Errorf("%d records are left, %v", h.RecordCount, err)
	}
}
