package session

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestQueueIsFirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 2, Queue: 10, NewID: sequence()})
		held := []*Session{m.mustOpen(t, ByCreate), m.mustOpen(t, ByCreate)}
		var mu sync.Mutex
		var order []int
		var wg sync.WaitGroup
		for i := range 10 {
			wg.Go(func() {
				s := m.mustOpen(t, ByCreate)
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Second)
				s.Close(t.Context(), "test")
			})
			synctest.Wait() // i is in the queue before i+1 comes
		}
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != CapacityReached {
			t.Errorf("an eleventh got %v", err)
		}
		start := time.Now()
		for _, s := range held {
			s.Close(t.Context(), "test")
		}
		wg.Wait()
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("ten sessions of 1s in two slots took %v", d)
		}
		for i, got := range order {
			// Two slots become free at the same time, so neighbours may change places when they note their turn.
			if got/2 != i/2 {
				t.Errorf("the order was %v", order)
				break
			}
		}
	})
}

func TestAbandonedWaitsLeaveNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1, Queue: 10, QueueWait: time.Minute})
		s := m.mustOpen(t, ByCreate)
		gone := errors.New("gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := m.Open(ctx, ByCreate, ""); !errors.Is(err, gone) {
				t.Errorf("who gave up got %v", err)
			}
		})
		start := time.Now()
		wg.Go(func() {
			if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != CapacityReached || time.Since(start) != time.Minute {
				t.Errorf("who waited too long got %v after %v", err, time.Since(start))
			}
		})
		synctest.Wait()
		cancel(gone)
		wg.Wait()
		if m.queue.Len() != 0 || m.Active() != 1 {
			t.Errorf("%d wait, %d slots taken", m.queue.Len(), m.Active())
		}
		s.Close(t.Context(), "test")
		m.mustOpen(t, ByCreate)
		if w.opened.Load() != 2 {
			t.Errorf("%d values were built for two sessions", w.opened.Load())
		}
	})
}

func TestShutdownDismissesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1, Queue: 1})
		m.mustOpen(t, ByCreate)
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
	})
}

// A slot and a waiter's end at the same moment: the slot is somebody's, or free, but never lost.
func TestSlotsAreNotLostInTheQueue(t *testing.T) {
	w := &world{}
	m := w.manager(t, Options{Max: 4, Queue: 100, QueueWait: 5 * time.Second})
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for n := range 20 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration((i+n)%7)*100*time.Microsecond)
				if s, err := m.Open(ctx, ByCreate, ""); err == nil {
					s.Close(context.Background(), "test")
				}
				cancel()
			}
		})
	}
	wg.Wait()
	for range 4 {
		m.mustOpen(t, ByCreate)
	}
	if m.Active() != 4 || m.queue.Len() != 0 {
		t.Errorf("%d slots taken, %d wait", m.Active(), m.queue.Len())
	}
}

type silent time.Duration

func (d silent) Silence() time.Duration { return time.Duration(d) }

// The slot goes to the newcomer that it was made free for, though others come while the silent session closes.
func TestRoomIsForWhoMadeIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1, Queue: 2, QueueWait: 10 * time.Second})
		old := m.mustOpen(t, ByGymSocket)
		old.Watch(Owner, silent(time.Minute))
		var wg sync.WaitGroup
		wg.Go(func() { call(t.Context(), old, `{"time":2000000000,"ignore":true}`) }) // holds the end up
		synctest.Wait()
		time.Sleep(time.Second)
		start := time.Now()
		opened := make(chan string, 2)
		wg.Go(func() {
			s := m.mustOpen(t, ByCreate)
			if d := time.Since(start); d != 11*time.Second {
				t.Errorf("the first got its slot after %v, want its wait and a second", d)
			}
			opened <- "first"
			s.Close(t.Context(), "test")
		})
		synctest.Wait()
		time.Sleep(5 * time.Second)
		wg.Go(func() { call(t.Context(), old, `{"time":6000000000,"ignore":true}`) })
		wg.Go(func() {
			s := m.mustOpen(t, ByCreate)
			opened <- "second"
			s.Close(t.Context(), "test")
		})
		wg.Wait()
		if a, b := <-opened, <-opened; a != "first" || b != "second" {
			t.Errorf("served %s, %s", a, b)
		}
	})
}

func TestNewcomersBesideOneForWhomRoomIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		m := w.manager(t, Options{Max: 1})
		old := m.mustOpen(t, ByGymSocket)
		old.Watch(Owner, silent(time.Minute))
		go call(t.Context(), old, `{"time":2000000000,"ignore":true}`)
		synctest.Wait()
		first := make(chan error)
		go func() {
			_, err := m.Open(t.Context(), ByCreate, "")
			first <- err
		}()
		synctest.Wait()
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != CapacityReached {
			t.Errorf("another newcomer got %v", err)
		}
		if err := <-first; err != nil {
			t.Errorf("the first newcomer got %v", err)
		}
	})
}
