package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// startBoth serves an environment on a public and on a control address.
func startBoth(t *testing.T, o Options) (srv *Server, base, control string) {
	t.Helper()
	srv, base = start(t, labEnv(), o)
	web := httptest.NewServer(srv.Control())
	t.Cleanup(web.Close)
	return srv, base, web.URL
}

func get(t *testing.T, url string, into any) {
	t.Helper()
	status, reply := request(t, http.MethodGet, url, "")
	if status != http.StatusOK {
		t.Fatalf("GET %s: %d %s", url, status, reply)
	}
	unmarshal(t, reply, into)
}

func TestOperatorsSeeSessions(t *testing.T) {
	srv, base, control := startBoth(t, Options{Sessions: session.Options{NewID: countingIDs(), Max: 5}})
	ws := dial(t, base+"/ws")
	ws.ask(stepFrame("say", `{"text":"x"}`))
	created := createSession(t, base)
	attached := dial(t, base+"/ws?session_id="+created)
	attached.send(stepFrame("wait", `{}`))
	attached.send(stepFrame("say", `{"text":"x"}`))
	live, err := srv.Sessions().Get(created)
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the first call", func() bool { return live.Busy() == 1 })
	posted := make(chan int, 1)
	go func() {
		status, _ := post(t, base+"/step?session_id="+created, `{"action":{"type":"call_tool","tool_name":"say","arguments":{"text":"y"}}}`)
		posted <- status
	}()
	waitFor(t, "two calls", func() bool { return live.Busy() == 2 })
	var got struct {
		Sessions             []sessionInfo
		Active_sessions      int
		Max_sessions         int
		Built_ahead, Waiting int
	}
	get(t, control+"/sessions", &got)
	if len(got.Sessions) != 2 || got.Active_sessions != 2 || got.Max_sessions != 5 {
		t.Fatalf("got %+v", got)
	}
	now := float64(time.Now().Unix())
	for i, s := range got.Sessions {
		if s.Created < now-60 || s.Created > now+1 || s.LastActivity < s.Created {
			t.Errorf("times %f, %f", s.Created, s.LastActivity)
		}
		got.Sessions[i].Created, got.Sessions[i].LastActivity = 0, 0
		for j := range s.InFlight {
			s.InFlight[j].Age = 0
		}
	}
	want := `[{"session_id":"s1","created_at":0,"last_activity_at":0,"step_count":1,"environment_type":"lab","state":"open","opened_by":"ws","attachment":"owner","sockets":1,"agent":false,"in_flight":[],"queue_length":0},` +
		`{"session_id":"s2","created_at":0,"last_activity_at":0,"step_count":0,"environment_type":"lab","state":"open","opened_by":"create","attachment":"attached","sockets":1,"agent":false,"in_flight":[{"call":"tool \"wait\"","age_s":0}],"queue_length":1}]`
	if s := jsonOf(t, got.Sessions); s != want {
		t.Errorf("got  %s\nwant %s", s, want)
	}
	var one sessionInfo
	get(t, control+"/sessions/s1", &one)
	if one.ID != "s1" || one.Steps != 1 {
		t.Errorf("got %+v", one)
	}
	// An operator ends what others hold; who waits there is told.
	if status, reply := request(t, http.MethodDelete, control+"/sessions/"+created, ""); status != http.StatusOK || reply != `{"closed":true,"session_id":"s2"}` {
		t.Errorf("delete: %d %s", status, reply)
	}
	if status := <-posted; status != http.StatusNotFound {
		t.Errorf("a call that waited got %d", status)
	}
	if got := attached.receive(); !strings.Contains(got, "SESSION_ERROR") {
		t.Errorf("the call that ran got %s", got)
	}
	if status, _ := request(t, http.MethodDelete, control+"/sessions/"+created, ""); status != http.StatusNotFound {
		t.Errorf("again: %d", status)
	}
	if got := ws.ask(stepFrame("say", `{"text":"x"}`)); !strings.Contains(got, `"data":"x"`) {
		t.Errorf("the other session got %s", got)
	}
	active(t, srv, 1)
}

func TestOperatorsLetAgentsIn(t *testing.T) {
	_, base, control := startBoth(t, Options{})
	id := createSession(t, base)
	status, reply := post(t, control+"/sessions/"+id+"/agents", "")
	var minted struct{ Handle, URL string }
	unmarshal(t, reply, &minted)
	if status != http.StatusCreated || minted.Handle == "" || minted.Handle == id || !strings.HasSuffix(minted.URL, "/mcp/"+minted.Handle) {
		t.Fatalf("%d %s", status, reply)
	}
	if _, reply := post(t, base+"/mcp/"+minted.Handle, rpcCall("say", `{"text":"x"}`, "")); !strings.Contains(reply, `"data":"x"`) {
		t.Error(reply)
	}
	if status, _ := post(t, control+"/sessions/"+minted.Handle+"/agents", ""); status != http.StatusNotFound {
		t.Errorf("a handle minted a handle: %d", status)
	}
}

// The public address shows nothing of other people's sessions, and the control address serves all doors.
func TestControlIsApart(t *testing.T) {
	for _, mode := range []string{"simulation", "production"} {
		stdout, _, stop := runMain(t, labEnv(), []string{"-addr", "127.0.0.1:0", "-control-addr", "127.0.0.1:0", "-mode", mode}, nil)
		waitFor(t, "the addresses", func() bool { return strings.Contains(stdout.String(), "mcpServers") })
		base := address.FindString(stdout.String())
		control := strings.TrimPrefix(regexp.MustCompile(`control +http://127\.0\.0\.1:\d+`).FindString(stdout.String()), "  ")
		control = address.FindString(control)
		if control == "" || control == base {
			t.Fatalf("no control address in %s", stdout)
		}
		id := createSession(t, control)
		for _, path := range []string{"/sessions", "/sessions/" + id} {
			if status, _ := request(t, http.MethodGet, base+path, ""); status != http.StatusNotFound {
				t.Errorf("%s on the public address: %d", path, status)
			}
		}
		if status, _ := request(t, http.MethodDelete, base+"/sessions/"+id, ""); status != http.StatusNotFound {
			t.Errorf("delete on the public address: %d", status)
		}
		for at, want := range map[string]bool{base: false, control: true} {
			var doc struct{ Paths map[string]any }
			get(t, at+"/openapi.json", &doc)
			if _, ok := doc.Paths["/sessions/{session}"]; ok != want {
				t.Errorf("OpenAPI of %s has the operators' routes: %v", at, ok)
			}
		}
		// A handle that was minted here leads to where agents are let in.
		_, reply := post(t, control+"/sessions/"+id+"/agents", "")
		var minted struct{ URL string }
		unmarshal(t, reply, &minted)
		if !strings.HasPrefix(minted.URL, base+"/mcp/") {
			t.Errorf("agents are sent to %s", minted.URL)
		}
		http.DefaultClient.CloseIdleConnections()
		if code := stop(context.Canceled); code != exitOK {
			t.Errorf("exit %d", code)
		}
	}
}

func TestAnnounce(t *testing.T) {
	srv, base := start(t, labEnv(), Options{Sessions: session.Options{Max: 1}})
	url := "ws" + strings.TrimPrefix(base, "http") + "/ws?announce=1"
	c, res, err := websocket.Dial(t.Context(), url, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	ws := wsClient{t, c}
	id := res.Header.Get("OpenEnv-Session-Id")
	if _, err := srv.Sessions().Get(id); err != nil {
		t.Fatalf("the header says %q: %v", id, err)
	}
	type observation struct {
		Data struct {
			Observation struct{ Metadata json.RawMessage }
			Metadata    json.RawMessage
		}
	}
	ws.ask(`{"type":"step","data":{"type":"nosuch"}}`) // an error is no observation
	for i, frame := range []string{`{"type":"reset"}`, stepFrame("say", `{"text":"x"}`)} {
		var o observation
		unmarshal(t, ws.ask(frame), &o)
		inner, outer := string(o.Data.Observation.Metadata), string(o.Data.Metadata)
		want := fmt.Sprintf(`{"session_id":%q}`, id)
		if i == 0 && (inner != want || outer != want) || i > 0 && (inner != "{}" || outer != "") {
			t.Errorf("frame %d: metadata %s and %s", i, inner, outer)
		}
	}
	// What is in the way is told before the upgrade.
	if _, res, err := websocket.Dial(t.Context(), url, nil); err == nil || res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("on a full server: %v, %v", res, err)
	}
	if _, res, err := websocket.Dial(t.Context(), url+"&session_id=nosuch", nil); err == nil || res.StatusCode != http.StatusNotFound {
		t.Errorf("an unknown session: %v, %v", res, err)
	}
	// Who attaches is told too; an agent is not.
	c.Close(websocket.StatusNormalClosure, "")
	waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
	id = createSession(t, base)
	handle := mint(t, base, id)
	for target, want := range map[string]string{"/ws?announce=1&session_id=" + id: id, "/mcp/" + handle + "?announce=1": ""} {
		c, res, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(base, "http")+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := res.Header.Get("OpenEnv-Session-Id"); got != want {
			t.Errorf("%s: told %q", target, got)
		}
		c.CloseNow()
	}
	// A request that is no upgrade leaves nothing.
	post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/close","params":{"session_id":"`+id+`"}}`)
	if status, _ := request(t, http.MethodGet, base+"/ws?announce=1", "", "Upgrade", "websocket", "Connection", "Upgrade"); status < 400 {
		t.Errorf("status %d", status)
	}
	waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
}

// What is no handshake opens nothing, attaches to nothing and ends nothing.
func TestAnnounceToWhatIsNoHandshake(t *testing.T) {
	var built atomic.Int64
	env := labEnv()
	env.New = func(context.Context, *gym.Session) (*lab, error) { built.Add(1); return &lab{}, nil }
	srv, base := start(t, env, Options{})
	ws := dial(t, base+"/ws?resume=600")
	ws.ask(stepFrame("say", `{"text":"x"}`))
	id := srv.Sessions().List()[0].ID
	ws.CloseNow()
	waitFor(t, "the loss", func() bool { return srv.Sessions().List()[0].Attachment == session.AttachedLost })
	const key = "AAAAAAAAAAAAAAAAAAAAAA=="
	for _, headers := range [][]string{
		{},
		{"Upgrade", "websocket"},
		{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13"},
		{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "8", "Sec-WebSocket-Key", key},
		{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "short"},
		{"Upgrade", "websocket", "Connection", "close", "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", key},
	} {
		for _, target := range []string{"/ws?announce=1", "/ws?announce=1&session_id=" + id} {
			if status, reply := request(t, http.MethodGet, base+target, "", headers...); status < 400 {
				t.Errorf("%v: %d %s", headers, status, reply)
			}
		}
	}
	if n := built.Load(); n != 1 {
		t.Errorf("%d environments were built", n-1)
	}
	if l := srv.Sessions().List(); len(l) != 1 || l[0].Attachment != session.AttachedLost {
		t.Errorf("the session that waits for its owner: %+v", l)
	}
}

func TestOpenAPITellsTheStatuses(t *testing.T) {
	_, _, control := startBoth(t, Options{})
	var doc struct {
		Paths map[string]map[string]struct{ Responses map[string]any }
	}
	get(t, control+"/openapi.json", &doc)
	for _, want := range []struct{ path, method, status string }{
		{"/sessions/{session}/agents", "post", "201"}, {"/sessions/{session}", "delete", "202"}, {"/sessions/{session}", "delete", "200"},
		{"/sessions", "get", "200"},
	} {
		if doc.Paths[want.path][want.method].Responses[want.status] == nil {
			t.Errorf("%s %s has no %s", want.method, want.path, want.status)
		}
	}
}
