package transport

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// The clients of the tests: WebSockets and HTTP requests as they come, and what they send.

// testTime bounds any single exchange of a test; nothing waits for it unless something is broken.
const testTime = 20 * time.Second

// wsClient is a WebSocket that speaks JSON text.
type wsClient struct {
	t *testing.T
	*websocket.Conn
}

func dial(t *testing.T, url string) wsClient {
	t.Helper()
	return dialOver(t, url, nil)
}

// dialOver opens a WebSocket at an http or https address, with options.
func dialOver(t *testing.T, url string, o *websocket.DialOptions) wsClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(url, "http"), o)
	if err != nil {
		t.Fatal(err)
	}
	c.SetReadLimit(DefaultMaxMessage)
	t.Cleanup(func() { c.CloseNow() })
	return wsClient{t, c}
}

func (c wsClient) send(text string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

func (c wsClient) receive() string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	_, b, err := c.Read(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

func (c wsClient) ask(text string) string {
	c.t.Helper()
	c.send(text)
	return c.receive()
}

// closed waits for the server to close the socket and returns the code.
func (c wsClient) closed() websocket.StatusCode {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	_, b, err := c.Read(ctx)
	if err == nil {
		c.t.Fatalf("got %s, want the socket closed", b)
	}
	return websocket.CloseStatus(err)
}

func post(t *testing.T, url, body string, headers ...string) (status int, reply string) {
	t.Helper()
	return request(t, http.MethodPost, url, body, headers...)
}

func request(t *testing.T, method, url, body string, headers ...string) (status int, reply string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

func createSession(t *testing.T, base string) string {
	t.Helper()
	_, reply := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`)
	var r struct {
		Result struct {
			SessionID string `json:"session_id"`
		}
	}
	unmarshal(t, reply, &r)
	if r.Result.SessionID == "" {
		t.Fatalf("no session: %s", reply)
	}
	return r.Result.SessionID
}

// mint mints a handle and holds its address to its form.
func mint(t *testing.T, base, session string) string {
	t.Helper()
	_, reply := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/agent","params":{"session_id":"`+session+`"}}`)
	var r struct{ Result struct{ Handle, URL string } }
	unmarshal(t, reply, &r)
	if r.Result.Handle == "" || r.Result.Handle == session || r.Result.URL != base+"/mcp/"+r.Result.Handle {
		t.Fatalf("no handle: %s", reply)
	}
	return r.Result.Handle
}

func unmarshal(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}

func withArguments(members, key, args string) string {
	if args == "" {
		return members
	}
	return members + `,"` + key + `":` + args
}

func stepFrame(tool, args string) string {
	return `{"type":"step","data":{` + withArguments(`"type":"call_tool","tool_name":"`+tool+`"`, "arguments", args) + `}}`
}

func rpcCall(tool, args, session string) string {
	params := withArguments(`"name":"`+tool+`"`, "arguments", args)
	if session != "" {
		params += `,"session_id":"` + session + `"`
	}
	return `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{` + params + `}}`
}

// strict decodes what must have no other members.
func strict(t *testing.T, text string, v any) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
}
