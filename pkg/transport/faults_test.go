package transport

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// One fault for each test, over real sockets. After it every slot is free, a session that was open before is unharmed, and
// the log says what happened, to whom and why. Faults that take minutes are in faults_time_test.go.

// A spelling makes a tool call in a door's words.
type spelling func(tool, args string) string

// A fault is what one client does; the session of its socket is the victim.
type fault struct {
	do    func(sc *scene, w *wire, call spelling)
	cause string // why the socket was closed
	level slog.Level
}

var faults = map[string]fault{
	"reset during a step": {cause: "lost: read: connection reset by peer", level: slog.LevelInfo, do: func(sc *scene, w *wire, call spelling) {
		w.send(opText, call("wait", "{}"))
		waitFor(sc.t, "the call", func() bool { return live(sc.t, sc.srv, victim).Busy() == 1 })
		reset(w.TCPConn)
	}},
	"gone during a step": {cause: "lost: the connection has ended", level: slog.LevelInfo, do: func(sc *scene, w *wire, call spelling) {
		w.send(opText, call("wait", "{}"))
		waitFor(sc.t, "the call", func() bool { return live(sc.t, sc.srv, victim).Busy() == 1 })
		w.Close()
	}},
	"gone in the middle of a frame": {cause: "lost: the connection has ended", level: slog.LevelInfo, do: func(sc *scene, w *wire, call spelling) {
		frame := wireFrame(opText, call("wait", "{}"))
		w.write(frame[:len(frame)/2])
		w.Close()
	}},
	"stops reading big replies, then resets": {cause: "lost: ", level: slog.LevelInfo, do: func(sc *scene, w *wire, call spelling) {
		for range 4 {
			w.send(opText, call("pages", `{"size":4000000}`))
		}
		if _, err := w.in.Peek(1); err != nil { // the first is under way, and the rest of it is not read
			sc.t.Fatal(err)
		}
		sc.note("while another does not read")
		reset(w.TCPConn)
	}},
	"says goodbye": {cause: "closed by the client", level: slog.LevelDebug, do: func(sc *scene, w *wire, call spelling) {
		w.send(opClose, "\x03\xe8")
		w.mustClose(websocket.StatusNormalClosure)
	}},
	"says goodbye oddly": {cause: "closed by the client with 4000", level: slog.LevelInfo, do: func(sc *scene, w *wire, call spelling) {
		w.send(opClose, "\x0f\xa0")
		w.mustClose(4000)
	}},
	"binary message": {cause: "a binary message", level: slog.LevelWarn, do: func(sc *scene, w *wire, call spelling) {
		w.send(2, "\x00\x01")
		w.mustClose(websocket.StatusUnsupportedData)
	}},
	"invalid UTF-8": {cause: "text that is not UTF-8", level: slog.LevelWarn, do: func(sc *scene, w *wire, call spelling) {
		w.send(opText, "{\"type\":\"\xff\"}")
		w.mustClose(websocket.StatusInvalidFramePayloadData)
	}},
	"unknown opcode": {cause: "broke the protocol: ", level: slog.LevelWarn, do: func(sc *scene, w *wire, call spelling) {
		w.send(5, "x")
		w.mustClose(websocket.StatusProtocolError)
	}},
	"message too long": {cause: "a message over 1048576 bytes", level: slog.LevelWarn, do: func(sc *scene, w *wire, call spelling) {
		w.send(opText, strings.Repeat("x", 1<<20+1))
		w.mustClose(websocket.StatusMessageTooBig)
	}},
}

func TestFaultsOfOneSocket(t *testing.T) {
	t.Parallel()
	for door, call := range map[string]spelling{
		"/ws": stepFrame, "/mcp": func(tool, args string) string { return rpcCall(tool, args, "") },
	} {
		for name, f := range faults {
			t.Run(strings.TrimPrefix(door, "/")+"/"+name, func(t *testing.T) {
				sc := newScene(t, startNarrow, func(_ *gym.Environment[*diary], o *Options) { o.MaxMessage = 1 << 20 })
				w := upgradeWire(t, sc.base, door)
				live(t, sc.srv, victim)
				f.do(sc, w, call)
				sc.recovered()
				if e := sc.log.want(t, "socket_closed", "session", victim, "cause", f.cause, "door", door); e.level != f.level {
					t.Errorf("logged as %v, want %v", e.level, f.level)
				}
				if all, _ := sc.log.find("socket_closed", "session", victim); len(all) != 1 {
					t.Errorf("%d lines for one socket", len(all))
				}
				sc.log.want(t, "session_close", "session", victim, "reason", "its socket was")
				sc.log.none(t, slog.LevelError)
			})
		}
	}
}

// A close frame of the gym channel is a goodbye too.
func TestFaultCloseFrame(t *testing.T) {
	sc := newScene(t, start, nil)
	w := upgradeWire(t, sc.base, "/ws")
	w.send(opText, `{"type":"close"}`)
	w.mustClose(websocket.StatusNormalClosure)
	sc.recovered()
	if e := sc.log.want(t, "socket_closed", "session", victim, "cause", "closed by the client"); e.level != slog.LevelDebug {
		t.Errorf("logged as %v", e.level)
	}
}

// Frames that are JSON and no frame cost nothing but their answer.
func TestFaultOddTexts(t *testing.T) {
	for path, code := range map[string]string{"/ws": codeValidation, "/mcp": "-32600"} {
		sc := newScene(t, start, nil)
		ws := dial(t, sc.base+path)
		for _, text := range []string{`[1]`, `null`, `"x"`, `42`, `true`} {
			if got := ws.ask(text); !strings.Contains(got, code) {
				t.Errorf("%s: %s got %s", path, text, got)
			}
			waitFor(t, "the line", func() bool {
				all, _ := sc.log.find("message_refused", "session", victim, "code", code, "door", path)
				return len(all) > 0 && all[0].level == slog.LevelDebug
			})
		}
		if all, _ := sc.log.find("message_refused", "session", victim); len(all) != 5 {
			t.Errorf("%s: %d lines for 5 messages", path, len(all))
		}
		sc.log.none(t, slog.LevelWarn)
		ws.Close(websocket.StatusNormalClosure, "")
		sc.recovered()
		sc.log.want(t, "socket_closed", "session", victim, "cause", "closed by the client", "door", path)
	}
}

// A message comes byte by byte, in fragments with pings between them.
func TestFaultDribble(t *testing.T) {
	sc := newScene(t, start, nil)
	w := upgradeWire(t, sc.base, "/ws")
	for i := range 2 {
		text := stepFrame("write", `{"text":"slowly"}`)
		var stream []byte
		for n := 0; n < len(text); n += 10 {
			f := wireFrame(0, text[n:min(n+10, len(text))]) // a continuation
			f[0] &^= 0x80
			if n == 0 {
				f[0] |= opText
			}
			if n+10 >= len(text) {
				f[0] |= 0x80
			}
			stream = append(append(stream, f...), wireFrame(opPing, fmt.Sprint(n))...)
		}
		for b := range stream {
			w.write(stream[b : b+1])
		}
		replied := false
		for n := 0; n < len(text); {
			op, _, payload, err := w.next()
			switch {
			case err != nil:
				t.Fatal(err)
			case op == opPong && string(payload) == fmt.Sprint(n):
				n += 10
			case op == opText && !replied && strings.Contains(string(payload), `"data":"`+strings.Repeat("slowly,", i)+`slowly"`):
				replied = true
			default:
				t.Fatalf("got %d %s", op, payload)
			}
		}
		if !replied {
			w.mustNext(opText)
		}
	}
	sc.note("meanwhile")
	w.send(opClose, "\x03\xe8")
	w.mustNext(opClose)
	sc.recovered()
	sc.log.want(t, "socket_closed", "session", victim, "cause", "closed by the client")
	sc.log.none(t, slog.LevelWarn)
}

func TestFaultManySocketsCutAtOnce(t *testing.T) {
	const n = 1000
	sc := newScene(t, start, nil)
	before := runtime.NumGoroutine()
	var wires []*wire
	for i := range n {
		w := upgradeWire(t, sc.base, "/ws")
		if i%2 == 0 {
			w.send(opText, stepFrame("wait", "{}"))
		}
		wires = append(wires, w)
	}
	waitFor(t, "the sessions", func() bool { return sc.srv.Sessions().Active() == n+1 })
	for i := range n {
		live(t, sc.srv, fmt.Sprint("s", i+2)) // built
	}
	for i, w := range wires {
		if i%4 < 2 {
			reset(w.TCPConn)
		} else {
			w.Close()
		}
	}
	sc.recovered()
	waitFor(t, "the end of the goroutines", func() bool { return runtime.NumGoroutine() <= before })
	for i := range n {
		id := fmt.Sprint("s", i+2)
		sc.log.want(t, "socket_closed", "session", id, "cause", "lost: ")
		sc.log.want(t, "session_close", "session", id, "reason", "its socket was lost")
	}
	sc.log.none(t, slog.LevelWarn)
}

func TestFaultFactory(t *testing.T) {
	const n = 60
	var made atomic.Int64
	var failed sync.Map // session id: which failure
	sc := newScene(t, start, func(env *gym.Environment[*diary], _ *Options) {
		build := env.New
		env.New = func(ctx context.Context, s *gym.Session) (*diary, error) {
			if i := made.Add(1); i%3 == 0 {
				failed.Store(s.ID(), i)
				return nil, fmt.Errorf("no disk %d", i)
			}
			return build(ctx, s)
		}
	})
	var served, refused atomic.Int64
	var told sync.Map // the failures that clients were told of
	var openers sync.WaitGroup
	release := make(chan struct{})
	for range n - 1 { // with the bystander's, n environments are built
		openers.Go(func() {
			ws, _, err := websocket.Dial(t.Context(), "ws"+strings.TrimPrefix(sc.base, "http")+"/ws", nil)
			if err != nil {
				t.Error(err)
				return
			}
			defer ws.CloseNow()
			_ = ws.Write(t.Context(), websocket.MessageText, []byte(stepFrame("write", `{"text":"x"}`))) // it may be closed by now
			_, got, err := ws.Read(t.Context())
			switch _, after, isFailure := strings.Cut(string(got), "no disk "); {
			case err != nil:
				t.Error(err)
			case strings.Contains(string(got), `"data":"x"`):
				served.Add(1)
				<-release
			case isFailure && strings.Contains(after, `"code":"FACTORY_ERROR"`) && strings.Contains(after, `"factory_name":"diary"`):
				refused.Add(1)
				var which int64
				fmt.Sscan(after[:strings.Index(after, `"`)], &which)
				told.Store(which, true)
				if _, _, err := ws.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusInternalError {
					t.Errorf("closed with %v", err)
				}
			default:
				t.Errorf("got %s", got)
			}
		})
	}
	waitFor(t, "the openers", func() bool { return served.Load()+refused.Load() == n-1 || t.Failed() })
	if refused.Load() != n/3 {
		t.Errorf("%d were refused, want %d", refused.Load(), n/3)
	}
	waitFor(t, "the slots of those that failed", func() bool { return sc.srv.Sessions().Active() == n-n/3 })
	failed.Range(func(id, which any) bool {
		if _, ok := told.Load(which); !ok {
			t.Errorf("failure %d was told to nobody", which)
		}
		sc.log.want(t, "factory_error", "session", id.(string), "error", fmt.Sprintf("no disk %d", which))
		return true
	})
	close(release)
	openers.Wait()
	sc.recovered()
	sc.log.none(t, slog.LevelError)
}

func TestFaultPanic(t *testing.T) {
	sc := newScene(t, start, nil)
	ws := dial(t, sc.base+"/ws")
	if got := ws.ask(stepFrame("boom", "{}")); !strings.Contains(got, `"error_type":"execution_error"`) {
		t.Errorf("got %s", got)
	}
	e := sc.log.want(t, "tool_panic", "session", victim, "tool", "boom", "panic", "boom")
	if e.level != slog.LevelError || !strings.Contains(e.attrs["stack"], "(*diary).boom") {
		t.Errorf("got %v", e)
	}
	if got := ws.ask(stepFrame("write", `{"text":"on"}`)); !strings.Contains(got, `"data":"on"`) {
		t.Errorf("the session does not go on: %s", got)
	}
	ws.Close(websocket.StatusNormalClosure, "")
	sc.recovered()
}

// Messages near the limit pass in both directions, and a bystander is served meanwhile.
func TestFaultHugeMessages(t *testing.T) {
	size := 90 << 20
	if RaceDetector { // which makes it take ten times as long
		size = 9 << 20
	}
	sc := newScene(t, start, nil)
	ws := dial(t, sc.base+"/ws")
	ws.send(stepFrame("length", `{"text":"`+strings.Repeat("x", size)+`"}`))
	sc.note("meanwhile")
	if got := ws.receive(); !strings.Contains(got, fmt.Sprintf(`"data":%d`, size)) {
		t.Errorf("got %.300s", got)
	}
	ws.send(stepFrame("pages", fmt.Sprintf(`{"size":%d}`, size/3))) // the reply has it three times
	sc.note("meanwhile again")
	if got := ws.receive(); len(got) < size || !strings.HasSuffix(got, `"error":null},"reward":null,"done":false}}`) {
		t.Errorf("a reply of %d bytes: %.300s", len(got), got)
	}
	ws.Close(websocket.StatusNormalClosure, "")
	sc.recovered()
	sc.log.want(t, "session_close", "session", victim, "reason", "its socket was closed", "total_steps", "2")
	sc.log.none(t, slog.LevelWarn)
}

// Who finds no session is told why, and so is the log.
func TestFaultNoSession(t *testing.T) {
	sc := newScene(t, start, func(_ *gym.Environment[*diary], o *Options) { o.Sessions.Max = 1 })
	for query, want := range map[string]struct {
		level       slog.Level
		event, told string
	}{
		"":                  {slog.LevelDebug, "capacity", codeCapacity},
		"?session_id=other": {slog.LevelInfo, "socket_closed", codeSession},
	} {
		ws := dial(t, sc.base+"/ws"+query)
		if got := ws.receive(); !strings.Contains(got, want.told) {
			t.Errorf("got %s", got)
		}
		ws.closed()
		sc.log.want(t, want.event)
		cause := "no session: " + map[bool]string{true: "no free session", false: "unknown session"}[query == ""]
		if e := sc.log.want(t, "socket_closed", "cause", cause); e.level != want.level || e.attrs["session"] != "" {
			t.Errorf("got %v", e)
		}
	}
	if status, _ := request(t, http.MethodGet, sc.base+"/health", ""); status != http.StatusOK {
		t.Errorf("health: %d", status)
	}
	sc.recovered()
}
