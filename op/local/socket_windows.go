package local

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/loci-memory/loci/internal/store"
)

// socket is where a holder listens: a port of the loopback address, whose
// callers show the secret of the lock file. This has never been run.
type socket struct {
	net.Listener
	endpoint store.Endpoint
}

func listen(_, _ string) (*socket, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	return &socket{ln, store.Endpoint{Network: "tcp", Address: ln.Addr().String()}}, nil
}

// connect connects to the endpoint that the lock file of dir names.
func connect(ctx context.Context, _ string, e *store.Endpoint, patience time.Duration) (net.Conn, error) {
	host, _, err := net.SplitHostPort(e.Address)
	if err != nil || e.Network != "tcp" || host != "127.0.0.1" {
		return nil, fmt.Errorf("%w: it is at %q", errFrame, e.Address)
	}
	d := net.Dialer{Timeout: patience}
	return d.DialContext(ctx, e.Network, e.Address)
}
