package httpapi

import (
	"context"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/loci-memory/loci"
	"github.com/loci-memory/loci/internal/errs"
)

// errWrongToken is the cause of a refusal that another token would lift.
var errWrongToken = errs.New(errs.Forbidden, "a token that counts is needed: send it as Authorization: Bearer TOKEN")

// authenticate puts on the context what the request's token may reach. Without a
// file of tokens everyone who reaches the port may do everything.
func (h *handler) authenticate(r *http.Request, q *request) (context.Context, error) {
	if h.Tokens == nil {
		return r.Context(), nil
	}
	wrong := refusal{http.StatusUnauthorized, "A token is needed", errWrongToken}
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return nil, wrong
	}
	scheme, secret, _ := strings.Cut(headers[0], " ")
	if secret = strings.TrimSpace(secret); !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return nil, wrong
	}
	q.secret = secret
	token, err := h.Tokens.Find(secret)
	if err != nil {
		h.Log.Error("nobody is let in", "error", err)
		return nil, refuse(http.StatusServiceUnavailable, "Nobody can be let in", loci.ErrIO, "the server cannot read its tokens; its log says more")
	}
	if token == nil {
		return nil, wrong
	}
	q.token = token
	return loci.WithAccess(r.Context(), &token.Access), nil
}

// counts says whether the token that began a stream is still good for it.
func (h *handler) counts(q *request) bool {
	if h.Tokens == nil {
		return true
	}
	token, err := h.Tokens.Find(q.secret)
	return err == nil && token != nil && token.Name == q.token.Name
}

// checkOrigin refuses what a web page may have caused: a name that was made to
// point here, or a request from another origin.
func (h *handler) checkOrigin(r *http.Request) error {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if !h.serves(strings.Trim(host, "[]")) {
		return refuse(http.StatusForbidden, "This host is not served", loci.ErrForbidden,
			"the Host header must name this server: localhost, 127.0.0.1, [::1] or a host that it was told of (--allowed-host)")
	}
	foreign := refuse(http.StatusForbidden, "Other origins are not served", loci.ErrForbidden,
		"requests from a web page of another origin are refused, unless the server was told of it (--allowed-origin)")
	origins := r.Header.Values("Origin")
	switch {
	case len(origins) > 1:
		return foreign
	case len(origins) == 1:
		own := origins[0] == "http://"+r.Host || origins[0] == "https://"+r.Host
		if !own && !slices.Contains(h.Origins, origins[0]) {
			return foreign
		}
		return nil // which says more than what follows
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site == "cross-site" || site == "same-site" {
		return foreign
	}
	return nil
}

// serves says whether a name in a Host header means this server. An IP address
// cannot be made to point elsewhere, as a name can.
func (h *handler) serves(host string) bool {
	return isLoopback(host) || h.AnyIP && net.ParseIP(host) != nil ||
		slices.ContainsFunc(h.Hosts, func(name string) bool { return strings.EqualFold(name, host) })
}

// shareWithOrigin tells a browser that a page of an allowed origin may read the
// answer. True for the question that a browser asks first, which is answered by
// that.
func (h *handler) shareWithOrigin(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || !slices.Contains(h.Origins, origin) {
		return false
	}
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", origin)
	head.Add("Vary", "Origin")
	head.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, Mcp-Session-Id, Mcp-Protocol-Version")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	head.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	head.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version")
	head.Set("Access-Control-Max-Age", "600")
	return true
}

// isLoopback says whether a host name can only mean this machine.
func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
