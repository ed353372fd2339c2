package local

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/store"
)

// endpointOf is what the lock file of a directory names.
func endpointOf(t *testing.T, dir string) *store.Endpoint {
	t.Helper()
	info, ok := store.Holder(dir)
	if !ok || info.Endpoint == nil {
		t.Fatalf("the lock file names no endpoint: %+v", info)
	}
	return info.Endpoint
}

func dialRaw(t *testing.T, dir string) net.Conn {
	t.Helper()
	conn, err := connect(t.Context(), dir, endpointOf(t, dir), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func helloFrame(t *testing.T, h hello) []byte {
	t.Helper()
	body, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	return appendFrame(nil, kindHello, 0, body)
}

// TestHostilePeers holds that a peer that does not keep to the protocol is cut
// off, and that nobody else is troubled by it.
func TestHostilePeers(t *testing.T) {
	dir := t.TempDir()
	a := mustOpen(t, dir, quiet())
	b := mustOpen(t, dir, quiet())
	e := endpointOf(t, dir)
	good := hello{Protocol: protocol, SchemaVersion: store.SchemaVersion, Secret: e.Secret}
	secret := good
	secret.Secret = "guessed"
	older := good
	older.Protocol--
	call := func(id uint64, h string) []byte {
		return appendFrame(nil, kindCall, id, []byte{0, 0, 0, byte(len(h))}, []byte(h))
	}
	for name, send := range map[string][]byte{
		"garbage":            []byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
		"huge hello":         {0xff, 0xff, 0xff, 0xff, kindHello, 0, 0, 0, 0, 0, 0, 0, 0},
		"no hello":           call(1, `{"op":"health"}`),
		"wrong secret":       helloFrame(t, secret),
		"other protocol":     helloFrame(t, older),
		"huge call":          append(helloFrame(t, good), 0xff, 0xff, 0xff, 0xff, kindCall, 0, 0, 0, 0, 0, 0, 0, 1),
		"answer":             append(helloFrame(t, good), appendFrame(nil, kindAnswer, 1, []byte("{}"))...),
		"second hello":       append(helloFrame(t, good), helloFrame(t, good)...),
		"broken header":      append(helloFrame(t, good), call(1, `{"op"`)...),
		"unknown permission": append(helloFrame(t, good), call(1, `{"op":"health","never":1}`)...),
	} {
		conn := dialRaw(t, dir)
		if _, err := conn.Write(send); err != nil {
			t.Fatal(err)
		}
		// Whatever it is told first, the end of the connection follows.
		r := bufio.NewReader(conn)
		for {
			f, err := readFrame(r, maxAnswer)
			if err != nil {
				if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
					t.Errorf("%s: it was not cut off", name)
				}
				break
			}
			var w welcome
			if f.kind == kindAnswer || readHello(f, &w) == nil && w.Instance != "" && !strings.HasPrefix(string(send), string(helloFrame(t, good))) {
				t.Errorf("%s: it was answered: %+v", name, f)
			}
			if strings.Contains(string(f.body), e.Secret) {
				t.Errorf("%s: it was told the secret", name)
			}
		}
	}
	// These say nothing, or stop in the middle of a word.
	dialRaw(t, dir)
	half := dialRaw(t, dir)
	if _, err := half.Write(append(helloFrame(t, good), 0, 0, 1, 0, kindCall)); err != nil {
		t.Fatal(err)
	}
	mustCall(t, b, "health", "")
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if err := a.Close(); err != nil { // without waiting for them
		t.Error(err)
	}
}

// TestTooManyCalls holds that the calls of one connection are bounded.
func TestTooManyCalls(t *testing.T) {
	dir := t.TempDir()
	o, began, _ := holding(t)
	mustOpen(t, dir, o)
	conn := dialRaw(t, dir)
	send := helloFrame(t, hello{Protocol: protocol, SchemaVersion: store.SchemaVersion, Secret: endpointOf(t, dir).Secret})
	for id := range uint64(maxPeerCalls + 1) {
		var err error
		if send, err = appendCall(send, id+1, callHeader{Op: "health"}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := conn.Write(send); err != nil {
		t.Fatal(err)
	}
	for range maxPeerCalls {
		<-began
	}
	r := bufio.NewReader(conn)
	if _, err := readFrame(r, maxHello); err != nil { // the welcome
		t.Fatal(err)
	}
	for {
		if _, err := readFrame(r, maxAnswer); err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				t.Error("it was not cut off")
			}
			return
		}
	}
}

// TestVersions holds that two sides of unequal versions say which one to upgrade,
// by the lock file and by the handshake alike.
func TestVersions(t *testing.T) {
	for _, tt := range []struct {
		protocol, schema int
		want             string
	}{
		{protocol + 1, store.SchemaVersion, "upgrade this program"},
		{protocol - 1, store.SchemaVersion, "end that process"},
		{protocol, store.SchemaVersion + 1, "upgrade this program"},
		{protocol, store.SchemaVersion - 1, "end that process"},
		{protocol + 1, store.SchemaVersion - 1, "end that process"},
	} {
		dir := t.TempDir()
		lock, err := store.LockDirectory(dir, "v9", time.Now())
		if err != nil {
			t.Fatal(err)
		}
		sock, err := listen(dir, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, byLockFile := range []bool{true, false} {
			e := sock.endpoint
			e.Protocol, e.Secret, e.Instance = protocol, "s", "i"
			if byLockFile {
				e.Protocol = tt.protocol
			}
			if err := lock.Announce(&e); err != nil {
				t.Fatal(err)
			}
			met := make(chan error, 1)
			if !byLockFile || tt.protocol == protocol {
				go func() {
					conn, err := sock.Accept()
					if err == nil {
						_, err = readFrame(bufio.NewReader(conn), maxHello)
						err = errors.Join(err, writeJSONFrame(conn, kindHello, welcome{Protocol: tt.protocol, SchemaVersion: tt.schema, Version: "v9", PID: 42, Refused: "another version"}, time.Minute), conn.Close())
					}
					met <- err
				}()
			} else {
				met <- nil
			}
			_, err := Open(t.Context(), dir, &Options{})
			if !errors.Is(err, loci.ErrLocked) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "v9") {
				t.Errorf("%+v: %v", tt, err)
			}
			if err := <-met; err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(sock.Close(), lock.Release()); err != nil {
			t.Error(err)
		}
	}
}

// TestNobodyServes holds what an opener is told whose directory is held by a
// process that does not serve it.
func TestNobodyServes(t *testing.T) {
	dir := t.TempDir()
	o := quiet()
	o.NoServe = true
	mustOpen(t, dir, o)
	if _, err := Open(t.Context(), dir, &Options{Wait: time.Millisecond}); !errors.Is(err, loci.ErrLocked) || !strings.Contains(err.Error(), "in use by process") {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), dir, nil); !errors.Is(err, loci.ErrNotFound) {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), filepath.Join(dir, "none"), nil); !errors.Is(err, loci.ErrNotFound) {
		t.Error(err)
	}
	served := t.TempDir()
	mustOpen(t, served, quiet())
	if _, err := Open(t.Context(), served, &Options{NoAttach: true}); !errors.Is(err, loci.ErrLocked) {
		t.Error(err)
	}
	m, err := Dial(t.Context(), served, nil)
	if err != nil {
		t.Fatal(err)
	}
	mustCall(t, m, "health", "")
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ended, dir, &Options{Wait: time.Hour}); !errors.Is(err, loci.ErrCanceled) && !errors.Is(err, loci.ErrLocked) {
		t.Error(err)
	}
}

// TestStaleSocket holds that what a dead process left is replaced.
func TestStaleSocket(t *testing.T) {
	dir := t.TempDir()
	stale := store.Endpoint{Protocol: protocol, Network: "unix", Address: "loci.sock", Instance: "old", Secret: "old"}
	raw, err := json.Marshal(store.LockInfo{PID: 1 << 30, Version: "v0", SchemaVersion: store.SchemaVersion, Endpoint: &stale})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{store.LockFile: string(raw), "loci.sock": "not even a socket"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Dial(t.Context(), dir, nil); !errors.Is(err, loci.ErrNotFound) {
		t.Error(err)
	}
	a := mustOpen(t, dir, quiet())
	b := mustOpen(t, dir, quiet())
	if !a.Holds() || b.Holds() {
		t.Errorf("holds: %v and %v", a.Holds(), b.Holds())
	}
	mustCall(t, b, "health", "")
}

// TestMoved holds that a data directory that is moved while it is held still lets
// others attach, and that the old place is free.
func TestMoved(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("an open folder cannot be moved")
	}
	root := t.TempDir()
	dir := filepath.Join(root, "a")
	mustOpen(t, dir, quiet())
	if err := os.Rename(dir, filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	m, err := Dial(t.Context(), filepath.Join(root, "b"), nil)
	if err != nil {
		t.Fatal(err)
	}
	mustCall(t, m, "health", "")
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := Dial(t.Context(), dir, nil); !errors.Is(err, loci.ErrNotFound) {
		t.Error(err)
	}
}

// TestManyAttached holds that many processes attach at once, and that one too many
// is told so and stays able to attach later.
func TestManyAttached(t *testing.T) {
	dir := t.TempDir()
	a := mustOpen(t, dir, quiet())
	many := make([]*Memory, maxPeers)
	for i := range many {
		m, err := Dial(t.Context(), dir, quiet())
		if err != nil {
			t.Fatalf("process %d: %v", i, err)
		}
		many[i] = m
		defer m.Close()
	}
	var all sync.WaitGroup
	for _, m := range many {
		all.Go(func() {
			if _, err := m.Call(t.Context(), "remember", []byte(`{"text":"The tide table is updated weekly."}`)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	o := quiet()
	o.Wait = 0
	for name, open := range map[string]func(context.Context, string, *Options) (*Memory, error){"Open": Open, "Dial": Dial} {
		_, err := open(t.Context(), dir, o)
		if !errors.Is(err, loci.ErrLocked) || !strings.Contains(err.Error(), "which is the limit") {
			t.Errorf("%s: one too many: %v", name, err)
		}
	}
	if err := many[0].Close(); err != nil {
		t.Fatal(err)
	}
	b := mustOpen(t, dir, quiet()) // waits until the holder has seen that one go
	mustCall(t, b, "health", "")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestHungHolder holds that a holder that takes connections and says nothing is not
// waited for by somebody who has given up.
func TestHungHolder(t *testing.T) {
	dir := t.TempDir()
	sock, err := listen(dir, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer sock.Close()
	e := sock.endpoint
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		if conn, err := sock.Accept(); err == nil {
			defer conn.Close()
			_, _ = conn.Read(make([]byte, 1)) // it has come
			cancel()
			_, _ = io.Copy(io.Discard, conn)
		}
	}()
	if _, err := attach(ctx, dir, &e); !errors.Is(err, loci.ErrCanceled) {
		t.Errorf("a hung holder: %v", err)
	}
}
