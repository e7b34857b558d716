package transport

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/mount"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// The suite over all doors again, for the tools of a mounted server: they come to the same outcomes as an environment's
// own, and count the same.

var mountedCases = []suiteCase{
	{name: "structured", tool: "lab_point", args: `{}`, want: outcome{Data: `{"x":1,"y":2}`}},
	{name: "own failure", tool: "lab_refuse", args: `{}`, want: outcome{Data: `"no such page"`, Failed: true}},
	{name: "unknown tool", tool: "lab_nosuch", args: `{}`, code: rpcInvalidParams, mcp: rpcInvalidParams,
		want: outcome{Type: "tool_not_found", Message: `unknown tool "lab_nosuch"; list the tools to see which there are`}},
	{name: "name of the server", tool: "say", args: `{}`, code: rpcInvalidParams, mcp: rpcInvalidParams,
		want: outcome{Type: "tool_not_found", Message: `unknown tool "say"; list the tools to see which there are`}},
	{name: "wrong type", tool: "lab_say", args: `{"text":5}`, code: rpcInvalidParams,
		want: outcome{Type: "invalid_args", Message: "invalid arguments: text: want string, got number"}},
	{name: "error", tool: "lab_fail", args: `{}`, code: rpcInternal, want: outcome{Type: "execution_error", Message: "disk on fire"}},
	{name: "lost", tool: "lab_crash", args: `{}`, code: rpcInternal, want: outcome{Type: "transport_error", Message: `tool "lab_crash": its server did not ` +
		"answer: it closed the connection; the server's state is lost, and calls of its tools fail until a reset or in a new session"}},
	{name: "time-out", tool: "lab_wait", args: `{}`, code: rpcInternal,
		want: outcome{Type: "timeout", Message: `tool "lab_wait" did not finish within 20ms`}},
}

// mountedLab has no tools but those of a server of the SDK, in memory, one for each session.
func mountedLab() gym.Environment[*lab] {
	return gym.Environment[*lab]{
		Name:   "mounted",
		New:    func(context.Context, *gym.Session) (*lab, error) { return &lab{}, nil },
		Mounts: []gym.Mount{{Prefix: "lab", Connect: mount.Transport(labServer)}},
		After:  func(*lab, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(labReward)} },
	}
}

func labServer(ctx context.Context) (mcp.Transport, error) {
	here, there := net.Pipe()
	s := mcp.NewServer(&mcp.Implementation{Name: "lab", Version: "1"}, nil)
	add := func(name, schema string, f mcp.ToolHandler) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(schema)}, f)
	}
	add("point", `{"type":"object"}`, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `{"x":1,"y":2}`}}, StructuredContent: json.RawMessage(`{"x":1,"y":2}`)}, nil
	})
	add("say", `{"type":"object","properties":{"text":{"type":"string"}}}`, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("called with what does not fit")
	})
	add("refuse", `{"type":"object"}`, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return tools.FailureResult("no such page"), nil
	})
	add("fail", `{"type":"object"}`, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("disk on fire")
	})
	add("crash", `{"type":"object"}`, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, there.Close()
	})
	add("wait", `{"type":"object"}`, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-ctx.Done() // ends, or else its goroutine is a leak
		return nil, ctx.Err()
	})
	_, err := s.Connect(context.WithoutCancel(ctx), &mcp.IOTransport{Reader: there, Writer: there}, nil)
	return &mcp.IOTransport{Reader: here, Writer: here}, err
}

func TestMountedToolsByEveryDoor(t *testing.T) {
	for _, d := range doors {
		for _, c := range mountedCases {
			t.Run(d.name+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				o := Options{Sessions: session.Options{NewID: countingIDs()}}
				if c.want.Type == "timeout" {
					o.Sessions.ToolTimeout = 20 * time.Millisecond
				}
				srv, base := start(t, mountedLab(), o)
				checkSuiteCase(t, srv, d, c, d.open(t, srv, base))
			})
		}
	}
}

// Progress of a mounted tool reaches an agent that has asked for it.
func TestProgressOfMountedTools(t *testing.T) {
	env := mountedLab()
	heard := make(chan struct{})
	env.Mounts = []gym.Mount{{Connect: mount.Transport(func(ctx context.Context) (mcp.Transport, error) {
		s := mcp.NewServer(&mcp.Implementation{Name: "slow", Version: "1"}, nil)
		s.AddTool(&mcp.Tool{Name: "slow", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half",
			}); err != nil {
				return nil, err
			}
			<-heard
			return &mcp.CallToolResult{}, nil
		})
		here, there := mcp.NewInMemoryTransports()
		_, err := s.Connect(context.WithoutCancel(ctx), there, nil)
		return here, err
	})}}
	_, base := start(t, env, Options{})
	var got []string
	client := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			got = append(got, r.Params.ProgressToken.(string), r.Params.Message)
			close(heard)
		},
	})
	cs := connectClient(t, client, base+"/mcp", statefulVersions[0])
	params := &mcp.CallToolParams{Name: "slow"}
	params.SetProgressToken("mine")
	if _, err := cs.CallTool(t.Context(), params); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"mine", "half"}, got); diff != "" {
		t.Error(diff)
	}
}
