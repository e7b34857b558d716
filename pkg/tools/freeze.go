package tools

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// Freeze returns the result as it is now: a copy that refers to nothing of the author's and whose parts have been written
// as JSON, so that it may be sent while the next call changes what it was made of. The error is that it cannot be
// written. A result that this package has made is frozen already.
func Freeze(res *mcp.CallToolResult) (*mcp.CallToolResult, error) {
	if Frozen(res) {
		return res, nil
	}
	text, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	if err := strictjson.Check(text, strictjson.DefaultMaxDepth); err != nil {
		return nil, fmt.Errorf("the result cannot be sent: %v", err) // not wrapped: a SyntaxError would blame the caller
	}
	frozen := &mcp.CallToolResult{}
	if err := json.Unmarshal(text, frozen); err != nil {
		return nil, err
	}
	err = keepNumbers(text, frozen)
	if s, ok := res.StructuredContent.(Structured); ok && s.isMade() { // somebody has changed what is beside it
		frozen.StructuredContent = s
	}
	return frozen, err
}

// keepNumbers puts back what the SDK decodes into maps, whose numbers are floats. text is the result as MCP spells it.
func keepNumbers(text []byte, res *mcp.CallToolResult) error {
	var raw struct {
		Meta       map[string]strictjson.Raw `json:"_meta"`
		Structured strictjson.Raw            `json:"structuredContent"`
	}
	if err := strictjson.Unmarshal(text, &raw); err != nil { // names by their case, as the SDK does
		return err
	}
	for key, value := range raw.Meta {
		res.Meta[key] = json.RawMessage(value)
	}
	if raw.Structured != nil {
		res.StructuredContent = json.RawMessage(raw.Structured)
	}
	return nil
}

// Frozen reports whether nothing in the result can be an author's, so that [Freeze] returns it as it is: it is empty, or
// this package has made it, and no middleware has put anything there.
func Frozen(res *mcp.CallToolResult) bool {
	if s, ok := res.StructuredContent.(Structured); ok && s.isMade() {
		return s.madeWith(res)
	}
	return len(res.Content) == 0 && res.StructuredContent == nil && len(res.Meta) == 0
}

// wrappedBy reports whether meta marks a structured content as wrapped, as FastMCP does.
func wrappedBy(meta mcp.Meta) bool {
	raw, err := strictjson.Marshal(meta["fastmcp"])
	if err != nil {
		return false
	}
	var mark struct {
		Wrap bool `json:"wrap_result"`
	}
	return strictjson.Unmarshal(raw, &mark) == nil && mark.Wrap
}
