package transport

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What authors return: it may be impossible to write, or change while it is written.

// ownEnv is an environment whose values have SDK servers of their own, which fill furnishes.
func ownEnv(o *mcp.ServerOptions, fill func(*desk)) gym.Environment[*desk] {
	return gym.Environment[*desk]{
		Name: "own",
		New: func(context.Context, *gym.Session) (*desk, error) {
			d := &desk{server: mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, o)}
			mcp.AddTool(d.server, &mcp.Tool{Name: "say"}, func(_ context.Context, _ *mcp.CallToolRequest, in labText) (*mcp.CallToolResult, map[string]string, error) {
				return nil, map[string]string{"said": in.Text}, nil
			})
			fill(d)
			return d, nil
		},
		Server: func(d *desk) *mcp.Server { return d.server },
		After:  func(*desk, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(labReward)} },
	}
}

// addTool adds a tool by the SDK's plain method, which looks at nothing that the tool returns.
func addTool(d *desk, name string, f func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult) {
	d.server.AddTool(&mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return f(ctx, r), nil
	})
}

// ownMiddleware adds receiving middleware of the author's.
func ownMiddleware(d *desk, f func(ctx context.Context, method string, call func() (mcp.Result, error)) (mcp.Result, error)) {
	d.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			return f(ctx, method, func() (mcp.Result, error) { return next(ctx, method, r) })
		}
	})
}

// A mine is content that panics when it is written.
type mine struct{ *mcp.TextContent }

func (mine) MarshalJSON() ([]byte, error) { panic("boom") }

func circle() map[string]any {
	m := map[string]any{}
	m["me"] = m
	return m
}

type results map[string]func() *mcp.CallToolResult

func structured(v any) func() *mcp.CallToolResult {
	return func() *mcp.CallToolResult { return &mcp.CallToolResult{StructuredContent: v} }
}

func meta(v any) func() *mcp.CallToolResult {
	return func() *mcp.CallToolResult { return &mcp.CallToolResult{Meta: mcp.Meta{"x": v}} }
}

func content(c mcp.Content) func() *mcp.CallToolResult {
	return func() *mcp.CallToolResult { return &mcp.CallToolResult{Content: []mcp.Content{c}} }
}

// unwritable are results that cannot be written, by the name of their tool.
var unwritable = results{
	"meta_nan":    meta(math.NaN()),
	"meta_bomb":   meta(bomb{}),
	"meta_func":   meta(func() {}),
	"infinite":    structured(map[string]any{"x": math.Inf(1)}),
	"bomb":        structured(bomb{}),
	"bomb_inside": structured(map[string]any{"x": []any{bomb{}}}),
	"channel":     structured(make(chan int)),
	"circle":      structured(circle()),
	"not_json":    structured(json.RawMessage(`{`)),
	"deep":        structured(json.RawMessage(`{"a":` + strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000) + `}`)),
	"mine":        content(mine{}),
	"no_content":  content(nil),
	"nil_content": content((*mcp.TextContent)(nil)),
	"text_bomb":   content(&mcp.TextContent{Meta: mcp.Meta{"x": bomb{}}}),
	"failure": func() *mcp.CallToolResult {
		return &mcp.CallToolResult{IsError: true, Meta: mcp.Meta{"x": bomb{}}}
	},
}

// unreadable are results that encoding/json writes and that are not the JSON which OpenEnv's clients are promised.
var unreadable = results{
	"key_twice":      structured(json.RawMessage(`{"a":1,"a":2}`)),
	"lone_surrogate": structured(json.RawMessage(`{"a":"\ud800"}`)),
	"not_utf8":       structured(json.RawMessage("{\"a\":\"\xff\"}")),
	"meta_twice":     meta(json.RawMessage(`{"a":1,"a":2}`)),
}

func (r results) lab() gym.Environment[*lab] {
	list := []tools.Tool[*lab]{
		tools.Func("value", "", func(*lab, context.Context, tools.None) (map[string]any, error) {
			return map[string]any{"x": bomb{}}, nil
		}),
	}
	for name, result := range r {
		list = append(list, tools.Func(name, "", func(*lab, context.Context, tools.None) (*mcp.CallToolResult, error) { return result(), nil }))
	}
	return labWith(list...)
}

func (r results) own() gym.Environment[*desk] {
	return ownEnv(nil, func(d *desk) {
		mcp.AddTool(d.server, &mcp.Tool{Name: "value"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, map[string]any, error) {
			return nil, map[string]any{"x": bomb{}}, nil
		})
		for name, result := range r {
			addTool(d, name, func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult { return result() })
		}
	})
}

// A result that cannot be written is the tool's fault on every door, and the session lives on.
func (r results) fail(t *testing.T) {
	for name, env := range map[string]gym.Definition{"tools": r.lab(), "server": r.own()} {
		for _, d := range doors {
			t.Run(name+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				srv, base := start(t, env, counted())
				call := d.open(t, srv, base)
				steps := 0
				for _, tool := range append(slices.Sorted(maps.Keys(r)), "value") {
					got := call(tool, "{}")
					if got.Type != string(tools.ExecutionError) || got.Message == "" || d.dialect == bare && got.Code != rpcInternal {
						t.Errorf("%s: got %+v", tool, got)
					}
					if got := call("say", `{"text":"x"}`); got.Type != "" || !strings.Contains(got.Data, `"x"`) {
						t.Errorf("after %s: got %+v", tool, got)
					}
					steps += 2
				}
				if s, err := srv.Sessions().Get(labSession); !d.temporary && (err != nil || s.Steps() != steps) {
					t.Errorf("got %v, %v; want a session with %d steps", s, err, steps)
				}
			})
		}
	}
}

func TestUnwritableResults(t *testing.T) { unwritable.fail(t) }

func TestUnreadableResults(t *testing.T) {
	unreadable.fail(t)
}

// What prompts and resources give may be impossible to write, too.
func TestUnwritablePrompts(t *testing.T) {
	_, base := start(t, ownEnv(nil, func(d *desk) {
		for name, v := range map[string]any{"nan": func() {}, "bomb": bomb{}} {
			d.server.AddPrompt(&mcp.Prompt{Name: name}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
				return &mcp.GetPromptResult{Meta: mcp.Meta{"x": v}}, nil
			})
			d.server.AddResource(&mcp.Resource{Name: name, URI: "test://" + name}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
				return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "test://" + name, Meta: mcp.Meta{"x": v}}}}, nil
			})
		}
	}), Options{})
	cs := connectMCP(t, base+"/mcp")
	for _, name := range []string{"nan", "bomb"} {
		ctx, cancel := context.WithTimeout(t.Context(), testTime)
		defer cancel()
		if _, err := cs.GetPrompt(ctx, &mcp.GetPromptParams{Name: name}); err == nil || ctx.Err() != nil {
			t.Errorf("prompt %s: got %v", name, err)
		}
		if _, err := cs.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://" + name}); err == nil || ctx.Err() != nil {
			t.Errorf("resource %s: got %v", name, err)
		}
		if res, err := cs.CallTool(ctx, &mcp.CallToolParams{Name: "say", Arguments: labText{"x"}}); err != nil || res.IsError {
			t.Errorf("the agent does not live on: %v, %v", res, err)
		}
	}
}

// A result may share what the tool goes on changing: it is sent as it was when the tool returned.
func TestResultsOfSharedMemory(t *testing.T) {
	type board struct {
		numbers map[string]any
		meta    mcp.Meta
		text    *mcp.TextContent
		n       int
	}
	newBoard := func() *board {
		return &board{numbers: map[string]any{}, meta: mcp.Meta{}, text: &mcp.TextContent{}}
	}
	change := func(b *board) *mcp.CallToolResult {
		b.n++
		for i := range 50 {
			b.numbers[fmt.Sprint(i)] = b.n
		}
		b.meta["n"], b.text.Text = b.n, fmt.Sprint(b.n)
		return &mcp.CallToolResult{StructuredContent: b.numbers, Meta: b.meta, Content: []mcp.Content{b.text}}
	}
	var boards sync.Map // of values with servers of their own
	for name, env := range map[string]gym.Definition{
		"tools": gym.Environment[*board]{
			Name: "shared", New: func(context.Context, *gym.Session) (*board, error) { return newBoard(), nil },
			Tools: tools.New(tools.Func("change", "", func(b *board, _ context.Context, _ tools.None) (*mcp.CallToolResult, error) { return change(b), nil })),
		},
		"server": ownEnv(nil, func(d *desk) {
			boards.Store(d, newBoard())
			addTool(d, "change", func(context.Context, *mcp.CallToolRequest) *mcp.CallToolResult {
				b, _ := boards.Load(d)
				return change(b.(*board))
			})
		}),
	} {
		t.Run(name, func(t *testing.T) {
			srv, base := start(t, env, Options{})
			id := createSession(t, base)
			gymSocket, rpcSocket, agent := dial(t, base+"/ws?session_id="+id), dial(t, base+"/mcp?session_id="+id), connectMCP(t, base+"/mcp?session_id="+id)
			const each = 20
			seen := make(chan string, 5*each)
			var wg sync.WaitGroup
			for _, call := range []func() string{
				func() string { return gymSocket.ask(stepFrame("change", "{}")) },
				func() string { return rpcSocket.ask(rpcCall("change", "{}", "")) },
				func() string { _, reply := post(t, base+"/mcp", rpcCall("change", "{}", id)); return reply },
				func() string {
					_, reply := post(t, base+"/step?session_id="+id, `{"action":{"type":"call_tool","tool_name":"change"}}`)
					return reply
				},
				func() string {
					res, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: "change"})
					if err != nil {
						return err.Error()
					}
					return jsonOf(t, res)
				},
			} {
				wg.Go(func() {
					for range each {
						seen <- call()
					}
				})
			}
			wg.Wait()
			close(seen)
			replies := map[string]bool{}
			for reply := range seen {
				n := regexp.MustCompile(`"49":(\d+)`).FindStringSubmatch(reply)
				if n == nil || strings.Count(reply, `:`+n[1])%50 == 0 || !strings.Contains(reply, `"text":"`+n[1]+`"`) {
					t.Fatalf("a reply is of no one call: %s", reply)
				}
				replies[n[1]] = true
			}
			if s := live(t, srv, id); len(replies) != 5*each || s.Steps() != 5*each {
				t.Errorf("%d different replies to %d steps", len(replies), s.Steps())
			}
		})
	}
}

const listBody = `{"jsonrpc":"2.0","id":7,"method":"tools/list"}`

// askOnce asks on a socket of its own.
func askOnce(t *testing.T, url, text string) string {
	t.Helper()
	ws := dial(t, url)
	defer ws.CloseNow()
	return ws.ask(text)
}

// listings are the ways to list the tools of a session. Each returns the reply.
var listings = map[string]func(t *testing.T, base, id string) string{
	"ws step": func(t *testing.T, base, id string) string {
		return askOnce(t, base+"/ws?session_id="+id, `{"type":"step","data":{"type":"list_tools"}}`)
	},
	"ws mcp frame": func(t *testing.T, base, id string) string {
		return askOnce(t, base+"/ws?session_id="+id, `{"type":"mcp","data":`+listBody+`}`)
	},
	"ws /mcp": func(t *testing.T, base, id string) string { return askOnce(t, base+"/mcp?session_id="+id, listBody) },
	"POST /mcp": func(t *testing.T, base, id string) string {
		_, reply := post(t, base+"/mcp", strings.TrimSuffix(listBody, "}")+`,"params":{"session_id":"`+id+`"}}`)
		return reply
	},
	"POST /step": func(t *testing.T, base, id string) string {
		_, reply := post(t, base+"/step?session_id="+id, `{"action":{"type":"list_tools"}}`)
		return reply
	},
	"agent": func(t *testing.T, base, id string) string {
		agent := rawInitialize(t, base+"/mcp?session_id="+id, "2025-11-25")
		_, reply := post(t, base+"/mcp", listBody, "Accept", "application/json, text/event-stream", "Mcp-Session-Id", agent)
		return reply
	},
}

// listingFaults are what an author's middleware can make of a listing.
var listingFaults = map[string]func() (mcp.Result, error){
	"panics": func() (mcp.Result, error) { panic("boom") },
	"cannot be written": func() (mcp.Result, error) {
		return listOf(math.NaN()), nil
	},
	"panics when written": func() (mcp.Result, error) { return listOf(bomb{}), nil },
}

func listOf(v any) *mcp.ListToolsResult {
	return &mcp.ListToolsResult{Tools: []*mcp.Tool{{Name: "say", Meta: mcp.Meta{"x": v}, InputSchema: map[string]any{"x": v}}}}
}

// A listing that fails by its author's fault is an error to who asked, on every door, and nothing else.
func TestListingsThatFail(t *testing.T) {
	for fault, fail := range listingFaults {
		for door, list := range listings {
			t.Run(fault+"/"+door, func(t *testing.T) {
				var failing atomic.Bool
				_, base := start(t, ownEnv(nil, func(d *desk) {
					ownMiddleware(d, func(_ context.Context, method string, call func() (mcp.Result, error)) (mcp.Result, error) {
						if method == "tools/list" && failing.Load() {
							return fail()
						}
						return call()
					})
				}), Options{})
				id := createSession(t, base)
				failing.Store(true)
				if reply := list(t, base, id); !strings.Contains(reply, `"error`) && !strings.HasPrefix(reply, `{"detail":`) {
					t.Errorf("got %s", reply)
				}
				failing.Store(false)
				if reply := list(t, base, id); !strings.Contains(reply, `"name":"say"`) {
					t.Errorf("got %s", reply)
				}
			})
		}
	}
}

// A listing whose pages do not end is given up, and its session ends.
func TestListingsWithoutEnd(t *testing.T) {
	for _, door := range []string{"ws step", "POST /mcp", "POST /step"} {
		var endless atomic.Bool
		srv, base := start(t, ownEnv(nil, func(d *desk) {
			ownMiddleware(d, func(_ context.Context, method string, call func() (mcp.Result, error)) (mcp.Result, error) {
				if method == "tools/list" && endless.Load() {
					return &mcp.ListToolsResult{NextCursor: "more"}, nil
				}
				return call()
			})
		}), Options{Sessions: session.Options{ToolTimeout: 50 * time.Millisecond}})
		id := createSession(t, base)
		endless.Store(true)
		if reply := listings[door](t, base, id); !strings.Contains(reply, "did not finish within 50ms") {
			t.Errorf("%s: got %s", door, reply)
		}
		mustClose(t, srv)
	}
}
