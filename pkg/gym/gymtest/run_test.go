package gymtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// A listener takes what a test would print.
type listener struct {
	name         string
	errors, logs []string
}

func (*listener) Helper()          {}
func (l *listener) Name() string   { return l.name }
func (l *listener) Log(v ...any)   { l.logs = append(l.logs, fmt.Sprint(v...)) }
func (l *listener) Error(v ...any) { l.errors = append(l.errors, fmt.Sprint(v...)) }

func TestFaultsAreToldInFullOnce(t *testing.T) {
	tell := teller{}
	r := &report{
		problems: []problem{{key: "k", text: "it panicked\nat length"}, {text: "first\nof its own"}},
		notes:    []string{"by the way"},
	}
	a, b := &listener{name: "TestEnv/a"}, &listener{name: "TestEnv/b"}
	tell.all(a, r)
	tell.all(b, r)
	if want := []string{"it panicked\nat length", "first\nof its own"}; !slices.Equal(a.errors, want) || len(a.logs) != 1 {
		t.Errorf("at first: %q, %q", a.errors, a.logs)
	}
	if want := []string{"it panicked (see TestEnv/a)", "first\nof its own"}; !slices.Equal(b.errors, want) || len(b.logs) != 0 {
		t.Errorf("then: %q, %q", b.errors, b.logs)
	}
}

// childEnvs are environments that Run must fail on; each is run in a process of its own by TestRunFails.
var childEnvs = map[string]gym.Definition{
	"leak": boxEnv((*box).add, func(e *gym.Environment[*box]) {
		e.New = func(context.Context, *gym.Session) (*box, error) {
			b := &box{stop: make(chan struct{})}
			go worker(b.stop)
			return b, nil
		}
	}),
	"hang": boxEnv((*box).add, func(e *gym.Environment[*box]) {
		e.New = func(context.Context, *gym.Session) (*box, error) {
			r, w, err := os.Pipe() // as of a process that says nothing
			go func() {
				defer w.Close()
				_, _ = io.ReadAll(r)
			}()
			return &box{}, err
		}
	}),
	"nothing": gym.Environment[*box]{Name: "nothing"},
}

const childVariable = "GYMTEST_CHILD"

func TestChild(t *testing.T) {
	env, ok := childEnvs[os.Getenv(childVariable)]
	if !ok {
		t.Skip("it is run by TestRunFails")
	}
	Run(t, env)
}

// TestRunFails: what a user of Run sees, where a report alone does not show it.
func TestRunFails(t *testing.T) {
	for _, c := range []struct {
		env, pattern, timeout string
		want, without         []string
	}{
		{
			env: "leak", pattern: "TestChild", timeout: "1m",
			want: []string{
				"--- FAIL: TestChild/doors/simulation", "--- FAIL: TestChild/production",
				"a goroutine outlives its session", "gymtest.worker", "(see TestChild/doors/simulation)",
			},
			without: []string{"deadlock", "panic:"},
		},
		{
			env: "leak", pattern: "TestChild/seeds", timeout: "1m",
			want: []string{"--- FAIL: TestChild/seeds", "a goroutine outlives its session"}, without: []string{"TestChild/compile", "TestChild/ends"},
		},
		{env: "hang", pattern: "TestChild/seeds", timeout: "6s", want: []string{"TestChild/seeds hangs in simulation mode", "io.ReadAll"}},
		{env: "nothing", pattern: "TestChild", timeout: "1m", want: []string{"--- FAIL: TestChild/compile", "it needs a New function", "nothing to call"}},
		{env: "nothing", pattern: "TestChild/seeds", timeout: "1m", want: []string{"--- FAIL: TestChild", "it needs a New function"}},
	} {
		t.Run(c.env+" "+c.pattern, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", c.pattern, "-test.timeout", c.timeout)
			cmd.Env = append(os.Environ(), childVariable+"="+c.env)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if err == nil || !hasWords(text, c.want...) {
				t.Errorf("%v; want %q in\n%s", err, c.want, text)
			}
			for _, w := range c.without {
				if strings.Contains(text, w) {
					t.Errorf("%q in\n%s", w, text)
				}
			}
		})
	}
}
