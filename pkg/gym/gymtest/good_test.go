package gymtest

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A house is a good environment that has everything: tools with inputs of all kinds, resets with options, a state, rewards,
// an end, randomness, the clock, a goroutine that Close stops.
type house struct {
	s      *gym.Session
	doors  map[string]bool
	wind   int
	since  time.Time
	stop   chan struct{}
	closed chan struct{}
}

type place struct {
	Room  string             `json:"room" enum:"hall,attic"`
	At    *time.Time         `json:"at,omitempty"`
	Link  string             `json:"link,omitempty" format:"uri"`
	ID    string             `json:"id,omitempty" format:"uuid"`
	Mail  string             `json:"mail,omitempty" format:"email"`
	Code  string             `json:"code,omitempty" pattern:"^[A-Z]{2}-\\d{3,}$"`
	Key   []byte             `json:"key,omitempty"`
	Speed float64            `json:"speed" minimum:"0.5" maximum:"2" default:"1"`
	Steps uint8              `json:"steps,omitempty"`
	Path  []corner           `json:"path,omitempty" maxItems:"3"`
	Names map[string]int     `json:"names,omitempty"`
	Any   any                `json:"any,omitempty"`
	Loud  volume             `json:"loud,omitzero"`
	Deep  *map[string]corner `json:"deep,omitempty"`
}

type corner struct {
	X int `json:"x" minimum:"-5" maximum:"5"`
	Y int `json:"y" multipleOf:"3"`
}

// A volume is a number or a word.
type volume struct{ any }

func (volume) JSONSchema() *jsonschema.Schema {
	return &jsonschema.Schema{AnyOf: []*jsonschema.Schema{
		{Type: "integer", Minimum: jsonschema.Ptr(0.0), Maximum: jsonschema.Ptr(100.0)},
		{Type: "string", Enum: []any{"mute", "max"}},
	}}
}

func (v *volume) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &v.any) }
func (v volume) MarshalJSON() ([]byte, error)  { return json.Marshal(v.any) }

func newHouse(_ context.Context, s *gym.Session) (*house, error) {
	h := &house{s: s, doors: map[string]bool{}, stop: make(chan struct{}), closed: make(chan struct{}), since: s.Now(), wind: s.Rand().IntN(100)}
	go func() {
		defer close(h.closed)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-h.stop:
				return
			}
		}
	}()
	return h, nil
}

func (h *house) end() error {
	close(h.stop)
	<-h.closed
	return nil
}

func (h *house) open(_ context.Context, in place) (map[string]any, error) {
	if h.doors[in.Room] && in.Steps > 0 {
		return nil, tools.Fail("it is open")
	}
	h.doors[in.Room] = true
	return map[string]any{"room": in.Room, "wind": h.wind + h.s.Rand().IntN(10), "day": h.s.Now().Format(time.DateOnly), "path": in.Path}, nil
}

func (h *house) wait(ctx context.Context, _ tools.None) error {
	<-ctx.Done()
	return ctx.Err()
}

func (h *house) nap(ctx context.Context, _ tools.None) (string, error) {
	time.Sleep(3 * time.Second)
	return "rested", nil
}

func (h *house) photo(context.Context, tools.None) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: []byte{1, 2}, MIMEType: "image/png"}}}, nil
}

type storm struct {
	Wind int `json:"wind,omitempty"`
}

type weather struct {
	Wind int `json:"wind"`
}

func (h *house) reset(_ context.Context, r gym.ResetRequest[storm]) (weather, error) {
	clear(h.doors)
	h.since, h.wind = h.s.Now(), r.Options.Wind+h.s.Rand().IntN(100)
	return weather{h.wind}, nil
}

func (h *house) score(_ context.Context, call gym.ToolCall) gym.Score {
	return gym.Score{Reward: gym.Bool(call.Err == nil), Done: len(h.doors) == 2}
}

func houseEnv() gym.Environment[*house] {
	return gym.Environment[*house]{
		Name: "house", New: newHouse, Close: (*house).end,
		Tools: tools.New(
			tools.Func("open", "Open a door.", (*house).open),
			tools.Do("wait", "Wait for ever.", (*house).wait),
			tools.Func("nap", "Sleep, whatever happens.", (*house).nap),
			tools.Func("photo", "Take a photo.", (*house).photo),
		),
		Reset: gym.Reset((*house).reset),
		State: gym.StateOf(func(h *house) weather { return weather{h.wind} }),
		After: (*house).score,
	}
}

type move struct {
	Row int `json:"row" minimum:"0" maximum:"2"`
	Col int `json:"col" minimum:"0" maximum:"2"`
}

type board struct {
	Cells [9]string `json:"cells"`
}

type match struct{ board board }

func (m *match) move(_ context.Context, in move) (board, gym.Score, error) {
	at := 3*in.Row + in.Col
	if m.board.Cells[at] != "" {
		return board{}, gym.Score{}, tools.Invalid("col", "the cell is taken")
	}
	m.board.Cells[at] = "x"
	return m.board, gym.Score{Reward: gym.Number(1)}, nil
}

// matchEnv has actions of its own, with and without tools beside.
func matchEnv(beside *tools.Set[*match]) gym.Environment[*match] {
	return gym.Environment[*match]{
		Name: "match", New: func(context.Context, *gym.Session) (*match, error) { return &match{}, nil },
		Act: gym.Act((*match).move), Tools: beside,
		Reset: gym.Reset(func(m *match, _ context.Context, _ gym.ResetRequest[tools.None]) (board, error) {
			m.board = board{}
			return m.board, nil
		}),
	}
}

func goodServer(s *mcp.Server) {
	type echo struct {
		Text string `json:"text"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echo) (*mcp.CallToolResult, echo, error) {
		return nil, in, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "hello"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{}, nil
	})
}

// modesEnv has a tool whose variant in production touches the world, here by counting.
func modesEnv(touched *atomic.Int64) gym.Environment[*box] {
	return boxEnv((*box).add, func(e *gym.Environment[*box]) {
		e.Tools = tools.New(
			tools.Func("add", "Add.", (*box).add),
			tools.Modes("send", "Send.",
				tools.Simulation(func(*box, context.Context, amount) (int, error) { return 1, nil }),
				tools.Production(func(*box, context.Context, amount) (int, error) { touched.Add(1); return 2, nil })),
			tools.Modes("pay", "Pay.", tools.Production(func(*box, context.Context, amount) (int, error) { touched.Add(1); return 3, nil })),
		)
	})
}

// exclusiveEnv has a device that one value can have at a time.
func exclusiveEnv() gym.Environment[*box] {
	var taken atomic.Bool
	return boxEnv((*box).add, func(e *gym.Environment[*box]) {
		e.Exclusive = true
		e.New = func(context.Context, *gym.Session) (*box, error) {
			if taken.Swap(true) {
				return nil, errors.New("the device is in use")
			}
			return &box{}, nil
		}
		e.Close = func(*box) error { taken.Store(false); return nil }
	})
}

type good struct {
	name string
	env  gym.Definition
	opts []Option
}

func goodEnvs() []good {
	return []good{
		{"tools", houseEnv(), nil},
		{"options of resets", boxEnv((*box).add, needsLevel), []Option{ResetOptions(map[string]int{"level": 2})}},
		{"actions", matchEnv(nil), nil},
		{"actions and tools", matchEnv(tools.New(tools.Func("peek", "Look.", func(m *match, _ context.Context, _ tools.None) (board, error) { return m.board, nil }))), nil},
		{"scripted actions", matchEnv(nil), []Option{Script(Act(move{1, 1}), Act(`{"row":0,"col":2}`), Act(move{1, 1}), Act(move{7, 7}))}},
		{"a server", serverEnv(goodServer), nil},
		{"modes", modesEnv(new(atomic.Int64)), nil},
		{"exclusive", exclusiveEnv(), nil},
	}
}

func TestGoodEnvironmentsPass(t *testing.T) {
	for _, c := range goodEnvs() {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			Run(t, c.env, c.opts...)
		})
	}
}

func notes(reports map[string]*report) (all []string) {
	for _, r := range reports {
		all = append(all, r.notes...)
	}
	return all
}

func noted(reports map[string]*report, words ...string) bool {
	return slices.ContainsFunc(notes(reports), func(n string) bool { return hasWords(n, words...) })
}

// TestProductionVariantsAreLeftAlone: unless the author asks for them.
func TestProductionVariantsAreLeftAlone(t *testing.T) {
	t.Parallel()
	var touched atomic.Int64
	reports := found(t, modesEnv(&touched))
	if n := touched.Load(); n != 0 {
		t.Errorf("variants for production were called %d times", n)
	}
	if !noted(reports, `"pay"`, "gymtest.CallProduction") || !noted(reports, `"send"`, "gymtest.CallProduction") {
		t.Errorf("the author is not told: %q", notes(reports))
	}
	reports = found(t, modesEnv(&touched), CallProduction())
	if touched.Load() == 0 || noted(reports, "gymtest.CallProduction") {
		t.Errorf("called %d times with CallProduction; %q", touched.Load(), notes(reports))
	}
}

func TestSkippedToolsAreNotCalled(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	env := boxEnv(func(*box, context.Context, amount) (int, error) { calls.Add(1); return 0, nil }, func(e *gym.Environment[*box]) {
		e.After = func(*box, context.Context, gym.ToolCall) gym.Score { calls.Add(1); return gym.Score{} }
	})
	reports := found(t, env, Skip("add"))
	for name, r := range reports {
		if len(r.problems) > 0 {
			t.Errorf("%s: %s", name, texts(r))
		}
	}
	// After hears of the unknown tool that the check of input calls.
	if n := calls.Load(); n != 2 || !noted(reports, `tool "add" is not called`, "gymtest.Skip") {
		t.Errorf("%d calls, notes %q", n, notes(reports))
	}
}

// TestScriptReplacesGeneratedSteps: and Generate adds them again.
func TestScriptReplacesGeneratedSteps(t *testing.T) {
	plan := func(opts ...Option) (out []string) {
		t.Helper()
		class, err := boxEnv((*box).add, nil).Compile(t.Context(), tools.ModeSimulation)
		if err != nil {
			t.Fatal(err)
		}
		defer class.Close()
		s, err := scriptOf(class, configOf(opts))
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range s.steps {
			out = append(out, st.String())
		}
		return out
	}
	one := Script(Call("add", amount{N: 3, Kind: "red"}))
	if got := plan(one); len(got) != 1 || got[0] != `add({"n":3,"kind":"red"})` {
		t.Errorf("a script alone: %q", got)
	}
	if got := plan(one, Generate(2)); len(got) != 3 {
		t.Errorf("a script and 2 sets: %q", got)
	}
	if got := plan(); len(got) != defaultGenerate {
		t.Errorf("no script: %q", got)
	}
	if a, b := plan(), plan(); !slices.Equal(a, b) {
		t.Errorf("generated steps differ from time to time: %q, %q", a, b)
	}
}
