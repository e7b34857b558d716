package transport

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A desk is an environment value with an MCP server of its own, built with nothing but the SDK.
type desk struct {
	server *mcp.Server
	rung   int
}

type deskServer struct{ opened, closed atomic.Int64 }

type bell struct {
	Times int `json:"times" jsonschema:"how often"`
}

func (c *deskServer) env() gym.Environment[*desk] {
	return gym.Environment[*desk]{
		Name: "desk",
		New: func(context.Context, *gym.Session) (*desk, error) {
			c.opened.Add(1)
			d := &desk{server: mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)}
			mcp.AddTool(d.server, &mcp.Tool{Name: "ring"}, func(_ context.Context, _ *mcp.CallToolRequest, in bell) (*mcp.CallToolResult, map[string]int, error) {
				d.rung += in.Times
				return nil, map[string]int{"rung": d.rung}, nil
			})
			mcp.AddTool(d.server, &mcp.Tool{Name: "fail"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, errors.New("broken")
			})
			mcp.AddTool(d.server, &mcp.Tool{Name: "refuse"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, tools.Fail("not today")
			})
			mcp.AddTool(d.server, &mcp.Tool{Name: "marked"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: "marked"}}}, nil, nil
			})
			mcp.AddTool(d.server, &mcp.Tool{Name: "say"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "said"}}}, nil, nil
			})
			d.server.AddTool(&mcp.Tool{Name: "protocol", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &jsonrpc.Error{Code: -32602, Message: "a fault of the protocol"}
			})
			d.server.AddTool(&mcp.Tool{Name: "panic", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				panic("boom")
			})
			d.server.AddTool(&mcp.Tool{Name: "nil", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, nil
			})
			d.server.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Description: fmt.Sprint(d.rung)}, nil
			})
			d.server.AddPrompt(&mcp.Prompt{Name: "panic"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				panic("boom")
			})
			return d, nil
		},
		Server: func(d *desk) *mcp.Server { return d.server },
		Close:  func(*desk) error { c.closed.Add(1); return nil },
		After: func(d *desk, _ context.Context, _ gym.ToolCall) gym.Score {
			return gym.Score{Reward: gym.Number(labReward)}
		},
	}
}

func TestAuthorsOwnServer(t *testing.T) {
	cases := []struct {
		tool, args string
		want       outcome
		code, mcp  int
	}{
		{"ring", `{"times":2}`, outcome{Data: `{"rung":2}`}, 0, 0},
		{"ring", `{"times":"2"}`, outcome{Type: "invalid_args", Message: "invalid arguments: times: want integer, got string"}, rpcInvalidParams, 0},
		{"ring", `{}`, outcome{Type: "invalid_args", Message: "invalid arguments: times: field required"}, rpcInvalidParams, 0},
		{"nosuch", `{}`, outcome{Type: "tool_not_found", Message: `unknown tool "nosuch"; list the tools to see which there are`}, rpcInvalidParams, rpcInvalidParams},
		{"fail", `{}`, outcome{Type: "execution_error", Message: "broken"}, rpcInternal, 0},
		{"refuse", `{}`, outcome{Data: `"not today"`, Failed: true}, 0, 0},
		{"marked", `{}`, outcome{Data: `"marked"`, Failed: true}, 0, 0},
		{"protocol", `{}`, outcome{Type: "execution_error", Message: "a fault of the protocol"}, rpcInternal, rpcInvalidParams},
		{"panic", `{}`, outcome{Type: "execution_error", Message: `tool "panic" panicked; the server's log has the stack`}, rpcInternal, 0},
		{"nil", `{}`, outcome{Type: "execution_error", Message: `tool "nil" returned no result`}, rpcInternal, 0},
	}
	for _, d := range doors {
		for _, c := range cases {
			t.Run(d.name+"/"+c.tool+c.args, func(t *testing.T) {
				t.Parallel()
				counts := &deskServer{}
				srv, base := start(t, counts.env(), Options{Sessions: session.Options{NewID: countingIDs()}})
				if n := counts.opened.Load(); n != 1 {
					t.Errorf("%d values were built at start-up, want one to list from", n)
				}
				active(t, srv, 0)
				want := c.want
				switch d.dialect {
				case bare:
					want.Code = c.code
				case initialized:
					want.Code = c.mcp
				}
				if diff := cmp.Diff(want, d.open(t, srv, base)(c.tool, c.args)); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
				if !d.temporary {
					if s, err := srv.Sessions().Get(labSession); err != nil || s.Episode().Steps != 1 {
						t.Errorf("got %v, %v", s, err)
					}
				}
			})
		}
	}
}

func TestAuthorsOwnServerPerSession(t *testing.T) {
	counts := &deskServer{}
	srv, err := New(t.Context(), counts.env(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	base := serveOn(t, srv)
	a, b := connectMCP(t, base+"/mcp"), connectMCP(t, base+"/mcp")
	ring := func(cs *mcp.ClientSession) string {
		t.Helper()
		res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ring", Arguments: bell{1}})
		if err != nil {
			t.Fatal(err)
		}
		return jsonOf(t, res.StructuredContent)
	}
	ring(a)
	if got := ring(a); got != `{"rung":2}` {
		t.Errorf("got %s", got)
	}
	if got := ring(b); got != `{"rung":1}` {
		t.Errorf("sessions share a value: %s", got)
	}
	p, err := a.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet"})
	if err != nil || p.Description != "2" {
		t.Errorf("got %v, %v", p, err)
	}
	if _, err := a.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "panic"}); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("a prompt that panics gave %v", err)
	}
	if got := ring(a); got != `{"rung":3}` {
		t.Errorf("after a panic: %s", got)
	}
	const said = `"structured_content":null,"meta":null,"data":"said","is_error":false`
	if _, reply := post(t, base+"/mcp", rpcCall("say", "{}", "")); !strings.Contains(reply, said) {
		t.Errorf("text without structure: got %s", reply)
	}
	if _, reply := post(t, base+"/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); !strings.Contains(reply, `"name":"ring"`) {
		t.Errorf("got %s", reply)
	}
	a.Close()
	b.Close()
	active(t, srv, 0)
	if err := srv.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if counts.opened.Load() < 3 {
		t.Errorf("%d values were opened", counts.opened.Load())
	}
	if o, c := counts.opened.Load(), counts.closed.Load(); o != c {
		t.Errorf("%d values were opened and %d closed", o, c)
	}
}

// A walk is an environment with an action type of its own, and a tool beside.
type walk struct{ at int }

type stride struct {
	By int `json:"by" minimum:"-3" maximum:"3"`
}

type place struct {
	At int `json:"at"`
}

func walkEnv() gym.Environment[*walk] {
	return gym.Environment[*walk]{
		Name: "walk",
		New:  func(context.Context, *gym.Session) (*walk, error) { return &walk{}, nil },
		Act: gym.Act(func(w *walk, _ context.Context, s stride) (place, gym.Score, error) {
			if w.at+s.By < 0 {
				return place{}, gym.Score{}, tools.Invalid("by", "there is a wall")
			}
			w.at += s.By
			return place{w.at}, gym.Score{Reward: gym.Number(float64(s.By)), Done: w.at >= 3}, nil
		}),
		Reset: gym.Reset(func(w *walk, _ context.Context, r gym.ResetRequest[place]) (place, error) {
			w.at = r.Options.At
			return place{w.at}, nil
		}),
		State: gym.StateOf(func(w *walk) place { return place{w.at} }),
		Tools: tools.New(tools.Func("look", "Where am I?", func(w *walk, _ context.Context, _ tools.None) (int, error) { return w.at, nil })),
	}
}

func TestOwnActionsOverTheWire(t *testing.T) {
	_, base := start(t, walkEnv(), Options{})
	ws := dial(t, base+"/ws")
	for _, c := range []struct{ send, want string }{
		{`{"type":"reset","data":{"at":1,"episode_id":"e"}}`, `{"type":"observation","data":{"observation":{"at":1,"metadata":{}},"reward":null,"done":false}}`},
		{`{"type":"step","data":{"by":2}}`, `{"type":"observation","data":{"observation":{"at":3,"metadata":{}},"reward":2,"done":true}}`},
		{`{"type":"step","data":{"by":-1,"metadata":{}}}`, `{"type":"observation","data":{"observation":{"at":2,"metadata":{}},"reward":-1,"done":true}}`},
		{`{"type":"step","data":{"by":-3}}`, `{"type":"error","data":{"message":"Invalid message: by: there is a wall","code":"VALIDATION_ERROR","errors":[{"type":"value_error","loc":["by"],"msg":"there is a wall","input":null}]}}`},
		{`{"type":"step","data":{"by":4}}`, `{"type":"error","data":{"message":"Invalid message: by: want at most 3","code":"VALIDATION_ERROR","errors":[{"type":"less_than_equal","loc":["by"],"msg":"want at most 3","input":4}]}}`},
		{`{"type":"step","data":{"type":"list_tools"}}`, `{"type":"error","data":{"message":"Invalid message: by: field required; type: unknown field","code":"VALIDATION_ERROR","errors":[{"type":"missing","loc":["by"],"msg":"field required","input":{"type":"list_tools"}},{"type":"extra_forbidden","loc":["type"],"msg":"unknown field","input":"list_tools"}]}}`},
		{`{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"look","arguments":{}}}}`, `{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"2"}],"structured_content":{"result":2},"meta":{"fastmcp":{"wrap_result":true}},"data":2,"is_error":false,"_meta":{"fastmcp":{"wrap_result":true}},"structuredContent":{"result":2},"isError":false}}}`},
		{`{"type":"state"}`, `{"type":"state","data":{"episode_id":"e","step_count":3,"reward_total":1,"last_reward":null,"done":true,"at":2}}`},
	} {
		if got := ws.ask(c.send); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.send, got, c.want)
		}
	}
	if status, reply := post(t, base+"/step", `{"action":{"by":3}}`); status != 200 || reply != `{"observation":{"at":3,"metadata":{}},"reward":3,"done":true,"metadata":null}` {
		t.Errorf("got %d %s", status, reply)
	}
}
