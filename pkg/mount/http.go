package mount

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// endLimit bounds the request that ends a session at the server.
const endLimit = 2 * time.Second

// HTTP is an MCP server that is reached by Streamable HTTP. It must speak 2025-11-25 or older.
type HTTP struct {
	URL    string
	Header http.Header // sent with each request, such as Authorization
	// RoundTripper makes the requests. nil: one for each connection, with the settings of http.DefaultTransport.
	RoundTripper http.RoundTripper
}

// URL is the [HTTP] server at an address.
func URL(address string) HTTP { return HTTP{URL: address} }

// Connect begins a session with the server. See [gym.Connector].
func (c HTTP) Connect(ctx context.Context, log *slog.Logger) (gym.Upstream, error) {
	if u, err := url.Parse(c.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no URL of a server; want one such as http://127.0.0.1:9000/mcp", c.URL)
	}
	rt := &roundTripper{next: c.RoundTripper, header: c.Header}
	idle := func() {}
	if rt.next == nil {
		own := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true}
		if t, ok := http.DefaultTransport.(*http.Transport); ok {
			own = t.Clone()
		}
		rt.next, idle = own, own.CloseIdleConnections
	}
	sdk := &mcp.StreamableClientTransport{Endpoint: c.URL, HTTPClient: &http.Client{Transport: rt}, DisableStandaloneSSE: true}
	conn, err := sdk.Connect(ctx)
	if err != nil {
		return nil, err
	}
	up, err := greet(ctx, newPeer(&web{conn, idle}, judgeHTTP, log), func() {}, rt.agreed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.URL, err)
	}
	return up, nil
}

// judgeHTTP: a request has not run if there was nobody to take it, or if the server no longer knew the session, which
// then is over.
func judgeHTTP(err error) (unsent, fatal bool) {
	if errors.Is(err, mcp.ErrSessionMissing) {
		return true, true
	}
	return dialing(err), false
}

// web is the SDK's connection, which leaves idle connections to its client.
type web struct {
	mcp.Connection
	idle func()
}

// A plainError says in words for agents what they may know of err, whose own may hold addresses and ids.
type plainError struct {
	text string
	err  error
}

func (e *plainError) Error() string { return e.text }

func (e *plainError) Unwrap() error { return e.err }

func plain(err error) error {
	var request *url.Error
	switch {
	case errors.Is(err, mcp.ErrSessionMissing):
		return &plainError{"it no longer knows the session", err}
	case dialing(err):
		return &plainError{"it could not be reached", err}
	case errors.As(err, &request):
		return &plainError{"the connection to it broke", err}
	}
	return err
}

// dialing reports whether no connection was made, so that there was nobody to take the request.
func dialing(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Read returns the next message.
func (w *web) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := w.Connection.Read(ctx)
	if err == nil || errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrSessionMissing) {
		return m, plain(err)
	}
	return nil, &plainError{"the connection to it was lost", err}
}

// Write makes the request that carries a message.
func (w *web) Write(ctx context.Context, m jsonrpc.Message) error {
	return plain(w.Connection.Write(ctx, m))
}

// Close ends the session at the server.
func (w *web) Close() error {
	err := w.Connection.Close()
	w.idle()
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("ending the session: %w", err)
	}
	return nil
}

// A roundTripper adds to each request what the mount says, and the version that was agreed on: the SDK's transport does
// so only under the SDK's client.
type roundTripper struct {
	next    http.RoundTripper
	header  http.Header
	version atomic.Pointer[string]
}

func (t *roundTripper) agreed(version string) { t.version.Store(&version) }

func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	for name, values := range t.header {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if v := t.version.Load(); v != nil {
		r.Header.Set("Mcp-Protocol-Version", *v)
	}
	if r.Method != http.MethodDelete {
		return t.next.RoundTrip(r)
	}
	ctx, cancel := context.WithTimeout(r.Context(), endLimit)
	defer cancel() // the body of the answer is not read
	return t.next.RoundTrip(r.WithContext(ctx))
}
