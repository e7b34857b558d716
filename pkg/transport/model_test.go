package transport

import (
	"cmp"
	"slices"
	"time"
)

// A model of what a server does with sessions, for the property test in model_play_test.go. It is one thread and one clock:
// what the server does with goroutines, timers, locks and contexts, it does by looking for the next event. Times are since
// the beginning; 0 as a time means never.

// The settings that the played server has.
const (
	modelIdle      = 60 * time.Second
	modelTool      = 30 * time.Second
	modelQueueWait = 9 * time.Second
)

type modelState int

const (
	modelBuilding modelState = iota
	modelOpen
	modelClosing // a handler has not returned
	modelGone
)

type modelSession struct {
	n       int // which session of the sequence
	state   modelState
	claimed bool
	ahead   bool // begun to be built before it was claimed
	begun   bool // its building has begun
	fails   bool // its building will fail
	built   time.Duration
	opener  *modelPeer // while it is being built

	byInitialize bool
	owned        bool // by a socket that takes it along
	owner, held  *modelPeer
	joined       []*modelPeer
	awaited      time.Duration // until when it waits for a lost owner
	patience     time.Duration // of its last such wait
	closeDue     bool
	last         time.Duration
	running      *modelCall // what has the turn
	queue        []*modelCall
	pending      *modelPeer // waits for held to go
	pendingUntil time.Duration
}

// A modelPeer is a socket, or an HTTP client that opens a session.
type modelPeer struct {
	socket   bool
	mcp      bool // on /mcp
	init     bool // an initialize
	session  *modelSession
	resume   time.Duration
	start    time.Duration
	frozen   time.Duration
	gone     bool
	maybe    time.Duration // until when its goroutine may be there though it is gone
	untilEnd *modelCall    // or until the handler of this call returns; nil: none
}

type modelCall struct {
	peer     *modelPeer // nil: an HTTP caller
	length   time.Duration
	ignore   bool
	came     time.Duration
	began    time.Duration
	answered bool // its caller has the answer, or has gone
	returned bool // its handler has, if it had its turn
}

type modelWaiter struct {
	peer  *modelPeer
	until time.Duration
	extra bool // the queue was full when it came
	last  bool // until is the end of its wait
}

type model struct {
	now       time.Duration
	max       int
	queueLen  int
	warmUp    int
	buildTime time.Duration
	failEvery int

	sessions       []*modelSession
	peers          []*modelPeer
	waiters        []*modelWaiter
	builds         int
	opened, closed int
	pausedUntil    time.Duration
	pause          time.Duration
	stopped        bool
}

// ---- the clock ----

// advance lets the time pass, event by event.
func (m *model) advance(to time.Duration) {
	for {
		at, event := m.next()
		if event == nil || at > to {
			m.now = to
			return
		}
		m.now = at
		event()
	}
}

// next finds the earliest event.
func (m *model) next() (at time.Duration, event func()) {
	consider := func(t time.Duration, f func()) {
		if t > 0 && (event == nil || t < at) {
			at, event = t, f
		}
	}
	for _, s := range m.sessions {
		if s.state == modelBuilding && s.begun {
			consider(s.built, func() { m.complete(s) })
		}
		if c := s.running; c != nil {
			consider(c.began+c.length, func() { m.handlerReturns(s) })
			if !c.answered {
				consider(c.came+modelTool, func() { m.giveUp(s, c) })
			}
		}
		for _, c := range s.queue {
			consider(c.came+modelTool, func() { m.giveUp(s, c) })
		}
		if s.state == modelOpen {
			consider(s.awaited, func() { s.owned = false; m.end(s) })
			if s.idleAt() > 0 {
				consider(s.idleAt(), func() { m.end(s) })
			}
		}
		if s.pending != nil {
			consider(s.pendingUntil, func() { m.refuse(s.pending); s.pending = nil })
		}
	}
	for _, w := range m.waiters {
		consider(w.until, func() { m.waitEnds(w) })
	}
	for _, p := range m.peers {
		if p.frozen > 0 && !p.gone {
			consider(p.pinged()+deadAfter, func() { m.lose(p, true) })
		}
	}
	consider(m.pausedUntil, func() { m.pausedUntil = 0; m.buildAhead() })
	return at, event
}

// idleAt is when the session will have been idle for too long; 0 if it cannot be.
func (s *modelSession) idleAt() time.Duration {
	if !s.claimed || s.sockets() > 0 || s.awaited > 0 || s.running != nil && !s.running.answered || len(s.queue) > 0 {
		return 0
	}
	return s.last + modelIdle
}

func (s *modelSession) sockets() int {
	n := len(s.joined)
	if s.owner != nil {
		n++
	}
	if s.held != nil && s.held != s.owner {
		n++
	}
	return n
}

// ---- the life of a session ----

// end begins the end of a session.
func (m *model) end(s *modelSession) {
	switch s.state {
	case modelBuilding:
		if s.opener != nil {
			m.refuse(s.opener)
			s.opener = nil
		}
		m.free(s)
		return
	case modelOpen:
	default:
		return
	}
	s.state, s.awaited = modelClosing, 0
	s.queue = nil
	for _, p := range slices.Concat(s.joined, []*modelPeer{s.owner, s.held}) {
		if p != nil {
			m.vanish(p)
			p.untilEnd = s.running
		}
	}
	if p := s.pending; p != nil {
		m.vanish(p)
		p.maybe, s.pending = m.now+6*time.Second, nil // it is told when the socket before it has gone
	}
	s.owner, s.held, s.joined = nil, nil, nil
	if c := s.running; c != nil {
		c.answered = true
		if c.ignore {
			return
		}
		c.returned = true
		s.running = nil
	}
	m.free(s)
}

// close is openenv/session/close.
func (m *model) close(s *modelSession) {
	if s.state != modelOpen {
		return
	}
	if s.held != nil || s.owned && s.awaited == 0 {
		s.closeDue = true
		return
	}
	m.end(s)
}

// attach lets a /ws socket attach to a session.
func (m *model) attach(p *modelPeer, s *modelSession) {
	switch {
	case s.state != modelOpen || !s.claimed:
		m.refuse(p)
	case s.held != nil:
		s.pending, s.pendingUntil = p, m.now+5*time.Second
	default:
		m.hold(p, s)
	}
}

func (m *model) hold(p *modelPeer, s *modelSession) {
	s.held, p.session, s.last = p, s, m.now
	if s.awaited > 0 {
		s.awaited, s.owner = 0, p
		if p.resume == 0 {
			p.resume = s.patience
		}
	}
}

func (m *model) join(p *modelPeer, s *modelSession) {
	if s.state != modelOpen || !s.claimed {
		m.refuse(p)
		return
	}
	s.joined, p.session = append(s.joined, p), s
}

// lose takes a peer away: by a loss, or by a goodbye.
func (m *model) lose(p *modelPeer, abrupt bool) {
	if p.gone {
		return
	}
	p.gone = true
	m.leaveQueue(p)
	s := p.session
	for _, t := range m.sessions {
		if t.pending == p {
			t.pending = nil
			return
		}
	}
	if s == nil {
		return
	}
	if s.opener == p {
		s.opener = nil
		m.end(s)
		return
	}
	// Its calls are cancelled first.
	s.queue = slices.DeleteFunc(s.queue, func(c *modelCall) bool { return c.peer == p })
	if c := s.running; c != nil && c.peer == p {
		m.cancel(s, c)
	}
	p.untilEnd = s.running // its own, or the one that keeps the session from ending
	owner := s.owner == p
	s.last = m.now
	if s.held == p {
		s.held = nil
	}
	if owner {
		s.owner = nil
	}
	s.joined = slices.DeleteFunc(s.joined, func(j *modelPeer) bool { return j == p })
	switch {
	case owner && abrupt && p.resume > 0 && !s.closeDue:
		s.awaited, s.patience = m.now+p.resume, p.resume
	case owner || s.closeDue && s.held == nil && s.owner == nil:
		m.end(s)
	}
	if s.pending != nil && s.held == nil && s.state == modelOpen {
		next := s.pending
		s.pending = nil
		m.hold(next, s)
	}
}

// tossUp reports whether a peer's going would leave open whether a call that waits for the peer's own gets its turn: the
// turn passes on just when the session ends.
func (m *model) tossUp(p *modelPeer) bool {
	s := p.session
	return s != nil && s.running != nil && s.running.peer == p && len(s.queue) > 0
}

// ---- calls ----

func (m *model) call(s *modelSession, c *modelCall) {
	c.came = m.now
	s.last = m.now
	if s.running != nil {
		s.queue = append(s.queue, c)
		return
	}
	s.running, c.began = c, m.now
}

// cancel is what a caller's going does to its call.
func (m *model) cancel(s *modelSession, c *modelCall) {
	switch {
	case s.running != c:
		s.queue = slices.DeleteFunc(s.queue, func(q *modelCall) bool { return q == c })
		s.last = m.now
	case c.ignore:
		c.answered = true
		s.last = m.now
	default:
		m.handlerReturns(s)
	}
}

func (m *model) giveUp(s *modelSession, c *modelCall) { m.cancel(s, c) }

func (m *model) handlerReturns(s *modelSession) {
	c := s.running
	c.returned = true
	s.running = nil
	if !c.answered {
		c.answered = true
		s.last = m.now
	}
	if s.state == modelClosing {
		m.free(s)
		return
	}
	if len(s.queue) > 0 {
		s.running = s.queue[0]
		s.queue = s.queue[1:]
		s.running.began = m.now
	}
}

// ---- what is compared ----

// A census is what can be counted from outside.
type census struct {
	Active   int // slots
	Open     int // environments
	Handlers int // that run
	Building int // environments
}

func (m *model) census() census {
	c := census{Active: m.active(), Open: m.opened - m.closed}
	for _, s := range m.sessions {
		if s.running != nil {
			c.Handlers++
		}
		if s.state == modelBuilding && s.begun {
			c.Building++
		}
	}
	return c
}

// socketsServed is how many sockets have goroutines: at least, and at most.
func (m *model) socketsServed() (least, most int) {
	for _, p := range m.peers {
		switch {
		case !p.socket:
		case !p.gone:
			least++
			most++
		case p.maybe > m.now || p.untilEnd != nil && !p.untilEnd.returned:
			most++
		}
	}
	return least, most
}

// longestHandler is how long the handlers that run will yet take.
func (m *model) longestHandler() (d time.Duration) {
	for _, s := range m.sessions {
		if c := s.running; c != nil && c.ignore {
			d = max(d, c.began+c.length-m.now)
		}
	}
	return d
}

// claimed are the sessions that a step of a sequence may name, the latest last.
func (m *model) claimed() []*modelSession {
	var all []*modelSession
	for _, s := range m.sessions {
		if s.claimed {
			all = append(all, s)
		}
	}
	slices.SortStableFunc(all, func(a, b *modelSession) int { return cmp.Compare(a.n, b.n) })
	return all
}
