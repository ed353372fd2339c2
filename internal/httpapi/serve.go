package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/loci-memory/loci/internal/errs"
)

// How long running requests may go on after the server was told to stop, and how
// long those that were then cut off have for a last word.
const (
	grace    = 10 * time.Second
	lastWord = time.Second
)

// Serve answers until ctx ends, then lets running requests finish; streams without
// an end of their own end at once. An address that is not a loopback one needs
// Config.Tokens. ready is told the URL once connections are taken; it may be nil.
func Serve(ctx context.Context, addr string, cfg Config, ready func(url string)) error {
	ln, err := listen(ctx, addr, cfg.Tokens != nil)
	if err != nil {
		return err
	}
	if tcp, ok := ln.Addr().(*net.TCPAddr); ok && !tcp.IP.IsLoopback() {
		if tcp.IP.IsUnspecified() {
			cfg.AnyIP = true
		} else {
			cfg.Hosts = append([]string{tcp.IP.String()}, cfg.Hosts...)
		}
		cfg.withDefaults().Log.Warn("tokens and memories cross the network as they are; put a proxy with TLS before this server",
			"address", ln.Addr().String())
	}
	// Requests outlive ctx, by grace at most.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	h := newHandler(cfg)
	defer h.stopStreams()
	srv := &http.Server{
		Handler:           h,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       h.BodyTimeout + 5*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(h.Log.Handler(), slog.LevelWarn),
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
	h.stopStreams()
	stop, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancelStop()
	if err = srv.Shutdown(stop); err != nil {
		cancel()
		last, cancelLast := context.WithTimeout(context.WithoutCancel(ctx), lastWord)
		defer cancelLast()
		if err = srv.Shutdown(last); err != nil {
			err = srv.Close()
		}
	}
	if serr := <-done; !errors.Is(serr, http.ErrServerClosed) {
		err = errors.Join(err, serr)
	}
	return errs.Wrap(errs.IO, err, "the server did not stop cleanly")
}

// listen opens an address. Without tokens whoever reaches the port reaches the
// data, so it must be a loopback one.
func listen(ctx context.Context, addr string, tokens bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, errs.Invalid("listen", "%q is not an address; write it as 127.0.0.1:7474", addr)
	}
	const remedy = "without tokens only this machine is served: use 127.0.0.1, [::1] or localhost, or make a token with " +
		"loci token new NAME --tokens FILE --grant NAMESPACE:rw and serve with --tokens FILE"
	if !tokens && !isLoopback(host) {
		return nil, errs.Invalid("listen", "%q is not a loopback address; %s", addr, remedy)
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, &errs.Error{Code: errs.IO, Field: "listen", Err: err,
			Message: "another program listens on " + addr + " already, perhaps another loci serve: stop it or choose another port"}
	case err != nil:
		return nil, errs.Wrap(errs.IO, err, "cannot listen on %s", addr)
	}
	// A name resolves to whatever the system says.
	if tcp, ok := ln.Addr().(*net.TCPAddr); !tokens && (!ok || !tcp.IP.IsLoopback()) {
		return nil, errors.Join(errs.Invalid("listen", "%q does not resolve to a loopback address; %s", addr, remedy), ln.Close())
	}
	return ln, nil
}
