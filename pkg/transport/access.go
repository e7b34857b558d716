package transport

import (
	"context"
	"net/http"
	"net/netip"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Who may do what. Each request has a caller with a role before it is routed, and each operation a least role: a route where
// it is registered, a frame where it is served. What is above the role of everyone is absent from the routes and documents
// that they see.

// A visit is what is known of a request when it is routed. It is the request's context.
type visit struct {
	context.Context
	caller  access.Caller
	control bool            // it came by the control listener
	why     *denial         // why the caller is nobody
	version context.Context // has the values that tell its version of MCP; nil: it names none. See Server.versioned
}

type visitKey struct{}

func (v *visit) Value(key any) any {
	if key == (visitKey{}) {
		return v
	}
	found := v.Context.Value(key)
	if found == nil && v.version != nil {
		found = v.version.Value(key)
	}
	return found
}

func visitOf(r *http.Request) *visit {
	if v, ok := r.Context().Value(visitKey{}).(*visit); ok {
		return v
	}
	return &visit{} // as in a test of one handler
}

func callerOf(r *http.Request) access.Caller { return visitOf(r).caller }

// everyone is the role of a caller who is not asked for a token: production is closed to trainers.
func (s *Server) everyone() access.Role {
	if s.opts.Mode == tools.ModeProduction {
		return access.Agent
	}
	return access.Trainer
}

// guarded reports whether the server asks for tokens.
func (s *Server) guarded() bool { return !s.keeper.Empty() || s.opts.Access.Verify != nil }

// identify tells who sends a request.
func (s *Server) identify(r *http.Request, control bool) *visit {
	v := &visit{Context: r.Context(), control: control}
	switch {
	case control:
		v.caller.Role = access.Control
	case !s.guarded():
		v.caller.Role = s.everyone()
	default:
		v.caller, v.why = s.byToken(r)
	}
	return v
}

// byToken tells who sends a request by its bearer token (RFC 6750, section 2.1); or why nobody does.
func (s *Server) byToken(r *http.Request) (access.Caller, *denial) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "Bearer") || token == "" {
		return access.Caller{}, s.challenge(r, "", "this server asks for a token: send it as Authorization: Bearer TOKEN")
	}
	if caller, ok := s.keeper.Identify(token, addressed(r)); ok {
		return caller, nil
	}
	if s.opts.Access.Verify != nil {
		return s.byVerifier(r, token)
	}
	return access.Caller{}, s.challenge(r, "invalid_token", "the token is not one of this server's, has expired, or is good for another address")
}

// A denial is an answer to who may not do what was asked.
type denial struct {
	status    int
	message   string
	challenge string // WWW-Authenticate, where a token would help
	cause     string // for the log alone
}

func (e *denial) Error() string { return e.message }

// challenge asks for a token. code is one of RFC 6750, section 3.1, or "".
func (s *Server) challenge(r *http.Request, code, message string) *denial {
	params := []string{`realm="openenv"`}
	if code != "" {
		params = append(params, `error="`+code+`"`)
	}
	if s.opts.Access.Resource != nil {
		params = append(params, `resource_metadata="`+s.baseURL(r)+resourcePath+`"`)
	}
	return &denial{status: http.StatusUnauthorized, message: message, challenge: "Bearer " + strings.Join(params, ", ")}
}

// least serves a route to callers who have that role at least.
func (s *Server) least(role access.Role, serve http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		v := visitOf(r)
		if v.caller.Role >= role {
			serve(w, r)
			return
		}
		why := v.why
		if why == nil {
			why = &denial{status: http.StatusForbidden, message: "this belongs to the trainer: " + s.howToControl()}
		}
		s.deny(w, r, why)
	}
}

// deny answers in the door's own way.
func (s *Server) deny(w http.ResponseWriter, r *http.Request, why *denial) {
	s.logDenied(r, why)
	if why.challenge != "" {
		w.Header().Set("WWW-Authenticate", why.challenge)
	}
	retryLater(w, why.status)
	if speaksRPC(r) {
		writeRPC(w, why.status, nullID, &rpcError{Code: rpcServer, Message: why.message})
		return
	}
	writeDetail(w, why.status, why.message)
}

func (s *Server) logDenied(r *http.Request, why *denial) {
	s.log.Warn("request refused", "event", "refused", "path", shorten(r.URL.Path), "remote", r.RemoteAddr, "caller", callerOf(r).Name,
		"status", why.status, "error", why, "cause", why.cause)
}

func speaksRPC(r *http.Request) bool {
	return r.URL.Path == "/mcp" || strings.HasPrefix(r.URL.Path, "/mcp/")
}

// howToControl tells a caller without the right what would have it.
func (s *Server) howToControl() string {
	if s.opts.Mode == tools.ModeProduction {
		return "this server runs in production mode; use the control listener (-control-addr) or a control token, or mcp frames for tools"
	}
	return "it needs a control token, or the control listener (-control-addr)"
}

// limitKey tells whose requests are counted together: a caller's, or an address's where no token is shown.
func limitKey(r *http.Request) string {
	if name := callerOf(r).Name; name != "" {
		return name
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	addr := from.Addr().Unmap().WithZone("")
	if addr.Is6() { // a network of this size is one customer's
		if network, err := addr.Prefix(64); err == nil {
			return network.String()
		}
	}
	return addr.String()
}

// limited is the request's context, which ends when its caller's token expires.
func (v *visit) limited() (context.Context, context.CancelFunc) {
	if v.caller.Expires.IsZero() {
		return v, func() {}
	}
	return context.WithDeadlineCause(v, v.caller.Expires, errExpired)
}

// errExpired is the cause of contexts whose caller's token has expired.
var errExpired = &denial{status: http.StatusUnauthorized, message: "the token has expired"}
