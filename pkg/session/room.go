package session

import (
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

// makeRoom begins the end of the session whose socket has been silent longest, if one has been silent long enough: a client
// that crashed or stopped must not keep others out. It is done for a waiter who would be refused otherwise: one who found
// the queue full, which full tells, or whose time is up. The slot goes to who is first in the queue, and the others move up. makeRoom reports
// whether w may wait on: it is false where nobody is silent.
func (m *Manager) makeRoom(w *waiter, full bool) bool {
	for {
		silentest := m.silentest()
		if silentest == nil {
			return false
		}
		silentest.mu.Lock()
		silent := silentest.silence()
		if silent < silentFor { // it has spoken meanwhile, or another newcomer has had it closed
			silentest.mu.Unlock()
			continue
		}
		m.mu.Lock()
		// Those beyond the queue's bound need a session each that is ending. One that got its slot meanwhile, by another's
		// doing, does as much for that one.
		needed := full && m.extras > m.making || !full && w.place != nil
		if needed {
			silentest.makesRoom = true
			m.making++
		}
		m.mu.Unlock()
		if !needed {
			silentest.mu.Unlock()
			return true
		}
		silentest.log.Warn("closed to make room: its socket is silent", "event", "made_room", "silent", silent.Round(time.Second))
		silentest.begin("made room", errClosed())
		return true
	}
}

// silentest finds the session that has been silent longest, and long enough; nil if none has.
func (m *Manager) silentest() (silentest *Session) {
	longest := silentFor - 1
	for _, s := range m.all() {
		s.mu.Lock()
		if d := s.silence(); d > longest {
			silentest, longest = s, d
		}
		s.mu.Unlock()
	}
	return silentest
}
