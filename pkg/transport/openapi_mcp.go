package transport

import (
	"slices"
	"strings"
)

// The MCP doors and the sockets in the OpenAPI document.

// mcpRoutes are those of /mcp, and of /mcp/{id} for clients that drop a query.
func mcpRoutes() []route {
	const named = "A live session, or a handle of one."
	text := object{"type": "string"}
	return slices.Concat(
		mcpRoutesAt("/mcp", parameter("query", "session_id", named, text)),
		mcpRoutesAt("/mcp/{id}", required(parameter("path", "id", named, text))),
	)
}

func mcpRoutesAt(path string, named object) []route {
	const id, says = "Mcp-Session-Id", "The id that initialize has answered with."
	text, some := object{"type": "string"}, object{"type": "string", "minLength": 1}
	spoken := parameter("header", "Mcp-Protocol-Version", "The revision of MCP that is spoken.",
		object{"type": "string", "enum": append(slices.Clone(statefulVersions), stateless)})
	stream := object{} // of events, which OpenAPI 3.1 has no schema for
	return []route{
		{Method: "post", Path: path, Summary: "Speak MCP", body: ref("RPCRequest"), examples: rpcExamples, fault: ref("MCPError"),
			Description: "JSON-RPC 2.0. Without a handshake: tools/list, tools/call, openenv/session/create, openenv/session/agent, openenv/session/close; " +
				"errors have the status 200 then. After initialize: MCP Streamable HTTP, which wants the Content-Type application/json and an Accept header with application/json and text/event-stream.",
			parameters: []object{named, parameter("header", id, says, some), spoken},
			errors:     []string{"404", "406", "408", "409", "413", "415", "500", "503"},
			answers: object{
				"200": object{
					"description": "The answer, or after initialize a stream that ends with it.",
					"content":     object{"application/json": object{"schema": ref("RPCAnswer")}, "text/event-stream": stream},
					"headers":     object{id: object{"description": "In the answer to initialize: what the client's requests are to carry.", "schema": text}},
				},
				"202": object{"description": "It was a notification, which has no answer."},
			}},
		{Method: "get", Path: path, Summary: "Listen, or open a socket", fault: ref("MCPError"),
			Description: "After initialize: the stream of what the server sends unasked. As a WebSocket handshake: a socket that speaks JSON-RPC 2.0, one message to a frame.",
			parameters:  []object{named, parameter("header", id, says, some), spoken, parameter("header", "Last-Event-ID", "The last event of a stream that was cut.", some)},
			errors:      []string{"404", "405", "406", "409", "426", "500", "503"},
			answers:     object{"101": upgraded(), "200": object{"description": "The stream.", "content": object{"text/event-stream": stream}}}},
		{Method: "delete", Path: path, Summary: "Leave", fault: ref("MCPError"),
			Description: "Ends the client's part in the session that it has initialised, and the session where nobody else has a part in it.",
			parameters:  []object{named, required(parameter("header", id, says, some)), spoken},
			errors:      []string{"404", "405"},
			answers:     object{"204": object{"description": "The client has left."}}},
	}
}

// gymSocketRoute is that of /ws.
func gymSocketRoute() route {
	return route{Method: "get", Path: "/ws", Summary: "Open a socket",
		Description: "A WebSocket handshake. The socket speaks text frames {\"type\": T, \"data\": {…}}, and each has an answer.",
		parameters: []object{
			parameter("query", "session_id", "A live session to attach to; without it the socket opens one.", object{"type": "string"}),
			parameter("query", "resume", "How many seconds the session is to wait for a client that is lost.", object{"type": "number", "minimum": 0}),
			parameter("query", "announce", "Whether the answer is to tell the session's id.", object{"type": "boolean"}),
		},
		errors:  []string{"404", "409", "426", "500", "503"},
		answers: object{"101": upgraded()}}
}

func upgraded() object {
	return object{"description": "The socket is open.", "headers": object{
		sessionHeader: object{"description": "The session's id, where the query has announce=1.", "schema": object{"type": "string"}},
	}}
}

// bareMethods are the methods without a handshake, each with the members that its params must have, and may have.
var bareMethods = []struct {
	name          string
	needs, allows []string
}{
	{"tools/list", nil, []string{"session_id"}},
	{"tools/call", []string{"name"}, []string{"arguments", "session_id"}},
	{"openenv/session/create", nil, nil},
	{"openenv/session/agent", []string{"session_id"}, nil},
	{"openenv/session/close", []string{"session_id"}, nil},
}

// rpcExamples are requests to begin with.
var rpcExamples = object{
	"tools":   object{"summary": "Which tools are there?", "value": object{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}},
	"session": object{"summary": "Open a session", "value": object{"jsonrpc": "2.0", "id": 1, "method": "openenv/session/create"}},
	"initialize": object{"summary": "Begin as an MCP client", "value": object{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": object{
		"protocolVersion": statefulVersions[0], "capabilities": object{}, "clientInfo": object{"name": "example", "version": "1"},
	}}},
}

// rpcSchemas are what /mcp takes and answers.
func rpcSchemas() object {
	text, version := object{"type": "string"}, object{"const": "2.0"}
	id := object{"type": []string{"string", "integer", "null"}}
	members := object{"name": text, "session_id": text, "arguments": object{"type": "object"}}
	var requests []any
	var bare []string
	for _, m := range bareMethods {
		params := object{"type": "object", "properties": object{}}
		for _, name := range slices.Concat(m.needs, m.allows) {
			params["properties"].(object)[name] = members[name]
		}
		needs := []string{"jsonrpc", "method"}
		if m.needs != nil {
			params["required"] = m.needs
			needs = append(needs, "params")
		}
		bare = append(bare, m.name)
		requests = append(requests, object{
			"title": strings.ReplaceAll(m.name, "/", " "), "type": "object", "required": needs, "additionalProperties": false,
			"properties": object{"jsonrpc": version, "id": id, "method": object{"const": m.name}, "params": params},
		})
	}
	other := object{
		"title": "after initialize", "type": "object", "required": []string{"jsonrpc"},
		"properties": object{"jsonrpc": version, "id": id, "method": object{"type": "string", "not": object{"enum": bare}}, "params": object{"type": "object"}},
	}
	batch := object{"title": "a batch, of clients that have initialised with 2025-03-26", "type": "array", "minItems": 1, "maxItems": maxBatch, "items": object{"type": "object"}}
	fault := object{"type": "object", "required": []string{"jsonrpc", "id", "error"}, "additionalProperties": false, "properties": object{
		"jsonrpc": version, "id": id, "error": object{"type": "object", "required": []string{"code", "message"}, "properties": object{
			"code": object{"type": "integer"}, "message": text, "data": object{},
		}},
	}}
	result := object{"type": "object", "required": []string{"jsonrpc", "id", "result"}, "additionalProperties": false,
		"properties": object{"jsonrpc": version, "id": id, "result": object{}}}
	return object{
		"RPCRequest": object{"anyOf": append(requests, other, batch)},
		"RPCAnswer":  object{"anyOf": []object{result, ref("RPCError")}},
		"RPCError":   fault,
		"MCPError":   object{"anyOf": []object{ref("RPCError"), ref("Error")}},
	}
}
