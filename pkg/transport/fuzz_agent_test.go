package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/session"
)

// The target for clients that have initialised, over HTTP and on a connection of their own.

// An agentReading is what the reading makes of a message of such a client.
type agentReading struct {
	refused bool // it is no request, notification or answer
	id      any  // of the answer that is due
	due     bool
	method  string
	params  any
}

func readAgentMessage(v any) (r agentReading) {
	r.refused, r.due = true, true
	object, ok := v.(map[string]any)
	if !ok {
		return r
	}
	id, hasID := object["id"]
	switch n := id.(type) {
	case string:
	case nil:
		if hasID { // MCP has no such requests, and notifications have none
			return r
		}
	case json.Number:
		if i, err := n.Int64(); err != nil || i > 1<<53 || i < -1<<53 {
			return r
		}
	default:
		return r
	}
	r.id = id
	r.method, _ = object["method"].(string)
	r.params = object["params"]
	r.refused = r.method == "" || object["jsonrpc"] != "2.0"
	r.due = r.refused || hasID
	return r
}

// eventsOf are the messages in the body of an answer to a POST: one of JSON, or those of a stream.
func eventsOf(t *testing.T, body []byte) (all [][]byte) {
	t.Helper()
	if len(body) == 0 || body[0] == '{' || body[0] == '[' {
		return append(all, body)
	}
	for l := range bytes.SplitSeq(body, []byte("\n")) {
		switch data, ok := bytes.CutPrefix(l, []byte("data: ")); {
		case ok && len(data) > 0:
			all = append(all, data)
		case len(l) > 0 && !ok && !bytes.HasPrefix(l, []byte("id: ")) && !bytes.HasPrefix(l, []byte("event: ")) && !bytes.HasPrefix(l, []byte(":")) && !bytes.HasPrefix(l, []byte("data:")) && !bytes.HasPrefix(l, []byte("retry: ")):
			t.Fatalf("no event: %q", body)
		}
	}
	return all
}

// fuzzAgents are a client over HTTP, by its id, and one on a connection of its own, both initialised.
func fuzzAgents(f *testing.F, srv *Server) (headers []string, d *dialog, box mailbox) {
	status, reply := recorded(srv, http.MethodPost, "/mcp", []byte(initializeBody), "Accept", "application/json, text/event-stream")
	if status != http.StatusOK || !bytes.Contains(reply, []byte(`"protocolVersion":"2025-11-25"`)) {
		f.Fatalf("%d %s", status, reply)
	}
	ids := registered(srv)
	if len(ids) != 1 {
		f.Fatalf("agents %q", ids)
	}
	headers = []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", ids[0], "Mcp-Protocol-Version", "2025-11-25"}
	live, err := srv.Sessions().Open(f.Context(), session.ByStdio, "")
	if err != nil {
		f.Fatal(err)
	}
	box = make(mailbox, 16)
	d = &dialog{s: srv, peer: func() peer { return peer{session: live, agent: true} }, write: box.write}
	f.Cleanup(func() {
		d.leave()
		d.leaving.Wait()
	})
	if reply := d.answer(f.Context(), []byte(initializeBody)); reply != nil {
		f.Fatalf("got %s", reply)
	}
	if first := <-box; !bytes.Contains(first, []byte(`"protocolVersion":"2025-11-25"`)) {
		f.Fatalf("got %s", first)
	}
	initialized := []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	if reply := d.answer(f.Context(), initialized); reply != nil {
		f.Fatalf("got %s", reply)
	}
	if status, reply := recorded(srv, http.MethodPost, "/mcp", initialized, headers...); status != http.StatusAccepted {
		f.Fatalf("%d %s", status, reply)
	}
	return headers, d, box
}

// FuzzAgent holds what clients get that have initialised to the rules of JSON-RPC and MCP: an answer to each request, and to
// nothing else, and the same by both kinds of door.
func FuzzAgent(f *testing.F) {
	srv := fuzzServer(f)
	headers, d, box := fuzzAgents(f, srv)
	addTraffic(f, requests)
	for _, found := range []string{`{"id":0,"method":"nosuch"}`, `{"jsonrpc":"2.0","id":1,"method":"nosuch","params":[]}`, `{"jsonrpc":"2.0","params":0}`,
		`{"jsonrpc":"2.0","method":"tools/call","params":{"name":"say","arguments":{"text":"hello"}}}`, `{"jsonrpc":"2.0","method":"initialize"}`} { // what this has found
		f.Add([]byte(found))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		request, err := reading(text)
		unsure := errors.Is(err, errUnsure)
		r := readAgentMessage(request)
		told := askDialog(t, d, box, text)
		status, body := recorded(srv, http.MethodPost, "/mcp", text, headers...)
		posted := eventsOf(t, body)
		if status >= 500 || len(told) > 1 || unsure {
			if status >= 500 || len(told) > 1 {
				t.Fatalf("%d %s; %s", status, body, told)
			}
			return
		}
		if r.refused && len(told) == 0 && at(request, "method") == nil { // an answer to nothing that was asked
			r.due = false
		}
		if r.due != (len(told) == 1) {
			t.Fatalf("an answer is due: %t, got %s", r.due, told)
		}
		code, codeOverHTTP := 0, 0
		for _, reply := range told {
			code = checkAgentAnswer(t, reply, r, err)
		}
		if status == http.StatusAccepted {
			if len(body) > 0 || r.due && !r.refused && err == nil {
				t.Fatalf("%d %s", status, body)
			}
		} else {
			for _, reply := range posted {
				codeOverHTTP = checkAgentAnswer(t, reply, r, err)
			}
			if len(posted) != 1 || (status == http.StatusOK) != (codeOverHTTP == 0) && status != http.StatusBadRequest && status != http.StatusOK {
				t.Fatalf("%d %s", status, body)
			}
		}
		if _, batch := request.([]any); code != codeOverHTTP && !batch && r.due && !bytes.Contains(text, []byte(mcp.MetaKeyProtocolVersion)) && r.method != "initialize" {
			t.Fatalf("a dialog says %s; HTTP %d %s", told, status, body)
		}
		call := []byte(strings.Replace(rpcCall("say", `{"text":"on"}`, ""), `"id":7`, `"id":"fuzz call"`, 1))
		if replies := askDialog(t, d, box, call); len(replies) != 1 || !bytes.Contains(replies[0], []byte(`"text":"on"`)) {
			t.Fatalf("the dialog does not go on: %s", replies)
		}
		if status, reply := recorded(srv, http.MethodPost, "/mcp", call, headers...); status != http.StatusOK || !bytes.Contains(reply, []byte(`"text":"on"`)) {
			t.Fatalf("the session does not go on: %d %s", status, reply)
		}
	})
}

// askDialog sends a message and a ping, and returns what came besides the answer to that.
func askDialog(t *testing.T, d *dialog, box mailbox, text []byte) (replies [][]byte) {
	t.Helper()
	if reply := d.answer(t.Context(), text); reply != nil {
		replies = append(replies, reply)
	}
	if reply := d.answer(t.Context(), numbered("fuzz ping", "ping", "{}")); reply != nil {
		t.Fatalf("a ping got %s", reply)
	}
	within(t, "the answers", d.last().settled())
	ponged := false
	for len(box) > 0 {
		if reply := <-box; bytes.Contains(reply, []byte(`"id":"fuzz ping"`)) {
			ponged = true
		} else {
			replies = append(replies, reply)
		}
	}
	if !ponged {
		t.Fatalf("the ping got nothing; besides it came %s", replies)
	}
	return replies
}

// checkAgentAnswer holds an answer to the message, and returns the code of its error, or 0. unread is why the message could
// not be read.
func checkAgentAnswer(t *testing.T, reply []byte, r agentReading, unread error) (code int) {
	t.Helper()
	answer := mustRead(t, reply)
	id := at(answer, "id")
	if id != nil && id != r.id {
		t.Fatalf("the answer is to another request than %v: %s", r.id, reply)
	}
	code = checkRPCShape(t, reply, id)
	text, says := sayingOf(at(r.params, "arguments"))
	params, _ := r.params.(map[string]any)
	switch {
	case unread == errNoJSON && code != rpcParse, unread == nil && r.refused && code == 0, unread == nil && code == rpcParse, code == rpcInternal:
		t.Fatalf("code %d: %s", code, reply)
	case unread == nil && !r.refused && id != r.id:
		t.Fatalf("the answer lacks the id %v: %s", r.id, reply)
	case unread == nil && !r.refused && r.due && r.method == "tools/call" && params["name"] == "say" && says && len(params) == 2 && at(answer, "result", "structuredContent", "result") != text:
		t.Fatalf("say %q got %s", text, reply)
	}
	return code
}
