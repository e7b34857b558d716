// Package golang holds the tests that run the Go MCP SDK's client against the server of ../server, in a process of its own:
//
//	OPENENV_INTEROP=1 go test ./interop/mcp/golang
package golang
