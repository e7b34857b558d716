package transport

import (
	"fmt"
	"strings"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

type rpcRequest struct {
	JSONRPC string         `json:"jsonrpc"`
	ID      strictjson.Raw `json:"id"`
	Method  *string        `json:"method"`
	Params  strictjson.Raw `json:"params"`

	call bool // it has an id
}

// parseRPC takes checked JSON for a request. The id is set as far as it is known; null stands for none.
func parseRPC(text []byte) (req rpcRequest, err error) {
	defer func() {
		if !validID(req.ID) {
			req.ID = nullID
		}
	}()
	wrong := func(format string, args ...any) error {
		return &rpcError{Code: rpcInvalidRequest, Message: "invalid request: " + fmt.Sprintf(format, args...)}
	}
	switch strictjson.Raw(text).Kind() {
	case '{':
	case '[':
		return req, wrong("batches are not served; send one object")
	default:
		return req, wrong("want an object")
	}
	if plain, ok := membersOf(text).request(); ok {
		return plain, nil
	}
	known := strictjson.UnmarshalKnown(text, &req)
	if known != nil { // it stopped at the fault, perhaps before the id
		var only struct {
			ID strictjson.Raw `json:"id"`
		}
		if strictjson.Unmarshal(text, &only) == nil && only.ID != nil {
			req.ID = only.ID
		}
	}
	req.call = req.ID != nil
	if req.ID != nil && !validID(req.ID) {
		return req, wrong("id must be a string, an integer or null")
	}
	switch {
	case known != nil:
		if extra := extraKeys(text, "jsonrpc", "id", "method", "params"); extra != nil {
			return req, wrong("%v", extra)
		}
		return req, wrong("%s", notString(text))
	case req.JSONRPC != "2.0":
		return req, wrong(`jsonrpc must be "2.0"`)
	case req.Method == nil || *req.Method == "":
		return req, wrong("method is required")
	case req.Params != nil && req.Params.Kind() != '{' && req.Params.Kind() != 'n':
		return req, wrong("params must be an object")
	}
	return req, nil
}

// rpcMembers are the members of a message as they came; nil: there is none of that name.
type rpcMembers struct {
	Version, ID, Method, Params strictjson.Raw

	others bool // there are more
}

// membersOf reads checked JSON that is an object.
func membersOf(text []byte) (m rpcMembers) {
	for name, value := range strictjson.MembersIn(text) {
		switch string(name) {
		case "jsonrpc":
			m.Version = value
		case "id":
			m.ID = value
		case "method":
			m.Method = value
		case "params":
			m.Params = value
		default:
			m.others = true
		}
	}
	return m
}

// rpc2 reports whether the message says that it is of JSON-RPC 2.0.
func (m rpcMembers) rpc2() bool {
	if string(m.Version) == `"2.0"` {
		return true
	}
	version, _ := strictjson.String(m.Version) // in other letters
	return version == "2.0"
}

// request takes the message for a request if it is fine at a glance; what is wrong, if anything is, [parseRPC] tells.
func (m rpcMembers) request() (req rpcRequest, ok bool) {
	method, _ := strictjson.String(m.Method)
	if m.others || !m.rpc2() || method == "" || m.ID != nil && !validID(m.ID) || m.Params != nil && m.Params.Kind() != '{' {
		return req, false
	}
	req = rpcRequest{JSONRPC: "2.0", ID: m.ID, Method: &method, Params: m.Params, call: m.ID != nil}
	if !req.call {
		req.ID = nullID
	}
	return req, true
}

// notString names the member at fault of a request whose members have the wrong types.
func notString(text []byte) string {
	var m struct {
		Method strictjson.Raw `json:"method"`
	}
	if strictjson.Unmarshal(text, &m) == nil && m.Method != nil && m.Method.Kind() != '"' {
		return "method must be a string"
	}
	return `jsonrpc must be "2.0"`
}

func validID(id strictjson.Raw) bool {
	switch id.Kind() {
	case '"', 'n':
		return true
	case '0':
		return !strings.ContainsAny(string(id), ".eE")
	}
	return false
}

// rpcParams are the members of params that the methods look at; others are ignored.
type rpcParams struct {
	SessionID, Name, Arguments strictjson.Raw
	// TokenLasts, of openenv/session/agent, asks for a token that opens the handle for so many seconds.
	TokenLasts strictjson.Raw
}

func parseParams(params strictjson.Raw) (p rpcParams) {
	for name, value := range strictjson.MembersIn(params) {
		switch string(name) {
		case "session_id":
			p.SessionID = value
		case "name":
			p.Name = value
		case "arguments":
			p.Arguments = value
		case "token_s":
			p.TokenLasts = value
		}
	}
	return p
}
