package transport

import (
	"strings"
	"testing"
)

// garbage are messages that are no good, and what they get.
var garbage = []struct{ text, bare, agent string }{
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
