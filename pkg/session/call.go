package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// do runs f in the session's turn and returns what it returned. limit bounds wait and run together. If the deadline, the
// caller or the session's end comes first, do returns its error at once, and f keeps the turn until it returns.
//
// Exactly one of two things happens: settle is called with f's value, in the turn, and do returns it; or do returns an
// error and settle is never called. ran tells whether f was started.
func do[T any](s *Session, ctx context.Context, what string, limit time.Duration,
	f func(context.Context) T, settle func(*T)) (v T, ran bool, err error) {
	if err := s.enter(); err != nil {
		return v, false, err
	}
	defer s.leave()
	ctx, cancelCause := context.WithCancelCause(ctx)
	defer cancelCause(nil)
	defer context.AfterFunc(s.ctx, func() { cancelCause(context.Cause(s.ctx)) })()
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errDeadline)
	defer cancel()

	if s.turn.Acquire(ctx, 1) != nil {
		return v, false, s.interrupted(ctx, what, limit, false)
	}
	var decided atomic.Bool
	result := make(chan T, 1)
	go func() {
		defer s.turn.Release(1)
		v := f(ctx)
		// A handler that obeys its context returns just when the time is up, and what it returns is not the answer.
		if ctx.Err() == nil && decided.CompareAndSwap(false, true) {
			settle(&v)
			result <- v
		}
	}()
	select {
	case v = <-result:
		return v, true, nil
	case <-ctx.Done():
		if decided.CompareAndSwap(false, true) {
			return v, true, s.interrupted(ctx, what, limit, true)
		}
		return <-result, true, nil
	}
}

func (s *Session) interrupted(ctx context.Context, what string, limit time.Duration, ran bool) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, errDeadline) {
		s.log.Warn("call timed out", "event", "call_timeout", "call", what, "limit", limit, "ran", ran)
		return &TimeoutError{What: what, Limit: limit, Ran: ran}
	}
	return cause
}

func (s *Session) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != open {
		return errClosed()
	}
	s.calls++
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
// closed, or the cause of ctx. req.Session is the SDK session that carried the request, or nil. limit 0 is the server's.
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

func (s *Session) callTool(ctx context.Context, req *mcp.CallToolRequest, limit time.Duration) (toolCall, error) {
	name := req.Params.Name
	c, ran, err := do(s, ctx, name, or(limit, s.m.opts.ToolTimeout),
		func(ctx context.Context) (c toolCall) {
			c.answer, c.score, c.scoreErr = s.inst.CallTool(ctx, req)
			return c
		},
		func(c *toolCall) { c.episode = s.count(c.score) })
	if c.scoreErr != nil {
		s.log.Error("scoring failed", "event", "score_error", "tool", name, "error", c.scoreErr)
	}
	var timeout *TimeoutError
	switch {
	case errors.As(err, &timeout):
		fault := &tools.Error{Type: tools.Timeout, Tool: name, Message: "tool " + timeout.Error(), Err: timeout}
		return toolCall{answer: gym.ToolAnswer{Tool: name, Err: fault}, episode: s.count(gym.Score{})}, nil
	case err != nil && ran:
		s.count(gym.Score{}) // it may have changed the world, though nobody awaits the answer
	}
	return c, err
}

// ListTools lists the session's tools. It is no step and waits for no turn.
func (s *Session) ListTools(ctx context.Context) ([]*mcp.Tool, error) {
	if err := s.enter(); err != nil {
		return nil, err
	}
	defer s.leave()
	return s.inst.ListTools(ctx)
}

// Step takes one step. A tool call that failed, or timed out, is an observation. err is an *[tools.InputError] where the
// environment refused its own action (no step), a *[TimeoutError], a *[ScoreError], that the session closed, the cause of
// ctx, or what the author's function returned.
func (s *Session) Step(ctx context.Context, a gym.Action, limit time.Duration) (gym.Observation, error) {
	switch a.Kind {
	case gym.CallTool:
		c, err := s.callTool(ctx, &mcp.CallToolRequest{
			Params: &mcp.CallToolParamsRaw{Name: a.Tool, Arguments: a.Arguments},
			Extra:  &mcp.RequestExtra{},
		}, limit)
		if err == nil && c.scoreErr != nil {
			err = &ScoreError{c.scoreErr}
		}
		if err != nil {
			return gym.Observation{}, err
		}
		return gym.Observation{Observed: c.answer.Observation(), Reward: c.episode.LastReward, Done: c.episode.Done}, nil
	case gym.ListTools:
		return s.stepList(ctx, limit)
	}
	return s.stepOwn(ctx, a, limit)
}

func (s *Session) stepList(ctx context.Context, limit time.Duration) (gym.Observation, error) {
	o, _, err := do(s, ctx, "list_tools", or(limit, s.m.opts.ToolTimeout),
		func(ctx context.Context) gym.Observation {
			return gym.Observation{Observed: gym.ListObservation(s.inst.ListTools(ctx))}
		},
		func(o *gym.Observation) { o.Done = s.count(gym.Score{}).Done })
	return o, err
}

func (s *Session) stepOwn(ctx context.Context, a gym.Action, limit time.Duration) (gym.Observation, error) {
	type outcome struct {
		o     gym.Observation
		score gym.Score
		err   error
	}
	out, ran, err := do(s, ctx, "step", or(limit, s.m.opts.ToolTimeout),
		func(ctx context.Context) (out outcome) {
			out.o.Observed, out.score, out.err = s.inst.Act(ctx, a)
			return out
		},
		func(out *outcome) {
			var refused *tools.InputError
			if errors.As(out.err, &refused) {
				return
			}
			e := s.count(out.score)
			out.o.Reward, out.o.Done = e.LastReward, e.Done
		})
	var timeout *TimeoutError
	if ran && err != nil || errors.As(err, &timeout) {
		s.count(gym.Score{})
	}
	return out.o, cmp.Or(err, out.err)
}

// Reset begins a new episode. err is a *[TimeoutError], that the session closed, the cause of ctx, or what the author's
// function returned.
func (s *Session) Reset(ctx context.Context, p gym.ResetParams) (gym.Observation, error) {
	type outcome struct {
		o   gym.Observation
		err error
	}
	out, _, err := do(s, ctx, "reset", s.m.opts.ResetTimeout,
		func(ctx context.Context) (out outcome) {
			out.o, out.err = s.inst.Reset(ctx, p)
			return out
		}, func(*outcome) {})
	return out.o, cmp.Or(err, out.err)
}

// State is the state as the wire has it. Errors are as for [Session.Reset].
func (s *Session) State(ctx context.Context) (json.RawMessage, error) {
	type outcome struct {
		state json.RawMessage
		err   error
	}
	out, _, err := do(s, ctx, "state", s.m.opts.ToolTimeout,
		func(ctx context.Context) (out outcome) {
			out.state, out.err = s.inst.State(ctx)
			return out
		}, func(*outcome) {})
	return out.state, cmp.Or(err, out.err)
}
