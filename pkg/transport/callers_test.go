//lint:file-ignore SA1019 log messages and sampling are deprecated from revision 2026-07-28 on; clients before it have them.

package transport

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A host asks those who call its tools.
type host struct{}

type count struct {
	N int `json:"n"`
}

type dish struct {
	Name string `json:"name" enum:"soup,pie" jsonschema:"what to eat"`
	Size int    `json:"size" minimum:"1" maximum:"3" default:"2"`
}

func (host) serve(ctx context.Context, in count) (string, error) {
	for i := range in.N {
		tools.Progress(ctx, float64(i+1), float64(in.N), fmt.Sprintf("course %d", i+1))
		tools.Log(ctx, "info", map[string]int{"course": i + 1})
	}
	return "served", nil
}

func (host) ask(ctx context.Context, _ tools.None) (dish, error) {
	d, err := tools.Elicit[dish](ctx, "What will you have?")
	var declined *tools.DeclinedError
	if errors.As(err, &declined) {
		return dish{Name: "pie", Size: 1}, nil
	}
	return d, err
}

func (host) muse(ctx context.Context, _ tools.None) (string, error) {
	res, err := tools.Sample(ctx, &mcp.CreateMessageParams{MaxTokens: 10, Messages: []*mcp.SamplingMessage{
		{Role: "user", Content: &mcp.TextContent{Text: "Say something."}},
	}})
	if err != nil {
		return "", err
	}
	return res.Content.(*mcp.TextContent).Text, nil
}

var hostEnv = gym.Environment[host]{
	Name: "host",
	New:  func(context.Context, *gym.Session) (host, error) { return host{}, nil },
	Tools: tools.New(
		tools.Func("serve", "Serve some courses.", host.serve),
		tools.Func("ask", "Ask what to serve.", host.ask),
		tools.Func("muse", "Ask the model.", host.muse),
	),
	After: func(host, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(labReward)} },
}

// A guest is a client that can be told and asked.
type guest struct {
	mu    sync.Mutex
	heard []string
	reply mcp.ElicitResult
}

func (g *guest) note(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = append(g.heard, fmt.Sprintf(format, args...))
}

// took waits until the client has heard n things, which may be after the answer, and returns them in order of words.
func (g *guest) took(t *testing.T, n int) (heard []string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("%d messages", n), func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		heard = g.heard
		return len(heard) >= n
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = nil
	slices.Sort(heard)
	return heard
}

func (g *guest) client() *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "guest", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			g.note("%v/%v %s", r.Params.Progress, r.Params.Total, r.Params.Message)
		},
		LoggingMessageHandler: func(_ context.Context, r *mcp.LoggingMessageRequest) {
			g.note("%s %s %v", r.Params.Level, r.Params.Logger, r.Params.Data)
		},
		ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			g.note("%s", r.Params.Message)
			return &g.reply, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "m", Content: &mcp.TextContent{Text: "something"}}, nil
		},
	})
}

func callText(t *testing.T, cs *mcp.ClientSession, p *mcp.CallToolParams) string {
	t.Helper()
	res, err := cs.CallTool(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return res.Content[0].(*mcp.TextContent).Text
}

func TestToolsTellAndAskTheirCallers(t *testing.T) {
	_, base := start(t, hostEnv, Options{})
	for _, path := range []string{"/mcp", "/mcp/" + mint(t, base, createSession(t, base))} {
		g := &guest{}
		cs := connectClient(t, g.client(), base+path, statefulVersions[0])
		// Who has asked for nothing is told nothing.
		callText(t, cs, &mcp.CallToolParams{Name: "serve", Arguments: count{2}})
		if err := cs.SetLoggingLevel(t.Context(), &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			t.Fatal(err)
		}
		p := &mcp.CallToolParams{Name: "serve", Arguments: count{2}}
		p.SetProgressToken("t")
		callText(t, cs, p)
		want := []string{"1/2 course 1", "2/2 course 2", "info serve map[course:1]", "info serve map[course:2]"}
		if diff := cmp.Diff(want, g.took(t, 4)); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		for _, c := range []struct {
			reply mcp.ElicitResult
			want  string
		}{
			{mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "soup", "size": 3}}, `{"name":"soup","size":3}`},
			{mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "soup"}}, `{"name":"soup","size":2}`},
			{mcp.ElicitResult{Action: "decline"}, `{"name":"pie","size":1}`},
			{mcp.ElicitResult{Action: "cancel"}, `{"name":"pie","size":1}`},
		} {
			g.reply = c.reply
			if got := callText(t, cs, &mcp.CallToolParams{Name: "ask"}); got != c.want {
				t.Errorf("%+v: got %s, want %s", c.reply, got, c.want)
			}
		}
		if got := callText(t, cs, &mcp.CallToolParams{Name: "muse"}); got != "something" {
			t.Errorf("got %s", got)
		}
	}
}

// Who cannot be asked fails the call in words that say so, at once, by every door.
func TestCallersWhoCannotBeAsked(t *testing.T) {
	for _, d := range doors {
		t.Run(d.name, func(t *testing.T) {
			srv, base := start(t, hostEnv, counted())
			call := d.open(t, srv, base)
			if o := call("serve", `{"n":3}`); o.Data != `"served"` {
				t.Errorf("got %+v", o)
			}
			for tool, feature := range map[string]string{"ask": "elicitation", "muse": "sampling"} {
				if o := call(tool, "{}"); o.Type != "execution_error" || !strings.HasSuffix(o.Message, "does not support "+feature) {
					t.Errorf("%s: %+v", tool, o)
				}
			}
		})
	}
}

// Clients of the stateless revision declare what they support, and cannot be sent requests all the same.
func TestStatelessCallers(t *testing.T) {
	_, base := start(t, hostEnv, Options{})
	g := &guest{}
	cs := connectClient(t, g.client(), base+"/mcp/"+createSession(t, base), stateless)
	p := &mcp.CallToolParams{Name: "serve", Arguments: count{2}}
	p.SetProgressToken("t")
	callText(t, cs, p)
	g.took(t, 2)
	res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "ask"})
	if err != nil || !res.IsError || !strings.Contains(jsonOf(t, res.Content), "does not support elicitation") {
		t.Errorf("%v, %v", res, err)
	}
}
