package gym

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A host holds an SDK server and dispatches into it directly: the same receiving chain and the same handlers that a
// client's request runs through, without a transport. It is shared by all sessions, or belongs to one environment value
// that brought a server of its own.
type host struct {
	server *mcp.Server
	next   mcp.MethodHandler
	direct *mcp.ServerSession // stands for the caller in requests that no SDK session carried

	// tools are those of a server that the author's Set filled; nil where the server is the author's own, whose tools may
	// change and are looked up at each call.
	tools  map[string]tools.Traits
	specs  map[string]*mcp.Tool     // of the same tools
	checks sync.Map                 // own server: *mcp.Tool → *tools.Validator
	called atomic.Pointer[mcp.Tool] // own server: what was called last; its calls do not overlap
}

// A Gate takes every request that reaches an SDK server through one of its sessions. next runs the request in the
// server. It comes with the context that the session was connected with: see [WithGate].
type Gate func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error)

type gateKey struct{}

// WithGate returns the context to connect an SDK session with, so that its requests pass gate.
func WithGate(ctx context.Context, gate Gate) context.Context {
	return context.WithValue(ctx, gateKey{}, gate)
}

var errNoGate = errors.New("the request belongs to no session")

func newHost(ctx context.Context, server *mcp.Server, known map[string]tools.Traits) (*host, error) {
	h := &host{server: server, tools: known}
	// The last one added is the outermost, so the chain below it includes what an author has added.
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		h.next = next
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			gate, ok := ctx.Value(gateKey{}).(Gate)
			if !ok {
				return nil, errNoGate
			}
			return gate(ctx, method, req, next)
		}
	})
	var err error
	h.direct, err = server.Connect(context.WithoutCancel(ctx), deadEnd{}, nil)
	return h, err
}

func (h *host) close() { h.direct.Close() }

// know keeps what a shared server publishes.
func (h *host) know(list []*mcp.Tool) {
	h.specs = map[string]*mcp.Tool{}
	for _, t := range list {
		h.specs[t.Name] = t
	}
}

// spec is a tool as it is published, or nil; of an own server, only the one that was called last.
func (h *host) spec(name string) *mcp.Tool {
	if t := h.called.Load(); t != nil && t.Name == name {
		return t
	}
	return h.specs[name]
}

// call runs one tool. req.Session may be nil. The result is never nil without an error. spec is the tool as it is
// published; nil: there is none, or it was not found out.
func (h *host) call(ctx context.Context, req *mcp.CallToolRequest, log *slog.Logger) (spec *mcp.Tool, res *mcp.CallToolResult, failed *tools.Error) {
	name := req.Params.Name
	defer func() {
		if r := recover(); r != nil {
			log.Error("tool panicked", "event", "tool_panic", "tool", name, "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			res, failed = nil, &tools.Error{
				Type: tools.ExecutionError, Tool: name, Message: fmt.Sprintf("tool %q panicked; the server's log has the stack", name),
			}
		}
	}()
	if spec, failed = h.admit(ctx, req.Params); failed != nil {
		return spec, nil, failed
	}
	if req.Session == nil {
		req.Session = h.direct
	}
	r, err := h.next(ctx, "tools/call", req)
	if err != nil {
		return spec, nil, logged(ctx, log, tools.AsError(name, err))
	}
	res, ok := r.(*mcp.CallToolResult)
	if !ok || res == nil {
		return spec, nil, &tools.Error{Type: tools.ExecutionError, Tool: name, Message: fmt.Sprintf("tool %q returned no result", name)}
	}
	if err := res.GetError(); err != nil { // the SDK's generic tools put what their function returned here
		var failure *tools.Failure
		if !errors.As(err, &failure) {
			return spec, nil, logged(ctx, log, tools.AsError(name, err))
		}
	}
	return spec, res, nil
}

// logged tells the operator of a call that failed by the tool's fault: what callers are told, and the cause where they are
// not told all of it.
func logged(ctx context.Context, log *slog.Logger, e *tools.Error) *tools.Error {
	if e.Type == tools.ExecutionError || e.Type == tools.TransportError {
		message := e.Message
		if e.Err != nil && e.Err.Error() != message {
			message += ": " + e.Err.Error()
		}
		log.Log(ctx, faultLevel(ctx), "tool failed", "event", "tool_error", "tool", e.Tool, "error_type", e.Type, "error", message)
	}
	return e
}

// faultLevel is the level of an author's failure: a warning, unless the call was over already. What fails since its caller
// has gone, or its time is up, has done as it should, and each lost client would make a line.
func faultLevel(ctx context.Context) slog.Level {
	if ctx.Err() != nil {
		return slog.LevelDebug
	}
	return slog.LevelWarn
}

// admit refuses unknown tools, and arguments that a server of the author's own would have to refuse in its own words.
func (h *host) admit(ctx context.Context, p *mcp.CallToolParamsRaw) (*mcp.Tool, *tools.Error) {
	if h.tools != nil {
		if _, ok := h.tools[p.Name]; !ok {
			return nil, unknownTool(p.Name)
		}
		return h.specs[p.Name], nil // the tool's handler checks its arguments
	}
	list, err := h.list(ctx)
	if err != nil {
		return nil, tools.Refuse(p.Name, err)
	}
	for _, t := range list {
		if t.Name != p.Name {
			continue
		}
		check, err := h.checkOf(t)
		if err != nil {
			return t, tools.Refuse(p.Name, fmt.Errorf("the input schema of tool %q: %w", t.Name, err))
		}
		if err := check.Validate(p.Arguments); err != nil {
			return t, tools.Refuse(p.Name, err)
		}
		h.called.Store(t)
		return t, nil
	}
	return nil, unknownTool(p.Name)
}

func unknownTool(name string) *tools.Error {
	return &tools.Error{
		Type: tools.ToolNotFound, Tool: name, Message: fmt.Sprintf("unknown tool %.200q; list the tools to see which there are", name),
		Refused: true,
	}
}

func (h *host) checkOf(t *mcp.Tool) (*tools.Validator, error) {
	if v, ok := h.checks.Load(t); ok {
		return v.(*tools.Validator), nil
	}
	v, err := tools.NewValidator(t.InputSchema)
	if err == nil {
		h.checks.Store(t, v)
	}
	return v, err
}

// list returns all tools, page by page.
func (h *host) list(ctx context.Context) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	params := &mcp.ListToolsParams{}
	for {
		if ctx.Err() != nil { // an author's pages may have no end
			return nil, context.Cause(ctx)
		}
		r, err := h.next(ctx, "tools/list", &mcp.ListToolsRequest{Session: h.direct, Params: params})
		if err != nil {
			return nil, err
		}
		res, ok := r.(*mcp.ListToolsResult)
		if !ok {
			return nil, fmt.Errorf("tools/list answered with %T", r)
		}
		all = append(all, res.Tools...)
		if res.NextCursor == "" {
			return all, nil
		}
		params = &mcp.ListToolsParams{Cursor: res.NextCursor}
	}
}

// deadEnd is the transport of a host's direct session: nobody is at the other end, so nothing arrives and what is sent
// is dropped.
type deadEnd struct{}

func (deadEnd) Connect(context.Context) (mcp.Connection, error) {
	return &deadEndConn{done: make(chan struct{})}, nil
}

// codeRejected is the SDK's code for a message that its transport refuses.
const codeRejected = -32005

type deadEndConn struct {
	once sync.Once
	done chan struct{}
}

func (c *deadEndConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case <-c.done:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *deadEndConn) Write(_ context.Context, m jsonrpc.Message) error {
	if r, ok := m.(*jsonrpc.Request); ok && r.IsCall() {
		// An error of this kind refuses the one request; another would end the connection.
		return &jsonrpc.Error{Code: codeRejected, Message: "the caller of this tool cannot answer requests of the server"}
	}
	return nil
}

func (c *deadEndConn) Close() error      { c.once.Do(func() { close(c.done) }); return nil }
func (c *deadEndConn) SessionID() string { return "" }
