package local

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
	"github.com/loci-memory/loci/internal/store"
	"github.com/loci-memory/loci/op"
)

// The limits of a server.
const (
	maxPeers      = 256
	maxPeerCalls  = 128 // of one connection at once
	framePatience = 30 * time.Second
	progressEvery = 50 * time.Millisecond
	moveGrace     = time.Second / 2  // for calls that can be repeated elsewhere
	finishGrace   = 10 * time.Second // for those that cannot
	acceptPause   = 50 * time.Millisecond
	farewell      = time.Second // for peers to hang up once everything is said
)

// errMoved is why a call was ended that its caller can repeat at the next holder.
var errMoved = errors.New("the holder is going")

// Server serves an open store to other processes of this user.
type Server struct {
	caller  op.Caller
	release func() error
	o       Options
	info    welcome
	secret  string
	socket  *socket
	retract func() error // takes the endpoint out of the lock file

	base   context.Context // of all calls
	cancel context.CancelFunc
	work   sync.WaitGroup // connections and the loop that accepts them
	calls  sync.WaitGroup

	mu      sync.Mutex
	peers   map[*peer]struct{}
	running map[*call]struct{}
	closing bool
	once    sync.Once
	err     error
}

// Serve lets other processes attach to db, which this process holds, until the
// server is closed; close it before db. Of the options Hold, RuntimeDir and Log
// count; opts may be nil.
func Serve(db *loci.DB, opts *Options) (*Server, error) {
	o := opts.orDefault()
	ctx, cancel := context.WithCancel(context.Background())
	caller, release, err := o.Hold(ctx, db)
	if err != nil {
		cancel()
		return nil, err
	}
	s, err := serve(db, caller, o)
	if err != nil {
		cancel()
		return nil, errors.Join(err, release())
	}
	s.release = func() error {
		cancel()
		return release()
	}
	return s, nil
}

// serve makes the socket, tells of it in the lock file and begins to answer.
func serve(db *loci.DB, caller op.Caller, o Options) (*Server, error) {
	held := db.Link()
	sock, err := listen(held.Directory(), o.RuntimeDir)
	if err != nil {
		// Whoever finds the directory held should learn why it cannot attach.
		told := held.Announce(&store.Endpoint{Protocol: protocol, Trouble: "its socket could not be made: " + err.Error()})
		return nil, errors.Join(errs.Wrap(errs.IO, err, "the socket for other processes could not be made"), told)
	}
	self, _ := store.Holder(held.Directory()) // what it says is for people
	s := &Server{
		caller: caller, release: func() error { return nil }, o: o, secret: random(), socket: sock,
		info:    welcome{Protocol: protocol, SchemaVersion: store.SchemaVersion, Version: self.Version, PID: os.Getpid(), Instance: random()},
		retract: func() error { return held.Announce(nil) },
		peers:   map[*peer]struct{}{}, running: map[*call]struct{}{},
	}
	s.base, s.cancel = context.WithCancel(context.WithValue(context.Background(), attachedKey{}, true))
	s.work.Go(s.accept)
	e := sock.endpoint
	e.Protocol, e.Instance, e.Secret = protocol, s.info.Instance, s.secret
	if err := held.Announce(&e); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) accept() {
	for {
		conn, err := s.socket.Accept()
		if err == nil {
			s.work.Go(func() { s.meet(conn) })
			continue
		}
		if s.isClosing() || errors.Is(err, net.ErrClosed) {
			return
		}
		// Such as too many open files, which passes.
		s.o.Log.Warn("a process could not be attached", "error", err)
		select {
		case <-s.base.Done():
			return
		case <-time.After(acceptPause):
		}
	}
}

func (s *Server) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// peer is an attached process.
type peer struct {
	s      *Server
	conn   net.Conn
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc

	welcomed bool // under the server's mu

	wmu sync.Mutex // of writing

	mu    sync.Mutex
	calls map[uint64]*call
}

// call is a call of a peer that runs.
type call struct {
	repeatable bool
	cancel     context.CancelCauseFunc
}

// meet serves one connection until it ends.
func (s *Server) meet(conn net.Conn) {
	ctx, cancel := context.WithCancel(s.base)
	p := &peer{s: s, conn: conn, ctx: ctx, cancel: cancel, calls: map[uint64]*call{}}
	defer conn.Close() // the peer notices; there is nobody else to tell
	defer cancel()
	room, open := s.admit(p)
	if !open {
		return
	}
	defer s.forget(p)
	r, err := p.greet(room)
	switch {
	case errors.Is(err, io.EOF): // somebody looked whether anyone is there
		return
	case err != nil:
		if !s.isClosing() {
			s.o.Log.Warn("a process was not attached", "error", err)
		}
		return
	}
	if err := p.listen(r); err != nil && !s.isClosing() {
		s.o.Log.Warn("an attached process was cut off", "error", err)
	}
}

// greet checks who is there and lets the peer in, if there is room.
func (p *peer) greet(room bool) (*bufio.Reader, error) {
	if err := checkPeer(p.conn); err != nil {
		return nil, err
	}
	if err := p.conn.SetDeadline(time.Now().Add(helloPatience)); err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(p.conn, trustedLen)
	f, err := readFrame(r, maxHello)
	if err != nil {
		return nil, err
	}
	var h hello
	if err := readHello(f, &h); err != nil {
		return nil, err
	}
	answer := p.s.info
	switch {
	case !sameSecret(h.Secret, p.s.secret):
		answer = welcome{Protocol: protocol, Refused: "the secret is not that of the lock file"}
	case h.Protocol != protocol || h.SchemaVersion != store.SchemaVersion:
		answer.Refused = "another version"
	case !room:
		answer.Refused = fmt.Sprintf("%d processes are attached, which is the limit", maxPeers)
	}
	if answer.Refused != "" {
		answer.Instance = ""
	}
	if err := writeJSONFrame(p.conn, kindHello, answer, helloPatience); err != nil {
		return nil, err
	}
	if answer.Refused != "" {
		return nil, errors.New("it was refused: " + answer.Refused)
	}
	p.s.mu.Lock()
	p.welcomed = true
	p.s.mu.Unlock()
	return r, p.conn.SetDeadline(time.Time{})
}

// admit counts a connection in, and says whether there is room for it. It is not
// open once the server closes.
func (s *Server) admit(p *peer) (room, open bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false, false
	}
	s.peers[p] = struct{}{}
	return len(s.peers) <= maxPeers, true
}

func (s *Server) forget(p *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.peers, p)
}

// listen takes the peer's frames until the connection ends, which is no error.
func (p *peer) listen(r *bufio.Reader) error {
	for {
		if _, err := r.Peek(1); err != nil {
			return nil // it has gone
		}
		f, err := p.next(r)
		if err != nil {
			return err
		}
		switch f.kind {
		case kindCancel:
			p.mu.Lock()
			if c := p.calls[f.id]; c != nil {
				c.cancel(context.Canceled)
			}
			p.mu.Unlock()
		case kindCall:
			if err := p.take(f); err != nil {
				return err
			}
		default:
			return fmt.Errorf("%w: a frame of kind %d", errFrame, f.kind)
		}
	}
}

// next reads a frame that has begun to come. The peer has to send all of it
// within a time.
func (p *peer) next(r *bufio.Reader) (f frame, err error) {
	if r.Buffered() >= frameHead {
		if head, err := r.Peek(frameHead); err == nil && r.Buffered()-frameHead >= int(binary.BigEndian.Uint32(head)) {
			return readFrame(r, maxCall) // it is all there
		}
	}
	if err := p.conn.SetReadDeadline(time.Now().Add(framePatience)); err != nil {
		return f, err
	}
	if f, err = readFrame(r, maxCall); err != nil {
		return f, err
	}
	return f, p.conn.SetReadDeadline(time.Time{})
}

// take begins a call. An error ends the connection.
func (p *peer) take(f frame) error {
	h, raw, err := decodeCall(f.body)
	if err != nil {
		return err
	}
	o, known := op.Default().Lookup(h.Op)
	c := &call{repeatable: known && (o.Idempotent || o.ReadOnly)}
	ctx, cancel := context.WithCancelCause(p.ctx)
	c.cancel = cancel
	p.mu.Lock()
	_, twice := p.calls[f.id]
	full := len(p.calls) >= maxPeerCalls
	if !twice && !full {
		p.calls[f.id] = c
	}
	p.mu.Unlock()
	if twice || full {
		cancel(nil)
		return fmt.Errorf("%w: call %d of %d at once", errFrame, f.id, maxPeerCalls)
	}
	s := p.s
	s.mu.Lock()
	moved := s.closing
	if !moved {
		s.running[c] = struct{}{}
		s.calls.Add(1)
	}
	s.mu.Unlock()
	if moved {
		p.drop(f.id, c)
		p.send(appendFrame(nil, kindMoved, f.id))
		return nil
	}
	go func() {
		defer s.calls.Done()
		answer := p.run(ctx, f.id, h, raw)
		s.mu.Lock()
		delete(s.running, c)
		s.mu.Unlock()
		p.drop(f.id, c)
		p.send(answer)
	}()
	return nil
}

func (p *peer) drop(id uint64, c *call) {
	c.cancel(nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, id)
}

// run runs a call and gives the frame of its answer.
func (p *peer) run(ctx context.Context, id uint64, h callHeader, raw []byte) (answer []byte) {
	defer func() {
		if v := recover(); v != nil {
			// The panic's value may quote a record, so only its type is told.
			p.s.o.Log.Error("panic", "operation", h.Op, "type", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
			answer = failureFrame(id, errs.WithOp(h.Op, errs.New(errs.Storage, "the process that holds the memory failed; its log says more")))
		}
	}()
	if h.WithinUS > 0 {
		limited, stop := context.WithTimeout(ctx, time.Duration(h.WithinUS)*time.Microsecond)
		defer stop()
		ctx = limited
	}
	if h.Access != nil {
		ctx = loci.WithAccess(ctx, h.Access)
	}
	if h.Redact {
		ctx = loci.WithRedaction(ctx)
	}
	if h.Progress {
		ctx = op.WithProgress(ctx, p.progress(id))
	}
	out, err := p.s.caller.Call(ctx, h.Op, raw)
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errMoved):
		return appendFrame(nil, kindMoved, id)
	case err != nil:
		return failureFrame(id, err)
	case len(out) > maxAnswer:
		return failureFrame(id, errs.WithOp(h.Op, errs.Invalid("", "the answer has %d bytes, and at most %d can be handed to another process: ask for less", len(out), maxAnswer)))
	}
	return appendFrame(nil, kindAnswer, id, out)
}

func failureFrame(id uint64, err error) []byte {
	body, encErr := encodeFailure(err)
	if encErr != nil {
		// Its details have no JSON form; the rest is text.
		body, encErr = encodeFailure(errs.New(loci.CodeOf(err), "%s", err.Error()))
	}
	if encErr != nil || len(body) > maxAnswer {
		body = []byte(`{"code":"storage","message":"the error has no form that can be sent"}`)
	}
	return appendFrame(nil, kindFailure, id, body)
}

// progress tells the peer how far a call is, not too often; the end is always
// told.
func (p *peer) progress(id uint64) op.ProgressFunc {
	var last time.Time
	return func(done, total int64) {
		if now := time.Now(); done >= total || now.Sub(last) >= progressEvery {
			last = now
			p.send(appendProgress(nil, id, done, total))
		}
	}
}

// send writes a frame. A peer that does not take it is cut off.
func (p *peer) send(b []byte) {
	p.wmu.Lock()
	defer p.wmu.Unlock()
	err := p.conn.SetWriteDeadline(time.Now().Add(framePatience))
	if err == nil {
		_, err = p.conn.Write(b)
	}
	if err != nil {
		p.cancel()
		p.conn.Close()
	}
}

// Close ends serving. Calls that come now are left to the next holder, and those
// that run are waited for: what can be repeated is left to the next holder after
// half a second, and what cannot is canceled after ten. Closing twice is fine.
func (s *Server) Close() error {
	s.once.Do(func() { s.err = s.close() })
	return s.err
}

func (s *Server) close() error {
	s.mu.Lock()
	s.closing = true
	for p := range s.peers {
		if p.welcomed {
			s.work.Go(func() { p.send(appendFrame(nil, kindMoved, 0)) })
		} else {
			p.conn.Close()
		}
	}
	s.mu.Unlock()
	err := errors.Join(
		errs.Wrap(errs.IO, s.socket.Close(), "the socket for other processes could not be removed"),
		s.retract())
	move := time.AfterFunc(moveGrace, func() { s.end(true, errMoved) })
	finish := time.AfterFunc(finishGrace, func() { s.end(false, context.Canceled) })
	s.calls.Wait()
	move.Stop()
	finish.Stop()
	// A call may be under way that nobody has read. Its caller has to know that
	// nobody will, so the peers hang up and not this side.
	s.mu.Lock()
	for p := range s.peers {
		s.work.Go(func() { p.send(appendFrame(nil, kindEnd, 0)) })
	}
	s.mu.Unlock()
	hangUp := time.AfterFunc(farewell, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for p := range s.peers {
			p.conn.Close()
		}
	})
	s.work.Wait()
	hangUp.Stop()
	s.cancel()
	return errors.Join(err, s.release())
}

// end cancels the calls that run: those that can be repeated, or all.
func (s *Server) end(onlyRepeatable bool, cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.running {
		if c.repeatable || !onlyRepeatable {
			c.cancel(cause)
		}
	}
}
