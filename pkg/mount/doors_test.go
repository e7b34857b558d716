package mount_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/gym/gymtest"
	"github.com/openenv-go/openenv-go/pkg/mount"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
	"github.com/openenv-go/openenv-go/pkg/transport"
)

// A trainer and its agent call a process and an HTTP server on one session: steps, rewards, deadlines and errors are
// those of own tools.
func TestTrainerAndAgentOnMounts(t *testing.T) {
	j := newJournal()
	env := deskEnv(
		gym.Mount{Prefix: "child", Connect: child(t, "plain")},
		gym.Mount{Prefix: "slow", Connect: child(t, "plain"), Deadline: 50 * time.Millisecond, Only: []string{"hang"}},
		gym.Mount{Prefix: "web", Connect: mount.URL(startHTTP(t, "127.0.0.1:0", counter).url), Shared: true},
	)
	env.Tools = tools.New(
		tools.Do("refuse", "Says no.", func(*desk, context.Context, tools.None) error { return tools.Fail("no") }),
		tools.Do("hang", "Hangs.", func(_ *desk, ctx context.Context, _ tools.None) error {
			<-ctx.Done()
			return ctx.Err()
		}, tools.Deadline(50*time.Millisecond)),
	)
	env.After = func(_ *desk, _ context.Context, call gym.ToolCall) gym.Score {
		if call.Err != nil {
			return gym.Score{Reward: gym.Number(-1)}
		}
		return gym.Score{Reward: gym.Bool(!call.Result.IsError), Done: call.Name == "child_last"}
	}
	srv, err := transport.New(t.Context(), env, transport.Options{Logger: j.logger(), Sessions: session.Options{}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(srv)
	defer func() {
		if err := srv.Close(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	}()
	ws, _, err := websocket.Dial(t.Context(), web.URL+"/ws", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	ask := func(frame string) string {
		t.Helper()
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(frame)); err != nil {
			t.Fatal(err)
		}
		_, b, err := ws.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	ask(`{"type":"reset","data":{"episode_id":"e"}}`)
	var minted struct {
		Data struct{ Result struct{ URL string } }
	}
	if err := json.Unmarshal([]byte(ask(`{"type":"mcp","data":{"jsonrpc":"2.0","id":1,"method":"openenv/session/agent"}}`)), &minted); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	agent, err := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: minted.Data.Result.URL, HTTPClient: client}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	defer agent.Close()
	step := func(tool, args string) string {
		t.Helper()
		return ask(`{"type":"step","data":{"type":"call_tool","tool_name":"` + tool + `","arguments":` + args + `}}`)
	}
	byAgent := func(tool, args string) string {
		t.Helper()
		res, err := agent.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(args)})
		if err != nil {
			return err.Error()
		}
		b, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for _, c := range []struct {
		by               func(tool, args string) string
		tool, args, want string
	}{
		{step, "child_count", `{}`, `"structured_content":{"n":1}`},
		{byAgent, "child_count", `{}`, `"structuredContent":{"n":2}`},
		{step, "web_count", `{}`, `"structured_content":{"n":1}`},
		{byAgent, "web_count", `{}`, `"structuredContent":{"n":2}`},
		{step, "child_echo", `{"n":9007199254740993}`, `"structured_content":{"n":9007199254740993},"meta":{"big":9007199254740993}`},
		{step, "child_echo", `{"n":1}`, `{"type":"image","mimeType":"image/png","data":"aGk="}`},
		{step, "child_refuse", `{}`, `"data":"no","is_error":true}`},
		{step, "refuse", `{}`, `"data":"no","is_error":true}`},
		{step, "child_echo", `{"n":"x"}`, `"error_type":"invalid_args","message":"invalid arguments: n: want integer, got string"`},
		{byAgent, "child_echo", `{"n":"x"}`, `"openenv/error_type":"invalid_args"`},
		{step, "child_invalid", `{}`, `"error_type":"invalid_args","message":"invalid arguments: n is odd"`},
		{step, "child_broken", `{}`, `"error_type":"execution_error","message":"disk on fire"`},
		{step, "hang", `{}`, `"error_type":"timeout","message":"tool \"hang\" did not finish within 50ms"`},
		{step, "slow_hang", `{}`, `"error_type":"timeout","message":"tool \"slow_hang\" did not finish within 50ms"`},
		{byAgent, "slow_hang", `{}`, `"openenv/error_type":"timeout"`},
		{step, "child_last", `{}`, `"reward":true,"done":true`},
		{step, "child_count", `{}`, `"error_type":"transport_error"`},
		{byAgent, "child_count", `{}`, `"openenv/error_type":"transport_error"`},
		{step, "child_nosuch", `{}`, `"error_type":"tool_not_found"`},
	} {
		if got := c.by(c.tool, c.args); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %s; want %s in it", c.tool, c.args, got, c.want)
		}
	}
	j.await(t, "cancelled")
	// 19 steps: 7 that worked, 7 errors, 2 refusals, for nothing, and 3 time-outs, which are not scored.
	const wanted = `{"type":"state","data":{"episode_id":"e","step_count":19,"reward_total":0,"last_reward":-1,"done":true}}`
	if diff := cmp.Diff(wanted, ask(`{"type":"state"}`)); diff != "" {
		t.Error(diff)
	}
}

// A server in memory serves gymtest's fake time.
func TestGymtestTakesMounts(t *testing.T) {
	env := deskEnv(gym.Mount{Prefix: "mem", PerEpisode: true, Connect: mount.Transport(func(ctx context.Context) (mcp.Transport, error) {
		s := mcp.NewServer(&mcp.Implementation{Name: "mem", Version: "1"}, nil)
		counter(s)
		here, there := mcp.NewInMemoryTransports()
		_, err := s.Connect(context.WithoutCancel(ctx), there, nil)
		return here, err
	})})
	gymtest.Run(t, env)
}
