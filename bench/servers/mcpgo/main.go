// Command mcpgo is the stock Streamable HTTP server of mark3labs/mcp-go with a typed tool.
package main

import (
	"context"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/openenv-go/openenv-go/bench/internal/host"
	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

func main() {
	s := server.NewMCPServer("echo_env", "1.0.0", server.WithToolCapabilities(false))
	tool := mcp.NewTool("echo_message", mcp.WithDescription("Echo the message back."),
		mcp.WithString("message", mcp.Required(), mcp.Description("the text to echo")))
	s.AddTool(tool, mcp.NewTypedToolHandler(echo))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/mcp", server.NewStreamableHTTPServer(s))
	host.Serve(mux)
}

func echo(_ context.Context, _ mcp.CallToolRequest, in wire.Arguments) (*mcp.CallToolResult, error) {
	return mcp.NewToolResultStructured(wire.Structured{Result: in.Message}, in.Message), nil
}
