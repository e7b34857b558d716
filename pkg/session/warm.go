package session

import (
	"context"
	"slices"
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
		s.built = make(chan struct{})
		m.warm = append(m.warm, s)
		go func() {
			s.buildErr = m.build(context.Background(), s)
			close(s.built)
		}()
	}
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

// awaitBuilt waits for a session that is built ahead, for its opener. The error is that of the building, or the cause of
// ctx or of the session's end; the session is over then.
func (s *Session) awaitBuilt(ctx context.Context) error {
	select {
	case <-s.built:
	case <-ctx.Done():
		s.mu.Lock()
		s.begin("its opener has gone", errClosed())
		return context.Cause(ctx)
	}
	if s.buildErr != nil {
		return s.buildErr
	}
	return context.Cause(s.ctx)
}

// giveBack ends a session that was taken for an opener who had left by then.
func (s *Session) giveBack() {
	if s.built == nil { // nobody has begun to build it
		s.free()
		return
	}
	s.mu.Lock()
	s.begin("its opener has gone", errClosed())
}
