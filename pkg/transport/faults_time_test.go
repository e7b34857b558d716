package transport

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// Faults that take time, in fake time over connections in memory: see faults_test.go.

// A slowScene is a scene in a bubble. Its bystander reads all the time, and so answers pings.
type slowScene struct {
	t       *testing.T
	log     *eventLog
	srv     *Server
	dial    func() *websocket.Conn
	by      *websocket.Conn
	replies chan string
	written []string
	open    gate
}

func newSlowScene(t *testing.T) *slowScene {
	sc := &slowScene{t: t, log: newEventLog(), open: make(gate), replies: make(chan string)}
	sc.srv, sc.dial = inMemoryOf(t, diaryEnv(sc.open), sc.log.options())
	sc.by = sc.dial()
	go func() {
		defer close(sc.replies)
		for {
			_, b, err := sc.by.Read(context.Background())
			if err != nil {
				return // the end of the test
			}
			sc.replies <- string(b)
		}
	}()
	sc.note("before")
	return sc
}

func (sc *slowScene) note(text string) {
	sc.t.Helper()
	sc.written = append(sc.written, text)
	write(sc.t, sc.by, stepFrame("write", `{"text":"`+text+`"}`))
	if got, want := <-sc.replies, fmt.Sprintf(`"data":%q`, strings.Join(sc.written, ",")); !strings.Contains(got, want) {
		sc.t.Fatalf("the bystander got %s, want %s", got, want)
	}
}

func write(t *testing.T, c *websocket.Conn, text string) {
	t.Helper()
	if err := c.Write(context.Background(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

// pass lets time pass, and holds the number of sessions after it.
func (sc *slowScene) pass(d time.Duration, sessions int) {
	sc.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	active(sc.t, sc.srv, sessions)
}

// ended holds the victim to have been closed for that cause, and the bystander to be unharmed.
func (sc *slowScene) ended(level slog.Level, cause string) {
	sc.t.Helper()
	synctest.Wait()
	active(sc.t, sc.srv, 1)
	sc.note("after")
	if e := sc.log.want(sc.t, "socket_closed", "session", victim, "cause", cause, "door", "/ws"); e.level != level {
		sc.t.Errorf("logged as %v, want %v", e.level, level)
	}
	sc.log.want(sc.t, "session_close", "session", victim, "reason", "its socket was lost")
}

func TestFaultHalfOpenSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := newSlowScene(t)
		write(t, sc.dial(), stepFrame("write", `{"text":"x"}`)) // and nobody reads
		sc.pass(pingEvery+deadAfter-time.Second, 2)
		sc.pass(pingEvery, 1)
		sc.ended(slog.LevelWarn, "silent for 3m0s")
		sc.log.none(t, slog.LevelError)
	})
}

func TestFaultReaderThatStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := newSlowScene(t)
		const size = 16 << 20
		write(t, sc.dial(), stepFrame("pages", fmt.Sprintf(`{"size":%d}`, size)))
		sc.pass(writeTimeout, 2)
		sc.note("meanwhile")
		sc.pass(timeFor(4*size)-writeTimeout, 1)
		sc.ended(slog.LevelWarn, "does not read")
		sc.log.none(t, slog.LevelError)
	})
}

// A tool that does not heed its context keeps its slot until it returns, and nothing else; the log names it.
func TestFaultDeafTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := newSlowScene(t)
		c := sc.dial()
		write(t, c, stepFrame("deaf", "{}"))
		if _, b, err := c.Read(context.Background()); err != nil || !strings.Contains(string(b), `"error_type":"timeout"`) {
			t.Fatalf("got %s, %v", b, err)
		}
		sc.log.want(t, "call_timeout", "session", victim, "call", `tool "deaf"`, "limit", "30s")
		c.CloseNow()
		sc.pass(4*time.Second, 2)
		if found, _ := sc.log.find("stuck_handler"); len(found) > 0 {
			t.Error("it was given no time to return")
		}
		sc.pass(2*time.Second, 2)
		e := sc.log.want(t, "stuck_handler", "session", victim, "call", `tool "deaf"`)
		if age, err := time.ParseDuration(e.attrs["age"]); err != nil || age != 35*time.Second || e.level != slog.LevelError {
			t.Errorf("got %v", e)
		}
		sc.note("meanwhile")
		close(sc.open)
		sc.ended(slog.LevelInfo, "lost: ")
	})
}

// A long message takes room in the budget of all, so that it has its time, whatever signs of life come meanwhile.
func TestMessageThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sc := newSlowScene(t)
		c := sc.dial()
		defer c.CloseNow()
		c.CloseRead(t.Context()) // answers pings
		w, err := c.Writer(context.Background(), websocket.MessageText)
		if err != nil {
			t.Fatal(err)
		}
		piece := make([]byte, uncounted)
		for range 2 {
			if _, err := w.Write(piece); err != nil {
				t.Fatal(err)
			}
		}
		sc.pass(timeFor(DefaultMaxMessage)-time.Second, 2)
		if held := sc.srv.budget.used.Load(); held == 0 {
			t.Error("the message is not counted")
		}
		sc.pass(time.Second, 1)
		sc.ended(slog.LevelWarn, "sends a message too slowly")
		if held := sc.srv.budget.used.Load(); held != 0 {
			t.Errorf("%d bytes are held", held)
		}
	})
}
