package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"github.com/go-jose/go-jose/v4"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/session"
)

// An issuer is an OpenID provider on loopback.
type issuer struct {
	*httptest.Server
	key   *ecdsa.PrivateKey
	hangs atomic.Bool // it does not answer with its keys
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key}
	mux := http.NewServeMux()
	answer := func(v func() any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			json.NewEncoder(w).Encode(v())
		}
	}
	mux.HandleFunc("/.well-known/openid-configuration", answer(func() any {
		return map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256"}}
	}))
	stop := make(chan struct{})
	mux.HandleFunc("/keys", answer(func() any {
		if i.hangs.Load() {
			<-stop
		}
		return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}}
	}))
	i.Server = httptest.NewServer(mux)
	t.Cleanup(func() {
		close(stop)
		i.Close()
	})
	return i
}

// token signs claims; those that are nil are left out.
func (i *issuer) token(t *testing.T, key any, alg jose.SignatureAlgorithm, changes map[string]any) string {
	t.Helper()
	claims := map[string]any{
		"iss": i.URL, "aud": "https://env.example/mcp", "sub": "alice", "scope": "openid " + ScopeAgent,
		"iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, (&jose.SignerOptions{}).WithHeader("kid", "k").WithType("at+jwt"))
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOAuth(t *testing.T) {
	i := newIssuer(t)
	access, err := Issuer(t.Context(), nil, i.URL, "https://env.example/mcp")
	if err != nil {
		t.Fatal(err)
	}
	srv, base := start(t, labEnv(), Options{Access: access, Sessions: session.Options{NewID: countingIDs()}})
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		token string
		want  int // of a tool call
		reset int // of POST /reset
	}{
		"agent":         {i.token(t, i.key, jose.ES256, nil), 200, 403},
		"control":       {i.token(t, i.key, jose.ES256, map[string]any{"scope": ScopeControl}), 200, 200},
		"scp":           {i.token(t, i.key, jose.ES256, map[string]any{"scope": nil, "scp": []string{ScopeAgent}}), 200, 403},
		"no scope":      {i.token(t, i.key, jose.ES256, map[string]any{"scope": "openid"}), 403, 403},
		"other scope":   {i.token(t, i.key, jose.ES256, map[string]any{"scope": ScopeAgent + "s"}), 403, 403},
		"expired":       {i.token(t, i.key, jose.ES256, map[string]any{"exp": time.Now().Add(-time.Minute).Unix()}), 401, 401},
		"never expires": {i.token(t, i.key, jose.ES256, map[string]any{"exp": nil}), 401, 401},
		"audience":      {i.token(t, i.key, jose.ES256, map[string]any{"aud": "https://other.example"}), 401, 401},
		"audiences":     {i.token(t, i.key, jose.ES256, map[string]any{"aud": []string{"x", "https://env.example/mcp"}}), 200, 403},
		"issuer":        {i.token(t, i.key, jose.ES256, map[string]any{"iss": "https://evil.example"}), 401, 401},
		"other key":     {i.token(t, other, jose.ES256, nil), 401, 401},
		"hmac":          {i.token(t, []byte("0123456789abcdef0123456789abcdef"), jose.HS256, nil), 401, 401},
		"odd scope":     {i.token(t, i.key, jose.ES256, map[string]any{"scope": 7}), 401, 401},
		"garbage":       {"a.b.c", 401, 401},
	} {
		t.Run(name, func(t *testing.T) {
			status, reply := post(t, base+"/mcp", rpcCall("say", `{"text":"x"}`, ""), bearer(c.token)...)
			if status != c.want || (c.want == 200) != strings.Contains(reply, `"data":"x"`) {
				t.Errorf("%d %s", status, reply)
			}
			if status, reply := post(t, base+"/reset", `{}`, bearer(c.token)...); status != c.reset {
				t.Errorf("reset: %d %s", status, reply)
			}
		})
	}
	active(t, srv, 0)

	// A client that has no token is told where to get one.
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/mcp", strings.NewReader(initializeBody))
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if got, want := res.Header.Get("WWW-Authenticate"), `Bearer realm="openenv", resource_metadata="`+base+resourcePath+`"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, path := range []string{resourcePath, resourcePath + "/mcp"} {
		var m struct {
			Resource string
			Servers  []string `json:"authorization_servers"`
		}
		get(t, base+path, &m)
		if m.Resource != "https://env.example/mcp" || len(m.Servers) != 1 || m.Servers[0] != i.URL {
			t.Errorf("got %+v", m)
		}
	}
}

// What one subject's client has initialised, another's cannot use.
func TestSubjectsAreKeptApart(t *testing.T) {
	i := newIssuer(t)
	access, err := Issuer(t.Context(), nil, i.URL, "https://env.example/mcp")
	if err != nil {
		t.Fatal(err)
	}
	_, base := start(t, labEnv(), Options{Access: access})
	alice, bob := i.token(t, i.key, jose.ES256, nil), i.token(t, i.key, jose.ES256, map[string]any{"sub": "bob"})
	cs := connectWith(t, base+"/mcp", alice)
	say(t, cs, "hers")
	if status, _ := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append(asAgent(cs.ID()), bearer(bob)...)...); status != http.StatusNotFound {
		t.Errorf("another's request got %d", status)
	}
	if status, _ := request(t, http.MethodDelete, base+"/mcp", "", append(asAgent(cs.ID()), bearer(bob)...)...); status != http.StatusNotFound {
		t.Errorf("another's goodbye got %d", status)
	}
	say(t, cs, "still hers")
	again := i.token(t, i.key, jose.ES256, map[string]any{"jti": "2"}) // a token that is renewed is the same subject's
	if status, _ := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append(asAgent(cs.ID()), bearer(again)...)...); status != http.StatusOK {
		t.Errorf("a renewed token got %d", status)
	}
}

// Callers whom a verifier gives no names are not taken for one another.
func TestSubjectsWithoutNames(t *testing.T) {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{Scopes: []string{ScopeAgent}, Expiration: time.Now().Add(time.Hour)}, nil
	}
	_, base := start(t, labEnv(), Options{Access: Access{Verify: verify}})
	cs := connectWith(t, base+"/mcp", "one")
	for token, want := range map[string]int{"one": http.StatusOK, "two": http.StatusNotFound} {
		if status, _ := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, append(asAgent(cs.ID()), bearer(token)...)...); status != want {
			t.Errorf("token %s got %d, want %d", token, status, want)
		}
	}
}

// A provider that does not answer with its keys costs a request some time, and is no verdict on its token.
func TestIssuerThatHangs(t *testing.T) {
	i := newIssuer(t)
	access, err := Issuer(t.Context(), nil, i.URL, "https://env.example/mcp")
	if err != nil {
		t.Fatal(err)
	}
	ctx, gone := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer gone()
	i.hangs.Store(true)
	if _, err := access.Verify(ctx, i.token(t, i.key, jose.ES256, nil), nil); err == nil || errors.Is(err, auth.ErrInvalidToken) {
		t.Errorf("got %v", err)
	}
}

// A tokenCarrier sends a token with each request.
type tokenCarrier struct{ token string }

func (c tokenCarrier) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+c.token)
	return http.DefaultTransport.RoundTrip(r)
}

// connectWith connects the Go SDK's client with a token.
func connectWith(t *testing.T, url, token string) *mcp.ClientSession {
	t.Helper()
	return connectOver(t, nil, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: tokenCarrier{token}}})
}

// certificate makes a certificate of 127.0.0.1 that is its own authority.
func certificate(t *testing.T) (certFile, keyFile string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, text := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, pool
}

// HTTPS on both listeners, for every kind of door, and addresses that say so.
func TestTLS(t *testing.T) {
	certFile, keyFile, pool := certificate(t)
	stdout, stderr, stop := runMain(t, labEnv(), []string{"-addr", "127.0.0.1:0", "-control-addr", "127.0.0.1:0", "-tls-cert", certFile, "-tls-key", keyFile}, nil)
	var urls []string
	waitFor(t, "the addresses", func() bool {
		urls = httpsAddress.FindAllString(stdout.String(), -1)
		return len(urls) > 1
	})
	base, control := urls[0], urls[1]
	if res, err := http.Get(strings.Replace(base, "https", "http", 1)); err != nil || res.Body.Close() != nil || res.StatusCode != http.StatusBadRequest {
		t.Errorf("plain HTTP got %v, %v", res, err)
	}
	waitFor(t, "the log's word on it", func() bool { return strings.Contains(stderr.String(), "event=http_error") })
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
	t.Cleanup(client.CloseIdleConnections)
	do := func(method, url, body string) (int, string) {
		r, _ := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	_, reply := do(http.MethodPost, base+"/mcp", expand("rpc openenv/session/create"))
	var created struct {
		Result struct {
			ID string `json:"session_id"`
		}
	}
	unmarshal(t, reply, &created)
	for from, url := range map[string]string{
		"POST": base + "/mcp", "control": control + "/sessions/" + created.Result.ID + "/agents",
	} {
		body := ""
		if from == "POST" {
			body = expand(`rpc openenv/session/agent {"session_id":"` + created.Result.ID + `"}`)
		}
		_, reply := do(http.MethodPost, url, body)
		if !strings.Contains(reply, `"url":"`+base+`/mcp/`) {
			t.Errorf("%s: an address %s", from, reply)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	cs := connectOver(t, nil, &mcp.StreamableClientTransport{Endpoint: base + "/mcp", HTTPClient: client})
	if _, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "point"}); err != nil {
		t.Error(err)
	}
	ws := dialOver(t, base+"/ws", &websocket.DialOptions{HTTPClient: client})
	if got := ws.ask(stepFrame("say", `{"text":"x"}`)); !strings.Contains(got, `"data":"x"`) {
		t.Errorf("got %s", got)
	}
	if res, err := http.Get("http" + strings.TrimPrefix(base, "https") + "/health"); err == nil {
		res.Body.Close()
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("plain HTTP got %d", res.StatusCode)
		}
	}
	cs.Close()
	ws.CloseNow()
	if code := stop(nil); code != exitOK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

var httpsAddress = regexp.MustCompile(`https://127\.0\.0\.1:\d+`)

// Scopes come as a string or as a list, in either claim.
func TestScopeClaims(t *testing.T) {
	i := newIssuer(t)
	access, err := Issuer(t.Context(), nil, i.URL, "https://env.example/mcp")
	if err != nil {
		t.Fatal(err)
	}
	_, base := start(t, labEnv(), Options{Access: access})
	for _, claims := range []map[string]any{
		{"scope": "a " + ScopeAgent}, {"scope": []string{"a", ScopeAgent}}, {"scope": nil, "scp": ScopeAgent + " a"}, {"scope": "a", "scp": []string{ScopeAgent}},
	} {
		if status, reply := post(t, base+"/mcp", rpcCall("say", `{"text":"x"}`, ""), bearer(i.token(t, i.key, jose.ES256, claims))...); status != http.StatusOK {
			t.Errorf("%v: %d %s", claims, status, reply)
		}
	}
}

// An issuer that cannot be asked says nothing of a token; the log says why. And tokens that are not its own do not become
// questions to it.
func TestIssuerThatIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		i := &issuer{Server: &httptest.Server{URL: "https://issuer.example"}, key: key}
		asked, down := 0, false
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			w := httptest.NewRecorder()
			w.Header().Set("Content-Type", "application/json")
			if r.URL.Path == "/keys" {
				if asked++; down {
					return nil, errors.New("no route")
				}
				json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "ES256", Use: "sig"}}})
			} else {
				json.NewEncoder(w).Encode(map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys", "id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"}})
			}
			return w.Result(), nil
		})}
		access, err := Issuer(t.Context(), client, i.URL, "https://env.example/mcp")
		if err != nil {
			t.Fatal(err)
		}
		log := newEventLog()
		o := log.options()
		o.Access = access
		_, web := serveInMemory(t, labEnv(), o)
		status := func(token string) int {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(expand("rpc tools/list")))
			r.Header.Set("Authorization", "Bearer "+token)
			res, err := web.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			if later := res.Header.Get("Retry-After") != ""; later != (res.StatusCode == http.StatusServiceUnavailable) {
				t.Errorf("%s with Retry-After: %v", res.Status, later)
			}
			return res.StatusCode
		}
		good := i.token(t, key, jose.ES256, nil)
		down = true
		if got := status(good); got != http.StatusServiceUnavailable {
			t.Errorf("an issuer that is down: %d", got)
		}
		log.want(t, "refused", "status", "503", "cause", "no route")
		down = false
		time.Sleep(refetchAfter)
		if got := status(good); got != http.StatusOK {
			t.Errorf("an issuer that is up again: %d", got)
		}
		log.none(t, slog.LevelError)
		other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		before := asked
		for range 50 {
			if got := status(i.token(t, other, jose.ES256, nil)); got != http.StatusUnauthorized {
				t.Fatalf("another's token: %d", got)
			}
		}
		if asked != before {
			t.Errorf("the issuer was asked %d times", asked-before)
		}
		if got := status(i.token(t, key, jose.ES256, map[string]any{"aud": "https://other.example"})); got != http.StatusUnauthorized {
			t.Errorf("another audience: %d", got)
		}
		log.want(t, "refused", "status", "401", "cause", "other.example")
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
