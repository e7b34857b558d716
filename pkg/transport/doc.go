// Package transport is the server's doors: it reads what clients send, finds the session, calls it, and spells the
// outcome as that door must.
//
//	/ws      the gym channel of OpenEnv's clients: reset, step, state, mcp and close frames (ws.go, frames.go)
//	/mcp     one path, three dialects: JSON-RPC without a handshake, over POST (rpc.go) or a WebSocket (mcp.go), and MCP
//	         Streamable HTTP for clients that initialise (streamable.go)
//	/reset, /step, /state   the same as single HTTP requests, for trainers (http.go)
//	/health, /metadata, /schema, /openapi.json, /docs   what the server says about itself
//
// [Main] is the whole of an environment's main function: flags, listening, stopping. [New] and [Server.Serve] are for
// programs that want more.
//
// Whatever arrives is held to the limits first, then checked once by the rules of strict JSON, then decoded. Errors are
// values with a type when they get here; each door has one function that maps them: frameError, rpcFailure, httpError and
// agentResult.
package transport
