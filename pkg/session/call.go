package session

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

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
		return observe(s.callTool(ctx, ToolRequest(a.Tool, a.Arguments), limit))
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
	c := s.newToolCall(ToolRequest(a.Tool, a.Arguments), limit)
	c.then = func(got toolOutcome, err error, here bool) {
		o, err := observe(c.outcome(got, err))
		then(o, err, here)
	}
	return !c.arrive(b) || c.run()
}

func observe(c toolOutcome, err error) (gym.Observation, error) {
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
