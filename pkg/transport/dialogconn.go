package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// maxInFlight is how many requests of one connection's agent may await their answers, those that are being written
// included. Each has a goroutine of the SDK's.
const maxInFlight = 64

// maxNotices is how many notifications of an agent may wait for the author's handlers, which take one after another; more
// are dropped. The SDK would keep any number.
const maxNotices = 64

// A dialogConn is what the SDK sees of an agent that has a connection of its own: its transport and its connection in one.
type dialogConn struct {
	d     *dialog
	agent *session.Agent

	in       chan jsonrpc.Message
	closing  sync.Once
	closed   chan struct{}
	answered chan struct{} // closed when the first request, the initialize, is answered
	ended    chan struct{} // closed when nothing more is written

	mu       sync.Mutex // guards what follows
	over     bool
	first    bool                          // the first request has been answered
	open     map[jsonrpc.ID]strictjson.Raw // ids of requests that have no answer, as they came
	inFlight int                           // requests whose answers are not written
	quiet    chan struct{}                 // closed when there are none; nil: nobody waits for that
	begun    []*mcp.RequestExtra           // of what has been handed over and has not come to the gate, in its order
}

func newDialogConn(d *dialog, a *session.Agent) *dialogConn {
	return &dialogConn{
		d: d, agent: a, in: make(chan jsonrpc.Message), closed: make(chan struct{}), answered: make(chan struct{}),
		ended: make(chan struct{}), open: map[jsonrpc.ID]strictjson.Raw{},
	}
}

// serves reports whether the agent is there still.
func (c *dialogConn) serves() bool {
	_, err := c.d.s.sessions.Agent(c.agent.ID)
	return err == nil
}

// take takes checked JSON from the agent.
func (c *dialogConn) take(text []byte) (reply []byte) {
	m, head, err := agentMessage(text)
	if err == nil && head.method == "initialize" {
		m, err = nil, &rpcError{Code: rpcInvalidRequest, Message: "invalid request: initialize has been answered on this connection"}
	}
	switch {
	case err != nil:
		c.d.peer().logRefused(err)
		return encodeRPC(head.id, nil, err)
	case m == nil:
		return nil
	}
	return c.hand(m, head.id)
}

// hand hands a message to the SDK. The reply is that of a request which it does not get.
func (c *dialogConn) hand(m jsonrpc.Message, id strictjson.Raw) (reply []byte) {
	req, _ := m.(*jsonrpc.Request)
	if req != nil {
		extra := &mcp.RequestExtra{}
		req.Extra = extra
		if req.IsCall() {
			if err := c.admit(req.ID, id); err != nil {
				c.d.peer().logRefused(err)
				return encodeRPC(id, nil, err)
			}
		}
		if !c.begin(extra, req.IsCall()) {
			return nil
		}
	}
	select {
	case c.in <- m:
		return nil
	case <-c.closed:
	}
	if req == nil || !req.IsCall() || !c.settle(req.ID) {
		return nil
	}
	defer c.written()
	return encodeRPC(id, nil, errAgentOver)
}

var errAgentOver = &rpcError{Code: rpcNoSession, Message: "the client's part in the session has ended"}

// admit counts a request, or says why it is not served.
func (c *dialogConn) admit(id jsonrpc.ID, raw strictjson.Raw) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, twice := c.open[id]
	switch {
	case c.over:
		return errAgentOver
	case twice:
		return &rpcError{Code: rpcInvalidRequest, Message: "invalid request: the id is that of a request which is under way"}
	case c.inFlight >= maxInFlight:
		return &rpcError{Code: rpcServer, Message: fmt.Sprintf("%d requests of this connection are under way; wait for an answer", maxInFlight)}
	}
	c.open[id] = raw
	c.inFlight++
	return nil
}

// settle reports whether a request has no answer yet, and notes that it has one now.
func (c *dialogConn) settle(id jsonrpc.ID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, open := c.open[id]
	delete(c.open, id) // before the answer is out: then the client may use the id again
	return open
}

// written notes that an answer is written.
func (c *dialogConn) written() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inFlight--
	if c.inFlight == 0 && c.quiet != nil {
		close(c.quiet)
		c.quiet = nil
	}
	if !c.first {
		c.first = true
		close(c.answered)
	}
}

// settled returns a channel that is closed when every request is answered. One goroutine may wait.
func (c *dialogConn) settled() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	quiet := make(chan struct{})
	if c.inFlight == 0 {
		close(quiet)
	} else {
		c.quiet = quiet
	}
	return quiet
}

// begin notes what is handed over. It reports whether that is to be: a notification is dropped where too many wait.
func (c *dialogConn) begin(extra *mcp.RequestExtra, call bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.begun) >= maxNotices+maxInFlight {
		if !call {
			return false
		}
		c.begun = nil // the SDK has answered earlier calls by itself, so nothing waits
	}
	c.begun = append(c.begun, extra)
	return true
}

// past notes that what has that extra has come to the gate, or through it. The SDK begins with messages in their order, so
// those before it have come as far, or were no good.
func (c *dialogConn) past(extra *mcp.RequestExtra, through int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.begun, extra); i >= 0 {
		c.begun = slices.Delete(c.begun, 0, i+through)
	}
}

// gate is the gate that the agent's requests pass.
func (c *dialogConn) gate(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	extra := req.GetExtra()
	if agentNotices[method] {
		c.past(extra, 0)
		defer c.past(extra, 1)
	} else {
		c.past(extra, 1)
	}
	return gateOf(c.agent)(ctx, method, req, next)
}

// end answers what the SDK has left unanswered, when the agent is gone. What it still writes is dropped.
func (c *dialogConn) end() {
	defer close(c.ended)
	c.mu.Lock()
	left := c.open
	c.over, c.open = true, nil
	c.mu.Unlock()
	for _, id := range left {
		c.d.write(encodeRPC(id, nil, errAgentOver))
		c.written()
	}
}

// Connect is for the SDK.
func (c *dialogConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SupportsProtocolVersion keeps the SDK from offering revisions that this door does not serve.
func (c *dialogConn) SupportsProtocolVersion(v string) bool { return v < stateless }

// SessionID is an id by which an author's server can tell its clients apart. It opens nothing.
func (c *dialogConn) SessionID() string { return c.agent.ID }

func (c *dialogConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-c.closed:
		return nil, io.EOF
	default:
	}
	select {
	case m := <-c.in:
		return m, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write writes a message, whatever becomes of the call that it belongs to. It does not fail when the connection has gone:
// the SDK would write none of the answers that are left, and the agent's end counts them.
func (c *dialogConn) Write(_ context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	res, isAnswer := m.(*jsonrpc.Response)
	if !isAnswer {
		c.mu.Lock()
		over := c.over
		c.mu.Unlock()
		if err != nil || over {
			return &jsonrpc.Error{Code: codeRejected, Message: errors.Join(err, errAgentOver).Error()}
		}
		c.d.write(text)
		return nil
	}
	c.mu.Lock()
	id := c.open[res.ID]
	c.mu.Unlock()
	if !c.settle(res.ID) {
		return nil
	}
	defer c.written()
	if err != nil {
		text = encodeRPC(id, nil, fmt.Errorf("the answer cannot be written as JSON: %w", err))
	}
	c.d.write(text)
	return nil
}

// codeRejected is the SDK's code for a message that its transport refuses: the one message fails, not the connection.
const codeRejected = -32005

// Close is for the SDK.
func (c *dialogConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return nil
}
