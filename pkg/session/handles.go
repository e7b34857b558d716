package session

import "fmt"

// MaxHandles is how many handles one session may have minted.
const MaxHandles = 64

// Mint makes a handle: an id by which agents reach the session's tools and nothing else. It is good until the session
// ends. Whoever knows a handle cannot tell the session's id from it.
func (s *Session) Mint() (handle string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return "", err
	}
	if len(s.handles) >= MaxHandles {
		return "", &Error{Code: TooMany, Message: fmt.Sprintf("session %s has minted %d handles, which is all it may; use one of them again", s.ID, MaxHandles)}
	}
	handle = s.m.opts.NewID()
	s.handles = append(s.handles, handle)
	s.m.mu.Lock()
	s.m.handles[handle] = s
	s.m.mu.Unlock()
	s.log.Info("agent handle minted", "event", "handle_minted", "handles", len(s.handles))
	return handle, nil
}

// Reach finds a session for a caller of its tools, by its id or by a handle; byHandle tells which. Errors are those of
// [Manager.Get].
func (m *Manager) Reach(id string) (s *Session, byHandle bool, err error) {
	m.mu.Lock()
	s, byHandle = m.handles[id]
	m.mu.Unlock()
	if !byHandle {
		s, err = m.Get(id)
		return s, false, err
	}
	if s.usable() != nil {
		return nil, true, errUnknown(id) // the session's own words would tell its id
	}
	return s, true, nil
}
