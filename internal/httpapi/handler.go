// Package httpapi is the HTTP surface: the operation table under /v1, with its
// description, its change feed, and what a server is watched by.
package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/openapi"
	"github.com/loci-memory/loci/internal/tokens"
	"github.com/loci-memory/loci/op"
)

// Config tunes the surface. Zero values take the defaults named here.
type Config struct {
	Caller       op.Caller      // who runs the operations; required
	Log          *slog.Logger   // default: nothing is logged
	Version      string         // of the program, for the description and the metrics
	Tokens       *tokens.Keeper // who may come in; nil: everyone who reaches the port, with access to everything
	Hosts        []string       // further Host headers, without port
	Origins      []string       // origins of web pages that may ask, such as https://app.example
	AnyIP        bool           // take any IP address for a Host header
	Timeout      time.Duration  // for one operation, default 60s
	LongTimeout  time.Duration  // for a long-running one, default 1h
	MaxBody      int64          // bytes of a request, default op.MaxInputBytes
	MaxRunning   int            // operations at once, default 64; the others wait
	QueueTimeout time.Duration  // how long they wait before they are turned away, default 10s
	MaxStreams   int            // change feeds at once, default 64
	BodyTimeout  time.Duration  // for a client to send its request, default 30s
	WriteTimeout time.Duration  // for a client to take an answer or an event, default 60s
	Heartbeat    time.Duration  // between signs of life on a stream, default 15s, at most 30s

	// Mounts are further handlers by their path, such as "/mcp": behind the same
	// checks, with the caller's access on the request's context.
	Mounts map[string]http.Handler
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{
		{&c.Timeout, time.Minute}, {&c.LongTimeout, time.Hour}, {&c.QueueTimeout, 10 * time.Second},
		{&c.BodyTimeout, 30 * time.Second}, {&c.WriteTimeout, time.Minute}, {&c.Heartbeat, 15 * time.Second},
	} {
		if *d.field <= 0 {
			*d.field = d.value
		}
	}
	c.Heartbeat = min(c.Heartbeat, loci.MaxChangesWait*time.Millisecond)
	if c.MaxBody <= 0 || c.MaxBody > op.MaxInputBytes {
		c.MaxBody = op.MaxInputBytes
	}
	if c.MaxRunning <= 0 {
		c.MaxRunning = 64
	}
	if c.MaxStreams <= 0 {
		c.MaxStreams = 64
	}
	return c
}

// Handler answers
//
//	POST /v1/OPERATION   run an operation, JSON in and out, or as events
//	GET  /v1             list the operations
//	GET  /v1/changes     what is written and deleted, as events
//	GET  /openapi.json   the description of all this
//	GET  /metrics        figures for Prometheus
//	GET  /healthz        whether the process lives
//	GET  /readyz         whether the store answers
//
// It refuses requests that a web page of another origin may have caused.
func Handler(cfg Config) http.Handler { return newHandler(cfg) }

func newHandler(cfg Config) *handler {
	cfg = cfg.withDefaults()
	h := &handler{
		Config: cfg, running: make(chan struct{}, cfg.MaxRunning), streams: make(chan struct{}, cfg.MaxStreams),
		bodies:      newBodies(),
		description: sync.OnceValue(func() []byte { return openapi.Document(op.Default(), cfg.Version) }),
	}
	h.stopping, h.stopStreams = context.WithCancel(context.Background())
	h.metrics = newMetrics(h)
	return h
}

type handler struct {
	Config
	running, streams chan struct{} // a place in each for everyone who is at work
	bodies           bodies
	metrics          *metrics
	description      func() []byte
	// stopping ends when the server stops: streams without an end of their own
	// end then.
	stopping    context.Context
	stopStreams context.CancelFunc
}

// refusal is an error with an HTTP status of its own.
type refusal struct {
	status int
	title  string
	err    error
}

// Error implements error.
func (r refusal) Error() string { return r.err.Error() }

// Unwrap gives the coded error.
func (r refusal) Unwrap() error { return r.err }

func refuse(status int, title string, code loci.Code, format string, args ...any) error {
	return refusal{status, title, errs.New(code, format, args...)}
}

// request is what is known about a request while it is answered.
type request struct {
	route string // never the path itself, which may hold anything
	token *tokens.Token
	// secret is the token as it was sent, for a stream to ask again whether it
	// still counts.
	secret string
}

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	rec := &recorder{ResponseWriter: w}
	q := &request{route: "unknown"}
	id := requestID()
	defer func() {
		p := recover()
		if p != nil && p != http.ErrAbortHandler {
			// The panic's value may quote a record, so only its type is told.
			h.Log.Error("panic", "request", id, "route", q.route, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			if rec.status == 0 {
				h.problem(rec, refuse(http.StatusInternalServerError, "Something went wrong inside", loci.ErrStorage,
					"the server failed; its log says more"))
			} else {
				p = http.ErrAbortHandler // half an answer must not look like a whole one
			}
		}
		took := time.Since(start)
		h.metrics.observe(q.route, rec.status, took)
		attrs := []any{"request", id, "route", q.route, "status", rec.status, "ms", float64(took.Microseconds()) / 1000}
		if q.token != nil {
			attrs = append(attrs, "token", q.token.Name)
		}
		h.Log.Info("request", attrs...)
		if p == http.ErrAbortHandler {
			panic(p)
		}
	}()
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	rec.Header().Set("Cache-Control", "no-store")
	rec.Header().Set("X-Request-Id", id)
	if err := h.checkOrigin(r); err != nil {
		h.problem(rec, err)
		return
	}
	if h.shareWithOrigin(rec, r) {
		q.route = "preflight"
		rec.WriteHeader(http.StatusNoContent)
		return
	}
	switch r.URL.Path {
	case "/healthz":
		q.route = r.URL.Path
		h.get(rec, r, h.healthz)
		return
	case "/readyz":
		q.route = r.URL.Path
		h.get(rec, r, h.readyz)
		return
	}
	ctx, err := h.authenticate(r, q)
	if err != nil {
		if errors.Is(err, errWrongToken) {
			rec.Header().Set("WWW-Authenticate", `Bearer realm="loci"`)
		}
		h.problem(rec, err)
		return
	}
	h.route(rec, r.WithContext(ctx), q)
}

// route finds what is asked for.
func (h *handler) route(w *recorder, r *http.Request, q *request) {
	path := r.URL.Path
	for at, mounted := range h.Mounts {
		if path == at || strings.HasPrefix(path, at+"/") {
			q.route = at
			h.mounted(w, r, mounted)
			return
		}
	}
	switch path {
	case "/v1":
		q.route = path
		h.get(w, r, h.list)
		return
	case "/openapi.json":
		q.route = path
		h.get(w, r, func(w http.ResponseWriter, _ *http.Request) {
			h.write(w, http.StatusOK, "application/json", h.description())
		})
		return
	case "/metrics":
		q.route = path
		h.get(w, r, h.serveMetrics)
		return
	}
	name, ok := strings.CutPrefix(path, "/v1/")
	o, known := op.Default().Lookup(name)
	switch {
	case !ok || !known:
		h.problem(w, refuse(http.StatusNotFound, "There is no such place", loci.ErrNotFound,
			"there is nothing here; GET /v1 lists the operations"))
	case name == "changes" && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		q.route = "changes stream"
		h.changes(w, r, q)
	default:
		q.route = o.Name
		h.operation(w, r, o)
	}
}

func requestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

func (h *handler) get(w http.ResponseWriter, r *http.Request, f http.HandlerFunc) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.problem(w, refuse(http.StatusMethodNotAllowed, "Another method is needed", loci.ErrValidation, "use GET"))
		return
	}
	f(w, r)
}

// healthz says that the process lives. It asks nobody, so that a store that is
// slow does not get its server killed.
func (h *handler) healthz(w http.ResponseWriter, _ *http.Request) {
	h.write(w, http.StatusOK, "application/json", []byte(`{"status":"ok"}`))
}

// readyz says whether the store answers and its index can be used.
func (h *handler) readyz(w http.ResponseWriter, r *http.Request) {
	health, err := h.health(r.Context())
	if err == nil && !health.IndexUsable {
		err = errs.New(errs.Index, "the index is being built; reads and writes work, searches are degraded")
	}
	if err == nil && h.stopping.Err() != nil {
		err = errs.New(errs.Closed, "the server is stopping")
	}
	if err != nil {
		h.fail(w, err)
		return
	}
	h.write(w, http.StatusOK, "application/json", []byte(`{"status":"ready"}`))
}

// health asks for the store's counters, whoever the request is from.
func (h *handler) health(ctx context.Context) (*loci.HealthReport, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	raw, err := h.Caller.Call(loci.WithAccess(ctx, nil), "health", nil)
	if err != nil {
		return nil, err
	}
	var report loci.HealthReport
	if err := json.Unmarshal(raw, &report); err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the store's health cannot be read")
	}
	return &report, nil
}

// listed is an operation in the list.
type listed struct {
	Operation   string `json:"operation"`
	Path        string `json:"path"`
	Summary     string `json:"summary"`
	Description string `json:"description,omitempty"`
	ReadOnly    bool   `json:"read_only"`
	Idempotent  bool   `json:"idempotent"`
	Destructive bool   `json:"destructive"`
	LongRunning bool   `json:"long_running"`
	Admin       bool   `json:"admin"`
}

func (h *handler) list(w http.ResponseWriter, _ *http.Request) {
	var out struct {
		Operations []listed `json:"operations"`
	}
	for _, o := range op.Default().All() {
		out.Operations = append(out.Operations, listed{
			Operation: o.Name, Path: "/v1/" + o.Name, Summary: o.Summary, Description: o.Description, ReadOnly: o.ReadOnly,
			Idempotent: o.Idempotent, Destructive: o.Destructive, LongRunning: o.LongRunning, Admin: o.Admin,
		})
	}
	raw, err := json.Marshal(out)
	if err != nil {
		h.fail(w, err)
		return
	}
	h.write(w, http.StatusOK, "application/json", raw)
}

func (h *handler) operation(w http.ResponseWriter, r *http.Request, o *op.Operation) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", "POST")
		h.problem(w, refuse(http.StatusMethodNotAllowed, "Another method is needed", loci.ErrValidation, "operations take POST"))
		return
	}
	if err := checkContent(r); err != nil {
		h.problem(w, err)
		return
	}
	body, err := h.read(w, r)
	if err != nil {
		h.problem(w, err)
		return
	}
	limit := h.Timeout
	if o.LongRunning {
		limit = h.LongTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	if err := h.enter(ctx, h.running, "operations"); err != nil {
		h.problem(w, err)
		return
	}
	defer func() { <-h.running }()
	if wantsEvents(r) {
		h.stream(ctx, cancel, w, o, body)
		return
	}
	out, err := h.Caller.Call(ctx, o.Name, body)
	if err != nil {
		h.fail(w, err)
		return
	}
	h.write(w, http.StatusOK, "application/json", out)
}

// enter waits for a place, but not so long that a client would rather have known.
func (h *handler) enter(ctx context.Context, places chan struct{}, what string) error {
	select {
	case places <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(h.QueueTimeout)
	defer timer.Stop()
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errs.Wrap(errs.Canceled, ctx.Err(), "too many %s were running", what)
	case <-timer.C:
		return refuse(http.StatusServiceUnavailable, "The server is busy", loci.ErrCanceled,
			"%d %s are running, which is as many as may; nothing was done: try again", cap(places), what)
	}
}

// mounted hands a request on. Its body is read, and its place among what runs is
// taken, as for an operation; how long it takes to answer is its own affair. What is
// no more than asked for, perhaps a stream without an end, takes no place.
func (h *handler) mounted(w *recorder, r *http.Request, to http.Handler) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	asks := r.Method == http.MethodGet || r.Method == http.MethodHead
	if asks {
		defer context.AfterFunc(h.stopping, cancel)()
	}
	body, err := h.read(w, r)
	if err != nil {
		h.problem(w, err)
		return
	}
	if !asks {
		if err := h.enter(ctx, h.running, "operations"); err != nil {
			h.problem(w, err)
			return
		}
		defer func() { <-h.running }()
	}
	r = r.WithContext(ctx)
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	to.ServeHTTP(&timely{w, http.NewResponseController(w), h.WriteTimeout}, r)
}

// timely cuts a client off that does not take what is written to it.
type timely struct {
	*recorder
	ctl     *http.ResponseController
	timeout time.Duration
}

// Write implements http.ResponseWriter.
func (t *timely) Write(p []byte) (int, error) {
	// A test's recorder has no connection, hence no deadlines.
	_ = t.ctl.SetWriteDeadline(time.Now().Add(t.timeout))
	return t.recorder.Write(p)
}

// Problem is the body of an error, application/problem+json.
type Problem struct {
	Type      string    `json:"type"` // "urn:loci:error:" and the code
	Title     string    `json:"title"`
	Status    int       `json:"status"`
	Detail    string    `json:"detail"`
	Code      loci.Code `json:"code"`
	Operation string    `json:"operation,omitempty"`
	Field     string    `json:"field,omitempty"`
	Reason    string    `json:"reason,omitempty"` // the context store's own code

	Details map[string]any `json:"details,omitempty"` // figures of the reason
}

func problemOf(err error) Problem {
	o, f := op.OutcomeOf(err), op.FailureOf(err)
	p := Problem{Title: o.Title, Status: o.Status, Detail: f.Message, Code: f.Code, Operation: f.Operation, Field: f.Field,
		Reason: f.Reason, Details: f.Details}
	if r, ok := errors.AsType[refusal](err); ok {
		p.Status, p.Title = r.status, r.title
	}
	p.Type = "urn:loci:error:" + string(p.Code)
	return p
}

func (p Problem) json() []byte {
	raw, err := json.Marshal(p)
	if err != nil { // details of a reason that have no form: the rest has
		p.Details = nil
		raw, _ = json.Marshal(p)
	}
	return raw
}

// fail answers with an operation's error and logs what may be the server's fault,
// with the cause that the client is not told.
func (h *handler) fail(w http.ResponseWriter, err error) {
	h.note(err)
	h.problem(w, err)
}

func (h *handler) note(err error) {
	if op.OutcomeOf(err).Status >= 500 || errors.Is(err, loci.ErrIO) {
		h.Log.Error("operation failed", "error", err)
	}
}

func (h *handler) problem(w http.ResponseWriter, err error) {
	p := problemOf(err)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	h.write(w, p.Status, "application/problem+json", p.json())
}

func (h *handler) write(w http.ResponseWriter, status int, kind string, raw []byte) {
	// Only now does the time begin that the client has to take the answer. A
	// test's recorder has no connection, hence no deadlines.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.WriteTimeout))
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	// A client that has gone cannot be told so.
	_, _ = w.Write(append(raw[:len(raw):len(raw)], '\n'))
}

// recorder remembers the status that was sent.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Flush lets handlers that are mounted send what they have.
func (r *recorder) Flush() { _ = http.NewResponseController(r.ResponseWriter).Flush() }

// Unwrap lets a ResponseController through.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
