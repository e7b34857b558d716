package session

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/openenv-go/openenv-go/pkg/gym"
	"github.com/openenv-go/openenv-go/pkg/tools"
)

// ToolRequest is a request to call a tool with these arguments, by who is no client of the MCP SDK.
func ToolRequest(name string, args json.RawMessage) *mcp.CallToolRequest {
	r := &struct {
		mcp.CallToolRequest
		params mcp.CallToolParamsRaw
		extra  mcp.RequestExtra
	}{params: mcp.CallToolParamsRaw{Name: name, Arguments: args}}
	r.Params, r.Extra = &r.params, &r.extra
	return &r.CallToolRequest
}

// CallTool calls a tool, as one step. A failed call is in the answer, a time-out included; err is that the session
// closed, or the cause of ctx. req.Session is the SDK session that carried the request, or nil. limit 0 is the tool's, or
// the server's.
func (s *Session) CallTool(ctx context.Context, req *mcp.CallToolRequest, limit time.Duration) (gym.ToolAnswer, error) {
	o, err := s.callTool(ctx, req, limit)
	return o.answer, err
}

func (s *Session) callTool(ctx context.Context, req *mcp.CallToolRequest, limit time.Duration) (toolOutcome, error) {
	c := s.newToolCall(req, limit)
	if c.arrive(ctx) {
		s.m.workers.run(c)
		c.watch(c.answered)
	}
	return c.outcome(c.answer, c.failed)
}

// A toolCall is a call of a tool, with what counts as a step counted.
type toolCall struct {
	pending[toolOutcome]
	req  *mcp.CallToolRequest // an author's middleware may change it
	args json.RawMessage      // as they came
}

type toolOutcome struct {
	answer   gym.ToolAnswer
	score    gym.Score
	scoreErr error
	episode  gym.Episode // the counters after the call
}

func (s *Session) newToolCall(req *mcp.CallToolRequest, limit time.Duration) *toolCall {
	traits := s.inst.Traits(req.Params.Name)
	c := &toolCall{req: req, args: req.Params.Arguments}
	c.act, c.s = c, s
	c.work = work{callName{tool: req.Params.Name}, or(limit, or(traits.Deadline, s.m.opts.ToolTimeout)), turnSize}
	if traits.Concurrent {
		c.work.share = 1
	}
	return c
}

func (c *toolCall) do(ctx context.Context) (o toolOutcome) {
	o.answer, o.score, o.scoreErr = c.s.inst.CallTool(ctx, c.req)
	return o
}

func (c *toolCall) settle(o *toolOutcome, ran bool, err error) {
	if isStep(ran, err) {
		o.episode = c.s.count(o.score)
	}
	tool := c.work.what.tool
	if late, ok := errors.AsType[*TimeoutError](err); ok && ran {
		c.s.inst.Record(tool, c.args, timedOut(tool, late))
	} else if err == nil {
		c.s.inst.Record(tool, c.args, o.answer)
	}
}

// outcome is what the caller is told: that the time was up is an answer, too.
func (c *toolCall) outcome(o toolOutcome, err error) (toolOutcome, error) {
	if o.scoreErr != nil {
		c.s.log.Error("scoring failed", "event", "score_error", "tool", o.answer.Tool, "error", o.scoreErr)
	}
	if timeout, ok := errors.AsType[*TimeoutError](err); ok {
		o, err = toolOutcome{answer: timedOut(c.work.what.tool, timeout), episode: o.episode}, nil
	}
	return o, err
}

func timedOut(tool string, err *TimeoutError) gym.ToolAnswer {
	return gym.ToolAnswer{Tool: tool, Err: &tools.Error{Type: tools.Timeout, Tool: tool, Message: err.Error(), Err: err}}
}
