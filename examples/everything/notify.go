//lint:file-ignore SA1019 Clients of the revisions up to 2025-11-25 get log messages; 2026-07-28 deprecates them.

package main

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// pause is how long the tools of this file work between two messages.
const pause = 20 * time.Millisecond

// addNotifying adds tools that tell the client something while they run. A caller that is no MCP client, as a trainer,
// gets the result alone.
func (e *Everything) addNotifying() {
	e.add("test_tool_with_logging", "Send three log messages.", logThrice)
	e.add("test_logging_tool", "Send three log messages, to a client that has named a level in its request.", logThrice)
	e.add("test_tool_with_progress", "Report progress from 0 to 100.", progress)
	e.add("test_reconnection", "Hang up on the client, which comes back for the result.", hangUp)
}

// logThrice logs. The SDK drops what is below the level that the client has set.
func logThrice(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	for _, stage := range []string{"begun", "half done", "done"} {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Logger: "everything", Data: stage}); err != nil {
			return nil, err
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
	return text("logged"), nil
}

// progress reports to clients that have sent a token to report to.
func progress(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	token := req.Params.GetProgressToken()
	for _, percent := range []float64{0, 50, 100} {
		if token != nil {
			err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: percent, Total: 100})
			if err != nil {
				return nil, err
			}
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, err
		}
	}
	return text("finished"), nil
}

// hangUp closes the stream on which the client waits, as a tool may that has long to go. The client asks for the rest of
// the stream when the time is up that it was told.
func hangUp(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	if req.Extra != nil && req.Extra.CloseSSEStream != nil { // the caller is an MCP client on HTTP
		req.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: pause})
	}
	if err := sleep(ctx, 5*pause); err != nil {
		return nil, err
	}
	return text("welcome back"), nil
}

// sleep waits, or gives up when the call does.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
