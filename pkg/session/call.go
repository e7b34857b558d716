package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
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

// A pending is a call between its arrival and its answer. It is the call's context.
//
// It runs f in the session's turn and gives then, once, what became of it. Exactly one of two things happens. Either f returns
// in time, and then gets its value. Or the deadline, the caller or the session's end comes first: then gets the error at once,
// and f, if it runs, keeps the turn until it returns, for nobody. Before that settle is told, once; if f was started, which
// ran tells, it is told while f still has the turn, so that no later call sees the session without it.
type pending[T any] struct {
	callContext
	w      work
	f      func(context.Context) T
	settle func(v *T, ran bool, err error)
	then   func(v T, err error, here bool)
	v      T // what f has returned; of the goroutine that runs it

	deciding sync.Mutex // held while it is decided what becomes of the call; guards decided
	decided  bool
}

// arrive has the call arrive. It is false where that was all: the session takes none.
func (p *pending[T]) arrive(ctx context.Context, s *Session) bool {
	if err := s.enter(); err != nil {
		p.settle(&p.v, false, err)
		p.then(p.v, err, true)
		return false
	}
	p.begin(ctx, s, p.w.limit)
	return true
}

// run runs f in the caller's goroutine, and so does then, save where a running f is given up: then's last argument tells,
// and run returns it when f has returned. (A goroutine for each call would cost a step more than all the rest of it.)
func (p *pending[T]) run() (here bool) {
	running, err := p.s.takeTurn(&p.callContext, p.w)
	if err != nil {
		p.settle(&p.v, false, err)
		p.finish(p.v, err, true)
		return true
	}
	p.whenEnded(p.giveUp)
	func() {
		defer p.s.turn.Release(p.w.share)
		defer p.s.returned(running)
		p.v, err = guarded(p.s, p.w.what, func() T { return p.f(p) })
		// A handler that obeys its context returns just when the time is up, and what it returns is not the answer.
		p.endIfLate()
		if p.Err() != nil {
			var none T
			p.v, err = none, interrupted(&p.callContext, p.w, true)
		}
		here = p.decide(&p.v, err)
	}()
	if here {
		p.finish(p.v, p.s.told(err), true)
	}
	return here
}

// decide settles a call that has run for whoever comes first: its handler, or who gives it up.
func (p *pending[T]) decide(v *T, err error) (first bool) {
	p.deciding.Lock()
	defer p.deciding.Unlock()
	if first = !p.decided; first {
		p.decided = true
		p.settle(v, true, err)
	}
	return first
}

// giveUp answers the caller of a call whose context has ended.
func (p *pending[T]) giveUp() {
	var v T // settle may write to it
	if err := interrupted(&p.callContext, p.w, true); p.decide(&v, err) {
		p.finish(v, p.s.told(err), false)
	}
}

func (p *pending[T]) finish(v T, err error, here bool) {
	p.release()
	p.s.leave()
	p.then(v, err, here)
}

// takeTurn waits for the turn, or a share of it.
func (s *Session) takeTurn(c *callContext, w work) (running int, err error) {
	if c.Err() != nil || !s.turn.TryAcquire(w.share) { // which asks for no channel, and passes nobody who waits
		err = s.turn.Acquire(c, w.share)
	}
	switch {
	case err != nil:
		err = s.told(interrupted(c, w, false))
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

// guarded is the last guard between what a call runs and the process. Authors' functions have guards of their own below
// it, with better words.
func guarded[T any](s *Session, what callName, f func() T) (v T, err error) {
	defer func() {
		if r := recover(); r != nil {
			s.log.Error("call panicked", "event", "call_panic", "call", what.String(), "panic", fmt.Sprint(r), "stack", string(debug.Stack()))
			err = fmt.Errorf("%v panicked; the server's log has the stack", what)
		}
	}()
	return f(), nil
}

// do runs f for a caller that waits, in a goroutine of its own, so that the caller can be answered while f runs on.
func do[T any](s *Session, ctx context.Context, w work, f func(context.Context) T, settle func(v *T, ran bool, err error)) (v T, err error) {
	answered := make(chan struct{})
	p := &pending[T]{w: w, f: f, settle: settle, then: func(got T, failed error, _ bool) {
		v, err = got, failed
		close(answered)
	}}
	if p.arrive(ctx, s) {
		go p.run()
		p.wait(answered)
	}
	return v, err
}

// nothing is the settle of calls that leave no trace in the counters.
func nothing[T any](*T, bool, error) {}

// interrupted is why a call whose context has ended has ended.
func interrupted(c *callContext, w work, ran bool) error {
	cause := c.why()
	if errors.Is(cause, errDeadline) {
		return &TimeoutError{What: w.what.String(), Limit: w.limit, Ran: ran}
	}
	return cause
}

// told tells the operator of a deadline that has passed, and returns the error.
func (s *Session) told(err error) error {
	if timeout, ok := errors.AsType[*TimeoutError](err); ok {
		s.log.Warn("call timed out", "event", "call_timeout", "call", timeout.What, "limit", timeout.Limit, "ran", timeout.Ran)
	}
	return err
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

// count enters an answered step into the episode and into the session's own total.
func (s *Session) count(score gym.Score) gym.Episode {
	s.mu.Lock()
	s.steps++
	s.mu.Unlock()
	return s.inst.Count(score)
}

// isStep reports whether a call that asked for a step was one: if it ran, for it may have changed the world though nobody
// awaits the answer, or if its time passed in the queue.
func isStep(ran bool, err error) bool {
	if ran {
		return true
	}
	_, late := errors.AsType[*TimeoutError](err)
	return late
}

func or(limit, fallback time.Duration) time.Duration {
	if limit > 0 {
		return limit
	}
	return fallback
}

// A ScoreError is a step whose action succeeded and whose After failed.
type ScoreError struct{ Err error }

func (e *ScoreError) Error() string { return "scoring the step failed: " + e.Err.Error() }

func (e *ScoreError) Unwrap() error { return e.Err }

// CallTool calls a tool, as one step. A failed call is in the answer, a time-out included; err is that the session
// closed, or the cause of ctx. req.Session is the SDK session that carried the request, or nil. limit 0 is the tool's, or
// the server's.
func (s *Session) CallTool(ctx context.Context, req *mcp.CallToolRequest, limit time.Duration) (gym.ToolAnswer, error) {
	c, err := s.callTool(ctx, req, limit)
	return c.answer, err
}

type toolCall struct {
	answer   gym.ToolAnswer
	score    gym.Score
	scoreErr error
	episode  gym.Episode
}

func (s *Session) callTool(ctx context.Context, req *mcp.CallToolRequest, limit time.Duration) (c toolCall, err error) {
	answered := make(chan struct{})
	p := s.toolCall(req, limit, func(got toolCall, failed error, _ bool) {
		c, err = got, failed
		close(answered)
	})
	if p.arrive(ctx, s) {
		s.m.workers.run(p)
		p.wait(answered)
	}
	return c, err
}

// toolCall is a tool call, with what counts as a step counted.
func (s *Session) toolCall(req *mcp.CallToolRequest, limit time.Duration, then func(c toolCall, err error, here bool)) *pending[toolCall] {
	name, args := req.Params.Name, req.Params.Arguments
	traits := s.inst.Traits(name)
	w := work{callName{tool: name}, or(limit, or(traits.Deadline, s.m.opts.ToolTimeout)), turnSize}
	if traits.Concurrent {
		w.share = 1
	}
	var after gym.Episode // the counters after the call
	return &pending[toolCall]{
		w: w,
		f: func(ctx context.Context) (c toolCall) {
			c.answer, c.score, c.scoreErr = s.inst.CallTool(ctx, req)
			return c
		},
		settle: func(c *toolCall, ran bool, err error) {
			if isStep(ran, err) {
				after = s.count(c.score)
			}
			if late, ok := errors.AsType[*TimeoutError](err); ok && ran {
				s.inst.Record(name, args, timedOut(name, late))
			} else if err == nil {
				s.inst.Record(name, args, c.answer)
			}
		},
		then: func(c toolCall, err error, here bool) {
			if c.scoreErr != nil {
				s.log.Error("scoring failed", "event", "score_error", "tool", c.answer.Tool, "error", c.scoreErr)
			}
			if timeout, ok := errors.AsType[*TimeoutError](err); ok {
				c, err = toolCall{answer: timedOut(name, timeout)}, nil
			}
			c.episode = after
			then(c, err, here)
		},
	}
}

func timedOut(tool string, err *TimeoutError) gym.ToolAnswer {
	return gym.ToolAnswer{Tool: tool, Err: &tools.Error{Type: tools.Timeout, Tool: tool, Message: err.Error(), Err: err}}
}

// ListTools lists the session's tools. It is no step, and waits for its turn only where the environment has a server of
// its own, whose middleware is the author's.
func (s *Session) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	type listing struct {
		tools []*mcp.Tool
		err   error
	}
	list := func(ctx context.Context) (l listing) {
		l.tools, l.err = s.inst.ListTools(ctx)
		return l
	}
	if !s.inst.OwnServer() {
		if s.ctx.Err() != nil {
			return nil, errClosed()
		}
		s.Touch()
		l := list(ctx)
		return l.tools, l.err
	}
	l, err := do(s, ctx, alone("tools/list", s.m.opts.ToolTimeout), list, nothing)
	return l.tools, cmp.Or(err, l.err)
}

// Step takes one step. A tool call that failed, or timed out, is an observation. err is an *[tools.InputError] where the
// environment refused its own action (no step), a *[TimeoutError], a *[ScoreError], that the session closed, the cause of
// ctx, or what the author's function returned.
func (s *Session) Step(ctx context.Context, a gym.Action, limit time.Duration) (gym.Observation, error) {
	switch a.Kind {
	case gym.CallTool:
		return observe(s.callTool(ctx, toolRequest(a), limit))
	case gym.ListTools:
		return s.stepList(ctx, limit)
	}
	return s.stepOwn(ctx, a, limit)
}

// StepThen is [Session.Step] in the caller's goroutine: then gets the outcome, once, and here tells whether in this
// goroutine. It is false where the tool was given up while it runs on; StepThen returns it when the tool has returned.
func (s *Session) StepThen(ctx context.Context, a gym.Action, limit time.Duration, then func(o gym.Observation, err error, here bool)) (here bool) {
	if a.Kind != gym.CallTool {
		o, err := s.Step(ctx, a, limit)
		then(o, err, true)
		return true
	}
	b, ok := ctx.(*bound)
	if !ok || b.s != s { // a context for this call alone will do
		var release context.CancelFunc
		b, release = s.bind(ctx)
		defer release()
	}
	p := s.toolCall(toolRequest(a), limit, func(c toolCall, err error, here bool) {
		o, err := observe(c, err)
		then(o, err, here)
	})
	return !p.arrive(b, s) || p.run()
}

func toolRequest(a gym.Action) *mcp.CallToolRequest {
	return &mcp.CallToolRequest{
		Params: &mcp.CallToolParamsRaw{Name: a.Tool, Arguments: a.Arguments}, Extra: &mcp.RequestExtra{},
	}
}

func observe(c toolCall, err error) (gym.Observation, error) {
	switch {
	case err != nil:
		return gym.Observation{}, err
	case c.scoreErr != nil:
		return gym.Observation{}, &ScoreError{c.scoreErr}
	}
	return gym.Observation{Observed: c.answer.Observation(), Reward: c.episode.LastReward, Done: c.episode.Done}, nil
}

func (s *Session) stepList(ctx context.Context, limit time.Duration) (gym.Observation, error) {
	return do(s, ctx, alone("list_tools", or(limit, s.m.opts.ToolTimeout)),
		func(ctx context.Context) gym.Observation {
			return gym.Observation{Observed: gym.ListObservation(s.inst.ListTools(ctx))}
		},
		func(o *gym.Observation, ran bool, err error) {
			if isStep(ran, err) {
				o.Done = s.count(gym.Score{}).Done
			}
		})
}

func (s *Session) stepOwn(ctx context.Context, a gym.Action, limit time.Duration) (gym.Observation, error) {
	type outcome struct {
		o     gym.Observation
		score gym.Score
		err   error
	}
	out, err := do(s, ctx, alone("step", or(limit, s.m.opts.ToolTimeout)),
		func(ctx context.Context) (out outcome) {
			out.o.Observed, out.score, out.err = s.inst.Act(ctx, a)
			return out
		},
		func(out *outcome, ran bool, err error) {
			var refused *tools.InputError
			if errors.As(out.err, &refused) || !isStep(ran, err) {
				return
			}
			e := s.count(out.score)
			out.o.Reward, out.o.Done = e.LastReward, e.Done
		})
	return out.o, cmp.Or(err, out.err)
}

// Reset begins a new episode. err is a *[TimeoutError], that the session closed, the cause of ctx, or what the author's
// function returned. limit 0 is the server's.
func (s *Session) Reset(ctx context.Context, p gym.ResetParams, limit time.Duration) (gym.Observation, error) {
	type outcome struct {
		o   gym.Observation
		err error
	}
	out, err := do(s, ctx, alone("reset", or(limit, s.m.opts.ResetTimeout)),
		func(ctx context.Context) (out outcome) {
			out.o, out.err = s.inst.Reset(ctx, p)
			return out
		}, nothing)
	return out.o, cmp.Or(err, out.err)
}

// State is the state as the wire has it. Errors are as for [Session.Reset].
func (s *Session) State(ctx context.Context, limit time.Duration) (json.RawMessage, error) {
	type outcome struct {
		state json.RawMessage
		err   error
	}
	out, err := do(s, ctx, alone("state", or(limit, s.m.opts.ToolTimeout)),
		func(ctx context.Context) (out outcome) {
			out.state, out.err = s.inst.State(ctx)
			return out
		}, nothing)
	return out.state, cmp.Or(err, out.err)
}
