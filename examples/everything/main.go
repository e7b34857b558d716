// Command everything serves one of each thing that an MCP server can offer: content of every kind, progress, log messages,
// questions to the client, prompts, resources with subscriptions, completion. The names are those that the official MCP
// conformance suite asks for, so it also shows that openenv-go serves all of them as MCP wants it.
//
// It brings a server of its own, built with the SDK, since it needs more than tools. Each file shows one subject.
package main

import (
	"context"
	"crypto/rand"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// Everything is the environment value. Each session has its own, with an MCP server of its own.
type Everything struct {
	server  *mcp.Server
	key     []byte // signs what clients must hand back unchanged; see rounds.go
	touched int    // how often the watched resource has changed
}

// New builds the value and its server.
func New(context.Context, *gym.Session) (*Everything, error) {
	e := &Everything{key: []byte(rand.Text())}
	e.server = mcp.NewServer(&mcp.Implementation{Name: Env.Name, Version: Env.Version}, &mcp.ServerOptions{
		Instructions:      "There is one tool, prompt or resource of each kind. Call what you want to see.",
		CompletionHandler: complete,
		// The SDK keeps the list of subscribers; a server that has no objections returns nil.
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	e.addContent()
	e.addNotifying()
	e.addAsking()
	e.addRounds()
	e.addSchemas()
	e.addChanges()
	e.addPrompts()
	e.addResources()
	return e, nil
}

// add adds a tool without arguments. Tools with arguments are added with mcp.AddTool itself, as in ask.go.
func (e *Everything) add(name, description string, call func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error)) {
	mcp.AddTool(e.server, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
			res, err := call(ctx, req)
			return res, nil, err
		})
}

// text is a result of one text.
func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// Reset forgets the changes to the watched resource.
func (e *Everything) Reset(context.Context, gym.ResetRequest[tools.None]) (tools.None, error) {
	e.touched = 0
	return tools.None{}, nil
}

// State is what the environment adds to the episode's state.
type State struct {
	Touched int `json:"touched"`
}

// Env is the environment.
var Env = gym.Environment[*Everything]{
	Name:        "everything",
	Description: "Offers one of each thing that MCP knows.",
	Version:     "1.0.0",
	Reset:       gym.Reset((*Everything).Reset),
	State:       gym.StateOf(func(e *Everything) State { return State{e.touched} }),
	Server:      func(e *Everything) *mcp.Server { return e.server },
}

// New refers to Env, so Env cannot name it where it is declared.
func init() { Env.New = New }

func main() { transport.Main(Env) }
