package main

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addChanges adds tools that change what the server offers. The SDK tells the clients; several changes in a row are told
// once. Here each change is taken back at once, so that the lists stay as they are.
func (e *Everything) addChanges() {
	e.add("test_trigger_tool_change", "Have the server tell that its tools have changed.",
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			e.add("passing", "Be gone at once.", nothing)
			e.server.RemoveTools("passing")
			return text("changed"), nil
		})
	e.add("test_trigger_prompt_change", "Have the server tell that its prompts have changed.",
		func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			e.server.AddPrompt(&mcp.Prompt{Name: "passing", Description: "Is gone at once."}, simple)
			e.server.RemovePrompts("passing")
			return text("changed"), nil
		})
	e.add("touch", "Change the watched resource. Those who have subscribed to it are told.",
		func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			e.touched++
			return text("touched"), e.server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: watched})
		})
}

func nothing(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{}, nil
}
