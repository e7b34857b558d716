package session

import (
	"container/list"
	"context"
	"fmt"
	"time"
)

// A waiter is an opener who waits for a slot.
type waiter struct {
	origin Origin
	// served gets the session that has the slot, or nil when the server stops. It has room for it, so that the slot is
	// handed over under the manager's lock.
	served chan *Session
}

// reserve takes a slot, or waits in the queue for one, first come, first served. The error is an *[Error], or the cause
// of ctx.
func (m *Manager) reserve(ctx context.Context, origin Origin) (*Session, error) {
	m.mu.Lock()
	switch {
	case m.stopping:
		m.mu.Unlock()
		return nil, errStopping()
	case len(m.sessions) < m.opts.Max && m.queue.Len() == 0:
		s := m.add(origin)
		m.mu.Unlock()
		return s, nil
	case m.queue.Len() >= m.opts.Queue:
		err := m.errFull()
		m.mu.Unlock()
		return nil, err
	}
	w := &waiter{origin, make(chan *Session, 1)}
	place := m.queue.PushBack(w)
	m.mu.Unlock()
	timer := time.NewTimer(m.opts.QueueWait)
	defer timer.Stop()
	select {
	case s := <-w.served:
		if s == nil {
			return nil, errStopping()
		}
		return s, nil
	case <-timer.C:
		return nil, m.leaveQueue(place, w, m.errFull)
	case <-ctx.Done():
		return nil, m.leaveQueue(place, w, func() error { return context.Cause(ctx) })
	}
}

// leaveQueue takes back a place. A slot that was handed over just now goes to the next.
func (m *Manager) leaveQueue(place *list.Element, w *waiter, why func() error) error {
	m.mu.Lock()
	m.queue.Remove(place)
	err := why()
	m.mu.Unlock()
	select {
	case s := <-w.served:
		if s != nil {
			s.free()
		}
	default:
	}
	return err
}

// errFull (mu held) says that there is no slot.
func (m *Manager) errFull() error {
	return &Error{
		Code: CapacityReached, Active: len(m.sessions), Max: m.opts.Max,
		Message: fmt.Sprintf("no free session: %d of %d are in use; try again when one has ended", len(m.sessions), m.opts.Max),
	}
}

// add (mu held) makes a session, which has its slot from now on.
func (m *Manager) add(origin Origin) *Session {
	s := newSession(m, m.opts.NewID(), origin)
	m.sessions[s.ID] = s
	return s
}

// remove frees a session's slot, or hands it to who waits first.
func (m *Manager) remove(s *Session) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sessions, s.ID)
	for _, h := range s.handles { // nobody mints for a session that is closing
		delete(m.handles, h)
	}
	if first := m.queue.Front(); first != nil && !m.stopping && len(m.sessions) < m.opts.Max {
		w := m.queue.Remove(first).(*waiter)
		w.served <- m.add(w.origin)
	}
}

// dismiss (mu held) sends everybody who waits away.
func (m *Manager) dismiss() {
	for first := m.queue.Front(); first != nil; first = m.queue.Front() {
		m.queue.Remove(first).(*waiter).served <- nil
	}
}
