package session

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/gym"
)

// A Session is one environment value, whoever calls it and by whichever door.
type Session struct {
	ID      string
	Created time.Time

	m      *Manager
	origin Origin
	log    *slog.Logger
	inst   *gym.Instance // set once, before state leaves building

	// turn is held by the one call that is running on the environment value. Waiters are served in order of arrival.
	turn *semaphore.Weighted

	// ctx ends when the session begins to close, and with it every call. Its cause is an *Error.
	ctx    context.Context
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the teardown is over and the slot is free

	mu       sync.Mutex // guards what follows
	state    state
	held     bool // a socket holds the session: it is not idle and no other socket may have it
	closeDue bool // close when the socket lets go
	ending   bool // the teardown has begun
	calls    int  // waiting or running
	last     time.Time
	steps    int // answered, since the session began; no reset sets it back
	idle     *time.Timer
	agent    *Agent // the MCP client that has initialised, if any
	closeErr error

	// agents are the connections of agents that are ending. Add under mu and only while open, so that the teardown can
	// wait.
	agents sync.WaitGroup
}

type state int

const (
	building state = iota
	open
	closing // from the first Close on; closed when done is
)

func newSession(m *Manager, id string, origin Origin) *Session {
	now := time.Now()
	s := &Session{
		ID: id, Created: now, m: m, origin: origin, log: m.opts.Logger.With("session", id),
		turn: semaphore.NewWeighted(1), done: make(chan struct{}), last: now, held: origin == BySocket,
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	return s
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

// Context ends when the session begins to close.
func (s *Session) Context() context.Context { return s.ctx }

// ---- sockets ----

func (s *Session) attach() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state != open:
		return errUnknown(s.ID)
	case s.held:
		return &Error{Code: Attached, Message: "session " + s.ID + " already has an attached WebSocket"}
	}
	s.held = true
	s.last = time.Now()
	return nil
}

// Detach is called when the socket that holds the session has gone. It ends the session if the socket owned it, or if a
// close was asked for meanwhile, and waits for that as long as ctx allows.
func (s *Session) Detach(ctx context.Context) error {
	s.mu.Lock()
	s.held = false
	s.last = time.Now()
	end := s.origin == BySocket || s.closeDue
	if !end {
		s.armIdle()
	}
	s.mu.Unlock()
	if end {
		return s.Close(ctx, "its socket has gone")
	}
	return nil
}

// closeOnDetach notes that the session is to end when its socket lets go. It reports whether a socket holds it.
func (s *Session) closeOnDetach() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held {
		s.closeDue = true
	}
	return s.held
}

// ---- idleness ----

// armIdle (mu held) starts the idle timer, unless it runs or the session cannot go idle.
func (s *Session) armIdle() {
	if s.m.opts.IdleTimeout < 0 || s.held || s.origin == Temporary || s.state != open || s.idle != nil {
		return
	}
	s.idle = time.AfterFunc(s.m.opts.IdleTimeout-time.Since(s.last), s.reap)
}

// reap ends the session if it is idle now; else it looks again when it can be. There is one timer and activity only
// moves last, so that a call costs no timer work.
func (s *Session) reap() {
	s.mu.Lock()
	s.idle = nil
	if s.state != open || s.held {
		s.mu.Unlock()
		return
	}
	if s.calls > 0 {
		s.last = time.Now()
	}
	if time.Since(s.last) < s.m.opts.IdleTimeout {
		s.armIdle()
		s.mu.Unlock()
		return
	}
	s.mu.Unlock()
	s.begin("idle")
}

// Touch renews the idle timer.
func (s *Session) Touch() {
	s.mu.Lock()
	s.last = time.Now()
	s.mu.Unlock()
}

// ---- end ----

// Close ends the session and waits for its teardown as long as ctx allows: calls are cancelled, the running one is
// waited for, the agent's connection and the environment are closed, and last the slot is freed. It is idempotent; the
// error is what the environment's Close returned, or ctx's.
func (s *Session) Close(ctx context.Context, reason string) error {
	s.begin(reason)
	select {
	case <-s.done:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.closeErr
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin starts the teardown, once. While the environment is being built it only marks the session; the builder finds out.
func (s *Session) begin(reason string) {
	s.mu.Lock()
	s.state = closing
	if s.inst == nil || s.ending {
		s.mu.Unlock()
		return
	}
	s.ending = true
	if s.idle != nil {
		s.idle.Stop()
	}
	agent := s.agent
	s.agent = nil
	s.mu.Unlock()
	s.cancel(errClosed())
	go s.teardown(agent, reason)
}

// teardown ends when the last call has returned; done is closed last.
func (s *Session) teardown(agent *Agent, reason string) {
	if agent != nil {
		agent.end()
	}
	s.agents.Wait()
	// Every waiter's context has ended, so the turn comes when the running call has returned.
	_ = s.turn.Acquire(context.Background(), 1)
	err := s.inst.Close()
	if err != nil {
		s.log.Error("environment failed to close", "event", "close_error", "error", err)
	}
	s.mu.Lock()
	s.closeErr = err
	steps := s.steps
	s.mu.Unlock()
	s.log.Info("session closed", "event", "session_close", "reason", reason, "steps", steps,
		"age", time.Since(s.Created).Round(time.Millisecond))
	s.release()
}

// release frees the slot: the last act of a session's life, built or not.
func (s *Session) release() {
	s.m.remove(s)
	s.cancel(errClosed())
	close(s.done)
}
