package session

import (
	"context"
	"time"
)

// A Channel is a socket that owns or holds a session, as the session sees it.
type Channel interface {
	// Silence is how long the peer has left a ping unanswered; 0 for one that answers. It is called under the session's
	// lock, so it must not call the session.
	Silence() time.Duration
}

// Watch tells the session of the socket that has it as h.
func (s *Session) Watch(h Hold, c Channel) {
	s.mu.Lock()
	s.channels[h] = c
	s.mu.Unlock()
}

// lively stands for a socket until it is known.
type lively struct{}

func (lively) Silence() time.Duration { return 0 }

// silentFor is how long a socket must have been silent before its session may be closed to make room.
const silentFor = 40 * time.Second

// roomWait bounds the wait for the end of a session that is closed to make room. An environment that is slow to close
// costs the newcomer its slot, and nobody else.
const roomWait = 5 * time.Second

// silence (mu held) is how long the session's sockets have been silent, all of them; 0 if it has none, or is closing.
func (s *Session) silence() time.Duration {
	shortest, any := time.Duration(0), false
	for _, c := range s.channels {
		if c != nil {
			if d := c.Silence(); !any || d < shortest {
				shortest, any = d, true
			}
		}
	}
	if s.state != open {
		return 0
	}
	return shortest
}

// makeRoom closes the session whose socket has been silent longest, if one has been silent long enough: a client that
// crashed or stopped must not keep others out. It is done only for a newcomer who would be refused otherwise.
func (m *Manager) makeRoom(ctx context.Context) bool {
	m.mu.Lock()
	all := make([]*Session, 0, len(m.sessions))
	for _, s := range m.sessions {
		all = append(all, s)
	}
	m.mu.Unlock()
	var silentest *Session
	var longest time.Duration
	for _, s := range all {
		s.mu.Lock()
		if d := s.silence(); d > longest {
			silentest, longest = s, d
		}
		s.mu.Unlock()
	}
	if longest < silentFor {
		return false
	}
	silentest.mu.Lock()
	if silentest.silence() < silentFor { // it has spoken meanwhile
		silentest.mu.Unlock()
		return false
	}
	silentest.begin("made room", errClosed())
	silentest.log.Warn("closed to make room: its socket is silent", "event", "made_room", "silent", longest.Round(time.Second))
	wait, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	_ = silentest.wait(wait)
	return true
}
