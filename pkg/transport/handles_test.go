package transport

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/session"
)

// A trainer resets, mints a handle over its own socket and gives its address to an MCP client, which plays and leaves.
func TestTrainerGivesAnAgentAHandle(t *testing.T) {
	srv, base := startLab(t, false)
	ws := dial(t, base+"/ws")
	ws.ask(`{"type":"reset","data":{"episode_id":"e"}}`)
	var f struct {
		Data struct{ Result struct{ Handle, URL string } }
	}
	unmarshal(t, ws.ask(`{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"method":"openenv/session/agent"}}`), &f)
	handle := f.Data.Result.Handle
	cs := connectMCP(t, f.Data.Result.URL)
	say(t, cs, "played")
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "point"})
	if err != nil {
		t.Fatal(err)
	}
	if text := jsonOf(t, res); strings.Contains(text, "reward") || strings.Contains(text, labSession+`"`) {
		t.Errorf("the agent is told %s", text)
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	const played = `{"type":"state","data":{"episode_id":"e","step_count":2,"reward_total":1,"last_reward":0.5,"done":false}}`
	if got := ws.ask(`{"type":"state"}`); got != played {
		t.Errorf("got %s, want %s", got, played)
	}
	again := connectMCP(t, base+"/mcp?session_id="+handle) // a handle outlives the agent that used it
	say(t, again, "again")
	active(t, srv, 1)
}

// A handle opens tools and nothing else, on no door; and it ends with its session.
func TestHandleOpensToolsOnly(t *testing.T) {
	srv, base := startLab(t, false)
	id := createSession(t, base)
	handle := mint(t, base, id)
	for _, method := range []string{"openenv/session/create", "openenv/session/close", "openenv/session/agent", "reset"} {
		for _, url := range []string{base + "/mcp/" + handle, base + "/mcp?session_id=" + handle} {
			for _, params := range []string{`{}`, `{"session_id":"` + handle + `"}`, `{"session_id":"` + id + `"}`} {
				_, reply := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)
				if !strings.Contains(reply, "-32601") {
					t.Errorf("%s %s at a handle: %s", method, params, reply)
				}
			}
		}
		_, reply := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{"session_id":"`+handle+`"}}`)
		if method != "openenv/session/create" && !strings.Contains(reply, `"error"`) {
			t.Errorf("%s with a handle: %s", method, reply)
		}
		ws := dial(t, base+"/mcp/"+handle)
		if got := ws.ask(`{"jsonrpc":"2.0","id":1,"method":"` + method + `"}`); !strings.Contains(got, "-32601") {
			t.Errorf("%s over a socket: %s", method, got)
		}
	}
	for _, path := range []string{"/reset", "/step", "/state"} {
		method, body := http.MethodPost, `{"action":{"type":"list_tools"}}`
		if path == "/state" {
			method, body = http.MethodGet, ""
		}
		if status, reply := request(t, method, base+path+"?session_id="+handle, body); status != http.StatusNotFound || strings.Contains(reply, id) {
			t.Errorf("%s got %d %s", path, status, reply)
		}
	}
	ws := dial(t, base+"/ws?session_id="+handle)
	if got := ws.receive(); !strings.Contains(got, "SESSION_ERROR") || strings.Contains(got, `"`+id+`"`) {
		t.Errorf("/ws got %s", got)
	}
	if code := ws.closed(); code != websocket.StatusPolicyViolation {
		t.Errorf("closed with %v", code)
	}
	if status, _ := request(t, http.MethodDelete, base+"/mcp", "", "Mcp-Session-Id", handle); status != http.StatusNotFound {
		t.Errorf("DELETE with a handle got %d", status)
	}
	post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/close","params":{"session_id":"`+id+`"}}`)
	if status, _ := post(t, base+"/mcp/"+handle, rpcCall("say", `{"text":"x"}`, "")); status != http.StatusNotFound {
		t.Errorf("the handle of a session that has ended got %d", status)
	}
	if _, _, err := srv.Sessions().Reach(handle); err == nil {
		t.Error("the handle is kept after its session")
	}
}

func TestHandlesAreBounded(t *testing.T) {
	srv, base := startLab(t, false)
	id := createSession(t, base)
	s, err := srv.Sessions().Get(id)
	if err != nil {
		t.Fatal(err)
	}
	for range session.MaxHandles {
		if _, err := s.Mint(); err != nil {
			t.Fatal(err)
		}
	}
	_, reply := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/agent","params":{"session_id":"`+id+`"}}`)
	if !strings.Contains(reply, "-32600") || !strings.Contains(reply, "64 handles") {
		t.Errorf("got %s", reply)
	}
}
