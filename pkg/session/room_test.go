package session

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// looked is a channel whose silence is what a function says, which may do things meanwhile.
type looked func() time.Duration

func (l looked) Silence() time.Duration { return l() }

func (m *Manager) openSilent(t *testing.T, silence time.Duration) *Session {
	t.Helper()
	s := m.mustOpen(t, ByGymSocket)
	s.Watch(Owner, silent(silence))
	return s
}

// Room that two newcomers have made is theirs in order, whichever session ends first.
func TestRoomIsGivenInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 2})
		first, second := m.openSilent(t, 60*time.Second), m.openSilent(t, 50*time.Second)
		go call(t.Context(), first, `{"time":2000000000,"ignore":true}`)
		go call(t.Context(), second, `{"time":20000000000,"ignore":true}`)
		synctest.Wait()
		start := time.Now()
		var wg sync.WaitGroup
		for i, want := range []struct {
			code  Code
			after time.Duration
		}{{0, 2 * time.Second}, {CapacityReached, 6 * time.Second}} {
			wg.Go(func() {
				_, err := m.Open(t.Context(), ByCreate, "")
				if d := time.Since(start); codeOf(err) != want.code || d != want.after {
					t.Errorf("newcomer %d: %v after %v; want code %d after %v", i, err, d, want.code, want.after)
				}
			})
			synctest.Wait()
			time.Sleep(time.Second)
		}
		wg.Wait()
	})
}

// A newcomer that finds the queue full does not pass those in it: the room that it makes is for the first.
func TestRoomGoesToTheFrontOfTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1, Queue: 1})
		m.openSilent(t, time.Minute)
		start := time.Now()
		var wg sync.WaitGroup
		for i, want := range []time.Duration{time.Second, 3 * time.Second} {
			wg.Go(func() {
				s, err := m.Open(t.Context(), ByCreate, "")
				if err != nil || time.Since(start) != want {
					t.Errorf("newcomer %d: %v after %v, want %v", i, err, time.Since(start), want)
					return
				}
				time.Sleep(2 * time.Second)
				s.Close(t.Context(), "test")
			})
			synctest.Wait()
			if i == 1 { // the first has its slot, the second its place
				if openers, _ := m.Waiting(); openers != 1 || m.Active() != 1 {
					t.Errorf("%d wait and %d are active", openers, m.Active())
				}
			}
			time.Sleep(time.Second)
		}
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != CapacityReached {
			t.Errorf("a third got %v; the queue is full, and nobody silent", err)
		}
		wg.Wait()
		if m.extras != 0 || m.making != 0 {
			t.Errorf("%d extras and %d makings are left", m.extras, m.making)
		}
	})
}

// A silent session keeps its slot if another becomes free just before it would be closed.
func TestNoRoomIsMadeInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 2})
		other, spared := m.mustOpen(t, ByCreate), m.mustOpen(t, ByGymSocket)
		looks := 0
		spared.Watch(Owner, looked(func() time.Duration {
			if looks++; looks == 2 { // the newcomer waits by now
				other.Close(context.Background(), "ended by itself")
			}
			return time.Minute
		}))
		m.mustOpen(t, ByCreate)
		if got := spared.Info().State; got != "open" {
			t.Errorf("the silent session is %s, and there are %d of 2", got, m.Active())
		}
	})
}

// One that speaks between the two looks is spared, and the newcomer refused.
func TestWhoSpeaksIsNotClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1})
		s := m.mustOpen(t, ByGymSocket)
		looks := 0
		s.Watch(Owner, looked(func() time.Duration {
			if looks++; looks == 1 {
				return time.Minute
			}
			return 0
		}))
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != CapacityReached || s.Info().State != "open" {
			t.Errorf("the newcomer got %v, and the session is %s", err, s.Info().State)
		}
	})
}

func TestAsManyNewcomersAsSilentSessions(t *testing.T) {
	const n = 4
	for range 50 {
		w := &world{}
		m := w.manager(t, Options{Max: n})
		for range n {
			m.openSilent(t, time.Minute)
		}
		var wg sync.WaitGroup
		for range n {
			wg.Go(func() { m.mustOpen(t, ByCreate) })
		}
		wg.Wait()
	}
}

// A stop dismisses a newcomer for whom room is being made.
func TestStopWhileRoomIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1})
		s := m.openSilent(t, time.Minute)
		go call(t.Context(), s, `{"time":4000000000,"ignore":true}`)
		synctest.Wait()
		start := time.Now()
		told := make(chan error, 1)
		go func() {
			_, err := m.Open(t.Context(), ByCreate, "")
			told <- err
		}()
		synctest.Wait()
		m.Refuse()
		if err := <-told; codeOf(err) != ShuttingDown || time.Since(start) != 0 {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

// A slot that is handed to an opener just as it leaves goes on to the next.
func TestSlotHandedToOneWhoLeaves(t *testing.T) {
	for _, warm := range []int{0, 1} {
		for range 50 {
			w := &world{}
			m := w.manager(t, Options{Max: 1, Queue: 2, Warm: warm})
			s := m.mustOpen(t, ByCreate)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() {
				if s, err := m.Open(ctx, ByCreate, ""); err == nil {
					s.Close(t.Context(), "it came all the same")
				}
			})
			for openers := 0; openers != 1; {
				openers, _ = m.Waiting()
			}
			wg.Go(cancel)
			wg.Go(func() { s.Close(t.Context(), "test") })
			wg.Wait()
			m.mustOpen(t, ByCreate) // waits for the slot, if need be
		}
	}
}

// What an operator reads of a stuck session.
func TestQueueLengthBesideAGivenUpCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{ToolTimeout: 2 * time.Second})
		s := m.mustOpen(t, ByCreate)
		call(t.Context(), s, `{"time":20000000000,"ignore":true}`)
		var wg sync.WaitGroup
		wg.Go(func() { call(t.Context(), s, `{}`) })
		synctest.Wait()
		if i := s.Info(); len(i.Running) != 1 || i.Queued != 1 {
			t.Errorf("%d run and %d wait; want 1 and 1", len(i.Running), i.Queued)
		}
		wg.Wait()
		if i := s.Info(); len(i.Running) != 1 || i.Queued != 0 {
			t.Errorf("%d run and %d wait; want 1 and none", len(i.Running), i.Queued)
		}
	})
}

// What is built ahead and ends with a stop is nobody's.
func TestActiveWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.fail = func(context.Context, int64) error { time.Sleep(time.Second); return nil } // New does not heed
		m := w.manager(t, Options{Warm: 3})
		m.mustOpen(t, ByCreate)
		m.Refuse()
		if m.Active() != 1 || len(m.List()) != 1 {
			t.Errorf("%d are active and %d listed, want the one that was opened", m.Active(), len(m.List()))
		}
	})
}

// An opener is told in time, whatever New does.
func TestOpenersOfASlowNewAreTold(t *testing.T) {
	for how, want := range map[string]struct {
		code  Code
		after time.Duration
	}{"time": {FactoryFailed, DefaultResetTimeout + stuckAfter}, "ended": {Closed, time.Minute}, "stop": {ShuttingDown, time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{}
			w.fail = func(context.Context, int64) error { time.Sleep(time.Hour); return nil }
			m := w.manager(t, Options{})
			start := time.Now()
			told := make(chan error, 1)
			go func() {
				_, err := m.Open(t.Context(), ByCreate, "")
				told <- err
			}()
			synctest.Wait()
			time.Sleep(time.Minute)
			switch s, err := m.Find(m.List()[0].ID); {
			case err != nil:
				t.Fatal(err)
			case how == "ended":
				go s.Close(context.Background(), "by an operator")
			case how == "stop":
				go m.Shutdown(context.Background())
			}
			if err := <-told; codeOf(err) != want.code || time.Since(start) != want.after {
				t.Errorf("%s: %v after %v; want code %d after %v", how, err, time.Since(start), want.code, want.after)
			}
			if m.Active() != 1 {
				t.Errorf("%s: %d slots; New has not returned", how, m.Active())
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if m.Active() != 0 {
				t.Errorf("%s: %d slots; New has returned", how, m.Active())
			}
		})
	}
}

// A call that ends with its time belongs to its episode, though a reset waits for its turn.
func TestTimeOutsCountInTheirEpisode(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			w := &world{}
			s := w.manager(t, Options{ToolTimeout: time.Second}).mustOpen(t, ByCreate)
			var wg sync.WaitGroup
			wg.Go(func() { call(t.Context(), s, `{"time":60000000000}`) })
			synctest.Wait()
			wg.Go(func() { s.Reset(t.Context(), gym.ResetParams{}, 0) })
			wg.Wait()
			if e := s.Episode(); e.Steps != 0 || s.Steps() != 1 {
				t.Errorf("the new episode has %d steps, and the session %d", e.Steps, s.Steps())
			}
		})
	}
}

// Nobody is told of a New that has returned when its session was ended.
func TestQuickNewIsNotCalledStuck(t *testing.T) {
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			log := &events{}
			w := &world{}
			m := w.manager(t, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
			ctx, cancel := context.WithCancel(t.Context())
			w.fail = func(context.Context, int64) error { cancel(); return nil }
			m.Open(ctx, ByCreate, "")
			time.Sleep(time.Minute)
			if text := log.String(); strings.Contains(text, "stuck") {
				t.Fatal(text)
			}
		})
	}
}

// events is a log that can be read while it is written.
type events struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (e *events) Write(b []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.buf.Write(b)
}

func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.buf.String()
}
