package transport

import (
	"bufio"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/memnet"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Peers that are slow and alive, in fake time: the server's pings find no room, its pongs wait behind what the peer does not
// read, and the peer's own behind what it is sending. They keep their sockets for as long as a silent one does.

// A slowPeer is a peer that reads and writes when the test says so, frame by frame.
type slowPeer struct {
	net.Conn
	*wire
	srv  *Server
	log  *eventLog
	call func(tool, args string) string
}

// eachSlowPeer runs a test in a bubble for each door that is a WebSocket.
func eachSlowPeer(t *testing.T, env func() gym.Environment[*lab], test func(t *testing.T, p *slowPeer)) {
	for path, call := range map[string]spelling{"/ws": stepFrame, "/mcp": bareCall} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log := newEventLog()
				o := log.options()
				o.Sessions.Max = 1
				srv, ln := listenInMemory(t, env(), o)
				c, err := ln.Dial(context.Background(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				p := &slowPeer{Conn: c, wire: &wire{t: t, in: bufio.NewReader(c)}, srv: srv, log: log, call: call}
				p.write("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
				if res, err := http.ReadResponse(p.in, nil); err != nil || res.StatusCode != http.StatusSwitchingProtocols {
					t.Fatalf("got %v, %v", res, err)
				}
				synctest.Wait()
				test(t, p)
			})
		})
	}
}

func (p *slowPeer) write(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.Conn, text); err != nil {
		p.t.Fatal(err)
	}
}

func (p *slowPeer) ask(text string) { p.t.Helper(); p.write(string(wireFrame(opText, text))) }

// fill has the server answer until there is no room for more, and no answer is waiting for any.
func (p *slowPeer) fill() (answers int) {
	p.t.Helper()
	answers = memnet.Queued + 1
	for range answers {
		p.ask(p.call("say", `{"text":"x"}`))
		synctest.Wait()
	}
	return answers
}

// read reads so many answers, and whatever comes between them, and returns how often it saw another frame.
func (p *slowPeer) read(answers int) (seen map[byte]int) {
	p.t.Helper()
	seen = map[byte]int{}
	for answers > 0 {
		op, final, _, err := p.next()
		if err != nil {
			p.t.Fatalf("the socket was lost with %d answers to come: %v", answers, err)
		}
		if op != opText && op != opContinue {
			seen[op]++
		} else if final {
			answers--
		}
	}
	return seen
}

func (p *slowPeer) sleepUntil(since time.Time, d time.Duration) {
	time.Sleep(time.Until(since.Add(d)))
	synctest.Wait()
}

// lives holds the socket to be served.
func (p *slowPeer) lives() {
	p.t.Helper()
	p.ask(p.call("say", `{"text":"alive"}`))
	p.read(1)
}

// lost holds it to have been lost for a cause.
func (p *slowPeer) lost(cause string) {
	p.t.Helper()
	synctest.Wait()
	active(p.t, p.srv, 0)
	if e := p.log.want(p.t, "socket_closed", "cause", cause); e.level != slog.LevelWarn {
		p.t.Errorf("logged as %v", e.level)
	}
}

// refused reports whether a newcomer is, on a server that has one session.
func (p *slowPeer) refused() bool {
	s, err := p.srv.Sessions().Open(context.Background(), session.ByCreate, "")
	if err == nil {
		s.Close(context.Background(), "test")
	}
	return err != nil
}

func TestPingOfASlowReaderWaits(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		start := time.Now()
		answers := p.fill()
		p.sleepUntil(start, pingEvery+deadAfter-time.Second)
		active(t, p.srv, 1)
		if seen := p.read(answers); seen[opPing] != 0 {
			t.Errorf("a ping before the answers that are older: %v", seen)
		}
		if op, _, _, err := p.next(); op != opPing || err != nil {
			t.Errorf("got %d, %v; want the ping", op, err)
		}
		p.lives()
		p.sleepUntil(start, pingEvery+deadAfter+time.Second)
		active(t, p.srv, 1)
	})
}

func TestSlowReaderIsLostWhenSilent(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		start := time.Now()
		p.fill()
		p.sleepUntil(start, pingEvery+deadAfter-time.Second)
		active(t, p.srv, 1)
		p.sleepUntil(start, pingEvery+deadAfter+pingEvery)
		p.lost("silent for 3m0s")
	})
}

func TestSlowReaderMakesRoom(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		start := time.Now()
		p.fill()
		p.sleepUntil(start, pingEvery+39*time.Second)
		if !p.refused() {
			t.Fatal("its place was taken too early")
		}
		p.sleepUntil(start, pingEvery+41*time.Second)
		if p.refused() {
			t.Error("a newcomer is refused, though the socket has been silent for 40 s")
		}
	})
}

// A peer that sends and does not read has an end, too, when the server does not read any more either.
func TestSlowReaderThatSendsIsLost(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		start := time.Now()
		p.fill()
		p.sleepUntil(start, pingEvery+time.Second) // the ping is waiting
		for range 2 * queuedFrames {
			p.ask(p.call("say", `{"text":"x"}`))
		}
		p.sleepUntil(start, pingEvery+deadAfter)
		active(t, p.srv, 1)
		p.sleepUntil(start, deadAfter+2*pingEvery+time.Second)
		p.lost("does not read")
	})
}

// The end of a session is not held up by a ping that finds no room, nor by an answer behind it.
func TestSlowReaderAndAnEndingSession(t *testing.T) {
	for cause, late := range map[string]int{"the session has ended": 0, "does not read": 1} {
		eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
			start := time.Now()
			p.fill()
			p.sleepUntil(start, pingEvery+time.Second)
			for range late {
				p.ask(p.call("say", `{"text":"x"}`))
			}
			synctest.Wait()
			s, err := p.srv.Sessions().Get(labSession)
			if err != nil || s.Close(context.Background(), "test") != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second) // the library waits for 5 to write a close frame
			synctest.Wait()
			p.log.want(t, "socket_closed", "cause", cause)
		})
	}
}

func TestPongOfASlowReaderWaits(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		answers := p.fill()
		p.ask(p.call("say", `{"text":"this answer waits"}`))
		synctest.Wait()
		for range 3 {
			p.write(string(wireFrame(opPing, "there?")))
			time.Sleep(15 * time.Second)
		}
		synctest.Wait()
		active(t, p.srv, 1)
		seen := p.read(answers + 1)
		for seen[opPong] < 3 {
			op, _, payload, err := p.next()
			if err != nil || op == opPong && string(payload) != "there?" {
				t.Fatalf("got %d %s, %v; want pongs", op, payload, err)
			}
			seen[op]++
		}
		p.lives()
	})
}

// A flood of pings costs no more than the last of them.
func TestSlowReaderThatFloodsPings(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		answers := p.fill()
		for range 100 * maxDue {
			p.write(string(wireFrame(opPing, "there?")))
		}
		p.write(string(wireFrame(opPing, "last")))
		synctest.Wait()
		p.read(answers)
		pongs := 0
		for last := false; !last; pongs++ {
			op, _, payload, err := p.next()
			if err != nil || op != opPong {
				t.Fatalf("got %d %s, %v; want a pong", op, payload, err)
			}
			last = string(payload) == "last"
		}
		if pongs > maxDue {
			t.Errorf("%d pongs were kept", pongs)
		}
		p.lives()
	})
}

// The peer's pongs wait behind the frame that it sends.
func TestSlowWriterOfALongMessageLives(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		call := p.call("say", `{"text":"`+strings.Repeat("x", 2*uncounted)+`"}`)
		frame, start := string(wireFrame(opText, call)), time.Now()
		const pieces = 12
		for n := range pieces {
			p.write(frame[n*len(frame)/pieces : (n+1)*len(frame)/pieces])
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if !p.refused() {
				t.Fatalf("its place was taken after %v", time.Since(start))
			}
		}
		if p.read(1)[opPing] == 0 {
			t.Error("it was not pinged")
		}
	})
}

// A ping or a pong that comes in two parts has the time of any other frame.
func TestSlowWriterOfControlFramesLives(t *testing.T) {
	eachSlowPeer(t, labEnv, func(t *testing.T, p *slowPeer) {
		for _, head := range []byte{pingHead, pongHead} {
			frame := string(rawFrame(head, "there?"))
			for cut := 1; cut < len(frame); cut++ {
				p.write(frame[:cut])
				time.Sleep(15 * time.Second)
				p.write(frame[cut:])
				p.lives()
			}
		}
	})
}

// The peer reads a long answer slowly, and answers the ping before it when it has.
func TestSlowReaderOfALongAnswerLives(t *testing.T) {
	open := make(chan gate, 1)
	env := func() gym.Environment[*lab] {
		g := make(gate)
		open <- g
		return labWith(tools.Func("big", "", func(*lab, context.Context, tools.None) (string, error) {
			<-g
			return strings.Repeat("x", 16<<20), nil
		}))
	}
	eachSlowPeer(t, env, func(t *testing.T, p *slowPeer) {
		start := time.Now()
		p.ask(p.call("big", "{}"))
		p.sleepUntil(start, pingEvery+time.Second)
		close(<-open)
		for final, frames := false, 0; !final; {
			op, last, _, err := p.next()
			if err != nil {
				t.Fatalf("the socket was lost after %v: %v", time.Since(start), err)
			}
			if final = last && op != opPing; op == opPing {
				continue
			}
			if frames++; frames%16 == 0 {
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if !final && !p.refused() {
					t.Fatalf("its place was taken after %v", time.Since(start))
				}
			}
		}
		if took := time.Since(start); took < time.Minute {
			t.Errorf("that took %v", took)
		}
		p.lives()
	})
}
