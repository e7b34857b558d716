package mount_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

type connector func(ctx context.Context) (gym.Upstream, error)

func (c connector) Connect(ctx context.Context, _ *slog.Logger) (gym.Upstream, error) { return c(ctx) }

// A fake is an upstream with one tool, which breaks when it is told to.
type fake struct {
	lost chan struct{}
	fail error
}

func (f *fake) ListTools(context.Context) ([]*mcp.Tool, error) {
	return []*mcp.Tool{{Name: "a", InputSchema: map[string]any{"type": "object"}}}, nil
}

func (f *fake) CallTool(context.Context, string, []byte, func(*mcp.ProgressNotificationParams)) (*mcp.CallToolResult, error) {
	return &mcp.CallToolResult{}, f.fail
}
func (f *fake) Lost() <-chan struct{} { return f.lost }
func (f *fake) Close() error          { return nil }

func (f *fake) lose(err error) {
	f.fail = err
	close(f.lost)
}

func newFake() *fake { return &fake{lost: make(chan struct{})} }

func TestFaultsAreToldToTheAuthor(t *testing.T) {
	plain := child(t, "plain")
	own := tools.New(tools.Func("files_echo", "Own.", func(*desk, context.Context, tools.None) (string, error) { return "", nil }))
	with := func(f func(*gym.Environment[*desk]), m ...gym.Mount) gym.Environment[*desk] {
		env := deskEnv(m...)
		f(&env)
		return env
	}
	none := func(*gym.Environment[*desk]) {}
	for name, c := range map[string]struct {
		env   gym.Environment[*desk]
		words []string
	}{
		"no connector":   {with(none, gym.Mount{Prefix: "x"}), []string{`the mount "x": it needs a Connect`}},
		"bad prefix":     {with(none, gym.Mount{Prefix: "a b", Connect: plain}), []string{"a Prefix is of the characters"}},
		"long prefix":    {with(none, gym.Mount{Prefix: strings.Repeat("x", 127), Connect: plain}), []string{"leaves room for a name"}},
		"negative":       {with(none, gym.Mount{Connect: plain, Start: -1}), []string{"the mount without a prefix: a Start or a Deadline is negative"}},
		"shared":         {with(none, gym.Mount{Connect: plain, Shared: true, Restart: true}), []string{"PerEpisode and Restart are for a session's own"}},
		"mode":           {with(none, gym.Mount{Connect: plain, Mode: "test"}), []string{`there is no mode "test"`}},
		"twice":          {with(none, gym.Mount{Prefix: "x", Connect: plain}, gym.Mount{Prefix: "x", Connect: plain}), []string{`the mount "x" is there twice`}},
		"server":         {with(func(e *gym.Environment[*desk]) { e.Server = func(*desk) *mcp.Server { return nil } }, gym.Mount{Connect: plain}), []string{"both Mounts and a Server"}},
		"own tool":       {with(func(e *gym.Environment[*desk]) { e.Tools = own }, gym.Mount{Prefix: "files", Connect: plain}), []string{`its tool "echo": the name "files_echo" is taken`}},
		"schema":         {with(none, gym.Mount{Prefix: "x", Connect: child(t, "odd")}), []string{`its tool "odd": its input schema is not usable`, `its tool "list": its input schema is not of type object`}},
		"only":           {with(none, gym.Mount{Prefix: "x", Connect: plain, Only: []string{"ecko"}}), []string{`has no tool "ecko", which Only names; it has echo, count`}},
		"dead":           {with(none, gym.Mount{Prefix: "x", Connect: child(t, "dead")}), []string{`the mount "x": `, "exit status 4"}},
		"mute":           {with(none, gym.Mount{Prefix: "x", Connect: child(t, "mute"), Start: 50 * time.Millisecond}), []string{"it was not ready within 50ms"}},
		"panic":          {with(none, gym.Mount{Prefix: "x", Connect: connector(func(context.Context) (gym.Upstream, error) { panic("boom") })}), []string{`the mount "x": `, "panic"}},
		"nil":            {with(none, gym.Mount{Prefix: "x", Connect: connector(func(context.Context) (gym.Upstream, error) { return nil, nil })}), []string{"its Connect returned nil"}},
		"reserved names": {with(none, gym.Mount{Connect: connector(func(context.Context) (gym.Upstream, error) { return resetting{newFake()}, nil })}), []string{`its tool "reset": as "reset": the names`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			class, err := c.env.Compile(t.Context(), tools.ModeSimulation)
			if err == nil {
				class.Close()
				t.Fatal("it compiled")
			}
			for _, w := range c.words {
				want(t, err.Error(), w)
			}
		})
	}
}

type resetting struct{ *fake }

func (resetting) ListTools(context.Context) ([]*mcp.Tool, error) {
	return []*mcp.Tool{{Name: "reset", InputSchema: map[string]any{"type": "object"}}}, nil
}

func TestModesOnlyAndDeadline(t *testing.T) {
	fakes := connector(func(context.Context) (gym.Upstream, error) { return newFake(), nil })
	env := deskEnv(
		gym.Mount{Prefix: "x", Connect: fakes, Mode: tools.ModeSimulation, Deadline: time.Hour},
		gym.Mount{Prefix: "x", Connect: fakes, Mode: tools.ModeProduction, Shared: true},
		gym.Mount{Connect: fakes, Mode: tools.ModeProduction},
		gym.Mount{Prefix: "none", Connect: fakes, Only: []string{}},
	)
	for mode, wanted := range map[tools.Mode][]string{tools.ModeSimulation: {"x_a"}, tools.ModeProduction: {"a", "x_a"}} {
		class, err := env.Compile(t.Context(), mode)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range class.Tools {
			names = append(names, tool.Name)
		}
		slices.Sort(names)
		if diff := cmp.Diff(wanted, names); diff != "" {
			t.Error(mode, diff)
		}
		if d := class.Traits("x_a").Deadline; (d == time.Hour) != (mode == tools.ModeSimulation) {
			t.Errorf("%s has a deadline of %v", mode, d)
		}
		class.Close()
	}
}

// A server that stays away is not asked at each call, and less and less often.
func TestReconnectingBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("away")
		up, asked := newFake(), 0
		var there gym.Upstream = up
		env := deskEnv(gym.Mount{Prefix: "x", Shared: true, Connect: connector(func(context.Context) (gym.Upstream, error) {
			if asked++; there == nil {
				return nil, away
			}
			return there, nil
		})})
		class := compile(t, env, newJournal())
		i := open(t, class, newJournal())
		up.lose(&tools.Error{Type: tools.TransportError, Message: "lost"})
		there = nil
		for _, pause := range []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second} {
			before := asked
			want(t, use(t, i, "x_a"), "it could not be reached;")
			want(t, use(t, i, "x_a"), "not tried again for "+pause.String())
			if asked != before+1 {
				t.Errorf("asked %d times", asked-before)
			}
			time.Sleep(pause)
		}
		there = newFake()
		want(t, use(t, i, "x_a"), "null")
	})
}

// A call that has not reached the server is made again, once; any other is not.
func TestOnlyUnsentCallsAreMadeAgain(t *testing.T) {
	sent := &tools.Error{Type: tools.TransportError, Message: "sent"}
	unsent := &tools.Error{Type: tools.TransportError, Message: "unsent", Err: gym.ErrNotSent}
	for _, c := range []struct {
		err     error
		restart bool
		want    string
	}{{sent, true, "sent"}, {unsent, true, "null"}, {unsent, false, "unsent"}} {
		var ups []*dying
		env := deskEnv(gym.Mount{Connect: connector(func(context.Context) (gym.Upstream, error) {
			ups = append(ups, &dying{newFake(), c.err, len(ups) < 2}) // the first is that of Compile
			return ups[len(ups)-1], nil
		}), Restart: c.restart})
		i := open(t, compile(t, env, newJournal()), newJournal())
		want(t, use(t, i, "a"), c.want)
	}
}

// A dying upstream is lost by its first call.
type dying struct {
	*fake
	err error
	die bool
}

func (d *dying) CallTool(context.Context, string, []byte, func(*mcp.ProgressNotificationParams)) (*mcp.CallToolResult, error) {
	if !d.die {
		return &mcp.CallToolResult{}, nil
	}
	d.die = false
	d.lose(nil)
	return nil, d.err
}
