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

// ---- slots ----

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

// socketGoroutines is how many goroutines serve sockets: at least, and at most.
func (m *model) socketGoroutines() (least, most int) {
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

// usable are the sessions that a step of a sequence may name, the latest last.
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
