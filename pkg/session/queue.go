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
	place  *list.Element // in the queue, while it is there; nil after
	// extra says that the queue is full without it: it is there because room is being made, which frees a place for it.
	extra bool
}

// reserve takes a slot, or waits in the queue for one, first come, first served. Where that would end in a refusal, room
// is made if it can be: see makeRoom. The error is an *[Error], or the cause of ctx.
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
	full := m.queue.Len()-m.extras >= m.opts.Queue
	w := &waiter{served: make(chan *Session, 1), extra: full}
	if full {
		m.extras++
	}
	w.place = m.queue.PushBack(w)
	m.mu.Unlock()
	if full && !m.makeRoom(w, true) {
		return m.leaveQueue(w)
	}
	if m.opts.Queue > 0 {
		s, err := m.wait(ctx, w, m.opts.QueueWait)
		if s != nil || err != nil {
			return s, err
		}
		if !m.makeRoom(w, false) {
			return m.leaveQueue(w)
		}
	}
	s, err := m.wait(ctx, w, roomWait)
	if s != nil || err != nil {
		return s, err
	}
	return m.leaveQueue(w)
}

// wait waits for a slot in the queue. It returns neither a session nor an error if the time is up.
func (m *Manager) wait(ctx context.Context, w *waiter, limit time.Duration) (*Session, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case s := <-w.served:
		if s == nil {
			return nil, errStopping()
		}
		return s, nil
	case <-timer.C:
		return nil, nil
	case <-ctx.Done():
		if s, _ := m.leaveQueue(w); s != nil {
			s.giveBack()
		}
		return nil, context.Cause(ctx)
	}
}

// leaveQueue takes back a place. What it returns is the slot that was handed over just now, or that there is none.
func (m *Manager) leaveQueue(w *waiter) (*Session, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w.place == nil {
		if s := <-w.served; s != nil {
			return s, nil
		}
		return nil, errStopping()
	}
	m.unqueue(w)
	return nil, m.errFull()
}

// unqueue (mu held) takes a waiter from the queue. Its place is the first extra one's, if there is any.
func (m *Manager) unqueue(w *waiter) {
	m.queue.Remove(w.place)
	w.place = nil
	if w.extra {
		m.extras--
		return
	}
	for e := m.queue.Front(); m.extras > 0 && e != nil; e = e.Next() {
		if next := e.Value.(*waiter); next.extra {
			next.extra = false
			m.extras--
			return
		}
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
	if s.makesRoom {
		m.making--
	}
	for _, h := range s.handles { // nobody mints for a session that is closing
		delete(m.handles, h)
	}
	m.warm = slices.DeleteFunc(m.warm, func(w *Session) bool { return w == s })
	if m.stopping {
		return
	}
	if first := m.queue.Front(); first != nil {
		if next := m.take(); next != nil {
			m.serve(first.Value.(*waiter), next)
		}
	}
	m.buildAhead()
}

// dismiss (mu held) sends everybody who waits away.
func (m *Manager) dismiss() {
	for first := m.queue.Front(); first != nil; first = m.queue.Front() {
		m.serve(first.Value.(*waiter), nil)
	}
}

// serve (mu held) gives a waiter its session, or nil when the server stops.
func (m *Manager) serve(w *waiter, s *Session) {
	m.unqueue(w)
	w.served <- s
}
