package gym_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A call that fails since it was given up is no fault of the environment's: a thousand lost clients are not a thousand
// warnings.
func TestFailuresOfAbandonedCallsAreNoWarnings(t *testing.T) {
	var log bytes.Buffer
	broken := errors.New("no disk")
	class := compile(t, gym.Environment[*board]{
		Name:  "board",
		New:   func(_ context.Context, s *gym.Session) (*board, error) { return &board{s: s, fail: true}, nil },
		Tools: tools.New(tools.Do("fail", "", func(*board, context.Context, tools.None) error { return broken })),
		Reset: gym.Reset((*board).reset),
		Act:   gym.Act(func(*board, context.Context, move) (view, gym.Score, error) { return view{}, gym.Score{}, broken }),
	})
	i, err := class.Open(t.Context(), gym.SessionOptions{
		ID: "s1", Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	abandoned, leave := context.WithCancel(t.Context())
	leave()
	for level, ctx := range map[string]context.Context{"WARN": t.Context(), "DEBUG": abandoned} {
		for event, call := range map[string]func(){
			"tool_error": func() {
				i.CallTool(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "fail"}, Extra: &mcp.RequestExtra{}})
			},
			"env_error call=reset": func() { i.Reset(ctx, gym.ResetParams{}) },
			"env_error call=step": func() {
				a, err := class.ParseAction(json.RawMessage(`{"cell":1,"mark":"x"}`))
				if err != nil {
					t.Error(err)
				}
				i.Act(ctx, a)
			},
		} {
			log.Reset()
			call()
			if got := log.String(); !strings.Contains(got, "level="+level) || !strings.Contains(got, "event="+event) || strings.Count(got, "\n") != 1 {
				t.Errorf("%s: got %q, want one line of level %s", event, got, level)
			}
		}
	}
}
