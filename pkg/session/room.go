package session

import (
	"context"
	"time"
)

// silentFor is how long a socket must have been silent before its session may be closed to make room.
const silentFor = 40 * time.Second

// roomWait bounds the wait for the end of a session that is closed to make room. An environment that is slow to close
// costs the newcomer its slot, and nobody else.
const roomWait = 5 * time.Second

// Watch has the session ask silence how long its socket has been silent; 0 for a socket that answers. The last socket to
// call it is the one that counts.
func (s *Session) Watch(silence func() time.Duration) {
	s.mu.Lock()
	s.silence = silence
	s.mu.Unlock()
}

// silent is how long the session's socket has been silent, or 0 if it has none, or is closing.
func (s *Session) silent() time.Duration {
	s.mu.Lock()
	silence := s.silence
	if s.state != open || !s.owned && !s.held {
		silence = nil
	}
	s.mu.Unlock()
	if silence == nil {
		return 0
	}
	return silence()
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
	longest := silentFor
	for _, s := range all {
		if d := s.silent(); d >= longest {
			silentest, longest = s, d
		}
	}
	if silentest == nil {
		return false
	}
	silentest.log.Warn("closed to make room: its socket is silent", "event", "made_room", "silent", longest.Round(time.Second))
	wait, cancel := context.WithTimeout(ctx, roomWait)
	defer cancel()
	_ = silentest.Close(wait, "made room")
	return true
}
