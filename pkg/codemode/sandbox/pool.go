package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// Options are how a [Pool] runs code. The zero value is ready for use.
type Options struct {
	// Processes is how many runs go on at once; others wait in order of arrival. 0: twice the processors, at least 4, since
	// a run often waits for its tools.
	Processes int
	// Memory is how many bytes a run may hold, whatever its job says. 0: that of [codemode.Defaults]. The least is 16 MiB.
	Memory int64
	// Log is told of children that start and end. nil: nobody is.
	Log *slog.Logger
}

// ErrClosed is what runs end with when their pool is closed.
var ErrClosed = errors.New("the pool of processes that run code is closed")

// A BusyError says that a run found no place while there was time for it, and has not begun.
type BusyError struct {
	Waited    time.Duration
	Processes int // all of them at work
}

func (e *BusyError) Error() string {
	return fmt.Sprintf("the code waited %v for one of %d processes and did not run: others run code on this server; try again", e.Waited, e.Processes)
}

// An UnsupportedError says that this system cannot run code in bounded processes.
type UnsupportedError struct{ System string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("code mode needs Linux on amd64 or arm64, for its bounds on memory and system calls, and this is %s: run the server in a Linux container", e.System)
}

// A StartError says why a child could not be started, or would not serve.
type StartError struct{ Reason string }

func (e *StartError) Error() string { return "starting a process for code: " + e.Reason }

// A BrokenError says that a child did what none does: it is a fault of this package, or of code that has taken a child over.
// The child has been killed.
type BrokenError struct{ Reason string }

func (e *BrokenError) Error() string { return "a process that runs code broke its rules: " + e.Reason }

// A Pool runs code in child processes. Its methods may be called at once. It must be closed.
type Pool struct {
	options   Options
	places    *semaphore.Weighted // a run has one from its turn until its child is ready for another, or gone
	life      context.Context     // ends with the pool
	end       context.CancelCauseFunc
	command   func() *exec.Cmd // what children run
	mu        sync.Mutex
	idle      []*child // the ones used last at the end
	children  int      // idle ones and those of runs: never more than Processes
	resident  int64    // of the child that started last
	closeOnce sync.Once
}

// New returns a pool, or an [*UnsupportedError]. Nothing is started before the first run or [Pool.Warm].
func New(o Options) (*Pool, error) {
	if !supported {
		return nil, &UnsupportedError{System: runtime.GOOS + "/" + runtime.GOARCH}
	}
	o.Processes = cmp.Or(max(o.Processes, 0), max(4, 2*runtime.NumCPU()))
	o.Memory = max(cmp.Or(max(o.Memory, 0), codemode.Defaults().Memory), codemode.MinMemory)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &Pool{options: o, places: semaphore.NewWeighted(int64(o.Processes)), command: command}
	p.life, p.end = context.WithCancelCause(context.Background())
	return p, nil
}

// Warm starts a child and runs code in it, so that what forbids children is found when a server starts, and not in its
// first run. The error is then a [*StartError].
func (p *Pool) Warm(ctx context.Context) error {
	o, err := p.Run(ctx, codemode.Job{Code: "1 + 1"}, nil)
	if err == nil && o.Error != nil {
		return &BrokenError{Reason: o.Error.Message}
	}
	return err
}

// Bound is how many bytes of memory the kernel lets all children have together, for an instant. A run that holds more than
// [Options].Memory ends within some milliseconds, so that what they take is, but for one step of code in each, Processes times the sum of
// Memory and of what a child takes before any code (some 6 MiB and the program's own data; known when one has started).
func (p *Pool) Bound() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int64(p.options.Processes) * (ceiling(p.options.Memory) + p.resident)
}

// Run runs a job in a child, as [codemode.Run] does here; its calls are made by call, in the calling goroutine. It waits for a
// place until ctx's deadline leaves less than the job's time; the job's time begins when a child has it, and the run ends within a fifth more, save
// where call does not return when its context is done. The memory of a job is at most that of [Options].
//
// When ctx ends, the child is killed at once, and Run returns ctx's cause as soon as a call that is under way has returned.
// Other errors are [ErrClosed], a [*BusyError], a [*StartError] or a [*BrokenError]; a limit that was reached is part of the outcome.
func (p *Pool) Run(ctx context.Context, job codemode.Job, call codemode.CallFunc) (o codemode.Outcome, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.life, func() { cancel(ErrClosed) })()
	job.Limits = job.Limits.Or(codemode.Defaults())
	at, err := p.enter(ctx, job.Limits.Time)
	if err != nil {
		return o, err
	}
	job.Limits.Memory = min(job.Limits.Memory, p.options.Memory)
	var c *child
	defer func() { at.leave(c) }()
	for range 2 { // a child may die while nobody looks
		if c, err = p.take(ctx); err != nil {
			return o, err
		}
		if o, err = c.run(ctx, job, call, at); err != errNotBegun {
			return o, err
		}
		if ctx.Err() != nil { // the place may have been given up
			return o, context.Cause(ctx)
		}
		p.discard(c)
		c = nil
	}
	return o, &StartError{Reason: "two in a row ended before they began the code"}
}

// A place is a run's among those that may go on at once.
type place struct {
	*Pool
	once sync.Once // it is given up
}

// enter takes a place for a run that may take that long. It waits until there is less than that left.
func (p *Pool) enter(ctx context.Context, run time.Duration) (*place, error) {
	if p.places.TryAcquire(1) {
		return &place{Pool: p}, nil
	}
	wait := ctx
	if end, ok := ctx.Deadline(); ok {
		if most := time.Until(end) - run; most > 0 {
			var cancel context.CancelFunc
			wait, cancel = context.WithTimeoutCause(ctx, most, &BusyError{most.Round(time.Millisecond), p.options.Processes})
			defer cancel()
		}
	}
	if p.places.Acquire(wait, 1) != nil {
		return nil, context.Cause(wait)
	}
	return &place{Pool: p}, nil
}

// leave gives up a place, once its child, if it has one, is ready for another or gone. A run's caller does not wait for an end.
func (at *place) leave(c *child) {
	if c != nil && !c.reusable() {
		go at.abandon(c)
		return
	}
	at.once.Do(func() {
		defer at.places.Release(1)
		if c != nil {
			at.mu.Lock()
			defer at.mu.Unlock()
			at.idle = append(at.idle, c)
		}
	})
}

// abandon ends a child and then gives up its place, though its run may not have returned: a tool that does not heed its
// context keeps its caller, and nobody else.
func (at *place) abandon(c *child) {
	at.once.Do(func() {
		defer at.places.Release(1)
		at.discard(c)
		at.mu.Lock()
		defer at.mu.Unlock()
		at.spare()
	})
}

// take gives the caller, who has a place, a child that is ready.
func (p *Pool) take(ctx context.Context) (*child, error) {
	for {
		c, fresh := p.pop()
		if err := c.await(ctx); err != nil {
			p.discard(c)
			if fresh || ctx.Err() != nil {
				return nil, err
			}
			continue // a spare's fault may be over
		}
		if ended(c.cmd.Process.Pid) {
			p.discard(c)
			continue
		}
		p.mu.Lock()
		p.resident = c.resident
		p.spare()
		p.mu.Unlock()
		return c, nil
	}
}

func (p *Pool) pop() (c *child, fresh bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.idle); n > 0 {
		c = p.idle[n-1]
		p.idle = p.idle[:n-1]
		return c, false
	}
	p.children++ // there is room: each child that is not idle has another run's place
	return p.start(), true
}

// spare begins the start of a child for the next run, where none is idle and there is room. p.mu is held.
func (p *Pool) spare() {
	if len(p.idle) == 0 && p.children < p.options.Processes && p.life.Err() == nil {
		p.children++
		p.idle = append(p.idle, p.start())
	}
}

// discard ends a child and waits until its memory is free.
func (p *Pool) discard(c *child) {
	c.ending.Do(func() {
		c.end()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.children--
	})
}

// Close ends every run with [ErrClosed], and every child, and returns when they are gone. It always returns nil. Closing again is allowed.
func (p *Pool) Close() error {
	p.closeOnce.Do(func() {
		p.end(ErrClosed)
		// With all places in hand no run is left, and none can begin.
		_ = p.places.Acquire(context.Background(), int64(p.options.Processes))
		p.mu.Lock()
		idle := slices.Clone(p.idle)
		p.idle = nil
		p.mu.Unlock()
		for _, c := range idle {
			p.discard(c)
		}
	})
	return nil
}
