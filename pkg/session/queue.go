package session

import (
	"container/list"
	"context"
	"fmt"
	"slices"
	"time"
)

// A waiter is an opener who waits for a slot.
type waiter struct {
	// served gets the session that has the slot, or nil when the server stops. It has room for it, so that the slot is
	// handed over under the manager's lock.
	served chan *Session
}

// reserve takes a slot, or waits in the queue for one, first come, first served. The error is an *[Error], or the cause
// of ctx.
func (m *Manager) reserve(ctx context.Context) (*Session, error) {
	m.mu.Lock()
	if m.stopping {
		m.mu.Unlock()
		return nil, errStopping()
	}
	if m.queue.Len() == 0 {
		if s := m.take(); s != nil {
			m.mu.Unlock()
			return s, nil
		}
	}
	if m.queue.Len() >= m.opts.Queue {
		err := m.errFull()
		m.mu.Unlock()
		return nil, err
	}
	w := &waiter{make(chan *Session, 1)}
	place := m.queue.PushBack(w)
	m.mu.Unlock()
	return m.wait(ctx, place, w, m.opts.QueueWait)
}

// wait waits for a slot in a place of the queue.
func (m *Manager) wait(ctx context.Context, place *list.Element, w *waiter, limit time.Duration) (*Session, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case s := <-w.served:
		if s == nil {
			return nil, errStopping()
		}
		return s, nil
	case <-timer.C:
		return m.leaveQueue(place, w)
	case <-ctx.Done():
		if s, _ := m.leaveQueue(place, w); s != nil {
			s.giveBack()
		}
		return nil, context.Cause(ctx)
	}
}

// leaveQueue takes back a place. What it returns is the slot that was handed over just now, or that there is none.
func (m *Manager) leaveQueue(place *list.Element, w *waiter) (*Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue.Remove(place)
	select {
	case s := <-w.served:
		if s == nil {
			return nil, errStopping()
		}
		return s, nil
	default:
		return nil, m.errFull()
	}
}

// errFull (mu held) says that there is no slot.
func (m *Manager) errFull() error {
	active := m.active()
	return &Error{
		Code: CapacityReached, Active: active, Max: m.opts.Max,
		Message: fmt.Sprintf("no free session: %d of %d are in use; try again when one has ended", active, m.opts.Max),
	}
}

// take (mu held) takes a slot: that of a session which is built ahead, or a free one. It is nil if there is none.
func (m *Manager) take() *Session {
	if s := m.takeWarm(); s != nil {
		return s
	}
	if len(m.sessions) < m.opts.Max {
		return m.add()
	}
	return nil
}

// add (mu held) makes a session, which has its slot from now on.
func (m *Manager) add() *Session {
	s := newSession(m, m.opts.NewID())
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
	m.warm = slices.DeleteFunc(m.warm, func(w *Session) bool { return w == s })
	if m.stopping {
		return
	}
	if first := m.queue.Front(); first != nil {
		if next := m.take(); next != nil {
			m.queue.Remove(first).(*waiter).served <- next
		}
	}
	m.buildAhead()
}

// dismiss (mu held) sends everybody who waits away.
func (m *Manager) dismiss() {
	for first := m.queue.Front(); first != nil; first = m.queue.Front() {
		m.queue.Remove(first).(*waiter).served <- nil
	}
}
