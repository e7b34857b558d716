package transport

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/openenv-go/openenv-go/pkg/access"
)

// The server as an OAuth 2.1 resource server (MCP 2025-11-25, authorization): it checks tokens that others have issued.

// Scopes of tokens that others issue, and the roles that they give.
const (
	ScopeAgent   = "openenv:agent"
	ScopeControl = "openenv:control"
)

// resourcePath is where clients look up who issues the tokens (RFC 9728, section 3.1).
const resourcePath = "/.well-known/oauth-protected-resource"

// byVerifier has the SDK check the token of a request.
func (s *Server) byVerifier(r *http.Request, token string) (access.Caller, *denial) {
	var info *auth.TokenInfo
	checked := &unsent{}
	auth.RequireBearerToken(s.opts.Access.Verify, nil)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		info = auth.TokenInfoFromContext(r.Context())
	})).ServeHTTP(checked, r)
	if info == nil {
		why := s.challenge(r, "invalid_token", "the token is not good here, or has expired")
		if checked.status >= http.StatusInternalServerError {
			why = &denial{status: http.StatusServiceUnavailable, message: "the token cannot be checked now; try again"}
		}
		why.cause = strings.Join(strings.Fields(string(checked.body)), " ")
		return access.Caller{}, why
	}
	caller := access.Caller{Name: "subject-" + info.UserID, Expires: info.Expiration}
	if info.UserID == "" { // callers who have no names are told apart by their tokens
		digest := sha256.Sum256([]byte(token))
		caller.Name = "token-" + hex.EncodeToString(digest[:8])
	}
	switch {
	case slices.Contains(info.Scopes, ScopeControl):
		caller.Role = access.Control
	case slices.Contains(info.Scopes, ScopeAgent):
		caller.Role = access.Agent
	default:
		why := s.challenge(r, "insufficient_scope", "the token has neither of the scopes "+ScopeAgent+" and "+ScopeControl)
		why.status = http.StatusForbidden
		return access.Caller{}, why
	}
	return caller, nil
}

// An unsent is an answer of a handler of the SDK's that is not sent.
type unsent struct {
	header http.Header
	status int
	body   []byte
}

func (w *unsent) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}
func (w *unsent) Write(b []byte) (int, error) { w.body = append(w.body, b...); return len(b), nil }
func (w *unsent) WriteHeader(status int)      { w.status = status }
