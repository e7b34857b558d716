package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// watched is the resource that clients subscribe to; the tool touch changes it.
const watched = "test://watched-resource"

// addResources adds a resource of text, one of bytes, one that changes, and a template for any number more. What is read
// without a URI and a type gets those of the resource from the SDK.
func (e *Everything) addResources() {
	e.server.AddResource(&mcp.Resource{URI: "test://static-text", Name: "static_text", Description: "A text.", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return contents(&mcp.ResourceContents{Text: "The text of a resource."}), nil
		})
	e.server.AddResource(&mcp.Resource{URI: "test://static-binary", Name: "static_binary", Description: "An image.", MIMEType: "image/png"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return contents(&mcp.ResourceContents{Blob: dot()}), nil
		})
	e.server.AddResource(&mcp.Resource{URI: watched, Name: "watched", Description: "Changes when it is touched.", MIMEType: "text/plain"},
		func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return contents(&mcp.ResourceContents{Text: fmt.Sprintf("touched: %d", e.touched)}), nil
		})
	e.server.AddResourceTemplate(&mcp.ResourceTemplate{
		URITemplate: "test://template/{id}/data", Name: "data", Description: "What there is of an id.", MIMEType: "application/json",
	}, data)
}

// data reads a resource of the template. The SDK has matched the URI to it.
func data(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
	b, err := json.Marshal(map[string]string{"id": id})
	return contents(&mcp.ResourceContents{Text: string(b)}), err
}

func contents(c *mcp.ResourceContents) *mcp.ReadResourceResult {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{c}}
}
