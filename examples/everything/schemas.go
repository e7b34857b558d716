package main

import (
	"context"
	_ "embed"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// reachSchema has what a Go type cannot say: definitions, and members that depend on each other.
//
//go:embed schemas/reach.json
var reachSchema []byte

// Region is the input of test_header_parameter.
type Region struct {
	Region string `json:"region"`
}

// regionSchema has clients of 2026-07-28 repeat the member in the header Mcp-Param-Region, where proxies can read it.
const regionSchema = `{
  "type": "object",
  "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
  "required": ["region"],
  "additionalProperties": false
}`

// addSchemas adds tools whose input schemas are written by hand. They are published as they are, and calls are held to
// them.
func (e *Everything) addSchemas() {
	mcp.AddTool(e.server, &mcp.Tool{
		Name: "json_schema_2020_12_tool", Description: "Say how to reach somebody.", InputSchema: json.RawMessage(reachSchema),
	}, func(_ context.Context, _ *mcp.CallToolRequest, in map[string]any) (*mcp.CallToolResult, any, error) {
		if phone, ok := in["phone"].(string); ok {
			return text("call " + phone), nil, nil
		}
		return text("write an e-mail"), nil, nil
	})
	mcp.AddTool(e.server, &mcp.Tool{
		Name: "test_header_parameter", Description: "Take a parameter that is also a header.", InputSchema: json.RawMessage(regionSchema),
	}, func(_ context.Context, _ *mcp.CallToolRequest, in Region) (*mcp.CallToolResult, any, error) {
		return text("the region is " + in.Region), nil, nil
	})
}
