package transport

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A typed is an environment that has put typed tools on a server of its own, with a middleware around them.
type typed struct{ srv *mcp.Server }

func (o *typed) say(_ context.Context, in labText) (string, error) { return in.Text, nil }

func betweenEnv(middleware mcp.Middleware) gym.Environment[*typed] {
	return gym.Environment[*typed]{
		Name: "own", Server: func(o *typed) *mcp.Server { return o.srv },
		New: func(context.Context, *gym.Session) (*typed, error) {
			s := mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil)
			s.AddReceivingMiddleware(middleware)
			return &typed{s}, tools.New(tools.Func("say", "Says it.", (*typed).say)).Register(s, tools.ModeSimulation)
		},
	}
}

// What a middleware puts beside a typed tool's value is the author's: what cannot be written of it is the call's failure, and
// never the door's.
func TestResultsThatAMiddlewareHasChanged(t *testing.T) {
	text := func(r *mcp.CallToolResult) *mcp.TextContent { return r.Content[0].(*mcp.TextContent) }
	for name, c := range map[string]struct {
		change func(r *mcp.CallToolResult)
		fails  bool
	}{
		"nothing":                   {func(*mcp.CallToolResult) {}, false},
		"a text cut within a rune":  {func(r *mcp.CallToolResult) { text(r).Text = text(r).Text[:1] }, false},
		"another text":              {func(r *mcp.CallToolResult) { r.Content = append(r.Content, &mcp.TextContent{Text: "\xff"}) }, false},
		"no content":                {func(r *mcp.CallToolResult) { r.Content = nil }, false},
		"a mark on the text":        {func(r *mcp.CallToolResult) { text(r).Annotations = &mcp.Annotations{Priority: math.NaN()} }, true},
		"no number in the meta":     {func(r *mcp.CallToolResult) { r.Meta["a"] = math.NaN() }, true},
		"a panic in the meta":       {func(r *mcp.CallToolResult) { r.Meta = mcp.Meta{"a": bomb{}} }, true},
		"a panic in the text's own": {func(r *mcp.CallToolResult) { text(r).Meta = mcp.Meta{"a": bomb{}} }, true},
		"a content that is none":    {func(r *mcp.CallToolResult) { r.Content[0] = (*mcp.TextContent)(nil) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			_, base := start(t, betweenEnv(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					res, err := next(ctx, method, req)
					if r, ok := res.(*mcp.CallToolResult); ok {
						c.change(r)
					}
					return res, err
				}
			}), Options{})
			var bare struct {
				ID     int
				Result struct {
					Data string
				}
				Error struct {
					Data struct {
						Type tools.ErrorType `json:"error_type"`
					}
				}
			}
			var step struct {
				Observation struct {
					Result struct{ Data string }
					Error  struct {
						Type tools.ErrorType `json:"error_type"`
					}
				}
			}
			for path, reply := range map[string]struct {
				body string
				into any
			}{
				"/mcp":  {rpcCall("say", `{"text":"é!"}`, ""), &bare},
				"/step": {`{"action":{"type":"call_tool","tool_name":"say","arguments":{"text":"é!"}}}`, &step},
			} {
				status, body := request(t, http.MethodPost, base+path, reply.body)
				if err := json.Unmarshal([]byte(body), reply.into); err != nil || status != http.StatusOK {
					t.Errorf("%s: %d %s, %v", path, status, body, err)
				}
			}
			data, fault := "é!", tools.ErrorType("")
			if c.fails {
				data, fault = "", tools.ExecutionError
			}
			if bare.ID != 7 || bare.Result.Data != data || bare.Error.Data.Type != fault {
				t.Errorf("POST /mcp: %+v", bare)
			}
			if o := step.Observation; o.Result.Data != data || o.Error.Type != fault {
				t.Errorf("POST /step: %+v", o)
			}
		})
	}
}

// After is told of the arguments that were sent, whatever a middleware has put in their place.
func TestScoresAreOfTheArgumentsThatWereSent(t *testing.T) {
	env := betweenEnv(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if call, ok := req.(*mcp.CallToolRequest); ok {
				call.Params.Arguments = json.RawMessage(`{"text":"another"}`)
			}
			return next(ctx, method, req)
		}
	})
	const sent = `{"text":"hello"}`
	calls := make(chan gym.ToolCall, 2)
	env.After = func(_ *typed, _ context.Context, call gym.ToolCall) gym.Score {
		calls <- call
		return gym.Score{}
	}
	_, base := start(t, env, Options{})
	post(t, base+"/mcp", rpcCall("say", sent, ""))
	post(t, base+"/step", `{"action":{"type":"call_tool","tool_name":"say","arguments":`+sent+`}}`)
	for range 2 {
		if call := <-calls; call.Name != "say" || string(call.Arguments) != sent {
			t.Errorf("After was told of %s %s", call.Name, call.Arguments)
		}
	}
}
