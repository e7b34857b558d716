package session

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// A Session is one environment value, whoever calls it and by whichever door.
type Session struct {
	ID string

	m    *Manager
	log  *slog.Logger
	inst *gym.Instance // set once, before state leaves building

	ahead        bool          // begun to be built before anybody asked for it
	begunToBuild bool          // set before whoever may see the session
	built        chan struct{} // closed when the building is over, with buildErr set
	buildErr     error

	makesRoom bool // it is ending for a newcomer; guarded by m.mu

	// turn is held by the call that is running on the environment value, or shared by calls of concurrent tools. Waiters are
	// served in order of arrival: who wants all of it is not passed by those who want a part.
	turn *semaphore.Weighted

	// ctx ends when the session begins to close, and with it every call and the building of the environment. Its cause is
	// an *Error.
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the teardown is over and the slot is free

	alarms alarms // of its calls' deadlines

	mu       sync.Mutex // guards what follows
	origin   Origin     // set by claim; unclaimed before
	opener   string     // who has opened it; set with origin
	created  time.Time  // when its opener came
	state    state
	ending   bool          // the teardown has begun
	reason   string        // of the end, once it has begun
	sockets  int           // sockets that use the session: it is not idle while there are any
	owned    bool          // the socket that opened the session is there
	held     bool          // a gym channel has the session; there is one at most
	released chan struct{} // while held: closed when it is not any more
	closeDue bool          // close when neither owned nor held
	calls    int           // waiting, or running and awaited
	queued   int           // waiting
	running  []running     // what has the turn, oldest first
	begins   int           // counts what got the turn
	last     time.Time
	steps    int // answered, since the session began; no reset sets it back
	idle     *time.Timer
	agent    *Agent // the MCP client that has initialised, if any
	agents   map[*Agent]bool
	handles  []string   // by which agents reach the session
	channels [2]Channel // the sockets that have the session as Owner and as Attached; nil: none
	closeErr error
	over     bool     // the slot is free
	whenOver []func() // see WhenEnded

	waits    int           // how often the session has waited for its owner
	patience time.Duration // of the last wait
	awaited  *time.Timer   // runs while the session waits for the socket that owned it to come back
	trainers replies       // to requests with an id
	guests   replies

	tasks sync.WaitGroup // makers of replies; Add under mu while open

	// leaving counts the agents that are ending. Add under mu, and only while they are in agents.
	leaving sync.WaitGroup
}

type state int

const (
	building state = iota
	open
	closing // from the first Close on; over when done is closed
)

func newSession(m *Manager, id string) *Session {
	now := time.Now()
	s := &Session{
		ID: id, m: m, origin: unclaimed, created: now, log: m.opts.Logger.With("session", id),
		turn: semaphore.NewWeighted(turnSize), done: make(chan struct{}), built: make(chan struct{}), last: now, agents: map[*Agent]bool{},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
}

// claim gives the session to its opener.
func (s *Session) claim(origin Origin, opener string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.origin, s.opener = origin, opener
	s.created = time.Now()
	s.last = s.created
	if origin == ByGymSocket || origin == ByMCPSocket || origin == ByStdio {
		s.owned, s.sockets = true, 1
		s.channels[Owner] = lively{}
	}
	if origin == ByGymSocket {
		s.hold()
	}
	s.armIdle()
}

// ready hands over the built environment. It reports whether the session is still wanted.
func (s *Session) ready(inst *gym.Instance) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inst = inst
	if s.state != building {
		return false
	}
	s.state, s.last = open, time.Now()
	s.armIdle()
	return true
}

func (s *Session) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.usableLocked()
}

func (s *Session) usableLocked() error {
	if s.origin == Temporary || s.origin == unclaimed {
		return errUnknown(s.ID)
	}
	switch s.state {
	case building:
		return &Error{Code: Initializing, Message: "session " + s.ID + " is still initializing; retry shortly"}
	case open:
		return nil
	}
	return errUnknown(s.ID)
}

// Steps is how many steps the session has answered since it began.
func (s *Session) Steps() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.steps
}

// Busy is how many calls wait or run.
func (s *Session) Busy() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// Episode is the episode's counters.
func (s *Session) Episode() gym.Episode { return s.inst.Episode() }

// Opener is the name of who has opened the session, as it was given to [Manager.Open].
func (s *Session) Opener() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opener
}

// Context ends when the session begins to close.
func (s *Session) Context() context.Context { return s.ctx }

// ---- sockets ----

// attachWait is how long a gym channel waits for the one before it to go: a client that reconnects may be faster than the
// server's notice of its loss.
const attachWait = 5 * time.Second

// attach gives the session to a gym channel. It waits for another one to go, but not for long.
func (s *Session) attach(ctx context.Context) (Hold, error) {
	timer := time.NewTimer(attachWait)
	defer timer.Stop()
	for {
		s.mu.Lock()
		err, released := s.usableLocked(), s.released
		hold := Attached
		if err == nil && !s.held {
			s.hold()
			s.sockets++
			s.last = time.Now()
			if s.awaited != nil {
				s.awaited.Stop()
				s.awaited, hold = nil, Owner
			}
			s.channels[hold] = lively{}
		}
		s.mu.Unlock()
		if err != nil || released == nil {
			return hold, err
		}
		select {
		case <-released:
		case <-s.done:
		case <-timer.C:
			return hold, &Error{Code: Busy, Message: "session " + s.ID + " already has an attached WebSocket"}
		case <-ctx.Done():
			return hold, context.Cause(ctx)
		}
	}
}

// hold (mu held, or not shared yet) marks the session as held by a gym channel.
func (s *Session) hold() {
	s.held, s.released = true, make(chan struct{})
}

// letGo (mu held) is the opposite of hold.
func (s *Session) letGo() {
	if s.held {
		s.held = false
		close(s.released)
		s.released = nil
	}
}

func (s *Session) join() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.usableLocked(); err != nil {
		return err
	}
	s.sockets++
	return nil
}

// A Hold is what a socket has of its session.
type Hold int

const (
	Owner    Hold = iota // it opened the session, which ends with it
	Attached             // it is the session's gym channel
	Joined               // it uses the session beside others
	Visiting             // it uses the session while that lasts, and does not keep it from going idle
)

// Release is called when a socket has gone, with what it had of the session. It ends the session if the socket owned it,
// or if a close was asked for meanwhile, and waits for that as long as ctx allows.
func (s *Session) Release(ctx context.Context, h Hold) error {
	return s.release(ctx, h, "its socket was closed")
}

func (s *Session) release(ctx context.Context, h Hold, reason string) error {
	if h == Visiting {
		return nil
	}
	s.mu.Lock()
	s.last = time.Now()
	s.sockets--
	if h == Owner {
		s.owned, s.closeDue = false, true
	}
	if h != Joined {
		s.channels[h] = nil
	}
	if h == Attached || h == Owner && s.origin == ByGymSocket {
		s.letGo()
	}
	end := s.closeDue && !s.held && !s.owned || h == Owner
	s.armIdle()
	s.mu.Unlock()
	if end {
		return s.Close(ctx, reason)
	}
	return nil
}

// closeUnlessHeld begins the end of the session; where a socket owns or holds it, it only notes that the session is to
// end when the socket lets go, and returns true.
func (s *Session) closeUnlessHeld(reason string) (later bool) {
	s.mu.Lock()
	if later = s.held || s.owned && s.awaited == nil; later {
		s.closeDue = true
		s.mu.Unlock()
		return true
	}
	s.begin(reason, errClosed())
	return false
}

// ---- idleness ----

// armIdle (mu held) starts the idle timer, unless it runs or the session cannot go idle.
func (s *Session) armIdle() {
	if s.m.opts.IdleTimeout < 0 || s.sockets > 0 || s.awaited != nil || s.origin == Temporary || s.origin == unclaimed || s.state != open || s.idle != nil {
		return
	}
	s.idle = time.AfterFunc(s.m.opts.IdleTimeout-time.Since(s.last), s.reap)
}

// reap ends the session if it is idle now; else it looks again when it can be. There is one timer and activity only
// moves last, so that a call costs no timer work.
func (s *Session) reap() {
	s.mu.Lock()
	s.idle = nil
	if s.calls > 0 {
		s.last = time.Now()
	}
	if s.state != open || s.sockets > 0 || s.awaited != nil || time.Since(s.last) < s.m.opts.IdleTimeout {
		s.armIdle()
		s.mu.Unlock()
		return
	}
	s.begin("idle", errClosed())
}

// Touch renews the idle timer.
func (s *Session) Touch() {
	s.mu.Lock()
	s.last = time.Now()
	s.mu.Unlock()
}

// ---- end ----

// Close ends the session and waits for its teardown as long as ctx allows: calls are cancelled, the running one is
// waited for, its agents' connections and the environment are closed, and last the slot is freed. It is idempotent; the
// error is what the environment's Close returned, or ctx's.
func (s *Session) Close(ctx context.Context, reason string) error {
	s.mu.Lock()
	s.begin(reason, errClosed())
	return s.wait(ctx)
}

func (s *Session) wait(ctx context.Context) error {
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin (mu held, which it releases) starts the teardown, once, so that whoever decides to end the session and ends it
// does both under one lock. cause is what calls are told. While the environment is being built it only cancels that; the builder finds out.
func (s *Session) begin(reason string, cause *Error) {
	s.state = closing
	if s.reason == "" {
		s.reason = reason
	}
	start := s.inst != nil && !s.ending
	s.ending = s.ending || start
	for _, t := range []*time.Timer{s.idle, s.awaited} {
		if t != nil {
			t.Stop()
		}
	}
	s.mu.Unlock()
	s.cancel(cause)
	if start {
		go s.teardown()
	}
}

// teardown ends when the last call has returned; done is closed last.
func (s *Session) teardown() {
	s.mu.Lock()
	var agents []*Agent
	for a := range s.agents {
		agents = append(agents, a)
	}
	s.mu.Unlock()
	for _, a := range agents { // all at once: one whose handler does not return keeps no answers of another back
		go a.Leave()
	}
	s.leaving.Wait()
	s.tasks.Wait()
	s.awaitTurn()
	err := s.closeInstance()
	if err != nil {
		s.log.Error("environment failed to close", "event", "close_error", "error", err)
	}
	s.mu.Lock()
	s.closeErr = err
	reason, steps, age := s.reason, s.steps, time.Since(s.created)
	s.mu.Unlock()
	s.log.Info("session closed", "event", "session_close", "reason", reason, "total_steps", steps,
		"age", age.Round(time.Millisecond))
	s.free(errClosed())
}

// stuckAfter is how long an author's function may take to return after the session has begun to close before the operator
// is told.
const stuckAfter = 5 * time.Second

// awaitTurn takes the turn for good. Every waiter's context has ended, so it comes when the running call has returned; one
// that does not is told.
func (s *Session) awaitTurn() {
	told := time.AfterFunc(stuckAfter, func() {
		if what, age := s.Running(); what != "" {
			s.log.Error("a handler has not returned though its context has ended", "event", "stuck_handler", "call", what, "age", age.Round(time.Millisecond), "reason", s.Reason())
		}
	})
	defer told.Stop()
	_ = s.turn.Acquire(context.Background(), turnSize)
}

func (s *Session) closeInstance() error {
	s.mu.Lock()
	running := s.begun(callName{what: "Close"})
	s.mu.Unlock()
	defer s.returned(running)
	told := time.AfterFunc(stuckAfter, func() {
		s.log.Error("the environment's Close has not returned", "event", "stuck_close", "age", stuckAfter, "reason", s.Reason())
	})
	defer told.Stop()
	return s.inst.Close()
}

// A running is a call that has the turn, or a share of it.
type running struct {
	n     int // by which it is found again
	what  callName
	since time.Time
}

// Reason is why the session has ended, or is ending; "" while it is not.
func (s *Session) Reason() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reason
}

// Running is what has the session's turn, and for how long; of several concurrent calls the oldest; "" if nothing has.
func (s *Session) Running() (what string, age time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.running) == 0 {
		return "", 0
	}
	return s.running[0].what.String(), time.Since(s.running[0].since)
}

// begun (mu held) notes that a call has got its turn, and returned that it has returned.
func (s *Session) begun(what callName) (n int) {
	s.begins++
	s.running = append(s.running, running{s.begins, what, time.Now()})
	return s.begins
}

func (s *Session) returned(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = slices.DeleteFunc(s.running, func(r running) bool { return r.n == n })
}

// free frees the slot: the last act of a session's life, built or not. why is what its context ends with, unless it has
// ended.
func (s *Session) free(why error) {
	s.m.remove(s)
	s.mu.Lock()
	s.over = true
	due := s.whenOver
	s.mu.Unlock()
	for _, f := range due {
		f()
	}
	s.cancel(why)
	close(s.done)
}
