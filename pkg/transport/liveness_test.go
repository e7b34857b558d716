package transport

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/memnet"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// inMemory serves the lab inside a bubble, and returns how to open a socket on /ws.
func inMemory(t *testing.T, o Options) (srv *Server, open func() *websocket.Conn) {
	t.Helper()
	return inMemoryOf(t, labEnv(), o)
}

// inMemoryOf is inMemory for any environment.
func inMemoryOf(t *testing.T, env gym.Definition, o Options) (srv *Server, open func() *websocket.Conn) {
	t.Helper()
	srv, client := serveInMemory(t, env, o)
	return srv, func() *websocket.Conn {
		t.Helper()
		c, _, err := websocket.Dial(context.Background(), "ws://localhost/ws", &websocket.DialOptions{HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.CloseNow() })
		return c
	}
}

// serveInMemory serves an environment inside a bubble, and returns a client that reaches it under any address.
func serveInMemory(t *testing.T, env gym.Definition, o Options) (*Server, *http.Client) {
	t.Helper()
	srv, ln := listenInMemory(t, env, o)
	client := &http.Client{Transport: &http.Transport{DialContext: ln.Dial}}
	t.Cleanup(client.CloseIdleConnections)
	return srv, client
}

// listenInMemory serves an environment inside a bubble, until the test ends.
func listenInMemory(t *testing.T, env gym.Definition, o Options) (*Server, *memnet.Listener) {
	t.Helper()
	srv, err := New(t.Context(), env, o)
	if err != nil {
		t.Fatal(err)
	}
	ln := memnet.Listen()
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, ln, nil) }()
	t.Cleanup(func() {
		stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return srv, ln
}

// A client that reads nothing answers no ping: a trainer stopped in a debugger, or half a connection.
func TestSilentSocketIsLostAfterThreeMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := inMemory(t, Options{})
		open()
		synctest.Wait()
		active(t, srv, 1)
		time.Sleep(pingEvery + deadAfter - time.Second)
		synctest.Wait()
		active(t, srv, 1)
		time.Sleep(pingEvery)
		synctest.Wait()
		active(t, srv, 0)
	})
}

func TestSocketThatAnswersPingsLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := inMemory(t, Options{})
		c := open()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		c.CloseRead(ctx) // reads, and so answers pings
		time.Sleep(10 * time.Hour)
		synctest.Wait()
		active(t, srv, 1)
	})
}

// On a full server a stopped trainer is sure of 40 seconds, and a newcomer gets its place after that.
func TestSilentSocketMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := inMemory(t, Options{Sessions: session.Options{Max: 2}})
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		lively := open()
		lively.CloseRead(ctx)
		open() // silent from the start
		synctest.Wait()
		refused := func() bool {
			s, err := srv.Sessions().Open(context.Background(), session.ByCreate, "")
			if err == nil {
				s.Close(context.Background(), "test")
			}
			return err != nil
		}
		for range 3 { // silence counts from the first ping, at 20 s; until 60 s nobody may take its place
			time.Sleep(19 * time.Second)
			if !refused() {
				t.Fatal("a session was closed too early")
			}
		}
		active(t, srv, 2)
		time.Sleep(4 * time.Second)
		if refused() {
			t.Error("a newcomer is refused, though a socket has been silent for 40 s")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		active(t, srv, 1) // the lively one
	})
}

// A client that waits for a long step reads, and so lives, however long the step takes; and nobody takes its place.
func TestLongStepsKeepTheirSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, open := inMemory(t, Options{Sessions: session.Options{Max: 1, ToolTimeout: time.Hour}})
		c := open()
		if err := c.Write(context.Background(), websocket.MessageText, []byte(stepFrame("wait", "{}"))); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		got := make(chan string, 1)
		go func() {
			_, b, _ := c.Read(ctx)
			got <- string(b)
		}()
		for range 59 {
			time.Sleep(time.Minute)
			if s, err := srv.Sessions().Open(context.Background(), session.ByCreate, ""); err == nil {
				s.Close(context.Background(), "test")
				t.Fatal("its place was taken")
			}
		}
		if text := <-got; !strings.Contains(text, `"timeout"`) {
			t.Errorf("got %q", text)
		}
	})
}
