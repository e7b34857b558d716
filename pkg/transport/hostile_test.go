package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Clients that flood, stall or vanish: they cost nobody else a slot, a socket or a goroutine.

// labWith is the lab with other tools beside say and wait.
func labWith(more ...tools.Tool[*lab]) gym.Environment[*lab] {
	env := labEnv()
	env.Tools = tools.New(append(more, tools.Func("say", "Say it.", (*lab).say), tools.Func("wait", "Waits for ever.", (*lab).wait))...)
	return env
}

// A gate makes a tool that does not heed its context: it returns when the gate has been opened.
type gate chan struct{}

func (g gate) deaf(*lab, context.Context, tools.None) (string, error) { <-g; return "heard", nil }

// counted gives sessions and agents the ids s1, s2, and so on.
func counted() Options { return Options{Sessions: session.Options{NewID: countingIDs()}} }

// live finds a session that another goroutine may be about to open.
func live(t *testing.T, srv *Server, id string) (s *session.Session) {
	t.Helper()
	waitFor(t, "session "+id, func() bool {
		found, err := srv.Sessions().Get(id)
		s = found
		return err == nil
	})
	return s
}

func mustClose(t *testing.T, srv *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	if err := srv.Close(ctx); err != nil {
		t.Errorf("closing the server: %v", err)
	}
}

// ended waits for a session to end by itself.
func ended(t *testing.T, what string, srv *Server, s *session.Session) {
	ctx, cancel := context.WithTimeout(context.Background(), testTime)
	defer cancel()
	select {
	case <-s.Context().Done():
	case <-ctx.Done():
		t.Errorf("%s: the session does not end", what)
	}
	if err := s.Close(ctx, "test"); err != nil { // waits for the end that has begun
		t.Errorf("%s: %v", what, err)
	}
	if n := srv.Sessions().Active(); n != 0 {
		t.Errorf("%s: %d slots are taken", what, n)
	}
}

// within waits for a channel to give a value or to be closed.
func within[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(testTime):
		t.Fatalf("%s did not come", what)
	}
	return v
}

func TestFloodAfterCloseFrame(t *testing.T) {
	const closing = `{"type":"close"}`
	var wg sync.WaitGroup
	defer wg.Wait()
	for name, c := range map[string]struct {
		closing     string
		busy, stays bool
	}{
		"idle":         {closing: closing},
		"long to read": {closing: `{"type":"close"` + strings.Repeat(" ", 4<<20) + `}`},
		"after a call": {closing: closing, busy: true},
		"peer stays":   {closing: closing, stays: true},
	} {
		open := make(gate)
		srv, base := start(t, labWith(tools.Func("deaf", "", open.deaf)), counted())
		w := upgradeWire(t, base, "/ws")
		s := live(t, srv, labSession)
		if c.busy {
			w.send(opText, stepFrame("deaf", "{}"))
			waitFor(t, "the call", func() bool { return s.Busy() == 1 })
		}
		flood := wireFrame(opText, c.closing)
		for range 4 * queuedFrames {
			flood = append(flood, wireFrame(opText, `{"type":"state"}`)...)
		}
		_, _ = w.Write(flood) // the server may close before it has read all
		close(open)
		wg.Go(func() {
			for {
				op, _, payload, err := w.next()
				if err != nil {
					break
				}
				switch {
				case op == opClose && binary.BigEndian.Uint16(payload) != uint16(websocket.StatusNormalClosure):
					t.Errorf("%s: closed with %q", name, payload)
				case op == opText && !strings.Contains(string(payload), "heard"):
					t.Errorf("%s: a frame after the close frame was answered: %s", name, payload)
				}
				if op == opClose {
					break
				}
			}
			if c.stays { // the session does not wait for the socket's end
				ended(t, name, srv, s)
			}
			w.Close()
			ended(t, name, srv, s)
			mustClose(t, srv)
		})
	}
}

// A peer that reads a long reply slowly waits for pongs meanwhile.
func TestPongsPassLongReplies(t *testing.T) {
	t.Parallel()
	const size = 1 << 20 // the reply has it three times and more
	big := tools.Func("big", "", func(*lab, context.Context, tools.None) (string, error) { return strings.Repeat("x", size), nil })
	_, base := startNarrow(t, labWith(big), Options{})
	for path, call := range map[string]string{"/ws": stepFrame("big", "{}"), "/mcp": rpcCall("big", "{}", "")} {
		w := upgradeWire(t, base, path)
		w.send(opText, call)
		if _, err := w.in.Peek(1); err != nil { // the reply is under way
			t.Fatal(err)
		}
		w.send(opPing, "there?")
		w.pace = func() { request(t, http.MethodGet, base+"/health", "") }
		ponged, length := false, 0
		for final := false; !final; {
			op, last, payload, err := w.next()
			if err != nil {
				t.Fatalf("%s: the socket was lost after %d bytes: %v", path, length, err)
			}
			if op == opPong {
				ponged, w.pace = true, nil
				continue
			}
			length += len(payload)
			final = last
		}
		if !ponged || length < 3*size {
			t.Errorf("%s: a reply of %d bytes, with a pong in it: %t", path, length, ponged)
		}
		w.send(opText, call)
		if op, _, _, err := w.next(); err != nil || op != opText {
			t.Errorf("%s: the socket does not live on: %d, %v", path, op, err)
		}
		w.Close()
	}
}

// An opener makes a session by one of the doors, for a client that goes when ctx ends.
type opener func(ctx context.Context, base string)

func socketOpener(path string) opener {
	return func(ctx context.Context, base string) {
		c, _, err := websocket.Dial(ctx, "ws"+strings.TrimPrefix(base, "http")+path, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		_, _, _ = c.Read(ctx)
	}
}

func postOpener(path, body string) opener {
	return func(ctx context.Context, base string) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+path, strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if res, err := http.DefaultClient.Do(r); err == nil {
			res.Body.Close()
		}
	}
}

const initializeBody = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

var openers = map[string]opener{
	"/ws":         socketOpener("/ws"),
	"/mcp":        socketOpener("/mcp"),
	"create":      postOpener("/mcp", `{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`),
	"initialize":  postOpener("/mcp", initializeBody),
	"call":        postOpener("/mcp", rpcCall("say", `{"text":"x"}`, "")),
	"POST /step":  postOpener("/step", `{"action":{"type":"call_tool","tool_name":"say","arguments":{"text":"x"}}}`),
	"POST /reset": postOpener("/reset", ``),
}

// A slowLab is a lab whose New waits for its context to end. A stubborn one then returns a value all the same.
type slowLab struct {
	stubborn       bool
	building       chan context.Context
	opened, closed atomic.Int64
}

func (l *slowLab) env() gym.Environment[*lab] {
	env := labEnv()
	env.New = func(ctx context.Context, _ *gym.Session) (*lab, error) {
		l.building <- ctx
		<-ctx.Done()
		if !l.stubborn {
			return nil, ctx.Err()
		}
		l.opened.Add(1)
		return &lab{}, nil
	}
	env.Close = func(*lab) error { l.closed.Add(1); return nil }
	return env
}

func TestSlowNewEndsWithItsCallerAndServer(t *testing.T) {
	t.Parallel()
	for name, open := range openers {
		for _, stubborn := range []bool{false, true} {
			for _, stopped := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/stubborn %t/stopped %t", name, stubborn, stopped), func(t *testing.T) {
					l := &slowLab{stubborn: stubborn, building: make(chan context.Context, 1)}
					srv, base := start(t, l.env(), Options{Sessions: session.Options{Max: 1}})
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					var wg sync.WaitGroup
					wg.Go(func() { open(ctx, base) })
					building := within(t, "New", l.building)
					active(t, srv, 1)
					if stopped {
						mustClose(t, srv)
					} else {
						leave()
					}
					within(t, "the end of New's context", building.Done())
					waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
					wg.Wait()
					if o, c := l.opened.Load(), l.closed.Load(); o != c {
						t.Errorf("%d values were opened and %d closed", o, c)
					}
				})
			}
		}
	}
}

func TestSlowNewHoldsNoPingsBack(t *testing.T) {
	for path, frame := range map[string]string{"/ws": `{"type":"state"}`, "/mcp": rpcCall("say", `{"text":"x"}`, "")} {
		open := make(gate)
		env := labEnv()
		env.New = func(ctx context.Context, _ *gym.Session) (*lab, error) {
			select {
			case <-open:
				return &lab{}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		_, base := start(t, env, Options{})
		w := upgradeWire(t, base, path)
		for range 3 {
			w.send(opText, frame)
		}
		w.send(opPing, "there?")
		if op, _, payload, err := w.next(); err != nil || op != opPong || string(payload) != "there?" {
			t.Errorf("%s: got %d %s, %v; want a pong", path, op, payload, err)
		}
		close(open)
		for range 3 {
			if op, _, payload, err := w.next(); err != nil || op != opText || strings.Contains(string(payload), `"error":`) {
				t.Errorf("%s: got %d %s, %v", path, op, payload, err)
			}
		}
	}
}

// The reply that is due comes before the close frame, however the session ends under its socket.
func TestRunningCallIsToldOfTheEnd(t *testing.T) {
	t.Parallel()
	call := func(tool string) string { return rpcCall(tool, "{}", "") }
	mcpFrame := func(tool string) string { return `{"type":"mcp","data":` + call(tool) + `}` }
	step := func(tool string) string { return stepFrame(tool, "{}") }
	for name, c := range map[string]struct {
		path  string
		joins bool
		frame func(tool string) string
		told  string
	}{
		"step":           {"/ws", false, step, `"code":"SESSION_ERROR"`},
		"step attached":  {"/ws", true, step, `"code":"SESSION_ERROR"`},
		"frame attached": {"/ws", true, mcpFrame, `"id":7,"error":{"code":-32000,`},
		"/mcp":           {"/mcp", false, call, `"id":7,"error":{"code":-32000,`},
		"/mcp joined":    {"/mcp", true, call, `"id":7,"error":{"code":-32000,`},
	} {
		for code, stop := range map[websocket.StatusCode]bool{websocket.StatusNormalClosure: false, websocket.StatusGoingAway: true} {
			t.Run(fmt.Sprintf("%s/%v", name, code), func(t *testing.T) {
				const n = 30
				open := make(gate)
				srv, base := start(t, labWith(tools.Func("deaf", "", open.deaf)), counted())
				var sockets [n]wsClient
				var sessions [n]*session.Session
				for i := range n {
					query := ""
					if c.joins {
						query = "?session_id=" + createSession(t, base)
					}
					sockets[i] = dial(t, base+c.path+query)
					sockets[i].send(c.frame([]string{"wait", "deaf"}[i%2]))
				}
				for i := range n {
					sessions[i] = live(t, srv, fmt.Sprint("s", i+1))
					waitFor(t, "the call", func() bool { return sessions[i].Busy() == 1 })
				}
				var wg sync.WaitGroup
				if stop {
					wg.Go(func() { mustClose(t, srv) })
				} else {
					for _, s := range sessions {
						wg.Go(func() { s.Close(context.Background(), "test") })
					}
				}
				for _, ws := range sockets {
					if got := ws.receive(); !strings.Contains(got, c.told) || !strings.Contains(got, `"message":"the session was closed`) {
						t.Errorf("got %s", got)
					}
					if got := ws.closed(); got != code {
						t.Errorf("closed with %v", got)
					}
				}
				close(open)
				wg.Wait()
			})
		}
	}
}

// A client that reconnects is faster than the server's notice of its loss, or even than the loss.
func TestAttachAroundALoss(t *testing.T) {
	t.Parallel()
	open := make(gate)
	srv, base := start(t, labWith(tools.Func("deaf", "", open.deaf)), Options{})
	defer close(open)
	const list = `{"type":"mcp","data":` + listBody + `}` // waits for no turn
	for _, tool := range []string{"", "wait", "deaf"} {
		id := createSession(t, base)
		s, url := live(t, srv, id), base+"/ws?session_id="+id
		attached := dial(t, url)
		attached.ask(list)
		for range 10 {
			if tool != "" {
				attached.send(stepFrame(tool, "{}"))
				waitFor(t, "the call", func() bool { return s.Busy() > 0 })
			}
			attached.CloseNow()
			attached = dial(t, url)
			if got := attached.ask(list); !strings.Contains(got, `"result":`) {
				t.Fatalf("after a loss during %q: %s", tool, got)
			}
			early := upgradeWire(t, base, "/ws?session_id="+id)
			early.send(opText, list)
			early.send(opPing, "")
			if op, _, payload, err := early.next(); err != nil || op != opPong {
				t.Fatalf("who attaches before the loss gets %d %s, %v; want a pong", op, payload, err)
			}
			attached.CloseNow()
			if op, _, payload, err := early.next(); err != nil || op != opText || !strings.Contains(string(payload), `"result":`) {
				t.Fatalf("who attached before the loss gets %d %s, %v", op, payload, err)
			}
			early.Close()
			attached = dial(t, url)
		}
	}
}

func TestJoinedSocketKeepsTheSessionAwake(t *testing.T) {
	const idle = 20 * time.Millisecond
	srv, base := start(t, labEnv(), Options{Sessions: session.Options{IdleTimeout: idle}})
	gone := func(id string) func() bool {
		return func() bool { _, err := srv.Sessions().Get(id); return err != nil }
	}
	var ws wsClient
	id := ""
	waitFor(t, "a session that is joined before it goes idle", func() bool { // idle may pass before the socket is there
		id = createSession(t, base)
		ws = dial(t, base+"/mcp?session_id="+id)
		return strings.Contains(ws.ask(rpcCall("say", `{"text":"x"}`, "")), `"data":"x"`)
	})
	for range 3 { // others go idle meanwhile
		waitFor(t, "the end of an idle session", gone(createSession(t, base)))
	}
	if got := ws.ask(rpcCall("say", `{"text":"x"}`, "")); !strings.Contains(got, `"data":"x"`) {
		t.Errorf("got %s", got)
	}
	ws.CloseNow()
	waitFor(t, "the end of the session that nobody has joined any more", gone(id))
}

func TestOwningMCPSocketLeavesRoomForATrainer(t *testing.T) {
	srv, base := start(t, labEnv(), counted())
	owner := dial(t, base+"/mcp")
	if got := owner.ask(`{"jsonrpc":"2.0","id":1,"method":"openenv/session/create"}`); !strings.Contains(got, `"session_id":"`+labSession+`"`) {
		t.Fatalf("got %s", got)
	}
	for range 2 { // one after the other
		trainer := dial(t, base+"/ws?session_id="+labSession)
		trainer.ask(`{"type":"reset"}`)
		owner.ask(rpcCall("say", `{"text":"x"}`, ""))
		if got := trainer.ask(`{"type":"state"}`); !strings.Contains(got, `"step_count":1`) {
			t.Errorf("got %s", got)
		}
		trainer.Close(websocket.StatusNormalClosure, "")
		active(t, srv, 1)
	}
	trainer := dial(t, base+"/ws?session_id="+labSession)
	trainer.ask(`{"type":"state"}`)
	owner.Close(websocket.StatusNormalClosure, "")
	if code := trainer.closed(); code != websocket.StatusNormalClosure {
		t.Errorf("closed with %v", code)
	}
	waitFor(t, "the slot", func() bool { return srv.Sessions().Active() == 0 })
}

// Sockets that come while the server closes are refused or closed.
func TestSocketsDuringClose(t *testing.T) {
	for range 5 {
		srv, base := start(t, labEnv(), Options{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					socketOpener("/ws")(t.Context(), base)
				}
			})
		}
		waitFor(t, "a session", func() bool { return srv.Sessions().Active() > 0 })
		mustClose(t, srv)
		wg.Wait()
		active(t, srv, 0)
	}
}
