package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// An Agent is an MCP client that has initialised, or is about to: one incarnation of a session's agent, with an SDK
// server session and an id of its own. The SDK wants such ids unique for ever, and a client that comes after another must
// not be hit by what the first one still sends; so each initialize has a new one.
//
// An agent is its session's from Join until Leave has returned. Whoever joins calls Leave on every path but one: when the
// agent has taken its place, which Taken tells, a successor, the client's goodbye or the session's end does.
type Agent struct {
	ID        string // the Mcp-Session-Id; it opens the MCP door and nothing else
	Session   *Session
	Transport mcp.Transport // as connect gave it

	// ctx ends when the agent is replaced or leaves, and with it the calls it has made. Its cause is an *Error.
	ctx    context.Context
	cancel context.CancelCauseFunc

	// gone ends after ctx, when the answers of the cancelled calls are written: requests that still hang may return.
	gone    context.Context
	setGone context.CancelFunc

	conn *mcp.ServerSession

	mu      sync.Mutex // guards what follows
	pending int        // requests read and not yet answered
	taken   bool       // its initialize has succeeded
	ended   bool
	told    bool               // it is to be told of what happens while a tool runs
	calls   map[string]*served // by request id: those that its door serves without the SDK
	expires *time.Timer        // ends the agent unless it is heard again; see Expect
	goesOn  bool               // it has been heard since its initialize, maybe before Expect
	idle    chan struct{}      // closed when ended and nothing is pending
	left    chan struct{}      // closed when the agent's end is over
}

// drainTime is how long an agent's end waits for the answers of its cancelled calls to be written.
const drainTime = 2 * time.Second

// Join prepares a session for an MCP client whose initialize is about to be served: an SDK session behind the transport
// that connect returns, its requests passing the gate. The agent takes its place when [Agent.Handle] has seen the
// initialize succeed; until then the present agent, if any, keeps it. The error is an *[Error] or the SDK's.
func (s *Session) Join(connect func(*Agent) (mcp.Transport, gym.Gate)) (*Agent, error) {
	a := &Agent{ID: s.m.opts.NewID(), Session: s, idle: make(chan struct{}), left: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancelCause(s.ctx)
	a.gone, a.setGone = context.WithCancel(context.Background())
	t, gate := connect(a)
	a.Transport = t
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	if s.state != open {
		err = errClosed() // in words that do not tell the session's id
	} else {
		a.conn, err = s.inst.Connect(context.Background(), answering{t, a}, gate)
	}
	if err != nil {
		a.cancel(errClosed())
		a.setGone()
		return nil, err
	}
	s.agents[a] = true
	s.leaving.Add(1)
	s.m.mu.Lock()
	s.m.agents[a.ID] = a
	s.m.mu.Unlock()
	go func() { // the SDK may close it by itself: by KeepAlive, or after a failed write
		a.conn.Wait()
		a.Leave()
	}()
	return a, nil
}

// Agent finds an agent by its Mcp-Session-Id. The error is an *[Error] with code Unknown.
func (m *Manager) Agent(id string) (*Agent, error) {
	m.mu.Lock()
	a := m.agents[id]
	m.mu.Unlock()
	if a == nil || a.ctx.Err() != nil {
		return nil, errUnknown(id)
	}
	return a, nil
}

// Expect ends the agent, and the session that its initialize has opened, unless it is heard again within d: a client that
// was lost right after its initialize would keep its session until that is idle.
func (a *Agent) Expect(d time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.ended && !a.goesOn {
		a.expires = time.AfterFunc(d, func() {
			a.Session.log.Warn("an MCP client has initialised and not gone on", "event", "agent_lost", "after", d)
			if a.Session.origin == ByInitialize {
				_ = a.Session.Close(context.Background(), "its client did not go on after initialize")
				return
			}
			a.Leave()
		})
	}
}

// Conn is the agent's SDK session.
func (a *Agent) Conn() *mcp.ServerSession { return a.conn }

// InitializeParams are the client's, as it initialised; nil if it has not.
func (a *Agent) InitializeParams() *mcp.InitializeParams { return a.conn.InitializeParams() }

// Tell notes that the client wants log messages, and Told reports it.
func (a *Agent) Tell() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = true
}

// Told reports whether the client wants log messages.
func (a *Agent) Told() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.told
}

// A served is the context of a request that the door serves itself. It ends with the agent, not with the connection that
// brought the request.
type served struct {
	context.Context // a child of the agent's
	cancel          context.CancelCauseFunc
	request         context.Context // has values
	hurry           func()
}

func (c *served) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.request.Value(key)
}

// Begin begins a request that the door serves itself, with the values of ctx and without its end: the agent's end waits for
// the answer, and ends the context as [Agent.Cancel] does. hurry is called if the answer is still not written when nothing
// more will be sent to the agent; it must not block, nor call the agent. done is called when the answer is written. The
// error says that a request of that id is under way.
func (a *Agent) Begin(ctx context.Context, id string, hurry func()) (_ context.Context, done func(), err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls[id] != nil {
		return nil, nil, fmt.Errorf("a request with the id %.100s is under way", id)
	}
	if a.calls == nil {
		a.calls = map[string]*served{}
	}
	c := &served{request: ctx, hurry: hurry}
	c.Context, c.cancel = context.WithCancelCause(a.ctx)
	a.calls[id] = c
	a.pending++
	if a.gone.Err() != nil {
		hurry()
	}
	return c, func() {
		c.cancel(nil)
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.calls, id)
		a.pending--
		a.settle()
	}, nil
}

// Cancel cancels a request of [Agent.Begin]. It reports whether there is one of that id.
func (a *Agent) Cancel(id string) bool {
	a.mu.Lock()
	c := a.calls[id]
	a.mu.Unlock()
	if c == nil {
		return false
	}
	c.cancel(nil)
	return true
}

// Hear notes that the client has sent something, which renews the session's idle timer, too.
func (a *Agent) Hear() {
	a.mu.Lock()
	a.goesOn = true
	if a.expires != nil {
		a.expires.Stop()
	}
	a.mu.Unlock()
	a.Session.Touch()
}

// Gone ends when nothing more will be sent to the agent.
func (a *Agent) Gone() context.Context { return a.gone }

// Taken reports whether the agent has taken its place.
func (a *Agent) Taken() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.taken
}

// Handle is [Session.Handle], cancelled with the agent, which takes its place if it was its initialize that succeeded.
func (a *Agent) Handle(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })()
	res, err := a.Session.Handle(ctx, method, req, next)
	if method == "initialize" && err == nil {
		err = a.take()
	}
	return res, err
}

// Handle serves a request of an MCP client that is not a tool call: in the session's turn where the environment has a
// server of its own, panics as errors.
func (s *Session) Handle(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	s.Touch()
	serve := func(ctx context.Context) (out handled) {
		defer func() {
			if r := recover(); r != nil {
				s.log.Error("handler panicked", "event", "handler_panic", "method", method, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
				out = handled{err: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + " panicked; the server's log has the stack"}}
			}
		}()
		out.res, out.err = next(ctx, method, req)
		if own, ok := errors.AsType[*jsonrpc.Error](out.err); ok && own.Data != nil && !json.Valid(own.Data) {
			out.err = &jsonrpc.Error{Code: own.Code, Message: own.Message}
		}
		if out.err == nil && out.res != nil {
			// What cannot be written must fail here: the SDK would not answer at all, or die of a panic.
			if _, err := json.Marshal(out.res); err != nil {
				out = handled{err: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the answer cannot be written as JSON: " + err.Error()}}
			}
		}
		return out
	}
	if !s.inst.OwnServer() || !isCall(method) {
		out := serve(ctx)
		return out.res, out.err
	}
	out, err := do(s, ctx, alone(method, s.m.opts.ToolTimeout), serve, nothing)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
	return out.res, out.err
}

// Server is the SDK server that serves the session's tools: the class's, or the environment value's own.
func (s *Session) Server() *mcp.Server { return s.inst.Server() }

type handled struct {
	res mcp.Result
	err error
}

// isCall tells the methods that run an author's code from those of the protocol itself.
func isCall(method string) bool {
	switch method {
	case "initialize", "ping", "logging/setLevel", "server/discover", "subscriptions/listen":
		return false
	}
	return !strings.HasPrefix(method, "notifications/")
}

// CallTool is [Session.CallTool], cancelled with the agent.
func (a *Agent) CallTool(ctx context.Context, req *mcp.CallToolRequest) (gym.ToolAnswer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(context.Cause(a.ctx)) })()
	return a.Session.CallTool(ctx, req, 0)
}

// take puts the agent in its place and ends the one that had it. An agent that has left, or whose session is closing,
// gets an error instead.
func (a *Agent) take() error {
	s := a.Session
	s.mu.Lock()
	a.mu.Lock()
	if s.state != open || a.ended {
		a.mu.Unlock()
		s.mu.Unlock()
		return errClosed()
	}
	a.taken = true
	a.mu.Unlock()
	old := s.agent
	s.agent = a
	s.mu.Unlock()
	if old != nil && old != a {
		s.log.Info("agent replaced", "event", "agent_replaced")
		if old.stop(&Error{Code: Closed, Message: "another client has initialised on the session and taken this one's place"}) {
			go old.drain() // the newcomer doesn't wait for what its predecessor's handlers are up to
		}
	}
	return nil
}

// Leave ends the agent and returns when that is done; its session stays for others. It is idempotent.
func (a *Agent) Leave() {
	if a.stop(&Error{Code: Closed, Message: "the client's part in the session has ended"}) {
		a.drain()
	}
	<-a.left
}

// Delete is the client's own goodbye: it ends the agent, and the session too where the client's initialize opened it.
func (a *Agent) Delete(ctx context.Context) error {
	if a.Session.origin == ByInitialize {
		return a.Session.Close(ctx, "deleted by its client")
	}
	a.Leave()
	return nil
}

// stop makes the agent unknown and cancels its calls, which are told why. It reports whether it was the first to do so; that
// one drains.
func (a *Agent) stop(why *Error) bool {
	a.Session.m.mu.Lock()
	delete(a.Session.m.agents, a.ID)
	a.Session.m.mu.Unlock()
	a.cancel(why)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return false
	}
	a.ended = true
	if a.expires != nil {
		a.expires.Stop()
	}
	a.settle()
	return true
}

// drain lets the answers of a stopped agent's calls out and closes its connection. It returns when all that is done: the
// SDK's Close waits for its handlers, which have been cancelled.
func (a *Agent) drain() {
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case <-a.idle:
	case <-timer.C:
	}
	a.setGone()
	a.hurry()
	a.conn.Close()
	s := a.Session
	s.mu.Lock()
	delete(s.agents, a)
	if s.agent == a {
		s.agent = nil
	}
	s.mu.Unlock()
	close(a.left)
	s.leaving.Done()
}

// hurry tells those who serve requests that the agent is gone.
func (a *Agent) hurry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		c.hurry()
	}
}

// settle (mu held) closes idle when the last answer is out.
func (a *Agent) settle() {
	if a.ended && a.pending == 0 {
		select {
		case <-a.idle:
		default:
			close(a.idle)
		}
	}
}

func (a *Agent) add(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending += n
	a.settle()
}

// answering counts requests from their arrival until their answer is written, which is later than their handler's end:
// the SDK's Close drops answers.
type answering struct {
	mcp.Transport
	a *Agent
}

// SupportsProtocolVersion is the wrapped transport's: the SDK asks the outermost.
func (t answering) SupportsProtocolVersion(version string) bool {
	v, ok := t.Transport.(mcp.ProtocolVersionSupporter)
	return !ok || v.SupportsProtocolVersion(version)
}

func (t answering) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := t.Transport.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &answeringConn{Connection: c, a: t.a, open: map[jsonrpc.ID]bool{}}, nil
}

type answeringConn struct {
	mcp.Connection
	a  *Agent
	mu sync.Mutex
	// open are the ids of requests that await an answer; an id that comes twice counts once.
	open   map[jsonrpc.ID]bool
	closed bool
}

func (c *answeringConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && r.IsCall() {
		c.mu.Lock()
		if !c.open[r.ID] && !c.closed {
			c.open[r.ID] = true
			c.a.add(1)
		}
		c.mu.Unlock()
	}
	return m, err
}

func (c *answeringConn) Write(ctx context.Context, m jsonrpc.Message) error {
	err := c.Connection.Write(ctx, m)
	if r, ok := m.(*jsonrpc.Response); ok {
		c.mu.Lock()
		if c.open[r.ID] {
			delete(c.open, r.ID)
			c.a.add(-1)
		}
		c.mu.Unlock()
	}
	return err
}

// Close is called when the SDK has nothing left to do. What it has not answered by then it will not answer: where it closes
// by itself, or its client has gone, it drops answers.
func (c *answeringConn) Close() error {
	err := c.Connection.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.a.add(-len(c.open))
	clear(c.open)
	return err
}
