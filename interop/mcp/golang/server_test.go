package golang_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/openenv-go/openenv-go/interop/internal/kit"
)

var client = &http.Client{Timeout: 20 * time.Second}

// request sends an HTTP request and returns the answer's status, headers and text. Extra headers come as name, value.
func request(t *testing.T, method, url, body string, headers ...string) (int, http.Header, string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context()) // a cleanup asks too; the client has a time-out
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		req.Header.Set(pair[0], pair[1])
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header, string(text)
}

// rpc sends a JSON-RPC request without a handshake and decodes its result.
func rpc(t *testing.T, url, method string, params map[string]string, result any) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		t.Fatal(err)
	}
	_, _, text := request(t, http.MethodPost, url, string(body))
	var answer struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || answer.Result == nil {
		t.Fatalf("%s: %s", method, text)
	}
	if err := json.Unmarshal(answer.Result, result); err != nil {
		t.Fatal(err)
	}
}

type session struct {
	ID       string `json:"session_id"`
	OpenedBy string `json:"opened_by"`
	Agent    bool   `json:"agent"`
}

// sessions are what the server tells its operators, by their ids.
func sessions(t *testing.T, server kit.Server) map[string]session {
	t.Helper()
	_, _, text := request(t, http.MethodGet, server.Control+"/sessions", "")
	var list struct{ Sessions []session }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	byID := map[string]session{}
	for _, s := range list.Sessions {
		byID[s.ID] = s
	}
	return byID
}

// A door is a way to a session of an MCP client's own.
type door struct {
	name     string
	openedBy string
	// address is where a client finds its session, until the end of the test.
	address func(t *testing.T, base string) string
}

var doors = []door{
	{"plain", "initialize", func(_ *testing.T, base string) string { return base + "/mcp" }},
	// A trainer has the session and gives the client a handle on it.
	{"handle", "create", func(t *testing.T, base string) string {
		t.Helper()
		var created struct {
			ID string `json:"session_id"`
		}
		rpc(t, base+"/mcp", "openenv/session/create", nil, &created)
		var minted struct{ Handle, URL string }
		rpc(t, base+"/mcp", "openenv/session/agent", map[string]string{"session_id": created.ID}, &minted)
		if minted.URL != base+"/mcp/"+minted.Handle {
			t.Errorf("the handle's address is %s", minted.URL)
		}
		t.Cleanup(func() {
			var closed struct{ Closed bool }
			rpc(t, base+"/mcp", "openenv/session/close", map[string]string{"session_id": created.ID}, &closed)
			if !closed.Closed {
				t.Error("the session is not closed")
			}
		})
		return minted.URL
	}},
}

// sendsEventIDs tells whether streams can be resumed. It asks by hand, since a client keeps event ids to itself.
func sendsEventIDs(t *testing.T, base string) bool {
	t.Helper()
	status, header, text := request(t, http.MethodPost, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+
		`"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"by hand","version":"1"}}}`,
		"Accept", "application/json, text/event-stream")
	if status != http.StatusOK {
		t.Fatalf("initialize: %d %s", status, text)
	}
	request(t, http.MethodDelete, base+"/mcp", "", "Mcp-Session-Id", header.Get("Mcp-Session-Id"))
	return strings.Contains("\n"+text, "\nid:")
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("still not so after 10 s")
		}
	}
}
