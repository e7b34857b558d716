package transport

import (
	"slices"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A mcpResult is a tool's result as MCP spells it, for a client of a revision before [stateless].
type mcpResult struct{ *mcp.CallToolResult }

// AppendJSON writes what most tools return in one pass, and all else as the SDK writes it, which takes three.
func (r mcpResult) AppendJSON(b []byte) ([]byte, error) {
	if plain, ok := r.appendPlain(b); ok {
		return plain, nil
	}
	return strictjson.Append(b, r.CallToolResult)
}

// appendPlain writes the result of a typed tool: text, the value that it returned, and the mark that this is wrapped. Such a
// value came with the result from a handler of ours, so that there is no hidden resultType to be written.
func (r mcpResult) appendPlain(b []byte) (_ []byte, ok bool) {
	value, ok := r.StructuredContent.(tools.Structured)
	wrapped := tools.IsWrapMeta(r.Meta)
	if !ok || len(value.Value) == 0 || r.Content == nil || len(r.Meta) > 0 && !wrapped || r.InputRequests != nil || r.RequestState != "" || r.NeedsInput() {
		return nil, false
	}
	b = append(slices.Grow(b, 2*len(value.Value)), '{')
	if wrapped {
		b = append(b, `"_meta":`+tools.WrapMetaJSON+`,`...)
	}
	b = append(b, `"content":[`...)
	for i, c := range r.Content {
		text, ok := c.(*mcp.TextContent)
		if !ok || text == nil || len(text.Meta) > 0 || text.Annotations != nil {
			return nil, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		var err error
		b = append(b, `{"type":"text","text":`...)
		if b, err = value.AppendText(b, text.Text); err != nil {
			return nil, false
		}
		b = append(b, '}')
	}
	b = append(b, `],"structuredContent":`...)
	b, _ = value.AppendJSON(b) // which has no error to give
	if r.IsError {
		b = append(b, `,"isError":true`...)
	}
	return append(b, '}'), true
}

// A bareResult is a tool's result in both spellings: OpenEnv's for its clients, MCP's for code that knows only that.
type bareResult struct {
	gym.WireResult
	MCPMeta       mcp.Meta // _meta, unless it is empty
	MCPStructured any      // structuredContent, unless it is nil
	MCPIsError    bool     // isError
}

// AppendJSON writes the result without reflection.
func (r bareResult) AppendJSON(b []byte) (_ []byte, err error) {
	b = slices.Grow(b, 4*len(r.Data)) // once more than without the other spelling
	if b, err = r.WireResult.AppendJSON(b); err != nil {
		return b, err
	}
	b = b[:len(b)-len("}")]
	if tools.IsWrapMeta(r.MCPMeta) {
		b = append(b, `,"_meta":`...)
		b = append(b, tools.WrapMetaJSON...)
	} else if len(r.MCPMeta) > 0 {
		b = append(b, `,"_meta":`...)
		if b, err = strictjson.Append(b, r.MCPMeta); err != nil {
			return b, err
		}
	}
	if r.MCPStructured != nil {
		b = append(b, `,"structuredContent":`...)
		if b, err = strictjson.Append(b, r.MCPStructured); err != nil {
			return b, err
		}
	}
	b = append(b, `,"isError":`...)
	b = strconv.AppendBool(b, r.MCPIsError)
	return append(b, '}'), nil
}

func newBareResult(a gym.ToolAnswer) bareResult {
	r := a.Wire()
	return bareResult{r, a.Result.Meta, r.StructuredContent, r.IsError}
}
