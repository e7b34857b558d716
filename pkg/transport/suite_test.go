package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/session"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// One suite over all doors: the same call comes to the same outcome, spelled as each door must, and counts the same.

// A lab is an environment with a tool for every outcome.
type lab struct{ calls int }

type labText struct {
	Text string `json:"text" minLength:"1"`
}

type labPoint struct {
	X int `json:"x"`
	Y int `json:"y"`
}

func (l *lab) say(_ context.Context, in labText) (string, error)   { l.calls++; return in.Text, nil }
func (l *lab) point(context.Context, tools.None) (labPoint, error) { return labPoint{1, 2}, nil }
func (l *lab) list(context.Context, tools.None) ([]int, error)     { return nil, nil }
func (l *lab) nothing(context.Context, tools.None) error           { return nil }
func (l *lab) refuse(context.Context, tools.None) (string, error) {
	return "", fmt.Errorf("asking: %w", tools.Fail("no such page"))
}
func (l *lab) fail(context.Context, tools.None) (string, error) {
	return "", errors.New("disk on fire")
}
func (l *lab) panic(context.Context, tools.None) (string, error) { panic("boom") }
func (l *lab) nan(context.Context, tools.None) (float64, error)  { return math.NaN(), nil }
func (l *lab) bomb(context.Context, tools.None) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{StructuredContent: bomb{}}, nil
}
func (l *lab) wait(ctx context.Context, _ tools.None) (string, error) {
	<-ctx.Done()
	return "", ctx.Err()
}

// A bomb panics when it is written.
type bomb struct{}

func (bomb) MarshalJSON() ([]byte, error) { panic("boom") }

// labReward is what every call that counts earns, save a time-out.
const labReward = 0.5

func labEnv() gym.Environment[*lab] {
	return gym.Environment[*lab]{
		Name: "lab",
		New:  func(context.Context, *gym.Session) (*lab, error) { return &lab{}, nil },
		Tools: tools.New(
			tools.Func("say", "Say it.", (*lab).say),
			tools.Func("point", "A point.", (*lab).point),
			tools.Func("list", "An empty list.", (*lab).list),
			tools.Do("nothing", "Nothing.", (*lab).nothing),
			tools.Func("refuse", "Fails by itself.", (*lab).refuse),
			tools.Func("fail", "Fails.", (*lab).fail),
			tools.Func("panic", "Panics.", (*lab).panic),
			tools.Func("nan", "Not a number.", (*lab).nan),
			tools.Func("bomb", "Answers with a value that cannot be written.", (*lab).bomb),
			tools.Func("wait", "Waits for ever.", (*lab).wait),
		),
		After: func(*lab, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(labReward)} },
	}
}

// An outcome is what a call came to, as a door spelled it.
type outcome struct {
	Data    string // the result as one value, JSON; "" if the call failed
	Failed  bool   // the tool reported its own failure
	Type    string // error_type of a failed call
	Code    int    // JSON-RPC error code, on doors that have one
	Message string
}

type suiteCase struct {
	name string
	tool string
	args string
	want outcome // without Code
	code int     // of bare JSON-RPC
	mcp  int     // of MCP after initialize; 0: a result marked as an error
}

var suiteCases = []suiteCase{
	{name: "text", tool: "say", args: `{"text":"é\"\n"}`, want: outcome{Data: `"é\"\n"`}},
	{name: "object", tool: "point", args: `{}`, want: outcome{Data: `{"x":1,"y":2}`}},
	{name: "no arguments", tool: "point", args: ``, want: outcome{Data: `{"x":1,"y":2}`}},
	{name: "empty list", tool: "list", args: `{}`, want: outcome{Data: `[]`}},
	{name: "nothing", tool: "nothing", args: `{}`, want: outcome{Data: `null`}},
	{name: "own failure", tool: "refuse", args: `{}`, want: outcome{Data: `"no such page"`, Failed: true}},
	{name: "unknown tool", tool: "nosuch", args: `{}`, code: rpcInvalidParams, mcp: rpcInvalidParams,
		want: outcome{Type: "tool_not_found", Message: `unknown tool "nosuch"; list the tools to see which there are`}},
	{name: "wrong type", tool: "say", args: `{"text":5}`, code: rpcInvalidParams,
		want: outcome{Type: "invalid_args", Message: "invalid arguments: text: want string, got number"}},
	{name: "out of bounds", tool: "say", args: `{"text":""}`, code: rpcInvalidParams,
		want: outcome{Type: "invalid_args", Message: "invalid arguments: text: want at least 1 characters, got 0"}},
	{name: "missing and unknown", tool: "say", args: `{"Text":"x"}`, code: rpcInvalidParams,
		want: outcome{Type: "invalid_args", Message: "invalid arguments: Text: unknown field; text: field required"}},
	{name: "error", tool: "fail", args: `{}`, code: rpcInternal, want: outcome{Type: "execution_error", Message: "disk on fire"}},
	{name: "panic", tool: "panic", args: `{}`, code: rpcInternal,
		want: outcome{Type: "execution_error", Message: `tool "panic" panicked; the server's log has the stack`}},
	{name: "not a number", tool: "nan", args: `{}`, code: rpcInternal, want: outcome{Type: "execution_error"}},
	{name: "bomb", tool: "bomb", args: `{}`, code: rpcInternal,
		want: outcome{Type: "execution_error", Message: "tool \"bomb\" panicked; the server's log has the stack"}},
	{name: "time-out", tool: "wait", args: `{}`, code: rpcInternal,
		want: outcome{Type: "timeout", Message: `tool "wait" did not finish within 20ms`}},
}

func TestEveryDoor(t *testing.T) {
	for _, mode := range []tools.Mode{tools.ModeSimulation, tools.ModeProduction} {
		for _, d := range doors {
			for _, c := range suiteCases {
				t.Run(string(mode)+"/"+d.name+"/"+c.name, func(t *testing.T) {
					t.Parallel()
					o := labOptions(c.want.Type == "timeout")
					o.Mode = mode
					srv, base := startDoor(t, labEnv(), o, d)
					checkSuiteCase(t, srv, d, c, d.open(t, srv, base))
				})
			}
		}
	}
}

// startDoor serves an environment in a mode, where a door is: in production the trainer's are on the control listener.
func startDoor(t *testing.T, env gym.Definition, o Options, d door) (srv *Server, base string) {
	srv, base = start(t, env, o)
	if o.Mode == tools.ModeProduction && d.dialect == gymChannel {
		web := httptest.NewServer(srv.Control())
		t.Cleanup(web.Close)
		base = web.URL
	}
	return srv, base
}

// A tool that is there in the other mode only is an unknown tool like any other, by every door; and the log says where it is.
func TestToolsOfTheOtherMode(t *testing.T) {
	env := labEnv()
	env.Tools = tools.New(
		tools.Modes("rehearse", "Rehearse.", tools.Simulation((*lab).point)),
		tools.Modes("perform", "Perform.", tools.Production((*lab).list)),
		tools.Modes("play", "Play.", tools.Simulation((*lab).say), tools.Production((*lab).shout)),
	)
	for mode, want := range map[tools.Mode]struct{ own, ownData, other, played, elsewhere string }{
		tools.ModeSimulation: {"rehearse", `{"x":1,"y":2}`, "perform", `"x"`, "production"},
		tools.ModeProduction: {"perform", `[]`, "rehearse", `"X"`, "simulation"},
	} {
		for _, d := range doors {
			t.Run(string(mode)+"/"+d.name, func(t *testing.T) {
				t.Parallel()
				log := newEventLog()
				o := log.options()
				o.Mode = mode
				srv, base := startDoor(t, env, o, d)
				call := d.open(t, srv, base)
				for tool, data := range map[string]string{want.own: want.ownData, "play": want.played} {
					args := "{}"
					if tool == "play" {
						args = `{"text":"x"}`
					}
					if got := call(tool, args); got.Data != data {
						t.Errorf("%s: %+v, want %s", tool, got, data)
					}
				}
				other, unknown := call(want.other, "{}"), call("nosuch", "{}")
				other.Message = strings.ReplaceAll(other.Message, want.other, "nosuch")
				if diff := cmp.Diff(unknown, other); diff != "" || other.Type != "tool_not_found" {
					t.Errorf("the other mode's tool (-unknown +other):\n%s", diff)
				}
				for _, l := range srv.class.Tools {
					if l.Name == want.other {
						t.Error("the other mode's tool is listed")
					}
				}
				log.want(t, "tool_other_mode", "tool", want.other, "mode", want.elsewhere)
			})
		}
	}
}

func (l *lab) shout(_ context.Context, in labText) (string, error) {
	return strings.ToUpper(in.Text), nil
}

// checkSuiteCase makes the case's call and looks at the outcome and at what has been counted.
func checkSuiteCase(t *testing.T, srv *Server, d door, c suiteCase, call caller) {
	t.Helper()
	got := call(c.tool, c.args)
	want := c.want
	switch d.dialect {
	case bare:
		want.Code = c.code
	case initialized:
		want.Code = c.mcp
	}
	if c.name == "not a number" {
		want.Message = got.Message // the JSON library's words
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("outcome (-want +got):\n%s", diff)
	}
	if d.temporary {
		if n := srv.Sessions().Active(); n != 0 {
			t.Errorf("%d sessions are left by a call without one", n)
		}
		return
	}
	s, err := srv.Sessions().Get(labSession)
	if err != nil {
		t.Fatal(err)
	}
	wantEpisode := gym.Episode{Steps: 1, RewardTotal: labReward, LastReward: gym.Number(labReward)}
	if c.want.Type == "timeout" {
		wantEpisode.RewardTotal, wantEpisode.LastReward = 0, gym.Reward{}
	}
	e := s.Episode()
	e.ID = ""
	if diff := cmp.Diff(wantEpisode, e, cmp.AllowUnexported(gym.Reward{})); diff != "" {
		t.Errorf("episode (-want +got):\n%s", diff)
	}
	if s.Steps() != 1 {
		t.Errorf("the session has counted %d steps, want 1", s.Steps())
	}
}

// labSession is the id of the first session of a server that startLab starts.
const labSession = "s1"

func countingIDs() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("s%d", n.Add(1)) }
}

// startLab serves the lab on loopback; hasty gives tool calls 20 ms.
func startLab(t *testing.T, hasty bool) (*Server, string) {
	return start(t, labEnv(), labOptions(hasty))
}

func labOptions(hasty bool) Options {
	o := Options{Sessions: session.Options{NewID: countingIDs()}}
	if hasty {
		o.Sessions.ToolTimeout = 20 * time.Millisecond
	}
	return o
}

// start serves an environment on loopback until the test ends, and then checks that nothing is left.
func start(t *testing.T, env gym.Definition, o Options) (*Server, string) {
	t.Helper()
	srv, err := New(t.Context(), env, o)
	if err != nil {
		t.Fatal(err)
	}
	return srv, serveOn(t, srv)
}

func serveOn(t *testing.T, srv *Server) (base string) {
	t.Helper()
	web := httptest.NewServer(srv)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := srv.Close(ctx); err != nil {
			t.Errorf("closing the server: %v", err)
		}
		web.Close()
		if n := srv.Sessions().Active(); n != 0 {
			t.Errorf("%d slots are taken after the end", n)
		}
	})
	return web.URL
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
