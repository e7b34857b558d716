package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What each caller may have: so many sessions, so many requests.

func TestSessionsPerToken(t *testing.T) {
	o := guardedOptions()
	o.SessionsPerToken = 2
	srv, base := start(t, labEnv(), o)
	create := func(token string) (id string, code string) {
		_, reply := post(t, base+"/mcp", expand("rpc openenv/session/create"), bearer(token)...)
		var r struct {
			Result struct {
				Session string `json:"session_id"`
			}
		}
		unmarshal(t, reply, &r)
		return r.Result.Session, verdictOf(reply)
	}
	a, _ := create(agentToken)
	socket := dialAs(t, base+"/mcp", agentToken)
	socket.ask(expand("rpc tools/list"))
	if _, code := create(agentToken); code != "-32000" {
		t.Errorf("a third session: %s", code)
	}
	if status, _ := post(t, base+"/mcp", initializeBody, append(bearer(agentToken), "Accept", "application/json, text/event-stream")...); status != http.StatusServiceUnavailable {
		t.Errorf("initialize got %d", status)
	}
	if _, reply := post(t, base+"/mcp", rpcCall("say", `{"text":"x"}`, ""), bearer(agentToken)...); verdictOf(reply) != "-32000" {
		t.Errorf("a temporary session: %s", reply)
	}
	if _, reply := post(t, base+"/mcp", rpcCall("say", `{"text":"x"}`, a), bearer(agentToken)...); verdictOf(reply) != "ok" {
		t.Errorf("a session that is there: %s", reply)
	}
	if _, code := create(otherToken); code != "ok" { // has its own
		t.Errorf("another token: %s", code)
	}
	post(t, base+"/mcp", expand(`rpc openenv/session/close {"session_id":"`+a+`"}`), bearer(agentToken)...)
	waitFor(t, "room", func() bool { _, code := create(agentToken); return code == "ok" })
	if n := srv.Sessions().Active(); n != 3 {
		t.Errorf("%d sessions, want 3", n)
	}
}

// A session counts as long as it takes a slot, which a call that does not end holds.
func TestSessionsThatEndAreCounted(t *testing.T) {
	open := make(gate)
	o := guardedOptions()
	o.SessionsPerToken = 1
	running := make(chan struct{}) // a call that has its turn may still be given up before its handler runs
	srv, base := start(t, labWith(tools.Func("deaf", "", func(l *lab, ctx context.Context, in tools.None) (string, error) {
		close(running)
		return open.deaf(l, ctx, in)
	})), o)
	socket := dialAs(t, base+"/mcp", agentToken)
	socket.send(rpcCall("deaf", "{}", ""))
	s := live(t, srv, "s1")
	within(t, "the call", running)
	socket.CloseNow()
	within(t, "the session's end", s.Context().Done())
	create := func() string {
		_, reply := post(t, base+"/mcp", expand("rpc openenv/session/create"), bearer(agentToken)...)
		return verdictOf(reply)
	}
	if code := create(); code != "-32000" {
		t.Errorf("a second session beside one that has its slot: %s", code)
	}
	close(open)
	ended(t, "the first session", srv, s)
	if code := create(); code != "ok" {
		t.Errorf("a session after the first: %s", code)
	}
}

// Requests beyond the rate are refused with when to come again, and messages wait; each caller has its own share.
func TestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := guardedOptions()
		o.RequestsPerSecond = 2
		_, client := serveInMemory(t, labEnv(), o)
		get := func(token string) (status int, again string) {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp", strings.NewReader(expand("rpc tools/list")))
			r.Header.Set("Authorization", "Bearer "+token)
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode, res.Header.Get("Retry-After")
		}
		var got []string
		for i := range 4 {
			status, again := get(agentToken)
			got = append(got, fmt.Sprint(status, again))
			if i == 2 {
				time.Sleep(500 * time.Millisecond)
			}
		}
		if s := strings.Join(got, " "); s != "200 200 4291 200" {
			t.Errorf("got %s", s)
		}
		if status, _ := get(otherToken); status != http.StatusOK {
			t.Errorf("another caller got %d", status)
		}
		time.Sleep(time.Minute)
		c, _, err := websocket.Dial(t.Context(), "ws://localhost/mcp", &websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"Authorization": {"Bearer " + agentToken}}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		begin := time.Now()
		for range 5 {
			wsClient{t, c}.ask(expand("rpc tools/list"))
		}
		if took := time.Since(begin); took != 2*time.Second { // the upgrade and the first were at once
			t.Errorf("5 messages took %v", took)
		}
	})
}

// A message that waits for its time does not hold the end of its session up.
func TestRateAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := inMemory(t, Options{RequestsPerSecond: 0.01})
		ws := wsClient{t, open()} // which was the one request that may come at once
		ws.send(`{"type":"state"}`)
		synctest.Wait()
		begin := time.Now()
		go mustClose(t, srv)
		ws.receive() // the message is answered, if only with an error
		if code := ws.closed(); code != websocket.StatusGoingAway {
			t.Errorf("closed with %v", code)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("the end took %v", took)
		}
	})
}
