package transport

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Tool calls of clients that have initialised, answered with plain JSON: where nothing but the answer can be sent, a stream
// is not needed, and the SDK's transport costs ten times the call. It is the same handler in the same turn, and the same
// outcome.

// isDirect reports whether a call can be answered so: the tools are ours, and the client has neither asked to be told
// anything on the way nor can be asked.
func (s *Server) isDirect(r *http.Request, a *session.Agent, head rpcHead) bool {
	return head.method == "tools/call" && head.call && !head.progress && s.class.Server() != nil && !a.Told() &&
		!tools.CanBeAsked(a.InitializeParams()) && accepts(r, "application/json")
}

func (s *Server) callDirect(w http.ResponseWriter, r *http.Request, a *session.Agent, head rpcHead) {
	p := parseParams(head.params)
	name, err := optionalString("params.name", p.Name)
	if err == nil && name == "" {
		err = &rpcError{Code: rpcInvalidParams, Message: "params.name is required: which tool?"}
	}
	if err != nil {
		writeRPC(w, http.StatusOK, head.id, err)
		return
	}
	// A lost connection is no cancellation (MCP 2025-11-25, transports): notifications/cancelled is, and the agent's end.
	ctx, done, err := a.Begin(r.Context(), requestKey(head.id), hurryOf(w))
	if err != nil {
		writeRPC(w, http.StatusBadRequest, head.id, &rpcError{Code: rpcInvalidRequest, Message: err.Error()})
		return
	}
	defer done()
	res, err := agentResult(a.Session.CallTool(ctx, &mcp.CallToolRequest{
		Session: a.Conn(), Params: &mcp.CallToolParamsRaw{Name: name, Arguments: json.RawMessage(p.Arguments)}, Extra: &mcp.RequestExtra{Header: r.Header},
	}, 0))
	w.Header().Set("Content-Type", "application/json")
	if protocol, ok := errors.AsType[*jsonrpc.Error](err); ok {
		re := &rpcError{Code: int(protocol.Code), Message: protocol.Message}
		if len(protocol.Data) > 0 {
			re.Data = strictjson.Raw(protocol.Data)
		}
		err = re
	}
	var result any = res
	if tool, ok := res.(*mcp.CallToolResult); ok {
		result = mcpResult{tool}
	}
	w.Write(encodeRPC(head.id, result, err))
}

// hurryOf is what has an answer written in a hurry.
func hurryOf(w http.ResponseWriter) func() {
	if slow, ok := w.(*slowWriter); ok {
		return slow.hurry
	}
	return func() {}
}

// cancelDirect serves a notifications/cancelled, if it is about a call that is served here.
func cancelDirect(a *session.Agent, head rpcHead) bool {
	return head.method == "notifications/cancelled" && a.Cancel(requestKey(cancelledBy(head)))
}

// requestKey is an id as a request is found by it: however its text is escaped.
func requestKey(id strictjson.Raw) string {
	if text, ok := strictjson.String(id); ok && bytes.IndexByte(id, '\\') >= 0 {
		return `"` + text + `"`
	}
	return string(id)
}

// cancelledBy is the id of the request that a notifications/cancelled is about, as it came; nil if it names none.
func cancelledBy(head rpcHead) strictjson.Raw {
	var p struct {
		ID strictjson.Raw `json:"requestId"`
	}
	if head.params.Kind() != '{' || strictjson.Unmarshal(head.params, &p) != nil {
		return nil
	}
	return p.ID
}
