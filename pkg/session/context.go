package session

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A callContext is the context of one call. It ends with the caller's context, with the session, or when the call's time is
// up, whichever is first, and has the caller's values. The standard library's contexts would do, three of them nested and
// two AfterFuncs; this one costs a step a fifth of that.
type callContext struct {
	context.Context // the caller's
	deadline        time.Time
	s               *Session // set by who makes it
	alarm           *alarm
	on              *bound // whose list it is on; nil: its caller watches over it, in watch

	mu    sync.Mutex           // guards what follows
	done  chan struct{}        // made when it is asked for
	err   error                // context.Canceled or context.DeadlineExceeded; nil while the call may go on
	cause error                // why it has ended
	ended func()               // run when it ends, in a goroutine of its own; nil: none
	after map[*func()]struct{} // the same of others: see AfterFunc
}

// A bound is a context that ends with a session, and with what it was made from. The calls made with it wait in a list, which
// costs a call nothing, where a watch of the context package costs it four allocations.
type bound struct {
	context.Context
	s *Session

	mu    sync.Mutex
	calls []*callContext // in no order
}

// Bind returns a context that ends with ctx and with the session, for many calls. cancel releases it.
func (s *Session) Bind(ctx context.Context) (_ context.Context, cancel context.CancelFunc) {
	return s.bind(ctx)
}

func (s *Session) bind(ctx context.Context) (_ *bound, cancel context.CancelFunc) {
	ctx, end := context.WithCancelCause(ctx)
	b := &bound{Context: ctx, s: s}
	context.AfterFunc(ctx, b.ended)
	stop := context.AfterFunc(s.ctx, func() { end(context.Cause(s.ctx)) })
	return b, func() { stop(); end(nil) }
}

// ended ends the calls that run.
func (b *bound) ended() {
	b.mu.Lock()
	calls := b.calls
	b.calls = nil
	b.mu.Unlock()
	for _, c := range calls {
		c.callerGone()
	}
}

// add has c end with b, in another goroutine.
func (b *bound) add(c *callContext) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls = append(b.calls, c)
	if b.Err() != nil { // it may have been told already
		go b.ended()
	}
}

func (b *bound) remove(c *callContext) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.calls, c); i >= 0 {
		b.calls[i] = b.calls[len(b.calls)-1]
		b.calls[len(b.calls)-1] = nil
		b.calls = b.calls[:len(b.calls)-1]
	}
}

// begin makes the context that of a call, which must release it. Where ctx is not bound to the session, the caller must watch.
func (c *callContext) begin(ctx context.Context, limit time.Duration) {
	c.mu.Lock() // what ends it waits until it is whole
	defer c.mu.Unlock()
	c.Context, c.deadline = ctx, time.Now().Add(limit)
	if d, ok := ctx.Deadline(); ok && d.Before(c.deadline) {
		c.deadline = d
	}
	c.alarm = c.s.alarms.set(c, limit)
	if b, ok := ctx.(*bound); ok && b.s == c.s {
		c.on = b
		b.add(c)
	}
}

// watch waits until the call is answered, and ends its context if that of its caller ends before, or the session.
func (c *callContext) watch(answered <-chan struct{}) {
	select {
	case <-answered:
		return
	case <-c.Context.Done():
		c.callerGone()
	case <-c.s.ctx.Done():
		c.end(context.Canceled, context.Cause(c.s.ctx))
	}
	<-answered
}

func (c *callContext) timeUp() { c.end(context.DeadlineExceeded, errDeadline) }

// endIfLate ends the context if its time is up: on a busy machine a timer may be late.
func (c *callContext) endIfLate() {
	if time.Now().Before(c.deadline) {
		return
	}
	if d, ok := c.Context.Deadline(); ok && !d.After(c.deadline) { // the caller's was first, and it gives up
		c.end(context.DeadlineExceeded, cmp.Or(context.Cause(c.Context), context.DeadlineExceeded))
		return
	}
	c.timeUp()
}

func (c *callContext) callerGone() { c.end(c.Context.Err(), context.Cause(c.Context)) }

// end ends the context, once.
func (c *callContext) end(err, cause error) {
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return
	}
	c.err, c.cause = err, cause
	if c.done != nil {
		close(c.done)
	}
	ended, after := c.ended, c.after
	c.ended, c.after = nil, nil
	c.mu.Unlock()
	c.unwatch()
	if ended != nil {
		go ended()
	}
	for f := range after {
		go (*f)()
	}
}

func (c *callContext) unwatch() {
	c.s.alarms.stop(c.alarm)
	if c.on != nil {
		c.on.remove(c)
	}
}

// whenEnded has f run when the context ends, unless it is released before.
func (c *callContext) whenEnded(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return
	}
	c.ended = f
}

// release ends the context of a call that is over.
func (c *callContext) release() {
	c.mu.Lock()
	c.ended = nil
	c.mu.Unlock()
	c.end(context.Canceled, context.Canceled)
}

func (c *callContext) Deadline() (time.Time, bool) { return c.deadline, true }

func (c *callContext) Done() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.done == nil {
		c.done = make(chan struct{})
		if c.err != nil {
			close(c.done)
		}
	}
	return c.done
}

func (c *callContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// why is why the context has ended; nil while it has not.
func (c *callContext) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cause
}

// AfterFunc has f run in a goroutine of its own when the context ends. It is what the context package asks a context of
// another make for, so that contexts made from this one need no goroutine.
func (c *callContext) AfterFunc(f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		go f()
		return func() bool { return false }
	}
	if c.after == nil {
		c.after = map[*func()]struct{}{}
	}
	c.after[&f] = struct{}{}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, waiting := c.after[&f]
		delete(c.after, &f)
		return waiting
	}
}
