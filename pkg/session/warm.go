package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Environments built ahead: a session that has a slot, is built or being built, and waits for an opener to claim it. It
// takes a slot only where no opener wants one, and an opener takes such a session before a free slot, so that nobody is
// refused for one.

// Pauses after an environment could not be built ahead: the first, doubled at each further failure, up to the longest. An
// opener who comes meanwhile builds its own and is told why that fails.
const (
	firstPause   = time.Second
	longestPause = time.Minute
)

// buildAhead (mu held) begins to build as many sessions as there should be and may be.
func (m *Manager) buildAhead() {
	for !m.stopping && m.pause == nil && m.queue.Len() == 0 && len(m.warm) < m.opts.Warm && len(m.sessions) < m.opts.Max {
		s := m.add()
		s.ahead = true
		m.warm = append(m.warm, s)
		s.startBuilding(context.Background())
	}
}

// startBuilding has the session's environment built. Values of ctx reach New; its end does not.
func (s *Session) startBuilding(ctx context.Context) {
	s.begunToBuild = true
	go func() {
		s.buildErr = s.m.build(context.WithoutCancel(ctx), s)
		close(s.built)
	}()
}

// takeWarm (mu held) takes the first session that is ready, else the one that was begun first; nil if there is none.
func (m *Manager) takeWarm() *Session {
	if len(m.warm) == 0 {
		return nil
	}
	at := max(0, slices.IndexFunc(m.warm, (*Session).isBuilt))
	s := m.warm[at]
	m.warm = slices.Delete(m.warm, at, at+1)
	m.buildAhead()
	return s
}

func (s *Session) isBuilt() bool {
	select {
	case <-s.built:
		return true
	default:
		return false
	}
}

// builtAhead notes whether a session could be built ahead. After a failure the next one has to wait.
func (m *Manager) builtAhead(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case err == nil:
		m.delay = 0
	case m.pause == nil && !m.stopping:
		m.delay = min(max(firstPause, 2*m.delay), longestPause)
		m.pause = time.AfterFunc(m.delay, func() {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.pause = nil
			m.buildAhead()
		})
	}
}

// awaitBuilt waits for a session that is being built, for its opener: no longer than building may take, whatever New does.
// The error is that of the building, or the cause of ctx or of the session's end; the session is over then, or will be when
// New has returned.
func (s *Session) awaitBuilt(ctx context.Context) error {
	late := time.NewTimer(s.m.opts.ResetTimeout + stuckAfter)
	defer late.Stop()
	select {
	case <-s.built:
		if s.buildErr != nil {
			return s.buildErr
		}
		return context.Cause(s.ctx)
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	case <-ctx.Done():
		s.mu.Lock()
		s.begin("its opener has gone", errClosed())
		return context.Cause(ctx)
	case <-late.C:
		err := s.m.errFactory(fmt.Errorf("it took longer than %v", s.m.opts.ResetTimeout))
		s.mu.Lock()
		s.begin("it was not built in time", err)
		return err
	}
}

// tellStuck has the operator told when New has not returned some time after its context has ended.
func (s *Session) tellStuck(ctx context.Context) (returned func()) {
	start := time.Now()
	var (
		mu   sync.Mutex // guards what follows
		over bool
		told *time.Timer
	)
	stop := context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		told = time.AfterFunc(stuckAfter, func() {
			s.log.Error("a handler has not returned though its context has ended", "event", "stuck_handler", "call", "New",
				"age", time.Since(start).Round(time.Millisecond), "reason", cmp.Or(s.Reason(), "its time is up"))
		})
	})
	return func() {
		stop()
		mu.Lock()
		defer mu.Unlock()
		if over = true; told != nil {
			told.Stop()
		}
	}
}

// giveBack ends a session that was taken for an opener who had left by then.
func (s *Session) giveBack() {
	s.claim(Temporary, "") // for operators
	if !s.begunToBuild {
		s.free(errClosed())
		return
	}
	s.mu.Lock()
	s.begin("its opener has gone", errClosed())
}
