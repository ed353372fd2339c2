package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// still gives a client whose waits end at once and are written down.
func still(t *testing.T, o endpoint.Options, answer http.HandlerFunc) (*Client, *[]time.Duration) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	o.URL = server.URL
	c, err := New("test", "", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	waits := &[]time.Duration{}
	c.now = func() time.Time { return noon }
	c.random = func() float64 { return 0.5 }
	c.sleep = func(_ context.Context, d time.Duration) error {
		*waits = append(*waits, d)
		return nil
	}
	return c, waits
}

func TestWaits(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		after   string
		options endpoint.Options
		want    []time.Duration
		limited time.Duration // -1: it is no *embed.RetryAfterError
	}{
		"doubling":        {500, "", endpoint.Options{Backoff: 100 * time.Millisecond}, []time.Duration{75e6, 150e6, 300e6}, -1},
		"defaults":        {500, "", endpoint.Options{}, []time.Duration{375e6, 750e6, 1500e6}, -1},
		"up to a cap":     {502, "", endpoint.Options{Backoff: time.Second, MaxWait: 2 * time.Second, Tries: 5}, []time.Duration{750e6, 1500e6, 1500e6, 1500e6}, -1},
		"seconds":         {429, "7", endpoint.Options{}, []time.Duration{7e9, 7e9, 7e9}, 7 * time.Second},
		"a date":          {429, noon.Add(9 * time.Second).Format(http.TimeFormat), endpoint.Options{Tries: 2}, []time.Duration{9e9}, 9 * time.Second},
		"a date of old":   {429, noon.Add(-time.Hour).Format(http.TimeFormat), endpoint.Options{Tries: 2}, []time.Duration{375e6}, 0},
		"nonsense":        {429, "soon", endpoint.Options{Tries: 2}, []time.Duration{375e6}, 0},
		"too long":        {429, "31", endpoint.Options{}, nil, 31 * time.Second},
		"far too long":    {429, "18446744073709551615", endpoint.Options{}, nil, 365 * 24 * time.Hour},
		"no less":         {429, "0", endpoint.Options{Tries: 2}, []time.Duration{375e6}, 0},
		"503 with a time": {503, "7", endpoint.Options{Tries: 2}, []time.Duration{7e9}, 7 * time.Second},
		"503 without":     {503, "", endpoint.Options{Tries: 2}, []time.Duration{375e6}, -1},
		"500 with a time": {500, "7", endpoint.Options{Tries: 2}, []time.Duration{7e9}, -1},
		"one try":         {500, "", endpoint.Options{Tries: 1}, nil, -1},
		"never":           {400, "1", endpoint.Options{}, nil, -1},
	} {
		t.Run(name, func(t *testing.T) {
			client, waits := still(t, c.options, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.after)
				w.WriteHeader(c.status)
			})
			_, err := client.Post(t.Context(), "x", 1, nil)
			var status *endpoint.Error
			if !errors.As(err, &status) || status.Status != c.status {
				t.Fatalf("%v is no error of status %d", err, c.status)
			}
			if !reflect.DeepEqual(*waits, append([]time.Duration{}, c.want...)) {
				t.Errorf("waited %v, not %v", *waits, c.want)
			}
			var later *embed.RetryAfterError
			switch limited := errors.As(err, &later); {
			case limited != (c.limited >= 0):
				t.Errorf("rate limited: %v", limited)
			case limited && (later.After != c.limited || !errors.Is(err, embed.ErrRateLimited)):
				t.Errorf("after %v, not %v", later.After, c.limited)
			}
		})
	}
}

// TestWaitBounds: a wait is never longer than the cap, unless the service asks
// for it, and never shorter than half the back-off.
func TestWaitBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := &Client{
			backoff: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "backoff")),
			maxWait: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "maxWait")),
			random:  func() float64 { return rapid.Float64Range(0, 0.999999).Draw(t, "random") },
		}
		try := rapid.IntRange(1, 1000).Draw(t, "try")
		after := time.Duration(rapid.Int64Range(0, int64(2*time.Hour)).Draw(t, "after"))
		d := c.wait(try, after)
		if d < after || d > max(after, c.maxWait) || d < min(c.backoff, c.maxWait)/2 {
			t.Fatalf("try %d waits %v", try, d)
		}
	})
}

func TestSleep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	if err := sleep(ctx, time.Microsecond); err != nil {
		t.Error(err)
	}
	cancel()
	if err := sleep(ctx, time.Hour); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCallersClient: the caller's client is used, not changed and not closed,
// and its will to follow redirects is not followed.
func TestCallersClient(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a redirect was followed") }))
	defer other.Close()
	server := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusPermanentRedirect))
	defer server.Close()
	follow := func(*http.Request, []*http.Request) error { return nil }
	theirs := &http.Client{Transport: &http.Transport{}, CheckRedirect: follow}
	defer theirs.CloseIdleConnections()
	c, err := New("test", server.URL, endpoint.Options{Client: theirs})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Post(t.Context(), "x", 1, nil)
	if err == nil || !strings.Contains(err.Error(), "308") || !strings.Contains(err.Error(), other.URL) {
		t.Error(err)
	}
	if theirs.CheckRedirect(nil, nil) != nil || c.own != nil || c.Close() != nil {
		t.Error("the caller's client was taken over")
	}
}

// TestClose: the connections of a client of its own end with it.
func TestClose(t *testing.T) {
	closed := make(chan bool, 1)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- true
		}
	}
	server.Start()
	c, err := New("test", server.URL, endpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Post(t.Context(), "x", 1, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("the connection is still open")
	}
	server.Close()
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestContextFirst: when the context has ended, that is what the error says,
// whatever the connection says.
func TestContextFirst(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	odd := errors.New("odd")
	theirs := &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
		cancel()
		return nil, odd
	})}
	c, err := New("test", "http://localhost", endpoint.Options{Client: theirs, Tries: 1})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Post(ctx, "x", 1, nil)
	if !errors.Is(err, context.Canceled) || errors.Is(err, odd) || !strings.Contains(err.Error(), "before that: test at http://localhost: odd") {
		t.Error(err)
	}
}

func TestUntrusted(t *testing.T) {
	tries := 0
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { tries++ }))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	defer server.Close()
	c, err := New("test", server.URL, endpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}()
	c.sleep = func(context.Context, time.Duration) error { t.Error("it tries again"); return nil }
	if _, err := c.Post(t.Context(), "x", 1, nil); err == nil || !strings.Contains(err.Error(), "certificate") || tries != 0 {
		t.Errorf("%v after %d tries", err, tries)
	}
}

func TestAuthorization(t *testing.T) {
	key := endpoint.NewKey("abc")
	for name, c := range map[string]struct {
		user *url.Userinfo
		key  endpoint.Key
		want string
	}{
		"none": {nil, endpoint.Key{}, ""},
		"key":  {nil, key, "Bearer abc"},
		"user": {url.UserPassword("me", "p:w"), endpoint.Key{}, "Basic bWU6cDp3"},
		"both": {url.UserPassword("me", "p:w"), key, "Bearer abc"},
	} {
		got := "-"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Header.Get("Authorization")
			if r.URL.RawQuery != "api-version=1" || r.URL.Path != "/base/x" {
				t.Errorf("asked for %s", r.URL)
			}
			fmt.Fprint(w, "{}")
		}))
		u, err := url.Parse(server.URL + "/base/?api-version=1")
		if err != nil {
			t.Fatal(err)
		}
		u.User = c.user
		client, err := New("test", "", endpoint.Options{URL: u.String(), APIKey: c.key})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.Post(t.Context(), "x", 1, nil); err != nil || got != c.want {
			t.Errorf("%s: %q, not %q: %v", name, got, c.want, err)
		}
		if s := client.Service() + client.base.String(); strings.Contains(s, "p:w") {
			t.Error(s)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		server.Close()
	}
}

func TestNewComplains(t *testing.T) {
	for address, says := range map[string]string{
		"":                      "the URL is missing",
		"http://pass word@\x7f": "cannot be read",
		"localhost:11434":       `scheme is "localhost"`,
		"http:///v1":            "names no host",
	} {
		_, err := New("test", "", endpoint.Options{URL: address})
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "pass word") {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := New("test", "", endpoint.Options{URL: "x", Timeout: -1, MaxWait: -1}); err == nil ||
		!strings.Contains(err.Error(), "Timeout is negative") || !strings.Contains(err.Error(), "MaxWait is negative") {
		t.Error(err)
	}
}

func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.SliceOf(rapid.StringN(0, 20, 40)).Draw(t, "texts")
		inputs, size := rapid.IntRange(1, 10).Draw(t, "inputs"), rapid.IntRange(1, 100).Draw(t, "bytes")
		weigh := func(from, to int) (n int) {
			for _, s := range texts[from:to] {
				n += len(s)
			}
			return n
		}
		at := 0
		for from, to := range spans(texts, inputs, size) {
			if from != at || to <= from || to-from > inputs || to-from > 1 && weigh(from, to) > size {
				t.Fatalf("[%d, %d) after %d", from, to, at)
			}
			// Greedy: the next text did not fit any more.
			if to < len(texts) && to-from < inputs && weigh(from, to+1) <= size {
				t.Fatalf("[%d, %d) has room", from, to)
			}
			at = to
		}
		if at != len(texts) {
			t.Fatalf("%d of %d", at, len(texts))
		}
		for range spans(texts, inputs, size) {
			break // stopping early does no harm
		}
	})
}
