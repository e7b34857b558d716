package transport

import (
	"context"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
)

// A dialog is a client with a connection of its own, a WebSocket or standard input and output, and the session that they
// are of. It is bare JSON-RPC until the client sends initialize; then the client is the session's agent, as one that has
// initialised over HTTP is, until it is replaced or ends otherwise. Then the dialog is bare again.
type dialog struct {
	s     *Server
	peer  func() peer
	write func(text []byte) // several goroutines write at once; what a connection that has gone does not take is dropped

	leaving sync.WaitGroup // agents that are ending

	mu   sync.Mutex  // guards what follows
	conn *dialogConn // of the last one that was the session's agent; nil: there has been none
}

// answer takes one message, and returns the reply that is due now, or nil. It belongs to one goroutine at a time. A bare
// call is served before it returns; what an agent asks is answered later. ctx ends with the connection.
func (d *dialog) answer(ctx context.Context, text []byte) (reply []byte) {
	from := d.peer()
	if err := strictjson.Check(text, d.s.opts.MaxDepth); err != nil {
		from.logRefused(err)
		return encodeRPC(nullID, nil, err)
	}
	conn := d.last()
	if conn != nil && conn.serves() {
		return conn.take(text)
	}
	req, err := parseRPC(text)
	switch {
	case err == nil && *req.Method == "initialize":
		return d.initialize(ctx, text)
	case err != nil && conn != nil && isAnswer(text): // late, to a question of an agent that has ended
		return nil
	}
	return d.s.rpcParsed(ctx, req, err, from)
}

// initialize has the client become the session's agent. It returns when that is decided, so that the messages after it find
// the dialog one or the other.
func (d *dialog) initialize(ctx context.Context, text []byte) (reply []byte) {
	from := d.peer()
	m, head, err := agentMessage(text)
	if req, ok := m.(*jsonrpc.Request); err == nil && ok && !req.IsCall() {
		err = &rpcError{Code: rpcInvalidRequest, Message: "invalid request: initialize needs an id"}
	}
	if err != nil {
		from.logRefused(err)
		return encodeRPC(head.id, nil, err)
	}
	var conn *dialogConn
	agent, err := from.session.Join(func(a *session.Agent) (mcp.Transport, gym.Gate) {
		conn = newDialogConn(d, a)
		return conn, conn.gate
	})
	if err != nil {
		return encodeRPC(head.id, nil, err)
	}
	context.AfterFunc(agent.Gone(), conn.end)
	if reply = conn.hand(m, head, len(text)); reply == nil {
		select {
		case <-conn.answered:
		case <-conn.ended:
		case <-ctx.Done():
		}
	}
	if !agent.Taken() {
		d.leaving.Go(agent.Leave) // an author's handler may hold it up
		return reply
	}
	d.mu.Lock()
	d.conn = conn
	d.mu.Unlock()
	return reply
}

func (d *dialog) last() *dialogConn {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.conn
}

// leave ends the client's part as an agent, when nobody answers any more. Its calls are cancelled at once; leaving tells
// when all is done.
func (d *dialog) leave() {
	if conn := d.last(); conn != nil {
		d.leaving.Go(conn.agent.Leave)
	}
}

// await waits until an agent whose session has ended has had all its answers. That takes a few seconds at most.
func (d *dialog) await() {
	if conn := d.last(); conn != nil {
		<-conn.ended
	}
}

// isAnswer reports whether checked JSON is an answer to a request of the server.
func isAnswer(text []byte) bool {
	var m struct {
		Method strictjson.Raw `json:"method"`
		Result strictjson.Raw `json:"result"`
		Error  strictjson.Raw `json:"error"`
	}
	return strictjson.Raw(text).Kind() == '{' && strictjson.Unmarshal(text, &m) == nil && m.Method == nil && (m.Result != nil || m.Error != nil)
}

var errNoMethod = &rpcError{Code: rpcInvalidRequest, Message: "invalid request: method is required"}

// agentNotices are the notifications of a client that has initialised (MCP 2025-11-25). Others are passed over.
var agentNotices = map[string]bool{
	"notifications/initialized": true, "notifications/cancelled": true, "notifications/progress": true, "notifications/roots/list_changed": true,
}

// agentMessage takes checked JSON for a message of a client that has initialised, or is about to. It is held to what the
// SDK serves, in words that do not repeat a message of any length. m is nil where there is nothing to do. head.id is set as
// far as it is known.
func agentMessage(text []byte) (m jsonrpc.Message, head rpcHead, err error) {
	wrong := func(code int, format string, args ...any) (jsonrpc.Message, rpcHead, error) {
		return nil, head, &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
	}
	head = peek(text)
	switch strictjson.Raw(text).Kind() {
	case '{':
	case '[':
		return wrong(rpcInvalidRequest, "invalid request: batches are not served; send one object")
	default:
		return wrong(rpcInvalidRequest, "invalid request: want an object")
	}
	if !head.valid {
		return wrong(rpcInvalidRequest, "id must be a string or an integer of at most 53 bits")
	}
	m, err = jsonrpc.DecodeMessage(text)
	if err != nil {
		return wrong(rpcInvalidRequest, "invalid request: %.200v", err)
	}
	req, ok := m.(*jsonrpc.Request)
	switch needsParams, known := agentMethods[head.method]; {
	case !ok && isAnswer(text):
	case !ok:
		head.id = nullID // it may be one of the server's own
		return nil, head, errNoMethod
	case head.method == "":
		return nil, head, errNoMethod
	case head.call && !req.IsCall():
		return wrong(rpcInvalidRequest, "id must be a string or an integer of at most 53 bits")
	case !req.IsCall() && (head.method == "initialize" || agentNotices[head.method] && !head.oddParams):
	case !req.IsCall():
		return nil, head, nil
	case head.oddParams:
		return wrong(rpcInvalidParams, "params must be an object")
	case !known:
		return wrong(rpcNoMethod, "method not found: %.100s", req.Method)
	case head.version >= stateless:
		return nil, head, unsupported(head.version)
	case needsParams && head.params == nil:
		return wrong(rpcInvalidParams, "%s needs params", head.method)
	}
	return m, head, nil
}
