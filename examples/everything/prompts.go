package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// addPrompts adds prompts: plain, with arguments, with a resource, with an image, and one that asks first.
func (e *Everything) addPrompts() {
	e.server.AddPrompt(&mcp.Prompt{Name: "test_simple_prompt", Description: "A prompt without arguments."}, simple)
	e.server.AddPrompt(&mcp.Prompt{
		Name: "test_prompt_with_arguments", Description: "A prompt with two arguments, which can be completed.",
		Arguments: []*mcp.PromptArgument{
			{Name: "arg1", Description: "a city", Required: true},
			{Name: "arg2", Description: "another", Required: true},
		},
	}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		a := req.Params.Arguments
		return said(&mcp.TextContent{Text: fmt.Sprintf("How do I get from %s to %s?", a["arg1"], a["arg2"])}), nil
	})
	e.server.AddPrompt(&mcp.Prompt{
		Name: "test_prompt_with_embedded_resource", Description: "A prompt that brings a resource.",
		Arguments: []*mcp.PromptArgument{{Name: "resourceUri", Description: "the resource's URI", Required: true}},
	}, func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return said(
			embedded(req.Params.Arguments["resourceUri"], "text/plain", "The text of a resource that came with the prompt."),
			&mcp.TextContent{Text: "Shorten this."},
		), nil
	})
	e.server.AddPrompt(&mcp.Prompt{Name: "test_prompt_with_image", Description: "A prompt that brings an image."},
		func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return said(&mcp.ImageContent{Data: dot(), MIMEType: "image/png"}, &mcp.TextContent{Text: "Which colour is this?"}), nil
		})
	e.server.AddPrompt(&mcp.Prompt{Name: "test_input_required_result_prompt", Description: "A prompt that asks what it is for."},
		func(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			if purpose, ok := filled[string](req.Params.InputResponses, "user_context", "context"); ok {
				return said(&mcp.TextContent{Text: "Help me with " + purpose + "."}), nil
			}
			return &mcp.GetPromptResult{InputRequests: mcp.InputRequestMap{
				"user_context": form("What do you need help with?", "context", "string"),
			}}, nil
		})
}

func simple(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return said(&mcp.TextContent{Text: "Say something plain."}), nil
}

// said is a prompt in which the user says each of the contents.
func said(contents ...mcp.Content) *mcp.GetPromptResult {
	res := &mcp.GetPromptResult{}
	for _, c := range contents {
		res.Messages = append(res.Messages, &mcp.PromptMessage{Role: "user", Content: c})
	}
	return res
}

// cities are what the arguments of test_prompt_with_arguments are completed with.
var cities = []string{"Paris", "Perth", "Prague", "Tallinn", "Tirana"}

// complete proposes values for an argument of a prompt or of a resource template, by what has been typed of it.
func complete(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{} // not nil, which JSON has as null
	if req.Params.Ref.Name == "test_prompt_with_arguments" {
		for _, c := range cities {
			if strings.HasPrefix(strings.ToLower(c), strings.ToLower(req.Params.Argument.Value)) {
				values = append(values, c)
			}
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}
