package sandbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
	"github.com/openenv-go/openenv-go/pkg/internal/strictjson"
)

// errNotBegun: the child ended before it had the job.
var errNotBegun = errors.New("the process ended before the code began")

// grace is how much longer than its time a run may take to say so: a tenth, within bounds.
func grace(t time.Duration) time.Duration {
	return min(max(t/10, 25*time.Millisecond), 100*time.Millisecond)
}

// A visit is one run in a child.
type visit struct {
	*child
	job   codemode.Job
	call  codemode.CallFunc
	ctx   context.Context // the caller's
	calls int
	begun bool
	late  atomic.Bool // it was killed for its time
}

// run runs a job whose limits are set. Afterwards, unless the child is reusable, it must be ended.
func (c *child) run(ctx context.Context, j codemode.Job, f codemode.CallFunc, at *place) (codemode.Outcome, error) {
	c.clean = false
	c.runs++
	v := &visit{child: c, job: j, call: f, ctx: ctx}
	// It is killed first, so that it is not taken for one that can be used again.
	end := func() { c.kill(); at.abandon(c) }
	awake := context.AfterFunc(ctx, end)
	limit := time.AfterFunc(j.Limits.Time+grace(j.Limits.Time), func() { v.late.Store(true); end() })
	o, err := v.serve()
	// Who cannot be stopped any more has killed the child, or is about to.
	if !limit.Stop() || !awake() {
		c.killed.Store(true)
	}
	if err == nil {
		c.clean = o.Error == nil || o.Error.Kind != codemode.Limited
		return o, nil
	}
	return v.dead(err)
}

// serve sends the job and answers the child's calls until it has the outcome.
func (v *visit) serve() (o codemode.Outcome, err error) {
	ctx, cancel := context.WithTimeoutCause(v.ctx, v.job.Limits.Time, v.tooLong())
	defer cancel()
	if err := v.send(request{Job: v.handOver()}); err != nil {
		return o, err
	}
	for {
		r, err := v.read(replyBound(v.job.Limits))
		switch {
		case err != nil:
			return o, err
		case r.Began && !v.begun:
			v.begun = true
		case r.Call != nil && v.begun:
			if err := v.answer(ctx, r.Call); err != nil {
				return o, err
			}
		case r.Outcome != nil && v.begun:
			return v.checked(r.Outcome)
		default:
			return o, &BrokenError{Reason: "a frame that is not due"}
		}
	}
}

// handOver is the job as it is sent: tools that the child knows are not sent again.
func (v *visit) handOver() *job {
	j := &job{Code: v.job.Code, Limits: v.job.Limits}
	if !slices.EqualFunc(v.tools, v.job.Tools, sameTool) {
		j.NewTools, j.Tools = true, v.job.Tools
		v.tools = v.job.Tools
	}
	return j
}

func sameTool(a, b codemode.Tool) bool {
	return a.Name == b.Name && a.Description == b.Description && a.Unordered == b.Unordered && bytes.Equal(a.Input, b.Input) && bytes.Equal(a.Output, b.Output)
}

// answer makes a call for the child.
func (v *visit) answer(ctx context.Context, c *call) error {
	if v.calls++; v.calls > v.job.Limits.Calls {
		return &BrokenError{Reason: fmt.Sprintf("it made more than %d calls", v.job.Limits.Calls)}
	}
	if !slices.ContainsFunc(v.job.Tools, func(t codemode.Tool) bool { return t.Name == c.Tool }) {
		return &BrokenError{Reason: fmt.Sprintf("a call of %.60q, which is no tool", c.Tool)}
	}
	if args := bytes.TrimLeft(c.Args, " \t\r\n"); len(args) == 0 || args[0] != '{' || len(args) > v.job.Limits.Output {
		return &BrokenError{Reason: "a call whose arguments are no object, or too long"}
	}
	a, err := v.call(ctx, c.Tool, c.Args)
	switch over := context.Cause(ctx); {
	case v.ctx.Err() != nil:
		return over
	case over != nil: // its time is over, and it knows
		return nil
	case err != nil:
		return v.send(request{Stop: stopped(err)})
	case len(a.Value) > v.maxAnswer():
		return v.send(request{Stop: &stop{Limit: "memory", Message: fmt.Sprintf(
			"what %s answered takes %d bytes, more than code can take in: ask it for less", c.Tool, len(a.Value))}})
	}
	if a.Value == nil && a.Failure == nil {
		a.Value = json.RawMessage("null")
	}
	b, err := frame(request{Answer: &a})
	if err != nil {
		return v.send(request{Stop: &stop{Message: fmt.Sprintf("what %s answered is no JSON: %v", c.Tool, err)}})
	}
	_, err = v.in.Write(b)
	return err
}

// maxAnswer is how long a tool's answer may be: as values it takes several times as much.
func (v *visit) maxAnswer() int { return int(v.job.Limits.Memory / 4) }

func stopped(err error) *stop {
	if l, ok := errors.AsType[*fault.Limit](err); ok {
		return &stop{Limit: l.Name, Message: l.Message}
	}
	return &stop{Message: err.Error()}
}

func (c *child) send(r request) error { return writeFrame(c.in, r) }

// read reads a child's frame, which may hold anything.
func (c *child) read(bound int) (r reply, err error) {
	b, err := readFrame(c.replies, bound)
	if _, long := errors.AsType[*longFrame](err); long {
		return r, &BrokenError{Reason: err.Error()}
	}
	if err != nil {
		return r, io.EOF // however it ended
	}
	if err = strictjson.Check(b, maxDepth); err == nil {
		err = strictjson.UnmarshalKnown(b, &r)
	}
	if err != nil {
		return r, &BrokenError{Reason: err.Error()}
	}
	return r, nil
}

// maxDepth is how deeply a child's frames nest: what code may return, in what goes round it.
const maxDepth = strictjson.DefaultMaxDepth

// checked holds an outcome to the limits.
func (v *visit) checked(o *codemode.Outcome) (codemode.Outcome, error) {
	if len(o.Result) > max(v.job.Limits.Output, len("null")) || len(o.Stdout) > v.job.Limits.Output {
		return codemode.Outcome{}, &BrokenError{Reason: "an outcome longer than it may be"}
	}
	if o.Calls < v.calls || o.Calls > v.job.Limits.Calls { // refused ones have not come here
		return codemode.Outcome{}, &BrokenError{Reason: fmt.Sprintf("an outcome of %d calls", o.Calls)}
	}
	if o.Result == nil {
		o.Result = json.RawMessage("null")
	}
	return *o, nil
}

// dead kills a child that did not come to an outcome, and says why it did not.
func (v *visit) dead(err error) (codemode.Outcome, error) {
	v.kill()
	broken, isBroken := errors.AsType[*BrokenError](err)
	switch {
	case v.ctx.Err() != nil:
		return codemode.Outcome{}, context.Cause(v.ctx)
	case v.late.Load():
		return v.limit(v.tooLong()), nil
	case isBroken:
		v.log.Error("process for code broke its rules", "event", "code_process_broken", "pid", v.cmd.Process.Pid, "reason", broken.Reason)
		return codemode.Outcome{}, broken
	case !v.begun:
		return codemode.Outcome{}, errNotBegun
	}
	v.wait()
	if status, ok := v.how.Sys().(syscall.WaitStatus); ok && status.ExitStatus() == exitTime {
		return v.limit(v.tooLong()), nil
	}
	return v.limit(v.tooMuch()), nil // whatever ended it: its runtime for lack of memory, itself or the kernel
}

func (v *visit) limit(l *fault.Limit) codemode.Outcome {
	return codemode.Outcome{Result: json.RawMessage("null"), Calls: v.calls, Error: &codemode.Error{Kind: codemode.Limited, Message: l.Message, Limit: l.Name}}
}

func (v *visit) tooLong() *fault.Limit {
	return &fault.Limit{Name: "time", Message: fmt.Sprintf("the code took longer than %v: do less, or split the work over several runs", v.job.Limits.Time)}
}

func (v *visit) tooMuch() *fault.Limit { return tooMuch(v.job.Limits.Memory) }

func tooMuch(bound int64) *fault.Limit {
	return &fault.Limit{Name: "memory", Message: fmt.Sprintf("the code takes more than the %d MiB of memory there are: keep less at a time", bound>>20)}
}
