package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/op"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// firstStateless is the first version of the protocol that has no sessions.
	firstStateless = "2026-07-28"

	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"

	// sessionIdle is how long a session may be silent before it ends. A client then
	// gets 404 and begins another one, as the protocol has it.
	sessionIdle = 30 * time.Minute
	// maxSessions bounds the sessions that are open at once.
	maxSessions = 1000
)

// HTTP answers the streamable HTTP transport on one path, for clients with sessions
// and for those of the versions without. It checks no tokens, hosts and origins: the
// handler in front of it does, and puts the caller's loci.Access on the request's
// context. That access counts for what the request asks. A session belongs to the
// Authorization header that began it: to others it is forbidden.
type HTTP struct {
	s         *server
	sessions  http.Handler
	stateless http.Handler
	cancel    context.CancelFunc
}

// NewHTTP makes the handler. Close ends its sessions.
func NewHTTP(cfg Config) (*HTTP, error) {
	s, err := newServer(cfg)
	if err != nil {
		return nil, err
	}
	h := &HTTP{s: s}
	s.base, h.cancel = context.WithCancel(context.Background())
	s.mcp.AddReceivingMiddleware(accessOfRequest)
	get := func(*http.Request) *mcp.Server { return s.mcp }
	options := mcp.StreamableHTTPOptions{
		Logger: quiet(s.Log), SessionTimeout: sessionIdle, MaxRequestBodyBytes: op.MaxInputBytes,
		// Whoever is in front of this knows which names are ours.
		DisableLocalhostProtection: true,
		// Where the request is all there is, its end is the call's end.
		PropagateRequestCancellation: true,
	}
	h.sessions = identified(mcp.NewStreamableHTTPHandler(get, &options))
	options.Stateless = true
	h.stateless = identified(mcp.NewStreamableHTTPHandler(get, &options))
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get(versionHeader) >= firstStateless {
		h.stateless.ServeHTTP(w, r)
		return
	}
	if r.Method == http.MethodPost && r.Header.Get(sessionHeader) == "" && h.open() >= maxSessions {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many sessions are open", http.StatusServiceUnavailable)
		return
	}
	h.sessions.ServeHTTP(w, r)
}

func (h *HTTP) open() (n int) {
	for range h.s.mcp.Sessions() {
		n++
	}
	return n
}

// Close ends what runs, and every session with its streams.
func (h *HTTP) Close() error {
	h.cancel()
	for session := range h.s.mcp.Sessions() {
		// A session whose client has gone cannot be closed in better order.
		_ = session.Close()
	}
	return nil
}

const accessKey = "access"

// identified tells the library who asks, which it binds a session to, and carries
// the request's access along: the library gives a session's calls the context of the
// request that began it.
func identified(next http.Handler) http.Handler {
	inner := auth.RequireBearerToken(func(ctx context.Context, who string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: who, Extra: map[string]any{accessKey: loci.AccessFrom(ctx)}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := sha256.Sum256([]byte(r.Header.Get("Authorization")))
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+hex.EncodeToString(who[:]))
		inner.ServeHTTP(w, r)
	})
}

// accessOfRequest puts the access of the request that a message came with on the
// message's context.
func accessOfRequest(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
			access, _ := extra.TokenInfo.Extra[accessKey].(*loci.Access)
			ctx = loci.WithAccess(ctx, access)
		}
		return next(ctx, method, req)
	}
}
