package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/access"
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
		live, err = s.open(r.Context(), session.ByInitialize, callerOf(r))
	}
	if err != nil {
		noSession(w, id, err)
		return
	}
	if !s.serveInitialize(w, r, id, live) && named == "" {
		live.Close(context.WithoutCancel(r.Context()), "its client's initialize failed")
	}
}

// serveInitialize reports whether the client has become the session's agent.
func (s *Server) serveInitialize(w http.ResponseWriter, r *http.Request, id strictjson.Raw, live *session.Session) (taken bool) {
	agent, err := live.Join(func(a *session.Agent) (mcp.Transport, gym.Gate) {
		// What was sent is kept for a client that has lost a stream and asks for the rest of it.
		t := &mcp.StreamableServerTransport{SessionID: a.ID, EventStore: newReplay()}
		return statefulTransport{t, callerOf(r).Name}, gateOf(a)
	})
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
	if taken = agent.Taken(); taken {
		agent.Expect(initializedWithin)
	}
	return taken
}

// initializedWithin is how long a client that has initialised may take to go on.
const initializedWithin = time.Minute

// gateOf is the gate that an agent's requests pass.
func gateOf(a *session.Agent) gym.Gate {
	return func(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
		if call, ok := req.(*mcp.CallToolRequest); ok && method == "tools/call" {
			return agentResult(a.CallTool(ctx, call))
		}
		// The SDK keeps the version that the client asks for beside the one that it answers with, and asks nothing of a client
		// that would rather be stateless.
		if init, ok := req.GetParams().(*mcp.InitializeParams); ok && init != nil && init.ProtocolVersion >= stateless {
			init.ProtocolVersion = statefulVersions[0]
		}
		return a.Handle(ctx, method, req, next)
	}
}

// statefulTransport keeps the SDK from offering revisions that this door does not serve.
type statefulTransport struct {
	*mcp.StreamableServerTransport
	owner string // the name of the caller who has initialised; "": no token was asked for
}

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
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: a.Err.Message, Data: errorType(a.Err)}
	}
	if own, ok := errors.AsType[*jsonrpc.Error](a.Err); ok && own.Code != 0 { // an author who answers so means it
		if own.Data != nil && strictjson.Check(own.Data, strictjson.DefaultMaxDepth) == nil {
			return nil, own
		}
		return nil, &jsonrpc.Error{Code: own.Code, Message: own.Message, Data: errorType(a.Err)}
	}
	res := tools.FailureResult(a.Err.Message)
	res.Meta = mcp.Meta{"openenv/error_type": string(a.Err.Type)}
	return res, nil
}

// errorType is the data of an error of the protocol.
func errorType(e *tools.Error) json.RawMessage {
	data, _ := strictjson.Marshal(map[string]any{"error_type": e.Type})
	return data
}

// agentFailure is a call that came to no outcome, for such a client.
func agentFailure(err error) error {
	message := err.Error()
	if errors.Is(err, context.Canceled) {
		message = "the call was cancelled by its client"
	}
	return &jsonrpc.Error{Code: rpcServer, Message: message}
}

// agentMethods are the requests of a client that has initialised (MCP 2025-11-25), and whether they need params.
var agentMethods = map[string]bool{
	"initialize": true, "ping": false, "tools/list": false, "tools/call": true, "prompts/list": false, "prompts/get": true,
	"resources/list": false, "resources/templates/list": false, "resources/read": true, "resources/subscribe": true,
	"resources/unsubscribe": true, "completion/complete": true, setLevel: true,
}

// webAgent finds an agent of this door, for the caller who has made it one. Those of sockets have ids too, which open
// nothing.
func (s *Server) webAgent(id string, by access.Caller) (*session.Agent, error) {
	agent, err := s.sessions.Agent(id)
	if err != nil {
		return nil, err
	}
	if t, ok := agent.Transport.(statefulTransport); !ok || t.owner != by.Name && by.Role < access.Control {
		return nil, &session.Error{Code: session.Unknown, Message: "the id is not one of Streamable HTTP, or of another caller's"}
	}
	agent.Hear()
	return agent, nil
}

func (s *Server) postAgent(w http.ResponseWriter, r *http.Request, agentID string, head rpcHead) {
	agent, err := s.webAgent(agentID, callerOf(r))
	if err != nil {
		notFound(w, head.id, err)
		return
	}
	if !acceptable(w, r, head.id) {
		return
	}
	// The SDK would call either an invalid request, and give a second initialize an error without a code.
	if needsParams, known := agentMethods[head.method]; head.method == "initialize" {
		writeRPC(w, http.StatusBadRequest, head.id, errInitializedBefore)
	} else if head.call && !known {
		writeRPC(w, http.StatusOK, head.id, &rpcError{Code: rpcNoMethod, Message: fmt.Sprintf("method not found: %.100s", head.method)})
	} else if needsParams && head.params == nil {
		writeRPC(w, http.StatusOK, head.id, &rpcError{Code: rpcInvalidParams, Message: head.method + " needs params"})
	} else if s.isDirect(r, agent, head) {
		s.callDirect(w, r, agent, head)
	} else if cancelDirect(agent, head) {
		w.WriteHeader(http.StatusAccepted)
	} else {
		if head.logging {
			agent.Tell()
		}
		serveAgent(w, r, agent, head.id)
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
	agent, err := s.webAgent(agentID, callerOf(r))
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
	defer context.AfterFunc(a.Gone(), hurryOf(w))()
	turned := rpcErrors(w, id)
	defer turned.finish()
	beating := newHeartbeat(turned)
	defer beating.stop()
	a.Transport.(statefulTransport).ServeHTTP(beating, r.WithContext(ctx))
	if a.Gone().Err() == nil || turned.status != 0 || r.Method != http.MethodPost {
		return
	}
	over := &session.Error{Code: session.Unknown, Message: "the client's part in the session has ended"}
	switch { // it came while the agent ended
	case !turned.begun:
		notFound(w, id, over)
	case beating.silent() && id.Kind() != 'n': // the stream has begun, and the SDK has not seen the request
		fmt.Fprintf(beating, "event: message\ndata: %s\n\n", encodeRPC(id, nil, &rpcError{Code: rpcNoSession, Message: over.Message}))
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
		h.ServeHTTP(&unsent{}, r)
		if ctx != nil {
			out[v] = ctx
		}
	}
	return out
}
