// Package python holds the tests that run the Python MCP SDK, in both its major versions, and the client of FastMCP against
// the server of ../server:
//
//	OPENENV_INTEROP=1 go test ./interop/mcp/python
package python
