package session

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestCapacity(t *testing.T) {
	w := &world{}
	m := w.manager(t, Options{Max: 2})
	a := m.mustOpen(t, ByCreate)
	m.mustOpen(t, ByGymSocket)
	_, err := m.Open(t.Context(), ByCreate, "")
	var e *Error
	if !errors.As(err, &e) || e.Code != CapacityReached || e.Active != 2 || e.Max != 2 {
		t.Fatalf("got %#v", err)
	}
	if err := a.Close(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	m.mustOpen(t, Temporary)
}

func TestAttachWaitsForTheSocketBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{})
		s := m.mustOpen(t, ByCreate)
		if _, _, err := m.Attach(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, _, err := m.Attach(t.Context(), s.ID); codeOf(err) != Busy || time.Since(start) != 5*time.Second {
			t.Errorf("got %v after %v, want a refusal after 5s", err, time.Since(start))
		}
		start = time.Now()
		time.AfterFunc(3*time.Second, func() { s.Release(context.Background(), Attached) })
		if _, _, err := m.Attach(t.Context(), s.ID); err != nil || time.Since(start) != 3*time.Second {
			t.Errorf("got %v after %v, want the session when it is let go", err, time.Since(start))
		}
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(gone) })
		if _, _, err := m.Attach(ctx, s.ID); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		time.AfterFunc(time.Second, func() { s.Close(context.Background(), "test") })
		if _, _, err := m.Attach(t.Context(), s.ID); codeOf(err) != Unknown {
			t.Errorf("a session that closes meanwhile: %v", err)
		}
		own := m.mustOpen(t, ByMCPSocket)
		if _, _, err := m.Attach(t.Context(), own.ID); err != nil {
			t.Errorf("a session that a socket on /mcp owns has room for a gym channel: %v", err)
		}
		if closing, err := m.Close(t.Context(), own.ID); !closing || err != nil {
			t.Errorf("got %v, %v", closing, err)
		}
		own.Release(t.Context(), Owner)
		if m.Active() != 0 {
			t.Error("the session outlives the socket that owns it")
		}
	})
}

func TestOpenerWhoGoesLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := errors.New("gone")
		for _, heeds := range []bool{true, false} {
			ctx, cancel := context.WithCancelCause(t.Context())
			w := &world{}
			w.fail = func(ctx context.Context, _ int64) error {
				if heeds {
					<-ctx.Done()
					return ctx.Err()
				}
				time.Sleep(10 * time.Second)
				return nil
			}
			m := w.manager(t, Options{})
			time.AfterFunc(time.Second, func() { cancel(gone) })
			start := time.Now()
			if _, err := m.Open(ctx, ByCreate, ""); !errors.Is(err, gone) || time.Since(start) != time.Second {
				t.Errorf("got %v after %v", err, time.Since(start))
			}
			if !heeds {
				time.Sleep(10 * time.Second) // New returns
			}
			synctest.Wait()
			if m.Active() != 0 || !heeds && w.closed.Load() != 1 {
				t.Errorf("%d slots taken, %d values closed", m.Active(), w.closed.Load())
			}
		}
	})
}

func TestBuildingHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.fail = func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }
		m := w.manager(t, Options{})
		start := time.Now()
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != FactoryFailed || time.Since(start) != DefaultResetTimeout {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestTemporarySessionsAreNotFound(t *testing.T) {
	w := &world{}
	m := w.manager(t, Options{})
	s := m.mustOpen(t, Temporary)
	if _, err := m.Get(s.ID); codeOf(err) != Unknown {
		t.Errorf("got %v", err)
	}
}

func TestFactoryFailuresCostOnlyTheirCaller(t *testing.T) {
	w := &world{fail: func(_ context.Context, n int64) error {
		switch n % 3 {
		case 1:
			return errors.New("no luck")
		case 2:
			panic("bad luck")
		}
		return nil
	}}
	m := w.manager(t, Options{Max: 1})
	for range 3 {
		for _, want := range []Code{FactoryFailed, FactoryFailed, 0} {
			s, err := m.Open(t.Context(), ByCreate, "")
			if codeOf(err) != want {
				t.Fatalf("got %v, want code %v", err, want)
			}
			if s != nil {
				s.Close(t.Context(), "test")
			}
			if m.Active() != 0 {
				t.Fatal("the slot is not free")
			}
		}
	}
}

func TestSlowFactory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m *Manager
		w := &world{fail: func(_ context.Context, n int64) error {
			if n == 1 {
				time.Sleep(time.Minute)
			}
			return nil
		}}
		m = w.manager(t, Options{NewID: sequence()})
		var slow *Session
		var wg sync.WaitGroup
		wg.Go(func() { slow = m.mustOpen(t, ByCreate) })
		synctest.Wait()
		start := time.Now()
		m.mustOpen(t, ByCreate)
		if time.Since(start) != 0 {
			t.Errorf("another session waited %v for a slow factory", time.Since(start))
		}
		join := func(id string) (*Session, error) { s, _, err := m.Join(id); return s, err }
		attach := func(id string) (*Session, error) { s, _, err := m.Attach(t.Context(), id); return s, err }
		for _, f := range []func(string) (*Session, error){m.Get, attach, join} {
			if _, err := f("id1"); codeOf(err) != Initializing {
				t.Errorf("a session that is being built: %v", err)
			}
		}
		if _, err := m.Close(t.Context(), "id1"); codeOf(err) != Initializing {
			t.Errorf("closing a session that is being built: %v", err)
		}
		wg.Wait()
		if got, err := m.Get("id1"); err != nil || got != slow {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

func TestShutdownWhileBuilding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{fail: func(context.Context, int64) error { time.Sleep(time.Minute); return nil }}
		m := w.manager(t, Options{})
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != ShuttingDown {
				t.Errorf("got %v", err)
			}
		})
		synctest.Wait()
		if err := m.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != ShuttingDown {
			t.Errorf("got %v", err)
		}
		if w.opened.Load() != 1 || w.closed.Load() != 1 {
			t.Errorf("%d opened, %d closed", w.opened.Load(), w.closed.Load())
		}
	})
}

func TestCloseWaitsForTheSocket(t *testing.T) {
	w := &world{}
	m := w.manager(t, Options{})
	s := m.mustOpen(t, ByCreate)
	if _, _, err := m.Attach(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if closing, err := m.Close(t.Context(), s.ID); !closing || err != nil {
		t.Fatalf("got %v, %v", closing, err)
	}
	if a, err := call(t.Context(), s, `{}`); err != nil || a.Err != nil {
		t.Errorf("the session must serve until its socket goes: %v, %v", a.Err, err)
	}
	if err := s.Release(t.Context(), Attached); err != nil {
		t.Fatal(err)
	}
	if m.Active() != 0 {
		t.Error("the session did not end with its socket")
	}
	if _, err := m.Close(t.Context(), s.ID); codeOf(err) != Unknown {
		t.Errorf("got %v", err)
	}
}

// A call that waits when the session's end begins is told, and its handler does not start.
func TestWaitingCallsDoNotStartInAnEndingSession(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			w := &world{}
			m := w.manager(t, Options{})
			s := m.mustOpen(t, ByCreate)
			var wg sync.WaitGroup
			for _, name := range []string{"first", "second"} {
				wg.Go(func() {
					if _, err := call(t.Context(), s, `{"name":"`+name+`","time":1000000000}`); codeOf(err) != Closed {
						t.Errorf("%s: %v", name, err)
					}
				})
				synctest.Wait()
			}
			s.Close(t.Context(), "test")
			wg.Wait()
			if s.Steps() != 1 {
				t.Errorf("%d calls ran, want the first alone", s.Steps())
			}
		})
	}
}
