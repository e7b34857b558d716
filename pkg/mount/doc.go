// Package mount connects environments to other MCP servers: a process over its standard input and output, a Streamable
// HTTP address, or any transport of the SDK.
//
//	Mounts: []gym.Mount{
//		{Prefix: "files", Connect: mount.Command("npx", "-y", "some-server", "/data")},
//		{Prefix: "search", Connect: mount.URL("http://127.0.0.1:9000/mcp"), Shared: true},
//	}
//
// The connectors are values that may be copied, and are safe for concurrent use. What the tools are called, when
// connections are made, and what follows a loss, is said in [gym.Mount].
package mount
