package transport

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// apiDocument is what a test reads of an OpenAPI document.
type apiDocument struct {
	Paths map[string]map[string]struct {
		Responses map[string]struct {
			Content map[string]any
			Headers map[string]struct{ Required bool }
		}
		Security []map[string][]string
	}
	Components struct{ SecuritySchemes map[string]any }
}

// A provocation is a request and the status that it has as its answer. schemathesis (see interop) makes those that follow from
// the document; these are the others.
type provocation struct {
	method, url, path, body string
	headers                 []string
	status                  int
}

// hold holds the answer to what the document says of it.
func (d apiDocument) hold(t *testing.T, p provocation) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), p.method, p.url, strings.NewReader(p.body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(p.headers); i += 2 {
		r.Header.Set(p.headers[i], p.headers[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var text []byte
	if res.StatusCode != http.StatusSwitchingProtocols {
		text, _ = io.ReadAll(res.Body)
	}
	if res.StatusCode != p.status {
		t.Errorf("%s %s: %d %s, want %d", p.method, p.path, res.StatusCode, text, p.status)
		return
	}
	said, ok := d.Paths[p.path][strings.ToLower(p.method)].Responses[strconv.Itoa(res.StatusCode)]
	if !ok {
		t.Errorf("%s %s: the document has no %d", p.method, p.path, res.StatusCode)
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if _, ok := said.Content[kind]; !ok && len(text) > 0 {
		t.Errorf("%s %s: %d is %q, the document has %v", p.method, p.path, res.StatusCode, kind, slices.Collect(maps.Keys(said.Content)))
	}
	if kind == "application/json" && !json.Valid(text) {
		t.Errorf("%s %s: %d is no JSON: %q", p.method, p.path, res.StatusCode, text)
	}
	for name, h := range said.Headers {
		if h.Required && res.Header.Get(name) == "" {
			t.Errorf("%s %s: %d comes without %s", p.method, p.path, res.StatusCode, name)
		}
	}
}

var handshake = []string{"Connection", "Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}

func TestOpenAPIHasWhatIsAnswered(t *testing.T) {
	_, base, control := startBoth(t, Options{MaxMessage: 1000, Sessions: session.Options{NewID: countingIDs(), Max: 1}})
	var doc apiDocument
	get(t, control+"/openapi.json", &doc)
	long := strings.Repeat(" ", 1001)
	sessions := "/sessions/{session}"
	for path, operations := range doc.Paths {
		for method := range operations {
			p := provocation{method: strings.ToUpper(method), path: path, url: control + strings.NewReplacer("{session}", "x", "{id}", "x").Replace(path)}
			p.headers, p.status = []string{"Origin", "https://elsewhere.example"}, http.StatusForbidden
			doc.hold(t, p)
			p.url, p.headers, p.status = p.url+"?session_id=%zz", nil, http.StatusBadRequest
			doc.hold(t, p)
		}
	}
	for _, path := range []string{"/reset", "/step", "/mcp", sessions + "/agents"} {
		p := provocation{method: http.MethodPost, path: path, url: control + strings.Replace(path, "{session}", "x", 1)}
		p.body, p.status = long, http.StatusRequestEntityTooLarge
		doc.hold(t, p)
		p.body, p.headers, p.status = "x", []string{"Content-Encoding", "gzip"}, http.StatusUnsupportedMediaType
		doc.hold(t, p)
	}
	for _, path := range []string{"/ws", "/mcp"} {
		doc.hold(t, provocation{method: http.MethodGet, path: path, url: base + path, headers: handshake[:2], status: map[string]int{
			"/ws": http.StatusUpgradeRequired, "/mcp": http.StatusMethodNotAllowed,
		}[path]})
		doc.hold(t, provocation{method: http.MethodGet, path: path, url: base + path, headers: handshake[2:], status: http.StatusUpgradeRequired})
		doc.hold(t, provocation{method: http.MethodGet, path: path, url: base + path, headers: handshake[:6], status: http.StatusBadRequest})
		doc.hold(t, provocation{method: http.MethodGet, path: path, url: base + path + "?announce=1&session_id=x", headers: handshake, status: http.StatusNotFound})
	}
	id := createSession(t, base)
	doc.hold(t, provocation{method: http.MethodGet, path: "/ws", url: base + "/ws?announce=1&session_id=" + id, headers: handshake, status: http.StatusSwitchingProtocols})
	for path, body := range map[string]string{"/reset": "", "/step": listToolsBody, "/mcp": initializeBody} {
		doc.hold(t, provocation{
			method: http.MethodPost, path: path, url: base + path, body: body, status: http.StatusServiceUnavailable,
			headers: []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream"},
		})
	}
	doc.hold(t, provocation{method: http.MethodGet, path: "/ws", url: base + "/ws?announce=1", headers: handshake, status: http.StatusServiceUnavailable})
}

const listToolsBody = `{"action":{"type":"list_tools"}}`

// A client of the stateless revision is told when to come again, too.
func TestFullServerSaysWhenToComeAgain(t *testing.T) {
	_, base := start(t, gym.Environment[*mcp.Server]{
		Name: "own", Stateless: true,
		New: func(context.Context, *gym.Session) (*mcp.Server, error) {
			return mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil), nil
		},
		Server: func(s *mcp.Server) *mcp.Server { return s },
	}, Options{Sessions: session.Options{Max: 1}})
	createSession(t, base)
	var doc apiDocument
	get(t, base+"/openapi.json", &doc)
	doc.hold(t, provocation{
		method: http.MethodPost, path: "/mcp", url: base + "/mcp", body: `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, status: http.StatusServiceUnavailable,
		headers: []string{"Content-Type", "application/json", "Accept", "application/json, text/event-stream", "MCP-Protocol-Version", stateless},
	})
}

func TestOpenAPITellsWhoIsAskedForAToken(t *testing.T) {
	_, base := start(t, labEnv(), Options{Access: Access{ControlTokens: []access.Token{controlToken}}, RequestsPerSecond: 1000})
	var doc apiDocument
	get(t, base+"/openapi.json", &doc)
	if doc.Components.SecuritySchemes["token"] == nil {
		t.Error("there is no security scheme")
	}
	for path, operations := range doc.Paths {
		for method, o := range operations {
			asked := path != "/health" && path != "/metadata" && path != "/schema"
			if _, ok := o.Responses["401"]; ok != asked || (o.Security != nil) != asked {
				t.Errorf("%s %s: 401 is there: %v; security %v", method, path, ok, o.Security)
			}
			if _, ok := o.Responses["429"]; !ok {
				t.Errorf("%s %s has no 429", method, path)
			}
			if asked { // and operators' routes are not in this document
				doc.hold(t, provocation{method: strings.ToUpper(method), path: path, url: base + strings.ReplaceAll(path, "{id}", "x"), status: http.StatusUnauthorized})
			}
		}
	}
}

// What is absent for everyone answers 404 to who shows no token, and the document that others see says so.
func TestOpenAPITellsWhatIsAbsentForOthers(t *testing.T) {
	_, base := start(t, labEnv(), Options{Mode: tools.ModeProduction, Access: Access{ControlTokens: []access.Token{controlToken}}})
	_, text := request(t, http.MethodGet, base+"/openapi.json", "", "Authorization", "Bearer "+controlToken)
	var doc apiDocument
	unmarshal(t, text, &doc)
	for path, operations := range doc.Paths {
		for method := range operations {
			p := provocation{method: strings.ToUpper(method), path: path, url: base + strings.NewReplacer("{session}", "x", "{id}", "x").Replace(path)}
			switch path {
			case "/health", "/metadata", "/schema":
				p.status = http.StatusOK
			case "/mcp", "/mcp/{id}", "/ws":
				p.status = http.StatusUnauthorized
			default:
				p.status = http.StatusNotFound
			}
			doc.hold(t, p)
		}
	}
}
