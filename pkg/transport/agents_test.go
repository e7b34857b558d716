package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// Agents that come, go and stall, and the SDK servers of authors that they and others call.

// asAgent are the headers of an agent's requests.
func asAgent(id string) []string {
	return []string{"Accept", "application/json, text/event-stream", "Mcp-Session-Id", id}
}

// pings reports how the agent with that id is answered.
func ping(t *testing.T, base, agent string) (status int) {
	t.Helper()
	status, _ = post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, asAgent(agent)...)
	return status
}

// initializing is what an initialize that is under way came to.
type initializing struct {
	status int
	id     string
	err    error
}

// initialize begins an initialize, which its client gives up when ctx ends.
func initialize(ctx context.Context, url string, headers ...string) <-chan initializing {
	out := make(chan initializing, 1)
	go func() {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(initializeBody))
		if err != nil {
			out <- initializing{err: err}
			return
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for i := 0; i < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			out <- initializing{err: err}
			return
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		out <- initializing{res.StatusCode, res.Header.Get("Mcp-Session-Id"), err}
	}()
	return out
}

// A doorman is an author's middleware that holds an initialize up, once it is told to.
type doorman struct {
	on      atomic.Bool
	arrived chan struct{}
	open    chan struct{}
	heeds   bool  // its context
	err     error // what it says in the end
}

func newDoorman(heeds bool) *doorman {
	return &doorman{arrived: make(chan struct{}, 1), open: make(chan struct{}), heeds: heeds}
}

func (m *doorman) env() gym.Environment[*desk] {
	return ownEnv(nil, func(d *desk) {
		ownMiddleware(d, func(ctx context.Context, method string, call func() (mcp.Result, error)) (mcp.Result, error) {
			res, err := call()
			if method != "initialize" || !m.on.Load() {
				return res, err
			}
			m.arrived <- struct{}{}
			patience := ctx.Done()
			if !m.heeds {
				patience = nil
			}
			select {
			case <-m.open:
			case <-patience:
			}
			return res, errors.Join(err, m.err)
		})
	})
}

// unknown waits until an agent is.
func unknownAgent(t *testing.T, srv *Server, id string) {
	t.Helper()
	waitFor(t, "the end of agent "+id, func() bool { _, err := srv.Sessions().Agent(id); return err != nil })
}

// An initialize that is under way when its session ends leaves no agent, slot or goroutine.
func TestInitializeWhileTheSessionEnds(t *testing.T) {
	for how, end := range map[string]func(t *testing.T, srv *Server, base string){
		"closed": func(t *testing.T, _ *Server, base string) {
			post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/close","params":{"session_id":"`+labSession+`"}}`)
		},
		"stopped": func(t *testing.T, srv *Server, _ string) { mustClose(t, srv) },
	} {
		for _, heeds := range []bool{false, true} {
			for _, joins := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/heeds %t/joins %t", how, heeds, joins), func(t *testing.T) {
					m := newDoorman(heeds)
					srv, base := start(t, m.env(), counted())
					url := base + "/mcp"
					if joins {
						url += "?session_id=" + createSession(t, base)
					}
					m.on.Store(true)
					got := initialize(t.Context(), url)
					within(t, "the initialize", m.arrived)
					s := live(t, srv, labSession)
					var wg sync.WaitGroup
					wg.Go(func() { end(t, srv, base) })
					within(t, "the end", s.Context().Done())
					unknownAgent(t, srv, "s2")
					if !heeds {
						close(m.open)
					}
					if in := within(t, "the answer", got); in.err == nil && in.status == http.StatusOK {
						if _, err := srv.Sessions().Agent(in.id); err == nil {
							t.Error("the agent has taken its place")
						}
					}
					wg.Wait()
					waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
				})
			}
		}
	}
}

// A newcomer that is refused, or that gives up, leaves the present agent in its place.
func TestRefusedNewcomer(t *testing.T) {
	m := newDoorman(false)
	srv, base := start(t, m.env(), counted())
	url := base + "/mcp?session_id=" + createSession(t, base)
	present := rawInitialize(t, url, "2025-11-25")
	stays := func(why string) {
		t.Helper()
		if status := ping(t, base, present); status != http.StatusOK {
			t.Errorf("after a newcomer %s the present agent gets %d", why, status)
		}
		if status, reply := post(t, base+"/mcp", rpcCall("say", `{"text":"x"}`, ""), asAgent(present)...); status != http.StatusOK || !strings.Contains(reply, `"said":"x"`) {
			t.Errorf("after a newcomer %s the present agent gets %d %s", why, status, reply)
		}
	}
	for why, newcomer := range map[string][]string{
		"with wrong params":     {`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":5}}`},
		"without params":        {`{"jsonrpc":"2.0","id":1,"method":"initialize"}`},
		"without an id":         {`{"jsonrpc":"2.0","method":"initialize","params":{}}`},
		"that takes no stream":  {initializeBody, "Accept", "text/plain"},
		"of an unknown version": {initializeBody, "Mcp-Protocol-Version", "2020-01-01"},
		"of the stateless kind": {initializeBody, "Mcp-Protocol-Version", stateless},
		"of a foreign page":     {initializeBody, "Origin", "http://evil.example"},
		"with another's agent":  {initializeBody, "Mcp-Session-Id", "nosuch"},
		"that is not JSON":      {`{`},
		"with a jsonrpc of 1.0": {strings.Replace(initializeBody, `"2.0"`, `"1.0"`, 1)},
	} {
		headers := append([]string{"Accept", "application/json, text/event-stream"}, newcomer[1:]...)
		if status, reply := post(t, url, newcomer[0], headers...); status == http.StatusOK && !strings.Contains(reply, `"error"`) {
			t.Errorf("a newcomer %s was taken: %s", why, reply)
		}
		stays(why)
	}
	m.err = errors.New("not you")
	m.on.Store(true)
	got := initialize(t.Context(), url)
	within(t, "the initialize", m.arrived)
	m.open <- struct{}{}
	within(t, "the answer", got)
	stays("whom the author refuses")

	m.err = nil
	ctx, giveUp := context.WithCancel(t.Context())
	got = initialize(ctx, url)
	within(t, "the initialize", m.arrived)
	before := len(registered(srv))
	if before != 2 {
		t.Fatalf("%d agents are known, want the present one and the newcomer", before)
	}
	giveUp()
	within(t, "the end of the request", got)
	waitFor(t, "the end of the newcomer", func() bool { return len(registered(srv)) == 1 })
	stays("that gave up")
	m.open <- struct{}{}
	stays("that gave up, and was let in too late")
	active(t, srv, 1)
}

// registered are the agents that are known, of the first few ids.
func registered(srv *Server) (ids []string) {
	for i := range 50 {
		if _, err := srv.Sessions().Agent(fmt.Sprint("s", i+1)); err == nil {
			ids = append(ids, fmt.Sprint("s", i+1))
		}
	}
	return ids
}

// A server that gives up on its client, as the SDK's KeepAlive does, makes the agent unknown; the session stays.
func TestAgentThatTheServerCloses(t *testing.T) {
	srv, base := start(t, ownEnv(&mcp.ServerOptions{KeepAlive: 200 * time.Millisecond}, func(*desk) {}), counted())
	url := base + "/mcp?session_id=" + createSession(t, base)
	for range 2 {
		agent := rawInitialize(t, url, "2025-11-25") // it answers no ping
		unknownAgent(t, srv, agent)
		if status := ping(t, base, agent); status != http.StatusNotFound {
			t.Errorf("got %d, want 404", status)
		}
		if status, _ := request(t, http.MethodDelete, base+"/mcp", "", "Mcp-Session-Id", agent); status != http.StatusNotFound {
			t.Errorf("DELETE got %d, want 404", status)
		}
	}
	if o := rpcPostCaller(t, base, labSession)("say", `{"text":"x"}`); o.Type != "" {
		t.Errorf("got %+v", o)
	}
}

// stalled opens a session for an agent that asks for a long answer and does not read it.
func stalled(t *testing.T, idle time.Duration, headers string) (srv *Server, s *session.Session, base, agent string, w *wire) {
	t.Helper()
	big := strings.Repeat("x", 256<<10) // much more than the buffers hold
	env := ownEnv(nil, func(d *desk) {
		addTool(d, "big", func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: big}}}
		})
	})
	o := counted()
	o.Sessions.IdleTimeout = idle
	srv, base = startNarrow(t, env, o)
	agent = rawInitialize(t, base+"/mcp", "2025-11-25")
	s = live(t, srv, labSession)
	body := rpcCall("big", "{}", "")
	w = dialWire(t, base, "POST /mcp\nConnection: close\n"+headers+"Content-Type: application/json\nAccept: application/json, text/event-stream\nMcp-Session-Id: "+agent+fmt.Sprintf("\nContent-Length: %d", len(body)), body)
	for line := ""; !strings.HasPrefix(line, "event: message"); { // the answer is under way
		var err error
		if line, err = w.in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	return srv, s, base, agent, w
}

// An agent that does not read its answer holds neither the session nor the server.
func TestAgentThatStopsReading(t *testing.T) {
	t.Parallel() // each session gives the answer some seconds to be read
	var wg sync.WaitGroup
	defer wg.Wait()
	for how, end := range map[string]func(srv *Server, s *session.Session, base, agent string){
		"closed":  func(_ *Server, s *session.Session, _, _ string) { s.Close(t.Context(), "test") },
		"stopped": func(srv *Server, _ *session.Session, _, _ string) { mustClose(t, srv) },
		"deleted": func(_ *Server, _ *session.Session, base, agent string) {
			request(t, http.MethodDelete, base+"/mcp", "", "Mcp-Session-Id", agent)
		},
		"replaced": func(_ *Server, s *session.Session, base, _ string) {
			connectMCP(t, base+"/mcp?session_id="+labSession)
			s.Close(t.Context(), "test")
		},
		"idle":                  func(*Server, *session.Session, string, string) {},
		"closed, and upgrading": func(_ *Server, s *session.Session, _, _ string) { s.Close(t.Context(), "test") },
	} {
		headers := ""
		if strings.HasSuffix(how, "upgrading") { // what is said about an upgrade changes nothing
			headers = "Upgrade: websocket\n"
		}
		idle := -time.Second
		if how == "idle" {
			idle = 500 * time.Millisecond
		}
		srv, s, base, agent, w := stalled(t, idle, headers)
		wg.Go(func() { end(srv, s, base, agent) })
		wg.Go(func() {
			ended(t, how, srv, s)
			_ = w.SetReadBuffer(1 << 20) // read on in a hurry
			if _, err := io.Copy(io.Discard, w.in); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: the connection is still open", how)
			}
		})
	}
}

// All that an author's server does for one value happens one after another: n is not guarded, and the race detector
// watches it.
func TestAuthorsServerRunsOneThingAtATime(t *testing.T) {
	var overlaps atomic.Int64
	enter := func(d *desk) {
		d.rung++
		at := d.rung
		for range 20 {
			runtime.Gosched()
		}
		if d.rung != at {
			overlaps.Add(1)
		}
	}
	env := ownEnv(nil, func(d *desk) {
		addTool(d, "act", func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
			enter(d)
			return &mcp.CallToolResult{}
		})
		d.server.AddPrompt(&mcp.Prompt{Name: "p"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			enter(d)
			return &mcp.GetPromptResult{}, nil
		})
		d.server.AddResource(&mcp.Resource{Name: "r", URI: "test://r"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			enter(d)
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://r", Text: "x"}}}, nil
		})
		ownMiddleware(d, func(_ context.Context, method string, call func() (mcp.Result, error)) (mcp.Result, error) {
			if strings.HasSuffix(method, "/list") {
				enter(d)
			}
			return call()
		})
	})
	env.State = gym.StateOf(func(d *desk) struct{} { enter(d); return struct{}{} })
	_, base := start(t, env, Options{})
	id := createSession(t, base)
	trainer, cs := dial(t, base+"/ws?session_id="+id), connectMCP(t, base+"/mcp?session_id="+id)
	failed := make(chan error, 100)
	var wg sync.WaitGroup
	for _, call := range []func() error{
		func() error { _, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "act"}); return err },
		func() error { _, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); return err },
		func() error { _, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "p"}); return err },
		func() error {
			_, err := cs.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://r"})
			return err
		},
		func() error { _, err := cs.ListTools(t.Context(), nil); return err },
		func() error { _, err := cs.ListPrompts(t.Context(), nil); return err },
		func() error { post(t, base+"/mcp", rpcCall("act", "{}", id)); return nil },
		func() error {
			post(t, base+"/mcp", strings.TrimSuffix(listBody, "}")+`,"params":{"session_id":"`+id+`"}}`)
			return nil
		},
		func() error {
			trainer.ask(stepFrame("act", "{}"))
			trainer.ask(`{"type":"state"}`)
			trainer.ask(`{"type":"step","data":{"type":"list_tools"}}`)
			return nil
		},
	} {
		wg.Go(func() {
			for range 10 {
				if err := call(); err != nil {
					failed <- err
				}
			}
		})
	}
	wg.Wait()
	close(failed)
	for err := range failed {
		t.Error(err)
	}
	if n := overlaps.Load(); n != 0 {
		t.Errorf("%d overlaps", n)
	}
}

// Only an agent can be asked something. Other callers' tools are told so at once, and their notifications go on.
func TestRequestsToWhoCannotAnswer(t *testing.T) {
	env := ownEnv(nil, func(d *desk) {
		addTool(d, "talk", func(ctx context.Context, r *mcp.CallToolRequest) *mcp.CallToolResult {
			var refused []string
			notify := func() {
				if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p"}); err != nil {
					refused = append(refused, "notification: "+err.Error())
				}
			}
			ask := func(what string, err error) {
				if err != nil && ctx.Err() == nil {
					refused = append(refused, what)
				}
				notify()
			}
			notify()
			//lint:ignore SA1019 authors go on calling it for a while
			_, err := r.Session.ListRoots(ctx, nil)
			ask("roots", err)
			_, err = r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "?"})
			ask("elicitation", err)
			//lint:ignore SA1019 the same
			_, err = r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{})
			ask("sampling", err)
			ask("ping", r.Session.Ping(ctx, nil))
			return &mcp.CallToolResult{StructuredContent: map[string]any{"refused": refused}}
		})
	})
	for _, d := range doors {
		if d.dialect == initialized {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			srv, base := start(t, env, counted())
			call := d.open(t, srv, base)
			for range 2 {
				if got := call("talk", "{}"); got.Data != `{"refused":["roots","elicitation","sampling","ping"]}` {
					t.Errorf("got %+v", got)
				}
			}
		})
	}
}

// sharedServer is an environment all of whose values have one server.
func sharedServer() gym.Environment[*desk] {
	env := ownEnv(nil, func(*desk) {})
	var shared atomic.Pointer[mcp.Server]
	env.Server = func(d *desk) *mcp.Server {
		shared.CompareAndSwap(nil, d.server)
		return shared.Load()
	}
	return env
}

const sharedAdvice = "returned the same server for two values; build one for each, in New"

// A Server function that gives two values one server is told to build one for each.
func TestSharedServer(t *testing.T) {
	srv, base := start(t, sharedServer(), Options{})
	post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`) // the first one may be served
	for range 2 {
		ws := dial(t, base+"/ws")
		if got := ws.receive(); !strings.Contains(got, `"code":"FACTORY_ERROR"`) || !strings.Contains(got, sharedAdvice) {
			t.Errorf("got %s", got)
		}
		if code := ws.closed(); code != websocket.StatusInternalError {
			t.Errorf("closed with %v", code)
		}
	}
	for _, body := range []string{`{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`, initializeBody, rpcCall("say", `{"text":"x"}`, "")} {
		_, reply := post(t, base+"/mcp", body, "Accept", "application/json, text/event-stream")
		if !strings.Contains(reply, sharedAdvice) || !strings.Contains(reply, `"code":-32000`) {
			t.Errorf("got %s", reply)
		}
	}
	waitFor(t, "the slots", func() bool { return srv.Sessions().Active() <= 1 })
}

// The same, where the values live one after the other, the one that is asked for its tools first of all.
func TestServerOfAValueThatHasGone(t *testing.T) {
	_, base := start(t, sharedServer(), Options{})
	for range 2 {
		reply := askOnce(t, base+"/ws", stepFrame("say", `{"text":"x"}`))
		if !strings.Contains(reply, `"said":"x"`) && !strings.Contains(reply, sharedAdvice) {
			t.Errorf("got %s", reply)
		}
	}
}
