package session

import (
	"sync/atomic"
	"time"
)

// An alarm is a timer that one call of a session uses after another. Among the timers of many sessions a new one for each call
// is dear: it has to find its place, and leaves it empty.
type alarm struct {
	timer *time.Timer
	wakes atomic.Pointer[callContext] // nil while nobody uses it
}

func (a *alarm) ring() {
	if c := a.wakes.Load(); c != nil {
		c.timeUp()
	}
}

// Alarms are those of a session: the one that no call uses now, if there is one. The zero value is ready.
type alarms struct{ spare atomic.Pointer[alarm] }

// set has the time of c be up after a while.
func (s *alarms) set(c *callContext, after time.Duration) *alarm {
	if a := s.spare.Swap(nil); a != nil {
		a.wakes.Store(c)
		a.timer.Reset(after)
		return a
	}
	a := &alarm{}
	a.wakes.Store(c)
	a.timer = time.AfterFunc(after, a.ring)
	return a
}

// stop stops an alarm and keeps it for another call. One that is ringing is left to it.
func (s *alarms) stop(a *alarm) {
	if a.timer.Stop() {
		a.wakes.Store(nil)
		s.spare.Store(a)
	}
}
