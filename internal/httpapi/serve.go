package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

// How long running requests may go on after the server was told to stop.
const grace = 10 * time.Second

// Serve answers on a loopback address until ctx ends, then lets running
// requests finish. ready is told the URL once connections are taken; it may be
// nil.
func Serve(ctx context.Context, addr string, cfg Config, ready func(url string)) error {
	ln, err := listen(ctx, addr)
	if err != nil {
		return err
	}
	// Requests outlive ctx, by grace at most.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	srv := &http.Server{
		Handler:           Handler(cfg),
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       cfg.withDefaults().BodyTimeout + 5*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
	}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(ln) }()
	if ready != nil {
		ready("http://" + ln.Addr().String())
	}
	select {
	case err := <-done:
		return errs.Wrap(errs.IO, err, "the server stopped")
	case <-ctx.Done():
	}
	stop, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancelStop()
	err = srv.Shutdown(stop)
	cancel()
	if err != nil {
		err = srv.Close()
	}
	if serr := <-done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return errs.Wrap(errs.IO, err, "the server did not stop cleanly")
}

// listen opens a loopback address and no other: there is no authentication, so
// whoever reaches the port reaches the data.
func listen(ctx context.Context, addr string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errs.Invalid("listen", "%q is not an address; write it as 127.0.0.1:7474", addr)
	}
	if !isLoopback(host) {
		return nil, errs.Invalid("listen", "%q is not a loopback address; only this machine is served: use 127.0.0.1, [::1] or localhost", addr)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, errs.Wrap(errs.IO, err, "cannot listen on %s", addr)
	}
	// A name resolves to whatever the system says.
	if tcp, ok := ln.Addr().(*net.TCPAddr); !ok || !tcp.IP.IsLoopback() {
		return nil, errors.Join(errs.Invalid("listen", "%q does not resolve to a loopback address", addr), ln.Close())
	}
	return ln, nil
}
