package gymtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// Run checks env, each check in a subtest; see the package's documentation for what they look at. Every fault fails the
// subtest that found it, with a message for the environment's author; one that several checks run into is told in full by
// the first. Run must not be called in a bubble of testing/synctest.
func Run(t *testing.T, env gym.Definition, opts ...Option) {
	t.Helper()
	c := configOf(opts)
	tell := teller{}
	// Not within the subtest: the others need to know, though `go test -run` may leave this one out.
	var modes []tools.Mode
	var compiled report
	for _, mode := range bothModes {
		r := inBubble(t, env, mode, c, compiles)
		compiled.problems, compiled.notes = append(compiled.problems, r.problems...), append(compiled.notes, r.notes...)
		if len(r.problems) == 0 && !r.empty {
			modes = append(modes, mode)
		}
	}
	if len(modes) == 0 && len(compiled.problems) == 0 {
		compiled.problems = []problem{{text: "the environment has nothing to call in any mode: no tools, and no action type of its own"}}
	}
	t.Run("compile", func(t *testing.T) { t.Helper(); tell.all(t, &compiled) })
	if len(modes) == 0 {
		if !t.Failed() {
			tell.all(t, &compiled)
		}
		return
	}
	for _, ch := range checks {
		t.Run(ch.name, func(t *testing.T) {
			t.Helper()
			if len(ch.modes) == 1 {
				if !slices.Contains(modes, ch.modes[0]) {
					t.Skipf("the environment has nothing to call in %s mode", ch.modes[0])
				}
				tell.all(t, inBubble(t, env, ch.modes[0], c, ch.run))
				return
			}
			for _, mode := range ch.modes {
				t.Run(string(mode), func(t *testing.T) {
					t.Helper()
					if !slices.Contains(modes, mode) {
						t.Skip("the environment has nothing to call in this mode")
					}
					tell.all(t, inBubble(t, env, mode, c, ch.run))
				})
			}
		})
	}
}

// A check looks at one side of an environment, on a bench of its own.
type check struct {
	name  string
	modes []tools.Mode
	run   func(*bench)
}

var (
	simulation = []tools.Mode{tools.ModeSimulation}
	production = []tools.Mode{tools.ModeProduction}
	bothModes  = []tools.Mode{tools.ModeSimulation, tools.ModeProduction}
)

var checks = []check{
	{"doors", bothModes, checkDoors},
	{"schema", bothModes, checkSchema},
	{"seeds", simulation, checkSeeds},
	{"sessions", simulation, checkSessions},
	{"input", bothModes, checkInput},
	{"ends", bothModes, checkEnds},
	{"production", production, checkProduction},
}

// A report is what a check has found.
type report struct {
	problems []problem
	notes    []string // what was not looked at, and hints
	empty    bool     // there is nothing to call in this mode
}

// A bench is where a check runs: in a bubble, with the environment in one mode.
type bench struct {
	report
	env    gym.Definition
	mode   tools.Mode
	config *config
	log    *journal
	script *script // of all servers: made once, since that takes longer than to play it
	live   []*served
	stuck  bool // a function of the environment has not returned, so that a server could not stop
}

// problem reports what is wrong.
func (b *bench) problem(format string, args ...any) {
	b.problems = append(b.problems, problem{text: fmt.Sprintf(format, args...)})
}

func (b *bench) note(format string, args ...any) {
	if n := fmt.Sprintf(format, args...); !slices.Contains(b.notes, n) {
		b.notes = append(b.notes, n)
	}
}

// serve serves the environment until the check ends, or the caller stops it. It reports why it cannot, and returns nil.
func (b *bench) serve() *served {
	s, err := serve(b.env, b.mode, b.log)
	if err != nil {
		b.problem("the environment cannot be served in %s mode: %v", b.mode, err)
		return nil
	}
	b.live = append(b.live, s)
	if b.script == nil {
		made, err := scriptOf(s.class, b.config)
		if err != nil {
			b.problem("%v", err)
			return nil
		}
		b.script = &made
		for _, n := range made.notes {
			b.note("%s", n)
		}
	}
	return s
}

// stop stops a server, and reports what did not end.
func (b *bench) stop(s *served) {
	if err := s.stop(); err != nil && !b.stuck {
		b.stuck = true
		b.problems = append(b.problems, problem{key: "stuck", text: fmt.Sprintf(
			"the server could not stop: %v\nA function of the environment has not returned 5 s after its session was closed.", err)})
	}
}

// inBubble runs a check in a bubble of its own.
func inBubble(t *testing.T, env gym.Definition, mode tools.Mode, c *config, run func(*bench)) *report {
	b := &bench{env: env, mode: mode, config: c, log: &journal{}}
	finished := false
	func() {
		// Goroutines that are left in a bubble make it panic; who they are is in the report by then.
		defer func() {
			if r := recover(); r != nil && !b.stuck && !slices.ContainsFunc(b.problems, func(p problem) bool { return strings.HasPrefix(p.key, "leak ") }) {
				b.problem("the bubble of fake time ended badly: %v", r)
			}
		}()
		defer hangs(t, b)()
		synctest.Test(t, func(t *testing.T) {
			run(b)
			for _, s := range b.live {
				b.stop(s)
			}
			b.problems = append(b.log.problems(), b.problems...)
			if !b.stuck { // else all that hangs on that function is left too
				b.problems = append(b.problems, b.unclosed()...)
				b.problems = append(b.problems, leaks()...)
			}
			finished = true
		})
	}()
	if !finished && len(b.problems) == 0 {
		b.problem("the check did not finish")
	}
	return &b.report
}

// unclosed holds the log to one end for each session.
func (b *bench) unclosed() []problem {
	opened, closed := map[string]int{}, map[string]int{}
	for _, e := range b.log.all() {
		switch e.event {
		case "session_open":
			opened[e.text("session")]++
		case "session_close":
			closed[e.text("session")]++
		}
	}
	for id, n := range opened {
		if closed[id] != n {
			return []problem{{key: "unclosed", text: fmt.Sprintf(
				"%d of %d sessions were opened, and their values not closed exactly once. A function of the environment that has not returned keeps its session from ending.",
				len(opened)-len(closed), len(opened))}}
		}
	}
	return nil
}

// compiles compiles the environment, and tells whether there is something to call.
func compiles(b *bench) {
	class, err := b.env.Compile(context.Background(), b.mode)
	if err != nil {
		b.problems = append(b.problems, problem{"compile " + err.Error(), fmt.Sprintf("it does not compile for %s mode: %v", b.mode, err)})
		return
	}
	if b.empty = len(class.Tools) == 0 && !(class.OwnActions() && b.mode == tools.ModeSimulation); b.empty {
		b.note("nothing to call in %s mode, so there is nothing to check there", b.mode)
	}
	class.Close()
}

// A teller reports to the test: by a problem's key, the subtest that has told it.
type teller map[string]string

// tester is what a teller needs of a *testing.T.
type tester interface {
	Helper()
	Name() string
	Log(...any)
	Error(...any)
}

func (told teller) all(t tester, r *report) {
	t.Helper()
	for _, n := range r.notes {
		if _, ok := told["note "+n]; !ok {
			told["note "+n] = t.Name()
			t.Log(n)
		}
	}
	for _, p := range r.problems {
		if first, ok := told[p.key]; ok && p.key != "" {
			line, _, _ := strings.Cut(p.text, "\n")
			t.Error(fmt.Sprintf("%s (see %s)", line, first))
			continue
		}
		told[p.key] = t.Name()
		t.Error(p.text)
	}
}
