package session

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

// turnSize is how many concurrent tools may run beside one another. Such a call takes 1 of the turn, any other all of it.
const turnSize = 64

// A work is what a [pending] is told of a call: its name for people, its deadline, and how much of the turn it takes.
type work struct {
	what  callName
	limit time.Duration // of wait and run together
	share int64
}

// alone is the work of a call that runs with no other beside it.
func alone(what string, limit time.Duration) work { return work{callName{what: what}, limit, turnSize} }

// A callName is a call's name for people. Few calls are ever named, so that it is put together when somebody asks.
type callName struct{ what, tool string }

func (n callName) String() string {
	if n.what != "" {
		return n.what
	}
	return fmt.Sprintf("tool %.200q", n.tool)
}

// An act is what a call does. do runs in the session's turn. settle is told what became of it, before anybody else is: v is
// what do has returned, if it was in time, and settle may write to it; if do was started, which ran tells, settle runs while
// the call still has the turn, so that no later call sees the session without it.
type act[T any] interface {
	do(ctx context.Context) T
	settle(v *T, ran bool, err error)
}

// A pending is a call between its arrival and its answer, and the call's context. Exactly one of two things happens. Either
// do returns in time, and the answer is what it returns. Or the deadline, the caller or the session's end comes first: the
// answer is the error, at once, and do, if it runs, keeps the turn until it returns, for nobody.
type pending[T any] struct {
	callContext
	act  act[T]
	work work

	// then gets the answer, once; here tells whether in the goroutine that runs the call. nil: who has the call arrive gives it to
	// another goroutine to run, and waits.
	then     func(v T, err error, here bool)
	answered chan struct{} // closed when there is an answer; nil if then gets it

	deciding sync.Mutex // held while it is decided what becomes of the call; guards decided
	decided  bool
	answer   T // set by who decides, as failed is, and not changed after
	failed   error
}

// arrive has the call arrive. It is false where that was all: the session takes none, and the answer says so.
func (p *pending[T]) arrive(ctx context.Context) bool {
	if p.then == nil {
		p.answered = make(chan struct{})
	}
	if err := p.s.enter(); err != nil {
		p.refuse(err)
		p.tell(true)
		return false
	}
	p.begin(ctx, p.work.limit)
	return true
}

// run runs the call in this goroutine, and then in the same, save where a running call is given up: then's last argument
// tells, and run returns it when do has returned. (A goroutine for each call would cost a step more than all the rest of it.)
func (p *pending[T]) run() (here bool) {
	running, err := p.s.takeTurn(&p.callContext, p.work)
	if err != nil {
		p.refuse(err)
		p.finish(true)
		return true
	}
	p.whenEnded(p.giveUp)
	func() {
		defer p.s.turn.Release(p.work.share)
		defer p.s.returned(running)
		v, err := p.guarded()
		// A handler that obeys its context returns just when the time is up, and what it returns is not the answer.
		p.endIfLate()
		if p.Err() != nil {
			var none T
			v, err = none, interrupted(&p.callContext, p.work, true)
		}
		here = p.decide(v, err)
	}()
	if here {
		p.finish(true)
	}
	return here
}

// guarded is the last guard between what a call runs and the process. Authors' functions have guards of their own below
// it, with better words.
func (p *pending[T]) guarded() (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			what := p.work.what
			p.s.log.Error("call panicked", "event", "call_panic", "call", what.String(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("%v panicked; the server's log has the stack", what)
		}
	}()
	return p.act.do(p), nil
}

// refuse settles a call that was not started.
func (p *pending[T]) refuse(err error) {
	p.failed = err
	p.act.settle(&p.answer, false, err)
}

// decide settles a call that has run for whoever comes first: its handler, or who gives it up.
func (p *pending[T]) decide(v T, err error) (first bool) {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	if first = !p.decided; first {
		p.decided, p.answer, p.failed = true, v, err
		p.act.settle(&p.answer, true, err)
	}
	return first
}

// giveUp answers a call whose context has ended.
func (p *pending[T]) giveUp() {
	var none T
	if p.decide(none, interrupted(&p.callContext, p.work, true)) {
		p.finish(false)
	}
}

func (p *pending[T]) finish(here bool) {
	p.s.logTimeout(p.failed)
	p.release()
	p.s.leave()
	p.tell(here)
}

func (p *pending[T]) tell(here bool) {
	if p.then != nil {
		p.then(p.answer, p.failed, here)
		return
	}
	close(p.answered)
}

// A plain call is made of two functions.
type plain[T any] struct {
	pending[T]
	f        func(context.Context) T
	settling func(v *T, ran bool, err error)
}

func (p *plain[T]) do(ctx context.Context) T { return p.f(ctx) }

func (p *plain[T]) settle(v *T, ran bool, err error) { p.settling(v, ran, err) }

// do runs f for a caller that waits, in a goroutine of its own, so that the caller can be answered while f runs on.
func do[T any](s *Session, ctx context.Context, w work, f func(context.Context) T, settle func(v *T, ran bool, err error)) (T, error) {
	p := &plain[T]{f: f, settling: settle}
	p.act, p.s, p.work = p, s, w
	if p.arrive(ctx) {
		go p.run()
		p.watch(p.answered)
	}
	return p.answer, p.failed
}

// nothing is the settle of calls that leave no trace in the counters.
func nothing[T any](*T, bool, error) {}

// takeTurn waits for the turn, or a share of it.
func (s *Session) takeTurn(c *callContext, w work) (running int, err error) {
	if c.Err() != nil || !s.turn.TryAcquire(w.share) { // which asks for no channel, and passes nobody who waits
		err = s.turn.Acquire(c, w.share)
	}
	switch {
	case err != nil:
		err = interrupted(c, w, false)
	case s.ctx.Err() != nil: // the session's end has begun, and is about to end ctx
		s.turn.Release(w.share)
		err = context.Cause(s.ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued--
	if err != nil {
		return 0, err
	}
	return s.begun(w.what), nil
}

// interrupted is why a call whose context has ended has ended.
func interrupted(c *callContext, w work, ran bool) error {
	cause := c.why()
	if errors.Is(cause, errDeadline) {
		return &TimeoutError{What: w.what.String(), Limit: w.limit, Ran: ran}
	}
	return cause
}

// logTimeout tells the operator of a deadline that has passed.
func (s *Session) logTimeout(err error) {
	if timeout, ok := errors.AsType[*TimeoutError](err); ok {
		s.log.Warn("call timed out", "event", "call_timeout", "call", timeout.What, "limit", timeout.Limit, "ran", timeout.Ran)
	}
}

// enter counts a call that will take its turn.
func (s *Session) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != open {
		return errClosed()
	}
	s.calls++
	s.queued++
	s.last = time.Now()
	return nil
}

func (s *Session) leave() {
	s.mu.Lock()
	s.calls--
	s.last = time.Now()
	s.mu.Unlock()
}
