// Package typescript holds the tests that run the TypeScript MCP SDK, in Node, against the server of ../server:
//
//	OPENENV_INTEROP=1 go test ./interop/mcp/typescript
//
// To renew the pinned packages, change package.json and run "npm install --package-lock-only" here.
package typescript
