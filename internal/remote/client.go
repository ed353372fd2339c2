// Package remote is what the clients of model services share: requests that are
// sent again when that may help and never show their secrets, and answers that
// are trusted in nothing.
package remote

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/endpoint"
)

// Defaults of endpoint.Options, and what is never configured.
const (
	defaultTimeout     = 60 * time.Second
	defaultTries       = 4
	defaultBackoff     = 500 * time.Millisecond
	defaultMaxWait     = 30 * time.Second
	defaultMaxResponse = 128 << 20 // bytes
	maxErrorBody       = 64 << 10  // bytes of an error's body that are looked at
)

// A Client posts JSON to one service. It is safe for concurrent use.
type Client struct {
	service     string // its name and address, for errors
	base        *url.URL
	authorize   endpoint.Key // the whole Authorization header
	secrets     []endpoint.Key
	http        *http.Client
	own         *http.Transport // nil: the caller's
	timeout     time.Duration
	tries       int
	backoff     time.Duration
	maxWait     time.Duration
	maxResponse int64

	// What tests replace.
	sleep  func(context.Context, time.Duration) error
	now    func() time.Time
	random func() float64 // in [0, 1)
}

// New checks the options and reports everything that is wrong with them. usual
// is the address for an empty URL; "" means that the URL is required.
func New(service, usual string, o endpoint.Options) (*Client, error) {
	var problems []error
	complain := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if o.URL == "" {
		o.URL = usual
	}
	base, err := url.Parse(o.URL)
	switch {
	case o.URL == "":
		complain("the URL is missing")
	case err != nil:
		// The parser's error repeats the address, password included.
		complain("the URL cannot be read")
	case base.Scheme != "http" && base.Scheme != "https":
		complain("the URL's scheme is %q, not http or https", base.Scheme)
	case base.Host == "":
		complain("the URL names no host")
	}
	if !o.APIKey.Valid() {
		complain("the API key holds a space or a byte that no key has")
	}
	for _, n := range []struct {
		name  string
		value int64
	}{
		{"Timeout", int64(o.Timeout)}, {"Tries", int64(o.Tries)}, {"Backoff", int64(o.Backoff)},
		{"MaxWait", int64(o.MaxWait)}, {"MaxResponse", o.MaxResponse},
	} {
		if n.value < 0 {
			complain("%s is negative", n.name)
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}

	c := &Client{
		timeout:     positive(o.Timeout, defaultTimeout),
		tries:       positive(o.Tries, defaultTries),
		backoff:     positive(o.Backoff, defaultBackoff),
		maxWait:     positive(o.MaxWait, defaultMaxWait),
		maxResponse: positive(o.MaxResponse, defaultMaxResponse),
		sleep:       sleep,
		now:         time.Now,
		random:      rand.Float64,
	}
	c.authorization(base.User, o.APIKey)
	base.User, base.Fragment = nil, ""
	c.base = base
	c.service = service + " at " + Shown(base)
	if o.Client == nil {
		c.own = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: 4,
			IdleConnTimeout:     90 * time.Second,
			TLSHandshakeTimeout: 10 * time.Second,
		}
		c.http = &http.Client{Transport: c.own}
	} else {
		theirs := *o.Client
		c.http = &theirs
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

func positive[T int | int64 | time.Duration](value, otherwise T) T {
	if value == 0 {
		return otherwise
	}
	return value
}

// Shown gives an address without what may be secret in it.
func Shown(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

func (c *Client) authorization(user *url.Userinfo, key endpoint.Key) {
	switch {
	case !key.IsZero():
		c.authorize = endpoint.NewKey("Bearer " + key.Reveal())
		c.secrets = append(c.secrets, key)
	case user != nil:
		password, _ := user.Password()
		c.authorize = endpoint.NewKey("Basic " + base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
		c.secrets = append(c.secrets, endpoint.NewKey(password))
	}
}

// Service gives the service's name and address, without secrets.
func (c *Client) Service() string { return c.service }

// Close ends the idle connections of a client that nobody else uses.
func (c *Client) Close() error {
	if c.own != nil {
		c.own.CloseIdleConnections()
	}
	return nil
}

// Post sends request as JSON to a path below the base address and gives the
// body of the answer, trying again while that may help. texts are what of the
// request no error may repeat. Errors are an *endpoint.Error, alone or in an
// *embed.RetryAfterError, the context's, or what happened to the connection.
func (c *Client) Post(ctx context.Context, path string, request any, texts []string) ([]byte, error) {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(request); err != nil {
		return nil, fmt.Errorf("%s: %w", c.service, err)
	}
	target := c.base.JoinPath(path).String()
	for try := 1; ; try++ {
		answer, retry, err := c.once(ctx, target, body.Bytes(), texts)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() != nil {
			return nil, c.stopped(ctx, err)
		}
		wait := c.wait(try, retry.after)
		if !retry.again || try >= c.tries || wait > c.maxWait {
			return nil, retry.final(err)
		}
		if c.sleep(ctx, wait) != nil {
			return nil, c.stopped(ctx, err)
		}
	}
}

// stopped is the context's error with what had gone wrong until then, in words
// only: whoever asks what to do shall hear of the context alone.
func (c *Client) stopped(ctx context.Context, last error) error {
	if errors.Is(last, ctx.Err()) {
		return fmt.Errorf("%s: %w", c.service, ctx.Err())
	}
	return fmt.Errorf("%s: %w (before that: %v)", c.service, ctx.Err(), last)
}

// retry says what a failed try allows.
type retry struct {
	again   bool
	after   time.Duration // what the service asked for; 0: nothing
	limited bool          // the failure ends as an *embed.RetryAfterError
}

func (r retry) final(err error) error {
	if r.limited {
		return &embed.RetryAfterError{After: r.after, Err: err}
	}
	return err
}

// wait is how long to wait after a failed try: what the service asked for, but
// no less than the back-off.
func (c *Client) wait(try int, after time.Duration) time.Duration {
	d := c.maxWait
	if shift := try - 1; shift < 20 { // beyond that it would overflow, and the cap holds
		d = min(c.backoff<<shift, c.maxWait)
	}
	return max(d/2+time.Duration(c.random()*float64(d/2)), after)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Client) once(ctx context.Context, target string, body []byte, texts []string) ([]byte, retry, error) {
	try, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(try, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return nil, retry{}, fmt.Errorf("%s: the address of the request cannot be read", c.service)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "loci")
	if !c.authorize.IsZero() {
		req.Header.Set("Authorization", c.authorize.Reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		var untrusted *tls.CertificateVerificationError
		return nil, retry{again: !errors.As(err, &untrusted)}, c.broken(ctx, try, err)
	}
	defer resp.Body.Close() // read as far as it is wanted: closing has nothing to report
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		again, err := c.refusal(resp, texts)
		return nil, again, err
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, c.maxResponse+1))
	switch {
	case err != nil:
		return nil, retry{again: true}, c.broken(ctx, try, err)
	case int64(len(answer)) > c.maxResponse:
		return nil, retry{}, fmt.Errorf("%s: the answer is longer than %d bytes", c.service, c.maxResponse)
	}
	return answer, retry{}, nil
}

// broken is what a try that got no whole answer ends with. The errors of
// net/http repeat the address, so only their causes are kept.
func (c *Client) broken(ctx, try context.Context, err error) error {
	if ctx.Err() == nil && try.Err() != nil {
		return fmt.Errorf("%s: no answer within %s", c.service, c.timeout)
	}
	var address *url.Error
	if errors.As(err, &address) {
		err = address.Err
	}
	return fmt.Errorf("%s: %w", c.service, err)
}

// retryAfter reads the header of that name: seconds, or a date. said is whether
// it held either.
func retryAfter(header string, now time.Time) (after time.Duration, said bool) {
	header = strings.TrimSpace(header)
	const longest = 365 * 24 * time.Hour // more would overflow a duration at some point
	if n, err := strconv.ParseUint(header, 10, 64); err == nil {
		return time.Duration(min(n, uint64(longest/time.Second))) * time.Second, true
	}
	if t, err := http.ParseTime(header); err == nil {
		return min(max(t.Sub(now), 0), longest), true
	}
	return 0, false
}
