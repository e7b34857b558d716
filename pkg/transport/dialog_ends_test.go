package transport

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// How an agent with a connection of its own ends, and what becomes of the connection.

// waiting has an agent call what does not return by itself, and waits until it runs.
func waiting(t *testing.T, srv *Server, c talker) {
	t.Helper()
	c.send(rpcCall("wait", "{}", ""))
	s := live(t, srv, labSession)
	waitFor(t, "the call", func() bool { return s.Busy() == 1 })
}

// The agent of a connection that another one replaces has its calls answered, and the connection is bare again.
func TestDialogReplacedByHTTP(t *testing.T) {
	eachDialog(t, labEnv(), func(t *testing.T, srv *Server, base string, c talker) {
		for range 2 { // it may initialise anew, too
			become(t, c)
			waiting(t, srv, c)
			cs := connectMCP(t, base+"/mcp?session_id="+labSession)
			wantNext(t, c, `"id":7`, `"error"`)
			say(t, cs, "mine")
			wantBare(t, c)
			c.send(`{"jsonrpc":"2.0","id":1,"result":{}}`) // late, to a question of the agent's
			wantBare(t, c)
			say(t, cs, "still mine")
		}
	})
}

func TestDialogReplacesHTTP(t *testing.T) {
	eachDialog(t, labEnv(), func(t *testing.T, srv *Server, base string, c talker) {
		live(t, srv, labSession)
		agent := rawInitialize(t, base+"/mcp?session_id="+labSession, "2025-11-25")
		wantBare(t, c)
		if status := ping(t, base, agent); status != 200 {
			t.Errorf("bare calls cost the agent its place: %d", status)
		}
		become(t, c)
		if status := ping(t, base, agent); status != 404 {
			t.Errorf("the replaced agent gets %d, want 404", status)
		}
		want(t, c, `{"jsonrpc":"2.0","id":9,"method":"ping"}`, `"result":{}`)
	})
}

// One socket takes a session over from another; that one goes on bare.
func TestSocketReplacesSocket(t *testing.T) {
	srv, base := start(t, labEnv(), counted())
	first := dial(t, base+"/mcp")
	live(t, srv, labSession)
	second := dial(t, base+"/mcp?session_id="+labSession)
	become(t, first)
	waiting(t, srv, first)
	become(t, second)
	wantNext(t, first, `"id":7`, `"error"`)
	wantBare(t, first)
	waiting(t, srv, second)
	become(t, first)
	wantNext(t, second, `"id":7`, `"error"`)
	wantBare(t, second)
}

// The id of a socket's agent opens no other door.
func TestSocketAgentHasNoHTTP(t *testing.T) {
	srv, base := start(t, labEnv(), counted())
	c := dial(t, base+"/mcp")
	live(t, srv, labSession)
	become(t, c)
	if ids := registered(srv); len(ids) != 1 || ids[0] != "s2" {
		t.Fatalf("agents %v", ids)
	}
	if status := ping(t, base, "s2"); status != 404 {
		t.Errorf("POST got %d, want 404", status)
	}
	for _, method := range []string{"GET", "DELETE"} {
		if status, _ := request(t, method, base+"/mcp", "", asAgent("s2")...); status != 404 {
			t.Errorf("%s got %d, want 404", method, status)
		}
	}
	want(t, c, rpcCall("say", `{"text":"x"}`, ""), `"text":"x"`)
}

// An author's server that gives its client up, as KeepAlive does, leaves the connection bare. Requests that it has not
// answered are answered.
func TestDialogThatTheServerGivesUp(t *testing.T) {
	env := ownEnv(&mcp.ServerOptions{KeepAlive: 200 * time.Millisecond}, func(*desk) {})
	eachDialog(t, env, func(t *testing.T, srv *Server, _ string, c talker) {
		begun := time.Now()
		become(t, c)
		wantNext(t, c, `"method":"ping"`) // it gets no answer
		next := make(chan string, 1)
		go func() { // the SDK may tell that it does not wait any more, and waits for that to be read
			got := c.receive()
			if strings.Contains(got, `"method":"notifications/cancelled"`) {
				got = c.receive()
			}
			next <- got
		}()
		waitFor(t, "the agent's end", func() bool { return len(registered(srv)) == 0 })
		if waited := time.Since(begun); waited > 2*time.Second {
			t.Errorf("the end took %v", waited)
		}
		c.send(rpcCall("say", `{"text":"x"}`, ""))
		if got := within(t, "the answer", next); !strings.Contains(got, bareMark) {
			t.Errorf("got %s", got)
		}
	})
}

// A session that ends answers what runs on it, and then closes its sockets.
func TestSocketAgentWhenTheSessionEnds(t *testing.T) {
	for how, c := range map[string]struct {
		end  func(t *testing.T, srv *Server)
		code websocket.StatusCode
	}{
		"closed":  {func(t *testing.T, srv *Server) { live(t, srv, labSession).Close(t.Context(), "test") }, websocket.StatusNormalClosure},
		"stopped": {mustClose, websocket.StatusGoingAway},
	} {
		for _, query := range []string{"", "?session_id=" + labSession} {
			t.Run(how+query, func(t *testing.T) {
				srv, base := start(t, labEnv(), counted())
				if query != "" {
					createSession(t, base)
				}
				ws := dial(t, base+"/mcp"+query)
				live(t, srv, labSession)
				become(t, ws)
				waiting(t, srv, ws)
				go c.end(t, srv)
				wantNext(t, ws, `"id":7`, `"error"`)
				if code := ws.closed(); code != c.code {
					t.Errorf("closed with %d, want %d", code, c.code)
				}
				waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
			})
		}
	}
}

// A handler that does not heed its context keeps neither the answer nor the connection.
func TestSocketAgentWithADeafTool(t *testing.T) {
	deaf := make(gate)
	srv, base := start(t, labWith(tools.Func("deaf", "Does not listen.", deaf.deaf)), counted())
	createSession(t, base)
	ws := dial(t, base+"/mcp?session_id="+labSession)
	become(t, ws)
	ws.send(rpcCall("deaf", "{}", ""))
	s := live(t, srv, labSession)
	waitFor(t, "the call", func() bool { return s.Busy() == 1 })
	cs := connectMCP(t, base+"/mcp?session_id="+labSession)
	wantNext(t, ws, `"id":7`, `"error"`)
	want(t, ws, `{"jsonrpc":"2.0","id":8,"method":"ping"}`, "-32601") // bare
	close(deaf)
	say(t, cs, "x")
}

// A request that the SDK does not answer in time is answered when the agent is gone: here a prompt whose author does not
// heed its context.
func TestDialogAnswersWhatIsLeft(t *testing.T) {
	open, entered := make(gate), make(chan struct{}, 2)
	env := gym.Environment[*mcp.Server]{
		Name: "prompts",
		New: func(context.Context, *gym.Session) (*mcp.Server, error) {
			s := mcp.NewServer(&mcp.Implementation{Name: "p", Version: "1"}, nil)
			s.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{}, nil
			})
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if method == "logging/setLevel" { // it takes no turn
						entered <- struct{}{}
						<-open
					}
					return next(ctx, method, req)
				}
			})
			return s, nil
		},
		Server: func(s *mcp.Server) *mcp.Server { return s },
	}
	srv, base := start(t, env, counted())
	createSession(t, base)
	ws := dial(t, base+"/mcp?session_id="+labSession)
	become(t, ws)
	ws.send(`{"jsonrpc":"2.0","id":"left","method":"logging/setLevel","params":{"level":"info"}}`)
	within(t, "the request", entered)
	connectMCP(t, base+"/mcp?session_id="+labSession)
	wantNext(t, ws, `"id":"left"`, "-32001", "has ended")
	close(open)
	want(t, ws, `{"jsonrpc":"2.0","id":8,"method":"ping"}`, `"id":8`, "-32601")
	live(t, srv, labSession)
}

// A socket that is lost takes its agent with it, and its session where it owns that.
func TestLostSocketEndsItsAgent(t *testing.T) {
	for _, joins := range []bool{false, true} {
		t.Run(fmt.Sprint("joins ", joins), func(t *testing.T) {
			srv, base := start(t, labEnv(), counted())
			url := base + "/mcp"
			if joins {
				url += "?session_id=" + createSession(t, base)
			}
			ws := dial(t, url)
			s := live(t, srv, labSession)
			become(t, ws)
			waiting(t, srv, ws)
			ws.CloseNow()
			waitFor(t, "the agent's end", func() bool { return len(registered(srv)) == 0 && s.Busy() == 0 })
			if joins {
				if o := rpcPostCaller(t, base, labSession)("say", `{"text":"x"}`); o.Type != "" {
					t.Errorf("got %+v", o)
				}
				return
			}
			ended(t, "lost", srv, s)
		})
	}
}

// The same while the initialize is under way.
func TestSocketLostDuringInitialize(t *testing.T) {
	for _, heeds := range []bool{false, true} {
		t.Run(fmt.Sprint("heeds ", heeds), func(t *testing.T) {
			m := newDoorman(heeds)
			srv, base := start(t, m.env(), counted())
			ws := dial(t, base+"/mcp")
			s := live(t, srv, labSession)
			m.on.Store(true)
			ws.send(initializeBody)
			within(t, "the initialize", m.arrived)
			ws.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			ws.CloseNow()
			<-s.Context().Done()
			if !heeds {
				close(m.open)
			}
			ended(t, "lost", srv, s)
		})
	}
}

// A client that initialises and does not read is given up like another, and its answers are not written for ever.
func TestSocketAgentThatStopsReading(t *testing.T) {
	t.Parallel()
	for how, end := range map[string]func(t *testing.T, srv *Server, w *wire){
		"lost":    func(_ *testing.T, _ *Server, w *wire) { reset(w.TCPConn) },
		"stopped": func(t *testing.T, srv *Server, _ *wire) { mustClose(t, srv) },
		"closed":  func(t *testing.T, srv *Server, _ *wire) { live(t, srv, victim).Close(t.Context(), "test") },
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			sc := newScene(t, startNarrow, nil)
			w := upgradeWire(t, sc.base, "/mcp")
			s := live(t, sc.srv, victim)
			w.send(opText, initializeBody)
			w.mustNext(opText)
			for i := range 2 * maxUnanswered {
				w.send(opText, strings.Replace(rpcCall("pages", `{"size":400000}`, ""), `"id":7`, fmt.Sprintf(`"id":%d`, i), 1))
				if i == 0 {
					if _, err := w.in.Peek(1); err != nil {
						t.Fatal(err)
					}
				}
				if i > queuedFrames { // more would not be read
					break
				}
			}
			end(t, sc.srv, w)
			ctx, cancel := context.WithTimeout(t.Context(), testTime)
			defer cancel()
			if err := s.Close(ctx, "test"); err != nil {
				t.Error(err)
			}
			w.Close()
		})
	}
}
