//lint:file-ignore SA1019 Clients of the revisions up to 2025-11-25 offer sampling; 2026-07-28 deprecates it.

package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Prompt is the input of test_sampling.
type Prompt struct {
	Prompt string `json:"prompt" jsonschema:"what to ask the client's model"`
}

// Message is the input of test_elicitation.
type Message struct {
	Message string `json:"message" jsonschema:"what to tell the person"`
}

// The forms that the tools of this file have people fill in. A form is a flat JSON Schema.
var (
	//go:embed forms/contact.json
	contactForm []byte
	//go:embed forms/defaults.json
	defaultsForm []byte
	//go:embed forms/enums.json
	enumsForm []byte
)

// addAsking adds tools that send the client a request of their own and wait for the answer. That is for clients that have
// initialised, with revisions up to 2025-11-25; rounds.go is for later ones too.
func (e *Everything) addAsking() {
	mcp.AddTool(e.server, &mcp.Tool{Name: "test_sampling", Description: "Ask the client's model."}, sample)
	mcp.AddTool(e.server, &mcp.Tool{Name: "test_elicitation", Description: "Ask the person for a name and an address."},
		func(ctx context.Context, req *mcp.CallToolRequest, in Message) (*mcp.CallToolResult, any, error) {
			res, err := elicit(ctx, req, in.Message, contactForm)
			return res, nil, err
		})
	e.add("test_elicitation_sep1034_defaults", "Ask the person by a form with defaults.",
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, req, "Please look through these settings.", defaultsForm)
		})
	e.add("test_elicitation_sep1330_enums", "Ask the person by a form with choices of every kind.",
		func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return elicit(ctx, req, "Please choose.", enumsForm)
		})
}

func sample(ctx context.Context, req *mcp.CallToolRequest, in Prompt) (*mcp.CallToolResult, any, error) {
	if err := need(req, &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}}); err != nil {
		return nil, nil, err
	}
	answer, err := req.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
		MaxTokens: 100,
		Messages:  []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Prompt}}},
	})
	if err != nil {
		return nil, nil, err
	}
	words, ok := answer.Content.(*mcp.TextContent)
	if !ok {
		return nil, nil, fmt.Errorf("the model answered with %T", answer.Content)
	}
	return text("the model says: " + words.Text), nil, nil
}

func elicit(ctx context.Context, req *mcp.CallToolRequest, message string, form []byte) (*mcp.CallToolResult, error) {
	if err := need(req, &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{}}); err != nil {
		return nil, err
	}
	answer, err := req.Session.Elicit(ctx, &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(form)})
	if err != nil {
		return nil, err
	}
	filled, err := json.Marshal(answer.Content)
	if err != nil {
		return nil, err
	}
	return text(fmt.Sprintf("the person's answer is %s: %s", answer.Action, filled)), nil
}

// need returns the error that MCP has for a client that lacks a capability. Callers that are no MCP clients have none.
func need(req *mcp.CallToolRequest, needed *mcp.ClientCapabilities) error {
	has := req.ClientCapabilities()
	if has == nil {
		has = &mcp.ClientCapabilities{}
	}
	missing := &mcp.ClientCapabilities{}
	found := true
	if needed.Sampling != nil && has.Sampling == nil {
		missing.Sampling, found = needed.Sampling, false
	}
	if needed.Elicitation != nil && has.Elicitation == nil {
		missing.Elicitation, found = needed.Elicitation, false
	}
	if needed.RootsV2 != nil && has.RootsV2 == nil {
		missing.RootsV2, found = needed.RootsV2, false
	}
	if found {
		return nil
	}
	data, err := json.Marshal(mcp.MissingRequiredClientCapabilityData{RequiredCapabilities: missing})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: mcp.CodeMissingRequiredClientCapabilities, Message: "the client cannot be asked what this tool must ask", Data: data}
}
