// Package client calls a Loci server over HTTP. It holds the types of every
// operation and needs nothing but the standard library: no engine, no database.
//
//	c := client.New("http://127.0.0.1:7474", client.WithToken(token))
//	kept, err := c.Remember(ctx, client.RememberInput{Text: "The tide table is updated weekly."})
//	found, err := c.Recall(ctx, client.RecallInput{Query: "tide table"})
//
// Optional scalars are pointers; write them as new(20) or new("work"). Values that
// are free in form, such as metadata, are json.RawMessage. A call that fails gives
// an *Error, which errors.Is compares with a code:
//
//	if errors.Is(err, client.ErrNotFound) { ... }
package client

//go:generate go run ../tools/clientgen -root ..

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"
)

// Client calls one server. It is safe for concurrent use. Operations without a
// group are its own methods; the others are those of its fields, as in
// c.Memories.Upsert.
type Client struct {
	groups
	base    string
	token   string
	http    *http.Client
	retries int
	sleep   func(context.Context, time.Duration) error
}

// Option changes what New makes.
type Option func(*Client)

// WithToken has every call present a token. It is sent to the server alone, and in
// no error.
func WithToken(token string) Option { return func(c *Client) { c.token = token } }

// WithHTTPClient has calls made by h, for proxies, certificates and the like; nil
// is a client of the package's own. Redirects are never followed: they would carry
// a token elsewhere.
func WithHTTPClient(h *http.Client) Option {
	return func(c *Client) {
		if h != nil {
			c.http = h
		}
	}
}

// WithRetries sets how often a call is made again, from 0: default 3. Only
// operations that can be done twice are made again, and only when the connection
// failed or the server says that it is busy.
func WithRetries(n int) Option { return func(c *Client) { c.retries = max(0, n) } }

const defaultRetries = 3

// New gives a client of the server at an address, such as
// "http://127.0.0.1:7474". What is wrong with the address is the error of each
// call.
func New(base string, opts ...Option) *Client {
	c := &Client{base: strings.TrimRight(base, "/"), http: &http.Client{}, retries: defaultRetries, sleep: sleep}
	for _, o := range opts {
		o(c)
	}
	own := *c.http // the caller's stays as it is
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.http = &own
	c.groups = groupsOf(c)
	return c
}

type progressKey struct{}

// WithProgress gives a context whose long-running operations report how far they
// are: done of total, 0 of something when nobody knows. Calls of f come one at a
// time. A server that reports nothing is none the worse.
func WithProgress(ctx context.Context, f func(done, total int64)) context.Context {
	return context.WithValue(ctx, progressKey{}, f)
}

// flags is what the table says of an operation.
type flags int

const (
	repeatable flags = 1 << iota // doing it twice is doing it once
	long                         // it may report progress
)

// MaxAnswerBytes bounds what is read of one answer.
const MaxAnswerBytes = 1 << 30

// call runs an operation.
func call[Out any](ctx context.Context, c *Client, name string, f flags, in any) (*Out, error) {
	body, err := encode(in)
	if err != nil {
		return nil, fmt.Errorf("%s: the input has no JSON form: %w", name, err)
	}
	raw, err := c.ask(ctx, name, f, body)
	if err != nil {
		return nil, err
	}
	out := new(Out)
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, fmt.Errorf("%s: the answer is not what this client knows: %w", name, err)
	}
	return out, nil
}

// encode is json.Marshal without the escapes that only a web page needs.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

// Call runs any operation of the server by its name, with JSON for JSON: those,
// too, that a newer server has and this client has no method for. It is made once.
func (c *Client) Call(ctx context.Context, name string, input json.RawMessage) (json.RawMessage, error) {
	if strings.ContainsAny(name, "/?#%\\ ") || name == "" {
		return nil, &Error{Code: ErrValidation, Operation: name, Field: "operation", Message: "is no name of an operation"}
	}
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	return c.ask(ctx, name, 0, input)
}

// ask makes a call, and makes it again where that helps.
func (c *Client) ask(ctx context.Context, name string, f flags, body []byte) (json.RawMessage, error) {
	for try := 0; ; try++ {
		raw, wait, err := c.once(ctx, name, f, body)
		if err == nil || ctx.Err() != nil || f&repeatable == 0 || try >= c.retries || wait < 0 {
			return raw, err
		}
		wait = max(wait, backoff(try))
		// A wait that outlasts the context would end with its error, which says less.
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return nil, err
		}
		if c.sleep(ctx, wait) != nil {
			return nil, err
		}
	}
}

// once makes a call once. wait is how long to wait before the next try at least,
// below 0 when another one would not help.
func (c *Client) once(ctx context.Context, name string, f flags, body []byte) (raw json.RawMessage, wait time.Duration, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/"+name, bytes.NewReader(body))
	if err != nil {
		return nil, -1, fmt.Errorf("%s: %w", name, err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	progress, _ := ctx.Value(progressKey{}).(func(done, total int64))
	if progress != nil && f&long != 0 {
		req.Header.Set("Accept", "text/event-stream, application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err() // what it wraps is of no more interest
		}
		return nil, 0, fmt.Errorf("%s: %w", name, err)
	}
	defer resp.Body.Close()
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode == http.StatusOK && kind == "text/event-stream" {
		raw, err = follow(resp.Body, name, progress)
	} else {
		raw, err = readAll(resp.Body)
	}
	var failed *Error
	switch {
	case errors.As(err, &failed):
		return nil, -1, err
	case err != nil:
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, 0, fmt.Errorf("%s: the answer could not be read: %w", name, err)
	case resp.StatusCode == http.StatusOK:
		return raw, 0, nil
	}
	return nil, pause(resp), problem(name, resp.StatusCode, raw)
}

func readAll(r io.Reader) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(r, MaxAnswerBytes+1))
	if err == nil && len(raw) > MaxAnswerBytes {
		err = fmt.Errorf("it is longer than %d bytes", MaxAnswerBytes)
	}
	return raw, err
}
