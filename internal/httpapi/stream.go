package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
)

const eventStream = "text/event-stream"

// wantsEvents says whether the client asks for events by name. One that takes
// anything gets JSON.
func wantsEvents(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(accept, ",") {
			if kind, _, err := mime.ParseMediaType(part); err == nil && kind == eventStream {
				return true
			}
		}
	}
	return false
}

// events writes a stream of server-sent events. Nothing is sent before the first
// one, so that what fails at once still gets a status of its own.
type events struct {
	h     *handler
	w     http.ResponseWriter
	ctl   *http.ResponseController
	begun bool
	err   error // of the connection; nothing is sent any more
}

func (h *handler) events(w http.ResponseWriter) *events {
	return &events{h: h, w: w, ctl: http.NewResponseController(w)}
}

// send writes lines that end in an empty one, and has them go out at once.
func (e *events) send(text string) {
	if e.err != nil {
		return
	}
	_ = e.ctl.SetWriteDeadline(time.Now().Add(e.h.WriteTimeout))
	if !e.begun {
		e.begun = true
		e.w.Header().Set("Content-Type", eventStream)
		e.w.Header().Set("X-Accel-Buffering", "no") // a proxy must not collect events
		e.w.WriteHeader(http.StatusOK)
	}
	if _, e.err = e.w.Write([]byte(text)); e.err == nil {
		e.err = e.ctl.Flush()
	}
}

// event sends one event. The data is JSON on one line; id may be empty.
func (e *events) event(name, id string, data []byte) {
	text := "event: " + name + "\n"
	if id != "" {
		text += "id: " + id + "\n"
	}
	e.send(text + "data: " + string(data) + "\n\n")
}

// heartbeat shows that the server is still there; who reads events sees nothing
// of it.
func (e *events) heartbeat() { e.send(": still at work\n\n") }

// progressEvery is the least time between two events of progress.
const progressEvery = 100 * time.Millisecond

// stream runs an operation and sends its progress, and then its result or its
// problem. When the client goes, or does not take what is sent, cancel ends the
// operation.
func (h *handler) stream(ctx context.Context, cancel context.CancelFunc, w http.ResponseWriter, o *op.Operation, body []byte) {
	type progress struct{ done, total int64 }
	var latest atomic.Pointer[progress]
	moved := make(chan struct{}, 1)
	ctx = op.WithProgress(ctx, func(done, total int64) {
		latest.Store(&progress{done, total})
		select {
		case moved <- struct{}{}:
		default: // the last one was not looked at yet
		}
	})
	type answer struct {
		out json.RawMessage
		err error
	}
	done := make(chan answer, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				h.Log.Error("panic", "route", o.Name, "type", fmt.Sprintf("%T", p))
				done <- answer{nil, errs.New(errs.Storage, "the server failed; its log says more")}
			}
		}()
		out, err := h.Caller.Call(ctx, o.Name, body)
		done <- answer{out, err}
	}()
	e := h.events(w)
	beat := time.NewTicker(h.Heartbeat)
	defer beat.Stop()
	var last time.Time
	for {
		if e.err != nil {
			cancel()
			<-done // the operation is no longer there when its handler is not
			return
		}
		select {
		case a := <-done:
			switch {
			case a.err == nil:
				e.event("result", "", a.out)
			case !e.begun:
				h.fail(w, a.err)
			default:
				h.note(a.err)
				e.event("problem", "", problemOf(a.err).json())
			}
			return
		case <-moved:
			if wait := progressEvery - time.Since(last); wait > 0 {
				time.Sleep(wait)
			}
			last = time.Now()
			p := latest.Load()
			e.event("progress", "", fmt.Appendf(nil, `{"done":%d,"total":%d}`, p.done, p.total))
		case <-beat.C:
			e.heartbeat()
		}
	}
}

// changes sends what is written and deleted, page by page as the operation of
// that name gives it, for as long as the client listens. An event's id is the
// place behind it.
func (h *handler) changes(w http.ResponseWriter, r *http.Request, q *request) {
	if !wantsEvents(r) {
		h.problem(w, refuse(http.StatusNotAcceptable, "This is a stream of events", loci.ErrValidation,
			"send Accept: text/event-stream, or POST /v1/changes for one page"))
		return
	}
	req, err := changesQuery(r.URL.RawQuery)
	if err != nil {
		h.problem(w, errs.WithOp("changes", err))
		return
	}
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		req.After = last
	}
	if err := h.enter(r.Context(), h.streams, "change feeds"); err != nil {
		h.problem(w, err)
		return
	}
	defer func() { <-h.streams }()
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(h.stopping, cancel)()
	e := h.events(w)
	place := ""
	for wait := int64(0); e.err == nil && h.counts(q); wait = h.Heartbeat.Milliseconds() {
		page, err := h.nextChanges(ctx, &req, wait)
		switch {
		case err != nil && ctx.Err() != nil: // the client or the server went
			return
		case err != nil && !e.begun:
			h.fail(w, err)
			return
		case err != nil:
			h.note(err)
			e.event("problem", "", problemOf(err).json())
			return
		case page.FloorLost || len(page.Items) > 0:
			data, err := json.Marshal(page)
			if err != nil {
				h.note(errs.Wrap(errs.Storage, err, "changes have no JSON form"))
				return
			}
			e.event("changes", page.Next, data)
		case page.Next != place:
			e.send("id: " + page.Next + "\n\n") // what came in between was not asked for
		default:
			e.heartbeat()
		}
		req.After, place = page.Next, page.Next
	}
}

func (h *handler) nextChanges(ctx context.Context, req *loci.ChangesRequest, wait int64) (*loci.Changes, error) {
	req.WaitMS = &wait
	raw, err := json.Marshal(req)
	if err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the request has no JSON form")
	}
	out, err := h.Caller.Call(ctx, "changes", raw)
	if err != nil {
		return nil, err
	}
	var page loci.Changes
	if err := json.Unmarshal(out, &page); err != nil {
		return nil, errs.Wrap(errs.Storage, err, "the changes cannot be read")
	}
	return &page, nil
}

// changesQuery reads the query of a change feed: after, limit, namespace, and
// scope and kind as often as there are any.
func changesQuery(raw string) (req loci.ChangesRequest, err error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return req, errs.Invalid("", "the query of the address cannot be read")
	}
	known := []string{"after", "limit", "namespace", "scope", "kind"}
	for name, values := range query {
		if !slices.Contains(known, name) {
			return req, errs.Invalid("", "the query has an unknown field; there are %s", strings.Join(known, ", "))
		}
		if len(values) > 1 && name != "scope" && name != "kind" {
			return req, errs.Invalid(name, "comes %d times", len(values))
		}
	}
	req.After, req.Scopes = query.Get("after"), query["scope"]
	if query.Has("limit") {
		limit, err := strconv.Atoi(query.Get("limit"))
		if err != nil {
			return req, errs.Invalid("limit", "must be a whole number")
		}
		req.Limit = &limit
	}
	if query.Has("namespace") {
		req.Namespace = new(query.Get("namespace"))
	}
	for _, kind := range query["kind"] {
		req.Kinds = append(req.Kinds, loci.Kind(kind))
	}
	return req, errors.Join(validText(req.Scopes), err)
}

// validText refuses what JSON would change on its way.
func validText(texts []string) error {
	for _, s := range texts {
		if strings.ToValidUTF8(s, "") != s {
			return errs.Invalid("scope", "is not valid UTF-8")
		}
	}
	return nil
}
