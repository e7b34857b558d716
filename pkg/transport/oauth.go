package transport

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

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
	var checked statusOnly
	auth.RequireBearerToken(s.opts.Access.Verify, nil)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		info = auth.TokenInfoFromContext(r.Context())
	})).ServeHTTP(&checked, r)
	switch {
	case info == nil && checked.status >= http.StatusInternalServerError:
		return access.Caller{}, &denial{status: http.StatusServiceUnavailable, message: "the token cannot be checked now; try again"}
	case info == nil:
		return access.Caller{}, s.challenge(r, "invalid_token", "the token is not good here, or has expired")
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

// statusOnly keeps the status of an answer that is not sent.
type statusOnly struct {
	header http.Header
	status int
}

func (w *statusOnly) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}
func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }
func (w *statusOnly) WriteHeader(status int)      { w.status = status }

// Issuer has the server take the tokens of an OpenID provider: JWTs that it has signed with the keys that it publishes, that
// name the audience, and that have one of the scopes, in the claim scope or scp. ctx bounds the look-up of the provider,
// and its values stay in use for the keys, an HTTP client (oidc.ClientContext) above all, which should have a time out.
func Issuer(ctx context.Context, issuer, audience string) (Access, error) {
	provider, err := oidc.NewProvider(ctx, issuer)
	if err != nil {
		return Access{}, fmt.Errorf("the issuer %s: %w", issuer, err)
	}
	verifier := provider.VerifierContext(context.WithoutCancel(ctx), &oidc.Config{ClientID: audience})
	verify := func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		ctx, cancel := context.WithTimeout(ctx, issuerTime) // it may have to ask the provider for a new key
		defer cancel()
		claims, err := verifier.Verify(ctx, token)
		if ctx.Err() != nil { // which says nothing of the token
			return nil, ctx.Err()
		}
		if err != nil {
			return nil, errors.Join(auth.ErrInvalidToken, err)
		}
		var has struct {
			Scope string   `json:"scope"`
			Scp   []string `json:"scp"`
		}
		if err := claims.Claims(&has); err != nil {
			return nil, errors.Join(auth.ErrInvalidToken, err)
		}
		return &auth.TokenInfo{Scopes: append(strings.Fields(has.Scope), has.Scp...), Expiration: claims.Expiry, UserID: claims.Subject}, nil
	}
	return Access{Verify: verify, Resource: &oauthex.ProtectedResourceMetadata{
		Resource: audience, AuthorizationServers: []string{issuer}, ScopesSupported: []string{ScopeAgent, ScopeControl},
		BearerMethodsSupported: []string{"header"},
	}}, nil
}
