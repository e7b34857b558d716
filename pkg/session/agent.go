package session

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// An Agent is an MCP client that has initialised, or is about to: one incarnation of a session's agent, with an SDK
// server session and an id of its own. The SDK wants such ids unique for ever, and a client that comes after another must
// not be hit by what the first one still sends; so each initialize has a new one.
type Agent struct {
	ID        string // the Mcp-Session-Id; it opens the MCP door and nothing else
	Session   *Session
	Transport mcp.Transport

	// ctx ends when the agent is replaced or leaves, and with it the calls it has made.
	ctx    context.Context
	cancel context.CancelFunc

	// gone ends after ctx, when the answers of the cancelled calls are written: requests that still hang may return.
	gone    context.Context
	setGone context.CancelFunc

	conn *mcp.ServerSession

	mu      sync.Mutex // guards what follows
	pending int        // requests read and not yet answered
	ended   bool
	idle    chan struct{} // closed when ended and nothing is pending
}

// drainTime is how long an agent's end waits for the answers of its cancelled calls to be written.
const drainTime = 2 * time.Second

// Join prepares a session for an MCP client whose initialize is about to be served: an SDK session behind the transport
// that connect returns, its requests passing the gate. The agent takes its place when [Agent.Handle] has seen the
// initialize succeed; until then the present agent, if any, keeps it. The caller ends an agent that never did.
func (s *Session) Join(connect func(*Agent) (mcp.Transport, gym.Gate)) (*Agent, error) {
	a := &Agent{ID: s.m.opts.NewID(), Session: s, idle: make(chan struct{})}
	a.ctx, a.cancel = context.WithCancel(s.ctx)
	a.gone, a.setGone = context.WithCancel(context.Background())
	t, gate := connect(a)
	a.Transport = t
	var err error
	if a.conn, err = s.inst.Connect(context.Background(), answering{t, a}, gate); err != nil {
		a.cancel()
		a.setGone()
		return nil, err
	}
	s.m.mu.Lock()
	s.m.agents[a.ID] = a
	s.m.mu.Unlock()
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
	a.Session.Touch()
	return a, nil
}

// Gone ends when nothing more will be sent to the agent.
func (a *Agent) Gone() context.Context { return a.gone }

// Initialized reports whether the agent's initialize has succeeded.
func (a *Agent) Initialized() bool { return a.conn.InitializeParams() != nil }

// Handle serves a request of the agent that is not a tool call: cancelled with the agent, panics as errors.
func (a *Agent) Handle(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (res mcp.Result, err error) {
	a.Session.Touch()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(a.ctx, cancel)()
	defer func() {
		if r := recover(); r != nil {
			a.Session.log.Error("handler panicked", "event", "handler_panic", "method", method, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			res, err = nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: method + " panicked; the server's log has the stack"}
		}
	}()
	res, err = next(ctx, method, req)
	if method == "initialize" && err == nil {
		err = a.take()
	}
	return res, err
}

// CallTool is [Session.CallTool], cancelled with the agent.
func (a *Agent) CallTool(ctx context.Context, req *mcp.CallToolRequest) (gym.ToolAnswer, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(a.ctx, func() { cancel(errClosed()) })()
	return a.Session.CallTool(ctx, req, 0)
}

// take puts the agent in its place and ends the one that had it.
func (a *Agent) take() error {
	s := a.Session
	s.mu.Lock()
	if s.state != open {
		s.mu.Unlock()
		return errClosed()
	}
	old := s.agent
	s.agent = a
	if old == nil || old == a {
		s.mu.Unlock()
		return nil
	}
	s.agents.Add(1)
	s.mu.Unlock()
	s.log.Info("agent replaced", "event", "agent_replaced")
	old.stop()
	go func() { // the newcomer doesn't wait for what its predecessor's handlers are up to
		defer s.agents.Done()
		old.drain()
	}()
	return nil
}

// Leave ends the agent; its session stays for others.
func (a *Agent) Leave() {
	s := a.Session
	s.mu.Lock()
	if s.agent == a {
		s.agent = nil
	}
	if s.state == open {
		s.agents.Add(1)
		defer s.agents.Done()
	}
	s.mu.Unlock()
	a.end()
}

// Delete is the client's own goodbye: it ends the agent, and the session too where the client's initialize opened it.
func (a *Agent) Delete(ctx context.Context) error {
	if a.Session.origin == ByInitialize {
		return a.Session.Close(ctx, "deleted by its client")
	}
	a.Leave()
	return nil
}

// end stops the agent and drains it.
func (a *Agent) end() {
	a.stop()
	a.drain()
}

// stop makes the agent unknown and cancels its calls.
func (a *Agent) stop() {
	a.Session.m.mu.Lock()
	delete(a.Session.m.agents, a.ID)
	a.Session.m.mu.Unlock()
	a.cancel()
	a.mu.Lock()
	a.ended = true
	a.settle()
	a.mu.Unlock()
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
	a.conn.Close()
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
	open map[jsonrpc.ID]bool
}

func (c *answeringConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok && err == nil && r.IsCall() {
		c.mu.Lock()
		if !c.open[r.ID] {
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
