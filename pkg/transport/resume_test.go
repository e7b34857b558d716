package transport

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A till has a tool with a side effect, which waits to be let go.
type till struct{ charged *atomic.Int64 }

func tillEnv(charged *atomic.Int64, begun, free chan struct{}) gym.Environment[*till] {
	return gym.Environment[*till]{
		Name: "till",
		New:  func(context.Context, *gym.Session) (*till, error) { return &till{charged}, nil },
		Tools: tools.New(tools.Func("charge", "Charge the card.", func(l *till, ctx context.Context, _ tools.None) (int64, error) {
			begun <- struct{}{}
			select {
			case <-free:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			return l.charged.Add(1), nil
		})),
	}
}

const charge = `{"type":"step","data":{"tool_name":"charge"},"request_id":"r1"}`

// The socket is cut before the reply arrives; the client comes back, asks again, and the tool has run once.
func TestResumeRunsASideEffectOnce(t *testing.T) {
	var charged atomic.Int64
	begun, free := make(chan struct{}, 9), make(chan struct{})
	srv, base := start(t, tillEnv(&charged, begun, free), Options{Sessions: session.Options{NewID: countingIDs()}})
	ws := dial(t, base+"/ws?resume=60")
	ws.send(charge)
	<-begun
	ws.CloseNow()
	back := dial(t, base+"/ws?session_id="+labSession+"&resume=60") // while the call runs
	back.send(charge)
	close(free)
	want := `"data":1,"is_error":false},"error":null},"reward":null,"done":false},"request_id":"r1"}`
	if got := back.receive(); !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want …%s", got, want)
	}
	if got := back.ask(charge); !strings.HasSuffix(got, want) { // once more, from the store
		t.Errorf("got %s, want …%s", got, want)
	}
	back.CloseNow() // after the reply, too
	again := dial(t, base+"/ws?session_id="+labSession)
	if got := again.ask(charge); !strings.HasSuffix(got, want) {
		t.Errorf("got %s, want …%s", got, want)
	}
	if n := charged.Load(); n != 1 {
		t.Errorf("the card was charged %d times", n)
	}
	if s, err := srv.Sessions().Get(labSession); err != nil || s.Steps() != 1 {
		t.Errorf("got %v, %v", s, err)
	}
	again.Close(websocket.StatusNormalClosure, "") // its owner says goodbye
	waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
}

// A session that outlives its sockets needs no resume for that.
func TestRequestIDWithoutResume(t *testing.T) {
	var charged atomic.Int64
	begun, free := make(chan struct{}, 9), make(chan struct{})
	srv, base := start(t, tillEnv(&charged, begun, free), Options{})
	id := createSession(t, base)
	ws := dial(t, base+"/ws?session_id="+id)
	ws.send(charge)
	<-begun
	ws.CloseNow()
	back := dial(t, base+"/ws?session_id="+id)
	back.send(charge)
	close(free)
	if got := back.receive(); !strings.Contains(got, `"data":1`) || charged.Load() != 1 {
		t.Errorf("got %s; the card was charged %d times", got, charged.Load())
	}
	active(t, srv, 1)
}

func TestOwnersWhoSayGoodbyeAreNotAwaited(t *testing.T) {
	srv, base := startLab(t, false)
	for _, leave := range []func(wsClient){
		func(c wsClient) { c.send(`{"type":"close"}`); c.closed() },
		func(c wsClient) { c.send(`{"type":"close"}`); c.CloseNow() },
		func(c wsClient) { c.Close(websocket.StatusNormalClosure, "") },
		func(c wsClient) { c.Close(websocket.StatusGoingAway, "") },
		func(c wsClient) { c.Close(websocket.StatusNoStatusRcvd, "") },
		func(c wsClient) { c.Write(context.Background(), websocket.MessageBinary, []byte("x")); c.closed() },
	} {
		ws := dial(t, base+"/ws?resume=60")
		ws.ask(`{"type":"state"}`)
		leave(ws)
		waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
	}
}

// A goodbye that waits behind another frame is one still when its client has hung up.
func TestGoodbyesThatWaitAreHeeded(t *testing.T) {
	srv, base := startLab(t, false)
	for _, frames := range [][]string{
		{`{"type":"close"}`},
		{`{"type":"state"}`, `[1]`, ` { "type" : "cl\u006fse" } `, `{"type":"state"}`},
	} {
		ws := dial(t, base+"/ws?resume=60")
		ws.send(stepFrame("wait", "{}"))
		for _, f := range frames {
			ws.send(f)
		}
		ws.CloseNow()
		waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
	}
}

func TestRequestFields(t *testing.T) {
	_, base := startLab(t, false)
	ws := dial(t, base+"/ws")
	for _, c := range []struct{ send, want string }{
		{`{"type":"state","request_id":"a"}`, `"request_id":"a"}`},
		{`{"type":"reset","request_id":"b","data":{}}`, `"request_id":"b"}`},
		{`{"type":"mcp","request_id":"c","data":{"jsonrpc":"2.0","id":1,"method":"tools/list"}}`, `"request_id":"c"}`},
		{`{"type":"step","request_id":"d","data":{}}`, `"code":"VALIDATION_ERROR","errors":[{"type":"missing","loc":["tool_name"],"msg":"field required","input":{}}]},"request_id":"d"}`},
		{`{"type":"step","timeout_s":0.02,"data":{"tool_name":"wait"}}`, `"error_type":"timeout","message":"tool \"wait\" did not finish within 20ms"`},
		{`{"type":"mcp","timeout_s":0.02,"data":` + rpcCall("wait", "{}", "") + `}`, `did not finish within 20ms`},
		{`{"type":"state","timeout_s":0}`, `timeout_s: want more than 0`},
		{`{"type":"state","timeout_s":"1"}`, `timeout_s: want a number of seconds`},
		{`{"type":"state","request_id":7}`, `request_id: want a string`},
		{`{"type":"state","request_id":"` + strings.Repeat("x", 256) + `"}`, `request_id: want at most 255 characters`},
	} {
		if got := ws.ask(c.send); !strings.Contains(got, c.want) {
			t.Errorf("%.100s: got %s, want %s", c.send, got, c.want)
		}
	}
}

// The session of a lost socket waits as long as its client has asked, and not longer.
func TestResumeWaitsExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, _ := inMemory(t, Options{})
		s, err := srv.Sessions().Open(t.Context(), session.ByGymSocket, "")
		if err != nil {
			t.Fatal(err)
		}
		s.Linger(t.Context(), session.Owner, 30*time.Second)
		time.Sleep(29 * time.Second)
		synctest.Wait()
		active(t, srv, 1)
		_, hold, err := srv.Sessions().Attach(t.Context(), s.ID)
		if err != nil || hold != session.Owner {
			t.Fatalf("got %v, %v", hold, err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		active(t, srv, 1)
		s.Linger(t.Context(), hold, 30*time.Second)
		time.Sleep(31 * time.Second)
		synctest.Wait()
		active(t, srv, 0)
	})
}

// Who has come back may be lost again, and what is no number of seconds is refused.
func TestResumeHoldsForWhoComesBack(t *testing.T) {
	srv, base := startLab(t, false)
	ws := dial(t, base+"/ws?resume=60")
	ws.ask(stepFrame("say", `{"text":"x"}`))
	for range 3 {
		ws.CloseNow()
		waitFor(t, "the loss", func() bool { return srv.Sessions().List()[0].Attachment == session.AttachedLost })
		ws = dial(t, base+"/ws?session_id="+labSession)
		if got := ws.ask(`{"type":"state"}`); !strings.Contains(got, `"step_count":1`) {
			t.Fatalf("got %s", got)
		}
	}
	for _, bad := range []string{"60s", "abc", "-1", "", "NaN"} {
		if status, reply := request(t, http.MethodGet, base+"/ws?resume="+bad, ""); status != http.StatusBadRequest || !strings.Contains(reply, "want a number of seconds") {
			t.Errorf("resume=%s: %d %s", bad, status, reply)
		}
	}
}

func TestRepliesAreBounded(t *testing.T) {
	srv, base := startLab(t, false)
	id := createSession(t, base)
	s, err := srv.Sessions().Get(id)
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	ask := func(id string) {
		r, err := s.Once("", id, func(context.Context) []byte { ran++; return []byte("x") })
		if err != nil || string(r.Wait(t.Context())) != "x" {
			t.Fatalf("got %v, %v", r, err)
		}
	}
	for i := range session.MaxReplies + 1 {
		ask(fmt.Sprint(i))
	}
	ask(fmt.Sprint(session.MaxReplies)) // kept
	if ran != session.MaxReplies+1 {
		t.Errorf("a reply that is kept was made again: %d", ran)
	}
	ask("0") // the oldest was let go
	if ran != session.MaxReplies+2 {
		t.Errorf("%d replies were made", ran)
	}
}

// What panics while a request with an id is served costs the request, not the process.
func TestRequestIDContainsPanics(t *testing.T) {
	env := walkEnv()
	env.Act = gym.Act(func(*walk, context.Context, fragile) (place, gym.Score, error) { return place{}, gym.Score{}, nil })
	_, base := start(t, env, Options{})
	ws := dial(t, base+"/ws")
	for range 2 {
		if got := ws.ask(`{"type":"step","data":{"at":{}},"request_id":"r"}`); !strings.Contains(got, `"code":"EXECUTION_ERROR"`) {
			t.Errorf("got %s", got)
		}
	}
	if got := ws.ask(`{"type":"state"}`); !strings.Contains(got, `"type":"state"`) {
		t.Errorf("got %s", got)
	}
}

// fragile is an action whose author's decoder panics.
type fragile struct {
	At broken `json:"at"`
}

type broken struct{}

func (*broken) UnmarshalJSON([]byte) error { panic("boom") }
