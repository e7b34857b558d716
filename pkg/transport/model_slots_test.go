package transport

import (
	"slices"
	"time"
)

// The model's slots: how they are taken, waited for, made and freed.

// active counts the slots that are taken.
func (m *model) active() (n int) {
	for _, s := range m.sessions {
		if s.claimed && s.state != modelGone {
			n++
		}
	}
	return n
}

func (m *model) unclaimed() (warm []*modelSession) {
	for _, s := range m.sessions {
		if !s.claimed && s.state != modelGone && s.state != modelClosing {
			warm = append(warm, s)
		}
	}
	return warm
}

func (m *model) slots() (n int) {
	for _, s := range m.sessions {
		if s.state != modelGone {
			n++
		}
	}
	return n
}

func (m *model) take() *modelSession {
	if warm := m.unclaimed(); len(warm) > 0 {
		s := warm[max(0, slices.IndexFunc(warm, func(s *modelSession) bool { return s.state == modelOpen }))]
		s.claimed = true
		m.buildAhead()
		return s
	}
	if m.slots() < m.max {
		s := m.add()
		s.claimed = true
		return s
	}
	return nil
}

func (m *model) add() *modelSession {
	s := &modelSession{n: len(m.sessions)}
	m.sessions = append(m.sessions, s)
	return s
}

func (m *model) buildAhead() {
	for !m.stopped && m.pausedUntil == 0 && len(m.waiters) == 0 && len(m.unclaimed()) < m.warmUp && m.slots() < m.max {
		s := m.add()
		s.ahead = true
		m.build(s)
	}
}

func (m *model) build(s *modelSession) {
	m.builds++
	s.begun = true
	s.fails = m.failEvery > 0 && m.builds%m.failEvery == 0
	s.built = m.now + m.buildTime
	if m.buildTime == 0 {
		m.complete(s)
	}
}

func (m *model) complete(s *modelSession) {
	opener := s.opener
	s.opener = nil
	if !s.fails {
		m.opened++
		s.state, s.last = modelOpen, m.now
		if s.ahead {
			m.pause = 0
		}
		if opener != nil {
			m.give(s, opener)
		}
		return
	}
	if s.ahead && m.pausedUntil == 0 {
		m.pause = min(max(time.Second, 2*m.pause), time.Minute)
		m.pausedUntil = m.now + m.pause
	}
	m.free(s)
	if opener != nil {
		m.refuse(opener)
	}
}

// open lets a peer open a session.
func (m *model) open(p *modelPeer) {
	if len(m.waiters) == 0 {
		if s := m.take(); s != nil {
			m.claim(s, p)
			return
		}
	}
	w := &modelWaiter{peer: p, until: m.now + modelQueueWait, extra: m.ordinary() >= m.queueLen}
	if m.queueLen == 0 {
		w.until, w.last = m.now+5*time.Second, true
	}
	m.waiters = append(m.waiters, w)
	if w.extra && !m.makeRoom() {
		m.leaveQueue(p)
		m.refuse(p)
	}
}

// ordinary counts the waiters within the queue's bound.
func (m *model) ordinary() (n int) {
	for _, w := range m.waiters {
		if !w.extra {
			n++
		}
	}
	return n
}

func (m *model) claim(s *modelSession, p *modelPeer) {
	s.claimed = true
	s.byInitialize = p.init
	s.owned = p.socket
	p.session = s
	s.last = m.now
	if s.state == modelOpen {
		m.give(s, p)
		return
	}
	s.opener = p
	if !s.begun {
		m.build(s)
	}
}

// give hands an open session to its opener.
func (m *model) give(s *modelSession, p *modelPeer) {
	if p.socket {
		s.owner = p
		if !p.mcp {
			s.held = p
		}
	}
}

func (m *model) waitEnds(w *modelWaiter) {
	if w.last || !m.makeRoom() {
		m.leaveQueue(w.peer)
		m.refuse(w.peer)
		return
	}
	w.until, w.last = m.now+5*time.Second, true
}

// leaveQueue takes a peer from the queue, if it is there. Its place is the first extra one's.
func (m *model) leaveQueue(p *modelPeer) {
	for i, w := range m.waiters {
		if w.peer == p {
			m.waiters = slices.Delete(m.waiters, i, i+1)
			for _, next := range m.waiters {
				if next.extra && !w.extra {
					next.extra = false
					break
				}
			}
			return
		}
	}
}

// makeRoom ends the session that has been silent longest, and long enough. It reports whether there was one.
func (m *model) makeRoom() bool {
	var silentest *modelSession
	longest := 40*time.Second - 1
	for _, s := range m.sessions {
		if d := m.silence(s); d > longest {
			silentest, longest = s, d
		}
	}
	if silentest != nil {
		m.end(silentest)
	}
	return silentest != nil
}

// silence is how long all the sockets that own or hold a session have been silent.
func (m *model) silence(s *modelSession) time.Duration {
	shortest, any := time.Duration(0), false
	for _, p := range []*modelPeer{s.owner, s.held} {
		if p != nil && (!any || m.silent(p) < shortest) {
			shortest, any = m.silent(p), true
		}
	}
	if s.state != modelOpen {
		return 0
	}
	return shortest
}

func (m *model) silent(p *modelPeer) time.Duration {
	if p.frozen == 0 {
		return 0
	}
	return max(0, m.now-p.pinged())
}

// pinged is when the first ping is sent that a frozen peer does not answer.
func (p *modelPeer) pinged() time.Duration {
	return p.start + ((p.frozen-p.start)/pingEvery+1)*pingEvery
}

// refuse sends a peer away who wanted a session.
func (m *model) refuse(p *modelPeer) {
	p.session = nil
	m.vanish(p)
}

// vanish takes a peer's socket from the living. One that reads nothing does not answer the close: the library waits 5 s.
func (m *model) vanish(p *modelPeer) {
	if p.gone {
		return
	}
	p.gone = true
	if p.frozen > 0 {
		p.maybe = m.now + 6*time.Second
	}
}

func (m *model) free(s *modelSession) {
	if s.state == modelClosing || s.state == modelOpen {
		m.closed++
	}
	s.state = modelGone
	if len(m.waiters) > 0 && !m.stopped {
		if next := m.take(); next != nil {
			first := m.waiters[0].peer
			m.leaveQueue(first)
			m.claim(next, first)
		}
	}
	m.buildAhead()
}
