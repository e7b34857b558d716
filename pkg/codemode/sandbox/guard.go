//go:build linux && (amd64 || arm64)

package sandbox

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/openenv-go/openenv-go/pkg/codemode"
)

// watchEvery is how often the guard looks. A look takes a microsecond or two; code can fill some MiB in between.
const watchEvery = 2 * time.Millisecond

// A guard watches what code takes, so that most of it ends with a line number before the kernel's bounds end the process.
type guard struct {
	memory int64 // that the process may hold
	base   taken // before any code
	sample []metrics.Sample

	mu      sync.Mutex
	wake    chan struct{}
	running bool
	bound   int64                   // of the run
	over    time.Time               // when it must have ended
	cancel  context.CancelCauseFunc // ends it
}

func newGuard(memory int64) *guard {
	return &guard{memory: memory, wake: make(chan struct{}, 1), sample: []metrics.Sample{
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}, {Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/released:bytes"}, {Name: "/gc/heap/live:bytes"},
	}}
}

// rehearse makes the runtime's timers and threads exist.
func (g *guard) rehearse() {
	g.begin(codemode.Limits{Time: time.Minute, Memory: g.memory})
	time.Sleep(2 * watchEvery)
	g.done()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.base, g.bound = g.taken(), 0
}

// taken is what a process takes beside what it began with, in bytes: by values, garbage among them; by those that the last
// search for garbage found alive; and by the runtime's pages.
type taken struct{ values, live, pages int64 }

// taken looks. g.mu is held.
func (g *guard) taken() taken {
	metrics.Read(g.sample)
	n := func(i int) int64 { return int64(g.sample[i].Value.Uint64()) }
	return taken{values: n(0) + n(1) - g.base.values, live: n(4) - g.base.live, pages: n(2) - n(3) - g.base.pages}
}

// begin makes the guard watch a run, which ends with the context.
func (g *guard) begin(l codemode.Limits) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running, g.cancel = true, cancel
	if b := min(l.Memory, g.memory); b != g.bound {
		// The collector works harder near the bound, so that garbage is not in the way of values.
		g.bound = b
		debug.SetMemoryLimit(g.base.pages + b*3/4)
	}
	g.over = time.Now().Add(l.Time + grace(l.Time))
	select {
	case g.wake <- struct{}{}:
	default:
	}
	return ctx
}

// done ends a run's watch, and leaves the memory for the next one as it was found.
func (g *guard) done() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running = false
	g.cancel(nil)
	if g.taken().pages > g.memory/8 {
		debug.FreeOSMemory()
	}
}

// watch looks at what the process holds for as long as there is a run.
func (g *guard) watch() {
	t := time.NewTicker(watchEvery)
	for {
		t.Stop()
		<-g.wake
		t.Reset(watchEvery)
		for g.look() {
			<-t.C
		}
	}
}

// look ends a run that holds too much, and the process if that is not enough. It reports whether there is a run.
func (g *guard) look() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.running {
		return false
	}
	if time.Now().After(g.over) { // the pool would have killed us
		os.Exit(exitTime)
	}
	switch t := g.taken(); {
	case max(t.values, t.pages) > g.bound*9/8:
		os.Exit(exitMemory)
	case t.values > g.bound*3/4 && t.live > g.bound*5/8:
		g.cancel(tooMuch(g.bound))
	}
	return true
}
