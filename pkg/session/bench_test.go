package session

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// What a session costs without a door around it.

type benchEcho struct{}

type benchMessage struct {
	Message string `json:"message"`
}

func (*benchEcho) echo(_ context.Context, in benchMessage) (string, error) { return in.Message, nil }

func (*benchEcho) score(context.Context, gym.ToolCall) gym.Score {
	return gym.Score{Reward: gym.Number(0.5)}
}

func benchManager(t testing.TB) *Manager {
	t.Helper()
	class, err := gym.Environment[*benchEcho]{
		Name:  "bench",
		New:   func(context.Context, *gym.Session) (*benchEcho, error) { return &benchEcho{}, nil },
		Tools: tools.New(tools.Func("echo", "Say it back.", (*benchEcho).echo)),
		After: (*benchEcho).score,
	}.Compile(t.Context(), tools.ModeSimulation)
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(class, Options{})
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		class.Close()
	})
	return m
}

// BenchmarkCallTool is a tool call from its turn to its count: the SDK server's chain, the tool and After are in it.
func BenchmarkCallTool(b *testing.B) {
	s, err := benchManager(b).Open(b.Context(), ByCreate, "")
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		a, err := s.CallTool(ctx, &mcp.CallToolRequest{
			Params: &mcp.CallToolParamsRaw{Name: "echo", Arguments: []byte(`{"message":"hello"}`)}, Extra: &mcp.RequestExtra{},
		}, 0)
		if err != nil || a.Err != nil {
			b.Fatal(err, a.Err)
		}
	}
}

const benchAction = `{"type":"call_tool","tool_name":"echo","arguments":{"message":"hello"}}`

// BenchmarkStep is the same as a step of the gym channel, from the action's JSON to the observation.
func BenchmarkStep(b *testing.B) {
	m := benchManager(b)
	s, err := m.Open(b.Context(), ByGymSocket, "")
	if err != nil {
		b.Fatal(err)
	}
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		a, err := m.Class().ParseAction([]byte(benchAction))
		if err != nil {
			b.Fatal(err)
		}
		if _, err := s.Step(ctx, a, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkOpenClose is a session without a call.
func BenchmarkOpenClose(b *testing.B) {
	m := benchManager(b)
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		s, err := m.Open(ctx, ByCreate, "")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := m.Close(ctx, s.ID); err != nil {
			b.Fatal(err)
		}
	}
}
