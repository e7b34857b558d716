package transport

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A client of the stateless revision works beside the session's agent, on the same environment.
func TestStatelessClientBesideAnAgent(t *testing.T) {
	srv, base := startLab(t, false)
	url := base + "/mcp/" + mint(t, base, createSession(t, base))
	agent := connectMCP(t, url)
	say(t, agent, "mine")
	single := connectAs(t, url, stateless)
	if v := single.InitializeResult().ProtocolVersion; v != stateless {
		t.Errorf("the client speaks %s", v)
	}
	say(t, single, "too")
	say(t, agent, "still mine")
	active(t, srv, 1)
	s, err := srv.Sessions().Get(labSession)
	if err != nil || s.Steps() != 3 {
		t.Errorf("%v, %v; want 3 steps", s.Steps(), err)
	}
	single.Close()
	s.Close(t.Context(), "test")
	if status, reply := post(t, url, `{"jsonrpc":"2.0","id":1,"method":"server/discover"}`,
		"Accept", "application/json, text/event-stream", "MCP-Protocol-Version", stateless); status != http.StatusNotFound {
		t.Errorf("after the end: %d %s", status, reply)
	}
}

// A request that hangs ends with its session.
func TestStatelessStreamEndsWithItsSession(t *testing.T) {
	srv, base := startLab(t, false)
	id := createSession(t, base)
	cs := connectAs(t, base+"/mcp/"+id, stateless)
	s, err := srv.Sessions().Get(id)
	if err != nil {
		t.Fatal(err)
	}
	called := make(chan error, 1)
	go func() {
		_, err := cs.CallTool(context.Background(), &mcp.CallToolParams{Name: "wait"})
		called <- err
	}()
	waitFor(t, "the call", func() bool { return s.Busy() == 1 })
	s.Close(t.Context(), "test")
	if err := <-called; err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("got %v", err)
	}
	active(t, srv, 0)
}

// A caller who goes cancels its call: nobody can ask for the answer again.
func TestStatelessCallIsCancelledByItsCaller(t *testing.T) {
	srv, base := startLab(t, false)
	id := createSession(t, base)
	cs := connectAs(t, base+"/mcp/"+id, stateless)
	s, err := srv.Sessions().Get(id)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go cs.CallTool(ctx, &mcp.CallToolParams{Name: "wait"})
	waitFor(t, "the call", func() bool { return s.Busy() == 1 })
	cancel()
	waitFor(t, "its end", func() bool { return s.Busy() == 0 })
}

type abacus struct{ sum int }

type bead struct {
	N int `json:"n"`
}

func (a *abacus) add(_ context.Context, in bead) (int, error) {
	a.sum += in.N
	return a.sum, nil
}

// In an environment that is declared stateless each call has a value of its own, and all else builds none.
func TestStatelessEnvironment(t *testing.T) {
	own := gym.Environment[*mcp.Server]{
		Name: "own", Stateless: true,
		New: func(context.Context, *gym.Session) (*mcp.Server, error) {
			server := mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil)
			sum := 0
			mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "Add."}, func(_ context.Context, _ *mcp.CallToolRequest, in bead) (*mcp.CallToolResult, struct {
				Result int `json:"result"`
			}, error) {
				sum += in.N
				return nil, struct {
					Result int `json:"result"`
				}{sum}, nil
			})
			return server, nil
		},
		Server: func(s *mcp.Server) *mcp.Server { return s },
	}
	typed := gym.Environment[*abacus]{
		Name: "abacus", Stateless: true,
		New:   func(context.Context, *gym.Session) (*abacus, error) { return &abacus{}, nil },
		Tools: tools.New(tools.Func("add", "Add.", (*abacus).add)),
	}
	for name, env := range map[string]gym.Definition{"typed": typed, "own server": own} {
		t.Run(name, func(t *testing.T) {
			srv, base := start(t, env, Options{})
			cs := connectAs(t, base+"/mcp", stateless)
			if v := cs.InitializeResult().ProtocolVersion; v != stateless {
				t.Fatalf("the client speaks %s", v)
			}
			list, err := cs.ListTools(t.Context(), nil)
			if err != nil || len(list.Tools) != 1 {
				t.Fatalf("%v, %v", list, err)
			}
			for range 2 {
				res, err := cs.CallTool(t.Context(), &mcp.CallToolParams{Name: "add", Arguments: map[string]any{"n": 3}})
				if err != nil || !strings.Contains(jsonOf(t, res.StructuredContent), `{"result":3}`) {
					t.Errorf("%v, %v; want a value of its own each time", res, err)
				}
			}
			waitFor(t, "the end of the last value", func() bool { return srv.Sessions().Active() == 0 })
		})
	}
}
