package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/access"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// JSON-RPC 2.0 without a handshake, as OpenEnv's clients speak it: over POST /mcp, the WebSocket /mcp, and in mcp frames.

// Error codes (JSON-RPC 2.0, section 5.1; rpcServer is the reference's SERVER_ERROR).
const (
	rpcParse          = -32700
	rpcInvalidRequest = -32600
	rpcNoMethod       = -32601
	rpcInvalidParams  = -32602
	rpcInternal       = -32603
	rpcServer         = -32000
	rpcNoSession      = -32001 // as the MCP SDKs have it
)

// An rpcError is the error of an answer.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *rpcError) Error() string { return e.Message }

// appendResult writes the answer with a result.
func appendResult(b []byte, id strictjson.Raw, result any) (_ []byte, err error) {
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, id...)
	b = append(b, `,"result":`...)
	b, err = strictjson.Append(b, result)
	return append(b, '}'), err
}

type rpcFault struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      strictjson.Raw `json:"id"`
	Error   *rpcError      `json:"error"`
}

// rpcNothing answers a notification where the channel wants an answer to everything.
var rpcNothing = []byte(`{"jsonrpc":"2.0","id":null,"result":null}`)

// A peer is who sends a JSON-RPC request.
type peer struct {
	caller  access.Caller
	session *session.Session // that its socket or address is of, or nil
	socket  *socket          // that it has sent the request by, or nil
	agent   bool             // it came by a handle: for it there are tools and nothing else
	base    string           // where it reaches the server: http://host
	limit   time.Duration    // deadline of its calls; 0: the server's
}

// rpcChecked answers one request, which is checked JSON. A nil answer means that none is due.
func (s *Server) rpcChecked(ctx context.Context, text []byte, own peer) []byte {
	req, err := parseRPC(text)
	return s.rpcParsed(ctx, req, err, own)
}

// rpcParsed answers what [parseRPC] has returned.
func (s *Server) rpcParsed(ctx context.Context, req rpcRequest, err error, own peer) []byte {
	if err == nil && !req.call && strings.HasPrefix(*req.Method, "notifications/") {
		return nil
	}
	var result any
	if err == nil {
		result, err = s.serveRPC(ctx, req, own)
	} else {
		own.logRefused(err)
	}
	return encodeRPC(req.ID, result, err)
}

func encodeRPC(id strictjson.Raw, result any, err error) []byte {
	var b []byte
	if err == nil {
		if b, err = appendResult(make([]byte, 0, frameSize), id, result); err == nil {
			return b
		}
		err = fmt.Errorf("the answer cannot be written as JSON: %w", err)
	}
	b, err = strictjson.MarshalFault(rpcFault{"2.0", id, rpcFailure(err)})
	if err != nil { // for what is in the data
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"the answer cannot be written as JSON"}}`, id, rpcInternal)
	}
	return b
}

// rpcFailure maps an error to its code.
func rpcFailure(err error) *rpcError {
	var (
		syntax *strictjson.SyntaxError
		re     *rpcError
		call   *tools.Error
		input  *tools.InputError
		se     *session.Error
	)
	switch {
	case errors.As(err, &re):
		return re
	case errors.As(err, &call):
		return callFailure(call)
	case errors.As(err, &syntax):
		return &rpcError{Code: rpcParse, Message: err.Error()}
	case errors.As(err, &input):
		return &rpcError{Code: rpcInvalidParams, Message: "invalid params: " + err.Error()}
	case errors.As(err, &se):
		return sessionFailure(se)
	}
	return &rpcError{Code: rpcInternal, Message: err.Error()}
}

func callFailure(e *tools.Error) *rpcError {
	code := rpcInternal
	if e.Type == tools.ToolNotFound || e.Type == tools.InvalidArgs {
		code = rpcInvalidParams
	}
	return &rpcError{Code: code, Message: e.Message, Data: map[string]any{"error_type": e.Type}}
}

func sessionFailure(e *session.Error) *rpcError {
	re := &rpcError{Code: rpcServer, Message: e.Message}
	switch e.Code {
	case session.CapacityReached:
		re.Data = map[string]any{"active_sessions": e.Active, "max_sessions": e.Max}
	case session.FactoryFailed:
		re.Data = map[string]any{"factory_name": e.Factory}
	case session.Unknown:
		re.Code = rpcInvalidParams
	case session.Initializing, session.Busy, session.TooMany:
		re.Code = rpcInvalidRequest
	}
	return re
}

var nullID = strictjson.Raw("null")

func (s *Server) serveRPC(ctx context.Context, req rpcRequest, own peer) (any, error) {
	p := parseParams(req.Params)
	id, err := optionalString("params.session_id", p.SessionID)
	if err != nil {
		return nil, err
	}
	switch *req.Method {
	case "tools/list":
		list, err := s.listTools(ctx, id, own)
		return map[string]any{"tools": list}, err
	case "tools/call":
		return s.callTool(ctx, p, id, own)
	}
	if !own.agent {
		switch *req.Method {
		case "openenv/session/create":
			return s.createSession(ctx, own)
		case "openenv/session/close":
			return s.closeSession(ctx, id, own.session)
		case mintsHandle:
			lasts, err := secondsOf([]any{"params"}, "token_s", p.TokenLasts)
			if err != nil {
				return nil, err
			}
			return s.mintHandle(id, own, lasts)
		}
	}
	return nil, &rpcError{Code: rpcNoMethod, Message: fmt.Sprintf("method not found: %.100s", *req.Method)}
}

func optionalString(name string, raw strictjson.Raw) (string, error) {
	if raw == nil || raw.Kind() == 'n' {
		return "", nil
	}
	v, ok := strictjson.String(raw)
	if !ok {
		return "", &rpcError{Code: rpcInvalidParams, Message: name + " must be a string"}
	}
	return v, nil
}

// sessionFor is the session that a request is about: that of the id in its params, else that of its socket or address; nil
// where it names none. A token of one handle opens no other session, whatever its bearer knows.
func (s *Server) sessionFor(id string, from peer) (*session.Session, error) {
	if id == "" || id == from.caller.Handle {
		return from.session, nil
	}
	if from.caller.Handle != "" {
		return nil, &session.Error{Code: session.Unknown, Message: "unknown session: the token is good for its handle's only"}
	}
	live, _, err := s.sessions.Reach(id)
	return live, err
}

// listTools lists the tools of the session that a request is about, else of the environment as such.
func (s *Server) listTools(ctx context.Context, id string, from peer) (list []*mcp.Tool, err error) {
	own, err := s.sessionFor(id, from)
	if err != nil {
		return nil, err
	}
	if own != nil {
		list, err = own.ListTools(ctx)
	} else {
		list = s.class.Tools
	}
	if list == nil {
		list = []*mcp.Tool{}
	}
	return list, err
}

func (s *Server) callTool(ctx context.Context, p rpcParams, id string, from peer) (result any, err error) {
	name, err := optionalString("params.name", p.Name)
	switch {
	case err != nil:
		return nil, err
	case name == "":
		return nil, &rpcError{Code: rpcInvalidParams, Message: "params.name is required: which tool?"}
	case p.Arguments != nil && p.Arguments.Kind() != '{':
		return nil, &rpcError{Code: rpcInvalidParams, Message: "params.arguments must be an object"}
	}
	req := session.ToolRequest(name, json.RawMessage(p.Arguments))
	call := func(target *session.Session) error {
		a, err := target.CallTool(ctx, req, from.limit)
		switch {
		case err != nil:
			return err
		case a.Err != nil:
			return a.Err
		}
		result = newBareResult(a)
		return nil
	}
	own, err := s.sessionFor(id, from)
	switch {
	case err != nil:
	case own != nil:
		err = call(own)
	default:
		err = s.withSession(ctx, "", from.caller, call)
	}
	return result, err
}

func (s *Server) createSession(ctx context.Context, from peer) (any, error) {
	own := from.session
	if own == nil {
		var err error
		if own, err = s.open(ctx, session.ByCreate, from.caller); err != nil {
			return nil, err
		}
	}
	return map[string]any{"session_id": own.ID}, nil
}

// mintsHandle is the one method whose answer tells where the server is reached.
const mintsHandle = "openenv/session/agent"

// mintHandle mints a handle for agents of the session of that id, else of the caller's own, and a token that opens it for so
// long; 0: no token.
func (s *Server) mintHandle(id string, own peer, lasts time.Duration) (any, error) {
	live := own.session
	if id != "" {
		var err error
		if live, err = s.sessions.Get(id); err != nil {
			return nil, err
		}
	}
	if live == nil {
		return nil, &rpcError{Code: rpcInvalidParams, Message: "params.session_id is required: agents of which session?"}
	}
	handle, err := live.Mint()
	if err != nil {
		return nil, err
	}
	minted := map[string]any{"handle": handle, "url": own.base + "/mcp/" + handle}
	if lasts > 0 {
		if until := own.caller.Expires; !until.IsZero() {
			lasts = min(lasts, time.Until(until)) // no token outlives the one that it was minted with
		}
		token, expires := s.keeper.Mint(handle, lasts)
		minted["token"], minted["expires_at"] = string(token), expires.Unix()
	}
	return minted, nil
}

// closeWait is how long openenv/session/close waits for the end before it answers that the session is closing.
const closeWait = 5 * time.Second

func (s *Server) closeSession(ctx context.Context, id string, own *session.Session) (any, error) {
	switch {
	case id == "":
		return nil, &rpcError{Code: rpcInvalidParams, Message: "params.session_id is required: which session?"}
	case own != nil && own.ID == id:
		return nil, &rpcError{Code: rpcInvalidRequest, Message: "this socket uses the session; close the socket that opened it instead"}
	}
	wait, cancel := context.WithTimeout(ctx, closeWait)
	defer cancel()
	closing, err := s.sessions.Close(wait, id)
	var se *session.Error
	switch {
	case errors.As(err, &se):
		return nil, se
	case wait.Err() != nil:
		closing = true // a call does not return; the session ends when it does
	}
	if closing {
		return map[string]any{"session_id": id, "closed": false, "closing": true}, nil
	}
	return map[string]any{"session_id": id, "closed": true}, nil
}
