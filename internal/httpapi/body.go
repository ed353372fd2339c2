package httpapi

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/loci-memory/loci"
)

// How many bodies are read at once. A client that sends slowly holds one of these
// places and none of those of running operations; together they bound the memory
// that unfinished requests take.
const (
	smallBody   = 1 << 20 // bytes
	smallBodies = 256
	largeBodies = 8 // and those whose length is not known
)

type bodies struct{ small, large chan struct{} }

func newBodies() bodies {
	return bodies{make(chan struct{}, smallBodies), make(chan struct{}, largeBodies)}
}

// read takes the request's body. A client that sends it too slowly is cut off,
// and one that takes long to be answered is not.
func (h *handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.ContentLength > h.MaxBody {
		return nil, h.tooLarge()
	}
	if r.ContentLength == 0 {
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
		return nil, nil
	}
	places := h.bodies.small
	if r.ContentLength > smallBody || r.ContentLength < 0 {
		places = h.bodies.large
	}
	if err := h.enter(r.Context(), places, "requests being read"); err != nil {
		return nil, err
	}
	defer func() { <-places }()
	ctl := http.NewResponseController(w)
	// A test's recorder has no connection, hence no deadlines.
	_ = ctl.SetReadDeadline(time.Now().Add(h.BodyTimeout))
	body, err := readAll(http.MaxBytesReader(w, r.Body, h.MaxBody), r.ContentLength)
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

// readAll reads a body whose length is told, or negative. A large one gets its memory
// at once when the first of it has come: growing by and by it would take that twice.
func readAll(r io.Reader, length int64) ([]byte, error) {
	if length <= smallBody {
		return io.ReadAll(r)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, smallBody); err != nil {
		return nil, err
	}
	b.Grow(int(length-smallBody) + bytes.MinRead)
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

func (h *handler) tooLarge() error {
	return refuse(http.StatusRequestEntityTooLarge, "The request is too large", loci.ErrValidation,
		"the body may have at most %d bytes", h.MaxBody)
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
