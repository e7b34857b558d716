package transport

import (
	"context"
	"encoding/json"
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

// maxUnanswered is how many requests of one connection's agent may await their answers, those that are being written
// included. Each has a goroutine of the SDK's.
const maxUnanswered = 64

// maxNotices is how many notifications of an agent may wait for the author's handlers, which take one after another; more
// are dropped, but for those that cancel a request. The SDK would keep any number.
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
	first    bool                  // the first request has been answered
	open     map[jsonrpc.ID]*asked // requests that have no answer
	inFlight int                   // requests whose answers are not written
	quiet    chan struct{}         // closed when there are none; nil: nobody waits for that
	notices  []notice              // notifications that may be waiting in the SDK, in their order; those that cancel apart
	past     int                   // how many have been among them and are no more
	held     int64                 // bytes of inFlight and notices; at most what one message may have
}

// asked is a request of the agent's.
type asked struct {
	id        strictjson.Raw // as it came
	size      int64          // bytes
	before    int            // how many notifications came before it: past+len(notices)
	cancelled bool           // by the agent
}

// A notice is a notification of the agent's, by what the SDK gives to its handler.
type notice struct {
	extra *mcp.RequestExtra
	size  int64
}

func newDialogConn(d *dialog, a *session.Agent) *dialogConn {
	return &dialogConn{
		d: d, agent: a, in: make(chan jsonrpc.Message), closed: make(chan struct{}), answered: make(chan struct{}),
		ended: make(chan struct{}), open: map[jsonrpc.ID]*asked{},
	}
}

// serves reports whether the agent is there still.
func (c *dialogConn) serves() bool {
	agent, err := c.d.s.sessions.Agent(c.agent.ID)
	if err == nil {
		agent.Hear()
	}
	return err == nil
}

// take takes checked JSON from the agent.
func (c *dialogConn) take(text []byte) (reply []byte) {
	m, head, err := agentMessage(text)
	if err == nil && head.method == "initialize" {
		if m = nil; head.call { // else it is a notification, which has no answer
			err = errInitializedBefore
		}
	}
	switch {
	case err != nil:
		c.d.peer().logRefused(err)
		return encodeRPC(head.id, nil, err)
	case m == nil:
		return nil
	}
	return c.hand(m, head, len(text))
}

// hand hands a message to the SDK. The reply is that of a request which it does not get.
func (c *dialogConn) hand(m jsonrpc.Message, head rpcHead, size int) (reply []byte) {
	req, _ := m.(*jsonrpc.Request)
	isCall := req != nil && req.IsCall()
	switch {
	case isCall:
		req.Extra = &mcp.RequestExtra{}
		if err := c.admit(req.ID, &asked{id: head.id, size: int64(size)}); err != nil {
			c.d.peer().logRefused(err)
			return encodeRPC(head.id, nil, err)
		}
	case req != nil && req.Method == "notifications/cancelled":
		req.Extra = &mcp.RequestExtra{}
		id := cancelledBy(head)
		if !c.cancels(id) {
			return nil
		}
		req.Params = json.RawMessage(slices.Concat([]byte(`{"requestId":`), id, []byte(`}`))) // the reason, of any length, is for nobody
	case req != nil:
		extra := &mcp.RequestExtra{}
		req.Extra = extra
		if !c.note(notice{extra, int64(size)}) {
			return nil
		}
	}
	select {
	case c.in <- m:
		return nil
	case <-c.closed:
	}
	if !isCall {
		return nil
	}
	q := c.settle(req.ID)
	if q == nil {
		return nil
	}
	defer c.written(q)
	return encodeRPC(q.id, nil, errAgentOver)
}

var errAgentOver = &rpcError{Code: rpcNoSession, Message: "the client's part in the session has ended"}

var errInitializedBefore = &rpcError{Code: rpcInvalidRequest, Message: "invalid request: initialize has been answered before"}

// admit counts a request, or says why it is not served.
func (c *dialogConn) admit(id jsonrpc.ID, q *asked) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch limit := c.d.s.opts.MaxMessage; {
	case c.over:
		return errAgentOver
	case c.open[id] != nil:
		return &rpcError{Code: rpcInvalidRequest, Message: "invalid request: the id is that of a request which is under way"}
	case c.inFlight >= maxUnanswered:
		return &rpcError{Code: rpcServer, Message: fmt.Sprintf("%d requests of this connection are under way; wait for an answer", maxUnanswered)}
	case c.inFlight > 0 && c.held+q.size > limit:
		return &rpcError{Code: rpcServer, Message: fmt.Sprintf("the requests of this connection that are under way would hold over %d bytes; wait for an answer", limit)}
	}
	q.before = c.past + len(c.notices)
	c.open[id] = q
	c.inFlight++
	c.hold(q.size)
	return nil
}

// settle returns a request that has no answer yet, and notes that it has one now; nil: it has one.
func (c *dialogConn) settle(id jsonrpc.ID) *asked {
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.open[id]
	if q != nil {
		delete(c.open, id) // before the answer is out: then the client may use the id again
		c.pass(q.before - c.past)
	}
	return q
}

// written notes that an answer is written.
func (c *dialogConn) written(q *asked) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.hold(-q.size)
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

// cancels reports whether a request of that id is under way, which has not been cancelled before.
func (c *dialogConn) cancels(raw strictjson.Raw) bool {
	var v any
	if strictjson.Unmarshal(raw, &v) != nil {
		return false
	}
	id, err := jsonrpc.MakeID(v)
	c.mu.Lock()
	defer c.mu.Unlock()
	q := c.open[id]
	if err != nil || q == nil || q.cancelled {
		return false
	}
	q.cancelled = true
	return true
}

// note counts a notification, or reports that too much waits.
func (c *dialogConn) note(n notice) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || len(c.notices) >= maxNotices || len(c.notices)+c.inFlight > 0 && c.held+n.size > c.d.s.opts.MaxMessage {
		return false
	}
	c.notices = append(c.notices, n)
	c.hold(n.size)
	return true
}

// hold (mu held) counts the bytes of a message that the SDK has, here and among those of the whole server.
func (c *dialogConn) hold(n int64) {
	c.held += n
	c.d.s.budget.keep(n)
}

// pass (mu held) notes that the first n notices do not wait any more. The SDK begins with messages in their order: when one
// has come to its handler, or is answered, those before it have been handled, or were no good.
func (c *dialogConn) pass(n int) {
	for ; n > 0; n-- {
		c.hold(-c.notices[0].size)
		c.notices = c.notices[1:]
		c.past++
	}
}

// come notes that a notification has come to its handler, or that this is through with it.
func (c *dialogConn) come(extra *mcp.RequestExtra, through int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.IndexFunc(c.notices, func(n notice) bool { return n.extra == extra }); i >= 0 {
		c.pass(i + through)
	}
}

// gate is the gate that the agent's requests pass.
func (c *dialogConn) gate(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if agentNotices[method] {
		c.come(req.GetExtra(), 0)
		defer c.come(req.GetExtra(), 1)
	}
	return gateOf(c.agent)(ctx, method, req, next)
}

// end answers what the SDK has left unanswered, when the agent is gone. What it still writes is dropped.
func (c *dialogConn) end() {
	defer close(c.ended)
	c.mu.Lock()
	left := c.open
	c.over, c.open = true, nil
	c.pass(len(c.notices))
	c.mu.Unlock()
	for _, q := range left {
		c.d.write(encodeRPC(q.id, nil, errAgentOver))
		c.written(q)
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

// Write writes a message: an answer, whatever becomes of its call; another one while ctx lasts, so that a client which does
// not read does not keep a handler beyond its call's end. It does not fail when the connection has gone: the SDK would write
// none of the answers that are left, and the agent's end counts them.
func (c *dialogConn) Write(ctx context.Context, m jsonrpc.Message) error {
	text, err := jsonrpc.EncodeMessage(m)
	if res, ok := m.(*jsonrpc.Response); ok {
		q := c.settle(res.ID)
		if q == nil {
			return nil
		}
		defer c.written(q)
		if err != nil {
			text = encodeRPC(q.id, nil, fmt.Errorf("the answer cannot be written as JSON: %w", err))
		}
		c.d.write(text)
		return nil
	}
	c.mu.Lock()
	over := c.over
	c.mu.Unlock()
	if err == nil && over {
		err = errAgentOver
	}
	if err = errors.Join(err, ctx.Err()); err != nil {
		return &jsonrpc.Error{Code: codeRejected, Message: err.Error()}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.d.write(text)
	}()
	select {
	case <-done:
	case <-ctx.Done(): // at most one write of each call is left behind
	}
	return nil
}

// codeRejected is the SDK's code for a message that its transport refuses: the one message fails, not the connection.
const codeRejected = -32005

// Close is for the SDK.
func (c *dialogConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return nil
}
