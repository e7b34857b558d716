package transport

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A diary is a session's state: it remembers what was written into it.
type diary struct {
	lines []string
	open  gate
}

func (d *diary) write(_ context.Context, in labText) (string, error) {
	d.lines = append(d.lines, in.Text)
	return strings.Join(d.lines, ","), nil
}

func (d *diary) wait(ctx context.Context, _ tools.None) error { <-ctx.Done(); return ctx.Err() }

// deaf does not heed its context.
func (d *diary) deaf(context.Context, tools.None) error { <-d.open; return nil }

func (d *diary) boom(context.Context, tools.None) error { panic("boom") }

func (d *diary) length(_ context.Context, in labText) (int, error) { return len(in.Text), nil }

type diarySize struct {
	Size int `json:"size"`
}

func (d *diary) pages(_ context.Context, in diarySize) (string, error) {
	return strings.Repeat("x", in.Size), nil
}

func diaryEnv(open gate) gym.Environment[*diary] {
	return gym.Environment[*diary]{
		Name: "diary",
		New:  func(context.Context, *gym.Session) (*diary, error) { return &diary{open: open}, nil },
		Tools: tools.New(
			tools.Func("write", "", (*diary).write), tools.Do("wait", "", (*diary).wait), tools.Do("deaf", "", (*diary).deaf),
			tools.Do("boom", "", (*diary).boom), tools.Func("length", "", (*diary).length), tools.Func("pages", "", (*diary).pages),
		),
	}
}

// A scene is a server, its log, and a bystander with a session of its own, s1.
type scene struct {
	t       *testing.T
	log     *eventLog
	srv     *Server
	base    string
	by      wsClient
	written []string
	open    gate
}

// victim is the id of the session that is opened after the bystander's.
const victim = "s2"

func newScene(t *testing.T, starter func(*testing.T, gym.Definition, Options) (*Server, string), change func(*gym.Environment[*diary], *Options)) *scene {
	t.Helper()
	sc := &scene{t: t, log: newEventLog(), open: make(gate)}
	env, o := diaryEnv(sc.open), sc.log.options()
	if change != nil {
		change(&env, &o)
	}
	sc.srv, sc.base = starter(t, env, o)
	sc.by = dial(t, sc.base+"/ws")
	sc.note("before")
	return sc
}

// note has the bystander write, and read all that it has written.
func (sc *scene) note(text string) {
	sc.t.Helper()
	sc.written = append(sc.written, text)
	want := fmt.Sprintf(`"data":%q`, strings.Join(sc.written, ","))
	if got := sc.by.ask(stepFrame("write", `{"text":"`+text+`"}`)); !strings.Contains(got, want) {
		sc.t.Fatalf("the bystander got %s, want %s", got, want)
	}
}

// recovered waits until only the bystander's session is left, and holds that one to be unharmed.
func (sc *scene) recovered() {
	sc.t.Helper()
	waitFor(sc.t, "the slots", func() bool { return sc.srv.Sessions().Active() == 1 })
	sc.note("after")
	if got, want := sc.by.ask(`{"type":"state"}`), fmt.Sprintf(`"step_count":%d`, len(sc.written)); !strings.Contains(got, want) {
		sc.t.Errorf("the bystander's state is %s, want %s", got, want)
	}
}

// reset closes a connection so that the peer sees a reset.
func reset(c *net.TCPConn) {
	if err := c.SetLinger(0); err != nil {
		panic(err)
	}
	c.Close()
}

// mustNext reads the next message or control frame, of that kind.
func (w *wire) mustNext(opcode byte) string {
	w.t.Helper()
	var whole []byte
	for first := true; ; first = false {
		op, final, payload, err := w.next()
		if err != nil || first && op != opcode {
			w.t.Fatalf("got %d %.300q, %v; want %d", op, payload, err, opcode)
		}
		if whole = append(whole, payload...); final {
			return string(whole)
		}
	}
}

// write writes bytes as they are.
func (w *wire) write(b []byte) {
	w.t.Helper()
	if _, err := w.Write(b); err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) mustClose(code websocket.StatusCode) {
	w.t.Helper()
	if got := w.mustNext(opClose); binary.BigEndian.Uint16([]byte(got)) != uint16(code) {
		w.t.Errorf("closed with %q, want %d", got, code)
	}
	w.Close()
}
