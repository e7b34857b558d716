package transport

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// MCP Streamable HTTP (2025-11-25 and older), for clients that initialise. The SDK's transport does the protocol; this
// file finds it, so that it works on sessions that other doors share.

// stateless is the first revision of MCP without sessions.
const stateless = "2026-07-28"

var statefulVersions = slices.DeleteFunc(mcp.SupportedProtocolVersions(), func(v string) bool { return v >= stateless })

// initialize opens a session, or joins the one that the address names, and serves the client's first request on it.
func (s *Server) initialize(w http.ResponseWriter, r *http.Request, id strictjson.Raw) {
	if !acceptable(w, r, id) {
		return
	}
	named := addressed(r)
	var (
		live *session.Session
		err  error
	)
	if named != "" {
		live, _, err = s.sessions.Reach(named)
	} else {
		live, err = s.sessions.Open(r.Context(), session.ByInitialize)
	}
	if err != nil {
		status := statusOf(err)
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "1")
		}
		writeRPC(w, status, id, err)
		return
	}
	if !s.serveInitialize(w, r, id, live) && named == "" {
		live.Close(context.WithoutCancel(r.Context()), "its client's initialize failed")
	}
}

// serveInitialize reports whether the client has become the session's agent.
func (s *Server) serveInitialize(w http.ResponseWriter, r *http.Request, id strictjson.Raw, live *session.Session) (taken bool) {
	agent, err := live.Join(s.connect)
	if err != nil {
		writeRPC(w, statusOf(err), id, err)
		return false
	}
	defer func() {
		if taken = agent.Taken(); !taken {
			agent.Leave()
		}
	}()
	serveAgent(w, r, agent, id)
	return agent.Taken()
}

// connect gives an agent its transport and the gate that its requests pass.
func (s *Server) connect(a *session.Agent) (mcp.Transport, gym.Gate) {
	t := &mcp.StreamableServerTransport{SessionID: a.ID}
	return statefulTransport{t}, func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && method == "tools/call" {
			return agentResult(a.CallTool(ctx, call))
		}
		return a.Handle(ctx, method, req, next)
	}
}

// statefulTransport keeps the SDK from offering revisions that this door does not serve.
type statefulTransport struct{ *mcp.StreamableServerTransport }

func (statefulTransport) SupportsProtocolVersion(v string) bool { return v < stateless }

// agentResult maps the outcome of a tool call for a client that has initialised: what the model can mend is a result
// marked as an error, what it can't is a protocol error.
func agentResult(a gym.ToolAnswer, err error) (mcp.Result, error) {
	switch {
	case err != nil:
		return nil, agentFailure(err)
	case a.Err == nil:
		return a.Result, nil
	case a.Err.Type == tools.ToolNotFound:
		data, err := strictjson.Marshal(map[string]any{"error_type": a.Err.Type})
		if err != nil {
			return nil, err
		}
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: a.Err.Message, Data: data}
	}
	res := tools.FailureResult(a.Err.Message)
	res.Meta = mcp.Meta{"openenv/error_type": string(a.Err.Type)}
	return res, nil
}

// agentFailure is a call that came to no outcome, for such a client.
func agentFailure(err error) error { return &jsonrpc.Error{Code: rpcServer, Message: err.Error()} }

func (s *Server) postAgent(w http.ResponseWriter, r *http.Request, agentID string, id strictjson.Raw) {
	agent, err := s.sessions.Agent(agentID)
	if err != nil {
		notFound(w, id, err)
		return
	}
	if acceptable(w, r, id) {
		serveAgent(w, r, agent, id)
	}
}

// streamMCP serves GET, the stream of what the server sends unasked, and DELETE, a client's goodbye.
func (s *Server) streamMCP(w http.ResponseWriter, r *http.Request) {
	agentID := r.Header.Get("Mcp-Session-Id")
	if agentID == "" {
		w.Header().Set("Allow", "POST")
		writeRPC(w, http.StatusMethodNotAllowed, nullID, &rpcError{Code: rpcInvalidRequest, Message: r.Method + " needs an Mcp-Session-Id; begin with POST"})
		return
	}
	agent, err := s.sessions.Agent(agentID)
	switch {
	case err != nil:
		notFound(w, nullID, err)
	case r.Method == http.MethodDelete:
		agent.Delete(r.Context()) // what the environment's Close returned is in the log
		w.WriteHeader(http.StatusNoContent)
	case !accepts(r, "text/event-stream"):
		writeRPC(w, http.StatusNotAcceptable, nullID, &rpcError{Code: rpcServer, Message: "Accept must include text/event-stream"})
	default:
		serveAgent(w, r, agent, nullID)
	}
}

// serveAgent runs a request on the agent's transport. A request that hangs there, a stream above all, ends with the agent.
func serveAgent(w http.ResponseWriter, r *http.Request, a *session.Agent, id strictjson.Raw) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(a.Gone(), cancel)()
	if slow, ok := w.(*slowWriter); ok {
		defer context.AfterFunc(a.Gone(), slow.hurry)()
	}
	turned := rpcErrors(w, id)
	defer turned.finish()
	a.Transport.(statefulTransport).ServeHTTP(turned, r.WithContext(ctx))
	if a.Gone().Err() != nil && !turned.begun && turned.status == 0 { // it came while the agent ended
		notFound(w, id, &session.Error{Code: session.Unknown, Message: "the client's part in the session has ended"})
	}
}

// versionContexts captures, for each version, a context that tells the SDK's transport the protocol version of a request.
//
// The SDK hands the version from its HTTP handler to its transport under a private context key; a transport that is
// served by hand takes every request for 2025-03-26 without it. The handler shows a context with the key to getServer, so
// one refused request per version yields it, by public API alone. That is undocumented, so a test holds it.
func versionContexts() map[string]context.Context {
	out := map[string]context.Context{}
	for _, v := range statefulVersions {
		var ctx context.Context
		h := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
			ctx = r.Context()
			return nil
		}, &mcp.StreamableHTTPOptions{Stateless: true})
		r, err := http.NewRequest(http.MethodPost, "http://localhost/", strings.NewReader("{}"))
		if err != nil {
			continue
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"*/*"}, "Mcp-Protocol-Version": {v}}
		h.ServeHTTP(discard{http.Header{}}, r)
		if ctx != nil {
			out[v] = ctx
		}
	}
	return out
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// withVersion is a request's context that also has the values of a captured one.
type withVersion struct {
	context.Context
	version context.Context
}

func (c withVersion) Value(key any) any {
	if v := c.Context.Value(key); v != nil {
		return v
	}
	return c.version.Value(key)
}
