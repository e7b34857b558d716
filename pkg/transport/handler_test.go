package transport

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A handler in another program's mux works too.
func TestHandlerUnderAnotherServer(t *testing.T) {
	srv, err := New(t.Context(), labEnv(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close(context.Background())
	rec := httptest.NewRecorder()
	srv.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metadata", nil))
	if !strings.Contains(rec.Body.String(), `"name":"lab"`) {
		t.Error(rec.Body)
	}
}

// What is in front of the handler may hide that a connection can be taken over, or put another body in a request's place.
func TestHandlerBehindMiddleware(t *testing.T) {
	const limit = 1000
	srv, err := New(t.Context(), labEnv(), Options{MaxMessage: limit})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close(context.Background())
	for name, c := range map[string]struct {
		front  func(http.Handler) http.Handler
		status int
		body   string
	}{
		"hides the connection": {func(h http.Handler) http.Handler { return http.TimeoutHandler(h, time.Minute, "") }, http.StatusNotImplemented, "ResponseWriter"},
		"replaces the body": {func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				r.Method, r.URL.Path = http.MethodPost, "/mcp"
				r.Header = http.Header{"Content-Type": {"application/json"}}
				r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", limit+1)+"{}")), 2
				h.ServeHTTP(w, r)
			})
		}, http.StatusRequestEntityTooLarge, "1000"},
	} {
		t.Run(name, func(t *testing.T) {
			front := httptest.NewServer(c.front(srv))
			defer front.Close()
			w := dialWire(t, front.URL, "GET /ws\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", "")
			res, err := http.ReadResponse(w.in, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(res.Body)
			if err != nil || res.StatusCode != c.status || !strings.Contains(string(body), c.body) || !json.Valid(body) {
				t.Errorf("got %d %s, %v; want %d with %q", res.StatusCode, body, err, c.status, c.body)
			}
		})
	}
	if n := srv.Sessions().Active(); n != 0 {
		t.Errorf("there are %d sessions", n)
	}
}

// A result with a structured content of this project's own type is the author's all the same.
func TestStructuredContentOfAuthors(t *testing.T) {
	for value, good := range map[string]bool{`{"a":1}`: true, `{bad`: false, `{"a":1,"a":2}`: false, ``: false} {
		env := labEnv()
		env.Tools = tools.New(tools.Func("make", "Makes a result.", func(*lab, context.Context, struct{}) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{}, StructuredContent: tools.Structured{Value: []byte(value)}}, nil
		}))
		_, base := start(t, env, Options{})
		for path, body := range map[string]string{"/mcp": rpcCall("make", "{}", ""), "/step": `{"action":{"type":"call_tool","tool_name":"make","arguments":{}}}`} {
			_, text := request(t, http.MethodPost, base+path, body)
			var reply struct {
				Result struct {
					Structured json.RawMessage `json:"structuredContent"`
				}
				Observation struct {
					Result struct {
						Structured json.RawMessage `json:"structured_content"`
					}
				}
			}
			if err := json.Unmarshal([]byte(text), &reply); err != nil {
				t.Errorf("%s with %s: %v: %s", path, value, err, text)
			}
			if has := value != "" && string(reply.Result.Structured)+string(reply.Observation.Result.Structured) == value; has != good {
				t.Errorf("%s with %s: %s", path, value, text)
			}
		}
	}
}
