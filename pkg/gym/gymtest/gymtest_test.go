package gymtest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
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

// found runs all checks on an environment, and returns each one's problems and notes by its name and mode.
func found(t *testing.T, env gym.Definition, opts ...Option) map[string]*report {
	t.Helper()
	out := map[string]*report{}
	c := configOf(opts)
	for _, mode := range bothModes {
		r := inBubble(t, env, mode, c, compiles)
		out["compile "+string(mode)] = r
		if r.empty || len(r.problems) > 0 {
			continue
		}
		for _, ch := range checks {
			for _, m := range ch.modes {
				if m == mode {
					out[ch.name+" "+string(mode)] = inBubble(t, env, mode, c, ch.run)
				}
			}
		}
	}
	return out
}

func texts(r *report) string {
	var b strings.Builder
	for _, p := range r.problems {
		b.WriteString(p.text + "\n")
	}
	return b.String()
}

func hasWords(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// box is a value with what the broken environments break.
type box struct {
	s     *gym.Session
	n     int
	ready map[string]int
	stop  chan struct{}
}

type amount struct {
	N    int      `json:"n" minimum:"0" maximum:"9"`
	Word string   `json:"word,omitempty" minLength:"2" maxLength:"5" pattern:"^[a-c]+$"`
	Kind string   `json:"kind" enum:"red,green"`
	Many []string `json:"many,omitempty"`
}

func (b *box) add(_ context.Context, in amount) (int, error) { b.n += in.N; return b.n, nil }

// boxEnv is a good environment with one tool; change breaks it.
func boxEnv(fn func(*box, context.Context, amount) (int, error), change func(*gym.Environment[*box])) gym.Environment[*box] {
	e := gym.Environment[*box]{
		Name:  "box",
		New:   func(_ context.Context, s *gym.Session) (*box, error) { return &box{s: s}, nil },
		Tools: tools.New(tools.Func("add", "Add.", fn)),
		Reset: gym.Reset(func(b *box, _ context.Context, _ gym.ResetRequest[tools.None]) (tools.None, error) {
			b.n = 0
			return tools.None{}, nil
		}),
	}
	if change != nil {
		change(&e)
	}
	return e
}

type broken struct {
	name  string
	env   gym.Definition
	opts  []Option
	where string   // the check that must find it
	words []string // of its message
}

func brokenEnvs() []broken {
	var calls atomic.Int64
	return []broken{
		{
			name: "a counter of the package",
			env: boxEnv(func(*box, context.Context, amount) (int, error) {
				return int(calls.Add(1)), nil
			}, nil),
			where: "sessions simulation", words: []string{"sessions disturb each other", "seed 42", "step 1 of 4, add(", "at data.observation.result", "variables of the package"},
		},
		{
			name: "random numbers of the runtime",
			env: boxEnv(func(*box, context.Context, amount) (int, error) {
				return rand.Int(), nil
			}, nil),
			where: "seeds simulation", words: []string{"an episode cannot be repeated", "step 1 of 4, add(", "-", "+", "Session.Rand()"},
		},
		{
			name: "the wall clock",
			env: boxEnv(func(*box, context.Context, amount) (int, error) {
				return time.Now().Day(), nil
			}, nil),
			where: "seeds simulation", words: []string{"an episode cannot be repeated", "Session.Now()"},
		},
		{
			name: "a reset that forgets to reset",
			env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.Reset = gym.Resetter[*box]{}
			}),
			where: "seeds simulation", words: []string{"a reset leaves something of the episode before it", "Give the environment a Reset", "put back"},
		},
		{
			name: "a goroutine for each value, and no Close",
			env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.New = func(context.Context, *gym.Session) (*box, error) {
					b := &box{stop: make(chan struct{})}
					go worker(b.stop)
					return b, nil
				}
			}),
			where: "ends simulation", words: []string{"a goroutine outlives its session", "brokenEnvs", "gymtest_test.go:", "Stop in Close"},
		},
		{
			name: "a goroutine that ticks for ever",
			env: boxEnv(func(b *box, ctx context.Context, in amount) (int, error) {
				go func() {
					for range time.Tick(time.Second) {
					}
				}()
				return b.add(ctx, in)
			}, nil),
			where: "ends production", words: []string{"a goroutine outlives its session"},
		},
		{
			name: "a Close that never returns",
			env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.Close = func(*box) error { <-make(chan int); return nil }
			}),
			where: "ends simulation", words: []string{"Close did not return", "the server could not stop"},
		},
		{
			name: "a Close that fails",
			env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.Close = func(*box) error { return errors.New("the disk is full") }
			}),
			where: "ends simulation", words: []string{"Close returned an error: the disk is full"},
		},
		{
			name: "a tool that does not heed its context",
			env: boxEnv(func(b *box, ctx context.Context, in amount) (int, error) {
				time.Sleep(24 * time.Hour)
				return b.add(ctx, in)
			}, nil),
			where: "ends simulation", words: []string{`tool "add" did not return though its context had ended`},
		},
		{
			name: "a panic at one argument",
			env: boxEnv(func(_ *box, _ context.Context, in amount) (int, error) {
				return []int{1, 2, 3}[in.N], nil
			}, nil),
			where: "doors simulation", words: []string{`tool "add" panicked`, "index out of range", "brokenEnvs", "gymtest_test.go:"},
		},
		{
			name: "an After that takes every call for a success",
			env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.After = func(_ *box, _ context.Context, call gym.ToolCall) gym.Score {
					return gym.Score{Done: call.Result.IsError}
				}
			}),
			where: "input simulation", words: []string{"After panicked", "nil pointer", "gymtest_test.go:"},
		},
		{
			name: "a reward that is no number",
			env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.After = func(*box, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(math.NaN())} }
			}),
			where: "doors simulation", words: []string{`After failed, following tool "add"`, "NaN"},
		},
		{
			name: "a value that only a reset makes ready",
			env: boxEnv(func(b *box, _ context.Context, in amount) (int, error) {
				b.ready["calls"]++
				return b.ready["calls"], nil
			}, func(e *gym.Environment[*box]) {
				e.Reset = gym.Reset(func(b *box, _ context.Context, _ gym.ResetRequest[tools.None]) (tools.None, error) {
					b.ready = map[string]int{}
					return tools.None{}, nil
				})
			}),
			where: "production production", words: []string{`tool "add" panicked`, "nil map"},
		},
		{
			name: "a result out of its bounds", env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.Tools = tools.New(tools.Func("add", "Add.", (*box).add, tools.OutputSchema(&jsonschema.Schema{Type: "integer", Maximum: jsonschema.Ptr(1.0)})))
			}),
			where: "schema simulation", words: []string{`tool "add" returned a result that does not fit`, "at most 1"},
		},
		{
			name: "a server whose result is not what it publishes", env: serverEnv(func(s *mcp.Server) {
				s.AddTool(&mcp.Tool{Name: "look", InputSchema: &jsonschema.Schema{Type: "object"}, OutputSchema: &jsonschema.Schema{Type: "object", Required: []string{"x"}}},
					func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
						return &mcp.CallToolResult{StructuredContent: map[string]any{"y": 1}}, nil
					})
			}),
			where: "schema simulation", words: []string{"the result of look({", "does not fit the output schema of tool look", "x: field required"},
		},
		{
			name: "a server that asks who calls", env: serverEnv(func(s *mcp.Server) {
				mcp.AddTool(s, &mcp.Tool{Name: "who"}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, string, error) {
					if p := r.Session.InitializeParams(); p != nil {
						return nil, p.ClientInfo.Name, nil
					}
					return nil, "nobody", nil
				})
			}),
			where: "doors simulation", words: []string{"/ws step frames and MCP Streamable HTTP differ in step 1 of 1, who({})", "nobody", "gymtest", "by every door"},
		},
		{
			name: "a New that fails", env: boxEnv((*box).add, func(e *gym.Environment[*box]) {
				e.New = func(context.Context, *gym.Session) (*box, error) { return nil, errors.New("no licence") }
			}),
			where: "doors simulation", words: []string{"New returned an error: no licence"},
		},
		{
			name: "a Reset that needs options", env: boxEnv((*box).add, needsLevel),
			where: "doors simulation", words: []string{"Reset returned an error: which level?", "gymtest.ResetOptions"},
		},
		{
			name: "a device that is not Exclusive", env: func() gym.Definition {
				e := exclusiveEnv()
				e.Exclusive = false
				return e
			}(),
			where: "sessions simulation", words: []string{"session 2 of 3 side by side could not be opened", "the device is in use", "set Exclusive"},
		},
		{
			name: "an action that panics", env: actEnv(func(in move) (corner, error) { return corner{X: []int{1}[in.Row]}, nil }),
			where: "doors simulation", words: []string{"Act panicked", "index out of range", "gymtest_test.go:"},
		},
		{
			name: "an observation out of its bounds", env: actEnv(func(in move) (corner, error) { return corner{X: 9 * in.Row}, nil }),
			where: "schema simulation", words: []string{"Act returned an observation that does not go out", "x: want at most 5"},
		},
		{
			name: "an action that remembers beyond its session", env: actEnv(func(move) (corner, error) { return corner{X: int(calls.Add(1)) % 5}, nil }),
			where: "sessions simulation", words: []string{"sessions disturb each other", "action {", "at data.observation"},
		},
		{
			name: "does not compile", env: gym.Environment[*box]{Name: "box"},
			where: "compile simulation", words: []string{"it needs a New function", "nothing to call"},
		},
		{
			name: "a script of another environment", env: boxEnv((*box).add, nil), opts: []Option{Script(Call("subtract", nil))},
			where: "doors simulation", words: []string{`calls tool "subtract"`, "it has add"},
		},
	}
}

// actEnv has an action of its own and nothing else.
func actEnv(act func(move) (corner, error)) gym.Environment[*box] {
	return gym.Environment[*box]{
		Name: "act", New: func(context.Context, *gym.Session) (*box, error) { return &box{}, nil },
		Act: gym.Act(func(_ *box, _ context.Context, in move) (corner, gym.Score, error) {
			c, err := act(in)
			return c, gym.Score{}, err
		}),
	}
}

func worker(stop chan struct{}) { <-stop }

func needsLevel(e *gym.Environment[*box]) {
	type level struct {
		Level int `json:"level,omitempty"`
	}
	e.Reset = gym.Reset(func(b *box, _ context.Context, r gym.ResetRequest[level]) (tools.None, error) {
		if b.n = 0; r.Options.Level == 0 {
			return tools.None{}, errors.New("which level?")
		}
		return tools.None{}, nil
	})
}

type ownServer struct{ server *mcp.Server }

func serverEnv(fill func(*mcp.Server)) gym.Environment[ownServer] {
	return gym.Environment[ownServer]{
		Name: "own",
		New: func(context.Context, *gym.Session) (ownServer, error) {
			s := mcp.NewServer(&mcp.Implementation{Name: "own", Version: "1"}, nil)
			fill(s)
			return ownServer{s}, nil
		},
		Server: func(o ownServer) *mcp.Server { return o.server },
	}
}

// TestBrokenEnvironmentsAreFound: each fault is found by the check that is for it, in words that help.
func TestBrokenEnvironmentsAreFound(t *testing.T) {
	for _, c := range brokenEnvs() {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			name, mode, _ := strings.Cut(c.where, " ")
			run := compiles
			if i := slices.IndexFunc(checks, func(ch check) bool { return ch.name == name }); i >= 0 {
				run = checks[i].run
			}
			r := inBubble(t, c.env, tools.Mode(mode), configOf(c.opts), run)
			if text := texts(r); len(r.problems) == 0 || !hasWords(text, c.words...) {
				t.Errorf("%s: want the words %q in:\n%s", c.where, c.words, text)
			}
		})
	}
}
