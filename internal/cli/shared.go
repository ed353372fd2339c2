package cli

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
	rerankbyurl "github.com/loci-memory/loci/rerank/byurl"
)

// shared opens the memory for a command that stays, such as serve and mcp: it
// holds the store or is attached to the process that does, and takes over when
// that one goes. While it holds, the models in force are bound in the background,
// and vectors are made in the background unless opts say otherwise. opts are the
// store's; nil is the zero value.
func (a *App) shared(ctx context.Context, opts *loci.Options) (*local.Memory, error) {
	o := a.localOptions(opts)
	o.Hold = func(ctx context.Context, db *loci.DB) (op.Caller, func() error, error) {
		stop, err := a.keepModels(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		return op.Local(db), stop, nil
	}
	dir, err := a.DataDir()
	if err != nil {
		return nil, err
	}
	return local.Open(ctx, dir, o)
}

// Shared opens the memory for a command outside of this package that stays: it
// holds the store, with the models in force, or is attached to the process that
// does. Close it in the end. opts are the store's; nil is the zero value.
func (a *App) Shared(ctx context.Context, opts *loci.Options) (*local.Memory, error) {
	return a.shared(ctx, opts)
}

// localOptions are the settings in force for sharing a memory.
func (a *App) localOptions(opts *loci.Options) *local.Options {
	alone := a.settings.get("attach").Value == "false"
	return &local.Options{
		Store: opts, OpenStore: a.deps.Open, Wait: a.settings.duration("wait"),
		NoAttach: alone, NoServe: alone, RuntimeDir: a.runtimeDir(), Log: a.Log(),
	}
}

// runtimeDir is the user's runtime folder, or "" where there is none.
func (a *App) runtimeDir() string {
	if dir, ok := a.deps.LookupEnv("XDG_RUNTIME_DIR"); ok && filepath.IsAbs(dir) {
		return dir
	}
	return ""
}

// memory is the memory as a command that ends soon uses it.
type memory struct {
	*local.Memory
	h atomic.Pointer[holding] // set while this process holds the store
}

// open opens the memory, or attaches to the process that holds it. While it holds
// the store, models are bound for the operations that need them, and it serves
// others. Without waitForIndex a store whose index is unusable opens at once and
// searches are degraded. No vectors are made in the background, which would only
// hold up the program's end.
func (a *App) open(ctx context.Context, waitForIndex bool) (*memory, error) {
	return a.openAs(ctx, a.localOptions(&loci.Options{WaitForIndex: waitForIndex, NoBackgroundEmbedding: true}))
}

func (a *App) openAs(ctx context.Context, o *local.Options) (*memory, error) {
	m := &memory{}
	o.Hold = func(_ context.Context, db *loci.DB) (op.Caller, func() error, error) {
		h := &holding{a: a, db: db, models: map[int]*Model{}}
		m.h.Store(h)
		return h, h.release, nil
	}
	dir, err := a.DataDir()
	if err == nil {
		m.Memory, err = local.Open(ctx, dir, o)
	}
	return m, err
}

// run runs an operation as people call it: with the space of the model in force,
// and progress shown.
func (m *memory) run(ctx context.Context, a *App, o *op.Operation, raw json.RawMessage) (json.RawMessage, error) {
	raw, err := a.fillSpace(ctx, m, o, raw)
	if err != nil {
		return nil, errs.WithOp(o.Name, err)
	}
	if o.LongRunning {
		p := a.Progress(o.Summary)
		defer p.Close()
		ctx = op.WithProgress(ctx, p.Update)
	}
	out, err := m.Call(ctx, o.Name, raw)
	if e, ok := errors.AsType[*errs.Error](err); ok && o.Name == "embeddings.sync" && e.Field == "space" && m.h.Load() == nil {
		// Models are the holder's affair, and it has none for this space.
		return nil, errs.WithOp(o.Name, errs.Invalid("embedder",
			"the process that holds the memory has none for this: loci doctor names it; end it, or start it with another --embedder"))
	}
	return out, err
}

// settle gives vectors to what was written, by this process or by others that
// were attached to it. A holder that stays does that by itself.
func (m *memory) settle(ctx context.Context, a *App, wrote bool) error {
	h := m.h.Load()
	if h == nil || !wrote && !h.wrote.Load() {
		return nil
	}
	return a.settle(ctx, h.db)
}

// holding is a store that this process holds for a moment. It runs operations,
// its own and those of attached processes, with the models that they need.
type holding struct {
	a     *App
	db    *loci.DB
	wrote atomic.Bool // an attached process wrote text

	mu       sync.Mutex     // of the models
	models   map[int]*Model // by how many threads they have; 0 for one that waits for a service
	reranker rerankbyurl.Reranker
	failed   time.Time // when a model last failed to bind for an attached process
}

// Call implements op.Caller.
func (h *holding) Call(ctx context.Context, name string, raw []byte) (json.RawMessage, error) {
	o, ok := op.Default().Lookup(name)
	if !ok {
		return nil, op.Default().Unknown(name)
	}
	if err := o.Check(raw); err != nil {
		return nil, err
	}
	if err := h.bindFor(ctx, name, raw); err != nil {
		return nil, errs.WithOp(name, err)
	}
	out, err := o.Call(ctx, h.db, raw)
	if err == nil && local.Attached(ctx) && (writesText(name) || agentPending(o, out)) {
		h.wrote.Store(true)
	}
	return out, err
}

// release lets go of the models.
func (h *holding) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all []error
	for _, m := range h.models {
		all = append(all, m.Close())
	}
	if h.reranker != nil {
		all = append(all, h.reranker.Close())
	}
	h.models, h.reranker = nil, nil
	return errors.Join(all...)
}

// note tells a person about a call of their own.
func (h *holding) note(ctx context.Context, format string, args ...any) {
	if !local.Attached(ctx) {
		h.a.Note(format, args...)
	}
}
