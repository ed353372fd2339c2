// Package worker starts the process of one product of the comparison and talks to
// it as package protocol says.
package worker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/loci-memory/loci/bench/peers/protocol"
)

// ErrDied is the error of a call whose worker has ended, by itself or because it
// was stopped. Its text holds the end of what the worker wrote to its standard
// error.
var ErrDied = errors.New("the worker died")

// Unsupported is the error of a call that asks for what the product does not have.
type Unsupported struct{ Why string }

// Error tells it in the worker's words.
func (e *Unsupported) Error() string { return "unsupported: " + e.Why }

// Failure is the error of a call that the product could not serve. The worker
// lives on.
type Failure struct{ Text string }

// Error tells it in the worker's words.
func (e *Failure) Error() string { return e.Text }

const (
	tailSize = 2000             // bytes of standard error that an error tells
	patience = 30 * time.Second // for a worker to end after its last answer
)

// A Worker is a running process. It serves one call at a time.
type Worker struct {
	name    string
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	tail    *tail
	started time.Time
	ended   bool
}

// Start runs command, which speaks the protocol on its standard input and output,
// with env (KEY=value) beside the environment of this process. Name is for errors.
// The end of ctx stops the process.
func Start(ctx context.Context, name string, env []string, command ...string) (*Worker, error) {
	w := &Worker{name: name, tail: &tail{}}
	w.cmd = exec.CommandContext(ctx, command[0], command[1:]...)
	w.cmd.Env = append(w.cmd.Environ(), env...)
	w.cmd.Stderr = w.tail
	w.cmd.WaitDelay = patience
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	w.out = bufio.NewReaderSize(out, 1<<16)
	w.started = time.Now()
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return w, nil
}

// Started is when the process was started.
func (w *Worker) Started() time.Time { return w.started }

// Call asks for an operation and gives its answer. Errors are Unsupported, Failure
// or ErrDied; when ctx ends first, the worker is stopped, because what it is at
// cannot be called off, and the error is of ErrDied and of the cause of ctx.
func Call[T any](ctx context.Context, w *Worker, op string, args any) (T, error) {
	var zero T
	line, err := w.exchange(ctx, op, args)
	if err != nil {
		return zero, err
	}
	var reply protocol.Reply[T]
	if err := json.Unmarshal(line, &reply); err != nil {
		return zero, fmt.Errorf("%s: %s: answer: %w", w.name, op, err)
	}
	switch {
	case reply.Unsupported != "":
		return zero, &Unsupported{reply.Unsupported}
	case reply.Error != "":
		return zero, fmt.Errorf("%s: %s: %w", w.name, op, &Failure{reply.Error})
	case reply.OK == nil:
		return zero, fmt.Errorf("%s: %s: an answer without content", w.name, op)
	}
	return *reply.OK, nil
}

// exchange sends a request and reads the line that answers it.
func (w *Worker) exchange(ctx context.Context, op string, args any) ([]byte, error) {
	request, err := json.Marshal(protocol.Request{Op: op, Args: args})
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", w.name, op, err)
	}
	if w.ended {
		return nil, fmt.Errorf("%s: %s: %w", w.name, op, ErrDied)
	}
	type answer struct {
		line []byte
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		if _, err := w.in.Write(append(request, '\n')); err != nil {
			answers <- answer{err: err}
			return
		}
		line, err := w.out.ReadBytes('\n')
		answers <- answer{line, err}
	}()
	select {
	case a := <-answers:
		if a.err == nil {
			return a.line, nil
		}
		return nil, w.died(op, nil)
	case <-ctx.Done():
		err := w.died(op, context.Cause(ctx))
		<-answers // the pipes broke with the process
		return nil, err
	}
}

// died ends what is left of the process and tells how it went. Without a cause the
// process broke off by itself, and has a moment to end with a status of its own.
func (w *Worker) died(op string, cause error) error {
	delay := patience
	if cause != nil {
		delay = 0
	}
	t := time.AfterFunc(delay, w.kill)
	defer t.Stop()
	how := w.wait()
	err := fmt.Errorf("%s: %s: %w", w.name, op, ErrDied)
	if cause != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	} else if how != nil {
		err = fmt.Errorf("%w: %w", err, how)
	}
	if text := w.tail.String(); text != "" {
		err = fmt.Errorf("%w; it said: %s", err, text)
	}
	return err
}

// Close asks the worker to close the product and waits until the process ended.
func (w *Worker) Close(ctx context.Context) (protocol.Cost, error) {
	cost, err := Call[protocol.Cost](ctx, w, protocol.OpClose, nil)
	if err != nil {
		w.Kill()
		return cost, err
	}
	t := time.AfterFunc(patience, w.kill)
	defer t.Stop()
	if err := w.wait(); err != nil {
		return cost, fmt.Errorf("%s: after close: %w", w.name, err)
	}
	return cost, nil
}

// Kill ends the process at once if it still runs.
func (w *Worker) Kill() {
	w.kill()
	_ = w.wait() // it was killed: how it ended says nothing
}

func (w *Worker) kill() { _ = w.cmd.Process.Kill() } // fails only when it has ended

func (w *Worker) wait() error {
	if w.ended {
		return nil
	}
	w.ended = true
	_ = w.in.Close() // the process may be gone, and the pipe with it
	return w.cmd.Wait()
}

// A tail keeps the last bytes written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if extra := len(t.data) - tailSize; extra > 0 {
		t.data = append(t.data[:0], t.data[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.data), "?"))
}
