package session

import (
	"sync"
	"time"
)

// workerPatience is how long a worker waits for the next call.
const workerPatience = 5 * time.Second

// Workers are goroutines that run the calls of callers who wait. A call needs a deep stack, and a fresh goroutine grows one in
// steps, by copying, for each call: that is 6% of an HTTP tool call's CPU. A worker keeps its stack for the next.
type workers struct {
	calls chan func() // taken by a worker that has nothing to do
	end   func()      // has those leave that have nothing to do; idempotent
	ended chan struct{}
}

func newWorkers() *workers {
	w := &workers{calls: make(chan func()), ended: make(chan struct{})}
	w.end = sync.OnceFunc(func() { close(w.ended) })
	return w
}

// run has f run at once, in a goroutine that is not the caller's.
func (w *workers) run(f func()) {
	select {
	case w.calls <- f:
	default:
		go w.work(f)
	}
}

func (w *workers) work(f func()) {
	patience := time.NewTimer(workerPatience)
	defer patience.Stop()
	for {
		f()
		patience.Reset(workerPatience)
		select {
		case f = <-w.calls:
		case <-patience.C:
			return
		case <-w.ended:
			return
		}
	}
}
