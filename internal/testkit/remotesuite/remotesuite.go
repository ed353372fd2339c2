// Package remotesuite tests clients of model services against servers on this
// machine that speak the documented shapes, on their good and their bad days. A
// client joins with its shape.
package remotesuite

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// secret is the key of every test. No error may show it.
const secret = "sk-test-0123456789abcdef"

// A service is a server with a client of it that is in a hurry.
type service struct {
	*httptest.Server
	requests atomic.Int64
	mu       sync.Mutex
	bad      []string // what was wrong with requests
}

// serve starts a server that counts its requests and checks what all of them
// have in common.
func serve(t *testing.T, path string, answer http.HandlerFunc) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.requests.Add(1)
		switch {
		case r.Method != http.MethodPost:
			s.complain("method " + r.Method)
		case r.URL.Path != "/base/"+path:
			s.complain("path " + r.URL.Path)
		case r.Header.Get("Authorization") != "Bearer "+secret:
			s.complain("authorization " + r.Header.Get("Authorization"))
		case r.Header.Get("Content-Type") != "application/json":
			s.complain("content type " + r.Header.Get("Content-Type"))
		}
		answer(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		for _, b := range s.bad {
			t.Error("a bad request:", b)
		}
	})
	return s
}

func (s *service) complain(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bad = append(s.bad, what)
}

func (s *service) options() endpoint.Options {
	return endpoint.Options{
		URL: s.URL + "/base", APIKey: endpoint.NewKey(secret), Tries: 3, Backoff: time.Millisecond, MaxWait: 20 * time.Millisecond,
		Timeout: 5 * time.Second, MaxResponse: 1 << 20,
	}
}

// leaks fails the test if goroutines are left behind at its end. It is called
// before anything that starts some.
func leaks(t *testing.T) {
	already := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, already) })
}

// A fault is one way in which a service fails, and what has to come of it.
type fault struct {
	name     string
	serve    func(w http.ResponseWriter, r *http.Request, try int64)
	change   func(*endpoint.Options)
	requests int64 // how many are sent
	fine     bool  // the last one succeeds
	is       error // what the error wraps
	isNot    error
	says     string // part of the error
}

func status(code int, body string) func(http.ResponseWriter, *http.Request, int64) {
	return func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.WriteHeader(code)
		fmt.Fprint(w, body)
	}
}

// once fails the first try only.
func once(f func(http.ResponseWriter, *http.Request, int64)) func(http.ResponseWriter, *http.Request, int64) {
	return func(w http.ResponseWriter, r *http.Request, try int64) {
		if try == 1 {
			f(w, r, try)
		}
	}
}

func body(text string) func(http.ResponseWriter, *http.Request, int64) {
	return status(http.StatusOK, text)
}

func reset(w http.ResponseWriter, _ *http.Request, _ int64) {
	panic(http.ErrAbortHandler)
}

func breaksOff(w http.ResponseWriter, _ *http.Request, _ int64) {
	w.Header().Set("Content-Length", "1000")
	fmt.Fprint(w, `{"data": [`)
}

func hangs(_ http.ResponseWriter, r *http.Request, _ int64) {
	_, _ = io.Copy(io.Discard, r.Body) // the server notices a client that left only when the body is read
	<-r.Context().Done()
}

func limited(after string) func(http.ResponseWriter, *http.Request, int64) {
	return func(w http.ResponseWriter, _ *http.Request, _ int64) {
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error": {"message": "slow down", "type": "requests", "code": "rate_limit_exceeded"}}`)
	}
}

// faults are those of all services. A handler that writes nothing leaves the
// answer to the service.
func faults() []fault {
	short := func(o *endpoint.Options) { o.Timeout = 30 * time.Millisecond }
	return []fault{
		{name: "500 then fine", serve: once(status(500, `{"error": "oops"}`)), requests: 2, fine: true},
		{name: "408 then fine", serve: once(status(408, "")), requests: 2, fine: true},
		{name: "502 for ever", serve: status(502, "<html>Bad gateway</html>"), requests: 3, says: "502 Bad Gateway"},
		{name: "reset then fine", serve: once(reset), requests: 2, fine: true},
		{name: "reset for ever", serve: reset, requests: 3, says: "EOF"},
		{name: "breaks off then fine", serve: once(breaksOff), requests: 2, fine: true},
		{name: "hangs then fine", serve: once(hangs), change: short, requests: 2, fine: true},
		{name: "hangs for ever", serve: hangs, change: short, requests: 3, isNot: context.DeadlineExceeded, says: "no answer within 30ms"},
		{name: "429 then fine", serve: once(limited("0")), requests: 2, fine: true},
		{name: "429 for ever", serve: limited("0"), requests: 3, is: embed.ErrRateLimited, says: "slow down"},
		{name: "429 for an hour", serve: limited("3600"), requests: 1, is: embed.ErrRateLimited},
		{name: "429 without quota", serve: status(429, `{"error": {"message": "pay", "code": "insufficient_quota"}}`), requests: 1, is: embed.ErrRateLimited},
		{name: "400", serve: status(400, `{"error": {"message": "bad input", "param": "input"}}`), requests: 1, is: embed.ErrRefused, says: "bad input"},
		{name: "400 about a setting", serve: status(400, `{"error": {"message": "no such size", "param": "dimensions"}}`), requests: 1, isNot: embed.ErrRefused, says: "no such size"},
		{name: "400 for length", serve: status(400, `{"error":{"message":"maximum context length is 8192 tokens","code":null}}`), requests: 1, is: embed.ErrTooLarge},
		{name: "500 for length", serve: status(500, `{"error":{"message":"input is too large to process. increase the physical batch size"}}`), requests: 1, is: embed.ErrTooLarge},
		{name: "401", serve: status(401, `{"message": "invalid api token"}`), requests: 1, says: "invalid api token"},
		{name: "403", serve: status(403, ""), requests: 1, says: "403 Forbidden"},
		{name: "404", serve: status(404, `{"error": "model not found, try pulling it first"}`), requests: 1, isNot: embed.ErrRefused, says: "try pulling"},
		{name: "413", serve: status(413, `{"error":"batch size 33 > maximum allowed batch size 32","error_type":"Validation"}`), requests: 1, is: embed.ErrTooLarge},
		{name: "422", serve: status(422, `{"detail":[{"loc":["body","inputs",0],"msg":"not a string","type":"x"}]}`), requests: 1, is: embed.ErrRefused, says: "not a string"},
		{name: "424", serve: status(424, `{"error":"Inference failed","error_type":"Backend"}`), requests: 1, says: "Inference failed"},
		{name: "broken JSON", serve: body(`{"data": [`), requests: 1, says: "not JSON"},
		{name: "a page", serve: body(`<html>welcome</html>`), requests: 1, says: "not JSON"},
		{name: "another type", serve: body(`"hello"`), requests: 1, says: "another type"},
		{name: "nothing", serve: body(`null`), requests: 1, says: " 0 "},
		{name: "a huge answer", serve: body(strings.Repeat(" ", 2<<20)), requests: 1, says: "longer than 1048576 bytes"},
	}
}

// tryFaults runs call against each fault; answer gives the good answers.
func tryFaults(t *testing.T, path string, answer http.HandlerFunc, call func(t *testing.T, ctx context.Context, o endpoint.Options) error) {
	for _, f := range faults() {
		t.Run(f.name, func(t *testing.T) {
			leaks(t)
			var tries atomic.Int64
			s := serve(t, path, func(w http.ResponseWriter, r *http.Request) {
				watched := &watched{ResponseWriter: w}
				try := tries.Add(1)
				f.serve(watched, r, try)
				if f.fine && try > 1 && !watched.wrote {
					answer(w, r)
				}
			})
			o := s.options()
			if f.change != nil {
				f.change(&o)
			}
			err := call(t, t.Context(), o)
			if n := s.requests.Load(); n != f.requests {
				t.Errorf("%d requests, not %d", n, f.requests)
			}
			if f.fine {
				if err != nil {
					t.Error(err)
				}
				return
			}
			check(t, err, f)
		})
	}
	t.Run("redirect", func(t *testing.T) {
		leaks(t)
		other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other host was asked") }))
		defer other.Close()
		s := serve(t, path, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/secret-path?token=x", http.StatusTemporaryRedirect)
		})
		err := call(t, t.Context(), s.options())
		check(t, err, fault{says: "it redirects to " + other.URL + ", which was not asked"})
	})
	t.Run("refused connection", func(t *testing.T) {
		leaks(t)
		s := serve(t, path, answer)
		s.Close()
		check(t, call(t, t.Context(), s.options()), fault{says: "refused"})
	})
	t.Run("cancelled", func(t *testing.T) {
		leaks(t)
		ctx, cancel := context.WithCancel(t.Context())
		s := serve(t, path, func(w http.ResponseWriter, r *http.Request) {
			cancel()
			hangs(w, r, 1)
		})
		check(t, call(t, ctx, s.options()), fault{is: context.Canceled})
		if n := s.requests.Load(); n != 1 {
			t.Errorf("%d requests after the end", n)
		}
	})
	t.Run("cancelled while it waits", func(t *testing.T) {
		leaks(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := serve(t, path, func(w http.ResponseWriter, r *http.Request) {
			limited("3600")(w, r, 1)
			time.AfterFunc(10*time.Millisecond, cancel)
		})
		o := s.options()
		o.MaxWait = 2 * time.Hour
		check(t, call(t, ctx, o), fault{is: context.Canceled, isNot: embed.ErrRateLimited, says: "before that"})
	})
}

// check compares an error with what a fault has to come to.
func check(t *testing.T, err error, f fault) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if f.is != nil && !errors.Is(err, f.is) {
		t.Errorf("%v does not wrap %v", err, f.is)
	}
	if f.isNot != nil && errors.Is(err, f.isNot) {
		t.Errorf("%v wraps %v", err, f.isNot)
	}
	if !strings.Contains(err.Error(), f.says) {
		t.Errorf("%v does not say %q", err, f.says)
	}
	if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), secret) {
		t.Errorf("%v shows the key", err)
	}
}

// watched notices whether a handler answered.
type watched struct {
	http.ResponseWriter
	wrote bool
}

func (w *watched) WriteHeader(code int) {
	w.wrote = true
	w.ResponseWriter.WriteHeader(code)
}

func (w *watched) Write(b []byte) (int, error) {
	w.wrote = true
	return w.ResponseWriter.Write(b)
}
