package session

import (
	"slices"
	"strings"
	"time"
)

// An Info is what an operator sees of a session.
type Info struct {
	ID           string
	State        string // building, open or closing
	Origin       Origin
	Created      time.Time // when it was opened
	LastActivity time.Time // when a call came or was answered last, or a socket came or went
	Steps        int       // answered since the session began
	Sockets      int       // that use it
	Attachment   Attachment
	Agent        bool     // an MCP client has initialised and not left
	Running      []InTurn // what has the turn, the oldest first: one call, or several concurrent ones
	Queued       int      // calls that wait for their turn
}

// An Attachment is how a session is held by sockets.
type Attachment string

const (
	AttachedNone   Attachment = "none"     // by none: it ends when closed, or idle
	AttachedOwner  Attachment = "owner"    // by the one that opened it and takes it along
	AttachedClient Attachment = "attached" // by a gym channel that came by its id
	AttachedLost   Attachment = "awaited"  // it waits for its owner to come back, who was lost
)

// An InTurn is a call that runs.
type InTurn struct {
	What string        // reset, step, list_tools, state, Close, or tool "name"
	Age  time.Duration // since it got its turn
}

// Info describes the session as it is now.
func (s *Session) Info() Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := Info{
		ID: s.ID, State: [...]string{"building", "open", "closing"}[s.state], Origin: s.origin, Created: s.created,
		LastActivity: s.last, Steps: s.steps, Sockets: s.sockets, Attachment: AttachedNone, Agent: s.agent != nil, Queued: s.queued,
	}
	switch {
	case s.awaited != nil:
		i.Attachment = AttachedLost
	case s.owned:
		i.Attachment = AttachedOwner
	case s.held:
		i.Attachment = AttachedClient
	}
	for _, r := range s.running {
		i.Running = append(i.Running, InTurn{r.what.String(), time.Since(r.since)})
	}
	return i
}

// List describes all sessions that have been opened and have not ended, the oldest first; temporary ones too.
func (m *Manager) List() []Info {
	all := m.all()
	list := make([]Info, 0, len(all))
	for _, s := range all {
		if i := s.Info(); i.Origin != unclaimed {
			list = append(list, i)
		}
	}
	slices.SortFunc(list, func(a, b Info) int {
		if c := a.Created.Compare(b.Created); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// Find is [Manager.Get] for operators, who see a session while it is built and while it closes, too.
func (m *Manager) Find(id string) (*Session, error) {
	m.mu.Lock()
	s := m.sessions[id]
	m.mu.Unlock()
	if s == nil || s.Info().Origin == unclaimed {
		return nil, errUnknown(id)
	}
	return s, nil
}

// Ended reports whether the session is over and its slot free.
func (s *Session) Ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}

// WhenEnded has f called when the session is over and its slot free, before [Session.Close] returns; at once if it is. f
// must not wait for the session.
func (s *Session) WhenEnded(f func()) {
	s.mu.Lock()
	over := s.over
	if !over {
		s.whenOver = append(s.whenOver, f)
	}
	s.mu.Unlock()
	if over {
		f()
	}
}

// Waiting counts the openers who wait for a slot, and the sessions that are built ahead or being built so.
func (m *Manager) Waiting() (openers, ahead int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queue.Len(), len(m.warm)
}
