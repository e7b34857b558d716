package transport

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What the matrix does not show of access: who holds what, for how long, and what is told of it.

// guardedOptions are those of a server with one token of each role.
func guardedOptions() Options {
	return Options{
		Access:   Access{ControlTokens: []access.Token{controlToken}, AgentTokens: []access.Token{agentToken, otherToken}},
		Sessions: session.Options{NewID: countingIDs()},
	}
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

// dialAs opens a WebSocket with a token.
func dialAs(t *testing.T, url, token string) wsClient {
	t.Helper()
	return dialOver(t, url, &websocket.DialOptions{HTTPHeader: http.Header{"Authorization": {"Bearer " + token}}})
}

// addressIn waits until a program has printed its address.
func addressIn(t *testing.T, stdout *lines) string {
	t.Helper()
	waitFor(t, "the address", func() bool { return address.MatchString(stdout.String()) })
	return address.FindString(stdout.String())
}

// A caller who is no trainer may use a session's tools on /ws, beside its trainer and whenever it comes.
func TestGuestsOfTheGymChannel(t *testing.T) {
	for name, where := range map[string]struct {
		o              Options
		guest, trainer string
	}{
		"production": {Options{Mode: tools.ModeProduction, Access: guardedOptions().Access}, agentToken, controlToken},
		"simulation": {Options{Access: guardedOptions().Access}, agentToken, controlToken},
	} {
		t.Run(name, func(t *testing.T) {
			srv, base := start(t, labEnv(), where.o)
			s, err := srv.Sessions().Open(t.Context(), session.ByCreate, "")
			if err != nil {
				t.Fatal(err)
			}
			url := base + "/ws?session_id=" + s.ID
			first := dialAs(t, url, where.guest)
			trainer := dialAs(t, url, where.trainer)
			second := dialAs(t, url, where.guest)
			if got := trainer.ask(`{"type":"reset"}`); !strings.Contains(got, `"observation"`) {
				t.Fatalf("the trainer got %s", got)
			}
			for _, guest := range []wsClient{first, second} {
				if got := guest.ask(expand(`mcp tools/call {"name":"say","arguments":{"text":"x"}}`)); !strings.Contains(got, `"data":"x"`) {
					t.Errorf("a guest got %s", got)
				}
			}
			if got := trainer.ask(`{"type":"state"}`); !strings.Contains(got, `"step_count":2`) {
				t.Errorf("the trainer got %s", got)
			}
			if i := s.Info(); i.Sockets != 1 || i.Attachment != session.AttachedClient {
				t.Errorf("%d sockets keep the session, attachment %v", i.Sockets, i.Attachment)
			}
			first.send(`{"type":"close"}`) // is that of a guest, not of the session
			first.closed()
			if got := trainer.ask(`{"type":"state"}`); !strings.Contains(got, `"step_count":2`) {
				t.Errorf("after a guest's goodbye: %s", got)
			}
		})
	}
}

// A request_id is its caller's: a guest neither reads the trainer's replies by it, nor takes one, nor has them forgotten.
func TestGuestsHaveRequestIDsOfTheirOwn(t *testing.T) {
	srv, base := start(t, labEnv(), guardedOptions())
	s, err := srv.Sessions().Open(t.Context(), session.ByCreate, "")
	if err != nil {
		t.Fatal(err)
	}
	url := base + "/ws?session_id=" + s.ID
	trainer, guest, other := dialAs(t, url, controlToken), dialAs(t, url, agentToken), dialAs(t, url, otherToken)
	numbered := func(frame, id string) string { return strings.TrimSuffix(frame, "}") + `,"request_id":"` + id + `"}` }
	saying := func(text string) string {
		return expand(`mcp tools/call {"name":"say","arguments":{"text":"` + text + `"}}`)
	}
	step := numbered(stepFrame("say", `{"text":"hers"}`), "1")
	first := trainer.ask(step)
	if !strings.Contains(first, `"reward":`) {
		t.Fatal(first)
	}
	if got := guest.ask(numbered(`{"type":"state"}`, "1")); !strings.Contains(got, codeNotAllowed) {
		t.Errorf("a guest got %s", got)
	}
	guest.ask(numbered(saying("a guest's"), "2"))
	if got := other.ask(numbered(saying("another's"), "2")); !strings.Contains(got, "another's") {
		t.Errorf("another guest got %s", got)
	}
	if got := trainer.ask(numbered(`{"type":"state"}`, "2")); !strings.Contains(got, `"type":"state"`) {
		t.Errorf("the trainer got %s", got)
	}
	for i := range session.MaxReplies + 1 {
		guest.ask(numbered(saying("x"), fmt.Sprint("n", i)))
	}
	if got := trainer.ask(step); got != first {
		t.Errorf("the trainer got %s when it asked again", got)
	}
}

// An operator sees that a caller wants what it may not have, once for each socket.
func TestOversteppingIsLogged(t *testing.T) {
	log := newEventLog()
	o := log.options()
	o.Mode, o.Access = tools.ModeProduction, guardedOptions().Access
	_, base := start(t, labEnv(), o)
	ws := dialAs(t, base+"/ws", agentToken)
	for range 3 {
		ws.ask(`{"type":"reset"}`)
	}
	if e := log.want(t, "message_refused", "code", codeNotAllowed, "caller", "agent-1"); e.level != slog.LevelWarn {
		t.Errorf("the first is %v", e.level)
	}
	for _, path := range []string{"/sessions", "/state", "/nosuch"} {
		request(t, http.MethodGet, base+path, "", bearer(agentToken)...)
	}
	for _, path := range []string{"/sessions", "/state"} {
		log.want(t, "refused", "path", path, "caller", "agent-1", "status", "404")
	}
	warned := 0
	all, _ := log.find("message_refused")
	for _, e := range all {
		if e.level == slog.LevelWarn {
			warned++
		}
	}
	if refused, _ := log.find("refused"); warned != 1 || len(refused) != 2 {
		t.Errorf("%d messages and %d requests are warnings", warned, len(refused))
	}
}

// A guest does not keep a session from going idle, and its calls do.
func TestGuestsDoNotStopTheIdleTimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := serveInMemory(t, labEnv(), Options{Mode: tools.ModeProduction, Sessions: session.Options{IdleTimeout: time.Minute}})
		s, err := srv.Sessions().Open(t.Context(), session.ByCreate, "")
		if err != nil {
			t.Fatal(err)
		}
		c, _, err := websocket.Dial(t.Context(), "ws://localhost/ws?session_id="+s.ID, &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		guest := wsClient{t, c}
		time.Sleep(59 * time.Second)
		guest.ask(expand(`mcp tools/call {"name":"say","arguments":{"text":"x"}}`))
		time.Sleep(59 * time.Second)
		synctest.Wait()
		active(t, srv, 1)
		time.Sleep(time.Second)
		synctest.Wait()
		active(t, srv, 0)
		guest.closed() // it goes with the session
	})
}

// A caller who is no trainer and has lost the socket that owned its session takes it up again; another one does not.
func TestAgentsComeBackToTheirOwn(t *testing.T) {
	o := guardedOptions()
	o.Mode = tools.ModeProduction
	srv, base := start(t, labEnv(), o)
	for _, back := range []struct {
		token string
		owner bool
	}{{agentToken, true}, {otherToken, false}} {
		ws := dialAs(t, base+"/ws?resume=60", agentToken)
		ws.ask(expand(`mcp tools/call {"name":"say","arguments":{"text":"x"}}`))
		id := srv.Sessions().List()[0].ID
		ws.CloseNow()
		lost := func() bool { return srv.Sessions().List()[0].Attachment == session.AttachedLost }
		waitFor(t, "the loss", lost)
		again := dialAs(t, base+"/ws?session_id="+id, back.token)
		if got := again.ask(expand(`mcp tools/call {"name":"say","arguments":{"text":"x"}}`)); !strings.Contains(got, `"data":"x"`) {
			t.Errorf("%+v: %s", back, got)
		}
		if lost() == back.owner {
			t.Errorf("%+v: lost: %v", back, lost())
		}
		if back.owner {
			again.Close(websocket.StatusNormalClosure, "")
		} else if s, err := srv.Sessions().Get(id); err == nil {
			s.Close(t.Context(), "test")
		}
		waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
	}
}

// A token of a handle is good for its time, and what it has begun ends with it.
func TestTokensOfHandlesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := guardedOptions()
		o.Sessions.IdleTimeout = -1
		srv, client := serveInMemory(t, labEnv(), o)
		s, err := srv.Sessions().Open(t.Context(), session.ByCreate, "")
		if err != nil {
			t.Fatal(err)
		}
		handle, err := s.Mint()
		if err != nil {
			t.Fatal(err)
		}
		token, _ := srv.keeper.Mint(handle, time.Minute)
		header := http.Header{"Authorization": {"Bearer " + string(token)}, "Content-Type": {"application/json"}}
		c, _, err := websocket.Dial(t.Context(), "ws://localhost/mcp/"+handle, &websocket.DialOptions{HTTPClient: client, HTTPHeader: header})
		if err != nil {
			t.Fatal(err)
		}
		defer c.CloseNow()
		ws := wsClient{t, c}
		status := func() int {
			r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/mcp/"+handle, strings.NewReader(rpcCall("say", `{"text":"x"}`, "")))
			r.Header = header
			res, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			res.Body.Close()
			return res.StatusCode
		}
		for _, at := range []time.Duration{0, 59 * time.Second} {
			time.Sleep(at)
			if got := ws.ask(rpcCall("say", `{"text":"x"}`, "")); !strings.Contains(got, `"data":"x"`) {
				t.Errorf("after %v the socket got %s", at, got)
			}
			if got := status(); got != http.StatusOK {
				t.Errorf("after %v the request got %d", at, got)
			}
		}
		time.Sleep(time.Second)
		if _, _, err := c.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
			t.Errorf("the socket ended with %v", err)
		}
		if got := status(); got != http.StatusUnauthorized {
			t.Errorf("the request got %d", got)
		}
		active(t, srv, 1) // the session is its trainer's
	})
}

// A trainer mints a token with the handle, on each door that mints.
func TestMintedTokens(t *testing.T) {
	srv, base := start(t, labEnv(), guardedOptions())
	ws := dialAs(t, base+"/ws", controlToken)
	var minted struct {
		Data struct {
			Result struct {
				Handle, URL, Token string
				Expires            int64 `json:"expires_at"`
			}
		}
	}
	unmarshal(t, ws.ask(expand(`mcp openenv/session/agent {"token_s":60.5}`)), &minted)
	m := minted.Data.Result
	if left := time.Until(time.Unix(m.Expires, 0)); left < 50*time.Second || left > 62*time.Second || !strings.HasSuffix(m.URL, "/mcp/"+m.Handle) {
		t.Errorf("got %+v", m)
	}
	if _, reply := post(t, m.URL, rpcCall("say", `{"text":"x"}`, ""), bearer(m.Token)...); !strings.Contains(reply, `"data":"x"`) {
		t.Error(reply)
	}
	if status, reply := post(t, m.URL, rpcCall("say", `{"text":"x"}`, "")); status != http.StatusUnauthorized {
		t.Errorf("the handle alone: %d %s", status, reply)
	}
	status, reply := post(t, base+"/sessions/"+srv.Sessions().List()[0].ID+"/agents", `{"token_s":60}`, bearer(controlToken)...)
	if status != http.StatusCreated || !strings.Contains(reply, `"token":"openenv_`) {
		t.Errorf("%d %s", status, reply)
	}
	for _, bad := range []string{`0`, `-1`, `"60"`, `[]`, `1e400`} {
		if status, reply := post(t, base+"/sessions/"+srv.Sessions().List()[0].ID+"/agents", `{"token_s":`+bad+`}`, bearer(controlToken)...); status != http.StatusUnprocessableEntity {
			t.Errorf("token_s %s: %d %s", bad, status, reply)
		}
		if got := verdictOf(ws.ask(expand(`mcp openenv/session/agent {"token_s":` + bad + `}`))); got != "-32602" {
			t.Errorf("token_s %s: %s", bad, got)
		}
	}
}

// Tokens come from flags, variables and files, and none of them is in what the program prints or logs, right or wrong.
func TestTokensAreNotLogged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte("# of the agents\n\n  "+agentToken+"  \n"+otherToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, stop := runMain(t, labEnv(), []string{"-addr", "127.0.0.1:0", "-agent-token-file", file, "-mode", "production"},
		map[string]string{"OPENENV_CONTROL_TOKEN": controlToken + ",second-" + controlToken})
	base := addressIn(t, stdout)
	var minted struct {
		Result struct{ Handle, URL, Token string }
	}
	var created struct {
		Result struct {
			ID string `json:"session_id"`
		}
	}
	const wrong = "wrong-token-that-was-sent"
	for token, want := range map[string]int{agentToken: 200, otherToken: 200, controlToken: 200, "second-" + controlToken: 200, wrong: 401} {
		if status, _ := post(t, base+"/mcp", expand("rpc tools/list"), bearer(token)...); status != want {
			t.Errorf("%d, want %d", status, want)
		}
	}
	_, reply := post(t, base+"/mcp", expand("rpc openenv/session/create"), bearer(agentToken)...)
	unmarshal(t, reply, &created)
	_, reply = post(t, base+"/mcp", expand(`rpc openenv/session/agent {"session_id":"`+created.Result.ID+`","token_s":60}`), bearer(agentToken)...)
	unmarshal(t, reply, &minted)
	post(t, minted.Result.URL, expand("rpc tools/list"), bearer(minted.Result.Token)...)
	post(t, base+"/mcp", expand("rpc tools/list"), bearer(minted.Result.Token)...) // not its address
	request(t, http.MethodGet, base+"/sessions?token="+wrong, "", bearer(wrong)...)
	if code := stop(nil); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	all := stdout.String() + stderr.String()
	for _, secret := range []string{agentToken, otherToken, controlToken, wrong, minted.Result.Token, minted.Result.Handle} {
		if strings.Contains(all, secret) {
			t.Errorf("it shows %s:\n%s", secret, all)
		}
	}
	if !strings.Contains(all, "event=refused") || !strings.Contains(all, "status=401") {
		t.Errorf("it does not show that somebody was refused:\n%s", all)
	}
}

func TestAccessAtTheStart(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, []byte("# none\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-addr", "0.0.0.0:0", "-mode", "production"}, "production asks nobody for a token"},
		{[]string{"-addr", "[::]:0", "-mode", "production"}, "production asks nobody for a token"},
		{[]string{"-agent-token", "short"}, "agent token 1: a token of 5 characters is too short"},
		{[]string{"-agent-token", agentToken, "-control-token", agentToken}, "agent token 1 is control-1 as well: give each role its own"},
		{[]string{"-agent-token-file", empty}, "there is no token in it"},
		{[]string{"-agent-token-file", empty + "-not"}, "no such file"},
		{[]string{"-tls-cert", empty}, "need each other"},
		{[]string{"-tls-cert", empty, "-tls-key", empty}, "-tls-cert"},
		{[]string{"-oauth-issuer", "http://127.0.0.1:1"}, "need each other"},
		{[]string{"-oauth-issuer", "http://127.0.0.1:1", "-oauth-audience", "x"}, "the issuer http://127.0.0.1:1"},
		{[]string{"-rate", "-1"}, "-rate"},
		{[]string{"-rate", "NaN"}, "-rate"},
		{[]string{"-rate", "1e300"}, "-rate"},
		{[]string{"-agent-token", ""}, "-agent-token is empty"},
		{[]string{"-control-token-file", ""}, "-control-token-file is empty"},
		{[]string{"-control-token", " , "}, "-control-token: there is no token in it"},
		{[]string{"-sessions-per-token", "-1"}, "-sessions-per-token"},
		{[]string{"-max-message", "0"}, "-max-message"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), testTime)
		defer cancel()
		stderr := newLines()
		code := Run(ctx, labEnv(), append([]string{"-addr", "127.0.0.1:0"}, c.args...), func(string) string { return "" }, nil, io.Discard, stderr)
		if code != exitUsage || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", c.args, code, stderr)
		}
	}
	for _, c := range []struct {
		args []string
		warn bool
	}{
		{[]string{"-mode", "production"}, false},
		{[]string{"-addr", "0.0.0.0:0", "-mode", "production", "-agent-token", agentToken}, false},
		{[]string{"-addr", "0.0.0.0:0", "-mode", "production", "-insecure"}, true},
		{[]string{"-addr", "0.0.0.0:0"}, true},
		{[]string{"-control-addr", "0.0.0.0:0", "-agent-token", agentToken}, true},
	} {
		stdout, stderr, stop := runMain(t, labEnv(), append([]string{"-addr", "127.0.0.1:0"}, c.args...), nil)
		addressIn(t, stdout)
		if code := stop(nil); code != exitOK || strings.Count(stderr.String(), "event=open_address") != map[bool]int{true: 1}[c.warn] {
			t.Errorf("%v: exit code %d, %s", c.args, code, stderr)
		}
	}
}
