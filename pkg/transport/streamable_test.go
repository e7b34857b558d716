package transport

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/session"
)

func say(t *testing.T, cs *mcp.ClientSession, text string) {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "say", Arguments: labText{text}})
	if err != nil || res.IsError {
		t.Fatalf("got %v, %v", res, err)
	}
}

func active(t *testing.T, srv *Server, want int) {
	t.Helper()
	if n := srv.Sessions().Active(); n != want {
		t.Errorf("%d sessions, want %d", n, want)
	}
}

// The SDK tells its transport the protocol version by a private context key; without it every request is 2025-03-26.
func TestVersionContexts(t *testing.T) {
	got := versionContexts()
	for _, v := range statefulVersions {
		if got[v] == nil {
			t.Errorf("no context was captured for %s", v)
		}
	}
	if len(statefulVersions) < 3 || slices.Contains(statefulVersions, stateless) {
		t.Errorf("versions %v", statefulVersions)
	}
	// What a version changes on the wire: batches are accepted in 2025-03-26 alone.
	_, base := startLab(t, false)
	for v, accepted := range map[string]bool{"2025-03-26": true, "2025-06-18": false, "2025-11-25": false} {
		id := rawInitialize(t, base+"/mcp", v)
		status, body := post(t, base+"/mcp", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`,
			"Accept", "application/json, text/event-stream", "Mcp-Session-Id", id, "MCP-Protocol-Version", v)
		if (status == http.StatusOK) != accepted {
			t.Errorf("%s: a batch got %d %s", v, status, body)
		}
	}
}

// rawInitialize initialises by hand and returns the Mcp-Session-Id.
func rawInitialize(t *testing.T, url, version string) string {
	t.Helper()
	body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"` + version + `","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	id := res.Header.Get("Mcp-Session-Id")
	if _, err := io.Copy(io.Discard, res.Body); err != nil { // the header comes before the answer
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || id == "" {
		t.Fatalf("initialize got %s", res.Status)
	}
	return id
}

func TestStandardClient(t *testing.T) {
	srv, base := startLab(t, false)
	cs := connectMCP(t, base+"/mcp")
	info := cs.InitializeResult()
	if info.ServerInfo.Name != "lab" || info.ProtocolVersion != "2025-11-25" {
		t.Errorf("server %v speaks %s", info.ServerInfo, info.ProtocolVersion)
	}
	list, err := cs.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 10 {
		t.Fatalf("got %v, %v", list, err)
	}
	for i := range 3 {
		say(t, cs, strings.Repeat("x", i+1))
	}
	s, err := srv.Sessions().Get(labSession)
	if err != nil || s.Steps() != 3 || s.Episode().Steps != 3 {
		t.Errorf("got %v, %v", s, err)
	}
	active(t, srv, 1)
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	active(t, srv, 0) // its DELETE ended the session that its initialize had opened
}

func TestAgentJoinsATrainersSession(t *testing.T) {
	srv, base := startLab(t, false)
	ws := dial(t, base+"/ws")
	ws.ask(`{"type":"reset","data":{"episode_id":"e"}}`)
	cs := connectMCP(t, base+"/mcp?session_id="+labSession)
	say(t, cs, "hello")
	const played = `{"type":"state","data":{"episode_id":"e","step_count":1,"reward_total":0.5,"last_reward":0.5,"done":false}}`
	if got := ws.ask(`{"type":"state"}`); got != played {
		t.Errorf("got %s, want %s", got, played)
	}
	if err := cs.Close(); err != nil {
		t.Error(err)
	}
	active(t, srv, 1)
	ws.ask(stepFrame("point", "{}"))
	if s, err := srv.Sessions().Get(labSession); err != nil || s.Episode().Steps != 2 {
		t.Errorf("got %v, %v", s, err)
	}
}

func TestNewAgentReplacesTheOld(t *testing.T) {
	srv, base := startLab(t, false)
	ws := dial(t, base+"/ws")
	ws.ask(`{"type":"state"}`) // the session is there
	old := connectMCP(t, base+"/mcp?session_id="+labSession)
	stuck := make(chan error, 1)
	go func() {
		_, err := old.CallTool(context.Background(), &mcp.CallToolParams{Name: "wait"})
		stuck <- err
	}()
	s, err := srv.Sessions().Get(labSession)
	if err != nil {
		t.Fatal(err)
	}
	oldID := old.ID()
	cs := connectMCP(t, base+"/mcp?session_id="+labSession)
	if err := <-stuck; err == nil {
		t.Error("the old agent's call must fail when it is replaced")
	}
	say(t, cs, "mine")
	status, body := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		"Accept", "application/json, text/event-stream", "Mcp-Session-Id", oldID, "MCP-Protocol-Version", "2025-11-25")
	if status != http.StatusNotFound || !strings.Contains(body, "-32001") {
		t.Errorf("the replaced agent got %d %s, want 404", status, body)
	}
	if status, _ := request(t, http.MethodDelete, base+"/mcp", "", "Mcp-Session-Id", oldID); status != http.StatusNotFound {
		t.Errorf("the replaced agent's DELETE got %d, want 404", status)
	}
	say(t, cs, "still mine")
	if s.Context().Err() != nil {
		t.Error("the session has ended")
	}
	ws.ask(stepFrame("point", "{}"))
}

func TestRefusedInitializeTakesNoSlot(t *testing.T) {
	srv, base := startLab(t, false)
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	const both = "application/json, text/event-stream"
	for name, c := range map[string]struct {
		body    string
		headers []string
		status  int
	}{
		"no event stream accepted": {initialize, []string{"Accept", "text/plain"}, http.StatusNotAcceptable},
		"not JSON by its type":     {initialize, []string{"Accept", both, "Content-Type", "text/plain"}, http.StatusUnsupportedMediaType},
		"unknown version header":   {initialize, []string{"Accept", both, "MCP-Protocol-Version", "2020-01-01"}, http.StatusBadRequest},
		"foreign origin":           {initialize, []string{"Accept", both, "Origin", "http://evil.example"}, http.StatusForbidden},
		"no params":                {`{"jsonrpc":"2.0","id":1,"method":"initialize"}`, []string{"Accept", both}, http.StatusBadRequest},
		"wrong params":             {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`, []string{"Accept", both}, http.StatusOK},
		"unknown session":          {initialize, []string{"Accept", both, "Mcp-Session-Id", "nosuch"}, http.StatusNotFound},
		"stateless revision":       {initialize, []string{"Accept", both, "MCP-Protocol-Version", "2026-07-28"}, http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := post(t, base+"/mcp", c.body, c.headers...)
			if status != c.status || c.status == http.StatusOK && !strings.Contains(body, `"error"`) {
				t.Errorf("got %d %s", status, body)
			}
			active(t, srv, 0)
		})
	}
	if status, body := post(t, base+"/mcp?session_id=nosuch", initialize, "Accept", both); status != http.StatusNotFound {
		t.Errorf("joining an unknown session got %d %s", status, body)
	}
}

func TestInitializeAtCapacity(t *testing.T) {
	srv, base := start(t, labEnv(), Options{Sessions: session.Options{Max: 1}})
	cs := connectMCP(t, base+"/mcp")
	status, body := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		"Accept", "application/json, text/event-stream")
	if status != http.StatusServiceUnavailable || !strings.Contains(body, `"max_sessions":1`) {
		t.Errorf("got %d %s", status, body)
	}
	cs.Close()
	active(t, srv, 0)
	connectMCP(t, base+"/mcp")
}

func TestCancelledByItsClient(t *testing.T) {
	srv, base := startLab(t, false)
	cs := connectMCP(t, base+"/mcp")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
		done <- err
	}()
	s, err := srv.Sessions().Get(labSession)
	if err != nil {
		t.Fatal(err)
	}
	for s.Busy() == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; err == nil {
		t.Error("a cancelled call must fail")
	}
	say(t, cs, "the session lives, and its turn is free")
}

// A call that needs no stream is answered with plain JSON, and one that does with a stream; the answer is the same.
func TestAnswersWithoutAStream(t *testing.T) {
	srv, base := startLab(t, false)
	headers := func(id string) []string {
		return []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"}
	}
	contentType := func(id, body string) (string, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		for i, h := 0, headers(id); i < len(h); i += 2 {
			r.Header.Set(h[i], h[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.Header.Get("Content-Type"), string(text)
	}
	plain := rawInitialize(t, base+"/mcp", "2025-11-25")
	const json, stream = "application/json", "text/event-stream"
	for _, c := range []struct{ params, want, in string }{
		{`{"name":"say","arguments":{"text":"x"}}`, json, `"structuredContent":{"result":"x"}`},
		{`{"name":"say","arguments":{"text":"x"},"_meta":{"progressToken":1}}`, stream, `"structuredContent":{"result":"x"}`},
		{`{"name":"nosuch"}`, json, `"error":{"code":-32602,`},
		{`{"name":"fail"}`, json, `"isError":true`},
		{`{"name":5}`, json, `"code":-32602,"message":"params.name must be a string"`},
		{`{}`, json, `"code":-32602`},
		{`{"name":"say","arguments":[]}`, json, `"openenv/error_type":"invalid_args"`},
	} {
		typ, body := contentType(plain, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":`+c.params+`}`)
		if typ != c.want || !strings.Contains(body, c.in) {
			t.Errorf("%s: %s %s", c.params, typ, body)
		}
	}
	// A client that wants log messages may be sent one.
	contentType(plain, `{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"info"}}`)
	if typ, body := contentType(plain, rpcCall("say", `{"text":"x"}`, "")); typ != stream {
		t.Errorf("%s %s", typ, body)
	}
	old := rawInitialize(t, base+"/mcp", "2025-03-26") // which has batches
	post(t, base+"/mcp", `[{"jsonrpc":"2.0","id":8,"method":"logging/setLevel","params":{"level":"info"}}]`,
		"Accept", "application/json, text/event-stream", "Mcp-Session-Id", old, "MCP-Protocol-Version", "2025-03-26")
	if a, err := srv.sessions.Agent(old); err != nil || !a.Told() {
		t.Errorf("log messages asked for in a batch: %v", err)
	}
	// One that can be asked may be asked.
	g := &guest{}
	asked := connectClient(t, g.client(), base+"/mcp", statefulVersions[0])
	if typ, body := contentType(asked.ID(), rpcCall("say", `{"text":"x"}`, "")); typ != stream {
		t.Errorf("%s %s", typ, body)
	}
}

// A call without a stream is cancelled by its notification, not by the loss of its connection; and its id is its own.
func TestCallsWithoutAStreamAreCancelled(t *testing.T) {
	srv, base := startLab(t, false)
	id := rawInitialize(t, base+"/mcp", "2025-11-25")
	headers := []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", id, "MCP-Protocol-Version", "2025-11-25"}
	s := live(t, srv, labSession)
	answered := make(chan string, 1)
	call := `{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"wait"}}`
	go func() {
		_, body := post(t, base+"/mcp", call, headers...)
		answered <- body
	}()
	waitFor(t, "the call", func() bool { return s.Busy() == 1 })
	const escaped = `"\u0061"` // the same id
	if status, body := post(t, base+"/mcp", strings.Replace(call, `"a"`, escaped, 1), headers...); status != http.StatusBadRequest || !strings.Contains(body, "under way") {
		t.Errorf("the same id again: %d %s", status, body)
	}
	for i, other := range []string{`"b"`, escaped} {
		if status, body := post(t, base+"/mcp", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+other+`}}`, headers...); status != http.StatusAccepted {
			t.Errorf("%d %s", status, body)
		}
		if i == 0 && s.Busy() != 1 {
			t.Error("cancelled by another's id")
		}
	}
	if body := <-answered; !strings.Contains(body, "cancelled by its client") {
		t.Error(body)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/mcp", strings.NewReader(call))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	go http.DefaultClient.Do(r)
	waitFor(t, "the next call", func() bool { return s.Busy() == 1 })
	cancel()
	if status, _ := request(t, http.MethodDelete, base+"/mcp", "", "Mcp-Session-Id", id); status != http.StatusNoContent {
		t.Errorf("DELETE: %d", status)
	}
	active(t, srv, 0)
}
