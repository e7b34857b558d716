package transport

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// SIGTERM: new sessions are refused, live ones served until they end.
func TestDrain(t *testing.T) {
	stdout, stderr, stop := runMain(t, labEnv(), []string{"-addr", "127.0.0.1:0"}, nil)
	waitFor(t, "the address", func() bool { return address.MatchString(stdout.String()) })
	base := address.FindString(stdout.String())
	ws := dial(t, base+"/ws")
	ws.ask(`{"type":"state"}`)
	code := make(chan int, 1)
	go func() { code <- stop(ErrDrain) }()
	waitFor(t, "the drain", func() bool { return strings.Contains(stderr.String(), "event=draining") })
	if status, reply := request(t, http.MethodGet, base+"/health", ""); status != http.StatusServiceUnavailable || reply != `{"status":"degraded"}` {
		t.Errorf("health: %d %s", status, reply)
	}
	if got := ws.ask(stepFrame("say", `{"text":"x"}`)); !strings.Contains(got, `"data":"x"`) {
		t.Errorf("a live session is not served: %s", got)
	}
	late := dial(t, base+"/ws")
	if got := late.receive(); !strings.Contains(got, "shutting down") {
		t.Errorf("a newcomer got %s", got)
	}
	if c := late.closed(); c != websocket.StatusGoingAway {
		t.Errorf("closed with %v", c)
	}
	if status, _ := post(t, base+"/reset", "{}"); status != http.StatusServiceUnavailable {
		t.Errorf("a temporary session: %d", status)
	}
	http.DefaultClient.CloseIdleConnections()
	ws.Close(websocket.StatusNormalClosure, "")
	if c := <-code; c != exitOK {
		t.Errorf("exit code %d: %s", c, stderr)
	}
}

func TestDrainEndsAfterItsGrace(t *testing.T) {
	stdout, stderr, stop := runMain(t, labEnv(), []string{"-addr", "127.0.0.1:0"}, map[string]string{"OPENENV_GRACE": "50ms"})
	waitFor(t, "the address", func() bool { return address.MatchString(stdout.String()) })
	ws := dial(t, address.FindString(stdout.String())+"/ws")
	ws.ask(`{"type":"state"}`)
	closed := make(chan websocket.StatusCode, 1)
	go func() { closed <- ws.closed() }()
	if c := stop(ErrDrain); c != exitOK {
		t.Errorf("exit code %d: %s", c, stderr)
	}
	if c := <-closed; c != websocket.StatusGoingAway {
		t.Errorf("closed with %v", c)
	}
}

// A handler that does not return is named, and does not keep the process.
func TestStopLeavesStuckHandlersBehind(t *testing.T) {
	running, free := make(chan struct{}), make(chan struct{})
	env := gym.Environment[*lab]{
		Name: "stuck",
		New:  labEnv().New,
		Tools: tools.New(tools.Do("hang", "Hangs.", func(*lab, context.Context, tools.None) error {
			close(running)
			<-free
			return nil
		})),
	}
	stdout, stderr, stop := runMain(t, env, []string{"-addr", "127.0.0.1:0"}, nil)
	waitFor(t, "the address", func() bool { return address.MatchString(stdout.String()) })
	ws := dial(t, address.FindString(stdout.String())+"/ws")
	ws.send(stepFrame("hang", "{}"))
	<-running
	if c := stop(nil); c != exitFailed {
		t.Errorf("exit code %d", c)
	}
	for _, want := range []string{"event=stuck_handler", "event=left_behind", `call="tool \"hang\""`} {
		if !strings.Contains(stderr.String(), want) {
			t.Errorf("the log lacks %s:\n%s", want, stderr)
		}
	}
	close(free)
}
