package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/embed"
	embedbyurl "github.com/loci-memory/loci/embed/byurl"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/loci-memory/loci/op/local"
	rerankbyurl "github.com/loci-memory/loci/rerank/byurl"
)

// A Model is an embedding model that ships with the program.
type Model struct {
	ID        string // its name and version: the space of its vectors is called after it
	Title     string // for people
	Dimension int
	Embedder  embed.Embedder
	Options   *loci.EmbedderOptions // nil is the zero value
}

// The words that --embedder and --reranker take besides an address.
const (
	modelNone    = "none"
	modelBuiltin = "builtin"
	modelStatic  = "static"
)

// How long a command waits for a model that it can do without.
const (
	searchPatience = 5 * time.Second // to answer at all, before a search goes without it
	settlePatience = 2 * time.Second // likewise after a write
	settleTime     = time.Second     // for the vectors of what was written
	settleFew      = 64              // records that a write makes up for
	settleBatch    = 16
	syncBatch      = 64                     // records between two signs of progress
	retryEvery     = 30 * time.Second       // for a process that stays
	bindPatience   = 500 * time.Millisecond // of the first call of one that stays
)

func (a *App) checkEmbedder(v string) error {
	switch v {
	case modelNone:
		return nil
	case modelBuiltin, modelStatic:
		if a.deps.Model == nil {
			return errors.New("must be none or an address: this build has no model of its own")
		}
		return nil
	}
	e, _, err := embedbyurl.Open(v, embedbyurl.Options{})
	if err != nil {
		return fmt.Errorf("must be none, builtin, static or an address: %w", err)
	}
	return e.Close()
}

func checkReranker(v string) error {
	if v == modelNone {
		return nil
	}
	r, _, err := rerankbyurl.Open(v, rerankbyurl.Options{})
	if err != nil {
		return fmt.Errorf("must be none or an address: %w", err)
	}
	return r.Close()
}

// noCredentials refuses a secret where everybody on the machine can read it.
func noCredentials(v setting) error {
	if u, err := url.Parse(v.Value); err == nil && u.User != nil && strings.HasPrefix(v.Source, "--") {
		return errors.New("must hold no password: a key comes from LOCI_" + strings.ToUpper(v.Name) + "_KEY or from the file that LOCI_" + strings.ToUpper(v.Name) + "_KEY_FILE names")
	}
	return nil
}

// key reads the secret of a setting's service: from the environment, or from a
// file that the environment names.
func (a *App) key(name string) (key endpoint.Key, source string, err error) {
	variable := "LOCI_" + strings.ToUpper(name) + "_KEY"
	if v, ok := a.deps.LookupEnv(variable); ok && v != "" {
		key, err = endpoint.KeyFromEnv(variable, a.deps.LookupEnv)
		return key, variable, err
	}
	if path, ok := a.deps.LookupEnv(variable + "_FILE"); ok && path != "" {
		key, err = endpoint.KeyFromFile(path)
		return key, variable + "_FILE", err
	}
	return key, sourceDefault, nil
}

// shownModel is a setting's value without what may be secret in it.
func shownModel(v setting) string {
	title := ""
	var err error
	switch {
	case !strings.Contains(v.Value, "://"):
		return v.Value
	case v.Name == "reranker":
		_, title, err = rerankbyurl.Open(v.Value, rerankbyurl.Options{})
	default:
		_, title, err = embedbyurl.Open(v.Value, embedbyurl.Options{})
	}
	if err != nil {
		return "an address that cannot be read"
	}
	return title
}

// Embedder is the embedder in force for people: none, or which one it is.
func (a *App) Embedder() string { return shownModel(a.settings.get("embedder")) }

// embedderOff says whether vectors were turned off.
func (a *App) embedderOff() bool { return a.settings.get("embedder").Value == modelNone }

// openModel is the embedder that the settings ask for, nil for none. Nothing is
// loaded and nobody is asked. patient is for work that can wait for a service.
func (a *App) openModel(patient bool) (*Model, error) { return a.openThreads(patient, 1) }

// OpenModel is the embedder that the settings ask for, nil for none. A model of
// the program's own uses all processors. Close it when the stores that it is
// bound to are closed.
func (a *App) OpenModel() (*Model, error) { return a.openThreads(true, runtime.NumCPU()) }

func (a *App) openThreads(patient bool, threads int) (*Model, error) {
	v := a.settings.get("embedder").Value
	switch v {
	case modelNone, "":
		return nil, nil
	case modelBuiltin, modelStatic:
		return a.deps.Model(v, threads)
	}
	o, err := a.endpoint("embedder", patient)
	if err != nil {
		return nil, err
	}
	e, title, err := embedbyurl.Open(v, embedbyurl.Options{Endpoint: o})
	if err != nil {
		return nil, errs.Invalid("embedder", "%v", err)
	}
	return &Model{ID: title, Title: title, Embedder: e}, nil
}

func (a *App) endpoint(name string, patient bool) (o endpoint.Options, err error) {
	if o.APIKey, _, err = a.key(name); err != nil {
		return o, errs.Invalid(name, "%v", err)
	}
	if !patient {
		o.Tries, o.Timeout = 1, searchPatience
	}
	return o, nil
}

// Close lets go of a model's connections.
func (m *Model) Close() error {
	if c, ok := m.Embedder.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// Size is the dimension of the model's vectors. A service is asked for a vector
// to find out.
func (m *Model) Size(ctx context.Context) (int, error) {
	if m.Dimension > 0 {
		return m.Dimension, nil
	}
	vectors, err := m.Embedder.Embed(ctx, []string{"dimension"}, embed.Passage)
	switch {
	case err != nil:
		return 0, errs.Wrap(errs.Validation, err, "the embedder does not answer")
	case len(vectors) != 1 || len(vectors[0]) == 0:
		return 0, errs.Invalid("embedder", "gave no vector for a text")
	}
	m.Dimension = len(vectors[0])
	return m.Dimension, nil
}

// Bind binds the model to its space, which is made if need be, until the store
// is closed.
func (m *Model) Bind(ctx context.Context, db *loci.DB) error {
	known, err := db.Embeddings().EmbedderSpace(ctx, m.ID)
	if err != nil {
		return err
	}
	if known == nil {
		known = &loci.EmbeddingSpace{ID: m.ID, Model: m.ID, Dimension: m.Dimension}
	}
	if m.Dimension > 0 || known.Dimension == 0 {
		if known.Dimension, err = m.Size(ctx); err != nil {
			return err
		}
	}
	if _, err := db.Embeddings().RegisterSpace(ctx, *known); err != nil {
		return m.explain(err)
	}
	return m.explain(db.Embeddings().RegisterEmbedder(ctx, m.ID, m.Embedder, m.Options))
}

// explain says what to do about a model that is not the one that filled its
// space.
func (m *Model) explain(err error) error {
	if loci.CodeOf(err) != loci.ErrConflict && loci.CodeOf(err) != loci.ErrInvalidVector {
		return err
	}
	return &loci.Error{Code: loci.CodeOf(err), Field: "embedder", Err: err, Message: fmt.Sprintf(
		"what answers as %q makes other vectors than those that are stored; to make them anew: loci embeddings delete-space %q, then loci embeddings sync", m.Title, m.ID)}
}

// has says whether a store has vectors of the model to search in.
func (m *Model) has(ctx context.Context, db *loci.DB) (bool, error) {
	h, err := db.Health(ctx)
	if err != nil || h.Vectors == 0 {
		return false, err
	}
	known, err := db.Embeddings().EmbedderSpace(ctx, m.ID)
	return known != nil, err
}

// What an operation has to do with models.
func searches(name string) bool {
	return contextSearches(name) || slices.Contains([]string{"recall", "search", "search_with_context", "search_preset"}, name)
}

func writesText(name string) bool {
	return strings.HasPrefix(name, "memories.upsert") || contextWrites(name) ||
		slices.Contains([]string{"remember", "graph.apply_batch", "graph.import_text", "notes.upsert_file", "notes.sync_dir", "import_from"}, name)
}

// bindFor binds the models that an operation needs, unless they are bound. A
// search goes without a model that fails, and a person is told; a sync has nothing
// to do without it.
func (h *holding) bindFor(ctx context.Context, name string, raw json.RawMessage) error {
	var in struct {
		NoVector bool `json:"no_vector"`
		NoRerank bool `json:"no_rerank"`
	}
	// What does not fit these fields is the operation's to refuse.
	_ = json.Unmarshal(raw, &in)
	sync := name == "embeddings.sync"
	use := agentModel(name, raw)
	embeds := sync || searches(name) && !in.NoVector || use != modelUnused
	reranks := name == "reranker_registered" || (searches(name) || use == modelReads) && !in.NoRerank
	if !embeds && !reranks {
		return nil
	}
	// Models are bound for the store, whoever's call needs them.
	ctx = loci.WithAccess(ctx, nil)
	h.mu.Lock()
	defer h.mu.Unlock()
	if embeds {
		m, err := h.model(sync)
		switch {
		case err != nil:
			return err
		case m == nil && sync:
			return errs.Invalid("embedder", "is none: choose one with --embedder, LOCI_EMBEDDER or the configuration file")
		case m != nil && use != modelUnused:
			err = h.bindAgent(ctx, m, use, raw)
		case m != nil:
			err = h.bindOne(ctx, m, name, raw)
		}
		if err != nil {
			return err
		}
	}
	if reranks && h.reranker == nil {
		r, err := h.a.bindReranker(ctx, h.db)
		if err != nil {
			return err
		}
		h.reranker = r
	}
	return nil
}

// model is the embedder in force, nil for none. It is opened once and kept.
func (h *holding) model(sync bool) (*Model, error) {
	key, threads := 1, 1
	if sync {
		key, threads = 0, runtime.NumCPU()
	}
	if m := h.models[key]; m != nil {
		return m, nil
	}
	m, err := h.a.openThreads(sync, threads)
	if err == nil && m != nil {
		h.models[key] = m
	}
	return m, err
}

// bind binds a model within a time, unless it is bound. For an attached process
// one that failed is left alone for a while.
func (h *holding) bind(ctx context.Context, m *Model, patience time.Duration) error {
	if h.db.Link().HasEmbedder(m.ID) {
		return nil
	}
	attached := local.Attached(ctx)
	if attached && !h.failed.IsZero() && time.Since(h.failed) < retryEvery {
		return errs.Invalid("embedder", "did not answer a moment ago")
	}
	if patience > 0 {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		ctx = limited
	}
	err := m.Bind(ctx, h.db)
	if err != nil && attached {
		h.failed = time.Now()
	}
	return err
}

func (h *holding) bindOne(ctx context.Context, m *Model, name string, raw json.RawMessage) error {
	if name == "embeddings.sync" {
		if local.Attached(ctx) {
			return h.bind(ctx, m, 0)
		}
		return m.Bind(ctx, h.db) // with all its threads, whatever is bound
	}
	switch has, err := m.has(ctx, h.db); {
	case err != nil:
		return err
	case !has:
		s, err := h.db.Health(ctx)
		if err != nil {
			return err
		}
		namespace := h.a.settings.get("namespace").Value
		if contextSearches(name) {
			if namespace, err = contextNamespace(raw); err != nil {
				return err
			}
		}
		on, err := h.db.Embeddings().NamespaceVectorization(ctx, namespace)
		if err == nil && on && s.RecordCount > 0 {
			h.note(ctx, "Searched without vectors, for there are none of %s yet: loci embeddings sync", m.Title)
		}
		return err
	}
	if err := h.bind(ctx, m, searchPatience); err != nil {
		if ctx.Err() != nil {
			return errs.Wrap(errs.Canceled, ctx.Err(), "stopped before the search began")
		}
		h.note(ctx, "Searched without vectors: %s", h.a.failure(err).Message)
	}
	return nil
}

func (a *App) bindReranker(ctx context.Context, db *loci.DB) (rerankbyurl.Reranker, error) {
	v := a.settings.get("reranker").Value
	if v == modelNone || v == "" {
		return nil, nil
	}
	o, err := a.endpoint("reranker", false)
	if err != nil {
		return nil, err
	}
	r, _, err := rerankbyurl.Open(v, rerankbyurl.Options{Endpoint: o})
	if err != nil {
		return nil, errs.Invalid("reranker", "%v", err)
	}
	if err := db.RegisterReranker(ctx, r, nil); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// settle gives vectors to what was just written, and to a little more, within a
// moment. The write stands whatever becomes of it.
func (a *App) settle(ctx context.Context, db *loci.DB) error {
	m, err := a.openModel(false)
	if err != nil || m == nil {
		return err
	}
	defer m.Close() // of idle connections, when nothing is left to tell
	limited, cancel := context.WithTimeout(ctx, settlePatience)
	defer cancel()
	if err := m.Bind(limited, db); err != nil {
		a.Note("It has no vectors yet, so its words alone find it: %s", a.failure(err).Message)
		return nil
	}
	limited, cancel = context.WithTimeout(ctx, settleTime)
	defer cancel()
	left := int64(-1)
	_, err = db.Embeddings().Sync(limited, m.ID, loci.EmbeddingSyncOptions{Batch: new(settleBatch), Progress: func(done, total int64) {
		left = total - done
		if total > settleFew {
			cancel()
		}
	}})
	switch {
	case ctx.Err() != nil || err == nil:
	case loci.CodeOf(err) != loci.ErrCanceled:
		a.Note("It has no vectors yet: %s", a.failure(err).Message)
	case left != 0:
		a.Note("Not everything has its vectors yet. Make them with: loci embeddings sync")
	}
	return nil
}

// noteNotes tells a person who brings in notes that these get no vectors.
func (a *App) noteNotes(ctx context.Context, caller op.Caller, raw json.RawMessage) error {
	if a.embedderOff() {
		return nil
	}
	namespace, err := namespaceOf(raw)
	if err != nil {
		return err
	}
	in, err := marshal(map[string]any{"tier": loci.TierNotes, "namespace": namespace})
	if err != nil {
		return err
	}
	out, err := caller.Call(ctx, "embeddings.vectorization", in)
	if err != nil {
		return err
	}
	var state op.SwitchState
	if err := json.Unmarshal(out, &state); err != nil {
		return err
	}
	if !state.Enabled {
		a.Note("Notes are found by their words. To find them by their meaning as well: loci embeddings enable notes, then loci embeddings sync")
	}
	return nil
}

// namespaceOf is the namespace that an input names.
func namespaceOf(raw json.RawMessage) (string, error) {
	var in struct{ Namespace *string }
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &in); err != nil {
			return "", err
		}
	}
	return valueOr(in.Namespace, loci.DefaultNamespace), nil
}

// keepModels binds the models for a process that stays, in the background and
// again until that works. stop ends it. A model of the program's own is there in a
// moment, which is waited for, so that the first search has its vectors.
func (a *App) keepModels(ctx context.Context, db *loci.DB) (stop func() error, err error) {
	m, err := a.openModel(true)
	if err != nil {
		return nil, err
	}
	r, err := a.bindReranker(ctx, db)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	if m != nil {
		tried := make(chan struct{})
		once := sync.OnceFunc(func() { close(tried) })
		defer func() {
			select {
			case <-tried:
			case <-time.After(bindPatience):
			}
		}()
		work.Go(func() {
			for {
				err := m.Bind(ctx, db)
				once()
				if err == nil || ctx.Err() != nil {
					return
				}
				a.Log().Warn("searching without vectors", "embedder", m.Title, "error", a.failure(err).Message)
				select {
				case <-ctx.Done():
					return
				case <-time.After(retryEvery):
				}
			}
		})
	}
	return func() (err error) {
		cancel()
		work.Wait()
		if m != nil {
			err = m.Close()
		}
		if r != nil {
			err = errors.Join(err, r.Close())
		}
		return err
	}, nil
}

// fillSpace puts the space of the model in force into an input that may name one
// and does not.
func (a *App) fillSpace(ctx context.Context, caller op.Caller, o *op.Operation, raw json.RawMessage) (json.RawMessage, error) {
	if o.Name != "embeddings.status" && o.Name != "embeddings.vector_ready" && o.Name != "embeddings.sync" {
		return raw, nil
	}
	fields := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &fields); err != nil {
			return nil, errs.Invalid("", "the input is not a JSON object")
		}
	}
	if o.LongRunning {
		put(fields, "batch", syncBatch, false)
	}
	if m, err := a.openModel(false); err != nil {
		return nil, err
	} else if m != nil {
		if err := m.Close(); err != nil {
			return nil, err
		}
		out, err := caller.Call(ctx, "embeddings.spaces", nil)
		if err != nil {
			return nil, err
		}
		var known op.Spaces
		if err := json.Unmarshal(out, &known); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(known.Spaces, func(s loci.EmbeddingSpace) bool { return s.ID == m.ID }) {
			put(fields, "space", m.ID, false)
		}
	}
	return marshal(fields)
}
