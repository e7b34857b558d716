package session

import (
	"context"
	"maps"
	"slices"
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

// makeRoom closes the session whose socket has been silent longest, if one has been silent long enough, and gets its
// slot: a client that crashed or stopped must not keep others out. It is done only for a newcomer who would be refused
// otherwise, and refused is that error.
func (m *Manager) makeRoom(ctx context.Context, refused error) (*Session, error) {
	silentest := m.silentest()
	if silentest == nil {
		return nil, refused
	}
	m.mu.Lock()
	if m.stopping {
		m.mu.Unlock()
		return nil, errStopping()
	}
	if m.queue.Len() == 0 {
		if s := m.take(); s != nil { // one has ended just now
			m.mu.Unlock()
			return s, nil
		}
	}
	w := &waiter{make(chan *Session, 1)}
	place := m.queue.PushFront(w) // the slot is for who has made it free
	m.mu.Unlock()
	silentest.mu.Lock()
	silent := silentest.silence()
	if silent < silentFor { // it has spoken meanwhile
		silentest.mu.Unlock()
		return m.leaveQueue(place, w)
	}
	silentest.log.Warn("closed to make room: its socket is silent", "event", "made_room", "silent", silent.Round(time.Second))
	silentest.begin("made room", errClosed())
	return m.wait(ctx, place, w, roomWait)
}

// silentest finds the session that has been silent longest, and long enough; nil if none has.
func (m *Manager) silentest() (silentest *Session) {
	m.mu.Lock()
	all := slices.Collect(maps.Values(m.sessions))
	m.mu.Unlock()
	longest := silentFor - 1
	for _, s := range all {
		s.mu.Lock()
		if d := s.silence(); d > longest {
			silentest, longest = s, d
		}
		s.mu.Unlock()
	}
	return silentest
}
