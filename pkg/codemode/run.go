package codemode

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/openenv-go/openenv-go/pkg/codemode/internal/dialect"
)

// Run runs a piece of code in the calling goroutine until it ends, reaches a limit or ctx is done. Its calls of tools are
// made by call, one at a time, in the same goroutine; a job without tools needs none. Memory is bounded only where one
// operation asks for too much of it: package sandbox bounds the whole. Steps and time do not see into one step of the
// interpreter on large data, such as the product of two long integers.
//
// Run never panics and keeps nothing. Many runs may go on at once, of one job too.
func Run(ctx context.Context, job Job, call CallFunc) (o Outcome) {
	r := newRun(job, call)
	defer func() {
		if p := recover(); p != nil {
			o = r.outcome(nil, internal(p))
		}
	}()
	ctx, cancel := context.WithTimeoutCause(ctx, r.limits.Time, r.tooLong())
	defer cancel()
	r.ctx = ctx
	program, e := r.compile(job.Code)
	if e != nil {
		return r.outcome(nil, e)
	}
	defer context.AfterFunc(ctx, func() { r.stop(context.Cause(ctx)) })()
	globals, err := r.start(program)
	if err != nil {
		return r.outcome(nil, r.report(err))
	}
	return r.outcome(r.result(globals))
}

// Check tells what is wrong with a job's code before anything runs; nil: nothing.
func Check(job Job) (e *Error) {
	defer func() {
		if p := recover(); p != nil {
			e = internal(p)
		}
	}()
	r := newRun(job, nil)
	if _, e = r.compile(job.Code); e != nil {
		e.shorten(r.limits.Output)
	}
	return e
}

// A run is one run's state. All of it belongs to the goroutine of Run, save what meter says.
type run struct {
	*meter
	ctx     context.Context
	call    CallFunc
	tools   *toolbox
	names   starlark.StringDict // what code finds
	lines   []string            // of the source
	file    *syntax.File        // as it was compiled
	out     output
	calls   int
	quoting int     // attempts that are being written, each in the one before
	handled []error // what the except clauses that are running have caught, innermost last
}

func newRun(job Job, call CallFunc) *run {
	r := &run{meter: newMeter(job.Limits.Or(Defaults())), call: call, tools: newToolbox(job.Tools)}
	r.names = maps.Clone(universe())
	maps.Copy(r.names, classes)
	r.names["$BREAK"], r.names["$CONTINUE"] = signalBreak, signalContinue
	for name, f := range r.builtins() {
		r.names[name] = starlark.NewBuiltin(name, f)
	}
	for _, t := range r.tools.all {
		if t.function != "" {
			r.names[t.function] = starlark.NewBuiltin(t.function, r.function(t))
		}
	}
	return r
}

// start runs the program, unless the run is over already.
func (r *run) start(program *starlark.Program) (starlark.StringDict, error) {
	if r.ctx.Err() != nil {
		return nil, r.stop(context.Cause(r.ctx))
	}
	globals, err := program.Init(r.thread, r.names)
	if e := (*early)(nil); errors.As(r.ended(), &e) {
		r.resume()
		if err = nil; r.ctx.Err() != nil { // which came second, and so was not heard
			err = r.stop(context.Cause(r.ctx))
		}
		if e.value != starlark.None {
			globals[resultName] = e.value
		}
	}
	return globals, cmp.Or(err, r.ended())
}

// result is the outcome as JSON: the global result, or else the value of the last statement.
func (r *run) result(globals starlark.StringDict) ([]byte, *Error) {
	v := cmp.Or(globals[resultName], globals[dialect.Aside(resultName)])
	if c, ok := v.(*cell); ok {
		v = c.value
	}
	isLast := v == nil
	if isLast {
		v = globals[lastName]
	}
	if v == nil {
		return nil, nil
	}
	b, err := r.toJSON(v, resultName)
	if err = cmp.Or(err, r.ended()); err == nil {
		return b, nil
	}
	e := r.report(err)
	if e.Kind == Runtime {
		e.Kind = Result
	}
	if isLast {
		line, column := r.last()
		r.place(e, line, column)
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

// internal is what is said of a panic: a fault of this package, not of the code.
func internal(p any) *Error {
	return &Error{Kind: Runtime, Message: clip(fmt.Sprintf("internal error: %v", p), maxMessage)}
}

func (m *meter) tooLong() error {
	return m.exceeded("time", "the code took longer than %v: do less, or split the work over several runs", m.limits.Time)
}
