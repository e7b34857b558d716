package session

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow makes New take d, or until its context ends.
func (w *world) slow(d time.Duration) {
	w.fail = func(ctx context.Context, _ int64) error {
		select {
		case <-time.After(d):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func TestWarmSessionsAreReadyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.slow(time.Minute)
		m := w.manager(t, Options{Max: 4, Warm: 2})
		time.Sleep(time.Hour)
		start := time.Now()
		a, b := m.mustOpen(t, ByCreate), m.mustOpen(t, ByCreate)
		if d := time.Since(start); d != 0 {
			t.Errorf("two that were built ahead took %v", d)
		}
		synctest.Wait()
		if n := w.begun.Load(); n != 4 || m.Active() != 2 || len(m.List()) != 2 {
			t.Errorf("%d were begun, %d are active, %d listed; want 4, 2 and 2", n, m.Active(), len(m.List()))
		}
		for _, i := range m.List() {
			if !i.Created.Equal(start) {
				t.Errorf("created %v ago, and opened now", time.Since(i.Created))
			}
		}
		// The third comes while the next two are being built, and waits for what is left of that.
		time.Sleep(20 * time.Second)
		start = time.Now()
		c := m.mustOpen(t, ByCreate)
		if d := time.Since(start); d != 40*time.Second {
			t.Errorf("one that was being built took %v, want 40s", d)
		}
		m.mustOpen(t, ByCreate)
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != CapacityReached {
			t.Errorf("a fifth got %v", err)
		}
		// A slot that becomes free is built for at once; what nobody has claimed is found by nobody.
		for _, s := range []*Session{a, b, c} {
			s.Close(t.Context(), "test")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if m.Active() != 1 || len(m.sessions) != 3 {
			t.Errorf("%d active of %d", m.Active(), len(m.sessions))
		}
		for id, s := range m.sessions {
			_, errGet := m.Get(id)
			_, errFind := m.Find(id)
			if s.origin == unclaimed && (codeOf(errGet) != Unknown || codeOf(errFind) != Unknown) {
				t.Errorf("an unclaimed session was found: %v, %v", errGet, errFind)
			}
		}
		// Idleness begins with the opener.
		if _, err := call(t.Context(), m.mustOpen(t, ByCreate), `{}`); err != nil {
			t.Error(err)
		}
	})
}

func TestWarmFailuresArePausedAndTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		var broken atomic.Bool
		broken.Store(true)
		var begun []time.Duration
		start := time.Now()
		w.fail = func(context.Context, int64) error {
			begun = append(begun, time.Since(start).Round(time.Second))
			if broken.Load() {
				return errors.New("no disk")
			}
			return nil
		}
		m := w.manager(t, Options{Max: 2, Warm: 1})
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got, want := fmt.Sprint(begun), "[0s 1s 3s 7s 15s 31s 1m3s]"; got != want {
			t.Errorf("builds began at %v, want %v", got, want)
		}
		if m.Active() != 0 || len(m.sessions) != 0 {
			t.Errorf("%d slots are taken", len(m.sessions))
		}
		if _, err := m.Open(t.Context(), ByCreate, ""); codeOf(err) != FactoryFailed {
			t.Errorf("an opener was told %v", err)
		}
		broken.Store(false)
		time.Sleep(5 * time.Second) // 2m5s: past the pause
		synctest.Wait()
		if m.Active() != 0 || len(m.warm) != 1 {
			t.Errorf("%d are warm after the cure", len(m.warm))
		}
		m.mustOpen(t, ByCreate)
	})
}

func TestWarmOpenerWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{}
		w.slow(time.Minute)
		m := w.manager(t, Options{Max: 1, Warm: 1})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		if _, err := m.Open(ctx, ByCreate, ""); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if m.Active() != 0 {
			t.Errorf("%d slots are taken", m.Active())
		}
		m.mustOpen(t, ByCreate)
	})
}

func TestShutdownWhileBuildingAhead(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second, time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			w := &world{}
			w.slow(time.Minute)
			m := w.manager(t, Options{Warm: 3})
			time.Sleep(after)
			done := make(chan error)
			go func() {
				_, err := m.Open(t.Context(), ByCreate, "")
				done <- err
			}()
			synctest.Wait()
			if err := m.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
			if err := <-done; after < time.Minute && codeOf(err) != ShuttingDown {
				t.Errorf("the opener got %v", err)
			}
			if len(m.sessions) != 0 || w.opened.Load() != w.closed.Load() {
				t.Errorf("%d sessions are left", len(m.sessions))
			}
		})
	}
}
