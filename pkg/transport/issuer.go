package transport

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// Issuer has the server take the tokens of an OpenID provider: JWTs that it has signed with the keys that it publishes, that
// name the audience, and that have one of the scopes, in the claim scope or scp. ctx bounds the look-up of the provider.
// client, nil for the default one, asks it then and later, when a token has a key that is not known yet.
func Issuer(ctx context.Context, client *http.Client, issuer, audience string) (Access, error) {
	if client == nil {
		client = http.DefaultClient
	}
	asking := *client
	asking.Transport = &keyFetcher{next: client.Transport}
	asking.Timeout = issuerTime
	provider, err := oidc.NewProvider(oidc.ClientContext(ctx, &asking), issuer)
	if err != nil {
		return Access{}, fmt.Errorf("the issuer %s: %w", issuer, err)
	}
	var says struct {
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	if err := provider.Claims(&says); err != nil {
		return Access{}, fmt.Errorf("the issuer %s: %w", issuer, err)
	}
	says.Algorithms = slices.DeleteFunc(says.Algorithms, func(a string) bool { return !slices.Contains(signatures, a) })
	keys := oidc.NewRemoteKeySet(oidc.ClientContext(context.WithoutCancel(ctx), &asking), says.Keys)
	verifier := oidc.NewVerifier(issuer, issuerKeys{keys}, &oidc.Config{ClientID: audience, SupportedSigningAlgs: says.Algorithms})
	verify := func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		var lost error // why the keys could not be had, which says nothing of the token
		claims, err := verifier.Verify(context.WithValue(ctx, lostKeys{}, &lost), token)
		switch {
		case lost != nil:
			return nil, lost
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, errors.Join(auth.ErrInvalidToken, err)
		}
		var has struct{ Scope, Scp words }
		if err := claims.Claims(&has); err != nil {
			return nil, errors.Join(auth.ErrInvalidToken, err)
		}
		return &auth.TokenInfo{Scopes: append(has.Scope, has.Scp...), Expiration: claims.Expiry, UserID: claims.Subject}, nil
	}
	return Access{Verify: verify, Resource: &oauthex.ProtectedResourceMetadata{
		Resource: audience, AuthorizationServers: []string{issuer}, ScopesSupported: []string{ScopeAgent, ScopeControl},
		BearerMethodsSupported: []string{"header"},
	}}, nil
}

// signatures are the algorithms by which a published key can be used: none that works with a shared secret.
var signatures = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.ES256, oidc.ES384, oidc.ES512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.EdDSA}

// words is a claim that is a list of strings, or one string with blanks between them: issuers differ.
type words []string

// UnmarshalJSON reads either form.
func (w *words) UnmarshalJSON(b []byte) error {
	var text string
	if json.Unmarshal(b, &text) == nil {
		*w = strings.Fields(text)
		return nil
	}
	return json.Unmarshal(b, (*[]string)(w))
}

// issuerKeys tells apart, by the context, why a signature could not be verified: the library puts both into words.
type issuerKeys struct{ oidc.KeySet }

type lostKeys struct{}

// VerifySignature is for the verifier.
func (k issuerKeys) VerifySignature(ctx context.Context, jwt string) ([]byte, error) {
	payload, err := k.KeySet.VerifySignature(ctx, jwt)
	if lost, ok := errors.AsType[*unreachableError](err); ok {
		*ctx.Value(lostKeys{}).(*error) = lost
	}
	return payload, err
}

// An unreachableError says that the issuer did not give what it was asked for.
type unreachableError struct{ err error }

func (e *unreachableError) Error() string { return "the issuer cannot be asked: " + e.err.Error() }
func (e *unreachableError) Unwrap() error { return e.err }

// refetchAfter is how long an answer of the issuer's is good for the next one who asks: anybody can send tokens with keys that
// are not known, and each would be a question.
const refetchAfter = 5 * time.Second

// A keyFetcher asks the issuer. What it has been answered a moment ago it does not ask again.
type keyFetcher struct {
	next http.RoundTripper // nil: the default one

	mu   sync.Mutex // held while asking
	url  string
	at   time.Time
	body []byte
	err  error
}

// RoundTrip is for the library, which sends GET requests alone.
func (f *keyFetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.url != r.URL.String() || time.Since(f.at) >= refetchAfter {
		f.body, f.err = f.ask(r)
		f.url, f.at = r.URL.String(), time.Now()
	}
	if f.err != nil {
		return nil, &unreachableError{f.err}
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(f.body)),
	}, nil
}

// maxIssuerAnswer bounds an answer of the issuer's, in bytes.
const maxIssuerAnswer = 1 << 20

func (f *keyFetcher) ask(r *http.Request) ([]byte, error) {
	next := f.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", r.URL.Redacted(), res.Status)
	}
	return io.ReadAll(io.LimitReader(res.Body, maxIssuerAnswer))
}
