package transport

import (
	"fmt"
	"io"
	"net"

	"github.com/openenv-go/openenv-go/pkg/access"
)

// reachable is an address of this machine at which a listener is reached, and whether it listens on all interfaces.
func reachable(addr string) (at string, everyone bool) {
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", port), true
	}
	return addr, false
}

// greet prints where the server listens and lines to paste.
func greet(w io.Writer, s *Server, addr net.Addr, control string) {
	at, everyone := reachable(addr.String())
	scheme, socket := "http://", "ws://"
	if s.opts.TLS != nil {
		scheme, socket = "https://", "wss://"
	}
	name, base := s.class.Metadata.Name, scheme+at
	fmt.Fprintf(w, "%s is listening on %s (%s mode)\n", name, base, s.opts.Mode)
	switch {
	case s.guarded():
		fmt.Fprintf(w, "It asks for a token: Authorization: Bearer TOKEN\n")
	case everyone:
		fmt.Fprintf(w, "It listens on all interfaces, and whoever reaches it may use it.\n")
	}
	try := "env.list_tools()"
	fmt.Fprintln(w)
	if s.everyone() >= access.Trainer {
		fmt.Fprintf(w, "  trainers   %s%s/ws\n", socket, at)
		try = "env.reset(), env.list_tools()"
	}
	if control != "" {
		at, everyone := reachable(control)
		fmt.Fprintf(w, "  control    %s%s/sessions\n", scheme, at)
		if everyone {
			fmt.Fprintf(w, "             on all interfaces: whoever reaches it sees and ends all sessions\n")
		}
	}
	curl, python, client := "", "", ""
	if s.guarded() {
		curl = ` -H 'Authorization: Bearer TOKEN'`
		python = `, headers={"Authorization": "Bearer TOKEN"}`
		client = `, "headers": {"Authorization": "Bearer TOKEN"}`
	}
	fmt.Fprintf(w, `  agents     %[2]s/mcp
  about it   %[2]s/docs

Try it:
  curl -s %[2]s/mcp%[4]s -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
  python3 -c 'from openenv.core.mcp_client import MCPToolClient as C
with C("%[2]s"%[5]s).sync() as env: print(%[3]s)'
MCP client configuration:
  {"mcpServers": {"%[1]s": {"type": "http", "url": "%[2]s/mcp"%[6]s}}}
`, name, base, try, curl, python, client)
}
