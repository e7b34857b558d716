package tools_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/tools"
)

// call registers a set on a server, as gym does, and calls one of its tools on env as an MCP client would. It prints the
// result's text, or the error.
func call[E any](set *tools.Set[E], mode tools.Mode, env E, tool, args string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	server := mcp.NewServer(&mcp.Implementation{Name: "example", Version: "1.0.0"}, nil)
	if err := set.Register(server, mode); err != nil {
		fmt.Println(err)
		return
	}
	player := set.Replays(mode).Player()
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			return next(tools.WithPlayer(tools.WithEnvironment(ctx, env), player), method, req)
		}
	})
	here, there := mcp.NewInMemoryTransports()
	if _, err := server.Connect(ctx, there, nil); err != nil {
		log.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "example", Version: "1.0.0"}, nil).Connect(ctx, here, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	res, err := client.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
	switch {
	case err != nil:
		fmt.Println("error:", err)
	case res.IsError:
		fmt.Println("failed:", res.Content[0].(*mcp.TextContent).Text)
	default:
		fmt.Println(res.Content[0].(*mcp.TextContent).Text)
	}
}
