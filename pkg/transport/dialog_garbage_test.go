package transport

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A hostile message is no good; bare and agent are the codes that it gets.
type hostile struct{ text, bare, agent string }

var garbage = []hostile{
	{`{`, "-32700", "-32700"},
	{`{"a":1,"a":2}`, "-32700", "-32700"},
	{"\xff", "-32700", "-32700"},
	{strings.Repeat("[", 200), "-32700", "-32700"},
	{`[]`, "-32600", "-32600"},
	{`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, "-32600", "-32600"},
	{`5`, "-32600", "-32600"},
	{`null`, "-32600", "-32600"},
	{`{}`, "-32600", "-32600"},
	{`{"jsonrpc":"1.0","id":1,"method":"tools/list"}`, "-32600", "-32600"},
	{`{"jsonrpc":"2.0","id":1,"method":5}`, "-32600", "-32600"},
	{`{"jsonrpc":"2.0","id":1.5,"method":"tools/list"}`, "-32600", "-32600"},
	{`{"jsonrpc":"2.0","id":{},"method":"tools/list"}`, "-32600", "-32600"},
	{`{"jsonrpc":"2.0","id":99999999999999999999,"method":"nosuch"}`, "-32601", "-32600"},
	{`{"jsonrpc":"2.0","id":null,"method":"nosuch"}`, "-32601", "-32600"},
	{`{"jsonrpc":"2.0","id":1,"method":"nosuch"}`, "-32601", "-32601"},
	{`{"jsonrpc":"2.0","id":1,"method":""}`, "-32600", "-32600"},
	{`{"jsonrpc":"2.0","id":1,"method":"notifications/cancelled","params":{}}`, "-32601", "-32601"},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, "-32602", "-32602"},
	{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":5}`, "-32600", "-32602"},
	{`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{}}`, "-32601", "-32601"},
	{`{"jsonrpc":"2.0","id":1}`, "-32600", "-32600"},
}

// garbageInitializes fail, and leave the dialog as it was.
var garbageInitializes = []string{
	`{"jsonrpc":"2.0","id":1,"method":"initialize"}`,
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":5}`,
	`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`,
	`{"jsonrpc":"2.0","id":null,"method":"initialize","params":{}}`,
	`{"jsonrpc":"2.0","method":"initialize","params":{}}`,
	`{"jsonrpc":"2.0","id":1.5,"method":"initialize","params":{}}`,
}

// Whatever a client sends, it gets an error for it, and its next message is served.
func TestDialogGarbage(t *testing.T) {
	eachDialog(t, labEnv(), func(t *testing.T, srv *Server, _ string, c talker) {
		_, line := c.(*pipeClient)
		for _, g := range garbage {
			if g.text != "\xff" || line { // such a message closes a socket
				want(t, c, g.text, `"jsonrpc":"2.0"`, g.bare)
			}
		}
		for _, text := range garbageInitializes {
			want(t, c, text, `"error"`)
			wantBare(t, c)
		}
		waitFor(t, "the end of those that failed", func() bool { return len(registered(srv)) == 0 })
		become(t, c)
		for _, g := range garbage {
			if g.text != "\xff" || line {
				want(t, c, g.text, `"jsonrpc":"2.0"`, g.agent)
			}
		}
		want(t, c, initializeBody, "-32600")
		for _, nothing := range []string{ // none of these has an answer
			`{"jsonrpc":"2.0","id":99,"result":{}}`, `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}`,
			`{"jsonrpc":"2.0","method":"notifications/nosuch"}`, `{"jsonrpc":"2.0","method":"notifications/progress","params":5}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`, `{"jsonrpc":"2.0","method":"tools/list"}`,
		} {
			c.send(nothing)
		}
		want(t, c, `{"jsonrpc":"2.0","id":"é","method":"ping"}`, `"id":"é"`, `"result":{}`)
		want(t, c, rpcCall("say", `{"text":"still"}`, ""), `"text":"still"`)
	})
}

// Streamable HTTP says the same of it.
func TestGarbageOverHTTP(t *testing.T) {
	_, base := start(t, labEnv(), counted())
	id := createSession(t, base)
	for _, version := range []string{"2025-11-25", "2025-03-26"} {
		headers := []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", rawInitialize(t, base+"/mcp", version), "Mcp-Protocol-Version", version}
		for _, g := range append(slices.Clone(garbage), hostile{initializeBody, "", "-32600"}, hostile{`{"id":1,"method":"ping"}`, "", "-32600"},
			hostile{`{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"say","arguments":{"text":"x"}}}`, "", "-32600"},
			hostile{`{"jsonrpc":"2.0","id":1,"method":"nosuch","params":[]}`, "", "-32602"}, hostile{`[` + initializeBody + `]`, "", "-32600"}) {
			status, reply := post(t, base+"/mcp", g.text, headers...)
			if version == "2025-03-26" && strings.HasPrefix(g.text, `[{"jsonrpc":"2.0","id":1,"method":"ping"`) { // a batch, which this version has
				continue
			}
			if _, reply := post(t, base+"/mcp?session_id="+id, g.text, "Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", stateless); strings.Contains(reply, `"code":0`) || !strings.Contains(reply, `"error"`) {
				t.Errorf("stateless: %.200s got %.300s", g.text, reply)
			}
			if status >= 500 || !strings.Contains(reply, `"code":`+g.agent+`,`) || !strings.Contains(reply, `"jsonrpc":"2.0"`) {
				t.Errorf("%s: %.200s got %d %.300s, want %s", version, g.text, status, reply, g.agent)
			}
		}
		if status, reply := post(t, base+"/mcp", rpcCall("say", `{"text":"still"}`, ""), headers...); status != http.StatusOK || !strings.Contains(reply, `"text":"still"`) {
			t.Errorf("got %d %s", status, reply)
		}
	}
}
