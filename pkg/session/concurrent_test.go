package session

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// A crowd notes who runs beside whom.
type crowd struct {
	t                      *testing.T
	together, most, scored atomic.Int32
	alone                  atomic.Bool
}

func (c *crowd) look(ctx context.Context, _ tools.None) (string, error) {
	n := c.together.Add(1)
	defer c.together.Add(-1)
	for {
		m := c.most.Load()
		if n <= m || c.most.CompareAndSwap(m, n) {
			break
		}
	}
	if c.alone.Load() {
		c.t.Error("a concurrent tool runs beside one that is not")
	}
	select {
	case <-time.After(time.Second):
		return "", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func (c *crowd) change(context.Context, tools.None) (string, error) {
	if c.alone.Swap(true) || c.together.Load() != 0 {
		c.t.Error("a tool runs beside others")
	}
	defer c.alone.Store(false)
	time.Sleep(time.Second)
	return "", nil
}

func (c *crowd) score(context.Context, gym.ToolCall) gym.Score {
	if c.scored.Add(1) != 1 {
		c.t.Error("two After run at once")
	}
	defer c.scored.Add(-1)
	time.Sleep(time.Millisecond)
	return gym.Score{Reward: gym.Number(1)}
}

func crowded(t *testing.T, o Options) *Session {
	env := gym.Environment[*crowd]{
		Name: "crowd",
		New:  func(context.Context, *gym.Session) (*crowd, error) { return &crowd{t: t}, nil },
		Tools: tools.New(
			tools.Func("look", "Look.", (*crowd).look, tools.Concurrent(), tools.Deadline(4*time.Second)),
			tools.Func("change", "Change.", (*crowd).change),
		),
		After: (*crowd).score,
	}
	class, err := env.Compile(t.Context(), tools.ModeSimulation)
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(class, o)
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		class.Close()
	})
	return m.mustOpen(t, ByCreate)
}

func callNamed(ctx context.Context, s *Session, tool string) (gym.ToolAnswer, error) {
	return s.CallTool(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: tool}, Extra: &mcp.RequestExtra{}}, 0)
}

func TestConcurrentToolsShareTheTurnInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := crowded(t, Options{})
		start := time.Now()
		ends := make([]time.Duration, 9)
		var wg sync.WaitGroup
		// Four look at once, then one changes, then four look: those who came later do not pass the change.
		for i := range ends {
			tool := "look"
			if i == 4 {
				tool = "change"
			}
			wg.Go(func() {
				if a, err := callNamed(t.Context(), s, tool); err != nil || a.Err != nil {
					t.Errorf("%s: %v, %v", tool, err, a.Err)
				}
				ends[i] = time.Since(start).Truncate(time.Second)
			})
			synctest.Wait()
		}
		if i := s.Info(); len(i.Running) != 4 || i.Queued != 5 || i.Running[0].What != `tool "look"` {
			t.Errorf("info %+v; want 4 running and 5 queued", i)
		}
		wg.Wait()
		for i, d := range ends {
			if want := []time.Duration{1, 1, 1, 1, 2, 3, 3, 3, 3}[i] * time.Second; d != want {
				t.Errorf("call %d ended after %v, want %v", i, d, want)
			}
		}
		if e := s.Episode(); e.Steps != 9 || e.RewardTotal != 9 || s.Steps() != 9 {
			t.Errorf("episode %+v, %d steps", e, s.Steps())
		}
		if s.Busy() != 0 {
			t.Errorf("%d calls are left", s.Busy())
		}
	})
}

func TestConcurrentCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := crowded(t, Options{})
		start := time.Now()
		var wg sync.WaitGroup
		for range turnSize + 1 {
			wg.Go(func() { callNamed(t.Context(), s, "look") })
		}
		wg.Wait()
		if d := time.Since(start).Truncate(time.Second); d != 2*time.Second {
			t.Errorf("%d calls of 1s took %v, want 2s", turnSize+1, d)
		}
	})
}

func TestToolsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := crowded(t, Options{ToolTimeout: time.Hour})
		var wg sync.WaitGroup
		start := time.Now()
		for range 4 {
			wg.Go(func() { callNamed(t.Context(), s, "change") })
			synctest.Wait()
		}
		// Four seconds of waiting, and some After, leave it nothing.
		a, err := callNamed(t.Context(), s, "look")
		if err != nil || a.Err == nil || a.Err.Type != tools.Timeout || time.Since(start) != 4*time.Second {
			t.Errorf("got %v, %v after %v; want a time-out after 4s", a.Err, err, time.Since(start))
		}
		wg.Wait()
	})
}

func TestClosingWaitsForAllConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := crowded(t, Options{})
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				if _, err := callNamed(t.Context(), s, "look"); codeOf(err) != Closed {
					t.Errorf("got %v, want Closed", err)
				}
			})
		}
		synctest.Wait()
		if err := s.Close(t.Context(), "test"); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if s.Steps() != 5 {
			t.Errorf("%d steps; a call that was cancelled while it ran counts", s.Steps())
		}
	})
}

// The caller's own deadline, if it is the first, is the caller's giving up and no time-out of the call's.
func TestLateCallersHaveGivenUp(t *testing.T) {
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(time.Hour))
	defer cancel()
	c := callContext{s: &Session{ctx: context.Background()}}
	c.begin(ctx, 2*time.Hour)
	defer c.release()
	c.deadline = time.Now()
	c.Context = expired{ctx, c.deadline}
	c.endIfLate()
	if !errors.Is(c.Err(), context.DeadlineExceeded) || errors.Is(c.why(), errDeadline) {
		t.Errorf("got %v because of %v", c.Err(), c.why())
	}
}

// expired is a context whose time is up, and whose timer is late.
type expired struct {
	context.Context
	deadline time.Time
}

func (e expired) Deadline() (time.Time, bool) { return e.deadline, true }

// What comes after the deadline is no answer, however late the timer is.
func TestLateAnswersAreTimeOuts(t *testing.T) {
	c := callContext{s: &Session{ctx: context.Background()}}
	c.begin(context.Background(), time.Hour)
	defer c.release()
	c.endIfLate()
	if c.Err() != nil {
		t.Fatal("ended in time")
	}
	c.deadline = time.Now() // as if the timer were an hour late
	c.endIfLate()
	if !errors.Is(c.Err(), context.DeadlineExceeded) || !errors.Is(c.why(), errDeadline) {
		t.Errorf("got %v because of %v", c.Err(), c.why())
	}
}
