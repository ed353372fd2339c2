// Package httpapi is the HTTP surface: the operation table under /v1, for
// programs on the same machine.
package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

// Config tunes the surface. Zero values take the defaults named here.
type Config struct {
	Caller      op.Caller     // who runs the operations; required
	Log         *slog.Logger  // default: nothing is logged
	Timeout     time.Duration // for one operation, default 60s
	LongTimeout time.Duration // for a long-running one, default 1h
	MaxBody     int64         // bytes of a request, default op.MaxInputBytes
	MaxRunning  int           // operations at once, default 64; the others wait
	BodyTimeout time.Duration // for a client to send its request, default 30s
}

func (c Config) withDefaults() Config {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Timeout <= 0 {
		c.Timeout = time.Minute
	}
	if c.LongTimeout <= 0 {
		c.LongTimeout = time.Hour
	}
	if c.MaxBody <= 0 || c.MaxBody > op.MaxInputBytes {
		c.MaxBody = op.MaxInputBytes
	}
	if c.MaxRunning <= 0 {
		c.MaxRunning = 64
	}
	if c.BodyTimeout <= 0 {
		c.BodyTimeout = 30 * time.Second
	}
	return c
}

// Handler answers
//
//	POST /v1/OPERATION   run an operation, JSON in and out
//	GET  /v1             list the operations
//	GET  /healthz        whether the store answers
//
// It refuses requests that a web page of another origin may have caused.
func Handler(cfg Config) http.Handler {
	cfg = cfg.withDefaults()
	return &handler{Config: cfg, running: make(chan struct{}, cfg.MaxRunning)}
}

type handler struct {
	Config
	running chan struct{}
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

// ServeHTTP implements http.Handler.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	start := time.Now()
	rec := &recorder{ResponseWriter: w}
	route := "unknown" // never the path itself, which may hold anything
	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler {
				panic(p)
			}
			// The panic's value may quote a record, so only its type is told.
			h.Log.Error("panic", "route", route, "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
			if rec.status == 0 {
				h.problem(rec, refuse(http.StatusInternalServerError, "Something went wrong inside", loci.ErrStorage,
					"the server failed; its log says more"))
			}
		}
		h.Log.Info("request", "route", route, "status", rec.status, "ms", float64(time.Since(start).Microseconds())/1000)
	}()
	rec.Header().Set("X-Content-Type-Options", "nosniff")
	rec.Header().Set("Cache-Control", "no-store")
	if err := checkOrigin(r); err != nil {
		h.problem(rec, err)
		return
	}
	switch path := r.URL.Path; {
	case path == "/healthz":
		route = path
		h.get(rec, r, h.healthz)
	case path == "/v1":
		route = path
		h.get(rec, r, h.list)
	default:
		name, ok := strings.CutPrefix(path, "/v1/")
		o, known := op.Default().Lookup(name)
		if !ok || !known {
			h.problem(rec, refuse(http.StatusNotFound, "There is no such place", loci.ErrNotFound,
				"there is nothing here; GET /v1 lists the operations"))
			return
		}
		route = o.Name
		h.operation(rec, r, o)
	}
}

func (h *handler) get(w http.ResponseWriter, r *http.Request, f http.HandlerFunc) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.problem(w, refuse(http.StatusMethodNotAllowed, "Another method is needed", loci.ErrValidation, "use GET"))
		return
	}
	f(w, r)
}

func (h *handler) healthz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if _, err := h.Caller.Call(ctx, "health", nil); err != nil {
		h.fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, "application/json", []byte(`{"status":"ok"}`))
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
}

func (h *handler) list(w http.ResponseWriter, _ *http.Request) {
	var out struct {
		Operations []listed `json:"operations"`
	}
	for _, o := range op.Default().All() {
		out.Operations = append(out.Operations, listed{
			Operation: o.Name, Path: "/v1/" + o.Name, Summary: o.Summary, Description: o.Description,
			ReadOnly: o.ReadOnly, Idempotent: o.Idempotent, Destructive: o.Destructive, LongRunning: o.LongRunning,
		})
	}
	raw, err := json.Marshal(out)
	if err != nil {
		h.fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, "application/json", raw)
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
	limit := h.Timeout
	if o.LongRunning {
		limit = h.LongTimeout
	}
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	select {
	case h.running <- struct{}{}:
		defer func() { <-h.running }()
	case <-ctx.Done():
		h.fail(w, errs.Wrap(errs.Canceled, ctx.Err(), "too many operations were running"))
		return
	}
	body, err := h.read(w, r)
	if err != nil {
		h.problem(w, err)
		return
	}
	out, err := h.Caller.Call(ctx, o.Name, body)
	if err != nil {
		h.fail(w, err)
		return
	}
	writeJSON(w, http.StatusOK, "application/json", out)
}

// read takes the request's body. A client that sends it too slowly is cut off,
// and one that takes long to be answered is not.
func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	ctl := http.NewResponseController(w)
	// A test's recorder has no connection, hence no deadlines.
	_ = ctl.SetReadDeadline(time.Now().Add(h.BodyTimeout))
	if r.ContentLength > h.MaxBody {
		return nil, h.tooLarge()
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.MaxBody))
	if err != nil {
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			return nil, h.tooLarge()
		}
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			return nil, refuse(http.StatusRequestTimeout, "The request came too slowly", loci.ErrCanceled,
				"the body did not arrive within %s", h.BodyTimeout)
		}
		return nil, refuse(http.StatusBadRequest, "The request broke off", loci.ErrValidation, "the body could not be read")
	}
	// Left in place, the deadline would end the request's context during a
	// long operation.
	_ = ctl.SetReadDeadline(time.Time{})
	return body, nil
}

func (h *handler) tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, "The request is too large", loci.ErrValidation,
		"the body may have at most %d bytes", h.MaxBody)
}

// checkOrigin refuses what a web page may have caused: a name that was made to
// point here, or a request from another origin.
func checkOrigin(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !isLoopback(strings.Trim(host, "[]")) {
		return refuse(http.StatusForbidden, "This host is not served", loci.ErrForbidden,
			"the Host header must name this machine: localhost, 127.0.0.1 or [::1]")
	}
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && origins[0] != "http://"+r.Host {
		return refuse(http.StatusForbidden, "Other origins are not served", loci.ErrForbidden,
			"requests from a web page of another origin are refused")
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return refuse(http.StatusForbidden, "Other origins are not served", loci.ErrForbidden,
			"requests from a web page of another origin are refused")
	}
	return nil
}

// isLoopback says whether a host name can only mean this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// checkContent refuses a body that does not say it is JSON; a form that a web
// page sends cannot say so.
func checkContent(r *http.Request) error {
	const title = "The body must be JSON"
	if enc := r.Header.Get("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return refuse(http.StatusUnsupportedMediaType, title, loci.ErrValidation, "a Content-Encoding is not taken; send the body as it is")
	}
	ct := r.Header.Get("Content-Type")
	if ct == "" && r.ContentLength == 0 {
		return nil
	}
	kind, params, err := mime.ParseMediaType(ct)
	if err != nil || kind != "application/json" {
		return refuse(http.StatusUnsupportedMediaType, title, loci.ErrValidation, "send Content-Type: application/json")
	}
	if cs, ok := params["charset"]; ok && !strings.EqualFold(cs, "utf-8") {
		return refuse(http.StatusUnsupportedMediaType, title, loci.ErrValidation, "JSON is UTF-8; leave the charset out")
	}
	return nil
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

// fail answers with an operation's error and logs what is the server's fault,
// with the cause that the client is not told.
func (h *handler) fail(w http.ResponseWriter, err error) {
	if op.OutcomeOf(err).Status >= 500 {
		h.Log.Error("operation failed", "error", err)
	}
	h.problem(w, err)
}

func (h *handler) problem(w http.ResponseWriter, err error) {
	o, f := op.OutcomeOf(err), op.FailureOf(err)
	p := Problem{Title: o.Title, Status: o.Status, Detail: f.Message, Code: f.Code, Operation: f.Operation, Field: f.Field,
		Reason: f.Reason, Details: f.Details}
	if r, ok := errors.AsType[refusal](err); ok {
		p.Status, p.Title = r.status, r.title
	}
	p.Type = "urn:loci:error:" + string(p.Code)
	raw, err := json.Marshal(p)
	if err != nil { // strings and numbers: it cannot be
		raw = []byte("{}")
	}
	writeJSON(w, p.Status, "application/problem+json", raw)
}

func writeJSON(w http.ResponseWriter, status int, kind string, raw []byte) {
	// Only now does the time begin that the client has to take the answer.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	// A client that has gone cannot be told so.
	_, _ = w.Write(append(raw, '\n'))
}

const writeTimeout = time.Minute

// recorder remembers the status that was sent.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Unwrap lets a ResponseController through.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
