package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A world counts what happens to its values; its tools behave and misbehave.
type world struct {
	begun          atomic.Int64 // calls of New
	opened, closed atomic.Int64
	fail           func(ctx context.Context, n int64) error // of New, by its count
}

type value struct {
	w       *world
	running atomic.Int32
	calls   []string
}

type nap struct {
	Name   string        `json:"name,omitempty"`
	Time   time.Duration `json:"time,omitempty"`
	Ignore bool          `json:"ignore,omitempty" jsonschema:"sleep on when the context has ended"`
}

func (v *value) nap(ctx context.Context, in nap) (string, error) {
	if v.running.Add(1) != 1 {
		panic("calls overlap")
	}
	defer v.running.Add(-1)
	v.calls = append(v.calls, in.Name)
	t := time.NewTimer(in.Time)
	defer t.Stop()
	done := ctx.Done()
	if in.Ignore {
		done = nil
	}
	select {
	case <-t.C:
		return in.Name, nil
	case <-done:
		return "", ctx.Err()
	}
}

func (w *world) env() gym.Environment[*value] {
	return gym.Environment[*value]{
		Name: "world",
		New: func(ctx context.Context, s *gym.Session) (*value, error) {
			n := w.begun.Add(1)
			if w.fail != nil {
				if err := w.fail(ctx, n); err != nil {
					return nil, err
				}
			}
			w.opened.Add(1)
			return &value{w: w}, nil
		},
		Tools: tools.New(tools.Func("nap", "Sleep.", (*value).nap)),
		Reset: gym.Reset(func(v *value, ctx context.Context, r gym.ResetRequest[nap]) (tools.None, error) {
			_, err := v.nap(ctx, r.Options)
			return tools.None{}, err
		}),
		After: func(*value, context.Context, gym.ToolCall) gym.Score { return gym.Score{Reward: gym.Number(1)} },
		Close: func(v *value) error {
			if v.running.Load() != 0 {
				panic("closed while a call runs")
			}
			w.closed.Add(1)
			return nil
		},
	}
}

func (w *world) manager(t *testing.T, o Options) *Manager {
	t.Helper()
	class, err := w.env().Compile(t.Context(), tools.ModeSimulation)
	if err != nil {
		t.Fatal(err)
	}
	m := NewManager(class, o)
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		class.Close()
		if m.Active() != 0 {
			t.Errorf("%d slots are taken after the end", m.Active())
		}
		if w.opened.Load() != w.closed.Load() {
			t.Errorf("%d values were opened and %d closed", w.opened.Load(), w.closed.Load())
		}
	})
	return m
}

func (m *Manager) mustOpen(t *testing.T, o Origin) *Session {
	t.Helper()
	s, err := m.Open(t.Context(), o, "")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func call(ctx context.Context, s *Session, args string) (gym.ToolAnswer, error) {
	return s.CallTool(ctx, &mcp.CallToolRequest{
		Params: &mcp.CallToolParamsRaw{Name: "nap", Arguments: []byte(args)}, Extra: &mcp.RequestExtra{},
	}, 0)
}

func codeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func TestDeadlineEndsTheWaitExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{ToolTimeout: 3 * time.Second})
		s := m.mustOpen(t, ByCreate)
		start := time.Now()
		a, err := call(t.Context(), s, `{"time":10000000000,"ignore":true}`)
		if err != nil || a.Err == nil || a.Err.Type != tools.Timeout || time.Since(start) != 3*time.Second {
			t.Fatalf("got %v, %v after %v; want a time-out after 3s", a.Err, err, time.Since(start))
		}
		var timeout *TimeoutError
		if !errors.As(a.Err, &timeout) || !timeout.Ran {
			t.Errorf("the cause is %v, want a TimeoutError of a call that ran", a.Err.Err)
		}
		// The handler ignores its context and keeps the turn: the next call times out in the queue, and counts.
		a, err = call(t.Context(), s, `{}`)
		if err != nil || a.Err == nil || !errors.As(a.Err, &timeout) || timeout.Ran || time.Since(start) != 6*time.Second {
			t.Fatalf("got %v, %v after %v; want a time-out in the queue after 6s", a.Err, err, time.Since(start))
		}
		// It returns at 10 s; what comes then is served, in time.
		a, err = call(t.Context(), s, `{}`)
		if err != nil || a.Err == nil {
			t.Fatalf("got %v, %v", a.Err, err)
		}
		a, err = call(t.Context(), s, `{"name":"x"}`)
		if err != nil || a.Err != nil || time.Since(start) != 10*time.Second {
			t.Fatalf("got %v, %v after %v", a.Err, err, time.Since(start))
		}
		e := s.Episode()
		if e.Steps != 4 || s.Steps() != 4 || e.RewardTotal != 1 {
			t.Errorf("counters %+v and %d: want 4 steps of which one is rewarded", e, s.Steps())
		}
	})
}

func TestPerCallLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		s := w.manager(t, Options{}).mustOpen(t, ByCreate)
		start := time.Now()
		action := gym.Action{Kind: gym.CallTool, Tool: "nap", Arguments: []byte(`{"time":60000000000}`)}
		o, err := s.Step(t.Context(), action, 2*time.Second)
		if err != nil || time.Since(start) != 2*time.Second {
			t.Fatalf("got %v, %v after %v", o, err, time.Since(start))
		}
		start = time.Now()
		if _, err := s.Step(t.Context(), action, 0); err != nil || time.Since(start) != DefaultToolTimeout {
			t.Fatalf("got %v after %v, want the default deadline", err, time.Since(start))
		}
	})
}

func TestResetHasItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{})
		s := m.mustOpen(t, ByCreate)
		p, err := m.Class().ParseReset([]byte(`{"episode_id":"e1","time":240000000000}`), false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Reset(t.Context(), p, 0); err != nil {
			t.Fatalf("four minutes are in time: %v", err)
		}
		p, _ = m.Class().ParseReset([]byte(`{"episode_id":"e2","time":600000000000}`), false)
		start := time.Now()
		_, err = s.Reset(t.Context(), p, 0)
		var timeout *TimeoutError
		if !errors.As(err, &timeout) || time.Since(start) != DefaultResetTimeout {
			t.Fatalf("got %v after %v, want a time-out after %v", err, time.Since(start), DefaultResetTimeout)
		}
		if e := s.Episode(); e.ID != "e2" || e.Steps != 0 {
			t.Errorf("episode %+v: a reset that began has begun a new episode", e)
		}
	})
}

func TestCallsRunInOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{})
		s := m.mustOpen(t, ByCreate)
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				if a, err := call(t.Context(), s, fmt.Sprintf(`{"name":"%d","time":1000000000}`, i)); err != nil || a.Err != nil {
					t.Error(a.Err, err)
				}
			})
			synctest.Wait() // call i is in the queue before call i+1 comes
		}
		start := time.Now()
		wg.Wait()
		if d := time.Since(start); d != 20*time.Second {
			t.Errorf("20 calls of 1s took %v", d)
		}
		if s.Steps() != 20 {
			t.Errorf("%d steps", s.Steps())
		}
	})
}

func TestCallerWhoGivesUpLeavesNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{})
		s := m.mustOpen(t, ByCreate)
		gone := errors.New("gone")
		running, stopRunning := context.WithCancelCause(t.Context())
		waiting, stopWaiting := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := call(running, s, `{"name":"running","time":20000000000}`); !errors.Is(err, gone) {
				t.Errorf("the running call returned %v, want the cause of its context", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			if _, err := call(waiting, s, `{"name":"waiting"}`); !errors.Is(err, gone) {
				t.Errorf("the waiting call returned %v, want the cause of its context", err)
			}
		})
		synctest.Wait()
		stopWaiting(gone)
		synctest.Wait()
		if s.Steps() != 0 {
			t.Errorf("a call that was cancelled before its turn has counted")
		}
		stopRunning(gone)
		wg.Wait()
		if s.Steps() != 1 {
			t.Errorf("%d steps; a call that was cancelled while it ran may have changed the world", s.Steps())
		}
		if a, err := call(t.Context(), s, `{"name":"next"}`); err != nil || a.Err != nil {
			t.Error(a.Err, err)
		}
	})
}

func TestCloseCancelsAndFreesTheSlotLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1})
		s := m.mustOpen(t, ByCreate)
		start := time.Now()
		var wg sync.WaitGroup
		for _, name := range []string{"running", "waiting"} {
			wg.Go(func() {
				if _, err := call(t.Context(), s, `{"name":"`+name+`","time":10000000000,"ignore":true}`); codeOf(err) != Closed {
					t.Errorf("the %s call returned %v, want Closed", name, err)
				}
				if d := time.Since(start); d != time.Second {
					t.Errorf("the %s call returned after %v, want at the close", name, d)
				}
			})
			synctest.Wait()
		}
		time.Sleep(time.Second)
		short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := s.Close(short, "test"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close returned %v before the handler did", err)
		}
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != CapacityReached {
			t.Errorf("the slot is free while a handler runs: %v", err)
		}
		if _, err := m.Get(s.ID); codeOf(err) != Unknown {
			t.Errorf("a closing session is found: %v", err)
		}
		if err := s.Close(t.Context(), "again"); err != nil || time.Since(start) != 10*time.Second {
			t.Errorf("Close returned %v after %v, want after the handler's 10s", err, time.Since(start))
		}
		wg.Wait()
		if w.closed.Load() != 1 || m.Active() != 0 {
			t.Errorf("%d values closed, %d slots taken", w.closed.Load(), m.Active())
		}
	})
}

func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{IdleTimeout: time.Minute, ToolTimeout: time.Hour})
		s := m.mustOpen(t, ByCreate)
		start := time.Now()
		time.Sleep(50 * time.Second)
		if _, err := call(t.Context(), s, `{"time":100000000000}`); err != nil { // longer than the time-out: not idle
			t.Fatal(err)
		}
		<-s.done
		if d := time.Since(start); d != 210*time.Second {
			t.Errorf("the session ended after %v; want a minute after its last call ended at 150s", d)
		}
		held := m.mustOpen(t, ByGymSocket)
		attached := m.mustOpen(t, ByCreate)
		if _, _, err := m.Attach(t.Context(), attached.ID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if m.Active() != 2 {
			t.Fatalf("%d sessions, want the two that sockets hold", m.Active())
		}
		start = time.Now()
		attached.Release(t.Context(), Attached)
		<-attached.done
		if d := time.Since(start); d != time.Minute {
			t.Errorf("the detached session ended after %v, want after a minute", d)
		}
		held.Release(t.Context(), Owner)
		if m.Active() != 0 {
			t.Error("a session outlives the socket that owns it")
		}
	})
}

func TestNeverIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{IdleTimeout: -1})
		m.mustOpen(t, ByCreate)
		time.Sleep(1000 * time.Hour)
		if m.Active() != 1 {
			t.Error("the session was reaped")
		}
	})
}

func sequence() func() string {
	var n atomic.Int64
	return func() string { return fmt.Sprintf("id%d", n.Add(1)) }
}
