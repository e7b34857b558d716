package codemode

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"go.starlark.net/starlark"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/fault"
)

// Run runs a piece of code in the calling process and goroutine until it ends, reaches a limit or ctx is done. Its calls of
// tools are made by call, one at a time, in the same goroutine; a nil call has no tools. Memory is bounded only where one
// operation asks for too much of it: package sandbox bounds the whole.
//
// It never panics, and keeps nothing. Many runs may go on at once, of the same job too.
func Run(ctx context.Context, job Job, call CallFunc) (o Outcome) {
	r := newRun(job, call)
	defer func() {
		if p := recover(); p != nil {
			o = r.outcome(nil, internal(p))
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, r.limits.Time, r.exceeded("time", "it took more than %v", r.limits.Time))
	defer cancel()
	r.ctx = ctx
	if ctx.Err() != nil {
		return r.outcome(nil, r.report(context.Cause(ctx)))
	}
	program, fault := r.compile(job.Code)
	if fault != nil {
		return r.outcome(nil, fault)
	}
	defer context.AfterFunc(ctx, func() { r.stop(context.Cause(ctx)) })()
	globals, err := program.Init(r.thread, r.names)
	if err = cmpError(r.ended(), err); err != nil {
		return r.outcome(nil, r.report(err))
	}
	return r.outcome(r.result(globals))
}

// Check reports what is wrong with a job's code before anything runs; nil: nothing.
func Check(job Job) (e *Error) {
	r := newRun(job, nil)
	defer func() {
		if p := recover(); p != nil {
			e = internal(p)
		}
	}()
	_, e = r.compile(job.Code)
	return e
}

// run is one run's state. All of it belongs to the goroutine of Run, save what meter says.
type run struct {
	*meter
	ctx     context.Context
	limits  Limits
	call    CallFunc
	tools   *toolbox
	names   starlark.StringDict // what code finds
	lines   []string            // of the source
	out     output
	calls   int
	handled []error // what the except clauses that are running have caught, innermost last
}

func newRun(job Job, call CallFunc) *run {
	r := &run{limits: job.Limits.OrDefaults(), call: call}
	r.meter = newMeter(r.limits)
	r.out.limit = r.limits.Output
	r.tools = newToolbox(job.Tools)
	r.names = maps.Clone(universe())
	maps.Copy(r.names, r.hidden())
	maps.Copy(r.names, r.helpers())
	for _, t := range r.tools.all {
		if t.function != "" {
			r.names[t.function] = r.function(t)
		}
	}
	return r
}

// result is the outcome's JSON: the global result, or else the value of the last statement.
func (r *run) result(globals starlark.StringDict) ([]byte, *Error) {
	v, ok := globals[resultName]
	if c, isCell := v.(*cell); isCell {
		v, ok = c.value, c.value != nil
	}
	if !ok {
		v, ok = globals[lastName]
	}
	if !ok {
		return nil, nil
	}
	b, err := r.toJSON(v, resultName)
	if err = cmpError(r.ended(), err); err == nil {
		return b, nil
	}
	e := r.report(err)
	if e.Kind == Runtime {
		e.Kind = Result
	}
	return nil, e
}

func (r *run) outcome(result []byte, e *Error) Outcome {
	if result == nil {
		result = []byte("null")
	}
	if e != nil {
		e.shorten(r.limits.Output)
	}
	return Outcome{Result: result, Stdout: r.out.String(), Calls: r.calls, Steps: r.steps(), Error: e}
}

// cmpError is the first of the two that is one.
func cmpError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func internal(p any) *Error {
	return &Error{Kind: Runtime, Message: fmt.Sprintf("internal error: %v", p)}
}

// exceeded is the limit of a name.
func (m *meter) exceeded(name, format string, args ...any) *fault.Limit {
	return &fault.Limit{Name: name, Message: fmt.Sprintf(format, args...)}
}

func asLimit(err error) (*fault.Limit, bool) {
	var l *fault.Limit
	return l, errors.As(err, &l)
}
