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
	base   int64 // what the runtime held before any code
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
	}}
}

// rehearse makes the runtime's timers and threads exist.
func (g *guard) rehearse() {
	g.begin(codemode.Limits{Time: time.Minute, Memory: g.memory})
	time.Sleep(2 * watchEvery)
	g.base = g.held()
	// The collector works harder from here on, so that garbage does not count as held.
	debug.SetMemoryLimit(int64(g.sample[2].Value.Uint64()) + g.memory*5/8)
	g.done()
}

// held is how much memory is in use, garbage that has not been found yet included.
func (g *guard) held() int64 {
	metrics.Read(g.sample)
	return int64(g.sample[0].Value.Uint64()+g.sample[1].Value.Uint64()) - g.base
}

// begin makes the guard watch a run, which ends with the context.
func (g *guard) begin(l codemode.Limits) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	g.mu.Lock()
	defer g.mu.Unlock()
	g.running, g.cancel = true, cancel
	g.bound = min(l.Memory, g.memory)
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
	g.running = false
	g.cancel(nil)
	g.mu.Unlock()
	if g.held() > g.memory/8 {
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
	switch held := g.held(); {
	case held > g.bound:
		os.Exit(exitMemory)
	case held > g.bound*3/4:
		g.cancel(tooMuch(g.bound))
	}
	if time.Now().After(g.over) { // the pool would have killed us
		os.Exit(exitTime)
	}
	return true
}
