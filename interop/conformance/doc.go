// Package conformance holds the tests that run the official MCP conformance suite against this project's server, with
// examples/everything as the environment.
//
// They need npm and a package registry, so they run only where they are asked for:
//
//	OPENENV_INTEROP=1 go test ./interop/...
//
// Each release of the suite runs against /mcp and against a session's address. A check that comes out as a failure or a
// warning fails the test, unless baseline.txt has it with a reason; an entry there that no longer fails is an error too.
//
// package-lock.json pins all packages by their hashes. It names no registry, so that npm uses whichever it is configured
// with; .npmrc keeps it so when the lock file is written anew by "npm install --package-lock-only".
package conformance
