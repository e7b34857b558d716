//lint:file-ignore SA1019 Logs and samples are deprecated in MCP 2026-07-28; the revisions served here have them.

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// rounds is how many counts an episode has.
const rounds = 3

// A lab is one session's value.
type lab struct {
	server    *mcp.Server
	counted   int // since the reset
	cancelled atomic.Int64
}

func main() {
	transport.Main(gym.Environment[*lab]{
		Name:     "mcp_lab",
		New:      newLab,
		Server:   func(l *lab) *mcp.Server { return l.server },
		CodeMode: &codemode.Limits{},
		Reset:    gym.Reset((*lab).reset),
		After:    (*lab).score,
	})
}

func (l *lab) reset(context.Context, gym.ResetRequest[tools.None]) (tools.None, error) {
	l.counted = 0
	return tools.None{}, nil
}

// score rewards a count, and ends the episode with the last one. The reward is a number that no tool's answer has, so
// that a client that is told it can be caught.
func (l *lab) score(_ context.Context, call gym.ToolCall) gym.Score {
	s := gym.Score{Reward: gym.Number(0), Done: l.counted >= rounds}
	if call.Name == "count" && call.Err == nil {
		s.Reward = gym.Number(0.4375)
	}
	return s
}

func newLab(context.Context, *gym.Session) (*lab, error) {
	l := &lab{server: mcp.NewServer(&mcp.Implementation{Name: "mcp_lab", Version: "1.0.0"}, &mcp.ServerOptions{Instructions: "Try the tools."})}
	s := l.server
	add(s, "echo", "Say it back.", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Text string `json:"text"`
	}) (*mcp.CallToolResult, error) {
		return text(in.Text), nil
	})
	add(s, "fail", "Fail as tools do.", func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, error) {
		return nil, tools.Fail("not today")
	})
	add(s, "error", "Fail as programs do.", func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, error) {
		return nil, errors.New("out of paper")
	})
	add(s, "slow", "Take a while.", l.slow)
	add(s, "cancelled", "How many slow calls were cancelled.", func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, error) {
		return text(l.cancelled.Load()), nil
	})
	add(s, "progress", "Report steps.", progress)
	add(s, "ask", "Ask the user for a name.", ask)
	add(s, "sample", "Have the client's model say something.", sample)
	add(s, "log", "Log two lines, at debug and at warning.", logLines)
	add(s, "picture", "Show a picture.", func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte("\x89PNG\r\n\x1a\n"), MIMEType: "image/png"}}}, nil
	})
	type place struct {
		X int `json:"x"`
		Y int `json:"y"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "place", Description: "Where I am."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, place, error) {
		return nil, place{X: 3, Y: -4}, nil
	})
	add(s, "count", "Count one up.", func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, error) {
		l.counted++
		return text(l.counted), nil
	})
	add(s, "grow", "Add a tool, after a while.", func(_ context.Context, _ *mcp.CallToolRequest, in struct {
		Name string `json:"name"`
		wait
	}) (*mcp.CallToolResult, error) {
		grow := func() {
			add(s, in.Name, "A tool that was added.", func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, error) {
				return text("I am " + in.Name), nil
			})
		}
		if in.MS == 0 {
			grow()
			return text("added"), nil
		}
		time.AfterFunc(time.Duration(in.MS)*time.Millisecond, grow)
		return text("planted"), nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Description: "Greet somebody.", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{
				Role: "user", Content: &mcp.TextContent{Text: "Greet " + req.Params.Arguments["name"] + "."},
			}}}, nil
		})
	s.AddResource(&mcp.Resource{URI: "lab://motto", Name: "motto", MIMEType: "text/plain"},
		func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, MIMEType: "text/plain", Text: "measure twice"}}}, nil
		})
	return l, nil
}

// add adds a tool without structured results.
func add[In any](s *mcp.Server, name, description string, f func(context.Context, *mcp.CallToolRequest, In) (*mcp.CallToolResult, error)) {
	mcp.AddTool(s, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, req *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
			res, err := f(ctx, req, in)
			return res, nil, err
		})
}

func text(v any) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(v)}}}
}

type wait struct {
	MS int `json:"ms,omitempty"`
}

// slow reports that it has begun, so that a client can cancel a call that runs.
func (l *lab) slow(ctx context.Context, req *mcp.CallToolRequest, in wait) (*mcp.CallToolResult, error) {
	report(ctx, req, 0, 1)
	if err := sleep(ctx, in.MS); err != nil {
		l.cancelled.Add(1)
		return nil, err
	}
	return text("awake"), nil
}

func sleep(ctx context.Context, ms int) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(time.Duration(ms) * time.Millisecond):
		return nil
	}
}

func report(ctx context.Context, req *mcp.CallToolRequest, at, of int) error {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	return req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: float64(at), Total: float64(of), Message: fmt.Sprintf("step %d", at),
	})
}

// progress reports each of its steps, with a pause before the next, and then how many reports could not be sent.
func progress(ctx context.Context, req *mcp.CallToolRequest, in struct {
	Steps int `json:"steps"`
	MS    int `json:"ms,omitempty"`
}) (*mcp.CallToolResult, error) {
	unsent := 0
	for i := range in.Steps {
		if report(ctx, req, i+1, in.Steps) != nil {
			unsent++
		}
		if err := sleep(ctx, in.MS); err != nil {
			return nil, err
		}
	}
	return text(fmt.Sprintf("%d steps, %d reports unsent", in.Steps, unsent)), nil
}

func ask(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, error) {
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{
		Message: "What is your name?",
		RequestedSchema: map[string]any{
			"type": "object", "required": []string{"name"},
			"properties": map[string]any{"name": map[string]any{"type": "string"}},
		},
	})
	if err != nil {
		return nil, err
	}
	if answer.Action != "accept" {
		return text(answer.Action), nil
	}
	return text(fmt.Sprintf("Hello, %v.", answer.Content["name"])), nil
}

func sample(ctx context.Context, req *mcp.CallToolRequest, in struct {
	Prompt string `json:"prompt"`
}) (*mcp.CallToolResult, error) {
	answer, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
		MaxTokens: 10, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}},
	})
	if err != nil {
		return nil, err
	}
	said, ok := answer.Content.(*mcp.TextContent)
	if !ok {
		return nil, fmt.Errorf("the model sent %T", answer.Content)
	}
	return text(strings.ToUpper(said.Text)), nil
}

func logLines(ctx context.Context, req *mcp.CallToolRequest, in struct {
	Text string `json:"text"`
}) (*mcp.CallToolResult, error) {
	for _, level := range []mcp.LoggingLevel{"debug", "warning"} {
		if err := req.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "lab", Data: in.Text}); err != nil {
			return nil, err
		}
	}
	return text("logged"), nil
}
