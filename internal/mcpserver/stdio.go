package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/op"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ServeStdio speaks with one client over in and out until in ends, the client is
// gone or ctx ends. Calls that run when in ends have a moment to finish. Nothing but
// messages is written to out.
func ServeStdio(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	s, err := newServer(cfg)
	if err != nil {
		return err
	}
	base, cancel := context.WithCancel(ctx)
	defer cancel()
	s.base = base
	t := &stdio{in: in, out: out, log: s.Log, messages: make(chan jsonrpc.Message), ended: make(chan struct{}), closed: make(chan struct{}), idle: make(chan struct{}, 1), answeredOnce: sync.OnceFunc(func() {
		if cfg.Answered != nil {
			cfg.Answered()
		}
	})}
	session, err := s.mcp.Connect(ctx, t, nil)
	if err != nil {
		return errs.Wrap(errs.IO, err, "the session did not begin")
	}
	done := make(chan error, 1)
	go func() { done <- session.Wait() }()
	select {
	case err = <-done:
	case <-ctx.Done():
		cancel() // what runs ends first, so that closing has nothing to wait for
		err = errors.Join(session.Close(), <-done)
	}
	if ctx.Err() != nil {
		return nil // stopped from outside, which is no fault
	}
	return errs.Wrap(errs.IO, err, "the session broke off")
}

const (
	// maxMessage bounds one message. What is longer is skipped to its end, and
	// refused.
	maxMessage = op.MaxInputBytes + 1<<16
	// lastWords is how long calls may go on after the input has ended, so that a
	// client that sends its calls and closes gets its answers.
	lastWords = 600 * time.Millisecond
)

// stdio is the transport over standard input and output: a message a line. A line
// that is no message is answered with an error, and the session goes on, while the
// library's own transport would end it.
type stdio struct {
	in  io.Reader
	out io.Writer
	log interface{ Warn(msg string, args ...any) }

	messages chan jsonrpc.Message
	ended    chan struct{} // in has ended
	closed   chan struct{}
	once     sync.Once
	// answeredOnce tells of the first answer.
	answeredOnce func()

	mu      sync.Mutex
	running map[string]int // calls that have no answer yet
	idle    chan struct{}  // told when the last one has its answer
}

// Connect implements mcp.Transport.
func (t *stdio) Connect(context.Context) (mcp.Connection, error) {
	t.running = map[string]int{}
	// The goroutine cannot be woken from a read of standard input; it ends with the
	// program.
	go t.readAll()
	return t, nil
}

// SessionID implements mcp.Connection.
func (t *stdio) SessionID() string { return "" }

// readAll reads lines until in ends.
func (t *stdio) readAll() {
	defer close(t.ended)
	r := bufio.NewReaderSize(t.in, 64<<10)
	for {
		line, tooLong, err := readLine(r)
		switch {
		case tooLong:
			t.refuse(jsonrpc.CodeInvalidRequest, "the message is too long")
		case len(bytes.TrimSpace(line)) > 0:
			t.take(line)
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line, and skips one that is too long.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			line, tooLong = nil, true
		}
		if !tooLong {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, tooLong, err
		}
	}
}

// take passes a line's message on, or each message of a batch, which the older
// versions of the protocol have.
func (t *stdio) take(line []byte) {
	raws := []json.RawMessage{line}
	if trimmed := bytes.TrimSpace(line); trimmed[0] == '[' {
		if err := json.Unmarshal(trimmed, &raws); err != nil {
			t.refuse(jsonrpc.CodeParseError, "the line is not JSON")
			return
		}
		if len(raws) == 0 {
			t.refuse(jsonrpc.CodeInvalidRequest, "the batch is empty")
			return
		}
	}
	for _, raw := range raws {
		if !json.Valid(raw) {
			t.refuse(jsonrpc.CodeParseError, "the line is not JSON")
			continue
		}
		msg, err := jsonrpc.DecodeMessage(raw)
		if err != nil {
			t.refuse(jsonrpc.CodeInvalidRequest, "the line is not a message of the protocol")
			continue
		}
		if call, ok := msg.(*jsonrpc.Request); ok && call.IsCall() {
			t.mu.Lock()
			t.running[idKey(call.ID)]++
			t.mu.Unlock()
		}
		select {
		case t.messages <- msg:
		case <-t.closed:
			return
		}
	}
}

// idKey tells the number 1 from the string "1".
func idKey(id jsonrpc.ID) string {
	raw, err := json.Marshal(id.Raw())
	if err != nil { // a number or a string: it cannot be
		return ""
	}
	return string(raw)
}

// refuse answers what had no id that could be read.
func (t *stdio) refuse(code int64, message string) {
	t.log.Warn("a line was refused", "why", message)
	raw, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": map[string]any{"code": code, "message": message}})
	if err == nil {
		err = t.write(raw)
	}
	if err != nil {
		t.log.Warn("the refusal could not be written", "error", err)
	}
}

func (t *stdio) write(raw []byte) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := t.out.Write(append(raw, '\n'))
	return err
}

// Read implements mcp.Connection. The end of the input is told once the calls have
// their answers, or have had their time: the library stops what runs then.
func (t *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case msg := <-t.messages:
		return msg, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.closed:
		return nil, io.EOF
	case <-t.ended:
	}
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	for t.busy() {
		select {
		case <-t.idle:
		case <-timer.C:
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-t.closed:
			return nil, io.EOF
		}
	}
	return nil, io.EOF
}

func (t *stdio) busy() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.running) > 0
}

// Write implements mcp.Connection.
func (t *stdio) Write(_ context.Context, msg jsonrpc.Message) error {
	raw, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return errs.Wrap(errs.Storage, err, "the message has no JSON form")
	}
	err = t.write(raw)
	if answer, ok := msg.(*jsonrpc.Response); ok {
		t.answered(idKey(answer.ID))
		t.answeredOnce()
	}
	return errs.Wrap(errs.IO, err, "standard output")
}

func (t *stdio) answered(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.running[key]--; t.running[key] <= 0 {
		delete(t.running, key)
	}
	if len(t.running) == 0 {
		select {
		case t.idle <- struct{}{}:
		default:
		}
	}
}

// Close implements mcp.Connection.
func (t *stdio) Close() error {
	t.once.Do(func() { close(t.closed) })
	return nil
}
