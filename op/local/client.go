package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/op"
)

const (
	// cancelPatience is how long a caller that has given up waits for the holder
	// to say what became of the call.
	cancelPatience = 5 * time.Second
	// maxClientCalls is below what a holder takes from one connection.
	maxClientCalls = maxPeerCalls / 2
)

// What is known of a call that got no answer.
type fate int

const (
	answered fate = iota
	notBegun      // it was not done, and may be repeated
	unknown       // it may or may not have been done
)

// client is this process's connection to the holder.
type client struct {
	conn  net.Conn
	peer  welcome
	slots chan struct{} // calls at once
	gone  chan struct{} // closed when no new call is taken any more
	ended chan struct{} // closed when no answer will come any more

	wmu sync.Mutex // of writing

	mu      sync.Mutex
	next    uint64
	waiting map[uint64]*waiter
	moved   bool
	end     bool // the holder has said its last word
}

// waiter is a call that waits for its answer.
type waiter struct {
	answer chan frame // room for one

	mu       sync.Mutex
	progress *[2]int64     // the latest, not yet told
	news     chan struct{} // room for one: there is progress
}

// attach connects to the holder that the lock file of dir names. A holder that
// does not answer is not waited for when ctx ends.
func attach(ctx context.Context, dir string, e *store.Endpoint) (*client, error) {
	conn, err := connect(ctx, dir, e, helloPatience)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	w, r, err := introduce(conn, e)
	if !stop() {
		return nil, errs.Wrap(errs.Canceled, ctx.Err(), "stopped while another process was asked to share the memory")
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c := &client{
		conn: conn, peer: w, slots: make(chan struct{}, maxClientCalls),
		gone: make(chan struct{}), ended: make(chan struct{}), waiting: map[uint64]*waiter{},
	}
	go c.listen(r)
	return c, nil
}

// refusal is why a holder lets a process not attach.
type refusal string

// Error implements error.
func (r refusal) Error() string { return "refused: " + string(r) }

// introduce says hello and checks who answers.
func introduce(conn net.Conn, e *store.Endpoint) (w welcome, r *bufio.Reader, err error) {
	if err := checkPeer(conn); err != nil {
		return w, nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(helloPatience)); err != nil {
		return w, nil, err
	}
	h := hello{Protocol: protocol, SchemaVersion: store.SchemaVersion, Secret: e.Secret}
	if err := writeJSONFrame(conn, kindHello, h, helloPatience); err != nil {
		return w, nil, err
	}
	r = bufio.NewReaderSize(conn, trustedLen)
	f, err := readFrame(r, maxHello)
	if err != nil {
		return w, nil, err
	}
	if err := readHello(f, &w); err != nil {
		return w, nil, err
	}
	if w.PID != 0 {
		if err := unequal(w.PID, w.Version, w.Protocol, w.SchemaVersion); err != nil {
			return w, nil, err
		}
	}
	switch {
	case w.Refused != "":
		return w, nil, refusal(w.Refused)
	case !sameSecret(w.Instance, e.Instance):
		return w, nil, errors.New("another process answers than the one that the lock file names")
	}
	return w, r, conn.SetDeadline(time.Time{})
}

// listen hands out the holder's frames until the connection ends.
func (c *client) listen(r *bufio.Reader) {
	defer close(c.ended)
	defer c.retire()
	defer c.conn.Close() // whoever waits sees that it has ended
	for {
		f, err := readFrame(r, maxAnswer)
		if err != nil {
			return
		}
		switch {
		case f.kind == kindMoved && f.id == 0:
			c.retire() // what runs is still answered
			continue
		case f.kind == kindEnd:
			c.mu.Lock()
			c.end = true
			c.mu.Unlock()
			return
		}
		c.mu.Lock()
		w := c.waiting[f.id]
		if f.kind != kindProgress {
			delete(c.waiting, f.id)
		}
		c.mu.Unlock()
		switch {
		case w == nil: // it was given up
		case f.kind == kindProgress:
			if done, total, err := decodeProgress(f.body); err == nil {
				w.tell(done, total)
			} else {
				return
			}
		default:
			w.answer <- f
		}
	}
}

func (w *waiter) tell(done, total int64) {
	w.mu.Lock()
	w.progress = &[2]int64{done, total}
	w.mu.Unlock()
	select {
	case w.news <- struct{}{}:
	default:
	}
}

// report passes on what was told last.
func (w *waiter) report(f op.ProgressFunc) {
	w.mu.Lock()
	p := w.progress
	w.progress = nil
	w.mu.Unlock()
	if p != nil && f != nil {
		f(p[0], p[1])
	}
}

// retire takes no new calls.
func (c *client) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.moved {
		c.moved = true
		close(c.gone)
	}
}

// close ends the connection and waits until nobody listens to it.
func (c *client) close() error {
	err := c.conn.Close()
	<-c.ended
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// call runs an operation at the holder. Where the fate is not answered the error
// says why.
func (c *client) call(ctx context.Context, name string, raw []byte) (json.RawMessage, fate, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-c.gone:
		return nil, notBegun, errMoved
	case <-ctx.Done():
		return nil, answered, canceled(name, ctx)
	}
	listener := op.ProgressFrom(ctx)
	h := callHeader{Op: name, Access: loci.AccessFrom(ctx), Redact: loci.RedactionFrom(ctx), Progress: listener != nil}
	if end, ok := ctx.Deadline(); ok {
		if h.WithinUS = time.Until(end).Microseconds(); h.WithinUS <= 0 {
			return nil, answered, canceled(name, ctx)
		}
	}
	w := &waiter{answer: make(chan frame, 1), news: make(chan struct{}, 1)}
	c.mu.Lock()
	if c.moved {
		c.mu.Unlock()
		return nil, notBegun, errMoved
	}
	c.next++
	id := c.next
	c.waiting[id] = w
	c.mu.Unlock()
	defer c.giveUp(id)
	b, err := appendCall(nil, id, h, raw)
	if err != nil {
		return nil, answered, errs.WithOp(name, err)
	}
	if err := c.send(b); err != nil {
		return nil, notBegun, err // part of a frame begins nothing
	}
	done := ctx.Done()
	var patience <-chan time.Time
	for {
		select {
		case f := <-w.answer:
			return c.result(w, name, f, listener)
		case <-w.news:
			w.report(listener)
		case <-c.ended:
			select {
			case f := <-w.answer: // it came just before
				return c.result(w, name, f, listener)
			default:
			}
			c.mu.Lock()
			end := c.end
			c.mu.Unlock()
			if end {
				return nil, notBegun, errMoved
			}
			return nil, unknown, errors.New("the connection broke off")
		case <-done:
			done = nil
			timer := time.NewTimer(cancelPatience)
			defer timer.Stop()
			patience = timer.C
			if err := c.send(appendFrame(nil, kindCancel, id)); err != nil {
				return nil, answered, canceled(name, ctx)
			}
		case <-patience:
			return nil, answered, canceled(name, ctx)
		}
	}
}

func (c *client) giveUp(id uint64) {
	c.mu.Lock()
	delete(c.waiting, id)
	c.mu.Unlock()
}

// canceled is what a caller gets whose context ended while its call was at the
// holder.
func canceled(name string, ctx context.Context) error {
	return errs.WithOp(name, errs.Wrap(errs.Canceled, context.Cause(ctx), "given up before the process that holds the memory answered"))
}

// result reads an answer.
func (c *client) result(w *waiter, name string, f frame, listener op.ProgressFunc) (json.RawMessage, fate, error) {
	w.report(listener)
	switch f.kind {
	case kindAnswer:
		return f.body, answered, nil
	case kindMoved:
		return nil, notBegun, errMoved
	case kindFailure:
		failed, err := decodeFailure(f.body)
		if err != nil {
			return nil, answered, errs.WithOp(name, errs.Wrap(errs.IO, err, "the process that holds the memory failed"))
		}
		return nil, answered, failed
	}
	return nil, answered, errs.WithOp(name, errs.Wrap(errs.IO, fmt.Errorf("%w: a frame of kind %d", errFrame, f.kind),
		"the process that holds the memory answered something else"))
}

// send writes a frame whole. After an error nothing more can be written.
func (c *client) send(b []byte) error {
	c.wmu.Lock()
	defer c.wmu.Unlock()
	err := c.conn.SetWriteDeadline(time.Now().Add(framePatience))
	if err == nil {
		_, err = c.conn.Write(b)
	}
	if err != nil {
		c.conn.Close()
	}
	return err
}
