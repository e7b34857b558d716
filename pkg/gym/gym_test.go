package gym_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A board is an environment with everything of its own: action, state, options, metadata.
type board struct {
	s     *gym.Session
	cells []int
	dice  []int
	fail  bool
}

type move struct {
	Cell int    `json:"cell" minimum:"0" maximum:"8"`
	Mark string `json:"mark" enum:"x,o"`
}

type view struct {
	Cells    []int          `json:"cells"`
	Metadata map[string]any `json:"metadata,omitempty"`
}

type options struct {
	Cells []int `json:"cells,omitempty"`
	Level int   `json:"level" default:"3"`
}

type boardState struct {
	Free int `json:"free"`
}

func (b *board) reset(_ context.Context, r gym.ResetRequest[options]) (view, error) {
	if b.fail {
		return view{}, errors.New("no board")
	}
	b.cells = r.Options.Cells
	for range 5 {
		b.dice = append(b.dice, b.s.Rand().IntN(1_000_000))
	}
	return view{b.cells, map[string]any{"level": r.Options.Level, "episode": r.EpisodeID}}, nil
}

func (b *board) move(_ context.Context, m move) (view, gym.Score, error) {
	switch {
	case m.Cell == 7:
		return view{}, gym.Score{}, tools.Invalid("cell", "it is taken")
	case m.Cell == 6:
		return view{}, gym.Score{}, errors.New("the board broke")
	case m.Cell == 5:
		panic("boom")
	case m.Cell == 4:
		return view{}, gym.Score{Reward: gym.Number(math.NaN())}, nil
	}
	b.cells = append(b.cells, m.Cell)
	return view{Cells: b.cells}, gym.Score{Reward: gym.Bool(true), Done: m.Cell == 8}, nil
}

func (b *board) state() boardState { return boardState{9 - len(b.cells)} }

func boardEnv() gym.Environment[*board] {
	return gym.Environment[*board]{
		Name:  "board",
		New:   func(_ context.Context, s *gym.Session) (*board, error) { return &board{s: s}, nil },
		Reset: gym.Reset((*board).reset),
		Act:   gym.Act((*board).move),
		State: gym.StateOf((*board).state),
	}
}

func compile(t *testing.T, env gym.Definition) *gym.Class {
	t.Helper()
	c, err := env.Compile(t.Context(), tools.ModeSimulation)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func open(t *testing.T, c *gym.Class) *gym.Instance {
	t.Helper()
	i, err := c.Open(t.Context(), gym.SessionOptions{ID: "s"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := i.Close(); err != nil {
			t.Error(err)
		}
	})
	return i
}

func reset(t *testing.T, c *gym.Class, i *gym.Instance, data string) gym.Observation {
	t.Helper()
	p, err := c.ParseReset([]byte(data), false)
	if err != nil {
		t.Fatal(err)
	}
	o, err := i.Reset(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestResetOptionsAndMetadata(t *testing.T) {
	c := compile(t, boardEnv())
	i := open(t, c)
	o := reset(t, c, i, `{"seed":7,"episode_id":"e1","cells":[1],"unknown":{"kept":"out"}}`)
	if got, want := text(t, o.Fields), `{"cells":[1],"metadata":{"episode":"e1","level":3}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := text(t, o.Metadata), `{"episode":"e1","level":3}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	o = reset(t, c, i, ``)
	if got := text(t, o.Fields); !strings.HasPrefix(got, `{"cells":[],`) || i.Episode().ID == "" {
		t.Errorf("got %s in episode %q", got, i.Episode().ID)
	}
}

func TestParseResetNamesTheField(t *testing.T) {
	c := compile(t, boardEnv())
	for data, want := range map[string]string{
		`{"seed":"1"}`:                  "seed: want an integer",
		`{"seed":1.5}`:                  "seed: want an integer",
		`{"seed":18446744073709551616}`: "seed: want an integer of at most 64 bits",
		`{"seed":true}`:                 "seed: want an integer",
		`{"episode_id":7}`:              "episode_id: want a string",
		`{"cells":"x"}`:                 "cells: want array, got string",
		`{"level":null}`:                "level: want integer, got null",
		`[]`:                            "want an object",
		`{"cells":[1,"x"],"level":"y"}`: "cells.1: want integer, got string; level: want integer, got string",
	} {
		_, err := c.ParseReset([]byte(data), false)
		var input *tools.InputError
		if !errors.As(err, &input) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", data, err, want)
		}
	}
	for _, data := range []string{`{"seed":-1}`, `{"seed":18446744073709551615}`, `{"seed":5.0}`, `{"seed":null,"episode_id":null}`, `{"Seed":"x"}`} {
		if _, err := c.ParseReset([]byte(data), false); err != nil {
			t.Errorf("%s: %v", data, err)
		}
	}
	for _, data := range []string{`{"seed":-1}`, `{"episode_id":"` + strings.Repeat("é", 256) + `"}`} {
		if _, err := c.ParseReset([]byte(data), true); err == nil {
			t.Errorf("%.30s passes over HTTP", data)
		}
	}
}

func TestSeedsRepeatTheSequence(t *testing.T) {
	roll := func(data string) []int {
		var b *board
		env := boardEnv()
		env.New = func(_ context.Context, s *gym.Session) (*board, error) { b = &board{s: s}; return b, nil }
		c := compile(t, env)
		i := open(t, c)
		b.s.Rand().Uint64() // what came before a reset with a seed leaves no trace
		reset(t, c, i, data)
		return b.dice
	}
	if a, b := roll(`{"seed":7}`), roll(`{"seed":7}`); !cmp.Equal(a, b) {
		t.Errorf("seed 7 gave %v and %v", a, b)
	}
	if a, b := roll(`{"seed":7}`), roll(`{"seed":8}`); cmp.Equal(a, b) {
		t.Errorf("seeds 7 and 8 gave %v", a)
	}
	if a, b := roll(`{}`), roll(`{}`); cmp.Equal(a, b) {
		t.Errorf("two resets without a seed gave %v", a)
	}
}

func TestOwnAction(t *testing.T) {
	c := compile(t, boardEnv())
	i := open(t, c)
	act := func(data string) (gym.Observed, gym.Score, error) {
		a, err := c.ParseAction([]byte(data))
		if err != nil {
			return gym.Observed{}, gym.Score{}, err
		}
		return i.Act(t.Context(), a)
	}
	o, score, err := act(`{"cell":3,"mark":"x","metadata":{"any":"thing"}}`)
	if err != nil || text(t, o.Fields) != `{"cells":[3],"metadata":{}}` || text(t, score.Reward) != "true" {
		t.Errorf("got %s, %v, %v", text(t, o.Fields), score, err)
	}
	for data, want := range map[string]string{
		`{"cell":9,"mark":"x"}`:                "cell: want at most 8",
		`{"cell":1,"mark":"z"}`:                `mark: want one of "x", "o"`,
		`{"cell":1}`:                           "mark: field required",
		`{"type":"call_tool","tool_name":"x"}`: "cell: field required; mark: field required; tool_name: unknown field; type: unknown field",
		`{"cell":7,"mark":"x"}`:                "cell: it is taken",
		`{"Cell":1,"mark":"x"}`:                "Cell: unknown field; cell: field required",
		`{"cell":1.5,"mark":"x","metadata":5}`: "cell: want integer, got number; metadata: want object, got number",
	} {
		_, _, err := act(data)
		var input *tools.InputError
		if !errors.As(err, &input) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", data, err, want)
		}
	}
	var p *gym.PanicError
	if _, _, err := act(`{"cell":5,"mark":"x"}`); !errors.As(err, &p) || p.Func != "Act" {
		t.Errorf("a panic gave %v", err)
	}
	for _, cell := range []string{"4", "6"} {
		_, _, err := act(`{"cell":` + cell + `,"mark":"x"}`)
		var input *tools.InputError
		if err == nil || errors.As(err, &input) {
			t.Errorf("cell %s: got %v, want a failure of the environment", cell, err)
		}
	}
}

func TestStateAndCounters(t *testing.T) {
	c := compile(t, boardEnv())
	i := open(t, c)
	reset(t, c, i, `{"episode_id":"e"}`)
	i.Count(gym.Score{Reward: gym.Bool(true), Done: true})
	i.Count(gym.Score{Reward: gym.Number(0.25)})
	e := i.Count(gym.Score{})
	if e.Steps != 3 || e.RewardTotal != 1.25 || !e.Done || text(t, e.LastReward) != "null" {
		t.Errorf("got %+v", e)
	}
	state, err := i.State(t.Context())
	if want := `{"episode_id":"e","step_count":3,"reward_total":1.25,"last_reward":null,"done":true,"free":9}`; err != nil || string(state) != want {
		t.Errorf("got %s, %v; want %s", state, err, want)
	}
	reset(t, c, i, `{}`)
	if e := i.Episode(); e.Steps != 0 || e.Done || e.RewardTotal != 0 || e.ID == "e" {
		t.Errorf("after a reset: %+v", e)
	}
	for range 2 {
		i.Count(gym.Score{Reward: gym.Number(math.MaxFloat64)})
	}
	if _, err := i.State(t.Context()); err != nil {
		t.Errorf("the sum of finite rewards must be JSON: %v", err)
	}
}

// What an author gets wrong is told when the environment is compiled, all at once and by name.
func TestCompileFaults(t *testing.T) {
	newBoard := boardEnv().New
	type fields struct {
		Reward int `json:"reward"`
	}
	type counted struct {
		Steps int `json:"step_count"`
	}
	for name, c := range map[string]struct {
		env  gym.Definition
		want []string
	}{
		"empty": {gym.Environment[*board]{}, []string{"a Name", "a New function", "nothing to call"}},
		"tools and server": {gym.Environment[*board]{Name: "x", New: newBoard, Tools: tools.New[*board](), Server: func(*board) *mcp.Server { return nil }},
			[]string{"both Tools and a Server"}},
		"wire's fields": {gym.Environment[*board]{
			Name: "x", New: newBoard,
			Reset: gym.Reset(func(*board, context.Context, gym.ResetRequest[tools.None]) (fields, error) { return fields{}, nil }),
			Act:   gym.Act(func(*board, context.Context, int) (view, gym.Score, error) { return view{}, gym.Score{}, nil }),
			State: gym.StateOf(func(*board) counted { return counted{} }),
		}, []string{"Reset: ", "field named reward", "Act: ", "must be a struct or a map", "State: ", "field named step_count"}},
		"not structs": {gym.Environment[*board]{
			Name: "x", New: newBoard,
			Act:   gym.Act(func(*board, context.Context, move) ([]int, gym.Score, error) { return nil, gym.Score{}, nil }),
			State: gym.StateOf(func(*board) map[string]int { return nil }),
		}, []string{"an observation must be a struct", "a state must be a struct"}},
		"nil server":    {gym.Environment[*board]{Name: "x", New: newBoard, Server: func(*board) *mcp.Server { return nil }}, []string{"Server function returned nil"}},
		"server panics": {gym.Environment[*board]{Name: "x", New: newBoard, Server: func(*board) *mcp.Server { panic("x") }}, []string{"Server panicked"}},
		"reserved tool of a server": {gym.Environment[*board]{Name: "x", New: newBoard, Server: func(*board) *mcp.Server {
			s := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
			mcp.AddTool(s, &mcp.Tool{Name: "step"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			})
			return s
		}}, []string{`tool "step"`, "reserved"}},
	} {
		t.Run(name, func(t *testing.T) {
			class, err := c.env.Compile(t.Context(), tools.ModeSimulation)
			if err == nil {
				class.Close()
				t.Fatal("it compiles")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("the error lacks %q: %v", w, err)
				}
			}
		})
	}
}

func TestNewFailures(t *testing.T) {
	for name, f := range map[string]func() error{"error": func() error { return errors.New("no") }, "panic": func() error { panic("no") }} {
		env := boardEnv()
		env.New = func(context.Context, *gym.Session) (*board, error) { return nil, f() }
		c := compile(t, env)
		if _, err := c.Open(t.Context(), gym.SessionOptions{}); err == nil {
			t.Errorf("%s: it opens", name)
		}
	}
}

func TestAfter(t *testing.T) {
	var calls []gym.ToolCall
	score := func() gym.Score { return gym.Score{Reward: gym.Number(1)} }
	env := gym.Environment[*board]{
		Name: "x", New: boardEnv().New,
		Tools: tools.New(
			tools.Func("ok", "", func(*board, context.Context, tools.None) (int, error) { return 1, nil }),
			tools.Func("refuse", "", func(*board, context.Context, tools.None) (int, error) { return 0, tools.Fail("no") }),
			tools.Func("fail", "", func(*board, context.Context, tools.None) (int, error) { return 0, errors.New("broken") }),
		),
		After: func(_ *board, _ context.Context, c gym.ToolCall) gym.Score { calls = append(calls, c); return score() },
	}
	i := open(t, compile(t, env))
	call := func(tool string) (gym.ToolAnswer, gym.Score, error) {
		return i.CallTool(t.Context(), &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: tool, Arguments: []byte(`{}`)}})
	}
	for _, tool := range []string{"ok", "refuse", "fail", "nosuch"} {
		_, s, err := call(tool)
		if err != nil || text(t, s.Reward) != "1" {
			t.Errorf("%s: got %v, %v", tool, s, err)
		}
	}
	var got []string
	for _, c := range calls {
		switch {
		case c.Err != nil:
			got = append(got, fmt.Sprintf("%s %s", c.Name, c.Err.Type))
		default:
			got = append(got, fmt.Sprintf("%s %v %s", c.Name, c.Result.IsError, c.Arguments))
		}
	}
	want := []string{"ok false {}", "refuse true {}", "fail execution_error", "nosuch tool_not_found"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for _, bad := range []func() gym.Score{
		func() gym.Score { return gym.Score{Reward: gym.Number(math.Inf(1)), Done: true} },
		func() gym.Score { panic("boom") },
	} {
		score = bad
		a, s, err := call("ok")
		if a.Err != nil || err == nil || text(t, s.Reward) != "null" {
			t.Errorf("got %v, %v, %v; want the answer, and the failure of After beside it", a, s, err)
		}
	}
	calls = nil
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	i.CallTool(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: "ok"}})
	if len(calls) != 0 {
		t.Error("After ran for a call whose time was up")
	}
}

func TestClassTellsModesAndActions(t *testing.T) {
	type none = tools.None
	fn := func(*board, context.Context, none) (string, error) { return "", nil }
	env := gym.Environment[*board]{
		Name: "board", New: func(context.Context, *gym.Session) (*board, error) { return &board{}, nil },
		Tools: tools.New(
			tools.Func("same", "The same.", fn),
			tools.Modes("other", "Another.", tools.Simulation(fn), tools.Production(fn)),
			tools.Modes("live", "Live only.", tools.Production(fn)),
		),
	}
	for _, own := range []bool{false, true} {
		if own {
			env.Act = gym.Act((*board).move)
		}
		class, err := env.Compile(t.Context(), tools.ModeSimulation)
		if err != nil {
			t.Fatal(err)
		}
		defer class.Close()
		_, elsewhere := class.ElsewhereOnly("live")
		got := []bool{class.Traits("same").ByMode, class.Traits("other").ByMode, elsewhere, class.Traits("nosuch").ByMode, class.OwnActions()}
		if diff := cmp.Diff([]bool{false, true, true, false, own}, got); diff != "" {
			t.Errorf("same, other, live elsewhere, nosuch, own actions (-want +got):\n%s", diff)
		}
	}
}

// TestRewardsAreWrittenAsTheStandardLibraryWritesThem holds for every finite number.
func TestRewardsAreWrittenAsTheStandardLibraryWritesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64(), func(n int64) float64 { return float64(n) / 8 }),
			rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1e-6, 9.9e-7, 1e21, 9.99e20, 5e-324, math.MaxFloat64})).Draw(t, "v")
		want, err := json.Marshal(v)
		if err != nil {
			t.Skip("no JSON")
		}
		if got, err := gym.Number(v).AppendJSON([]byte("x")); err != nil || string(got) != "x"+string(want) {
			t.Errorf("%s, %v; want x%s", got, err, want)
		}
	})
}
