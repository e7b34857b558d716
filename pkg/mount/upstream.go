package mount

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// versions are the protocol versions that mounted servers may speak, the best first.
var versions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// maxPages bounds a list of tools whose pages have no end.
const maxPages = 1000

// An upstream is a connection to a mounted server.
type upstream struct{ *peer }

// greet opens the protocol on a new connection. abort gives the connection up without ceremony. agreed, unless nil, is
// told the version.
func greet(ctx context.Context, p *peer, abort func(), agreed func(version string)) (gym.Upstream, error) {
	version, err := p.initialize(ctx)
	if err == nil {
		if agreed != nil {
			agreed(version)
		}
		err = p.conn.Write(ctx, &jsonrpc.Request{Method: "notifications/initialized", Params: []byte("{}")})
	}
	if err != nil {
		abort()
		_ = p.Close()
		return nil, err
	}
	return upstream{p}, nil
}

func (p *peer) initialize(ctx context.Context) (version string, err error) {
	raw, err := p.call(ctx, "initialize", func(string) any {
		return map[string]any{
			"protocolVersion": versions[0], "capabilities": struct{}{},
			"clientInfo": map[string]string{"name": "openenv-go", "version": "1"},
		}
	}, nil)
	if err != nil {
		return "", fmt.Errorf("it did not answer initialize: %w", err)
	}
	var r struct {
		ProtocolVersion string `json:"protocolVersion"`
	}
	if err := strictjson.Unmarshal(raw, &r); err != nil {
		return "", fmt.Errorf("its answer to initialize: %w", err)
	}
	if !slices.Contains(versions, r.ProtocolVersion) {
		return "", fmt.Errorf("it speaks version %.50q of MCP; want one of %s", r.ProtocolVersion, strings.Join(versions, ", "))
	}
	return r.ProtocolVersion, nil
}

// ListTools lists all tools, page by page. Schemas are as they came, not decoded.
func (u upstream) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	var all []*mcp.Tool
	cursor := ""
	for range maxPages {
		raw, err := u.call(ctx, "tools/list", func(string) any {
			if cursor == "" {
				return struct{}{}
			}
			return map[string]string{"cursor": cursor}
		}, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []strictjson.Raw `json:"tools"`
			NextCursor string           `json:"nextCursor"`
		}
		if err := strictjson.Unmarshal(raw, &page); err != nil {
			return nil, err
		}
		for _, one := range page.Tools {
			t, err := readTool(one)
			if err != nil {
				return nil, err
			}
			all = append(all, t)
		}
		if cursor = page.NextCursor; cursor == "" {
			return all, nil
		}
	}
	return nil, fmt.Errorf("its list has more than %d pages", maxPages)
}

func readTool(raw []byte) (*mcp.Tool, error) {
	var t mcp.Tool
	if err := json.Unmarshal(raw, &t); err != nil {
		return nil, fmt.Errorf("a tool that cannot be read: %w", err)
	}
	var schemas struct {
		In  strictjson.Raw `json:"inputSchema"`
		Out strictjson.Raw `json:"outputSchema"`
	}
	if err := strictjson.Unmarshal(raw, &schemas); err != nil {
		return nil, err
	}
	t.InputSchema, t.OutputSchema = nil, nil
	if schemas.In != nil {
		t.InputSchema = schemas.In
	}
	if schemas.Out != nil {
		t.OutputSchema = schemas.Out
	}
	return &t, nil
}

// CallTool calls a tool and returns its result as it came. See [gym.Upstream].
func (u upstream) CallTool(ctx context.Context, tool string, args []byte, progress func(*mcp.ProgressNotificationParams)) (*mcp.CallToolResult, error) {
	if len(args) == 0 {
		args = []byte("{}")
	}
	raw, err := u.call(ctx, "tools/call", func(token string) any {
		params := map[string]any{"name": tool, "arguments": strictjson.Raw(args)}
		if progress != nil {
			params["_meta"] = map[string]string{"progressToken": token}
		}
		return params
	}, progress)
	if err != nil {
		return nil, u.typed(ctx, tool, err)
	}
	res, err := readResult(raw)
	if err != nil {
		return nil, &tools.Error{Type: tools.ExecutionError, Tool: tool, Message: fmt.Sprintf("the result cannot be read: %v", err), Err: err}
	}
	return res, nil
}

// readResult keeps structured content and metadata as they came: decoded, their numbers would be floats.
func readResult(raw []byte) (*mcp.CallToolResult, error) {
	var members map[string]strictjson.Raw
	if err := strictjson.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	structured, hasOne := members["structuredContent"]
	var meta map[string]strictjson.Raw
	if m, ok := members["_meta"]; ok {
		if err := strictjson.Unmarshal(m, &meta); err != nil {
			return nil, err
		}
	}
	delete(members, "structuredContent")
	delete(members, "_meta")
	rest, err := strictjson.Marshal(members)
	if err != nil {
		return nil, err
	}
	var res mcp.CallToolResult
	if err := json.Unmarshal(rest, &res); err != nil {
		return nil, err
	}
	if res.NeedsInput() {
		return nil, errors.New("it asks for input, which mounted servers cannot have")
	}
	if hasOne && string(structured) != "null" {
		res.StructuredContent = structured
	}
	for key, value := range meta {
		if res.Meta == nil {
			res.Meta = mcp.Meta{}
		}
		res.Meta[key] = value
	}
	return &res, nil
}

// typed gives an error of a call its type. Servers use one code for unknown tools and for wrong arguments, so the list
// tells which it is.
func (u upstream) typed(ctx context.Context, tool string, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var (
		loss   *lossError
		answer *jsonrpc.Error
	)
	if errors.As(err, &loss) || !errors.As(err, &answer) { // the SDK's own errors are of the type of answers
		return &tools.Error{Type: tools.TransportError, Tool: tool, Message: err.Error(), Err: err}
	}
	e := &tools.Error{Type: tools.ExecutionError, Tool: tool, Message: answer.Message, Err: err}
	if answer.Code != jsonrpc.CodeInvalidParams && answer.Code != jsonrpc.CodeMethodNotFound {
		return e
	}
	list, listErr := u.ListTools(ctx)
	gone := listErr == nil && !slices.ContainsFunc(list, func(t *mcp.Tool) bool { return t.Name == tool })
	switch {
	case gone:
		e.Type = tools.ToolNotFound
	case answer.Code == jsonrpc.CodeInvalidParams:
		e.Type, e.Message = tools.InvalidArgs, "invalid arguments: "+answer.Message
	}
	return e
}
