package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
	"pgregory.net/rapid"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/memnet"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// TestSessionsEqualTheirModel plays random sequences of what clients, networks and operators do to a server, in fake time
// over a network in memory, and compares after each step what can be counted with a model: slots, open environments,
// handlers that run, sockets that goroutines serve. -rapid.checks sets how many sequences are played.
func TestSessionsEqualTheirModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		set := modelSettings.Draw(rt, "settings")
		acts := rapid.SliceOfN(modelActs, 20, 60).Draw(rt, "acts")
		var fault string
		synctest.Test(t, func(t *testing.T) { fault = newPlay(t, set).run(acts) })
		if fault != "" {
			rt.Fatal(fault)
		}
	})
}

type settings struct {
	Max, Queue, Warm int
	Build            time.Duration
	FailEvery        int
	StopEarly        bool // while handlers run
}

var modelSettings = rapid.Custom(func(t *rapid.T) settings {
	return settings{
		Max:       rapid.SampledFrom([]int{1, 1, 2, 2, 3, 4}).Draw(t, "max"),
		Queue:     rapid.IntRange(0, 2).Draw(t, "queue"),
		Warm:      rapid.IntRange(0, 2).Draw(t, "warm"),
		Build:     time.Duration(rapid.IntRange(0, 1).Draw(t, "build")) * 2 * time.Second,
		FailEvery: rapid.SampledFrom([]int{0, 0, 3}).Draw(t, "failEvery"),
		StopEarly: rapid.Bool().Draw(t, "stopEarly"),
	}
})

// An act is one step of a sequence. Which peer, session or call it is about is A, counted from the latest.
type act struct {
	Do   string
	A    int
	Time time.Duration
	Flag bool
}

func (a act) String() string { return fmt.Sprintf("%s %d %v %t", a.Do, a.A, a.Time, a.Flag) }

var modelActs = rapid.Custom(func(t *rapid.T) act {
	return act{
		Do: rapid.SampledFrom([]string{
			"wait", "wait", "wait", "wait long", "wait long", "open", "open", "open", "open mcp", "create", "initialize", "attach", "attach", "join", "call", "call",
			"call", "post", "post", "cancel", "freeze", "freeze", "cut", "cut", "goodbye", "close", "close", "end", "delete",
		}).Draw(t, "do"),
		A:    rapid.IntRange(0, 3).Draw(t, "a"),
		Time: rapid.SampledFrom([]time.Duration{500 * time.Millisecond, 3 * time.Second, 7 * time.Second, 12 * time.Second, 26 * time.Second, 45 * time.Second}).Draw(t, "time"),
		Flag: rapid.Bool().Draw(t, "flag"),
	}
})

// A playEnv counts what runs of an author's functions.
type playEnv struct {
	opened, closed, handlers, building, begun atomic.Int64
}

type playNap struct {
	Time   time.Duration `json:"time"`
	Ignore bool          `json:"ignore"`
}

func (e *playEnv) environment(set settings) gym.Environment[*playEnv] {
	return gym.Environment[*playEnv]{
		Name: "play",
		New: func(ctx context.Context, _ *gym.Session) (*playEnv, error) {
			n := e.begun.Add(1)
			e.building.Add(1)
			defer e.building.Add(-1)
			if set.Build > 0 {
				select {
				case <-time.After(set.Build):
				case <-ctx.Done():
					return nil, ctx.Err()
				}
			}
			if set.FailEvery > 0 && n%int64(set.FailEvery) == 0 {
				return nil, errors.New("no luck")
			}
			e.opened.Add(1)
			return e, nil
		},
		Tools: tools.New(tools.Func("nap", "Sleep.", func(e *playEnv, ctx context.Context, in playNap) (string, error) {
			e.handlers.Add(1)
			defer e.handlers.Add(-1)
			done := ctx.Done()
			if in.Ignore {
				done = nil
			}
			select {
			case <-time.After(in.Time):
				return "rested", nil
			case <-done:
				return "", ctx.Err()
			}
		})),
		Close: func(e *playEnv) error { e.closed.Add(1); return nil },
	}
}

// A play is a server, its clients, and the model of both.
type play struct {
	t       *testing.T
	set     settings
	m       *model
	env     *playEnv
	srv     *Server
	ln      *memnet.Listener
	web     *http.Client
	start   time.Time
	clients map[*modelPeer]*playClient
	ids     map[*modelSession]string // session ids, as far as they are known
	agents  map[*modelSession]string // Mcp-Session-Ids
	posts   []*playPost
	group   sync.WaitGroup
	log     lines
	stacks  []byte

	mu     sync.Mutex // guards what follows
	learnt []func()   // what HTTP clients have been told, for settle
}

type playClient struct {
	ws    *websocket.Conn
	conn  *freezing
	heard chan string
	busy  *modelCall
}

// A playPost is a call over HTTP.
type playPost struct {
	s      *modelSession
	c      *modelCall
	cancel context.CancelFunc
}

func newPlay(t *testing.T, set settings) *play {
	p := &play{
		t: t, set: set, env: &playEnv{}, ln: memnet.Listen(), start: time.Now(),
		m:       &model{max: set.Max, queueLen: set.Queue, warmUp: set.Warm, buildTime: set.Build, failEvery: set.FailEvery},
		clients: map[*modelPeer]*playClient{}, ids: map[*modelSession]string{}, agents: map[*modelSession]string{},
	}
	p.web = &http.Client{Transport: &http.Transport{DialContext: p.ln.Dial}}
	return p
}

func (p *play) run(acts []act) (fault string) {
	var err error
	p.srv, err = New(p.t.Context(), p.env.environment(p.set), Options{
		Sessions: session.Options{
			Max: p.set.Max, Queue: p.set.Queue, QueueWait: modelQueueWait, Warm: p.set.Warm, IdleTimeout: modelIdle, ToolTimeout: modelTool,
		},
		Logger: slog.New(slog.NewTextHandler(&p.log, nil)),
	})
	if err != nil {
		return err.Error()
	}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.srv.Serve(ctx, p.ln, nil) }()
	p.m.buildAhead()
	for i, a := range acts {
		// No two events of the model fall on the same moment; and a socket whose reader is answering is read again.
		p.pass(2*reliefAfter + time.Duration(i*i+1)*10*time.Microsecond)
		p.do(a)
		p.settle()
		if fault = p.compare(); fault != "" {
			fault = fmt.Sprintf("after act %d, %v: %s", i, a, fault)
			break
		}
	}
	if !p.set.StopEarly {
		p.pass(time.Minute)
	}
	late := p.m.longestHandler()
	stop()
	p.m.stopped = true
	if err := <-served; (err != nil) != (late > stopTime) && fault == "" {
		fault = fmt.Sprintf("a stop while a handler runs for %v came to: %v", late, err)
	}
	time.Sleep(time.Minute) // handlers that ignore their contexts return
	for _, c := range p.clients {
		if c.ws != nil {
			c.ws.CloseNow()
		}
	}
	p.web.CloseIdleConnections()
	p.group.Wait()
	if e := p.env; fault == "" && (e.opened.Load() != e.closed.Load() || e.handlers.Load() != 0 || p.srv.Sessions().Active() != 0) {
		fault = fmt.Sprintf("after the end %d are open, %d handlers run, %d slots are taken", e.opened.Load()-e.closed.Load(), e.handlers.Load(), p.srv.Sessions().Active())
	}
	if fault != "" {
		fault += fmt.Sprintf("\nsettings %+v\nacts %v\n%s", p.set, acts, p.log.String())
	}
	return fault
}

// pass lets time pass in both worlds.
func (p *play) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
	p.m.advance(time.Since(p.start))
}

// settle waits until nothing moves, and learns what ids there are to learn.
func (p *play) settle() {
	synctest.Wait()
	p.mu.Lock()
	for _, learn := range p.learnt {
		learn()
	}
	p.learnt = nil
	p.mu.Unlock()
	for _, s := range p.m.sessions {
		c := p.clients[s.owner]
		if p.ids[s] != "" || s.owner == nil || c == nil || s.owner.frozen > 0 || s.state != modelOpen || c.busy != nil && !c.busy.answered {
			continue
		}
		request := `{"jsonrpc":"2.0","id":"id","method":"openenv/session/create"}`
		if !s.owner.mcp {
			request = `{"type":"mcp","data":` + request + `}`
		}
		p.send(c, request)
		synctest.Wait()
		p.drain(c, func(text string) {
			var r struct {
				Result struct{ Session_id string }
				Data   struct{ Result struct{ Session_id string } }
			}
			if json.Unmarshal([]byte(text), &r) == nil && r.Result.Session_id+r.Data.Result.Session_id != "" {
				p.ids[s] = r.Result.Session_id + r.Data.Result.Session_id
			}
		})
	}
}

func (p *play) compare() string {
	got := census{
		Active: p.srv.Sessions().Active(), Open: int(p.env.opened.Load() - p.env.closed.Load()),
		Handlers: int(p.env.handlers.Load()), Building: int(p.env.building.Load()),
	}
	if want := p.m.census(); got != want {
		return fmt.Sprintf("there are %+v, and the model has %+v", got, want)
	}
	least, most := p.m.socketsServed()
	if n := p.socketsServed(); n < least || n > most {
		return fmt.Sprintf("goroutines serve %d sockets, and the model has %d to %d", n, least, most)
	}
	return ""
}

// served finds the socket that a goroutine reads, or sees to its end.
var served = regexp.MustCompile(`transport\.\(\*socket\)\.(?:read|leave)\((0x[0-9a-f]+)`)

// socketsServed counts the sockets that have goroutines.
func (p *play) socketsServed() int {
	for {
		n := runtime.Stack(p.stacks, true)
		if n == len(p.stacks) {
			p.stacks = make([]byte, 2*len(p.stacks)+1<<16)
			continue
		}
		sockets := map[string]bool{}
		for _, m := range served.FindAllSubmatch(p.stacks[:n], -1) {
			sockets[string(m[1])] = true
		}
		return len(sockets)
	}
}

// ---- acts ----

func (p *play) do(a act) {
	m := p.m
	switch a.Do {
	case "wait":
		p.pass(a.Time)
	case "wait long":
		p.pass(35*time.Second + 4*a.Time)
	case "open", "open mcp":
		peer := &modelPeer{socket: true, mcp: a.Do == "open mcp", start: m.now}
		path := "/mcp"
		if !peer.mcp {
			path = "/ws"
			if a.Flag {
				peer.resume = a.Time
				path += fmt.Sprintf("?resume=%v", a.Time.Seconds())
			}
		}
		p.dial(peer, path)
		m.open(peer)
	case "create", "initialize":
		peer := &modelPeer{init: a.Do == "initialize", start: m.now}
		m.peers = append(m.peers, peer)
		p.post(peer)
		m.open(peer)
	case "attach", "join":
		s, id := p.named(a.A)
		if s == nil || s.pending != nil {
			return
		}
		peer := &modelPeer{socket: true, mcp: a.Do == "join", start: m.now}
		if peer.mcp {
			p.dial(peer, "/mcp?session_id="+id)
			m.join(peer, s)
		} else {
			if a.Flag {
				peer.resume = a.Time
				id += fmt.Sprintf("&resume=%v", a.Time.Seconds())
			}
			p.dial(peer, "/ws?session_id="+id)
			m.attach(peer, s)
		}
	case "call":
		peer, c := p.living(a.A)
		if peer == nil || peer.frozen > 0 || peer.session == nil || peer.session.state != modelOpen || peer.session.opener == peer || c.busy != nil && !c.busy.answered {
			return
		}
		c.busy = &modelCall{peer: peer, length: a.Time, ignore: a.Flag}
		args := fmt.Sprintf(`{"time":%d,"ignore":%t}`, a.Time, a.Flag)
		if peer.mcp {
			p.send(c, rpcCall("nap", args, ""))
		} else {
			p.send(c, stepFrame("nap", args))
		}
		m.call(peer.session, c.busy)
	case "post":
		p.postCall(a)
	case "cancel":
		for i, n := len(p.posts)-1, 0; i >= 0; i-- {
			if q := p.posts[i]; !q.c.answered && q.cancel != nil {
				if n == a.A {
					q.cancel()
					if q.s.state == modelOpen {
						m.cancel(q.s, q.c)
					}
					q.c.answered = true
					return
				}
				n++
			}
		}
	case "freeze":
		if peer, c := p.living(a.A); peer != nil && peer.frozen == 0 {
			peer.frozen = m.now
			c.conn.freeze()
		}
	case "cut", "goodbye":
		peer, c := p.living(a.A)
		switch {
		case peer == nil || m.tossUp(peer):
		case a.Do == "cut" || peer.frozen > 0:
			c.ws.CloseNow()
			m.lose(peer, true)
		default:
			p.group.Go(func() { c.ws.Close(websocket.StatusNormalClosure, "") })
			m.lose(peer, false)
		}
	case "close", "end":
		s, id := p.named(a.A)
		if s == nil {
			return
		}
		if a.Do == "close" {
			body := `{"jsonrpc":"2.0","id":1,"method":"openenv/session/close","params":{"session_id":"` + id + `"}}`
			p.fire(http.MethodPost, "/mcp", body, nil, nil)
			m.close(s)
		} else if live, err := p.srv.Sessions().Find(id); err == nil { // DELETE /sessions/{id}
			p.group.Go(func() { live.Close(context.Background(), "ended by an operator") })
			m.end(s)
		}
	case "delete":
		if s, id := p.initialized(a.A); s != nil {
			p.fire(http.MethodDelete, "/mcp", "", []string{"Mcp-Session-Id", id}, nil)
			m.end(s)
		}
	}
}

// named is the session that a step is about, if its id is known.
func (p *play) named(a int) (*modelSession, string) {
	all := p.m.claimed()
	if a >= len(all) {
		return nil, ""
	}
	s := all[len(all)-1-a]
	if p.ids[s] == "" {
		return nil, ""
	}
	return s, p.ids[s]
}

// initialized is a session whose agent's id is known.
func (p *play) initialized(a int) (*modelSession, string) {
	all := p.m.claimed()
	for i := len(all) - 1; i >= 0; i-- {
		if s := all[i]; p.agents[s] != "" && s.state == modelOpen {
			if a == 0 {
				return s, p.agents[s]
			}
			a--
		}
	}
	return nil, ""
}

// living is the socket that a step is about.
func (p *play) living(a int) (*modelPeer, *playClient) {
	for i := len(p.m.peers) - 1; i >= 0; i-- {
		if peer := p.m.peers[i]; peer.socket && !peer.gone {
			if a == 0 {
				return peer, p.clients[peer]
			}
			a--
		}
	}
	return nil, nil
}
