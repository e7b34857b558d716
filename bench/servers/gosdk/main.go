// Command gosdk is the stock Streamable HTTP handler of the MCP Go SDK with a tool of its generic kind.
package main

import (
	"context"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/bench/internal/host"
	"github.com/openenv-go/openenv-go/bench/internal/wire"
)

func main() {
	server := mcp.NewServer(&mcp.Implementation{Name: "echo_env", Version: "1.0.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo_message", Description: "Echo the message back."}, echo)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	host.Serve(mux)
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in wire.Arguments) (*mcp.CallToolResult, wire.Structured, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Message}}}, wire.Structured{Result: in.Message}, nil
}
